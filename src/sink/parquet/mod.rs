//! `parquet:DIR`: one Parquet dataset an entity, one schema a dataset for the whole run, from all of its items.
//!
//! Nothing is sampled or dropped, and nothing rounded, turned into a double, or parted from its type, unless the pipeline declares it.
//!
//! | in the items | in Parquet |
//! |---|---|
//! | S, B, BOOL | text, binary, boolean |
//! | N, all integers that fit 64 bits | int64 |
//! | N, digits before and after the point ≤ 38 together | decimal(digits, digits after the point) |
//! | N otherwise | text: each number in its one plain spelling |
//! | SS, NS, BS | list of text, of the number form of all members, of binary |
//! | L, elements of one type, NULL aside | list of that type |
//! | L of mixed types, or only ever empty | JSON text: 1 and "1" stay different |
//! | M with at most 64 distinct keys, and not too many (1,024; in maps further in 512, 256, …) in all maps below | struct; a field of mixed types is JSON text |
//! | M with more keys, values of one type, NULL aside | map from text to that type |
//! | M with more keys, values of mixed types; M only ever empty | JSON text |
//! | maps and lists more than 8 levels deep, or an attribute of more than 512 leaf columns | JSON text from there on |
//! | NULL, or no such attribute | null; an attribute that is only ever NULL is a text column of nulls |
//! | an attribute of several types | a column a type: the most frequent keeps the name, the others are `name__s`, `name__m` … |
//! | a name that is taken already | `_` is appended until it is free |
//! | more than 2,048 leaf columns | the attributes of the fewest items share the column `__rest`, JSON text |
//! | more than some 8,000 names | those beyond the shortest are in `__rest`, keys and the type attribute never |
//! | a name of more than 1,024 bytes | in `__rest` |
//! | an attribute with a declared type | a column of this type for what fits; the rest as if it were of another type: `name__s`, … |
//! | an attribute with a declared name | that name in place of its own |
//! | several types, declared `mixed` as `json` or `text` | one column: JSON text of values with their descriptors; S, N and BOOL as text |
//! | several types, declared as `reject-minority` | a column of the most frequent type; items with others are rejects |
//! | NULL, where `nulls` is declared | null, and true in a boolean column `name__null` |
//! | an attribute that is declared `partition` | in the names of folders, `status=ACTIVE`, and in no file but its metadata |
//! | attributes that are declared `sort` | the rows of each row group are sorted by their first columns, ascending, null first; the file says so |
//! | an attribute that is declared `rest`, or above the declared number of `columns` | in `__rest` |
//!
//! JSON text is `DynamoDB` JSON. Columns are in this order: what is declared to come first, the table's and indexes' keys and the type
//! attribute, then the others in byte order of their attributes. Names are kept as they are, unless the run writes for an engine
//! ([`Dialect`]): then columns and fields of structs have names that it takes. Every field says in its metadata what it was: `dynamodb.type`
//! is a descriptor (`SS`), `json` or `text`, for JSON `dynamodb.json` says what the text holds: the inside of an `M` or `L`, or `any` value
//! with its descriptor; `dynamodb.epoch` is the unit of an epoch number that became a timestamp; `dynamodb.attribute` is the attribute's
//! name, on fields of structs the key's where that is another than the field's.
//! The schema and the file carry `dynamorph.entity`, and the file, in a partition, `dynamorph.partition`: its values as `DynamoDB` JSON. Beside the folders of the datasets, `_dynamorph.json` says the same of all of them,
//! with the files and their items ([`Manifest`]).

#[cfg(feature = "iceberg")]
mod align;
mod column;
mod convert;
mod ddl;
mod drift;
mod encode;
#[cfg(feature = "iceberg")]
mod fixed;
mod form;
mod group;
mod layout;
mod lock;
mod manifest;
mod mend;
mod minority;
mod naming;
mod partition;
mod read;
mod row_group;
mod sort;
mod sparse;
mod write;

use std::sync::{Arc, OnceLock};

use parquet::basic::ZstdLevel;

