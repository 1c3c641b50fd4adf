//! Refused items: nothing of them is lost, both sides of a collision are named, and they can be run again.

use std::fs;

use crate::program::{Folder, command, files};

/// A pipeline over `PK`/`SK` items, with this body.
fn pipeline(folder: &Folder, body: &str) -> String {
    let path = folder.join("pipeline.toml");
    let head = "version = 1\n[source]\nkey = { partition = \"PK\", sort = \"SK\" }\ntype = \"EntityType\"\n";
    fs::write(&path, format!("{head}{body}")).expect("the pipeline can be written");
    path
}

fn data(folder: &Folder, name: &str, lines: &[&str]) -> String {
    let path = folder.join(name);
    fs::write(&path, lines.join("\n")).expect("the data can be written");
    path
}

fn rejects(folder: &Folder) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(folder.path().join("work/rejects/unit-00001.jsonl")).expect("there is a rejects file");
    text.lines().map(|line| serde_json::from_str(line).expect("a reject is JSON")).collect()
}

const DOCS: &str = r#"
[table.docs]
key = { partition = "PK", sort = "SK" }
[entity.Document]
match = { PK = "WS#{ws}", SK = "DOC#{doc}" }
to = "docs"
key = { PK = "WS#{ws}", SK = "DOC#{doc | pad(4)}" }
"#;

