//! A line of an undo log: one put, by its key, with what was written and what was there before.
//!
//! `{"table":"prod-docs","key":{…},"wrote":"0123…cdef","old":{…}}`: the table by its name in the service, the key as `DynamoDB` JSON, the
//! [hash](crate::codec::canonical::hash_item) of the item that is put, and the item that had the key, or `null`.

use crate::codec::ddb_json::cursor::Cursor;
use crate::codec::ddb_json::{object, write_item, write_string};
use crate::codec::refused::Refused;
use crate::error::Reason;
use crate::model::{Arena, Item, Place};

/// One put.
#[derive(Clone, Debug)]
pub struct PutRecord<'a> {
    /// The table's name in the service.
    pub table: &'a str,
    /// The key attributes.
    pub key: Item<'a>,
    /// The key as it stands in the line.
    pub key_json: &'a [u8],
    /// The hash of the item that was to be written.
    pub wrote: u128,
    /// What was there before.
    pub old: Option<Item<'a>>,
    /// The same as it stands in the line: an object, or `null`.
    pub old_json: &'a [u8],
}

/// Appends a line with its end. `key` is an object of the key attributes.
pub fn write_put_record(table: &str, key: &[u8], wrote: u128, old: Option<&Item<'_>>, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"table":"#);
    write_string(table, out);
    out.extend_from_slice(br#","key":"#);
    out.extend_from_slice(key);
    out.extend_from_slice(format!(r#","wrote":"{wrote:032x}","old":"#).as_bytes());
    match old {
        Some(item) => write_item(item, out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b"}\n");
}

/// Reads a line without its end.
///
/// # Errors
/// Why the line is no such record; stage `decode`. The message says the column in bytes, from 1, and no value.
pub fn decode_put_record<'a>(line: &'a str, arena: &'a Arena) -> Result<PutRecord<'a>, Reason> {
    decode(&mut Cursor::new(line, 0, arena)).map_err(Refused::into_reason)
}

fn decode<'a>(cursor: &mut Cursor<'a>) -> Result<PutRecord<'a>, Refused> {
    cursor.expect(b'{', &Place::Item, r#"`{"table":…}`"#)?;
    member(cursor, "table")?;
    let table = text(cursor)?;
    cursor.expect(b',', &Place::Item, "`,` after the table")?;
    member(cursor, "key")?;
    let (key, key_json) = object(cursor, "key")?;
    cursor.expect(b',', &Place::Item, "`,` after the key")?;
    member(cursor, "wrote")?;
    let wrote = text(cursor)?;
    let wrote = match u128::from_str_radix(wrote, 16) {
        Ok(hash) if wrote.len() == 32 => hash,
        _ => return Err(cursor.fail("not-a-put", &Place::Item, "`wrote` is no hash of 32 hexadecimal digits")),
    };
    cursor.expect(b',', &Place::Item, "`,` after the hash")?;
    member(cursor, "old")?;
    cursor.skip_blanks();
    let start = cursor.at();
    let old = if cursor.peek() == Some(b'n') {
        cursor.skip()?;
        if cursor.since(start) != b"null" {
            return Err(cursor.fail("not-a-put", &Place::Item, "neither an item nor null under `old`"));
        }
        None
    } else {
        Some(object(cursor, "old")?.0)
    };
    let old_json = cursor.since(start);
    cursor.expect(b'}', &Place::Item, "`}` at the end of the put")?;
    cursor.end()?;
    Ok(PutRecord { table, key, key_json: key_json.bytes, wrote, old, old_json })
}

fn member(cursor: &mut Cursor<'_>, expected: &str) -> Result<(), Refused> {
    if cursor.name(&Place::Item)? == expected {
        Ok(())
    } else {
        Err(cursor.fail("not-a-put", &Place::Item, &format!("another member than `{expected}`")))
    }
}

fn text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, Refused> {
    cursor.skip_blanks();
    if cursor.peek() == Some(b'"') { cursor.number_text() } else { Err(cursor.fail("not-a-put", &Place::Item, "text was expected")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ddb_json::decode_item;

    #[test]
    fn what_is_written_is_read() {
        let arena = Arena::new();
        // Names that lines of an export have are names of attributes here.
        let old = decode_item(r#"{"Item":{"Item":{"S":"é\"\n"},"PutRequest":{"M":{"a":{"NULL":true}}},"n":{"N":"1E2"}}}"#, &arena).unwrap();
        let key = br#"{"PK":{"S":"a"},"SK":{"N":"1.0"}}"#;
        for old in [None, Some(&old)] {
            let mut line = Vec::new();
            write_put_record("prod-docs", key, 0x1f, old, &mut line);
            let text = std::str::from_utf8(&line).unwrap();
            let record = decode_put_record(text.strip_suffix('\n').unwrap(), &arena).unwrap();
            assert_eq!((record.table, record.key_json, record.wrote), ("prod-docs", &key[..], 0x1f));
            assert_eq!(record.key.attributes().len(), 2);
            assert_eq!(record.old.as_ref().map(Item::attributes), old.map(Item::attributes));
            let mut json = Vec::new();
            record.old.iter().for_each(|item| write_item(item, &mut json));
            assert_eq!(record.old_json, if old.is_some() { &json[..] } else { b"null" });
        }
    }

    #[test]
    fn what_is_no_put_is_refused_without_its_values() {
        let arena = Arena::new();
        for (line, expected) in [
            ("", "expected `{\"table\":…}`"),
            (r#"{"Item":{"PK":{"S":"secret"}}}"#, "another member than `table`"),
            (r#"{"table":"t","key":{"PK":{"S":"secret"}},"wrote":"zz","old":null}"#, "no hash of 32 hexadecimal digits"),
            (r#"{"table":"t","key":{"PK":{"S":"secret"}},"wrote":"0000000000000000000000000000001f","old":nul"#, "neither"),
            (r#"{"table":"t","key":{"PK":{"S":"secr"#, "column"),
            (r#"{"table":3,"key":{}}"#, "text was expected"),
        ] {
            let reason = decode_put_record(line, &arena).unwrap_err().to_string();
            assert!(reason.contains(expected) && !reason.contains("secr"), "{reason}");
        }
    }
}
