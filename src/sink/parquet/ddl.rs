//! The SQL that brings the datasets of a folder into an engine: from the manifest alone, no file is opened.
//!
//! | dialect | statement | a column is found by |
//! |---|---|---|
//! | `DuckDB` | a view over the files | position |
//! | Spark | a table over the files | name |
//! | Athena | an external table | position; the fields of structs by name |
//! | Redshift | a table and `COPY` | position |
//! | Snowflake | a stage, a table and `COPY INTO` | name, under any other |
//! | `BigQuery` | an external table, or `LOAD DATA` where names must be replaced | name |
//! | `ClickHouse` | a view over the files | name |
//!
//! What is in the names of folders alone is found there, but not by Redshift.
//!
//! What an engine finds by position, or lets be renamed, gets a name that it takes. A field inside a struct that it finds by name and cannot
//! take is left out; where it cannot read the files at all, there is no statement. Both are told. Where the run wrote for the engine, all
//! names are as they must be. Nothing here speaks to an engine.

mod names;
mod types;

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use self::names::{Names, in_words};
use super::manifest::{Column, ColumnType, DatasetFiles, Manifest, PartitionColumn};
use super::partition::NOTHING;
use crate::error::{Error, Kind, Result};
use crate::model::declared::is_escaped_in_folders;

/// An engine's SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `DuckDB`.
    DuckDb,
    /// Spark 3.3 or newer.
    Spark,
    /// Amazon Athena.
    Athena,
    /// Amazon Redshift.
    Redshift,
    /// Snowflake.
    Snowflake,
    /// Google `BigQuery`.
    BigQuery,
    /// `ClickHouse`.
    ClickHouse,
}

/// Statements, and what is to be known of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Ddl {
    /// The statements, with comments.
    pub sql: String,
    /// What was renamed or left out, a line each.
    pub notes: Vec<String>,
    /// Datasets for which there is no statement, since the engine cannot read their files.
    pub refused: usize,
}

/// The stage of Snowflake's statements.
const STAGE: &str = "dynamorph_files";

/// The statements for all datasets of the folder, which is at `location`: a path or a URL, as the engine writes it.
///
/// # Errors
/// Kind `Usage` when the engine cannot read from there.
pub fn ddl(manifest: &Manifest, dialect: Dialect, location: &str) -> Result<Ddl> {
    let location = location.trim_end_matches('/');
    dialect.check_location(location)?;
    let mut ddl = Ddl::default();
    match dialect {
        Dialect::Spark if manifest.datasets.iter().any(|dataset| names::differ_in_case(&dataset.columns)) => {
            ddl.sql.push_str(
                "-- Some names differ in case alone: to be set wherever the tables are read.\nSET spark.sql.caseSensitive = true;\n\n",
            );
            ddl.notes.push("some names differ in case alone: Spark reads the files with spark.sql.caseSensitive = true only".to_owned());
        }
        Dialect::Snowflake => {
            let mut columns = manifest.datasets.iter().flat_map(|dataset| &dataset.columns);
            if columns.any(|column| column.kind == ColumnType::Timestamp) {
                ddl.sql.push_str("ALTER SESSION SET TIMEZONE = 'UTC';\n\n");
            }
            if !location.starts_with('@') {
                let url = dialect.literal(&format!("{location}/"));
                ddl.sql.push_str("-- A bucket that is not public needs STORAGE_INTEGRATION = … or CREDENTIALS = … here.\n");
                let _ = write!(ddl.sql, "CREATE STAGE IF NOT EXISTS {STAGE} URL = {url};\n\n");
            }
        }
        _ => {}
    }
    let mut tables = Names::new(dialect);
    for dataset in &manifest.datasets {
        let table = tables.take(&dialect.table_name(&dataset.name));
        dialect.dataset(dataset, &table, location, &mut ddl);
    }
    Ok(ddl)
}

/// A column as it is declared.
struct Declared<'c> {
    column: &'c Column,
    /// In quotes.
    name: String,
    kind: String,
}

