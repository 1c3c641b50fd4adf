//! What a run is told: exports, sinks, limits; checked against the plan and opened.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Kind, Result};
use crate::exec::made::Made;
use crate::exec::record::Holds;
use crate::exec::stop::Stop;
use crate::exec::units::RunFile;
use crate::exec::work::{OF_A_RUN, is_at};
use crate::exec::workers::Workers;
use crate::limits;
use crate::model::{EntityId, SourceId, Targets};
use crate::plan::{Plan, Unclassified};
use crate::sink::Sink;
use crate::sink::batch_files::BatchFiles;
#[cfg(feature = "dynamodb")]
use crate::sink::batch_write::{self, DynamoDbSink};
#[cfg(feature = "iceberg")]
use crate::sink::iceberg::{self, Existing, IcebergSink};
use crate::sink::import_files::{self, ImportFiles};
#[cfg(feature = "parquet")]
use crate::sink::parquet::{Dialect, FileOptions, ParquetSink, SchemaFile, Source};
use crate::source::manifest::{self, Export};
use crate::store::{Location, OutputFolder, UNFINISHED};

/// An export for one source of the plan.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name of `[source.NAME]`; `None` for a plain `[source]`.
    pub source: Option<String>,
    /// An export, incremental exports whose windows follow each other, or data files named one by one.
    pub locations: Vec<Location>,
}

/// Where items go.
#[derive(Clone, Debug)]
pub enum Destination {
    /// `parquet:DIR`
    #[cfg(feature = "parquet")]
    Parquet(OutputFolder),
    /// `iceberg:DIR`
    #[cfg(feature = "iceberg")]
    Iceberg(OutputFolder),
    /// `import:DIR`
    Import(OutputFolder),
    /// `batch:DIR`
    Batch(PathBuf),
    /// `dynamodb`
    #[cfg(feature = "dynamodb")]
    DynamoDb(Box<batch_write::Options>),
}

/// What a run may be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sinks, at least one.
    pub destinations: Vec<Destination>,
    /// Replace what an earlier run wrote into the same folders.
    pub overwrite: bool,
    /// Add to the tables that `iceberg:` finds.
    pub append: bool,
    /// What the files of `import:` are like.
    pub import: import_files::Options,
    /// Real table names by their name in the pipeline.
    pub table_names: BTreeMap<String, String>,
    /// How many threads compute at a time, those that decompress among them; the output does not depend on it.
    pub jobs: usize,
    /// Read so many lines at the most. The counts of the manifest cannot be checked then.
    pub limit: Option<u64>,
    /// Carry these entities only; the others are dropped and counted. Empty: all.
    pub only: Vec<String>,
    /// Which export is meant where a folder holds several, and what is compared with its manifest.
    pub reading: manifest::Options,
    /// The run's folder: reports, rejects, and what a pass keeps on disk.
    pub work: PathBuf,
    /// Begin anew also where the work folder holds a run that was stopped.
    pub restart: bool,
    /// Compressed bytes of the data files of a unit, about: what is done again at most when a stopped run goes on.
    pub unit_bytes: u64,
    /// The columns that `parquet:` is to write: the text of a schema. Else the items decide.
    pub schema: Option<String>,
    /// Where the schema of what `parquet:` wrote is kept.
    pub schema_out: Option<PathBuf>,
    /// The engine whose names the columns of `parquet:` have; else they have those of the attributes.
    #[cfg(feature = "parquet")]
    pub dialect: Option<Dialect>,
    /// What the files of `parquet:` are like.
    #[cfg(feature = "parquet")]
    pub parquet: FileOptions,
    /// Asks the run to stop.
    pub stop: Stop,
}

/// Compressed bytes of the data files of a unit unless told otherwise, about.
pub const UNIT_BYTES: u64 = 256 << 20;

