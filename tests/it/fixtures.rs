//! What real exports may hold, or what may have happened to them: each case is an export of its own, run by the real program.
//!
//! | fixture | test |
//! |---|---|
//! | md5 mismatch of a data file | `broken`: `a_wrong_md5_ends_the_run` |
//! | md5 mismatch of the list, of the summary | [`a_changed_list_or_summary_ends_the_run_unless_only_data_is_compared`] |
//! | the list names a missing object | `broken`: `a_missing_file_ends_the_run` |
//! | an extra object in `data/` | [`what_the_list_does_not_name_is_not_read`] |
//! | `itemCount` wrong by one | `broken`: `a_wrong_count_ends_the_run` |
//! | truncated gzip | `broken`: `a_cut_gzip_stream_ends_the_run` |
//! | gzip of several members | [`a_data_file_of_several_gzip_members_is_read_whole`] |
//! | no summary | [`an_export_without_its_summary_is_unfinished`] |
//! | `.checksum` in place of `.md5`, or neither | [`checksums_may_have_another_name_and_may_be_missing`] |
//! | moved prefix | [`an_export_is_found_wherever_it_was_copied_to`], and the sample `docs-prefixed` in `copies` |
//! | equal keys in two files | [`items_of_two_files_with_one_key_are_both_rejects`] |
//! | two types in a value | `broken`: `two_types_in_a_value_are_a_reject` |
//! | `N` as a JSON number | [`a_number_that_is_no_text_is_a_reject`] |
//! | a number with an exponent | [`a_number_may_have_an_exponent`] |
//! | attributes named `Item`, `S` … | [`attributes_may_be_called_like_what_stands_around_them`] |
//! | 32 and 33 levels | [`levels_are_taken_up_to_32`], `broken`: `an_item_of_33_levels_is_a_reject` |
//! | 409,600 and 409,601 bytes | [`items_are_taken_up_to_409_600_bytes`] |
//! | 38 and 39 digits | [`numbers_are_taken_up_to_38_digits`], `broken`: `a_number_of_39_digits_is_a_reject` |
//! | an empty text in an index key | [`an_empty_index_key_is_a_reject`] |
//! | an item without `EntityType` | [`an_item_without_a_type_is_told_by_its_key`] |
//! | a delete that holds keys only | `incremental`: `both_windows_together_give_the_rows_that_python_expects` |
//! | a gap between two windows, an overlap | [`windows_with_a_gap_or_an_overlap_are_refused`] |
//! | one table name, another `tableId` | [`a_table_that_was_made_anew_is_another_table`] |

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::exports::{Content, Data, Export, Window, checksum, gzip, put, text};
use crate::pipelines::batched;
use crate::program::{Folder, Ran, dynamorph, files, golden};

const PIPELINE: &str = "pipelines/docs-split-comments.toml";
const ID: &str = "01775001600000-0f1c5e2a";

/// A full export of a table with these lines in its data files.
fn export(files: &[&[String]]) -> Export {
    let data = ('a'..='z').zip(files).map(|(letter, lines)| Data::of(format!("{}.json.gz", letter.to_string().repeat(26)), lines));
    Export {
        id: ID.to_owned(),
        table: "docs-test".to_owned(),
        table_id: "0d5b5c3e-64a7-4f3c-9f5e-0c9c6c9a7b11".to_owned(),
        prefix: None,
        started: "2026-04-01T00:00:00.000Z".to_owned(),
        ended: "2026-04-01T00:05:00.000Z".to_owned(),
        content: Content::Items("2026-04-01T00:00:00.000Z".to_owned()),
        format: "DYNAMODB_JSON",
        data: data.collect(),
    }
}

/// A document with more attributes, as a line.
fn document(doc: &str, more: &str) -> String {
    let more = if more.is_empty() { String::new() } else { format!(",{more}") };
    format!(
        r#"{{"Item":{{"PK":{{"S":"WS#a"}},"SK":{{"S":"DOC#{doc}"}},"EntityType":{{"S":"Document"}},"updatedAt":{{"S":"2026-03-31T09:00:00Z"}}{more}}}}}"#
    )
}

/// Five documents in two files.
fn healthy() -> Export {
    let line = |doc: u32| document(&doc.to_string(), "");
    export(&[&[line(1), line(2), line(3)], &[], &[line(4), line(5)]])
}

