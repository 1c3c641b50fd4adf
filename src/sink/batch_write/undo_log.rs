//! What live puts replace, written down before they are sent.
//!
//! The items under the keys of a request are read, a [record](crate::codec::ddb_json::PutRecord) of each put is appended to the log of the
//! unit, and only when the log is durable is the request sent. Requests that are under way at a time share one wait for the disk. What
//! somebody else writes between the read and the put is not seen. A put that is sent again is not logged again; one of a unit that is run
//! again is, and of several records of a key the first one counts.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::aws::Aws;
use crate::aws::dynamodb::{Asker, Attributes};
use crate::codec::attributes::item_of;
use crate::codec::{canonical, ddb_json};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::model::{Arena, KeySchema, Row};
use crate::sink::batch_write::request::ServiceTable;

/// What the log needs to know of the items of a chunk, each by its place among the puts. Empty where there is no log.
#[derive(Debug, Default)]
pub(super) struct ToLog {
    /// Canonical hashes of the items.
    hashes: Vec<u128>,
    /// Objects of key attributes, one after the other.
    keys: Vec<u8>,
    key: Vec<Range<usize>>,
}

impl ToLog {
    /// Looks at the items of the puts, in order.
    pub(super) fn of(schema: &KeySchema, rows: &[&Row<'_>]) -> Self {
        let mut known = Self::default();
        let mut scratch = Vec::new();
        for row in rows {
            known.hashes.push(canonical::hash_item(&row.item, &mut scratch));
            let start = known.keys.len();
            for (at, attribute) in schema.attributes().enumerate() {
                known.keys.push(if at == 0 { b'{' } else { b',' });
                ddb_json::write_string(&attribute.name, &mut known.keys);
                known.keys.push(b':');
                // Whoever has no key never became a put.
                if let Some(value) = row.item.get(&attribute.name) {
                    ddb_json::write_value(&value, &mut known.keys);
                }
            }
            known.keys.push(b'}');
            known.key.push(start..known.keys.len());
        }
        known
    }

    pub(super) fn bytes(&self) -> usize {
        self.keys.len() + self.hashes.len() * size_of::<u128>()
    }

    /// The put at this place, with its canonical key.
    pub(super) fn entry<'p>(&'p self, at: usize, key: &'p [u8]) -> Entry<'p> {
        Entry { key, json: &self.keys[self.key[at].clone()], wrote: self.hashes[at] }
    }
}

/// A put that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'p> {
    /// The canonical key.
    key: &'p [u8],
    /// The key as an object of its attributes.
    json: &'p [u8],
    /// The hash of the item.
    wrote: u128,
}

/// The log of one unit. It ends when all that hold it are gone.
#[derive(Debug)]
pub(super) struct UndoLog {
    asker: Asker,
    appends: UnboundedSender<Append>,
}

/// Lines to be appended, and who waits for them.
#[derive(Debug)]
struct Append {
    lines: Vec<u8>,
    durable: oneshot::Sender<Result<()>>,
}

impl UndoLog {
    /// Opens the log of a unit in `folder`. What stands in it already stays.
    ///
    /// # Errors
    /// Kind `Output` when the file cannot be opened.
    pub(super) fn open(aws: &Aws, folder: &Path, unit: u32) -> Result<Self> {
        let path = folder.join(format!("unit-{unit:05}.jsonl"));
        let file = open(&path).map_err(|cause| failed(&path, cause))?;
        let (appends, arriving) = unbounded_channel();
        drop(aws.spawn(append_all(file, path, arriving)));
        Ok(Self { asker: Asker::new(aws), appends })
    }

    /// Reads what is under the keys of these puts, which are of one table and have different keys, and returns when it is written down.
    ///
    /// # Errors
    /// Kind `Service` or `Unavailable` when the items cannot be read, kind `Output` when the log cannot be written.
    pub(super) async fn record(&self, table: &ServiceTable, entries: &[Entry<'_>]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let keys: Vec<&[u8]> = entries.iter().map(|entry| entry.json).collect();
        let found = self.asker.items(&table.name, &keys).await?;
        let lines = lines(table, entries, &found)?;
        let (durable, done) = oneshot::channel();
        let gone = || Error::new(Kind::Bug, "the undo log ended before the puts");
        self.appends.send(Append { lines, durable }).map_err(|_| gone())?;
        done.await.map_err(|_| gone())?
    }
}

fn lines(table: &ServiceTable, entries: &[Entry<'_>], found: &[Attributes]) -> Result<Vec<u8>> {
    let unreadable = || {
        Error::new(Kind::Service, "DynamoDB gave an item that cannot be written down")
            .with("action", "dynamodb:BatchGetItem")
            .with("table", &table.name)
            .with("hint", "without --undo-log it would be replaced unseen")
    };
    let arena = Arena::new();
    let mut old = FxHashMap::default();
    for attributes in found {
        let item = item_of(attributes, &arena).ok_or_else(unreadable)?;
        let mut key = Vec::new();
        if !limits::canonical_key(&item, &table.key, &mut key) {
            return Err(unreadable());
        }
        old.insert(key, item);
    }
    let mut lines = Vec::new();
    for entry in entries {
        ddb_json::write_put_record(&table.name, entry.json, entry.wrote, old.get(entry.key), &mut lines);
    }
    Ok(lines)
}

/// Opens the file to append to it. A last line without its end is taken away: its put was never sent.
fn open(path: &Path) -> io::Result<File> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = File::options().create(true).read(true).write(true).truncate(false).open(path)?;
    let whole = end_of_last_line(&mut file)?;
    file.set_len(whole)?;
    file.seek(SeekFrom::Start(whole))?;
    file.sync_all()?;
    // The name must be durable too, and that of the folder.
    File::open(folder)?.sync_all()?;
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(parent)?.sync_all()?;
    }
    Ok(file)
}

