//! `iceberg:DIR`: one Apache Iceberg table an entity, of version 2 of the format, in `DIR/ENTITY/{data,metadata}`.
//!
//! The data files and their columns are those of [`parquet`](super::parquet), with the field ids that Iceberg asks for. Types:
//!
//! | in Parquet | in the table |
//! |---|---|
//! | text, JSON text | string |
//! | int64, double, boolean, binary | long, double, boolean, binary |
//! | decimal(p, s) | decimal(p, s) |
//! | timestamp | timestamptz |
//! | list, struct, map | list, struct, map |
//!
//! A commit is one file: `metadata/vN.metadata.json` appears at once and whole when all that it names is durable, so a reader sees the
//! table as it was or as it is to be. `metadata/version-hint.text` follows it. Each table is committed by itself, the tables of a run one
//! right after the other. A table is created, appended to, or replaced; when it is replaced, what it held stays in an earlier snapshot,
//! with its files, until somebody expires that.
//!
//! No name, id or time is drawn by lot or read from a clock: ids and names are hashes of what the tables were before, and a snapshot has
//! the time of the export, or is one millisecond later than the table's last change where that was not before the export.
//!
//! Does not know catalogs: whoever has one registers the table there, and then writes by it.

mod avro;
mod files;
mod metadata;
mod schema;
mod stats;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use self::files::{DataFile, ManifestLine, Snapshot};
use self::metadata::{Commit, Table};
use self::schema::{Change, Field, Numbered};
use self::stats::Stats;
use super::parquet::{Dialect, FileOptions, Files, ParquetSink, SchemaFile, folder};
use crate::codec::hexadecimal;
use crate::error::{Error, Kind, Result};
use crate::model::{Dataset, DatasetId, Targets};
use crate::shape::Shape;
use crate::sink::{Encoder, Look, Sink, Spawn, Writer, Written, WrittenFile};
use crate::store::{Begin, Location, OutputFolder};

/// What the names of all files begin with but for those that Iceberg names.
const MINE: &str = "dynamorph-";

/// What the tables were when the run began, so that it goes on with the same; at the top of the sink's folder.
pub(crate) const RUN: &str = ".dynamorph-iceberg.json";

/// The property of a table for its columns, as `--schema-out` writes them: a later run that appends looks for its own among them.
const COLUMNS: &str = "dynamorph.columns";

/// What becomes of a table that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is in the way.
    Refuse,
    /// The items take the place of what it holds.
    Replace,
    /// The items are added.
    Append,
}

/// Iceberg tables below a folder, one an entity.
pub struct IcebergSink {
    folder: OutputFolder,
    existing: Existing,
    targets: Arc<Targets>,
    /// The datasets that the run is about; the tables of others are left alone. Empty: all.
    only: Vec<String>,
    /// What tells the run from others.
    of: String,
    /// When the items were as they are, in milliseconds since 1970.
    as_of: Option<i64>,
    /// Writes the data files once their columns are fixed.
    parquet: ParquetSink,
    run: OnceLock<Run>,
    tables: OnceLock<Tables>,
}

/// What the tables were when the run began.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    /// Hash of all that follows; names and ids are made from it.
    token: String,
    /// The state of each table, by its dataset's name; `None`: there was none.
    tables: BTreeMap<String, Option<String>>,
}

/// The tables that get rows.
struct Tables {
    parquet: ParquetSink,
    /// By dataset; `None` where there is no item.
    schemas: Vec<Option<Numbered>>,
    /// All that they have, also where no item of the run has any.
    columns: SchemaFile,
}

/// The columns that a table gets.
struct NewColumns<'c> {
    fields: &'c [Field],
    last_id: i32,
    properties: Vec<(&'static str, String)>,
}

/// The next state of a table.
struct Next {
    folder: String,
    /// `None`: it is the current one already.
    table: Option<Table>,
    version: u64,
}

impl IcebergSink {
    /// A sink that writes below `folder`. `as_of` is the time that the items are of, in milliseconds since 1970. `spawn` runs the
    /// compression of row groups in the pool.
    pub fn new(folder: impl Into<OutputFolder>, existing: Existing, targets: &Targets, as_of: Option<i64>, spawn: Spawn) -> Self {
        let folder = folder.into();
        let mut targets = targets.clone();
        // The names of folders mean nothing here, so all columns are in the files.
        for dataset in &mut targets.datasets {
            dataset.declared.partition.clear();
        }
        let targets = Arc::new(targets);
        let parquet = ParquetSink::new(folder.clone(), false, targets.clone(), spawn);
        Self {
            folder,
            existing,
            targets,
            only: Vec::new(),
            of: String::new(),
            as_of,
            parquet,
            run: OnceLock::new(),
            tables: OnceLock::new(),
        }
    }

