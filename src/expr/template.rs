//! Key templates such as `DOC#{doc | pad(10)}`: match a key, render a key.
//!
//! A template is literal text with parts in braces; `{{` and `}}` are literal braces. A part is a path
//! ([`Path`]) and any number of filters, each after a `|`.
//!
//! # Rendering
//!
//! A part takes the capture of its name, else the attribute, which must be a string or a number. A number
//! is written the way the service stores it. A part that is missing is [`RenderError::Missing`]; a part that
//! is there and does not fit is [`RenderError::Refused`]. An empty string is there.
//!
//! | filter | gives | refuses |
//! |---|---|---|
//! | `pad(w)` | digits, zero-padded to `w` | other than digits (`pad-digits`), more than `w` (`pad-width`) |
//! | `desc(w)` | 10^w - 1 - number, zero-padded: larger numbers first | as `pad` |
//! | `lower`, `upper`, `trim` | the text so changed | |
//! | `slug` | letters and digits in lower case, `-` between words | a text without any |
//! | `iso(s\|ms\|us)` | an epoch number as `2026-11-30T10:00:00Z` | other than integers, years beyond 9999 |
//! | `date(s\|ms\|us)`, `date(iso)` | the day of an epoch number in UTC; of an ISO text as written | other texts |
//! | `epoch(s\|ms\|us)` | ISO date and time, with zone, as a number | no zone, digits below the unit |
//! | `hash(crc32\|md5\|sha256, n)` | the first `n` hexadecimal digits, all without `n` | |
//! | `shard(n)` | 1 to `n` from the text alone, padded to the width of `n` | |
//! | `replace('a', 'b')` | every `a` as `b` | |
//! | `default('text')` | the text for a part that is missing (not for an empty one) | |
//!
//! # Matching
//!
//! A key is matched as a whole, from left to right, without trying twice: a capture is never empty, ends
//! where the literal behind it first stands, and never contains the template's separator. The separator is `#`
//! where the literals contain one, else the last of `:`, `|`, `/` in them, else `#`. So `DOC#{doc}` does not
//! match `DOC#1#CMT#2`, which is another entity's key. A last part written `{doc...}` takes the rest of the
//! key, separators and all.
//!
//! Of the filters, `pad`, `lower` and `upper` may stand in a template that matches: the text in the key must
//! be exactly what the filter gives; `pad` captures the number without its leading zeros. By construction a
//! template that matched a key renders that same key again from its captures.

mod filter;
mod parse;

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

use bumpalo::collections::String as ArenaString;

use crate::expr::SyntaxError;
use crate::expr::template::filter::{Filter, is_lower, is_upper};
use crate::model::number::{Decimal, is_plain};
use crate::model::{Arena, Item, Path, Value, short};

/// A parsed template.
#[derive(Clone, Debug)]
pub struct Template {
    text: Box<str>,
    parts: Vec<Part>,
    /// What a capture never contains, see the module.
    separator: u8,
    /// Bytes in all literals together.
    literal: usize,
}

#[derive(Clone, Debug)]
enum Part {
    Literal(Box<str>),
    Name(Name),
}

#[derive(Clone, Debug)]
struct Name {
    path: Path,
    /// The path as written, for messages.
    written: Box<str>,
    /// The braces and what is between them.
    at: Range<usize>,
    /// Written with `...`: captures the rest of the key.
    rest: bool,
    slot: Option<usize>,
    filters: Vec<Filter>,
}

/// Why a template could not be rendered for an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderError {
    /// A part is not there: the name as written.
    Missing(String),
    /// A part is there and cannot be used: a stable rule name such as `pad-width`, and the message.
    Refused {
        /// The rule.
        rule: &'static str,
        /// What was found, what was expected.
        message: String,
    },
}

