//! What must be in the targets: all items of the exports on their way through the plan, as a run sends them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::{Error, Kind, Result};
use crate::exec::event::{Event, Observer, Pass};
use crate::exec::keys;
use crate::exec::ledger::Ledger;
use crate::exec::options::{Exports, Input, only, open_inputs};
use crate::exec::pass::walk;
use crate::exec::route::{Routed, Router, with_arena};
use crate::exec::units::RunFile;
use crate::exec::verify::form::{Part, Recorder, View};
use crate::exec::verify::target::Open;
use crate::exec::verify::{Setting, Side, VerifyOptions};
use crate::model::{DatasetId, EntityId, FileId, Item, SourceId, Targets};
use crate::plan::Plan;
use crate::proof::collisions::{self, Collisions};
use crate::proof::log::{Block, Log};
use crate::shape::Shape;
#[cfg(feature = "parquet")]
use crate::sink::parquet::Minorities;
use crate::source::Chunk;
use crate::source::manifest::DataFile;

/// The exports, and what was learnt of them.
pub(super) struct Expected<'p> {
    plan: &'p Plan,
    pub(super) only: Vec<EntityId>,
    /// Each with the source it is for.
    pub(super) exports: Exports,
    pub(super) files: Vec<RunFile>,
    /// Whether change records may be expected: only where Parquet alone is compared.
    takes_changes: bool,
    collisions: Arc<Collisions>,
    #[cfg(feature = "parquet")]
    minorities: Option<Minorities>,
    /// The counts of all items.
    pub(super) ledger: Ledger,
    /// Items that datasets refuse by what the pipeline declares; the ledger has them as written.
    pub(super) refused: u64,
}

impl<'p> Expected<'p> {
    pub(super) fn open(plan: &'p Plan, inputs: &[Input], options: &VerifyOptions) -> Result<Self> {
        let only = only(plan, &options.only)?;
        let (exports, files) = open_inputs(plan, inputs, &options.reading)?;
        Ok(Self {
            plan,
            only,
            exports,
            files,
            takes_changes: false,
            collisions: Arc::default(),
            #[cfg(feature = "parquet")]
            minorities: None,
            ledger: Ledger::new(plan),
            refused: 0,
        })
    }

    /// Items in all exports, where every manifest says so.
    pub(super) fn items(&self) -> Option<u64> {
        self.exports.iter().try_fold(0_u64, |all, (_, export)| all.checked_add(export.items?))
    }

