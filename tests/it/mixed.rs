//! Records that do not belong where they stand: items among changes, changes among items, and the insides of items whose lines broke off.
//! Files that are not what others say of them.

use std::fs;

use serde_json::Value;

use crate::exports::{Content, Data, Export, Window};
use crate::program::{Folder, Ran, dynamorph};

const PIPELINE: &str = r#"version = 1
[source]
key = { partition = "pk" }
[table.tab]
key = { partition = "pk" }
[entity.X]
classify = "attribute_exists(pk)"
to = "tab"
"#;

const ITEM: &str = r#"{"Item":{"pk":{"S":"a"},"v":{"N":"1"}}}"#;
const CHANGE: &str = r#"{"Metadata":{"WriteTimestampMicros":{"N":"1775001600000000"}},"Keys":{"pk":{"S":"b"}},"OldImage":{"pk":{"S":"b"}},"NewImage":{"pk":{"S":"b"},"v":{"N":"2"}}}"#;

/// A folder with the pipeline, and what a run over these exports gives.
fn run(folder: &Folder, from: &[&str], kind: &str) -> Ran {
    let pipeline = folder.join("pipeline.toml");
    fs::write(&pipeline, PIPELINE).expect("the pipeline can be written");
    folder.run(&pipeline, from, &[folder.sink(kind, "out")], &[])
}

/// Stage, rule and line of each reject.
fn rejects(folder: &Folder) -> Vec<String> {
    let text = fs::read_to_string(folder.path().join("work/rejects/unit-00001.jsonl")).expect("there are rejects");
    let reject = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a reject is JSON");
        let text = |name: &str| line["Reject"][name].as_str().unwrap_or_default().to_owned();
        format!("{}/{} {}", text("stage"), text("rule"), line["Reject"]["line"])
    };
    text.lines().map(reject).collect()
}

fn window(view: &'static str) -> Content {
    Content::Changes(Window { from: "2026-04-01T00:00:00.000Z".to_owned(), to: "2026-04-01T12:00:00.000Z".to_owned(), view })
}

/// The folder of an export of these lines.
fn export(folder: &Folder, name: &str, content: Content, format: &'static str, lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
    let export = Export {
        id: "01775001600515-310f668b".to_owned(),
        table: "tab".to_owned(),
        table_id: "cf263806-6bf1-4e51-a242-7067dcdecc72".to_owned(),
        prefix: None,
        started: "2026-04-01T12:00:00.515Z".to_owned(),
        ended: "2026-04-01T12:01:00.515Z".to_owned(),
        content,
        format,
        data: vec![Data::of("t3ikgmxrcn7fbhizftkdwf7jfx.json.gz".to_owned(), &lines)],
    };
    export.write(&folder.path().join(name));
    folder.join(name)
}

#[test]
fn an_item_in_an_incremental_export_and_a_change_in_a_full_one_are_rejects() {
    let folder = Folder::new();
    let from = export(&folder, "changes", window("NEW_AND_OLD_IMAGES"), "DYNAMODB_JSON", &[CHANGE, ITEM]);
    run(&folder, &[&from], "parquet").expect(3);
    assert_eq!(rejects(&folder), ["decode/item-among-changes 2"]);
    let inspected = dynamorph(&["inspect", &from]).expect(0);
    assert!(inspected.stdout.contains("1 line is no item: data/") && inspected.stdout.contains(":2: an item in an incremental export"));

    let folder = Folder::new();
    let full = Content::Items("2026-04-01T12:00:00.000Z".to_owned());
    let from = export(&folder, "items", full, "DYNAMODB_JSON", &[CHANGE, ITEM]);
    run(&folder, &[&from], "parquet").expect(3);
    assert_eq!(rejects(&folder), ["decode/change-among-items 1"]);
}

