//! The column writers of a row group, made for the rows that it has.
//!
//! What they are told beside the layout follows from the rows alone, so that equal rows become equal bytes.

use std::hash::Hash;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use rustc_hash::FxHashSet;

use super::encode::Batch;
use super::layout::Layout;
use super::sparse::Packed;
use super::write::cannot_write;
use crate::error::Result;

/// So many values of a batch are looked at, at the most.
const OF_A_BATCH: usize = 512;

/// And so many in all.
const VALUES: usize = 2048;

/// Writers for the leaves of a row group that begins with these batches and has about so many rows.
pub(super) fn writers(layout: &Layout, batches: &[Batch], rows: usize) -> Result<Vec<ArrowColumnWriter>> {
    let settings = layout.file()?;
    let properties = properties(&settings.properties, layout, batches, rows);
    let made = || -> std::result::Result<_, ParquetError> {
        // The factory copies schema and settings from a writer; which file that writes to does not matter.
        let nowhere = SerializedFileWriter::new(std::io::sink(), settings.schema.clone(), properties.into())?;
        // The number of the row group matters for encryption only, which is not used.
        ArrowRowGroupWriterFactory::new(&nowhere, layout.schema.clone()).create_column_writers(0)
    };
    made().map_err(|cause| cannot_write(layout, cause))
}

fn properties(of_layout: &WriterProperties, layout: &Layout, batches: &[Batch], rows: usize) -> WriterProperties {
    let mut builder = of_layout.clone().into_builder();
    for (place, field) in layout.schema.fields().iter().enumerate() {
        let column = ColumnPath::from(field.name().as_str());
        if of_layout.bloom_filter_properties(&column).is_some() {
            builder = builder.set_column_bloom_filter_max_ndv(column.clone(), rows.max(1) as u64);
        }
        // A dictionary of values that hardly ever come again grows until it is given up.
        if of_layout.dictionary_enabled(&column) && are_different(place, field.data_type(), batches) {
            builder = builder.set_column_dictionary_enabled(column, false);
        }
    }
    builder.build()
}

/// Whether the values of a column are nearly all different, by those at the start of some batches: then a dictionary would outgrow the
/// layout's size for dictionaries.
fn are_different(place: usize, kind: &DataType, batches: &[Batch]) -> bool {
    let arrays = batches.iter().filter_map(|batch| {
        // The columns of a batch are in the order of their places.
        let at = batch.columns.binary_search_by_key(&place, |(known, _)| *known).ok()?;
        match &batch.columns[at].1 {
            Packed::Whole(array) => Some(array.as_ref()),
            // Of few values nothing is said.
            Packed::Sparse { .. } | Packed::Struct { .. } => None,
        }
    });
    match kind {
        DataType::Utf8 => differ(arrays.map(|array| array.as_string::<i32>().iter().flatten())),
        DataType::Int64 => differ(arrays.map(|array| array.as_primitive::<Int64Type>().iter().flatten())),
        DataType::Decimal128(..) => differ(arrays.map(|array| array.as_primitive::<Decimal128Type>().iter().flatten())),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            differ(arrays.map(|array| array.as_primitive::<TimestampMicrosecondType>().iter().flatten()))
        }
        _ => false,
    }
}

fn differ<T: Hash + Eq, V: Iterator<Item = T>>(batches: impl Iterator<Item = V>) -> bool {
    let mut seen = FxHashSet::default();
    let mut values = 0;
    for value in batches.flat_map(|batch| batch.take(OF_A_BATCH)).take(VALUES) {
        values += 1;
        seen.insert(value);
    }
    // Of 20,000 different values, which a dictionary just about has room for, one in twenty would be there twice.
    values * 2 > VALUES && seen.len() * 20 >= values * 19
}
