//! How rows lie in the files of `parquet:`: in folders named after their values, sorted, in row groups and files of the sizes that were
//! asked for; what engines see then, and that `verify` finds every item.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::declared::{folder_of, verify};
use crate::program::{Folder, dynamorph, files};
use crate::python::run_program;

/// Values of every type that names a folder, some of them odd.
const ORDERS: [&str; 7] = [
    r#"{"Item":{"PK":{"S":"O#1"},"state":{"S":"new"},"paid":{"BOOL":true},"total":{"N":"7"}}}"#,
    r#"{"Item":{"PK":{"S":"O#2"},"state":{"S":"a/b=c: 50%"},"paid":{"BOOL":false},"total":{"N":"12.5"}}}"#,
    r#"{"Item":{"PK":{"S":"O#3"},"state":{"NULL":true},"total":{"N":"3"}}}"#,
    r#"{"Item":{"PK":{"S":"O#4"},"paid":{"BOOL":true}}}"#,
    r#"{"Item":{"PK":{"S":"O#5"},"state":{"N":"1.50"},"paid":{"BOOL":true},"total":{"N":"1"}}}"#,
    r#"{"Item":{"PK":{"S":"O#6"},"state":{"S":""},"paid":{"BOOL":true},"note":{"S":"x"}}}"#,
    r#"{"Item":{"PK":{"S":"O#0"},"state":{"S":"new"},"paid":{"BOOL":true},"total":{"N":"1E2"}}}"#,
];

const DECLARED: &str = "partition = [\"state\", \"paid\"]\nsort = [\"total\", \"PK\"]\nnulls = true\nnames = { state = \"status\" }\n";

