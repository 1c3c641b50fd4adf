//! Items as compact Ion text, the way exports have it: fields in the order of their names.

use crate::codec::compound::{write_attributes, write_base64, write_list};
use crate::codec::ion::cursor::{is_keyword, is_of_identifier};
use crate::codec::plain::end_of_plain;
use crate::model::number::Decimal;
use crate::model::{Attribute, Item, Value};

/// Appends a line that `ImportTable` takes: `$ion_1_0 {Item:{…}}` with its end.
pub fn write_line(item: &Item<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"$ion_1_0 {Item:");
    write_item(item, out);
    out.extend_from_slice(b"}\n");
}

/// Appends the item's struct: `{PK:"…",…}`, on one line and without blanks.
///
/// Texts are raw UTF-8; only what Ion cannot hold is escaped, so that equal items give equal bytes. A number has one spelling too, the
/// one of exports: always a decimal, since the import refuses ints, with its trailing zeros in the exponent.
pub fn write_item(item: &Item<'_>, out: &mut Vec<u8>) {
    write_fields(item.attributes(), out);
}

/// Appends one value: `12.5`.
pub fn write_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::S(text) => write_quoted::<b'"'>(text, out),
        Value::N(text) => write_number(text, out),
        Value::B(bytes) => write_blob(bytes, out),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Null => out.extend_from_slice(b"null"),
        Value::M(entries) => write_fields(entries, out),
        Value::L(elements) => write_list(elements, out, write_value),
        Value::Ss(members) => {
            out.extend_from_slice(b"$dynamodb_SS::");
            write_list(members, out, |text, out| write_quoted::<b'"'>(text, out));
        }
        Value::Ns(members) => {
            out.extend_from_slice(b"$dynamodb_NS::");
            write_list(members, out, |text, out| write_number(text, out));
        }
        Value::Bs(members) => {
            out.extend_from_slice(b"$dynamodb_BS::");
            write_list(members, out, |bytes, out| write_blob(bytes, out));
        }
    }
}

fn write_fields(fields: &[Attribute<'_>], out: &mut Vec<u8>) {
    write_attributes(fields, out, write_name, write_value);
}

/// A name stands bare where it can mean nothing else. One that starts with `$` is quoted whatever follows, since Ion keeps such
/// symbols for itself.
fn write_name(name: &str, out: &mut Vec<u8>) {
    let is_bare = name.bytes().all(is_of_identifier) && !name.starts_with(|first: char| first.is_ascii_digit() || first == '$');
    if is_bare && !name.is_empty() && !is_keyword(name) {
        out.extend_from_slice(name.as_bytes());
    } else {
        write_quoted::<b'\''>(name, out);
    }
}

/// A text in quotes. `QUOTE`, a backslash and controls below 0x20 are escaped, nothing else.
fn write_quoted<const QUOTE: u8>(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(QUOTE);
    let mut run = 0;
    loop {
        let end = end_of_plain::<QUOTE>(bytes, run);
        out.extend_from_slice(&bytes[run..end]);
        let Some(special) = bytes.get(end).copied() else { break };
        match special {
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            control @ 0..0x20 => {
                out.extend_from_slice(br"\x");
                out.extend_from_slice(&[HEX[usize::from(control >> 4)], HEX[usize::from(control & 15)]]);
            }
            quote_or_backslash => out.extend_from_slice(&[b'\\', quote_or_backslash]),
        }
        run = end + 1;
    }
    out.push(QUOTE);
}

/// A decimal in the spelling of ion-java, which is that of exports: `103.`, `616d2`, `12.5`, `1.2d-3`. The point never moves to the
/// right, and to the left only as far as there are digits.
///
/// A text that is no number becomes `nan`, so that every reader refuses it; the limits let none come here.
fn write_number(text: &str, out: &mut Vec<u8>) {
    let Some(number) = Decimal::parse(text) else { return out.extend_from_slice(b"nan") };
    if number.significant() == 0 {
        return out.extend_from_slice(b"0.");
    }
    if number.is_negative() {
        out.push(b'-');
    }
    let significant = i64::try_from(number.significant()).unwrap_or(i64::MAX);
    // The value is digits × 10^exponent, and it is the exponent of the first digit that may have to be written.
    let exponent = number.magnitude().saturating_sub(significant);
    let (whole, exponent) = match number.magnitude() {
        _ if exponent >= 0 => (number.significant(), exponent),
        magnitude @ 1.. => (usize::try_from(magnitude).unwrap_or(usize::MAX), 0),
        magnitude => (1, magnitude.saturating_sub(1)),
    };
    for (at, digit) in number.significant_digits().enumerate() {
        if at == whole {
            out.push(b'.');
        }
        out.push(digit);
    }
    if exponent != 0 {
        out.extend_from_slice(format!("d{exponent}").as_bytes());
    } else if whole == number.significant() {
        out.push(b'.');
    }
}

/// Base64 in two braces each: standard alphabet, padded.
fn write_blob(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{{");
    write_base64(bytes, out);
    out.extend_from_slice(b"}}");
}
