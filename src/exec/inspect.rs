//! Walks over exports to say what is in them; writes nothing.

use std::collections::BTreeMap;

use crate::codec::Record;
use crate::error::{Error, Result};
use crate::exec::event::{Event, Observer, Pass};
use crate::exec::pass::{Walk, walk};
use crate::exec::record::{self, Holds};
use crate::exec::route::{lines, with_arena};
use crate::exec::stop::Stop;
use crate::exec::summary::ExportSummary;
use crate::exec::workers::Workers;
use crate::model::{Arena, FileId, Format, Origin};
use crate::proof::inspect::{Inspector, Options, Report};
use crate::source::manifest::{self, DataFile, Export};
use crate::source::{Chunk, Lines};
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
    /// The names of the data files. The places in the report count them from 1.
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
    let files: Vec<_> = exports.iter().flat_map(|export| export.files.iter().map(|file| (Holds::of(export), file))).collect();
    let workers = Workers::new(jobs)?;
    let items = exports.iter().try_fold(0_u64, |all, export| all.checked_add(export.items?));
    observer.event(Event::Started { pass: Pass::Inspect, items: items.map(|items| limit.map_or(items, |limit| limit.min(items))) });
    let mut whole = Inspector::new(options.clone());
    let mut unreadable = 0;
    let mut first_unreadable = None;
    let mut changes: BTreeMap<String, u64> = BTreeMap::new();
    let mut counts = vec![0_u64; files.len()];
    let mut formats = vec![None; files.len()];
    let mut items_read = false;
    let work = |chunk: &Chunk| {
        let (holds, file) = files[chunk.first.file.index()];
        with_arena(|arena| look(chunk, holds, file, options, arena))
    };
    let stop = Stop::default();
    let told = Walk { max_line_bytes: reading.max_line_bytes, limit, stop: &stop };
    let ids: Vec<_> = (0..).map(FileId).zip(files.iter().map(|(_, file)| *file)).collect();
    let warnings = walk(&workers, &ids, told, work, |part| {
        if let Some(fatal) = part.fatal {
            return Err(fatal);
        }
        observer.event(Event::Read { items: part.lines, bytes: part.bytes });
        counts[part.file.index()] += part.lines;
        unreadable += part.wrong.len() as u64;
        if let (None, Some((origin, message))) = (&first_unreadable, part.wrong.into_iter().next()) {
            let at = record::place_in(&files[origin.file.index()].1.name, origin.line, part.seen.1 == Lines::Elements);
            first_unreadable = Some(format!("{at}: {message}"));
        }
        if part.lines > 0 {
            formats[part.file.index()] = Some(part.seen.0);
        }
        items_read |= part.items;
        for (op, count) in part.changes {
            *changes.entry(op.to_owned()).or_default() += count;
        }
        whole.merge(part.inspector);
        Ok(())
    })?;
    if items_read && !changes.is_empty() {
        let message = "items and change records were read together; `run` takes one of the two kinds".to_owned();
        observer.event(Event::Warning(message));
    }
    let mut seen = files.iter().zip(&formats).map(|((_, file), format)| format.map(|format| (file.name.clone(), format)));
    let contradictions: Vec<_> = exports
        .iter()
        .filter_map(|export| export.contradiction(seen.by_ref().take(export.files.len()).collect::<Vec<_>>().into_iter().flatten()))
        .collect();
    for warning in warnings.into_iter().chain(contradictions) {
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

/// What is in a chunk.
struct Part {
    file: FileId,
    seen: (Format, Lines),
    bytes: u64,
    /// Lines that hold something.
    lines: u64,
    inspector: Inspector,
    /// There are items that are no changes.
    items: bool,
    changes: BTreeMap<&'static str, u64>,
    /// Lines that are no records, and why.
    wrong: Vec<(Origin, String)>,
    fatal: Option<Error>,
}

fn look(chunk: &Chunk, holds: Holds, file: &DataFile, options: &Options, arena: &Arena) -> Part {
    let mut part = Part {
        file: chunk.first.file,
        seen: (chunk.format, chunk.lines),
        bytes: chunk.bytes.len() as u64,
        lines: 0,
        inspector: Inspector::new(options.clone()),
        items: false,
        changes: BTreeMap::new(),
        wrong: Vec::new(),
        fatal: None,
    };
    for (origin, line) in lines(chunk, arena) {
        part.lines += 1;
        let decoded = match line {
            Ok(text) => record::decode(text, chunk, holds, arena).map_err(|reason| (text.as_bytes(), reason.message)),
            Err(bytes) => Err((bytes, "not UTF-8".to_owned())),
        };
        let item = match decoded.map(|decoded| decoded.record) {
            Ok(Record::Item(item)) => {
                part.items = true;
                item
            }
            Ok(Record::Change(change)) => {
                let (change, image) = change.into_image();
                *part.changes.entry(change.op.name()).or_default() += 1;
                image
            }
            Err((line, message)) => {
                part.fatal = part.fatal.or_else(|| record::breaks_off(line, chunk, origin, &file.location, &message));
                part.wrong.push((origin, message));
                continue;
            }
        };
        part.inspector.observe(&item, origin, line.map_or(0, str::len) as u64);
    }
    part
}
