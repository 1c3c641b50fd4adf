//! The pipeline file as a tree whose every name and value knows its place.
//!
//! Reading helpers collect mistakes and go on, so that one `check` reports them all. Nothing here knows
//! what a pipeline is.

use std::cell::RefCell;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Diagnostics, Span, nearest};

/// A parsed TOML text.
#[derive(Debug)]
pub struct Document<'t> {
    text: &'t str,
    root: Spanned<DeValue<'t>>,
}

impl<'t> Document<'t> {
    /// Parses `text`; syntax errors go to `diagnostics`, and what could be read is given all the same.
    #[must_use]
    pub fn parse(text: &'t str, diagnostics: &mut Diagnostics) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            diagnostics.error(error.span().unwrap_or(0..0), error.message());
        }
        let span = table.span();
        Self { text, root: Spanned::new(span, DeValue::Table(table.into_inner())) }
    }

    /// The whole file as a table.
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        Node { text: self.text, value: &self.root }
    }
}

/// One value with its place.
#[derive(Clone, Copy, Debug)]
pub struct Node<'n> {
    /// The whole file, from which [`Node::inside`] takes the string as it was written.
    text: &'n str,
    value: &'n Spanned<DeValue<'n>>,
}

impl<'n> Node<'n> {
    /// Where the value stands.
    #[must_use]
    pub fn span(&self) -> Span {
        self.value.span()
    }

    /// Where the bytes `at` of this string stand in the file. A string that was written with escapes is
    /// given as a whole, since its bytes are not those of the file.
    #[must_use]
    pub fn inside(&self, at: &Span) -> Span {
        let span = self.span();
        let (DeValue::String(string), Some(written)) = (self.value(), self.text.get(span.clone())) else {
            return span;
        };
        let quote = if written.starts_with("\"\"\"") || written.starts_with("'''") { 3 } else { 1 };
        let Some(inner) = written.get(quote..written.len().saturating_sub(quote)) else {
            return span;
        };
        // A line break right behind the opening quotes of a long string is no part of it.
        let skipped = inner.len().saturating_sub(string.len());
        let verbatim = skipped <= 2 && inner.ends_with(&**string) && matches!(&inner[..skipped], "" | "\n" | "\r\n");
        if verbatim { span.start + quote + skipped + at.start..span.start + quote + skipped + at.end } else { span }
    }

    /// Whether this is a table that has the field `name`; asks without leaving a trace in [`Fields`].
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        matches!(self.value(), DeValue::Table(table) if table.contains_key(name))
    }

    /// The string, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&'n str> {
        match self.value() {
            DeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The truth, if it is one.
    #[must_use]
    pub fn truth(&self) -> Option<bool> {
        match self.value() {
            DeValue::Boolean(truth) => Some(*truth),
            _ => None,
        }
    }

    /// Whether this is a table.
    #[must_use]
    pub fn is_table(&self) -> bool {
        matches!(self.value(), DeValue::Table(_))
    }

    /// The TOML value.
    #[must_use]
    pub fn value(&self) -> &'n DeValue<'n> {
        self.value.get_ref()
    }

    /// What kind of value it is, with its article: `a string`, `an array`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.value() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        }
    }

    /// The string, or a mistake that says `what` should have been one.
    pub fn string(&self, what: &str, diagnostics: &mut Diagnostics) -> Option<&'n str> {
        match self.value() {
            DeValue::String(text) => Some(text),
            _ => self.wrong(what, "a string", diagnostics),
        }
    }

    /// The boolean, or a mistake.
    pub fn boolean(&self, what: &str, diagnostics: &mut Diagnostics) -> Option<bool> {
        match self.value() {
            DeValue::Boolean(value) => Some(*value),
            _ => self.wrong(what, "true or false", diagnostics),
        }
    }

    /// The integer, or a mistake.
    pub fn integer(&self, what: &str, diagnostics: &mut Diagnostics) -> Option<i64> {
        match self.value() {
            DeValue::Integer(value) => match i64::from_str_radix(value.as_str(), value.radix()) {
                Ok(value) => Some(value),
                Err(_) => self.wrong(what, "an integer of 64 bits", diagnostics),
            },
            _ => self.wrong(what, "an integer", diagnostics),
        }
    }

    /// The elements, or a mistake.
    pub fn array(&self, what: &str, diagnostics: &mut Diagnostics) -> Option<Vec<Node<'n>>> {
        match self.value() {
            DeValue::Array(elements) => Some(elements.iter().map(|value| Node { text: self.text, value }).collect()),
            _ => self.wrong(what, "an array", diagnostics),
        }
    }

    /// The fields, or a mistake.
    pub fn fields(&self, what: &str, diagnostics: &mut Diagnostics) -> Option<Fields<'n>> {
        match self.value() {
            DeValue::Table(table) => {
                Some(Fields { what: what.to_owned(), text: self.text, span: self.span(), table, asked: RefCell::default() })
            }
            _ => self.wrong(what, "a table", diagnostics),
        }
    }

    /// The strings of an array of strings, each with its place; a mistake for each element that is none.
    pub fn strings(&self, what: &str, diagnostics: &mut Diagnostics) -> Option<Vec<(&'n str, Span)>> {
        let elements = self.array(what, diagnostics)?;
        Some(elements.iter().filter_map(|element| Some((element.string(what, diagnostics)?, element.span()))).collect())
    }

    fn wrong<T>(&self, what: &str, expected: &str, diagnostics: &mut Diagnostics) -> Option<T> {
        diagnostics.error(self.span(), format!("{what} must be {expected}, found {}", self.kind()));
        None
    }
}

