//! Live `BatchWriteItem`, or `PutItem` under a condition, through the AWS SDK.
//!
//! The pool encodes each item once, as the JSON that is sent; a request is put together from such pieces and handed to the
//! SDK as a body, which the SDK signs and sends. So the size on the wire is exact and a retry costs a copy of bytes. Reading
//! the answer, credentials and addresses are the SDK's; when to send again is decided in `queue`, since the SDK knows
//! nothing of items that the service left unprocessed.

mod condition;
mod cost;
mod fresh;
mod options;
mod prepare;
mod queue;
mod rate;
mod request;
mod undo_log;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use aws_sdk_dynamodb::types::TableDescription;
use rustc_hash::FxHasher;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::aws::Aws;
use crate::aws::dynamodb::DynamoDb;
use crate::codec;
use crate::error::{Error, Kind, Result};
use crate::model::{TableId, Targets};
use crate::sink::batch_write::condition::Known;
use crate::sink::batch_write::cost::Costs;
use crate::sink::batch_write::prepare::Preparation;
use crate::sink::batch_write::queue::{Chunk, Queue};
use crate::sink::batch_write::rate::Rate;
use crate::sink::batch_write::request::ServiceTable;
use crate::sink::batch_write::undo_log::{ToLog, UndoLog};
use crate::sink::put_requests::{self, BYTES, Puts, TablePuts};
use crate::sink::{Encoder, LateReject, Outgoing, Sink, Writer, Written};
use crate::store::{self, Begin};

pub use crate::sink::batch_write::condition::Condition;
pub use crate::sink::batch_write::options::Options;

/// How much goes on at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most requests under way at a time, each of up to 25 puts; under a condition a request holds one put, and four times as
    /// many go on. Throttling lowers the number for a while.
    pub requests: usize,
    /// The most bytes of items, as JSON and as read, that wait or are under way; a single larger chunk passes alone.
    pub memory: usize,
    /// How long the service may give no usable answer at all before the run ends.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: 16, memory: 64 << 20, patience: Duration::from_mins(1) }
    }
}

/// What the encoder gives the writer: the puts of a chunk, by table.
#[derive(Debug)]
pub struct Payload {
    tables: Vec<TablePayload>,
}

/// Puts of one table.
#[derive(Debug)]
struct TablePayload {
    table: TableId,
    puts: Puts,
    /// A number for each key, equal for equal keys; two keys may share one.
    hashes: Vec<u64>,
    costs: Costs,
    /// What the condition needs.
    known: Known,
    /// What the undo log needs.
    to_log: ToLog,
    /// The items as read, one after the other; a refused item is reported with it.
    sources: Vec<u8>,
    source: Vec<Range<usize>>,
    /// The items that no request can hold or that no condition can compare; they are not among the puts.
    refused: Vec<LateReject>,
}

/// The sink `dynamodb`.
#[derive(Debug)]
pub struct DynamoDbSink {
    aws: Arc<Aws>,
    options: Options,
    targets: Arc<Targets>,
    /// By [`TableId`].
    tables: Arc<[ServiceTable]>,
    limits: Limits,
    /// `None` where the rate is not limited.
    rate: Option<Arc<Mutex<Rate>>>,
    /// What the service says of the tables, by [`TableId`]; `None` for one that is missing. Empty until they were looked at.
    found: Mutex<Vec<Option<TableDescription>>>,
    /// Puts that the service has taken, or that the condition kept.
    taken: Arc<AtomicU64>,
    /// Whether the writers should end soon.
    stopping: watch::Sender<bool>,
}

impl DynamoDbSink {
    /// A sink that writes to the tables of `targets`. `names` maps a table's name in the pipeline to its name in the service;
    /// a table that is not in it keeps its name.
    ///
    /// # Errors
    /// Kind `Usage` when no region is known, kind `Service` when the threads that talk to AWS cannot be started.
    pub fn new(options: Options, targets: Arc<Targets>, names: &BTreeMap<String, String>) -> Result<Self> {
        let aws = Aws::connect(&options.aws)?;
        let service_table = |table: &crate::model::Table| ServiceTable {
            name: names.get(&table.name).unwrap_or(&table.name).clone(),
            key: table.key.clone(),
        };
        let tables: Arc<[_]> = targets.tables.iter().map(service_table).collect();
        let rate = options.max_write_units.map(|most| Arc::new(Mutex::new(Rate::new(most, options.ramp, tables.len(), Instant::now()))));
        Ok(Self {
            aws,
            options,
            targets,
            tables,
            limits: Limits::default(),
            rate,
            found: Mutex::default(),
            taken: Arc::default(),
            stopping: watch::Sender::new(false),
        })
    }

