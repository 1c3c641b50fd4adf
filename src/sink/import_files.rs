//! Files for `DynamoDB`'s `ImportTable`: gzipped objects in `DynamoDB` JSON or Amazon Ion, and `table.json`.
//!
//! Layout: `DIR/TABLE/data/part-u00001-0000.json.gz`, one `{"Item":{…}}` a line, or `….ion.gz`, one `$ion_1_0 {Item:{…}}` a line; and beside `data/` the file
//! `DIR/TABLE/table.json` for `aws dynamodb import-table --cli-input-json`. Nothing but data lies below `data/`, because
//! the import reads every object under its prefix as data.
//!
//! Whether the import reads gzip of several members is not documented, so an object is one member. The pool compresses all
//! the same: a payload is a run of deflate blocks that ends at a byte boundary and refers to nothing before it; the writer
//! sets the runs one after the other and combines their check sums. It costs the matches across payloads, some 32 KiB of each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crc32fast::Hasher;
use flate2::{Compress, Compression, FlushCompress};
use serde::Serialize;

use crate::codec::{ddb_json, ion};
use crate::error::{Error, Kind, Result};
use crate::model::{DatasetId, Format, KeySchema, Table, TableId, Targets};
use crate::sink::table_folders::{Account, TableFolders};
use crate::sink::{Encoder, LateReject, Outgoing, Sink, Writer, Written, WrittenFile};
use crate::store::{Begin, OutputFolder, StagedFile, Staging};

/// Where an object ends and the next begins. Objects are cut between payloads, so one that holds a single larger payload
/// is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollAt {
    /// Bytes of text in an object, before compression.
    pub bytes: u64,
    /// Items in an object.
    pub items: u64,
}

impl Default for RollAt {
    /// 256 MiB, so that an import has objects enough to read side by side and a terabyte stays far below the limit of 50,000
    /// objects; 4,000,000 items is what AWS advises at most (`DynamoDB` developer guide, "Best practices for importing").
    fn default() -> Self {
        Self { bytes: 256 << 20, items: 4_000_000 }
    }
}

/// The knee. Measured with flate2 1.1.11 on one core, payloads of 1 MiB, JSON of four entities with keys, dates, texts and tags:
///
/// | level | MB/s of JSON | times smaller |
/// |---|---|---|
/// | 1 | 328 | 2.81 |
/// | 2 | 193 | 3.52 |
/// | 3 | 157 | 3.70 |
/// | 4 | 106 | 4.02 |
/// | 6 | 78 | 4.15 |
///
/// What level 2 costs a core over level 1, an upload of 100 MB/s gets back.
const LEVEL: u32 = 2;

/// What the encoder gives the writer: a block for each table that the chunk has items for.
#[derive(Debug)]
pub struct Payload {
    blocks: Vec<Block>,
}

/// Lines of one table, compressed.
#[derive(Debug)]
struct Block {
    table: TableId,
    /// Deflate blocks up to a byte boundary; none of them is the last of its stream.
    deflated: Vec<u8>,
    /// The check sum of the lines.
    crc: u32,
    /// Bytes of the lines.
    raw: u64,
    items: u64,
    by_dataset: Vec<(DatasetId, u64)>,
}

/// The sink `import:DIR`.
#[derive(Debug)]
pub struct ImportFiles {
    folders: Arc<TableFolders>,
    format: Format,
    roll_at: RollAt,
}

impl ImportFiles {
    /// A sink that writes below `folder` in `format`. `names` maps a table's name in the pipeline to its name in the service, for
    /// `table.json`; a table that is not in it keeps its name. Folders have the pipeline's names.
    #[must_use]
    pub fn new(
        folder: impl Into<OutputFolder>,
        overwrite: bool,
        targets: Arc<Targets>,
        names: BTreeMap<String, String>,
        format: Format,
    ) -> Self {
        Self { folders: Arc::new(TableFolders::new(folder.into(), overwrite, targets, names)), format, roll_at: RollAt::default() }
    }

    /// Sets where objects end.
    #[must_use]
    pub fn with_roll_at(mut self, roll_at: RollAt) -> Self {
        self.roll_at = roll_at;
        self
    }
}

