//! Compares targets with what the pipeline makes of the exports: routes all items as a run does, reads all items of the targets, and
//! pairs both by their keys. Writes nothing but the work folder.

mod expected;
mod files;
mod form;
#[cfg(any(feature = "dynamodb", feature = "parquet"))]
mod gather;
#[cfg(feature = "dynamodb")]
mod live;
#[cfg(feature = "parquet")]
mod parquet;
mod report;
mod second_look;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rayon::prelude::*;

use crate::error::{Error, Kind, Result};
use crate::exec::event::Observer;
use crate::exec::made::Made;
use crate::exec::options::{Input, check_table_names, only};
use crate::exec::pass::Walk;
use crate::exec::stop::Stop;
use crate::exec::work::{self, WorkFolder};
use crate::exec::workers::Workers;
use crate::model::TableId;
use crate::plan::Plan;
use crate::proof::compare::{self, Difference, Outcome, Rules};
use crate::proof::log::Log;
use crate::source::manifest;

use expected::Expected;
use form::{Forms, How, Part, View};
use target::Open;

pub use report::{RowReport, Shown, TargetReport, Verification};
pub use target::Target;

/// The folder in the work folder for what is compared.
const COMPARED: &str = "compared";

/// What a comparison is told.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// What is compared with the pipeline, each by itself.
    pub targets: Vec<Target>,
    /// Real table names by their name in the pipeline, for live tables.
    pub table_names: BTreeMap<String, String>,
    /// Compare these entities only. Empty: all.
    pub only: Vec<String>,
    /// Compare counts only.
    pub counts: bool,
    /// Compare only so many of a hundred keys, told by their hash.
    pub sample: Option<f64>,
    /// How many differing keys are shown with what differs.
    pub show: usize,
    /// Workers; the answer does not depend on it.
    pub jobs: usize,
    /// How exports are found and checked.
    pub reading: manifest::Options,
    /// The folder for what is kept on disk and for the differences.
    pub work: PathBuf,
    /// Asks the comparison to stop. It begins anew the next time.
    pub stop: Stop,
}

/// Where a comparison takes place: what all of its parts need.
struct Setting<'p> {
    plan: &'p Plan,
    options: &'p VerifyOptions,
    workers: Workers,
    forms: Forms<'p>,
    how: How,
    /// The folder for what is compared.
    folder: PathBuf,
}

impl Setting<'_> {
    fn walk(&self) -> Walk<'_> {
        let VerifyOptions { reading, stop, .. } = self.options;
        Walk { max_line_bytes: reading.max_line_bytes, limit: None, stop }
    }

    fn how(&self, view: View) -> How {
        How { view, ..self.how }
    }
}

/// Compares the targets with what the pipeline makes of the exports.
///
/// Memory does not grow with the number of items; the keys of both sides lie on disk in the work folder meanwhile, about 40 bytes and
/// the key for each item.
///
/// # Errors
/// Kind `Usage` when the options do not fit the plan or a target has other keys, kind `Input` when an export or a target is not whole,
/// kind `Service` when a live table cannot be read. That something differs is no error.
pub fn verify(plan: &Plan, inputs: &[Input], options: &VerifyOptions, observer: &mut dyn Observer) -> Result<Verification> {
    let started = Instant::now();
    check(plan, options)?;
    let workers = Workers::new(options.jobs)?;
    let mut expected = Expected::open(plan, inputs, options)?;
    let mut made = Made::default();
    let work = WorkFolder::open(&options.work, &mut made).inspect_err(|_| made.remove())?;
    let folder = work.path().join(COMPARED);
    made.folder(&folder);
    let differences = work.path().join("differences.jsonl");
    for gone in [fs::remove_file(&differences), fs::remove_dir_all(&folder), fs::create_dir_all(&folder)] {
        gone.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(work::failed(&folder, error)) })?;
    }
    let how =
        How { view: View::Tables, counts: options.counts, sample: options.sample, partitions: compare::partitions_for(expected.items()) };
    let setting = Setting { plan, options, workers, forms: Forms::new(plan), how, folder: folder.clone() };
    let targets = options.targets.iter().map(|target| target.open(&setting, observer)).collect::<Result<Vec<_>>>();
    let targets = targets.inspect_err(|_| made.remove())?;
    expected.check_changes(&targets).inspect_err(|_| made.remove())?;
    expected.say_what_is_read(options, observer);
    expected.survey(&setting, observer)?;
    let views: BTreeSet<View> = targets.iter().map(Open::view).collect();
    let sides = expected.route(&setting, &views, observer)?;
    let mut reports = Vec::new();
    for target in &targets {
        let view = target.view();
        let side = &sides[&view];
        let mut log = Side::create(&setting, &folder.join("found"))?;
        let unreadable = target.read(&setting, observer, &mut |part| log.add(part))?;
        let found = log.finish()?;
        let rules = rules(plan, target, &expected, options);
        let outcome =
            if options.counts { by_counts(side, &found, &rules) } else { compare_all(&setting, target, &expected, side, &found, &rules)? };
        let shown = second_look::show(&setting, target, &expected, &outcome)?;
        reports.push(TargetReport::new(&setting, target, &expected, &outcome, unreadable, shown));
    }
    fs::remove_dir_all(&folder).map_err(|error| work::failed(&folder, error))?;
    let differences = differences.exists().then_some(differences);
    Ok(Verification::new(&setting, &expected, reports, differences, started.elapsed()))
}

