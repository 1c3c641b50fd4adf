//! What the incremental samples hold: writes to a table, and the change records that the service makes of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::content::{self, Dice};

/// The midnight at which April 2026 begins, in microseconds since 1970.
const APRIL: u64 = 1_775_001_600_000_000;

type Item = Map<String, Json>;

/// A table: its key, and its items by the text of theirs.
struct Table {
    key: [&'static str; 2],
    items: BTreeMap<[String; 2], Item>,
}

impl Table {
    /// A table with the items of a full export.
    fn new(key: [&'static str; 2], files: &[Vec<String>]) -> Self {
        let mut table = Self { key, items: BTreeMap::new() };
        for line in files.concat() {
            let line: Json = serde_json::from_str(&line).expect("the samples' lines are JSON");
            let item = line["Item"].as_object().expect("an item is an object").clone();
            table.items.insert(table.key_of(&item), item);
        }
        table
    }

    fn key_of(&self, item: &Item) -> [String; 2] {
        self.key.map(|name| item[name]["S"].as_str().expect("the samples' keys are texts").to_owned())
    }

    /// Writes, and gives the records of an export of the window in which that was: one at most for each key, from the state before and
    /// the state after it. `old` says whether they have old images.
    fn records(&mut self, writes: Vec<(u64, Write)>, old: bool) -> Vec<Record> {
        let before = self.items.clone();
        let mut last = BTreeMap::new();
        for (at, write) in writes {
            let key = match write {
                Write::Put(item) => {
                    let key = self.key_of(&item);
                    self.items.insert(key.clone(), item);
                    key
                }
                Write::Change(key, attributes) => {
                    let key = key.map(str::to_owned);
                    let item = self.items.get_mut(&key).unwrap_or_else(|| panic!("{key:?} is not there"));
                    for (name, value) in attributes {
                        match value {
                            Json::Null => drop(item.remove(name)),
                            value => drop(item.insert(name.to_owned(), value)),
                        }
                    }
                    key
                }
                Write::Delete(key) => {
                    let key = key.map(str::to_owned);
                    assert!(self.items.remove(&key).is_some(), "{key:?} is not there");
                    key
                }
            };
            assert!(last.get(&key).is_none_or(|last| *last < at), "writes are in the order of their times");
            last.insert(key, at);
        }
        let mut records = Vec::new();
        for (key, at) in last {
            let (was, is) = (before.get(&key), self.items.get(&key));
            if was.is_none() && is.is_none() {
                continue;
            }
            let names = self.key.into_iter().zip(&key).map(|(name, text)| (name.to_owned(), json!({ "S": text })));
            let mut members = vec![
                format!(r#""Metadata":{{"WriteTimestampMicros":{{"N":"{at}"}}}}"#),
                format!(r#""Keys":{}"#, sorted(&Json::Object(names.collect()))),
            ];
            members.extend(was.filter(|_| old).map(|was| format!(r#""OldImage":{}"#, sorted(&Json::Object(was.clone())))));
            members.extend(is.map(|is| format!(r#""NewImage":{}"#, sorted(&Json::Object(is.clone())))));
            records.push(Record { partition: key[0].clone(), line: format!("{{{}}}", members.join(",")) });
        }
        records
    }
}

/// One write to a table.
enum Write {
    Put(Item),
    /// These attributes of the item with this key; null takes one off.
    Change([&'static str; 2], Vec<(&'static str, Json)>),
    Delete([&'static str; 2]),
}

/// A change record.
struct Record {
    partition: String,
    line: String,
}

/// Compact JSON with all names in order, as images have them.
pub(super) fn sorted(value: &Json) -> String {
    match value {
        Json::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_unstable_by_key(|(name, _)| name.as_str());
            let entries: Vec<_> = entries.into_iter().map(|(name, value)| format!("{}:{}", json!(name), sorted(value))).collect();
            format!("{{{}}}", entries.join(","))
        }
        Json::Array(elements) => format!("[{}]", elements.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// The records in data files: those of a partition key are together, in no order, and some files are empty.
fn in_files(records: Vec<Record>, partitions: &[&str], dice: &mut Dice) -> Vec<Vec<String>> {
    let mut files = vec![Vec::new(); partitions.len()];
    for Record { partition, line } in records {
        let at = partitions.iter().position(|known| *known == partition).unwrap_or_else(|| panic!("{partition} has no file"));
        files[at].push(line);
    }
    files.into_iter().map(|lines| dice.shuffled(lines)).collect()
}

/// Microseconds since 1970 of a time on the first of April.
fn at(hour: u64, minute: u64, micros: u64) -> u64 {
    APRIL + (hour * 60 + minute) * 60_000_000 + micros
}

fn s(text: &str) -> Json {
    json!({ "S": text })
}

fn n(number: &str) -> Json {
    json!({ "N": number })
}

fn item(attributes: &[(&str, Json)]) -> Item {
    attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn document(ws: &str, doc: &str, title: &str, time: &str) -> Item {
    item(&[
        ("PK", s(&format!("WS#{ws}"))),
        ("SK", s(&format!("DOC#{doc}"))),
        ("EntityType", s("Document")),
        ("title", s(title)),
        ("version", n("1")),
        ("createdAt", s(time)),
        ("updatedAt", s(time)),
        ("tags", json!({ "L": [] })),
        ("acl", json!({ "M": { "read": { "SS": ["ada"] }, "public": { "BOOL": false } } })),
        ("starred", json!({ "BOOL": false })),
        ("GSI1PK", s(&format!("WS#{ws}"))),
        ("GSI1SK", s(time)),
    ])
}

fn comment(ws: &str, doc: &str, comment: u32, body: &str, time: &str) -> Item {
    item(&[
        ("PK", s(&format!("WS#{ws}"))),
        ("SK", s(&format!("DOC#{doc}#CMT#{comment}"))),
        ("EntityType", s("Comment")),
        ("author", s("grace")),
        ("body", s(body)),
        ("createdAt", s(time)),
        ("likes", n("0")),
        ("GSI1PK", s(&format!("WS#{ws}"))),
        ("GSI1SK", s(time)),
    ])
}

/// Two windows of the table of documents, from midnight to noon with old images and from noon to midnight without.
pub(super) fn docs() -> [Vec<Vec<String>>; 2] {
    let mut table = Table::new(["PK", "SK"], &content::docs());
    let moved = {
        let mut moved = table.items[&["WS#initech".to_owned(), "DOC#8".to_owned()]].clone();
        moved.insert("PK".to_owned(), s("WS#globex"));
        moved
    };
    let morning = vec![
        // A new document and a new comment; another comment that does not live to the end of the window.
        (at(0, 14, 3_120_455), Write::Put(document("acme", "4000003", "Retrospective", "2026-04-01T00:14:03.120Z"))),
        (at(0, 20, 41_000_007), Write::Put(comment("acme", "4000003", 1, "First!", "2026-04-01T00:20:41.000Z"))),
        (at(1, 2, 0), Write::Put(comment("acme", "4000003", 2, "Oops", "2026-04-01T01:02:00.000Z"))),
        (at(1, 3, 0), Write::Delete(["WS#acme", "DOC#4000003#CMT#2"])),
        // Two changes of one item are one record; an attribute goes.
        (at(2, 10, 9_500_000), Write::Change(["WS#acme", "DOC#7"], vec![("title", s("Q3 plan")), ("version", n("26"))])),
        (
            at(2, 40, 1),
            Write::Change(
                ["WS#acme", "DOC#7"],
                vec![
                    ("version", n("27")),
                    ("summary", Json::Null),
                    ("updatedAt", s("2026-04-01T02:40:00.000Z")),
                    ("GSI1SK", s("2026-04-01T02:40:00.000Z")),
                ],
            ),
        ),
        // A value gets another type.
        (at(3, 0, 250_000), Write::Change(["WS#acme", "DOC#7#CMT#1"], vec![("likes", s("45"))])),
        // Somebody mends the types of some items.
        (at(4, 0, 1), Write::Change(["WS#globex", "DOC#31"], vec![("EntityType", s("Document"))])),
        (at(4, 0, 2), Write::Change(["WS#acme", "DOC#9"], vec![("EntityType", s("Document"))])),
        (at(4, 0, 3), Write::Change(["WS#acme", "DOC#7#CMT#2"], vec![("EntityType", s("Comment"))])),
        // A comment without a type goes, and a document with its comments.
        (at(5, 30, 123_456), Write::Delete(["WS#acme", "DOC#7#CMT#5"])),
        (at(6, 1, 1), Write::Delete(["WS#globex", "DOC#32#CMT#1"])),
        (at(6, 1, 2), Write::Delete(["WS#globex", "DOC#32#CMT#2"])),
        (at(6, 1, 3), Write::Delete(["WS#globex", "DOC#32"])),
        // A document moves to another workspace, which is another key.
        (at(7, 45, 100_000), Write::Delete(["WS#initech", "DOC#8"])),
        (at(7, 45, 100_001), Write::Put(moved)),
        (at(11, 59, 59_999_999), Write::Change(["WS#initech", "META"], vec![("plan", s("free")), ("legacy", Json::Null)])),
    ];
    let afternoon = vec![
        (at(12, 0, 0), Write::Change(["WS#acme", "DOC#4000003"], vec![("version", n("2")), ("starred", json!({ "BOOL": true }))])),
        (at(12, 30, 30_000_000), Write::Delete(["WS#acme", "DOC#4000003#CMT#1"])),
        // A type that nobody knows; the key tells what it is.
        (at(13, 0, 0), Write::Change(["WS#acme", "DOC#7#CMT#9"], vec![("EntityType", s("Note")), ("likes", n("5"))])),
        (at(14, 5, 0), Write::Change(["WS#acme", "META"], vec![("seats", n("260"))])),
        (at(15, 0, 42), Write::Delete(["WS#acme", "DOC#1047"])),
        // What went in the morning is there again, and what changed in the morning changes again.
        (at(16, 20, 0), Write::Put(document("globex", "32", "設計メモ", "2026-04-01T16:20:00.000Z"))),
        (at(18, 0, 5), Write::Change(["WS#acme", "DOC#7"], vec![("version", n("28"))])),
        (at(23, 59, 59_000_000), Write::Put(comment("initech", "88003", 5, "ok\r\n", "2026-04-01T23:59:59.000Z"))),
    ];
    let mut dice = Dice::new("docs-incremental");
    let morning = in_files(table.records(morning, true), &["WS#acme", "", "WS#globex", "WS#initech"], &mut dice);
    let afternoon = in_files(table.records(afternoon, false), &["", "WS#globex", "WS#initech", "", "WS#acme"], &mut dice);
    [morning, afternoon]
}

/// A window of the table of workspaces and projects.
pub(super) fn workspaces() -> Vec<Vec<String>> {
    let mut table = Table::new(["EntityRef", "Detail"], &content::workspaces());
    let project = item(&[
        ("EntityRef", s("WS#wonka")),
        ("Detail", s("PROJ#2026-0095")),
        ("EntityType", s("Project")),
        ("name", s("Project 95")),
        ("status", s("active")),
        ("createdAt", s("2026-04-01T08:00:00.000Z")),
    ]);
    let writes = vec![(at(8, 0, 0), Write::Put(project)), (at(9, 0, 0), Write::Change(["WS#umbrella", "META"], vec![("plan", s("free"))]))];
    in_files(table.records(writes, true), &["WS#umbrella", "WS#wonka", ""], &mut Dice::new("docs-incremental/workspaces"))
}
