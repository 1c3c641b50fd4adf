//! A job: a plan with its files and sinks, opened, surveyed, written and committed.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crossbeam_channel::bounded;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

#[cfg(feature = "dynamodb")]
use crate::aws::{self, Aws};
use crate::error::{Error, Kind, Reject, Result};
use crate::exec::event::{Event, Observer, Pass};
use crate::exec::ledger::{Ledger, wrong_sum};
use crate::exec::pass::walk;
use crate::exec::rejects::{self, RejectsFile};
use crate::exec::route::{Router, key_text, with_arena};
use crate::exec::summary::Summary;
use crate::exec::units::{RunFile, Unit, UnitReport, pack};
use crate::limits;
use crate::model::{EntityId, FileId, SourceId, Targets};
use crate::plan::{Plan, Unclassified};
use crate::proof::collisions::{self, Collisions, KeyBlock, KeyLog};
use crate::shape::Shape;
use crate::sink::batch_files::BatchFiles;
#[cfg(feature = "dynamodb")]
use crate::sink::batch_write::DynamoDbSink;
use crate::sink::import_files::ImportFiles;
#[cfg(feature = "parquet")]
use crate::sink::parquet::ParquetSink;
use crate::sink::{LateReject, Payload, Sink, Writer, Written};
use crate::source::Chunk;
use crate::source::manifest::{self, DataFile, Export};

/// Payloads that a lane may be behind the feeder.
const LANE_QUEUE: usize = 2;

/// Folders in the work folder that belong to one run; the next one empties them.
const OF_A_RUN: [&str; 4] = ["units", "rejects", "keys", "unfinished"];

/// An export for one source of the plan.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name of `[source.NAME]`; `None` for a plain `[source]`.
    pub source: Option<String>,
    /// An export, or data files named one by one.
    pub paths: Vec<PathBuf>,
}

/// Where items go.
#[derive(Clone, Debug)]
pub enum Destination {
    /// `parquet:DIR`
    #[cfg(feature = "parquet")]
    Parquet(PathBuf),
    /// `import:DIR`
    Import(PathBuf),
    /// `batch:DIR`
    Batch(PathBuf),
    /// `dynamodb`
    #[cfg(feature = "dynamodb")]
    DynamoDb(aws::Options),
}

/// What a run may be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sinks, at least one.
    pub destinations: Vec<Destination>,
    /// Replace what an earlier run wrote into the same folders.
    pub overwrite: bool,
    /// Real table names by their name in the pipeline.
    pub table_names: BTreeMap<String, String>,
    /// Workers; the output does not depend on it.
    pub jobs: usize,
    /// Read so many lines at the most. The counts of the manifest cannot be checked then.
    pub limit: Option<u64>,
    /// Carry these entities only; the others are dropped and counted. Empty: all.
    pub only: Vec<String>,
    /// The run's folder: reports, rejects, and what a pass keeps on disk.
    pub work: PathBuf,
}

/// A plan, its data files and its sinks: all that can fail before the first item has been looked at.
pub struct Job {
    plan: Plan,
    options: Options,
    only: Vec<EntityId>,
    exports: Vec<Export>,
    files: Vec<RunFile>,
    units: Vec<Unit>,
    sinks: Vec<Box<dyn Sink>>,
    pool: Arc<ThreadPool>,
    /// Held as long as the job lives, so that two runs never share a work folder.
    _lock: File,
}

impl Job {
    /// Opens the exports and the sinks.
    ///
    /// # Errors
    /// Kind `Usage` when the options do not fit the plan or an output folder is in use, kind `Input` when an export is
    /// not whole, kind `Service` when a live table is not as the pipeline says.
    pub fn open(plan: Plan, inputs: &[Input], options: Options) -> Result<Self> {
        let only = only(&plan, &options.only)?;
        check_destinations(&plan, &options)?;
        check_inputs(inputs, &options.work)?;
        let (exports, files) = open_inputs(&plan, inputs)?;
        let units = pack(&files);
        let pool = ThreadPoolBuilder::new()
            .num_threads(options.jobs)
            .thread_name(|at| format!("worker-{at}"))
            .build()
            .map_err(|error| Error::new(Kind::Usage, "cannot start the workers").with("jobs", options.jobs).caused_by(error))?;
        let pool = Arc::new(pool);
        let lock = lock(&options.work)?;
        let sinks = sinks(&plan, &options, &pool)?;
        for sink in &sinks {
            sink.prepare()?;
        }
        Ok(Self { plan, options, only, exports, files, units, sinks, pool, _lock: lock })
    }

