//! `DynamoDB` JSON: one `{"Item":{…}}` a line, in both directions.
//!
//! Whether `DynamoDB` would take the item is not asked here; that is the business of [`limits`](crate::limits).

mod cursor;
mod encode;
mod scan;
#[cfg(test)]
mod tests;

pub use encode::{write_item, write_string, write_value};

use crate::codec::ddb_json::cursor::{Cursor, Refused};
use crate::error::Reason;
use crate::model::{Arena, Item, Place};

/// Levels of values that the decoder follows; a value of an item is on level 1. `DynamoDB` allows 32, which
/// [`limits`](crate::limits) checks exactly; this bound keeps the stack small whatever a line holds.
pub const LEVELS: usize = 64;

/// What one line held.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// The item.
    pub item: Item<'a>,
    /// The bytes of the item's object in the line, from `{` to `}`.
    pub source: &'a [u8],
}

/// Decodes one line: `{"Item":{…}}`. A member `Reject`, which lines of a rejects file have, is passed over.
///
/// In one pass. Names and texts borrow from the line; what holds escapes, binaries, lists and maps are in the arena.
/// Numbers stay the text they are, and sets keep their order.
///
/// # Errors
/// Why the line is no item; stage `decode`. The message says the column in bytes, from 1, and the attribute.
pub fn decode_line<'a>(line: &'a str, arena: &'a Arena) -> Result<Decoded<'a>, Reason> {
    let result = match line.strip_prefix(r#"{"Item":"#) {
        Some(rest) if rest.starts_with('{') => usual(line, arena),
        _ => members(&mut Cursor::new(line, 0, arena)),
    };
    result.map_err(Refused::into_reason)
}

/// A line that starts `{"Item":{`, as nearly all do.
fn usual<'a>(line: &'a str, arena: &'a Arena) -> Result<Decoded<'a>, Refused> {
    let mut cursor = Cursor::new(line, r#"{"Item":"#.len(), arena);
    let decoded = item(&mut cursor)?;
    if cursor.rest() == b"}" {
        return Ok(decoded);
    }
    if cursor.eat(b',') {
        return members_after(&mut cursor, Some(decoded));
    }
    cursor.expect(b'}', &Place::Item, "`,` or `}` after the item")?;
    cursor.end()?;
    Ok(decoded)
}

/// Any other line, from its start.
fn members<'a>(cursor: &mut Cursor<'a>) -> Result<Decoded<'a>, Refused> {
    if let Some((rule, message)) = cursor.foreign() {
        return Err(Refused::new(rule, message));
    }
    cursor.expect(b'{', &Place::Item, r#"`{"Item":{…}}`"#)?;
    if cursor.eat(b'}') {
        return Err(cursor.fail("not-an-item", &Place::Item, r#"an empty object; expected `{"Item":{…}}`"#));
    }
    members_after(cursor, None)
}

/// The members of the line's object, from a name on.
fn members_after<'a>(cursor: &mut Cursor<'a>, mut known: Option<Decoded<'a>>) -> Result<Decoded<'a>, Refused> {
    loop {
        cursor.skip_blanks();
        let start = cursor.at();
        let name = cursor.name(&Place::Item)?;
        match name {
            "Item" if known.is_some() => {
                return Err(cursor::refusal(start, "not-an-item", &Place::Item, "a second `Item` in the line"));
            }
            "Item" => known = Some(item(cursor)?),
            "Reject" => cursor.skip()?,
            "Keys" | "NewImage" | "OldImage" | "Metadata" | "Record" => {
                let message = format!("`{name}`: a change record of an incremental export, which is not read yet; use a full export");
                return Err(cursor::refusal(start, "not-an-item", &Place::Item, &message));
            }
            other => {
                let message = format!(r#"member `{}` beside or instead of `Item`; expected `{{"Item":{{…}}}}`"#, cursor::short(other));
                return Err(cursor::refusal(start, "not-an-item", &Place::Item, &message));
            }
        }
        if !cursor.eat(b',') {
            break;
        }
    }
    cursor.expect(b'}', &Place::Item, "`,` or `}`")?;
    cursor.end()?;
    known.ok_or_else(|| cursor.fail("not-an-item", &Place::Item, "no `Item` in the line"))
}

/// The item's object.
fn item<'a>(cursor: &mut Cursor<'a>) -> Result<Decoded<'a>, Refused> {
    cursor.skip_blanks();
    let start = cursor.at();
    if cursor.peek() != Some(b'{') {
        let message = format!("{} under `Item`; expected an object of attributes", cursor.found());
        return Err(cursor.fail("not-an-item", &Place::Item, &message));
    }
    let attributes = cursor.attributes(1, &Place::Item)?;
    Ok(Decoded { item: Item::from_attributes(attributes), source: cursor.since(start) })
}
