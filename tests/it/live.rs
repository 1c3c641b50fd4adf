//! Whole runs to a live table on a server that others wrote, and runs that are killed in the middle.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::pipelines::batched;
use crate::program::{Folder, Ran, command, files};
use crate::support::Server;
use crate::support::proxy::{Fault, Proxy};

const PIPELINE: &str = "pipelines/docs-split-comments.toml";
const DOCS_KEY: &[(&str, &str)] = &[("EntityRef", "S"), ("Detail", "S")];
const COMMENTS_KEY: &[(&str, &str)] = &[("DocRef", "S"), ("Detail", "S")];
const RECENT: (&str, &[(&str, &str)]) = ("recent", &[("GSI1PK", "S"), ("GSI1SK", "S")]);

/// Runs the split pipeline over the docs sample into batch files and, under the name `prod-docs`, into live tables.
fn run(folder: &Folder, url: &str) -> Ran {
    run_from("sample_exports/docs", folder, url)
}

/// The same over another export.
fn run_from(export: &str, folder: &Folder, url: &str) -> Ran {
    let work = folder.join("work");
    let batch = folder.sink("batch", "batch");
    let mut command = command(&["run", PIPELINE, "--from", export, "--to", &batch, "--to", "dynamodb"]);
    command.args(["--endpoint-url", url, "--table", "docs=prod-docs", "--work", &work, "--quiet"]);
    // Only what is said here: no credentials, region or profile of whoever runs the tests.
    for name in ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"] {
        command.env_remove(name);
    }
    command.envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]);
    command.envs([("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")]);
    Ran::of(command.output().expect("the program starts"))
}

fn report(folder: &Folder) -> Value {
    serde_json::from_slice(&std::fs::read(folder.path().join("work/report.json")).expect("there is a report")).expect("it is JSON")
}

/// The items of a table with everything in one order: sets have none of their own, and numbers come back in one spelling.
fn held(server: &Server, table: &str) -> Vec<String> {
    in_order(server.items(table))
}

fn in_order(items: impl IntoIterator<Item = Value>) -> Vec<String> {
    let mut items: Vec<_> = items.into_iter().map(|item| ordered(item).to_string()).collect();
    items.sort_unstable();
    items
}

fn ordered(value: Value) -> Value {
    match value {
        Value::Object(entries) => {
            let entry = |(name, value): (String, Value)| match (name.as_str(), value) {
                ("SS" | "NS" | "BS", Value::Array(mut members)) => {
                    members.sort_by_key(Value::to_string);
                    (name, Value::Array(members))
                }
                (_, value) => (name, ordered(value)),
            };
            Value::Object(entries.into_iter().map(entry).collect())
        }
        Value::Array(elements) => Value::Array(elements.into_iter().map(ordered).collect()),
        other => other,
    }
}

/// What the batch files of the run hold for a table.
fn in_batch_files(folder: &Folder, table: &str) -> Vec<String> {
    let mut tables = batched(&folder.path().join("batch"));
    in_order(tables.remove(table).expect("the batch files name the table").into_iter().map(Value::Object))
}

/// The live table and the batch files of the same run hold the same items, but for those that the service refused.
#[track_caller]
fn both_hold_the_same(server: &Server, folder: &Folder, tables: [(&str, usize); 2]) {
    for (table, items) in tables {
        let (live, files) = (held(server, table), in_batch_files(folder, table));
        assert_eq!(live.len(), items, "{table}");
        assert_eq!(live, files, "{table}");
    }
}

#[test]
fn all_items_arrive_in_live_tables_and_in_files_in_one_pass() {
    let server = Server::start();
    server.create_table("prod-docs", DOCS_KEY, &[RECENT]);
    server.create_table("comments", COMMENTS_KEY, &[]);
    let folder = Folder::new();
    run(&folder, &server.url()).expect(0);
    both_hold_the_same(&server, &folder, [("prod-docs", 35), ("comments", 74)]);
    let report = report(&folder);
    let items = json!({"Workspace": 3, "Document": 32, "Comment": 74});
    assert_eq!([&report["sinks"][0]["items"], &report["sinks"][1]["items"]], [&items, &items]);
    assert_eq!([&report["sinks"][1]["sink"], &report["rejects"]["count"]], [&json!("dynamodb"), &json!(0)]);
}

#[test]
fn all_items_arrive_when_the_service_throttles_and_connections_break() {
    let server = Server::start();
    server.create_table("prod-docs", DOCS_KEY, &[RECENT]);
    server.create_table("comments", COMMENTS_KEY, &[]);
    let proxy = Proxy::start(server.address(), |call| match call % 4 {
        0 => Fault::Code(400, "ProvisionedThroughputExceededException"),
        1 => Fault::Partial(7),
        2 => Fault::ResetAfter,
        _ => Fault::None,
    });
    let folder = Folder::new();
    run(&folder, &proxy.url()).expect(0);
    both_hold_the_same(&server, &folder, [("prod-docs", 35), ("comments", 74)]);
}

