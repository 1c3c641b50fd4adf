//! From the text of a template to its parts. Knows the grammar and its mistakes; knows no item and no key.

use std::ops::Range;

use crate::expr::SyntaxError;
use crate::expr::template::filter::{Argument, Filter};
use crate::expr::template::{Name, Part};
use crate::model::Path;

/// How a part looks, for the help of a mistake.
const EXAMPLE: &str = "a part looks like {doc}, {owner.id} or {doc | pad(10)}";

/// The parts of `text`. Literals never stand side by side and are never empty.
pub(super) fn parts(text: &str) -> Result<Vec<Part>, SyntaxError> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(found) = text[at..].find(['{', '}']) {
        let brace = at + found;
        literal.push_str(&text[at..brace]);
        let doubled = text.as_bytes().get(brace + 1) == text.as_bytes().get(brace);
        if doubled {
            literal.push_str(&text[brace..=brace]);
            at = brace + 2;
            continue;
        }
        if text[brace..].starts_with('}') {
            return Err(mistake(brace..brace + 1, "`}` without `{`", Some("a literal brace is written twice: }}")));
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(std::mem::take(&mut literal).into()));
        }
        let (segments, close) = segments(text, brace)?;
        parts.push(Part::Name(name(text, &segments, brace..close + 1)?));
        at = close + 1;
    }
    literal.push_str(&text[at..]);
    if !literal.is_empty() {
        parts.push(Part::Literal(literal.into()));
    }
    let last = parts.len().saturating_sub(1);
    for part in &parts[..last] {
        if let Part::Name(Name { rest: true, at, .. }) = part {
            return Err(mistake(at.clone(), "`...` takes the rest of a key and can stand only in the last part", None));
        }
    }
    Ok(parts)
}

fn mistake(at: Range<usize>, message: impl Into<String>, help: Option<&str>) -> SyntaxError {
    SyntaxError { at, message: message.into(), help: help.map(str::to_owned) }
}

/// What stands between the brace at `open` and its closing brace, cut at each `|`; and where the closing brace is.
fn segments(text: &str, open: usize) -> Result<(Vec<Range<usize>>, usize), SyntaxError> {
    let mut segments = Vec::new();
    let mut start = open + 1;
    // Double quotes enclose names, before the first `|`; single quotes enclose texts, after it.
    let mut quoted: Option<(usize, char)> = None;
    let mut characters = text[open + 1..].char_indices().map(|(at, character)| (open + 1 + at, character));
    while let Some((at, character)) = characters.next() {
        if let Some((_, quote)) = quoted {
            if quote == '"' && character == '\\' {
                characters.next();
            } else if quote == character {
                quoted = None;
            }
            continue;
        }
        match character {
            '"' if segments.is_empty() => quoted = Some((at, character)),
            '\'' if !segments.is_empty() => quoted = Some((at, character)),
            '|' => {
                segments.push(start..at);
                start = at + 1;
            }
            '}' => {
                segments.push(start..at);
                return Ok((segments, at));
            }
            '{' => break,
            _ => {}
        }
    }
    Err(match quoted {
        Some((at, quote)) => mistake(at..text.len(), format!("no closing {quote} for this one"), None),
        None => mistake(open..text.len(), "`{` is not closed", Some("a literal brace is written twice: {{")),
    })
}

/// `range` without the blanks at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inner = &text[range.clone()];
    let start = range.start + (inner.len() - inner.trim_start().len());
    start..start + inner.trim().len()
}