    fn preparation(&self) -> Result<Preparation<'_>> {
        Ok(Preparation {
            service: DynamoDb::connect(Arc::clone(&self.aws))?.with_patience(self.limits.patience),
            tables: self.targets.tables.iter().zip(self.tables.iter().map(|table| table.name.as_str())).collect(),
            patience: self.limits.patience,
            create: self.options.create_tables,
            most: self.options.max_write_units,
        })
    }

    fn found(&self) -> MutexGuard<'_, Vec<Option<TableDescription>>> {
        // A list that is replaced whole is good after a panic too.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how much goes on at a time.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

impl Sink for DynamoDbSink {
    fn name(&self) -> String {
        "dynamodb".to_owned()
    }

    /// Asks for every table: it must be there, become active within a minute, and have the keys that the pipeline says. With
    /// `create_tables` it may be missing.
    fn prepare(&self, _begin: Begin) -> Result<Vec<String>> {
        let preparation = self.preparation()?;
        let found = preparation.look()?;
        let findings = preparation.all_findings(&found);
        *self.found() = found;
        Ok(findings)
    }

    /// Creates the tables that are missing, and says in the undo log where the run writes.
    fn ready(&self) -> Result<Vec<String>> {
        let preparation = self.preparation()?;
        let mut found = self.found();
        let created = preparation.create_missing(&mut found)?;
        let mut said = vec![format!("writing {}", preparation.place(&found))];
        said.extend(created.into_iter().map(|name| format!("table {name} was created")));
        drop(found);
        if let (Some(folder), Some(identity)) = (&self.options.undo_log, self.identity()) {
            store::write_atomically(&folder.join(TARGET), identity.as_bytes())?;
        }
        Ok(said)
    }

    fn identity(&self) -> Option<String> {
        let found = self.found();
        let tables = self.tables.iter().zip(&*found).map(|(table, found)| TargetTable {
            name: &table.name,
            arn: found.as_ref().and_then(TableDescription::table_arn),
            id: found.as_ref().and_then(TableDescription::table_id),
        });
        let (region, endpoint) = self.aws.dynamodb_address();
        let target = Target { region, endpoint: endpoint.as_deref(), tables: tables.collect() };
        serde_json::to_string(&target).ok()
    }

    fn taken(&self) -> Option<u64> {
        Some(self.taken.load(Ordering::Relaxed))
    }

    fn encoder(&self) -> Arc<dyn Encoder> {
        Arc::new(PutEncoder {
            targets: Arc::clone(&self.targets),
            tables: Arc::clone(&self.tables),
            condition: self.options.condition.clone(),
            paced: self.options.max_write_units.is_some(),
            logged: self.options.undo_log.is_some(),
        })
    }

    fn writer(&self, unit: u32) -> Result<Box<dyn Writer>> {
        let (chunks, arriving) = unbounded_channel();
        let (late, refused) = mpsc::channel();
        let room = Arc::new(Semaphore::new(permits(self.limits.memory)));
        let target = queue::Target {
            client: self.aws.dynamodb(),
            tables: Arc::clone(&self.tables),
            place: self.aws.place(),
            limits: self.limits,
            condition: self.options.condition.clone(),
            rate: self.rate.clone(),
            taken: Arc::clone(&self.taken),
            undo: self.options.undo_log.as_deref().map(|folder| UndoLog::open(&self.aws, folder, unit)).transpose()?,
        };
        let queue = Queue::new(target, late, self.stopping.subscribe());
        let closing = Arc::clone(&room);
        let running = self.aws.spawn(async move {
            let written = queue.run(arriving).await;
            // Whoever waits for room would wait forever once nobody makes any.
            closing.close();
            written
        });
        Ok(Box::new(Lane {
            aws: Arc::clone(&self.aws),
            chunks: Some(chunks),
            room,
            limits: self.limits,
            refused,
            unsendable: BTreeMap::new(),
            running: Some(running),
        }))
    }

    /// Requests under way are waited for, others are not sent.
    fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Nothing is left to do: what was acknowledged is there.
    fn commit(&self, _written: &[Written]) -> Result<()> {
        Ok(())
    }
}

/// The file in the folder of an undo log that says where the run writes.
const TARGET: &str = "target.json";

/// Where a run writes.
#[derive(serde::Serialize)]
struct Target<'t> {
    region: &'t str,
    /// Another address than the service's own.
    endpoint: Option<&'t str>,
    tables: Vec<TargetTable<'t>>,
}

/// A table, by its name and by what tells it from one of the same name elsewhere or later.
#[derive(serde::Serialize)]
struct TargetTable<'t> {
    name: &'t str,
    arn: Option<&'t str>,
    id: Option<&'t str>,
}

/// Bytes that a put takes beside its texts, about: its key, its places, what it costs.
const PUT: usize = 160;

