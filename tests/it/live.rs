//! Whole runs to a live table on a server that others wrote, and runs that are killed in the middle.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
    only_told(&mut command);
    Ran::of(command.output().expect("the program starts"))
}

/// Leaves the program what is said here alone: no credentials, region or profile of whoever runs the tests.
fn only_told(command: &mut Command) {
    for name in ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"] {
        command.env_remove(name);
    }
    command.envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]);
    command.envs([("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")]);
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

/// Runs the split pipeline over the docs sample into live tables alone, with these arguments besides.
fn run_live(pipeline: &str, folder: &Folder, url: &str, args: &[&str]) -> Ran {
    let work = folder.join("work");
    let mut command = command(&["run", pipeline, "--from", "sample_exports/docs", "--to", "dynamodb"]);
    command.args(["--endpoint-url", url, "--table", "docs=prod-docs", "--work", &work, "--restart"]).args(args);
    only_told(&mut command);
    Ran::of(command.output().expect("the program starts"))
}

fn described(server: &Server, table: &str) -> Option<Value> {
    let request = serde_json::from_value(json!({ "TableName": table })).expect("a request");
    let described = serde_json::to_value(server.database.describe_table(request).ok()?).expect("it is JSON");
    Some(described["Table"].clone())
}

#[test]
fn missing_tables_are_created_as_the_pipeline_says_and_those_that_exist_are_left_alone() {
    let server = Server::start();
    server.create_table("comments", COMMENTS_KEY, &[("extra", &[("author", "S")])]);
    let before = described(&server, "comments").expect("a table");
    let folder = Folder::new();
    let pipeline = folder.join("pipeline.toml");
    let text = std::fs::read_to_string(PIPELINE).expect("the pipeline is there");
    let created = "[table.docs]\nbilling = { read = 5, write = 7 }\ntags = { team = \"docs\" }\n";
    std::fs::write(&pipeline, text.replace("[table.docs]\n", created)).expect("the pipeline can be written");
    let ran = run_live(&pipeline, &folder, &server.url(), &["--create-tables"]).expect(0);
    for part in [
        "writing tables docs as prod-docs, comments in account 000000000000, http://127.0.0.1",
        "table prod-docs was created",
        "table comments has indexes that the pipeline does not know (extra)",
    ] {
        assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
    }
    assert_eq!((server.items("prod-docs").len(), server.items("comments").len()), (35, 74));

    let docs = described(&server, "prod-docs").expect("a table");
    let key = |partition: &str, sort: &str| json!([{ "AttributeName": partition, "KeyType": "HASH" }, { "AttributeName": sort, "KeyType": "RANGE" }]);
    assert_eq!(docs["KeySchema"], key("EntityRef", "Detail"));
    assert_eq!(docs["ProvisionedThroughput"]["WriteCapacityUnits"], 7);
    let index = &docs["GlobalSecondaryIndexes"][0];
    assert_eq!([&index["IndexName"], &index["Projection"]["ProjectionType"]], ["recent", "ALL"]);
    assert_eq!((&index["KeySchema"], &index["ProvisionedThroughput"]["ReadCapacityUnits"]), (&key("GSI1PK", "GSI1SK"), &json!(5)));
    let tags = serde_json::from_value(json!({ "ResourceArn": docs["TableArn"] })).expect("a request");
    let tags = serde_json::to_value(server.database.list_tags_of_resource(tags).expect("the tags")).expect("it is JSON");
    assert_eq!(tags["Tags"], json!([{ "Key": "team", "Value": "docs" }]));
    let after = described(&server, "comments").expect("a table");
    assert_eq!([&after["TableId"], &after["KeySchema"]], [&before["TableId"], &before["KeySchema"]]);
    assert_eq!(after["GlobalSecondaryIndexes"][0]["IndexName"], "extra");

    // The same command again finds them.
    let ran = run_live(&pipeline, &folder, &server.url(), &["--create-tables"]).expect(0);
    assert!(!ran.stderr.contains("was created"), "{}", ran.stderr);
    assert_eq!(described(&server, "prod-docs").expect("a table")["TableId"], docs["TableId"]);
}

#[test]
fn no_table_is_created_where_another_is_not_as_the_pipeline_says() {
    let server = Server::start();
    server.create_table("comments", &[("DocRef", "S"), ("Detail", "N")], &[]);
    let folder = Folder::new();
    let ran = run_live(PIPELINE, &folder, &server.url(), &["--create-tables"]).expect(2);
    assert!(ran.stderr.contains("another key than the pipeline says"), "{}", ran.stderr);
    assert_eq!(described(&server, "prod-docs"), None);
}

