//! Between a line of an export and an item or a change.

pub mod ddb_json;
mod names;
mod plain;
mod record;
mod refused;

pub use record::{ChangeRecord, Decoded, Record};

use crate::error::Reason;
use crate::model::{Arena, Format, Part, Raw};

/// Decodes one line of a data file in `format`.
///
/// # Errors
/// Why the line is no record; stage `decode`. The message says the column in bytes, from 1, and the attribute.
pub fn decode_line<'a>(line: &'a str, format: Format, arena: &'a Arena) -> Result<Decoded<'a>, Reason> {
    match format {
        Format::Json => ddb_json::decode_line(line, arena),
    }
}

/// The record as a line of `DynamoDB` JSON without its end, which is what rejects hold. What is JSON already stays byte for byte.
#[must_use]
pub fn json_line(source: Raw<'_>) -> Vec<u8> {
    match (source.format, source.part) {
        (Format::Json, Part::Item) => [b"{\"Item\":", source.bytes, b"}"].concat(),
        (Format::Json, Part::Change) => source.bytes.to_vec(),
    }
}
