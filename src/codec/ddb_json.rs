//! `DynamoDB` JSON: one `{"Item":{…}}` or change record a line, in both directions.
//!
//! Whether `DynamoDB` would take the item is not asked here; that is the business of [`limits`](crate::limits).

mod cursor;
mod encode;
mod put_record;
mod scan;
#[cfg(test)]
mod tests;

pub use encode::{write_change, write_item, write_line, write_string, write_value};
pub use put_record::{PutRecord, decode_put_record, write_put_record};

use crate::codec::ddb_json::cursor::Cursor;
use crate::codec::record::{self, Decoded, Parts, Record};
use crate::codec::refused::{Refused, refusal, short};
use crate::error::{Reason, Stage};
use crate::model::{Arena, Item, Part, Place, Raw};

/// What a line should be, for messages.
const EXPECTED: &str = r#"`{"Item":{…}}`"#;

/// Decodes one line: `{"Item":{…}}`, a change record, or what other tools write: `{"PutRequest":{"Item":{…}}}` and an item's bare object.
/// A member `Reject`, which lines of a rejects file have, is passed over.
///
/// In one pass. Names and texts borrow from the line; what holds escapes, binaries, lists and maps are in the arena.
/// Numbers stay the text they are, and sets keep their order.
///
/// # Errors
/// Why the line is no record; stage `decode`. The message says the column in bytes, from 1, and the attribute.
pub fn decode_line<'a>(line: &'a str, arena: &'a Arena) -> Result<Decoded<'a>, Reason> {
    let result = match line.strip_prefix(r#"{"Item":"#) {
        Some(rest) if rest.starts_with('{') => usual(line, arena),
        _ => record(&mut Cursor::new(line, 0, arena)),
    };
    result.map_err(Refused::into_reason)
}

/// Decodes one line that holds an item.
///
/// # Errors
/// As [`decode_line`], and where the line is a change record.
pub fn decode_item<'a>(line: &'a str, arena: &'a Arena) -> Result<Item<'a>, Reason> {
    match decode_line(line, arena)?.record {
        Record::Item(item) => Ok(item),
        Record::Change(_) => {
            Err(Reason::new(Stage::Decode, "not-an-item", "a change record of an incremental export; expected an item".to_owned()))
        }
    }
}

/// A line that starts `{"Item":{`, as nearly all do.
fn usual<'a>(line: &'a str, arena: &'a Arena) -> Result<Decoded<'a>, Refused> {
    let mut cursor = Cursor::new(line, r#"{"Item":"#.len(), arena);
    let (item, source) = object(&mut cursor, "Item")?;
    if cursor.rest() != b"}" {
        if cursor.eat(b',') {
            return members(&mut cursor, Parts { item: Some((item, source)), ..Parts::default() });
        }
        cursor.expect(b'}', &Place::Item, "`,` or `}` after the item")?;
        cursor.end()?;
    }
    Ok(Decoded { record: Record::Item(item), source, bare: false })
}

/// Any other line, from its start.
fn record<'a>(cursor: &mut Cursor<'a>) -> Result<Decoded<'a>, Refused> {
    if let Some((rule, message)) = cursor.foreign() {
        return Err(Refused::new(rule, message));
    }
    let start = cursor.at();
    cursor.expect(b'{', &Place::Item, EXPECTED)?;
    if cursor.eat(b'}') {
        return Err(cursor.fail("not-an-item", &Place::Item, &format!("an empty object; expected {EXPECTED}")));
    }
    match cursor.clone().name(&Place::Item)? {
        "Item" | "Metadata" | "Keys" | "OldImage" | "NewImage" | "Reject" => members(cursor, Parts { start, ..Parts::default() }),
        wrapper @ ("PutRequest" | "Record") => {
            cursor.name(&Place::Item)?;
            cursor.skip_blanks();
            let inner = cursor.at();
            cursor.expect(b'{', &Place::Item, &format!("an object under `{wrapper}`"))?;
            let decoded = members(cursor, Parts { start: inner, wrapped: true, ..Parts::default() })?;
            close(cursor)?;
            Ok(decoded)
        }
        "DeleteRequest" => Err(cursor.fail("not-an-item", &Place::Item, "a `DeleteRequest`, which holds no item; only puts are read")),
        _ => {
            let mut whole = Cursor::new(cursor.line(), start, cursor.arena());
            let (item, source) = object(&mut whole, "the line")?;
            whole.end()?;
            Ok(Decoded { record: Record::Item(item), source, bare: true })
        }
    }
}

