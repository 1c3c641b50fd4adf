//! The puts of `BatchWriteItem` requests as JSON: what `batch:` and `dynamodb` have in common.
//!
//! Knows what the service takes in one request, and refuses an item that is too large for a request of its own; knows nothing of
//! files or connections.

use std::ops::Range;

use crate::codec::{self, ddb_json};
use crate::error::{Error, Kind, Reason, Result, Stage};
use crate::limits;
use crate::model::{DatasetId, Row, TableId, Targets};
#[cfg(feature = "dynamodb")]
use crate::model::{EntityId, Origin};
use crate::sink::{LateReject, Outgoing};

/// The most puts in a request (AWS, `BatchWriteItem`).
pub(super) const PUTS: usize = 25;

/// The most bytes of a request as JSON: the service takes 16 MiB; what a client adds to the request fits into the rest.
pub(super) const BYTES: usize = (16 << 20) - (64 << 10);

/// What ends the list of puts of the only table of a request.
pub(super) const TAIL: &[u8] = b"]}";

/// What stands before the item of a put.
const PUT: &[u8] = b"{\"PutRequest\":{\"Item\":";

/// What stands behind it.
const END: &[u8] = b"}}";

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
    /// For what the service refuses later.
    #[cfg(feature = "dynamodb")]
    pub(super) origin: Origin,
    #[cfg(feature = "dynamodb")]
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

    /// The item alone.
    #[cfg(feature = "dynamodb")]
    pub(super) fn item(&self, at: usize) -> &[u8] {
        let put = self.json(at);
        &put[PUT.len()..put.len() - END.len()]
    }

    /// The item's key in a form that is equal exactly where the service sees equal keys.
    pub(super) fn key(&self, at: usize) -> &[u8] {
        &self.keys[self.each[at].key.clone()]
    }
}

/// What the rows of a chunk are for one table.
#[derive(Debug)]
pub(super) struct TablePuts<'r, 'a> {
    pub(super) table: TableId,
    pub(super) puts: Puts,
    /// The row of each put.
    pub(super) rows: Vec<&'r Row<'a>>,
    /// The rows that no request can hold, and those that were not to be put.
    pub(super) refused: Vec<LateReject>,
    /// The bytes of a request around its puts.
    around: usize,
}

/// Encodes the rows that go to tables: the tables in the order of their first row, the rows of each in order. `name` gives a table's
/// name in the service; no request may have more than `limit` bytes. `refuse` says why a row cannot be put, if it cannot.
pub(super) fn encode<'r, 'a>(
    outgoing: &'r [Outgoing<'a>],
    targets: &Targets,
    name: impl Fn(TableId) -> &'r str,
    limit: usize,
    refuse: impl Fn(&Row<'_>) -> Option<Reason>,
) -> Result<Vec<TablePuts<'r, 'a>>> {
    let mut tables: Vec<TablePuts<'r, 'a>> = Vec::new();
    for group in outgoing {
        let Some(table) = group.table else { continue };
        let at = tables.iter().position(|known| known.table == table).unwrap_or_else(|| {
            let around = head(name(table)).len() + TAIL.len();
            tables.push(TablePuts { table, puts: Puts::default(), rows: Vec::new(), refused: Vec::new(), around });
            tables.len() - 1
        });
        let TablePuts { puts, rows, refused, around, .. } = &mut tables[at];
        let schema = &targets.table(table).key;
        for row in &group.rows {
            if let Some(reason) = refuse(row) {
                refused.push(late(group, row, reason));
                continue;
            }
            let (json, key) = (puts.json.len(), puts.keys.len());
            puts.json.extend_from_slice(PUT);
            ddb_json::write_item(&row.item, &mut puts.json);
            puts.json.extend_from_slice(END);
            let size = *around + puts.json.len() - json;
            if size > limit {
                puts.json.truncate(json);
                refused.push(too_large(group, row, size, limit));
                continue;
            }
            if !limits::canonical_key(&row.item, schema, &mut puts.keys) {
                return Err(Error::new(Kind::Bug, "an item without its key passed the checks")
                    .with("table", &targets.table(table).name)
                    .with("line", row.origin.line));
            }
            puts.each.push(Put {
                json: json..puts.json.len(),
                key: key..puts.keys.len(),
                #[cfg(feature = "dynamodb")]
                origin: row.origin,
                #[cfg(feature = "dynamodb")]
                entity: group.entity,
                dataset: group.dataset,
            });
            rows.push(row);
        }
    }
    tables.retain(|table| !table.rows.is_empty() || !table.refused.is_empty());
    Ok(tables)
}

/// An item of 400 KB may be of any size as JSON: a number of 126 digits is stored in 2 bytes where all but one are zeros.
fn too_large(group: &Outgoing<'_>, row: &Row<'_>, size: usize, limit: usize) -> LateReject {
    let message = format!("a request with this item alone has {size} bytes as JSON, limit {limit}; make the item smaller");
    late(group, row, Reason::new(Stage::Write, "request-size", message))
}

fn late(group: &Outgoing<'_>, row: &Row<'_>, reason: Reason) -> LateReject {
    let source = codec::json_line(row.source);
    LateReject { origin: row.origin, entity: group.entity, dataset: group.dataset, reason, source }
}
