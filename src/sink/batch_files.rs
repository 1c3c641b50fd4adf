//! Request files for `aws dynamodb batch-write-item --request-items file://…`.
//!
//! Layout: `DIR/TABLE/u00001-000001.json`, each a whole request: `{"TABLE":[{"PutRequest":{"Item":{…}}},…]}` with at most
//! 25 puts, at most 16 MiB, and no key twice, because the service refuses a request that breaks one of the three as a whole.
//! Files are filled across chunks, so all but a unit's last are full. An item that is too large for a request of its own is
//! refused. Sending the files is somebody else's work.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::error::{Error, Kind, Result};
use crate::model::{TableId, Targets};
use crate::sink::put_requests::{self, BYTES, PUTS, Puts, TAIL, TablePuts};
use crate::sink::table_folders::{Account, TableFolders};
use crate::sink::{Encoder, LateReject, Look, Outgoing, Sink, Writer, Written};
use crate::store::{Begin, LocalStaging};

/// What the encoder gives the writer: the puts of a chunk, by table.
#[derive(Debug)]
pub struct Payload {
    tables: Vec<TablePayload>,
}

/// Puts of one table.
#[derive(Debug)]
struct TablePayload {
    table: TableId,
    puts: Puts,
    /// The items that no request can hold.
    refused: Vec<LateReject>,
}

/// The sink `batch:DIR`.
#[derive(Debug)]
pub struct BatchFiles {
    dir: PathBuf,
    folders: Arc<TableFolders>,
    /// The most bytes of a request.
    limit: usize,
}

impl BatchFiles {
    /// A sink that writes below `dir`. `names` maps a table's name in the pipeline to its name in the service, which is the
    /// one in the requests; a table that is not in it keeps its name. Folders have the pipeline's names.
    #[must_use]
    pub fn new(dir: PathBuf, overwrite: bool, targets: Arc<Targets>, names: BTreeMap<String, String>) -> Self {
        Self { folders: Arc::new(TableFolders::new(dir.clone().into(), overwrite, targets, names)), dir, limit: BYTES }
    }
}

impl Sink for BatchFiles {
    fn name(&self) -> String {
        format!("batch:{}", self.dir.display())
    }

    fn prepare(&self, begin: Begin) -> Result<Vec<String>> {
        self.folders.prepare(begin).map(|()| Vec::new())
    }

    fn writes_ahead(&self) -> bool {
        true
    }

    fn encoder(&self) -> Arc<dyn Encoder> {
        Arc::new(Requests { folders: Arc::clone(&self.folders), limit: self.limit })
    }

    fn writer(&self, unit: u32) -> Result<Box<dyn Writer>> {
        let open = (0..).zip(&self.folders.targets().tables).map(|(at, _)| File::new(self.folders.service_name(TableId(at)))).collect();
        let staging = LocalStaging::open(&self.dir)?;
        let folders = Arc::clone(&self.folders);
        Ok(Box::new(Files { folders, staging, unit, limit: self.limit, open, account: Account::default(), refused: BTreeMap::new() }))
    }

    fn forget(&self) -> Result<()> {
        self.folders.within().forget("")
    }

    fn check(&self, written: &[Written], _look: Look, published: bool) -> Result<()> {
        self.folders.check(written.iter().flat_map(|unit| &unit.files), published)
    }

    fn commit(&self, written: &[Written]) -> Result<()> {
        self.folders.publish(written.iter().flat_map(|unit| &unit.files))
    }
}

/// The half in the pool.
#[derive(Debug)]
struct Requests {
    folders: Arc<TableFolders>,
    limit: usize,
}

impl Encoder for Requests {
    fn encode(&self, outgoing: &[Outgoing<'_>]) -> Result<crate::sink::Payload> {
        let name = |table| self.folders.service_name(table);
        let tables = put_requests::encode(outgoing, self.folders.targets(), name, self.limit, |_| None)?;
        let tables = tables.into_iter().map(|TablePuts { table, puts, refused, .. }| TablePayload { table, puts, refused }).collect();
        Ok(crate::sink::Payload::Batch(Payload { tables }))
    }
}

/// The half on the lane: for each table the file that is being filled, at most 16 MiB in memory.
struct Files {
    folders: Arc<TableFolders>,
    staging: LocalStaging,
    unit: u32,
    limit: usize,
    /// By [`TableId`].
    open: Vec<File>,
    account: Account,
    /// Items that were refused, by dataset id.
    refused: BTreeMap<u32, u64>,
}

/// A file that is being filled.
struct File {
    /// `{"TABLE":[`, then the puts.
    json: Vec<u8>,
    /// Length of what stands before the first put.
    head: usize,
    keys: FxHashSet<Box<[u8]>>,
    puts: usize,
    /// Files of this table that were written.
    written: u32,
}

impl File {
    fn new(service_name: &str) -> Self {
        let json = put_requests::head(service_name);
        Self { head: json.len(), json, keys: FxHashSet::default(), puts: 0, written: 0 }
    }