impl Options {
    /// All that decides what is written, each with its name and as a text for comparing. A run that was stopped goes on with equal options
    /// only.
    pub(super) fn identity(&self) -> Vec<(&'static str, String)> {
        // Destructured, so that a new option cannot be forgotten here.
        let Self {
            destinations,
            overwrite: _,
            append,
            import,
            table_names,
            jobs: _,
            limit,
            only,
            reading: _,
            work: _,
            restart: _,
            unit_bytes,
            schema,
            schema_out: _,
            #[cfg(feature = "parquet")]
            dialect,
            #[cfg(feature = "parquet")]
            parquet,
            stop: _,
        } = self;
        let destinations: Vec<_> = destinations.iter().map(Destination::identity).collect();
        vec![
            ("--to or how it writes", format!("{destinations:?}")),
            ("the options of import:", format!("{import:?}")),
            ("--table", format!("{table_names:?}")),
            ("--append", format!("{append:?}")),
            ("--limit", format!("{limit:?}")),
            ("--only", format!("{only:?}")),
            ("--unit-size", format!("{unit_bytes:?}")),
            ("--schema", format!("{schema:?}")),
            #[cfg(feature = "parquet")]
            ("--dialect", format!("{dialect:?}")),
            #[cfg(feature = "parquet")]
            ("--row-group-size, --file-size or --zstd-level", format!("{parquet:?}")),
        ]
    }
}

impl Destination {
    /// Where it leads, under one name.
    fn identity(&self) -> String {
        let folder = |kind: &str, folder: &OutputFolder| match folder {
            OutputFolder::Local(dir) => format!("{kind}:{}", resolved(dir).display()),
            #[cfg(feature = "s3")]
            OutputFolder::S3(_) => format!("{kind}:{folder}"),
        };
        match self {
            #[cfg(feature = "parquet")]
            Self::Parquet(dir) => folder("parquet", dir),
            #[cfg(feature = "iceberg")]
            Self::Iceberg(dir) => folder("iceberg", dir),
            Self::Import(dir) => folder("import", dir),
            Self::Batch(dir) => folder("batch", &dir.clone().into()),
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(live) => live.identity(),
        }
    }
}

/// The entities that `--only` names.
pub(super) fn only(plan: &Plan, names: &[String]) -> Result<Vec<EntityId>> {
    names
        .iter()
        .map(|name| {
            let at = (0..).zip(&plan.entities).find(|(_, entity)| entity.name == *name).map(|(at, _)| EntityId(at));
            at.ok_or_else(|| {
                let known: Vec<_> = plan.entities.iter().map(|entity| entity.name.as_str()).collect();
                Error::new(Kind::Usage, format!("no entity `{name}` in the pipeline")).with("known", known.join(", "))
            })
        })
        .collect()
}

