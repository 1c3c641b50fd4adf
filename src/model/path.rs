//! A path to an attribute, top-level or nested: `owner.id`, `tags[0]`, `"a.b".c`.
//!
//! A name stands bare unless it holds one of `. [ ] " { } |` or a leading or trailing blank; then it is
//! written in double quotes, with `\"` and `\\` inside.

use std::fmt;

use crate::model::item::Item;
use crate::model::value::Value;

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// A name in an item or a map.
    Name(Box<str>),
    /// A place in a list, from 0.
    Index(usize),
}

/// A path; its first part is always the name of a top-level attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    top: Box<str>,
    rest: Vec<Segment>,
}

impl Path {
    /// The path to the top-level attribute with exactly this name, whatever it holds.
    pub fn top_level(name: impl Into<Box<str>>) -> Self {
        Self { top: name.into(), rest: Vec::new() }
    }

    /// Parses a path.
    ///
    /// # Errors
    /// A text that says what is wrong and where, for a diagnostic.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut segments = Vec::new();
        let mut rest = text;
        loop {
            let (name, after) = parse_name(rest, text)?;
            segments.push(Segment::Name(name.into()));
            rest = after;
            while let Some(inner) = rest.strip_prefix('[') {
                let (digits, after) = inner.split_once(']').ok_or_else(|| format!("`[` without `]` in path `{text}`"))?;
                let index =
                    digits.parse().map_err(|_| format!("`[{digits}]` in path `{text}` is no list position; write a number from 0"))?;
                segments.push(Segment::Index(index));
                rest = after;
            }
            match rest.strip_prefix('.') {
                Some(after) => rest = after,
                None if rest.is_empty() => break,
                None => return Err(format!("unexpected `{rest}` in path `{text}`")),
            }
        }
        let mut segments = segments.into_iter();
        let Some(Segment::Name(top)) = segments.next() else {
            return Err(format!("path `{text}` does not start with a name"));
        };
        Ok(Self { top, rest: segments.collect() })
    }

    /// The name of the top-level attribute.
    #[must_use]
    pub fn top(&self) -> &str {
        &self.top
    }

    /// What follows the top-level name.
    #[must_use]
    pub fn rest(&self) -> &[Segment] {
        &self.rest
    }

    /// The path cut short: the top-level name and the first `parts` of what follows it.
    #[must_use]
    pub fn first_parts(&self, parts: usize) -> Self {
        Self { top: self.top.clone(), rest: self.rest.iter().take(parts).cloned().collect() }
    }

    /// Whether this path leads to `other` or to something that holds it.
    #[must_use]
    pub fn holds(&self, other: &Path) -> bool {
        self.top == other.top && other.rest.starts_with(&self.rest)
    }

    /// Whether the path names a top-level attribute.
    #[must_use]
    pub fn is_top_level(&self) -> bool {
        self.rest.is_empty()
    }

    /// The value at this path, or `None` where any part of it is missing or of another kind.
    #[must_use]
    pub fn get<'a>(&self, item: &Item<'a>) -> Option<Value<'a>> {
        self.rest.iter().try_fold(item.get(&self.top)?, |value, segment| match (segment, value) {
            (Segment::Name(name), Value::M(entries)) => entries.iter().find(|(known, _)| **known == **name).map(|(_, value)| *value),
            (Segment::Index(index), Value::L(elements)) => elements.get(*index).copied(),
            _ => None,
        })
    }
}

/// One name, bare or quoted, and what follows it.
fn parse_name<'t>(rest: &'t str, whole: &str) -> Result<(String, &'t str), String> {
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find(['.', '[', ']', '"', '{', '}', '|']).unwrap_or(rest.len());
        let name = &rest[..end];
        if name.is_empty() {
            return Err(format!("a name is missing in path `{whole}`"));
        }
        return Ok((name.to_owned(), &rest[end..]));
    };
    let mut name = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' if name.is_empty() => return Err(format!("an empty name in path `{whole}`")),
            '"' => return Ok((name, &quoted[at + 1..])),
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\\'))) => name.push(escaped),
                _ => return Err(format!("only `\\\"` and `\\\\` may follow a backslash in path `{whole}`")),
            },
            other => name.push(other),
        }
    }
    Err(format!("a quoted name in path `{whole}` has no closing quote"))
}

/// Writes one name the way [`Path::parse`] reads it back.
fn write_name(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let bare = !name.is_empty() && name.trim() == name && !name.contains(['.', '[', ']', '"', '{', '}', '|']);
    if bare { f.write_str(name) } else { write!(f, "\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")) }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(&self.top, f)?;
        for segment in &self.rest {
            match segment {
                Segment::Name(name) => {
                    f.write_str(".")?;
                    write_name(name, f)?;
                }
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Where a walk through an item stands, for messages; each level of the walk has its own on the stack, so
/// that a walk without mistakes builds no text. It prints like the [`Path`] to the same value.
#[derive(Clone, Copy, Debug)]
pub enum Place<'p> {
    /// The item itself; prints as nothing.
    Item,
    /// A named value in an item or a map.
    Name(&'p Place<'p>, &'p str),
    /// An element of a list or a set, from 0.
    Index(&'p Place<'p>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Item => Ok(()),
            Place::Name(Place::Item, name) => write_name(name, f),
            Place::Name(above, name) => {
                write!(f, "{above}.")?;
                write_name(name, f)
            }
            Place::Index(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_prints_as_it_was_written() {
        for text in ["owner", "owner.id", "tags[0]", "a[1][2].b", "GSI1-PK", "aws:rep:x", "post#", "\"a.b\".c", "\"x\\\"y\""] {
            assert_eq!(Path::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_place_prints_like_the_path_to_it() {
        let (top, item) = ("a.b", Place::Item);
        let list = Place::Name(&item, top);
        let map = Place::Index(&list, 2);
        assert_eq!(Place::Name(&map, "c").to_string(), Path::parse("\"a.b\"[2].c").unwrap().to_string());
    }

    #[test]
    fn a_wrong_path_says_what_is_wrong() {
        for (text, part) in [
            ("", "missing"),
            ("a.", "missing"),
            ("a[x]", "no list position"),
            ("a[1", "without `]`"),
            ("\"a", "closing quote"),
            ("a]b", "unexpected"),
        ] {
            let message = Path::parse(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