    /// Whether the put fits behind those that are there; the first one is always taken.
    fn takes(&self, json: &[u8], key: &[u8], limit: usize) -> bool {
        self.puts == 0 || self.puts < PUTS && self.json.len() + 1 + json.len() + TAIL.len() <= limit && !self.keys.contains(key)
    }

    fn push(&mut self, json: &[u8], key: &[u8]) {
        if self.puts > 0 {
            self.json.push(b',');
        }
        self.json.extend_from_slice(json);
        self.keys.insert(key.into());
        self.puts += 1;
    }
}

impl Writer for Files {
    fn write(&mut self, payload: crate::sink::Payload, late: &mut Vec<LateReject>) -> Result<()> {
        let crate::sink::Payload::Batch(payload) = payload else {
            return Err(Error::new(Kind::Bug, "a payload of another sink reached the batch files"));
        };
        for TablePayload { table, puts, refused } in payload.tables {
            for reject in &refused {
                *self.refused.entry(reject.dataset.0).or_default() += 1;
            }
            late.extend(refused);
            for at in 0..puts.len() {
                let (json, key) = (puts.json(at), puts.key(at));
                if !self.open[table.index()].takes(json, key, self.limit) {
                    self.close(table)?;
                }
                self.open[table.index()].push(json, key);
                self.account.add_items(puts.put(at).dataset.0, 1);
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _late: &mut Vec<LateReject>) -> Result<Written> {
        for (at, _) in (0..).zip(0..self.open.len()) {
            self.close(TableId(at))?;
        }
        let written = Written { refused: self.refused, ..self.account.written() };
        self.staging.make_durable(written.files.iter().map(|file| file.path.as_path()))?;
        Ok(written)
    }
}

impl Files {
    fn close(&mut self, table: TableId) -> Result<()> {
        let open = &mut self.open[table.index()];
        if open.puts == 0 {
            return Ok(());
        }
        open.json.extend_from_slice(TAIL);
        open.written += 1;
        let path = self.folders.folder(table).join(format!("u{:05}-{:06}.json", self.unit, open.written));
        self.staging.put_whole(&path, &open.json)?;
        self.account.add_file(path, open.puts as u64, open.json.len() as u64);
        open.json.truncate(open.head);
        open.keys.clear();
        open.puts = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Arena, Creation, Dataset, DatasetId, EntityId, FileId, Item, KeyAttribute, KeySchema, KeyType, Origin, Raw, Row, Table, Value,
    };

    fn sink(dir: &std::path::Path, kind: KeyType) -> BatchFiles {
        let partition = KeyAttribute { name: "PK".to_owned(), kind };
        let table = |name: &str| Table {
            name: name.to_owned(),
            key: KeySchema { partition: partition.clone(), sort: None },
            indexes: Vec::new(),
            type_attribute: None,
            creation: Creation::default(),
        };
        let targets = Targets {
            tables: vec![table("docs"), table("comments")],
            datasets: vec![Dataset { name: "Document".to_owned(), tables: vec![TableId(0)], ..Dataset::default() }],
        };
        let names = BTreeMap::from([("docs".to_owned(), "prod-docs".to_owned())]);
        let sink = BatchFiles::new(dir.to_owned(), false, Arc::new(targets), names);
        sink.prepare(Begin::Anew).unwrap();
        sink
    }

    fn outgoing<'a>(arena: &'a Arena, table: u32, dataset: u32, keys: &[Value<'a>], text: &'a str) -> Outgoing<'a> {
        let row = |value: &Value<'a>| {
            let mut item = Item::new_in(arena);
            item.push("PK", *value);
            item.push("text", Value::S(text));
            Row { origin: Origin { file: FileId(0), line: 1 }, item, captures: &[], source: Raw::json(b"{}"), change: None, size: 0 }
        };
        let rows = keys.iter().map(row).collect();
        Outgoing { entity: EntityId(0), dataset: DatasetId(dataset), table: Some(TableId(table)), rows }
    }

