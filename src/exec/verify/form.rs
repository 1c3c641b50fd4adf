//! What an item is in a comparison: its place, its key, its hash, and what it is counted as. The same for both sides.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json, json};

use crate::codec::canonical::hash_item;
use crate::limits;
use crate::model::{DatasetId, Item, KeySchema, Origin, TableId, Value};
#[cfg(feature = "parquet")]
use crate::model::{Declared, KeyAttribute, KeyType};
use crate::plan::Plan;
use crate::proof::compare::{self, Entry, is_sampled};
use crate::proof::log::Block;
use crate::sink::Outgoing;
#[cfg(feature = "parquet")]
use crate::sink::parquet::comparable;

/// What an item is counted as that no entity is known of.
pub(super) const OTHER: u32 = u32::MAX;

/// What stands before the bytes of a key in place of the number of its schema, where an item has no key: its hash follows.
const KEYLESS: u8 = u8::MAX;

/// What items are compared within.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum View {
    /// Tables. Their keys are unique.
    Tables,
    /// Datasets: what Parquet holds. Several rows may have one key, where a dataset has items of several tables or sources.
    #[cfg(feature = "parquet")]
    Datasets,
}

impl View {
    /// Where items that leave are compared; `None`: nowhere.
    pub(super) fn place(self, outgoing: &Outgoing<'_>) -> Option<u32> {
        match self {
            View::Tables => outgoing.table.map(|table| table.0),
            #[cfg(feature = "parquet")]
            View::Datasets => Some(outgoing.dataset.0),
        }
    }
}

/// How items are recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) view: View,
    /// Only counted.
    pub(super) counts: bool,
    /// Only so many of a hundred keys.
    pub(super) sample: Option<f64>,
    pub(super) partitions: usize,
}

/// What is known of places, keys and entities.
#[derive(Debug)]
pub(super) struct Forms<'p> {
    plan: &'p Plan,
    /// By table, and what its type attribute says.
    by_type: FxHashMap<(TableId, &'p str), DatasetId>,
    /// By dataset: the keys that its rows may have, the first that a row has whole being its own.
    #[cfg(feature = "parquet")]
    keys: Vec<Vec<KeySchema>>,
}

impl<'p> Forms<'p> {
    pub(super) fn new(plan: &'p Plan) -> Self {
        let mut by_type = FxHashMap::default();
        for output in plan.entities.iter().flat_map(|entity| &entity.outputs) {
            if let Some(table) = output.table {
                by_type.entry((table, output.type_value.as_str())).or_insert(output.dataset);
            }
        }
        Self {
            plan,
            by_type,
            #[cfg(feature = "parquet")]
            keys: keys_of_rows(plan),
        }
    }

    /// The name of the table that a place is; `None` where it is none.
    pub(super) fn table_name(&self, view: View, place: u32) -> Option<&str> {
        match view {
            View::Tables => self.plan.targets.tables.get(place as usize).map(|table| table.name.as_str()),
            #[cfg(feature = "parquet")]
            View::Datasets => None,
        }
    }

    /// The name of what an item is counted as.
    pub(super) fn row_name(&self, row: u32) -> &str {
        self.plan.targets.datasets.get(row as usize).map_or("(other)", |dataset| dataset.name.as_str())
    }

    /// Whether the items of a table say by themselves what they are counted as.
    pub(super) fn tells(&self, table: TableId) -> bool {
        let several = self.plan.targets.datasets.iter().filter(|dataset| dataset.tables.contains(&table)).count() > 1;
        self.plan.targets.table(table).type_attribute.is_some() || !several
    }

    /// What an item of a table is counted as by itself.
    fn tell(&self, table: TableId, item: &Item<'_>) -> u32 {
        let known = match self.plan.targets.table(table).type_attribute.as_deref().map(|name| item.get(name)) {
            Some(Some(Value::S(text))) => self.by_type.get(&(table, text)).copied(),
            Some(_) => None,
            None => {
                let mut datasets = (0..).zip(&self.plan.targets.datasets).filter(|(_, dataset)| dataset.tables.contains(&table));
                match (datasets.next(), datasets.next()) {
                    (Some((only, _)), None) => Some(DatasetId(only)),
                    _ => None,
                }
            }
        };
        known.map_or(OTHER, |dataset| dataset.0)
    }

    /// The item of a place as it is compared.
    #[cfg_attr(not(feature = "parquet"), expect(clippy::unused_self, unused_variables, reason = "only datasets say how"))]
    pub(super) fn seen<'i, 'a>(&self, view: View, place: u32, item: &'i Item<'a>) -> Cow<'i, Item<'a>> {
        match view {
            View::Tables => Cow::Borrowed(item),
            #[cfg(feature = "parquet")]
            View::Datasets => {
                let nothing = Declared::default();
                Cow::Owned(comparable(item, self.plan.targets.datasets.get(place as usize).map_or(&nothing, |dataset| &dataset.declared)))
            }
        }
    }

    fn schemas(&self, view: View, place: u32) -> &[KeySchema] {
        match view {
            View::Tables => self.plan.targets.tables.get(place as usize).map(|table| std::slice::from_ref(&table.key)),
            #[cfg(feature = "parquet")]
            View::Datasets => self.keys.get(place as usize).map(Vec::as_slice),
        }
        .unwrap_or_default()
    }