/// The fields of a table. It remembers which names were asked for, so that [`Fields::finish`] can
/// report the others.
#[derive(Debug)]
pub struct Fields<'n> {
    what: String,
    text: &'n str,
    span: Span,
    table: &'n DeTable<'n>,
    asked: RefCell<Vec<&'static str>>,
}

/// A field whose name is the user's own: its name, the place of the name, and its value.
#[derive(Clone, Debug)]
pub struct Named<'n> {
    /// The name.
    pub name: &'n str,
    /// Where the name stands.
    pub name_span: Span,
    /// The value.
    pub value: Node<'n>,
}

impl<'n> Fields<'n> {
    /// Where the table stands; for a `[header]` that is the header.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// The field `name`, if it is there.
    pub fn optional(&self, name: &'static str) -> Option<Node<'n>> {
        self.asked.borrow_mut().push(name);
        self.table.get(name).map(|value| Node { text: self.text, value })
    }

    /// The field `name`, or a mistake that it is missing.
    pub fn required(&self, name: &'static str, diagnostics: &mut Diagnostics) -> Option<Node<'n>> {
        let found = self.optional(name);
        if found.is_none() {
            diagnostics.error(self.span(), format!("{} lacks `{name}`", self.what));
        }
        found
    }

    /// All fields in the order of the file, where the names are the user's own.
    #[must_use]
    pub fn all(&self) -> Vec<Named<'n>> {
        let text = self.text;
        let mut all: Vec<_> = self
            .table
            .iter()
            .map(|(name, value)| Named { name: name.get_ref(), name_span: name.span(), value: Node { text, value } })
            .collect();
        all.sort_by_key(|named| named.name_span.start);
        all
    }

    /// Reports every field that was not asked for, with the nearest name that was.
    pub fn finish(self, diagnostics: &mut Diagnostics) {
        self.report_unknown(diagnostics);
    }

    /// Like [`Fields::finish`], for a caller that lent the fields to others.
    pub fn report_unknown(&self, diagnostics: &mut Diagnostics) {
        let asked = self.asked.borrow();
        for named in self.all() {
            if asked.contains(&named.name) {
                continue;
            }
            unknown(&format!("field in {}", self.what), named.name, &named.name_span, asked.iter().copied(), diagnostics);
        }
    }
}

/// Reports that `name` is no known `what`, with the nearest known name or all of them.
pub fn unknown<'k>(what: &str, name: &str, span: &Span, known: impl IntoIterator<Item = &'k str>, diagnostics: &mut Diagnostics) {
    let known: Vec<_> = known.into_iter().collect();
    let message = format!("unknown {what}: `{name}`");
    match nearest(name, known.iter().copied()) {
        Some(near) => diagnostics.error_with_help(span.clone(), message, format!("did you mean `{near}`?")),
        None if known.is_empty() => diagnostics.error(span.clone(), message),
        None => diagnostics.error_with_help(span.clone(), message, format!("known here: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_field_is_named_with_the_nearest_right_one() {
        let mut diagnostics = Diagnostics::new();
        let text = "stpes = 1\nkey = 2\n";
        let document = Document::parse(text, &mut diagnostics);
        let fields = document.root().fields("the file", &mut diagnostics).unwrap();
        fields.optional("steps");
        fields.optional("key");
        fields.finish(&mut diagnostics);
        assert_eq!(
            diagnostics.render("p.toml", text),
            "p.toml:1:1: error: unknown field in the file: `stpes`\n  |\n1 | stpes = 1\n  | ^^^^^\n  = help: did you mean `steps`?\n\n"
        );
    }

    #[test]
    fn a_place_in_a_string_is_found_in_the_file_unless_the_string_was_written_with_escapes() {
        let text = "a = \"xyz\"\nb = 'xyz'\nc = \"\"\"\nxyz\"\"\"\nd = \"\\u0078yz\"\n";
        let mut diagnostics = Diagnostics::new();
        let document = Document::parse(text, &mut diagnostics);
        let fields = document.root().fields("the file", &mut diagnostics).unwrap();
        for (name, expected) in [("a", "z"), ("b", "z"), ("c", "z"), ("d", "\"\\u0078yz\"")] {
            let node = fields.optional(name).unwrap();
            assert_eq!(node.string(name, &mut diagnostics), Some("xyz"));
            assert_eq!(&text[node.inside(&(2..3))], expected, "{name}");
        }
    }
}