fn check(plan: &Plan, options: &VerifyOptions) -> Result<()> {
    if options.targets.is_empty() {
        return Err(Error::new(Kind::Usage, "no target is named")
            .with("hint", "add --against dynamodb, import:DIR, batch:DIR, export:LOCATION or parquet:DIR"));
    }
    if options.counts && options.sample.is_some() {
        return Err(Error::new(Kind::Usage, "counts are of all items, not of a sample").with("hint", "leave out --counts or --sample"));
    }
    if let Some(percent) = options.sample.filter(|percent| !(*percent > 0.0 && *percent <= 100.0)) {
        return Err(Error::new(Kind::Usage, "a sample is more than 0 and at most 100 percent").with("found", percent));
    }
    let tables = (0..).map(TableId).zip(&plan.targets.tables);
    let forms = Forms::new(plan);
    if let (true, false, Some((_, table))) = (options.counts, options.only.is_empty(), tables.into_iter().find(|(id, _)| !forms.tells(*id)))
    {
        return Err(Error::new(Kind::Usage, "the items of a table do not say their entity, so that those of one entity cannot be counted")
            .with("table", &table.name)
            .with("hint", "leave out --counts, give the table a `type`, or count all entities"));
    }
    check_table_names(plan, &options.table_names)?;
    only(plan, &options.only).map(drop)
}

/// How the entries of a target are compared.
fn rules(plan: &Plan, target: &Open, expected: &Expected<'_>, options: &VerifyOptions) -> Rules {
    let only = (!options.only.is_empty()).then(|| {
        let outputs = expected.only.iter().flat_map(|id| &plan.entities[id.index()].outputs);
        outputs.map(|output| output.dataset.0).collect()
    });
    let keys_are_unique = target.view() == View::Tables;
    Rules { keys_are_unique, only, places: target.content().places(), keep: options.show }
}

/// One side of a comparison: its entries on disk, or its counts.
struct Side {
    log: Option<Log>,
    partitions: Vec<PathBuf>,
    counts: BTreeMap<(u32, u32), u64>,
}

impl Side {
    fn create(setting: &Setting<'_>, folder: &Path) -> Result<Self> {
        let log = if setting.how.counts { None } else { Some(Log::create(folder, setting.how.partitions)?) };
        Ok(Self { log, partitions: Vec::new(), counts: BTreeMap::new() })
    }

    fn add(&mut self, part: Part) -> Result<()> {
        for (row, count) in part.counts {
            *self.counts.entry(row).or_default() += count;
        }
        match (&mut self.log, part.block) {
            (Some(log), Some(block)) => log.append(&block),
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Self> {
        if let Some(log) = self.log.take() {
            self.partitions = log.finish()?;
        }
        Ok(self)
    }
}

/// Compares the counts of both sides.
fn by_counts(expected: &Side, found: &Side, rules: &Rules) -> Outcome {
    let mut outcome = Outcome::default();
    let is_compared = |place: u32| rules.places.as_ref().is_none_or(|places| places.contains(&place));
    for ((place, row), count) in expected.counts.iter().filter(|((place, _), _)| is_compared(*place)) {
        outcome.tallies.entry((*place, *row)).or_default().expected += count;
    }
    for ((place, row), count) in &found.counts {
        // What is not asked for, and expected of nothing that was asked for.
        let is_known = expected.counts.contains_key(&(*place, *row));
        if is_known || rules.only.as_ref().is_none_or(|only| only.contains(row)) {
            outcome.tallies.entry((*place, *row)).or_default().found += count;
        } else {
            outcome.left_out += count;
        }
    }
    outcome
}

/// Compares all partitions of both sides, and keeps all differing keys in the work folder.
fn compare_all(setting: &Setting<'_>, target: &Open, expected: &Expected<'_>, side: &Side, found: &Side, rules: &Rules) -> Result<Outcome> {
    let lines = setting.folder.join("lines");
    fs::create_dir_all(&lines).map_err(|error| work::failed(&lines, error))?;
    let compare = |(at, (expected_part, found_part)): (usize, (&PathBuf, &PathBuf))| {
        let path = lines.join(at.to_string());
        let failed = |error| work::failed(&path, error);
        let mut file = None;
        let mut each = |difference: &Difference| {
            let file = match &mut file {
                Some(file) => file,
                none => none.insert(BufWriter::new(File::create(&path).map_err(failed)?)),
            };
            let mut line = report::line(setting, target, expected, difference).to_string();
            line.push('\n');
            file.write_all(line.as_bytes()).map_err(failed)
        };
        let outcome = compare::compare(expected_part, found_part, rules, &mut each)?;
        file.map_or(Ok(()), |mut file| file.flush().map_err(failed))?;
        Ok(outcome)
    };
    let outcomes = setting
        .workers
        .pool()
        .install(|| side.partitions.par_iter().zip(&found.partitions).enumerate().map(compare).collect::<Result<Vec<_>>>())?;
    let mut whole = Outcome::default();
    for outcome in outcomes {
        whole.add(outcome, rules);
    }
    let list = setting.options.work.join("differences.jsonl");
    let join = || -> io::Result<()> {
        for at in 0..side.partitions.len() {
            let path = lines.join(at.to_string());
            if let Ok(mut part) = File::open(&path) {
                let mut all = File::options().create(true).append(true).open(&list)?;
                io::copy(&mut part, &mut all)?;
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    };
    join().map_err(|error| work::failed(&list, error))?;
    Ok(whole)
}
