//! Imports of what a run wrote to S3: by a server that others wrote, and by one that fails as a test says.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dynamorph::aws::dynamodb::DynamoDb;
use dynamorph::aws::s3::{Bucket, Limits};
use dynamorph::aws::{Aws, Options};
use dynamorph::error::{Error, Kind};
use dynamorph::store::S3Folder;
use dynamorph::{LoadEvent, LoadOptions, LoadSummary, Stop};
use serde_json::{Value, json};

use crate::program::{Folder, Ran, command};
use crate::support::imports::{Answer, Scripted, ask};
use crate::support::s3::{client, ministack, options};

const PIPELINE: &str = "pipelines/docs-split-comments.toml";
const EXPORT: &str = "sample_exports/docs";

/// The program with the servers at these addresses, and nothing of whoever runs the tests.
fn start(args: &[&str], dynamodb: &str, s3: &str) -> Command {
    let mut command = command(args);
    command.args(["--endpoint-url", dynamodb, "--s3-endpoint-url", s3]);
    command.env_clear().envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]);
    command.envs([("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")]);
    command
}

fn program(args: &[&str], dynamodb: &str, s3: &str) -> Ran {
    Ran::of(start(args, dynamodb, s3).output().expect("the program starts"))
}

/// Runs the split pipeline with import files in a new bucket, below `out`; tables get names of their own.
fn run_into(dynamodb: &str, more: &[&str], prefix: &str) -> (Folder, Bucket, Ran) {
    let (folder, bucket) = (Folder::new(), ministack().bucket());
    let (work, sink) = (folder.join("work"), format!("import:s3://{}/out", bucket.name()));
    let (docs, comments) = (format!("docs={prefix}-docs"), format!("comments={prefix}-comments"));
    let mut args = vec!["run", PIPELINE, "--from", EXPORT, "--work", &work, "--to", &sink, "--table", &docs, "--table", &comments];
    args.extend(more);
    let ran = program(&args, dynamodb, &ministack().url());
    (folder, bucket, ran)
}

fn scan(url: &str, table: &str) -> Vec<Value> {
    let page = ask(url, "Scan", &json!({ "TableName": table }));
    assert!(page.get("LastEvaluatedKey").is_none());
    page["Items"].as_array().unwrap_or_else(|| panic!("{page}")).clone()
}

