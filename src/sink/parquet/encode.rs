//! The half in the pool: the rows of a chunk become batches of columns, as few a dataset as their width allows.
//!
//! Does not write and does not compress.

use std::sync::Arc;

use arrow::error::ArrowError;

use super::Layouts;
use super::column::{Builder, Misfit};
use super::drift::Drift;
use super::layout::{Layout, Slots};
use super::minority;
use super::partition::{self, Partition};
use super::sparse::Packed;
use crate::error::{Error, Kind, Result};
use crate::model::by_attribute::Values;
use crate::model::{ByAttribute, DatasetId, Item, Row, Type, Value};
use crate::shape::Shape;
use crate::sink::{Encoder, LateReject, Outgoing, Payload as AnyPayload, Seen};

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
            Ok(Some(Chosen { layout: self.layouts.get(dataset)?.clone(), shape: None, values: None }))
        })
    }

    fn encode_ahead(&self, outgoing: &[Outgoing<'_>], seen: &[Seen<'_, '_>]) -> Result<AnyPayload> {
        self.batches(outgoing, |dataset| {
            let seen = seen.iter().find(|seen| seen.dataset == dataset);
            if let Some(pinned) = self.layouts.pinned(dataset) {
                return Ok(Some(Chosen { layout: pinned.clone(), shape: None, values: seen.map(|seen| &seen.values) }));
            }
            let Seen { shape, values, .. } = seen.ok_or_else(|| Error::new(Kind::Bug, "items without a shape"))?;
            let layout = self.layouts.made_for(self.layouts.targets.dataset(dataset), shape);
            Ok(Some(Chosen { layout, shape: Some(shape.clone()), values: Some(values) }))
        })
    }
}

/// The columns for the rows of a chunk that leave for a dataset.
struct Chosen<'s, 'r, 'a> {
    layout: Arc<Layout>,
    /// What the layout was made from, where it is that of a chunk.
    shape: Option<Arc<Shape>>,
    /// The values of all the rows, where they are known.
    values: Option<&'s ByAttribute<'r, 'a>>,
}

impl ParquetEncoder {
    /// The rows in columns; `choose` says in which. Datasets without are passed by.
    fn batches<'s, 'r: 's, 'a: 'r>(
        &self,
        outgoing: &[Outgoing<'_>],
        choose: impl Fn(DatasetId) -> Result<Option<Chosen<'s, 'r, 'a>>>,
    ) -> Result<AnyPayload> {
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
            let Some(Chosen { layout, mut shape, values }) = choose(dataset)? else { continue };
            let rows = minority::part(parts(), &layout, &self.layouts.targets, &mut refused);
            let groups = if layout.partition.is_empty() {
                vec![(None, rows)]
            } else {
                let groups = partition::group(&layout.partition, rows).map_err(|error| error.with("dataset", &layout.dataset))?;
                groups.into_iter().map(|(partition, rows)| (Some(partition), rows)).collect()
            };
            for (partition, rows) in groups {
                for rows in rows.chunks(rows_at_once(layout.leaves)) {
                    // Those are known of the rows in their order where the rows are all of them.
                    let values = values.filter(|values| values.items() == rows.len() && partition.is_none());
                    let batch = encode(dataset, &layout, rows, values)?;
                    batches.push(Batch { shape: shape.take(), partition: partition.clone(), ..batch });
                }
            }
        }
        Ok(AnyPayload::Parquet(Payload { batches, refused }))
    }
}

fn encode(dataset: DatasetId, layout: &Arc<Layout>, rows: &[&Row<'_>], values: Option<&ByAttribute<'_, '_>>) -> Result<Batch> {
    let mut columns = Columns::new(layout, rows.len());
    let item = |row: usize| &rows[row].item;
    match values {
        Some(values) => columns.add(0, values, item),
        None => columns.add(0, &ByAttribute::of(rows.iter().map(|row| &row.item)), item),
    }
    .map_err(|(row, error)| error.with("line", rows[row].origin.line))?;
    let columns = columns.finish()?;
    let bytes = columns.iter().map(|(_, column)| column.bytes()).sum();
    Ok(Batch { dataset, rows: rows.len(), columns, bytes, layout: layout.clone(), partition: None, shape: None })
}

/// The columns of a layout while items are added to them.
pub(super) struct Columns<'l> {
    layout: &'l Layout,
    rows: usize,
    builders: Vec<Option<Builder<'l>>>,
    scratch: Vec<u8>,
}

