//! The half in the pool: the rows of a chunk become batches of columns, as few a dataset as their width allows.
//!
//! Does not write and does not compress.

use std::sync::Arc;

use arrow::error::ArrowError;

use super::Layouts;
use super::column::{Builder, Misfit};
use super::layout::Layout;
use super::minority;
use super::partition::{self, Partition};
use super::sparse::Packed;
use crate::error::{Error, Kind, Result};
use crate::model::short;
use crate::model::{DatasetId, Item, Row, Value};
use crate::shape::Shape;
use crate::sink::{Encoder, LateReject, Outgoing, Payload as AnyPayload};

/// What the encoder gives the writer: the rows of one chunk, in columns.
#[derive(Debug)]
pub struct Payload {
    pub(super) batches: Vec<Batch>,
    /// Items that have no place.
    pub(super) refused: Vec<LateReject>,
}

/// A batch has at most about so many rows times leaf columns, which is what it takes while it is built; but not fewer than [`ROWS`].
const CELLS: usize = 256 * 1024;

/// The fewest rows that are worth a batch of their own.
const ROWS: usize = 64;

/// With fewer leaf columns than this, nulls take too little to be packed.
pub(super) const WIDE: usize = 32;

/// The rows of a batch at most.
pub(super) fn rows_at_once(leaves: usize) -> usize {
    (CELLS / leaves.max(1)).max(ROWS)
}

/// Rows of one dataset.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) dataset: DatasetId,
    pub(super) rows: usize,
    /// The columns that have a value, by their place.
    pub(super) columns: Vec<(usize, Packed)>,
    /// Bytes in memory. A function of the rows alone, since it decides where row groups end.
    pub(super) bytes: usize,
    /// The columns' layout.
    pub(super) layout: Arc<Layout>,
    /// What all rows share, where the dataset is in partitions.
    pub(super) partition: Option<Arc<Partition>>,
    /// What is now known of the dataset's items, where the layout is for these rows alone; with the first batch of a chunk.
    pub(super) shape: Option<Arc<Shape>>,
}

/// Columns from rows.
pub(super) struct ParquetEncoder {
    layouts: Arc<Layouts>,
    /// Passes by the datasets whose columns are not pinned.
    only_pinned: bool,
}

impl ParquetEncoder {
    pub(super) fn new(layouts: Arc<Layouts>) -> Self {
        Self { layouts, only_pinned: false }
    }

    /// One whose columns are for nobody: it finds what does not fit a pinned schema.
    pub(super) fn for_check(layouts: Arc<Layouts>) -> Self {
        Self { layouts, only_pinned: true }
    }
}

impl Encoder for ParquetEncoder {
    fn encode(&self, outgoing: &[Outgoing<'_>]) -> Result<AnyPayload> {
        self.batches(outgoing, |dataset| {
            if self.only_pinned && !self.layouts.is_pinned(dataset) {
                return Ok(None);
            }
            Ok(Some((self.layouts.get(dataset)?.clone(), None)))
        })
    }

    fn encode_ahead(&self, outgoing: &[Outgoing<'_>], shapes: &[(DatasetId, Arc<Shape>)]) -> Result<AnyPayload> {
        self.batches(outgoing, |dataset| {
            if let Some(pinned) = self.layouts.pinned(dataset) {
                return Ok(Some((pinned.clone(), None)));
            }
            let shape = shapes.iter().find(|(known, _)| *known == dataset).map(|(_, shape)| shape);
            let shape = shape.ok_or_else(|| Error::new(Kind::Bug, "items without a shape"))?;
            Ok(Some((self.layouts.made_for(self.layouts.targets.dataset(dataset), shape), Some(shape.clone()))))
        })
    }
}

/// A layout, and the shape that it was made from where it is that of a chunk.
type Chosen = (Arc<Layout>, Option<Arc<Shape>>);

impl ParquetEncoder {
    /// The rows in columns; `choose` says in which. Datasets without are passed by.
    fn batches(&self, outgoing: &[Outgoing<'_>], choose: impl Fn(DatasetId) -> Result<Option<Chosen>>) -> Result<AnyPayload> {
        let (mut batches, mut refused) = (Vec::new(), Vec::new());
        for (at, first) in outgoing.iter().enumerate() {
            let dataset = first.dataset;
            // An entity that goes to several tables comes in several parts; its dataset gets all of them at once.
            if outgoing[..at].iter().any(|earlier| earlier.dataset == dataset) {
                continue;
            }
            let parts = || outgoing[at..].iter().filter(|other| other.dataset == dataset);
            if parts().all(|part| part.rows.is_empty()) {
                continue;
            }
            let Some((layout, mut shape)) = choose(dataset)? else { continue };
            let rows = minority::part(parts(), &layout, &self.layouts.targets, &mut refused);
            let groups = if layout.partition.is_empty() {
                vec![(None, rows)]
            } else {
                let groups = partition::group(&layout.partition, rows).map_err(|error| error.with("dataset", &layout.dataset))?;
                groups.into_iter().map(|(partition, rows)| (Some(partition), rows)).collect()
            };
            for (partition, rows) in groups {
                for rows in rows.chunks(rows_at_once(layout.leaves)) {
                    let batch = encode(dataset, &layout, rows.iter().copied(), rows.len())?;
                    batches.push(Batch { shape: shape.take(), partition: partition.clone(), ..batch });
                }
            }
        }
        Ok(AnyPayload::Parquet(Payload { batches, refused }))
    }
}

fn encode<'r, 'a: 'r>(dataset: DatasetId, layout: &Arc<Layout>, rows: impl Iterator<Item = &'r Row<'a>>, count: usize) -> Result<Batch> {
    let mut columns = Columns::new(layout, count);
    for (at, row) in rows.enumerate() {
        columns.push(at, &row.item).map_err(|error| error.with("line", row.origin.line))?;
    }
    let columns = columns.finish()?;
    let bytes = columns.iter().map(|(_, column)| column.bytes()).sum();
    Ok(Batch { dataset, rows: count, columns, bytes, layout: layout.clone(), partition: None, shape: None })
}

/// The columns of a layout while items are added to them.
pub(super) struct Columns<'l> {
    layout: &'l Layout,
    rows: usize,
    builders: Vec<Option<Builder<'l>>>,
    scratch: Vec<u8>,
    /// The number of the attribute that was found last, by the place of its name.
    last: [usize; short::PLACES],
}

impl<'l> Columns<'l> {
    /// Columns for so many rows.
    pub(super) fn new(layout: &'l Layout, rows: usize) -> Self {
        Self { layout, rows, builders: layout.forms.iter().map(|_| None).collect(), scratch: Vec::new(), last: [0; short::PLACES] }
    }

