//! A job: a plan with its files and sinks, opened, written and committed; surveyed before, or settled after.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crossbeam_channel::{RecvTimeoutError, SendTimeoutError, Sender, bounded};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Kind, Reject, Result};
use crate::exec::event::{Event, Observer, Pass};
use crate::exec::keys;
use crate::exec::ledger::{Ledger, wrong_sum};
use crate::exec::options::{Input, Options, check_changes, check_destinations, check_inputs, lock_folders, only, open_inputs, sinks};
use crate::exec::pass::{LOOK, Walk, walk};
use crate::exec::rejects::{self, RejectsFiles};
use crate::exec::route::{Router, key_text, with_arena};
use crate::exec::state::{self, Identity};
use crate::exec::status::Recorder;
use crate::exec::summary::Summary;
use crate::exec::units::{RunFile, Seen, Unit, UnitReport, pack};
use crate::exec::work::{self, WorkFolder};
use crate::model::{DatasetId, EntityId, FileId, Origin, SourceId};
use crate::plan::Plan;
use crate::proof::collisions::{self, Collisions};
use crate::proof::log::{Block, Log};
use crate::shape::Shape;
use crate::sink::{Encoder, LateReject, Outgoing, Payload, Settled, Sink, Writer, Written};
use crate::source::Chunk;
use crate::source::manifest::{DataFile, Export};
use crate::store::Begin;