/// Where a test writes its export, and the export's own folder.
fn written(folder: &Folder, export: &Export) -> String {
    let root = folder.path().join("export");
    export.write(&root);
    root.join(export.folder()).to_str().expect("temporary paths are UTF-8").to_owned()
}

/// Runs the split pipeline over exports into files for Parquet, imports and requests.
#[track_caller]
fn run(folder: &Folder, from: &[&str], more: &[&str], code: i32) -> Ran {
    let sinks = [folder.sink("parquet", "lake"), folder.sink("import", "import"), folder.sink("batch", "batch")];
    folder.run(PIPELINE, from, &sinks, more).expect(code)
}

/// Compares what the user sees with a golden file.
fn shown(folder: &Folder, name: &str, ran: &Ran) {
    let seen = format!("exit code {}\n--- stdout\n{}--- stderr\n{}", ran.code, ran.stdout, ran.stderr);
    golden(&format!("fixtures/{name}.txt"), &folder.stable(&seen));
}

/// The run ends with code 1, writes nothing, and says this.
#[track_caller]
fn ends(folder: &Folder, name: &str, from: &[&str]) {
    let ran = run(folder, from, &[], 1);
    assert!(!["lake", "import", "batch"].iter().any(|sink| holds_files(&folder.path().join(sink))), "something has a final name");
    shown(folder, name, &ran);
}

fn holds_files(folder: &Path) -> bool {
    folder.exists() && !files(folder).is_empty()
}

/// The documents that were written.
fn documents(folder: &Folder) -> Vec<Map<String, Value>> {
    batched(&folder.path().join("batch")).remove("docs").unwrap_or_default()
}

/// The numbers in their keys.
fn ids(folder: &Folder) -> Vec<String> {
    let id = |item: &Map<String, Value>| {
        let key = item["Detail"]["S"].as_str().and_then(|key| key.strip_prefix("DOC#"));
        key.expect("a document's key begins so").trim_start_matches('0').to_owned()
    };
    let mut ids: Vec<_> = documents(folder).iter().map(id).collect();
    ids.sort_unstable();
    ids
}

fn rejects(folder: &Folder) -> String {
    fs::read_to_string(folder.path().join("work/rejects/unit-00001.jsonl")).expect("there is a rejects file")
}

/// Runs an export of these lines, in which exactly one is refused; the reject is a golden file. Gives the ids of the documents that were
/// written.
#[track_caller]
fn one_is_refused(name: &str, lines: &[String]) -> Vec<String> {
    let folder = Folder::new();
    let from = written(&folder, &export(&[lines]));
    run(&folder, &[&from], &[], 3);
    let rejects = rejects(&folder);
    assert_eq!(rejects.lines().count(), 1, "{rejects}");
    golden(&format!("fixtures/{name}.rejects.jsonl"), &rejects);
    ids(&folder)
}

/// Runs an export of these lines, all of which are taken.
#[track_caller]
fn all_are_taken(lines: &[String]) -> Folder {
    let folder = Folder::new();
    let from = written(&folder, &export(&[lines]));
    run(&folder, &[&from], &[], 0);
    folder
}

/// What a run over the healthy export writes.
fn undisturbed() -> Folder {
    let folder = Folder::new();
    let from = written(&folder, &healthy());
    run(&folder, &[&from], &[], 0);
    assert_eq!(ids(&folder), ["1", "2", "3", "4", "5"]);
    folder
}

/// Both runs wrote the same bytes under the same names.
#[track_caller]
fn same_bytes(one: &Folder, other: &Folder) {
    for sink in ["lake", "import", "batch"] {
        assert!(files(&one.path().join(sink)) == files(&other.path().join(sink)), "{sink} differs");
    }
}

