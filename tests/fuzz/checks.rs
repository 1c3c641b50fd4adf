//! What must hold whatever the bytes: each function takes any bytes, and panics where a promise is broken.
//!
//! The fuzz targets call them with bytes that libFuzzer finds, and `cargo test` with the seeds and with changed seeds. Each binary
//! uses some of them only.
#![allow(dead_code, reason = "each fuzz target includes this file and calls one function")]

use std::fs;
use std::path::Path;

use dynamorph::Plan;
use dynamorph::codec::{self, Record, ddb_json, ion};
use dynamorph::expr::{Condition, Template};
use dynamorph::limits;
use dynamorph::model::{Arena, FileId, Format, Item, Part, Value};
use dynamorph::source::chunk::ChunkReader;
use dynamorph::source::manifest::{self, Verify};
use dynamorph::store::{Facts, Location, Stamp};

/// Two items are one and the same to `DynamoDB`.
fn same(one: &Item<'_>, other: &Item<'_>) -> bool {
    Value::M(one.attributes()).same_as(&Value::M(other.attributes()))
}

/// A line of `DynamoDB` JSON is decoded or refused. What was decoded is the same after encoding, and its source is a line that gives it
/// again, which is what a rejects file holds.
pub(crate) fn json_lines(data: &[u8]) {
    let Ok(line) = std::str::from_utf8(data) else { return };
    let arena = Arena::new();
    let Ok(decoded) = codec::decode_line(line, Format::Json, &arena) else { return };
    let again = codec::json_line(decoded.source);
    let again = std::str::from_utf8(&again).expect("JSON is UTF-8");
    let reread = ddb_json::decode_line(again, &arena).expect("the source of a record is a record");
    match (decoded.record, reread.record) {
        (Record::Item(item), Record::Item(source)) => {
            let mut out = br#"{"Item":"#.to_vec();
            ddb_json::write_item(&item, &mut out);
            out.push(b'}');
            let text = std::str::from_utf8(&out).expect("JSON is UTF-8");
            let encoded = ddb_json::decode_item(text, &arena).expect("what was encoded can be decoded");
            assert!(same(&encoded, &item));
            assert!(same(&item, &source));
        }
        (Record::Change(change), Record::Change(source)) => {
            assert_eq!((change.written_at, change.op()), (source.written_at, source.op()));
            assert!(same(&change.keys, &source.keys));
            assert!(same(&change.into_image().1, &source.into_image().1));
            assert!(decoded.source.part == Part::Change);
        }
        (one, other) => panic!("{one:?} was read again as {other:?}"),
    }
}

/// A line of Ion is decoded or refused. What was decoded is the same after encoding, and so is the line of JSON that a rejects file
/// holds.
pub(crate) fn ion_lines(data: &[u8]) {
    let Ok(line) = std::str::from_utf8(data) else { return };
    let arena = Arena::new();
    let Ok(decoded) = codec::decode_line(line, Format::Ion, &arena) else { return };
    let json = codec::json_line(decoded.source);
    let json = std::str::from_utf8(&json).expect("JSON is UTF-8");
    let reread = ddb_json::decode_line(json, &arena).expect("what is rejected is a record of JSON");
    match (decoded.record, reread.record) {
        (Record::Item(item), Record::Item(source)) => {
            // Only what the limits let pass is ever written; a number beyond DynamoDB's range has no exact exponent.
            if limits::check_item(&item, None).is_ok() {
                let mut out = Vec::new();
                ion::write_line(&item, &mut out);
                let text = std::str::from_utf8(&out).expect("Ion is UTF-8");
                let Ok(Record::Item(encoded)) = ion::decode_line(text, &arena).map(|decoded| decoded.record) else {
                    panic!("{text} is no item")
                };
                assert!(same(&encoded, &item));
            }
            assert!(same(&source, &item));
        }
        (Record::Change(change), Record::Change(source)) => {
            assert_eq!((change.written_at, change.op()), (source.written_at, source.op()));
            assert!(same(&change.keys, &source.keys));
            assert!(same(&change.into_image().1, &source.into_image().1));
        }
        (one, other) => panic!("{one:?} was rejected as {other:?}"),
    }
}

