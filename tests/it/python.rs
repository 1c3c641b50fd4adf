//! Others read what we read, and what we write: Python programs with boto3, pyarrow and `DuckDB` as independent witnesses. The servers
//! for S3 are Python programs too.
//!
//! The programs are in `tests/python`; their packages are pinned there and installed into `target/interop-venv` when missing. Where that
//! is not possible the tests fail and say so; none is skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dynamorph::codec::{ddb_json, ion};
use dynamorph::model::number::Decimal;
use dynamorph::model::{Arena, Dataset, DatasetId, EntityId, FileId, Item, Origin, Raw, Row, Targets, Value};
use dynamorph::shape::Shape;
use dynamorph::sink::parquet::ParquetSink;
use dynamorph::sink::{Outgoing, Sink as _};
use dynamorph::source::chunk::ChunkReader;
use dynamorph::source::manifest;
use dynamorph::store::Begin;
use dynamorph::store::Location;
use serde_json::{Map, Value as Json, json};

use crate::samples::sample;

/// The folder of the programs.
pub(crate) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python")
}

/// The Python with all packages.
pub(crate) fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| environment("interop-venv", "requirements.txt"))
}

/// The Python of an environment in `target`, which is made when the packages of this file of `tests/python` are not in it.
pub(crate) fn environment(name: &str, requirements: &str) -> PathBuf {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp lies in target").join(name);
    let python = venv.join("bin/python");
    let requirements = programs().join(requirements);
    let wanted = fs::read(&requirements).expect("the lists of packages are part of the repository");
    // Written last, so it is there only when the environment is whole.
    let installed = venv.join("installed.txt");
    if fs::read(&installed).ok().as_ref() != Some(&wanted) {
        output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv), "python3 with its module venv");
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        let needed = format!("the packages of {} from a package index", requirements.display());
        output(Command::new(&python).args(pip).arg(&requirements), &needed);
        fs::write(installed, wanted).expect("the environment was made here a moment ago");
    }
    python
}

/// Runs the command and gives what it printed; the test ends when the command fails.
fn output(command: &mut Command, needed: &str) -> String {
    let done = command.output().unwrap_or_else(|cause| panic!("this test needs {needed}: {command:?}: {cause}"));
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "this test needs {needed}: {command:?}: {}\n{errors}", done.status);
    String::from_utf8(done.stdout).expect("the programs print UTF-8")
}

/// What a program of `tests/python` prints, by line.
pub(crate) fn run_program(program: &str, options: &[&str], paths: &[&Path]) -> Vec<String> {
    let mut command = Command::new(python());
    // The sources stay as they are: no folder of compiled ones beside them.
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(programs());
    command.arg(program).args(options).args(paths);
    output(&mut command, &format!("tests/python/{program} to succeed")).lines().map(str::to_owned).collect()
}

/// The canonical text of an item, which is that of `tests/python/canonical.py`.
pub(crate) fn canonical(item: &Item<'_>) -> String {
    Json::Object(item.attributes().iter().map(|(name, value)| ((*name).to_owned(), tagged(value))).collect()).to_string()
}

fn tagged(value: &Value<'_>) -> Json {
    let number = |text: &str| Decimal::parse(text).expect("the decoder lets only numbers pass").plain();
    let sorted = |mut members: Vec<String>| {
        members.sort_unstable();
        json!(members)
    };
    let inside = match *value {
        Value::S(text) => json!(text),
        Value::N(text) => json!(number(text)),
        Value::B(bytes) => json!(BASE64.encode(bytes)),
        Value::Bool(truth) => json!(truth),
        Value::Null => json!(true),
        Value::M(entries) => Json::Object(entries.iter().map(|(name, value)| ((*name).to_owned(), tagged(value))).collect()),
        Value::L(elements) => Json::Array(elements.iter().map(tagged).collect()),
        Value::Ss(members) => sorted(members.iter().map(|member| (*member).to_owned()).collect()),
        Value::Ns(members) => sorted(members.iter().map(|member| number(member)).collect()),
        Value::Bs(members) => sorted(members.iter().map(|member| BASE64.encode(member)).collect()),
    };
    Json::Object(Map::from_iter([(value.kind().descriptor().to_owned(), inside)]))
}