    fn run(sink: &BatchFiles, chunks: &[Vec<Outgoing<'_>>]) -> Written {
        let encoder = sink.encoder();
        let mut writer = sink.writer(7).unwrap();
        let mut late = Vec::new();
        for chunk in chunks {
            writer.write(encoder.encode(chunk).unwrap(), &mut late).unwrap();
        }
        let written = writer.finish(&mut late).unwrap();
        sink.commit(std::slice::from_ref(&written)).unwrap();
        written
    }

    fn items(written: &Written) -> Vec<u64> {
        written.files.iter().map(|file| file.items).collect()
    }

    #[test]
    fn a_file_is_a_whole_request_under_the_name_in_the_service() {
        let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
        let chunk = vec![
            outgoing(&arena, 0, 0, &[Value::S("a")], "one"),
            outgoing(&arena, 1, 2, &[Value::S("a")], "two"),
            outgoing(&arena, 0, 1, &[Value::S("b")], "three"),
        ];
        let written = run(&sink(dir.path(), KeyType::S), &[chunk]);
        let text = |path: &str| std::fs::read_to_string(dir.path().join(path)).unwrap();
        assert_eq!(
            text("docs/u00007-000001.json"),
            r#"{"prod-docs":[{"PutRequest":{"Item":{"PK":{"S":"a"},"text":{"S":"one"}}}},{"PutRequest":{"Item":{"PK":{"S":"b"},"text":{"S":"three"}}}}]}"#
        );
        assert_eq!(text("comments/u00007-000001.json"), r#"{"comments":[{"PutRequest":{"Item":{"PK":{"S":"a"},"text":{"S":"two"}}}}]}"#);
        assert_eq!(written.items, BTreeMap::from([(0, 1), (1, 1), (2, 1)]));
    }

    #[test]
    fn files_are_filled_to_25_puts_across_chunks() {
        let names: Vec<String> = (0..60).map(|at| format!("k{at}")).collect();
        let keys: Vec<Value<'_>> = names.iter().map(|name| Value::S(name)).collect();
        for (cuts, expected) in [
            (vec![24], vec![24]),
            (vec![25], vec![25]),
            (vec![26], vec![25, 1]),
            (vec![10, 20, 20], vec![25, 25]),
            (vec![60], vec![25, 25, 10]),
            (vec![], vec![]),
        ] {
            let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
            let mut rest = &keys[..];
            let mut chunks = Vec::new();
            for cut in &cuts {
                let (chunk, after) = rest.split_at(*cut);
                chunks.push(vec![outgoing(&arena, 0, 0, chunk, "")]);
                rest = after;
            }
            assert_eq!(items(&run(&sink(dir.path(), KeyType::S), &chunks)), expected, "{cuts:?}");
        }
    }

    #[test]
    fn a_key_that_is_there_already_opens_the_next_file() {
        let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
        let keys = ["1", "2", "1.0", "3"].map(Value::N);
        assert_eq!(items(&run(&sink(dir.path(), KeyType::N), &[vec![outgoing(&arena, 0, 0, &keys, "")]])), [2, 2]);
    }

    #[test]
    fn an_item_that_no_request_can_hold_is_refused_with_its_source_and_its_neighbours_are_written() {
        let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
        let head = r#"{"prod-docs":["#.len();
        let put = |text: &str| format!(r#"{{"PutRequest":{{"Item":{{"PK":{{"S":"a"}},"text":{{"S":"{text}"}}}}}}}}"#).len();
        let limit = head + put("1234567890") + TAIL.len();
        let sink = BatchFiles { limit, ..sink(dir.path(), KeyType::S) };
        let [fits, large] = ["1234567890", "12345678901"];
        let chunk = vec![
            outgoing(&arena, 0, 0, &[Value::S("a")], fits),
            outgoing(&arena, 0, 2, &[Value::S("b"), Value::S("c")], large),
            outgoing(&arena, 0, 0, &[Value::S("d")], fits),
        ];
        let mut writer = sink.writer(1).unwrap();
        let mut late = Vec::new();
        writer.write(sink.encoder().encode(&chunk).unwrap(), &mut late).unwrap();
        let written = writer.finish(&mut late).unwrap();
        assert_eq!(items(&written), [1, 1]);
        assert_eq!((written.items, written.refused), (BTreeMap::from([(0, 2)]), BTreeMap::from([(2, 2)])));
        assert!(written.files.iter().all(|file| file.bytes == limit as u64));
        assert_eq!(late.len(), 2);
        assert_eq!((late[0].dataset, late[0].source.as_slice()), (DatasetId(2), &br#"{"Item":{}}"#[..]));
        let expected = format!("write/request-size: a request with this item alone has {} bytes as JSON, limit {limit}", limit + 1);
        assert!(late[0].reason.to_string().starts_with(&expected), "{}", late[0].reason);
    }

    #[test]
    fn a_file_stays_below_16_mib_as_json() {
        let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
        // Each item is legal at 390 KB, and six times that as JSON.
        let text = "\u{1}".repeat(390_000);
        let names: Vec<String> = (0..15).map(|at| at.to_string()).collect();
        let keys: Vec<Value<'_>> = names.iter().map(|name| Value::S(name)).collect();
        let written = run(&sink(dir.path(), KeyType::S), &[vec![outgoing(&arena, 0, 0, &keys, &text)]]);
        assert_eq!(items(&written), [7, 7, 1]);
        assert!(written.files.iter().all(|file| file.bytes <= 16 << 20));
    }
}