/// Items as texts in one order; members of sets have none of their own.
fn in_order(items: impl IntoIterator<Item = Value>) -> Vec<String> {
    fn ordered(value: &mut Value) {
        match value {
            Value::Object(entries) => {
                for (name, value) in entries {
                    match value {
                        Value::Array(members) if ["SS", "NS", "BS"].contains(&name.as_str()) => members.sort_by_key(Value::to_string),
                        value => ordered(value),
                    }
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(ordered),
            _ => {}
        }
    }
    let mut items: Vec<_> = items
        .into_iter()
        .map(|mut item| {
            ordered(&mut item);
            item.to_string()
        })
        .collect();
    items.sort_unstable();
    items
}

/// The items of a table's objects.
fn in_files(bucket: &Bucket, table: &str) -> Vec<Value> {
    let keys: Vec<_> = bucket.list(&format!("out/{table}/data/"), None).unwrap().objects.into_iter().map(|object| object.key).collect();
    let lines = bucket.get_all(&keys).unwrap().into_iter().flat_map(|bytes| {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes.unwrap()[..]), &mut text).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["Item"].take()).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
fn tables_are_imported_followed_and_counted_and_hold_the_items_of_the_files() {
    let url = ministack().url();
    let (_folder, bucket, ran) = run_into(&url, &[], "whole");
    ran.expect(0);
    let files = format!("s3://{}/out", bucket.name());
    let ran = program(&["load", &files], &url, &url).expect(0);
    for part in ["whole-docs: started arn:aws:dynamodb:us-east-1:", "whole-comments: done"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    for part in ["35 of 35 items", "74 of 74 items"] {
        assert!(ran.stdout.contains(part), "{}", ran.stdout);
    }
    for (table, count) in [("docs", 35), ("comments", 74)] {
        let found = in_order(scan(&url, &format!("whole-{table}")));
        assert_eq!(found.len(), count);
        assert_eq!(found, in_order(in_files(&bucket, table)));
    }
}

#[test]
fn the_same_command_finds_the_imports_that_it_started() {
    let url = ministack().url();
    let (_folder, bucket, ran) = run_into(&url, &[], "again");
    ran.expect(0);
    let files = format!("s3://{}/out/", bucket.name());
    let first: Value =
        serde_json::from_str(&program(&["load", &files, "--only", "docs", "--output", "json"], &url, &url).expect(0).stdout).unwrap();
    assert_eq!(
        [&first["ok"], &first["tables"][0]["table"], &first["tables"][0]["imported"]],
        [&json!(true), &json!("again-docs"), &json!(35)]
    );
    let ran = program(&["load", &files], &url, &url).expect(0);
    assert!(ran.stderr.contains("again-docs: found arn:") && ran.stderr.contains("again-comments: started arn:"), "{}", ran.stderr);
    let second: Value = serde_json::from_str(&program(&["load", &files, "--output", "json"], &url, &url).expect(0).stdout).unwrap();
    assert_eq!(second["tables"][0]["import_arn"], first["tables"][0]["import_arn"]);

    // Other objects below the same prefix are another import, which the table that is there stands in the way of.
    let key = bucket.list("out/docs/data/", None).unwrap().objects[0].key.clone();
    let mut bytes = bucket.get_whole(&key).unwrap().unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    bucket.put_whole(&key, bytes).unwrap();
    let ran = program(&["load", &files], &url, &url).expect(2);
    assert!(ran.stderr.contains("the table exists") && ran.stderr.contains("table: again-docs"), "{}", ran.stderr);
}

#[test]
fn a_run_can_import_what_it_wrote() {
    let url = ministack().url();
    let (_folder, _bucket, ran) = run_into(&url, &["--start-import", "--output", "json"], "run");
    let report: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    assert_eq!([&report["read"], &report["load"]["ok"]], [&json!(109), &json!(true)]);
    let imported: Vec<_> = report["load"]["tables"].as_array().unwrap().iter().map(|table| table["imported"].clone()).collect();
    assert_eq!(imported, [json!(35), json!(74)]);
    assert_eq!(scan(&url, "run-comments").len(), 74);

    // The tables are there now, so nothing is read or written.
    let (folder, bucket, ran) = run_into(&url, &["--start-import"], "run");
    let ran = ran.expect(2);
    assert!(
        ran.stderr.contains("the table exists, and an import makes a new one") && ran.stderr.contains("table: run-docs"),
        "{}",
        ran.stderr
    );
    assert!(!folder.path().join("work").exists() && !bucket.any("").unwrap());
}

#[test]
fn a_run_with_rejects_imports_nothing_unless_they_are_allowed() {
    let (folder, bucket, url) = (Folder::new(), ministack().bucket(), ministack().url());
    let (work, sink) = (folder.join("work"), format!("import:s3://{}/out", bucket.name()));
    let broken = ["run", PIPELINE, "--from", "sample_exports/broken/bad-line", "--work", &work, "--to", &sink, "--start-import"];
    let tables = ["--table", "docs=broken-docs", "--table", "comments=broken-comments"];
    let ran = program(&[&broken[..], &tables].concat(), &url, &url).expect(3);
    assert!(ran.stdout.contains("no import was started"), "{}", ran.stdout);
    assert!(ask(&url, "DescribeTable", &json!({ "TableName": "broken-docs" })).get("Table").is_none());
    let ran = program(&[&broken[..], &tables, &["--overwrite", "--max-rejects", "1"]].concat(), &url, &url).expect(0);
    assert!(ran.stdout.contains("broken-docs"), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_imported_is_refused_before_anything_is_asked_of_the_service() {
    let server = Scripted::start(|_, _, _| Answer::Cut);
    let s3 = ministack().url();
    let (_folder, bucket, ran) = run_into(&s3, &[], "refused");
    ran.expect(0);
    let (name, files) = (bucket.name(), format!("s3://{}/out", bucket.name()));
    let refused = |args: &[&str], code: i32, parts: &[&str]| {
        let ran = program(&[&["load"], args].concat(), &server.url(), &s3).expect(code);
        for part in parts {
            assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
        }
    };
    refused(&["some/folder"], 2, &["an import reads from S3", "aws s3 sync some/folder s3://BUCKET/PREFIX", "dynamorph load s3://"]);
    refused(&[&format!("s3://{name}/elsewhere")], 2, &["holds no files for import", "missing: counts.json"]);
    refused(&[&files, "--only", "document"], 2, &["no table `document`", "known: docs, comments"]);
    refused(&[&files, "--table", "document=x-docs"], 2, &["no table `document`"]);
    refused(&[&files, "--table", "docs=refused-comments"], 2, &["two tables would be imported into the one table `refused-comments`"]);
    bucket.put_whole("out/docs/data/_SUCCESS", Vec::new()).unwrap();
    refused(&[&files], 1, &["does not hold the objects that the run wrote", "expected: 1 object,", "found: 2 objects", "out/docs/data/"]);
    bucket.delete(&["out/docs/data/_SUCCESS"]).unwrap();
    let counts = bucket.get_whole("out/counts.json").unwrap().unwrap();
    let mut fewer: Value = serde_json::from_slice(&counts).unwrap();
    fewer["tables"].as_array_mut().unwrap().remove(0);
    bucket.put_whole("out/counts.json", fewer.to_string().into_bytes()).unwrap();
    refused(&[&files], 1, &["files for a table that counts.json does not list", "table: docs"]);
    bucket.put_whole("out/counts.json", counts).unwrap();
    bucket.put_whole("out/docs/table.json", b"{}".to_vec()).unwrap();
    refused(&[&files], 1, &["has no TableCreationParameters", "out/docs/table.json"]);
    bucket.put_whole("out/counts.json", b"{}".to_vec()).unwrap();
    refused(&[&files], 1, &["cannot be understood", "out/counts.json"]);
    assert!(server.asked().is_empty());

    let folder = Folder::new();
    let (work, local) = (folder.join("work"), folder.sink("import", "out"));
    let args = ["run", PIPELINE, "--from", EXPORT, "--work", &work, "--start-import", "--to", &local];
    let ran = program(&args, &server.url(), &s3).expect(2);
    assert!(ran.stderr.contains("--start-import imports what one --to import:s3://BUCKET/PREFIX writes"), "{}", ran.stderr);
}

/// One small table in S3, and a `DynamoDB` that does as told.
struct Scene {
    bucket: Bucket,
    dynamodb: Scripted,
}

const ARN: &str = "arn:aws:dynamodb:us-east-1:000000000000:table/scene/import/01700000000000-abcdef01";
const TABLE_ARN: &str = "arn:aws:dynamodb:us-east-1:000000000000:table/scene";

impl Scene {
    fn new(says: impl Fn(&str, &Value, usize) -> Answer + Send + Sync + 'static) -> Self {
        let bucket = ministack().bucket();
        let counts =
            json!({ "tables": [{ "table": "t", "items": 9, "entities": { "E": 9 }, "objects": 1, "bytes": 4, "text_bytes": 90 }] });
        // Made by hand, with what the SDK of this program may not know.
        let request = json!({
            "S3BucketSource": { "S3Bucket": "REPLACE-WITH-YOUR-BUCKET", "S3KeyPrefix": "t/data/" },
            "InputFormat": "ION",
            "InputCompressionType": "ZSTD",
            "TableCreationParameters": { "TableName": "scene", "SomethingNew": { "Of": "2027" } },
        });
        bucket.put_whole("out/counts.json", counts.to_string().into_bytes()).unwrap();
        bucket.put_whole("out/t/table.json", request.to_string().into_bytes()).unwrap();
        bucket.put_whole("out/t/data/part.ion.zst", b"data".to_vec()).unwrap();
        Self { bucket, dynamodb: Scripted::start(says) }
    }

    fn files(&self) -> String {
        format!("s3://{}/out", self.bucket.name())
    }

    fn program(&self, more: &[&str]) -> Ran {
        program(&[&["load", &self.files()], more].concat(), &self.dynamodb.url(), &ministack().url())
    }

    /// The library, which need not wait between two looks.
    fn load(&self, stop: Stop) -> Result<LoadSummary, Error> {
        let options = Options { endpoint_url: Some(self.dynamodb.url()), ..options(&ministack().url()) };
        let dynamodb = DynamoDb::connect(Aws::connect(&options).unwrap()).unwrap().with_patience(Duration::ZERO);
        let bucket = client(&ministack().url(), Limits::default()).bucket(self.bucket.name());
        let pauses = LoadOptions { first_pause: Duration::ZERO, longest_pause: Duration::ZERO, stop, ..LoadOptions::default() };
        dynamorph::load(&dynamodb, &S3Folder::new(bucket, "out"), &pauses, &mut |_: LoadEvent<'_>| {})
    }
}

/// An import as the service describes it, with these fields besides.
fn described(status: &str, more: &Value) -> Answer {
    let mut description = json!({ "ImportArn": ARN, "ImportStatus": status });
    for (name, value) in more.as_object().into_iter().flatten() {
        description[name] = value.clone();
    }
    Answer::Json(json!({ "ImportTableDescription": description }))
}

fn counted(processed: u64, imported: u64, errors: u64) -> Value {
    json!({ "ProcessedItemCount": processed, "ImportedItemCount": imported, "ErrorCount": errors, "ProcessedSizeBytes": 90 })
}

/// There is no table; the import starts, and is described so from the second look on.
fn ends(status: &'static str, more: Value) -> impl Fn(&str, &Value, usize) -> Answer + Send + Sync + 'static {
    move |action, _, before| match (action, before) {
        ("DescribeTable", _) => Answer::Error("ResourceNotFoundException", "Requested resource not found"),
        ("ImportTable", _) | ("DescribeImport", 0) => described("IN_PROGRESS", &json!({})),
        _ => described(status, &more),
    }
}

#[test]
fn the_request_is_that_of_the_file_with_the_place_where_it_lies_and_a_stable_token() {
    let scene = Scene::new(ends("COMPLETED", counted(9, 9, 0)));
    let summary = scene.load(Stop::default()).unwrap();
    assert!(summary.ok && summary.tables[0].imported == 9, "{summary:?}");
    assert!(scene.load(Stop::default()).unwrap().ok);
    let sent = scene.dynamodb.requests("ImportTable");
    let mut expected: Value = serde_json::from_slice(&scene.bucket.get_whole("out/t/table.json").unwrap().unwrap()).unwrap();
    expected["S3BucketSource"] = json!({ "S3Bucket": scene.bucket.name(), "S3KeyPrefix": "out/t/data/" });
    expected["ClientToken"] = sent[0]["ClientToken"].clone();
    assert_eq!(sent, [expected.clone(), expected]);
    let token = sent[0]["ClientToken"].as_str().unwrap();
    assert!(token.starts_with("dynamorph-") && token.len() == 42, "{token}");
    let looks = scene.dynamodb.requests("DescribeImport");
    assert_eq!(looks[..2], [json!({ "ImportArn": ARN }), json!({ "ImportArn": ARN })]);

    scene.bucket.put_whole("out/t/data/part.ion.zst", b"tada".to_vec()).unwrap();
    scene.load(Stop::default()).unwrap();
    assert_ne!(scene.dynamodb.requests("ImportTable")[2]["ClientToken"], token);
}

#[test]
fn counts_that_differ_are_a_failure_also_where_the_service_is_content() {
    for counts in [counted(9, 8, 0), counted(0, 0, 0), counted(10, 10, 0)] {
        let summary = Scene::new(ends("COMPLETED", counts)).load(Stop::default()).unwrap();
        assert!(!summary.ok);
        let failure = summary.tables[0].failure.as_deref().unwrap();
        assert!(failure.starts_with("it read ") && failure.ends_with("the files hold 9"), "{failure}");
    }
}

#[test]
fn each_code_of_a_failure_comes_with_advice() {
    let group = "arn:aws:logs:us-east-1:000000000000:log-group:/aws-dynamodb/imports:*";
    for (code, parts) in [
        (
            "ItemValidationError",
            vec!["table scene exists and holds the items that were written", group, "stream 01700000000000-abcdef01/error"],
        ),
        ("S3NoSuchBucket", vec!["there is no bucket bucket-", "no table was made"]),
        ("S3NoSuchKey", vec!["nothing lies below s3://bucket-", "/out/t/data/"]),
        ("S3AccessDenied", vec!["s3:ListBucket", "s3:GetObject", "kms:Decrypt", "--bucket-owner"]),
        ("ObjectModifiedInS3DuringImport", vec!["something wrote below", "delete table scene"]),
        ("TableAlreadyExists", vec!["somebody made table scene meanwhile"]),
        ("SomethingNew", vec!["aws dynamodb describe-import"]),
    ] {
        let mut more = counted(9, 7, 2);
        more["FailureCode"] = json!(code);
        more["FailureMessage"] = json!("why it failed");
        more["CloudWatchLogGroupArn"] = json!(group);
        let summary = Scene::new(ends("FAILED", more)).load(Stop::default()).unwrap();
        let table = &summary.tables[0];
        assert_eq!((summary.ok, table.ok, table.imported, table.errors), (false, false, 7, 2));
        assert_eq!(table.failure.as_deref(), Some(format!("{code}: why it failed").as_str()));
        let advice = table.advice.as_deref().unwrap();
        for part in parts {
            assert!(advice.contains(part), "`{part}` is not in: {advice}");
        }
    }
    let summary = Scene::new(ends("CANCELLED", json!({}))).load(Stop::default()).unwrap();
    assert_eq!(summary.tables[0].failure.as_deref(), Some("it was cancelled"));
}

/// A table is there, which an import made that was started with this token; the import is described so.
fn made_by(
    token: &Arc<std::sync::Mutex<Value>>,
    status: &'static str,
    more: Value,
) -> impl Fn(&str, &Value, usize) -> Answer + Send + Sync + 'static {
    let token = Arc::clone(token);
    move |action, _, before| match action {
        "DescribeTable" => Answer::Json(json!({ "Table": { "TableName": "scene", "TableArn": TABLE_ARN } })),
        "ListImports" if before == 0 => {
            let other = json!({ "ImportArn": "arn:other", "ImportStatus": "FAILED", "TableArn": TABLE_ARN });
            Answer::Json(json!({ "ImportSummaryList": [other], "NextToken": "more" }))
        }
        "ListImports" => {
            Answer::Json(json!({ "ImportSummaryList": [{ "ImportArn": ARN, "ImportStatus": status, "TableArn": TABLE_ARN }] }))
        }
        "DescribeImport" if before == 0 => described("FAILED", &json!({ "ClientToken": "another" })),
        "DescribeImport" => {
            let mut more = more.clone();
            more["ClientToken"] = token.lock().unwrap().clone();
            described(status, &more)
        }
        _ => Answer::Cut,
    }
}

#[test]
fn a_failure_is_told_on_stdout_and_by_the_exit_code() {
    let token = Arc::default();
    let mut more = counted(9, 7, 2);
    more["FailureCode"] = json!("ItemValidationError");
    more["FailureMessage"] = json!("Some of the items failed");
    let scene = Scene::new(made_by(&token, "FAILED", more));
    // The token, as the same files give it elsewhere.
    let other = Scene { dynamodb: Scripted::start(ends("COMPLETED", counted(9, 9, 0))), bucket: scene.bucket.clone() };
    other.load(Stop::default()).unwrap();
    *token.lock().unwrap() = other.dynamodb.requests("ImportTable")[0]["ClientToken"].clone();

    let ran = scene.program(&[]).expect(1);
    assert!(ran.stderr.contains(&format!("scene: found {ARN}")) && ran.stderr.contains("scene: failed"), "{}", ran.stderr);
    for part in [
        "scene  failed  7 of 9 items imported  2 refused",
        "found: ItemValidationError: Some of the items failed",
        "hint: table scene exists",
    ] {
        assert!(ran.stdout.contains(part), "`{part}` is not in: {}", ran.stdout);
    }
    let pages = scene.dynamodb.requests("ListImports");
    assert_eq!(pages, [json!({ "TableArn": TABLE_ARN }), json!({ "TableArn": TABLE_ARN, "NextToken": "more" })]);
    assert!(scene.dynamodb.requests("ImportTable").is_empty());
}

#[test]
fn a_table_of_somebody_else_is_refused_before_anything_starts() {
    let scene = Scene::new(made_by(&Arc::default(), "COMPLETED", json!({})));
    let ran = scene.program(&[]).expect(2);
    for part in ["the table exists, and an import makes a new one", "table: scene", "sh import.sh existing", "run --to dynamodb", "--table"]
    {
        assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
    }
    assert!(scene.dynamodb.requests("ImportTable").is_empty());
}

#[test]
fn a_table_that_is_being_made_may_be_ours_although_no_list_names_its_import() {
    let says = |started: fn() -> Answer| {
        move |action: &str, _: &Value, _| match action {
            "DescribeTable" => Answer::Json(json!({ "Table": { "TableName": "scene", "TableArn": TABLE_ARN, "TableStatus": "CREATING" } })),
            "ListImports" => Answer::Json(json!({ "ImportSummaryList": [] })),
            "ImportTable" => started(),
            _ => described("COMPLETED", &counted(9, 9, 0)),
        }
    };
    let ours = Scene::new(says(|| described("IN_PROGRESS", &json!({}))));
    assert!(ours.load(Stop::default()).unwrap().ok);
    let others = Scene::new(says(|| Answer::Error("ResourceInUseException", "Table already exists: scene")));
    let error = others.load(Stop::default()).unwrap_err();
    assert_eq!((error.kind(), error.message()), (Kind::Usage, "the table exists, and an import makes a new one"));
}

#[test]
fn what_the_service_answers_to_the_request_has_its_own_advice_and_exit_code() {
    for (code, exit, parts) in [
        ("ResourceInUseException", 2, ["the table exists", "--table"]),
        ("LimitExceededException", 5, ["runs as many imports as it will", "run the same command again"]),
        ("ImportConflictException", 1, ["at odds with an earlier one", "list-imports"]),
        ("AccessDeniedException", 1, ["the service denies the import", "logs:CreateLogGroup"]),
        ("ValidationException", 1, ["DynamoDB refuses the request", "dynamodb:ImportTable"]),
    ] {
        let scene = Scene::new(move |action, _, _| match action {
            "ImportTable" => Answer::Error(code, "the service's own words"),
            _ => Answer::Error("ResourceNotFoundException", "no such table"),
        });
        let ran = scene.program(&[]).expect(exit);
        for part in parts.into_iter().chain(["table: scene", &format!("found: {code}: the service's own words")]) {
            assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
        }
        assert_eq!(scene.dynamodb.requests("ImportTable").len(), 1);
    }
}

#[test]
fn an_import_of_other_files_or_of_former_times_is_none_of_ours() {
    for (answer, message) in [
        (
            ("IN_PROGRESS", json!({ "S3BucketSource": { "S3Bucket": "other", "S3KeyPrefix": "out/t/data/" } })),
            "gives an import of other files",
        ),
        (("COMPLETED", json!({})), "remembers an earlier import of these files"),
    ] {
        let scene = Scene::new(move |action, _, _| match action {
            "ImportTable" => described(answer.0, &answer.1),
            _ => Answer::Error("ResourceNotFoundException", "no such table"),
        });
        let error = scene.load(Stop::default()).unwrap_err();
        assert!(error.message().contains(message) && error.to_string().contains(ARN), "{error}");
    }
}

#[test]
fn a_network_that_fails_ends_the_following_and_says_how_to_go_on() {
    let scene = Scene::new(|action, _, before| match (action, before) {
        ("DescribeTable", _) => Answer::Error("ResourceNotFoundException", "no such table"),
        ("DescribeImport", 0) => Answer::Error("ThrottlingException", "slow down"),
        ("ImportTable", _) | ("DescribeImport", 1) => described("IN_PROGRESS", &json!({})),
        _ => Answer::Cut,
    });
    let error = scene.load(Stop::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    for part in ["DynamoDB gives no usable answer", "load the same files again", ARN] {
        assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn an_interrupt_ends_the_following_and_leaves_the_import() {
    let (scene, stop) = (Scene::new(ends("COMPLETED", counted(9, 9, 0))), Stop::default());
    stop.ask();
    let error = scene.load(stop).unwrap_err();
    assert_eq!((error.kind(), error.message()), (Kind::Interrupted, "stopped following the imports, which go on"));

    // The program, which is interrupted while the import runs.
    let (reached, looks) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
    let seen = Arc::clone(&reached);
    let scene = Scene::new(move |action, _, _| match action {
        "DescribeTable" => Answer::Error("ResourceNotFoundException", "no such table"),
        "DescribeImport" if looks.fetch_add(1, Ordering::SeqCst) == 0 => {
            seen.store(true, Ordering::SeqCst);
            described("IN_PROGRESS", &json!({}))
        }
        _ => described("IN_PROGRESS", &json!({})),
    });
    let mut command = start(&["load", &scene.files()], &scene.dynamodb.url(), &ministack().url());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let until = Instant::now() + Duration::from_mins(2);
    while !reached.load(Ordering::SeqCst) {
        assert!(Instant::now() < until, "the program did not look at the import in two minutes");
        std::thread::yield_now();
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
    assert!(sent.success());
    let ran = Ran::of(child.wait_with_output().expect("a child ends")).expect(5);
    for part in ["scene: 0 of 9 items", "stopped following the imports, which go on", "load the same files again"] {
        assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
    }
}

#[test]
fn real_names_can_be_given_when_the_files_are_loaded() {
    let scene = Scene::new(ends("COMPLETED", counted(9, 9, 0)));
    let options = LoadOptions {
        table_names: BTreeMap::from([("t".to_owned(), "renamed".to_owned())]),
        first_pause: Duration::ZERO,
        longest_pause: Duration::ZERO,
        ..LoadOptions::default()
    };
    let connection = Options {
        endpoint_url: Some(scene.dynamodb.url()),
        bucket_owner: Some("111122223333".to_owned()),
        ..self::options(&ministack().url())
    };
    let aws = Aws::connect(&connection).unwrap();
    let bucket = dynamorph::aws::s3::S3::connect(Arc::clone(&aws)).bucket(scene.bucket.name());
    let summary = dynamorph::load(&DynamoDb::connect(aws).unwrap(), &S3Folder::new(bucket, "out/"), &options, &mut |_| {}).unwrap();
    assert_eq!(summary.tables[0].table, "renamed");
    let sent = &scene.dynamodb.requests("ImportTable")[0];
    assert_eq!(sent["TableCreationParameters"]["TableName"], "renamed");
    assert_eq!(sent["S3BucketSource"]["S3BucketOwner"], "111122223333");
}
