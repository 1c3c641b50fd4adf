//! Every pipeline in `pipelines/`, run over its sample: what users see is a golden file, and what the pipeline is for is asserted here.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use dynamorph::codec;
use dynamorph::model::{Arena, Format};
use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value, json};

use crate::program::{Folder, dynamorph, files, golden, root};

/// A pipeline with the exports it is for and the sinks that fit it.
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    pub(crate) from: &'static [&'static str],
    pub(crate) sinks: &'static [&'static str],
}

const DOCS: &[&str] = &["sample_exports/docs"];
const ALL_FILES: &[&str] = &["parquet", "import", "batch"];

pub(crate) const SHOWN: [Shown; 6] = [
    Shown { name: "docs-backfill-type", from: DOCS, sinks: ALL_FILES },
    Shown { name: "docs-sparse-feed", from: DOCS, sinks: ALL_FILES },
    Shown { name: "docs-split-comments", from: DOCS, sinks: ALL_FILES },
    Shown {
        name: "sql-to-one-table",
        from: &["workspaces=sample_exports/sql-style/workspaces", "projects=sample_exports/sql-style/projects"],
        sinks: ALL_FILES,
    },
    // Its entities have no table, so only Parquet takes them.
    Shown { name: "warehouse", from: DOCS, sinks: &["parquet"] },
    Shown { name: "workspaces-shard-hot", from: &["sample_exports/workspaces"], sinks: ALL_FILES },
];

/// Runs a pipeline over its sample into `FOLDER/SINK`; gives the folder and what was printed.
pub(crate) fn carry(name: &str) -> (Folder, String) {
    carry_with(name, &[])
}

/// [`carry`] with more arguments.
pub(crate) fn carry_with(name: &str, more: &[&str]) -> (Folder, String) {
    let shown = SHOWN.iter().find(|shown| shown.name == name).expect("the tests name pipelines of the list");
    let folder = Folder::new();
    let sinks: Vec<_> = shown.sinks.iter().map(|kind| folder.sink(kind, kind)).collect();
    let ran = folder.run(&format!("pipelines/{name}.toml"), shown.from, &sinks, more).expect(0);
    assert_eq!(ran.stderr, "", "a run that is told to be quiet says nothing");
    let table = folder.stable(&ran.stdout);
    (folder, table)
}

/// Checks and runs a pipeline, compares both with its golden files, and gives what lies in the import files, by table.
fn shown(name: &str) -> BTreeMap<String, Vec<Item>> {
    let checked = dynamorph(&["check", "-v", &format!("pipelines/{name}.toml")]).expect(0);
    assert_eq!(checked.stderr, "");
    golden(&format!("pipelines/{name}.check.txt"), &checked.stdout);
    let (folder, table) = carry(name);
    golden(&format!("pipelines/{name}.txt"), &table);
    let import = folder.path().join("import");
    if !import.exists() {
        return BTreeMap::new();
    }
    let tables = imported(&import);
    assert_eq!(tables, batched(&folder.path().join("batch")), "import files and batch files hold the same items");
    tables
}

type Item = Map<String, Value>;

fn item(value: &Value) -> Item {
    value.as_object().expect("an item is an object").clone()
}

fn gunzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(bytes).read_to_string(&mut text).expect("a data file is gzip over UTF-8");
    text
}

fn lines(text: &str) -> impl Iterator<Item = Item> {
    text.lines().map(|line| item(&serde_json::from_str::<Value>(line).expect("a line is JSON")["Item"]))
}

/// The items of each table in some order that depends on the items alone.
fn by_table(found: impl Iterator<Item = (String, Item)>) -> BTreeMap<String, Vec<Item>> {
    let mut tables: BTreeMap<String, Vec<Item>> = BTreeMap::new();
    found.for_each(|(table, item)| tables.entry(table).or_default().push(item));
    for items in tables.values_mut() {
        items.sort_by_cached_key(|item| json!(item).to_string());
    }
    tables
}

/// The data files below a sink's folder, each with the name of its table.
fn data_files(sink: &Path) -> impl Iterator<Item = (String, Vec<u8>)> {
    files(sink).into_iter().filter_map(|(path, bytes)| {
        let name = path.file_name().expect("a file has a name").to_string_lossy();
        let table = path.iter().next().expect("a path has a first part").to_string_lossy().into_owned();
        let beside = ["table.json", "bulk-put.json", "counts.json", "import.sh"].contains(&&*name);
        (!name.starts_with('.') && !beside).then_some((table, bytes))
    })
}

/// What lies in import files, by table.
fn imported(sink: &Path) -> BTreeMap<String, Vec<Item>> {
    by_table(data_files(sink).flat_map(|(table, bytes)| lines(&gunzip(&bytes)).map(|item| (table.clone(), item)).collect::<Vec<_>>()))
}

