//! Five engines read what was written, as files and by the statements of `schema ddl`: `DuckDB`, pyarrow, Polars, Spark and `ClickHouse`.
//!
//! Every type of every column and every value is compared with what Python computes from the export by itself.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::pipelines::carry;
use crate::program::{Folder, dynamorph, root};
use crate::python::{HEALTHY, run_program, write_every_form, write_parquet};
use crate::samples::{export_of, sample};

/// The dialects of `schema ddl`, by the engine that executes them.
const EXECUTED: [(&str, &str); 3] = [("duckdb", "duckdb"), ("spark", "spark"), ("clickhouse", "clickhouse")];

/// Datasets in a folder, and the items that must be in them.
struct Case {
    name: String,
    lake: PathBuf,
    groups: Vec<Value>,
}

impl Case {
    fn new(name: &str, lake: &Path) -> Self {
        Self { name: name.to_owned(), lake: lake.to_owned(), groups: Vec::new() }
    }

    /// These datasets hold together what the program prints for these exports.
    fn group(self, datasets: &[&str], program: &str, options: &[&str], exports: &[PathBuf]) -> Self {
        self.group_where(datasets, program, options, exports, |_| true)
    }

    /// The same for the lines that are `wanted`.
    fn group_where(
        mut self,
        datasets: &[&str],
        program: &str,
        options: &[&str],
        exports: &[PathBuf],
        wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let exports: Vec<&Path> = exports.iter().map(PathBuf::as_path).collect();
        let lines = run_program(program, &[&["--without-null"], options].concat(), &exports);
        let lines: Vec<Value> = lines.into_iter().filter(|line| wanted(line)).map(Value::from).collect();
        assert!(!lines.is_empty(), "{}: {datasets:?}", self.name);
        self.groups.push(json!({"datasets": datasets, "lines": lines}));
        self
    }

    /// The case for the program, with the statements that make tables of the datasets.
    fn json(&self) -> Value {
        let lake = self.lake.to_str().expect("the path is UTF-8");
        let sql = |dialect: &str| {
            let ran = dynamorph(&["schema", "ddl", lake, "--dialect", dialect, "--quiet"]);
            ran.expect(0).stdout
        };
        let sql: serde_json::Map<_, _> = EXECUTED.iter().map(|(engine, dialect)| ((*engine).to_owned(), sql(dialect).into())).collect();
        json!({"name": self.name, "lake": lake, "groups": self.groups, "sql": sql})
    }
}

fn exports(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| root().join("sample_exports").join(name)).collect()
}

/// What each pipeline of `pipelines/` makes of its sample; the folders must live as long as they are read.
fn pipelines(folders: &mut Vec<Folder>) -> Vec<Case> {
    let mut case = |name: &str| {
        let (folder, _) = carry(name);
        let case = Case::new(name, &folder.path().join("parquet"));
        folders.push(folder);
        case
    };
    let (docs, sql) = (exports(&["docs"]), exports(&["sql-style/workspaces", "sql-style/projects"]));
    let all = ["Workspace", "Document", "Comment"];
    let split = "transform_docs_split_comments.py";
    let warehouse = case("warehouse");
    vec![
        all.iter().fold(warehouse, |case, entity| case.group(&[entity], "transform_warehouse.py", &[entity], &docs)),
        case("docs-split-comments").group(&["Workspace", "Document"], split, &["docs"], &docs).group(
            &["Comment"],
            split,
            &["comments"],
            &docs,
        ),
        case("docs-backfill-type").group(&all, "transform_docs_backfill_type.py", &[], &docs),
        case("docs-sparse-feed").group(&all, "transform_docs_sparse_feed.py", &[], &docs),
        case("sql-to-one-table").group(&["Workspace", "Project"], "transform_sql_to_one_table.py", &[], &sql),
        case("workspaces-shard-hot").group(&["Workspace", "Project"], "transform_workspaces_shard_hot.py", &[], &exports(&["workspaces"])),
    ]
}

/// The changes of two windows.
fn changes(folder: &Folder) -> Case {
    let windows = ["morning", "afternoon"].map(|part| export_of("docs-incremental", part));
    let from = windows.each_ref().map(String::as_str);
    folder.run("pipelines/docs-split-comments.toml", &from, &[folder.sink("parquet", "lake")], &[]).expect(3);
    let windows = windows.map(|window| root().join(window));
    let program = "transform_docs_changes.py";
    Case::new("changes", &folder.path().join("lake")).group(&["Workspace", "Document"], program, &["docs"], &windows).group(
        &["Comment"],
        program,
        &["comments"],
        &windows,
    )
}