/// The members of a line's object, from a name on.
fn members<'a>(cursor: &mut Cursor<'a>, mut parts: Parts<'a>) -> Result<Decoded<'a>, Refused> {
    loop {
        cursor.skip_blanks();
        let start = cursor.at();
        let name = cursor.name(&Place::Item)?;
        let twice = match name {
            "Item" => parts.item.replace(object(cursor, name)?).is_some(),
            "Keys" => parts.keys.replace(object(cursor, name)?.0).is_some(),
            "OldImage" => parts.old.replace(object(cursor, name)?.0).is_some(),
            "NewImage" => parts.new.replace(object(cursor, name)?.0).is_some(),
            "Metadata" => parts.written_at.replace(written_at(cursor)?).is_some(),
            "Reject" => {
                cursor.skip()?;
                false
            }
            other => {
                let message = format!("member `{}` beside or instead of `Item`; expected {EXPECTED}", short(other));
                return Err(refusal(start, "not-an-item", &Place::Item, &message));
            }
        };
        if twice {
            return Err(refusal(start, "not-an-item", &Place::Item, &format!("a second `{name}` in the line")));
        }
        if !cursor.eat(b',') {
            break;
        }
    }
    cursor.expect(b'}', &Place::Item, "`,` or `}`")?;
    let whole = Raw { part: Part::Change, ..Raw::json(cursor.since(parts.start)) };
    if !parts.wrapped {
        cursor.end()?;
    }
    parts.decoded(whole).map_err(|(rule, message)| cursor.fail(rule, &Place::Item, &message))
}

/// The end of the object around a record.
fn close(cursor: &mut Cursor<'_>) -> Result<(), Refused> {
    if cursor.eat(b',') {
        if cursor.name(&Place::Item)? != "Reject" {
            return Err(cursor.fail("not-an-item", &Place::Item, "another member beside the record"));
        }
        cursor.skip()?;
    }
    cursor.expect(b'}', &Place::Item, "`}` after the record")?;
    cursor.end()
}

/// An object of attributes, which is the value of `name`.
fn object<'a>(cursor: &mut Cursor<'a>, name: &str) -> Result<(Item<'a>, Raw<'a>), Refused> {
    cursor.skip_blanks();
    let start = cursor.at();
    if cursor.peek() != Some(b'{') {
        let message = format!("{} under `{name}`; expected an object of attributes", cursor.found());
        return Err(cursor.fail("not-an-item", &Place::Item, &message));
    }
    let attributes = cursor.attributes(1, &Place::Item)?;
    Ok((Item::from_attributes(attributes), Raw::json(cursor.since(start))))
}

/// The value of `Metadata`: `{"WriteTimestampMicros":{"N":"…"}}`. Other documentation has the number as text or as it is.
fn written_at(cursor: &mut Cursor<'_>) -> Result<u64, Refused> {
    cursor.expect(b'{', &Place::Item, "an object under `Metadata`")?;
    let mut found = None;
    while !cursor.eat(b'}') {
        if cursor.name(&Place::Item)? == "WriteTimestampMicros" {
            let at = cursor.at();
            let micros = record::micros(cursor.number_text()?);
            let wrong = || refusal(at, "not-an-item", &Place::Item, "WriteTimestampMicros is no number of microseconds");
            found = Some(micros.ok_or_else(wrong)?);
        } else {
            cursor.skip()?;
        }
        cursor.eat(b',');
    }
    found.ok_or_else(|| cursor.fail("not-an-item", &Place::Item, "`Metadata` without WriteTimestampMicros"))
}
