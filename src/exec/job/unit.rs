//! One unit: its chunks through the pool, its payloads to a lane a sink, its report when everything is durable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{RecvTimeoutError, SendTimeoutError, Sender, bounded};

use crate::error::{Error, Kind, Reject, Result};
use crate::exec::claim;
use crate::exec::event::{Event, Observer};
use crate::exec::job::{Job, Knowing, shapes_of};
use crate::exec::ledger::Ledger;
use crate::exec::pass::{LOOK, walk};
use crate::exec::rejects::RejectsFiles;
use crate::exec::route::{Router, key_text, with_arena};
use crate::exec::units::{self, Unit, UnitReport};
use crate::exec::work;
use crate::model::{EntityId, Origin};
use crate::shape::Shape;
use crate::sink::{Encoder, LateReject, Payload, Writer, Written};
use crate::source::Chunk;

/// Payloads that a lane may be behind the feeder.
const LANE_QUEUE: usize = 2;

/// What a lane gives at its end.
struct Lane {
    written: Written,
    /// How many outputs of an item were refused. Two sinks may refuse the same one, which is then one reject in the ledger.
    refused: BTreeMap<(EntityId, Origin), u64>,
    /// Refusals by `stage/rule`.
    rules: BTreeMap<String, u64>,
    rejects: u64,
}

impl Job {
    /// Writes one unit and, when everything is durable, its report.
    pub(super) fn run_unit(&self, unit: &Unit, knowing: &mut Knowing, observer: &mut dyn Observer) -> Result<()> {
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
                    Some((_, seen)) => encoder.encode_ahead(&parts.outgoing, seen),
                    None => encoder.encode(&parts.outgoing),
                };
                let payloads = encoders.iter().map(encode).collect::<Result<Vec<_>>>();
                let payloads = payloads.map_err(|error| error.with("file", &self.files[chunk.first.file.index()].file.name));
                let seen = seen.map(|(keys, seen)| (keys, shapes_of(seen)));
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
                &self.workers,
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
                        for (dataset, shape) in &seen {
                            shapes[dataset.index()].merge(shape);
                        }
                    }
                    senders.iter().zip(payloads?).try_for_each(|(sender, payload)| self.hand_over(sender, payload, observer))
                },
            );
            let walked = walked.and_then(|warnings| {
                if partitions.is_some() {
                    for warning in warnings {
                        observer.event(Event::Warning(warning));
                    }
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
        let (written, rejects) = add_up(lanes, refused.finish()?, &mut ledger);
        let files = unit.files.iter().map(|id| self.files[id.index()].file.name.clone()).collect();
        let seen = match ahead {
            Some(log) => Some(units::Seen { shapes, keys: log.sync()?, kinds: ledger.kinds.clone().into_iter().collect() }),
            None => None,
        };
        claim::claim(&self.options, &self.identity.name()?)?;
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
}

/// Adds what the lanes refused to the ledger, and to the rejects there are; gives what was written, and all rejects.
fn add_up(lanes: Vec<Option<Lane>>, rejects: u64, ledger: &mut Ledger) -> (Vec<Written>, u64) {
    let mut rejects = rejects;
    let mut written = Vec::with_capacity(lanes.len());
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
    (written, rejects)
}