/// Odd items of many files, in as many units; those of the entity that has no empty keys in maps, which not all engines can name.
fn odd(folder: &Folder) -> Case {
    let export = run_program("make_hard_export.py", &["odd", "--items", "600"], &[&folder.path().join("export")]).remove(0);
    let more = ["--only", "Typed", "--unit-size", "1KiB"];
    folder.run("tests/pipelines/hard.toml", &[&export], &[folder.sink("parquet", "lake")], &more).expect(0);
    let typed = |line: &str| line.contains(r#""EntityType":{"S":"Typed"}"#);
    Case::new("odd", &folder.path().join("lake")).group_where(&["Typed"], "read_export.py", &[], &[export.into()], typed)
}

/// Items in folders that are named after their values, sorted by a column.
fn parted(folder: &Folder) -> Case {
    let (pipeline, items) = (folder.join("pipeline.toml"), folder.join("items.json"));
    let text = "version = 1\n[source]\nkey = { partition = \"PK\" }\n[entity.Order]\nmatch = { PK = \"O#{id}\" }\n\
                [entity.Order.parquet]\npartition = [\"state\", \"paid\"]\nsort = [\"total\"]\n";
    let states = [r#""S":"new""#, r#""S":"a/b=c: 50%""#, r#""NULL":true"#, r#""N":"1.50""#, r#""S":"12:30""#];
    let item = |n: usize| {
        let (state, paid) = (states[n % states.len()], n.is_multiple_of(3));
        format!(r#"{{"Item":{{"PK":{{"S":"O#{n}"}},"state":{{{state}}},"paid":{{"BOOL":{paid}}},"total":{{"N":"{}"}}}}}}"#, n * 7 % 20)
    };
    let lines: Vec<_> = (0..40).map(item).chain([r#"{"Item":{"PK":{"S":"O#x"}}}"#.to_owned()]).collect();
    fs::write(&pipeline, text).expect("the pipeline can be written");
    fs::write(&items, lines.join("\n")).expect("the items can be written");
    folder.run(&pipeline, &[&items], &[folder.sink("parquet", "lake")], &[]).expect(0);
    Case::new("parted", &folder.path().join("lake")).group(&["Order"], "read_items.py", &[], &[items.into()])
}

#[test]
fn five_engines_read_every_type_and_value_of_every_sample() {
    let mut folders = Vec::new();
    let mut cases = pipelines(&mut folders);
    let (folder, odd_folder, parted_folder) = (Folder::new(), Folder::new(), Folder::new());
    cases.extend([changes(&folder), odd(&odd_folder), parted(&parted_folder)]);
    for (at, name) in HEALTHY.iter().enumerate() {
        let lake = folder.path().join(format!("whole-{at}"));
        write_parquet(&sample(name), &lake);
        cases.push(Case::new(name, &lake).group(&["Everything"], "read_export.py", &[], &[sample(name)]));
    }
    let lake = folder.path().join("every form");
    write_every_form(folder.path(), &lake);
    let items = folder.path().join("items.jsonl");
    cases.push(Case::new("every form", &lake).group(&["Everything"], "read_items.py", &[], &[items]));

    let list = folder.path().join("cases.json");
    fs::write(&list, cases.iter().map(Case::json).collect::<Value>().to_string()).expect("the list can be written");
    let found = run_program("compare_engines.py", &[], &[&list]);
    let rows: usize = cases.iter().flat_map(|case| &case.groups).map(|group| group["lines"].as_array().map_or(0, Vec::len)).sum();
    let datasets: usize = cases.iter().flat_map(|case| &case.groups).map(|group| group["datasets"].as_array().map_or(0, Vec::len)).sum();
    let read = |engine: &str| format!("{engine} {datasets} datasets 0 tables {rows} rows");
    let executed = |engine: &str| format!("{engine} {datasets} datasets {datasets} tables {} rows", rows * 2);
    assert_eq!(found, [read("pyarrow"), executed("duckdb"), read("polars"), executed("spark"), executed("clickhouse")]);
}