/// Every output must have a sink that takes it, else its items would be lost in silence.
pub(super) fn check_destinations(plan: &Plan, options: &Options) -> Result<()> {
    if options.destinations.is_empty() {
        return Err(Error::new(Kind::Usage, "no sink is named")
            .with("hint", "add --to parquet:DIR, iceberg:DIR, import:DIR, batch:DIR or dynamodb"));
    }
    let imports = options.destinations.iter().any(|to| matches!(to, Destination::Import(_)));
    if !imports && options.import != import_files::Options::default() {
        return Err(Error::new(Kind::Usage, "an option of the sink import: is given, and there is no such sink")
            .with("found", "--import-format, --import-compression or --import-object-size")
            .with("hint", "add --to import:DIR, or leave the option out"));
    }
    let iceberg = options.destinations.iter().any(|to| to.identity().starts_with("iceberg:"));
    let parquet = iceberg || options.destinations.iter().any(|to| to.identity().starts_with("parquet:"));
    if !parquet && (options.schema.is_some() || options.schema_out.is_some()) {
        return Err(Error::new(Kind::Usage, "a schema is what parquet: and iceberg: write, and there is no such sink")
            .with("found", "--schema or --schema-out")
            .with("hint", "add --to parquet:DIR or --to iceberg:DIR, or leave the option out"));
    }
    if options.append && !iceberg {
        return Err(Error::new(Kind::Usage, "only tables of iceberg: are appended to, and there is no such sink")
            .with("found", "--append")
            .with("hint", "add --to iceberg:DIR, or leave the option out"));
    }
    if options.append && options.overwrite {
        return Err(Error::new(Kind::Usage, "a table is appended to or replaced, not both").with("found", "--append and --overwrite"));
    }
    #[cfg(feature = "parquet")]
    if !parquet && options.dialect.is_some() {
        return Err(Error::new(Kind::Usage, "a dialect is for the names of columns in parquet: and iceberg:, and there is no such sink")
            .with("found", "--dialect")
            .with("hint", "add --to parquet:DIR or --to iceberg:DIR, or leave the option out"));
    }
    #[cfg(feature = "parquet")]
    if !parquet && options.parquet != FileOptions::default() {
        return Err(Error::new(Kind::Usage, "an option of the files of parquet: and iceberg: is given, and there is no such sink")
            .with("found", "--row-group-size, --file-size or --zstd-level")
            .with("hint", "add --to parquet:DIR or --to iceberg:DIR, or leave the option out"));
    }
    check_folders(options)?;
    check_table_names(plan, &options.table_names)?;
    if parquet {
        return Ok(());
    }
    let homeless = plan.entities.iter().find(|entity| entity.outputs.iter().any(|output| output.table.is_none()));
    if let Some(entity) = homeless {
        return Err(Error::new(Kind::Usage, format!("entity `{}` has no table, and no sink takes it", entity.name))
            .with("hint", "add --to parquet:DIR, or give the entity a table with `to`"));
    }
    if matches!(plan.unclassified, Unclassified::Keep { table: None, .. }) {
        return Err(Error::new(Kind::Usage, "unclassified items are kept but have no table, and no sink takes them")
            .with("hint", "add --to parquet:DIR, or name a table with `to` under [unclassified]"));
    }
    Ok(())
}

/// A real name is a table's name, and no two tables share one: their keys are proved apart table by table.
pub(super) fn check_table_names(plan: &Plan, names: &BTreeMap<String, String>) -> Result<()> {
    let tables = &plan.targets.tables;
    for (name, real) in names {
        if !tables.iter().any(|table| table.name == *name) {
            let known: Vec<_> = tables.iter().map(|table| table.name.as_str()).collect();
            return Err(Error::new(Kind::Usage, format!("--table renames `{name}`, which is no table of the pipeline"))
                .with("known", known.join(", ")));
        }
        if !limits::is_table_name(real) {
            return Err(Error::new(Kind::Usage, format!("`{real}` cannot be the name of a table"))
                .with("found", format_args!("--table {name}={real}"))
                .with("expected", "3 to 255 of a-z A-Z 0-9 _ . -"));
        }
    }
    let mut real: BTreeMap<&str, &str> = BTreeMap::new();
    for table in tables {
        let name = names.get(&table.name).unwrap_or(&table.name);
        if let Some(other) = real.insert(name, &table.name) {
            return Err(Error::new(Kind::Usage, format!("two tables of the pipeline would be the one table `{name}`"))
                .with("found", format_args!("{other} and {}", table.name))
                .with("hint", "give each its own name with --table, or let both entities write to one table of the pipeline"));
        }
    }
    Ok(())
}

