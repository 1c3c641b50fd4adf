//! The metadata of a table: what there is, and what a commit makes of it.
//!
//! A table lies in a folder as Hadoop's tables do: `metadata/vN.metadata.json`, N one greater with each commit, and the N of the last
//! in `metadata/version-hint.text`. What a commit does not concern is kept as it was found.

use serde_json::{Map, Value as Json, json};

use super::schema::{self, Field};
use crate::error::{Error, Kind, Result};
use crate::store::Location;

/// The version of the format.
const FORMAT: i64 = 2;

/// A table as it is.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// The N of its metadata file.
    pub(super) version: u64,
    json: Map<String, Json>,
    /// Of its current schema.
    pub(super) fields: Vec<Field>,
    /// The greatest id that a field ever had.
    pub(super) last_id: i32,
}

/// What a commit adds.
#[derive(Debug)]
pub(super) struct Commit<'c> {
    pub(super) snapshot: i64,
    /// The snapshot that it goes on from; without one it stands for itself.
    pub(super) parent: Option<i64>,
    pub(super) time: i64,
    pub(super) manifest_list: String,
    pub(super) operation: &'c str,
    pub(super) summary: Vec<(&'static str, String)>,
    pub(super) fields: &'c [Field],
    pub(super) last_id: i32,
    pub(super) properties: Vec<(&'static str, String)>,
}

/// The name of a metadata file below the table's folder.
pub(super) fn file_name(version: u64) -> String {
    format!("metadata/v{version}.metadata.json")
}

/// The N of a metadata file of ours.
fn version_of(name: &str) -> Option<u64> {
    name.strip_prefix("metadata/v")?.strip_suffix(".metadata.json")?.parse().ok()
}

impl Table {
    /// The table in a folder; `None` where there is none. Files that are called `mine…` may be there without one: a commit that was cut
    /// short leaves them.
    ///
    /// # Errors
    /// Kind `Usage` when something else lies there, or the table is kept by a catalog or in a way that is not known here; kind `Input` when
    /// its metadata cannot be read.
    pub(super) fn find(folder: &Location, mine: &str) -> Result<Option<Self>> {
        let names: Vec<String> = folder.files_below()?.into_iter().map(|(name, _)| name).collect();
        let foreign = |name: &&String| name.ends_with(".metadata.json") && version_of(name).is_none() && !is_hidden(name);
        if let Some(other) = names.iter().find(foreign) {
            return Err(Error::new(Kind::Usage, "the table is kept by a catalog, which dynamorph does not write to")
                .with("table", folder)
                .with("found", other)
                .with("expected", "metadata/v1.metadata.json, v2 …")
                .with("hint", "name another folder, and load what is written there into the table with the catalog's engine"));
        }
        let Some(version) = names.iter().filter_map(|name| version_of(name)).max() else {
            let others = |name: &&String| !name.rsplit('/').next().is_some_and(|name| name.starts_with(mine) || is_hidden(name));
            return match names.iter().find(others) {
                None => Ok(None),
                Some(found) => Err(Error::new(Kind::Usage, "the table's folder holds something else")
                    .with("folder", folder)
                    .with("found", found)
                    .with("hint", "name another folder, or empty this one by hand")),
            };
        };
        let place = folder.join(&file_name(version));
        let wrong =
            |found: &str| Error::new(Kind::Usage, "the table is not one that can be written to").with("file", &place).with("found", found);
        let unreadable = || Error::new(Kind::Input, "the table's metadata cannot be understood").with("file", &place);
        let bytes = place.read_whole()?.ok_or_else(unreadable)?;
        let json: Map<String, Json> = serde_json::from_slice(&bytes).map_err(|cause| unreadable().caused_by(cause))?;
        let number = |key: &str| json.get(key).and_then(Json::as_i64);
        if number("format-version") != Some(FORMAT) {
            return Err(wrong("another version of the format").with("expected", "format-version 2"));
        }
        let plain = |list: &str, id: &str, default: &str| {
            let of_id = |entry: &&Json| entry.get(id).and_then(Json::as_i64) == number(default);
            let entry = json.get(list).and_then(Json::as_array).and_then(|list| list.iter().find(of_id));
            entry.and_then(|entry| entry.get("fields")).and_then(Json::as_array).is_some_and(Vec::is_empty)
        };
        if !plain("partition-specs", "spec-id", "default-spec-id") || number("default-spec-id") != Some(0) {
            return Err(wrong("partitions").with("expected", "a table without partitions"));
        }
        let known_id = |entry: &&Json| entry.get("schema-id").and_then(Json::as_i64) == number("current-schema-id");
        let schemas = json.get("schemas").and_then(Json::as_array);
        let fields = schemas.and_then(|schemas| schemas.iter().find(known_id)).and_then(schema::fields).ok_or_else(unreadable)?;
        let last_id = number("last-column-id").and_then(|id| id.try_into().ok()).ok_or_else(unreadable)?;
        Ok(Some(Self { version, json, fields, last_id }))
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.json.get(key).and_then(Json::as_i64)
    }

    fn list(&self, key: &str) -> &[Json] {
        self.json.get(key).and_then(Json::as_array).map_or(&[], Vec::as_slice)
    }

    /// What tells this state of the table from all others.
    pub(super) fn state(&self) -> String {
        let uuid = self.json.get("table-uuid").and_then(Json::as_str).unwrap_or_default();
        format!("{uuid}/{}/{:?}", self.version, self.current())
    }

    /// The current snapshot.
    pub(super) fn current(&self) -> Option<i64> {
        self.number("current-snapshot-id").filter(|id| *id != -1)
    }

    pub(super) fn has(&self, snapshot: i64) -> bool {
        self.snapshot(snapshot).is_some()
    }

    fn snapshot(&self, id: i64) -> Option<&Json> {
        self.list("snapshots").iter().find(|known| known.get("snapshot-id").and_then(Json::as_i64) == Some(id))
    }

    /// Where the list of a snapshot's lists lies.
    pub(super) fn manifest_list(&self, snapshot: i64) -> Option<&str> {
        self.snapshot(snapshot)?.get("manifest-list")?.as_str()
    }

    /// A number of a snapshot's summary.
    pub(super) fn summary(&self, snapshot: i64, key: &str) -> Option<u64> {
        self.snapshot(snapshot)?.get("summary")?.get(key)?.as_str()?.parse().ok()
    }

    pub(super) fn next_sequence(&self) -> i64 {
        self.number("last-sequence-number").unwrap_or(0) + 1
    }

    /// When it was last changed. A later commit must be later.
    pub(super) fn last_updated(&self) -> i64 {
        self.number("last-updated-ms").unwrap_or(0)
    }

    /// A property of the table.
    pub(super) fn property(&self, key: &str) -> Option<&str> {
        self.json.get("properties")?.get(key)?.as_str()
    }

    /// Where its files lie.
    pub(super) fn location(&self) -> &str {
        self.json.get("location").and_then(Json::as_str).unwrap_or_default()
    }

    /// The id that these fields have as a schema, or get.
    pub(super) fn schema_id(&self, fields: &[Field]) -> i64 {
        let id = |known: &Json| known.get("schema-id").and_then(Json::as_i64);
        let same = self.list("schemas").iter().find(|known| schema::fields(known).is_some_and(|known| known == fields));
        let next = || self.list("schemas").iter().filter_map(id).max().map_or(0, |last| last + 1);
        same.and_then(id).unwrap_or_else(next)
    }

    /// A table without anything.
    pub(super) fn new(uuid: &str, location: &str, entity: &str) -> Self {
        let json = json!({
            "format-version": FORMAT,
            "table-uuid": uuid,
            "location": location,
            "last-sequence-number": 0,
            "last-updated-ms": -1,
            "last-column-id": 0,
            "current-schema-id": 0,
            "schemas": [],
            "default-spec-id": 0,
            "partition-specs": [{ "spec-id": 0, "fields": [] }],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{ "order-id": 0, "fields": [] }],
            "properties": { "dynamorph.entity": entity },
            "refs": {},
            "snapshots": [],
            "snapshot-log": [],
            "metadata-log": [],
        });
        let Json::Object(json) = json else { unreachable!("it is written as an object above") };
        Self { version: 0, json, fields: Vec::new(), last_id: 0 }
    }

    /// The table after a commit.
    pub(super) fn after(&self, commit: &Commit<'_>) -> Self {
        let schema_id = self.schema_id(commit.fields);
        let sequence = self.next_sequence();
        let mut json = self.json.clone();
        let push = |json: &mut Map<String, Json>, list: &str, entry: Json| {
            if let Some(list) = json.entry(list).or_insert_with(|| json!([])).as_array_mut() {
                list.push(entry);
            }
        };
        if !self.list("schemas").iter().any(|known| known.get("schema-id").and_then(Json::as_i64) == Some(schema_id)) {
            push(&mut json, "schemas", Json::Object(schema::schema(schema_id, commit.fields)));
        }
        let mut summary: Map<String, Json> = commit.summary.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        summary.insert("operation".to_owned(), json!(commit.operation));
        let mut snapshot = json!({
            "snapshot-id": commit.snapshot,
            "sequence-number": sequence,
            "timestamp-ms": commit.time,
            "manifest-list": commit.manifest_list,
            "schema-id": schema_id,
            "summary": summary,
        });
        if let Some(parent) = commit.parent {
            snapshot["parent-snapshot-id"] = json!(parent);
        }
        push(&mut json, "snapshots", snapshot);
        push(&mut json, "snapshot-log", json!({ "timestamp-ms": commit.time, "snapshot-id": commit.snapshot }));
        if self.version > 0 {
            let file = format!("{}/{}", self.location(), file_name(self.version));
            push(&mut json, "metadata-log", json!({ "timestamp-ms": self.last_updated(), "metadata-file": file }));
        }
        // What was set for the branch, such as how long its snapshots are kept, stays.
        if let Some(refs) = json.entry("refs").or_insert_with(|| json!({})).as_object_mut() {
            refs.entry("main").or_insert_with(|| json!({ "type": "branch" }))["snapshot-id"] = json!(commit.snapshot);
        }
        if let Some(properties) = json.entry("properties").or_insert_with(|| json!({})).as_object_mut() {
            properties.extend(commit.properties.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
        }
        for (key, value) in [
            ("current-snapshot-id", json!(commit.snapshot)),
            ("current-schema-id", json!(schema_id)),
            ("last-sequence-number", json!(sequence)),
            ("last-updated-ms", json!(commit.time)),
            ("last-column-id", json!(commit.last_id)),
        ] {
            json.insert(key.to_owned(), value);
        }
        Self { version: self.version + 1, json, fields: commit.fields.to_vec(), last_id: commit.last_id }
    }

    /// The bytes of its metadata file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(&self.json).expect("texts and numbers can be written as JSON");
        bytes.push(b'\n');
        bytes
    }
}

/// Whether a file's name says that it is nobody's: one that was being written when a machine stopped.
fn is_hidden(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|name| name.starts_with('.'))
}
