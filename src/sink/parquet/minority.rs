//! Items that are refused since a value has another type than the same attribute has in most items, where the pipeline declares that.
//!
//! The most frequent type is known once all items were looked at, so a run with such a dataset looks at them first.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::layout::Layout;
use crate::codec;
use crate::error::{Reason, Result, Stage};
use crate::model::{DatasetId, Item, Row, Targets};
use crate::shape::Shape;
use crate::sink::{LateReject, Outgoing, Payload, Writer, Written};

/// What is refused of the items of a run.
#[derive(Debug)]
pub struct Minorities {
    targets: Arc<Targets>,
    /// By dataset; `None` where nothing is refused.
    layouts: Vec<Option<Layout>>,
}

impl Minorities {
    /// Whether something may be refused.
    #[must_use]
    pub fn are_refused(targets: &Targets) -> bool {
        targets.datasets.iter().any(|dataset| dataset.declared.refuses_minorities())
    }

    /// What is refused where all items have these shapes, by dataset.
    #[must_use]
    pub fn new(targets: Arc<Targets>, shapes: &[Shape]) -> Self {
        let layout = |(dataset, shape): (&_, _)| Layout::of(dataset, shape, None);
        let wanted = targets.datasets.iter().zip(shapes).map(|pair| pair.0.declared.refuses_minorities().then(|| layout(pair)));
        let layouts = wanted.collect();
        Self { targets, layouts }
    }

    /// Whether the item is refused.
    #[must_use]
    pub fn refuse(&self, dataset: DatasetId, item: &Item<'_>) -> bool {
        let layout = self.layouts.get(dataset.index()).and_then(Option::as_ref);
        layout.is_some_and(|layout| layout.refuses(&self.targets.dataset(dataset).declared, item).is_some())
    }
}

/// Parts the rows of a dataset into those that are written and those that are refused.
pub(super) fn part<'r, 'a: 'r>(
    parts: impl Iterator<Item = &'r Outgoing<'a>>,
    layout: &Layout,
    targets: &Targets,
    refused: &mut Vec<LateReject>,
) -> Vec<&'r Row<'a>> {
    let mut rows = Vec::new();
    for part in parts {
        let declared = &targets.dataset(part.dataset).declared;
        if !declared.refuses_minorities() {
            rows.extend(&part.rows);
            continue;
        }
        for row in &part.rows {
            match layout.refuses(declared, &row.item) {
                None => rows.push(row),
                Some(message) => refused.push(LateReject {
                    origin: row.origin,
                    entity: part.entity,
                    dataset: part.dataset,
                    reason: Reason::new(Stage::Write, "mixed-type", message),
                    source: codec::json_line(row.source),
                }),
            }
        }
    }
    rows
}

/// A writer that hands on what the encoder refused.
pub(super) struct Refusing<W> {
    writer: W,
    /// By dataset id.
    refused: BTreeMap<u32, u64>,
}

impl<W> Refusing<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, refused: BTreeMap::new() }
    }
}

impl<W: Writer> Writer for Refusing<W> {
    fn write(&mut self, mut payload: Payload, late: &mut Vec<LateReject>) -> Result<()> {
        if let Payload::Parquet(payload) = &mut payload {
            for reject in payload.refused.drain(..) {
                *self.refused.entry(reject.dataset.0).or_default() += 1;
                late.push(reject);
            }
        }
        self.writer.write(payload, late)
    }

    fn finish(self: Box<Self>, late: &mut Vec<LateReject>) -> Result<Written> {
        let Self { writer, refused } = *self;
        Ok(Written { refused, ..Box::new(writer).finish(late)? })
    }
}
