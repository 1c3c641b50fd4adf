//! Files for `DynamoDB`'s imports: compressed objects in `DynamoDB` JSON or Amazon Ion, and the requests that load them.
//!
//! Layout: `DIR/TABLE/data/part-u00001-0000.json.gz`, one `{"Item":{…}}` a line, or `….ion.gz`, one `$ion_1_0 {Item:{…}}` a line, or
//! `….zst`. Nothing but data lies below `data/`, because the import reads every object under its prefix as data. Beside it
//! `DIR/TABLE/table.json` is the request of `ImportTable`, which makes a table, and `DIR/TABLE/bulk-put.json` that of `StartBulkPutItems`,
//! which fills one; `DIR/import.sh` sends either, and `DIR/counts.json` says what must arrive.
//!
//! The lines of a table are gathered to windows, and spread in each so that those of one partition key are far from each other (`order`).
//! A window is cut into pieces, which the pool compresses and the lane appends to several objects in turn (`write`).

mod compress;
mod encode;
mod order;
mod request;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

pub use encode::Payload;
pub use request::{Counts, TableCounts};

use crate::error::{Error, Kind, Result};
use crate::limits::thousands;
use crate::model::{DatasetId, Format, Table, TableId, Targets};
use crate::sink::table_folders::TableFolders;
use crate::sink::{Encoder, Look, Sink, Spawn, Writer, Written, WrittenFile};
use crate::store::{Begin, OutputFolder};
use encode::Lines;
use request::{Place, bulk_put_json, table_json};
use write::Objects;

/// What the files are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How items are written.
    pub format: Format,
    /// How objects are compressed.
    pub compression: Compression,
    /// Bytes of text in an object, before compression.
    pub object_bytes: u64,
}

impl Default for Options {
    /// 256 MiB, so that an import has objects enough to read side by side and a terabyte stays far below the limit of 50,000 objects.
    fn default() -> Self {
        Self { format: Format::Json, compression: Compression::default(), object_bytes: 256 << 20 }
    }
}

/// How objects are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// gzip.
    #[default]
    Gzip,
    /// Zstandard.
    Zstd,
}

/// What the data should count, at the top of the folder.
pub const COUNTS: &str = "counts.json";

/// The commands that load the data, at the top of the folder.
const SCRIPT: &str = "import.sh";

/// The most objects of an import (AWS, "Quotas": import from Amazon S3).
const OBJECTS: u64 = 50_000;

/// Sizes that decide where windows, pieces and objects end, and how much waits in memory.
///
/// The memory of a writer is at most `waiting`, one payload, `in_flight` windows with what their pieces are compressed to, and for each
/// table the buffers of the objects that grow side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A table's lines are spread when they have this many bytes in memory.
    pub window: usize,
    /// The lines of all tables together have at most this many bytes in memory; above, those of the largest are spread.
    pub waiting: usize,
    /// Windows in the pool at a time.
    pub in_flight: u64,
    /// Bytes of text that the pool compresses in one go, about.
    pub piece: u64,
    /// Items of an object.
    pub object_items: u64,
    /// Objects of a table.
    pub objects: u64,
}

impl Default for Limits {
    /// 4,000,000 items an object is what AWS advises at most ("Best practices for importing from Amazon S3 into `DynamoDB`").
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Self { window: 32 * MIB, waiting: 64 * MIB, in_flight: 2, piece: 8 << 20, object_items: 4_000_000, objects: OBJECTS }
    }
}

impl Options {
    /// How many objects of a table grow side by side: a window's pieces go to one after the other, so that each has a share of every hot
    /// key, and the pool compresses as many at a time. At most 1 GiB of text a table, since each unit leaves so many short objects.
    fn side_by_side(self) -> usize {
        match self.object_bytes {
            0..=0x1000_0000 => 4,
            0x1000_0001..=0x2000_0000 => 2,
            _ => 1,
        }
    }
}

/// The sink `import:DIR`.
pub struct ImportFiles {
    folders: Arc<TableFolders>,
    options: Options,
    limits: Limits,
    spawn: Spawn,
}

impl fmt::Debug for ImportFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folders, options, limits, spawn: _ } = self;
        let mut out = f.debug_struct("ImportFiles");
        out.field("folders", folders).field("options", options).field("limits", limits).finish_non_exhaustive()
    }
}

impl ImportFiles {
    /// A sink that writes below `folder`. `names` maps a table's name in the pipeline to its name in the service, for
    /// `table.json`; a table that is not in it keeps its name. Folders have the pipeline's names. `spawn` runs the compression in the pool.
    #[must_use]
    pub fn new(
        folder: impl Into<OutputFolder>,
        overwrite: bool,
        targets: Arc<Targets>,
        names: BTreeMap<String, String>,
        options: Options,
        spawn: Spawn,
    ) -> Self {
        Self { folders: Arc::new(TableFolders::new(folder.into(), overwrite, targets, names)), options, limits: Limits::default(), spawn }
    }