impl Sink for ImportFiles {
    fn name(&self) -> String {
        format!("import:{}", self.folders.within())
    }

    fn prepare(&self, begin: Begin) -> Result<Vec<String>> {
        self.folders.prepare(begin).map(|()| Vec::new())
    }

    fn encoder(&self) -> Arc<dyn Encoder> {
        Arc::new(Lines { format: self.format })
    }

    fn writer(&self, unit: u32) -> Result<Box<dyn Writer>> {
        let tables = self.folders.targets().tables.len();
        Ok(Box::new(Objects {
            folders: Arc::clone(&self.folders),
            staging: self.folders.staging()?,
            format: self.format,
            roll_at: self.roll_at,
            unit,
            open: std::iter::repeat_with(|| None).take(tables).collect(),
            next: vec![0; tables],
            account: Account::default(),
        }))
    }

    /// Writes a `table.json` for every table, also for one without items, so that an empty table can be made as well.
    fn commit(&self, written: &[Written]) -> Result<()> {
        let mut files: Vec<WrittenFile> = written.iter().flat_map(|unit| unit.files.iter().cloned()).collect();
        let staging = self.folders.staging()?;
        for (at, table) in (0..).zip(&self.folders.targets().tables) {
            let id = TableId(at);
            let path = self.folders.folder(id).join("table.json");
            let data = BucketSource::new(self.folders.within(), &table.name);
            let mut file = staging.create(&path)?;
            file.put(table_json(table, self.folders.service_name(id), self.format, data).as_bytes())?;
            let bytes = file.finish()?;
            files.push(WrittenFile { path, items: 0, bytes });
        }
        self.folders.publish(files.iter())
    }
}

/// The half in the pool.
#[derive(Debug)]
struct Lines {
    format: Format,
}

impl Encoder for Lines {
    fn encode(&self, outgoing: &[Outgoing<'_>]) -> Result<crate::sink::Payload> {
        let mut tables: Vec<TableId> = outgoing.iter().filter(|group| !group.rows.is_empty()).filter_map(|group| group.table).collect();
        tables.sort_unstable();
        tables.dedup();
        let mut blocks = Vec::with_capacity(tables.len());
        let mut lines = Vec::new();
        for table in tables {
            lines.clear();
            let mut by_dataset = Vec::new();
            let mut items = 0;
            for group in outgoing.iter().filter(|group| group.table == Some(table)) {
                for row in &group.rows {
                    match self.format {
                        Format::Json => ddb_json::write_line(&row.item, &mut lines),
                        Format::Ion => ion::write_line(&row.item, &mut lines),
                    }
                }
                let rows = group.rows.len() as u64;
                by_dataset.push((group.dataset, rows));
                items += rows;
            }
            blocks.push(Block {
                table,
                deflated: deflate(&lines)?,
                crc: crc32fast::hash(&lines),
                raw: lines.len() as u64,
                items,
                by_dataset,
            });
        }
        Ok(crate::sink::Payload::Import(Payload { blocks }))
    }
}

/// Deflate blocks that hold `bytes` and end at a byte boundary with an empty stored block.
fn deflate(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut state = Compress::new(Compression::new(LEVEL), false);
    let mut out = Vec::with_capacity(bytes.len() / 4 + 64);
    loop {
        let read = usize::try_from(state.total_in()).expect("no more was read than lies in memory");
        state
            .compress_vec(&bytes[read..], &mut out, FlushCompress::Sync)
            .map_err(|cause| Error::new(Kind::Bug, "the compressor lost its state").caused_by(cause))?;
        // Room that was left says that the flush is complete; else some of it may still be inside.
        if out.len() < out.capacity() {
            return Ok(out);
        }
        out.reserve(out.len().max(4096));
    }
}

/// The half on the lane: for each table an object that grows.
struct Objects {
    folders: Arc<TableFolders>,
    staging: Staging,
    format: Format,
    roll_at: RollAt,
    unit: u32,
    /// By [`TableId`].
    open: Vec<Option<Object>>,
    /// The next object's number, by [`TableId`].
    next: Vec<u32>,
    account: Account,
}

/// An object that is being written.
struct Object {
    path: PathBuf,
    file: StagedFile,
    check: Hasher,
    raw: u64,
    items: u64,
}

/// A gzip header that says nothing of when and where: no name, time 0, system unknown.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// The last deflate block, empty.
const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

impl Writer for Objects {
    fn write(&mut self, payload: crate::sink::Payload, _late: &mut Vec<LateReject>) -> Result<()> {
        let crate::sink::Payload::Import(payload) = payload else {
            return Err(Error::new(Kind::Bug, "a payload of another sink reached the import files"));
        };
        payload.blocks.into_iter().try_for_each(|block| self.append(&block))
    }

