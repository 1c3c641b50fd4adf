//! The half in the pool: items become lines, each with the hash of its partition key.

use std::sync::Arc;

use super::order;
use crate::codec::{ddb_json, ion};
use crate::error::Result;
use crate::limits;
use crate::model::{DatasetId, Format, KeySchema, TableId, Targets};
use crate::sink::{Encoder, Outgoing, Payload as AnyPayload};

/// What the encoder gives the writer: a batch for each table that the chunk has items for.
#[derive(Debug)]
pub struct Payload {
    pub(super) batches: Vec<Batch>,
}

/// Lines of one table.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) table: TableId,
    pub(super) text: Vec<u8>,
    pub(super) lines: Vec<Line>,
    /// Items by dataset.
    pub(super) items: Vec<(DatasetId, u64)>,
}

/// One line of a [`Batch`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// The hash of its partition key.
    pub(super) key: u64,
    /// Its end in the text; it starts where the one before ends.
    pub(super) end: u32,
}

impl Batch {
    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.lines.len() * size_of::<Line>()
    }
}

#[derive(Debug)]
pub(super) struct Lines {
    format: Format,
    /// The partition key alone, by [`TableId`].
    partition_keys: Vec<KeySchema>,
}

impl Lines {
    pub(super) fn new(format: Format, targets: &Targets) -> Arc<Self> {
        let partition_key = |key: &KeySchema| KeySchema { partition: key.partition.clone(), sort: None };
        Arc::new(Self { format, partition_keys: targets.tables.iter().map(|table| partition_key(&table.key)).collect() })
    }

    fn batch(&self, table: TableId, outgoing: &[Outgoing<'_>]) -> Batch {
        let mut batch = Batch { table, text: Vec::new(), lines: Vec::new(), items: Vec::new() };
        let mut key = Vec::new();
        for group in outgoing.iter().filter(|group| group.table == Some(table)) {
            for row in &group.rows {
                match self.format {
                    Format::Json => ddb_json::write_line(&row.item, &mut batch.text),
                    Format::Ion => ion::write_line(&row.item, &mut batch.text),
                }
                key.clear();
                limits::canonical_key(&row.item, &self.partition_keys[table.index()], &mut key);
                let end = u32::try_from(batch.text.len()).expect("the items of a chunk have less than 4 GiB");
                batch.lines.push(Line { key: order::hash(&key), end });
            }
            batch.items.push((group.dataset, group.rows.len() as u64));
        }
        // It waits for its window, so it takes no more memory than it needs.
        batch.text.shrink_to_fit();
        batch.lines.shrink_to_fit();
        batch
    }
}

impl Encoder for Lines {
    fn encode(&self, outgoing: &[Outgoing<'_>]) -> Result<AnyPayload> {
        let mut tables: Vec<TableId> = outgoing.iter().filter(|group| !group.rows.is_empty()).filter_map(|group| group.table).collect();
        tables.sort_unstable();
        tables.dedup();
        Ok(AnyPayload::Import(Payload { batches: tables.into_iter().map(|table| self.batch(table, outgoing)).collect() }))
    }
}