    /// Surveys, writes and commits.
    ///
    /// # Errors
    /// Whatever ends the run; then nothing was published under a final name. What a live sink has written stays written.
    pub fn run(self, observer: &mut dyn Observer) -> Result<Summary> {
        let started = Instant::now();
        self.empty_work_folder()?;
        for export in &self.exports {
            if export.summary.is_some() && !export.checked {
                let message = "the export has no md5 for some of its files, so that a changed file cannot be told from a whole one";
                observer.event(Event::Warning(message.to_owned()));
            }
        }
        let collisions = Arc::new(self.survey(observer)?);
        observer.event(Event::Started { pass: Pass::Write, items: self.items() });
        for unit in &self.units {
            self.run_unit(unit, &collisions, observer)?;
        }
        observer.event(Event::Finished(Pass::Write));
        self.commit(started)
    }

    /// Items to read, where every manifest says so.
    fn items(&self) -> Option<u64> {
        let all = self.files.iter().map(|file| file.file.items).sum::<Option<u64>>()?;
        Some(self.options.limit.map_or(all, |limit| limit.min(all)))
    }

    fn window(&self) -> usize {
        self.options.jobs * 2 + 1
    }

    fn data_files(&self, ids: &[FileId]) -> Vec<(FileId, &DataFile)> {
        ids.iter().map(|id| (*id, &self.files[id.index()].file)).collect()
    }

    /// The first pass.
    fn survey(&self, observer: &mut dyn Observer) -> Result<Collisions> {
        observer.event(Event::Started { pass: Pass::Survey, items: self.items() });
        let partitions = KeyLog::partitions_for(self.items());
        let folder = self.options.work.join("keys");
        let mut log = KeyLog::create(&folder, partitions)?;
        let mut shapes: Vec<Shape> = self.plan.targets.datasets.iter().map(|dataset| Shape::new(&dataset.leading)).collect();
        let mut ledger = Ledger::new(&self.plan);
        let router = Router::new(&self.plan, &self.files, &self.only, Arc::default());
        let want_shapes = self.sinks.iter().any(|sink| sink.wants_shapes());
        for unit in &self.units {
            let work = |chunk: &Chunk| {
                with_arena(|arena| {
                    let parts = router.route(chunk, arena);
                    let mut block = KeyBlock::new(partitions);
                    let mut seen = Vec::new();
                    let mut key = Vec::new();
                    for outgoing in &parts.outgoing {
                        if want_shapes {
                            let mut shape = Shape::new(&self.plan.targets.datasets[outgoing.dataset.index()].leading);
                            outgoing.rows.iter().for_each(|row| shape.observe(&row.item));
                            seen.push((outgoing.dataset, shape));
                        }
                        let Some(table) = outgoing.table else { continue };
                        let schema = &self.plan.targets.table(table).key;
                        for row in &outgoing.rows {
                            key.clear();
                            limits::canonical_key(&row.item, schema, &mut key);
                            block.push(table, &key, row.origin);
                        }
                    }
                    (parts.ledger, parts.fatal, block, seen, chunk.bytes.len() as u64)
                })
            };
            let limit = self.options.limit.map(|limit| limit.saturating_sub(ledger.records()));
            walk(&self.pool, self.window(), &self.data_files(&unit.files), limit, work, |(counted, fatal, block, seen, bytes)| {
                if let Some(fatal) = fatal {
                    return Err(fatal);
                }
                observer.event(Event::Read { items: counted.records(), bytes });
                ledger.add(&counted);
                for (dataset, shape) in &seen {
                    shapes[dataset.index()].merge(shape);
                }
                log.append(&block)
            })?;
            self.check_counts(unit, &ledger)?;
        }
        let partitions = log.finish()?;
        let found = self.pool.install(|| partitions.par_iter().map(|path| collisions::search(path)).collect::<Result<Vec<_>>>())?;
        fs::remove_dir(&folder).map_err(|error| work_failed(&folder, error))?;
        let collisions = collisions::collect(found)?;
        for sink in &self.sinks {
            sink.learn(&shapes)?;
        }
        observer.event(Event::Finished(Pass::Survey));
        Ok(collisions)
    }

