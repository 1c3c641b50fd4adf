//! A row group while it is made: columns to which rows are added, some at a time or all at once, and the jobs that encode and compress them.
//!
//! The result does not depend on how the columns were shared out, and only the ends of pages on how the rows came.

use arrow::array::new_null_array;
use arrow::datatypes::FieldRef;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::errors::ParquetError;

use super::encode::{Batch, rows_at_once};
use super::form::Form;
use super::group;
use super::layout::Layout;
use super::sort::{Order, whole};
use super::sparse::Packed;
use super::write::cannot_write;
use crate::error::Result;

/// The columns of a row group.
pub(super) struct RowGroup {
    columns: Vec<Column>,
    /// Rows added so far.
    rows: usize,
}

/// One column of a row group.
pub(super) struct Column {
    field: FieldRef,
    /// What was added and not written yet.
    pieces: Vec<Piece>,
    /// The order in which the rows of all pieces are written, where it is another one.
    order: Option<Order>,
    /// Of its leaves.
    writers: Vec<ArrowColumnWriter>,
    /// Rows added so far.
    rows: usize,
}

/// Rows of a column.
struct Piece {
    rows: usize,
    /// `None`: nothing but nulls.
    values: Option<Packed>,
}

/// Some columns of a row group, to be encoded.
pub(super) struct Job(Vec<Column>);

/// What becomes of a job.
pub(super) enum Part {
    /// Its columns, to go on with.
    Columns(Vec<Column>),
    /// Their chunks.
    Chunks(Vec<ArrowColumnChunk>),
}

impl RowGroup {
    /// One without rows; it will have those of these batches, and about so many in all.
    pub(super) fn new(layout: &Layout, first: &[Batch], rows: usize) -> Result<Self> {
        let mut writers = group::writers(layout, first, rows)?.into_iter();
        let column = |(field, form): (&FieldRef, &Form)| {
            let writers = writers.by_ref().take(form.leaves()).collect();
            Column { field: field.clone(), pieces: Vec::new(), order: None, writers, rows: 0 }
        };
        Ok(Self { columns: layout.schema.fields().iter().zip(&layout.forms).map(column).collect(), rows: 0 })
    }

    /// The row group with what its jobs made of it so far.
    pub(super) fn of_parts(parts: Vec<Part>, rows: usize) -> Self {
        let columns = parts.into_iter().flat_map(|part| match part {
            Part::Columns(columns) => columns,
            Part::Chunks(_) => Vec::new(),
        });
        Self { columns: columns.collect(), rows }
    }

    /// Adds rows, in the order that the layout declares; those that were added before stay where they are.
    pub(super) fn add(&mut self, layout: &Layout, batches: Vec<Batch>) -> Result<()> {
        let order = Order::of(layout, &batches).map_err(|cause| cannot_write(layout, cause.into()))?;
        for batch in batches {
            for (place, packed) in batch.columns {
                let column = &mut self.columns[place];
                column.fill(self.rows);
                column.rows += batch.rows;
                column.pieces.push(Piece { rows: batch.rows, values: Some(packed) });
            }
            self.rows += batch.rows;
        }
        for column in &mut self.columns {
            column.fill(self.rows);
            column.order.clone_from(&order);
        }
        Ok(())
    }

    /// The columns by their place in the layout.
    pub(super) fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// Neighbouring columns, together about `bytes` in memory, for each job.
    pub(super) fn share_out(self, bytes: usize) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut filled = bytes;
        for column in self.columns {
            if filled >= bytes {
                jobs.push(Job(Vec::new()));
                filled = 0;
            }
            filled += column.weight();
            jobs.last_mut().expect("the first column opens the first job").0.push(column);
        }
        jobs
    }
}

impl Column {
    /// Fills up to `rows` with nulls.
    fn fill(&mut self, rows: usize) {
        if rows > self.rows {
            self.pieces.push(Piece { rows: rows - self.rows, values: None });
            self.rows = rows;
        }
    }

    /// What is to be written, about, in bytes in memory.
    fn weight(&self) -> usize {
        // Nulls take no memory while they wait, but some time.
        self.pieces.iter().map(|Piece { rows, values }| values.as_ref().map_or(0, Packed::bytes) + rows * self.writers.len() / 4).sum()
    }

    /// The whole column.
    pub(super) fn encode(mut self) -> std::result::Result<Vec<ArrowColumnChunk>, ParquetError> {
        self.write()?;
        self.writers.into_iter().map(ArrowColumnWriter::close).collect()
    }

    /// Encodes and compresses what was added.
    fn write(&mut self) -> std::result::Result<(), ParquetError> {
        let Self { field, pieces, order, writers, .. } = self;
        let pieces = std::mem::take(pieces);
        let at_once = rows_at_once(writers.len());
        let mut write = |array| {
            for (leaf, writer) in compute_leaves(field, &array)?.iter().zip(&mut *writers) {
                writer.write(leaf)?;
            }
            Ok::<_, ParquetError>(())
        };
        if let Some(order) = order.take().filter(|_| pieces.iter().any(|piece| piece.values.is_some())) {
            let whole = whole(field.data_type(), pieces.iter().map(|piece| (piece.rows, piece.values.as_ref())))?;
            drop(pieces);
            return order.slices(&whole, at_once).try_for_each(|slice| write(slice?));
        }
        let mut nulls = new_null_array(field.data_type(), 0);
        for Piece { mut rows, values } in pieces {
            if let Some(values) = values {
                write(values.unpack(rows)?)?;
                continue;
            }
            while rows > 0 {
                let some = rows.min(at_once);
                if nulls.len() < some {
                    nulls = new_null_array(field.data_type(), some);
                }
                write(nulls.slice(0, some))?;
                rows -= some;
            }
        }
        Ok(())
    }
}

impl Job {
    /// Encodes and compresses what was added to the columns; runs in the pool. `ends` says whether nothing more will be added.
    pub(super) fn work(self, ends: bool) -> std::result::Result<Part, ParquetError> {
        let Self(mut columns) = self;
        if !ends {
            columns.iter_mut().try_for_each(Column::write)?;
            return Ok(Part::Columns(columns));
        }
        let mut chunks = Vec::new();
        for column in columns {
            chunks.append(&mut column.encode()?);
        }
        Ok(Part::Chunks(chunks))
    }
}

impl Part {
    /// The chunks of columns that are ended.
    pub(super) fn chunks(self) -> Vec<ArrowColumnChunk> {
        match self {
            Part::Chunks(chunks) => chunks,
            Part::Columns(_) => Vec::new(),
        }
    }
}