/// How many bytes the lines take that have their end.
fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 64 << 10;
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        (&*file).take(end - start).read_to_end(&mut block)?;
        if let Some(at) = memchr::memrchr(b'\n', &block) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Appends what arrives, and answers when it is durable. Whatever has arrived while the disk was waited for is written at once.
async fn append_all(file: File, path: PathBuf, mut arriving: UnboundedReceiver<Append>) {
    let file = Arc::new(file);
    while let Some(first) = arriving.recv().await {
        let (mut lines, mut waiting) = (first.lines, vec![first.durable]);
        while let Ok(more) = arriving.try_recv() {
            lines.extend_from_slice(&more.lines);
            waiting.push(more.durable);
        }
        let into = Arc::clone(&file);
        let write = move || {
            (&*into).write_all(&lines)?;
            into.sync_data()
        };
        let written = tokio::task::spawn_blocking(write).await.unwrap_or_else(|cause| Err(io::Error::other(cause)));
        for waiter in waiting {
            let result = match &written {
                Ok(()) => Ok(()),
                Err(cause) => Err(failed(&path, io::Error::new(cause.kind(), cause.to_string()))),
            };
            // A request that is gone belongs to a run that ends.
            drop(waiter.send(result));
        }
        if written.is_err() {
            // What stands in the file now is not known; nothing may follow it.
            return;
        }
    }
}

fn failed(path: &Path, cause: io::Error) -> Error {
    Error::new(Kind::Output, "cannot write the undo log").with("file", path.display()).caused_by(cause)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::AttributeValue;

    use super::*;
    use crate::codec::ddb_json::decode_put_record;
    use crate::model::{FileId, Item, KeyAttribute, KeyType, Origin, Raw, Value};

    fn table() -> ServiceTable {
        let attribute = |name: &str, kind| KeyAttribute { name: name.to_owned(), kind };
        ServiceTable {
            name: "docs".to_owned(),
            key: KeySchema { partition: attribute("PK", KeyType::S), sort: Some(attribute("SK", KeyType::N)) },
        }
    }

    #[test]
    fn each_put_has_a_line_with_what_was_under_its_key() {
        let arena = Arena::new();
        let table = table();
        let row = |sort: &'static str| {
            let mut item = Item::new_in(&arena);
            item.push("text", Value::S("new"));
            item.push("SK", Value::N(sort));
            item.push("PK", Value::S("a\"b"));
            Row { origin: Origin { file: FileId(0), line: 1 }, item, captures: &[], source: Raw::json(b"{}"), change: None, size: 0 }
        };
        let rows = [row("1.0"), row("2")];
        let known = ToLog::of(&table.key, &rows.iter().collect::<Vec<_>>());
        let keys: Vec<Vec<u8>> = rows
            .iter()
            .map(|row| {
                let mut key = Vec::new();
                assert!(limits::canonical_key(&row.item, &table.key, &mut key));
                key
            })
            .collect();
        let entries: Vec<_> = keys.iter().enumerate().map(|(at, key)| known.entry(at, key)).collect();
        // The service spells the number in its own way.
        let found = [Attributes::from([
            ("PK".to_owned(), AttributeValue::S("a\"b".to_owned())),
            ("SK".to_owned(), AttributeValue::N("1".to_owned())),
            ("text".to_owned(), AttributeValue::S("old".to_owned())),
        ])];
        let lines = String::from_utf8(lines(&table, &entries, &found).unwrap()).unwrap();
        let records: Vec<_> = lines.lines().map(|line| decode_put_record(line, &arena).unwrap()).collect();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].key_json, br#"{"PK":{"S":"a\"b"},"SK":{"N":"1.0"}}"#);
        assert_eq!(records[0].old.as_ref().and_then(|old| old.get("text")), Some(Value::S("old")));
        assert!(records[1].old.is_none());
        let mut scratch = Vec::new();
        assert_eq!(records[1].wrote, canonical::hash_item(&rows[1].item, &mut scratch));
        assert_ne!(records[0].wrote, records[1].wrote);
    }

    #[test]
    fn a_log_goes_on_behind_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("undo/unit-00001.jsonl");
        let torn = "x".repeat(200_000);
        for (before, kept) in [("", 0), ("a\n", 2), ("a\nb", 2), ("torn", 0), (&format!("a\nb\n{torn}"), 4)] {
            drop(open(&path).unwrap());
            fs::write(&path, before).unwrap();
            let file = open(&path).unwrap();
            (&file).write_all(b"next\n").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}next\n", &before[..kept]));
        }
    }
}