    fn finish(mut self: Box<Self>, _late: &mut Vec<LateReject>) -> Result<Written> {
        for table in 0..self.open.len() {
            self.close(table)?;
        }
        Ok(self.account.written())
    }
}

impl Objects {
    fn append(&mut self, block: &Block) -> Result<()> {
        let table = block.table.index();
        let full = self.open[table]
            .as_ref()
            .is_some_and(|object| object.raw + block.raw > self.roll_at.bytes || object.items + block.items > self.roll_at.items);
        if full {
            self.close(table)?;
        }
        let object = match &mut self.open[table] {
            Some(object) => object,
            empty => {
                let ending = match self.format {
                    Format::Json => "json",
                    Format::Ion => "ion",
                };
                let name = format!("part-u{:05}-{:04}.{ending}.gz", self.unit, self.next[table]);
                self.next[table] += 1;
                let path = self.folders.folder(block.table).join("data").join(name);
                let mut file = self.staging.create(&path)?;
                file.put(&GZIP_HEADER)?;
                empty.insert(Object { path, file, check: Hasher::new(), raw: 0, items: 0 })
            }
        };
        object.file.put(&block.deflated)?;
        object.check.combine(&Hasher::new_with_initial_len(block.crc, block.raw));
        object.raw += block.raw;
        object.items += block.items;
        for (dataset, items) in &block.by_dataset {
            self.account.add_items(dataset.0, *items);
        }
        Ok(())
    }

    fn close(&mut self, table: usize) -> Result<()> {
        let Some(Object { path, mut file, check, raw, items }) = self.open[table].take() else { return Ok(()) };
        let mut end = Vec::with_capacity(10);
        end.extend_from_slice(&LAST_BLOCK);
        end.extend_from_slice(&check.finalize().to_le_bytes());
        // The format's length field counts modulo 2^32.
        end.extend_from_slice(&raw.to_le_bytes()[..4]);
        file.put(&end)?;
        let bytes = file.finish()?;
        self.account.add_file(path, items, bytes);
        Ok(())
    }
}

/// The request of `ImportTable`; field order is the order of the text.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ImportRequest<'t> {
    s3_bucket_source: BucketSource,
    input_format: &'static str,
    input_compression_type: &'static str,
    table_creation_parameters: TableParameters<'t>,
}

#[derive(Serialize)]
struct BucketSource {
    #[serde(rename = "S3Bucket")]
    bucket: String,
    #[serde(rename = "S3BucketOwner", skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(rename = "S3KeyPrefix")]
    prefix: String,
}