/// The run ends with code 2 before anything is written, and says these words.
#[track_caller]
fn ends_before_the_first_write(server: &Server, tables: &[&str], parts: &[&str]) {
    let folder = Folder::new();
    let ran = run(&folder, &server.url()).expect(2);
    for part in parts {
        assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
    }
    for table in tables {
        assert_eq!(server.items(table), Vec::<Value>::new(), "{table}");
    }
    assert_eq!(published(folder.path()), Vec::<PathBuf>::new());
}

/// Files with a final name, those of the work folder's own bookkeeping aside.
fn published(folder: &Path) -> Vec<PathBuf> {
    let unfinished = |path: &Path| path.iter().any(|part| part == ".dynamorph-unfinished" || part == "work");
    files(folder).into_iter().map(|(path, _)| path).filter(|path| !unfinished(path)).collect()
}

#[test]
fn a_missing_table_is_told_before_anything_is_written() {
    let server = Server::start();
    server.create_table("prod-docs", DOCS_KEY, &[RECENT]);
    let parts = ["the target table does not exist", "table: comments", "create it first", "--table comments=NAME"];
    ends_before_the_first_write(&server, &["prod-docs"], &parts);
}

#[test]
fn a_table_with_another_key_is_told_before_anything_is_written() {
    let server = Server::start();
    server.create_table("prod-docs", DOCS_KEY, &[RECENT]);
    server.create_table("comments", &[("DocRef", "S"), ("Detail", "N")], &[]);
    let parts = ["another key than the pipeline says", "table: comments", "DocRef (S, partition), Detail (N, sort)", "Detail (S, sort)"];
    ends_before_the_first_write(&server, &["prod-docs", "comments"], &parts);
}

#[test]
fn a_table_without_the_pipelines_index_is_told_before_anything_is_written() {
    let server = Server::start();
    server.create_table("prod-docs", DOCS_KEY, &[]);
    server.create_table("comments", COMMENTS_KEY, &[]);
    let parts = ["lacks an index that the pipeline declares", "index: recent", "table: prod-docs"];
    ends_before_the_first_write(&server, &["prod-docs", "comments"], &parts);
}

#[test]
fn an_item_that_the_service_refuses_is_a_reject_and_the_ledger_says_so() {
    let server = Server::start();
    // The pipeline does not know this index. One document of the sample has `bigId`, and has it as a number.
    server.create_table("prod-docs", DOCS_KEY, &[RECENT, ("by_big_id", &[("bigId", "S")])]);
    server.create_table("comments", COMMENTS_KEY, &[]);
    let folder = Folder::new();
    let ran = run(&folder, &server.url()).expect(3);
    assert_eq!((held(&server, "prod-docs").len(), held(&server, "comments").len()), (34, 74));
    assert!(ran.stdout.contains("ledger: manifest 109 = read 109 = written 108 + dropped 0 + rejected 1"), "{}", ran.stdout);
    assert!(ran.stdout.contains("write/refused  1"), "{}", ran.stdout);
    let report = report(&folder);
    assert_eq!([&report["total"]["written"], &report["total"]["rejected"]], [&json!(108), &json!(1)]);
    assert_eq!([&report["sinks"][0]["refused"], &report["sinks"][1]["refused"]], [&json!(0), &json!(1)]);
    let file = report["rejects"]["files"][0].as_str().expect("the report names the rejects file");
    let text = std::fs::read_to_string(file).expect("the rejects file is there");
    assert_eq!(text.lines().count(), 1, "{text}");
    let reject: Value = serde_json::from_str(&text).expect("a reject is JSON");
    // The item as it was read, so that it can be run again.
    assert!(reject["Item"]["bigId"]["N"].is_string() && reject["Item"]["PK"]["S"].is_string(), "{text}");
    assert_eq!([&reject["Reject"]["stage"], &reject["Reject"]["rule"]], ["write", "refused"]);
}

#[test]
fn an_item_that_two_sinks_refuse_is_rejected_once_in_the_ledger() {
    let server = Server::start();
    server.create_table("prod-docs", DOCS_KEY, &[RECENT]);
    server.create_table("comments", COMMENTS_KEY, &[]);
    let folder = Folder::new();
    // As an item it has 390 KB, as JSON more than a request may have.
    let number = format!("{{\"N\":\"1{}\"}}", "0".repeat(125));
    let numbers = vec![number; 130_000].join(",");
    let line = format!("{{\"Item\":{{\"PK\":{{\"S\":\"WS#a\"}},\"SK\":{{\"S\":\"META\"}},\"numbers\":{{\"L\":[{numbers}]}}}}}}\n");
    let export = folder.join("large.json");
    std::fs::write(&export, &line).expect("the export can be written");
    let ran = run_from(&export, &folder, &server.url()).expect(3);
    assert!(ran.stdout.contains("ledger: read 1 = written 0 + dropped 0 + rejected 1"), "{}", ran.stdout);
    // The rejects are told by sink.
    assert!(ran.stdout.contains("write/request-size  2"), "{}", ran.stdout);
    assert_eq!(server.items("prod-docs"), Vec::<Value>::new());
    let report = report(&folder);
    let total = &report["total"];
    assert_eq!([&total["read"], &total["written"], &total["rejected"]], [&json!(1), &json!(0), &json!(1)]);
    assert_eq!([&report["sinks"][0]["refused"], &report["sinks"][1]["refused"]], [&json!(1), &json!(1)]);
    // Both sinks say why in the same words, with the item as it was read.
    let as_read = line.trim_end().strip_suffix('}').expect("a line ends with a brace");
    let files = report["rejects"]["files"].as_array().expect("the report names the rejects files");
    assert_eq!(files.len(), 2);
    for file in files {
        let text = std::fs::read_to_string(file.as_str().expect("a name is a text")).expect("the rejects file is there");
        assert!(text.starts_with(as_read));
        let reject: Value = serde_json::from_str(&text).expect("a reject is JSON");
        let expected = "a request with this item alone has 17550137 bytes as JSON, limit 16711680; make the item smaller";
        assert_eq!(reject["Reject"]["reason"], expected);
    }
}

