//! Amazon Ion text: one `$ion_1_0 {Item:{…}}` or change record a line, in both directions.
//!
//! Binary Ion, symbol tables and Ion 1.1 are not read: `DynamoDB` writes none of them. Whether `DynamoDB` would take the item is not asked
//! here; that is the business of [`limits`](crate::limits).
//!
//! `ion-rs` is the reference in the tests and not the reader: its lazy reader (1.2.0) takes almost seven times as long for an item.

mod cursor;
mod encode;
mod number;
#[cfg(test)]
mod tests;
mod text;

pub use encode::{write_item, write_line, write_value};

use crate::codec::ion::cursor::Cursor;
use crate::codec::record::{self, Decoded, Parts, Record};
use crate::codec::refused::{Refused, refusal, short};
use crate::error::Reason;
use crate::model::{Arena, Format, Item, Part, Place, Raw, Type, Value};

/// What a line should be, for messages.
const EXPECTED: &str = "`$ion_1_0 {Item:{…}}`";

/// Whether the line says of itself that it is Ion.
#[must_use]
pub fn is_marked(line: &str) -> bool {
    line.trim_ascii_start().starts_with("$ion_1_0")
}

/// Decodes one line: `{Item:{…}}`, `{Record:{…}}` with a change record, the members of one without the wrapper, or an item's bare
/// struct. Blanks and version markers before it are passed over.
///
/// In one pass. Names and texts borrow from the line; what holds escapes, binaries, lists and maps are in the arena.
/// A number is the text that an export in JSON has for it: plain digits, without an exponent and without needless zeros. One outside
/// of `DynamoDB`'s range keeps its exponent, since its digits could be any number. Sets keep their order.
///
/// # Errors
/// Why the line is no record; stage `decode`. The message says the column in bytes, from 1, and the attribute.
pub fn decode_line<'a>(line: &'a str, arena: &'a Arena) -> Result<Decoded<'a>, Reason> {
    record(&mut Cursor::new(line, 0, arena)).map_err(Refused::into_reason)
}

/// Decodes the struct of an item's attributes, which is what [`Raw`] holds of an item.
///
/// # Errors
/// As [`decode_line`]; columns count from the start of the struct.
pub fn decode_attributes<'a>(text: &'a str, arena: &'a Arena) -> Result<Item<'a>, Reason> {
    let mut cursor = Cursor::new(text, 0, arena);
    let whole = attributes(&mut cursor, "the item").and_then(|(item, _)| cursor.end().map(|()| item));
    whole.map_err(Refused::into_reason)
}

/// The line, from its start.
fn record<'a>(cursor: &mut Cursor<'a>) -> Result<Decoded<'a>, Refused> {
    let marked = cursor.version_markers();
    if let Some((rule, message)) = cursor.foreign() {
        return Err(cursor.fail(rule, &Place::Item, &format!("{message}; expected {EXPECTED}")));
    }
    let start = cursor.at();
    cursor.expect(b'{', &Place::Item, EXPECTED)?;
    if cursor.eat(b'}') {
        return Err(cursor.fail("not-an-item", &Place::Item, &format!("an empty struct; expected {EXPECTED}")));
    }
    let decoded = match cursor.clone().name(&Place::Item)? {
        "Item" | "Metadata" | "Keys" | "OldImage" | "NewImage" => members(cursor, Parts { start, ..Parts::default() })?,
        "Record" => {
            cursor.name(&Place::Item)?;
            cursor.skip_blanks();
            let inner = cursor.at();
            if !cursor.is_at_struct() {
                let message = format!("{} under `Record`; expected a struct", cursor.found());
                return Err(cursor.fail("not-an-item", &Place::Item, &message));
            }
            cursor.expect(b'{', &Place::Item, "a struct under `Record`")?;
            let decoded = members(cursor, Parts { start: inner, ..Parts::default() })?;
            cursor.eat(b',');
            cursor.expect(b'}', &Place::Item, "`}` after the record")?;
            decoded
        }
        _ => {
            *cursor = Cursor::new(cursor.line(), start, cursor.arena());
            let (item, source) = attributes(cursor, "the line")?;
            Decoded { record: Record::Item(item), source, bare: true }
        }
    };
    cursor.end()?;
    match &decoded.record {
        Record::Item(item) if !marked && is_ddb_json(item) => {
            let message = "a line of DynamoDB JSON among lines of Amazon Ion; the first record says how all of them are written, \
                           so put each kind into a file of its own";
            Err(refusal(start, "not-an-item", &Place::Item, message))
        }
        _ => Ok(decoded),
    }
}