    /// Writes one unit and, when everything is durable, its report.
    fn run_unit(&self, unit: &Unit, collisions: &Arc<Collisions>, observer: &mut dyn Observer) -> Result<()> {
        let router = Router::new(&self.plan, &self.files, &self.only, Arc::clone(collisions));
        let encoders: Vec<_> = self.sinks.iter().map(|sink| sink.encoder()).collect();
        let work = |chunk: &Chunk| {
            with_arena(|arena| {
                let parts = router.route(chunk, arena);
                let payloads = encoders.iter().map(|encoder| encoder.encode(&parts.outgoing)).collect::<Result<Vec<_>>>();
                (parts.ledger, parts.rejects, payloads, parts.fatal, chunk.bytes.len() as u64)
            })
        };
        let mut ledger = Ledger::new(&self.plan);
        let mut refused = RejectsFile::new(self.unfinished().join(format!("unit-{:05}.jsonl", unit.number)));
        let failed = AtomicBool::new(false);
        let writers = self.sinks.iter().map(|sink| sink.writer(unit.number)).collect::<Result<Vec<_>>>()?;
        let limit = self.limit_of(unit)?;
        let (walked, lanes) = thread::scope(|threads| {
            let (senders, lanes): (Vec<_>, Vec<_>) = writers
                .into_iter()
                .enumerate()
                .map(|(at, writer)| {
                    let (sender, payloads) = bounded::<Payload>(LANE_QUEUE);
                    let path = self.unfinished().join(format!("unit-{:05}-sink-{}.jsonl", unit.number, at + 1));
                    let failed = &failed;
                    (sender, threads.spawn(move || self.lane(writer, payloads, RejectsFile::new(path), failed)))
                })
                .unzip();
            let walked = walk(
                &self.pool,
                self.window(),
                &self.data_files(&unit.files),
                limit,
                work,
                |(counted, rejects, payloads, fatal, bytes)| {
                    if let Some(fatal) = fatal {
                        return Err(fatal);
                    }
                    observer.event(Event::Read { items: counted.records(), bytes });
                    ledger.add(&counted);
                    refused.append(&rejects, &self.plan, &self.files)?;
                    for (sender, payload) in senders.iter().zip(payloads?) {
                        // A closed lane is only the symptom; the writer behind it holds the cause.
                        sender.send(payload).map_err(|_| Error::new(Kind::Bug, "a sink ended before its input"))?;
                    }
                    Ok(())
                },
            );
            let walked = walked.and_then(|()| self.check_counts(unit, &ledger));
            failed.store(walked.is_err(), Ordering::Release);
            drop(senders);
            let lanes: Vec<_> =
                lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect();
            (walked, lanes)
        });
        let lanes = lanes.into_iter().collect::<Result<Vec<_>>>()?;
        walked?;
        let mut written = Vec::with_capacity(lanes.len());
        let mut rejects = refused.finish()?;
        for lane in lanes.into_iter().flatten() {
            rejects += lane.rejects;
            for (entity, (count, rules)) in lane.refused {
                let counts = &mut ledger.entities[entity.index()];
                counts.written -= count;
                counts.rejected += count;
                for (rule, count) in rules {
                    *ledger.rules.entry(rule).or_default() += count;
                }
            }
            written.push(lane.written);
        }
        let files = unit.files.iter().map(|id| self.files[id.index()].file.name.clone()).collect();
        UnitReport { unit: unit.number, files, ledger, written, rejects }.save(&self.options.work)
    }

    /// One writer with its thread. `None` when the run failed elsewhere.
    fn lane(
        &self,
        mut writer: Box<dyn Writer>,
        payloads: crossbeam_channel::Receiver<Payload>,
        mut rejects: RejectsFile,
        failed: &AtomicBool,
    ) -> Result<Option<Lane>> {
        let mut late = Vec::new();
        let mut refused = BTreeMap::new();
        let mut keep = |late: &mut Vec<LateReject>, rejects: &mut RejectsFile| {
            for reject in &*late {
                let (count, rules): &mut (u64, BTreeMap<String, u64>) = refused.entry(reject.entity).or_default();
                *count += 1;
                *rules.entry(format!("{}/{}", reject.reason.stage.name(), reject.reason.rule)).or_default() += 1;
            }
            let kept: Vec<_> = late.drain(..).map(|reject| self.reject(reject)).collect();
            rejects.append(&kept, &self.plan, &self.files)
        };
        for payload in payloads {
            writer.write(payload, &mut late)?;
            keep(&mut late, &mut rejects)?;
        }
        if failed.load(Ordering::Acquire) {
            return Ok(None);
        }
        let written = writer.finish(&mut late)?;
        keep(&mut late, &mut rejects)?;
        Ok(Some(Lane { written, refused, rejects: rejects.finish()? }))
    }

