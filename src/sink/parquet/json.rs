//! `DynamoDB` JSON for values that have no typed form in Parquet.
//!
//! Writes only; the items themselves are read and written by [`codec`](crate::codec).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::{Attribute, Value};

/// How deep values may be nested; far above the service's 32, so that a value which passed the checks always fits.
const LEVELS: usize = 100;

/// The value is nested deeper than anything that passed the checks.
#[derive(Debug)]
pub(super) struct TooDeep;

/// Appends the value with its descriptor: `{"N":"1"}`.
pub(super) fn tagged(value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), TooDeep> {
    write_tagged(value, out, 0)
}

/// Appends what stands behind the descriptor: `[{"N":"1"}]` for a list, `{"a":{"N":"1"}}` for a map.
pub(super) fn inside(value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), TooDeep> {
    write_inside(value, out, 0)
}

/// Appends attributes as the inside of a map.
pub(super) fn attributes<'v, 'a: 'v>(attributes: impl Iterator<Item = &'v Attribute<'a>>, out: &mut Vec<u8>) -> Result<(), TooDeep> {
    write_map(attributes, out, 0)
}

fn write_tagged(value: &Value<'_>, out: &mut Vec<u8>, level: usize) -> Result<(), TooDeep> {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(value.kind().descriptor().as_bytes());
    out.extend_from_slice(b"\":");
    write_inside(value, out, level)?;
    out.push(b'}');
    Ok(())
}

fn write_inside(value: &Value<'_>, out: &mut Vec<u8>, level: usize) -> Result<(), TooDeep> {
    if level > LEVELS {
        return Err(TooDeep);
    }
    match *value {
        Value::S(text) | Value::N(text) => write_text(text, out),
        Value::B(bytes) => write_binary(bytes, out),
        Value::Bool(truth) => out.extend_from_slice(if truth { b"true" } else { b"false" }),
        Value::Null => out.extend_from_slice(b"true"),
        Value::M(fields) => write_map(fields.iter(), out, level)?,
        Value::L(elements) => {
            separated(*b"[]", elements.iter(), out, |element, out| write_tagged(element, out, level + 1))?;
        }
        Value::Ss(texts) | Value::Ns(texts) => separated(*b"[]", texts.iter(), out, |text, out| {
            write_text(text, out);
            Ok(())
        })?,
        Value::Bs(binaries) => separated(*b"[]", binaries.iter(), out, |bytes, out| {
            write_binary(bytes, out);
            Ok(())
        })?,
    }
    Ok(())
}

fn write_map<'v, 'a: 'v>(fields: impl Iterator<Item = &'v Attribute<'a>>, out: &mut Vec<u8>, level: usize) -> Result<(), TooDeep> {
    separated(*b"{}", fields, out, |(name, value), out| {
        write_text(name, out);
        out.push(b':');
        write_tagged(value, out, level + 1)
    })
}

/// Writes the parts with commas between them, in these brackets.
fn separated<T>(
    [open, close]: [u8; 2],
    parts: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>) -> Result<(), TooDeep>,
) -> Result<(), TooDeep> {
    out.push(open);
    for (at, part) in parts.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(part, out)?;
    }
    out.push(close);
    Ok(())
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a text is always JSON, and a vector takes every byte");
}

fn write_binary(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let from = out.len();
    out.resize(from + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[from..]).expect("the slice has four bytes for every three");
    out.truncate(from + written);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ten_types_have_their_dynamodb_json() {
        let value = Value::M(&[
            ("s", Value::S("a\"b\u{1}é")),
            ("n", Value::N("1.50")),
            ("b", Value::B(b"\x00\xff")),
            ("t", Value::Bool(false)),
            ("z", Value::Null),
            ("l", Value::L(&[Value::N("1"), Value::S("1"), Value::L(&[])])),
            ("m", Value::M(&[])),
            ("ss", Value::Ss(&["x", "y"])),
            ("ns", Value::Ns(&["1"])),
            ("bs", Value::Bs(&[b"", b"abc"])),
        ]);
        let mut out = Vec::new();
        tagged(&value, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"M":{"s":{"S":"a\"b\u0001é"},"n":{"N":"1.50"},"b":{"B":"AP8="},"t":{"BOOL":false},"z":{"NULL":true},"l":{"L":[{"N":"1"},{"S":"1"},{"L":[]}]},"m":{"M":{}},"ss":{"SS":["x","y"]},"ns":{"NS":["1"]},"bs":{"BS":["","YWJj"]}}}"#
        );
    }

    #[test]
    fn a_value_nested_without_end_is_refused() {
        let arena = crate::model::Arena::new();
        let mut value = Value::Null;
        for _ in 0..100_000 {
            value = Value::L(arena.alloc_slice_copy(&[value]));
        }
        assert!(inside(&value, &mut Vec::new()).is_err());
    }
}