use self::layout::Layout;
use self::minority::Refusing;
use crate::error::{Error, Kind, Result};
use crate::model::{Dataset, DatasetId, Targets};
use crate::shape::Shape;
use crate::sink::{Encoder, GoOn, Look, Settled, Sink, Spawn, Writer, Written};
use crate::store::{Begin, OutputFolder};

pub use self::ddl::{Ddl, Dialect, ddl};
pub use self::encode::Payload;
#[cfg(feature = "iceberg")]
pub(in crate::sink) use self::fixed::{FieldId, Files};
pub use self::lock::SchemaFile;
pub use self::manifest::{Column, ColumnType, DataFile, DatasetFiles, MANIFEST, Manifest, PartitionColumn, Source};
pub use self::minority::Minorities;
pub use self::read::{ParquetFile, comparable};
#[cfg(feature = "iceberg")]
pub(in crate::sink) use self::write::folder;
pub use self::write::{FileOptions, Limits};

/// Parquet files below a folder, a subfolder an entity.
pub struct ParquetSink {
    folder: OutputFolder,
    overwrite: bool,
    limits: Limits,
    spawn: Spawn,
    layouts: Arc<Layouts>,
    sources: Vec<Source>,
}

/// The layouts of all datasets, once the shapes are known.
struct Layouts {
    targets: Arc<Targets>,
    /// The engine whose names the columns have.
    dialect: Option<Dialect>,
    /// How hard the files are compressed.
    zstd: ZstdLevel,
    /// By dataset; `None` where the items decide. Empty: everywhere.
    pinned: Vec<Option<Arc<Layout>>>,
    /// By dataset; `None` where there is no item.
    chosen: OnceLock<Vec<Option<Arc<Layout>>>>,
}

impl ParquetSink {
    /// A sink that writes below `folder`. `spawn` runs the compression of row groups in the pool.
    pub fn new(folder: impl Into<OutputFolder>, overwrite: bool, targets: Arc<Targets>, spawn: Spawn) -> Self {
        let folder = folder.into();
        Self {
            folder,
            overwrite,
            limits: Limits::default(),
            spawn,
            layouts: Arc::new(Layouts { targets, dialect: None, zstd: ZstdLevel::default(), pinned: Vec::new(), chosen: OnceLock::new() }),
            sources: Vec::new(),
        }
    }

    /// The same sink, whose manifest says what was read.
    #[must_use]
    pub fn with_sources(self, sources: Vec<Source>) -> Self {
        Self { sources, ..self }
    }

    /// The same sink with other limits. They decide where row groups and files end, so all units of a run must have the same.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The same sink for a pool of so many workers: what it gives to the pool keeps all of them busy. The files do not depend on this.
    #[must_use]
    pub fn with_jobs(self, jobs: usize) -> Self {
        let limits = Limits { in_flight: jobs.saturating_mul(write::IN_FLIGHT).max(self.limits.in_flight), ..self.limits };
        self.with_limits(limits)
    }

    /// The same sink with files like these. To be said before [`with_schema`](Self::with_schema).
    ///
    /// # Errors
    /// Kind `Usage` when there can be no such files.
    pub fn with_file_options(self, options: FileOptions) -> Result<Self> {
        let zstd = options.check()?;
        let limits = Limits {
            row_group: options.row_group,
            buffered: self.limits.buffered.max(options.row_group),
            file: options.file,
            ..self.limits
        };
        let Layouts { targets, dialect, .. } = &*self.layouts;
        let layouts = Layouts { targets: targets.clone(), dialect: *dialect, zstd, pinned: Vec::new(), chosen: OnceLock::new() };
        Ok(Self { limits, layouts: Arc::new(layouts), ..self })
    }

    /// The same sink with the names of columns, and of the fields of their structs, as this engine takes them. To be said before
    /// [`with_schema`](Self::with_schema).
    #[must_use]
    pub fn with_dialect(self, dialect: Dialect) -> Self {
        let (targets, zstd) = (self.layouts.targets.clone(), self.layouts.zstd);
        Self { layouts: Arc::new(Layouts { targets, dialect: Some(dialect), zstd, pinned: Vec::new(), chosen: OnceLock::new() }), ..self }
    }