    fn reject(&self, late: LateReject) -> Reject {
        let LateReject { origin, entity, dataset: _, reason, source } = late;
        let key = key_text(&self.plan.sources[self.files[origin.file.index()].source.index()], &source);
        Reject { origin, entity: Some(entity), key, reason, source }
    }

    /// How many lines of this unit a limited run reads, after those of the units before it.
    fn limit_of(&self, unit: &Unit) -> Result<Option<u64>> {
        let Some(mut left) = self.options.limit else { return Ok(None) };
        for before in 1..unit.number {
            left = left.saturating_sub(UnitReport::load(&self.options.work, before)?.ledger.records());
        }
        Ok(Some(left))
    }

    /// Checks the lines of each file against the manifest.
    fn check_counts(&self, unit: &Unit, ledger: &Ledger) -> Result<()> {
        if self.options.limit.is_some() {
            return Ok(());
        }
        for id in &unit.files {
            let found = ledger.lines.get(&id.0).copied().unwrap_or(0);
            self.files[id.index()].file.expect_items(found)?;
        }
        Ok(())
    }

    /// Checks every report, publishes, and writes the summary.
    fn commit(self, started: Instant) -> Result<Summary> {
        let reports = self.units.iter().map(|unit| UnitReport::load(&self.options.work, unit.number)).collect::<Result<Vec<_>>>()?;
        let mut ledger = Ledger::new(&self.plan);
        for report in &reports {
            ledger.add(&report.ledger);
        }
        ledger.check(|at| self.plan.entities.get(at).map_or("unclassified items".to_owned(), |entity| entity.name.clone()))?;
        let manifest = self.items();
        if self.options.limit.is_none() && manifest.is_some_and(|items| items != ledger.records()) {
            return Err(wrong_sum("the export").with("manifest", manifest.unwrap_or_default()).with("lines read", ledger.records()));
        }
        let mut written = Vec::new();
        for (at, sink) in self.sinks.iter().enumerate() {
            let of_sink: Vec<Written> = reports.iter().filter_map(|report| report.written.get(at).cloned()).collect();
            self.check_sink(sink.as_ref(), &of_sink, &ledger)?;
            written.push((sink.name(), of_sink));
        }
        for (sink, (_, of_sink)) in self.sinks.iter().zip(&written) {
            sink.commit(of_sink)?;
        }
        let rejects = rejects::publish(&self.unfinished(), &self.options.work.join("rejects"))?;
        let summary = Summary::new(&self.plan, &self.exports, &ledger, manifest, &written, rejects, started.elapsed());
        let report =
            serde_json::to_vec_pretty(&summary).map_err(|error| Error::new(Kind::Bug, "cannot write the report").caused_by(error))?;
        crate::store::write_atomically(&self.options.work.join("report.json"), &report)?;
        Ok(summary)
    }

    /// Checks that a sink wrote or refused each item it was given.
    fn check_sink(&self, sink: &dyn Sink, written: &[Written], ledger: &Ledger) -> Result<()> {
        for (dataset, outgone) in &ledger.outgoing {
            let given = outgone.placed + if sink.takes_unplaced() { outgone.unplaced } else { 0 };
            let count =
                |of: fn(&Written) -> &BTreeMap<u32, u64>| written.iter().filter_map(|written| of(written).get(dataset)).sum::<u64>();
            let (items, refused) = (count(|written| &written.items), count(|written| &written.refused));
            if given != items + refused {
                let name = &self.plan.targets.datasets[*dataset as usize].name;
                return Err(wrong_sum(&format!("{name} in {}", sink.name()))
                    .with("given", given)
                    .with("written", items)
                    .with("refused", refused));
            }
        }
        Ok(())
    }

    fn unfinished(&self) -> PathBuf {
        self.options.work.join("unfinished")
    }

    /// Takes away what an earlier run in the same folder left, so that no old report can be taken for a new one.
    fn empty_work_folder(&self) -> Result<()> {
        let work = &self.options.work;
        let absent = |result: std::io::Result<()>| match result {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        };
        let empty = || {
            absent(fs::remove_file(work.join("report.json")))?;
            for folder in OF_A_RUN {
                absent(fs::remove_dir_all(work.join(folder)))?;
            }
            fs::create_dir_all(self.unfinished())
        };
        empty().map_err(|error| work_failed(work, error))
    }
}

/// What a lane gives at its end.
struct Lane {
    written: Written,
    /// Refused items by entity: how many, and how many by rule.
    refused: BTreeMap<EntityId, (u64, BTreeMap<String, u64>)>,
    rejects: u64,
}