    /// Change records are rows of a history, which only Parquet holds.
    pub(super) fn check_changes(&mut self, targets: &[Open]) -> Result<()> {
        let table = targets.iter().find(|target| target.view() == View::Tables);
        self.takes_changes = table.is_none();
        match (self.exports.iter().find(|(_, export)| export.window().is_some()), table) {
            (Some((_, export)), Some(target)) => {
                Err(Error::new(Kind::Usage, "an incremental export holds changes of items, which cannot be compared with a table")
                    .with("export", export.summary.as_ref().and_then(|summary| summary.export_arn.as_deref()).unwrap_or("(without ARN)"))
                    .with("target", &target.name)
                    .with("expected", "--against parquet:DIR alone, or a full export"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn say_what_is_read(&self, options: &VerifyOptions, observer: &mut dyn Observer) {
        for (_, export) in &self.exports {
            if let Some(what) = export.in_words() {
                observer.event(Event::Reading(what));
            }
            export.warnings(options.reading.verify).for_each(|warning| observer.event(Event::Warning(warning)));
        }
        for (id, source) in (0..).map(SourceId).zip(&self.plan.sources) {
            if let (Some(name), true) = (&source.name, self.files.iter().all(|file| file.source != id)) {
                observer.event(Event::Warning(format!("nothing is read for source `{name}`")));
            }
        }
    }

    fn router(&self) -> Router<'_> {
        Router::new(self.plan, &self.files, &self.only, Arc::clone(&self.collisions), self.takes_changes)
    }

    /// The first pass: items whose keys collide are rejects, and are expected nowhere; those with a value of a rarer type may be expected in
    /// no dataset.
    pub(super) fn survey(&mut self, setting: &Setting<'_>, observer: &mut dyn Observer) -> Result<()> {
        let targets = &self.plan.targets;
        #[cfg(feature = "parquet")]
        let want_shapes = Minorities::are_refused(targets);
        #[cfg(not(feature = "parquet"))]
        let want_shapes = false;
        if targets.tables.is_empty() && !want_shapes {
            return Ok(());
        }
        observer.event(Event::Started { pass: Pass::Survey, items: self.items() });
        let partitions = collisions::partitions_for(self.items());
        let folder = setting.folder.join("keys");
        let mut log = Log::create(&folder, partitions)?;
        let work = |routed: &Routed<'_>| {
            let mut block = Block::new(partitions);
            keys::add(&routed.outgoing, targets, &mut block);
            (block, if want_shapes { shapes_of(targets, routed) } else { Vec::new() })
        };
        let mut shapes: Vec<Shape> = targets.datasets.iter().map(Shape::of_dataset).collect();
        self.pass(setting, observer, work, |(block, seen)| {
            shapes.iter_mut().zip(&seen).for_each(|(all, shape)| all.merge(shape));
            log.append(&block)
        })?;
        #[cfg(feature = "parquet")]
        {
            self.minorities = want_shapes.then(|| Minorities::new(Arc::new(targets.clone()), &shapes));
        }
        self.collisions = Arc::new(keys::search(log, &setting.workers)?);
        keys::forget(&folder)?;
        observer.event(Event::Finished(Pass::Survey));
        Ok(())
    }

    /// The second pass: all items that leave, for each of the views.
    pub(super) fn route(
        &mut self,
        setting: &Setting<'_>,
        views: &BTreeSet<View>,
        observer: &mut dyn Observer,
    ) -> Result<BTreeMap<View, Side>> {
        observer.event(Event::Started { pass: Pass::Expect, items: self.items() });
        let mut sides = BTreeMap::new();
        for view in views {
            sides.insert(*view, Side::create(setting, &setting.folder.join(format!("expected-{view:?}").to_lowercase()))?);
        }
        let is_refused = |view: View, dataset: DatasetId, item: &Item<'_>| self.is_refused(view, dataset, item);
        let work = |routed: &Routed<'_>| views.iter().map(|view| (*view, record(setting, *view, routed, &is_refused))).collect::<Vec<_>>();
        let mut refused = 0;
        let ledger = self.pass(setting, observer, work, |parts| {
            for (view, part) in parts {
                refused += part.refused;
                if let Some(side) = sides.get_mut(&view) {
                    side.add(part)?;
                }
            }
            Ok(())
        })?;
        ledger.check(|at| self.plan.entities.get(at).map_or("unclassified items".to_owned(), |entity| entity.name.clone()))?;
        self.ledger = ledger;
        self.refused = refused;
        observer.event(Event::Finished(Pass::Expect));
        sides.into_iter().map(|(view, side)| Ok((view, side.finish()?))).collect()
    }

    /// Whether a dataset refuses the item.
    #[cfg_attr(not(feature = "parquet"), expect(clippy::unused_self, unused_variables, reason = "only datasets refuse items"))]
    fn is_refused(&self, view: View, dataset: DatasetId, item: &Item<'_>) -> bool {
        match view {
            View::Tables => false,
            #[cfg(feature = "parquet")]
            View::Datasets => self.minorities.as_ref().is_some_and(|minorities| minorities.refuse(dataset, item)),
        }
    }

    /// A walk over all files.
    fn pass<T: Send>(
        &self,
        setting: &Setting<'_>,
        observer: &mut dyn Observer,
        work: impl Fn(&Routed<'_>) -> T + Sync,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<Ledger> {
        let router = self.router();
        let mut ledger = Ledger::new(self.plan);
        let files: Vec<_> = (0..).map(FileId).zip(self.files.iter().map(|file| &file.file)).collect();
        let each = |chunk: &Chunk| {
            with_arena(|arena| {
                let mut parts = router.route(chunk, arena);
                let done = work(&parts);
                (parts.ledger, parts.fatal.take(), done, chunk.bytes.len() as u64)
            })
        };
        let warnings = walk(&setting.workers, &files, setting.walk(), each, |(counted, fatal, done, bytes)| {
            if let Some(fatal) = fatal {
                return Err(fatal);
            }
            observer.event(Event::Read { items: counted.records(), bytes });
            ledger.add(&counted);
            take(done)
        })?;
        for warning in warnings {
            observer.event(Event::Warning(warning));
        }
        let found = |id: FileId| ledger.lines.get(&id.0).copied().unwrap_or(0);
        for (id, file) in &files {
            file.expect_items(found(*id))?;
            file.location.check_unchanged(&file.facts)?;
        }
        for (at, (_, export)) in self.exports.iter().enumerate() {
            let ids = (0..).map(FileId).zip(&self.files).filter(|(_, file)| file.export == at);
            export.expect_items(ids.map(|(id, _)| found(id)).sum())?;
        }
        Ok(ledger)
    }

    /// Routes one line again.
    pub(super) fn again<T>(&self, line: &Chunk, work: impl FnOnce(&Routed<'_>) -> T) -> T {
        let router = self.router();
        with_arena(|arena| work(&router.route(line, arena)))
    }

    pub(super) fn file(&self, id: FileId) -> Option<&DataFile> {
        self.files.get(id.index()).map(|file| &file.file)
    }
}

/// The shapes of what leaves, by dataset.
fn shapes_of(targets: &Targets, routed: &Routed<'_>) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = targets.datasets.iter().map(Shape::of_dataset).collect();
    for outgoing in &routed.outgoing {
        let (shape, dataset) = (&mut shapes[outgoing.dataset.index()], targets.dataset(outgoing.dataset));
        for row in outgoing.rows.iter().filter(|_| dataset.declared.refuses_minorities()) {
            shape.observe(&row.item);
            shape.compare(&row.item, &dataset.declared);
        }
    }
    shapes
}

/// What leaves, as entries of a view.
fn record(setting: &Setting<'_>, view: View, routed: &Routed<'_>, is_refused: &impl Fn(View, DatasetId, &Item<'_>) -> bool) -> Part {
    let mut recorder = Recorder::new(&setting.forms, setting.how(view));
    for outgoing in &routed.outgoing {
        let Some(place) = view.place(outgoing) else { continue };
        for row in &outgoing.rows {
            if is_refused(view, outgoing.dataset, &row.item) {
                recorder.part.refused += 1;
                continue;
            }
            recorder.add(place, Some(outgoing.dataset), &setting.forms.seen(view, place, &row.item), row.origin);
        }
    }
    recorder.part
}