/// A summary and a list, with a zero byte between them, are an export or are refused; nothing outside the folder is opened.
pub(crate) fn manifest(data: &[u8]) {
    let (summary, list) = data.split_at(data.iter().position(|byte| *byte == 0).unwrap_or(data.len()));
    let temp = tempfile::tempdir().expect("there is room for a folder");
    let folder = temp.path().join("AWSDynamoDB/01768385930622-efd1a093");
    fs::create_dir_all(folder.join("data")).expect("there is room for a folder");
    for (name, bytes) in
        [("manifest-summary.json", summary), ("manifest-files.json", list.get(1..).unwrap_or_default()), ("data/x.json.gz", b"x")]
    {
        fs::write(folder.join(name), bytes).expect("there is room for a file");
    }
    for verify in [Verify::Strict, Verify::Data, Verify::Off] {
        let options = manifest::Options { verify, ..manifest::Options::default() };
        if let Ok(export) = manifest::open(&Location::Local(folder.clone()), &options) {
            for file in &export.files {
                let path = file.location.local().expect("a local export has local files");
                let real = path.canonicalize().expect("a listed file is there");
                assert!(real.starts_with(temp.path().canonicalize().expect("the folder is there")), "{} is outside", path.display());
            }
        }
    }
}

/// A data file gives the same lines whatever the size of its chunks, or an error; line numbers follow each other.
pub(crate) fn data_file(data: &[u8]) {
    let temp = tempfile::tempdir().expect("there is room for a folder");
    let path = temp.path().join("x");
    fs::write(&path, data).expect("there is room for a file");
    let whole = read(&path, data.len(), 1 << 20);
    let pieces = read(&path, data.len(), 7);
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces),
        (Err(_), Err(_)) => {}
        (one, other) => panic!("{one:?} in one piece, {other:?} in small ones"),
    }
}

/// All text of a file, and its format where it has lines.
fn read(path: &Path, bytes: usize, chunk_bytes: usize) -> Result<(Vec<u8>, Option<Format>), String> {
    let file = manifest::DataFile {
        location: Location::Local(path.to_owned()),
        name: "x".to_owned(),
        items: None,
        md5: None,
        facts: Facts { bytes: bytes as u64, stamp: Stamp::Modified(None) },
    };
    let mut reader = ChunkReader::open(&file, FileId(0), chunk_bytes).map_err(|error| error.message().to_owned())?;
    let (mut text, mut format, mut next) = (Vec::new(), None, 1);
    while let Some(chunk) = reader.next().map_err(|error| error.message().to_owned())? {
        assert_eq!(chunk.first.line, next);
        next += chunk.bytes.split_inclusive(|byte| *byte == b'\n').count() as u64;
        format = Some(chunk.format);
        text.extend_from_slice(&chunk.bytes);
    }
    Ok((text, format))
}

/// A template is parsed or refused. Parsed, it is written as it was, and a key that it matched is rendered again byte for byte. The first
/// line is the template, the second the key.
pub(crate) fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (text, key) = text.split_once('\n').unwrap_or((text, "WS#acme#DOC#7"));
    let Ok(mut template) = Template::parse(text) else { return };
    assert_eq!(template.to_string(), text);
    let names: Vec<String> = template.names().into_iter().map(str::to_owned).collect();
    template.bind(&names);
    let arena = Arena::new();
    let item = Item::new_in(&arena);
    let _ = template.render(&vec![None; names.len()], &item);
    if template.check_matchable().is_err() {
        return;
    }
    let mut captures = vec![None; names.len()];
    if template.matches(key, &mut captures) {
        assert_eq!(template.render(&captures, &item), Ok(key), "{text} matched {key}");
    }
}

/// A condition is parsed or refused, and holds or does not for any item. The first line is the condition, the second an item.
pub(crate) fn condition(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (text, line) = text.split_once('\n').unwrap_or((text, r#"{"Item":{"a":{"S":"x"},"n":{"N":"1"}}}"#));
    let Ok(condition) = Condition::parse(text) else { return };
    let arena = Arena::new();
    if let Ok(item) = ddb_json::decode_item(line, &arena) {
        let holds = condition.holds(&item);
        let negated = Condition::parse(&format!("NOT ({condition})")).expect("a condition in parentheses is one");
        assert_eq!(negated.holds(&item), !holds);
    }
}

/// A pipeline file is a plan or a list of mistakes, each with its place in the file.
pub(crate) fn pipeline(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Plan::from_toml(text) {
        Ok(plan) => {
            let _ = dynamorph::check_examples(&plan);
        }
        Err(mistakes) => assert!(!mistakes.to_string().is_empty()),
    }
}
