//! What a pipeline declares for Parquet, and the names of a dialect: what engines see, what is told, what is rejected, and that `verify`
//! knows them.

use std::fs;
use std::path::Path;

use crate::program::{Folder, Ran, dynamorph, files};
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
    folder_of(declared, &ORDERS)
}

pub(crate) fn folder_of(declared: &str, orders: &[&str]) -> (Folder, String, String) {
    let folder = Folder::new();
    let (pipeline, from) = (folder.join("pipeline.toml"), folder.join("orders.json"));
    fs::write(&pipeline, format!("{HEAD}{declared}")).expect("the pipeline can be written");
    fs::write(&from, orders.join("\n")).expect("the orders can be written");
    (folder, pipeline, from)
}

pub(crate) fn verify(folder: &Folder, pipeline: &str, from: &str) -> Ran {
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
        (r#""total":{"N":"123456789.5"}"#, ["attribute: total", "expected: decimal(10, 2), or decimal(5, 3) in the column `total__n`"]),
        (r#""price":{"S":"cheap"}"#, ["found: S", "expected: double"]),
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
    assert!(ran.stderr.contains("a schema is what parquet: and iceberg: write"), "{}", ran.stderr);
}

/// Attributes of several types, NULL, and attributes that few care for.
const MIXED: [&str; 3] = [
    r#"{"Item":{"PK":{"S":"O#1"},"addr":{"S":"Main St 1"},"flag":{"BOOL":true},"tmp_1":{"S":"x"},"state":{"NULL":true},"zone":{"N":"1"}}}"#,
    r#"{"Item":{"PK":{"S":"O#2"},"addr":{"M":{"street":{"S":"Main St"}}},"flag":{"S":"yes"},"tmp_2":{"S":"x"},"state":{"S":"new"}}}"#,
    r#"{"Item":{"PK":{"S":"O#3"},"addr":{"N":"7"},"flag":{"N":"1.50"},"zone":{"S":"north"}}}"#,
];

const SHARED: &str = r#"
mixed = { "*" = "json", flag = "text", zone = "split" }
nulls = ["state"]
order = ["state", "flag"]
rest = ["tmp_*"]
"#;

#[test]
fn engines_see_what_mixed_types_nulls_and_the_rest_are_declared_to_become_and_verify_tells_null_from_absent() {
    let (folder, pipeline, from) = folder_of(SHARED, &MIXED);
    let (work, lake) = (folder.join("work"), folder.sink("parquet", "lake"));
    let ran = dynamorph(&["run", &pipeline, "--from", &from, "--to", &lake, "--work", &work]).expect(0);
    assert_eq!(
        described(&folder),
        [
            "state: VARCHAR, string = - | new | -",
            "state__null: BOOLEAN, bool = true | - | -",
            "flag: VARCHAR, string = true | yes | 1.5",
            "PK: VARCHAR, string = O#1 | O#2 | O#3",
            r#"addr: VARCHAR, string = {"S":"Main St 1"} | {"M":{"street":{"S":"Main St"}}} | {"N":"7"}"#,
            "zone: VARCHAR, string = - | - | north",
            "zone__n: BIGINT, int64 = 1 | - | -",
            r#"__rest: VARCHAR, string = {"tmp_1":{"S":"x"}} | {"tmp_2":{"S":"x"}} | -"#,
        ]
    );
    let told = "Order: values of `flag` are text in `flag`, which does not say what they were: 1 S, 1 N, 1 BOOL";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    verify(&folder, &pipeline, &from).expect(0);
    let other = |old: &str, new: &str| {
        let text = MIXED.join("\n");
        assert!(text.contains(old));
        fs::write(&from, text.replace(old, new)).expect("the orders can be written");
        verify(&folder, &pipeline, &from)
    };
    // The same text.
    other(r#"{"BOOL":true}"#, r#"{"S":"true"}"#).expect(0);
    other(r#"{"BOOL":true}"#, r#"{"BOOL":false}"#).expect(4);
    other(r#","state":{"NULL":true}"#, "").expect(4);
    other(r#"{"N":"7"}"#, r#"{"S":"7"}"#).expect(4);
    other(r#""tmp_2":{"S":"x"}"#, r#""tmp_2":{"S":"y"}"#).expect(4);
}

#[test]
fn an_attribute_that_cannot_become_text_ends_the_run_before_anything_is_written() {
    let (folder, pipeline, from) = folder_of("mixed = \"text\"\n", &MIXED);
    let ran = folder.run(&pipeline, &[&from], &[folder.sink("parquet", "lake")], &[]).expect(1);
    for told in ["attribute: addr", "found: 1 S, 1 N, 1 M", "expected: S, N and BOOL alone", "`json` or `split`"] {
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
    assert!(!folder.path().join("lake/Order").exists());
}

#[test]
fn a_kept_schema_has_what_was_declared_of_null_and_mixed_types() {
    let (folder, pipeline, from) = folder_of(SHARED, &MIXED);
    let (kept, again) = (folder.join("schema.json"), folder.join("again.json"));
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "first")], &["--schema-out", &kept]).expect(0);
    let schema = fs::read_to_string(&kept).expect("the schema is there");
    assert!(schema.contains("is_null") && schema.contains("any_text"), "{schema}");
    fs::write(&from, MIXED[2]).expect("the orders can be written");
    let pinned = ["--schema", &kept, "--schema-out", &again];
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "lake")], &pinned).expect(0);
    assert_eq!(fs::read_to_string(&again).expect("the schema is there"), schema);
    assert_eq!(described(&folder)[..3], ["state: VARCHAR, string = -", "state__null: BOOLEAN, bool = -", "flag: VARCHAR, string = 1.5"]);
    verify(&folder, &pipeline, &from).expect(0);
}

/// Names that engines do not take, or take for one, in maps too.
const NAMES: [&str; 2] = [
    r#"{"Item":{"PK":{"S":"O#1"},"createdAt":{"S":"a"},"createdat":{"S":"b"},"GSI1-PK":{"S":"c"},"meta":{"M":{"zipCode":{"S":"1"},"zipcode":{"N":"2"},"a b":{"BOOL":true}}}}}"#,
    r#"{"Item":{"PK":{"S":"O#2"},"createdAt":{"N":"1"},"meta":{"M":{"zipCode":{"S":"3"}}}}}"#,
];

#[test]
fn the_names_of_a_dialect_are_in_the_files_and_verify_finds_the_attributes_again() {
    let (folder, pipeline, from) = folder_of("", &NAMES);
    let lake = folder.sink("parquet", "lake");
    folder.run(&pipeline, &[&from], std::slice::from_ref(&lake), &["--dialect", "athena"]).expect(0);
    assert_eq!(
        described(&folder),
        [
            "pk: VARCHAR, string = O#1 | O#2",
            "gsi1_pk: VARCHAR, string = c | -",
            "createdat_: VARCHAR, string = a | -",
            "createdat___n: BIGINT, int64 = - | 1",
            "createdat: VARCHAR, string = b | -",
            "meta: STRUCT(a_b BOOLEAN, zipcode_ VARCHAR, zipcode BIGINT), struct<a_b: bool, zipcode_: string, zipcode: int64> = \
             {'a_b': true, 'zipcode_': 1, 'zipcode': 2} | {'a_b': NULL, 'zipcode_': 3, 'zipcode': NULL}",
        ]
    );
    verify(&folder, &pipeline, &from).expect(0);
    let manifest = fs::read_to_string(folder.path().join("lake/_dynamorph.json")).expect("the manifest is there");
    for told in [r#""dialect": "athena""#, r#""attribute": "GSI1-PK""#, r#""attribute": "zipCode""#] {
        assert!(manifest.contains(told), "{told}\n{manifest}");
    }
    fs::write(&from, NAMES.join("\n").replace(r#""zipCode":{"S":"3"}"#, r#""zipCode":{"S":"4"}"#)).expect("the orders can be written");
    let told = verify(&folder, &pipeline, &from).expect(4);
    assert!(told.stdout.contains("meta.zipCode") || told.stdout.contains("zipCode"), "{}", told.stdout);
}

#[test]
fn a_schema_keeps_its_dialect_and_another_one_is_refused() {
    let (folder, pipeline, from) = folder_of("", &NAMES);
    let (kept, again) = (folder.join("schema.json"), folder.join("again.json"));
    let first = ["--dialect", "athena", "--schema-out", &kept];
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "first")], &first).expect(0);
    let sinks = [folder.sink("parquet", "lake")];
    folder.run(&pipeline, &[&from], &sinks, &["--schema", &kept, "--schema-out", &again]).expect(0);
    assert_eq!(fs::read_to_string(&again).expect("it is there"), fs::read_to_string(&kept).expect("it is there"));
    assert!(described(&folder)[5].starts_with("meta: STRUCT(a_b BOOLEAN, zipcode_ VARCHAR, zipcode BIGINT)"));
    let other = ["--schema", &kept, "--dialect", "spark", "--overwrite"];
    let ran = folder.run(&pipeline, &[&from], &sinks, &other).expect(2);
    assert!(ran.stderr.contains("found: athena") && ran.stderr.contains("expected: spark"), "{}", ran.stderr);
    let ran = folder.run(&pipeline, &[&from], &[folder.sink("batch", "out")], &["--dialect", "athena"]).expect(2);
    assert!(ran.stderr.contains("a dialect is for the names of columns"), "{}", ran.stderr);
}

#[test]
fn what_is_declared_and_the_names_of_a_dialect_are_the_same_however_late_an_item_tells_them() {
    let declared = "mixed = { \"*\" = \"json\", flag = \"text\", createdAt = \"split\" }\nnulls = true\nrest = [\"tmp_*\"]\n";
    let lines = [MIXED[0], NAMES[1], MIXED[1], NAMES[0], MIXED[2]];
    let (folder, pipeline, _) = folder_of(declared, &lines);
    let parts: Vec<_> = (0..lines.len()).map(|at| folder.join(&format!("{at}.json"))).collect();
    lines.iter().zip(&parts).for_each(|(line, file)| fs::write(file, line).expect("the orders can be written"));
    let from: Vec<&str> = parts.iter().map(String::as_str).collect();
    let columns = |name: &str, more: &[&str]| {
        let more = [&["--dialect", "athena", "--restart"], more].concat();
        folder.run(&pipeline, &from, &[folder.sink("parquet", name)], &more).expect(0);
        let mut lines = run_program("describe_parquet.py", &[], &[&folder.path().join(name)]);
        let (work, lake) = (folder.join("verify"), folder.sink("parquet", name));
        let mut args = vec!["verify", &pipeline, "--against", &lake, "--work", &work, "--quiet"];
        args.extend(from.iter().flat_map(|file| ["--from", *file]));
        dynamorph(&args).expect(0);
        for line in &mut lines {
            *line = line.split_once(" = ").expect("a line has values").0.to_owned();
        }
        lines
    };
    let one = columns("one", &[]);
    assert_eq!(columns("several", &["--unit-size", "1"]), one);
    assert_eq!(
        one,
        [
            "pk: VARCHAR, string",
            "gsi1_pk: VARCHAR, string",
            "addr: VARCHAR, string",
            "createdat_: VARCHAR, string",
            "createdat___n: BIGINT, int64",
            "createdat: VARCHAR, string",
            "flag: VARCHAR, string",
            "meta: STRUCT(a_b BOOLEAN, zipcode_ VARCHAR, zipcode BIGINT), struct<a_b: bool, zipcode_: string, zipcode: int64>",
            "state: VARCHAR, string",
            "state__null: BOOLEAN, bool",
            "zone: VARCHAR, string",
            "__rest: VARCHAR, string",
        ]
    );
}

#[test]
fn items_with_a_value_of_a_rarer_type_are_rejects_where_that_is_declared_and_verify_expects_them_nowhere() {
    let orders: Vec<String> = ["{\"N\":\"1\"}", "{\"S\":\"x\"}", "{\"N\":\"2.5\"}", "{\"NULL\":true}", "{\"L\":[]}"]
        .iter()
        .enumerate()
        .map(|(at, value)| format!("{{\"Item\":{{\"PK\":{{\"S\":\"O#{at}\"}},\"total\":{value}}}}}"))
        .collect();
    let orders: Vec<&str> = orders.iter().map(String::as_str).collect();
    let (folder, pipeline, from) = folder_of("mixed = { total = \"reject-minority\" }\n", &orders);
    let (work, lake) = (folder.join("work"), folder.sink("parquet", "lake"));
    let ran = dynamorph(&["run", &pipeline, "--from", &from, "--to", &lake, "--work", &work]).expect(3);
    assert!(ran.stderr.contains("Order: items with `total` of another type than N are rejected: 2 N, 1 S, 1 L"), "{}", ran.stderr);
    assert!(ran.stdout.contains("read 5 = written 3 + dropped 0 + rejected 2"), "{}", ran.stdout);
    assert_eq!(described(&folder), ["PK: VARCHAR, string = O#0 | O#2 | O#3", "total: DECIMAL(2,1), decimal128(2, 1) = 1.0 | 2.5 | -"]);
    let rejects = files(&folder.path().join("work/rejects"));
    let rejects: String = rejects.into_iter().map(|(_, text)| String::from_utf8(text).expect("it is text")).collect();
    assert_eq!(rejects.lines().count(), 2);
    for told in ["mixed-type", "`total` is of type S, and of type N in most items", "`total` is of type L", "O#1", "O#4"] {
        assert!(rejects.contains(told), "{told}\n{rejects}");
    }
    let found = verify(&folder, &pipeline, &from).expect(0);
    assert!(!found.stdout.contains("not compared"), "{}", found.stdout);
    // An item that is missing is found all the same.
    fs::write(&from, [&orders[..], &[r#"{"Item":{"PK":{"S":"O#9"},"total":{"N":"3"}}}"#]].concat().join("\n")).expect("it can be written");
    verify(&folder, &pipeline, &from).expect(4);
}

#[test]
fn settings_of_an_entity_that_no_item_is_of_are_told_with_the_name_that_was_meant() {
    let (folder, pipeline, from) = folder("sort = [\"price\"]\n[entity.Ordre.parquet]\ntypes = { price = \"double\" }\n[entity.Sum]\n");
    let (work, lake) = (folder.join("work"), folder.sink("parquet", "lake"));
    let run = |more: &[&str]| {
        let args = ["run", &pipeline, "--from", &from, "--to", &lake, "--work", &work, "--restart", "--overwrite"];
        dynamorph(&[&args, more].concat()).expect(0)
    };
    let told = "entity `Ordre` has settings for Parquet, and no item is of it; did you mean `Order`?";
    let ran = run(&[]);
    assert!(ran.stderr.contains(told) && !ran.stderr.contains("`Sum`"), "{}", ran.stderr);
    // A part of the export says nothing of the rest.
    assert!(!run(&["--limit", "1"]).stderr.contains("Ordre"));
    fs::write(&pipeline, format!("{HEAD}[entity.Invoice.parquet]\nsort = [\"price\"]\n")).expect("the pipeline can be written");
    let ran = run(&[]);
    assert!(ran.stderr.contains("entity `Invoice` has settings for Parquet, and no item is of it\n"), "{}", ran.stderr);
}
