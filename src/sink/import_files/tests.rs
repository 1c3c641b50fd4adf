use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use flate2::read::{GzDecoder, MultiGzDecoder};

use super::*;
use crate::model::{
    Arena, Creation, Dataset, DatasetId, EntityId, FileId, Index, Item, KeyAttribute, KeySchema, KeyType, Origin, Raw, Row, Table, Value,
};
use crate::sink::{Outgoing, TableContent};

const JSON: Options = Options { format: Format::Json, compression: Compression::Gzip, object_bytes: 256 << 20 };

/// Limits that a few hundred short lines reach.
const SMALL: Limits = Limits { window: 8 << 10, waiting: 12 << 10, in_flight: 2, piece: 1 << 10, object_items: 1000, objects: 1000 };

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
    let dataset = |name: &str, table| Dataset { name: name.to_owned(), tables: vec![TableId(table)], ..Dataset::default() };
    Arc::new(Targets {
        tables: vec![
            table("docs", key(("PK", KeyType::S), Some(("SK", KeyType::S))), vec![Index { name: "recent".to_owned(), key: recent }]),
            table("counts", key(("PK", KeyType::N), None), Vec::new()),
        ],
        datasets: vec![dataset("Document", 0), dataset("Count", 1)],
    })
}

/// An item for each pair of a partition and a sort key.
fn outgoing<'a>(arena: &'a Arena, table: u32, dataset: u32, keys: &[(&'a str, &'a str)]) -> Outgoing<'a> {
    let row = |(partition, sort): &(&'a str, &'a str)| {
        let mut item = Item::new_in(arena);
        item.push("PK", Value::S(partition));
        item.push("SK", Value::S(sort));
        Row { origin: Origin { file: FileId(0), line: 1 }, item, captures: &[], source: Raw::json(b"{}"), change: None, size: 0 }
    };
    let rows = keys.iter().map(row).collect();
    Outgoing { entity: EntityId(0), dataset: DatasetId(dataset), table: Some(TableId(table)), rows }
}

/// Runs jobs as they are spawned.
fn at_once() -> Spawn {
    Arc::new(|job| job())
}

fn sink_with(dir: &Path, options: Options, limits: Limits, spawn: Spawn) -> ImportFiles {
    let names = BTreeMap::from([("docs".to_owned(), "prod-docs".to_owned())]);
    let sink = ImportFiles::new(dir.to_owned(), false, targets(), names, options, spawn).with_limits(limits);
    sink.prepare(Begin::Anew).unwrap();
    sink
}

fn sink(dir: &Path, options: Options, limits: Limits) -> ImportFiles {
    sink_with(dir, options, limits, at_once())
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

/// The text of an object, read by a reader that stops after the first member or frame and by one that does not.
fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let (mut one, mut all) = (String::new(), String::new());
    if path.extension().is_some_and(|extension| extension == "zst") {
        zstd::Decoder::new(&bytes[..]).unwrap().single_frame().read_to_string(&mut one).unwrap();
        zstd::Decoder::new(&bytes[..]).unwrap().read_to_string(&mut all).unwrap();
    } else {
        GzDecoder::new(&bytes[..]).read_to_string(&mut one).unwrap();
        MultiGzDecoder::new(&bytes[..]).read_to_string(&mut all).unwrap();
    }
    assert_eq!(one, all, "the object has more than one member or frame");
    one
}

