//! Two small languages: key templates and `DynamoDB`'s condition expressions. One parser, one evaluator each.

pub mod condition;
pub mod template;

pub use condition::Condition;
pub use template::Template;

/// A mistake in the text of a template or a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The bytes of the text that are wrong.
    pub at: std::ops::Range<usize>,
    /// What was found and what was expected.
    pub message: String,
    /// The next move, where one is known.
    pub help: Option<String>,
}
