//! The numbers of Ion as the plain digits that `DynamoDB` JSON has for them. None becomes a float.
//!
//! Ion writes `61600` as `616d2` and `103` as `103.`; an int, a float and a decimal of one value are one number to `DynamoDB`.

use std::fmt::Write as _;

use bumpalo::collections::String as ArenaString;

use crate::model::Arena;
use crate::model::number::Decimal;

/// Why a token that starts with a digit or a minus is no number.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadNumber {
    /// It is a timestamp.
    Timestamp,
    /// It is `-inf`.
    Infinite,
    /// It is an integer in hexadecimal or binary digits that is too large to be rewritten.
    TooLarge,
    /// It is nothing that Ion knows.
    Malformed,
}

/// Magnitudes whose plain digits are written out: all that `DynamoDB` takes. Beyond, an exponent could ask for any number of zeros.
const PLAIN: std::ops::RangeInclusive<i64> = -129..=126;

/// Reads the number at `at`, which is a digit or a minus; gives its plain digits and the place after it.
/// They borrow from the line where they can be cut out of it.
#[inline]
pub(super) fn read<'a>(line: &'a str, at: usize, arena: &'a Arena) -> Result<(&'a str, usize), BadNumber> {
    let bytes = line.as_bytes();
    let first = at + usize::from(bytes[at] == b'-');
    let whole = end_of_digits(bytes, first);
    if whole > first && (bytes[first] != b'0' || whole == first + 1) {
        let end = if bytes.get(whole) == Some(&b'.') { end_of_digits(bytes, whole + 1) } else { whole };
        if ends(bytes, end) {
            let fraction = bytes[whole..end].iter().rev().skip_while(|byte| matches!(byte, b'0' | b'.')).count();
            let text = &line[at..whole + fraction];
            return Ok((if text == "-0" { "0" } else { text }, end));
        }
    }
    other(line, at, arena)
}

/// Everything but plain digits: exponents, underscores, other radixes.
fn other<'a>(line: &'a str, at: usize, arena: &'a Arena) -> Result<(&'a str, usize), BadNumber> {
    let bytes = line.as_bytes();
    let end = at + bytes[at..].iter().zip(at..).take_while(|(_, at)| !ends(bytes, *at)).count();
    let token = &line[at..end];
    let unsigned = token.strip_prefix('-').unwrap_or(token);
    let sign = &token[..token.len() - unsigned.len()];
    let text = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => radix(sign, &unsigned[2..], 16, arena)?,
        [b'0', b'b' | b'B', ..] => radix(sign, &unsigned[2..], 2, arena)?,
        b"inf" => return Err(BadNumber::Infinite),
        _ if is_timestamp(token) => return Err(BadNumber::Timestamp),
        _ => decimal(token, unsigned, arena)?,
    };
    Ok((text, end))
}

/// A decimal or float of any form.
fn decimal<'a>(token: &str, unsigned: &str, arena: &'a Arena) -> Result<&'a str, BadNumber> {
    let (mantissa, exponent) = match unsigned.find(['d', 'D', 'e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let leads = whole == "0" || !whole.starts_with('0');
    let exponent_is_good = exponent.is_none_or(|text| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    if whole.is_empty() || !leads || !are_digits(whole) || !(fraction.is_empty() || are_digits(fraction)) || !exponent_is_good {
        return Err(BadNumber::Malformed);
    }
    let mut text = ArenaString::with_capacity_in(token.len(), arena);
    text.extend(
        token.chars().filter(|character| *character != '_').map(|character| if "dDE".contains(character) { 'e' } else { character }),
    );
    let text = text.into_bump_str();
    let number = Decimal::parse(text).ok_or(BadNumber::Malformed)?;
    if !PLAIN.contains(&number.magnitude()) {
        return Ok(text);
    }
    Ok(arena.alloc_str(&number.plain()))
}

/// An integer in another radix.
fn radix<'a>(sign: &str, digits: &str, radix: u32, arena: &'a Arena) -> Result<&'a str, BadNumber> {
    let is_digit = |character: char| character.is_digit(radix) || character == '_';
    if !digits.chars().all(is_digit) || digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") || digits.is_empty() {
        return Err(BadNumber::Malformed);
    }
    let value = u128::from_str_radix(&digits.replace('_', ""), radix).map_err(|_| BadNumber::TooLarge)?;
    let mut text = ArenaString::new_in(arena);
    if value > 0 {
        text.push_str(sign);
    }
    write!(text, "{value}").expect("a text takes what is written into it");
    Ok(text.into_bump_str())
}

/// Digits with single underscores between them.
fn are_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b'_')
        && !text.contains("__")
        && bytes.first() != Some(&b'_')
        && bytes.last() != Some(&b'_')
}

/// Whether the token begins as timestamps do: with a year of four digits.
fn is_timestamp(token: &str) -> bool {
    matches!(token.as_bytes().split_first_chunk::<4>(), Some((year, [b'T' | b'-', ..])) if year.iter().all(u8::is_ascii_digit))
}

#[inline]
fn end_of_digits(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

/// Whether a number may end at `at`.
#[inline]
fn ends(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        None => true,
        Some(byte) => matches!(byte, b',' | b'}' | b']' | b')' | b'{' | b'[' | b'(' | b'"' | b'\'' | b' ' | b'\t'..=b'\r' | b'/'),
    }
}