    /// Writes the item's key, or its hash where it has none.
    pub(super) fn write_key(&self, view: View, place: u32, item: &Item<'_>, key: &mut Vec<u8>, scratch: &mut Vec<u8>) {
        for (at, schema) in (0..).zip(self.schemas(view, place)) {
            key.clear();
            key.push(at);
            if limits::canonical_key(item, schema, key) {
                return;
            }
        }
        key.clear();
        key.push(KEYLESS);
        key.extend_from_slice(&hash_item(item, scratch).to_be_bytes());
    }

    /// The parts of a key with their names; `None` where the item has no key.
    pub(super) fn key_parts<'k>(&self, view: View, place: u32, key: &'k [u8]) -> Option<Vec<(&str, u8, &'k [u8])>> {
        let (number, mut rest) = key.split_first()?;
        let schema = self.schemas(view, place).get(usize::from(*number)).filter(|_| *number != KEYLESS)?;
        let mut parts = Vec::new();
        for attribute in schema.attributes() {
            let (kind, after) = rest.split_first()?;
            let (length, after) = after.split_first_chunk::<8>()?;
            let (bytes, after) = after.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)?;
            parts.push((attribute.name.as_str(), kind.to_ascii_uppercase(), bytes));
            rest = after;
        }
        Some(parts)
    }

    /// A key in words: `PK=WS#acme, SK=META`.
    pub(super) fn key_in_words(&self, view: View, place: u32, key: &[u8]) -> String {
        let Some(parts) = self.key_parts(view, place, key) else { return "(no key)".to_owned() };
        let part = |(name, kind, bytes): &(&str, u8, &[u8])| match kind {
            b'B' => format!("{name}={}", STANDARD.encode(bytes)),
            _ => format!("{name}={}", String::from_utf8_lossy(bytes)),
        };
        parts.iter().map(part).collect::<Vec<_>>().join(", ")
    }

    /// A key as `DynamoDB` JSON; null where the item has none.
    pub(super) fn key_json(&self, view: View, place: u32, key: &[u8]) -> Json {
        let Some(parts) = self.key_parts(view, place, key) else { return Json::Null };
        let part = |(name, kind, bytes): (&str, u8, &[u8])| {
            let text = match kind {
                b'B' => STANDARD.encode(bytes),
                _ => String::from_utf8_lossy(bytes).into_owned(),
            };
            (name.to_owned(), json!({ char::from(kind).to_string(): text }))
        };
        Json::Object(parts.into_iter().map(part).collect::<Map<_, _>>())
    }
}

/// By dataset: the keys of its tables, then those of the sources.
#[cfg(feature = "parquet")]
fn keys_of_rows(plan: &Plan) -> Vec<Vec<KeySchema>> {
    let attribute = |name: &String| KeyAttribute { name: name.clone(), kind: KeyType::S };
    let of_sources =
        plan.sources.iter().map(|source| KeySchema { partition: attribute(&source.partition), sort: source.sort.as_ref().map(attribute) });
    let keys = plan.targets.datasets.iter().map(|dataset| {
        let of_tables = dataset.tables.iter().map(|table| plan.targets.table(*table).key.clone());
        of_tables.chain(of_sources.clone()).take(usize::from(KEYLESS)).collect()
    });
    keys.collect()
}

/// Items of one chunk, page or row group.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) block: Option<Block>,
    pub(super) counts: BTreeMap<(u32, u32), u64>,
    /// Items that the target refuses by what the pipeline declares.
    pub(super) refused: u64,
    /// Lines that hold no item, and why.
    pub(super) unreadable: Vec<(Origin, String)>,
    /// Items and such lines.
    pub(super) items: u64,
    pub(super) bytes: u64,
}

/// Records items as entries, or counts them.
pub(super) struct Recorder<'f, 'p> {
    forms: &'f Forms<'p>,
    how: How,
    pub(super) part: Part,
    key: Vec<u8>,
    scratch: Vec<u8>,
}

impl<'f, 'p> Recorder<'f, 'p> {
    pub(super) fn new(forms: &'f Forms<'p>, how: How) -> Self {
        let block = (!how.counts).then(|| Block::new(how.partitions));
        Self { forms, how, part: Part { block, ..Part::default() }, key: Vec::new(), scratch: Vec::new() }
    }

    /// Adds an item of a table, or of a dataset where those are compared. `known`: what it is counted as; unless it is only counted,
    /// which both sides must do by what they see.
    pub(super) fn add(&mut self, place: u32, known: Option<DatasetId>, item: &Item<'_>, origin: Origin) {
        let row = |known: Option<DatasetId>| match (self.how.view, known) {
            (_, Some(dataset)) => dataset.0,
            (View::Tables, None) => self.forms.tell(TableId(place), item),
            #[cfg(feature = "parquet")]
            (View::Datasets, None) => place,
        };
        let Some(block) = &mut self.part.block else {
            *self.part.counts.entry((place, row(None))).or_default() += 1;
            return;
        };
        self.forms.write_key(self.how.view, place, item, &mut self.key, &mut self.scratch);
        if self.how.sample.is_none_or(|percent| is_sampled(place, &self.key, percent)) {
            let hash = hash_item(item, &mut self.scratch);
            compare::push(block, &Entry { place, row: row(known), key: &self.key, hash, origin });
        }
    }
}
