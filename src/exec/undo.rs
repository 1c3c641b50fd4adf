//! Takes a live run back by its undo log: what it replaced is put again, what it created is deleted, and what others have changed since
//! stays as it is.
//!
//! Each item is read first, and taken back only where it is the one that the run wrote; the request says so again as its condition, so that
//! a change in between is not lost. A condition compares every attribute, up to 140 of them, and cannot say that there is no other one. So
//! there is one gap: an attribute that somebody *adds*, or changes beyond the first 140, between the read and the write, a few milliseconds,
//! goes with the item. What is done already is seen as done, so that an undo that was killed is run again. A log that was taken back whole is
//! marked, and not taken back once more: what is there now may be the same items again, of another run.
//!
//! It acts only where the run wrote: [`target`] says where that is, and compares the tables.
//!
//! Memory: the hashes that [`log`] keeps, and for each worker 25 items as they are and as they were.

mod body;
mod log;
mod target;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, bounded};
use serde::Serialize;

use crate::aws::dynamodb::{Attributes, Conditional, DynamoDb};
use crate::aws::{self, Aws};
use crate::codec::attributes::item_of;
use crate::codec::canonical::hash_item;
use crate::codec::ddb_json::{PutRecord, decode_put_record, write_string};
use crate::error::{Error, Kind, Result};
use crate::exec::event::{Event, Observer};
use crate::exec::made::Made;
use crate::exec::state::{self, Found};
use crate::exec::units::UnitReport;
use crate::exec::work::{UNDO, WorkFolder};
use crate::model::{Arena, Item};
use crate::store;

/// The file that names the items that were left alone.
const LEFT: &str = "left.jsonl";

/// The file that a log has which was taken back whole.
const TAKEN_BACK: &str = "taken-back";

/// Keys that are read at once. A service's answer is whole up to 16 MB; so many items of the largest size have 10 MB.
const AT_ONCE: usize = 25;

/// Bytes of the log that are read at once, about.
const BYTES_AT_ONCE: usize = 4 << 20;

/// What an undo is told.
#[derive(Clone, Debug)]
pub struct UndoOptions {
    /// The work folder of the run.
    pub work: PathBuf,
    /// The folder of the log in it: `undo`, or one that a later run moved aside.
    pub log: String,
    /// How AWS is reached. Region and address are those of the log; others here are a mistake. A log that does not say needs the region.
    pub service: aws::Options,
    /// Only these tables, by their names in the service; empty: all.
    pub tables: Vec<String>,
    /// Only count what would be done.
    pub dry_run: bool,
    /// Requests under way at a time.
    pub jobs: usize,
}

/// What an undo did. The field names are stable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// Nothing was changed.
    pub dry_run: bool,
    /// By the table's name in the service.
    pub tables: BTreeMap<String, UndoCounts>,
    /// The file that names what was left alone, where something was.
    pub left: Option<PathBuf>,
}

impl Undone {
    /// All tables together.
    #[must_use]
    pub fn total(&self) -> UndoCounts {
        let mut total = UndoCounts::default();
        self.tables.values().for_each(|counts| total.add(counts));
        total
    }
}

/// The keys of a table, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UndoCounts {
    /// Keys in the log.
    pub keys: u64,
    /// The item that was there before is there again.
    pub restored: u64,
    /// The item, which the run had created, is deleted.
    pub removed: u64,
    /// The run put what was there already.
    pub unchanged: u64,
    /// The item that was there before the run is there: its put was never sent or was refused, or an earlier undo took it back.
    pub as_before: u64,
    /// No item was there before the run, and none is: its put was never sent, or it was deleted since.
    pub not_there: u64,
    /// Left alone: another item is there than the run wrote.
    pub changed_since: u64,
    /// Left alone: the run replaced an item, and now there is none.
    pub already_gone: u64,
}

impl UndoCounts {
    /// Items that were taken back, or would be.
    #[must_use]
    pub fn taken_back(&self) -> u64 {
        self.restored + self.removed
    }

    /// Keys whose items were left alone although they are not as before the run.
    #[must_use]
    pub fn left_alone(&self) -> u64 {
        self.changed_since + self.already_gone
    }

    fn add(&mut self, other: &Self) {
        let Self { keys, restored, removed, unchanged, as_before, not_there, changed_since, already_gone } = other;
        self.keys += keys;
        self.restored += restored;
        self.removed += removed;
        self.unchanged += unchanged;
        self.as_before += as_before;
        self.not_there += not_there;
        self.changed_since += changed_since;
        self.already_gone += already_gone;
    }

