//! The only threads, channels and pool: opens a job, runs its units, commits.
//!
//! Where all sinks write to files that nobody sees before the commit, a job walks over its data files once: units are written ahead, and
//! what was seen on the way (keys, shapes) decides at the end whether the sinks can settle it. Else it walks twice: the *survey* looks at every
//! item before the first is written, the *write* pass carries the items to the sinks, unit by unit. Every pass checks the files against the
//! manifest.

mod claim;
pub mod event;
mod examples;
mod inspect;
mod job;
mod keys;
mod ledger;
#[cfg(all(feature = "dynamodb", feature = "s3"))]
mod load;
mod made;
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
mod workers;

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