/// Takes the folders of all sinks on this machine for this run alone, as long as the files it gives live. The folder itself is what
/// is locked, so that nothing is left in it.
///
/// `made` gets to know what is missing of them, and of what the sinks make there before they are sure.
pub(super) fn lock_folders(options: &Options, made: &mut Made) -> Result<Vec<File>> {
    let mut locks = Vec::new();
    for destination in &options.destinations {
        let dir = match destination {
            #[cfg(feature = "parquet")]
            Destination::Parquet(OutputFolder::Local(dir)) => dir,
            #[cfg(feature = "iceberg")]
            Destination::Iceberg(OutputFolder::Local(dir)) => dir,
            Destination::Import(OutputFolder::Local(dir)) | Destination::Batch(dir) => dir,
            // There is no lock in S3.
            #[cfg(all(feature = "s3", feature = "parquet"))]
            Destination::Parquet(OutputFolder::S3(_)) => continue,
            #[cfg(all(feature = "s3", feature = "iceberg"))]
            Destination::Iceberg(OutputFolder::S3(_)) => continue,
            #[cfg(feature = "s3")]
            Destination::Import(OutputFolder::S3(_)) => continue,
            #[cfg(feature = "dynamodb")]
            Destination::DynamoDb(_) => continue,
        };
        made.folder(&dir.join(UNFINISHED));
        #[cfg(feature = "iceberg")]
        if let Destination::Iceberg(_) = destination {
            let run = dir.join(iceberg::RUN);
            if !run.exists() {
                made.file(run);
            }
        }
        let open = || {
            fs::create_dir_all(dir)?;
            File::open(dir)
        };
        let failed = |error| Error::new(Kind::Output, "cannot use the output folder").with("path", dir.display()).caused_by(error);
        let folder = open().map_err(failed)?;
        match folder.try_lock() {
            Ok(()) if is_at(&folder, dir) => locks.push(folder),
            Ok(()) | Err(TryLockError::WouldBlock) => {
                return Err(Error::new(Kind::Usage, "another run writes to this output folder")
                    .with("path", dir.display())
                    .with("hint", "wait for it to end, or name another folder"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Ok(locks)
}

/// Each sink needs a place of its own, and the work folder too: what one publishes or removes must be no other's.
fn check_folders(options: &Options) -> Result<()> {
    let mut folders: Vec<(String, Place)> = Vec::new();
    #[cfg(feature = "dynamodb")]
    let mut live = false;
    for destination in &options.destinations {
        let (kind, folder) = match destination {
            #[cfg(feature = "parquet")]
            Destination::Parquet(folder) => ("parquet", folder.clone()),
            #[cfg(feature = "iceberg")]
            Destination::Iceberg(folder) => ("iceberg", folder.clone()),
            Destination::Import(folder) => ("import", folder.clone()),
            Destination::Batch(dir) => ("batch", dir.clone().into()),
            #[cfg(feature = "dynamodb")]
            Destination::DynamoDb(_) if live => {
                return Err(Error::new(Kind::Usage, "the sink dynamodb is named twice").with("hint", "name it once"));
            }
            #[cfg(feature = "dynamodb")]
            Destination::DynamoDb(_) => {
                live = true;
                continue;
            }
        };
        let (name, folder) = (format!("{kind}:{folder}"), Place::of(&folder));
        if let Some((other, _)) = folders.iter().find(|(_, other)| folder.lies_in(other) || other.lies_in(&folder)) {
            return Err(Error::new(Kind::Usage, "two sinks have the same folder, or one lies in the other's")
                .with("found", format_args!("{other} and {name}"))
                .with("hint", "give each sink a folder of its own"));
        }
        folders.push((name, folder));
    }
    let work = Place::Local(resolved(&options.work));
    if let Some((sink, _)) = folders.iter().find(|(_, folder)| work.lies_in(folder)) {
        return Err(Error::new(Kind::Usage, "the work folder lies in the folder of a sink")
            .with("found", format_args!("--work {} and {sink}", options.work.display()))
            .with("hint", "name another folder with --work"));
    }
    let own = OF_A_RUN.map(|own| Place::Local(resolved(&options.work).join(own)));
    if let Some((sink, _)) = folders.iter().find(|(_, folder)| own.iter().any(|own| folder.lies_in(own))) {
        return Err(Error::new(Kind::Usage, "a sink's folder is one that each run empties in its work folder")
            .with("found", format_args!("{sink} and --work {}", options.work.display()))
            .with("hint", "name another folder for the sink"));
    }
    Ok(())
}

/// A folder under the one name that it has.
enum Place {
    Local(PathBuf),
    /// A bucket, and a prefix with a `/` at its end where there is one.
    #[cfg(feature = "s3")]
    S3(String, String),
}

impl Place {
    fn of(folder: &OutputFolder) -> Self {
        match folder {
            OutputFolder::Local(dir) => Self::Local(resolved(dir)),
            #[cfg(feature = "s3")]
            OutputFolder::S3(folder) => Self::S3(folder.bucket().name().to_owned(), folder.prefix().to_owned()),
        }
    }

    /// Whether it is the other folder or lies inside it.
    fn lies_in(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Local(this), Self::Local(other)) => this.starts_with(other),
            #[cfg(feature = "s3")]
            (Self::S3(bucket, this), Self::S3(of, other)) => bucket == of && this.starts_with(other),
            #[cfg(feature = "s3")]
            _ => false,
        }
    }
}

/// What a run empties must not be what it reads: rejects that are run again are the only copy of their reasons.
pub(super) fn check_inputs(inputs: &[Input], work: &Path) -> Result<()> {
    let own: Vec<_> = OF_A_RUN.iter().map(|name| resolved(work).join(name)).collect();
    let mut paths = inputs.iter().flat_map(|input| &input.locations).filter_map(Location::local);
    match paths.find(|path| path.exists() && own.iter().any(|own| resolved(path).starts_with(own))) {
        None => Ok(()),
        Some(path) => Err(Error::new(Kind::Usage, "the input lies in the work folder, which the run empties at its start")
            .with("found", format_args!("--from {} and --work {}", path.display(), work.display()))
            .with("hint", "name another folder with --work")),
    }
}

/// The path without links and dots, so that two names of one folder are seen as such; what is not there yet is taken as it is written.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut found = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(found.pop()),
            other => found.push(other),
        }
        // A link is followed before the next `..` is taken away.
        if let Ok(real) = found.canonicalize() {
            found = real;
        }
    }
    found
}