impl<'l> Columns<'l> {
    /// Columns for so many rows.
    pub(super) fn new(layout: &'l Layout, rows: usize) -> Self {
        Self { layout, rows, builders: layout.forms.iter().map(|_| None).collect(), scratch: Vec::new() }
    }

    /// Adds items as the rows from `start` on, which come after those that were added before: their values, and each by its place among them.
    ///
    /// # Errors
    /// The first item that does not fit, by its place; kind `Input` or `Bug`.
    pub(super) fn add<'i, 'a: 'i>(
        &mut self,
        start: usize,
        items: &ByAttribute<'_, '_>,
        item: impl Fn(usize) -> &'i Item<'a>,
    ) -> std::result::Result<(), (usize, Error)> {
        let layout = self.layout;
        let mut first_misfit: Option<(u32, &str, Misfit)> = None;
        let mut homeless: Vec<u32> = Vec::new();
        for Values { name, values } in items.attributes() {
            let slots = match layout.slots(name) {
                None if layout.rest.is_some() => {
                    homeless.extend(values.iter().map(|(row, _)| row));
                    continue;
                }
                Some(slots) if slots.are_in_folders() => continue,
                slots => slots,
            };
            if let Err((row, misfit)) = self.add_attribute(start, slots, values)
                && first_misfit.is_none_or(|(first, ..)| row < first)
            {
                first_misfit = Some((row, name, misfit));
            }
        }
        if let Some((row, name, misfit)) = first_misfit {
            let row = row as usize;
            let Misfit(kind) = misfit;
            let drift = item(row).get(name).map_or_else(|| Drift::of_kind(layout, name, kind), |value| Drift::of(layout, name, &value));
            return Err((row, does_not_fit(layout, drift)));
        }
        let Some(place) = layout.rest else { return Ok(()) };
        homeless.sort_unstable();
        homeless.dedup();
        for row in homeless.into_iter().map(|row| row as usize) {
            let (builder, scratch) = self.builder(place);
            builder.fill(start + row);
            let attributes = item(row).attributes().iter().filter(|(name, _)| layout.slots(name).is_none());
            builder
                .push_attributes(attributes, scratch)
                .map_err(|Misfit(kind)| (row, does_not_fit(layout, Drift::of_kind(layout, layout.schema.field(place).name(), kind))))?;
        }
        Ok(())
    }

    /// The builder of a column, and room for texts.
    fn builder(&mut self, place: usize) -> (&mut Builder<'l>, &mut Vec<u8>) {
        let Self { layout, rows, builders, scratch } = self;
        (builders[place].get_or_insert_with(|| Builder::new(&layout.forms[place], *rows)), scratch)
    }

    /// Adds the values of one attribute; says which does not fit.
    fn add_attribute(
        &mut self,
        start: usize,
        slots: Option<&Slots>,
        mut values: &[(u32, &Value<'_>)],
    ) -> std::result::Result<(), (u32, Misfit)> {
        while let [(row, first), ..] = values {
            let kind = first.kind();
            let of_kind = values.iter().position(|(_, value)| value.kind() != kind).unwrap_or(values.len());
            let (mut some, others) = values.split_at(of_kind);
            values = others;
            let Some(slots) = slots else { return Err((*row, Misfit(kind))) };
            // Null is what a column has where nothing is pushed.
            if kind == Type::Null && !slots.heeds_null() {
                continue;
            }
            let mut places = slots.places(kind);
            let Some(first) = places.next() else { return Err((*row, Misfit(kind))) };
            let other = places.next();
            loop {
                let (builder, scratch) = self.builder(first);
                let taken = builder.push_run(start, some, scratch);
                some = &some[taken..];
                // The next one does not fit.
                let [(row, value), rest @ ..] = some else { break };
                let Some(other) = other else { return Err((*row, Misfit(kind))) };
                let (builder, scratch) = self.builder(other);
                builder.push_at(start + *row as usize, value, scratch).map_err(|misfit| (*row, misfit))?;
                some = rest;
            }
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

fn does_not_fit(layout: &Layout, Drift { attribute, found, takes }: Drift) -> Error {
    let (kind, message, hint) = if layout.pinned {
        let hint = "write a new schema with --schema-out and without --schema, or bring the items to the schema with steps";
        (Kind::Input, "an item does not fit the schema", hint)
    } else {
        let hint = "if the export or the pipeline changed since the run was planned, start again with an empty work folder";
        (Kind::Bug, "an item does not fit the Parquet schema, which was made from all items", hint)
    };
    Error::new(kind, message)
        .with("dataset", &layout.dataset)
        .with("attribute", attribute)
        .with("found", found)
        .with("expected", takes)
        .with("hint", hint)
}
