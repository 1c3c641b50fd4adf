//! The only threads, channels and pool: opens a job, runs its units, commits.
//!
//! A job walks over its data files twice. The *survey* looks at every item before the first is written: it counts, finds
//! keys that collide and learns what the values of each dataset look like. The *write* pass carries the items to the
//! sinks, unit by unit. Both passes check the files against the manifest.

pub mod event;
mod examples;
mod inspect;
mod job;
mod keys;
mod ledger;
#[cfg(all(feature = "dynamodb", feature = "s3"))]
mod load;
mod options;
mod pass;
mod record;
mod rejects;
mod route;
mod state;
mod status;
mod stop;
mod summary;
#[cfg(feature = "dynamodb")]
mod undo;
mod units;
mod verify;
mod work;

pub use examples::{ExampleFailure, check_examples};
pub use inspect::{Inspection, inspect};
pub use job::Job;
pub use ledger::Counts;
#[cfg(all(feature = "dynamodb", feature = "s3"))]
pub use load::{LoadEvent, LoadOptions, LoadSummary, TableLoad, check_new, load};
pub use options::{Destination, Input, Options, UNIT_BYTES};
pub use status::{Status, status};
pub use stop::Stop;
pub use summary::Summary;
#[cfg(feature = "dynamodb")]
pub use undo::{UndoCounts, UndoOptions, Undone, undo};
pub use verify::{RowReport, Shown, Target, TargetReport, Verification, VerifyOptions, verify};