/// Payloads that a lane may be behind the feeder.
const LANE_QUEUE: usize = 2;

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
    pool: Arc<ThreadPool>,
    work: WorkFolder,
    identity: Identity,
    begin: Begin,
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
        let pool = ThreadPoolBuilder::new()
            .num_threads(options.jobs)
            .thread_name(|at| format!("worker-{at}"))
            .build()
            .map_err(|error| Error::new(Kind::Usage, "cannot start the workers").with("jobs", options.jobs).caused_by(error))?;
        let pool = Arc::new(pool);
        let work = WorkFolder::open(&options.work)?;
        let locks = lock_folders(&options)?;
        let sinks = sinks(&plan, &exports, &options, &pool)?;
        check_changes(&exports, &sinks)?;
        let names = sinks.iter().map(|sink| sink.name()).collect();
        let identity = Identity::new(&plan, &files, &options, names, units.len());
        let begin = state::begins(work.path(), &identity, options.restart)?;
        let mut findings = Vec::new();
        for sink in &sinks {
            findings.extend(sink.prepare(begin)?);
        }
        if begin == Begin::GoOn {
            state::check_targets(work.path(), &targets(&sinks))?;
        }
        Ok(Self { plan, options, only, exports, files, units, sinks, findings, pool, work, identity, begin, _locks: locks })
    }

    /// Surveys and writes, or writes and settles, and commits. Where the work folder holds the same run, stopped before its end, it goes on there: units that have
    /// their report are not done again.
    ///
    /// # Errors
    /// Whatever ends the run; then nothing was published under a final name. What a live sink has written stays written. Kind `Interrupted`
    /// when the run was asked to stop.
    pub fn run(self, observer: &mut dyn Observer) -> Result<Summary> {
        let started = Instant::now();
        let mut set_aside = None;
        if self.begin == Begin::Anew {
            set_aside = self.work.empty()?;
            state::begin(self.work.path(), &self.identity, self.sinks.iter().all(|sink| sink.writes_ahead()))?;
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
            None if self.sinks.iter().all(|sink| sink.writes_ahead()) => self.write_ahead(observer)?,
            None => {
                let (shapes, collisions) = self.survey(observer)?;
                state::keep_survey(self.work.path(), &shapes, &collisions)?;
                Found::NotLearned(shapes, collisions)
            }
        };
        if let Found::NotLearned(shapes, _) = &found {
            for sink in &self.sinks {
                sink.learn(shapes)?.into_iter().for_each(|finding| observer.event(Event::Warning(finding)));
            }
        }
        if let Found::NotLearned(_, collisions) | Found::Learned(collisions) = found {
            self.ready(observer)?;
            self.write(&mut Knowing::All(Arc::new(collisions)), observer)?;
        }
        self.commit(started)
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

    /// Writes all units before all items were looked at: nothing of it is seen before the commit. What the sinks then cannot mend, or items whose
    /// keys collide, make it necessary to write once more.
    fn write_ahead(&self, observer: &mut dyn Observer) -> Result<Found> {
        self.ready(observer)?;
        let folder = self.work.keys();
        let known = match self.begin {
            Begin::Anew => None,
            Begin::GoOn => state::kept_collisions(self.work.path())?,
        };
        let collisions = if let Some(collisions) = known {
            collisions
        } else {
            let lengths = self.reports()?.into_iter().filter_map(|report| report.seen).map(|seen| seen.keys);
            let lengths = lengths.reduce(|one, other| one.into_iter().zip(other).map(|(one, other)| one.max(other)).collect());
            let log = match lengths {
                Some(lengths) => Log::go_on(&folder, &lengths)?,
                None => Log::create(&folder, collisions::partitions_for(self.items()))?,
            };
            let mut knowing = Knowing::Nothing(log);
            self.write(&mut knowing, observer)?;
            let Knowing::Nothing(log) = knowing else { unreachable!("a walk does not change what is known") };
            self.say_contradictions(observer);
            let collisions = keys::search(log, &self.pool)?;
            state::keep_collisions(self.work.path(), &collisions)?;
            collisions
        };
        let mut reports = self.reports()?;
        let mut ledger = Ledger::new(&self.plan);
        let mut shapes: Vec<Shape> = self.plan.targets.datasets.iter().map(Shape::of_dataset).collect();
        for report in &reports {
            ledger.add(&report.ledger);
            let Some(seen) = &report.seen else { continue };
            seen.kinds.iter().for_each(|(of, kinds)| ledger.kinds.entry(*of).or_default().add(*kinds));
            shapes.iter_mut().zip(&seen.shapes).for_each(|(all, shape)| all.merge(shape));
        }
        ledger.check_kinds(&self.files)?;
        self.check_exports(&ledger)?;
        let mut again = !collisions.is_empty();
        for (at, sink) in self.sinks.iter().enumerate() {
            let written = reports.iter().map(|report| report.written[at].clone()).collect();
            let (findings, settled) = if again {
                (sink.learn(&shapes)?, None)
            } else {
                let Settled { findings, written } = sink.settle(&shapes, written)?;
                (findings, written)
            };
            findings.into_iter().for_each(|finding| observer.event(Event::Warning(finding)));
            match settled {
                Some(settled) => reports.iter_mut().zip(settled).for_each(|(report, written)| report.written[at] = written),
                None => again = true,
            }
        }
        if again {
            self.work.forget_units()?;
            state::keep_survey(self.work.path(), &shapes, &collisions)?;
            keys::forget(&folder)?;
            return Ok(Found::Learned(collisions));
        }
        reports.iter().try_for_each(|report| report.save(self.work.path()))?;
        keys::forget(&folder)?;
        Ok(Found::Written)
    }

    /// The reports of the units that are done.
    fn reports(&self) -> Result<Vec<UnitReport>> {
        let done = self.units.iter().filter(|unit| UnitReport::path(self.work.path(), unit.number).exists());
        done.map(|unit| UnitReport::load(self.work.path(), unit.number)).collect()
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
        let Options { jobs, reading, stop, .. } = &self.options;
        Walk { window: jobs * 2 + 1, max_line_bytes: reading.max_line_bytes, limit, stop }
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
                    (parts.ledger, fatal, block, seen, chunk.bytes.len() as u64)
                })
            };
            let limit = self.options.limit.map(|limit| limit.saturating_sub(ledger.records()));
            let files = self.data_files(&unit.files);
            let warnings = walk(&self.pool, &files, self.walk(limit), work, |(counted, fatal, block, seen, bytes)| {
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
        let collisions = keys::search(log, &self.pool)?;
        keys::forget(&folder)?;
        observer.event(Event::Finished(Pass::Survey));
        Ok((shapes, collisions))
    }

    /// What there is to know of the rows of a chunk: their keys, and their shapes by dataset.
    fn look(&self, outgoing: &[Outgoing<'_>], partitions: usize, want_shapes: bool) -> (Block, Vec<(DatasetId, Arc<Shape>)>) {
        let mut block = Block::new(partitions);
        keys::add(outgoing, &self.plan.targets, &mut block);
        let mut shapes: Vec<(DatasetId, Shape)> = Vec::new();
        for part in outgoing.iter().filter(|_| want_shapes) {
            let dataset = self.plan.targets.dataset(part.dataset);
            let at = shapes.iter().position(|(known, _)| *known == part.dataset).unwrap_or_else(|| {
                shapes.push((part.dataset, Shape::of_dataset(dataset)));
                shapes.len() - 1
            });
            let shape = &mut shapes[at].1;
            shape.observe_all(part.rows.iter().map(|row| &row.item));
            part.rows.iter().for_each(|row| shape.compare(&row.item, &dataset.declared));
        }
        (block, shapes.into_iter().map(|(dataset, shape)| (dataset, Arc::new(shape))).collect())
    }

    /// What exports say of themselves that is not so.
    fn say_contradictions(&self, observer: &mut dyn Observer) {
        for (at, (_, export)) in self.exports.iter().enumerate() {
            let seen = self.files.iter().filter(|file| file.export == at).filter_map(RunFile::seen_format);
            export.contradiction(seen).into_iter().for_each(|warning| observer.event(Event::Warning(warning)));
        }
    }

    /// Writes one unit and, when everything is durable, its report.
    fn run_unit(&self, unit: &Unit, knowing: &mut Knowing, observer: &mut dyn Observer) -> Result<()> {
        let (collisions, mut ahead) = match knowing {
            Knowing::All(collisions) => (Arc::clone(collisions), None),
            Knowing::Nothing(log) => (Arc::default(), Some(log)),
        };
        let partitions = ahead.as_ref().map(|log| log.partitions());
        let want_shapes = self.sinks.iter().any(|sink| sink.wants_shapes());
        let router = Router::new(&self.plan, &self.files, &self.only, collisions, self.takes_changes());
        let encoders: Vec<_> = self.sinks.iter().map(|sink| sink.encoder()).collect();
        let work = |chunk: &Chunk| {
            with_arena(|arena| {
                let parts = router.route(chunk, arena);
                let seen = partitions.map(|partitions| self.look(&parts.outgoing, partitions, want_shapes));
                let encode = |encoder: &Arc<dyn Encoder>| match &seen {
                    Some((_, shapes)) => encoder.encode_ahead(&parts.outgoing, shapes),
                    None => encoder.encode(&parts.outgoing),
                };
                let payloads = encoders.iter().map(encode).collect::<Result<Vec<_>>>();
                let payloads = payloads.map_err(|error| error.with("file", &self.files[chunk.first.file.index()].file.name));
                (parts.ledger, parts.rejects, payloads, seen, parts.fatal, chunk.bytes.len() as u64)
            })
        };
        let mut ledger = Ledger::new(&self.plan);
        let mut shapes: Vec<Shape> = self.plan.targets.datasets.iter().map(Shape::of_dataset).collect();
        self.work.forget_rejects(unit.number)?;
        let mut refused = RejectsFiles::new(self.work.unfinished(), work::rejects_stem(unit.number));
        let failed = AtomicBool::new(false);
        let writers = self.sinks.iter().map(|sink| sink.writer(unit.number)).collect::<Result<Vec<_>>>()?;
        let limit = self.limit_of(unit)?;
        let (lives, ended) = bounded::<()>(0);
        let (walked, lanes) = thread::scope(|threads| {
            let (senders, lanes): (Vec<_>, Vec<_>) = writers
                .into_iter()
                .enumerate()
                .map(|(at, writer)| {
                    let (sender, payloads) = bounded::<Payload>(LANE_QUEUE);
                    let rejects = RejectsFiles::new(self.work.unfinished(), format!("{}-sink-{}", work::rejects_stem(unit.number), at + 1));
                    let (failed, lives) = (&failed, lives.clone());
                    let lane = move || {
                        let ended = self.lane(writer, payloads, rejects, failed);
                        drop(lives);
                        ended
                    };
                    (sender, threads.spawn(lane))
                })
                .unzip();
            drop(lives);
            let walked = walk(
                &self.pool,
                &self.data_files(&unit.files),
                self.walk(limit),
                work,
                |(counted, rejects, payloads, seen, fatal, bytes)| {
                    if let Some(fatal) = fatal {
                        return Err(fatal);
                    }
                    observer.event(Event::Read { items: counted.records(), bytes });
                    ledger.add(&counted);
                    refused.append(&rejects, &self.plan, &self.files)?;
                    if let (Some(log), Some((keys, seen))) = (ahead.as_deref_mut(), seen) {
                        log.append(&keys)?;
                        seen.iter().for_each(|(dataset, shape)| shapes[dataset.index()].merge(shape));
                    }
                    senders.iter().zip(payloads?).try_for_each(|(sender, payload)| self.hand_over(sender, payload, observer))
                },
            );
            let walked = walked.and_then(|warnings| {
                if partitions.is_some() {
                    warnings.into_iter().for_each(|warning| observer.event(Event::Warning(warning)));
                    ledger.check_kinds(&self.files)?;
                }
                self.check_counts(unit, &ledger)
            });
            failed.store(walked.is_err(), Ordering::Release);
            drop(senders);
            // No lane sends anything; the channel closes when the last of them has ended.
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK) {
                self.say_taken(observer);
                if self.options.stop.asked() {
                    // A lane may be waiting for a service that takes nothing for a while.
                    self.sinks.iter().for_each(|sink| sink.stop());
                }
            }
            let lanes: Vec<_> =
                lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect();
            (walked, lanes)
        });
        // Where somebody asked to stop, what the lanes say follows from that.
        self.options.stop.check()?;
        let lanes = lanes.into_iter().collect::<Result<Vec<_>>>()?;
        walked?;
        let mut written = Vec::with_capacity(lanes.len());
        let mut rejects = refused.finish()?;
        let mut refused_outputs: BTreeMap<(EntityId, Origin), u64> = BTreeMap::new();
        for lane in lanes.into_iter().flatten() {
            rejects += lane.rejects;
            for (rule, count) in lane.rules {
                *ledger.rules.entry(rule).or_default() += count;
            }
            for (item, count) in lane.refused {
                let known = refused_outputs.entry(item).or_default();
                *known = count.max(*known);
            }
            written.push(lane.written);
        }
        for ((entity, _), count) in refused_outputs {
            let counts = &mut ledger.entities[entity.index()];
            counts.written -= count;
            counts.rejected += count;
        }
        let files = unit.files.iter().map(|id| self.files[id.index()].file.name.clone()).collect();
        let seen = match ahead {
            Some(log) => Some(Seen { shapes, keys: log.sync()?, kinds: ledger.kinds.clone().into_iter().collect() }),
            None => None,
        };
        UnitReport { unit: unit.number, files, ledger, written, rejects, seen }.save(self.work.path())
    }

    /// Hands a payload to a lane, and waits while the lane is full.
    fn hand_over(&self, lane: &Sender<Payload>, payload: Payload, observer: &mut dyn Observer) -> Result<()> {
        let mut payload = payload;
        loop {
            self.options.stop.check()?;
            self.say_taken(observer);
            payload = match lane.send_timeout(payload, LOOK) {
                Ok(()) => return Ok(()),
                Err(SendTimeoutError::Timeout(payload)) => payload,
                // A closed lane is only the symptom; the writer behind it holds the cause.
                Err(SendTimeoutError::Disconnected(_)) => return Err(Error::new(Kind::Bug, "a sink ended before its input")),
            };
        }
    }

    fn say_taken(&self, observer: &mut dyn Observer) {
        if let Some(items) = self.sinks.iter().filter_map(|sink| sink.taken()).max() {
            observer.event(Event::Taken { items });
        }
    }

    /// One writer with its thread. `None` when the run failed elsewhere.
    fn lane(
        &self,
        mut writer: Box<dyn Writer>,
        payloads: crossbeam_channel::Receiver<Payload>,
        mut rejects: RejectsFiles,
        failed: &AtomicBool,
    ) -> Result<Option<Lane>> {
        let mut late = Vec::new();
        let mut refused = BTreeMap::new();
        let mut rules = BTreeMap::new();
        let mut keep = |late: &mut Vec<LateReject>, rejects: &mut RejectsFiles| {
            for reject in &*late {
                *refused.entry((reject.entity, reject.origin)).or_default() += 1;
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
        Ok(Some(Lane { written, refused, rules, rejects: rejects.finish()? }))
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
            left = left.saturating_sub(UnitReport::load(self.work.path(), before)?.ledger.records());
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
    fn commit(self, started: Instant) -> Result<Summary> {
        let reports = self.units.iter().map(|unit| UnitReport::load(self.work.path(), unit.number)).collect::<Result<Vec<_>>>()?;
        let mut ledger = Ledger::new(&self.plan);
        for report in &reports {
            ledger.add(&report.ledger);
        }
        ledger.check(|at| self.plan.entities.get(at).map_or("unclassified items".to_owned(), |entity| entity.name.clone()))?;
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

/// What a lane gives at its end.
struct Lane {
    written: Written,
    /// How many outputs of an item were refused. Two sinks may refuse the same one, which is then one reject in the ledger.
    refused: BTreeMap<(EntityId, Origin), u64>,
    /// Refusals by `stage/rule`.
    rules: BTreeMap<String, u64>,
    rejects: u64,
}
