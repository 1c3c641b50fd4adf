//! The only threads, channels and pool: opens a job, runs its units, commits.
//!
//! A job walks over its data files twice. The *survey* looks at every item before the first is written: it counts, finds
//! keys that collide and learns what the values of each dataset look like. The *write* pass carries the items to the
//! sinks, unit by unit. Both passes check the files against the manifest.

pub mod event;
mod examples;
mod inspect;
mod job;
mod ledger;
#[cfg(all(feature = "dynamodb", feature = "s3"))]
mod load;
mod options;
mod pass;
mod rejects;
mod route;
mod summary;
mod units;
mod work;

pub use examples::{ExampleFailure, check_examples};
pub use inspect::{Inspection, inspect};
pub use job::Job;
pub use ledger::Counts;
#[cfg(all(feature = "dynamodb", feature = "s3"))]
pub use load::{LoadEvent, LoadOptions, LoadSummary, TableLoad, check_new, load};
pub use options::{Destination, Input, Options};
pub use summary::Summary;