/// Room is counted in units of this many bytes, because the count has 32 bits.
const PERMIT: usize = 1024;

fn permits(bytes: usize) -> usize {
    bytes.div_ceil(PERMIT).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize))
}

/// The half in the pool.
#[derive(Debug)]
struct PutEncoder {
    targets: Arc<Targets>,
    /// By [`TableId`].
    tables: Arc<[ServiceTable]>,
    condition: Condition,
    /// Whether partition keys of indexes are paced.
    paced: bool,
    /// Whether there is an undo log.
    logged: bool,
}

impl Encoder for PutEncoder {
    fn encode(&self, outgoing: &[Outgoing<'_>]) -> Result<crate::sink::Payload> {
        let name = |table: TableId| self.tables[table.index()].name.as_str();
        let tables = put_requests::encode(outgoing, &self.targets, name, BYTES, |row| self.condition.refuse(row))?
            .into_iter()
            .map(|TablePuts { table, puts, rows, refused, .. }| {
                let hash = |at| {
                    let mut hasher = FxHasher::default();
                    (table, puts.key(at)).hash(&mut hasher);
                    hasher.finish()
                };
                let hashes = (0..puts.len()).map(hash).collect();
                let costs = Costs::of(table, self.targets.table(table), &puts, &rows, self.paced);
                let known = Known::of(&self.condition, &rows);
                let to_log = if self.logged { ToLog::of(&self.targets.table(table).key, &rows) } else { ToLog::default() };
                let mut sources = Vec::new();
                let mut source = Vec::with_capacity(puts.len());
                for row in rows {
                    let start = sources.len();
                    sources.extend_from_slice(&codec::json_line(row.source));
                    source.push(start..sources.len());
                }
                TablePayload { table, puts, hashes, costs, known, to_log, sources, source, refused }
            })
            .collect();
        Ok(crate::sink::Payload::Puts(Payload { tables }))
    }
}

/// The half on the lane: hands chunks to the queue, which works by itself, and waits while there is no room.
struct Lane {
    aws: Arc<Aws>,
    /// `None` once nothing more comes.
    chunks: Option<UnboundedSender<Arc<Chunk>>>,
    room: Arc<Semaphore>,
    limits: Limits,
    refused: mpsc::Receiver<LateReject>,
    /// Items that were refused before they came to the queue, by dataset id.
    unsendable: BTreeMap<u32, u64>,
    /// `None` once its result was taken.
    running: Option<JoinHandle<Result<Written>>>,
}

impl Writer for Lane {
    fn write(&mut self, payload: crate::sink::Payload, late: &mut Vec<LateReject>) -> Result<()> {
        let crate::sink::Payload::Puts(payload) = payload else {
            return Err(Error::new(Kind::Bug, "a payload of another sink reached the live writer"));
        };
        for mut table in payload.tables {
            for reject in &table.refused {
                *self.unsendable.entry(reject.dataset.0).or_default() += 1;
            }
            late.append(&mut table.refused);
            if table.puts.len() == 0 {
                continue;
            }
            let texts = table.puts.bytes() + table.known.bytes() + table.to_log.bytes() + table.sources.len();
            let bytes = (texts + table.puts.len() * PUT).min(self.limits.memory);
            let permits = u32::try_from(permits(bytes)).expect("permits fit 32 bits");
            let room = self.aws.block_on(Arc::clone(&self.room).acquire_many_owned(permits));
            let sent = match (room, &self.chunks) {
                (Ok(room), Some(chunks)) => chunks.send(Arc::new(Chunk::new(table, room))).is_ok(),
                _ => false,
            };
            if !sent {
                // A queue that takes nothing more is only the symptom; its result holds the cause.
                self.result()?;
                return Err(Error::new(Kind::Bug, "the queue of puts ended before the last chunk"));
            }
        }
        late.extend(self.refused.try_iter());
        Ok(())
    }

    fn finish(mut self: Box<Self>, late: &mut Vec<LateReject>) -> Result<Written> {
        self.chunks = None;
        let mut written = self.result()?;
        late.extend(self.refused.try_iter());
        for (dataset, items) in std::mem::take(&mut self.unsendable) {
            *written.refused.entry(dataset).or_default() += items;
        }
        Ok(written)
    }
}

impl Lane {
    /// Waits for the queue to end.
    fn result(&mut self) -> Result<Written> {
        let running = self.running.take().ok_or_else(|| Error::new(Kind::Bug, "the queue of puts has ended already"))?;
        self.aws.block_on(running).map_err(|cause| Error::new(Kind::Bug, "the queue of puts broke off").caused_by(cause))?
    }
}

impl Drop for Lane {
    /// A writer that is dropped before its end belongs to a run that ends; nothing more is sent.
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}