impl Template {
    /// Parses a template. All names are attribute paths until [`Template::bind`] is called.
    ///
    /// # Errors
    /// The first mistake, with its place in `text`.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let parts = parse::parts(text)?;
        let literals = || {
            parts.iter().filter_map(|part| match part {
                Part::Literal(literal) => Some(&**literal),
                Part::Name(_) => None,
            })
        };
        let literal = literals().map(str::len).sum();
        let separator = if literals().any(|literal| literal.contains('#')) {
            b'#'
        } else {
            literals().flat_map(str::bytes).rfind(|byte| matches!(byte, b':' | b'|' | b'/')).unwrap_or(b'#')
        };
        Ok(Self { text: text.into(), parts, separator, literal })
    }

    /// The names in braces that could be captures (plain names without `.` or `[`), in order of first use, each once.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for name in self.braced().filter(|name| name.path.is_top_level()) {
            if !names.contains(&name.path.top()) {
                names.push(name.path.top());
            }
        }
        names
    }

    /// Gives each name in `captures` its slot there; such a name takes the capture first, the attribute second.
    pub fn bind(&mut self, captures: &[String]) {
        for part in &mut self.parts {
            if let Part::Name(name) = part
                && name.path.is_top_level()
            {
                name.slot = captures.iter().position(|capture| capture == name.path.top());
            }
        }
    }

    /// Whether the template can match keys: every name is plain, and no two names stand side by side without a literal between.
    ///
    /// # Errors
    /// The part that makes it ambiguous, or that has a filter which cannot be undone.
    pub fn check_matchable(&self) -> Result<(), SyntaxError> {
        let wrong = |at: &Range<usize>, message: &str, help: &str| {
            Err(SyntaxError { at: at.clone(), message: message.to_owned(), help: Some(help.to_owned()) })
        };
        if self.parts.is_empty() {
            return wrong(&(0..0), "an empty template matches no key", "such as DOC#{doc}");
        }
        for pair in self.parts.windows(2) {
            if let [Part::Name(_), Part::Name(name)] = pair {
                return wrong(&name.at, "two names without a text between them; where does the first one end?", "such as {ws}#{doc}");
            }
        }
        for name in self.braced() {
            if !name.path.is_top_level() {
                return wrong(&name.at, "a nested path cannot capture", "a capture is a plain name such as {doc}");
            }
            let mut padded = false;
            for filter in &name.filters {
                let undone = match filter {
                    Filter::Pad(_) => !std::mem::replace(&mut padded, true),
                    Filter::Lower | Filter::Upper => true,
                    _ => false,
                };
                if !undone {
                    let message = format!("filter `{}` cannot be undone here, so no key can be matched by it", filter.name());
                    return wrong(&name.at, &message, "in `match` a name may have one pad, and lower or upper");
                }
            }
        }
        Ok(())
    }

    /// How literal it is: more literal bytes win, then fewer names.
    #[must_use]
    pub fn literalness(&self) -> (usize, Reverse<usize>) {
        (self.literal, Reverse(self.braced().count()))
    }

    /// Whether some key could match both templates; may say yes in doubt.
    #[must_use]
    pub fn overlaps(&self, other: &Template) -> bool {
        let (left, right) = (self.elements(), other.elements());
        // Both are walked in step over all keys at once: a pair of places is reached when some text leads to both.
        let width = right.len() + 1;
        let mut seen = vec![false; (left.len() + 1) * width];
        let mut open = vec![(0, 0)];
        while let Some((l, r)) = open.pop() {
            if std::mem::replace(&mut seen[l * width + r], true) {
                continue;
            }
            match (left.get(l), right.get(r)) {
                (None, None) => return true,
                (Some(one), Some(two)) if one.meets(*two) => {
                    open.push((l + 1, r + 1));
                    if one.repeats() {
                        open.push((l, r + 1));
                    }
                    if two.repeats() {
                        open.push((l + 1, r));
                    }
                }
                _ => {}
            }
        }
        false
    }

    /// Matches the whole of `key` and fills the slots of its captures; a slot that is already filled must match the same text.
    /// On `false` the slots are in no defined state.
    #[must_use]
    pub fn matches<'a>(&self, key: &'a str, captures: &mut [Option<&'a str>]) -> bool {
        let mut rest = key;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Literal(literal) if short::starts_with(rest, literal) => rest = &rest[literal.len()..],
                Part::Literal(_) => return false,
                Part::Name(name) => {
                    let end = match parts.peek() {
                        None => Some(rest.len()),
                        Some(Part::Literal(literal)) => find(rest, literal),
                        Some(Part::Name(_)) => None,
                    };
                    let Some((text, after)) = end.map(|end| rest.split_at(end)) else {
                        return false;
                    };
                    if text.is_empty() || (!name.rest && text.as_bytes().contains(&self.separator)) {
                        return false;
                    }
                    let Some(text) = name.undo(text) else {
                        return false;
                    };
                    if let Some(slot) = name.slot.and_then(|slot| captures.get_mut(slot))
                        && *slot.get_or_insert(text) != text
                    {
                        return false;
                    }
                    rest = after;
                }
            }
        }
        rest.is_empty()
    }

    /// Renders the template for an item, in the item's arena. A template that is one name gives the item's own text.
    ///
    /// # Errors
    /// Which part is missing or cannot be used.
    pub fn render<'a>(&self, captures: &[Option<&'a str>], item: &Item<'a>) -> Result<&'a str, RenderError> {
        match &self.parts[..] {
            [] => return Ok(""),
            [Part::Name(name)] => return name.text(captures, item),
            _ => {}
        }
        // A usual name has fewer than 24 bytes; a longer one makes the string grow, in place where the arena allows it.
        let capacity = self.literal + 24 * (self.parts.len() - 1);
        let mut out = ArenaString::with_capacity_in(capacity, item.arena());
        for part in &self.parts {
            match part {
                Part::Literal(literal) => out.push_str(literal),
                Part::Name(name) => out.push_str(name.text(captures, item)?),
            }
        }
        Ok(out.into_bump_str())
    }

    /// The first part that has neither a capture nor an attribute, whatever its filters make of that.
    #[must_use]
    pub fn missing(&self, captures: &[Option<&str>], item: &Item<'_>) -> Option<&str> {
        let has_slot = |name: &Name| name.slot.is_some_and(|slot| matches!(captures.get(slot), Some(Some(_))));
        self.braced().find(|name| !has_slot(name) && name.path.get(item).is_none()).map(|name| &*name.written)
    }

    fn braced(&self) -> impl Iterator<Item = &Name> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Name(name) => Some(name),
        })
    }

    /// The keys that the template matches, byte by byte; a few more than it really does.
    fn elements(&self) -> Vec<Element> {
        let mut elements = Vec::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => elements.extend(literal.bytes().map(Element::Byte)),
                Part::Name(name) => {
                    let width = name.filters.iter().find_map(|filter| match filter {
                        Filter::Pad(width) => Some(*width),
                        _ => None,
                    });
                    match width {
                        Some(width) => elements.extend(std::iter::repeat_n(Element::Digit, width)),
                        None => elements.push(Element::Many { except: (!name.rest).then_some(self.separator) }),
                    }
                }
            }
        }
        elements
    }
}