#[test]
fn a_live_run_without_credentials_says_where_to_set_them() {
    let folder = Folder::new();
    let (work, nowhere) = (folder.join("work"), folder.join("nowhere"));
    let mut command =
        command(&["run", PIPELINE, "--from", "sample_exports/docs", "--to", "dynamodb", "--work", &work, "--region", "eu-west-1"]);
    command.env_clear().envs([
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_CONFIG_FILE", &nowhere),
        ("AWS_SHARED_CREDENTIALS_FILE", &nowhere),
    ]);
    let ran = Ran::of(command.output().expect("the program starts")).expect(1);
    assert!(ran.stderr.contains("no AWS credentials") && ran.stderr.contains("AWS_PROFILE"), "{}", ran.stderr);
}

/// Enough documents that a run can be met in the middle.
fn large_export(folder: &Folder) -> String {
    let mut lines = String::new();
    for at in 0..60_000_u64 {
        // Digits that hardly repeat, so that the compressed files are written in several steps.
        let noise = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at << 7);
        let _ = writeln!(
            lines,
            r#"{{"Item":{{"PK":{{"S":"WS#{}"}},"SK":{{"S":"DOC#{at}"}},"EntityType":{{"S":"Document"}},"title":{{"S":"{noise:020}"}},"updatedAt":{{"S":"2026-01-07"}}}}}}"#,
            at % 97,
        );
    }
    // The last one has no place, so that the rejects are compared too.
    lines.push_str("{\"Item\":{\"PK\":{\"S\":\"FOLDER#1\"},\"SK\":{\"S\":\"x\"}}}\n");
    let path = folder.join("large.json");
    std::fs::write(&path, lines).expect("the export can be written");
    path
}

/// All files of a run but those that hold durations, or where its folders are.
fn outcome(folder: &Folder) -> BTreeMap<PathBuf, Vec<u8>> {
    let seconds_differ = |path: &Path| path.ends_with("report.json") || path.ends_with("run.json") || path.starts_with("work/units");
    files(folder.path()).into_iter().filter(|(path, _)| !seconds_differ(path)).collect()
}

#[test]
fn a_run_that_is_killed_leaves_nothing_with_a_final_name_and_the_same_command_makes_it_good() {
    let source = Folder::new();
    let export = large_export(&source);
    let sinks = |folder: &Folder| [folder.sink("parquet", "lake"), folder.sink("import", "import")];
    let undisturbed = Folder::new();
    undisturbed.run(PIPELINE, &[&export], &sinks(&undisturbed), &[]).expect(3);

    let folder = Folder::new();
    let [lake, import] = sinks(&folder);
    let work = folder.join("work");
    let args = ["run", PIPELINE, "--from", &export, "--to", &lake, "--to", &import, "--work", &work, "--quiet"];
    let mut child = command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let staging = folder.path().join("import/.dynamorph-unfinished");
    let until = Instant::now() + Duration::from_mins(2);
    // Some of an import file is on disk, and more is to come.
    while !staging.exists() || files(&staging).iter().all(|(_, bytes)| bytes.is_empty()) {
        assert!(child.try_wait().expect("a child can be asked").is_none(), "the run ended before it could be killed");
        assert!(Instant::now() < until, "the run wrote nothing in two minutes");
        std::thread::sleep(Duration::from_millis(3));
    }
    child.kill().expect("a child can be killed");
    assert_eq!(child.wait().expect("a child ends").code(), None, "the run ended by itself");
    assert_eq!(published(folder.path()), Vec::<PathBuf>::new());
    let left: Vec<_> = files(&folder.path().join("work")).into_iter().map(|(path, _)| path).collect();
    assert!(!left.iter().any(|path| path.ends_with("report.json") || path.starts_with("rejects")), "{left:?}");

    folder.run(PIPELINE, &[&export], &sinks(&folder), &[]).expect(3);
    let (expected, found) = (outcome(&undisturbed), outcome(&folder));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (path, expected) in &expected {
        assert!(found[path] == *expected, "{} differs from that of an undisturbed run", path.display());
    }
    assert!(expected.keys().any(|path| path.starts_with("work/rejects")));
}
