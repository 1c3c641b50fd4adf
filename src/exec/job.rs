//! A job: a plan with its files and sinks, opened, written and committed; surveyed before, or settled after.

mod ahead;
mod unit;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::time::Instant;

use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use crate::error::{Error, Kind, Result};
use crate::exec::claim;
use crate::exec::event::{Event, Observer, Pass};
use crate::exec::keys;
use crate::exec::ledger::{Ledger, wrong_sum};
use crate::exec::made::Made;
use crate::exec::options::{Input, Options, check_changes, check_destinations, check_inputs, lock_folders, only, open_inputs, sinks};
use crate::exec::pass::{Walk, walk};
use crate::exec::rejects;
use crate::exec::route::{Router, with_arena};
use crate::exec::state::{self, Identity};
use crate::exec::status::Recorder;
use crate::exec::summary::Summary;
use crate::exec::units::{RunFile, Unit, UnitReport, pack};
use crate::exec::work::WorkFolder;
use crate::exec::workers::Workers;
use crate::model::{ByAttribute, DatasetId, EntityId, FileId, SourceId};
use crate::plan::Plan;
use crate::proof::collisions::{self, Collisions};
use crate::proof::log::{Block, Log};
use crate::shape::Shape;
use crate::sink::{Look, Outgoing, Seen, Sink, Written};
use crate::source::Chunk;
use crate::source::manifest::{DataFile, Export};
use crate::store::Begin;

