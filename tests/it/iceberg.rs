//! Iceberg tables: pyiceberg and `DuckDB` read from them what lies in the Parquet datasets of the same run; they are appended to, replaced,
//! and never seen half done.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::pipelines::SHOWN;
use crate::program::{Folder, Ran, command, dynamorph, files};
use crate::python::{environment, programs, run_program};
use crate::samples::export_of;
use crate::support::s3::ministack;

const PIPELINE: &str = "pipelines/docs-split-comments.toml";
const EXPORT: &str = "sample_exports/docs";

/// `DuckDB` of the version that its extension for Iceberg is published for.
fn duckdb() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| environment("duckdb-iceberg-venv", "duckdb-iceberg.txt"))
}

/// What both engines find in tables, after they have compared the rows with those of the datasets. A pair is `LAKE=PARQUET+PARQUET`.
fn read(pairs: &[String]) -> Vec<String> {
    let paths: Vec<&Path> = pairs.iter().map(Path::new).collect();
    let found = run_program("read_iceberg.py", &[], &paths);
    let output = Command::new(duckdb())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(programs())
        .arg("duckdb_iceberg.py")
        .args(pairs)
        .output()
        .expect("the environment has a Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let by_duckdb = String::from_utf8(output.stdout).expect("the programs print UTF-8");
    let tables: Vec<_> = found.iter().filter(|line| !line.starts_with(' ')).map(String::as_str).collect();
    assert_eq!(by_duckdb.lines().collect::<Vec<_>>(), tables);
    found
}

/// A folder with a pipeline of one entity whose attributes are free, and a place for exports.
struct Orders(Folder);

impl Orders {
    fn new() -> Self {
        let folder = Folder::new();
        let pipeline = "version = 1\n[source]\nkey = { partition = \"PK\" }\n[entity.Order]\nmatch = { PK = \"O#{id}\" }\n";
        fs::write(folder.join("pipeline.toml"), pipeline).expect("the pipeline can be written");
        Self(folder)
    }

    /// Runs over orders with these attributes into the table, and into a dataset of its own.
    fn run(&self, dataset: &str, attributes: &[&str], more: &[&str]) -> Ran {
        let from = self.0.join(&format!("{dataset}.json"));
        let line = |(at, attributes): (usize, &&str)| format!("{{\"Item\":{{\"PK\":{{\"S\":\"O#{dataset}{at}\"}},{attributes}}}}}\n");
        fs::write(&from, attributes.iter().enumerate().map(line).collect::<String>()).expect("the orders can be written");
        let sinks = [self.0.sink("iceberg", "lake"), self.0.sink("parquet", dataset)];
        self.0.run(&self.0.join("pipeline.toml"), &[&from], &sinks, more)
    }

    fn pair(&self, datasets: &[&str]) -> String {
        let datasets: Vec<_> = datasets.iter().map(|dataset| self.0.join(dataset)).collect();
        format!("{}={}", self.0.join("lake"), datasets.join("+"))
    }

    /// The names and types of the current schema.
    fn schema(&self) -> Vec<String> {
        let version = fs::read_to_string(self.0.join("lake/Order/metadata/version-hint.text")).expect("a hint");
        let metadata = metadata(&self.0.path().join("lake/Order"), version.parse().expect("the hint is a number"));
        let schemas = metadata["schemas"].as_array().expect("schemas");
        let current = schemas.iter().find(|schema| schema["schema-id"] == metadata["current-schema-id"]).expect("the current schema");
        let fields = current["fields"].as_array().expect("fields");
        let word = |field: &Value| {
            let kind = field["type"].as_str().unwrap_or_else(|| field["type"]["type"].as_str().unwrap_or("?"));
            format!("{} {} {kind}", field["id"], field["name"].as_str().unwrap_or("?"))
        };
        fields.iter().map(word).collect()
    }
}

fn metadata(table: &Path, version: u32) -> Value {
    serde_json::from_slice(&fs::read(table.join(format!("metadata/v{version}.metadata.json"))).expect("metadata")).expect("it is JSON")
}

/// The metadata files below a folder, which are what makes rows visible.
fn visible(lake: &Path) -> Vec<String> {
    let names = files(lake).into_iter().map(|(path, _)| path.display().to_string());
    names.filter(|name| name.ends_with(".metadata.json") || name.ends_with("version-hint.text")).collect()
}

#[test]
fn every_pipeline_writes_tables_whose_rows_are_those_of_its_parquet() {
    let folders: Vec<_> = SHOWN
        .iter()
        .map(|shown| {
            let folder = Folder::new();
            let sinks = [folder.sink("iceberg", "lake"), folder.sink("parquet", "parquet")];
            folder.run(&format!("pipelines/{}.toml", shown.name), shown.from, &sinks, &[]).expect(0);
            folder
        })
        .collect();
    let pairs: Vec<_> = folders.iter().map(|folder| format!("{}={}", folder.join("lake"), folder.join("parquet"))).collect();
    let found = read(&pairs);
    assert!(found.contains(&"Comment: 9 columns, 74 rows".to_owned()), "{found:#?}");
    // The time of the snapshot is that of the export.
    assert!(found.contains(&"  append by itself: 74 rows of 74, schema 0, at 1775001600515".to_owned()), "{found:#?}");
}

#[test]
fn a_table_that_is_there_is_left_alone_appended_to_or_replaced() {
    let folder = Folder::new();
    let (lake, parquet) = (folder.sink("iceberg", "lake"), folder.sink("parquet", "parquet"));
    folder.run(PIPELINE, &[EXPORT], &[lake.clone(), parquet], &[]).expect(0);
    let before = files(&folder.path().join("lake"));
    let refused = folder.run(PIPELINE, &[EXPORT], std::slice::from_ref(&lake), &[]).expect(2);
    assert!(refused.stderr.contains("the table is there already") && refused.stderr.contains("--append"), "{}", refused.stderr);
    assert_eq!(files(&folder.path().join("lake")), before);

    folder.run(PIPELINE, &[EXPORT], std::slice::from_ref(&lake), &["--append"]).expect(0);
    let (lake_path, dataset) = (folder.join("lake"), folder.join("parquet"));
    assert_eq!(
        read(&[format!("{lake_path}={dataset}+{dataset}")])[..3],
        [
            "Comment: 9 columns, 148 rows",
            "  append by itself: 74 rows of 74, schema 0, at 1775001600515",
            "  append after another: 148 rows of 148, schema 0, at 1775001600516",
        ]
    );

    // The tables of entities that the run is not about stay.
    folder.run(PIPELINE, &[EXPORT], std::slice::from_ref(&lake), &["--overwrite", "--only", "Workspace"]).expect(0);
    let replaced = [
        "  append by itself: 3 rows of 3, schema 0, at 1775001600515",
        "  append after another: 6 rows of 6, schema 0, at 1775001600516",
        "  overwrite by itself: 3 rows of 3, schema 0, at 1775001600517",
    ];
    let found = run_program("read_iceberg.py", &["--show"], &[&folder.path().join("lake")]);
    assert!(found.contains(&"Comment: 9 columns, 148 rows".to_owned()), "{found:#?}");
    assert_eq!(found[found.len() - 3..], replaced);
    for (path, bytes) in before.iter().filter(|(path, _)| path.components().any(|part| part.as_os_str() == "data")) {
        assert_eq!(fs::read(folder.path().join("lake").join(path)).ok().as_ref(), Some(bytes), "earlier snapshots keep their files");
    }
}

#[test]
fn a_replaced_table_is_empty_where_no_item_is_left() {
    let orders = Orders::new();
    orders.run("one", &[r#""total":{"N":"1"}"#], &[]).expect(0);
    orders.run("none", &[], &["--overwrite"]).expect(0);
    let found = run_program("read_iceberg.py", &["--show"], &[&orders.0.path().join("lake")]);
    assert_eq!(found[0], "Order: 2 columns, 0 rows");
    assert!(found[2].starts_with("  delete by itself: 0 rows of 0"), "{found:#?}");
}

#[test]
fn appended_rows_find_their_columns_and_new_attributes_get_new_ones() {
    let orders = Orders::new();
    let first = [
        r#""total":{"N":"12.50"},"ship":{"S":"home"},"lines":{"L":[{"N":"1.5"}]},"by":{"M":{"name":{"S":"ada"}}}"#,
        r#""total":{"N":"3"},"note":{"NULL":true}"#,
    ];
    orders.run("one", &first, &[]).expect(0);
    assert_eq!(orders.schema(), ["1 PK string", "2 by struct", "3 lines list", "4 note string", "5 ship string", "6 total decimal(3, 1)"]);
    // All numbers are integers now, an address has parts, and a map has one key more.
    let second = [
        r#""total":{"N":"7"},"ship":{"M":{"city":{"S":"Rome"}}},"lines":{"L":[{"N":"2"}]},"by":{"M":{"mail":{"S":"x"}}},"note":{"S":"late"}"#,
        r#""paid":{"BOOL":true}"#,
    ];
    orders.run("two", &second, &["--append"]).expect(0);
    assert_eq!(
        orders.schema(),
        [
            "1 PK string",
            "2 by struct",
            "3 lines list",
            "4 note string",
            "5 ship string",
            "6 total decimal(3, 1)",
            "10 paid boolean",
            "11 ship__m struct",
        ]
    );
    let found = run_program("read_iceberg.py", &["--show"], &[&orders.0.path().join("lake")]);
    assert_eq!(found[0], "Order: 8 columns, 4 rows");
}

#[test]
fn values_that_a_column_cannot_hold_are_an_error_that_shows_both_types() {
    let orders = Orders::new();
    orders.run("one", &[r#""total":{"N":"1"}"#], &[]).expect(0);
    let before = visible(&orders.0.path().join("lake"));
    let ran = orders.run("two", &[r#""total":{"N":"0.25"}"#], &["--append"]).expect(2);
    for told in ["dataset: Order", "`total` takes int64 in the table; the items have N there, which would be decimal(2, 2)", "--schema"] {
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    assert_eq!(visible(&orders.0.path().join("lake")), before);
    // What replaces the table may have any type, under a new id.
    orders.run("three", &[r#""total":{"N":"0.25"}"#], &["--overwrite", "--restart"]).expect(0);
    assert_eq!(orders.schema(), ["1 PK string", "3 total decimal(2, 2)"]);
    assert_eq!(read(&[orders.pair(&["three"])])[0], "Order: 2 columns, 1 rows");
}

#[test]
fn changes_and_items_are_never_added_to_one_table() {
    let folder = Folder::new();
    let lake = folder.sink("iceberg", "lake");
    folder.run(PIPELINE, &[EXPORT], std::slice::from_ref(&lake), &[]).expect(0);
    let before = visible(&folder.path().join("lake"));
    let morning = export_of("docs-incremental", "morning");
    let ran = folder.run(PIPELINE, &[&morning], std::slice::from_ref(&lake), &["--append", "--restart"]).expect(2);
    for told in ["the export holds changes, and the table that they are to be added to holds items", "dataset: ", "name another folder"] {
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    assert_eq!(visible(&folder.path().join("lake")), before);
    // They have tables of their own, to which those of the next window are added.
    let history = folder.sink("iceberg", "history");
    for more in [&["--restart"][..], &["--append", "--restart"]] {
        folder.run(PIPELINE, &[&morning], std::slice::from_ref(&history), more).expect(0);
    }
    let before = visible(&folder.path().join("history"));
    let ran = folder.run(PIPELINE, &[EXPORT], &[history], &["--append", "--restart"]).expect(2);
    assert!(ran.stderr.contains("the export holds items, and the table that they are to be added to holds changes"), "{}", ran.stderr);
    assert_eq!(visible(&folder.path().join("history")), before);
}

#[test]
fn a_schema_that_was_kept_gives_the_columns_of_the_first_run_to_later_ones() {
    let orders = Orders::new();
    let schema = orders.0.join("schema.json");
    let sink = [orders.0.sink("iceberg", "lake")];
    let from = orders.0.join("orders.json");
    fs::write(&from, "{\"Item\":{\"PK\":{\"S\":\"O#1\"},\"total\":{\"N\":\"1.5\"}}}\n").expect("the orders can be written");
    let run = |more: &[&str]| orders.0.run(&orders.0.join("pipeline.toml"), &[&from], &sink, more);
    run(&["--schema-out", &schema]).expect(0);
    fs::write(&from, "{\"Item\":{\"PK\":{\"S\":\"O#2\"},\"total\":{\"N\":\"2\"}}}\n").expect("the orders can be written");
    run(&["--schema", &schema, "--append"]).expect(0);
    fs::write(&from, "{\"Item\":{\"PK\":{\"S\":\"O#3\"},\"late\":{\"N\":\"2\"}}}\n").expect("the orders can be written");
    let drifted = run(&["--schema", &schema, "--append"]).expect(1);
    for told in ["an item does not fit the schema", "attribute: late", "found: N", "expected: no such attribute", "line: 1", "orders.json"]
    {
        assert!(drifted.stderr.contains(told), "{}", drifted.stderr);
    }
    let found = run_program("read_iceberg.py", &["--show"], &[&orders.0.path().join("lake")]);
    assert_eq!(found[0], "Order: 2 columns, 2 rows");
}

#[test]
fn a_commit_that_is_cut_short_is_finished_by_the_same_command_and_done_once() {
    let folder = Folder::new();
    let lake = folder.path().join("lake");
    let sinks = [folder.sink("iceberg", "lake"), folder.sink("parquet", "parquet")];
    // The second table's metadata cannot get its name.
    let obstacle = lake.join("Document/metadata/v1.metadata.json");
    fs::create_dir_all(&obstacle).expect("a folder can be made");
    folder.run(PIPELINE, &[EXPORT], &sinks, &[]).expect(1);
    assert_eq!(visible(&lake), ["Workspace/metadata/v1.metadata.json", "Workspace/metadata/version-hint.text"]);
    fs::remove_dir(&obstacle).expect("the folder is empty");
    folder.run(PIPELINE, &[EXPORT], &sinks, &[]).expect(0);
    let found = read(&[format!("{}={}", folder.join("lake"), folder.join("parquet"))]);
    assert_eq!(found.len(), 6, "each table has one snapshot: {found:#?}");

    // Somebody else's commit in between is not lost.
    let append = ["--append"];
    let obstacle = lake.join("Document/metadata/v2.metadata.json");
    fs::create_dir_all(&obstacle).expect("a folder can be made");
    let lake_alone = &sinks[..1];
    folder.run(PIPELINE, &[EXPORT], lake_alone, &append).expect(1);
    fs::remove_dir(&obstacle).expect("the folder is empty");
    fs::copy(lake.join("Document/metadata/v1.metadata.json"), &obstacle).expect("a file can be copied");
    let ran = folder.run(PIPELINE, &[EXPORT], lake_alone, &append).expect(1);
    assert!(ran.stderr.contains("somebody else has changed the table"), "{}", ran.stderr);
    folder.run(PIPELINE, &[EXPORT], lake_alone, &["--append", "--restart"]).expect(0);
}

#[test]
fn a_run_that_is_killed_shows_nothing_and_goes_on() {
    let folder = Folder::new();
    let lake = folder.path().join("lake");
    let work = folder.path().join("work");
    let line = |at: u32| {
        format!(
            "{{\"Item\":{{\"PK\":{{\"S\":\"WS#{at}\"}},\"SK\":{{\"S\":\"META\"}},\"EntityType\":{{\"S\":\"Workspace\"}},\"seats\":{{\"N\":\"{at}\"}}}}}}\n"
        )
    };
    let mut from = Vec::new();
    for file in 0..6 {
        let path = folder.join(&format!("data-{file}.json"));
        fs::write(&path, (file * 2000..(file + 1) * 2000).map(line).collect::<String>()).expect("the export can be written");
        from.extend(["--from".to_owned(), path]);
    }
    let (sink, work_text) = (folder.sink("iceberg", "lake"), folder.join("work"));
    let mut args = vec!["run", PIPELINE, "--unit-size", "1", "--work", &work_text, "--to", &sink, "--quiet"];
    args.extend(from.iter().map(String::as_str));
    let mut child = command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let until = Instant::now() + Duration::from_mins(2);
    while !work.join("units/unit-00001.json").exists() {
        assert!(Instant::now() < until, "the run did not come so far in two minutes");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("a child can be killed");
    child.wait().expect("a child ends");
    let killed_in_time = !work.join("report.json").exists();
    assert!(killed_in_time, "the run ended before it could be killed");
    assert_eq!(visible(&lake), [""; 0]);

    let parquet = folder.sink("parquet", "parquet");
    let other = folder.join("other");
    let mut whole = vec!["run", PIPELINE, "--work", &other, "--to", &parquet, "--quiet"];
    whole.extend(from.iter().map(String::as_str));
    dynamorph(&whole).expect(0);
    dynamorph(&args).expect(0);
    let found = read(&[format!("{}={}", folder.join("lake"), folder.join("parquet"))]);
    assert!(found[0].ends_with("12000 rows"), "{found:#?}");
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_workers_or_on_the_clock() {
    let folder = Folder::new();
    let sink = [folder.sink("iceberg", "lake")];
    let lake = folder.path().join("lake");
    let mut found = Vec::new();
    for jobs in ["1", "3"] {
        folder.run(PIPELINE, &[EXPORT], &sink, &["--jobs", jobs]).expect(0);
        found.push(files(&lake));
        fs::remove_dir_all(&lake).expect("the lake can be removed");
    }
    assert!(found[0] == found[1]);
}

#[test]
fn tables_that_are_kept_elsewhere_or_folders_of_others_are_refused() {
    let folder = Folder::new();
    let sink = [folder.sink("iceberg", "lake")];
    folder.run(PIPELINE, &[EXPORT], &sink, &[]).expect(0);
    let refused = |told: &str| {
        let ran = folder.run(PIPELINE, &[EXPORT], &sink, &["--append"]).expect(2);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    };
    let of_catalog = folder.path().join("lake/Document/metadata/00001-7a4b.metadata.json");
    fs::write(&of_catalog, "{}").expect("a file can be written");
    refused("the table is kept by a catalog");
    fs::remove_file(&of_catalog).expect("the file is there");
    let metadata = folder.path().join("lake/Document/metadata/v1.metadata.json");
    let text = fs::read_to_string(&metadata).expect("the table has metadata");
    fs::write(&metadata, text.replace("\"format-version\": 2", "\"format-version\": 3")).expect("it can be written");
    refused("another version of the format");
    fs::write(&metadata, text.replace("/lake/Document\"", "/elsewhere/Document\"")).expect("it can be written");
    refused("the table says that it lies elsewhere");
    fs::write(&metadata, text).expect("it can be written");
    folder.run(PIPELINE, &[EXPORT], &sink, &["--append"]).expect(0);

    let other = [folder.sink("iceberg", "other")];
    fs::create_dir_all(folder.path().join("other/Document")).expect("a folder can be made");
    fs::write(folder.path().join("other/Document/notes.txt"), "mine").expect("a file can be written");
    let ran = folder.run(PIPELINE, &[EXPORT], &other, &["--overwrite"]).expect(2);
    assert!(ran.stderr.contains("the table's folder holds something else"), "{}", ran.stderr);
    let parquet = [folder.sink("parquet", "parquet")];
    folder.run(PIPELINE, &[EXPORT], &parquet, &[]).expect(0);
    let ran = folder.run(PIPELINE, &[EXPORT], &[folder.sink("iceberg", "parquet")], &["--append"]).expect(2);
    assert!(ran.stderr.contains("the folder holds what another sink wrote"), "{}", ran.stderr);
    let ran = folder.run(PIPELINE, &[EXPORT], &parquet, &["--append"]).expect(2);
    assert!(ran.stderr.contains("only tables of iceberg: are appended to"), "{}", ran.stderr);
}

#[test]
fn tables_in_s3_are_created_and_appended_to() {
    let server = ministack();
    let bucket = server.bucket();
    let folder = Folder::new();
    let (lake, parquet, work) = (format!("s3://{}/lake", bucket.name()), folder.join("parquet"), folder.join("work"));
    let url = server.url();
    let run = |sinks: &[String], more: &[&str]| {
        let mut command = command(&["run", PIPELINE, "--from", EXPORT, "--work", &work, "--quiet", "--s3-endpoint-url", &url]);
        command.args(sinks.iter().flat_map(|sink| ["--to", sink.as_str()])).args(more);
        command.env_clear().envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]);
        command.envs([
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ]);
        Ran::of(command.output().expect("the program starts"))
    };
    let sink = format!("iceberg:{lake}");
    run(&[sink.clone(), format!("parquet:{parquet}")], &[]).expect(0);
    let refused = run(std::slice::from_ref(&sink), &[]).expect(2);
    assert!(refused.stderr.contains("the table is there already"), "{}", refused.stderr);
    run(std::slice::from_ref(&sink), &["--append"]).expect(0);
    let left = bucket.list("lake/.dynamorph-unfinished/", None).expect("the bucket can be listed").objects;
    assert!(left.is_empty(), "{left:?}");

    let endpoint = format!("s3.endpoint={url}");
    let options = ["s3.access-key-id=test", "s3.secret-access-key=test", "s3.region=us-east-1", &endpoint];
    let options: Vec<_> = options.iter().flat_map(|option| ["--option", option]).collect();
    let found = run_program("read_iceberg.py", &options, &[Path::new(&format!("{lake}={parquet}+{parquet}"))]);
    assert_eq!(found[0], "Comment: 9 columns, 148 rows");
}

#[test]
fn empty_lists_and_maps_are_appended_to_columns_that_are_typed_already() {
    let orders = Orders::new();
    let typed = r#""tags":{"L":[{"S":"a"}]},"by":{"M":{"name":{"S":"ada"},"seen":{"L":[{"M":{"at":{"N":"1"}}}]}}}"#;
    orders.run("one", &[typed], &[]).expect(0);
    let schema = orders.schema();
    let empty = [
        r#""tags":{"L":[]},"by":{"M":{}}"#,
        r#""tags":{"L":[{"NULL":true},{"NULL":true}]},"by":{"M":{"seen":{"L":[]}}}"#,
        r#""by":{"M":{"name":{"S":"eve"},"seen":{"L":[{"M":{}},{"NULL":true}]}}}"#,
    ];
    orders.run("two", &empty, &["--append"]).expect(0);
    assert_eq!(orders.schema(), schema);
    let found = run_program("read_iceberg.py", &["--show"], &[&orders.0.path().join("lake")]);
    assert_eq!(found[0], "Order: 3 columns, 4 rows");
}

#[test]
fn items_that_drift_from_a_table_are_told_by_attribute_type_and_what_the_table_takes() {
    let orders = Orders::new();
    let map = |kind: &str| (0..70).map(|at| format!(r#""k{at}":{{"{kind}":"1"}}"#)).collect::<Vec<_>>().join(",");
    let of = |read: &str, tag: &str, many: &str| {
        format!(r#""acl":{{"M":{{"read":{{"L":[{read}]}},"n":{{"N":"1"}}}}}},"Tag":{{"N":"{tag}"}},"many":{{"M":{{{many}}}}}"#)
    };
    orders.run("one", &[&of(r#"{"N":"1"}"#, "1", &map("N"))], &[]).expect(0);
    let drifted = of(r#"{"S":"x"},{"N":"2"}"#, "0.5", &map("S")) + r#","tag":{"N":"7"}"#;
    let ran = orders.run("two", &[&drifted], &["--append"]).expect(2);
    for told in [
        "dataset: Order",
        "`acl.read[]` takes int64 in the table; the items have S and N there, which would be json(any)",
        "`Tag` takes int64 in the table; the items have N there, which would be decimal(1, 1)",
        "`many.*` takes int64 in the table; the items have S there, which would be text",
        "hint: ",
    ] {
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("`tag`"), "{}", ran.stderr);
}

#[test]
fn an_attribute_that_does_not_fit_is_told_by_its_own_column_where_another_differs_in_case_alone() {
    let orders = Orders::new();
    let (lake, from, work) = (orders.0.sink("iceberg", "lake"), orders.0.join("orders.json"), orders.0.join("work"));
    let pipeline = orders.0.join("pipeline.toml");
    let run = |attributes: &str, more: &[&str]| {
        fs::write(&from, format!("{{\"Item\":{{\"PK\":{{\"S\":\"O#1\"}},{attributes}}}}}\n")).expect("the orders can be written");
        let args = ["run", &pipeline, "--from", &from, "--to", &lake, "--work", &work, "--dialect", "athena", "--quiet", "--restart"];
        dynamorph(&[&args, more].concat())
    };
    run(r#""Tag":{"N":"1"}"#, &[]).expect(0);
    // By itself `tag` has a claim to the name that the table has for `Tag`.
    let ran = run(r#""Tag":{"N":"1.5"},"tag":{"N":"1"}"#, &["--append"]).expect(2);
    assert!(ran.stderr.contains("`Tag` takes int64 in the table; the items have N there"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("`tag`"), "{}", ran.stderr);
    run(r#""Tag":{"N":"2"},"tag":{"N":"1"}"#, &["--append"]).expect(0);
    assert_eq!(orders.schema(), ["1 pk string", "2 tag long", "3 tag__n long"]);
}