    /// The same sink for a run that is told from others by this text: what it reads and what it makes of it.
    #[must_use]
    pub fn of_run(self, of: String) -> Self {
        Self { of, ..self }
    }

    /// The same sink with the names of columns as this engine takes them. To be said before [`with_schema`](Self::with_schema).
    #[must_use]
    pub fn with_dialect(self, dialect: Dialect) -> Self {
        Self { parquet: self.parquet.with_dialect(dialect), ..self }
    }

    /// The same sink for a pool of so many workers, as [`ParquetSink::with_jobs`].
    #[must_use]
    pub fn with_jobs(self, jobs: usize) -> Self {
        Self { parquet: self.parquet.with_jobs(jobs), ..self }
    }

    /// The same sink with files like these. To be said before [`with_schema`](Self::with_schema).
    ///
    /// # Errors
    /// Kind `Usage` when there can be no such files.
    pub fn with_file_options(self, options: FileOptions) -> Result<Self> {
        Ok(Self { parquet: self.parquet.with_file_options(options)?, ..self })
    }

    /// The same sink with the columns of a schema, for the datasets that are in it.
    ///
    /// # Errors
    /// Kind `Input` when there can be no such columns.
    pub fn with_schema(self, schema: &SchemaFile) -> Result<Self> {
        Ok(Self { parquet: self.parquet.with_schema(schema)?, ..self })
    }

    /// The same sink for a run that carries these entities only.
    #[must_use]
    pub fn only(self, only: Vec<String>) -> Self {
        Self { only, ..self }
    }

    fn datasets(&self) -> impl Iterator<Item = (DatasetId, &Dataset)> {
        let all = (0..).map(DatasetId).zip(&self.targets.datasets);
        all.filter(|(_, dataset)| self.only.is_empty() || self.only.contains(&dataset.name))
    }

    /// The table of a dataset as it is.
    fn table(&self, dataset: &Dataset) -> Result<Option<Table>> {
        let name = folder(&dataset.name);
        let table = Table::find(&Location::from(&self.folder).join(&name), MINE)?;
        if let Some(table) = &table {
            let address = format!("{}/{name}", self.folder.address()?);
            if without_scheme(table.location()) != without_scheme(&address) {
                return Err(Error::new(Kind::Usage, "the table says that it lies elsewhere, so its files are not found here")
                    .with("table", address)
                    .with("found", table.location())
                    .with("hint", "move it back, or name another folder"));
            }
        }
        Ok(table)
    }

    fn run(&self) -> Result<&Run> {
        self.run.get().ok_or_else(|| Error::new(Kind::Bug, "the tables were not looked at"))
    }

    /// The table as it was when the run began, or as this run has left it already; then also gives true.
    fn unchanged(&self, dataset: &Dataset) -> Result<(Option<Table>, bool)> {
        let table = self.table(dataset)?;
        let run = self.run()?;
        let snapshot = snapshot_id(&run.token, &dataset.name);
        if table.as_ref().is_some_and(|table| table.has(snapshot)) {
            return Ok((table, true));
        }
        if run.tables.get(&dataset.name).is_some_and(|before| *before == table.as_ref().map(Table::state)) {
            return Ok((table, false));
        }
        Err(Error::new(Kind::Output, "somebody else has changed the table since the run began")
            .with("table", format_args!("{}/{}", self.folder, folder(&dataset.name)))
            .with("hint", "begin anew with --restart; where tables of this run were changed already, --only names those that are left"))
    }

    fn begin(&self) -> Result<Run> {
        let mut tables = BTreeMap::new();
        for (_, dataset) in self.datasets() {
            let table = self.table(dataset)?;
            if table.is_some() && self.existing == Existing::Refuse {
                return Err(Error::new(Kind::Usage, "the table is there already")
                    .with("table", format_args!("{}/{}", self.folder, folder(&dataset.name)))
                    .with("hint", "name a new folder, or pass --append to add to the tables, or --overwrite to replace what they hold"));
            }
            tables.insert(dataset.name.clone(), table.as_ref().map(Table::state));
        }
        let run = Run { token: self.token(&tables), tables };
        self.folder.put_whole(RUN, &serde_json::to_vec(&run).expect("texts can be written as JSON"))?;
        Ok(run)
    }

