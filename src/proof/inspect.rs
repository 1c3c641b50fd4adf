//! What is in an export: entities, key shapes, attributes, drift, sizes and hot partition keys, in one pass.
//!
//! Nothing is known beforehand, neither the key nor the attribute that names the entity, so everything is summed up
//! for each well-known candidate, and the choice is made at the end. Nothing here depends on the order of the items:
//! however they are split among workers, the merged sums give the same report. (The one exception says so itself:
//! hot partition keys, once there are too many to count them all.)

mod drift;
mod group;
mod hot;
pub mod report;
mod shape;

pub use report::Report;

use rustc_hash::FxHashMap;

use crate::limits;
use crate::model::{Item, Origin, Type, Value};
use crate::proof::inspect::group::{Group, Sizes};
use crate::proof::inspect::hot::HotKeys;
use crate::proof::inspect::report::{
    Attribute, Drift, Entity, HotPartition, HotPartitions, ItemBytes, Key, KeyShape, Spot, TypeAttribute, TypeCount, Variant, percent,
};
use crate::proof::inspect::shape::Seen;

/// Well-known pairs of partition and sort key, then partition keys that stand alone. Earlier ones are preferred.
const KEYS: [(&str, Option<&str>); 24] = [
    ("PK", Some("SK")),
    ("pk", Some("sk")),
    ("Pk", Some("Sk")),
    ("EntityRef", Some("Detail")),
    ("PK0", Some("SK0")),
    ("partitionKey", Some("sortKey")),
    ("PartitionKey", Some("SortKey")),
    ("partition_key", Some("sort_key")),
    ("hashKey", Some("rangeKey")),
    ("HashKey", Some("RangeKey")),
    ("hash_key", Some("range_key")),
    ("hash", Some("range")),
    ("hk", Some("rk")),
    ("hk", Some("sk")),
    ("HK", Some("RK")),
    ("HK", Some("SK")),
    ("PK", None),
    ("pk", None),
    ("id", None),
    ("Id", None),
    ("ID", None),
    ("uuid", None),
    ("_id", None),
    ("key", None),
];

/// Attributes that libraries and people name the entity by. Of equally frequent ones the first is preferred.
const TYPES: [&str; 18] = [
    "EntityType",
    "entityType",
    "entity_type",
    "entityName",
    "__edb_e__",
    "_et",
    "__en",
    "__typename",
    "_type",
    "Type",
    "type",
    "Entity",
    "entity",
    "itemType",
    "recordType",
    "kind",
    "model",
    "cls",
];

/// A guessed type attribute has at most this many values.
const VALUES: usize = 200;

/// The same for one that the user named.
const NAMED_VALUES: usize = 2_000;

/// A longer text does not name an entity.
const VALUE_BYTES: usize = 255;

/// A guessed type attribute is in at least this part of the items, in percent.
const COVERAGE: u64 = 50;

/// Partition keys in the report.
const HOT: usize = 10;

/// What the user knows about the export already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The partition key's name; without it the key is guessed.
    pub partition: Option<String>,
    /// The sort key's name; not looked at without `partition`.
    pub sort: Option<String>,
    /// The attribute that names the entity; without it that is guessed.
    pub type_attribute: Option<String>,
}

/// Sums up items, and makes the [`Report`].
///
/// Memory is bounded whatever the items hold: at most 200 values for each candidate of a type attribute (2,000 where
/// the user names it), 200 key shapes and 4,000 attribute names for each value, 20,000 partition keys.
#[derive(Clone, Debug)]
pub struct Inspector {
    guess_key: bool,
    guess_type: bool,
    line_bytes: u64,
    keys: Vec<KeyCandidate>,
    types: Vec<TypeCandidate>,
    /// The places of the candidates in `types`, by name.
    type_names: FxHashMap<String, usize>,
    /// Items by the type candidates that they have, a bit each; from this come the items that lack the chosen one.
    by_types: FxHashMap<u32, Group>,
    scratch: Scratch,
}

