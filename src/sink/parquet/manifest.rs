//! `_dynamorph.json`: what a run wrote, beside the datasets' folders, for programs and people who have no Parquet reader at hand.
//!
//! A function of the schemas and of what the units wrote: no time, no machine, the same bytes for any number of workers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use arrow::datatypes::{DataType, Field, TimeUnit};
use serde::{Deserialize, Serialize};

use super::ddl::Dialect;
use super::form::{ATTRIBUTE, JSON, TYPE};
use super::layout::Layout;
use super::partition::{By, of_folder};
use super::write::folder;
use crate::error::{Error, Kind, Result};
use crate::model::DatasetId;
use crate::sink::Written;
use crate::store::Location;

/// The manifest's name, at the top of the sink's folder. It is beside the datasets' folders, so nobody takes it for data.
pub const MANIFEST: &str = "_dynamorph.json";

/// The version that this program writes and reads.
const VERSION: u32 = 1;

/// What the folder of a `parquet:` sink holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// 1.
    pub version: u32,
    /// What the items were read from, where it has a manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// The engine whose names the columns have; `None` where they have those of their attributes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// The datasets that have items, in the order of the pipeline.
    pub datasets: Vec<DatasetFiles>,
}

/// An export that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What it is, in words: `full export of table docs at 2026-01-14T10:18:50.622Z`.
    pub export: String,
    /// Its ARN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_arn: Option<String>,
    /// The ARN of its table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_arn: Option<String>,
}

/// A dataset: its schema and its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetFiles {
    /// The entity's name.
    pub name: String,
    /// The folder of its files, below the sink's.
    pub folder: String,
    /// Items in all files.
    pub items: u64,
    /// The columns, in the order of the files.
    pub columns: Vec<Column>,
    /// What names the folders of the files, in the order of these: columns of text that are not in the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition: Vec<PartitionColumn>,
    /// The files, in the order they were written.
    pub files: Vec<DataFile>,
}

/// A column that is in the names of folders, `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionColumn {
    /// Its name in those of the folders.
    pub name: String,
    /// Text.
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// The attribute whose values it has.
    pub attribute: String,
}

/// A file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Below the sink's folder, with `/` between names.
    pub path: String,
    /// Items in it.
    pub items: u64,
    /// Its size.
    pub bytes: u64,
    /// The values that its folders are named after, by column; `None` where the items have none, or an empty text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub partition: BTreeMap<String, Option<String>>,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A column, a field of a struct, an element of a list or a value of a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name in the file.
    pub name: String,
    /// What it is in Parquet.
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// What it was in `DynamoDB`: a descriptor such as `SS`, `json`, or `text` for S, N and BOOL as text. `NULL` in a boolean column says
    /// where the attribute was NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamodb: Option<String>,
    /// What a JSON text holds: `M`, `L`, or `any` value with its descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// The attribute that a column's values are of; the one column without holds those that have no column of their own. For a field of a
    /// struct the map's key, where that is not its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
}

/// The types that are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// UTF-8.
    Text,
    /// 64 bits with a sign.
    Int64,
    /// 64 bits, floating.
    Double,
    /// Exact.
    Decimal {
        /// Digits.
        precision: u8,
        /// Of them after the point.
        scale: i8,
    },
    /// An instant, in microseconds.
    #[serde(rename = "timestamp(us, UTC)")]
    Timestamp,
    /// True or false.
    Boolean,
    /// Bytes.
    Binary,
    /// Of elements.
    List(Box<Column>),
    /// Of fields.
    Struct(Vec<Column>),
    /// From text to values.
    Map(Box<Column>),
}