/// What lies in batch files, by the table that the requests name.
pub(crate) fn batched(sink: &Path) -> BTreeMap<String, Vec<Item>> {
    by_table(data_files(sink).flat_map(|(_, bytes)| {
        let request: BTreeMap<String, Vec<Value>> = serde_json::from_slice(&bytes).expect("a batch file is a request");
        let puts = request.into_iter().flat_map(|(table, puts)| puts.into_iter().map(move |put| (table.clone(), put)));
        puts.map(|(table, put)| (table, item(&put["PutRequest"]["Item"]))).collect::<Vec<_>>()
    }))
}

/// Lines of Ion as lines of `DynamoDB` JSON.
fn json_of_ion(text: &str) -> String {
    let arena = Arena::new();
    let json = |line: &str| codec::json_line(codec::decode_line(line, Format::Ion, &arena).expect("a line is Ion").source);
    text.lines().map(|line| String::from_utf8(json(line)).expect("JSON is UTF-8") + "\n").collect()
}

/// The items of a sample export, as they stand in its data files.
fn exported(sample: &str) -> Vec<Item> {
    files(&root().join("sample_exports").join(sample))
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "gz"))
        .flat_map(|(_, bytes)| lines(&gunzip(&bytes)).collect::<Vec<_>>())
        .collect()
}

/// A string attribute.
fn text<'i>(item: &'i Item, name: &str) -> Option<&'i str> {
    item.get(name)?["S"].as_str()
}

