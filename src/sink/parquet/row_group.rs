//! A row group while it is made: columns to which rows are given, some at a time or all at once, and what the pool does to encode them.
//!
//! The result does not depend on how the columns were shared out, nor on when the pool comes to them.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
use crate::sink::Spawn;

/// The chunks of some columns, once the row group is ended.
pub(super) type Encoded = std::result::Result<Vec<ArrowColumnChunk>, ParquetError>;

/// Rows for a row group, by column.
pub(super) struct Rows {
    columns: Vec<Vec<Piece>>,
    /// The order in which they are written, where it is another one.
    order: Option<Order>,
    pub(super) count: usize,
}

/// Rows of a column.
struct Piece {
    rows: usize,
    /// `None`: nothing but nulls.
    values: Option<Packed>,
}

/// One column of a row group.
pub(super) struct Column {
    field: FieldRef,
    /// Of its leaves.
    writers: Vec<ArrowColumnWriter>,
}

/// The columns of a row group, shared out. Each share does its work in the order in which it was given.
pub(super) struct RowGroup {
    /// Each with the number of its columns.
    shares: Vec<(usize, Arc<Share>)>,
}

struct Share(Mutex<State>);

struct State {
    columns: Vec<Column>,
    work: VecDeque<Work>,
    /// Somebody in the pool is at it, or will be.
    is_running: bool,
}

/// What is to be done to the columns of a share.
struct Work {
    pieces: Vec<Vec<Piece>>,
    order: Option<Order>,
    ends: bool,
    at: usize,
    finished: Sender<(usize, Encoded)>,
}

impl Rows {
    /// The rows of these batches, in the order that the layout declares.
    pub(super) fn of(layout: &Layout, batches: Vec<Batch>) -> Result<Self> {
        let order = Order::of(layout, &batches).map_err(|cause| cannot_write(layout, cause.into()))?;
        let mut columns: Vec<(usize, Vec<Piece>)> = layout.forms.iter().map(|_| (0, Vec::new())).collect();
        let fill = |(known, pieces): &mut (usize, Vec<Piece>), count: usize| {
            if count > *known {
                pieces.push(Piece { rows: count - *known, values: None });
                *known = count;
            }
        };
        let mut count = 0;
        for batch in batches {
            for (place, packed) in batch.columns {
                fill(&mut columns[place], count);
                let (known, pieces) = &mut columns[place];
                *known += batch.rows;
                pieces.push(Piece { rows: batch.rows, values: Some(packed) });
            }
            count += batch.rows;
        }
        for column in &mut columns {
            fill(column, count);
        }
        Ok(Self { columns: columns.into_iter().map(|(_, pieces)| pieces).collect(), order, count })
    }
}

/// The columns of a row group, by their place in the layout. It begins with these batches and has about so many rows.
pub(super) fn columns(layout: &Layout, first: &[Batch], rows: usize) -> Result<Vec<Column>> {
    let mut writers = group::writers(layout, first, rows)?.into_iter();
    let column =
        |(field, form): (&FieldRef, &Form)| Column { field: field.clone(), writers: writers.by_ref().take(form.leaves()).collect() };
    Ok(layout.schema.fields().iter().zip(&layout.forms).map(column).collect())
}

/// What encodes each column of a row group of which nothing more will come.
pub(super) fn to_encode(columns: Vec<Column>, rows: Rows) -> impl Iterator<Item = impl FnOnce() -> Encoded> {
    let Rows { columns: pieces, order, .. } = rows;
    columns.into_iter().zip(pieces).map(move |(column, pieces)| {
        let order = order.clone();
        move || column.encode(pieces, order.as_ref())
    })
}

