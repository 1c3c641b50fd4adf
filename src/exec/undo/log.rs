//! Reads the undo log of a unit: the record of each key that tells what the run replaced, in bounded memory.
//!
//! A unit that is run again appends its puts again, and what it read then may be its own items. So of several records of one key the last
//! one counts that found something else than the run had written, and the first where there is none such. A run puts each key once, so that all records of a key are in the file of one unit. Which keys were
//! seen is kept as 128-bit hashes. A file of more records than fit is walked over several times, each time for another part of the keys;
//! so nothing but one part of the hashes is in memory, and nothing is copied on disk.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use rustc_hash::FxBuildHasher;
use sha2::{Digest as _, Sha256};

use crate::codec::canonical;
use crate::codec::ddb_json::{PutRecord, decode_put_record};
use crate::error::{Error, Kind, Result};
use crate::exec::work::UNDO;
use crate::model::Arena;

/// Keys in memory, each as a hash with a line number: some 64 MB.
const HASHES: u64 = 1_500_000;

/// The file of a unit.
pub(super) fn file(folder: &Path, unit: u32) -> PathBuf {
    folder.join(format!("unit-{unit:05}.jsonl"))
}

/// The files of a log, in the order of their units.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if stem.starts_with("unit-") && path.extension().is_some_and(|extension| extension == "jsonl") {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    };
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|error| failed(folder, error)),
    }
}

/// The number in the name of a log that was set aside.
pub(super) fn number_of(name: &str) -> Option<u32> {
    name.strip_prefix(UNDO)?.strip_prefix('.')?.parse().ok()
}

/// The logs of earlier runs in a work folder: `undo.1`, `undo.2` …, in their order.
pub(super) fn earlier(work: &Path) -> Result<Vec<String>> {
    let list = || -> io::Result<Vec<(u32, String)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(work)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if let Some(number) = number_of(&name) {
                found.push((number, name));
            }
        }
        found.sort();
        Ok(found)
    };
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => Ok(listed.map_err(|error| failed(work, error))?.into_iter().map(|(_, name)| name).collect()),
    }
}

/// The tables that the records name.
///
/// # Errors
/// As [`records`].
pub(super) fn tables(files: &[PathBuf]) -> Result<BTreeSet<String>> {
    let mut tables = BTreeSet::new();
    for file in files {
        records(file, |_, record| {
            if !tables.contains(record.table) {
                tables.insert(record.table.to_owned());
            }
            Ok(())
        })?;
    }
    Ok(tables)
}

