//! Incremental exports: what `inspect` says of a window, and which rows the changes of several windows become.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Folder, Ran, dynamorph, files, golden, root};
use crate::python::run_program;
use crate::samples::export_of;

const PIPELINE: &str = "pipelines/docs-split-comments.toml";
const FOLDER: &str = "sample_exports/docs-incremental";

fn window(part: &str) -> String {
    export_of("docs-incremental", part)
}

fn seen(folder: &Folder, ran: &Ran) -> String {
    folder.stable(&format!("exit code {}\n--- stdout\n{}--- stderr\n{}", ran.code, ran.stdout, ran.stderr))
}

#[test]
fn inspect_says_what_changed_in_a_window() {
    for part in ["morning", "afternoon", "workspaces"] {
        let ran = dynamorph(&["inspect", &window(part), "--quiet"]).expect(0);
        golden(&format!("incremental/inspect-{part}.txt"), &ran.stdout);
    }
    let ran = dynamorph(&["inspect", &window("afternoon"), &window("morning"), "--output", "json"]).expect(0);
    let found: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(found["changes"], json!({"put": 9, "update": 6, "delete": 7}));
    let windows: Vec<_> = ["from_time", "to_time", "view", "items"].map(|name| [0, 1].map(|at| found["exports"][at][name].clone())).into();
    let expected = [
        [json!("2026-04-01T00:00:00.000Z"), json!("2026-04-01T12:00:00.000Z")],
        [json!("2026-04-01T12:00:00.000Z"), json!("2026-04-02T00:00:00.000Z")],
        [json!("NEW_AND_OLD_IMAGES"), json!("NEW_IMAGE")],
        [json!(14), json!(8)],
    ];
    assert_eq!(windows, expected);
}

/// The rows of the datasets, and those that Python expects of a table.
#[track_caller]
fn same(folder: &Folder, table: &str, datasets: &[&str], windows: &[&str], rows: usize) {
    let mut found = Vec::new();
    for dataset in datasets {
        let dataset = folder.path().join("lake").join(dataset);
        found.extend(run_program("read_parquet.py", &["--without-null"], &[&dataset]));
    }
    found.sort_unstable();
    let windows: Vec<_> = windows.iter().map(|window| root().join(window)).collect();
    let windows: Vec<_> = windows.iter().map(std::path::PathBuf::as_path).collect();
    let expected = run_program("transform_docs_changes.py", &["--without-null", table], &windows);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "{table}");
    }
    assert_eq!((found.len(), expected.len()), (rows, rows), "{table}");
}

#[test]
fn both_windows_together_give_the_rows_that_python_expects() {
    let (morning, afternoon) = (window("morning"), window("afternoon"));
    let folder = Folder::new();
    let ran = folder.run(PIPELINE, &[&morning, &afternoon], &[folder.sink("parquet", "lake")], &[]).expect(3);
    golden("incremental/both.txt", &seen(&folder, &ran));
    same(&folder, "docs", &["Workspace", "Document"], &[&morning, &afternoon], 13);
    same(&folder, "comments", &["Comment"], &[&morning, &afternoon], 8);
    // Of the one deleted comment whose new key nobody can know the reject says why.
    let rejects = fs::read_to_string(folder.path().join("work/rejects/unit-00001.jsonl")).expect("there is a rejects file");
    golden("incremental/both.rejects.jsonl", &rejects);
    let report: Value =
        serde_json::from_slice(&fs::read(folder.path().join("work/report.json")).expect("there is a report")).expect("JSON");
    assert_eq!(report["changes"], json!({"put": 9, "update": 6, "delete": 7}));

    // The windows are read in the order of their times, in whatever order they are named.
    let again = Folder::new();
    again.run(PIPELINE, &[&afternoon, &morning], &[again.sink("parquet", "lake")], &["--jobs", "1"]).expect(3);
    assert!(files(&again.path().join("lake")) == files(&folder.path().join("lake")), "another order gave other files");
}

#[test]
fn one_window_alone_gives_the_rows_that_python_expects() {
    let morning = window("morning");
    let folder = Folder::new();
    folder.run(PIPELINE, &[&morning], &[folder.sink("parquet", "lake")], &[]).expect(0);
    same(&folder, "docs", &["Workspace", "Document"], &[&morning], 8);
    same(&folder, "comments", &["Comment"], &[&morning], 6);
}

