//! `DynamoDB` JSON: one `{"Item":{…}}` a line.

use crate::error::Reason;
use crate::model::{Arena, Item};

/// What one line held.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// The item.
    pub item: Item<'a>,
    /// The bytes of the item's object in the line.
    pub source: &'a [u8],
}

/// Decodes one line.
///
/// # Errors
/// Why the line is no item; stage `decode`.
pub fn decode_line<'a>(line: &'a str, arena: &'a Arena) -> Result<Decoded<'a>, Reason> {
    let _ = (line, arena);
    unimplemented!()
}

/// Appends the item's object: `{"PK":{"S":"…"},…}`.
pub fn write_item(item: &Item<'_>, out: &mut Vec<u8>) {
    let _ = (item, out);
    unimplemented!()
}
