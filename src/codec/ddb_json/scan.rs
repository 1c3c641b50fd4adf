//! The text of JSON strings, and what escapes mean.
//!
//! Knows nothing of items and types.

use bumpalo::collections::String as ArenaString;

use crate::codec::plain::end_of_plain;
use crate::model::Arena;

/// What is wrong inside a string, and at which byte of the line.
#[derive(Debug)]
pub(super) struct BadString {
    pub at: usize,
    pub message: String,
    /// The line ended before the string did.
    pub unfinished: bool,
}

/// Reads the string whose first byte after the quote is `start`, and which is plain up to `at`; gives its text, which is in the arena,
/// and the place after its closing quote.
pub(super) fn escaped<'a>(line: &'a str, start: usize, mut at: usize, arena: &'a Arena) -> Result<(&'a str, usize), BadString> {
    let bytes = line.as_bytes();
    let mut text = ArenaString::new_in(arena);
    let mut run = start;
    loop {
        match bytes.get(at) {
            Some(b'"') => {
                text.push_str(&line[run..at]);
                return Ok((text.into_bump_str(), at + 1));
            }
            Some(b'\\') => {
                text.push_str(&line[run..at]);
                let (character, after) = escape(bytes, at)?;
                text.push(character);
                run = after;
                at = end_of_plain::<b'"'>(bytes, after);
            }
            Some(control) => {
                let message = format!("control character 0x{control:02x} inside a string; JSON wants it written \\u00{control:02x}");
                return Err(BadString { at, message, unfinished: false });
            }
            None => return Err(unfinished(at)),
        }
    }
}

/// The character that the escape at `at` stands for, and the place after it.
fn escape(bytes: &[u8], at: usize) -> Result<(char, usize), BadString> {
    let character = match bytes.get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(bytes, at),
        Some(_) => return Err(bad(at, "a backslash that starts no JSON escape; a backslash itself is written \\\\")),
        None => return Err(unfinished(at + 1)),
    };
    Ok((character, at + 2))
}

/// `\uXXXX`, or two of them that make a surrogate pair.
fn unicode(bytes: &[u8], at: usize) -> Result<(char, usize), BadString> {
    let first = hex(bytes, at)?;
    let (code, after) = match first {
        0xd800..0xdc00 if bytes.get(at + 6..at + 8) == Some(br"\u") => match hex(bytes, at + 6)? {
            second @ 0xdc00..0xe000 => (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), at + 12),
            _ => (first, at + 6),
        },
        _ => (first, at + 6),
    };
    match char::from_u32(code) {
        Some(character) => Ok((character, after)),
        None => Err(bad(at, "half of a surrogate pair without its other half; it stands for no character")),
    }
}

/// The four digits of the `\u` at `at`.
fn hex(bytes: &[u8], at: usize) -> Result<u32, BadString> {
    let digits = bytes.get(at + 2..at + 6).ok_or_else(|| unfinished(bytes.len()))?;
    digits
        .iter()
        .try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
        .ok_or_else(|| bad(at, "\\u without four hexadecimal digits"))
}

fn bad(at: usize, message: &str) -> BadString {
    BadString { at, message: message.to_owned(), unfinished: false }
}

fn unfinished(at: usize) -> BadString {
    BadString { at, message: "the line ends inside a string; it may be cut".to_owned(), unfinished: true }
}
