//! Nothing is lost on the way to Parquet: Python finds every value of every item of exports that are hard to write.
//!
//! The exports are made by `tests/python/make_hard_export.py`, which says what is in them. Each of their data files is a unit of its own, and they differ
//! in attributes and types. `ODD_ITEMS` in the environment is the number of odd items; the full proof has 100,000.

use std::process::Command;

use crate::program::{Folder, dynamorph};
use crate::python::{programs, python, run_program};

/// A run over an export of this kind, with the folder of the export.
fn carried(kind: &str, items: Option<&str>, more: &[&str]) -> (Folder, String) {
    let folder = Folder::new();
    let mut options = vec![kind];
    options.extend(items.iter().flat_map(|items| ["--items", *items]));
    let export = run_program("make_hard_export.py", &options, &[&folder.path().join("export")]).remove(0);
    folder
        .run("tests/pipelines/hard.toml", &[&export], &[folder.sink("parquet", "lake")], &[&["--unit-size", "1KiB"], more].concat())
        .expect(0);
    (folder, export)
}

/// How many items Python finds again, each with every value.
#[track_caller]
fn found(kind: &str, items: Option<&str>, more: &[&str]) -> usize {
    let (folder, export) = carried(kind, items, more);
    let counted = run_program("find_every_value.py", &[], &[export.as_ref(), &folder.path().join("lake")]);
    counted[0].parse().expect("the program prints a number")
}

#[test]
fn every_value_of_an_entity_with_2000_attributes_is_found_again() {
    assert_eq!(found("wide", None, &[]), 2000);
}

#[test]
fn every_value_of_400_uneven_columns_with_large_texts_is_found_again() {
    assert_eq!(found("uneven", None, &[]), 1200);
}

#[test]
fn every_value_is_found_again_when_the_last_item_of_the_last_file_changes_types() {
    let (folder, export) = carried("late", None, &[]);
    let lake = folder.join("lake");
    assert_eq!(run_program("find_every_value.py", &[], &[export.as_ref(), lake.as_ref()]), ["6000"]);
    let verified = dynamorph(&[
        "verify",
        "tests/pipelines/hard.toml",
        "--from",
        &export,
        "--against",
        &folder.sink("parquet", "lake"),
        "--work",
        &folder.join("verify"),
        "--quiet",
    ]);
    assert!(verified.expect(0).stdout.contains("6,000"));
}

#[test]
fn every_value_is_found_again_when_the_first_item_of_the_first_file_has_other_types() {
    assert_eq!(found("early", None, &["--jobs", "1"]), 6000);
}

#[test]
fn every_value_of_odd_items_is_found_again() {
    let items = std::env::var("ODD_ITEMS").unwrap_or_else(|_| "8000".to_owned());
    assert_eq!(found("odd", Some(&items), &[]).to_string(), items);
}

#[test]
fn the_proof_notices_a_single_item_that_differs() {
    let (late, _) = carried("late", Some("200"), &[]);
    let (_early, export) = carried("late", Some("201"), &[]);
    let mut command = Command::new(python());
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(programs()).args(["find_every_value.py", &export, &late.join("lake")]);
    let done = command.output().expect("Python runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains("('P#5', 'S#000000199') differs") && said.contains("'bool to list'"), "{said}");
}