/// A plan, its data files and its sinks: all that can fail before the first item has been looked at.
pub struct Job {
    plan: Plan,
    options: Options,
    only: Vec<EntityId>,
    /// Each with the source it is for.
    exports: Vec<(SourceId, Export)>,
    files: Vec<RunFile>,
    units: Vec<Unit>,
    sinks: Vec<Box<dyn Sink>>,
    /// What the user should know of the targets.
    findings: Vec<String>,
    workers: Workers,
    work: WorkFolder,
    identity: Identity,
    begin: Begin,
    made: Made,
    /// Held as long as the job lives, so that two runs never write to one folder.
    _locks: Vec<File>,
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
        let (exports, files) = open_inputs(&plan, inputs, &options.reading)?;
        let units = pack(&files, options.unit_bytes);
        let workers = Workers::new(options.jobs)?;
        let mut made = Made::default();
        let work = WorkFolder::open(&options.work, &mut made).inspect_err(|_| made.remove())?;
        let locks = lock_folders(&options, &mut made).inspect_err(|_| made.remove())?;
        let prepare = || {
            let sinks = sinks(&plan, &exports, &options, &workers)?;
            check_changes(&exports, &sinks)?;
            let names = sinks.iter().map(|sink| sink.name()).collect();
            let identity = Identity::new(&plan, &files, &options, names, units.len());
            let begin = state::begins(work.path(), &identity, options.restart)?;
            // Before the first unit is done there is nothing that could be another's.
            if begin == Begin::GoOn && state::has_units(work.path(), &identity) {
                claim::check(&options, &identity.name()?, state::has_published(work.path()))?;
            }
            let mut findings = Vec::new();
            for sink in &sinks {
                findings.extend(sink.prepare(begin)?);
            }
            if begin == Begin::GoOn {
                state::check_targets(work.path(), &targets(&sinks))?;
            }
            Ok((sinks, identity, begin, findings))
        };
        let (sinks, identity, begin, findings) = prepare().inspect_err(|_: &Error| made.remove())?;
        Ok(Self { plan, options, only, exports, files, units, sinks, findings, workers, work, identity, begin, made, _locks: locks })
    }

    /// Surveys and writes, or writes and settles, and commits. Where the work folder holds the same run, stopped before its end, it goes on
    /// there: units that have their report are not done again.
    ///
    /// # Errors
    /// Whatever ends the run; then nothing was published under a final name. What a live sink has written stays written. Kind `Interrupted`
    /// when the run was asked to stop.
    pub fn run(self, observer: &mut dyn Observer) -> Result<Summary> {
        let started = Instant::now();
        let mut set_aside = None;
        if self.begin == Begin::Anew {
            set_aside = self.work.empty()?;
            state::begin(self.work.path(), &self.identity, self.writes_ahead())?;
        }
        if self.begin == Begin::GoOn {
            self.check_kept()?;
        }
        let mut recorder = Recorder::new(observer, self.work.path());
        let observer: &mut dyn Observer = &mut recorder;
        if let Some(log) = set_aside {
            observer.event(Event::Warning(format!("the undo log of an earlier run is kept in {}", log.display())));
        }
        self.findings.iter().for_each(|finding| observer.event(Event::Warning(finding.clone())));
        for (_, export) in &self.exports {
            if let Some(what) = export.in_words() {
                observer.event(Event::Reading(what));
            }
            export.warnings(self.options.reading.verify).for_each(|warning| observer.event(Event::Warning(warning)));
        }
        for (id, source) in (0..).map(SourceId).zip(&self.plan.sources) {
            if let (Some(name), true) = (&source.name, self.files.iter().all(|file| file.source != id)) {
                observer.event(Event::Warning(format!("nothing is read for source `{name}`")));
            }
        }
        let kept = match self.begin {
            Begin::Anew => None,
            Begin::GoOn => state::kept_survey(self.work.path())?,
        };
        let found = match kept {
            Some(kept) => Found::NotLearned(kept.0, kept.1),
            None if self.writes_ahead() => self.write_ahead(observer)?,
            None => {
                let (shapes, collisions) = self.decided(self.survey(observer))?;
                state::keep_survey(self.work.path(), &shapes, &collisions)?;
                Found::NotLearned(shapes, collisions)
            }
        };
        if let Found::NotLearned(shapes, _) = &found {
            let mut told = BTreeSet::new();
            for sink in &self.sinks {
                say_once(self.decided(sink.learn(shapes))?, &mut told, observer);
            }
        }
        if let Found::NotLearned(_, collisions) | Found::Learned(collisions) = found {
            self.ready(observer)?;
            self.write(&mut Knowing::All(Arc::new(collisions)), observer)?;
        }
        self.commit(started, observer)
    }

    /// What all items decide. Where they say that there can be no such output, only another pipeline or export helps, and that is another run:
    /// nothing is kept of this one, unless something of it can be seen.
    fn decided<T>(&self, decided: Result<T>) -> Result<T> {
        decided.inspect_err(|error| {
            let is_final = matches!(error.kind(), Kind::Input | Kind::Usage);
            let is_seen =
                state::has_published(self.work.path()) || !self.writes_ahead() && state::has_units(self.work.path(), &self.identity);
            if is_final && !is_seen {
                // The error that led here is the one that counts; what stays is removed when another run begins.
                let _ = self.work.forget().and_then(|()| self.sinks.iter().try_for_each(|sink| sink.forget()));
                self.made.remove();
            }
        })
    }

    /// Whether the export is read once: no sink must know all items first.
    fn writes_ahead(&self) -> bool {
        self.sinks.iter().all(|sink| sink.writes_ahead())
    }

    /// Checks that the files of the units that a stopped run has done are still as it wrote them.
    fn check_kept(&self) -> Result<()> {
        let published = state::has_published(self.work.path());
        let check = |report: &UnitReport| {
            self.options.stop.check()?;
            let mut of_sinks = self.sinks.iter().zip(&report.written);
            of_sinks.try_for_each(|(sink, written)| sink.check(slice::from_ref(written), Look::Content, published))
        };
        let reports = self.reports()?;
        let failed = self.workers.pool().install(|| reports.par_iter().find_map_first(|report| check(report).err()));
        failed.map_or(Ok(()), Err)
    }

    /// Makes the targets ready for the first unit.
    fn ready(&self, observer: &mut dyn Observer) -> Result<()> {
        for sink in &self.sinks {
            sink.ready()?.into_iter().for_each(|line| observer.event(Event::Ready(line)));
        }
        state::keep_targets(self.work.path(), &targets(&self.sinks))
    }

    /// Writes the units that are not done yet.
    fn write(&self, knowing: &mut Knowing, observer: &mut dyn Observer) -> Result<()> {
        observer.event(Event::Started { pass: Pass::Write, items: self.items() });
        let done = self.done()?;
        if !done.is_empty() {
            let items = done.values().sum();
            observer.event(Event::GoingOn { units: done.len(), of: self.units.len(), items });
        }
        for unit in self.units.iter().filter(|unit| !done.contains_key(&unit.number)) {
            self.options.stop.check()?;
            self.run_unit(unit, knowing, observer)?;
        }
        observer.event(Event::Finished(Pass::Write));
        Ok(())
    }

    /// The reports of the units that are done.
    fn reports(&self) -> Result<Vec<UnitReport>> {
        let work = self.work.path();
        let mut missing: Option<PathBuf> = None;
        let mut reports = Vec::new();
        for unit in &self.units {
            let path = UnitReport::path(work, unit.number);
            if !path.exists() {
                missing.get_or_insert(path);
                continue;
            }
            // Units are done one after the other.
            if let Some(missing) = missing {
                return Err(another_report(&missing));
            }
            let report = UnitReport::load(work, unit.number)?;
            if report.unit != unit.number {
                return Err(another_report(&path));
            }
            reports.push(report);
        }
        Ok(reports)
    }

    /// The units that a stopped run has done already, each with the lines it read.
    fn done(&self) -> Result<BTreeMap<u32, u64>> {
        Ok(self.reports()?.into_iter().map(|report| (report.unit, report.ledger.records())).collect())
    }

    /// Items in all exports, where every manifest says so.
    fn manifest_items(&self) -> Option<u64> {
        self.exports.iter().try_fold(0_u64, |all, (_, export)| all.checked_add(export.items?))
    }

    /// Items to read.
    fn items(&self) -> Option<u64> {
        self.manifest_items().map(|all| self.options.limit.map_or(all, |limit| limit.min(all)))
    }

    /// Whether every sink can take change records.
    fn takes_changes(&self) -> bool {
        self.sinks.iter().all(|sink| sink.takes_unplaced())
    }

    fn walk(&self, limit: Option<u64>) -> Walk<'_> {
        let Options { reading, stop, .. } = &self.options;
        Walk { max_line_bytes: reading.max_line_bytes, limit, stop }
    }

    fn data_files(&self, ids: &[FileId]) -> Vec<(FileId, &DataFile)> {
        ids.iter().map(|id| (*id, &self.files[id.index()].file)).collect()
    }

    /// The first pass.
    fn survey(&self, observer: &mut dyn Observer) -> Result<(Vec<Shape>, Collisions)> {
        observer.event(Event::Started { pass: Pass::Survey, items: self.items() });
        let partitions = collisions::partitions_for(self.items());
        let folder = self.work.keys();
        let mut log = Log::create(&folder, partitions)?;
        let mut shapes: Vec<Shape> = self.plan.targets.datasets.iter().map(Shape::of_dataset).collect();
        let mut ledger = Ledger::new(&self.plan);
        let router = Router::new(&self.plan, &self.files, &self.only, Arc::default(), self.takes_changes());
        let want_shapes = self.sinks.iter().any(|sink| sink.wants_shapes());
        let checkers: Vec<_> = self.sinks.iter().filter_map(|sink| sink.checker()).collect();
        for unit in &self.units {
            let work = |chunk: &Chunk| {
                with_arena(|arena| {
                    let parts = router.route(chunk, arena);
                    let (block, seen) = self.look(&parts.outgoing, partitions, want_shapes);
                    let checked = checkers.iter().try_for_each(|checker| checker.encode(&parts.outgoing).map(drop));
                    let name = || &self.files[chunk.first.file.index()].file.name;
                    let fatal = parts.fatal.or_else(|| checked.err().map(|error| error.with("file", name())));
                    (parts.ledger, fatal, block, shapes_of(seen), chunk.bytes.len() as u64)
                })
            };
            let limit = self.options.limit.map(|limit| limit.saturating_sub(ledger.records()));
            let files = self.data_files(&unit.files);
            let warnings = walk(&self.workers, &files, self.walk(limit), work, |(counted, fatal, block, seen, bytes)| {
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
            for warning in warnings {
                observer.event(Event::Warning(warning));
            }
            self.check_counts(unit, &ledger)?;
        }
        ledger.check_kinds(&self.files)?;
        self.check_exports(&ledger)?;
        self.say_contradictions(observer);
        let collisions = keys::search(log, &self.workers)?;
        keys::forget(&folder)?;
        observer.event(Event::Finished(Pass::Survey));
        Ok((shapes, collisions))
    }

    /// What there is to know of the rows of a chunk: their keys; and by dataset their values, and what these look like.
    fn look<'r, 'a: 'r>(&self, outgoing: &'r [Outgoing<'a>], partitions: usize, want_shapes: bool) -> (Block, Vec<Seen<'r, 'a>>) {
        let mut block = Block::new(partitions);
        keys::add(outgoing, &self.plan.targets, &mut block);
        let mut seen: Vec<Seen<'r, 'a>> = Vec::new();
        for part in outgoing.iter().filter(|_| want_shapes) {
            if seen.iter().any(|seen| seen.dataset == part.dataset) {
                continue;
            }
            let dataset = self.plan.targets.dataset(part.dataset);
            let items = || outgoing.iter().filter(|other| other.dataset == part.dataset).flat_map(|part| &part.rows).map(|row| &row.item);
            let values = ByAttribute::of(items());
            let mut shape = Shape::of_dataset(dataset);
            shape.observe_all(&values);
            items().for_each(|item| shape.compare(item, &dataset.declared));
            seen.push(Seen { dataset: part.dataset, shape: Arc::new(shape), values });
        }
        (block, seen)
    }

    /// What exports say of themselves that is not so.
    fn say_contradictions(&self, observer: &mut dyn Observer) {
        for (at, (_, export)) in self.exports.iter().enumerate() {
            let seen = self.files.iter().filter(|file| file.export == at).filter_map(RunFile::seen_format);
            export.contradiction(seen).into_iter().for_each(|warning| observer.event(Event::Warning(warning)));
        }
    }

    /// Checks the lines of each file against the manifest.
    fn check_counts(&self, unit: &Unit, ledger: &Ledger) -> Result<()> {
        if self.options.limit.is_some() {
            return Ok(());
        }
        for id in &unit.files {
            let found = ledger.lines.get(&id.0).copied().unwrap_or(0);
            let file = &self.files[id.index()].file;
            file.expect_items(found)?;
            file.location.check_unchanged(&file.facts)?;
        }
        Ok(())
    }

    /// Checks the lines of each export against its summary.
    fn check_exports(&self, ledger: &Ledger) -> Result<()> {
        if self.options.limit.is_some() {
            return Ok(());
        }
        for (at, (_, export)) in self.exports.iter().enumerate() {
            let ids = (0_u32..).zip(&self.files).filter(|(_, file)| file.export == at);
            export.expect_items(ids.filter_map(|(id, _)| ledger.lines.get(&id)).sum())?;
        }
        Ok(())
    }

    /// Checks every report, publishes, and writes the summary.
    fn commit(self, started: Instant, observer: &mut dyn Observer) -> Result<Summary> {
        let reports = self.units.iter().map(|unit| UnitReport::load(self.work.path(), unit.number)).collect::<Result<Vec<_>>>()?;
        let mut ledger = Ledger::new(&self.plan);
        for report in &reports {
            ledger.add(&report.ledger);
        }
        ledger.check(|at| self.plan.entities.get(at).map_or("unclassified items".to_owned(), |entity| entity.name.clone()))?;
        self.say_settings_for_nothing(&ledger, observer);
        let manifest = self.manifest_items();
        if self.options.limit.is_none() && manifest.is_some_and(|items| items != ledger.records()) {
            return Err(wrong_sum("the export").with("manifest", manifest.unwrap_or_default()).with("lines read", ledger.records()));
        }
        let mut written = Vec::new();
        for (at, sink) in self.sinks.iter().enumerate() {
            let of_sink: Vec<Written> = reports.iter().filter_map(|report| report.written.get(at).cloned()).collect();
            self.check_sink(sink.as_ref(), &of_sink, &ledger)?;
            written.push((sink.name(), of_sink));
        }
        // All are looked at before the first is published.
        let published = state::has_published(self.work.path());
        self.sinks.iter().zip(&written).try_for_each(|(sink, (_, of_sink))| sink.check(of_sink, Look::Size, published))?;
        state::publishes(self.work.path())?;
        for (sink, (_, of_sink)) in self.sinks.iter().zip(&written) {
            sink.commit(of_sink)?;
        }
        if let Some(path) = &self.options.schema_out {
            for schema in self.sinks.iter().map(|sink| sink.schema()).collect::<Result<Vec<_>>>()?.into_iter().flatten() {
                crate::store::write_atomically(path, schema.as_bytes())?;
            }
        }
        let rejects = rejects::publish(&self.work.unfinished(), &self.work.rejects())?;
        let summary = Summary::new(&self.plan, &self.exports, &ledger, manifest, self.options.limit, &written, rejects, started.elapsed());
        let report =
            serde_json::to_vec_pretty(&summary).map_err(|error| Error::new(Kind::Bug, "cannot write the report").caused_by(error))?;
        crate::store::write_atomically(&self.work.path().join(state::REPORT), &report)?;
        state::tidy(self.work.path());
        Ok(summary)
    }

    /// Says which entities the pipeline has settings of columns for, and no item was of. What was not looked at whole tells nothing.
    fn say_settings_for_nothing(&self, ledger: &Ledger, observer: &mut dyn Observer) {
        let in_part = self.options.limit.is_some() || !self.only.is_empty();
        if in_part || ledger.records() == 0 || !self.sinks.iter().any(|sink| sink.wants_shapes()) {
            return;
        }
        let had_items = |entity: usize, dataset: Option<DatasetId>| {
            let read = ledger.entities.get(entity).is_some_and(|counts| counts.read > 0);
            read || dataset.and_then(|dataset| ledger.outgoing.get(&dataset.0)).is_some_and(|outgone| outgone.placed + outgone.unplaced > 0)
        };
        for finding in self.plan.settings_for_nothing(had_items) {
            observer.event(Event::Warning(finding));
        }
    }

    /// Checks that a sink wrote or refused each item it was given.
    fn check_sink(&self, sink: &dyn Sink, written: &[Written], ledger: &Ledger) -> Result<()> {
        for (dataset, outgone) in &ledger.outgoing {
            let given = outgone.placed + if sink.takes_unplaced() { outgone.unplaced } else { 0 };
            let count =
                |of: fn(&Written) -> &BTreeMap<u32, u64>| written.iter().filter_map(|written| of(written).get(dataset)).sum::<u64>();
            let (items, refused, kept) =
                (count(|written| &written.items), count(|written| &written.refused), count(|written| &written.kept));
            if given != items + refused + kept {
                let name = &self.plan.targets.datasets[*dataset as usize].name;
                return Err(wrong_sum(&format!("{name} in {}", sink.name()))
                    .with("given", given)
                    .with("written", items)
                    .with("refused", refused)
                    .with("kept", kept));
            }
        }
        Ok(())
    }
}

/// Which targets live on their own, for the sinks that have such.
fn targets(sinks: &[Box<dyn Sink>]) -> Vec<String> {
    sinks.iter().filter_map(|sink| sink.identity()).collect()
}

/// What is known of the items while units are written.
enum Knowing {
    /// All of them were looked at; these collide.
    All(Arc<Collisions>),
    /// They are looked at on the way; their keys go to this log.
    Nothing(Log),
}

/// What is known of all items, and what is left to do.
enum Found {
    /// They were looked at, and the sinks do not know it yet.
    NotLearned(Vec<Shape>, Collisions),
    /// The sinks know it.
    Learned(Collisions),
    /// All is written.
    Written,
}

/// Tells what was not told yet: several sinks may say the same of the same columns.
fn say_once(findings: Vec<String>, told: &mut BTreeSet<String>, observer: &mut dyn Observer) {
    for finding in findings {
        if told.insert(finding.clone()) {
            observer.event(Event::Warning(finding));
        }
    }
}

/// The error about a report that is not as this run left it.
fn another_report(path: &Path) -> Error {
    Error::new(Kind::Output, "the report of a unit is missing or of another unit, though later ones are there")
        .with("file", path.display())
        .with("hint", "begin anew with --restart")
}

/// What was seen, without the values.
fn shapes_of(seen: Vec<Seen<'_, '_>>) -> Vec<(DatasetId, Arc<Shape>)> {
    seen.into_iter().map(|Seen { dataset, shape, values: _ }| (dataset, shape)).collect()
}