/// Exports, each with the source it is for.
pub(super) type Exports = Vec<(SourceId, Export)>;

/// The exports and all their data files.
pub(super) fn open_inputs(plan: &Plan, inputs: &[Input], reading: &manifest::Options) -> Result<(Exports, Vec<RunFile>)> {
    for input in inputs {
        if !plan.sources.iter().any(|source| source.name == input.source) {
            let message = match &input.source {
                Some(name) => format!("--from names source `{name}`, which the pipeline does not have"),
                None => "the pipeline has several sources, and --from does not say which".to_owned(),
            };
            let known = plan.sources.iter().filter_map(|source| source.name.as_deref()).collect::<Vec<_>>().join(", ");
            return Err(Error::new(Kind::Usage, message)
                .with("known", known)
                .with("hint", "write --from NAME=EXPORT, or --from EXPORT for a plain [source]"));
        }
    }
    let mut exports = Vec::new();
    let mut files = Vec::new();
    for (id, source) in (0..).map(SourceId).zip(&plan.sources) {
        let named: Vec<_> = inputs.iter().filter(|input| input.source == source.name).flat_map(|input| input.locations.clone()).collect();
        if named.is_empty() {
            continue;
        }
        for export in manifest::open_all(&named, reading)? {
            let (at, holds) = (exports.len(), Holds::of(&export));
            files.extend(export.files.iter().map(|file| RunFile {
                source: id,
                export: at,
                holds,
                seen: OnceLock::new(),
                file: file.clone(),
            }));
            exports.push((id, export));
        }
    }
    // Rejects of one source are run again alone; but where a whole export is read, a source that is not named was forgotten.
    let whole = exports.iter().any(|(_, export)| export.summary.is_some());
    let unnamed = plan.sources.iter().find(|source| !inputs.iter().any(|input| input.source == source.name));
    match unnamed {
        Some(source) if whole || inputs.is_empty() => {
            let (of, hint) = match &source.name {
                Some(name) => (format!(" for source `{name}`"), format!("add --from {name}=EXPORT")),
                None => (String::new(), "add --from EXPORT".to_owned()),
            };
            Err(Error::new(Kind::Usage, format!("no export is named{of}")).with("hint", hint))
        }
        _ => Ok((exports, files)),
    }
}