impl RowGroup {
    /// Shares the columns out: neighbours, of which the first rows have together about `bytes` in memory.
    pub(super) fn new(columns: Vec<Column>, first: &Rows, bytes: usize) -> Self {
        let mut shares: Vec<Vec<Column>> = Vec::new();
        let mut filled = bytes;
        for (column, pieces) in columns.into_iter().zip(&first.columns) {
            if filled >= bytes {
                shares.push(Vec::new());
                filled = 0;
            }
            // Nulls take no memory while they wait, but some time.
            filled += pieces.iter().map(|piece| piece.bytes() + piece.rows * column.writers.len() / 4).sum::<usize>();
            shares.last_mut().expect("the first column opens the first share").push(column);
        }
        let share = |columns: Vec<Column>| {
            let count = columns.len();
            (count, Arc::new(Share(Mutex::new(State { columns, work: VecDeque::new(), is_running: false }))))
        };
        Self { shares: shares.into_iter().map(share).collect() }
    }

    /// Has the pool encode and compress more rows; `ends` says whether they are the last. Each share says when it has, with its number.
    pub(super) fn give(&self, rows: Rows, ends: bool, spawn: &Spawn) -> Receiver<(usize, Encoded)> {
        let (finished, receiver) = channel();
        let Rows { columns, order, .. } = rows;
        let mut columns = columns.into_iter();
        for (at, (count, share)) in self.shares.iter().enumerate() {
            let pieces = columns.by_ref().take(*count).collect();
            let mut state = share.state();
            state.work.push_back(Work { pieces, order: order.clone(), ends, at, finished: finished.clone() });
            if !std::mem::replace(&mut state.is_running, true) {
                drop(state);
                let running = Running { share: share.clone(), has_run: false };
                spawn(Box::new(move || running.run()));
            }
        }
        receiver
    }

    /// So many shares say when they have finished.
    pub(super) fn shares(&self) -> usize {
        self.shares.len()
    }
}

impl Share {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A share that the pool has, or is to have.
struct Running {
    share: Arc<Share>,
    has_run: bool,
}

impl Running {
    /// Does what there is to do, also what comes meanwhile.
    fn run(mut self) {
        loop {
            let mut state = self.share.state();
            let Some(Work { pieces, order, ends, at, finished }) = state.work.pop_front() else {
                state.is_running = false;
                drop(state);
                self.has_run = true;
                return;
            };
            let mut columns = take(&mut state.columns);
            drop(state);
            let encoded = if ends {
                let columns = take(&mut columns).into_iter().zip(pieces).map(|(column, pieces)| column.encode(pieces, order.as_ref()));
                columns.collect::<std::result::Result<Vec<_>, _>>().map(|chunks| chunks.into_iter().flatten().collect())
            } else {
                let write = |(column, pieces): (&mut Column, _)| column.write(pieces, order.as_ref());
                columns.iter_mut().zip(pieces).try_for_each(write).map(|()| Vec::new())
            };
            self.share.state().columns = columns;
            // Nobody listens any more when the lane has failed; its error is the one that counts.
            drop(finished.send((at, encoded)));
        }
    }
}

impl Drop for Running {
    /// What was never done says so to who waits for it, as the ends of its channels.
    fn drop(&mut self) {
        if !self.has_run {
            self.share.state().work.clear();
        }
    }
}

impl Piece {
    fn bytes(&self) -> usize {
        self.values.as_ref().map_or(0, Packed::bytes)
    }
}

impl Column {
    /// Encodes the last rows, and gives the chunks of its leaves.
    fn encode(mut self, pieces: Vec<Piece>, order: Option<&Order>) -> Encoded {
        self.write(pieces, order)?;
        self.writers.into_iter().map(ArrowColumnWriter::close).collect()
    }

    /// Encodes and compresses rows.
    fn write(&mut self, pieces: Vec<Piece>, order: Option<&Order>) -> std::result::Result<(), ParquetError> {
        let Self { field, writers } = self;
        let at_once = rows_at_once(writers.len());
        let mut write = |array| {
            for (leaf, writer) in compute_leaves(field, &array)?.iter().zip(&mut *writers) {
                writer.write(leaf)?;
            }
            Ok::<_, ParquetError>(())
        };
        if let Some(order) = order.filter(|_| pieces.iter().any(|piece| piece.values.is_some())) {
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