    /// The same sink with the columns of a schema, for the datasets that are in it, and the names of the engine that it was made for.
    ///
    /// # Errors
    /// Kind `Input` when there can be no such columns, or they have types that the pipeline does not declare; kind `Usage` when the sink has the names of
    /// another engine.
    pub fn with_schema(self, schema: &SchemaFile) -> Result<Self> {
        let (targets, dialect, zstd) = (self.layouts.targets.clone(), schema.dialect, self.layouts.zstd);
        if self.layouts.dialect.is_some_and(|asked| Some(asked) != dialect) {
            let name = |dialect: Option<Dialect>| dialect.map_or("none", Dialect::name);
            return Err(Error::new(Kind::Usage, "the columns of the schema have the names of another dialect")
                .with("found", name(dialect))
                .with("expected", name(self.layouts.dialect))
                .with("hint", "leave out --dialect, or write a new schema with --schema-out and without --schema"));
        }
        let pinned = targets.datasets.iter().map(|dataset| {
            schema
                .datasets
                .get(&dataset.name)
                .map(|columns| {
                    lock::check_declared(dataset, columns)?;
                    Ok(Arc::new(Layout::pinned(dataset, columns, dialect)?.with_zstd(zstd)))
                })
                .transpose()
        });
        let pinned = pinned.collect::<Result<_>>()?;
        Ok(Self { layouts: Arc::new(Layouts { targets, dialect, zstd, pinned, chosen: OnceLock::new() }), ..self })
    }

    /// Chooses the schemas; `shapes` are those of all items of the run, by dataset. To be called once, before the first item is encoded.
    ///
    /// # Errors
    /// Kind `Bug` when there are not as many shapes as datasets, or when the schemas were chosen before.
    pub fn set_shapes(&self, shapes: &[Shape]) -> Result<()> {
        let datasets = &self.layouts.targets.datasets;
        if shapes.len() != datasets.len() {
            return Err(Error::new(Kind::Bug, "not one shape for each dataset")
                .with("datasets", datasets.len())
                .with("shapes", shapes.len()));
        }
        let layouts = (0..).map(DatasetId).zip(datasets).zip(shapes).map(|((id, dataset), shape)| {
            (shape.items() > 0 && !self.layouts.is_pinned(id)).then(|| self.layouts.made_for(dataset, shape))
        });
        self.layouts.chosen.set(layouts.collect()).map_err(|_| Error::new(Kind::Bug, "the Parquet schemas were chosen twice"))
    }
}

impl ParquetSink {
    /// The columns of all datasets that have some.
    pub(in crate::sink) fn schema_file(&self) -> SchemaFile {
        let datasets = self.layouts.all().map(|(name, layout)| (name.to_owned(), layout.columns()));
        SchemaFile::new(self.layouts.dialect, datasets.collect())
    }
}

impl Layouts {
    fn manifest(&self, written: &[Written]) -> Result<Manifest> {
        let layouts = (0..).map(DatasetId).zip(&self.targets.datasets).filter_map(|(id, _)| Some((id, self.layout(id)?.as_ref())));
        Manifest::of(layouts, self.dialect, written)
    }

    /// The one for items of this shape.
    fn made_for(&self, dataset: &Dataset, shape: &Shape) -> Arc<Layout> {
        Arc::new(Layout::of(dataset, shape, self.dialect).with_zstd(self.zstd))
    }

    /// The pinned one, else the one that was chosen.
    fn layout(&self, id: DatasetId) -> Option<&Arc<Layout>> {
        self.pinned(id).or_else(|| self.chosen.get()?.get(id.index())?.as_ref())
    }

    fn pinned(&self, dataset: DatasetId) -> Option<&Arc<Layout>> {
        self.pinned.get(dataset.index())?.as_ref()
    }

    fn is_pinned(&self, dataset: DatasetId) -> bool {
        self.pinned(dataset).is_some()
    }

    /// All that are known, by the names of their datasets.
    fn all(&self) -> impl Iterator<Item = (&str, &Arc<Layout>)> {
        (0..).map(DatasetId).zip(&self.targets.datasets).filter_map(|(id, dataset)| Some((dataset.name.as_str(), self.layout(id)?)))
    }