fn work_failed(path: &Path, error: std::io::Error) -> Error {
    Error::new(Kind::Output, "cannot use the work folder").with("path", path.display()).caused_by(error)
}

fn lock(work: &Path) -> Result<File> {
    let open = || {
        fs::create_dir_all(work)?;
        File::create(work.join("lock"))
    };
    let file = open().map_err(|error| work_failed(work, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::new(Kind::Usage, "another run uses this work folder")
            .with("path", work.display())
            .with("hint", "wait for it to end, or name another folder with --work")),
        Err(TryLockError::Error(error)) => Err(work_failed(work, error)),
    }
}

fn only(plan: &Plan, names: &[String]) -> Result<Vec<EntityId>> {
    names
        .iter()
        .map(|name| {
            let at = (0..).zip(&plan.entities).find(|(_, entity)| entity.name == *name).map(|(at, _)| EntityId(at));
            at.ok_or_else(|| {
                let known: Vec<_> = plan.entities.iter().map(|entity| entity.name.as_str()).collect();
                Error::new(Kind::Usage, format!("no entity `{name}` in the pipeline")).with("known", known.join(", "))
            })
        })
        .collect()
}

/// Every output must have a sink that takes it, else its items would be lost in silence.
fn check_destinations(plan: &Plan, options: &Options) -> Result<()> {
    if options.destinations.is_empty() {
        return Err(Error::new(Kind::Usage, "no sink is named").with("hint", "add --to parquet:DIR, import:DIR, batch:DIR or dynamodb"));
    }
    check_folders(options)?;
    for name in options.table_names.keys() {
        if !plan.targets.tables.iter().any(|table| table.name == *name) {
            let known: Vec<_> = plan.targets.tables.iter().map(|table| table.name.as_str()).collect();
            return Err(Error::new(Kind::Usage, format!("--table renames `{name}`, which is no table of the pipeline"))
                .with("known", known.join(", ")));
        }
    }
    #[cfg(feature = "parquet")]
    if options.destinations.iter().any(|destination| matches!(destination, Destination::Parquet(_))) {
        return Ok(());
    }
    let homeless = plan.entities.iter().find(|entity| entity.outputs.iter().any(|output| output.table.is_none()));
    if let Some(entity) = homeless {
        return Err(Error::new(Kind::Usage, format!("entity `{}` has no table, and no sink takes it", entity.name))
            .with("hint", "add --to parquet:DIR, or give the entity a table with `to`"));
    }
    if matches!(plan.unclassified, Unclassified::Keep { table: None, .. }) {
        return Err(Error::new(Kind::Usage, "unclassified items are kept but have no table, and no sink takes them")
            .with("hint", "add --to parquet:DIR, or name a table with `to` under [unclassified]"));
    }
    Ok(())
}

/// Each sink needs a place of its own, and the work folder too: what one publishes or removes must be no other's.
fn check_folders(options: &Options) -> Result<()> {
    let mut folders: Vec<(String, PathBuf)> = Vec::new();
    #[cfg(feature = "dynamodb")]
    let mut live = false;
    for destination in &options.destinations {
        let (kind, dir) = match destination {
            #[cfg(feature = "parquet")]
            Destination::Parquet(dir) => ("parquet", dir),
            Destination::Import(dir) => ("import", dir),
            Destination::Batch(dir) => ("batch", dir),
            #[cfg(feature = "dynamodb")]
            Destination::DynamoDb(_) if live => {
                return Err(Error::new(Kind::Usage, "the sink dynamodb is named twice").with("hint", "name it once"));
            }
            #[cfg(feature = "dynamodb")]
            Destination::DynamoDb(_) => {
                live = true;
                continue;
            }
        };
        let (name, folder) = (format!("{kind}:{}", dir.display()), resolved(dir));
        if let Some((other, _)) = folders.iter().find(|(_, other)| folder.starts_with(other) || other.starts_with(&folder)) {
            return Err(Error::new(Kind::Usage, "two sinks have the same folder, or one lies in the other's")
                .with("found", format_args!("{other} and {name}"))
                .with("hint", "give each sink a folder of its own"));
        }
        folders.push((name, folder));
    }
    let work = resolved(&options.work);
    if let Some((sink, _)) = folders.iter().find(|(_, folder)| work.starts_with(folder)) {
        return Err(Error::new(Kind::Usage, "the work folder lies in the folder of a sink")
            .with("found", format_args!("--work {} and {sink}", options.work.display()))
            .with("hint", "name another folder with --work"));
    }
    if let Some((sink, _)) = folders.iter().find(|(_, folder)| OF_A_RUN.iter().any(|own| folder.starts_with(work.join(own)))) {
        return Err(Error::new(Kind::Usage, "a sink's folder is one that each run empties in its work folder")
            .with("found", format_args!("{sink} and --work {}", options.work.display()))
            .with("hint", "name another folder for the sink"));
    }
    Ok(())
}

