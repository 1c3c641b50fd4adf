//! The error that ends a run: what was found, what was expected, what to do.
//!
//! Values of items never appear here; only places and names do.

use std::error::Error as StdError;
use std::fmt;

/// The result of everything that can end a run.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller may want to do differently for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The command or the pipeline is wrong; nothing was started.
    Usage,
    /// What was read is not what it should be.
    Input,
    /// An output cannot be written, or is in the way.
    Output,
    /// A service refused.
    Service,
    /// A service cannot be reached or gives no usable answer, however often it was asked; the same command goes on.
    Unavailable,
    /// The run was asked to stop; the same command goes on.
    Interrupted,
    /// The ledger does not balance, or a promise of this program was broken.
    Bug,
}

/// One error, with its context and its cause.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    message: String,
    context: Vec<(&'static str, String)>,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this kind. The message starts in lower case and ends without a full stop.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), context: Vec::new(), cause: None }))
    }

    /// Adds a fact that the place of the error knows: `file`, `expected`, `found`, `hint` …
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.0.context.push((name, value.to_string()));
        self
    }

    /// Adds what caused this error.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// The kind, from which the program takes its exit code.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The message alone.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The facts, in the order they were added.
    #[must_use]
    pub fn context(&self) -> &[(&'static str, String)] {
        &self.0.context
    }
}

impl fmt::Display for Error {
    /// The message, then a line for each fact, then the chain of causes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        for (name, value) in &self.0.context {
            write!(f, "\n  {name}: {value}")?;
        }
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, "\n  cause: {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}