#[test]
fn a_few_rows_are_as_somebody_wrote_them_down() {
    let folder = Folder::new();
    let (morning, afternoon) = (window("morning"), window("afternoon"));
    folder.run(PIPELINE, &[&morning, &afternoon], &[folder.sink("parquet", "lake")], &[]).expect(3);
    let rows = |dataset: &str| -> Vec<Value> {
        let rows = run_program("read_parquet.py", &[], &[&folder.path().join("lake").join(dataset)]);
        rows.iter().map(|row| serde_json::from_str(row).expect("a row is JSON")).collect()
    };
    let documents = rows("Document");
    let of = |workspace: &str, document: &str| -> Vec<&Value> {
        let mut found: Vec<_> = documents
            .iter()
            .filter(|row| row["EntityRef"]["S"] == format!("WS#{workspace}") && row["Detail"]["S"] == format!("DOC#{document:0>10}"))
            .collect();
        found.sort_by_key(|row| row["_written_at"]["N"].as_str());
        found
    };
    let deleted = |workspace: &str, document: &str, at: &str| {
        json!({
            "EntityRef": {"S": format!("WS#{workspace}")},
            "Detail": {"S": format!("DOC#{document:0>10}")},
            "EntityType": {"S": "Document"},
            "_op": {"S": "delete"},
            "_written_at": {"N": at},
        })
    };
    // It went in the morning and came again in the afternoon; with NEW_IMAGE nobody knows whether it was there.
    let came_and_went = of("globex", "32");
    assert_eq!(*came_and_went[0], deleted("globex", "32", "1775023260000003"));
    assert_eq!([&came_and_went[1]["_op"], &came_and_went[1]["title"]], [&json!({"S": "put"}), &json!({"S": "設計メモ"})]);
    // A delete of which only the key is known.
    assert_eq!(of("acme", "1047"), [&deleted("acme", "1047", "1775055600000042")]);
    // Two writes of one window are one row, and the attribute that went is not there.
    let changed = of("acme", "7");
    assert_eq!(changed.iter().map(|row| &row["version"]["N"]).collect::<Vec<_>>(), ["27", "28"]);
    assert_eq!(changed.iter().map(|row| &row["_op"]["S"]).collect::<Vec<_>>(), ["update", "put"]);
    assert!(changed.iter().all(|row| row.get("summary").is_none()), "{changed:?}");
    // To move a document is to delete it and to write it anew.
    assert_eq!(of("initech", "8"), [&deleted("initech", "8", "1775029500100000")]);
    assert_eq!(of("globex", "8").iter().map(|row| &row["_op"]["S"]).collect::<Vec<_>>(), ["put"]);
    // `likes` is a number in some rows and a text in one.
    let comments = rows("Comment");
    let likes: Vec<_> = comments.iter().filter_map(|row| row["likes"]["S"].as_str()).collect();
    assert_eq!(likes, ["45"]);
}

#[test]
fn changes_go_into_no_table() {
    for sink in ["import", "batch"] {
        let folder = Folder::new();
        let sinks = [folder.sink("parquet", "lake"), folder.sink(sink, "out")];
        let ran = folder.run(PIPELINE, &[&window("morning")], &sinks, &[]).expect(2);
        golden(&format!("incremental/to-{sink}.txt"), &seen(&folder, &ran));
        let left = |path: &Path| path.exists() && !files(path).is_empty();
        assert!(!left(&folder.path().join("out")) && !left(&folder.path().join("lake")));
    }
}

#[test]
fn windows_of_two_tables_in_one_folder_are_not_mixed() {
    let folder = Folder::new();
    let lake = [folder.sink("parquet", "lake")];
    let ran = folder.run(PIPELINE, &[&window("morning"), &window("workspaces")], &lake, &[]).expect(1);
    golden("incremental/two-tables.txt", &seen(&folder, &ran));
    let ran = folder.run(PIPELINE, &[FOLDER], &lake, &[]).expect(1);
    golden("incremental/several-exports.txt", &seen(&folder, &ran));
    let ran = folder.run(PIPELINE, &[FOLDER], &lake, &["--export", "latest"]).expect(1);
    golden("incremental/latest-of-two-tables.txt", &seen(&folder, &ran));
    let ran = folder.run(PIPELINE, &[&format!("{FOLDER}/AWSDynamoDB/data")], &lake, &[]).expect(1);
    golden("incremental/shared-data.txt", &seen(&folder, &ran));
    // By its id one is chosen.
    let id = window("morning").rsplit_once('/').expect("an export lies in a folder").1.to_owned();
    let ran = folder.run(PIPELINE, &[FOLDER], &lake, &["--export", &id]).expect(0);
    assert!(ran.stdout.contains("ledger: manifest 14 = read 14 = written 14"), "{}", ran.stdout);
}
