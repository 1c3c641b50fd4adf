//! Where items go. Each sink has two halves: an [`Encoder`] that runs in the pool and a [`Writer`] that
//! one thread owns. What a unit writes is a function of the unit and the plan alone.

pub mod batch_files;
#[cfg(feature = "dynamodb")]
pub mod batch_write;
#[cfg(feature = "iceberg")]
pub mod iceberg;
pub mod import_files;
#[cfg(feature = "parquet")]
pub mod parquet;
mod put_requests;
mod table_folders;

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Reason, Result};
use crate::model::{ByAttribute, DatasetId, EntityId, Origin, Row, TableId};
use crate::shape::Shape;
use crate::store::Begin;

/// Rows of one chunk that leave for one dataset and one table, in order. All checks are behind them.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The entity that the rows were classified as.
    pub entity: EntityId,
    /// The dataset.
    pub dataset: DatasetId,
    /// The table; `None`: Parquet only.
    pub table: Option<TableId>,
    /// The rows; `size` is set.
    pub rows: Vec<Row<'a>>,
}

/// What is known of the rows of one chunk that leave for one dataset.
#[derive(Debug)]
pub struct Seen<'r, 'a> {
    /// The dataset.
    pub dataset: DatasetId,
    /// What the rows look like.
    pub shape: Arc<Shape>,
    /// Their values, in the order of [`Outgoing`] and of the rows in it.
    pub values: ByAttribute<'r, 'a>,
}

/// What an encoder made of a chunk, on its way to the writer of the same sink.
#[derive(Debug)]
pub enum Payload {
    /// For [`import_files`].
    Import(import_files::Payload),
    /// For [`batch_files`].
    Batch(batch_files::Payload),
    /// For [`parquet`].
    #[cfg(feature = "parquet")]
    Parquet(parquet::Payload),
    /// For [`batch_write`].
    #[cfg(feature = "dynamodb")]
    Puts(batch_write::Payload),
}