    /// The columns that the tables have which are appended to.
    fn columns(&self) -> Result<SchemaFile> {
        let mut columns = SchemaFile::default();
        for (_, dataset) in self.datasets().filter(|_| self.existing == Existing::Append) {
            let table = self.table(dataset)?;
            if let Some(text) = table.as_ref().and_then(|table| table.property(COLUMNS)) {
                columns.extend(SchemaFile::parse(text).map_err(|error| error.with("dataset", &dataset.name).with("property", COLUMNS))?);
            }
        }
        Ok(columns)
    }

    /// What names and ids are made from: the same for the same run on the same tables, and another one else.
    fn token(&self, tables: &BTreeMap<String, Option<String>>) -> String {
        hexadecimal(&hash(&[&self.of, &format!("{:?}", self.as_of), &format!("{tables:?}")])[..6])
    }

    fn go_on(&self) -> Result<Run> {
        let place = Location::from(&self.folder).join(RUN);
        let lost = || {
            Error::new(Kind::Output, "the folder does not say any more what its tables were when the run began")
                .with("file", &place)
                .with("hint", "begin anew with --restart")
        };
        let bytes = place.read_whole()?.ok_or_else(lost)?;
        let run: Run = serde_json::from_slice(&bytes).map_err(|cause| lost().caused_by(cause))?;
        if run.token != self.token(&run.tables) {
            return Err(Error::new(Kind::Output, "another run has written to the folder since this one was stopped")
                .with("folder", &self.folder)
                .with("hint", "begin anew with --restart"));
        }
        Ok(run)
    }

    /// Writes all that the next state of a table needs but for its metadata.
    fn next(&self, id: DatasetId, dataset: &Dataset, written: &[Written]) -> Result<Option<Next>> {
        let name = folder(&dataset.name);
        let (before, done) = self.unchanged(dataset)?;
        if let (Some(table), true) = (&before, done) {
            return Ok(Some(Next { folder: name, version: table.version, table: None }));
        }
        let tables = self.tables.get().ok_or_else(|| Error::new(Kind::Bug, "no schemas yet"))?;
        let files: Vec<_> = written.iter().flat_map(|unit| &unit.files).filter(|file| file.path.starts_with(&name)).collect();
        let schema = tables.schemas.get(id.index()).and_then(Option::as_ref);
        let base = match before {
            Some(table) => table,
            None if files.is_empty() => return Ok(None),
            None => {
                let address = format!("{}/{name}", self.folder.address()?);
                Table::new(&uuid(&self.run()?.token, &address), &address, &dataset.name)
            }
        };
        let columns = match schema {
            Some(schema) => {
                let columns = serde_json::to_string(&tables.columns.only(&dataset.name)).expect("texts can be written as JSON");
                NewColumns { fields: &schema.fields, last_id: schema.last_id, properties: vec![(COLUMNS, columns)] }
            }
            // Where no item is left, the table stays as it is, or gets empty.
            None if self.existing == Existing::Append => return Ok(None),
            None => NewColumns { fields: &base.fields, last_id: base.last_id, properties: Vec::new() },
        };
        let next = self.snapshot(dataset, &name, &base, columns, &files)?;
        Ok(Some(Next { folder: name, version: next.version, table: Some(next) }))
    }

