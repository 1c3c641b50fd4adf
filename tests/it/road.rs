//! The whole road, as a person walks it: an export is carried into live tables, proved, damaged, found out, and taken back.

use std::process::Command;

use serde_json::{Value, json};

use crate::program::{Folder, Ran, command};
use crate::support::Server;

const PIPELINE: &str = "pipelines/docs-split-comments.toml";
const EXPORT: &str = "sample_exports/docs";

/// The program with credentials for a server that takes any.
fn dynamorph(args: &[&str], url: &str) -> Ran {
    let mut command: Command = command(args);
    command.args(["--endpoint-url", url, "--quiet"]);
    command.envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]);
    command.envs([("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")]);
    Ran::of(command.output().expect("the program starts"))
}

fn key(item: &Value, names: [&str; 2]) -> Value {
    json!({ names[0]: item[names[0]], names[1]: item[names[1]] })
}

#[test]
fn an_export_is_loaded_verified_damaged_found_out_and_taken_back() {
    let (server, folder) = (Server::start(), Folder::new());
    let (url, work, proof) = (server.url(), folder.join("work"), folder.join("proof"));

    let load = ["run", PIPELINE, "--from", EXPORT, "--to", "dynamodb", "--create-tables", "--undo-log", "--work", &work];
    dynamorph(&load, &url).expect(0);
    assert_eq!((server.items("docs").len(), server.items("comments").len()), (35, 74));

    let verify = ["verify", PIPELINE, "--from", EXPORT, "--against", "dynamodb", "--work", &proof];
    dynamorph(&verify, &url).expect(0);

    // Somebody deletes one, changes one and adds one.
    let (docs, comments) = (["EntityRef", "Detail"], ["DocRef", "Detail"]);
    let (lost, mut changed) = (server.items("comments").swap_remove(7), server.items("docs").swap_remove(5));
    let request = json!({ "TableName": "comments", "Key": key(&lost, comments) });
    server.database.delete_item(serde_json::from_value(request).expect("a request")).expect("it is deleted");
    let restored = changed.clone();
    changed["mark"] = json!({ "S": "somebody was here" });
    let mut added = lost.clone();
    added["Detail"] = json!({ "S": "CMT#9999#added" });
    for (table, item) in [("docs", &changed), ("comments", &added)] {
        let request = json!({ "TableName": table, "Item": item });
        server.database.put_item(serde_json::from_value(request).expect("a request")).expect("it is put");
    }
    let found = dynamorph(&verify, &url).expect(4);
    let differences = std::fs::read_to_string(folder.path().join("proof/differences.jsonl")).expect("the differences");
    let mut kinds: Vec<(String, Value)> = differences
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a difference is JSON"))
        .map(|difference| (difference["kind"].as_str().expect("a kind").to_owned(), difference["key"].clone()))
        .collect();
    kinds.sort_by_key(|(kind, _)| kind.clone());
    let expected = [("different", key(&changed, docs)), ("extra", key(&added, comments)), ("missing", key(&lost, comments))]
        .map(|(kind, key)| (kind.to_owned(), key));
    assert_eq!(kinds, expected);
    for item in [&changed, &added, &lost] {
        let named = item["Detail"]["S"].as_str().expect("a sort key");
        assert!(found.stdout.contains(named), "{named} is not in: {}", found.stdout);
    }
    assert!(found.stdout.contains("somebody was here"), "{}", found.stdout);

    // Undo takes back what is still the run's own, and names the rest.
    let undone = dynamorph(&["undo", &work], &url).expect(3);
    assert_eq!((server.items("docs"), server.items("comments")), (vec![changed.clone()], vec![added.clone()]), "{}", undone.stdout);

    // Once the damage is mended by hand, the same command takes back the rest.
    let request = json!({ "TableName": "docs", "Item": restored });
    server.database.put_item(serde_json::from_value(request).expect("a request")).expect("it is put");
    let request = json!({ "TableName": "comments", "Key": key(&added, comments) });
    server.database.delete_item(serde_json::from_value(request).expect("a request")).expect("it is deleted");
    dynamorph(&["undo", &work], &url).expect(0);
    assert_eq!((server.items("docs"), server.items("comments")), (vec![], vec![]));
}