    /// The same sink with other limits. They decide where objects end, so all units of a run must have the same.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

impl Sink for ImportFiles {
    fn name(&self) -> String {
        format!("import:{}", self.folders.within())
    }

    fn prepare(&self, begin: Begin) -> Result<Vec<String>> {
        if let Some(table) = self.folders.targets().tables.iter().find(|table| [COUNTS, SCRIPT].contains(&table.name.as_str())) {
            return Err(Error::new(Kind::Usage, "the table's name is that of a file beside its folder").with("table", &table.name));
        }
        self.folders.prepare(begin).map(|()| Vec::new())
    }

    fn writes_ahead(&self) -> bool {
        true
    }

    fn encoder(&self) -> Arc<dyn Encoder> {
        Lines::new(self.options.format, self.folders.targets())
    }

    fn writer(&self, unit: u32) -> Result<Box<dyn Writer>> {
        Ok(Box::new(Objects::new(Arc::clone(&self.folders), self.options, self.limits, Arc::clone(&self.spawn), unit)?))
    }

    fn forget(&self) -> Result<()> {
        self.folders.within().forget("")
    }

    fn check(&self, written: &[Written], _look: Look, published: bool) -> Result<()> {
        self.folders.check(written.iter().flat_map(|unit| &unit.files), published)
    }

    /// Writes the requests for every table, also for one without items, so that an empty table can be made as well.
    fn commit(&self, written: &[Written]) -> Result<()> {
        let counts = self.counts(written);
        self.check_objects(&counts)?;
        let mut files: Vec<WrittenFile> = written.iter().flat_map(|unit| unit.files.iter().cloned()).collect();
        let staging = self.folders.staging()?;
        let mut write = |path: PathBuf, text: &str| {
            let mut file = staging.create(&path)?;
            file.put(text.as_bytes())?;
            let bytes = file.finish()?;
            files.push(WrittenFile { path, items: 0, bytes, schema: None, sha256: None });
            Ok::<_, Error>(())
        };
        let place = Place::of(self.folders.within());
        let tables = (0..).map(TableId).zip(&self.folders.targets().tables).map(|(id, table)| (table, self.folders.service_name(id)));
        for (id, (table, service_name)) in (0..).map(TableId).zip(tables.clone()) {
            let folder = self.folders.folder(id);
            write(folder.join("table.json"), &table_json(table, service_name, self.options, &place))?;
            write(folder.join("bulk-put.json"), &bulk_put_json(table, service_name, self.options, &place))?;
        }
        write(SCRIPT.into(), &place.import_sh(tables))?;
        write(COUNTS.into(), &counts.json())?;
        self.folders.publish(files.iter())
    }
}

impl ImportFiles {
    /// What all units wrote, by table.
    fn counts(&self, written: &[Written]) -> Counts {
        let targets = self.folders.targets();
        let table = |(id, table): (TableId, &Table)| {
            let mut counts = TableCounts { table: table.name.clone(), ..TableCounts::default() };
            for content in written.iter().filter_map(|unit| unit.tables.get(&id.0)) {
                counts.text_bytes += content.text_bytes;
                for (dataset, items) in content.items.iter().filter(|(_, items)| **items > 0) {
                    counts.items += items;
                    *counts.entities.entry(targets.dataset(DatasetId(*dataset)).name.clone()).or_default() += items;
                }
            }
            let folder = self.folders.folder(id);
            for file in written.iter().flat_map(|unit| &unit.files).filter(|file| file.path.starts_with(&folder)) {
                counts.objects += 1;
                counts.bytes += file.bytes;
            }
            counts
        };
        Counts { tables: (0..).map(TableId).zip(&targets.tables).map(table).collect() }
    }

    /// An import of more objects than the service takes would fail when everything lies in S3.
    fn check_objects(&self, counts: &Counts) -> Result<()> {
        let Some(table) = counts.tables.iter().find(|table| table.objects > self.limits.objects) else { return Ok(()) };
        let larger = if self.options.object_bytes < 1 << 30 {
            "; from 1GiB on, a unit of work leaves one short object a table, not four"
        } else {
            ""
        };
        Err(Error::new(Kind::Output, "a table has more objects than one import takes")
            .with("table", &table.table)
            .with("found", format_args!("{} objects", thousands(table.objects)))
            .with("expected", format_args!("at most {}", thousands(self.limits.objects)))
            .with("hint", format_args!("run it again with an --import-object-size above {}{larger}", thousands(self.options.object_bytes))))
    }
}

#[cfg(test)]
mod tests;