#[test]
fn an_old_image_in_an_export_of_new_images_is_a_reject() {
    let folder = Folder::new();
    let plain = CHANGE.replace(r#""OldImage":{"pk":{"S":"b"}},"#, "");
    let from = export(&folder, "changes", window("NEW_IMAGE"), "DYNAMODB_JSON", &[&plain, CHANGE]);
    run(&folder, &[&from], "parquet").expect(3);
    assert_eq!(rejects(&folder), ["decode/old-image 2"]);
}

#[test]
fn files_without_a_manifest_hold_items_or_changes_but_not_both() {
    let folder = Folder::new();
    // Each run in a folder of its own, since one that ended early would be gone on with.
    let run = |from: &[&str], kind: &str| run(&Folder::new(), from, kind);
    let file = |name: &str, lines: &[&str]| {
        fs::write(folder.join(name), lines.join("\n")).expect("the data can be written");
        folder.join(name)
    };
    let (items, changes, both) = (file("items.json", &[ITEM]), file("changes.json", &["", CHANGE]), file("both.json", &[ITEM, CHANGE]));
    for (kind, from) in [("parquet", vec![&*items, &*changes]), ("parquet", vec![&*both]), ("import", vec![&*both])] {
        let ran = run(&from, kind).expect(1);
        let (of_item, of_change) = if from.len() == 2 { ("items.json:1", "changes.json:2") } else { ("both.json:1", "both.json:2") };
        for part in ["items and change records were read together", "run them apart", of_item, of_change] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
    let inspected = dynamorph(&["inspect", &both]).expect(0);
    assert!(inspected.stderr.contains("warning: items and change records were read together"), "{}", inspected.stderr);
    run(&[&changes], "parquet").expect(0);
}

#[test]
fn the_inside_of_an_item_whose_lines_broke_off_is_no_item() {
    // The first records say how all of them look.
    for text in [
        "{\"Item\":{\"pk\":{\"S\":\"b\"}}}\n{\"Item\":{\"pk\":{\"S\":\"a\"},\"m\":{\"M\":\n{\"pk\":{\"S\":\"inner\"}}\n}}}\n{\"Item\":{\"pk\":{\"S\":\"c\"}}}",
        "$ion_1_0 {Item:{pk:\"b\"}}\n$ion_1_0 {Item:{pk:\"a\",l:[\n{pk:\"inner\"}\n]}}\n$ion_1_0 {Item:{pk:\"c\"}}",
        "$ion_1_0 {Item:{pk:\"b\"}}\n$ion_1_0 {Item:{pk:\"a\",l:[\n{Item:{pk:\"inner\"}}\n]}}\n$ion_1_0 {Item:{pk:\"c\"}}",
    ] {
        let folder = Folder::new();
        fs::write(folder.join("data"), text).expect("the data can be written");
        let ran = run(&folder, &[&folder.join("data")], "batch").expect(3);
        assert!(ran.stdout.contains("read 5 = written 2 "), "{}", ran.stdout);
        let found = rejects(&folder);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[1], "decode/not-alike 3");
        // Nor does a replay take it for one.
        let rejects = folder.join("work/rejects/unit-00001.jsonl");
        let again = Folder::new();
        let ran = run(&again, &[&rejects], "batch").expect(3);
        assert!(ran.stdout.contains("read 3 = written 0 "), "{}", ran.stdout);
    }
}

#[test]
fn where_the_inside_of_an_item_could_be_one_a_line_that_broke_off_ends_the_run() {
    for (text, line) in [
        ("{\"pk\":{\"S\":\"first\"}}\n{\"pk\":{\"S\":\"a\"},\"m\":{\"M\":\n{\"pk\":{\"S\":\"inner\"}}\n}}\n", 2),
        ("$ion_1_0\n{Item:{pk:\"b\"}}\n{Item:{pk:\"a\",l:[\n{Item:{pk:\"inner\"}}\n]}}", 3),
        ("$ion_1_0 {pk:\"b\"}\n$ion_1_0 {pk:\"a\",l:[\n$ion_1_0\n{pk:\"inner\"}\n]}}", 2),
    ] {
        let folder = Folder::new();
        fs::write(folder.join("data"), text).expect("the data can be written");
        let ran = run(&folder, &[&folder.join("data")], "batch").expect(1);
        let inspected = dynamorph(&["inspect", &folder.join("data"), "-q"]).expect(1);
        for stderr in [ran.stderr, inspected.stderr] {
            assert!(stderr.contains("a line of the data file breaks off inside its brackets"), "{stderr}");
            assert!(stderr.contains(&format!("line: {line}")) || stderr.contains(&format!("{line}\n")), "{stderr}");
        }
    }
    // What is broken otherwise costs its line alone.
    let folder = Folder::new();
    fs::write(folder.join("data"), "{\"pk\":{\"S\":\"first\"}}\n{\"pk\":{\"S\":7}}\n{\"pk\":{\"S\":\"b\"}},\n{\"pk\":{\"S\":\"c\"}}\n")
        .expect("the data can be written");
    run(&folder, &[&folder.join("data")], "batch").expect(3);
    assert_eq!(rejects(&folder).len(), 2);
}

#[test]
fn files_of_another_format_than_the_summary_says_are_a_warning_once() {
    let folder = Folder::new();
    let full = Content::Items("2026-04-01T12:00:00.000Z".to_owned());
    let from = export(&folder, "items", full, "ION", &[ITEM]);
    let pipeline = folder.join("pipeline.toml");
    fs::write(&pipeline, PIPELINE).expect("the pipeline can be written");
    let (work, sink) = (folder.join("work"), folder.sink("import", "out"));
    for args in [&["inspect", from.as_str()][..], &["run", &pipeline, "--from", &from, "--to", &sink, "--work", &work]] {
        let ran = dynamorph(args).expect(0);
        let warning = "warning: the export's summary says outputFormat ION, but data/t3ikgmxrcn7fbhizftkdwf7jfx.json.gz is DYNAMODB_JSON;";
        assert_eq!(ran.stderr.matches(warning).count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn a_page_whose_count_is_another_is_a_warning() {
    let folder = Folder::new();
    let page = r#"{"Items":[{"pk":{"S":"a"}},{"pk":{"S":"b"}}],"Count":3,"ScannedCount":3}"#;
    fs::write(folder.join("scan.json"), page).expect("the data can be written");
    let ran = dynamorph(&["inspect", &folder.join("scan.json")]).expect(0);
    let warning = "scan.json holds a page with 2 items, which ends in line 1, whose `Count` says 3; it was changed or cut";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
}

#[test]
fn data_files_without_md5_are_a_warning_where_data_is_verified() {
    let folder = Folder::new();
    let from = export(&folder, "items", Content::Items("2026-04-01T12:00:00.000Z".to_owned()), "DYNAMODB_JSON", &[ITEM]);
    let list = folder.path().join("items/AWSDynamoDB/01775001600515-310f668b/manifest-files.json");
    let text = fs::read_to_string(&list).expect("there is a list");
    let (start, rest) = text.split_once("\"md5Checksum\"").expect("the list has md5s");
    let (_, rest) = rest.split_once(',').expect("more follows");
    fs::write(&list, format!("{start}{rest}")).expect("the list can be written");
    let warned =
        |verify: &str| dynamorph(&["inspect", &from, "--verify", verify]).expect(0).stderr.contains("the export has no md5 for some");
    assert!(warned("data") && !warned("off"));
}

#[test]
fn an_option_of_import_without_that_sink_is_a_usage_error() {
    let folder = Folder::new();
    let pipeline = folder.join("pipeline.toml");
    fs::write(&pipeline, PIPELINE).expect("the pipeline can be written");
    let ran = folder.run(&pipeline, &["sample_exports/docs"], &[folder.sink("batch", "out")], &["--import-format", "ion"]).expect(2);
    assert!(ran.stderr.contains("an option of the sink import: is given, and there is no such sink"), "{}", ran.stderr);
}