/// Change records are rows of a history, not items of a table.
pub(super) fn check_changes(exports: &[(SourceId, Export)], sinks: &[Box<dyn Sink>]) -> Result<()> {
    let Some((_, export)) = exports.iter().find(|(_, export)| export.window().is_some()) else { return Ok(()) };
    match sinks.iter().find(|sink| !sink.takes_unplaced()) {
        None => Ok(()),
        Some(sink) => Err(Error::new(Kind::Usage, "an incremental export holds changes of items, which this sink does not take")
            .with("export", export.summary.as_ref().and_then(|summary| summary.export_arn.as_deref()).unwrap_or("(without ARN)"))
            .with("sink", sink.name())
            .with("expected", "parquet:DIR alone")
            .with("hint", "run the full export into the table first; changes go to parquet: as rows with _op and _written_at")),
    }
}

#[cfg_attr(not(feature = "parquet"), expect(unused_variables, reason = "only Parquet says what was read"))]
pub(super) fn sinks(plan: &Plan, exports: &[(SourceId, Export)], options: &Options, workers: &Workers) -> Result<Vec<Box<dyn Sink>>> {
    let targets: Arc<Targets> = Arc::new(plan.targets.clone());
    options
        .destinations
        .iter()
        .map(|destination| {
            Ok::<Box<dyn Sink>, Error>(match destination {
                #[cfg(feature = "parquet")]
                Destination::Parquet(folder) => {
                    let sources = exports.iter().filter_map(|(_, export)| export.summary.as_ref()).map(|summary| Source {
                        export: summary.in_words(),
                        export_arn: summary.export_arn.clone(),
                        table_arn: summary.table_arn.clone(),
                    });
                    let sink = ParquetSink::new(folder.clone(), options.overwrite, Arc::clone(&targets), workers.spawn());
                    let mut sink = sink.with_sources(sources.collect()).with_jobs(options.jobs).with_file_options(options.parquet)?;
                    if let Some(dialect) = options.dialect {
                        sink = sink.with_dialect(dialect);
                    }
                    match &options.schema {
                        Some(text) => Box::new(sink.with_schema(&SchemaFile::parse(text)?)?),
                        None => Box::new(sink),
                    }
                }
                #[cfg(feature = "iceberg")]
                Destination::Iceberg(folder) => {
                    let existing = match (options.append, options.overwrite) {
                        (true, _) => Existing::Append,
                        (false, true) => Existing::Replace,
                        (false, false) => Existing::Refuse,
                    };
                    let as_of = exports.iter().filter_map(|(_, export)| export.as_of()).max();
                    let sink = IcebergSink::new(folder.clone(), existing, &targets, as_of, workers.spawn());
                    let files = exports.iter().flat_map(|(_, export)| &export.files);
                    let read: Vec<_> = files.map(|file| (&file.name, file.facts.bytes, &file.md5)).collect();
                    let sink = sink.of_run(format!("{}\n{read:?}", plan.identity()));
                    let mut sink = sink.only(options.only.clone()).with_jobs(options.jobs).with_file_options(options.parquet)?;
                    if let Some(dialect) = options.dialect {
                        sink = sink.with_dialect(dialect);
                    }
                    match &options.schema {
                        Some(text) => Box::new(sink.with_schema(&SchemaFile::parse(text)?)?),
                        None => Box::new(sink),
                    }
                }
                Destination::Import(folder) => {
                    let names = options.table_names.clone();
                    Box::new(ImportFiles::new(
                        folder.clone(),
                        options.overwrite,
                        Arc::clone(&targets),
                        names,
                        options.import,
                        workers.spawn(),
                    ))
                }
                Destination::Batch(dir) => {
                    Box::new(BatchFiles::new(dir.clone(), options.overwrite, Arc::clone(&targets), options.table_names.clone()))
                }
                #[cfg(feature = "dynamodb")]
                Destination::DynamoDb(live) => Box::new(DynamoDbSink::new((**live).clone(), Arc::clone(&targets), &options.table_names)?),
            })
        })
        .collect()
}