    fn get(&self, dataset: DatasetId) -> Result<&Arc<Layout>> {
        if let Some(pinned) = self.pinned(dataset) {
            return Ok(pinned);
        }
        let Some(chosen) = self.chosen.get() else {
            return Err(Error::new(Kind::Bug, "no Parquet schema yet: items come before their shapes were observed"));
        };
        chosen.get(dataset.index()).and_then(Option::as_ref).ok_or_else(|| {
            let name = self.targets.datasets.get(dataset.index()).map_or("?", |dataset| &dataset.name);
            Error::new(Kind::Bug, "no Parquet schema for the dataset: its items were not observed").with("dataset", name)
        })
    }
}

impl Sink for ParquetSink {
    fn name(&self) -> String {
        format!("parquet:{}", self.folder)
    }

    fn prepare(&self, begin: Begin) -> Result<Vec<String>> {
        if let Some(dataset) = self.layouts.targets.datasets.iter().find(|dataset| dataset.name == MANIFEST) {
            return Err(Error::new(Kind::Usage, "the entity's name is that of a file beside its folder").with("entity", &dataset.name));
        }
        self.folder.prepare(self.overwrite, begin).map(|_| Vec::new())
    }

    fn takes_unplaced(&self) -> bool {
        true
    }

    fn wants_shapes(&self) -> bool {
        true
    }

    fn writes_ahead(&self) -> bool {
        !Minorities::are_refused(&self.layouts.targets)
    }

    fn settle(&self, shapes: &[Shape], written: Vec<Written>, go_on: &GoOn) -> Result<Settled> {
        let findings = self.learn(shapes)?;
        Ok(Settled { findings, written: mend::mend(&self.folder, &self.layouts, shapes, written, &self.spawn, go_on)? })
    }

    fn learn(&self, shapes: &[Shape]) -> Result<Vec<String>> {
        for ((id, dataset), shape) in (0..).map(DatasetId).zip(&self.layouts.targets.datasets).zip(shapes) {
            if !self.layouts.is_pinned(id) {
                Layout::check(dataset, shape)?;
            }
        }
        self.set_shapes(shapes)?;
        let mut findings = Vec::new();
        for ((id, dataset), shape) in (0..).map(DatasetId).zip(&self.layouts.targets.datasets).zip(shapes) {
            if shape.items() > 0 {
                findings.extend(self.layouts.get(id)?.findings(dataset, shape));
                if !self.layouts.pinned.is_empty() && !self.layouts.is_pinned(id) {
                    findings.push(format!("{}: the schema does not have it; its columns are made from its items", dataset.name));
                }
            }
        }
        Ok(findings)
    }

    fn checker(&self) -> Option<Arc<dyn Encoder>> {
        (!self.layouts.pinned.is_empty()).then(|| -> Arc<dyn Encoder> { Arc::new(encode::ParquetEncoder::for_check(self.layouts.clone())) })
    }

    fn schema(&self) -> Result<Option<String>> {
        self.schema_file().text().map(Some)
    }

    fn encoder(&self) -> Arc<dyn Encoder> {
        Arc::new(encode::ParquetEncoder::new(self.layouts.clone()))
    }

    fn writer(&self, unit: u32) -> Result<Box<dyn Writer>> {
        let writer = write::ParquetWriter::new(self.folder.staging()?, unit, self.layouts.clone(), self.limits, self.spawn.clone());
        Ok(Box::new(Refusing::new(writer)))
    }

    fn forget(&self) -> Result<()> {
        self.folder.forget("")
    }

    fn check(&self, written: &[Written], look: Look, published: bool) -> Result<()> {
        mend::check(&self.folder, written, look, published)
    }

    fn commit(&self, written: &[Written]) -> Result<()> {
        let mut files: Vec<_> = written.iter().flat_map(|unit| &unit.files).map(|file| (file.path.clone(), file.bytes)).collect();
        let staging = self.folder.staging()?;
        let mut file = staging.create(MANIFEST.as_ref())?;
        file.put(&Manifest { sources: self.sources.clone(), ..self.layouts.manifest(written)? }.json())?;
        files.push((MANIFEST.into(), file.finish()?));
        staging.publish(&files)
    }
}

#[cfg(test)]
mod tests;
