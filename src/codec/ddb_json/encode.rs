//! Items as compact `DynamoDB` JSON, attributes in the order of their names. Numbers are written as the text they are.

use crate::codec::compound::{write_attributes, write_base64, write_list};
use crate::codec::plain::end_of_plain;
use crate::codec::record::ChangeRecord;
use crate::model::{Attribute, Item, Value};

/// Appends a line as exports and imports have it: `{"Item":{…}}` with its end.
pub fn write_line(item: &Item<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"Item":"#);
    write_item(item, out);
    out.extend_from_slice(b"}\n");
}

/// Appends the item's object: `{"PK":{"S":"…"},…}`, on one line and without blanks.
///
/// Texts are raw UTF-8; only what JSON cannot hold is escaped, so that equal items give equal bytes.
pub fn write_item(item: &Item<'_>, out: &mut Vec<u8>) {
    write_members(item.attributes(), out);
}

/// Appends a change record as an incremental export has it: `{"Metadata":{"WriteTimestampMicros":{"N":"…"}},"Keys":{…},…}`.
pub fn write_change(change: &ChangeRecord<'_>, out: &mut Vec<u8>) {
    let ChangeRecord { written_at, keys, old, new } = change;
    out.extend_from_slice(format!(r#"{{"Metadata":{{"WriteTimestampMicros":{{"N":"{written_at}"}}}},"Keys":"#).as_bytes());
    write_item(keys, out);
    for (name, image) in [("OldImage", old), ("NewImage", new)] {
        if let Some(image) = image {
            out.push(b',');
            write_string(name, out);
            out.push(b':');
            write_item(image, out);
        }
    }
    out.push(b'}');
}

/// Appends one value with its type: `{"N":"1.5"}`.
pub fn write_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::S(text) => {
            out.extend_from_slice(br#"{"S":"#);
            write_string(text, out);
        }
        Value::N(text) => {
            out.extend_from_slice(br#"{"N":"#);
            write_string(text, out);
        }
        Value::B(bytes) => {
            out.extend_from_slice(br#"{"B":"#);
            write_binary(bytes, out);
        }
        Value::Bool(true) => out.extend_from_slice(br#"{"BOOL":true"#),
        Value::Bool(false) => out.extend_from_slice(br#"{"BOOL":false"#),
        Value::Null => out.extend_from_slice(br#"{"NULL":true"#),
        Value::M(entries) => {
            out.extend_from_slice(br#"{"M":"#);
            write_members(entries, out);
        }
        Value::L(elements) => {
            out.extend_from_slice(br#"{"L":"#);
            write_list(elements, out, write_value);
        }
        Value::Ss(members) => {
            out.extend_from_slice(br#"{"SS":"#);
            write_list(members, out, |text, out| write_string(text, out));
        }
        Value::Ns(members) => {
            out.extend_from_slice(br#"{"NS":"#);
            write_list(members, out, |text, out| write_string(text, out));
        }
        Value::Bs(members) => {
            out.extend_from_slice(br#"{"BS":"#);
            write_list(members, out, |bytes, out| write_binary(bytes, out));
        }
    }
    out.push(b'}');
}

/// Appends `text` as a JSON string, in quotes. A quote, a backslash and controls below 0x20 are escaped, nothing else.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut run = 0;
    loop {
        let end = end_of_plain::<b'"'>(bytes, run);
        out.extend_from_slice(&bytes[run..end]);
        let Some(special) = bytes.get(end).copied() else { break };
        match special {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', special]),
            0x08 => out.extend_from_slice(br"\b"),
            0x0c => out.extend_from_slice(br"\f"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            control => {
                out.extend_from_slice(br"\u00");
                out.extend_from_slice(&[HEX[usize::from(control >> 4)], HEX[usize::from(control & 15)]]);
            }
        }
        run = end + 1;
    }
    out.push(b'"');
}

fn write_members(attributes: &[Attribute<'_>], out: &mut Vec<u8>) {
    write_attributes(attributes, out, write_string, write_value);
}

/// Base64 in quotes: standard alphabet, padded.
fn write_binary(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    write_base64(bytes, out);
    out.push(b'"');
}
