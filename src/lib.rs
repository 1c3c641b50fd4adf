//! Remodels `DynamoDB` tables offline: export, transform, import.
//!
//! dynamorph reads `DynamoDB`'s exports to S3, tells the entities of a single-table design apart, carries every item to its new
//! keys and tables, and writes Parquet, files for `DynamoDB`'s imports, or live puts. The promise behind everything else:
//! nothing is lost and nothing is guessed. Every item read is written, dropped by a rule that the user wrote, or rejected with
//! file, line, key and reason; and the sums are checked.
//!
//! # The way of an item
//!
//! ```text
//!  pipeline file --document, spec--> names with places --bind--> Plan --open--> Job --run--> Summary
//!                                          |
//!                                     Diagnostics
//!
//!  DataFile --unpack, cut--> Chunk --decode, claim--> Batch --steps, keys, limits--> Outgoing --encode--> Payload --write--> Written
//!            reader threads    |                rayon pool, pure functions                           |    one thread a sink
//!                           bounded                                                               bounded
//!                                        Reject ---------------------------------------------------> rejects file
//! ```
//!
//! A job into files walks over its data files once. Each chunk is encoded by what its own items look like; at the end, when all items are
//! known, keys are compared, one schema a dataset is chosen, and files that are narrower are mended. Where a sink cannot take that back (a live
//! table), or the mending would lose something, it walks twice: the survey looks at every item before the first is written, the write pass
//! carries them to the sinks. Both work unit by unit. Nothing has its final name before the whole run has been written and its ledger balances.
//! What a unit did is kept in a report when all of it is durable; a run that was stopped goes on with the units that have none. Afterwards
//! [`verify`] compares a target with what the plan makes of the exports, and `undo` takes a live run back by the log it kept.
//!
//! # Layers
//!
//! The modules are declared in the order of reading; a module names only those before it. `tests/it/layers.rs` checks it.
//!
//! - An item lives inside one worker call: [`model::Item`] borrows from its chunk and from the worker's arena.
//! - `ops`, `codec`, `expr`, `plan` do no IO. Only `exec` starts threads. Only `aws` and `sink::batch_write` are asynchronous.
//! - Three ways to fail, three types: [`error::Diagnostics`] for the pipeline file, [`error::Reject`] for an item, which is data,
//!   and [`error::Error`] for what ends a run.
//! - The order of output depends on the files alone, never on timing or the number of workers.
//!
//! # Use
//!
//! ```
//! let plan = dynamorph::Plan::from_toml(r##"
//! version = 1
//! [source]
//! key  = { partition = "PK", sort = "SK" }
//! type = "EntityType"
//! [table.comments]
//! key  = { partition = "DocRef", sort = "Detail" }
//! type = "EntityType"
//! [entity.Comment]
//! match = { PK = "WS#{ws}", SK = "DOC#{doc}#CMT#{cmt}" }
//! to    = "comments"
//! key   = { DocRef = "DOC#{doc}", Detail = "CMT#{cmt}" }
//! "##).map_err(|mistakes| mistakes.to_string())?;
//! assert_eq!(plan.entities()[0].name, "Comment");
//! assert!(dynamorph::check_examples(&plan).is_empty());
//! # Ok::<(), String>(())
//! ```

pub mod model;

pub mod error;

pub mod document;

#[cfg(feature = "aws")]
pub mod aws;

pub mod store;

pub mod limits;

pub mod codec;

pub mod shape;

pub mod expr;

pub mod ops;

pub mod source;

pub mod sink;

mod spec;

pub mod plan;

pub mod proof;

mod exec;

pub use exec::{
    Counts, Destination, ExampleFailure, Input, Inspection, Job, Options, Status, Stop, Summary, UNIT_BYTES, check_examples, event,
    inspect, status,
};
#[cfg(all(feature = "dynamodb", feature = "s3"))]
pub use exec::{LoadEvent, LoadOptions, LoadSummary, TableLoad, check_new, load};
pub use exec::{RowReport, Shown, Target, TargetReport, Verification, VerifyOptions, verify};
#[cfg(feature = "dynamodb")]
pub use exec::{UndoCounts, UndoOptions, Undone, undo};
pub use plan::Plan;