#[test]
fn a_changed_list_or_summary_ends_the_run_unless_only_data_is_compared() {
    for (name, file, from, to) in [
        ("list-md5", "manifest-files.json", "\"etag\"", "\"eTag\""),
        ("summary-md5", "manifest-summary.json", "111122223333", "999999999999"),
    ] {
        let folder = Folder::new();
        let export = written(&folder, &healthy());
        let path = Path::new(&export).join(file);
        let text = fs::read_to_string(&path).expect("the manifest is there");
        fs::write(&path, text.replace(from, to)).expect("the manifest can be written");
        ends(&folder, name, &[&export]);
        // The warning is one that --quiet would keep back.
        let work = folder.join("work");
        let ran =
            dynamorph(&["run", PIPELINE, "--from", &export, "--to", &folder.sink("batch", "batch"), "--work", &work, "--verify", "data"]);
        let ran = ran.expect(0);
        let warnings: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
        assert_eq!(warnings, [format!("warning: {export}/{file} is not what its checksum says; it was changed or damaged")]);
        assert_eq!(ids(&folder), ["1", "2", "3", "4", "5"]);
    }
}

#[test]
fn what_the_list_does_not_name_is_not_read() {
    let folder = Folder::new();
    let from = written(&folder, &healthy());
    let data = Path::new(&from).join("data");
    put(&data.join(format!("{}.json.gz", "z".repeat(26))), &gzip(&text(&[document("6", "")])));
    put(&data.join("notes.txt"), b"not an item");
    put(&data.join("older/a.json.gz"), b"no gzip");
    run(&folder, &[&from], &[], 0);
    same_bytes(&folder, &undisturbed());
}

#[test]
fn a_data_file_of_several_gzip_members_is_read_whole() {
    let folder = Folder::new();
    let mut export = healthy();
    // The second member starts in the middle of a line.
    let whole = text(&[document("1", ""), document("2", ""), document("3", "")]);
    let (first, rest) = whole.split_at(whole.len() / 2 + 7);
    let members = [gzip(first), gzip(""), gzip(rest)].concat();
    export.data[0] = Data::stored(export.data[0].name.clone(), members, 3);
    run(&folder, &[&written(&folder, &export)], &[], 0);
    same_bytes(&folder, &undisturbed());
}

#[test]
fn an_export_without_its_summary_is_unfinished() {
    let folder = Folder::new();
    let from = written(&folder, &healthy());
    fs::remove_file(Path::new(&from).join("manifest-summary.json")).expect("the summary is there");
    ends(&folder, "no-summary", &[&from]);
    // The folder above says the same.
    let ran = run(&folder, &[&folder.join("export")], &[], 1);
    assert!(ran.stderr.starts_with("error: unfinished or failed export: no manifest-summary.json\n"), "{}", ran.stderr);
}

#[test]
fn checksums_may_have_another_name_and_may_be_missing() {
    let folder = Folder::new();
    let from = written(&folder, &healthy());
    for stem in ["manifest-summary", "manifest-files"] {
        let path = |ending: &str| Path::new(&from).join(format!("{stem}.{ending}"));
        fs::rename(path("md5"), path("checksum")).expect("the checksum is there");
    }
    run(&folder, &[&from], &[], 0);
    same_bytes(&folder, &undisturbed());
    // It is compared under that name too.
    let other = Folder::new();
    put(&Path::new(&from).join("manifest-files.checksum"), &checksum(b"another list"));
    let ran = run(&other, &[&from], &[], 1);
    assert!(ran.stderr.starts_with("error: the file is not what its checksum says; it was changed or damaged\n"), "{}", ran.stderr);
    // Without any the run says so, and goes on.
    for stem in ["manifest-summary", "manifest-files"] {
        fs::remove_file(Path::new(&from).join(format!("{stem}.checksum"))).expect("the checksum is there");
    }
    let ran =
        dynamorph(&["run", PIPELINE, "--from", &from, "--to", &other.sink("batch", "batch"), "--work", &other.join("work")]).expect(0);
    let warning = "warning: the export has no md5 for some of its files, so that a changed file cannot be told from a whole one\n";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
}

#[test]
fn an_export_is_found_wherever_it_was_copied_to() {
    let undisturbed = undisturbed();
    // The prefix holds a folder of the name that exports have, and none of it is left.
    let export = Export { prefix: Some("old/AWSDynamoDB/backup 2026".to_owned()), ..healthy() };
    for (root, from) in [("copy", "copy"), ("copy", "copy/AWSDynamoDB"), ("else/AWSDynamoDB/again", "else/AWSDynamoDB/again")] {
        let folder = Folder::new();
        export.write(&folder.path().join(root));
        run(&folder, &[&folder.join(from)], &[], 0);
        same_bytes(&folder, &undisturbed);
    }
    let folder = Folder::new();
    let from = written(&folder, &export);
    fs::rename(from, folder.path().join("renamed")).expect("a folder can be renamed");
    run(&folder, &[&folder.join("renamed/manifest-summary.json")], &[], 0);
    same_bytes(&folder, &undisturbed);
}

