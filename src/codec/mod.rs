//! Between a line of an export and an item or a change.

#[cfg(feature = "dynamodb")]
pub mod attributes;
pub mod canonical;
mod compound;
pub mod ddb_json;
#[cfg(test)]
pub(crate) mod generate;
pub mod ion;
mod names;
mod plain;
mod record;
mod refused;

pub use record::{ChangeRecord, Decoded, Record};

use crate::error::Reason;
use crate::model::{Arena, Format, Part, Raw};

/// Levels of values that the decoders follow; a value of an item is on level 1. `DynamoDB` allows 32, which
/// [`limits`](crate::limits) checks exactly; this bound keeps the stack small whatever a line holds.
pub const LEVELS: usize = 64;

/// The most values that a line may hold, members of sets and entries of maps among them. An item of 400 KB has 205,000 at most, an element
/// of a list taking two bytes; this bound keeps the memory small whatever a line holds.
pub(crate) const VALUES: u32 = 1 << 20;

/// What is said of a line with more than [`VALUES`]: rule and message.
pub(crate) const TOO_MANY: (&str, &str) =
    ("too-many-values", "more than 1,048,576 values in one line; an item of 400 KB, DynamoDB's limit, holds 205,000 at most");

/// The bytes in hexadecimal digits, two each.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Decodes one line of a data file in `format`. A line of Ion that says so itself is read among lines of JSON too: a rejects file may
/// hold it as it was.
///
/// # Errors
/// Why the line is no record; stage `decode`. The message says the column in bytes, from 1, and the attribute.
pub fn decode_line<'a>(line: &'a str, format: Format, arena: &'a Arena) -> Result<Decoded<'a>, Reason> {
    match format {
        Format::Json => ddb_json::decode_line(line, arena).or_else(|reason| {
            // Asked only where JSON was not found, so that it costs nothing where it was.
            if ion::is_marked(line) { ion::decode_line(line, arena) } else { Err(reason) }
        }),
        Format::Ion => ion::decode_line(line, arena),
    }
}

/// Whether a line that is no record ends inside of brackets, so that the next one may go on with it.
#[must_use]
pub fn breaks_off(line: &[u8]) -> bool {
    let mut open = 0_u64;
    let mut quote = None;
    let mut bytes = line.iter();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (Some(_), b'\\') => drop(bytes.next()),
            (Some(quoted), byte) if byte == quoted => quote = None,
            // A single one is of Ion; in JSON it stands in texts only.
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'{' | b'[') => open += 1,
            (None, b'}' | b']') => open = open.saturating_sub(1),
            _ => {}
        }
    }
    open > 0
}

/// The record as a line of `DynamoDB` JSON without its end, which is what rejects hold. What is JSON already stays byte for byte; Ion
/// gives the JSON that an export of the same table has. Ion that cannot be decoded, which a record never was read from, stays as it is.
#[must_use]
pub fn json_line(source: Raw<'_>) -> Vec<u8> {
    let whole = |item: &[u8]| [b"{\"Item\":", item, b"}"].concat();
    match (source.format, source.part) {
        (Format::Json, Part::Item) => whole(source.bytes),
        (Format::Json, Part::Change) => source.bytes.to_vec(),
        (Format::Ion, part) => json_of_ion(source.bytes, part).unwrap_or_else(|| source.bytes.to_vec()),
    }
}