impl BucketSource {
    /// The data of a table. Where the files will lie in S3 is not known of a folder on this machine.
    fn new(within: &OutputFolder, table: &str) -> Self {
        match within {
            OutputFolder::Local(_) => Self { bucket: "REPLACE-WITH-YOUR-BUCKET".to_owned(), owner: None, prefix: format!("{table}/data/") },
            #[cfg(feature = "s3")]
            OutputFolder::S3(folder) => Self {
                bucket: folder.bucket().name().to_owned(),
                owner: folder.bucket().expected_owner().map(str::to_owned),
                prefix: format!("{}{table}/data/", folder.prefix()),
            },
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct TableParameters<'t> {
    table_name: &'t str,
    attribute_definitions: Vec<AttributeDefinition<'t>>,
    key_schema: Vec<KeyElement<'t>>,
    billing_mode: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    global_secondary_indexes: Vec<GlobalIndex<'t>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct AttributeDefinition<'t> {
    attribute_name: &'t str,
    attribute_type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct KeyElement<'t> {
    attribute_name: &'t str,
    key_type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct GlobalIndex<'t> {
    index_name: &'t str,
    key_schema: Vec<KeyElement<'t>>,
    projection: Projection,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Projection {
    projection_type: &'static str,
}

fn key_schema(key: &KeySchema) -> Vec<KeyElement<'_>> {
    key.attributes().zip(["HASH", "RANGE"]).map(|(attribute, key_type)| KeyElement { attribute_name: &attribute.name, key_type }).collect()
}

/// The text of `table.json`. The service refuses a definition that no key uses and one that is there twice.
fn table_json(table: &Table, service_name: &str, format: Format, s3_bucket_source: BucketSource) -> String {
    let mut attribute_definitions: Vec<AttributeDefinition<'_>> = Vec::new();
    for attribute in table.key.attributes().chain(table.indexes.iter().flat_map(|index| index.key.attributes())) {
        if attribute_definitions.iter().all(|known| known.attribute_name != attribute.name) {
            attribute_definitions
                .push(AttributeDefinition { attribute_name: &attribute.name, attribute_type: attribute.kind.descriptor() });
        }
    }
    let request = ImportRequest {
        s3_bucket_source,
        input_format: match format {
            Format::Json => "DYNAMODB_JSON",
            Format::Ion => "ION",
        },
        input_compression_type: "GZIP",
        table_creation_parameters: TableParameters {
            table_name: service_name,
            attribute_definitions,
            key_schema: key_schema(&table.key),
            // The service refuses a request without a billing mode, since it would mean provisioned.
            billing_mode: "PAY_PER_REQUEST",
            global_secondary_indexes: table
                .indexes
                .iter()
                .map(|index| GlobalIndex {
                    index_name: &index.name,
                    key_schema: key_schema(&index.key),
                    projection: Projection { projection_type: "ALL" },
                })
                .collect(),
        },
    };
    let mut text = serde_json::to_string_pretty(&request).expect("the request holds texts and lists only");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::{GzDecoder, MultiGzDecoder};

    use super::*;
    use crate::model::{Arena, Creation, Dataset, EntityId, FileId, Index, Item, KeyAttribute, KeyType, Origin, Raw, Row, Value};

    fn key(partition: (&str, KeyType), sort: Option<(&str, KeyType)>) -> KeySchema {
        let attribute = |(name, kind): (&str, KeyType)| KeyAttribute { name: name.to_owned(), kind };
        KeySchema { partition: attribute(partition), sort: sort.map(attribute) }
    }

    fn targets() -> Arc<Targets> {
        let table = |name: &str, key: KeySchema, indexes: Vec<Index>| Table {
            name: name.to_owned(),
            key,
            indexes,
            type_attribute: None,
            creation: Creation::default(),
        };
        let recent = key(("GSI1PK", KeyType::S), Some(("SK", KeyType::S)));
        Arc::new(Targets {
            tables: vec![
                table("docs", key(("PK", KeyType::S), Some(("SK", KeyType::S))), vec![Index { name: "recent".to_owned(), key: recent }]),
                table("counts", key(("PK", KeyType::N), None), Vec::new()),
            ],
            datasets: vec![Dataset { name: "Document".to_owned(), tables: vec![TableId(0)], leading: Vec::new() }],
        })
    }

    fn rows<'a>(arena: &'a Arena, keys: &[&'a str]) -> Vec<Row<'a>> {
        let row = |name: &&'a str| {
            let mut item = Item::new_in(arena);
            item.push("PK", Value::S(name));
            Row { origin: Origin { file: FileId(0), line: 1 }, item, captures: &[], source: Raw::json(b"{}"), change: None, size: 0 }
        };
        keys.iter().map(row).collect()
    }

    fn outgoing<'a>(arena: &'a Arena, table: u32, dataset: u32, keys: &[&'a str]) -> Outgoing<'a> {
        Outgoing { entity: EntityId(0), dataset: DatasetId(dataset), table: Some(TableId(table)), rows: rows(arena, keys) }
    }

    fn sink(dir: &std::path::Path, roll_at: RollAt) -> ImportFiles {
        sink_in(Format::Json, dir, roll_at)
    }

    fn sink_in(format: Format, dir: &std::path::Path, roll_at: RollAt) -> ImportFiles {
        let names = BTreeMap::from([("docs".to_owned(), "prod-docs".to_owned())]);
        let sink = ImportFiles::new(dir.to_owned(), false, targets(), names, format).with_roll_at(roll_at);
        sink.prepare(Begin::Anew).unwrap();
        sink
    }

    fn run(sink: &ImportFiles, chunks: &[Vec<Outgoing<'_>>]) -> Written {
        let encoder = sink.encoder();
        let mut writer = sink.writer(1).unwrap();
        let mut late = Vec::new();
        for chunk in chunks {
            writer.write(encoder.encode(chunk).unwrap(), &mut late).unwrap();
        }
        let written = writer.finish(&mut late).unwrap();
        assert!(late.is_empty());
        written
    }

    /// The text of a gzip file, read by a reader that stops after the first member and by one that does not.
    fn gunzip(path: &std::path::Path) -> String {
        let bytes = std::fs::read(path).unwrap();
        let (mut one, mut all) = (String::new(), String::new());
        GzDecoder::new(&bytes[..]).read_to_string(&mut one).unwrap();
        MultiGzDecoder::new(&bytes[..]).read_to_string(&mut all).unwrap();
        assert_eq!(one, all, "the object has more than one member");
        one
    }

    #[test]
    fn payloads_become_one_gzip_member_with_a_line_for_each_item() {
        let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
        let sink = sink(dir.path(), RollAt::default());
        let chunks = [
            vec![outgoing(&arena, 0, 0, &["a", "b"]), outgoing(&arena, 1, 1, &["n"]), outgoing(&arena, 0, 1, &["c"])],
            vec![outgoing(&arena, 0, 0, &["d"])],
        ];
        let written = run(&sink, &chunks);
        let data = dir.path().join("docs/data");
        assert!(!data.exists(), "visible before the commit");
        sink.commit(std::slice::from_ref(&written)).unwrap();
        let line = |name: &str| format!("{{\"Item\":{{\"PK\":{{\"S\":\"{name}\"}}}}}}\n");
        assert_eq!(gunzip(&data.join("part-u00001-0000.json.gz")), ["a", "b", "c", "d"].map(line).concat());
        assert_eq!(gunzip(&dir.path().join("counts/data/part-u00001-0000.json.gz")), line("n"));
        assert_eq!(std::fs::read_dir(&data).unwrap().count(), 1, "only data may lie below the prefix");
        assert_eq!(written.items, BTreeMap::from([(0, 3), (1, 2)]));
        assert_eq!(written.files.iter().map(|file| file.items).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(written.bytes, written.files.iter().map(|file| file.bytes).sum::<u64>());
    }

    #[test]
    fn ion_has_its_own_lines_names_and_request() {
        let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
        let sink = sink_in(Format::Ion, dir.path(), RollAt::default());
        let mut group = outgoing(&arena, 0, 0, &["a", "it's \"b\""]);
        group.rows[1].item.push("size", Value::N("61600"));
        let written = run(&sink, &[vec![group]]);
        sink.commit(std::slice::from_ref(&written)).unwrap();
        assert_eq!(
            gunzip(&dir.path().join("docs/data/part-u00001-0000.ion.gz")),
            "$ion_1_0 {Item:{PK:\"a\"}}\n$ion_1_0 {Item:{PK:\"it's \\\"b\\\"\",size:616d2}}\n"
        );
        assert_eq!(std::fs::read_dir(dir.path().join("docs/data")).unwrap().count(), 1);
        let request = std::fs::read_to_string(dir.path().join("docs/table.json")).unwrap();
        assert!(request.contains("\"InputFormat\": \"ION\",\n  \"InputCompressionType\": \"GZIP\""), "{request}");
    }

    #[test]
    fn an_object_ends_before_the_payload_that_would_make_it_too_large() {
        let line = 26;
        for (roll_at, expected) in [
            (RollAt { bytes: 3 * line, items: 99 }, vec![3, 2]),
            (RollAt { bytes: 999, items: 3 }, vec![3, 2]),
            (RollAt { bytes: 1, items: 1 }, vec![2, 1, 2]),
            (RollAt { bytes: 5 * line, items: 5 }, vec![5]),
        ] {
            let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
            let sink = sink(dir.path(), roll_at);
            let chunks = [
                vec![outgoing(&arena, 0, 0, &["a", "b"])],
                vec![outgoing(&arena, 0, 0, &["c"])],
                vec![outgoing(&arena, 0, 0, &["d", "e"])],
            ];
            let written = run(&sink, &chunks);
            assert_eq!(written.files.iter().map(|file| file.items).collect::<Vec<_>>(), expected, "{roll_at:?}");
            sink.commit(&[written]).unwrap();
            let text: String =
                (0..expected.len()).map(|at| gunzip(&dir.path().join(format!("docs/data/part-u00001-{at:04}.json.gz")))).collect();
            assert_eq!(text.lines().count(), 5);
        }
    }

    #[test]
    fn large_and_incompressible_payloads_come_back_whole() {
        let mut noise = 1_u32;
        let texts: Vec<String> = [0, 1, 70_000, 3_000_000]
            .into_iter()
            .map(|length| {
                let next = |_| {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    char::from(b' ' + u8::try_from(noise >> 26).unwrap())
                };
                (0..length).map(next).collect()
            })
            .collect();
        let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
        let sink = sink(dir.path(), RollAt::default());
        let chunks: Vec<_> = texts.iter().map(|text| vec![outgoing(&arena, 0, 0, &[text])]).collect();
        sink.commit(&[run(&sink, &chunks)]).unwrap();
        let lines = gunzip(&dir.path().join("docs/data/part-u00001-0000.json.gz"));
        let read: Vec<String> = lines
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["Item"]["PK"]["S"].as_str().unwrap().to_owned())
            .collect();
        assert!(read == texts);
    }

    #[test]
    fn the_table_can_be_made_from_table_json_even_when_it_got_no_item() {
        let dir = tempfile::tempdir().unwrap();
        let sink = sink(dir.path(), RollAt::default());
        sink.commit(&[run(&sink, &[])]).unwrap();
        assert!(!dir.path().join("docs/data").exists());
        assert_eq!(
            std::fs::read_to_string(dir.path().join("docs/table.json")).unwrap(),
            r#"{
  "S3BucketSource": {
    "S3Bucket": "REPLACE-WITH-YOUR-BUCKET",
    "S3KeyPrefix": "docs/data/"
  },
  "InputFormat": "DYNAMODB_JSON",
  "InputCompressionType": "GZIP",
  "TableCreationParameters": {
    "TableName": "prod-docs",
    "AttributeDefinitions": [
      {
        "AttributeName": "PK",
        "AttributeType": "S"
      },
      {
        "AttributeName": "SK",
        "AttributeType": "S"
      },
      {
        "AttributeName": "GSI1PK",
        "AttributeType": "S"
      }
    ],
    "KeySchema": [
      {
        "AttributeName": "PK",
        "KeyType": "HASH"
      },
      {
        "AttributeName": "SK",
        "KeyType": "RANGE"
      }
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
      {
        "IndexName": "recent",
        "KeySchema": [
          {
            "AttributeName": "GSI1PK",
            "KeyType": "HASH"
          },
          {
            "AttributeName": "SK",
            "KeyType": "RANGE"
          }
        ],
        "Projection": {
          "ProjectionType": "ALL"
        }
      }
    ]
  }
}
"#
        );
        let counts = std::fs::read_to_string(dir.path().join("counts/table.json")).unwrap();
        assert!(counts.contains(r#""TableName": "counts""#) && counts.contains(r#""AttributeType": "N""#));
        assert!(!counts.contains("GlobalSecondaryIndexes"));
    }
}