    /// A new snapshot of a table: its lists are written, its metadata is not.
    fn snapshot(
        &self,
        dataset: &Dataset,
        name: &str,
        base: &Table,
        NewColumns { fields, last_id, properties }: NewColumns<'_>,
        files: &[&WrittenFile],
    ) -> Result<Table> {
        let token = &self.run()?.token;
        let appends = self.existing == Existing::Append && base.version > 0;
        let marker = hash(&["marker", token, &dataset.name]);
        let snapshot = Snapshot {
            id: snapshot_id(token, &dataset.name),
            parent: base.current().filter(|_| appends),
            sequence: base.next_sequence(),
            marker: std::array::from_fn(|at| marker[at]),
        };
        let files = files.iter().map(|file| self.data_file(name, base, file)).collect::<Result<Vec<_>>>()?;
        let mut lines = Vec::new();
        if !files.is_empty() {
            let manifest = format!("metadata/{MINE}{token}-m0.avro");
            let schema = Json::Object(schema::schema(base.schema_id(fields), fields));
            let bytes = files::manifest(&snapshot, &schema, &files)?;
            self.folder.put_whole(&format!("{name}/{manifest}"), &bytes)?;
            lines.push(ManifestLine::of(&snapshot, format!("{}/{manifest}", base.location()), bytes.len(), &files));
        }
        if let Some(parent) = snapshot.parent {
            lines.extend(self.lines_of(name, base, parent)?);
        }
        let list = format!("metadata/{MINE}{token}-snap.avro");
        self.folder.put_whole(&format!("{name}/{list}"), &files::manifest_list(&snapshot, lines)?)?;
        let operation = match (appends || base.version == 0, files.is_empty()) {
            (true, _) => "append",
            (false, false) => "overwrite",
            (false, true) => "delete",
        };
        Ok(base.after(&Commit {
            snapshot: snapshot.id,
            parent: snapshot.parent,
            time: self.as_of.unwrap_or(0).max(base.last_updated() + 1),
            manifest_list: format!("{}/{list}", base.location()),
            operation,
            summary: summary(base, snapshot.parent, &files),
            fields,
            last_id,
            properties,
        }))
    }

    /// The lists that a snapshot has.
    fn lines_of(&self, name: &str, table: &Table, snapshot: i64) -> Result<Vec<ManifestLine>> {
        let list = table.manifest_list(snapshot).unwrap_or_default();
        let inside = without_scheme(list).strip_prefix(without_scheme(table.location())).and_then(|rest| rest.strip_prefix('/'));
        let Some(inside) = inside else {
            return Err(Error::new(Kind::Usage, "the table's files do not lie in its folder")
                .with("table", table.location())
                .with("found", list)
                .with("hint", "name another folder, and load what is written there into the table with an engine"));
        };
        ManifestLine::read(&Location::from(&self.folder).join(name).join(inside))
    }

    fn data_file(&self, name: &str, table: &Table, file: &WrittenFile) -> Result<DataFile> {
        let inside = file.path.strip_prefix(name).map(|inside| inside.display().to_string());
        let inside = inside.map_err(|cause| Error::new(Kind::Bug, "a data file lies outside its table").caused_by(cause))?;
        let stats = match &self.folder {
            OutputFolder::Local(dir) => Stats::read(&dir.join(&file.path))?,
            // The end of each file would have to be fetched again.
            #[cfg(feature = "s3")]
            OutputFolder::S3(_) => Stats::default(),
        };
        Ok(DataFile { address: format!("{}/{inside}", table.location()), items: file.items, bytes: file.bytes, stats })
    }
}

impl Sink for IcebergSink {
    fn name(&self) -> String {
        format!("iceberg:{}", self.folder)
    }

    fn prepare(&self, begin: Begin) -> Result<Vec<String>> {
        self.folder.prepare_shared(MINE, begin)?;
        let run = match begin {
            Begin::Anew => self.begin()?,
            Begin::GoOn => self.go_on()?,
        };
        self.run.set(run).map_err(|_| Error::new(Kind::Bug, "the tables were looked at twice"))?;
        Ok(Vec::new())
    }

    fn takes_unplaced(&self) -> bool {
        true
    }

    fn wants_shapes(&self) -> bool {
        true
    }

    fn learn(&self, shapes: &[Shape]) -> Result<Vec<String>> {
        let token = &self.run()?.token;
        let mut schemas: Vec<_> = self.targets.datasets.iter().map(|_| None).collect();
        let mut columns = self.columns()?;
        let (parquet, findings) = self.parquet.fixed(shapes, &columns, &mut |id, dataset, made, in_words| {
            let (table, _) = self.unchanged(dataset)?;
            let change = if self.existing == Existing::Append { Change::Extend } else { Change::Replace };
            let (fields, last_id) = table.as_ref().map_or((&[][..], 0), |table| (&table.fields, table.last_id));
            let numbered = schema::number(made, fields, last_id, change, in_words).map_err(|error| error.with("dataset", &dataset.name))?;
            let files = Files { stem: format!("{}/data/{MINE}{token}", folder(&dataset.name)), ids: numbered.ids.clone() };
            schemas[id.index()] = Some(numbered);
            Ok(files)
        })?;
        columns.extend(parquet.schema_file());
        self.tables.set(Tables { parquet, schemas, columns }).map_err(|_| Error::new(Kind::Bug, "the schemas were chosen twice"))?;
        Ok(findings)
    }

    fn checker(&self) -> Option<Arc<dyn Encoder>> {
        self.parquet.checker()
    }

