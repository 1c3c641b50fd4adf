//! `schema ddl`: `DuckDB` runs its statements over what was written, the others' are golden files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::pipelines::{SHOWN, carry};
use crate::program::{Folder, Ran, dynamorph, golden};
use crate::python::{run_program, write_every_form};

const DIALECTS: [&str; 7] = ["duckdb", "spark", "athena", "redshift", "snowflake", "bigquery", "clickhouse"];

fn ddl(lake: &str, dialect: &str, more: &[&str]) -> Ran {
    let mut args = vec!["schema", "ddl", lake, "--dialect", dialect];
    args.extend(more);
    dynamorph(&args)
}

/// What `DuckDB` counts in each view that the statements for the folder make.
fn counted(folder: &Folder, lake: &str) -> BTreeMap<String, u64> {
    let sql = folder.path().join("views.sql");
    fs::write(&sql, ddl(lake, "duckdb", &[]).expect(0).stdout).expect("the statements can be written");
    let lines = run_program("run_ddl.py", &[], &[&sql]);
    let count = |line: &String| {
        let (name, rows) = line.rsplit_once(' ').expect("a line has a name and a count");
        (name.to_owned(), rows.parse().expect("a count is a number"))
    };
    lines.iter().map(count).collect()
}

/// The items of each dataset by the manifest.
fn listed(lake: &Path) -> BTreeMap<String, u64> {
    let manifest = fs::read(lake.join("_dynamorph.json")).expect("the manifest is there");
    let manifest: Value = serde_json::from_slice(&manifest).expect("the manifest is JSON");
    let datasets = manifest["datasets"].as_array().expect("it has datasets");
    datasets.iter().map(|dataset| (dataset["name"].as_str().unwrap().to_owned(), dataset["items"].as_u64().unwrap())).collect()
}

#[test]
fn duckdb_runs_the_statements_of_every_sample_and_counts_its_items() {
    for shown in SHOWN {
        let (folder, _) = carry(shown.name);
        let found = counted(&folder, &folder.join("parquet"));
        assert_eq!(found, listed(&folder.path().join("parquet")), "{}", shown.name);
        assert!(!found.is_empty() && found.values().all(|items| *items > 0), "{}: {found:?}", shown.name);
    }
}

#[test]
fn duckdb_runs_the_statements_of_changes() {
    let folder = Folder::new();
    let windows = ["morning", "afternoon"].map(|part| crate::samples::export_of("docs-incremental", part));
    let from = windows.each_ref().map(String::as_str);
    folder.run("pipelines/docs-split-comments.toml", &from, &[folder.sink("parquet", "lake")], &[]).expect(3);
    assert_eq!(counted(&folder, &folder.join("lake")), listed(&folder.path().join("lake")));
    assert!(
        ddl(&folder.join("lake"), "snowflake", &["--location", "@files"])
            .expect(0)
            .stdout
            .starts_with("ALTER SESSION SET TIMEZONE = 'UTC';")
    );
}

#[test]
fn duckdb_runs_the_statements_of_every_form_that_a_value_can_have() {
    let folder = Folder::new();
    // A path is a pattern to DuckDB, and a text in quotes.
    let lake = folder.path().join("it's [a] lake*?x=1");
    let items = write_every_form(folder.path(), &lake);
    let lake = lake.to_str().expect("the path is UTF-8");
    assert_eq!(counted(&folder, lake), BTreeMap::from([("Everything".to_owned(), items as u64)]));
    let ran = ddl(lake, "duckdb", &[]).expect(0);
    assert!(ran.stderr.contains("note: `Everything`: `a` is column `a_2`\n"), "{}", ran.stderr);
    assert_eq!(ddl(lake, "duckdb", &["--quiet"]).expect(0).stderr, "");
    // Two names that are one to BigQuery.
    let ran = ddl(lake, "bigquery", &["--location", "gs://lake"]).expect(3);
    assert!(ran.stderr.contains("`a` and `A` are one name to it"), "{}", ran.stderr);
}

#[test]
fn every_dialect_has_its_statements() {
    let (folder, _) = carry("docs-split-comments");
    let lake = folder.join("parquet");
    for dialect in DIALECTS {
        let location = if dialect == "bigquery" { "gs://lake/docs/" } else { "s3://lake/docs/" };
        let ran = ddl(&lake, dialect, &["--location", location]).expect(0);
        golden(&format!("ddl/{dialect}.txt"), &format!("{}--- stderr\n{}", ran.stdout, ran.stderr));
    }
    let json: Value = serde_json::from_str(&ddl(&lake, "spark", &["--output", "json"]).expect(0).stdout).expect("it is JSON");
    assert_eq!(json["refused"], json!(0));
    assert!(json["sql"].as_str().expect("a text").contains(&format!("LOCATION '{lake}/Comment'")), "{json}");
}

#[test]
fn the_statements_for_what_a_run_wrote_for_the_dialect_rename_nothing() {
    let folder = Folder::new();
    let odd = r#""PK":{"S":"O#1"},"createdAt":{"S":"a"},"createdat":{"S":"b"},"GSI1-PK":{"S":"c"},"Status#Date":{"S":"d"},"2nd":{"S":"e"},"a b":{"M":{"x-y":{"S":"f"},"X-Y":{"N":"1"}}}"#;
    let (pipeline, from) = (folder.join("pipeline.toml"), folder.join("items.json"));
    let text = "version = 1\n[source]\nkey = { partition = \"PK\" }\n[entity.Order]\nmatch = { PK = \"O#{id}\" }\n";
    fs::write(&pipeline, text).expect("the pipeline can be written");
    fs::write(&from, format!("{{\"Item\":{{{odd}}}}}\n")).expect("the items can be written");
    for dialect in DIALECTS {
        let lake = folder.join(dialect);
        folder.run(&pipeline, &[&from], &[format!("parquet:{lake}")], &["--dialect", dialect]).expect(0);
        let location = if dialect == "bigquery" { "gs://lake" } else { "s3://lake" };
        let ran = ddl(&lake, dialect, &["--location", location]).expect(0);
        assert!(ran.stderr.is_empty(), "{dialect}: {}", ran.stderr);
        let manifest = fs::read(Path::new(&lake).join("_dynamorph.json")).expect("the manifest is there");
        let manifest: Value = serde_json::from_slice(&manifest).expect("the manifest is JSON");
        for column in manifest["datasets"][0]["columns"].as_array().expect("it has columns") {
            let name = column["name"].as_str().expect("a column has a name");
            assert!(
                ran.stdout.contains(&format!("{name}\" "))
                    || ran.stdout.contains(&format!("{name}` "))
                    || ran.stdout.contains(&format!("\"{name}\",")),
                "{dialect}: {name}\n{}",
                ran.stdout
            );
        }
    }
    assert_eq!(counted(&folder, &folder.join("duckdb")), BTreeMap::from([("Order".to_owned(), 1)]));
}

#[test]
fn a_folder_without_a_manifest_or_in_the_wrong_place_is_refused() {
    let (folder, _) = carry("docs-split-comments");
    let ran = ddl(&folder.join("import"), "duckdb", &[]).expect(2);
    assert!(ran.stderr.contains("no manifest of Parquet datasets") && ran.stderr.contains("_dynamorph.json"), "{}", ran.stderr);
    let ran = ddl(&folder.join("parquet"), "athena", &[]).expect(2);
    assert!(ran.stderr.contains("Athena reads no files from there") && ran.stderr.contains("--location s3://"), "{}", ran.stderr);
}
