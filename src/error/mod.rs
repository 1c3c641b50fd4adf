//! Three ways to fail, three types.
//!
//! [`Diagnostics`] concern the pipeline file: many at once, each with its place. A [`Reason`] concerns one
//! item, which becomes a [`Reject`]: data, counted, no end of the run. An [`Error`] ends the run.

pub mod diagnostic;
pub mod fatal;
mod nearest;
pub mod reject;

pub use diagnostic::{Diagnostic, Diagnostics, Span};
pub use fatal::{Error, Kind, Result};
pub use nearest::nearest;
pub use reject::{Reason, Reject, Stage};
