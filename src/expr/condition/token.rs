//! From the text of a condition to its tokens, each with its place. Knows no grammar.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::expr::SyntaxError;
use crate::expr::condition::Comparator;
use crate::model::number::Decimal;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Open,
    Close,
    Comma,
    Comparator(Comparator),
    Text(Box<str>),
    Number(Box<str>),
    Bytes(Box<[u8]>),
    /// A name, a path, a keyword or a function: whatever starts with a letter, `_` or a double quote.
    Word,
    End,
}

pub(super) type Placed = (Token, Range<usize>);

pub(super) fn mistake(at: Range<usize>, message: impl Into<String>, help: impl Into<Option<&'static str>>) -> SyntaxError {
    SyntaxError { at, message: message.into(), help: help.into().map(str::to_owned) }
}

/// Operators of other languages, longest first, with what they are called here.
const FOREIGN: [(&str, &str); 9] = [
    ("==", "equality is ="),
    ("!=", "inequality is <>"),
    ("=>", "greater or equal is >="),
    ("=<", "less or equal is <="),
    ("&&", "write AND"),
    ("||", "write OR"),
    ("!", "write NOT"),
    ("&", "write AND"),
    ("|", "write OR"),
];

const COMPARATORS: [(&str, Comparator); 6] = [
    ("<>", Comparator::NotEqual),
    ("<=", Comparator::LessOrEqual),
    (">=", Comparator::GreaterOrEqual),
    ("=", Comparator::Equal),
    ("<", Comparator::Less),
    (">", Comparator::Greater),
];

/// The tokens of `text`; the last is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = text.len() - text[at..].trim_start().len();
        let Some(first) = text[at..].chars().next() else {
            tokens.push((Token::End, at..at));
            return Ok(tokens);
        };
        let (token, length) = token(text, at, first)?;
        tokens.push((token, at..at + length));
        at += length;
    }
}

/// The token that starts at `at` with the character `first`, and its length.
fn token(text: &str, at: usize, first: char) -> Result<(Token, usize), SyntaxError> {
    let here = &text[at..];
    if let Some((foreign, help)) = FOREIGN.iter().find(|(foreign, _)| here.starts_with(foreign)) {
        return Err(mistake(at..at + foreign.len(), format!("`{foreign}` is no operator here"), *help));
    }
    if let Some((written, comparator)) = COMPARATORS.iter().find(|(written, _)| here.starts_with(written)) {
        return Ok((Token::Comparator(*comparator), written.len()));
    }
    match first {
        '(' => Ok((Token::Open, 1)),
        ')' => Ok((Token::Close, 1)),
        ',' => Ok((Token::Comma, 1)),
        '\'' => quoted(text, at).map(|(value, length)| (Token::Text(value.into()), length)),
        'b' | 'B' if here[1..].starts_with('\'') => {
            let (encoded, length) = quoted(text, at + 1)?;
            let help = "such as b'aGVsbG8='";
            let bytes = STANDARD.decode(encoded).map_err(|_| mistake(at..at + 1 + length, "not base64 between the quotes of b''", help))?;
            Ok((Token::Bytes(bytes.into()), 1 + length))
        }
        '0'..='9' | '+' | '-' | '.' => number(text, at),
        '"' => Ok((Token::Word, word(text, at)?)),
        _ if first.is_alphabetic() || first == '_' => Ok((Token::Word, word(text, at)?)),
        ':' | '#' => {
            let length = 1 + here[1..].find(|character: char| !in_name(character)).unwrap_or(here.len() - 1);
            let help = if first == ':' {
                "write the value itself: 'text', 5, true, null"
            } else {
                "write the attribute's name itself; a name that starts with # stands in double quotes"
            };
            Err(mistake(at..at + length, format!("`{}` looks like a placeholder", &here[..length]), help))
        }
        _ => Err(mistake(at..at + first.len_utf8(), format!("unexpected `{first}`"), None)),
    }
}

/// A text in single quotes and its length with the quotes; two quotes inside stand for one.
fn quoted(text: &str, at: usize) -> Result<(String, usize), SyntaxError> {
    let mut value = String::new();
    let mut rest = &text[at + 1..];
    loop {
        let Some((before, after)) = rest.split_once('\'') else {
            return Err(mistake(at..text.len(), "no closing ' for this one", "a quote inside a text is written twice: 'it''s'"));
        };
        value.push_str(before);
        match after.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Ok((value, text.len() - after.len() - at)),
        }
    }
}

fn number(text: &str, at: usize) -> Result<(Token, usize), SyntaxError> {
    let here = &text[at..];
    let mut before = ' ';
    let end = here.find(|character: char| {
        let sign = matches!(character, '+' | '-') && matches!(before, ' ' | 'e' | 'E');
        before = character;
        !(sign || character == '.' || in_name(character) && character != '-')
    });
    let written = &here[..end.unwrap_or(here.len())];
    let range = at..at + written.len().max(1);
    match Decimal::parse(written) {
        Some(number) => match number.check() {
            Ok(()) => Ok((Token::Number(written.into()), written.len())),
            Err(error) => Err(mistake(range, format!("`{written}` is no number that DynamoDB takes: {error}"), None)),
        },
        None => Err(mistake(
            range,
            format!("`{written}` is no number"),
            "a text stands in single quotes; a name that does not start with a letter stands in double quotes",
        )),
    }
}

/// Whether a bare name may go on with this character; more than the service's own names without placeholders.
pub(super) fn in_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '#' | ':' | '$' | '@')
}

/// The length of a word: names, bare or in double quotes, with `.` and `[n]` between them.
fn word(text: &str, at: usize) -> Result<usize, SyntaxError> {
    let mut end = at;
    loop {
        if text[end..].starts_with('"') {
            end = closing(text, end)?;
        } else {
            end += text[end..].find(|character| !in_name(character)).unwrap_or(text.len() - end);
        }
        while text[end..].starts_with('[') {
            let Some(length) = text[end..].find(']') else {
                return Err(mistake(end..text.len(), "`[` without `]`", None));
            };
            end += length + 1;
        }
        if !text[end..].starts_with('.') {
            return Ok(end - at);
        }
        end += 1;
    }
}

/// The place behind the double quote that closes the one at `at`.
fn closing(text: &str, at: usize) -> Result<usize, SyntaxError> {
    let mut characters = text[at + 1..].char_indices();
    while let Some((offset, character)) = characters.next() {
        match character {
            '"' => return Ok(at + 1 + offset + 1),
            '\\' => {
                characters.next();
            }
            _ => {}
        }
    }
    Err(mistake(at..text.len(), "no closing \" for this one", "double quotes are for attribute names, single quotes for texts"))
}
