//! `verify` by the real program: what a run wrote is as the pipeline says, and whatever is changed afterwards is told by its key.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use dynamorph::Plan;
use dynamorph::model::KeySchema;
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};

use crate::exports::{Content, Data, Export, gzip, text};
use crate::pipelines::{SHOWN, Shown};
use crate::program::{Folder, Ran, command, files, golden, root};
use crate::samples::export_of;
use crate::support::Server;
use crate::support::proxy::{Fault, Proxy};
use crate::support::s3::ministack;

const PIPELINE: &str = "pipelines/docs-split-comments.toml";
const DOCS: &str = "sample_exports/docs";

/// The program with these arguments, and nothing of whoever runs the tests.
fn start(args: &[&str]) -> Ran {
    let mut command = command(args);
    command.env_clear().envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]);
    command.envs([("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")]);
    Ran::of(command.output().expect("the program starts"))
}

/// Compares; the work folder is `verify`.
fn verify(folder: &Folder, pipeline: &str, from: &[&str], against: &[String], more: &[&str]) -> Ran {
    let work = folder.join("verify");
    let mut args = vec!["verify", pipeline, "--work", &work, "--quiet"];
    args.extend(from.iter().flat_map(|export| ["--from", *export]));
    args.extend(against.iter().flat_map(|target| ["--against", target.as_str()]));
    args.extend(more);
    start(&args)
}

/// The same, of the split pipeline.
fn verify_docs(folder: &Folder, against: &[String], more: &[&str]) -> Ran {
    verify(folder, PIPELINE, &[DOCS], against, more)
}

/// The attributes of a key, each with its type.
fn key(schema: &KeySchema) -> Vec<(&str, &str)> {
    schema.attributes().map(|attribute| (attribute.name.as_str(), attribute.kind.descriptor())).collect()
}

/// A server with the tables of a pipeline.
fn server_for(pipeline: &str) -> Server {
    let text = fs::read_to_string(root().join(pipeline)).expect("the pipeline can be read");
    let plan = Plan::from_toml(&text).expect("the pipeline is fine");
    let server = Server::start();
    for table in &plan.targets().tables {
        let indexes: Vec<_> = table.indexes.iter().map(|index| (index.name.as_str(), key(&index.key))).collect();
        let indexes: Vec<_> = indexes.iter().map(|(name, key)| (*name, key.as_slice())).collect();
        server.create_table(&table.name, &key(&table.key), &indexes);
    }
    server
}

/// Runs a pipeline into the tables of a server.
fn run_live(folder: &Folder, pipeline: &str, from: &[&str], server: &Server) {
    let work = folder.join("work");
    let url = server.url();
    let mut args = vec!["run", pipeline, "--work", &work, "--quiet", "--to", "dynamodb", "--endpoint-url", &url];
    args.extend(from.iter().flat_map(|export| ["--from", *export]));
    start(&args).expect(0);
}

fn live() -> Vec<String> {
    vec!["dynamodb".to_owned()]
}

/// Puts an item as it stands.
fn put(server: &Server, table: &str, item: &Value) {
    let request = json!({ "TableName": table, "Item": item });
    server.database.put_item(serde_json::from_value(request).expect("a request for a put")).expect("the item is put");
}

fn delete(server: &Server, table: &str, key: &Value) {
    let request = json!({ "TableName": table, "Key": key });
    server.database.delete_item(serde_json::from_value(request).expect("a request for a delete")).expect("the item is deleted");
}

/// The key of an item of the split pipeline.
fn key_of(table: &str, item: &Value) -> Value {
    let partition = if table == "docs" { "EntityRef" } else { "DocRef" };
    json!({ partition: item[partition], "Detail": item["Detail"] })
}

/// The first item of a table, by its text, for which this holds.
fn pick(server: &Server, table: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut items = server.items(table);
    items.sort_by_key(Value::to_string);
    items.into_iter().find(wanted).expect("there is such an item")
}

