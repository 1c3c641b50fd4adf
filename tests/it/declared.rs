//! Types and names that a pipeline declares for Parquet: what engines see, what is told, what is rejected, and that `verify` knows them.

use std::fs;
use std::path::Path;

use crate::program::{Folder, Ran, dynamorph};
use crate::python::run_program;

const HEAD: &str =
    "version = 1\n[source]\nkey = { partition = \"PK\" }\n[entity.Order]\nmatch = { PK = \"O#{id}\" }\n[entity.Order.parquet]\n";

const TYPES: &str = r#"
types = { createdAt = "timestamp", updated = "timestamp(epoch_ms)", price = "double", total = "decimal(10,2)", note = "json" }
names = { createdAt = "created_at" }
"#;

const ORDERS: [&str; 3] = [
    r#"{"Item":{"PK":{"S":"O#1"},"createdAt":{"S":"2026-11-30T10:00:00+01:00"},"updated":{"N":"1796032800007"},"price":{"N":"0.1"},"total":{"N":"12.5"},"note":{"S":"x"}}}"#,
    r#"{"Item":{"PK":{"S":"O#2"},"createdAt":{"S":"yesterday"},"updated":{"S":"never"},"price":{"N":"9007199254740993"},"total":{"N":"0.005"},"note":{"L":[{"N":"1"}]}}}"#,
    r#"{"Item":{"PK":{"S":"O#3"},"createdAt":{"NULL":true},"price":{"N":"1E3"}}}"#,
];

/// A folder with a pipeline that declares this, and orders.
fn folder(declared: &str) -> (Folder, String, String) {
    let folder = Folder::new();
    let (pipeline, from) = (folder.join("pipeline.toml"), folder.join("orders.json"));
    fs::write(&pipeline, format!("{HEAD}{declared}")).expect("the pipeline can be written");
    fs::write(&from, ORDERS.join("\n")).expect("the orders can be written");
    (folder, pipeline, from)
}

fn verify(folder: &Folder, pipeline: &str, from: &str) -> Ran {
    let (work, lake) = (folder.join("verify"), folder.sink("parquet", "lake"));
    dynamorph(&["verify", pipeline, "--from", from, "--against", &lake, "--work", &work, "--quiet"])
}

fn described(folder: &Folder) -> Vec<String> {
    run_program("describe_parquet.py", &[], &[&folder.path().join("lake")])
}

#[test]
fn engines_see_the_declared_types_and_verify_finds_every_value() {
    let (folder, pipeline, from) = folder(TYPES);
    let (work, lake) = (folder.join("work"), folder.sink("parquet", "lake"));
    let ran = dynamorph(&["run", &pipeline, "--from", &from, "--to", &lake, "--work", &work]).expect(0);
    assert_eq!(
        described(&folder),
        [
            "PK: VARCHAR, string = O#1 | O#2 | O#3",
            "created_at: TIMESTAMP WITH TIME ZONE, timestamp[us, tz=UTC] = 2026-11-30 09:00:00+00 | - | -",
            "created_at__s: VARCHAR, string = - | yesterday | -",
            r#"note: VARCHAR, string = {"S":"x"} | {"L":[{"N":"1"}]} | -"#,
            "price: DOUBLE, double = 0.1 | 9007199254740992.0 | 1000.0",
            "total: DECIMAL(10,2), decimal128(10, 2) = 12.50 | - | -",
            "total__n: DECIMAL(5,3), decimal128(5, 3) = - | 0.005 | -",
            "updated: TIMESTAMP WITH TIME ZONE, timestamp[us, tz=UTC] = 2026-11-30 10:00:00.007+00 | - | -",
            "updated__s: VARCHAR, string = - | never | -",
        ]
    );
    for told in [
        "Order: 1 of 2 values of `createdAt` do not fit timestamp; they are in `created_at__s`",
        "Order: 1 of 3 values of `price` lost digits as a double",
        "Order: 1 of 2 values of `total` do not fit decimal(10,2); they are in `total__n`",
        "Order: 1 of 2 values of `updated` do not fit timestamp(epoch_ms); they are in `updated__s`",
    ] {
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
    verify(&folder, &pipeline, &from).expect(0);
}

#[test]
fn verify_compares_instants_and_doubles_and_finds_another_instant() {
    let (folder, pipeline, from) = folder(TYPES);
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "lake")], &[]).expect(0);
    let other = |old: &str, new: &str| {
        let text = ORDERS.join("\n");
        assert!(text.contains(old));
        fs::write(&from, text.replace(old, new)).expect("the orders can be written");
        verify(&folder, &pipeline, &from)
    };
    // The same instant, the same double.
    other("2026-11-30T10:00:00+01:00", "2026-11-30T09:00:00.000Z").expect(0);
    other("9007199254740993", "9007199254740992").expect(0);
    let told = other("2026-11-30T10:00:00+01:00", "2026-11-30T10:00:00Z").expect(4);
    assert!(told.stdout.contains("createdAt") && told.stdout.contains("2026-11-30T09:00:00.000000Z"), "{}", told.stdout);
    other("1796032800007", "1796032800008").expect(4);
    other("\"0.1\"", "\"0.10000000000000002\"").expect(4);
    other("yesterday", "today").expect(4);
}