impl Manifest {
    /// What the units wrote of these datasets, each with its id.
    pub(super) fn of<'l>(
        layouts: impl Iterator<Item = (DatasetId, &'l Layout)>,
        dialect: Option<Dialect>,
        written: &[Written],
    ) -> Result<Self> {
        let dataset = |(id, layout): (DatasetId, &Layout)| {
            let folder = folder(&layout.dataset);
            let of_it = written.iter().flat_map(|unit| &unit.files).filter(|file| file.path.starts_with(&folder));
            let files = of_it.map(|file| DataFile {
                path: names(&file.path).collect::<Vec<_>>().join("/"),
                partition: names(&file.path).skip(1).take(layout.partition.len()).filter_map(|folder| of_folder(&folder)).collect(),
                items: file.items,
                bytes: file.bytes,
                sha256: file.sha256.clone(),
            });
            Ok(DatasetFiles {
                name: layout.dataset.clone(),
                items: written.iter().filter_map(|unit| unit.items.get(&id.0)).sum(),
                columns: layout.schema.fields().iter().map(|field| Column::of(field)).collect::<Result<_>>()?,
                partition: layout.partition.iter().map(PartitionColumn::of).collect(),
                files: files.collect(),
                folder,
            })
        };
        let mut datasets = layouts.map(dataset).collect::<Result<Vec<_>>>()?;
        // A schema that was pinned may have datasets that got nothing; there is no folder of them.
        datasets.retain(|dataset| !dataset.files.is_empty());
        Ok(Self { version: VERSION, sources: Vec::new(), dialect, datasets })
    }

    pub(super) fn json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self).expect("texts and numbers can be written as JSON");
        json.push(b'\n');
        json
    }

    /// The manifest of a folder that a run wrote.
    ///
    /// # Errors
    /// Kind `Usage` where the folder has none; kind `Input` where it cannot be read or understood.
    pub fn read(folder: &Location) -> Result<Self> {
        let place = folder.join(MANIFEST);
        let Some(bytes) = place.read_whole()? else {
            return Err(Error::new(Kind::Usage, "the folder has no manifest of Parquet datasets")
                .with("missing", &place)
                .with("expected", "the folder of a run with --to parquet:"));
        };
        let refused = || Error::new(Kind::Input, "the manifest cannot be understood").with("file", &place);
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|cause| refused().caused_by(cause))?;
        if manifest.version != VERSION {
            return Err(refused().with("found", format_args!("version {}", manifest.version)).with("expected", VERSION));
        }
        Ok(manifest)
    }
}

/// The names in a path.
fn names(path: &Path) -> impl Iterator<Item = Cow<'_, str>> {
    path.components().map(|part| part.as_os_str().to_string_lossy())
}

impl PartitionColumn {
    fn of(by: &By) -> Self {
        Self { name: by.column.clone(), kind: ColumnType::Text, attribute: by.attribute.clone() }
    }

    /// As a column like others.
    pub(super) fn column(&self) -> Column {
        let Self { name, kind, attribute } = self.clone();
        Column { name, kind, dynamodb: None, json: None, attribute: Some(attribute) }
    }
}

impl Column {
    pub(super) fn of(field: &Field) -> Result<Self> {
        let said = |key| field.metadata().get(key).cloned();
        Ok(Self {
            name: field.name().clone(),
            kind: ColumnType::of(field)?,
            dynamodb: said(TYPE),
            json: said(JSON),
            attribute: said(ATTRIBUTE),
        })
    }
}

impl ColumnType {
    fn of(field: &Field) -> Result<Self> {
        let unknown = || {
            Error::new(Kind::Bug, "a column of a type that the manifest has no word for")
                .with("column", field.name())
                .with("found", field.data_type())
        };
        Ok(match field.data_type() {
            DataType::Utf8 => Self::Text,
            DataType::Int64 => Self::Int64,
            DataType::Float64 => Self::Double,
            DataType::Decimal128(precision, scale) => Self::Decimal { precision: *precision, scale: *scale },
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Self::Timestamp,
            DataType::Boolean => Self::Boolean,
            DataType::Binary => Self::Binary,
            DataType::List(element) => Self::List(Box::new(Column::of(element)?)),
            DataType::Struct(fields) => Self::Struct(fields.iter().map(|field| Column::of(field)).collect::<Result<_>>()?),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(entry) if entry.len() == 2 => Self::Map(Box::new(Column::of(&entry[1])?)),
                _ => return Err(unknown()),
            },
            _ => return Err(unknown()),
        })
    }
}
