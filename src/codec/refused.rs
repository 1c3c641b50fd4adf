//! Why a line is refused, on its way from the place in the line to the caller.

use crate::error::{Reason, Stage};
use crate::model::Place;

/// A reason on its way up. Boxed, so that the results of the hot path stay small.
pub(super) struct Refused(Box<Reason>);

impl Refused {
    pub(super) fn new(rule: &'static str, message: String) -> Self {
        Self(Box::new(Reason::new(Stage::Decode, rule, message)))
    }

    pub(super) fn into_reason(self) -> Reason {
        *self.0
    }
}

/// A refusal at the byte `at` of the line.
#[cold]
pub(super) fn refusal(at: usize, rule: &'static str, place: &Place<'_>, message: &str) -> Refused {
    let message = match place {
        Place::Item => format!("column {}: {message}", at + 1),
        inside => format!("column {}, attribute {}: {message}", at + 1, short(&inside.to_string())),
    };
    Refused::new(rule, message)
}

/// The text, or its start where it is too long for a message.
pub(super) fn short(text: &str) -> String {
    const CHARACTERS: usize = 200;
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