#[test]
fn items_with_equal_keys_after_rekeying_are_both_rejected_and_name_each_other() {
    let folder = Folder::new();
    let pipeline = pipeline(&folder, DOCS);
    let first = data(
        &folder,
        "a.json",
        &[
            r#"{"Item":{"PK":{"S":"WS#a"},"SK":{"S":"DOC#7"},"EntityType":{"S":"Document"}}}"#,
            r#"{"Item":{"PK":{"S":"WS#a"},"SK":{"S":"DOC#8"},"EntityType":{"S":"Document"}}}"#,
        ],
    );
    let second = data(&folder, "b.json", &[r#"{"Item":{"PK":{"S":"WS#a"},"SK":{"S":"DOC#07"},"EntityType":{"S":"Document"}}}"#]);
    folder.run(&pipeline, &[&first, &second], &[folder.sink("import", "out")], &[]).expect(3);
    let found = rejects(&folder);
    assert_eq!(found.len(), 2);
    for (reject, other) in found.iter().zip(["b.json:1", "a.json:1"]) {
        assert_eq!(reject["Reject"]["stage"], "collision");
        let reason = reject["Reject"]["reason"].as_str().expect("a reject has a reason");
        assert!(reason.contains(other), "{reason} should name {other}");
    }
    let report: serde_json::Value = serde_json::from_slice(&fs::read(folder.path().join("work/report.json")).unwrap()).unwrap();
    assert_eq!(report["total"]["written"], 1);
    assert_eq!(report["total"]["rejected"], 2);
}

#[test]
fn numeric_keys_collide_by_value() {
    let folder = Folder::new();
    let pipeline = pipeline(
        &folder,
        r#"
[table.docs]
key = { partition = "id" }
types = { id = "N" }
[entity.Document]
to = "docs"
key = { id = "{number}" }
"#,
    );
    let line = |number: &str| {
        format!(r#"{{"Item":{{"PK":{{"S":"{number}"}},"SK":{{"S":"x"}},"EntityType":{{"S":"Document"}},"number":{{"S":"{number}"}}}}}}"#)
    };
    let lines = [line("1000"), line("1E3"), line("1000.0"), line("1001")];
    let from = data(&folder, "a.json", &lines.each_ref().map(String::as_str));
    folder.run(&pipeline, &[&from], &[folder.sink("batch", "out")], &[]).expect(3);
    assert_eq!(rejects(&folder).len(), 3);
}

#[test]
fn rejects_hold_the_item_as_read_and_run_again_when_the_pipeline_is_mended() {
    let folder = Folder::new();
    let broken = pipeline(&folder, &DOCS.replace("pad(4)", "pad(1)"));
    let long = r#"{"PK":{"S":"WS#a"}, "SK":{"S":"DOC#12"},"EntityType":{"S":"Document"},"n":{"N":"1.50"},"é\u00e9":{"SS":["b","a"]}}"#;
    let line = format!("{{\"Item\": {long} }}");
    let from = data(&folder, "a.json", &[&line, r#"{"Item":{"PK":{"S":"WS#a"},"SK":{"S":"DOC#7"},"EntityType":{"S":"Document"}}}"#]);
    folder.run(&broken, &[&from], &[folder.sink("import", "out")], &[]).expect(3);
    let text = fs::read_to_string(folder.path().join("work/rejects/unit-00001.jsonl")).unwrap();
    assert!(text.starts_with(&format!("{{\"Item\":{long},\"Reject\":{{")), "{text}");
    let kept = folder.join("kept.jsonl");
    fs::write(&kept, text).unwrap();
    let mended = pipeline(&folder, DOCS);
    folder.run(&mended, &[&kept], &[folder.sink("batch", "again")], &[]).expect(0);
    let written = files(&folder.path().join("again/docs"));
    assert_eq!(written.len(), 1);
    let batch: serde_json::Value = serde_json::from_slice(&written[0].1).unwrap();
    let item = &batch["docs"][0]["PutRequest"]["Item"];
    assert_eq!(item["SK"]["S"], "DOC#0012");
    assert_eq!(item["n"]["N"], "1.50");
    assert_eq!(item["éé"]["SS"], serde_json::json!(["b", "a"]));
}

#[test]
fn lines_that_are_no_items_are_kept_as_they_are_and_can_be_read_again() {
    let folder = Folder::new();
    let pipeline = pipeline(&folder, DOCS);
    let from = folder.join("a.json");
    fs::write(&from, b"{\"Item\":\n\n\xff\xfe\n{\"Item\":{\"PK\":{\"S\":\"WS#a\"},\"SK\":{\"S\":\"DOC#7\"}}}\n").unwrap();
    folder.run(&pipeline, &[&from], &[folder.sink("import", "out")], &[]).expect(3);
    let found = rejects(&folder);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["Raw"], "{\"Item\":");
    assert_eq!(found[0]["Reject"]["line"], 1);
    assert_eq!(found[1]["RawBase64"], "//4=");
    assert_eq!(found[1]["Reject"]["line"], 3);
    let again = Folder::new();
    let kept = folder.join("work/rejects/unit-00001.jsonl");
    let ran = again.run(&pipeline, &[&kept], &[again.sink("import", "out")], &[]).expect(3);
    for line in [
        "all items were rejected: is this the right export for the pipeline?\n",
        "decode: get the item from the source; a replay refuses it",
    ] {
        assert!(ran.stdout.contains(line), "{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("mend the pipeline"), "{}", ran.stdout);
    let second = rejects(&again);
    assert_eq!([&second[0]["Raw"], &second[1]["RawBase64"]], [&found[0]["Raw"], &found[1]["RawBase64"]]);
}

#[test]
fn an_item_with_several_outputs_is_carried_whole_or_rejected_whole() {
    let folder = Folder::new();
    let pipeline = pipeline(
        &folder,
        r#"
[table.users]
key = { partition = "id" }
[table.profiles]
key = { partition = "id" }
[entity.User]
to = "users"
key = { id = "USER#{PK}" }
[[entity.User.emit]]
entity = "Profile"
to = "profiles"
key = { id = "PROFILE#{nick}" }
"#,
    );
    let from = data(
        &folder,
        "a.json",
        &[
            r#"{"Item":{"PK":{"S":"1"},"SK":{"S":"x"},"EntityType":{"S":"User"},"nick":{"S":"ann"}}}"#,
            r#"{"Item":{"PK":{"S":"2"},"SK":{"S":"x"},"EntityType":{"S":"User"}}}"#,
        ],
    );
    folder.run(&pipeline, &[&from], &[folder.sink("import", "out")], &[]).expect(3);
    let report: serde_json::Value = serde_json::from_slice(&fs::read(folder.path().join("work/report.json")).unwrap()).unwrap();
    let user = &report["entities"][0];
    assert_eq!([&user["read"], &user["fanned_out"], &user["written"], &user["rejected"]], [2, 1, 2, 1]);
    assert_eq!(report["rejects"]["count"], 1);
    assert_eq!(report["sinks"][0]["items"], serde_json::json!({"User": 1, "Profile": 1}));
}

#[test]
fn an_entity_without_a_table_needs_a_parquet_sink() {
    let folder = Folder::new();
    let pipeline = pipeline(&folder, "[entity.Document]\n");
    let from = data(&folder, "a.json", &[r#"{"Item":{"PK":{"S":"1"},"SK":{"S":"x"},"EntityType":{"S":"Document"}}}"#]);
    let ran = folder.run(&pipeline, &[&from], &[folder.sink("import", "out")], &[]).expect(2);
    assert!(ran.stderr.contains("entity `Document` has no table, and no sink takes it"), "{}", ran.stderr);
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "lake")], &[]).expect(0);
}

#[test]
fn rejects_that_are_run_again_are_not_emptied_with_the_work_folder_they_lie_in() {
    let folder = Folder::new();
    let path = pipeline(&folder, &DOCS.replace("pad(4)", "pad(1)"));
    let from = data(&folder, "a.json", &[r#"{"Item":{"PK":{"S":"WS#a"},"SK":{"S":"DOC#12"},"EntityType":{"S":"Document"}}}"#]);
    folder.run(&path, &[&from], &[folder.sink("import", "out")], &[]).expect(3);
    let kept = folder.join("work/rejects/unit-00001.jsonl");
    let ran = folder.run(&path, &[&kept], &[folder.sink("import", "again")], &[]).expect(2);
    assert!(ran.stderr.contains("which the run empties at its start"), "{}", ran.stderr);
    assert_eq!(rejects(&folder).len(), 1);
    // Without --work the program takes another folder by itself.
    let again = |from: &str, out: &str| {
        let sink = folder.sink("import", out);
        let output = command(&["run", &path, "--quiet", "--from", from, "--to", &sink]).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    };
    again(&from, "one");
    again(".dynamorph/pipeline/rejects/unit-00001.jsonl", "two");
    again(".dynamorph/pipeline.replay/rejects/unit-00001.jsonl", "three");
    for work in ["pipeline", "pipeline.replay", "pipeline.replay.replay"] {
        assert!(folder.path().join(".dynamorph").join(work).join("rejects/unit-00001.jsonl").is_file());
    }
    // So do the rejects of a folder that --work named.
    again("work/rejects/unit-00001.jsonl", "four");
    again(&folder.join("work.replay/rejects/unit-00001.jsonl"), "five");
    for work in ["work", "work.replay", "work.replay.replay"] {
        assert!(folder.path().join(work).join("rejects/unit-00001.jsonl").is_file());
    }
}

#[test]
fn rejects_of_several_sources_are_kept_apart() {
    let folder = Folder::new();
    let path = folder.join("pipeline.toml");
    let pipeline = r#"
version = 1
[source.users]
key = { partition = "id" }
entity = "User"
[source.orders]
key = { partition = "id" }
entity = "Order"
[table.one]
key = { partition = "PK" }
type = "T"
[entity.User]
to = "one"
key = { PK = "U#{name}" }
[entity.Order]
to = "one"
key = { PK = "O#{name}" }
"#;
    fs::write(&path, pipeline).unwrap();
    let users = format!("users={}", data(&folder, "u.json", &[r#"{"Item":{"id":{"S":"1"}}}"#]));
    let orders = format!("orders={}", data(&folder, "o.json", &[r#"{"Item":{"id":{"S":"2"}}}"#]));
    folder.run(&path, &[&users, &orders], &[folder.sink("import", "out")], &[]).expect(3);
    for (source, id) in [("users", "1"), ("orders", "2")] {
        let text = fs::read_to_string(folder.join(&format!("work/rejects/unit-00001-{source}.jsonl"))).unwrap();
        let reject: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(reject["Item"]["id"]["S"], id);
        assert_eq!(reject["Reject"]["source"], source);
    }
    // One of them alone is run again; a whole export without the other would have been a slip.
    let kept = folder.join("kept.jsonl");
    fs::rename(folder.path().join("work/rejects/unit-00001-users.jsonl"), &kept).unwrap();
    folder.run(&path, &[&format!("users={kept}")], &[folder.sink("import", "again")], &[]).expect(3);
    let whole = folder.run(&path, &["users=sample_exports/docs"], &[folder.sink("import", "third")], &[]).expect(2);
    assert!(whole.stderr.contains("no export is named for source `orders`"), "{}", whole.stderr);
}

#[test]
fn the_rejects_of_an_earlier_run_are_moved_aside_and_never_removed() {
    let folder = Folder::new();
    let path = pipeline(&folder, DOCS);
    let from = data(&folder, "a.json", &["no item"]);
    folder.run(&path, &[&from], &[folder.sink("import", "out")], &[]).expect(3);
    let cut = folder.join("cut.json.gz");
    fs::write(&cut, [0x1f, 0x8b, 8, 0]).unwrap();
    folder.run(&path, &[&cut], &[folder.sink("import", "other")], &[]).expect(1);
    assert_eq!(rejects(&folder).len(), 1);
    let good = data(&folder, "b.json", &[r#"{"Item":{"PK":{"S":"WS#a"},"SK":{"S":"DOC#7"}}}"#]);
    folder.run(&path, &[&good], &[folder.sink("import", "third")], &[]).expect(0);
    assert!(!folder.path().join("work/rejects").exists());
    assert!(folder.path().join("work/rejects.1/unit-00001.jsonl").is_file());
}

#[test]
fn a_type_that_is_no_text_is_not_written_over() {
    let folder = Folder::new();
    let path = pipeline(&folder, DOCS);
    let line = |kind: &str| format!(r#"{{"Item":{{"PK":{{"S":"WS#a"}},"SK":{{"S":"DOC#7"}},"EntityType":{kind}}}}}"#);
    let from = data(&folder, "a.json", &[&line(r#"{"M":{"a":{"S":"x"}}}"#)]);
    folder.run(&path, &[&from], &[folder.sink("import", "out")], &[]).expect(3);
    assert!(rejects(&folder)[0]["Reject"]["reason"].as_str().unwrap().contains("its `EntityType` is of type M, not S"));
    let from = data(&folder, "b.json", &[&line(r#"{"S":"ArchivedDocument"}"#)]);
    let ran = folder.run(&path, &[&from], &[folder.sink("import", "again")], &[]).expect(0);
    assert!(ran.stdout.contains("1 had a type that no entity is called"), "{}", ran.stdout);
}
