//! The text of Ion: blanks and comments, texts in quotes, and what escapes mean.
//!
//! Knows nothing of items and types.

use bumpalo::collections::String as ArenaString;

use crate::codec::plain::end_of_plain;
use crate::model::Arena;

/// What is wrong inside a text, and at which byte of the line.
#[derive(Debug)]
pub(super) struct BadText {
    pub(super) at: usize,
    pub(super) message: String,
    /// The line ended before the text did.
    pub(super) unfinished: bool,
}

/// The place after the blanks and comments at `at`. A comment that does not end is not passed.
pub(super) fn after_blanks(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match bytes.get(at..).unwrap_or_default() {
            [b' ' | b'\t'..=b'\r', ..] => at += 1,
            [b'/', b'/', comment @ ..] => {
                let length = comment.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(comment.len());
                at += 2 + length;
            }
            [b'/', b'*', comment @ ..] => match comment.windows(2).position(|two| two == b"*/") {
                Some(length) => at += 2 + length + 2,
                None => return at,
            },
            _ => return at,
        }
    }
}

/// Reads the text in single `QUOTE`s whose first byte after the quote is `start`; gives it and the place after its closing quote.
/// It borrows from the line unless it holds escapes; then its text is in the arena.
#[inline]
pub(super) fn quoted<'a, const QUOTE: u8>(line: &'a str, start: usize, arena: &'a Arena) -> Result<(&'a str, usize), BadText> {
    let end = end_of_plain::<QUOTE>(line.as_bytes(), start);
    if line.as_bytes().get(end) == Some(&QUOTE) { Ok((&line[start..end], end + 1)) } else { escaped::<QUOTE>(line, start, end, arena) }
}

/// The slow way, from the first byte at `at` that is not plain.
fn escaped<'a, const QUOTE: u8>(line: &'a str, start: usize, mut at: usize, arena: &'a Arena) -> Result<(&'a str, usize), BadText> {
    let bytes = line.as_bytes();
    let mut text = ArenaString::new_in(arena);
    let mut run = start;
    loop {
        match bytes.get(at) {
            Some(byte) if *byte == QUOTE => {
                text.push_str(&line[run..at]);
                return Ok((text.into_bump_str(), at + 1));
            }
            Some(b'\\') => {
                text.push_str(&line[run..at]);
                let (character, after) = escape(bytes, at)?;
                text.extend(character);
                run = after;
                at = end_of_plain::<QUOTE>(bytes, after);
            }
            Some(end @ (b'\n' | b'\r')) => {
                let message = format!("a line end inside a text; Ion wants it written {}", char::from(*end).escape_default());
                return Err(BadText { at, message, unfinished: false });
            }
            // Ion wants other controls escaped, but there are writers that do not, and nothing else can be meant.
            Some(_) => at = end_of_plain::<QUOTE>(bytes, at + 1),
            None => return Err(unfinished(at)),
        }
    }
}

/// Reads the pieces in three quotes each that start at `start`, with blanks and comments between them; gives their text as one and
/// the place after the last.
pub(super) fn long<'a>(line: &'a str, start: usize, arena: &'a Arena) -> Result<(&'a str, usize), BadText> {
    const QUOTES: &[u8] = b"'''";
    let bytes = line.as_bytes();
    let mut text = ArenaString::new_in(arena);
    let mut at = start;
    let mut after_piece = start;
    while bytes[at..].starts_with(QUOTES) {
        at += QUOTES.len();
        let mut run = at;
        loop {
            match bytes.get(at) {
                Some(b'\'') if bytes[at..].starts_with(QUOTES) => break,
                Some(b'\\') => {
                    text.push_str(&line[run..at]);
                    let (character, after) = escape(bytes, at)?;
                    text.extend(character);
                    (run, at) = (after, after);
                }
                // Every kind of line end means the same.
                Some(b'\r') => {
                    text.push_str(&line[run..at]);
                    text.push('\n');
                    at += if bytes.get(at + 1) == Some(&b'\n') { 2 } else { 1 };
                    run = at;
                }
                Some(_) => at += 1,
                None => return Err(unfinished(at)),
            }
        }
        text.push_str(&line[run..at]);
        after_piece = at + QUOTES.len();
        at = after_blanks(bytes, after_piece);
    }
    Ok((text.into_bump_str(), after_piece))
}

/// The character that the escape at `at` stands for, and the place after it. An escaped line end stands for none.
fn escape(bytes: &[u8], at: usize) -> Result<(Option<char>, usize), BadText> {
    let character = match bytes.get(at + 1) {
        Some(same @ (b'"' | b'\'' | b'\\' | b'/' | b'?')) => char::from(*same),
        Some(b'0') => '\0',
        Some(b'a') => '\u{7}',
        Some(b'b') => '\u{8}',
        Some(b't') => '\t',
        Some(b'n') => '\n',
        Some(b'v') => '\u{b}',
        Some(b'f') => '\u{c}',
        Some(b'r') => '\r',
        Some(b'\r') if bytes.get(at + 2) == Some(&b'\n') => return Ok((None, at + 3)),
        Some(b'\n' | b'\r') => return Ok((None, at + 2)),
        Some(b'x') => return coded(bytes, at, 2),
        Some(b'u') => return coded(bytes, at, 4),
        Some(b'U') => return coded(bytes, at, 8),
        Some(_) => return Err(bad(at, "a backslash that starts no Ion escape; a backslash itself is written \\\\")),
        None => return Err(unfinished(at + 1)),
    };
    Ok((Some(character), at + 2))
}

/// An escape with so many hexadecimal digits, or two of them that make a surrogate pair.
fn coded(bytes: &[u8], at: usize, digits: usize) -> Result<(Option<char>, usize), BadText> {
    let first = hex(bytes, at, digits)?;
    let after = at + 2 + digits;
    let (code, after) = match first {
        0xd800..0xdc00 if digits == 4 && bytes.get(after..after + 2) == Some(br"\u") => match hex(bytes, after, 4)? {
            second @ 0xdc00..0xe000 => (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), after + 6),
            _ => (first, after),
        },
        _ => (first, after),
    };
    match (char::from_u32(code), code) {
        (Some(character), _) => Ok((Some(character), after)),
        (None, 0xd800..0xe000) => Err(bad(at, "half of a surrogate pair without its other half; it stands for no character")),
        (None, _) => Err(bad(at, "the number of no character; the last one is \\U0010ffff")),
    }
}

/// The digits of the escape at `at`.
fn hex(bytes: &[u8], at: usize, count: usize) -> Result<u32, BadText> {
    let digits = bytes.get(at + 2..at + 2 + count).ok_or_else(|| unfinished(bytes.len()))?;
    let code = digits.iter().try_fold(0_u32, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?));
    let words = match count {
        2 => "\\x without two hexadecimal digits",
        4 => "\\u without four hexadecimal digits",
        _ => "\\U without eight hexadecimal digits",
    };
    code.ok_or_else(|| bad(at, words))
}

fn bad(at: usize, message: &str) -> BadText {
    BadText { at, message: message.to_owned(), unfinished: false }
}

fn unfinished(at: usize) -> BadText {
    BadText { at, message: "the line ends inside a text; it may be cut".to_owned(), unfinished: true }
}