    fn count(&mut self, end: End) {
        self.keys += 1;
        *match end {
            End::Restored => &mut self.restored,
            End::Removed => &mut self.removed,
            End::Unchanged => &mut self.unchanged,
            End::AsBefore => &mut self.as_before,
            End::NotThere => &mut self.not_there,
            End::ChangedSince => &mut self.changed_since,
            End::AlreadyGone => &mut self.already_gone,
        } += 1;
    }
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Restored,
    Removed,
    Unchanged,
    AsBefore,
    NotThere,
    ChangedSince,
    AlreadyGone,
}

impl End {
    /// Why an item was left alone, if it was.
    fn why(self) -> Option<&'static str> {
        match self {
            Self::ChangedSince => Some("changed since"),
            Self::AlreadyGone => Some("already gone"),
            Self::Restored | Self::Removed | Self::Unchanged | Self::AsBefore | Self::NotThere => None,
        }
    }
}

/// What follows from what is there. `wrote`, `old` and `current` are hashes of items.
fn judge(wrote: u128, old: Option<u128>, current: Option<u128>) -> End {
    match (old, current) {
        (Some(old), Some(current)) if old == current && old == wrote => End::Unchanged,
        (None, None) => End::NotThere,
        (old, current) if old == current => End::AsBefore,
        (None, Some(current)) if current == wrote => End::Removed,
        (Some(_), Some(current)) if current == wrote => End::Restored,
        (Some(_), None) => End::AlreadyGone,
        _ => End::ChangedSince,
    }
}

/// Takes back what the run of a work folder wrote into live tables. The observer is told where, before anything is changed.
///
/// # Errors
/// Kind `Usage` when there is no undo log, when it was taken back already, when a run uses the folder, and when region, address or tables
/// are not those that the run wrote to; then nothing was changed. Kind `Input` when the log cannot be read; kind `Service` or `Unavailable`
/// when the service refuses or does not answer. What was taken back until then stays so; the same command goes on.
pub fn undo(options: &UndoOptions, observer: &mut dyn Observer) -> Result<Undone> {
    if options.log != UNDO && log::number_of(&options.log).is_none() {
        return Err(Error::new(Kind::Usage, "no undo log has such a name")
            .with("found", &options.log)
            .with("expected", "undo, or undo.1, undo.2 … of earlier runs in the folder"));
    }
    let folder = options.work.join(&options.log);
    let files = log::files(&folder)?;
    let target = target::read(&folder)?;
    if files.is_empty() && target.is_none() {
        return Err(no_log(&options.work, &folder)?);
    }
    let _work = WorkFolder::open(&options.work, &mut Made::default())?;
    let marker = folder.join(TAKEN_BACK);
    if marker.exists() {
        return Err(Error::new(Kind::Usage, "the run was taken back already")
            .with("found", marker.display())
            .with("hint", "what is under its keys now may be of a later run, which has an undo log of its own"));
    }
    if options.log == UNDO {
        check_whole(&options.work, &folder)?;
    }
    let reached = target::reached(&options.service, target.as_ref())?;
    let tables = match target {
        Some(target) => target.tables,
        None => log::tables(&files)?.into_iter().map(target::Table::unknown).collect(),
    };
    let tables = target::chosen(tables, &options.tables)?;
    let service = DynamoDb::connect(Aws::connect(&reached)?)?;
    let found = target::compare(&service, &tables)?;
    observer.event(Event::TakingBack(found));
    // From here on tables change, and no run may go on with what is gone: a later one that was stopped may have put the same items.
    let stopped = matches!(state::look(&options.work)?, Found::Unfinished(_));
    if !options.dry_run && (options.log == UNDO || stopped) {
        state::taken_back(&options.work)?;
    }
    let names: BTreeSet<String> = tables.into_iter().map(|table| table.name).collect();
    let left = Left::create(&folder)?;
    let mut counts = take_back(options, &names, &files, &service, &left).map_err(|error| match error.kind() {
        Kind::Service => error.with("hint", "what was taken back stays so; when the cause is gone, undo takes back the rest"),
        _ => error,
    })?;
    for table in names {
        counts.entry(table).or_default();
    }
    let left = left.finish(options.dry_run)?;
    let undone = Undone { dry_run: options.dry_run, tables: counts, left };
    if !options.dry_run && options.tables.is_empty() && undone.total().left_alone() == 0 {
        store::write_atomically(&marker, b"every item of this log was taken back\n")?;
    }
    Ok(undone)
}

