//! Writing before all items were looked at, and settling it when they were.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::exec::event::Observer;
use crate::exec::job::{Found, Job, Knowing, say_once};
use crate::exec::keys;
use crate::exec::ledger::Ledger;
use crate::exec::state;
use crate::proof::collisions;
use crate::proof::log::Log;
use crate::shape::Shape;
use crate::sink::Settled;
use crate::store::Begin;

impl Job {
    /// Writes all units before all items were looked at: nothing of it is seen before the commit. What the sinks then cannot mend, or items whose
    /// keys collide, make it necessary to write once more.
    pub(super) fn write_ahead(&self, observer: &mut dyn Observer) -> Result<Found> {
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
            let collisions = keys::search(log, &self.workers)?;
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
        self.decided(ledger.check_kinds(&self.files))?;
        self.decided(self.check_exports(&ledger))?;
        let mut again = !collisions.is_empty();
        let mut told = BTreeSet::new();
        for (at, sink) in self.sinks.iter().enumerate() {
            let written = reports.iter().map(|report| report.written[at].clone()).collect();
            let (findings, settled) = if again {
                (self.decided(sink.learn(&shapes))?, None)
            } else {
                let Settled { findings, written } = self.decided(sink.settle(&shapes, written, &self.options.stop.go_on()))?;
                (findings, written)
            };
            say_once(findings, &mut told, observer);
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
}