/// Whether every value is a map like `{S:"…"}`. JSON is Ion too, so a line of `DynamoDB` JSON can be read, as an item without a single
/// text or number; but no item is without a key.
fn is_ddb_json(item: &Item<'_>) -> bool {
    let typed = |value: &Value<'_>| matches!(value, Value::M([(name, _)]) if Type::from_descriptor(name).is_some());
    !item.attributes().is_empty() && item.attributes().iter().all(|(_, value)| typed(value))
}

/// The members of a line's struct, from a name to the closing brace.
fn members<'a>(cursor: &mut Cursor<'a>, mut parts: Parts<'a>) -> Result<Decoded<'a>, Refused> {
    while !cursor.eat(b'}') {
        cursor.skip_blanks();
        let start = cursor.at();
        let name = cursor.name(&Place::Item)?;
        let twice = match name {
            "Item" => parts.item.replace(attributes(cursor, name)?).is_some(),
            "Keys" => parts.keys.replace(attributes(cursor, name)?.0).is_some(),
            "OldImage" => parts.old.replace(attributes(cursor, name)?.0).is_some(),
            "NewImage" => parts.new.replace(attributes(cursor, name)?.0).is_some(),
            "Metadata" => parts.written_at.replace(written_at(cursor)?).is_some(),
            other => {
                let message = format!("field `{}` beside or instead of `Item`; expected {EXPECTED}", short(other));
                return Err(refusal(start, "not-an-item", &Place::Item, &message));
            }
        };
        if twice {
            return Err(refusal(start, "not-an-item", &Place::Item, &format!("a second `{name}` in the line")));
        }
        if !cursor.eat(b',') {
            cursor.expect(b'}', &Place::Item, "`,` or `}`")?;
            break;
        }
    }
    let whole = Raw { format: Format::Ion, part: Part::Change, bytes: cursor.since(parts.start) };
    parts.decoded(whole).map_err(|(rule, message)| cursor.fail(rule, &Place::Item, &message))
}

/// A struct of attributes, which is the value of `name`.
fn attributes<'a>(cursor: &mut Cursor<'a>, name: &str) -> Result<(Item<'a>, Raw<'a>), Refused> {
    cursor.skip_blanks();
    let start = cursor.at();
    if !cursor.is_at_struct() {
        let message = format!("{} under `{name}`; expected a struct of attributes", cursor.found());
        return Err(cursor.fail("not-an-item", &Place::Item, &message));
    }
    let item = Item::from_attributes(cursor.fields(1, &Place::Item)?);
    Ok((item, Raw { format: Format::Ion, part: Part::Item, bytes: cursor.since(start) }))
}

/// The value of `Metadata`: `{WriteTimestampMicros:1684374845117899.}`.
fn written_at(cursor: &mut Cursor<'_>) -> Result<u64, Refused> {
    cursor.skip_blanks();
    let start = cursor.at();
    let (metadata, _) = attributes(cursor, "Metadata")?;
    match metadata.get("WriteTimestampMicros") {
        None => Err(refusal(start, "not-an-item", &Place::Item, "`Metadata` without WriteTimestampMicros")),
        Some(Value::N(text) | Value::S(text)) if let Some(micros) = record::micros(text) => Ok(micros),
        Some(_) => Err(refusal(start, "not-an-item", &Place::Item, "WriteTimestampMicros is no number of microseconds")),
    }
}