/// The objects of a table: their names and texts.
fn objects(dir: &Path, table: &str) -> Vec<(String, String)> {
    let names = std::fs::read_dir(dir.join(table).join("data")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<_> = names.collect();
    names.into_iter().map(|name| (name.clone(), text(&dir.join(table).join("data").join(name)))).collect()
}

/// The partition keys of a text's lines.
fn partition_keys(text: &str) -> Vec<String> {
    let item = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    text.lines().map(|line| item(line)["Item"]["PK"]["S"].as_str().unwrap().to_owned()).collect()
}

/// An export's lines in chunks: a hot key of 30 %, others of 20 items, and single ones.
fn hot() -> Vec<(String, String)> {
    let mut keys = Vec::new();
    for collection in 0..60 {
        keys.extend((0..30).map(|sort| ("HOT".to_owned(), format!("{collection}-{sort}"))));
        keys.extend((0..20).map(|sort| (format!("WS#{collection}"), sort.to_string())));
        keys.extend((0..50).map(|single| (format!("ONE#{collection}-{single}"), "0".to_owned())));
    }
    keys
}

fn chunks<'a>(arena: &'a Arena, keys: &'a [(String, String)]) -> Vec<Vec<Outgoing<'a>>> {
    let pairs: Vec<_> = keys.iter().map(|(partition, sort)| (partition.as_str(), sort.as_str())).collect();
    pairs.chunks(70).map(|chunk| vec![outgoing(arena, 0, 0, chunk)]).collect()
}

#[test]
fn payloads_become_one_member_or_frame_with_a_line_for_each_item() {
    for (compression, ending) in [(Compression::Gzip, "json.gz"), (Compression::Zstd, "json.zst")] {
        let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
        let sink = sink(dir.path(), Options { compression, ..JSON }, Limits::default());
        let chunks = [
            vec![
                outgoing(&arena, 0, 0, &[("a", "1"), ("b", "1")]),
                outgoing(&arena, 1, 1, &[("n", "1")]),
                outgoing(&arena, 0, 1, &[("c", "1")]),
            ],
            vec![outgoing(&arena, 0, 0, &[("d", "1")])],
        ];
        let written = run(&sink, &chunks);
        assert!(!dir.path().join("docs/data").exists(), "visible before the commit");
        sink.commit(std::slice::from_ref(&written)).unwrap();
        let line = |name: &str| format!("{{\"Item\":{{\"PK\":{{\"S\":\"{name}\"}},\"SK\":{{\"S\":\"1\"}}}}}}");
        let [(name, text)] = &objects(dir.path(), "docs")[..] else { panic!("not one object") };
        assert_eq!(*name, format!("part-u00001-0000.{ending}"));
        assert!(text.ends_with('\n'));
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a", "b", "c", "d"].map(line));
        assert_eq!(objects(dir.path(), "counts"), [(format!("part-u00001-0000.{ending}"), line("n") + "\n")]);
        assert_eq!(written.items, BTreeMap::from([(0, 3), (1, 2)]));
        assert_eq!(written.files.iter().map(|file| file.items).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(written.bytes, written.files.iter().map(|file| file.bytes).sum::<u64>());
        let content = |items: &[(u32, u64)], text_bytes| TableContent { items: items.iter().copied().collect(), text_bytes };
        let line = line("a").len() as u64 + 1;
        assert_eq!(written.tables, BTreeMap::from([(0, content(&[(0, 3), (1, 1)], 4 * line)), (1, content(&[(1, 1)], line))]));
        let request = std::fs::read_to_string(dir.path().join("docs/table.json")).unwrap();
        let named = format!("\"InputCompressionType\": \"{}\"", if compression == Compression::Gzip { "GZIP" } else { "ZSTD" });
        assert!(request.contains(&named), "{request}");
    }
}

#[test]
fn ion_has_its_own_lines_names_and_request() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
    let sink = sink(dir.path(), Options { format: Format::Ion, ..JSON }, Limits::default());
    let mut group = outgoing(&arena, 0, 0, &[("a", "it's \"b\"")]);
    group.rows[0].item.push("size", Value::N("61600"));
    let written = run(&sink, &[vec![group]]);
    sink.commit(std::slice::from_ref(&written)).unwrap();
    let line = "$ion_1_0 {Item:{PK:\"a\",SK:\"it's \\\"b\\\"\",size:616d2}}\n";
    assert_eq!(objects(dir.path(), "docs"), [("part-u00001-0000.ion.gz".to_owned(), line.to_owned())]);
    let request = std::fs::read_to_string(dir.path().join("docs/table.json")).unwrap();
    assert!(request.contains("\"InputFormat\": \"ION\",\n  \"InputCompressionType\": \"GZIP\""), "{request}");
}

#[test]
fn no_two_neighbours_share_a_partition_key_and_each_line_is_there_once() {
    let (dir, arena, keys) = (tempfile::tempdir().unwrap(), Arena::new(), hot());
    let sink = sink(dir.path(), JSON, SMALL);
    let written = run(&sink, &chunks(&arena, &keys));
    sink.commit(&[written]).unwrap();
    let objects = objects(dir.path(), "docs");
    assert!(objects.len() >= 4, "{}", objects.len());
    for (name, text) in &objects {
        let keys = partition_keys(text);
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{name}");
        // Whoever reads one object reads no more of the hot key than its share.
        let hot = keys.iter().filter(|key| *key == "HOT").count();
        assert!((hot * 100).abs_diff(keys.len() * 30) <= keys.len() * 100 / 20, "{name}: {hot} of {}", keys.len());
    }
    let mut found: Vec<_> = objects.iter().flat_map(|(_, text)| text.lines()).collect();
    let line =
        |(partition, sort): &(String, String)| format!("{{\"Item\":{{\"PK\":{{\"S\":\"{partition}\"}},\"SK\":{{\"S\":\"{sort}\"}}}}}}");
    let mut expected: Vec<_> = keys.iter().map(line).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn the_bytes_do_not_depend_on_when_jobs_are_done() {
    let (arena, keys) = (Arena::new(), hot());
    let mut chunks = chunks(&arena, &keys);
    for chunk in chunks.iter_mut().step_by(3) {
        chunk.push(outgoing(&arena, 1, 1, &[("1", "a"), ("1.0", "b"), ("2", "c")]));
    }
    for compression in [Compression::Gzip, Compression::Zstd] {
        let written_by = |spawn: Spawn| {
            let dir = tempfile::tempdir().unwrap();
            let sink = sink_with(dir.path(), Options { compression, object_bytes: 5 << 10, ..JSON }, SMALL, spawn);
            let written = run(&sink, &chunks);
            sink.commit(std::slice::from_ref(&written)).unwrap();
            let bytes = |file: &WrittenFile| std::fs::read(dir.path().join(&file.path)).unwrap();
            let files: Vec<_> = written.files.iter().map(|file| (file.path.clone(), bytes(file))).collect();
            (written, files)
        };
        let expected = written_by(at_once());
        assert!(expected.1.len() > 20, "{}", expected.1.len());
        assert!(written_by(Arc::new(|job| drop(std::thread::spawn(job)))) == expected);
        for workers in [1, 2, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
            assert!(written_by(Arc::new(move |job| pool.spawn_fifo(job))) == expected, "{workers}");
        }
    }
}

#[test]
fn what_waits_in_memory_is_bounded() {
    let (dir, arena, keys) = (tempfile::tempdir().unwrap(), Arena::new(), hot());
    let sink = sink_with(dir.path(), JSON, SMALL, Arc::new(|job| drop(std::thread::spawn(job))));
    let mut writer = Objects::new(Arc::clone(&sink.folders), JSON, SMALL, Arc::clone(&sink.spawn), 1).unwrap();
    let encoder = sink.encoder();
    let mut most = 0;
    for mut chunk in chunks(&arena, &keys) {
        chunk.push(outgoing(&arena, 1, 1, &[("1", "a"); 40]));
        writer.write(encoder.encode(&chunk).unwrap(), &mut Vec::new()).unwrap();
        let (waiting, windows) = writer.held();
        assert!(waiting <= SMALL.waiting && windows <= SMALL.in_flight, "{waiting} bytes, {windows} windows");
        most = most.max(waiting);
    }
    assert!(most > SMALL.window, "both tables together never came near the bound: {most}");
}

#[test]
fn an_object_ends_before_the_piece_that_would_make_it_too_large() {
    let keys: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| (name, "1")).to_vec();
    let line = 41;
    for (object_bytes, object_items, expected) in [
        (3 * line, 99, vec![3, 2]),
        (2 * line, 99, vec![2, 2, 1]),
        (999, 3, vec![3, 2]),
        (1, 1, vec![1, 1, 1, 1, 1]),
        (5 * line, 5, vec![5]),
    ] {
        let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
        let sink = sink(dir.path(), Options { object_bytes, ..JSON }, Limits { object_items, ..Limits::default() });
        let written = run(&sink, &[vec![outgoing(&arena, 0, 0, &keys)]]);
        let mut found: Vec<_> = written.files.iter().map(|file| file.items).collect();
        found.sort_unstable_by_key(|items| std::cmp::Reverse(*items));
        assert_eq!(found, expected, "{object_bytes} {object_items}");
        sink.commit(&[written]).unwrap();
        assert_eq!(objects(dir.path(), "docs").iter().map(|(_, text)| text.lines().count()).sum::<usize>(), 5);
    }
}

#[test]
fn a_table_of_more_objects_than_an_import_takes_is_an_error() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
    let chunk = vec![outgoing(&arena, 0, 0, &[("a", "1"), ("b", "1")]), outgoing(&arena, 1, 1, &[("c", "1")])];
    let sink = sink(dir.path(), Options { object_bytes: 1, ..JSON }, Limits { objects: 1, ..Limits::default() });
    let written = run(&sink, &[chunk]);
    let error = sink.commit(&[written]).unwrap_err();
    assert_eq!(error.message(), "a table has more objects than one import takes");
    for part in ["table: docs", "found: 2 objects", "expected: at most 1", "--import-object-size"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(!dir.path().join("docs").exists(), "visible after all");
}

#[test]
fn large_objects_grow_alone() {
    let (mib, gib) = (1 << 20, 1 << 30);
    for (object_bytes, side_by_side) in [(1, 4), (256 * mib, 4), (256 * mib + 1, 2), (512 * mib, 2), (512 * mib + 1, 1), (5 * gib, 1)] {
        assert_eq!(Options { object_bytes, ..JSON }.side_by_side(), side_by_side, "{object_bytes}");
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
    for compression in [Compression::Gzip, Compression::Zstd] {
        let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
        let sink = sink(dir.path(), Options { compression, ..JSON }, Limits::default());
        let chunks: Vec<_> = texts.iter().map(|text| vec![outgoing(&arena, 0, 0, &[(text, "")])]).collect();
        sink.commit(&[run(&sink, &chunks)]).unwrap();
        let mut read: Vec<_> = objects(dir.path(), "docs").iter().flat_map(|(_, text)| partition_keys(text)).collect();
        read.sort_unstable_by_key(String::len);
        assert!(read == texts);
    }
}

#[test]
fn the_table_can_be_made_or_filled_even_when_it_got_no_item() {
    let dir = tempfile::tempdir().unwrap();
    let sink = sink(dir.path(), JSON, Limits::default());
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
    assert_eq!(
        std::fs::read_to_string(dir.path().join("docs/bulk-put.json")).unwrap(),
        r#"{
  "TableName": "prod-docs",
  "InputS3Configuration": {
    "S3Bucket": "REPLACE-WITH-YOUR-BUCKET",
    "S3KeyPrefix": "docs/data/",
    "InputFormat": "DYNAMODB_JSON",
    "InputCompressionType": "GZIP"
  },
  "OutputS3Configuration": {
    "S3Bucket": "REPLACE-WITH-YOUR-BUCKET",
    "S3KeyPrefix": "bulk-put-errors/docs/",
    "OutputType": [
      "ERROR"
    ]
  }
}
"#
    );
}

#[test]
fn the_counts_say_what_must_arrive() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), Arena::new());
    let sink = sink(dir.path(), JSON, Limits::default());
    let of = |table, dataset, keys: &[(&'static str, &'static str)]| outgoing(&arena, table, dataset, keys);
    let written = [
        run(&sink, &[vec![of(0, 0, &[("a", "1"), ("b", "1")]), of(0, 1, &[("c", "1")])]]),
        Written {
            tables: BTreeMap::from([(0, TableContent { items: BTreeMap::from([(0, 2), (1, 0)]), text_bytes: 9 })]),
            ..Written::default()
        },
    ];
    let bytes = written[0].bytes;
    sink.commit(&written).unwrap();
    let found: Counts = serde_json::from_slice(&std::fs::read(dir.path().join(COUNTS)).unwrap()).unwrap();
    let docs = TableCounts {
        table: "docs".to_owned(),
        items: 5,
        entities: BTreeMap::from([("Document".to_owned(), 4), ("Count".to_owned(), 1)]),
        objects: 1,
        bytes,
        text_bytes: 3 * 41 + 9,
    };
    assert_eq!(found, Counts { tables: vec![docs, TableCounts { table: "counts".to_owned(), ..TableCounts::default() }] });
}

#[test]
fn a_table_cannot_have_the_name_of_a_file_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut targets = Targets::clone(&targets());
    targets.tables[1].name = COUNTS.to_owned();
    let sink = ImportFiles::new(dir.path().to_owned(), false, Arc::new(targets), BTreeMap::new(), JSON, at_once());
    let error = sink.prepare(Begin::Anew).unwrap_err();
    assert!(error.to_string().contains("table: counts.json"), "{error}");
}