    /// Adds an item as row `at`, which comes after those that were added before.
    ///
    /// # Errors
    /// Kind `Input` or `Bug` when it does not fit.
    pub(super) fn push(&mut self, at: usize, item: &Item<'_>) -> Result<()> {
        let Self { layout, rows, builders, scratch, last } = self;
        let (layout, rows) = (*layout, *rows);
        let mut homeless = false;
        for (name, value) in item.attributes() {
            let guess = &mut last[short::place(name)];
            let number = layout.attributes.number(name, *guess);
            *guess = number.unwrap_or(*guess);
            let slots = match number.map(|number| layout.attributes.slots(number)) {
                None if layout.rest.is_some() => {
                    homeless = true;
                    continue;
                }
                Some(slots) if slots.are_in_folders() => continue,
                // Null is what a column has where nothing is pushed.
                Some(slots) if matches!(value, Value::Null) && !slots.heeds_null() => continue,
                slots => slots,
            };
            let mut push = |place: usize| {
                let builder = builders[place].get_or_insert_with(|| Builder::new(&layout.forms[place], rows));
                if builder.len() > at {
                    return Err(Misfit(value.kind()));
                }
                builder.fill(at);
                builder.push(value, scratch)
            };
            let mut pushed = Err(Misfit(value.kind()));
            for place in slots.into_iter().flat_map(|slots| slots.places(value.kind())) {
                pushed = push(place);
                if pushed.is_ok() {
                    break;
                }
            }
            pushed.map_err(|misfit| does_not_fit(layout, name, misfit))?;
        }
        if let (true, Some(place)) = (homeless, layout.rest) {
            let builder = builders[place].get_or_insert_with(|| Builder::new(&layout.forms[place], rows));
            builder.fill(at);
            let attributes = item.attributes().iter().filter(|(name, _)| layout.slots(name).is_none());
            builder
                .push_attributes(attributes, scratch)
                .map_err(|misfit| does_not_fit(layout, layout.schema.field(place).name(), misfit))?;
        }
        Ok(())
    }

    /// The columns that have a value, by their place.
    ///
    /// # Errors
    /// Kind `Bug` when one cannot be packed.
    pub(super) fn finish(self) -> Result<Vec<(usize, Packed)>> {
        let Self { layout, rows, builders, .. } = self;
        let mut columns = Vec::new();
        for (place, builder) in builders.into_iter().enumerate() {
            let Some(builder) = builder else { continue };
            let packed = pack(builder, rows, layout.leaves >= WIDE)
                .map_err(|cause| Error::new(Kind::Bug, "a column cannot be packed").with("dataset", &layout.dataset).caused_by(cause))?;
            columns.extend(packed.map(|packed| (place, packed)));
        }
        Ok(columns)
    }
}

/// The values of a column. They wait in memory for their row group, so what the builders reserved in vain is given back.
fn pack(builder: Builder<'_>, rows: usize, wide: bool) -> std::result::Result<Option<Packed>, ArrowError> {
    let mut array = builder.finish(rows);
    if let Some(array) = Arc::get_mut(&mut array) {
        array.shrink_to_fit();
    }
    if wide { Packed::of(array) } else { Ok(Some(Packed::Whole(array))) }
}

fn does_not_fit(layout: &Layout, attribute: &str, Misfit(kind): Misfit) -> Error {
    if layout.pinned {
        return Error::new(Kind::Input, "an item does not fit the schema")
            .with("dataset", &layout.dataset)
            .with("attribute", attribute)
            .with("type", kind)
            .with("expected", expected(layout, attribute))
            .with("hint", "write a new schema with --schema-out and without --schema, or bring the items to the schema with steps");
    }
    Error::new(Kind::Bug, "an item does not fit the Parquet schema, which was made from all items")
        .with("dataset", &layout.dataset)
        .with("attribute", attribute)
        .with("type", kind)
        .with("hint", "if the export or the pipeline changed since the run was planned, start again with an empty work folder")
}

/// The columns that an attribute may be in, in words.
fn expected(layout: &Layout, attribute: &str) -> String {
    let columns = layout.columns();
    let columns = columns.iter().filter(|column| column.attribute.as_deref() == Some(attribute));
    let columns: Vec<_> = columns.map(|column| format!("`{}`: {:?}", column.name, column.holds).to_lowercase()).collect();
    if columns.is_empty() { "no such attribute".to_owned() } else { columns.join(", ") }
}