fn json_of_ion(bytes: &[u8], part: Part) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let arena = Arena::new();
    let mut line = Vec::with_capacity(text.len() * 5 / 4);
    match part {
        Part::Item => {
            line.extend_from_slice(b"{\"Item\":");
            ddb_json::write_item(&ion::decode_attributes(text, &arena).ok()?, &mut line);
            line.push(b'}');
        }
        Part::Change => {
            let Record::Change(change) = ion::decode_line(text, &arena).ok()?.record else { return None };
            ddb_json::write_change(&change, &mut line);
        }
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line as rejects would hold it.
    fn rejected(line: &str, format: Format) -> String {
        let arena = Arena::new();
        let decoded = decode_line(line, format, &arena).unwrap_or_else(|reason| panic!("{line}: {reason}"));
        String::from_utf8(json_line(decoded.source)).unwrap()
    }

    #[test]
    fn what_was_read_from_ion_is_rejected_as_json() {
        let item = r#"{"Item":{"Item":{"M":{"S":{"NULL":true}}},"PK":{"S":"a"},"n":{"N":"61600"}}}"#;
        for line in ["$ion_1_0 {Item:{PK:\"a\",n:616d2,Item:{S:null}}}", "{PK:\"a\",n:616d2,Item:{S:null}}"] {
            assert_eq!(rejected(line, Format::Ion), item);
        }
        let (keys, old, new) = ("Keys:{PK:\"a\"}", "OldImage:{PK:\"a\",n:1.}", "NewImage:{PK:\"a\",n:2d1}");
        let metadata = "Metadata:{WriteTimestampMicros:168437484511789d1}";
        for (members, expected) in [
            (
                format!("{keys},{metadata},{old},{new}"),
                r#""Keys":{"PK":{"S":"a"}},"OldImage":{"PK":{"S":"a"},"n":{"N":"1"}},"NewImage":{"PK":{"S":"a"},"n":{"N":"20"}}}"#,
            ),
            (format!("{keys},{new},{metadata}"), r#""Keys":{"PK":{"S":"a"}},"NewImage":{"PK":{"S":"a"},"n":{"N":"20"}}}"#),
            (format!("{metadata},{keys}"), r#""Keys":{"PK":{"S":"a"}}}"#),
        ] {
            let expected = format!(r#"{{"Metadata":{{"WriteTimestampMicros":{{"N":"1684374845117890"}}}},{expected}"#);
            for line in [format!(" $ion_1_0 {{Record:{{{members}}}}}"), format!("{{{members}}}")] {
                assert_eq!(rejected(&line, Format::Ion), expected);
            }
            assert_eq!(rejected(&expected, Format::Json), expected, "what is JSON stays as it is");
        }
    }

    #[test]
    fn a_line_of_ion_among_lines_of_json_is_read() {
        assert_eq!(rejected(" $ion_1_0 {Item:{PK:\"a\"}}", Format::Json), r#"{"Item":{"PK":{"S":"a"}}}"#);
        let arena = Arena::new();
        let refused = |line: &str| decode_line(line, Format::Json, &arena).unwrap_err().message;
        assert_eq!(
            refused("$ion_1_0 {Item:{PK:a}}"),
            "column 20, attribute PK: a symbol where a value belongs; text is written in double quotes"
        );
        assert_eq!(refused("{Item:{PK:\"a\"}}"), "column 2: what is no JSON; expected a name in quotes");
    }

    #[test]
    fn a_line_of_more_values_than_any_item_has_is_refused_before_they_fill_the_memory() {
        let many = |one: &str, separator: &str| vec![one; VALUES as usize + 1].join(separator);
        for (line, format) in [
            (format!(r#"{{"Item":{{"l":{{"L":[{}]}}}}}}"#, many(r#"{"L":[]}"#, ",")), Format::Json),
            (format!(r#"{{"Item":{{"s":{{"SS":[{}]}}}}}}"#, many(r#""""#, ",")), Format::Json),
            (format!("$ion_1_0 {{Item:{{l:[{}]}}}}", many("0", ",")), Format::Ion),
            (format!("$ion_1_0 {{Item:{{s:$dynamodb_SS::[{}]}}}}", many("\"\"", ",")), Format::Ion),
        ] {
            let arena = Arena::new();
            let reason = decode_line(&line, format, &arena).unwrap_err();
            assert_eq!(reason.rule, TOO_MANY.0, "{}", reason.message);
            assert!(arena.allocated_bytes() < 200 << 20, "{} bytes", arena.allocated_bytes());
        }
    }

    #[test]
    fn a_line_breaks_off_where_brackets_outside_of_texts_are_open_at_its_end() {
        for line in ["{", r#"{"a":{"S":"}"#, r#"{"a":{"S":"\"}}"#, "}}{[]", r"{a:'}", "{l:[{}"] {
            assert!(breaks_off(line.as_bytes()), "{line}");
        }
        for line in ["", "garbage", "]}}", r#"{"a":{"S":"{"}},"#, r#"{"a":"\\"}"#, r"{'{':1}", "{a:b}"] {
            assert!(!breaks_off(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn text_that_no_record_was_read_from_stays_as_it_is() {
        for part in [Part::Item, Part::Change] {
            assert_eq!(json_line(Raw { format: Format::Ion, part, bytes: b"{a:b}" }), b"{a:b}");
        }
    }
}
