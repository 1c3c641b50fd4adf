//! Walks over exports to say what is in them; writes nothing.

use std::collections::BTreeMap;

use rayon::ThreadPoolBuilder;

use crate::codec::{self, Record};
use crate::error::{Error, Kind, Result};
use crate::exec::event::{Event, Observer, Pass};
use crate::exec::pass::{Walk, walk};
use crate::exec::route::{lines, with_arena};
use crate::exec::stop::Stop;
use crate::exec::summary::ExportSummary;
use crate::model::FileId;
use crate::proof::inspect::{Inspector, Options, Report};
use crate::source::Chunk;
use crate::source::manifest::{self, Export};
use crate::store::Location;

/// What [`inspect`] found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Inspection {
    /// What is in the items.
    #[serde(flatten)]
    pub report: Report,
    /// The exports, in the order in which they were read.
    pub exports: Vec<ExportSummary>,
    /// What happened to the items, where change records were read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, u64>,
    /// Lines that are no items.
    pub unreadable: u64,
    /// The place of the first of them and what is wrong with it.
    pub first_unreadable: Option<String>,
    /// The names of the data files, by the id that the places in the report use.
    pub files: Vec<String>,
}

/// Reads all items of an export, or the first `limit`, and describes them. Memory does not grow with the number of items.
///
/// # Errors
/// When the export is not whole.
pub fn inspect(
    locations: &[Location],
    reading: &manifest::Options,
    options: &Options,
    jobs: usize,
    limit: Option<u64>,
    observer: &mut dyn Observer,
) -> Result<Inspection> {
    let exports = manifest::open_all(locations, reading)?;
    for what in exports.iter().filter_map(Export::in_words) {
        observer.event(Event::Reading(what));
    }
    for warning in exports.iter().flat_map(|export| export.warnings(reading.verify)) {
        observer.event(Event::Warning(warning));
    }
    let files: Vec<_> = (0..).map(FileId).zip(exports.iter().flat_map(|export| &export.files)).collect();
    let pool = ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|error| Error::new(Kind::Usage, "cannot start the workers").with("jobs", jobs).caused_by(error))?;
    let items = exports.iter().try_fold(0_u64, |all, export| all.checked_add(export.items?));
    observer.event(Event::Started { pass: Pass::Inspect, items: items.map(|items| limit.map_or(items, |limit| limit.min(items))) });
    let mut whole = Inspector::new(options.clone());
    let mut unreadable = 0;
    let mut first_unreadable = None;
    let mut changes: BTreeMap<String, u64> = BTreeMap::new();
    let mut counts = vec![0_u64; files.len()];
    let work = |chunk: &Chunk| {
        with_arena(|arena| {
            let mut part = Inspector::new(options.clone());
            let (mut items, mut wrong) = (0, Vec::new());
            let mut changes: BTreeMap<&str, u64> = BTreeMap::new();
            for (origin, line) in lines(chunk, arena) {
                items += 1;
                let decoded = match line {
                    Ok(text) => codec::decode_line(text, chunk.format, arena).map_err(|reason| reason.message),
                    Err(_) => Err("not UTF-8".to_owned()),
                };
                match decoded {
                    Ok(decoded) => {
                        let item = match decoded.record {
                            Record::Item(item) => item,
                            Record::Change(change) => {
                                let (change, image) = change.into_image();
                                *changes.entry(change.op.name()).or_default() += 1;
                                image
                            }
                        };
                        part.observe(&item, origin, line.map_or(0, str::len) as u64);
                    }
                    Err(message) => wrong.push((origin, message)),
                }
            }
            (part, items, wrong, changes, chunk.first.file, chunk.bytes.len() as u64)
        })
    };
    let stop = Stop::default();
    let told = Walk { window: jobs * 2 + 1, max_line_bytes: reading.max_line_bytes, limit, stop: &stop };
    let warnings = walk(&pool, &files, told, work, |(part, items, wrong, changed, file, bytes)| {
        observer.event(Event::Read { items, bytes });
        counts[file.index()] += items;
        unreadable += wrong.len() as u64;
        if let (None, Some((origin, message))) = (&first_unreadable, wrong.into_iter().next()) {
            first_unreadable = Some(format!("{}:{}: {message}", files[origin.file.index()].1.name, origin.line));
        }
        for (op, count) in changed {
            *changes.entry(op.to_owned()).or_default() += count;
        }
        whole.merge(part);
        Ok(())
    })?;
    for warning in warnings {
        observer.event(Event::Warning(warning));
    }
    if limit.is_none() {
        for (found, (_, file)) in counts.iter().zip(&files) {
            file.expect_items(*found)?;
        }
        let mut found = counts.iter();
        for export in &exports {
            export.expect_items(found.by_ref().take(export.files.len()).sum())?;
        }
    }
    observer.event(Event::Finished(Pass::Inspect));
    let files = files.iter().map(|(_, file)| file.name.clone()).collect();
    let exports = exports.iter().map(|export| ExportSummary::new(None, export)).collect();
    Ok(Inspection { report: whole.report(), exports, changes, unreadable, first_unreadable, files })
}
