//! Columns that are fixed before the first row, with field ids and names of files that somebody else chooses.
//!
//! Does not know what the ids are for.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::align::{aligned, differs};
use super::layout::Layout;
use super::lock::Column;
use super::{Dialect, Layouts, ParquetSink, SchemaFile, manifest};
use crate::error::{Error, Kind, Result};
use crate::model::{Change, Dataset, DatasetId, Type};
use crate::shape::Shape;

/// The id of a field, and those of the fields inside: of a list's element, of a struct's fields, of a map's key and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sink) struct FieldId {
    pub(in crate::sink) id: i32,
    pub(in crate::sink) inside: Vec<FieldId>,
}

/// What the files of a dataset are to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sink) struct Files {
    /// What their paths begin with.
    pub(in crate::sink) stem: String,
    /// The ids of the columns, in their order.
    pub(in crate::sink) ids: Vec<FieldId>,
}

/// Says what the files of a dataset with these columns are to be like.
/// The last is asked how the values of a column differ from those that the table has of the same attribute.
pub(in crate::sink) type Choose<'c> =
    dyn FnMut(DatasetId, &Dataset, &[manifest::Column], &dyn Fn(&str) -> Option<String>) -> Result<Files> + 'c;

impl ParquetSink {
    /// A sink whose columns are fixed, for the datasets that have items: those of this sink's schema, else made from the shapes of all
    /// items and from the columns that `tables` have already. `choose` is given each dataset with its columns and says what its files are to be like. Also gives what the user should know.
    ///
    /// # Errors
    /// When no schema can hold such values, and what `choose` says.
    pub(in crate::sink) fn fixed(&self, shapes: &[Shape], tables: &SchemaFile, choose: &mut Choose<'_>) -> Result<(Self, Vec<String>)> {
        let Layouts { targets, dialect, zstd, .. } = self.layouts.as_ref();
        let (dialect, zstd) = (*dialect, *zstd);
        if shapes.len() != targets.datasets.len() {
            return Err(Error::new(Kind::Bug, "not one shape for each dataset"));
        }
        let mut findings = Vec::new();
        let mut layouts = Vec::with_capacity(shapes.len());
        for ((id, dataset), shape) in (0..).map(DatasetId).zip(&targets.datasets).zip(shapes) {
            if shape.items() == 0 {
                layouts.push(None);
                continue;
            }
            let layout = match (self.layouts.pinned(id), tables.datasets.get(&dataset.name)) {
                (Some(pinned), _) => Layout::pinned(dataset, &pinned.columns(), dialect)?,
                (None, table) => {
                    Layout::check(dataset, shape)?;
                    Layout::joining(dataset, shape, table.map_or(&[], Vec::as_slice), dialect)?
                }
            };
            findings.extend(layout.findings(dataset, shape));
            let columns = layout.schema.fields().iter().map(|field| manifest::Column::of(field)).collect::<Result<Vec<_>>>()?;
            let known = tables.datasets.get(&dataset.name).map_or(&[][..], Vec::as_slice);
            let has_changes = is_of_changes(shape);
            if !known.is_empty() && has_changes != Change::COLUMNS.iter().all(|name| has_attribute(known, name)) {
                let (export, table) = if has_changes { ("changes", "items") } else { ("items", "changes") };
                return Err(Error::new(
                    Kind::Usage,
                    format!("the export holds {export}, and the table that they are to be added to holds {table}"),
                )
                .with("dataset", &dataset.name)
                .with("expected", format_args!("{table}, since each change is a row, that of a deleted item too"))
                .with("hint", format_args!("add an export of {table}, or name another folder for the {export}")));
            }
            let own = layout.columns();
            let in_words = |name: &str| differs(own.iter().find(|column| column.name == name)?, shape, known);
            let Files { stem, ids } = choose(id, dataset, &columns, &in_words)?;
            layouts.push(Some(Arc::new(layout.with_zstd(zstd).numbered(stem, &ids))));
        }
        let layouts = Arc::new(Layouts { targets: targets.clone(), dialect, zstd, pinned: layouts, chosen: OnceLock::new() });
        let (folder, spawn, sources) = (self.folder.clone(), self.spawn.clone(), self.sources.clone());
        let sink = Self { folder, overwrite: self.overwrite, limits: self.limits, spawn, layouts, sources };
        Ok((sink, findings))
    }
}

impl Layout {
    /// The layout of this dataset for items of this shape that come to a table which has columns.
    fn joining(dataset: &Dataset, shape: &Shape, table: &[Column], dialect: Option<Dialect>) -> Result<Self> {
        let own = Self::of(dataset, shape, dialect);
        let columns = aligned(&own, shape, table);
        if columns == own.columns() {
            return Ok(own);
        }
        // The columns take all of the items, though not each was made from them.
        let mut joined = Self::pinned(dataset, &columns, dialect)?;
        joined.pinned = false;
        Ok(joined)
    }
}

/// Whether all of the items are changes, by the attributes that those get.
fn is_of_changes(shape: &Shape) -> bool {
    Change::COLUMNS
        .iter()
        .zip([Type::S, Type::N])
        .all(|(name, kind)| shape.attribute(name).is_some_and(|values| values.count(kind) == shape.items()))
}

fn has_attribute(columns: &[Column], name: &str) -> bool {
    columns.iter().any(|column| column.attribute.as_deref() == Some(name))
}

/// The fields with their ids, which the Parquet library takes from there.
pub(super) fn with_ids<'f>(fields: impl IntoIterator<Item = &'f FieldRef>, ids: &[FieldId]) -> Vec<FieldRef> {
    fields.into_iter().zip(ids).map(|(field, id)| Arc::new(with_id(field, id))).collect()
}

fn with_id(field: &Field, FieldId { id, inside }: &FieldId) -> Field {
    let one = |field: &FieldRef| with_ids([field], inside).pop();
    let kind = match field.data_type() {
        DataType::List(element) => one(element).map(DataType::List),
        DataType::Struct(fields) => Some(DataType::Struct(with_ids(fields, inside).into())),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(entry) => {
                let entry = DataType::Struct(with_ids(entry, inside).into());
                Some(DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(entry)), *sorted))
            }
            _ => None,
        },
        _ => None,
    };
    let mut metadata = field.metadata().clone();
    metadata.insert(PARQUET_FIELD_ID_META_KEY, id.to_string());
    let field = field.clone().with_metadata(metadata);
    match kind {
        Some(kind) => field.with_data_type(kind),
        None => field,
    }
}
