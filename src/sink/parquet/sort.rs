//! The order of the rows of a row group, where the pipeline declares one.
//!
//! Rows that are equal by it keep the order in which they came. Row groups know nothing of each other.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array, new_null_array};
use arrow::compute::{SortColumn, SortOptions, concat, lexsort_to_indices, take};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::encode::Batch;
use super::layout::Layout;
use super::sparse::Packed;

/// Smaller first, null before all: what the files say of their row groups.
const OPTIONS: SortOptions = SortOptions { descending: false, nulls_first: true };

/// The rows of a row group, by number.
#[derive(Clone)]
pub(super) struct Order(Arc<UInt32Array>);

impl Order {
    /// The order that the layout declares; `None` where there is none, or the rows are in it.
    pub(super) fn of(layout: &Layout, batches: &[Batch]) -> Result<Option<Self>, ArrowError> {
        if layout.sort.is_empty() {
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(layout.sort.len() + 1);
        for place in &layout.sort {
            let pieces = batches.iter().map(|batch| {
                let found = batch.columns.iter().find(|(known, _)| known == place);
                (batch.rows, found.map(|(_, packed)| packed))
            });
            columns.push(SortColumn { values: whole(layout.schema.field(*place).data_type(), pieces)?, options: Some(OPTIONS) });
        }
        let rows = batches.iter().map(|batch| batch.rows).sum::<usize>();
        let numbers = UInt32Array::from_iter_values((0..).take(rows));
        columns.push(SortColumn { values: Arc::new(numbers), options: Some(OPTIONS) });
        let order = lexsort_to_indices(&columns, None)?;
        Ok((!order.values().is_sorted()).then(|| Self(Arc::new(order))))
    }

    /// The values of a column in this order, so many at a time.
    pub(super) fn slices(&self, whole: &ArrayRef, at_once: usize) -> impl Iterator<Item = Result<ArrayRef, ArrowError>> {
        let rows = self.0.len();
        (0..rows).step_by(at_once.max(1)).map(move |start| take(whole, &self.0.slice(start, at_once.min(rows - start)), None))
    }
}

/// The pieces of a column as one array; those without values are null.
pub(super) fn whole<'p>(kind: &DataType, pieces: impl Iterator<Item = (usize, Option<&'p Packed>)>) -> Result<ArrayRef, ArrowError> {
    let unpacked = pieces.map(|(rows, values)| values.map_or_else(|| Ok(new_null_array(kind, rows)), |values| values.unpack(rows)));
    let arrays = unpacked.collect::<Result<Vec<_>, _>>()?;
    concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}