#[test]
fn items_of_two_files_with_one_key_are_both_rejects() {
    let folder = Folder::new();
    // A table cannot hold two items of one key, but an export is no snapshot of one moment, and files get mixed up.
    let [once, again] = [r#""title":{"S":"first"}"#, r#""title":{"S":"second"}"#].map(|title| document("7", title));
    let from = written(&folder, &export(&[&[document("1", ""), once], &[again, document("2", "")]]));
    let ran = run(&folder, &[&from], &[], 3);
    shown(&folder, "equal-keys", &ran);
    let rejects = rejects(&folder);
    assert_eq!(rejects.lines().count(), 2, "{rejects}");
    golden("fixtures/equal-keys.rejects.jsonl", &rejects);
    assert_eq!(ids(&folder), ["1", "2"]);
}

#[test]
fn a_number_that_is_no_text_is_a_reject() {
    let lines = [document("1", r#""version":{"N":1}"#), document("2", r#""version":{"N":"1"}"#)];
    assert_eq!(one_is_refused("number-as-json", &lines), ["2"]);
}

#[test]
fn a_number_may_have_an_exponent() {
    let folder =
        all_are_taken(&[document("1", r#""version":{"N":"1E+2"},"ratio":{"N":"-2.50e-3"}"#), document("2", r#""version":{"N":"100"}"#)]);
    // Items are written as they were read.
    let read = |item: &&Map<String, Value>| item.contains_key("ratio");
    let item = documents(&folder).iter().find(read).cloned().expect("one of them has a ratio");
    assert_eq!([&item["version"], &item["ratio"]], [&json!({"N": "1E+2"}), &json!({"N": "-2.50e-3"})]);
    // Columns hold numbers by their value.
    let rows = crate::python::run_program("read_parquet.py", &[], &[&folder.path().join("lake/Document")]);
    assert_eq!(rows.iter().filter(|row| row.contains(r#""version":{"N":"100"}"#)).count(), 2, "{rows:?}");
    assert!(rows.iter().any(|row| row.contains(r#""ratio":{"N":"-0.0025"}"#)), "{rows:?}");
}

#[test]
fn attributes_may_be_called_like_what_stands_around_them() {
    let odd = r#""Item":{"M":{"Item":{"S":"inside"}}},"S":{"N":"1"},"M":{"S":"x"},"Keys":{"NULL":true},"NewImage":{"L":[]}"#;
    let folder = all_are_taken(&[document("1", odd)]);
    let item = &documents(&folder)[0];
    let expected: Map<String, Value> = serde_json::from_str(&format!("{{{odd}}}")).expect("the attributes are JSON");
    for (name, value) in &expected {
        assert_eq!(item.get(name), Some(value), "{name}");
    }
}

/// A text at this level, inside lists and maps in turn.
fn nested(level: usize) -> String {
    (1..level).fold(r#"{"S":"deep"}"#.to_owned(), |inside, at| {
        if at % 2 == 0 { format!(r#"{{"L":[{inside}]}}"#) } else { format!(r#"{{"M":{{"m":{inside}}}}}"#) }
    })
}

#[test]
fn levels_are_taken_up_to_32() {
    let line = |doc: &str, levels| document(doc, &format!("\"deep\":{}", nested(levels)));
    assert_eq!(one_is_refused("levels", &[line("32", 32), line("33", 33)]), ["32"]);
}

#[test]
fn items_are_taken_up_to_409_600_bytes() {
    // What the target item has besides: EntityRef WS#a, Detail DOC#0000000001, EntityType Document, updatedAt, GSI1PK WS#a, GSI1SK, pad.
    let besides = 9 + 4 + 6 + 14 + 10 + 8 + 9 + 20 + 6 + 4 + 6 + 20 + 3;
    let line = |doc: &str, bytes: usize| document(doc, &format!(r#""pad":{{"S":"{}"}}"#, "x".repeat(bytes - besides)));
    let folder = Folder::new();
    let from = written(&folder, &export(&[&[line("1", 409_600), line("2", 409_601)]]));
    run(&folder, &[&from], &[], 3);
    assert_eq!(ids(&folder), ["1"]);
    let reject: Value = serde_json::from_str(&rejects(&folder)).expect("one reject is one line of JSON");
    let reject = serde_json::to_string_pretty(&reject["Reject"]).expect("JSON can be written");
    golden("fixtures/item-size.txt", &format!("{reject}\n"));
}

#[test]
fn numbers_are_taken_up_to_38_digits() {
    let line = |doc: &str, digits: usize| document(doc, &format!(r#""big":{{"N":"-0.{}"}}"#, "7".repeat(digits)));
    assert_eq!(one_is_refused("digits", &[line("38", 38), line("39", 39)]), ["38"]);
}

#[test]
fn an_empty_index_key_is_a_reject() {
    let empty = document("1", "").replace("2026-03-31T09:00:00Z", "");
    assert_eq!(one_is_refused("empty-index-key", &[empty, document("2", "")]), ["2"]);
}

#[test]
fn an_item_without_a_type_is_told_by_its_key() {
    let bare = document("1", "").replace(r#","EntityType":{"S":"Document"}"#, "");
    assert!(!bare.contains("EntityType"));
    let folder = all_are_taken(&[bare, document("2", "")]);
    for item in documents(&folder) {
        assert_eq!(item["EntityType"], json!({"S": "Document"}));
    }
}

/// An incremental export of some hours of a day, with one new document.
fn window(hour: u32, to: u32) -> Export {
    let key = format!(r#""PK":{{"S":"WS#a"}},"SK":{{"S":"DOC#{hour}"}}"#);
    let line =
        format!(r#"{{"Metadata":{{"WriteTimestampMicros":{{"N":"17750016{hour:02}000000"}}}},"Keys":{{{key}}},"NewImage":{{{key}}}}}"#);
    let time = |hour: u32| format!("2026-04-01T{hour:02}:00:00.000Z");
    let name = format!("{}.json.gz", char::from(b'a' + u8::try_from(hour).expect("a day has few hours")).to_string().repeat(26));
    Export {
        id: format!("017750016{hour:02}000-0f1c5e2a"),
        content: Content::Changes(Window { from: time(hour), to: time(to), view: "NEW_IMAGE" }),
        data: vec![Data::of(name, &[line])],
        ..export(&[])
    }
}

/// Runs both windows into Parquet; they do not belong together.
#[track_caller]
fn do_not_belong_together(name: &str, one: &Export, other: &Export) {
    let folder = Folder::new();
    let (one, other) = (written(&folder, one), written(&folder, other));
    let sinks = [folder.sink("parquet", "lake")];
    let ran = folder.run(PIPELINE, &[&one, &other], &sinks, &[]).expect(1);
    shown(&folder, name, &ran);
    // In whatever order they are named.
    assert_eq!(folder.run(PIPELINE, &[&other, &one], &sinks, &[]).expect(1).stderr, ran.stderr);
}

#[test]
fn windows_with_a_gap_or_an_overlap_are_refused() {
    do_not_belong_together("gap", &window(1, 2), &window(3, 4));
    do_not_belong_together("overlap", &window(1, 3), &window(2, 4));
    // Those that follow each other belong together.
    let folder = Folder::new();
    let (one, other) = (written(&folder, &window(1, 2)), written(&folder, &window(2, 4)));
    let ran = folder.run(PIPELINE, &[&other, &one], &[folder.sink("parquet", "lake")], &[]).expect(0);
    assert!(ran.stdout.contains("ledger: manifest 2 = read 2 = written 2"), "{}", ran.stdout);
}

#[test]
fn a_table_that_was_made_anew_is_another_table() {
    let anew = Export { table_id: "7c6f1a52-0b0d-4a63-8a55-5e1f0c6b2d90".to_owned(), ..window(2, 3) };
    do_not_belong_together("other-table-id", &window(1, 2), &anew);
    let other = Export { table: "docs-prod".to_owned(), ..window(2, 3) };
    do_not_belong_together("other-table", &window(1, 2), &other);
}

#[test]
fn a_full_export_and_an_incremental_one_are_refused_together() {
    do_not_belong_together("full-and-window", &healthy(), &window(1, 2));
}
