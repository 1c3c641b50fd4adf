//! What a live sink is told: where to write, how fast, and over what.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use crate::aws;
use crate::sink::batch_write::condition::Condition;

/// What a live sink is told.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where to connect, and as whom.
    pub aws: aws::Options,
    /// The most write units a second, over all tables and their indexes. Without it the service alone says what is too much.
    pub max_write_units: Option<NonZeroU32>,
    /// The time in which the rate grows from a tenth of `max_write_units` to the whole.
    pub ramp: Option<Duration>,
    /// What may be written over.
    pub condition: Condition,
    /// Creates the tables that do not exist. One that exists is checked and never changed.
    pub create_tables: bool,
    /// The folder that gets a log of what puts replace, from which they can be taken back.
    pub undo_log: Option<PathBuf>,
}

impl Options {
    /// What decides which items a table has in the end, as a text for comparing.
    pub(crate) fn identity(&self) -> String {
        // Destructured, so that a new option cannot be forgotten here.
        let Self { aws: aws::Options { region, endpoint_url, .. }, max_write_units: _, ramp: _, condition, create_tables: _, undo_log } =
            self;
        // A log that holds a part of a run would take back a part of it.
        format!("dynamodb {region:?} {endpoint_url:?} {condition:?} {:?}", undo_log.is_some())
    }
}