impl Dialect {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["duckdb", "spark", "athena", "redshift", "snowflake", "bigquery", "clickhouse"][self as usize]
    }

    fn check_location(self, location: &str) -> Result<()> {
        let (engine, schemes): (_, &[&str]) = match self {
            Self::DuckDb => ("DuckDB", &[]),
            Self::Spark => ("Spark", &[]),
            Self::ClickHouse => ("ClickHouse", &[]),
            Self::Athena => ("Athena", &["s3://"]),
            Self::Redshift => ("Redshift", &["s3://"]),
            Self::Snowflake => ("Snowflake", &["s3://", "gcs://", "azure://", "@"]),
            Self::BigQuery => ("BigQuery", &["gs://"]),
        };
        if location.is_empty() || location.contains(char::is_control) {
            return Err(Error::new(Kind::Usage, "this cannot be the place of files").with("found", in_words(location)));
        }
        if self == Self::ClickHouse && location.contains(['*', '?', '{', '}']) {
            return Err(Error::new(Kind::Usage, "ClickHouse takes this path for a pattern")
                .with("found", in_words(location))
                .with("hint", "copy the folder to a path without * ? { }, and say where it is with --location"));
        }
        let Some(first) = schemes.first().filter(|_| !schemes.iter().any(|scheme| location.starts_with(scheme))) else { return Ok(()) };
        Err(Error::new(Kind::Usage, format!("{engine} reads no files from there"))
            .with("found", location)
            .with("expected", schemes.join(" or "))
            .with("hint", format_args!("copy the folder, and say where it is with --location {first}BUCKET/PREFIX")))
    }

    /// A text in quotes.
    fn literal(self, text: &str) -> String {
        match self {
            Self::DuckDb | Self::Redshift => format!("'{}'", text.replace('\'', "''")),
            _ => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        }
    }

    /// A name in quotes.
    fn quoted(self, name: &str) -> String {
        match self {
            Self::DuckDb | Self::Redshift | Self::Snowflake => format!("\"{}\"", name.replace('"', "\"\"")),
            Self::Spark | Self::Athena | Self::BigQuery => format!("`{}`", name.replace('`', "``")),
            Self::ClickHouse => format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`")),
        }
    }

    /// Adds the statements of a dataset.
    fn dataset(self, dataset: &DatasetFiles, table: &str, location: &str, ddl: &mut Ddl) {
        let entity = in_words(&dataset.name);
        let mut comments = Vec::new();
        if !table.eq_ignore_ascii_case(&dataset.name) {
            comments.push(format!("its table is {}", in_words(table)));
        }
        let statement = self.statement(dataset, &self.quoted(table), location, &mut comments);
        ddl.refused += usize::from(statement.is_none());
        let _ = writeln!(ddl.sql, "-- {entity}: {} items", dataset.items);
        for comment in comments {
            let _ = writeln!(ddl.sql, "-- {comment}");
            ddl.notes.push(format!("{entity}: {comment}"));
        }
        ddl.sql.push_str(&statement.unwrap_or_default());
        ddl.sql.push('\n');
    }

    /// The statements of a dataset; `None` where the engine cannot read its files, and the comments say why.
    fn statement(self, dataset: &DatasetFiles, table: &str, location: &str, comments: &mut Vec<String>) -> Option<String> {
        let folder = format!("{location}/{}", dataset.folder);
        // A folder for each column that names one.
        let files = format!("{folder}{}", "/*".repeat(dataset.partition.len()));
        let columns: Vec<_> = dataset.columns.iter().cloned().chain(dataset.partition.iter().map(PartitionColumn::column)).collect();
        let columns = &columns[..];
        let names = names::of_columns(self, columns, comments)?;
        if !self.reads_folders(dataset, &names[dataset.columns.len()..], comments) {
            return None;
        }
        let kinds: Vec<_> = columns.iter().map(|column| types::of(self, column, &column.name, comments)).collect();
        if self == Self::BigQuery && (kinds.contains(&None) || names::must_change(self, columns)) {
            return Some(self.load_data(dataset, table, &folder));
        }
        let kinds = kinds.into_iter().map(|kind| kind.unwrap_or_else(|| types::UNREADABLE.to_owned()));
        let declared: Vec<_> = columns
            .iter()
            .zip(names)
            .zip(kinds)
            .map(|((column, name), kind)| Declared { column, name: self.quoted(&name), kind })
            .collect();
        let lines = |declared: &[Declared<'_>]| {
            let lines = declared.iter().map(|Declared { name, kind, .. }| format!("  {name} {kind}"));
            lines.collect::<Vec<_>>().join(",\n")
        };
        let (in_files, in_folders) = declared.split_at(dataset.columns.len());
        let (parted, repair) = self.parted(table, in_folders);
        Some(match self {
            Self::DuckDb => view(table, &declared, in_folders, location, &folder),
            Self::Spark => {
                let lines = lines(&declared);
                format!("CREATE TABLE {table} (\n{lines}\n)\nUSING PARQUET\n{parted}LOCATION {};\n{repair}", self.literal(&folder))
            }
            Self::Athena => format!(
                "CREATE EXTERNAL TABLE {table} (\n{}\n)\n{parted}ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe'\n\
                 WITH SERDEPROPERTIES ('parquet.column.index.access' = 'true')\nSTORED AS PARQUET\nLOCATION {};\n{repair}",
                lines(in_files),
                self.literal(&format!("{folder}/"))
            ),
            Self::Redshift => {
                let nested = declared.iter().any(|column| column.kind == types::SUPER);
                format!(
                    "CREATE TABLE {table} (\n{}\n);\nCOPY {table} FROM {} IAM_ROLE default FORMAT AS PARQUET{};\n",
                    lines(in_files),
                    self.literal(&format!("{folder}/")),
                    if nested { " SERIALIZETOJSON" } else { "" }
                )
            }
            Self::Snowflake => {
                let stage = if location.starts_with('@') { folder } else { format!("@{STAGE}/{}", dataset.folder) };
                let copy = copy_into(table, in_files, in_folders, &self.literal(&format!("{stage}/")));
                format!("CREATE TABLE {table} (\n{}\n);\n{copy}", lines(&declared))
            }
            Self::BigQuery => format!(
                "CREATE EXTERNAL TABLE {table} (\n{}\n)\n{parted}OPTIONS (\n  format = 'PARQUET',\n  uris = [{}],\n  \
                 enable_list_inference = true,\n  decimal_target_types = ['NUMERIC', 'BIGNUMERIC']{}\n);\n",
                lines(in_files),
                self.literal(&format!("{folder}/*.parquet")),
                self.uri_prefix(dataset, &folder)
            ),
            Self::ClickHouse => {
                let function = if location.contains("://") { "s3" } else { "file" };
                let structure: Vec<_> = in_files.iter().map(|Declared { name, kind, .. }| format!("{name} {kind}")).collect();
                let value = |Declared { column, name, .. }: &Declared<'_>| {
                    let folder = self.literal(&format!("/{}=", column.name));
                    let value = format!("decodeURLComponent(splitByChar('/', splitByString({folder}, _path)[-1])[1])");
                    format!(", nullIf({value}, '{NOTHING}') AS {name}")
                };
                let values: String = in_folders.iter().map(value).collect();
                let settings = if in_folders.is_empty() { "" } else { " SETTINGS use_hive_partitioning = 0" };
                format!(
                    "CREATE VIEW {table} (\n{}\n) AS SELECT *{values} FROM {function}({}, 'Parquet', {}){settings};\n",
                    lines(&declared),
                    self.literal(&format!("{files}/*.parquet")),
                    self.literal(&structure.join(", "))
                )
            }
        })
    }
}

impl Dialect {
    /// Whether the engine finds what is in the names of the folders; the comments say why not, or what it lacks.
    fn reads_folders(self, dataset: &DatasetFiles, names: &[String], comments: &mut Vec<String>) -> bool {
        let engine = if self == Self::Athena { "Athena" } else { "BigQuery" };
        for (PartitionColumn { name, .. }, found) in dataset.partition.iter().zip(names) {
            match self {
                Self::Athena | Self::BigQuery if name != found => {
                    let hint = format!("a run with --dialect {} names them so that it does", self.name());
                    comments.push(format!("{engine} finds no folders that are named after {}: {hint}", in_words(name)));
                    return false;
                }
                Self::Redshift => {
                    comments.push(format!("{} is left out, since COPY takes nothing from the names of folders", in_words(name)));
                }
                _ => {}
            }
        }
        let mut values = dataset.files.iter().flat_map(|file| file.partition.values().flatten());
        if self == Self::Snowflake && values.any(|value| value.contains(is_escaped_in_folders)) {
            comments.push("in values from the names of folders, %3A stands for a colon, and the like".to_owned());
        }
        true
    }

    /// What a table says of columns in the names of folders, and the statement that looks for these.
    fn parted(self, table: &str, in_folders: &[Declared<'_>]) -> (String, String) {
        if in_folders.is_empty() {
            return (String::new(), String::new());
        }
        let list = |types: bool| {
            let columns = in_folders.iter().map(|Declared { name, kind, .. }| if types { format!("{name} {kind}") } else { name.clone() });
            columns.collect::<Vec<_>>().join(", ")
        };
        let repair = || format!("MSCK REPAIR TABLE {table};\n");
        match self {
            Self::Spark => (format!("PARTITIONED BY ({})\n", list(false)), repair()),
            Self::Athena => (format!("PARTITIONED BY ({})\n", list(true)), repair()),
            Self::BigQuery => (format!("WITH PARTITION COLUMNS ({})\n", list(true)), String::new()),
            _ => (String::new(), String::new()),
        }
    }

    /// The option that says where the folders of `BigQuery`'s partitions begin.
    fn uri_prefix(self, dataset: &DatasetFiles, folder: &str) -> String {
        if dataset.partition.is_empty() { String::new() } else { format!(",\n  hive_partition_uri_prefix = {}", self.literal(folder)) }
    }

    /// `BigQuery` replaces names itself while it loads, and finds the types in the files.
    fn load_data(self, dataset: &DatasetFiles, table: &str, folder: &str) -> String {
        let in_folders: Vec<_> = dataset.partition.iter().map(|by| format!("{} STRING", self.quoted(&by.name))).collect();
        let parted = if in_folders.is_empty() { String::new() } else { format!("\nWITH PARTITION COLUMNS ({})", in_folders.join(", ")) };
        format!(
            "LOAD DATA OVERWRITE {table}\nFROM FILES (\n  format = 'PARQUET',\n  uris = [{}],\n  enable_list_inference = true,\n  \
             decimal_target_types = ['NUMERIC', 'BIGNUMERIC'],\n  column_name_character_map = 'V1'{}\n){parted};\n",
            self.literal(&format!("{folder}/*.parquet")),
            self.uri_prefix(dataset, folder)
        )
    }
}

/// `DuckDB` takes the types from the files; they stand there for the reader.
fn view(table: &str, columns: &[Declared<'_>], in_folders: &[Declared<'_>], location: &str, files: &str) -> String {
    let mut sql = format!("CREATE OR REPLACE VIEW {table} (\n");
    for (at, Declared { name, kind, .. }) in (1..).zip(columns) {
        let comma = if at < columns.len() { "," } else { "" };
        let _ = writeln!(sql, "  {name}{comma} -- {}", names::on_one_line(kind));
    }
    // A path is a pattern too.
    let mut pattern = String::with_capacity(files.len());
    for character in files.chars() {
        match character {
            '*' | '?' | '[' => pattern.extend(['[', character, ']']),
            other => pattern.push(other),
        }
    }
    let files = Dialect::DuckDb.literal(&format!("{pattern}{}/*.parquet", "/*".repeat(in_folders.len())));
    if in_folders.is_empty() {
        let _ = writeln!(sql, ") AS SELECT * FROM read_parquet({files}, hive_partitioning = false);");
        return sql;
    }
    let names = in_folders.iter().map(|Declared { name, .. }| name.as_str()).collect::<Vec<_>>().join(", ");
    let types = in_folders.iter().map(|Declared { column, kind, .. }| format!("{}: {kind}", Dialect::DuckDb.literal(&column.name)));
    let types = types.collect::<Vec<_>>().join(", ");
    // It takes any folder above for one that has a value.
    let others = location.split('/').filter_map(|folder| folder.split_once('=')).map(|(name, _)| Dialect::DuckDb.quoted(name));
    let without = std::iter::once(names.clone()).chain(others).collect::<Vec<_>>().join(", ");
    let _ = writeln!(
        sql,
        ") AS SELECT * EXCLUDE ({without}), {names} FROM read_parquet({files}, hive_partitioning = true, hive_types = {{{types}}});"
    );
    sql
}

fn copy_into(table: &str, columns: &[Declared<'_>], in_folders: &[Declared<'_>], files: &str) -> String {
    let value = |Declared { column, kind, .. }: &Declared<'_>| {
        let value = format!("$1:{}", Dialect::Snowflake.quoted(&column.name));
        if kind == types::VARIANT { format!("  {value}") } else { format!("  {value}::{kind}") }
    };
    let of_folder = |Declared { column, .. }: &Declared<'_>| {
        let folder = Dialect::Snowflake.literal(&format!("/{}=", column.name));
        format!("  NULLIF(SPLIT_PART(SPLIT_PART(METADATA$FILENAME, {folder}, -1), '/', 1), '{NOTHING}')")
    };
    let values: Vec<_> = columns.iter().map(value).chain(in_folders.iter().map(of_folder)).collect();
    format!(
        "COPY INTO {table} FROM (SELECT\n{}\n  FROM {files}\n)\nFILE_FORMAT = (TYPE = PARQUET USE_VECTORIZED_SCANNER = TRUE USE_LOGICAL_TYPE = TRUE \
         BINARY_AS_TEXT = FALSE NULL_IF = ());\n",
        values.join(",\n")
    )
}

#[cfg(test)]
mod tests;
