//! The puts of `BatchWriteItem` requests as JSON: what `batch:` and `dynamodb` have in common.
//!
//! Knows what the service takes in one request; knows nothing of files or connections.

use std::ops::Range;

use crate::codec::ddb_json;
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::model::{DatasetId, EntityId, Origin, TableId, Targets};
use crate::sink::Outgoing;

/// The most puts in a request (AWS, `BatchWriteItem`).
pub(super) const PUTS: usize = 25;

/// The most bytes of a request as JSON: the service takes 16 MiB; what a client adds to the request fits into the rest.
pub(super) const BYTES: usize = (16 << 20) - (64 << 10);

/// What ends the list of puts of the only table of a request.
pub(super) const TAIL: &[u8] = b"]}";

/// `{"TABLE":[`, which starts the list of puts.
pub(super) fn head(service_name: &str) -> Vec<u8> {
    let mut head = b"{".to_vec();
    ddb_json::write_string(service_name, &mut head);
    head.extend_from_slice(b":[");
    head
}

/// Puts of one table, in order.
#[derive(Debug, Default)]
pub(super) struct Puts {
    /// `{"PutRequest":{"Item":{…}}}` one after the other.
    json: Vec<u8>,
    /// Canonical keys one after the other.
    keys: Vec<u8>,
    each: Vec<Put>,
}

/// One put: where it lies in the bytes of its [`Puts`], and where it comes from.
#[derive(Debug)]
pub(super) struct Put {
    json: Range<usize>,
    key: Range<usize>,
    pub(super) origin: Origin,
    pub(super) entity: EntityId,
    pub(super) dataset: DatasetId,
}

impl Puts {
    pub(super) fn len(&self) -> usize {
        self.each.len()
    }

    /// The bytes of all puts together.
    #[cfg(feature = "dynamodb")]
    pub(super) fn bytes(&self) -> usize {
        self.json.len()
    }

    pub(super) fn put(&self, at: usize) -> &Put {
        &self.each[at]
    }

    /// `{"PutRequest":{"Item":{…}}}`.
    pub(super) fn json(&self, at: usize) -> &[u8] {
        &self.json[self.each[at].json.clone()]
    }

    /// The item's key in a form that is equal exactly where the service sees equal keys.
    pub(super) fn key(&self, at: usize) -> &[u8] {
        &self.keys[self.each[at].key.clone()]
    }
}

/// Encodes the rows that go to tables: the tables in the order of their first row, the rows of each in order.
pub(super) fn encode(outgoing: &[Outgoing<'_>], targets: &Targets) -> Result<Vec<(TableId, Puts)>> {
    let mut tables: Vec<(TableId, Puts)> = Vec::new();
    for group in outgoing {
        let Some(table) = group.table else { continue };
        let at = tables.iter().position(|(known, _)| *known == table).unwrap_or_else(|| {
            tables.push((table, Puts::default()));
            tables.len() - 1
        });
        let puts = &mut tables[at].1;
        let schema = &targets.table(table).key;
        for row in &group.rows {
            let (json, key) = (puts.json.len(), puts.keys.len());
            puts.json.extend_from_slice(b"{\"PutRequest\":{\"Item\":");
            ddb_json::write_item(&row.item, &mut puts.json);
            puts.json.extend_from_slice(b"}}");
            if !limits::canonical_key(&row.item, schema, &mut puts.keys) {
                return Err(Error::new(Kind::Bug, "an item without its key passed the checks")
                    .with("table", &targets.table(table).name)
                    .with("line", row.origin.line));
            }
            puts.each.push(Put {
                json: json..puts.json.len(),
                key: key..puts.keys.len(),
                origin: row.origin,
                entity: group.entity,
                dataset: group.dataset,
            });
        }
    }
    tables.retain(|(_, puts)| puts.len() > 0);
    Ok(tables)
}
