//! What a put costs, and which partition keys it loads: the table's own, and one in each index that the item is in.
//!
//! By the service's arithmetic for a new item, every index holding all attributes. What replaces an item may cost more or less;
//! the service says so afterwards.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::limits;
use crate::model::{Item, KeySchema, Row, Table, TableId};
use crate::sink::put_requests::Puts;

/// The write units of one put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Units {
    /// For the item in the table, and in each index that it is in.
    pub(super) item: u32,
    /// For the table and all indexes together.
    pub(super) all: u32,
}

/// What the puts of a chunk cost, each by its place.
#[derive(Debug)]
pub(super) struct Costs {
    units: Vec<Units>,
    /// For each put a number for its partition key, then one for its partition key in each index, 0 where the item is not in it.
    /// Equal keys have equal numbers; other keys may share one.
    partitions: Vec<u64>,
    /// How many numbers a put has.
    each: usize,
}

impl Costs {
    /// The costs of puts whose items are `rows`. The partition keys of indexes are left out unless they are `paced`.
    pub(super) fn of(id: TableId, table: &Table, puts: &Puts, rows: &[&Row<'_>], paced: bool) -> Self {
        let each = if paced { 1 + table.indexes.len() } else { 1 };
        let heads: Vec<_> =
            table.indexes.iter().take(each - 1).map(|index| KeySchema { partition: index.key.partition.clone(), sort: None }).collect();
        let mut costs = Self { units: Vec::with_capacity(rows.len()), partitions: Vec::with_capacity(rows.len() * each), each };
        let mut key = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let item = u32::try_from(limits::write_units(u64::from(row.size))).unwrap_or(u32::MAX);
            let mut all = item;
            costs.partitions.push(number(id, 0, limits::partition_part(puts.key(at))));
            for (index, place) in table.indexes.iter().zip(1..) {
                let inside = index.key.attributes().all(|attribute| row.item.get(&attribute.name).is_some());
                all = all.saturating_add(if inside { item } else { 0 });
                if let Some(head) = heads.get(place - 1) {
                    costs.partitions.push(if inside { in_index(id, place, head, &row.item, &mut key) } else { 0 });
                }
            }
            costs.units.push(Units { item, all });
        }
        costs
    }

    pub(super) fn units(&self, at: usize) -> Units {
        self.units[at]
    }

    /// The number of the put's partition key.
    pub(super) fn partition(&self, at: usize) -> u64 {
        self.partitions[at * self.each]
    }

    /// The numbers of all partition keys that the put loads.
    pub(super) fn loads(&self, at: usize) -> impl Iterator<Item = u64> + Clone {
        self.partitions[at * self.each..(at + 1) * self.each].iter().copied().filter(|number| *number != 0)
    }
}

fn in_index(table: TableId, place: usize, head: &KeySchema, item: &Item<'_>, key: &mut Vec<u8>) -> u64 {
    key.clear();
    if limits::canonical_key(item, head, key) { number(table, place, key) } else { 0 }
}

/// Never 0.
fn number(table: TableId, place: usize, key: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    (table, place, key).hash(&mut hasher);
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arena, Creation, DatasetId, EntityId, FileId, Index, KeyAttribute, KeyType, Origin, Raw, Targets, Value};
    use crate::sink::Outgoing;
    use crate::sink::put_requests::{self, BYTES};

    fn key(partition: &str, sort: &str) -> KeySchema {
        let attribute = |name: &str| KeyAttribute { name: name.to_owned(), kind: KeyType::S };
        KeySchema { partition: attribute(partition), sort: Some(attribute(sort)) }
    }

    #[test]
    fn a_put_costs_units_in_the_table_and_in_every_index_it_is_in() {
        let index = |name: &str, partition, sort| Index { name: name.to_owned(), key: key(partition, sort) };
        let indexes = vec![index("by-type", "T", "SK"), index("recent", "G", "H")];
        let table = Table { name: "docs".to_owned(), key: key("PK", "SK"), indexes, type_attribute: None, creation: Creation::default() };
        let targets = Targets { tables: vec![table], datasets: Vec::new() };
        let arena = Arena::new();
        let row = |size, attributes: &[(&'static str, &'static str)]| {
            let mut item = Item::new_in(&arena);
            for (name, value) in attributes {
                item.push(name, Value::S(value));
            }
            let origin = Origin { file: FileId(0), line: 1 };
            Row { origin, item, captures: &[], source: Raw::json(b"{}"), change: None, size }
        };
        let rows = vec![
            row(100, &[("PK", "a"), ("SK", "1")]),
            row(1024, &[("PK", "a"), ("SK", "2"), ("T", "Doc")]),
            row(1025, &[("PK", "b"), ("SK", "3"), ("T", "Doc"), ("G", "g"), ("H", "h")]),
            row(409_600, &[("PK", "Doc"), ("SK", "4"), ("G", "g")]),
        ];
        let outgoing = [Outgoing { entity: EntityId(0), dataset: DatasetId(0), table: Some(TableId(0)), rows }];
        let tables = put_requests::encode(&outgoing, &targets, |_| "docs", BYTES, |_| None).unwrap();
        let costs = Costs::of(TableId(0), &targets.tables[0], &tables[0].puts, &tables[0].rows, true);
        let units: Vec<_> = (0..4).map(|at| (costs.units(at).item, costs.units(at).all)).collect();
        assert_eq!(units, [(1, 1), (1, 2), (2, 6), (400, 400)]);
        let loads = |at| costs.loads(at).collect::<Vec<_>>();
        assert_eq!([loads(0).len(), loads(1).len(), loads(2).len(), loads(3).len()], [1, 2, 3, 1]);
        assert_eq!((costs.partition(0), loads(0)[0]), (costs.partition(1), costs.partition(0)));
        assert_eq!(loads(1)[1], loads(2)[1], "both are a Doc in the index by-type");
        assert_ne!(loads(1)[1], costs.partition(3), "a value in an index is not that value in the table");
        let alone = Costs::of(TableId(0), &targets.tables[0], &tables[0].puts, &tables[0].rows, false);
        assert_eq!((alone.units(2), alone.loads(2).count()), (costs.units(2), 1));
    }
}