/// Checks that the log has a record for each item that a unit of the run wrote. One that lost lines would take back only a part.
fn check_whole(work: &Path, folder: &Path) -> Result<()> {
    let identity = match state::look(work)? {
        Found::Unfinished(identity) | Found::Finished(identity) | Found::TakenBack(identity) => identity,
        Found::Nothing => return Ok(()),
    };
    let Some(sink) = identity.sinks.iter().position(|name| name == "dynamodb") else { return Ok(()) };
    for unit in (1..).take(identity.units).filter(|unit| UnitReport::path(work, *unit).exists()) {
        let report = UnitReport::load(work, unit)?;
        let written = report.written.get(sink);
        let items: u64 = written.iter().flat_map(|written| written.items.values().chain(written.kept.values())).sum();
        let path = log::file(folder, unit);
        let mut logged = 0;
        if path.exists() {
            log::records(&path, |_, _| {
                logged += 1;
                Ok(())
            })?;
        }
        if logged < items {
            return Err(Error::new(Kind::Input, "the undo log lacks records of items that the run wrote")
                .with("file", path.display())
                .with("expected", format_args!("{items} keys at least"))
                .with("found", logged)
                .with("hint", "the file was changed or lost after the run; nothing was taken back"));
        }
    }
    Ok(())
}

/// There is nothing to take back; names the logs of earlier runs, where there are some.
fn no_log(work: &Path, folder: &Path) -> Result<Error> {
    let error = Error::new(Kind::Usage, "there is no undo log").with("looked for", folder.join("unit-*.jsonl").display());
    let earlier = log::earlier(work)?;
    Ok(if earlier.is_empty() {
        error.with("hint", "name the work folder of a run that had --undo-log")
    } else {
        error.with("found", earlier.join(", ")).with("hint", "these are of earlier runs in the folder; name one with --log")
    })
}

/// Lines of one table, to be looked at together.
struct Batch {
    table: String,
    lines: Vec<Vec<u8>>,
    bytes: usize,
}

fn take_back(
    options: &UndoOptions,
    names: &BTreeSet<String>,
    files: &[PathBuf],
    service: &DynamoDb,
    left: &Left,
) -> Result<BTreeMap<String, UndoCounts>> {
    let ended = AtomicBool::new(false);
    thread::scope(|threads| {
        let (sender, batches) = bounded::<Batch>(1);
        let workers: Vec<_> = (0..options.jobs.max(1))
            .map(|_| {
                let (batches, ended) = (batches.clone(), &ended);
                threads.spawn(move || {
                    let done = work(&batches, service, left, options.dry_run, ended);
                    if done.is_err() {
                        ended.store(true, Ordering::Release);
                    }
                    done
                })
            })
            .collect();
        drop(batches);
        let mut open: HashMap<String, Batch> = HashMap::new();
        let read = files.iter().try_for_each(|file| {
            log::records(file, |line, record| {
                if ended.load(Ordering::Acquire) {
                    return Err(Error::new(Kind::Bug, "the workers ended before the log"));
                }
                if !names.contains(record.table) {
                    return if options.tables.is_empty() { Err(target::unknown(file, record.table)) } else { Ok(()) };
                }
                let new = || Batch { table: record.table.to_owned(), lines: Vec::new(), bytes: 0 };
                let batch = open.entry(record.table.to_owned()).or_insert_with(new);
                batch.lines.push(line.to_vec());
                batch.bytes += line.len();
                if batch.lines.len() == AT_ONCE || batch.bytes >= BYTES_AT_ONCE {
                    let batch = std::mem::replace(batch, new());
                    // Workers that are gone have failed, and say why.
                    drop(sender.send(batch));
                }
                Ok(())
            })
        });
        if read.is_ok() {
            for (_, batch) in open {
                drop(sender.send(batch));
            }
        } else {
            ended.store(true, Ordering::Release);
        }
        drop(sender);
        let mut all: BTreeMap<String, UndoCounts> = BTreeMap::new();
        for worker in workers {
            for (table, counts) in worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))? {
                all.entry(table).or_default().add(&counts);
            }
        }
        read.map(|()| all)
    })
}

/// One worker.
fn work(
    batches: &Receiver<Batch>,
    service: &DynamoDb,
    left: &Left,
    dry_run: bool,
    ended: &AtomicBool,
) -> Result<BTreeMap<String, UndoCounts>> {
    let mut counts: BTreeMap<String, UndoCounts> = BTreeMap::new();
    for batch in batches {
        let arena = Arena::new();
        let mut records = Vec::with_capacity(batch.lines.len());
        for line in &batch.lines {
            let text = std::str::from_utf8(line).unwrap_or_default();
            let again = |reason: crate::error::Reason| Error::new(Kind::Bug, "a line is another one now").with("found", reason);
            records.push(decode_put_record(text, &arena).map_err(again)?);
        }
        let keys: Vec<&[u8]> = records.iter().map(|record| record.key_json).collect();
        let found = if keys.is_empty() { Vec::new() } else { service.items(&batch.table, &keys)? };
        let mut scratch = Vec::new();
        let mut current: HashMap<u128, Item<'_>> = HashMap::new();
        for attributes in &found {
            let item = known(item_of(attributes, &arena), &batch.table)?;
            current.insert(hash_item(&key_of(&item, &records, &arena), &mut scratch), item);
        }
        for record in &records {
            if ended.load(Ordering::Acquire) {
                return Ok(counts);
            }
            let current = current.get(&hash_item(&record.key, &mut scratch));
            let end = one(record, current, service, dry_run, &mut scratch)?;
            counts.entry(batch.table.clone()).or_default().count(end);
            if let Some(why) = end.why() {
                left.add(record, why)?;
            }
        }
    }
    Ok(counts)
}