#[test]
fn strict_types_reject_what_does_not_fit_and_keep_the_rest() {
    let (folder, pipeline, from) = folder(&format!("{TYPES}strict = true\n"));
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "lake")], &[]).expect(3);
    let rejects = fs::read_to_string(folder.path().join("work/rejects/unit-00001.jsonl")).expect("there is a rejects file");
    assert_eq!(rejects.lines().count(), 1);
    let told = "`createdAt` is declared as timestamp, and its value, of type S, does not fit";
    assert!(rejects.contains("O#2") && rejects.contains(told) && rejects.contains("declared-type"), "{rejects}");
    assert!(described(&folder).iter().all(|column| !column.contains("__")), "{:?}", described(&folder));
    verify(&folder, &pipeline, &from).expect(0);
}

#[test]
fn the_files_do_not_depend_on_the_number_of_workers() {
    let (folder, pipeline, from) = folder(TYPES);
    let bytes = |name: &str, jobs: &str| {
        folder.run(&pipeline, &[&from], &[folder.sink("parquet", name)], &["--jobs", jobs, "--restart"]).expect(0);
        let path: &Path = &folder.path().join(name).join("Order/part-u00001-0000.parquet");
        fs::read(path).expect("the file is there")
    };
    assert!(bytes("one", "1") == bytes("four", "4"));
}

#[test]
fn a_schema_that_was_kept_pins_the_columns_of_later_runs() {
    let (folder, pipeline, from) = folder(TYPES);
    let (kept, again) = (folder.join("schema.json"), folder.join("again.json"));
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "first")], &["--schema-out", &kept]).expect(0);
    let schema = fs::read_to_string(&kept).expect("the schema is there");
    assert!(schema.contains("created_at__s"), "{schema}");
    // One item, which lacks most of the columns.
    fs::write(&from, r#"{"Item":{"PK":{"S":"O#3"},"price":{"N":"1E3"},"total":{"N":"7"}}}"#).expect("the orders can be written");
    let pinned = ["--schema", &kept, "--schema-out", &again];
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "lake")], &pinned).expect(0);
    assert_eq!(fs::read_to_string(&again).expect("the schema is there"), schema);
    assert_eq!(
        described(&folder),
        [
            "PK: VARCHAR, string = O#3",
            "created_at: TIMESTAMP WITH TIME ZONE, timestamp[us, tz=UTC] = -",
            "created_at__s: VARCHAR, string = -",
            "note: VARCHAR, string = -",
            "price: DOUBLE, double = 1000.0",
            "total: DECIMAL(10,2), decimal128(10, 2) = 7.00",
            "total__n: DECIMAL(5,3), decimal128(5, 3) = -",
            "updated: TIMESTAMP WITH TIME ZONE, timestamp[us, tz=UTC] = -",
            "updated__s: VARCHAR, string = -",
        ]
    );
    verify(&folder, &pipeline, &from).expect(0);
}

#[test]
fn the_first_item_that_drifts_from_a_pinned_schema_ends_the_run_before_anything_is_written() {
    let (folder, pipeline, from) = folder(TYPES);
    let kept = folder.join("schema.json");
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "first")], &["--schema-out", &kept]).expect(0);
    for (drift, told) in [
        (r#""colour":{"S":"red"}"#, ["attribute: colour", "expected: no such attribute"]),
        (r#""total":{"N":"123456789.5"}"#, ["attribute: total", "expected: `total`: decimal(10, 2), `total__n`: decimal(5, 3)"]),
        (r#""price":{"S":"cheap"}"#, ["attribute: price", "type: S"]),
    ] {
        let drifting = [ORDERS[0], &format!(r#"{{"Item":{{"PK":{{"S":"O#9"}},{drift}}}}}"#)].join("\n");
        fs::write(&from, drifting).expect("the orders can be written");
        let sinks = [folder.sink("parquet", "lake")];
        let ran = folder.run(&pipeline, &[&from], &sinks, &["--schema", &kept]).expect(1);
        for told in [told[0], told[1], "line: 2", "orders.json"] {
            assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
        }
        assert!(!folder.path().join("lake/Order").exists());
    }
    fs::write(&kept, "{}").expect("the schema can be written");
    let ran = folder.run(&pipeline, &[&from], &[folder.sink("parquet", "lake")], &["--schema", &kept]).expect(1);
    assert!(ran.stderr.contains("the schema cannot be read"), "{}", ran.stderr);
    let ran = folder.run(&pipeline, &[&from], &[folder.sink("batch", "out")], &["--schema", &kept]).expect(2);
    assert!(ran.stderr.contains("a schema is what parquet: writes"), "{}", ran.stderr);
}
