//! The command line as clap reads it, and nothing else.

#![expect(clippy::doc_markdown, reason = "doc comments are the help texts, which show no backticks")]

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use dynamorph::model::Format;
use dynamorph::sink::import_files::{self, Compression};
use dynamorph::sink::parquet::FileOptions;
use dynamorph::source::manifest::{self, Choice};

/// Remodels DynamoDB tables offline: export, transform, import.
///
/// Exit codes: 0 done; 1 ended by an error; 2 wrong usage or a wrong pipeline; 3 done, with rejects above --max-rejects; 4 verify
/// found differences; 5 stopped, and the same command goes on.
#[derive(Debug, Parser)]
#[command(name = "dynamorph", version, max_term_width = 120)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// How results are printed on stdout; logs and progress go to stderr.
    #[arg(long, global = true, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// No progress and no warnings.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more: the plan in words with `check`, where results were kept with `run`.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// One JSON document with stable field names.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Parse and bind a pipeline file, and run its examples: every mistake at once, with its place in the file.
    Check(Check),
    /// Read exports, carry every item through the pipeline, and write.
    Run(Run),
    /// Say what is in an export: entities, key shapes, attributes, drift, sizes, hot keys.
    Inspect(Inspect),
    /// Import what `run --to import:s3://…` wrote into new tables, follow the imports, and compare the counts.
    Load(Load),
    /// Print the IAM policy that lets a run do its work, and nothing else.
    IamPolicy(IamPolicy),
    /// Say where a run is, from another terminal, or what a finished run did.
    Status(Status),
    /// Compare targets with what the pipeline makes of the exports: counts, checksums, and every key that differs.
    Verify(VerifyTargets),
    /// Take a live run back by its undo log: put again what it replaced, delete what it created, leave alone what changed since.
    Undo(Undo),
    /// What `run --to parquet:` wrote, for other programs.
    #[command(subcommand)]
    Schema(Schema),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Schema {
    /// Print the SQL that brings the datasets into an engine: views, tables over the files, or tables that are loaded from them.
    ///
    /// Names that the engine cannot take are replaced; comments and stderr say which. Exit code 3: a dataset has no statement, since the
    /// engine cannot read its files.
    Ddl(Ddl),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ddl {
    /// The folder of a run with --to parquet:, on this machine or s3://BUCKET/PREFIX.
    #[arg(value_name = "DIR")]
    pub(crate) folder: String,
    /// Whose SQL.
    #[arg(long, value_enum)]
    pub(crate) dialect: Dialect,
    /// Where the engine finds the folder: a path, s3://…, gs://…, or for Snowflake @STAGE/PATH too. Default: DIR.
    #[arg(long, value_name = "URL")]
    pub(crate) location: Option<String>,
    #[command(flatten)]
    pub(crate) service: Service,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    Duckdb,
    Spark,
    Athena,
    Redshift,
    Snowflake,
    Bigquery,
    Clickhouse,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Undo {
    /// The work folder of the run: what --work says, or .dynamorph/PIPELINE. The run had --undo-log. Region and address are those of the run.
    pub(crate) work: PathBuf,
    /// Only this table, by its real name. Repeat for more.
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Vec<String>,
    /// Look and count, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The folder of the log in the work folder; undo.1, undo.2 … are those of earlier runs there.
    #[arg(long, value_name = "NAME", default_value = "undo")]
    pub(crate) log: String,
    /// Requests under way at a time. Default: 16.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) service: Service,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// The work folder of the run: what --work says, or .dynamorph/PIPELINE.
    pub(crate) work: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The pipeline file (TOML).
    pub(crate) pipeline: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The pipeline file (TOML).
    pub(crate) pipeline: PathBuf,
    /// An export folder, its manifest-summary.json, or a data or rejects file; on this machine or s3://BUCKET/…. With several sources:
    /// NAME=EXPORT. Repeat for more.
    #[arg(long, value_name = "[NAME=]EXPORT", required = true)]
    pub(crate) from: Vec<String>,
    /// Where items go: parquet:DIR, iceberg:DIR, import:DIR, batch:DIR, or dynamodb; all but batch: take s3://BUCKET/PREFIX as DIR too.
    /// Repeat for several in one pass.
    #[arg(long, value_name = "SINK", required = true)]
    pub(crate) to: Vec<String>,
    /// The run's folder: its state, reports and rejects. Default: .dynamorph/PIPELINE in the current folder, or W.replay where rejects of
    /// the run in W are read.
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,
    /// Begin anew also where the work folder holds a run that was stopped. Without it the same command goes on with that run.
    #[arg(long)]
    pub(crate) restart: bool,
    /// What is done again at most when a stopped run goes on: compressed bytes of data files, whole files together.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub(crate) unit_size: usize,
    /// How many threads compute at a time. The output is the same for any number. Default: as many as there are processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Read only the first N items.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Carry only this entity; the others are dropped and counted. Repeat for more.
    #[arg(long, value_name = "ENTITY")]
    pub(crate) only: Vec<String>,
    /// Replace what an earlier run wrote into the same output folders.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Add to the tables that iceberg: finds, and create those that are missing.
    #[arg(long, conflicts_with = "overwrite")]
    pub(crate) append: bool,
    /// Write the columns of this schema, which --schema-out kept, to parquet: or iceberg:. The first item that does not fit ends the run, before
    /// anything is written.
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Keep the schema of what parquet: or iceberg: wrote in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) schema_out: Option<PathBuf>,
    /// Name the columns of parquet:, and the fields in them, as this engine takes them. _dynamorph.json has the attribute of each.
    #[arg(long, value_enum)]
    pub(crate) dialect: Option<Dialect>,
    /// The real name of a table of the pipeline, for example docs=prod-docs. Repeat for more.
    #[arg(long, value_name = "NAME=REAL")]
    pub(crate) table: Vec<String>,
    /// More rejects than this give exit code 3.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_rejects: u64,
    #[command(flatten)]
    pub(crate) live: Live,
    #[command(flatten)]
    pub(crate) parquet: FilesOfParquet,
    #[command(flatten)]
    pub(crate) import: FilesForImport,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) service: Service,
}