/// The key attributes of an item. All records of a table have the same.
fn key_of<'a>(item: &Item<'a>, records: &[PutRecord<'a>], arena: &'a Arena) -> Item<'a> {
    let mut key = Item::new_in(arena);
    for (name, _) in records.iter().take(1).flat_map(|record| record.key.attributes()) {
        if let Some(value) = item.get(name) {
            key.push(name, value);
        }
    }
    key
}

fn known<T>(item: Option<T>, table: &str) -> Result<T> {
    item.ok_or_else(|| Error::new(Kind::Service, "DynamoDB gave a value of a type that is not known").with("table", table))
}

/// Takes one put back, if it is to be.
fn one(record: &PutRecord<'_>, current: Option<&Item<'_>>, service: &DynamoDb, dry_run: bool, scratch: &mut Vec<u8>) -> Result<End> {
    let old = record.old.as_ref().map(|item| hash_item(item, scratch));
    let end = judge(record.wrote, old, current.map(|item| hash_item(item, scratch)));
    let Some(current) = current else { return Ok(end) };
    let done = match end {
        End::Restored | End::Removed if dry_run => return Ok(end),
        End::Restored => service.put_if(record.table, &body::put(record.table, record.old_json, &record.key, current))?,
        End::Removed => service.delete_if(record.table, &body::delete(record.table, record.key_json, &record.key, current))?,
        _ => return Ok(end),
    };
    let there: Option<Attributes> = match done {
        Conditional::Done => return Ok(end),
        Conditional::Refused(there) => there,
    };
    let arena = Arena::new();
    let there = there.as_ref().map(|attributes| known(item_of(attributes, &arena), record.table)).transpose()?;
    // An attempt whose answer was lost may have done it.
    Ok(match judge(record.wrote, old, there.map(|item| hash_item(&item, scratch))) {
        End::AsBefore | End::NotThere => end,
        End::AlreadyGone => End::AlreadyGone,
        _ => End::ChangedSince,
    })
}

/// The list of what was left alone.
struct Left {
    path: PathBuf,
    file: Mutex<(BufWriter<File>, u64)>,
}

impl Left {
    fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(LEFT);
        let file = File::create(unfinished(&path)).map_err(|error| failed(&path, error))?;
        Ok(Self { path, file: Mutex::new((BufWriter::new(file), 0)) })
    }

    fn add(&self, record: &PutRecord<'_>, why: &str) -> Result<()> {
        let mut line = b"{\"table\":".to_vec();
        write_string(record.table, &mut line);
        line.extend_from_slice(b",\"key\":");
        line.extend_from_slice(record.key_json);
        line.extend_from_slice(format!(",\"why\":\"{why}\"}}\n").as_bytes());
        let mut file = self.file.lock().map_err(|_| Error::new(Kind::Bug, "a worker broke off"))?;
        file.1 += 1;
        file.0.write_all(&line).map_err(|error| failed(&self.path, error))
    }

    /// Gives the list its name; `None` where nothing stands in it, or where nothing was to be written.
    fn finish(self, dry_run: bool) -> Result<Option<PathBuf>> {
        let Self { path, file } = self;
        let (file, count) = file.into_inner().map_err(|_| Error::new(Kind::Bug, "a worker broke off"))?;
        let publish = || {
            let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            if dry_run {
                return fs::remove_file(unfinished(&path)).map(|()| None);
            }
            file.sync_all()?;
            if count > 0 {
                return fs::rename(unfinished(&path), &path).map(|()| Some(path.clone()));
            }
            fs::remove_file(unfinished(&path))?;
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(None),
            }
        };
        publish().map_err(|error| failed(&path, error))
    }
}

fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("unfinished")
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::new(Kind::Output, "cannot write what was left alone").with("path", path.display()).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_run_wrote_is_taken_back() {
        let (ours, before, other) = (1, 2, 3);
        for (old, current, expected) in [
            (None, Some(ours), End::Removed),
            (None, None, End::NotThere),
            (None, Some(other), End::ChangedSince),
            (Some(before), Some(ours), End::Restored),
            (Some(before), Some(before), End::AsBefore),
            (Some(before), Some(other), End::ChangedSince),
            (Some(before), None, End::AlreadyGone),
            (Some(ours), Some(ours), End::Unchanged),
            (Some(ours), Some(other), End::ChangedSince),
            (Some(ours), None, End::AlreadyGone),
        ] {
            assert_eq!(judge(ours, old, current), expected, "{old:?} {current:?}");
        }
    }
}