impl fmt::Display for Template {
    /// The template as written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Name {
    /// The text of this part for an item.
    fn text<'a>(&self, captures: &[Option<&'a str>], item: &Item<'a>) -> Result<&'a str, RenderError> {
        let arena = item.arena();
        let from_key = self.slot.and_then(|slot| captures.get(slot).copied().flatten());
        let mut text = match from_key {
            Some(text) => Some(text),
            None => self.path.get(item).map(|value| self.text_of(value, arena)).transpose()?,
        };
        for filter in &self.filters {
            text = match (text, filter) {
                (Some(text), filter) => Some(filter.apply(text, &self.written, arena)?),
                (None, Filter::Default(default)) => Some(arena.alloc_str(default)),
                (None, _) => None,
            };
        }
        text.ok_or_else(|| RenderError::Missing(self.written.to_string()))
    }

    /// A string as it is, a number in its one spelling.
    fn text_of<'a>(&self, value: Value<'a>, arena: &'a Arena) -> Result<&'a str, RenderError> {
        match value {
            Value::S(text) => Ok(text),
            Value::N(text) if is_plain(text) => Ok(text),
            Value::N(text) => {
                // A number out of range would have a plain text of any length.
                let number = Decimal::parse(text).filter(|number| number.check().is_ok()).ok_or_else(|| RenderError::Refused {
                    rule: "template-number",
                    message: format!("part `{}` is of type N and no number that DynamoDB takes", self.written),
                })?;
                Ok(arena.alloc_str(&number.plain()))
            }
            other => Err(RenderError::Refused {
                rule: "template-type",
                message: format!("part `{}` is of type {}; a template takes S or N", self.written, other.kind()),
            }),
        }
    }

    /// What was captured, when the filters made `text` of it; `None` when they never make such a text.
    fn undo<'a>(&self, mut text: &'a str) -> Option<&'a str> {
        for filter in self.filters.iter().rev() {
            match filter {
                Filter::Pad(width) => {
                    if text.len() != *width || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                        return None;
                    }
                    // Zero itself keeps its last digit.
                    let zeros = text.bytes().take(*width - 1).take_while(|byte| *byte == b'0').count();
                    text = &text[zeros..];
                }
                Filter::Lower if is_lower(text) => {}
                Filter::Upper if is_upper(text) => {}
                _ => return None,
            }
        }
        Some(text)
    }
}

/// What one byte of a key may be, or several.
#[derive(Clone, Copy, Debug)]
enum Element {
    Byte(u8),
    Digit,
    /// One or more bytes.
    Many {
        except: Option<u8>,
    },
}

impl Element {
    fn repeats(self) -> bool {
        matches!(self, Element::Many { .. })
    }

    /// Whether one byte fits both.
    fn meets(self, other: Element) -> bool {
        match (self, other) {
            (Element::Byte(one), Element::Byte(two)) => one == two,
            (Element::Byte(byte), Element::Digit) | (Element::Digit, Element::Byte(byte)) => byte.is_ascii_digit(),
            (Element::Byte(byte), Element::Many { except }) | (Element::Many { except }, Element::Byte(byte)) => except != Some(byte),
            // No separator is a digit, and two separators leave all other bytes.
            (Element::Digit | Element::Many { .. }, Element::Digit | Element::Many { .. }) => true,
        }
    }
}

/// Where `literal` first stands in `text`.
fn find(text: &str, literal: &str) -> Option<usize> {
    let (first, after) = literal.as_bytes().split_first().expect("the parser makes no empty literal");
    let bytes = text.as_bytes();
    memchr::memchr_iter(*first, bytes).find(|at| bytes[at + 1..].starts_with(after))
}

#[cfg(test)]
mod tests;