/// What Parquet files are like.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of --to parquet:DIR and iceberg:DIR")]
pub(crate) struct FilesOfParquet {
    /// A row group in memory, before it is encoded: 1KiB to 1GiB.
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = size)]
    pub(crate) row_group_size: usize,
    /// A file ends with the row group that makes it this long: 1KiB to 64GiB.
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = size)]
    pub(crate) file_size: usize,
    /// How hard zstd tries to make the files smaller: 1 to 22.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=22))]
    pub(crate) zstd_level: i32,
}

impl FilesOfParquet {
    pub(crate) fn options(&self) -> FileOptions {
        FileOptions { row_group: self.row_group_size, file: self.file_size, zstd_level: self.zstd_level }
    }
}

/// The heading of what only one sink heeds.
const LIVE: &str = "Options of --to dynamodb";

/// How `dynamodb` writes.
#[derive(Debug, clap::Args)]
pub(crate) struct Live {
    /// The most write units a second, over all tables and their indexes. Default: as many as the tables take.
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = LIVE)]
    pub(crate) max_write_units: Option<NonZeroU32>,
    /// Start with a tenth of --max-write-units and grow evenly to the whole in this time, such as 30s, 5m or 1h.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "max_write_units", help_heading = LIVE)]
    pub(crate) ramp: Option<Duration>,
    /// Write only where no item has the key.
    #[arg(long, conflicts_with = "if_newer", help_heading = LIVE)]
    pub(crate) if_absent: bool,
    /// Write only where the item there has a smaller ATTR, or none, or where there is no item.
    #[arg(long, value_name = "ATTR", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = LIVE)]
    pub(crate) if_newer: Option<String>,
    /// Create the tables that do not exist, as the pipeline says. What exists is checked and never changed.
    #[arg(long, help_heading = LIVE)]
    pub(crate) create_tables: bool,
    /// Keep what is replaced in WORK/undo before it is, so that `undo` can take the run back. Each item is read first.
    #[arg(long)]
    pub(crate) undo_log: bool,
}