#[test]
fn engines_find_in_the_folders_what_names_them_and_verify_finds_every_item() {
    let (folder, pipeline, from) = folder_of(DECLARED, &ORDERS);
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "lake")], &[]).expect(0);
    let dataset = folder.path().join("lake/Order");
    let lines = run_program("describe_layout.py", &[], &[&dataset, Path::new("status"), Path::new("paid")]);
    let default = "__HIVE_DEFAULT_PARTITION__";
    assert_eq!(
        lines,
        [
            "status=1.5/paid=true/part-u00001-0001.parquet: 1 by total,PK",
            &format!("status={default}/paid={default}/part-u00001-0005.parquet: 1 by total,PK"),
            // No attribute and an empty text share a folder; each file says which it holds.
            &format!("status={default}/paid=true/part-u00001-0002.parquet: 1 by total,PK"),
            &format!("status={default}/paid=true/part-u00001-0004.parquet: 1 by total,PK"),
            "status=a%2Fb%3Dc%3A 50%25/paid=false/part-u00001-0000.parquet: 1 by total,PK",
            "status=new/paid=true/part-u00001-0003.parquet: 2 by total,PK",
            "O#0 | - | 100.0 | new | true",
            "O#1 | - | 7.0 | new | true",
            "O#2 | - | 12.5 | a/b=c: 50% | false",
            "O#3 | - | 3.0 | - | -",
            "O#4 | - | - | - | true",
            "O#5 | - | 1.0 | 1.5 | true",
            "O#6 | x | - | - | true",
        ]
    );
    verify(&folder, &pipeline, &from).expect(0);
    let other = |old: &str, new: &str| {
        let text = ORDERS.join("\n");
        assert!(text.contains(old));
        fs::write(&from, text.replace(old, new)).expect("the orders can be written");
        verify(&folder, &pipeline, &from)
    };
    other(r#"{"N":"1.50"}"#, r#"{"N":"1.5"}"#).expect(0);
    other(r#"{"N":"1.50"}"#, r#"{"S":"1.5"}"#).expect(4);
    other(r#""state":{"NULL":true},"#, "").expect(4);
    other(r#""state":{"S":""},"#, "").expect(4);
    other("50%", "51%").expect(4);
}

#[test]
fn the_files_of_partitions_do_not_depend_on_the_number_of_workers_and_are_replaced_as_a_whole() {
    let (folder, pipeline, _) = folder_of(DECLARED, &ORDERS);
    let exports: Vec<_> = (0..3).map(|at| folder.join(&format!("orders-{at}.json"))).collect();
    for (at, export) in exports.iter().enumerate() {
        let lines: Vec<_> = ORDERS.iter().map(|order| order.replace("O#", &format!("O#{at}-"))).collect();
        fs::write(export, lines.join("\n")).expect("the orders can be written");
    }
    let from: Vec<_> = exports.iter().map(String::as_str).collect();
    let written = |name: &str, more: &[&str]| {
        folder.run(&pipeline, &from, &[folder.sink("parquet", name)], &[more, &["--unit-size", "1", "--restart"]].concat()).expect(0);
        files(&folder.path().join(name)).into_iter().collect::<BTreeMap<_, _>>()
    };
    let one = written("lake", &["--jobs", "1"]);
    assert!(one.len() >= 18, "{:?}", one.keys());
    assert!(one == written("two", &["--jobs", "4"]));
    verify_all(&folder, &pipeline, &from).expect(0);
    fs::write(&exports[1], "").expect("the orders can be written");
    fs::write(&exports[2], "").expect("the orders can be written");
    let fewer = written("lake", &["--overwrite"]);
    assert!(fewer.len() < one.len() && fewer.keys().all(|path| !path.to_string_lossy().contains("u00002")), "{:?}", fewer.keys());
}

fn verify_all(folder: &Folder, pipeline: &str, from: &[&str]) -> crate::program::Ran {
    let (work, lake) = (folder.join("verify"), folder.sink("parquet", "lake"));
    let mut args = vec!["verify", pipeline, "--against", &lake, "--work", &work, "--quiet"];
    args.extend(from.iter().flat_map(|from| ["--from", from]));
    dynamorph(&args)
}

#[test]
fn a_value_that_names_no_folder_ends_the_run_with_its_place_and_nothing_is_written() {
    let (folder, pipeline, from) = folder_of("partition = [\"state\"]\n", &[ORDERS[0], r#"{"Item":{"PK":{"S":"O#9"},"state":{"L":[]}}}"#]);
    let ran = folder.run(&pipeline, &[&from], &[folder.sink("parquet", "lake")], &[]).expect(1);
    for told in ["a value that cannot name one", "attribute: state", "type: L", "line: 2", "orders.json", "take it out of `partition`"] {
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
    assert!(!folder.path().join("lake/Order").exists());
}

#[test]
fn row_groups_and_files_have_the_sizes_that_were_asked_for() {
    let order = |n: usize| format!(r#"{{"Item":{{"PK":{{"S":"O#{n}"}},"note":{{"S":"{}"}}}}}}"#, "x".repeat(500));
    let orders: Vec<_> = (0..3000).map(order).collect();
    let (folder, pipeline, from) = folder_of("sort = [\"PK\"]\n", &orders.iter().map(String::as_str).collect::<Vec<_>>());
    let row_groups = |name: &str, more: &[&str]| {
        folder.run(&pipeline, &[&from], &[folder.sink("parquet", name)], &[more, &["--restart"]].concat()).expect(0);
        let lines = run_program("describe_layout.py", &[], &[&folder.path().join(name).join("Order")]);
        let files = lines.iter().filter_map(|line| line.strip_suffix(" by PK")?.split_once(": "));
        files.map(|(_, rows)| rows.split(", ").count()).collect::<Vec<_>>()
    };
    assert_eq!(row_groups("default", &[]), [1]);
    let small = row_groups("small", &["--row-group-size", "1KiB"]);
    assert!(small.len() == 1 && small[0] > 2, "{small:?}");
    let many = row_groups("many", &["--row-group-size", "1KiB", "--file-size", "1KiB", "--zstd-level", "9"]);
    assert!(many.len() > 1, "{many:?}");
    let sink = [folder.sink("parquet", "wrong")];
    for (wrong, told) in [
        (&["--row-group-size", "2GiB"][..], "a Parquet row group cannot have this size"),
        (&["--file-size", "1"], "expected: 1KiB to 64GiB"),
        (&["--zstd-level", "23"], "23 is not in 1..=22"),
    ] {
        let ran = folder.run(&pipeline, &[&from], &sink, wrong).expect(2);
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
    let ran = folder.run(&pipeline, &[&from], &[folder.sink("batch", "out")], &["--zstd-level", "3"]).expect(2);
    assert!(ran.stderr.contains("an option of the files of parquet: and iceberg:"), "{}", ran.stderr);
}
