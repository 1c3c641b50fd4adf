//! `DynamoDB`'s condition-expression language, with literals in place of placeholders.

use crate::expr::SyntaxError;
use crate::model::Item;

/// A parsed condition.
#[derive(Clone, Debug)]
pub struct Condition {}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// The first mistake, with its place in `text`.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let _ = text;
        unimplemented!()
    }

    /// Whether the item meets the condition, by `DynamoDB`'s own typing rules.
    #[must_use]
    pub fn holds(&self, item: &Item<'_>) -> bool {
        let _ = item;
        unimplemented!()
    }
}

impl std::fmt::Display for Condition {
    /// The condition as written.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let _ = f;
        unimplemented!()
    }
}