impl Live {
    /// The first of these options that was given, as it is written.
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            (self.max_write_units.is_some(), "--max-write-units"),
            (self.if_absent, "--if-absent"),
            (self.if_newer.is_some(), "--if-newer"),
            (self.create_tables, "--create-tables"),
            (self.undo_log, "--undo-log"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

/// What files for import are like.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of --to import:DIR")]
pub(crate) struct FilesForImport {
    /// How items are written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ImportFormat::DynamodbJson)]
    pub(crate) import_format: ImportFormat,
    /// How objects are compressed.
    #[arg(long, value_enum, value_name = "COMPRESSION", default_value_t = ImportCompression::Gzip)]
    pub(crate) import_compression: ImportCompression,
    /// The text of an object before it is compressed, such as 256MiB.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub(crate) import_object_size: usize,
    /// When the files are in S3, import them into new tables, as `dynamorph load` does. Not where there are more rejects than
    /// --max-rejects.
    #[arg(long)]
    pub(crate) start_import: bool,
}

impl FilesForImport {
    pub(crate) fn options(&self) -> import_files::Options {
        import_files::Options {
            format: match self.import_format {
                ImportFormat::DynamodbJson => Format::Json,
                ImportFormat::Ion => Format::Ion,
            },
            compression: match self.import_compression {
                ImportCompression::Gzip => Compression::Gzip,
                ImportCompression::Zstd => Compression::Zstd,
            },
            object_bytes: self.import_object_size as u64,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFormat {
    /// DynamoDB JSON.
    DynamodbJson,
    /// Amazon Ion text.
    Ion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportCompression {
    Gzip,
    Zstd,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Load {
    /// The prefix that `run --to import:s3://BUCKET/PREFIX` wrote, or that such a folder was copied to: s3://BUCKET/PREFIX.
    #[arg(value_name = "FILES")]
    pub(crate) files: String,
    /// The real name of a table of the pipeline, for example docs=prod-docs; it wins over that in the files. Repeat for more.
    #[arg(long, value_name = "NAME=REAL")]
    pub(crate) table: Vec<String>,
    /// Load only this table, by its name in the pipeline. Repeat for more.
    #[arg(long, value_name = "TABLE")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) service: Service,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    /// An export folder, its manifest-summary.json, or data files; on this machine or s3://BUCKET/….
    #[arg(value_name = "EXPORT", required = true)]
    pub(crate) exports: Vec<String>,
    /// The partition key's attribute. Default: guessed, and said so.
    #[arg(long, value_name = "NAME")]
    pub(crate) partition_key: Option<String>,
    /// The sort key's attribute. Default: guessed, and said so.
    #[arg(long, value_name = "NAME")]
    pub(crate) sort_key: Option<String>,
    /// The attribute that names the entity. Default: guessed, and said so.
    #[arg(long, value_name = "NAME")]
    pub(crate) type_attribute: Option<String>,
    /// How many threads compute at a time. Default: as many as there are processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Read only the first N items.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) service: Service,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyTargets {
    /// The pipeline file (TOML).
    pub(crate) pipeline: PathBuf,
    /// The exports that the run read, in the same forms.
    #[arg(long, value_name = "[NAME=]EXPORT", required = true)]
    pub(crate) from: Vec<String>,
    /// What is compared: dynamodb (live tables), import:DIR, batch:DIR, parquet:DIR, or export:[TABLE=]EXPORT (a full export of a target
    /// table); all but batch: from s3://BUCKET/PREFIX too. Repeat for several.
    #[arg(long, value_name = "TARGET", required = true)]
    pub(crate) against: Vec<String>,
    /// The real name of a live table, for example docs=prod-docs. Repeat for more.
    #[arg(long, value_name = "NAME=REAL")]
    pub(crate) table: Vec<String>,
    /// Compare only this entity. Repeat for more.
    #[arg(long, value_name = "ENTITY")]
    pub(crate) only: Vec<String>,
    /// Compare counts only, by entity; no item with another.
    #[arg(long, conflicts_with = "sample")]
    pub(crate) counts: bool,
    /// Compare only the keys whose hash falls into so many percent; the others may differ. All items are read all the same.
    #[arg(long, value_name = "PERCENT")]
    pub(crate) sample: Option<f64>,
    /// Show so many keys that differ, with what differs; all are in WORK/differences.jsonl.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) show: usize,
    /// Read live tables with at most so many read units a second, together.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) max_read_units: Option<NonZeroU32>,
    /// The folder for what is kept on disk and for the differences. Default: .dynamorph/PIPELINE.verify in the current folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,
    /// How many threads compute at a time. Default: as many as there are processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) service: Service,
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "these are flags of a command")]
pub(crate) struct IamPolicy {
    /// The pipeline file (TOML).
    pub(crate) pipeline: PathBuf,
    /// As for `run`. Manifests are read where they can be; for the others their address must do.
    #[arg(long, value_name = "[NAME=]EXPORT", required = true)]
    pub(crate) from: Vec<String>,
    /// As for `run`.
    #[arg(long, value_name = "SINK", required = true)]
    pub(crate) to: Vec<String>,
    /// As for `run`.
    #[arg(long, value_name = "NAME=REAL")]
    pub(crate) table: Vec<String>,
    /// As for `run`: live tables are written by conditional puts.
    #[arg(long)]
    pub(crate) if_absent: bool,
    /// As for `run`: live tables are written by conditional puts.
    #[arg(long, value_name = "ATTR")]
    pub(crate) if_newer: Option<String>,
    /// As for `run`: missing tables are created.
    #[arg(long)]
    pub(crate) create_tables: bool,
    /// As for `run`: what live puts replace is read first.
    #[arg(long)]
    pub(crate) undo_log: bool,
    /// For `undo` too, after a run with --undo-log.
    #[arg(long, requires = "undo_log")]
    pub(crate) undo: bool,
    /// Files in S3 are imported into new tables by ImportTable.
    #[arg(long)]
    pub(crate) start_import: bool,
    /// For `verify` against this target too: dynamodb, or KIND:s3://BUCKET/PREFIX. Repeat for more.
    #[arg(long, value_name = "TARGET")]
    pub(crate) verify_against: Vec<String>,
    /// The account of the tables. Default: the account of the exported table, by the manifest.
    #[arg(long, value_name = "ID", value_parser = account)]
    pub(crate) account: Option<String>,
    /// The KMS key that encrypts what is written to S3: its ARN or id.
    #[arg(long, value_name = "KEY")]
    pub(crate) kms_key: Option<String>,
    #[command(flatten)]
    pub(crate) grants_nothing: GrantsNothing,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) service: Service,
}

/// What `run` takes besides: no permission depends on it. It is taken so that the flags of a run can be given as they are.
#[derive(Debug, clap::Args)]
pub(crate) struct GrantsNothing {
    #[arg(long, hide = true, value_parser = at_least_one)]
    max_write_units: Option<NonZeroU32>,
    #[arg(long, hide = true, value_parser = duration, requires = "max_write_units")]
    ramp: Option<Duration>,
    #[arg(long, hide = true)]
    work: Option<PathBuf>,
    #[arg(long, hide = true)]
    restart: bool,
    #[arg(long, hide = true, value_parser = size)]
    unit_size: Option<usize>,
    #[arg(long, hide = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[arg(long, hide = true)]
    limit: Option<u64>,
    #[arg(long, hide = true)]
    only: Vec<String>,
    #[arg(long, hide = true)]
    overwrite: bool,
    #[arg(long, hide = true)]
    append: bool,
    #[arg(long, hide = true)]
    max_rejects: Option<u64>,
    #[arg(long, hide = true)]
    schema: Option<PathBuf>,
    #[arg(long, hide = true)]
    schema_out: Option<PathBuf>,
    #[arg(long, hide = true, value_enum)]
    dialect: Option<Dialect>,
    #[arg(long, hide = true, value_enum)]
    import_format: Option<ImportFormat>,
    #[arg(long, hide = true, value_enum)]
    import_compression: Option<ImportCompression>,
    #[arg(long, hide = true, value_parser = size)]
    import_object_size: Option<usize>,
    #[arg(long, hide = true, value_parser = size)]
    row_group_size: Option<usize>,
    #[arg(long, hide = true, value_parser = size)]
    file_size: Option<usize>,
    #[arg(long, hide = true)]
    zstd_level: Option<i32>,
}

/// An account's id.
fn account(text: &str) -> Result<String, String> {
    if text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        Err("expected 12 digits".to_owned())
    }
}

/// How AWS is reached.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "How AWS is reached")]
pub(crate) struct Service {
    /// The address of the services, for a local or compatible server.
    #[arg(long, value_name = "URL", value_parser = address)]
    pub(crate) endpoint_url: Option<String>,
    /// The address of S3, where it is another one.
    #[arg(long, value_name = "URL", value_parser = address)]
    pub(crate) s3_endpoint_url: Option<String>,
    /// Put bucket names into the path of addresses. Always so with an address of your own.
    #[arg(long)]
    pub(crate) path_style: bool,
    /// The account that must own the buckets; S3 refuses requests where another one does.
    #[arg(long, value_name = "ACCOUNT")]
    pub(crate) bucket_owner: Option<String>,
    /// The AWS region. Default: as the AWS CLI finds it.
    #[arg(long)]
    pub(crate) region: Option<String>,
    /// The AWS profile; it wins over keys in the environment. Default: as the AWS CLI finds it.
    #[arg(long)]
    pub(crate) profile: Option<String>,
}

/// An address of a service, which without its scheme would be tried in vain.
fn address(text: &str) -> Result<String, String> {
    if text.starts_with("http://") || text.starts_with("https://") {
        Ok(text.to_owned())
    } else {
        Err("expected http://… or https://…".to_owned())
    }
}

/// How exports are found and checked.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "How exports are found and checked")]
pub(crate) struct Reading {
    /// Which export is meant where a folder holds several: latest, an export's id, or "as-of TIME" such as as-of 2026-01-14T10:00:00Z.
    #[arg(long, value_name = "CHOICE")]
    pub(crate) export: Option<Choice>,
    /// What is compared with the manifest.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Verify::Strict)]
    pub(crate) verify: Verify,
    /// The longest line of a data file, such as 64MiB, 100MB or a number of bytes; a longer one ends the run.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub(crate) max_line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verify {
    /// Checksums of summary, list and data files, and the counts.
    Strict,
    /// Checksums of data files, and the counts; a changed summary or list is a warning.
    Data,
    /// Nothing.
    Off,
}

impl Reading {
    pub(crate) fn options(&self) -> manifest::Options {
        let verify = match self.verify {
            Verify::Strict => manifest::Verify::Strict,
            Verify::Data => manifest::Verify::Data,
            Verify::Off => manifest::Verify::Off,
        };
        manifest::Options { choice: self.export.clone(), verify, max_line_bytes: self.max_line }
    }
}

/// A rate, which is never nothing.
fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("expected a whole number from 1 to {}", u32::MAX))
}

/// A number of bytes, with a unit or without one.
fn size(text: &str) -> Result<usize, String> {
    const UNITS: [(&str, usize); 7] =
        [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("KB", 1000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("", 1)];
    let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
    let unit = text[digits.len()..].trim_start();
    let factor = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| *factor);
    match (digits.parse::<usize>(), factor) {
        (Ok(number), Some(factor)) if number > 0 => number.checked_mul(factor).ok_or_else(|| "it is too large".to_owned()),
        _ => Err("expected a number of bytes above 0, with KiB, MiB, GiB, KB, MB, GB or nothing behind it".to_owned()),
    }
}

/// A time with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
    let seconds = match text[digits.len()..].trim_start() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => 0,
    };
    match digits.parse::<u32>() {
        Ok(number) if number > 0 && seconds > 0 => Ok(Duration::from_secs(u64::from(number) * seconds)),
        _ => Err("expected a number above 0 with s, m or h behind it, such as 30s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{at_least_one, duration, size};

    #[test]
    fn a_rate_is_one_or_more() {
        assert_eq!(at_least_one("1").map(u32::from), Ok(1));
        for wrong in ["", "0", "-1", "1.5", "many", "4294967296"] {
            let message = at_least_one(wrong).unwrap_err();
            assert!(message.contains("from 1"), "{wrong}: {message}");
        }
    }

    #[test]
    fn a_duration_has_a_unit() {
        for (text, seconds) in [("1s", 1), ("90 s", 90), ("5m", 300), ("2h", 7200)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "0s", "5", "m", "1.5h", "-1s", "1d", "99999999999s", "1s s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_has_a_unit_or_none() {
        for (text, bytes) in [("1", 1), ("64MiB", 64 << 20), ("10mb", 10_000_000), ("2 KiB", 2048), ("1GB", 1_000_000_000)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "0", "MB", "1.5MB", "1M", "-1", "1 MB x", "99999999999GiB", "1MB2"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