/// Calls `each` with every chunk of the export, decoded.
fn decode(export: &Path, each: &mut dyn FnMut(Vec<Row<'_>>)) {
    let export = manifest::open(&Location::Local(export.to_owned()), &manifest::Options::default()).unwrap();
    for (file, id) in export.files.iter().zip(0..) {
        let mut reader = ChunkReader::open(file, FileId(id), 8192).unwrap();
        while let Some(chunk) = reader.next().unwrap() {
            let arena = Arena::new();
            let text = str::from_utf8(&chunk.bytes).unwrap();
            let rows = text.lines().zip(chunk.first.line..).map(|(text, line)| {
                let item = ddb_json::decode_item(text, &arena).unwrap();
                let origin = Origin { file: FileId(id), line };
                Row { origin, item, captures: &[], source: Raw::json(text.as_bytes()), change: None, size: 0 }
            });
            each(rows.collect());
        }
    }
}

pub(crate) const HEALTHY: [&str; 5] = ["docs", "docs-prefixed", "workspaces", "sql-style/workspaces", "sql-style/projects"];

#[test]
fn the_programs_keep_their_own_rules() {
    let mut command = Command::new(python());
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(programs()).args(["-m", "unittest"]);
    output(&mut command, "the unit tests in tests/python to succeed");
}

#[test]
fn boto3_reads_the_same_items_from_an_export() {
    for name in HEALTHY {
        let mut ours = Vec::new();
        decode(&sample(name), &mut |rows| ours.extend(rows.iter().map(|row| canonical(&row.item))));
        ours.sort_unstable();
        assert_eq!(ours, run_program("read_export.py", &[], &[&sample(name)]), "{name}");
    }
}

#[test]
fn amazon_ion_reads_from_the_export_in_ion_what_boto3_reads_from_the_one_in_json() {
    let in_json = run_program("read_export.py", &[], &[&sample("docs")]);
    assert_eq!(run_program("read_ion.py", &[], &[&sample("docs-ion")]), in_json);
}

/// Writes all items of the export as one Parquet dataset below `lake`.
pub(crate) fn write_parquet(export: &Path, lake: &Path) {
    let dataset = Dataset { name: "Everything".to_owned(), leading: vec!["PK".to_owned(), "SK".to_owned()], ..Dataset::default() };
    let targets = Arc::new(Targets { tables: Vec::new(), datasets: vec![dataset] });
    let sink = ParquetSink::new(lake.to_owned(), false, targets, Arc::new(|job: Box<dyn FnOnce() + Send>| job()));
    sink.prepare(Begin::Anew).unwrap();
    let mut shape = Shape::new::<&str>(&[]);
    decode(export, &mut |rows| rows.iter().for_each(|row| shape.observe(&row.item)));
    sink.set_shapes(&[shape]).unwrap();
    let (encoder, mut writer) = (sink.encoder(), sink.writer(1).unwrap());
    decode(export, &mut |rows| {
        let outgoing = Outgoing { entity: EntityId(0), dataset: DatasetId(0), table: None, rows };
        writer.write(encoder.encode(&[outgoing]).unwrap(), &mut Vec::new()).unwrap();
    });
    sink.commit(&[writer.finish(&mut Vec::new()).unwrap()]).unwrap();
}

#[test]
fn pyarrow_and_duckdb_read_from_parquet_what_boto3_reads_from_the_export() {
    for name in HEALTHY {
        let temp = tempfile::tempdir().unwrap();
        write_parquet(&sample(name), temp.path());
        let from_export = run_program("read_export.py", &["--without-null"], &[&sample(name)]);
        assert_eq!(run_program("read_parquet.py", &["--without-null"], &[temp.path()]), from_export, "{name}");
    }
}

/// Writes a dataset of items that have, together, every form that a value can have in Parquet; gives their number. They lie in
/// `FOLDER/items.jsonl` too.
pub(crate) fn write_every_form(folder: &Path, lake: &Path) -> usize {
    let many = |value: &dyn Fn(u32) -> String| (0..80).map(|n| format!("\"k{n}\":{}", value(n))).collect::<Vec<_>>().join(",");
    let items = [
        // Several types under one name, and a name that is taken.
        r#""a":{"N":"1"},"a__s":{"S":"taken"},"A":{"S":"another case"}"#.to_owned(),
        r#""a":{"S":"one"},"A":{"S":""}"#.to_owned(),
        r#""a":{"M":{"x":{"NULL":true},"y":{"L":[]}}},"a__s":{"NULL":true}"#.to_owned(),
        r#""a":{"N":"-9223372036854775808"},"a__s":{"S":"\u0000\n\"é🚀"}"#.to_owned(),
        // Numbers: decimal, too wide for a decimal, in sets, lists and maps.
        format!(r#""d":{{"N":"0.00000000000000000001"}},"w":{{"N":"1{}"}},"ns":{{"NS":["1.5","-2"]}},"l":{{"L":[{{"N":"0.1"}},{{"NULL":true}}]}}"#, "0".repeat(125)),
        format!(r#""d":{{"N":"-999999999999999999"}},"w":{{"N":"-0.{}1"}},"ns":{{"NS":["3"]}},"l":{{"L":[]}}"#, "0".repeat(129)),
        // Maps whose keys are data, of one type and of several.
        format!(r#""one":{{"M":{{{}}}}},"mixed":{{"M":{{"s":{{"S":"x"}}}}}}"#, many(&|n| format!(r#"{{"N":"{n}.25"}}"#))),
        format!(r#""one":{{"M":{{}}}},"mixed":{{"M":{{{}}}}}"#, many(&|n| format!(r#"{{"NS":["{n}"]}}"#))),
        r#""one":{"M":{"z":{"NULL":true},"":{"N":"1"}}},"m":{"M":{"in":{"M":{"bs":{"BS":["","AP8="]},"B":{"B":"AA=="},"b":{"BOOL":true}}}}}"#.to_owned(),
        // Lists: mixed, of lists, of maps; what is only ever empty; NULL alone.
        r#""mix":{"L":[{"N":"1"},{"S":"1"},{"NULL":true}]},"ll":{"L":[{"L":[{"S":"a"}]},{"L":[]}]},"lm":{"L":[{"M":{"p":{"S":"q"}}},{"M":{}}]}"#.to_owned(),
        r#""el":{"L":[]},"em":{"M":{}},"es":{"S":""},"eb":{"B":""},"null":{"NULL":true}"#.to_owned(),
        format!(r#""deep":{}{{"S":"bottom"}}{},"a.b[0]":{{"S":"odd name"}},"it's \"q\"":{{"BOOL":false}}"#, r#"{"L":["#.repeat(31), "]}".repeat(31)),
    ];
    let lines: Vec<_> = (0..).zip(&items).map(|(n, item)| format!("{{\"Item\":{{\"PK\":{{\"S\":\"{n}\"}},{item}}}}}\n")).collect();
    let export = folder.join("items.jsonl");
    fs::write(&export, lines.concat()).unwrap();
    write_parquet(&export, lake);
    items.len()
}

#[test]
fn pyarrow_and_duckdb_read_every_form_that_a_value_can_have_in_parquet() {
    let temp = tempfile::tempdir().unwrap();
    let (export, lake) = (temp.path().join("items.jsonl"), temp.path().join("lake"));
    let items = write_every_form(temp.path(), &lake);
    let expected = run_program("read_items.py", &["--without-null"], &[&export]);
    let found = run_program("read_parquet.py", &["--without-null"], &[&lake]);
    assert_eq!((found.len(), expected.len()), (items, items));
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}

#[test]
fn import_and_batch_files_are_read_as_the_items_they_hold() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("docs");
    let files = BTreeMap::from([
        ("data/part.json", "{\"Item\":{\"n\":{\"N\":\"1.0\"}}}\n{\"Item\":{\"s\":{\"SS\":[\"b\",\"a\"]}}}\n"),
        ("request.json", "{\"docs\":[{\"PutRequest\":{\"Item\":{\"b\":{\"B\":\"AP8=\"}}}}]}"),
        ("table.json", "no items"),
        ("bulk-put.json", "no items"),
        ("counts.json", "no items"),
        (".dynamorph-output.json", "no items"),
    ]);
    for (name, text) in files {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }
    let read = run_program("read_items.py", &[], &[&folder]);
    assert_eq!(read, [r#"{"b":{"B":"AP8="}}"#, r#"{"n":{"N":"1"}}"#, r#"{"s":{"SS":["a","b"]}}"#]);
}

#[test]
fn amazon_ion_reads_every_form_that_a_value_can_have() {
    let texts = r#""quote":{"S":"it's \"so\""},"controls":{"S":"\u0000\u0001\u0007\u0008\t\n\u000b\f\r\u001f\u007f"},"back":{"S":"\\n\\"},"wide":{"S":"é\u2028🚀"},"":{"S":""}"#;
    let names = r#""handle-name":{"N":"1"},"null":{"N":"2"},"true":{"N":"3"},"nan":{"N":"4"},"$7":{"N":"5"},"$ion_1_0":{"N":"6"},"7":{"N":"7"},"it's":{"N":"8"},"a\nb":{"N":"9"},"_":{"N":"10"},"é":{"N":"0"}"#;
    let numbers = format!(
        r#""n":{{"L":[{{"N":"0"}},{{"N":"-1"}},{{"N":"61600"}},{{"N":"12.5"}},{{"N":"0.0012"}},{{"N":"-0.5"}},{{"N":"1{}"}},{{"N":"0.{}1"}},{{"N":"-{}.5"}}]}}"#,
        "0".repeat(125),
        "0".repeat(129),
        "1234567890".repeat(3)
    );
    let others = r#""b":{"B":"AAEC/w=="},"none":{"B":""},"yes":{"BOOL":true},"no":{"BOOL":false},"nil":{"NULL":true},"ss":{"SS":["b","","a'"]},"ns":{"NS":["10","-2.5"]},"bs":{"BS":["","AP8="]},"m":{"M":{"in":{"M":{}},"l":{"L":[{"L":[]},{"SS":["x"]}]}}}"#;
    let deep = format!(r#""deep":{}{{"S":"bottom"}}{}"#, r#"{"L":["#.repeat(31), "]}".repeat(31));
    let temp = tempfile::tempdir().unwrap();
    let (arena, mut ion, mut expected) = (Arena::new(), Vec::new(), Vec::new());
    for attributes in [texts, names, &numbers, others, &deep] {
        let line = arena.alloc_str(&format!(r#"{{"Item":{{{attributes}}}}}"#));
        let item = ddb_json::decode_item(line, &arena).unwrap();
        ion::write_line(&item, &mut ion);
        expected.push(canonical(&item));
    }
    let path = temp.path().join("part.ion");
    fs::write(&path, ion).unwrap();
    expected.sort_unstable();
    assert_eq!(run_program("read_ion.py", &[], &[&path]), expected);
}