#[test]
fn what_a_user_must_know_of_a_table_is_said_before_anything_is_written() {
    let server = Server::start();
    let attributes = ["EntityRef", "Detail", "GSI1PK", "GSI1SK", "title"];
    let attributes: Value = attributes.iter().map(|name| json!({ "AttributeName": name, "AttributeType": "S" })).collect();
    let key = |partition: &str, sort: &str| json!([{ "AttributeName": partition, "KeyType": "HASH" }, { "AttributeName": sort, "KeyType": "RANGE" }]);
    let request = json!({
        "TableName": "prod-docs", "BillingMode": "PROVISIONED", "KeySchema": key("EntityRef", "Detail"),
        "ProvisionedThroughput": { "ReadCapacityUnits": 5, "WriteCapacityUnits": 10 },
        "AttributeDefinitions": attributes,
        "GlobalSecondaryIndexes": [{
            "IndexName": "recent", "KeySchema": key("GSI1PK", "GSI1SK"), "Projection": { "ProjectionType": "ALL" },
            "ProvisionedThroughput": { "ReadCapacityUnits": 5, "WriteCapacityUnits": 4000 },
        }],
        "LocalSecondaryIndexes": [{
            "IndexName": "by-title", "KeySchema": key("EntityRef", "title"), "Projection": { "ProjectionType": "KEYS_ONLY" },
        }],
        "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_IMAGE" },
    });
    server.database.create_table(serde_json::from_value(request).expect("a request")).expect("a new table");
    server.create_table("comments", COMMENTS_KEY, &[]);
    let ttl = json!({ "TableName": "comments", "TimeToLiveSpecification": { "Enabled": true, "AttributeName": "expiresAt" } });
    server.database.update_time_to_live(serde_json::from_value(ttl).expect("a request")).expect("TimeToLive");
    let folder = Folder::new();
    let ran = run_live(PIPELINE, &folder, &server.url(), &["--max-write-units", "5000"]).expect(0);
    let expected = [
        "table prod-docs has a stream (NEW_IMAGE): its consumers and triggers will see every write",
        "table prod-docs has local indexes (by-title): the items of one partition key end at 10 GB",
        "table prod-docs has indexes that the pipeline does not know (by-title): no value is checked against their keys",
        "table prod-docs has a capacity of 10 write units a second, far below --max-write-units 5,000: it will throttle",
        "table comments deletes items when the time in `expiresAt` is past (TimeToLive)",
    ];
    let said: Vec<_> = ran.stderr.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
    assert_eq!(said, expected, "{}", ran.stderr);
}

#[test]
fn under_a_condition_what_is_there_is_kept_and_counted_apart() {
    let server = Server::start();
    server.create_table("prod-docs", DOCS_KEY, &[RECENT]);
    server.create_table("comments", COMMENTS_KEY, &[]);
    let folder = Folder::new();
    run_live(PIPELINE, &folder, &server.url(), &["--quiet"]).expect(0);
    let all = held(&server, "prod-docs");
    // Another document is under one key, and one is gone.
    let mut items = server.items("prod-docs").into_iter().filter(|item| item["EntityType"]["S"] == "Document");
    let (mut other, gone) = (items.next().expect("a document"), items.next().expect("another document"));
    other["title"] = json!({ "S": "somebody else's" });
    let put = json!({ "TableName": "prod-docs", "Item": other });
    server.database.put_item(serde_json::from_value(put).expect("a request")).expect("a put");
    let delete = json!({ "TableName": "prod-docs", "Key": { "EntityRef": gone["EntityRef"], "Detail": gone["Detail"] } });
    server.database.delete_item(serde_json::from_value(delete).expect("a request")).expect("a delete");

    let ran = run_live(PIPELINE, &folder, &server.url(), &["--if-absent", "--quiet"]).expect(0);
    assert!(ran.stdout.contains("1 item kept: the table has another item under their key"), "{}", ran.stdout);
    assert!(ran.stdout.contains("109 requests, 0 throttled, 0 sent again"), "{}", ran.stdout);
    let of_sink = &report(&folder)["sinks"][0];
    assert_eq!([&of_sink["kept"], &of_sink["items"]["Document"]], [&json!(1), &json!(31)]);
    let now = held(&server, "prod-docs");
    assert_eq!(now.len(), all.len());
    assert_eq!(now.iter().filter(|item| !all.contains(item)).count(), 1);

    // What is not newer stays as it is; what cannot be compared is a reject.
    let ran = run_live(PIPELINE, &folder, &server.url(), &["--if-newer", "updatedAt", "--quiet"]).expect(3);
    assert!(ran.stdout.contains("write/if-newer"), "{}", ran.stdout);
    assert_eq!(held(&server, "prod-docs"), now);
}

#[test]
fn options_of_live_writing_need_a_live_sink() {
    let folder = Folder::new();
    let lake = folder.sink("parquet", "lake");
    for option in [&["--max-write-units", "5"][..], &["--if-absent"], &["--if-newer", "v"], &["--create-tables"]] {
        let ran = folder.run(PIPELINE, &["sample_exports/docs"], std::slice::from_ref(&lake), option).expect(2);
        assert!(ran.stderr.contains(&format!("{} says how live tables are written", option[0])), "{}", ran.stderr);
    }
}

#[test]
fn a_missing_table_is_told_before_anything_is_written() {
    let server = Server::start();
    server.create_table("prod-docs", DOCS_KEY, &[RECENT]);
    let parts = ["the target table does not exist", "table: comments", "create it first", "--create-tables", "--table comments=NAME"];
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