/// A pair of attributes that may be the key.
#[derive(Clone, Debug)]
struct KeyCandidate {
    partition: String,
    sort: Option<String>,
    /// Items that cannot have this key. One is enough to give up a candidate that is only guessed.
    items_without: u64,
    hot: HotKeys,
}

/// An attribute that may name the entity.
#[derive(Clone, Debug)]
struct TypeCandidate {
    name: String,
    /// Items that have it as a string.
    items: u64,
    /// By value; `None` once there are too many values.
    values: Option<FxHashMap<Box<str>, Group>>,
}

/// Buffers that are used again for each item.
#[derive(Clone, Debug, Default)]
struct Scratch {
    values: Vec<u64>,
    /// A shape for each key candidate, empty for those that the item does not have.
    shapes: Vec<String>,
}

impl Inspector {
    /// An inspector that has seen nothing.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let Options { partition, sort, type_attribute } = options;
        let guess_key = partition.is_none();
        let guess_type = type_attribute.is_none();
        let keys: Vec<(String, Option<String>)> = match partition {
            Some(partition) => vec![(partition, sort)],
            None => KEYS.iter().map(|(partition, sort)| ((*partition).to_owned(), sort.map(str::to_owned))).collect(),
        };
        let types: Vec<String> = match type_attribute {
            Some(name) => vec![name],
            None => TYPES.map(str::to_owned).to_vec(),
        };
        Self {
            guess_key,
            guess_type,
            line_bytes: 0,
            scratch: Scratch { values: Vec::new(), shapes: vec![String::new(); keys.len()] },
            keys: keys
                .into_iter()
                .map(|(partition, sort)| KeyCandidate { partition, sort, items_without: 0, hot: HotKeys::default() })
                .collect(),
            type_names: types.iter().cloned().zip(0..).collect(),
            types: types.into_iter().map(|name| TypeCandidate { name, items: 0, values: Some(FxHashMap::default()) }).collect(),
            by_types: FxHashMap::default(),
        }
    }

    /// Takes an item into account. `bytes_of_line` is the length of the line it was read from.
    pub fn observe(&mut self, item: &Item<'_>, origin: Origin, bytes_of_line: u64) {
        self.line_bytes += bytes_of_line;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.values.clear();
        scratch.values.extend(item.attributes().iter().map(|(_, value)| limits::value_size(value)));
        let names: usize = item.attributes().iter().map(|(name, _)| name.len()).sum();
        let bytes = scratch.values.iter().sum::<u64>() + names as u64;
        self.observe_key(item, bytes, &mut scratch.shapes);
        self.observe_type(item, bytes, origin, &scratch);
        self.scratch = scratch;
    }

    /// Finds the item's shape for each key candidate, and gives up the candidates that it does not fit.
    fn observe_key(&mut self, item: &Item<'_>, bytes: u64, shapes: &mut [String]) {
        for (at, shape) in shapes.iter_mut().enumerate() {
            let candidate = &mut self.keys[at];
            shape.clear();
            if self.guess_key && candidate.items_without > 0 {
                candidate.items_without += 1;
                continue;
            }
            let partition = item.get(&candidate.partition);
            let sort = candidate.sort.as_ref().map(|name| item.get(name));
            let fits = match (partition, sort) {
                (Some(partition), None) => shape::write_shape(&partition, None, shape),
                (Some(partition), Some(Some(sort))) => shape::write_shape(&partition, Some(&sort), shape),
                _ => None,
            };
            if let (Some(()), Some(partition)) = (fits, partition) {
                candidate.hot.add(&partition, bytes);
                continue;
            }
            shape.clear();
            candidate.items_without += 1;
            if self.guess_key {
                self.give_up_key(at);
            }
        }
    }

    /// Frees what was summed up for a key candidate that is none.
    fn give_up_key(&mut self, at: usize) {
        self.keys[at].hot.clear();
        let values = self.types.iter_mut().filter_map(|candidate| candidate.values.as_mut()).flat_map(FxHashMap::values_mut);
        for group in values.chain(self.by_types.values_mut()) {
            group.shapes[at].clear();
        }
    }

    /// Counts the item for each type candidate that it has, and under the set of them.
    fn observe_type(&mut self, item: &Item<'_>, bytes: u64, origin: Origin, scratch: &Scratch) {
        let keys = self.keys.len();
        let add = |group: &mut Group| {
            group.add(item, &scratch.values, bytes, origin);
            for (shapes, shape) in group.shapes.iter_mut().zip(&scratch.shapes).filter(|(_, shape)| !shape.is_empty()) {
                shapes.add(shape, Seen { items: 1, first: origin });
            }
        };
        let most_values = self.most_values();
        let mut present = 0_u32;
        for (name, value) in item.attributes() {
            let Value::S(value) = *value else { continue };
            let Some(&at) = self.type_names.get(*name) else { continue };
            let candidate = &mut self.types[at];
            candidate.items += 1;
            let Some(values) = &mut candidate.values else { continue };
            let full = values.len() >= most_values && !values.contains_key(value);
            if full || value.len() > VALUE_BYTES {
                self.give_up_type(at);
                continue;
            }
            match values.get_mut(value) {
                Some(group) => add(group),
                None => add(values.entry(value.into()).or_insert_with(|| Group::new(keys))),
            }
            present |= 1 << at;
        }
        // Items that have the one named candidate are in its values.
        if self.guess_type || present == 0 {
            add(self.by_types.entry(present).or_insert_with(|| Group::new(keys)));
        }
    }

    fn most_values(&self) -> usize {
        if self.guess_type { VALUES } else { NAMED_VALUES }
    }

    /// A candidate with too many values, or too long ones, names no entity: from now on nobody has it.
    fn give_up_type(&mut self, at: usize) {
        let keys = self.keys.len();
        let Some(values) = self.types[at].values.take() else { return };
        for (present, group) in std::mem::take(&mut self.by_types) {
            self.by_types.entry(present & !(1 << at)).or_insert_with(|| Group::new(keys)).merge(&group);
        }
        if !self.guess_type {
            for group in values.values() {
                self.by_types.entry(0).or_insert_with(|| Group::new(keys)).merge(group);
            }
        }
    }

    /// Takes into account what another inspector with the same options saw.
    pub fn merge(&mut self, other: Inspector) {
        let keys = self.keys.len();
        let Inspector { guess_key: _, guess_type: _, line_bytes, keys: their_keys, types, type_names: _, by_types, scratch: _ } = other;
        self.line_bytes += line_bytes;
        for (at, mut candidate) in types.into_iter().enumerate() {
            self.types[at].items += candidate.items;
            let Some(theirs) = candidate.values.take() else {
                self.give_up_type(at);
                continue;
            };
            if let Some(mine) = &mut self.types[at].values {
                for (value, group) in theirs {
                    mine.entry(value).or_insert_with(|| Group::new(keys)).merge(&group);
                }
            } else if !self.guess_type {
                for group in theirs.values() {
                    self.by_types.entry(0).or_insert_with(|| Group::new(keys)).merge(group);
                }
            }
        }
        let known = (0..self.types.len()).filter(|at| self.types[*at].values.is_some()).fold(0_u32, |known, at| known | 1 << at);
        for (present, group) in by_types {
            self.by_types.entry(present & known).or_insert_with(|| Group::new(keys)).merge(&group);
        }
        for at in 0..self.types.len() {
            if self.types[at].values.as_ref().is_some_and(|values| values.len() > self.most_values()) {
                self.give_up_type(at);
            }
        }
        for (at, theirs) in their_keys.into_iter().enumerate() {
            self.keys[at].items_without += theirs.items_without;
            self.keys[at].hot.merge(&theirs.hot);
            if self.guess_key && self.keys[at].items_without > 0 {
                self.give_up_key(at);
            }
        }
    }

    /// The findings so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let chosen = self.chosen_type();
        let groups = self.groups(chosen);
        let mut all = Group::new(self.keys.len());
        for (_, group) in &groups {
            all.merge(group);
        }
        let items = all.sizes.items;
        let key = self.chosen_key(items);
        let entities = self.entities(&groups, key, items);
        Report {
            items,
            line_bytes: self.line_bytes,
            item_bytes: item_bytes(&all.sizes),
            key: key.map(|at| {
                let KeyCandidate { partition, sort, items_without, .. } = &self.keys[at];
                Key { partition: partition.clone(), sort: sort.clone(), guessed: self.guess_key, items_without: *items_without }
            }),
            always_present: always_present(&all),
            type_attribute: chosen.map(|at| self.type_attribute(at, items)),
            type_candidates: (0..self.types.len())
                .filter(|at| self.types[*at].items > 0)
                .map(|at| self.type_attribute(at, items))
                .collect(),
            drift: drift(&entities),
            hot_partitions: key.map(|at| hot_partitions(&self.keys[at].hot, &all.sizes)),
            entities,
        }
    }

    /// The type attribute: the named one, or the one in most items, if it is in enough of them.
    fn chosen_type(&self) -> Option<usize> {
        let mut known = (0..self.types.len()).filter(|at| self.types[*at].values.is_some());
        if !self.guess_type {
            return known.next();
        }
        let items: u64 = self.by_types.values().map(|group| group.sizes.items).sum();
        known
            .filter(|at| self.types[*at].items > 0 && self.types[*at].items * 100 >= items * COVERAGE)
            .max_by_key(|at| (self.types[*at].items, std::cmp::Reverse(*at)))
    }

    /// All items by the value of the chosen type attribute; those without it under `None`.
    fn groups(&self, chosen: Option<usize>) -> Vec<(Option<&str>, Group)> {
        let mut without = Group::new(self.keys.len());
        for (present, group) in &self.by_types {
            if chosen.is_none_or(|at| present & (1 << at) == 0) {
                without.merge(group);
            }
        }
        let values = chosen.and_then(|at| self.types[at].values.as_ref()).into_iter().flatten();
        let mut groups: Vec<(Option<&str>, Group)> = values.map(|(value, group)| (Some(&**value), group.clone())).collect();
        groups.sort_by(|(left_name, left), (right_name, right)| {
            right.sizes.items.cmp(&left.sizes.items).then_with(|| left_name.cmp(right_name))
        });
        if without.sizes.items > 0 {
            groups.push((None, without));
        }
        groups
    }

    /// The key: the named one, or the first candidate that every item has.
    fn chosen_key(&self, items: u64) -> Option<usize> {
        (0..self.keys.len()).find(|at| !self.guess_key || (items > 0 && self.keys[*at].items_without == 0))
    }

    fn type_attribute(&self, at: usize, items: u64) -> TypeAttribute {
        let candidate = &self.types[at];
        TypeAttribute {
            name: candidate.name.clone(),
            guessed: self.guess_type,
            items: candidate.items,
            percent: percent(candidate.items, items),
            values: candidate.values.as_ref().map(FxHashMap::len),
        }
    }

    fn entities(&self, groups: &[(Option<&str>, Group)], key: Option<usize>, items: u64) -> Vec<Entity> {
        let shapes: Vec<Vec<(String, Seen)>> =
            groups.iter().map(|(_, group)| key.map_or(Vec::new(), |at| group.shapes[at].ranked())).collect();
        let look_alike = |shape: &str| {
            let named = || groups.iter().zip(&shapes).filter_map(|((name, _), shapes)| Some(((*name)?, shapes)));
            let fitting: Vec<&str> =
                named().filter(|(_, shapes)| shapes.iter().any(|(wide, _)| shape::covers(wide, shape))).map(|(name, _)| name).collect();
            let mut same = named().filter(|(_, shapes)| shapes.iter().any(|(known, _)| known == shape)).map(|(name, _)| name);
            // Groups come with the most frequent entity first; of drifted spellings that is the right one.
            same.next().or(match fitting[..] {
                [only] => Some(only),
                _ => None,
            })
        };
        let names = key.map(|at| (&*self.keys[at].partition, self.keys[at].sort.as_deref()));
        groups
            .iter()
            .zip(&shapes)
            .map(|((name, group), shapes)| Entity {
                name: name.map(str::to_owned),
                items: group.sizes.items,
                percent: percent(group.sizes.items, items),
                item_bytes: item_bytes(&group.sizes),
                first: group.first.map(Spot::from),
                seen_once: group.sizes.items == 1,
                key_shapes: shapes
                    .iter()
                    .map(|(shape, seen)| KeyShape {
                        shape: names.map_or(String::new(), |(partition, sort)| shape::with_names(shape, partition, sort)),
                        items: seen.items,
                        first: seen.first.into(),
                        probably: if name.is_none() { look_alike(shape).map(str::to_owned) } else { None },
                    })
                    .collect(),
                attributes: attributes(group),
                values_of_other_attributes: group.attributes.sorted().1,
            })
            .collect()
    }
}