/// The half that runs in the pool: pure, shared by all workers.
pub trait Encoder: Send + Sync {
    /// Encodes what one chunk gives. The payloads reach the writer in the order of the chunks.
    ///
    /// # Errors
    /// Kind `Bug` when an item is not as the survey saw it.
    fn encode(&self, outgoing: &[Outgoing<'_>]) -> Result<Payload>;

    /// The same before all items were looked at; `seen` is what is known of the rows, a dataset each.
    ///
    /// # Errors
    /// When an item does not fit a schema that was given.
    fn encode_ahead(&self, outgoing: &[Outgoing<'_>], seen: &[Seen<'_, '_>]) -> Result<Payload> {
        let _ = seen;
        self.encode(outgoing)
    }
}

/// Runs a job in the pool, at some time and in any order; returns at once. For work of a writer that is too much for its lane.
/// The job never waits.
pub type Spawn = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// Fails where the run was asked to stop; for work of a sink that takes long. May be asked from any thread.
pub type GoOn = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// An item that the target refused after all checks had passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateReject {
    /// Where it was read.
    pub origin: Origin,
    /// What it was classified as.
    pub entity: EntityId,
    /// The dataset it was counted for.
    pub dataset: DatasetId,
    /// Why.
    pub reason: Reason,
    /// The item as a line of `DynamoDB` JSON, as it was read.
    pub source: Vec<u8>,
}

/// The half that one thread owns.
pub trait Writer: Send {
    /// Takes the next payload. Refused items are added to `late`, at once or at a later call.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn write(&mut self, payload: Payload, late: &mut Vec<LateReject>) -> Result<()>;

    /// Returns only when everything is durable under the unit's temporary names, or acknowledged.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn finish(self: Box<Self>, late: &mut Vec<LateReject>) -> Result<Written>;
}

/// A sink of a run.
pub trait Sink: Send + Sync {
    /// As the user wrote it: `parquet:out/lake`.
    fn name(&self) -> String;

    /// Looks at the target before anything is read: is it there, is it free, has it the right keys? Gives findings, a line each: what
    /// the user should know of the target although it stands in no way.
    ///
    /// # Errors
    /// What is in the way, and what to do.
    fn prepare(&self, begin: Begin) -> Result<Vec<String>>;

    /// Whether it takes items that go to no table.
    fn takes_unplaced(&self) -> bool {
        false
    }

    /// Whether it must know what the values of its datasets look like before it can encode the first of them.
    fn wants_shapes(&self) -> bool {
        false
    }

    /// Whether units may be written before all items were looked at, since nothing that was written is seen before [`commit`](Self::commit)
    /// and [`settle`](Self::settle) mends it. Where all sinks of a run say so, the export is read once.
    fn writes_ahead(&self) -> bool {
        false
    }

    /// Takes the shapes of all items, by dataset id, after units were written without them, and mends what has turned out too narrow.
    /// Called in place of [`learn`](Self::learn). A call that was cut short is finished by the same call. `go_on` is asked before each
    /// piece of work that takes long.
    ///
    /// # Errors
    /// When no schema can hold such values, or what was written cannot be mended; and what `go_on` says.
    fn settle(&self, shapes: &[Shape], written: Vec<Written>, go_on: &GoOn) -> Result<Settled> {
        let _ = go_on;
        Ok(Settled { findings: self.learn(shapes)?, written: Some(written) })
    }

    /// Takes what the survey of all items found, by dataset id; gives what the user should know of it. Called once, before the first
    /// encoder is asked for.
    ///
    /// # Errors
    /// When no schema can hold such values.
    fn learn(&self, shapes: &[Shape]) -> Result<Vec<String>> {
        let _ = shapes;
        Ok(Vec::new())
    }

    /// What is given all items of the survey before any is written, and fails at the first that does not fit a schema which was given;
    /// `None` where all fit.
    fn checker(&self) -> Option<Arc<dyn Encoder>> {
        None
    }

    /// The schema of what it writes, for a file; `None` where it has none. Known once it has learned.
    ///
    /// # Errors
    /// When it cannot be written down.
    fn schema(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// The half for the pool.
    fn encoder(&self) -> Arc<dyn Encoder>;

    /// The half for the lane, writing the files of one unit. `unit` is 1, 2, …; names carry it.
    ///
    /// # Errors
    /// When an output cannot be created.
    fn writer(&self, unit: u32) -> Result<Box<dyn Writer>>;

    /// Makes the target ready for the first writer, once all items were looked at: what is missing and wanted is made now. Gives what was
    /// done, a line each.
    ///
    /// # Errors
    /// What is in the way, and what to do.
    fn ready(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Which target it is, for a sink whose target lives on its own: a run that goes on must meet the same. Known once it was prepared.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Items that the target has taken since the sink was made, for a sink whose target is slow by nature.
    fn taken(&self) -> Option<u64> {
        None
    }

    /// Asks the writers to end soon, since the run stops: one that waits for its target fails in place of waiting on.
    fn stop(&self) {}

    /// Takes away what units wrote, for a run that ends before anything was published and never goes on.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn forget(&self) -> Result<()> {
        Ok(())
    }

    /// Checks that files which units wrote are still there as reported, before anything is published. `published`: they may have their
    /// final names already, since that was cut short.
    ///
    /// # Errors
    /// Kind `Output` for the first file that is missing or another; it can only be written anew.
    fn check(&self, written: &[Written], look: Look, published: bool) -> Result<()> {
        let _ = (written, look, published);
        Ok(())
    }

    /// Publishes what all units wrote: checks that the files are there as reported and gives them their names.
    /// Without this call nothing is visible under a final name. A publication that was cut short is finished by the same call.
    ///
    /// # Errors
    /// When a file is missing or cannot be renamed.
    fn commit(&self, written: &[Written]) -> Result<()>;
}

/// How closely files are looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// They are there, and as long as they were.
    Size,
    /// They hold what they held, as far as their checksums are known and they can be read.
    Content,
}

/// What became of units that were written ahead.
#[derive(Debug)]
pub struct Settled {
    /// What the user should know of the values.
    pub findings: Vec<String>,
    /// What the units wrote, as it is now; `None`: they must be written again, now that the shapes are known.
    pub written: Option<Vec<Written>>,
}

/// What a writer wrote in one unit.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Written {
    /// Items written, by dataset id; absent is 0. A Parquet-only dataset counts in no table sink.
    pub items: std::collections::BTreeMap<u32, u64>,
    /// Items that the target refused, by dataset id.
    pub refused: std::collections::BTreeMap<u32, u64>,
    /// Items that were not written because the user's condition said so, by dataset id: the target has another item under their key.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub kept: std::collections::BTreeMap<u32, u64>,
    /// What went to each table, by table id, where the sink must know it at the commit.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub tables: std::collections::BTreeMap<u32, TableContent>,
    /// Files, in the order they were written.
    pub files: Vec<WrittenFile>,
    /// Bytes written or sent, after compression.
    pub bytes: u64,
    /// Whether something was written in a form that cannot be mended exactly, should the schema become another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inexact: bool,
    /// What went over the wire, for a live sink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// What files hold of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TableContent {
    /// Items by dataset id.
    pub items: std::collections::BTreeMap<u32, u64>,
    /// Bytes of text, before compression.
    pub text_bytes: u64,
}

/// What a live sink did to bring its items to the service. Not the same from run to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// Requests sent, each attempt counted.
    pub requests: u64,
    /// Puts in them, each attempt counted.
    pub puts: u64,
    /// Puts that were sent again, whatever the cause.
    pub sent_again: u64,
    /// Answers that said too much was asked: throttled requests, and those with unprocessed puts.
    pub throttled: u64,
    /// Requests without a usable answer: errors of the service, time limits, broken connections.
    pub failed: u64,
    /// Write units as the service counted them, of tables and indexes together; as estimated where it did not.
    pub write_units: f64,
    /// Seconds from the first request to the last answer.
    pub seconds: f64,
}

impl Traffic {
    /// Adds what another unit's writer did.
    pub fn add(&mut self, other: &Traffic) {
        let Traffic { requests, puts, sent_again, throttled, failed, write_units, seconds } = other;
        self.requests += requests;
        self.puts += puts;
        self.sent_again += sent_again;
        self.throttled += throttled;
        self.failed += failed;
        self.write_units += write_units;
        self.seconds += seconds;
    }
}

/// One file that was written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WrittenFile {
    /// The path below the sink's folder that it has after the commit.
    pub path: PathBuf,
    /// Items in it.
    pub items: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// A fingerprint of its schema, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<u64>,
    /// The SHA-256 of its bytes in hexadecimal digits, where it was calculated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}
