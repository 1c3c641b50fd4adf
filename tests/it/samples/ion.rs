//! The same lines in Amazon Ion, as `DynamoDB` exports them; written without the library so that they are an independent witness.
//!
//! What real exports look like: each line names its version, nearly all begin with a blank, fields are in the order of their names,
//! nothing stands after colons and commas, and the zeros at the end of a number are in its exponent.

use serde_json::Value as Json;

use super::content::Dice;

/// A line `{"Item":{…}}` as a line of Ion.
pub(super) fn line(json: &str, dice: &mut Dice) -> String {
    let json: Json = serde_json::from_str(json).expect("the samples' lines are JSON");
    let blank = if dice.roll(20) == 0 { "" } else { " " };
    format!("{blank}$ion_1_0 {{Item:{}}}", structure(&json["Item"]))
}

/// Attributes, or the entries of a map.
fn structure(entries: &Json) -> String {
    let mut fields: Vec<_> = entries.as_object().expect("attributes are an object").iter().collect();
    fields.sort_unstable_by_key(|(name, _)| name.as_str());
    let fields: Vec<_> = fields.into_iter().map(|(attribute, typed)| format!("{}:{}", name(attribute), value(typed))).collect();
    format!("{{{}}}", fields.join(","))
}

fn value(typed: &Json) -> String {
    let (kind, inside) = typed.as_object().and_then(|value| value.iter().next()).expect("a value has a type");
    let members = |member: fn(&str) -> String| list(elements(inside).map(|element| member(text_of(element))));
    match kind.as_str() {
        "S" => string(text_of(inside)),
        "N" => number(text_of(inside)),
        "B" => blob(text_of(inside)),
        "BOOL" => inside.to_string(),
        "NULL" => "null".to_owned(),
        "M" => structure(inside),
        "L" => list(elements(inside).map(value)),
        "SS" => format!("$dynamodb_SS::{}", members(string)),
        "NS" => format!("$dynamodb_NS::{}", members(number)),
        "BS" => format!("$dynamodb_BS::{}", members(blob)),
        other => panic!("no type is called {other}"),
    }
}

fn elements(list: &Json) -> std::slice::Iter<'_, Json> {
    list.as_array().expect("a list is an array").iter()
}

fn text_of(value: &Json) -> &str {
    value.as_str().expect("texts, numbers and bytes are strings")
}

fn list(elements: impl Iterator<Item = String>) -> String {
    format!("[{}]", elements.collect::<Vec<_>>().join(","))
}

fn blob(base64: &str) -> String {
    format!("{{{{{base64}}}}}")
}

/// A field's name: an identifier as it is, anything else in single quotes.
fn name(text: &str) -> String {
    let mut characters = text.chars();
    let starts = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let goes_on = characters.all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '$'));
    if starts && goes_on && !matches!(text, "null" | "true" | "false" | "nan") {
        text.to_owned()
    } else {
        format!("'{}'", escaped(text, '\''))
    }
}

fn string(text: &str) -> String {
    format!("\"{}\"", escaped(text, '"'))
}

fn escaped(text: &str, quote: char) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if character == quote => out.extend(['\\', quote]),
            _ if character.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out
}

/// A decimal: coefficient and exponent, the zeros at the end of the coefficient moved into the exponent, written with a point where that
/// is short and with `d` where it is not.
fn number(plain: &str) -> String {
    let (sign, digits) = plain.strip_prefix('-').map_or(("", plain), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let coefficient = all.trim_start_matches('0').trim_end_matches('0');
    if coefficient.is_empty() {
        return "0.".to_owned();
    }
    let zeros = all.len() - all.trim_end_matches('0').len();
    match (zeros.checked_sub(fraction.len()), fraction.len().saturating_sub(zeros)) {
        (Some(0), _) => format!("{sign}{coefficient}."),
        (Some(exponent), _) => format!("{sign}{coefficient}d{exponent}"),
        (None, scale) if coefficient.len() > scale => {
            let (whole, fraction) = coefficient.split_at(coefficient.len() - scale);
            format!("{sign}{whole}.{fraction}")
        }
        (None, scale) if scale - coefficient.len() < 6 => format!("{sign}0.{}{coefficient}", "0".repeat(scale - coefficient.len())),
        (None, scale) => format!("{sign}{coefficient}d-{scale}"),
    }
}

#[test]
fn numbers_are_written_as_real_exports_have_them() {
    for (plain, ion) in [
        ("10", "1d1"),
        ("600", "6d2"),
        ("61600", "616d2"),
        ("185340", "18534d1"),
        ("103", "103."),
        ("0", "0."),
        ("12.5", "12.5"),
        ("-0.125", "-0.125"),
        ("0.0012", "0.0012"),
        ("-3", "-3."),
        ("0.00000000123", "123d-11"),
    ] {
        assert_eq!(number(plain), ion);
    }
}

#[test]
fn names_are_quoted_where_they_are_no_identifiers() {
    for (plain, ion) in
        [("PK", "PK"), ("a.b", "'a.b'"), ("GSI1-PK", "'GSI1-PK'"), ("null", "'null'"), ("$7", "'$7'"), ("👍", "'👍'"), ("it's", "'it\\'s'")]
    {
        assert_eq!(name(plain), ion);
    }
}