/// What a run empties must not be what it reads: rejects that are run again are the only copy of their reasons.
fn check_inputs(inputs: &[Input], work: &Path) -> Result<()> {
    let own: Vec<_> = OF_A_RUN.iter().map(|name| resolved(work).join(name)).collect();
    match inputs.iter().flat_map(|input| &input.paths).find(|path| own.iter().any(|own| resolved(path).starts_with(own))) {
        None => Ok(()),
        Some(path) => Err(Error::new(Kind::Usage, "the input lies in the work folder, which the run empties at its start")
            .with("found", format_args!("--from {} and --work {}", path.display(), work.display()))
            .with("hint", "name another folder with --work")),
    }
}

/// The path without links and dots, so that two names of one folder are seen as such; what is not there yet is taken as it is written.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut found = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(found.pop()),
            other => found.push(other),
        }
        // A link is followed before the next `..` is taken away.
        if let Ok(real) = found.canonicalize() {
            found = real;
        }
    }
    found
}

fn open_inputs(plan: &Plan, inputs: &[Input]) -> Result<(Vec<Export>, Vec<RunFile>)> {
    let known = || plan.sources.iter().filter_map(|source| source.name.as_deref()).collect::<Vec<_>>().join(", ");
    let mut exports = Vec::new();
    let mut files = Vec::new();
    for (id, source) in (0..).map(SourceId).zip(&plan.sources) {
        let paths: Vec<_> = inputs.iter().filter(|input| input.source == source.name).flat_map(|input| input.paths.clone()).collect();
        if paths.is_empty() {
            let message = match &source.name {
                Some(name) => format!("no export is named for source `{name}`"),
                None => "no export is named".to_owned(),
            };
            let hint = source.name.as_ref().map_or("add --from EXPORT".to_owned(), |name| format!("add --from {name}=EXPORT"));
            return Err(Error::new(Kind::Usage, message).with("hint", hint));
        }
        let export = manifest::open_all(&paths)?;
        files.extend(export.files.iter().map(|file| RunFile { source: id, file: file.clone() }));
        exports.push(export);
    }
    for input in inputs {
        if !plan.sources.iter().any(|source| source.name == input.source) {
            let message = match &input.source {
                Some(name) => format!("--from names source `{name}`, which the pipeline does not have"),
                None => "the pipeline has several sources, and --from does not say which".to_owned(),
            };
            return Err(Error::new(Kind::Usage, message)
                .with("known", known())
                .with("hint", "write --from NAME=EXPORT, or --from EXPORT for a plain [source]"));
        }
    }
    Ok((exports, files))
}

#[cfg_attr(not(feature = "parquet"), expect(unused_variables, reason = "only Parquet uses the pool"))]
fn sinks(plan: &Plan, options: &Options, pool: &Arc<ThreadPool>) -> Result<Vec<Box<dyn Sink>>> {
    let targets: Arc<Targets> = Arc::new(plan.targets.clone());
    options
        .destinations
        .iter()
        .map(|destination| {
            Ok::<Box<dyn Sink>, Error>(match destination {
                #[cfg(feature = "parquet")]
                Destination::Parquet(dir) => {
                    let pool = Arc::clone(pool);
                    let spawn = Arc::new(move |job: Box<dyn FnOnce() + Send>| pool.spawn_fifo(job));
                    Box::new(ParquetSink::new(dir.clone(), options.overwrite, Arc::clone(&targets), spawn))
                }
                Destination::Import(dir) => {
                    Box::new(ImportFiles::new(dir.clone(), options.overwrite, Arc::clone(&targets), options.table_names.clone()))
                }
                Destination::Batch(dir) => {
                    Box::new(BatchFiles::new(dir.clone(), options.overwrite, Arc::clone(&targets), options.table_names.clone()))
                }
                #[cfg(feature = "dynamodb")]
                Destination::DynamoDb(service) => {
                    Box::new(DynamoDbSink::new(Aws::connect(service)?, Arc::clone(&targets), &options.table_names))
                }
            })
        })
        .collect()
}