/// Gives the record of each key that tells what was replaced, with its line, in the order of the file.
///
/// # Errors
/// Kind `Input` when a line is no record, the last one excepted where its end is missing: the machine or the program stopped while it was
/// written, and its put was never sent. What `take` says.
pub(super) fn records(path: &Path, take: impl FnMut(&[u8], &PutRecord<'_>) -> Result<()>) -> Result<()> {
    records_by(path, HASHES, take)
}

fn records_by(path: &Path, hashes: u64, mut take: impl FnMut(&[u8], &PutRecord<'_>) -> Result<()>) -> Result<()> {
    let mut lines = 0_u64;
    each_line(path, |_, _| {
        lines += 1;
        Ok(())
    })?;
    let passes = u128::from(lines.div_ceil(hashes).max(1));
    let mut scratch = Vec::new();
    for pass in 0..passes {
        let mut chosen: HashMap<u128, u64, FxBuildHasher> = HashMap::default();
        each_record(path, |number, _, record| {
            let hash = hash_of(record, &mut scratch);
            // The remainder spreads as evenly as the hash does, which knows nothing of it.
            if hash % passes == pass {
                let foreign = |record: &PutRecord<'_>| {
                    record.old.as_ref().is_none_or(|old| canonical::hash_item(old, &mut Vec::new()) != record.wrote)
                };
                match chosen.entry(hash) {
                    Entry::Vacant(entry) => drop(entry.insert(number)),
                    Entry::Occupied(mut entry) if foreign(record) => drop(entry.insert(number)),
                    Entry::Occupied(_) => {}
                }
            }
            Ok(())
        })?;
        let mut chosen: Vec<u64> = chosen.into_values().collect();
        chosen.sort_unstable();
        let mut chosen = chosen.into_iter().peekable();
        each_record(path, |number, line, record| if chosen.next_if_eq(&number).is_some() { take(line, record) } else { Ok(()) })?;
    }
    Ok(())
}

/// Gives each record with its line and its number.
fn each_record(path: &Path, mut take: impl FnMut(u64, &[u8], &PutRecord<'_>) -> Result<()>) -> Result<()> {
    let mut arena = Arena::new();
    each_line(path, |number, line| {
        arena.reset();
        let wrong = |found: String| {
            Error::new(Kind::Input, "a line of the undo log cannot be read")
                .with("file", path.display())
                .with("line", number)
                .with("found", found)
                .with("hint", "the file was changed or damaged after the run; nothing of this file was taken back")
        };
        let text = std::str::from_utf8(line).map_err(|_| wrong("text that is not UTF-8".to_owned()))?;
        let record = decode_put_record(text, &arena).map_err(|reason| wrong(reason.to_string()))?;
        take(number, line, &record)
    })
}

/// A number for a key in its table; numbers in the key count by value.
fn hash_of(record: &PutRecord<'_>, scratch: &mut Vec<u8>) -> u128 {
    scratch.clear();
    scratch.extend_from_slice(&(record.table.len() as u64).to_be_bytes());
    scratch.extend_from_slice(record.table.as_bytes());
    canonical::write_item(&record.key, scratch);
    Sha256::digest(&*scratch)[..16].iter().fold(0, |hash, byte| hash << 8 | u128::from(*byte))
}

/// Gives each line with its number, from 1. A last line without its end is passed over.
fn each_line(path: &Path, mut take: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    let mut file = BufReader::with_capacity(256 << 10, File::open(path).map_err(|error| failed(path, error))?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        file.read_until(b'\n', &mut line).map_err(|error| failed(path, error))?;
        match line.strip_suffix(b"\n") {
            Some(line) => take(number, line)?,
            None => break,
        }
    }
    Ok(())
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::new(Kind::Input, "cannot read the undo log").with("path", path.display()).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Item, Value};

    fn line(key: &str, wrote: u128) -> String {
        format!("{{\"table\":\"t\",\"key\":{{\"n\":{{\"N\":\"{key}\"}}}},\"wrote\":\"{wrote:032x}\",\"old\":null}}\n")
    }

    fn read(text: &str, hashes: u64) -> Result<Vec<u128>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("unit-00001.jsonl");
        fs::write(&path, text).unwrap();
        let mut found = Vec::new();
        records_by(&path, hashes, |_, record| {
            found.push(record.wrote);
            Ok(())
        })?;
        found.sort_unstable();
        Ok(found)
    }

    #[test]
    fn the_last_record_that_found_what_the_run_had_not_written_wins_for_any_number_of_passes() {
        let arena = Arena::new();
        let mut own = Item::new_in(&arena);
        own.push("n", Value::N("1"));
        let wrote = canonical::hash_item(&own, &mut Vec::new());
        let record = |key: &str, old: &str| {
            format!("{{\"table\":\"t\",\"key\":{{\"k\":{{\"N\":\"{key}\"}}}},\"wrote\":\"{wrote:032x}\",\"old\":{old}}}\n")
        };
        let (ours, theirs) = (r#"{"n":{"N":"1.0"}}"#, r#"{"n":{"N":"2"}}"#);
        let cases: [(&[&str], &str); 6] = [
            (&["null", ours], "null"),
            (&[theirs, ours, ours], theirs),
            (&["null", theirs, ours], theirs),
            (&[ours, theirs], theirs),
            (&[theirs, "null"], "null"),
            (&[ours, ours], ours),
        ];
        let mut text = String::new();
        for round in 0..3 {
            for (at, (olds, _)) in cases.iter().enumerate() {
                if let Some(old) = olds.get(round) {
                    text.push_str(&record(&at.to_string(), old));
                }
            }
        }
        for hashes in [1, 2, 100] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("unit-00001.jsonl");
            fs::write(&path, &text).unwrap();
            let mut found = std::collections::BTreeMap::new();
            records_by(&path, hashes, |_, record| {
                let Some(Value::N(key)) = record.key.get("k") else { panic!("no key") };
                found.insert(key.to_owned(), String::from_utf8(record.old_json.to_vec()).unwrap());
                Ok(())
            })
            .unwrap();
            let expected = cases.iter().enumerate().map(|(at, (_, old))| (at.to_string(), (*old).to_owned())).collect();
            assert_eq!(found, expected, "{hashes}");
        }
    }

    #[test]
    fn a_last_line_without_its_end_is_passed_over_and_any_other_broken_line_is_an_error() {
        let (first, second) = (line("1", 1), line("2", 2));
        for cut in 0..second.len() {
            assert_eq!(read(&format!("{first}{}", &second[..cut]), 100).unwrap(), [1]);
        }
        let error = read(&format!("{first}{}\n{second}", &second[..20]), 100).unwrap_err();
        assert!(error.context().contains(&("line", "2".to_owned())), "{error}");
        assert_eq!(read("", 100).unwrap(), [0_u128; 0]);
    }

    #[test]
    fn the_files_of_the_units_are_found_in_order_and_others_are_not_taken_for_them() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["unit-00002.jsonl", "unit-00001.jsonl", "left.jsonl", "unit-00003.json"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<_> = files(folder.path()).unwrap().into_iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["unit-00001.jsonl", "unit-00002.jsonl"]);
        assert_eq!(files(&folder.path().join("nothing")).unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn logs_of_earlier_runs_are_found_in_the_order_of_the_runs() {
        let work = tempfile::tempdir().unwrap();
        for name in ["undo", "undo.10", "undo.2", "undo.old", "rejects.1"] {
            fs::create_dir(work.path().join(name)).unwrap();
        }
        assert_eq!(earlier(work.path()).unwrap(), ["undo.2", "undo.10"]);
        assert_eq!(earlier(&work.path().join("nothing")).unwrap(), Vec::<String>::new());
    }
}