/// How many items have each value of a string attribute.
fn counts(items: &[Item], name: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for item in items {
        *counts.entry(text(item, name).unwrap_or("(none)").to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn every_pipeline_in_the_folder_is_shown_here() {
    let found: BTreeSet<_> = files(&root().join("pipelines")).into_iter().map(|(path, _)| path.display().to_string()).collect();
    assert_eq!(found, SHOWN.iter().map(|shown| format!("{}.toml", shown.name)).collect());
}

#[test]
fn backfill_gives_every_item_its_type_and_changes_nothing_else() {
    let tables = shown("docs-backfill-type");
    let docs = &tables["docs"];
    let expected = [("Comment", 74), ("Document", 32), ("Workspace", 3)];
    assert_eq!(counts(docs, "EntityType"), expected.map(|(name, items)| (name.to_owned(), items)).into());
    let mut before = exported("docs");
    for item in &mut before {
        let sort = text(item, "SK").expect("every item of the sample has SK").to_owned();
        let (kind, defaults) = match sort.as_str() {
            "META" => ("Workspace", vec![("plan", json!({"S": "free"}))]),
            sort if sort.contains("#CMT#") => ("Comment", vec![]),
            _ => ("Document", vec![("version", json!({"N": "1"})), ("starred", json!({"BOOL": false}))]),
        };
        item.retain(|name, _| !name.starts_with("aws:rep:"));
        item.insert("EntityType".to_owned(), json!({"S": kind}));
        for (name, value) in defaults {
            item.entry(name).or_insert(value);
        }
    }
    before.sort_by_cached_key(|item| json!(item).to_string());
    assert_eq!(docs, &before);
}

#[test]
fn the_sparse_feed_lists_starred_documents_and_nothing_else() {
    let tables = shown("docs-sparse-feed");
    let keys = |items: &[Item], of: fn(&Item) -> bool| -> BTreeSet<_> {
        items
            .iter()
            .filter(|item| of(item))
            .map(|item| (text(item, "PK").map(str::to_owned), text(item, "SK").map(str::to_owned)))
            .collect()
    };
    let fed = keys(&tables["docs"], |item| item.contains_key("GSI1PK"));
    let starred = keys(&exported("docs"), |item| item.get("starred") == Some(&json!({"BOOL": true})));
    assert_eq!(fed, starred);
    assert!(!fed.is_empty());
    for item in tables["docs"].iter().filter(|item| item.contains_key("GSI1PK")) {
        let partition = text(item, "PK").and_then(|key| key.strip_prefix("WS#")).map(|workspace| format!("FEED#{workspace}"));
        assert_eq!(text(item, "GSI1PK"), partition.as_deref());
        assert!(text(item, "GSI1SK").is_some_and(|sort| sort.starts_with(text(item, "updatedAt").unwrap_or("no time"))), "{item:?}");
    }
    assert!(tables["docs"].iter().all(|item| item.contains_key("GSI1PK") == item.contains_key("GSI1SK")));
}

#[test]
fn split_comments_have_their_own_table_and_document_ids_one_width() {
    let tables = shown("docs-split-comments");
    let of = |table: &str| tables[table].as_slice();
    assert_eq!(counts(of("comments"), "EntityType"), [("Comment".to_owned(), 74)].into());
    assert_eq!(counts(of("docs"), "EntityType"), [("Document".to_owned(), 32), ("Workspace".to_owned(), 3)].into());
    let padded = |id: &str| id.len() == 10 && id.bytes().all(|byte| byte.is_ascii_digit());
    for item in of("docs") {
        let sort = text(item, "Detail").expect("the sort key is there");
        assert!(sort == "META" || sort.strip_prefix("DOC#").is_some_and(padded), "{sort}");
    }
    for item in of("comments") {
        let partition = text(item, "DocRef").expect("the partition key is there");
        assert!(partition.rsplit_once("#DOC#").is_some_and(|(_, id)| padded(id)), "{partition}");
        assert!(!item.keys().any(|name| ["PK", "SK", "GSI1PK", "GSI1SK"].contains(&name.as_str())), "{item:?}");
    }
    // Comments and their documents still find each other.
    let documents: BTreeSet<_> =
        of("docs").iter().map(|item| format!("{}#{}", item["EntityRef"]["S"], item["Detail"]["S"]).replace('"', "")).collect();
    assert!(of("comments").iter().all(|item| text(item, "DocRef").is_some_and(|of| documents.contains(of))));
}

#[test]
fn two_tables_become_one_item_collection_for_each_workspace() {
    let tables = shown("sql-to-one-table");
    let mut expected = BTreeMap::new();
    for workspace in exported("sql-style/workspaces") {
        expected.insert(format!("WS#{}", text(&workspace, "id").expect("a workspace has an id")), vec!["META".to_owned()]);
    }
    for project in exported("sql-style/projects") {
        let workspace = format!("WS#{}", text(&project, "workspace_id").expect("a project has a workspace"));
        let sort = format!("PROJ#{}", text(&project, "id").expect("a project has an id"));
        expected.get_mut(&workspace).expect("the workspace of a project is there").push(sort);
    }
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for item in &tables["app"] {
        let [partition, sort] = ["PK", "SK"].map(|name| text(item, name).expect("the keys are texts").to_owned());
        found.entry(partition).or_default().push(sort);
    }
    for sorts in expected.values_mut().chain(found.values_mut()) {
        sorts.sort();
    }
    assert_eq!(found, expected);
    assert_eq!(tables.keys().collect::<Vec<_>>(), ["app"]);
}

#[test]
fn the_warehouse_has_a_dataset_for_each_entity_and_no_table() {
    assert_eq!(shown("warehouse"), BTreeMap::new());
}

#[test]
fn the_giant_workspace_is_spread_over_ten_partition_keys_and_the_others_stay() {
    let tables = shown("workspaces-shard-hot");
    let (giant, others): (Vec<Item>, Vec<Item>) =
        tables["workspaces"].iter().cloned().partition(|item| text(item, "EntityRef").is_some_and(|key| key.starts_with("WS#acme#")));
    assert_eq!(giant.len(), 80);
    let shards: Vec<_> = counts(&giant, "EntityRef").into_keys().collect();
    assert_eq!(shards, (1..=10).map(|shard| format!("WS#acme#{shard:02}")).collect::<Vec<_>>());
    let most = counts(&giant, "EntityRef").into_values().max();
    assert!(most <= Some(20), "the busiest of ten shards holds {most:?} of 80 projects");
    let mut before = exported("workspaces");
    before.retain(|item| text(item, "EntityRef") != Some("WS#acme") || text(item, "Detail") == Some("META"));
    before.sort_by_cached_key(|item| json!(item).to_string());
    assert_eq!(others, before);
}

#[test]
fn import_files_in_ion_hold_the_items_of_those_in_json() {
    for name in ["docs-split-comments", "sql-to-one-table"] {
        let (json, _) = carry(name);
        let (ion, _) = carry_with(name, &["--import-format", "ion"]);
        let ion = ion.path().join("import");
        let found = by_table(data_files(&ion).flat_map(|(table, bytes)| {
            let items: Vec<_> = lines(&json_of_ion(&gunzip(&bytes))).map(|item| (table.clone(), item)).collect();
            items
        }));
        assert_eq!(found, imported(&json.path().join("import")), "{name}");
        let parts = files(&ion).into_iter().filter(|(path, _)| path.parent().is_some_and(|folder| folder.ends_with("data")));
        assert!(parts.map(|(path, _)| path.to_string_lossy().into_owned()).all(|name| name.ends_with(".ion.gz")), "{name}");
    }
}

#[test]
fn the_sample_in_ion_holds_the_items_of_the_one_in_json() {
    let in_ion = files(&root().join("sample_exports/docs-ion"))
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "gz"))
        .flat_map(|(_, bytes)| lines(&json_of_ion(&gunzip(&bytes))).collect::<Vec<_>>());
    let sorted = |items: &mut dyn Iterator<Item = Item>| {
        let mut items: Vec<String> = items.map(|item| json!(item).to_string()).collect();
        items.sort_unstable();
        items
    };
    assert_eq!(sorted(&mut in_ion.into_iter()), sorted(&mut exported("docs").into_iter()));
}