fn list(folder: &Folder) -> Vec<Value> {
    let text = fs::read_to_string(folder.path().join("verify/differences.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn kinds(differences: &[Value]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for difference in differences {
        *kinds.entry(difference["kind"].as_str().expect("a kind is a text").to_owned()).or_default() += 1;
    }
    kinds
}

fn counted(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect()
}

#[test]
fn every_sample_pipeline_gives_live_tables_and_files_that_are_equal() {
    for Shown { name, from, sinks } in SHOWN {
        let (folder, pipeline) = (Folder::new(), format!("pipelines/{name}.toml"));
        let targets: Vec<_> = sinks.iter().map(|kind| folder.sink(kind, kind)).collect();
        folder.run(&pipeline, from, &targets, &[]).expect(0);
        let ran = verify(&folder, &pipeline, from, &targets, &[]).expect(0);
        assert!(ran.stdout.lines().last().is_some_and(|line| line.starts_with("equal: ")), "{name}: {}", ran.stdout);
        assert!(!folder.path().join("verify/differences.jsonl").exists() && !folder.path().join("verify/compared").exists());
        if sinks.contains(&"batch") {
            let server = server_for(&pipeline);
            run_live(&folder, &pipeline, from, &server);
            verify(&folder, &pipeline, from, &live(), &["--endpoint-url", &server.url()]).expect(0);
        }
    }
}

#[test]
fn ion_is_compared_like_json() {
    let folder = Folder::new();
    let import = folder.sink("import", "import");
    folder.run(PIPELINE, &[DOCS], &[import.clone(), folder.sink("parquet", "lake")], &["--import-format", "ion"]).expect(0);
    for from in [DOCS, &export_of("docs-ion", ""), "sample_exports/docs-prefixed"] {
        verify(&folder, PIPELINE, &[from], &[import.clone(), folder.sink("parquet", "lake")], &[]).expect(0);
    }
}

#[test]
fn three_items_that_were_broken_in_a_live_table_are_named_with_what_is_different() {
    let folder = Folder::new();
    let server = server_for(PIPELINE);
    run_live(&folder, PIPELINE, &[DOCS], &server);
    let url = server.url();
    let gone = pick(&server, "comments", |item| item["body"].is_object());
    delete(&server, "comments", &key_of("comments", &gone));
    let mut changed = pick(&server, "docs", |item| item["EntityType"]["S"] == "Document" && item["title"].is_object());
    let title = changed["title"]["S"].clone();
    changed["title"] = json!({ "S": "another" });
    changed["added"] = json!({ "M": { "deep": { "NULL": true } } });
    put(&server, "docs", &changed);
    let added = json!({ "EntityRef": { "S": "WS#new" }, "Detail": { "S": "META" }, "EntityType": { "S": "Workspace" } });
    put(&server, "docs", &added);

    let ran = verify_docs(&folder, &live(), &["--endpoint-url", &url]).expect(4);
    let differences = list(&folder);
    assert_eq!(kinds(&differences), counted(&[("missing", 1), ("extra", 1), ("different", 1)]));
    let of = |kind: &str| differences.iter().find(|difference| difference["kind"] == kind).expect("one of each kind");
    assert_eq!(
        [&of("missing")["table"], &of("missing")["entity"], &of("missing")["key"]],
        [&json!("comments"), &json!("Comment"), &key_of("comments", &gone)]
    );
    assert_eq!([&of("extra")["entity"], &of("extra")["key"]], [&json!("Workspace"), &key_of("docs", &added)]);
    assert_eq!([&of("different")["entity"], &of("different")["key"]], [&json!("Document"), &key_of("docs", &changed)]);
    assert!(of("missing")["expected_at"].as_str().is_some_and(|place| place.starts_with("data/")), "{}", of("missing"));
    for part in [
        format!("  - title: S {title}\n  + title: S \"another\"\n"),
        "  + added: M {\"deep\":{\"NULL\":true}}\n".to_owned(),
        "3 differences: 1 missing, 1 extra, 1 different\n".to_owned(),
        "\n- is expected: what the pipeline makes of the export; + is found: what the target holds\n".to_owned(),
        "\nto mend tables: the same `run` again puts missing and different items".to_owned(),
        "extra  docs/Workspace  EntityRef=WS#new, Detail=META\n".to_owned(),
        format!(
            "missing  comments/Comment  DocRef={}, Detail={}  from data/",
            gone["DocRef"]["S"].as_str().unwrap(),
            gone["Detail"]["S"].as_str().unwrap()
        ),
    ] {
        assert!(ran.stdout.contains(&part), "`{part}` is not in: {}", ran.stdout);
    }
    assert!(ran.stdout.ends_with("\nnot equal\n"), "{}", ran.stdout);

    // The same for programs.
    let ran = verify_docs(&folder, &live(), &["--endpoint-url", &url, "--output", "json"]).expect(4);
    let found: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    let target = &found["targets"][0];
    assert_eq!([&found["equal"], &target["equal"], &found["read"]], [&json!(false), &json!(false), &json!(109)]);
    let total: Vec<_> =
        ["expected", "found", "missing", "extra", "different", "duplicate"].map(|name| target["total"][name].clone()).into();
    assert_eq!(total, [109, 109, 1, 1, 1, 0].map(|count| json!(count)));
    assert_ne!(target["total"]["expected_checksum"], target["total"]["found_checksum"]);
    let shown = target["shown"].as_array().expect("a list").iter().find(|shown| shown["kind"] == "different").expect("it is shown");
    assert_eq!(shown["changes"][1], json!({ "path": "title", "expected": format!("S {title}"), "found": "S \"another\"" }));

    // Values are in the result alone, and fewer differences are shown where fewer are wanted.
    let ran = verify_docs(&folder, &live(), &["--endpoint-url", &url, "--show", "1"]).expect(4);
    assert!(ran.stdout.contains("… and 2 more\n") && !ran.stdout.contains("another"), "{}", ran.stdout);
    assert!(!ran.stderr.contains("another"));

    // Each by itself: only what was asked for is compared.
    for (only, code) in [("Workspace", 4), ("Document", 4), ("Comment", 4)] {
        verify_docs(&folder, &live(), &["--endpoint-url", &url, "--only", only]).expect(code);
        assert_eq!(list(&folder).len(), 1, "{only}");
    }
    // One is missing and one is too many: the counts say so by entity.
    verify_docs(&folder, &live(), &["--endpoint-url", &url, "--counts"]).expect(4);
    put(&server, "comments", &gone);
    delete(&server, "docs", &key_of("docs", &added));
    let ran = verify_docs(&folder, &live(), &["--endpoint-url", &url, "--counts"]).expect(0);
    assert!(ran.stdout.contains("only counts were compared (--counts); items may differ\n"), "{}", ran.stdout);
    verify_docs(&folder, &live(), &["--endpoint-url", &url]).expect(4);
    verify_docs(&folder, &live(), &["--endpoint-url", &url, "--only", "Comment"]).expect(0);
}

#[test]
fn a_sample_compares_the_same_keys_of_both_sides() {
    let folder = Folder::new();
    let import = [folder.sink("import", "import")];
    folder.run(PIPELINE, &[DOCS], &import, &[]).expect(0);
    let ran = verify_docs(&folder, &import, &["--sample", "25", "--output", "json"]).expect(0);
    let found: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    let [expected, found] = ["expected", "found"].map(|name| found["targets"][0]["total"][name].as_u64().expect("a count"));
    assert!(expected == found && (10..50).contains(&expected), "{expected} {found}");
    let ran = verify_docs(&folder, &import, &["--sample", "25"]).expect(0);
    assert!(
        ran.stdout.contains("only the keys whose hash falls into 25 % were compared (--sample); the others may differ\n"),
        "{}",
        ran.stdout
    );
    verify_docs(&folder, &import, &["--sample", "0"]).expect(2);
    verify_docs(&folder, &import, &["--sample", "5", "--counts"]).expect(2);
}

fn lines_of(path: &Path) -> Vec<Value> {
    let mut text = String::new();
    MultiGzDecoder::new(fs::File::open(path).expect("the file is there")).read_to_string(&mut text).expect("it is gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn write_lines(path: &Path, lines: &[Value]) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(path, gzip(&text(&lines))).expect("the file can be written");
}

#[test]
fn import_files_that_were_changed_are_told_from_those_that_were_written() {
    let folder = Folder::new();
    let import = [folder.sink("import", "import")];
    folder.run(PIPELINE, &[DOCS], &import, &[]).expect(0);
    let data = folder.path().join("import/comments/data");
    let path = data.join(&files(&data)[0].0);
    let mut lines = lines_of(&path);
    assert_eq!(lines.len(), 74);
    // The order of lines is nothing.
    lines.sort_by_key(Value::to_string);
    write_lines(&path, &lines);
    verify_docs(&folder, &import, &[]).expect(0);
    // A line twice, one less, one that is no item, one in a file that is new.
    let twice = lines[0].clone();
    let last = lines.pop().expect("there are lines");
    lines.push(twice);
    lines.push(json!({ "Other": 1 }));
    write_lines(&path, &lines);
    let mut other = last.clone();
    other["Item"]["Detail"] = json!({ "S": "nowhere" });
    fs::write(data.join("new.json"), format!("{other}\n")).expect("the file can be written");
    let ran = verify_docs(&folder, &import, &[]).expect(4);
    assert_eq!(kinds(&list(&folder)), counted(&[("missing", 1), ("extra", 1), ("duplicate", 1)]));
    for part in [
        "duplicate  comments/Comment  DocRef=",
        "  in comments/data/",
        "in comments/data/new.json:1\n",
        "1 line is no item; the first: comments/data/",
    ] {
        assert!(ran.stdout.contains(part), "`{part}` is not in: {}", ran.stdout);
    }
    golden("verify/import.txt", &folder.stable(&ran.stdout));
    // An item without its key is one too many, and has no key to be told by.
    last.clone_into(&mut other);
    other["Item"].as_object_mut().expect("an item").remove("Detail");
    fs::remove_file(data.join("new.json")).expect("the file is there");
    lines.truncate(73);
    lines.push(last);
    lines.push(other);
    write_lines(&path, &lines);
    verify_docs(&folder, &import, &[]).expect(4);
    let found = list(&folder);
    assert_eq!((found.len(), &found[0]["kind"], &found[0]["key"]), (1, &json!("extra"), &Value::Null));
}

#[test]
fn request_files_and_parquet_files_that_were_changed_are_told_from_those_that_were_written() {
    let folder = Folder::new();
    let targets = [folder.sink("batch", "batch"), folder.sink("parquet", "lake")];
    folder.run(PIPELINE, &[DOCS], &targets, &[]).expect(0);
    let path = folder.path().join("batch/docs/u00001-000001.json");
    let text = fs::read_to_string(&path).expect("the file is there");
    let (before, after) = text.split_once("\"Workspace\"").expect("it holds a workspace");
    fs::write(&path, format!("{before}\"Workplace\"{after}")).expect("the file can be written");
    fs::remove_dir_all(folder.path().join("lake/Workspace")).expect("there is a dataset");
    let ran = verify_docs(&folder, &targets, &[]).expect(4);
    assert!(ran.stdout.contains("  - EntityType: S \"Workspace\"\n  + EntityType: S \"Workplace\"\n"), "{}", ran.stdout);
    let found = list(&folder);
    let of = |target: &String| {
        found.iter().filter(|line| line["target"] == **target).map(|line| line["kind"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!([of(&targets[0]), of(&targets[1])], [vec!["different"], vec!["missing"; 3]]);

    // What another pipeline wrote: the rows have the same keys and other attributes.
    let text = fs::read_to_string(root().join(PIPELINE)).expect("the pipeline can be read");
    let other = folder.join("other.toml");
    let text = text.split("[[example]]").next().expect("there is a text before the examples");
    let text = text.replace("drop = [\"GSI1PK\"", "drop = [\"body\", \"GSI1PK\"");
    fs::write(&other, text).expect("the pipeline can be written");
    let lake = [folder.sink("parquet", "other-lake")];
    folder.run(&other, &[DOCS], &lake, &[]).expect(0);
    let ran = verify_docs(&folder, &lake, &["--show", "2"]).expect(4);
    assert!(ran.stdout.contains("  - body: S \"") && !ran.stdout.contains("  + "), "{}", ran.stdout);
    assert!(kinds(&list(&folder)).keys().eq(["different"]), "{:?}", kinds(&list(&folder)));
    verify(&folder, &other, &[DOCS], &lake, &[]).expect(0);
}

/// A full export of a table of the server, its items in another order and its numbers and sets in another spelling.
fn export_table(server: &Server, table: &str, folder: &Folder) -> String {
    let mut items = server.items(table);
    items.reverse();
    let lines: Vec<String> = items.into_iter().map(|item| json!({ "Item": respelt(item) }).to_string()).collect();
    let (one, other) = lines.split_at(lines.len() / 2);
    let data = [("a".repeat(26), one), ("b".repeat(26), other)].map(|(name, lines)| Data::of(format!("{name}.json.gz"), lines));
    let export = Export {
        id: "01775001600000-0f1c5e2a".to_owned(),
        table: table.to_owned(),
        table_id: "0d5b5c3e-64a7-4f3c-9f5e-0c9c6c9a7b11".to_owned(),
        prefix: None,
        started: "2026-04-01T00:00:00.000Z".to_owned(),
        ended: "2026-04-01T00:05:00.000Z".to_owned(),
        content: Content::Items("2026-04-01T00:00:00.000Z".to_owned()),
        format: "DYNAMODB_JSON",
        data: data.into(),
    };
    let place = folder.path().join(format!("export-{table}"));
    export.write(&place);
    place.to_str().expect("temporary paths are UTF-8").to_owned()
}

/// The same value in another spelling: `1` as `1.0`, sets turned round.
fn respelt(value: Value) -> Value {
    match value {
        Value::Object(entries) => {
            let entry = |(name, value): (String, Value)| match (name.as_str(), value) {
                ("SS" | "BS", Value::Array(members)) => (name, members.into_iter().rev().collect()),
                ("NS", Value::Array(members)) => (name, members.into_iter().rev().map(respelt_number).collect()),
                ("N", number @ Value::String(_)) => (name, respelt_number(number)),
                (_, value) => (name, respelt(value)),
            };
            Value::Object(entries.into_iter().map(entry).collect())
        }
        Value::Array(elements) => elements.into_iter().map(respelt).collect(),
        other => other,
    }
}

fn respelt_number(number: Value) -> Value {
    match number {
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() < 20 => json!(format!("{text}.0")),
        other => other,
    }
}

#[test]
fn an_export_of_a_target_table_is_compared_and_spellings_are_nothing() {
    let folder = Folder::new();
    let server = server_for(PIPELINE);
    run_live(&folder, PIPELINE, &[DOCS], &server);
    let both = ["docs", "comments"].map(|table| format!("export:{table}={}", export_table(&server, table, &folder)));
    let ran = verify_docs(&folder, &both, &[]).expect(0);
    assert!(ran.stdout.contains("74 outputs of the pipeline: not compared, since they go to another table"), "{}", ran.stdout);
    // One table is compared by itself.
    verify_docs(&folder, &both[..1], &[]).expect(0);
    let gone = pick(&server, "docs", |item| item["EntityType"]["S"] == "Workspace");
    delete(&server, "docs", &key_of("docs", &gone));
    let other = Folder::new();
    let changed = format!("export:docs={}", export_table(&server, "docs", &other));
    let ran = verify_docs(&folder, &[both[1].clone(), changed], &[]).expect(4);
    assert!(ran.stdout.contains("1 difference: 1 missing\nmissing  docs/Workspace  EntityRef="), "{}", ran.stdout);
    // Which table it is must be said where there are several.
    let place = both[0].split_once('=').expect("it names a table").1;
    let ran = verify_docs(&folder, &[format!("export:{place}")], &[]).expect(2);
    assert!(ran.stderr.contains("write export:TABLE=") && ran.stderr.contains("known: docs, comments"), "{}", ran.stderr);
    // A window of changes is no table.
    let window = export_of("docs-incremental", "morning");
    let ran = verify_docs(&folder, &[format!("export:docs={window}")], &[]).expect(2);
    assert!(ran.stderr.contains("does not hold all items of its table"), "{}", ran.stderr);
}

#[test]
fn a_table_of_many_pages_is_read_whole_while_the_service_throttles_and_connections_break() {
    let folder = Folder::new();
    let text = "x".repeat(3_000);
    let document = |number: u32| {
        format!(
            r#"{{"Item":{{"PK":{{"S":"WS#{}"}},"SK":{{"S":"DOC#{number}"}},"EntityType":{{"S":"Document"}},"text":{{"S":"{text}"}}}}}}"#,
            number % 7
        )
    };
    // Some 6 MB, far more than fit in a page for each reader.
    let lines: String = (0..2_000).map(|number| document(number) + "\n").collect();
    let export = folder.join("many.json");
    fs::write(&export, lines).expect("the export can be written");
    let server = server_for(PIPELINE);
    run_live(&folder, PIPELINE, &[&export], &server);
    let proxy = Proxy::start(server.address(), |call| match call % 5 {
        0 => Fault::Code(400, "ProvisionedThroughputExceededException"),
        1 => Fault::ResetAfter,
        _ => Fault::None,
    });
    let ran = verify(&folder, PIPELINE, &[&export], &live(), &["--endpoint-url", &proxy.url()]).expect(0);
    assert!(ran.stdout.contains("equal: 2,000 items as the pipeline says\n"), "{}", ran.stdout);
    // With a cap there is one reader with one page after the other, each as large as the cap allows.
    let ran = verify(&folder, PIPELINE, &[&export], &live(), &["--endpoint-url", &server.url(), "--max-read-units", "4000"]).expect(0);
    assert!(ran.stdout.contains("equal: 2,000 items as the pipeline says\n"), "{}", ran.stdout);
}

#[test]
fn what_the_run_rejects_and_drops_is_expected_nowhere() {
    let folder = Folder::new();
    let (import, broken) = ([folder.sink("import", "import")], "sample_exports/broken/same-key");
    folder.run(PIPELINE, &[broken], &import, &[]).expect(3);
    let ran = verify(&folder, PIPELINE, &[broken], &import, &[]).expect(0);
    assert!(ran.stdout.contains("2 items are rejects and are not expected there\n"), "{}", ran.stdout);
    let ran = verify(&folder, PIPELINE, &[broken], &import, &["--only", "Comment"]).expect(0);
    assert!(ran.stdout.contains(" of other entities: not compared (--only)\n"), "{}", ran.stdout);
    // What was not asked for was dropped by no rule.
    assert!(!ran.stdout.contains("dropped by"), "{}", ran.stdout);
}

#[test]
fn changes_are_compared_with_parquet_alone() {
    let folder = Folder::new();
    let windows = ["morning", "afternoon"].map(|part| export_of("docs-incremental", part));
    let windows = windows.each_ref().map(String::as_str);
    let lake = [folder.sink("parquet", "lake")];
    folder.run(PIPELINE, &windows, &lake, &[]).expect(3);
    verify(&folder, PIPELINE, &windows, &lake, &[]).expect(0);
    verify(&folder, PIPELINE, &windows[..1], &lake, &[]).expect(4);
    let server = server_for(PIPELINE);
    let ran = verify(&folder, PIPELINE, &windows, &live(), &["--endpoint-url", &server.url()]).expect(2);
    assert!(ran.stderr.contains("which cannot be compared with a table"), "{}", ran.stderr);
}

#[test]
fn targets_in_s3_are_compared_like_folders() {
    let (folder, server) = (Folder::new(), ministack());
    let bucket = server.create_bucket();
    let targets = ["parquet", "import"].map(|kind| format!("{kind}:s3://{bucket}/{kind}"));
    let (work, url) = (folder.join("work"), server.url());
    let mut args = vec!["run", PIPELINE, "--from", DOCS, "--work", &work, "--quiet", "--s3-endpoint-url", &url];
    args.extend(targets.iter().flat_map(|target| ["--to", target.as_str()]));
    start(&args).expect(0);
    verify_docs(&folder, &targets, &["--s3-endpoint-url", &url]).expect(0);
    let bucket = crate::support::s3::client(&url, dynamorph::aws::s3::Limits::default()).bucket(&bucket);
    bucket.delete(&["parquet/Workspace/part-u00001-0000.parquet"]).expect("an object can be deleted");
    verify_docs(&folder, &targets, &["--s3-endpoint-url", &url]).expect(4);
    assert_eq!(kinds(&list(&folder)), counted(&[("missing", 3)]));
}

#[test]
fn the_answer_is_the_same_for_any_number_of_workers() {
    let folder = Folder::new();
    let targets = [folder.sink("import", "import"), folder.sink("parquet", "lake")];
    folder.run("pipelines/docs-backfill-type.toml", &[DOCS], &targets, &[]).expect(0);
    let answers = ["1", "2", "8"].map(|jobs| {
        let ran = verify_docs(&folder, &targets[1..], &["--jobs", jobs]).expect(4);
        (ran.stdout, fs::read(folder.path().join("verify/differences.jsonl")).expect("there are differences"))
    });
    assert!(answers[0] == answers[1] && answers[1] == answers[2]);
}

/// Refused with code 2 and these words.
#[track_caller]
fn refused(folder: &Folder, against: &str, more: &[&str], code: i32, parts: &[&str]) {
    let ran = verify_docs(folder, &[against.to_owned()], more).expect(code);
    for part in parts {
        assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
    }
}

#[test]
fn targets_that_cannot_be_compared_are_refused_with_what_was_found_and_expected() {
    let folder = Folder::new();
    refused(&folder, "csv:out", &[], 2, &["unknown target", "csv:out", "export:[TABLE=]EXPORT"]);
    refused(&folder, "import:", &[], 2, &["a folder is missing after the colon"]);
    refused(&folder, &folder.sink("import", "nothing"), &[], 1, &["there is no folder of a table", "docs or comments"]);
    refused(&folder, &folder.sink("parquet", "nothing"), &[], 1, &["there is no Parquet file"]);
    refused(&folder, &folder.sink("batch", "x"), &["--max-read-units", "5"], 2, &["--max-read-units is for live tables"]);
    refused(&folder, &folder.sink("batch", "x"), &["--only", "Docment"], 2, &["no entity `Docment`"]);
    let server = Server::start();
    let url = server.url();
    let live = ["--endpoint-url", url.as_str()];
    refused(&folder, "dynamodb", &live, 2, &["the target table does not exist", "table: docs", "--table docs=NAME"]);
    server.create_table("docs", &[("EntityRef", "S")], &[]);
    refused(&folder, "dynamodb", &live, 2, &["another key than the pipeline says", "Detail (S, sort)", "found: EntityRef (S, partition)"]);
    // Under their real names.
    server.create_table("prod-docs", &[("EntityRef", "S"), ("Detail", "S")], &[]);
    server.create_table("comments", &[("DocRef", "S"), ("Detail", "S")], &[]);
    let names = ["--endpoint-url", url.as_str(), "--table", "docs=prod-docs"];
    let ran = verify_docs(&folder, &["dynamodb".to_owned()], &names).expect(4);
    assert!(ran.stdout.contains("109 differences: 109 missing\n"), "{}", ran.stdout);
    let folder_of_others = folder.path().join("others");
    fs::create_dir_all(folder_of_others.join("docs/data")).expect("a folder can be made");
    fs::create_dir_all(folder_of_others.join("notes")).expect("a folder can be made");
    let work = folder.join("verify");
    let others = folder.sink("import", "others");
    let ran = start(&["verify", PIPELINE, "--from", DOCS, "--against", &others, "--work", &work]).expect(4);
    assert!(ran.stderr.contains("notes: no table of the pipeline is called so"), "{}", ran.stderr);
}