fn name(text: &str, segments: &[Range<usize>], braces: Range<usize>) -> Result<Name, SyntaxError> {
    let (first, filters) = segments.split_first().expect("a closed part has at least one segment");
    let at = trimmed(text, first.clone());
    let written = &text[at.clone()];
    let (written, rest) = match written.strip_suffix("...") {
        Some(name) => (name.trim_end(), true),
        None => (written, false),
    };
    if written.is_empty() {
        return Err(mistake(braces, "a name is missing", Some(EXAMPLE)));
    }
    if !written.starts_with('"') && written.contains(['(', ')', '\'']) {
        let help = "filters follow a `|`, as in {doc | pad(10)}; a name with such characters stands in double quotes";
        return Err(mistake(at, format!("`{written}` is no name"), Some(help)));
    }
    let path = Path::parse(written).map_err(|message| mistake(at.clone(), message, Some(EXAMPLE)))?;
    let filters = filters.iter().map(|segment| filter(text, trimmed(text, segment.clone()), &braces)).collect::<Result<_, _>>()?;
    Ok(Name { path, written: written.into(), at: braces, rest, slot: None, filters })
}

fn filter(text: &str, at: Range<usize>, braces: &Range<usize>) -> Result<Filter, SyntaxError> {
    if at.is_empty() {
        return Err(mistake(braces.clone(), "a filter is missing after `|`", Some("such as pad(10), lower or default('none')")));
    }
    let whole = &text[at.clone()];
    let Some(open) = whole.find('(') else {
        return Filter::new(whole, at.clone(), &[], at);
    };
    let name = whole[..open].trim_end();
    let name_at = at.start..at.start + name.len();
    if name.is_empty() {
        return Err(mistake(at, "a filter's name is missing before `(`", None));
    }
    let (arguments, end) = arguments(text, at.start + open + 1, at.end)?;
    if end < at.end {
        return Err(mistake(end..at.end, "unexpected text after `)`", Some("filters are separated by `|`")));
    }
    Filter::new(name, name_at, &arguments, at)
}

/// Where an argument stands, beside it.
type Placed = (Argument, Range<usize>);

/// The arguments from `start`, behind the opening parenthesis, and the place behind the closing one.
fn arguments(text: &str, start: usize, end: usize) -> Result<(Vec<Placed>, usize), SyntaxError> {
    let mut arguments = Vec::new();
    let skip = |at: usize| end - text[at..end].trim_start().len();
    let mut at = skip(start);
    if text[at..end].starts_with(')') {
        return Ok((arguments, at + 1));
    }
    loop {
        let (argument, after) = argument(text, at, end)?;
        arguments.push((argument, at..after));
        at = skip(after);
        match text[at..end].chars().next() {
            Some(',') => at = skip(at + 1),
            Some(')') => return Ok((arguments, at + 1)),
            Some(other) => {
                let message = format!("expected `,` or `)`, found `{other}`");
                return Err(mistake(at..at + other.len_utf8(), message, None));
            }
            None => return Err(mistake(start - 1..end, "`(` is not closed", None)),
        }
    }
}

/// One argument from `at`, and the place behind it.
fn argument(text: &str, at: usize, end: usize) -> Result<(Argument, usize), SyntaxError> {
    let here = &text[at..end];
    if let Some(quoted) = here.strip_prefix('\'') {
        let mut value = String::new();
        let mut rest = quoted;
        loop {
            // `segments` has seen that every quote is closed.
            let Some((before, after)) = rest.split_once('\'') else {
                return Err(mistake(at..end, "no closing ' for this one", None));
            };
            value.push_str(before);
            match after.strip_prefix('\'') {
                Some(after) => {
                    value.push('\'');
                    rest = after;
                }
                None => return Ok((Argument::Text(value), end - after.len())),
            }
        }
    }
    let length = here.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(here.len());
    if length == 0 {
        let found = here.chars().next();
        let at = at..at + found.map_or(0, char::len_utf8);
        return Err(match found {
            Some('"') => mistake(at, "a text in double quotes", Some("texts stand in single quotes: 'text'")),
            Some(other) => mistake(at, format!("expected an argument, found `{other}`"), Some("texts stand in single quotes: 'text'")),
            None => mistake(at.start - 1..at.start, "an argument and `)` are missing", None),
        });
    }
    Ok((Argument::Word(here[..length].to_owned()), at + length))
}
