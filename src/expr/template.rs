//! Key templates such as `DOC#{doc | pad(10)}`: match a key, render a key.

use crate::expr::SyntaxError;
use crate::model::Item;

/// A parsed template.
#[derive(Clone, Debug)]
pub struct Template {}

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
        let _ = text;
        unimplemented!()
    }

    /// The names in braces that could be captures (plain names without `.` or `[`), in order of first use, each once.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        unimplemented!()
    }

    /// Gives each name in `captures` its slot there; such a name takes the capture first, the attribute second.
    pub fn bind(&mut self, captures: &[String]) {
        let _ = captures;
        unimplemented!()
    }

    /// Whether the template can match keys: every name is plain, and no two names stand side by side without a literal between.
    ///
    /// # Errors
    /// The part that makes it ambiguous.
    pub fn check_matchable(&self) -> Result<(), SyntaxError> {
        unimplemented!()
    }

    /// How literal it is: more literal bytes win, then fewer names.
    #[must_use]
    pub fn literalness(&self) -> (usize, std::cmp::Reverse<usize>) {
        unimplemented!()
    }

    /// Whether some key could match both templates; may say yes in doubt.
    #[must_use]
    pub fn overlaps(&self, other: &Template) -> bool {
        let _ = other;
        unimplemented!()
    }

    /// Matches the whole of `key` and fills the slots of its captures; a slot that is already filled must match the same text.
    /// On `false` the slots are in no defined state.
    #[must_use]
    pub fn matches<'a>(&self, key: &'a str, captures: &mut [Option<&'a str>]) -> bool {
        let _ = (key, captures);
        unimplemented!()
    }

    /// Renders the template for an item, in the item's arena.
    ///
    /// # Errors
    /// Which part is missing or cannot be used.
    pub fn render<'a>(&self, captures: &[Option<&'a str>], item: &Item<'a>) -> Result<&'a str, RenderError> {
        let _ = (captures, item);
        unimplemented!()
    }
}

impl std::fmt::Display for Template {
    /// The template as written.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let _ = f;
        unimplemented!()
    }
}
