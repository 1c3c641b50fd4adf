//! The half in the pool: the rows of a chunk become one record batch a dataset.
//!
//! Does not write and does not compress.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};

use super::Layouts;
use super::column::{Builder, Misfit};
use super::layout::{Layout, column};
use crate::error::{Error, Kind, Result};
use crate::model::{DatasetId, Row, Value};
use crate::sink::{Encoder, Outgoing, Payload as AnyPayload};

/// What the encoder gives the writer: the rows of one chunk, in columns.
#[derive(Debug)]
pub struct Payload {
    pub(super) batches: Vec<Batch>,
}

/// The rows of one dataset.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) dataset: DatasetId,
    pub(super) columns: RecordBatch,
    /// Bytes in memory. A function of the rows alone, since it decides where row groups end.
    pub(super) bytes: usize,
}

/// Columns from rows.
pub(super) struct ParquetEncoder {
    layouts: Arc<Layouts>,
}

impl ParquetEncoder {
    pub(super) fn new(layouts: Arc<Layouts>) -> Self {
        Self { layouts }
    }
}

impl Encoder for ParquetEncoder {
    fn encode(&self, outgoing: &[Outgoing<'_>]) -> Result<AnyPayload> {
        let mut batches = Vec::new();
        for (at, first) in outgoing.iter().enumerate() {
            let dataset = first.dataset;
            // An entity that goes to several tables comes in several parts; its dataset gets all of them at once.
            if outgoing[..at].iter().any(|earlier| earlier.dataset == dataset) {
                continue;
            }
            let parts = || outgoing[at..].iter().filter(|other| other.dataset == dataset);
            let rows = parts().map(|part| part.rows.len()).sum();
            if rows > 0 {
                batches.push(encode(dataset, self.layouts.get(dataset)?, parts().flat_map(|part| &part.rows), rows)?);
            }
        }
        Ok(AnyPayload::Parquet(Payload { batches }))
    }
}

fn encode<'r, 'a: 'r>(dataset: DatasetId, layout: &Layout, rows: impl Iterator<Item = &'r Row<'a>>, count: usize) -> Result<Batch> {
    let mut builders: Vec<Option<Builder<'_>>> = layout.forms.iter().map(|_| None).collect();
    let mut scratch = Vec::new();
    for (at, row) in rows.enumerate() {
        let mut homeless = false;
        for (name, value) in row.item.attributes() {
            let place = match layout.slots(name) {
                None if layout.rest.is_some() => {
                    homeless = true;
                    continue;
                }
                // Null is what a column has where nothing is pushed.
                Some(_) if matches!(value, Value::Null) => continue,
                slots => slots.and_then(|slots| column(slots, value.kind())),
            };
            let pushed = place.ok_or(Misfit(value.kind())).and_then(|place| {
                let builder = builders[place].get_or_insert_with(|| Builder::new(&layout.forms[place], count));
                if builder.len() > at {
                    return Err(Misfit(value.kind()));
                }
                builder.fill(at);
                builder.push(value, &mut scratch)
            });
            pushed.map_err(|misfit| does_not_fit(layout, name, misfit, row))?;
        }
        if let (true, Some(place)) = (homeless, layout.rest) {
            let builder = builders[place].get_or_insert_with(|| Builder::new(&layout.forms[place], count));
            builder.fill(at);
            let attributes = row.item.attributes().iter().filter(|(name, _)| layout.slots(name).is_none());
            builder
                .push_attributes(attributes, &mut scratch)
                .map_err(|misfit| does_not_fit(layout, layout.schema.field(place).name(), misfit, row))?;
        }
    }
    let arrays: Vec<_> =
        builders.into_iter().zip(layout.schema.fields()).map(|(builder, field)| finish(builder, field.data_type(), count)).collect();
    let bytes = arrays.iter().map(Array::get_array_memory_size).sum();
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    let columns = RecordBatch::try_new_with_options(layout.schema.clone(), arrays, &options)
        .map_err(|cause| Error::new(Kind::Bug, "columns do not fit their schema").with("dataset", &layout.dataset).caused_by(cause))?;
    Ok(Batch { dataset, columns, bytes })
}

/// The array of a column. Batches wait in memory for their row group, so what the builders reserved in vain is given back.
fn finish(builder: Option<Builder<'_>>, data_type: &arrow::datatypes::DataType, rows: usize) -> ArrayRef {
    let Some(builder) = builder else { return new_null_array(data_type, rows) };
    let mut array = builder.finish(rows);
    if let Some(array) = Arc::get_mut(&mut array) {
        array.shrink_to_fit();
    }
    array
}

fn does_not_fit(layout: &Layout, attribute: &str, Misfit(kind): Misfit, row: &Row<'_>) -> Error {
    Error::new(Kind::Bug, "an item does not fit the Parquet schema, which was made from all items")
        .with("dataset", &layout.dataset)
        .with("attribute", attribute)
        .with("type", kind)
        .with("line", row.origin.line)
        .with("hint", "if the export or the pipeline changed since the run was planned, start again with an empty work folder")
}