    fn schema(&self) -> Result<Option<String>> {
        self.tables.get().map_or(Ok(None), |tables| tables.parquet.schema())
    }

    fn encoder(&self) -> Arc<dyn Encoder> {
        // Before the schemas are chosen, its first use says so.
        self.tables.get().map_or_else(|| self.parquet.encoder(), |tables| tables.parquet.encoder())
    }

    fn writer(&self, unit: u32) -> Result<Box<dyn Writer>> {
        let tables = self.tables.get().ok_or_else(|| Error::new(Kind::Bug, "no schemas yet"))?;
        tables.parquet.writer(unit)
    }

    fn forget(&self) -> Result<()> {
        self.folder.forget(MINE)
    }

    fn check(&self, written: &[Written], look: Look, published: bool) -> Result<()> {
        self.parquet.check(written, look, published)
    }

    fn commit(&self, written: &[Written]) -> Result<()> {
        let all: Vec<(PathBuf, u64)> = written.iter().flat_map(|unit| &unit.files).map(|file| (file.path.clone(), file.bytes)).collect();
        self.folder.staging()?.publish_beside(&all)?;
        let mut nexts = Vec::new();
        for (id, dataset) in self.datasets() {
            nexts.extend(self.next(id, dataset, written)?);
        }
        // All that takes long is done, so that the tables change in as short a time as can be.
        for Next { folder, table, version } in &nexts {
            if let Some(table) = table {
                self.folder.put_whole(&format!("{folder}/{}", metadata::file_name(*version)), &table.bytes())?;
            }
            self.folder.put_whole(&format!("{folder}/metadata/version-hint.text"), version.to_string().as_bytes())?;
        }
        Ok(())
    }
}

/// What a snapshot says of itself beside its operation.
fn summary(base: &Table, parent: Option<i64>, files: &[DataFile]) -> Vec<(&'static str, String)> {
    let sum = |of: fn(&DataFile) -> u64| files.iter().map(of).sum::<u64>();
    let (count, items, bytes) = (files.len() as u64, sum(|file| file.items), sum(|file| file.bytes));
    let mut summary: Vec<(&str, String)> = vec![
        ("added-data-files", count.to_string()),
        ("added-records", items.to_string()),
        ("added-files-size", bytes.to_string()),
        ("changed-partition-count", u8::from(count > 0).to_string()),
    ];
    let totals = [
        ("total-data-files", count),
        ("total-records", items),
        ("total-files-size", bytes),
        ("total-delete-files", 0),
        ("total-position-deletes", 0),
        ("total-equality-deletes", 0),
    ];
    for (key, added) in totals {
        // Where the snapshot before does not say it, nobody knows the sum.
        let before = parent.map_or(Some(0), |parent| base.summary(parent, key));
        summary.extend(before.map(|before| (key, (before + added).to_string())));
    }
    summary
}

fn hash(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// The id of the one snapshot that a run makes of a table: positive.
fn snapshot_id(token: &str, dataset: &str) -> i64 {
    let hash = hash(&["snapshot", token, dataset]);
    i64::from_be_bytes(std::array::from_fn(|at| hash[at])) & i64::MAX
}

/// A UUID of the version for ids that are made in ways of one's own.
fn uuid(token: &str, address: &str) -> String {
    let mut bytes: [u8; 16] = {
        let hash = hash(&["table", token, address]);
        std::array::from_fn(|at| hash[at])
    };
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hexadecimal(&bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A path without the `file:` that some engines put before it.
fn without_scheme(address: &str) -> &str {
    match address.strip_prefix("file:") {
        Some(path) => path.strip_prefix("//").unwrap_or(path),
        None => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_does_not_go_on_where_another_one_has_begun_since() {
        let dir = tempfile::tempdir().unwrap();
        let targets = Targets::default();
        let sink = |of: &str| {
            IcebergSink::new(dir.path().to_owned(), Existing::Append, &targets, None, Arc::new(|job| job())).of_run(of.to_owned())
        };
        sink("monday").prepare(Begin::Anew).unwrap();
        sink("monday").prepare(Begin::GoOn).unwrap();
        sink("tuesday").prepare(Begin::Anew).unwrap();
        let error = sink("monday").prepare(Begin::GoOn).unwrap_err();
        assert_eq!(error.message(), "another run has written to the folder since this one was stopped");
        sink("tuesday").prepare(Begin::GoOn).unwrap();
    }
}