fn item_bytes(sizes: &Sizes) -> ItemBytes {
    ItemBytes {
        total: sizes.bytes,
        p50: sizes.percentile(50),
        p99: sizes.percentile(99),
        largest: sizes.largest.map_or(0, |(bytes, _)| bytes),
        largest_at: sizes.largest.map(|(_, origin)| origin.into()),
    }
}

/// The attributes of a group, the most frequent first.
fn attributes(group: &Group) -> Vec<Attribute> {
    let (sorted, _) = group.attributes.sorted();
    let mut attributes: Vec<Attribute> = sorted
        .into_iter()
        .map(|(name, attribute)| {
            let mut types: Vec<TypeCount> = Type::ALL
                .iter()
                .zip(attribute.types)
                .filter(|(_, items)| *items > 0)
                .map(|(kind, items)| TypeCount { kind: kind.descriptor(), items })
                .collect();
            types.sort_by_key(|count| std::cmp::Reverse(count.items));
            Attribute {
                name: name.to_owned(),
                items: attribute.items,
                percent: percent(attribute.items, group.sizes.items),
                types,
                largest: attribute.largest,
            }
        })
        .collect();
    attributes.sort_by_key(|attribute| std::cmp::Reverse(attribute.items));
    attributes
}

/// Attributes that every item has in one and the same type that a key may have.
fn always_present(all: &Group) -> Vec<String> {
    let (sorted, _) = all.attributes.sorted();
    let always = |types: &[u64]| [Type::S, Type::N, Type::B].iter().any(|kind| types[*kind as usize] == all.sizes.items);
    sorted.into_iter().filter(|(_, attribute)| always(&attribute.types)).map(|(name, _)| name.to_owned()).collect()
}

