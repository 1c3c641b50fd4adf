//! Walks over exports to say what is in them; writes nothing.

use std::path::PathBuf;

use rayon::ThreadPoolBuilder;

use crate::codec::{self, Record};
use crate::error::{Error, Kind, Result};
use crate::exec::event::{Event, Observer, Pass};
use crate::exec::pass::walk;
use crate::exec::route::{lines, with_arena};
use crate::model::FileId;
use crate::proof::inspect::{Inspector, Options, Report};
use crate::source::Chunk;
use crate::source::manifest;

/// What [`inspect`] found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Inspection {
    /// What is in the items.
    #[serde(flatten)]
    pub report: Report,
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
pub fn inspect(paths: &[PathBuf], options: &Options, jobs: usize, limit: Option<u64>, observer: &mut dyn Observer) -> Result<Inspection> {
    let export = manifest::open_all(paths)?;
    let files: Vec<_> = (0..).map(FileId).zip(&export.files).collect();
    let pool = ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|error| Error::new(Kind::Usage, "cannot start the workers").with("jobs", jobs).caused_by(error))?;
    observer.event(Event::Started { pass: Pass::Inspect, items: export.items.map(|items| limit.map_or(items, |limit| limit.min(items))) });
    let mut whole = Inspector::new(options.clone());
    let mut unreadable = 0;
    let mut first_unreadable = None;
    let mut counts = vec![0_u64; files.len()];
    let work = |chunk: &Chunk| {
        with_arena(|arena| {
            let mut part = Inspector::new(options.clone());
            let (mut items, mut wrong) = (0, Vec::new());
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
                            Record::Change(change) => change.into_image(),
                        };
                        part.observe(&item, origin, line.map_or(0, str::len) as u64);
                    }
                    Err(message) => wrong.push((origin, message)),
                }
            }
            (part, items, wrong, chunk.first.file, chunk.bytes.len() as u64)
        })
    };
    walk(&pool, jobs * 2 + 1, &files, limit, work, |(part, items, wrong, file, bytes)| {
        observer.event(Event::Read { items, bytes });
        counts[file.index()] += items;
        unreadable += wrong.len() as u64;
        if let (None, Some((origin, message))) = (&first_unreadable, wrong.into_iter().next()) {
            first_unreadable = Some(format!("{}:{}: {message}", export.files[origin.file.index()].name, origin.line));
        }
        whole.merge(part);
        Ok(())
    })?;
    if limit.is_none() {
        for (found, (_, file)) in counts.iter().zip(&files) {
            file.expect_items(*found)?;
        }
        export.expect_items(counts.iter().sum())?;
    }
    observer.event(Event::Finished(Pass::Inspect));
    let files = export.files.iter().map(|file| file.name.clone()).collect();
    Ok(Inspection { report: whole.report(), unreadable, first_unreadable, files })
}
