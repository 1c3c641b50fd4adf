//! A folder of output with one folder a table inside: what `import:` and `batch:` have in common.
//!
//! Knows nothing of what the files hold.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Kind, Result};
use crate::model::{TableId, Targets};
use crate::sink::{Written, WrittenFile};
use crate::store::{Begin, OutputFolder, Staging};

/// The folder, the tables, and the names that the tables have in the service.
#[derive(Debug)]
pub(super) struct TableFolders {
    within: OutputFolder,
    overwrite: bool,
    targets: Arc<Targets>,
    names: BTreeMap<String, String>,
}

impl TableFolders {
    pub(super) fn new(within: OutputFolder, overwrite: bool, targets: Arc<Targets>, names: BTreeMap<String, String>) -> Self {
        Self { within, overwrite, targets, names }
    }

    /// The sink's folder, which the tables' folders lie in.
    pub(super) fn within(&self) -> &OutputFolder {
        &self.within
    }

    pub(super) fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The name that the table has in the service; the folder keeps the pipeline's name.
    pub(super) fn service_name(&self, table: TableId) -> &str {
        let name = &self.targets.table(table).name;
        self.names.get(name).unwrap_or(name)
    }

    /// The table's folder below the sink's.
    pub(super) fn folder(&self, table: TableId) -> PathBuf {
        PathBuf::from(&self.targets.table(table).name)
    }

    /// Makes the folder ready.
    pub(super) fn prepare(&self, begin: Begin) -> Result<()> {
        for table in &self.targets.tables {
            if table.name.contains(['/', '\\', '\0']) || matches!(table.name.as_str(), "" | "." | "..") {
                return Err(Error::new(Kind::Usage, "the table's name cannot name a folder").with("table", &table.name));
            }
        }
        self.within.prepare(self.overwrite, begin).map(drop)
    }

    /// Where files lie until they are published. Each unit opens its own, perhaps in a process of its own.
    pub(super) fn staging(&self) -> Result<Staging> {
        self.within.staging()
    }

    /// Checks that the files are there as they were written.
    pub(super) fn check<'f>(&self, files: impl Iterator<Item = &'f WrittenFile>, published: bool) -> Result<()> {
        let files: Vec<_> = files.map(|file| (file.path.clone(), file.bytes)).collect();
        self.staging()?.check(&files, published)
    }

    /// Gives the files their names.
    pub(super) fn publish<'f>(&self, files: impl Iterator<Item = &'f WrittenFile>) -> Result<()> {
        let files: Vec<_> = files.map(|file| (file.path.clone(), file.bytes)).collect();
        self.staging()?.publish(&files)
    }
}

/// Adds up what a writer wrote, file by file.
#[derive(Debug, Default)]
pub(super) struct Account {
    written: Written,
}

impl Account {
    /// Counts items that went into a file.
    pub(super) fn add_items(&mut self, dataset: u32, items: u64) {
        if items > 0 {
            *self.written.items.entry(dataset).or_default() += items;
        }
    }

    /// Adds a finished file.
    pub(super) fn add_file(&mut self, path: PathBuf, items: u64, bytes: u64) {
        self.written.bytes += bytes;
        self.written.files.push(WrittenFile { path, items, bytes, schema: None, sha256: None });
    }

    /// The sums.
    pub(super) fn written(self) -> Written {
        self.written
    }
}
