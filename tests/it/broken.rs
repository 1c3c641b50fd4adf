//! Every sample under `sample_exports/broken` has one fault; each gets its own message and exit code, and no output.

use crate::program::{Folder, files, golden};

/// Runs the split pipeline over a broken export; gives what the user sees.
fn broken(fault: &str, code: i32) -> (Folder, String) {
    let folder = Folder::new();
    let export = format!("sample_exports/broken/{fault}");
    let sinks = [folder.sink("parquet", "lake"), folder.sink("import", "import"), folder.sink("batch", "batch")];
    let ran = folder.run("pipelines/docs-split-comments.toml", &[&export], &sinks, &[]).expect(code);
    let seen = folder.stable(&format!("exit code {code}\n--- stdout\n{}--- stderr\n{}", ran.stdout, ran.stderr));
    golden(&format!("broken/{fault}.txt"), &seen);
    (folder, seen)
}

/// A fault of a file ends the run: the message says what was expected and what was found, and nothing has a final name.
fn ends_the_run(fault: &str) {
    let (folder, seen) = broken(fault, 1);
    assert!(seen.contains("expected") && seen.contains("found"), "{seen}");
    let left: Vec<_> = files(folder.path()).into_iter().map(|(path, _)| path).filter(|path| !path.ends_with("lock")).collect();
    assert!(left.iter().all(|path| path.starts_with("work")), "{left:?}");
    assert!(!left.iter().any(|path| path.ends_with("report.json")), "{left:?}");
}

/// A fault of an item costs that item only: it is a reject with its reason.
fn costs_one_item(fault: &str, rule: &str) {
    let (folder, _) = broken(fault, 3);
    let rejects = std::fs::read_to_string(folder.path().join("work/rejects/unit-00001.jsonl")).expect("there is a rejects file");
    assert_eq!(rejects.lines().count(), 1, "{rejects}");
    assert!(rejects.contains(rule), "{rejects}");
    golden(&format!("broken/{fault}.rejects.jsonl"), &rejects);
}

#[test]
fn a_wrong_md5_ends_the_run() {
    ends_the_run("bad-md5");
}

#[test]
fn a_missing_file_ends_the_run() {
    ends_the_run("missing-file");
}

#[test]
fn a_cut_gzip_stream_ends_the_run() {
    ends_the_run("cut-gzip");
}

#[test]
fn a_wrong_count_ends_the_run() {
    ends_the_run("wrong-count");
}

#[test]
fn a_bad_line_is_a_reject() {
    costs_one_item("bad-line", "\"stage\":\"decode\"");
}

#[test]
fn an_item_without_a_key_is_a_reject() {
    costs_one_item("no-key", "key");
}

#[test]
fn two_types_in_a_value_are_a_reject() {
    costs_one_item("two-types", "two-types");
}

#[test]
fn a_number_of_39_digits_is_a_reject() {
    costs_one_item("digits-39", "39 significant digits, limit 38");
}

#[test]
fn an_item_of_33_levels_is_a_reject() {
    costs_one_item("levels-33", "33");
}

#[test]
fn two_items_that_get_one_key_are_both_rejects_and_name_each_other() {
    let (folder, _) = broken("same-key", 3);
    let rejects = std::fs::read_to_string(folder.path().join("work/rejects/unit-00001.jsonl")).expect("there is a rejects file");
    assert_eq!(rejects.lines().count(), 2, "{rejects}");
    golden("broken/same-key.rejects.jsonl", &rejects);
}