fn drift(entities: &[Entity]) -> Vec<Drift> {
    let named: Vec<(&str, &Entity)> = entities.iter().filter_map(|entity| Some((entity.name.as_deref()?, entity))).collect();
    let values: Vec<(&str, u64)> = named.iter().map(|(name, entity)| (*name, entity.items)).collect();
    let same_keys = |frequent: usize, rare: usize| {
        let [frequent, rare] = [frequent, rare].map(|at| &named[at].1.key_shapes);
        !rare.is_empty() && rare.iter().all(|rare| frequent.iter().any(|known| known.shape == rare.shape))
    };
    drift::near_twins(&values, same_keys)
        .into_iter()
        .map(|(head, twins)| Drift {
            name: named[head].0.to_owned(),
            items: named[head].1.items,
            variants: twins
                .into_iter()
                .map(|twin| {
                    let (name, entity) = named[twin.value];
                    Variant { name: name.to_owned(), items: entity.items, differs_by: twin.by, first: entity.first }
                })
                .collect(),
        })
        .collect()
}

fn hot_partitions(hot: &HotKeys, total: &Sizes) -> HotPartitions {
    let top = |rank: fn(&hot::Load) -> u64| {
        hot.top(HOT, rank)
            .into_iter()
            .map(|(value, load)| HotPartition {
                value,
                items: load.items,
                items_percent: percent(load.items, total.items),
                bytes: load.bytes,
                bytes_percent: percent(load.bytes, total.bytes),
            })
            .collect()
    };
    HotPartitions {
        exact: hot.distinct().is_some(),
        distinct: hot.distinct(),
        by_items: top(|load| load.items),
        by_bytes: top(|load| load.bytes),
    }
}

#[cfg(test)]
mod tests;
