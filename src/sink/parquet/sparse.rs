//! Columns that wait for their row group: what a batch holds of a column, without its nulls where those are most of it.
//!
//! A dataset with thousands of columns that few items have would else take rows times columns in memory.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray, UInt32Array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Fields};
use arrow::error::ArrowError;

/// What a column takes beside its buffers.
const OVERHEAD: usize = 256;

/// The values of a column in one batch, at least one of which is not null.
#[derive(Debug)]
pub(super) enum Packed {
    /// As they are.
    Whole(ArrayRef),
    /// The rows that have a value, and the values.
    Sparse { at: Vec<u32>, values: Box<Packed> },
    /// The columns that have a value, by their place in the struct.
    Struct { fields: Fields, nulls: Option<NullBuffer>, columns: Vec<(usize, Packed)> },
}

impl Packed {
    /// Packs an array; `None` when it holds nothing but nulls.
    pub(super) fn of(array: ArrayRef) -> Result<Option<Self>, ArrowError> {
        let (rows, nulls) = (array.len(), array.logical_null_count());
        if nulls == rows {
            return Ok(None);
        }
        if nulls * 2 > rows {
            let present = array.logical_nulls().expect("an array with null values knows which they are");
            let at: Vec<u32> =
                present.valid_indices().map(|row| u32::try_from(row).expect("a batch has far fewer than 2^32 rows")).collect();
            let values = take(&array, &UInt32Array::from(at.clone()), None)?;
            return Ok(Self::of(values)?.map(|values| Packed::Sparse { at, values: Box::new(values) }));
        }
        let DataType::Struct(fields) = array.data_type() else { return Ok(Some(Packed::Whole(array))) };
        let parts = array.as_struct();
        let mut columns = Vec::new();
        for (place, column) in parts.columns().iter().enumerate() {
            columns.extend(Self::of(column.clone())?.map(|packed| (place, packed)));
        }
        columns.shrink_to_fit();
        Ok(Some(Packed::Struct { fields: fields.clone(), nulls: parts.nulls().cloned(), columns }))
    }

    /// The array that was packed; it has these many rows.
    pub(super) fn unpack(&self, rows: usize) -> Result<ArrayRef, ArrowError> {
        match self {
            Packed::Whole(array) => Ok(array.clone()),
            Packed::Sparse { at, values } => {
                let mut places = vec![None; rows];
                for (place, row) in (0_u32..).zip(at) {
                    places[*row as usize] = Some(place);
                }
                take(&values.unpack(at.len())?, &UInt32Array::from(places), None)
            }
            Packed::Struct { fields, nulls, columns } => {
                let mut columns = columns.iter().peekable();
                let arrays = fields.iter().enumerate().map(|(place, field)| match columns.next_if(|(at, _)| *at == place) {
                    Some((_, packed)) => packed.unpack(rows),
                    None => Ok(new_null_array(field.data_type(), rows)),
                });
                let arrays = arrays.collect::<Result<_, _>>()?;
                Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls.clone(), rows)?))
            }
        }
    }

    /// Bytes in memory. A function of the values alone.
    pub(super) fn bytes(&self) -> usize {
        OVERHEAD
            + match self {
                Packed::Whole(array) => array.get_array_memory_size(),
                Packed::Sparse { at, values } => at.len() * size_of::<u32>() + values.bytes(),
                Packed::Struct { nulls, columns, .. } => {
                    nulls.as_ref().map_or(0, |nulls| nulls.buffer().len()) + columns.iter().map(|(_, column)| column.bytes()).sum::<usize>()
                }
            }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray, StringArray};
    use arrow::datatypes::{Field, Int64Type};

    use super::*;

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let few = |value: i64| -> ArrayRef { Arc::new((0..100).map(|row| (row % 30 == 7).then_some(value + row)).collect::<Int64Array>()) };
        let fields = Fields::from(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]);
        let inner: ArrayRef = Arc::new(StructArray::new(fields.clone(), vec![few(1), new_null_array(&DataType::Utf8, 100)], None));
        let present = (0..100).map(|row| row < 40).collect::<NullBuffer>();
        let mostly_null: ArrayRef =
            Arc::new(StructArray::new(fields, vec![few(5), Arc::new(StringArray::from(vec!["x"; 100]))], Some(present)));
        let list: ArrayRef =
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>((0..100).map(|row| (row % 9 == 0).then(|| vec![Some(row), None]))));
        for array in [few(1000), inner, mostly_null, list] {
            let packed = Packed::of(array.clone()).unwrap().unwrap();
            assert_eq!(&packed.unpack(100).unwrap(), &array);
        }
        assert!(Packed::of(new_null_array(&DataType::Int64, 5)).unwrap().is_none());
    }

    #[test]
    fn a_few_values_take_little() {
        let sparse: ArrayRef = Arc::new((0..1_000_000).map(|row| (row == 77).then_some(1)).collect::<Int64Array>());
        assert!(Packed::of(sparse).unwrap().unwrap().bytes() < 2000);
    }
}
