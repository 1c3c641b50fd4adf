//! What the values of a dataset look like, from all of its items: types, counts, widths of numbers. Order-free.
//!
//! It decides nothing: what a column becomes is the sink's business. It keeps no value of any item, only names, counts and sizes.
//!
//! A [`Shape`] is a function of the items alone, whatever their order and however they were shared among workers: it is what
//! [`Shape::observe`] and [`Shape::merge`] give in any sequence. Its memory is bounded, whatever the items hold:
//!
//! - A map position with more than [`MAP_KEYS`] distinct keys, or with too many keys in all maps below it, stops collecting names
//!   and keeps one shape for all of its values. What lies deeper than [`LEVELS`] is counted by type only.
//! - Of the top-level names those that are pinned are kept, and of the others the shortest, as many as there is room for. Names that
//!   are data, such as identifiers and times, are longer than those that somebody chose. Of the rest it is known only that there are
//!   [`others`](Shape::others).
//!
//! Both are exact for any sequence because what is given up once would be given up by the whole as well: the room that names take
//! only ever grows with the items.

use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::by_attribute::Values;
use crate::model::declared::{Declared, Fit};
use crate::model::number::{Decimal, unscaled};
use crate::model::{ByAttribute, Dataset, Item, Type, Value};

/// The most distinct keys that one map position may have while each is kept by name; with more, its keys are data.
pub const MAP_KEYS: usize = 64;

/// How many maps and lists, one in the other, are looked into. Deeper ones are counted, not opened.
pub const LEVELS: usize = 8;

/// The longest top-level name that is kept, in bytes. Longer ones are no names for columns.
pub const NAME_BYTES: usize = 1024;

/// The room for the top-level names of a dataset, pinned ones aside, with all the keys below them. Each takes what [`room_of`] says;
/// a unit is some 400 bytes of memory. It is more than one attribute can take.
const ROOM: usize = 8192;

/// The room for the keys of a map and of all maps below it, by the level of the map.
const MAP_ROOM: [usize; LEVELS] = [1024, 512, 256, 128, 64, 64, 64, 64];

/// The room that a name takes, with the shape of its values but without what lies below.
fn room_of(name: &str) -> usize {
    1 + name.len() / 64
}

/// What the items of one dataset look like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    items: u64,
    #[serde(serialize_with = "by_name", deserialize_with = "from_names")]
    attributes: Names,
    /// Names that are kept always, and take no room.
    pinned: Vec<Box<str>>,
    /// The room that the other names take.
    room: usize,
    /// The first name, in the order of [`rank`], for which there was no room. No name from there on is kept.
    cut: Option<Box<str>>,
    /// Whether a name was too long to be kept.
    too_long: bool,
    /// How the values fit the types that were declared for them, by attribute.
    #[serde(default, skip_serializing_if = "is_default")]
    fits: BTreeMap<Box<str>, Fits>,
}

/// How the values of an attribute, NULL aside, fit the type that was declared for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fits {
    /// How many fit.
    pub fit: u64,
    /// Of these, how many lose digits.
    pub rounded: u64,
    /// How many do not.
    pub misfit: u64,
}

/// The order in which names have a claim to room.
fn rank(name: &str) -> (usize, &str) {
    (name.len(), name)
}

type Names = FxHashMap<Box<str>, ValueShape>;

impl Shape {
    /// The shape of no items, with the names that it keeps whatever else there is. They should be few.
    #[must_use]
    pub fn new<N: AsRef<str>>(pinned: &[N]) -> Self {
        Self { pinned: pinned.iter().map(|name| name.as_ref().into()).collect(), ..Self::default() }
    }

    /// The shape of no items of a dataset: keeps the names that lead it, and those that something was declared of.
    #[must_use]
    pub fn of_dataset(dataset: &Dataset) -> Self {
        let leading = dataset.leading.iter().map(String::as_str);
        let mut names: Vec<&str> = leading.chain(dataset.declared.attributes()).collect();
        names.sort_unstable();
        names.dedup();
        Self::new(&names)
    }

    /// Adds how the values of one item fit the types declared for them; the item itself is added by [`observe`](Self::observe).
    pub fn compare(&mut self, item: &Item<'_>, declared: &Declared) {
        for (name, column) in &declared.types {
            let Some(value) = item.get(name).filter(|value| !matches!(value, Value::Null)) else { continue };
            let one = match column.fit(&value) {
                Fit::Exact => Fits { fit: 1, ..Fits::default() },
                Fit::Rounded => Fits { fit: 1, rounded: 1, misfit: 0 },
                Fit::Not => Fits { misfit: 1, ..Fits::default() },
            };
            self.add_fits(name, one);
        }
    }

    fn add_fits(&mut self, name: &str, Fits { fit, rounded, misfit }: Fits) {
        if !self.fits.contains_key(name) {
            self.fits.insert(name.into(), Fits::default());
        }
        if let Some(mine) = self.fits.get_mut(name) {
            mine.fit += fit;
            mine.rounded += rounded;
            mine.misfit += misfit;
        }
    }

    /// How the values of the attribute `name` fit the type that was declared for it.
    #[must_use]
    pub fn fits(&self, name: &str) -> Fits {
        self.fits.get(name).copied().unwrap_or_default()
    }

    /// Adds one item. Allocates only for names that are new.
    pub fn observe(&mut self, item: &Item<'_>) {
        self.items += 1;
        for (name, value) in item.attributes() {
            self.at(name, |shape| shape.observe(value, 0));
        }
        self.make_room();
    }

    /// Adds many items, as [`observe`](Self::observe) would one by one, but quicker.
    pub fn observe_all(&mut self, items: &ByAttribute<'_, '_>) {
        /// Names after which room is made.
        const SOME: usize = 4096;
        self.items += items.items() as u64;
        for some in items.attributes().chunks(SOME) {
            for Values { name, values } in some {
                let mut shape = ValueShape::default();
                let (mut texts, mut sizes) = (0, Sizes::default());
                for (_, value) in values {
                    // Most are texts, and these need no more.
                    if let Value::S(text) = value {
                        texts += 1;
                        sizes.add(text.len());
                    } else {
                        shape.observe(value, 0);
                    }
                }
                shape.counts[Type::S as usize] += texts;
                shape.texts.merge(&sizes);
                self.at(name, |mine| mine.merge(&shape, 0));
            }
            self.make_room();
        }
    }

    /// Adds all items of another shape, which must have the same pinned names. Commutative and associative.
    pub fn merge(&mut self, other: &Shape) {
        self.items += other.items;
        self.too_long |= other.too_long;
        if let Some(theirs) = &other.cut {
            self.cut_at(theirs);
        }
        for (name, fits) in &other.fits {
            self.add_fits(name, *fits);
        }
        for (name, shape) in &other.attributes {
            self.at(name, |mine| mine.merge(shape, 0));
        }
        self.make_room();
    }

    /// Calls `add`, which says how much more room the keys below take, with the shape for the attribute `name`, if that is kept.
    fn at(&mut self, name: &str, add: impl FnOnce(&mut ValueShape) -> usize) {
        let grown = if let Some(shape) = self.attributes.get_mut(name) {
            add(shape)
        } else {
            if !self.is_pinned(name) {
                if name.len() > NAME_BYTES {
                    self.too_long = true;
                    return;
                }
                if self.cut.as_ref().is_some_and(|cut| rank(name) >= rank(cut)) {
                    return;
                }
            }
            room_of(name) + add(self.attributes.entry(name.into()).or_default())
        };
        if grown > 0 && !self.is_pinned(name) {
            self.room += grown;
        }
    }

    fn is_pinned(&self, name: &str) -> bool {
        self.pinned.iter().any(|pinned| **pinned == *name)
    }

    /// Gives up the last names until the others have room.
    fn make_room(&mut self) {
        if self.room <= ROOM {
            return;
        }
        let pinned = |name: &str| self.pinned.iter().any(|pinned| **pinned == *name);
        let mut names: BinaryHeap<_> = self.attributes.keys().filter(|name| !pinned(name)).map(|name| rank(name)).collect();
        let mut room = self.room;
        let mut cut = None;
        while room > ROOM {
            let Some((_, last)) = names.pop() else { break };
            room -= room_of(last) + self.attributes[last].room();
            cut = Some(Box::from(last));
        }
        if let Some(cut) = cut {
            self.cut_at(&cut);
        }
    }

    /// Gives up the names from `cut` on.
    fn cut_at(&mut self, cut: &str) {
        if self.cut.as_ref().is_some_and(|mine| rank(mine) <= rank(cut)) {
            return;
        }
        let Self { attributes, pinned, room, .. } = self;
        attributes.retain(|name, shape| {
            let kept = rank(name) < rank(cut) || pinned.contains(name);
            *room -= if kept { 0 } else { room_of(name) + shape.room() };
            kept
        });
        self.cut = Some(cut.into());
    }

    /// Whether there are attributes that [`Shape::attributes`] does not have, for want of room or since their names are too long.
    #[must_use]
    pub fn others(&self) -> bool {
        self.cut.is_some() || self.too_long
    }

    /// How many items were seen.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The top-level attributes that are kept, in byte order of their names.
    #[must_use]
    pub fn attributes(&self) -> BTreeMap<&str, &ValueShape> {
        self.attributes.iter().map(|(name, shape)| (&**name, shape)).collect()
    }

    /// What the top-level attribute `name` held; `None` when no item has it, or it is one of the [others](Shape::others).
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&ValueShape> {
        self.attributes.get(name)
    }
}

/// What the values at one position look like: an attribute, a field of a map, or the elements of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValueShape {
    /// By `Type as usize`.
    counts: [u64; 10],
    #[serde(skip_serializing_if = "is_default")]
    texts: Sizes,
    #[serde(skip_serializing_if = "is_default")]
    numbers: Numbers,
    #[serde(skip_serializing_if = "is_default")]
    binaries: Sizes,
    #[serde(skip_serializing_if = "is_default")]
    members: Option<Box<Members>>,
    #[serde(skip_serializing_if = "is_default")]
    elements: Option<Box<ValueShape>>,
    #[serde(skip_serializing_if = "is_default")]
    map: Option<Box<MapShape>>,
}

impl ValueShape {
    /// Adds a value; gives how much more room the keys below take.
    fn observe(&mut self, value: &Value<'_>, level: usize) -> usize {
        self.counts[value.kind() as usize] += 1;
        match *value {
            Value::S(text) => self.texts.add(text.len()),
            Value::N(text) => self.numbers.add(text),
            Value::B(bytes) => self.binaries.add(bytes.len()),
            Value::Bool(_) | Value::Null => {}
            Value::Ss(texts) => texts.iter().for_each(|text| self.members.get_or_insert_default().texts.add(text.len())),
            Value::Ns(texts) => texts.iter().for_each(|text| self.members.get_or_insert_default().numbers.add(text)),
            Value::Bs(list) => list.iter().for_each(|bytes| self.members.get_or_insert_default().binaries.add(bytes.len())),
            Value::L(_) | Value::M(_) if level >= LEVELS => {}
            Value::L(elements) => {
                let shape = self.elements.get_or_insert_default();
                return elements.iter().map(|element| shape.observe(element, level + 1)).sum();
            }
            Value::M(fields) => {
                let shape = self.map.get_or_insert_default();
                shape.empty += u64::from(fields.is_empty());
                return fields.iter().map(|(name, value)| shape.at(name, level, |field| field.observe(value, level + 1))).sum();
            }
        }
        0
    }

    /// Adds all values of another position; gives how much more room the keys below take.
    fn merge(&mut self, other: &ValueShape, level: usize) -> usize {
        let ValueShape { counts, texts, numbers, binaries, members, elements, map } = other;
        self.counts.iter_mut().zip(counts).for_each(|(mine, theirs)| *mine += theirs);
        self.texts.merge(texts);
        self.numbers.merge(numbers);
        self.binaries.merge(binaries);
        if let Some(theirs) = members {
            let mine = self.members.get_or_insert_default();
            mine.texts.merge(&theirs.texts);
            mine.numbers.merge(&theirs.numbers);
            mine.binaries.merge(&theirs.binaries);
        }
        let mut grown = 0;
        if let Some(theirs) = elements {
            grown += self.elements.get_or_insert_default().merge(theirs, level + 1);
        }
        if let Some(theirs) = map {
            let mine = self.map.get_or_insert_default();
            mine.empty += theirs.empty;
            match &theirs.fields {
                Fields::Named(names) => {
                    grown += names.iter().map(|(name, shape)| mine.at(name, level, |field| field.merge(shape, level + 1))).sum::<usize>();
                }
                Fields::Dynamic(values) => {
                    let before = mine.room;
                    mine.fold(level).merge(values, level + 1);
                    grown += mine.room - before;
                }
            }
        }
        grown
    }

    /// The room that the keys below take.
    fn room(&self) -> usize {
        let map = self.map.as_ref().map_or(0, |map| map.room);
        map + self.elements.as_ref().map_or(0, |elements| elements.room())
    }

    /// Whether a map somewhere in these values has a field that is NULL.
    #[must_use]
    pub fn has_null_fields(&self) -> bool {
        let null = |field: &ValueShape| field.count(Type::Null) > 0 || field.has_null_fields();
        let in_map = self.map.as_ref().is_some_and(|map| match &map.fields {
            Fields::Named(names) => names.values().any(null),
            Fields::Dynamic(values) => null(values),
        });
        in_map || self.elements.as_ref().is_some_and(|elements| elements.has_null_fields())
    }

    /// How many values of this type were seen here.
    #[must_use]
    pub fn count(&self, kind: Type) -> u64 {
        self.counts[kind as usize]
    }

    /// How many values were seen here, NULL included.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The types that were seen here, NULL aside, in the order of [`Type`].
    pub fn kinds(&self) -> impl Iterator<Item = Type> + '_ {
        Type::ALL.into_iter().filter(|kind| *kind != Type::Null && self.count(*kind) > 0)
    }

    /// Sizes of the S values.
    #[must_use]
    pub fn texts(&self) -> Sizes {
        self.texts
    }

    /// Widths of the N values.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// Sizes of the B values.
    #[must_use]
    pub fn binaries(&self) -> Sizes {
        self.binaries
    }

    /// The members of all sets.
    #[must_use]
    pub fn members(&self) -> Members {
        self.members.as_deref().copied().unwrap_or_default()
    }

    /// The elements of all lists together; `None` where there was no list that was looked into.
    #[must_use]
    pub fn elements(&self) -> Option<&ValueShape> {
        self.elements.as_deref()
    }

    /// The fields of all maps together; `None` where there was no map that was looked into.
    #[must_use]
    pub fn map(&self) -> Option<&MapShape> {
        self.map.as_deref()
    }
}

/// Sizes of texts or binaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Bytes of the longest value.
    pub longest: u64,
    /// Bytes of all values.
    pub bytes: u64,
}

impl Sizes {
    fn add(&mut self, bytes: usize) {
        self.longest = self.longest.max(bytes as u64);
        self.bytes += bytes as u64;
    }

    fn merge(&mut self, other: &Sizes) {
        self.longest = self.longest.max(other.longest);
        self.bytes += other.bytes;
    }
}

/// Widths of numbers, by value: `1E3` has four digits before the point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbers {
    /// How many numbers are integers that do not fit 64 bits, or are no integers.
    pub not_i64: u64,
    /// How many numbers are no integers.
    pub fractions: u64,
    /// How many texts are no decimal number; the limits refuse them, so this should be 0.
    pub malformed: u64,
    /// The most digits before the point; 0 where all are below 1.
    pub whole: u32,
    /// The most digits after the point, trailing zeros aside.
    pub scale: u32,
}

impl Numbers {
    fn add(&mut self, text: &str) {
        let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
        // Most numbers are short integers in their one spelling; they need no parsing.
        if matches!(digits, [b'1'..=b'9', rest @ ..] if rest.len() < 18 && rest.iter().all(u8::is_ascii_digit)) {
            #[expect(clippy::cast_possible_truncation, reason = "at most 18 digits")]
            let whole = digits.len() as u32;
            self.whole = self.whole.max(whole);
            return;
        }
        let Some(number) = Decimal::parse(text) else {
            self.malformed += 1;
            return;
        };
        let scale = number.scale();
        self.whole = self.whole.max(u32::try_from(number.magnitude().max(0)).unwrap_or(u32::MAX));
        self.scale = self.scale.max(u32::try_from(scale).unwrap_or(u32::MAX));
        self.fractions += u64::from(scale > 0);
        self.not_i64 += u64::from(to_i64(&number).is_none());
    }

    fn merge(&mut self, other: &Numbers) {
        let Numbers { not_i64, fractions, malformed, whole, scale } = *other;
        self.not_i64 += not_i64;
        self.fractions += fractions;
        self.malformed += malformed;
        self.whole = self.whole.max(whole);
        self.scale = self.scale.max(scale);
    }
}

/// The number as a 64-bit integer, where it is exactly one.
#[must_use]
pub fn to_i64(number: &Decimal<'_>) -> Option<i64> {
    unscaled(number, 0).and_then(|value| i64::try_from(value).ok())
}

/// The members of sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Members {
    /// Of string sets.
    pub texts: Sizes,
    /// Of number sets.
    pub numbers: Numbers,
    /// Of binary sets.
    pub binaries: Sizes,
}

/// What the maps at one position look like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapShape {
    empty: u64,
    fields: Fields,
    /// The room that the keys here and below take. Once the names are given up, a constant that is above what it was before: so it
    /// never shrinks, and whether a map further up has room for its keys does not depend on the order of the items.
    room: usize,
}

impl MapShape {
    /// How many of the maps were empty.
    #[must_use]
    pub fn empty(&self) -> u64 {
        self.empty
    }

    /// The fields in byte order of their names; `None` where there were more than [`MAP_KEYS`] names, or too many below.
    #[must_use]
    pub fn fields(&self) -> Option<BTreeMap<&str, &ValueShape>> {
        match &self.fields {
            Fields::Named(names) => Some(names.iter().map(|(name, shape)| (&**name, shape)).collect()),
            Fields::Dynamic(_) => None,
        }
    }

    /// Calls `add` with the shape for the key `name`, or that for all keys; gives how much more room is taken. `add` gives that for
    /// what lies below the key. The map is on this level.
    fn at(&mut self, name: &str, level: usize, add: impl FnOnce(&mut ValueShape) -> usize) -> usize {
        let names = match &mut self.fields {
            Fields::Dynamic(values) => {
                add(values);
                return 0;
            }
            Fields::Named(names) => names,
        };
        let grown = match names.get_mut(name) {
            Some(shape) => add(shape),
            None => room_of(name) + add(names.entry(name.into()).or_default()),
        };
        if grown == 0 {
            return 0;
        }
        let before = self.room;
        self.room += grown;
        if names.len() > MAP_KEYS || self.room > MAP_ROOM[level] {
            self.fold(level);
        }
        self.room - before
    }

    /// Gives the names up. The result is the merge of all fields, as if none had ever had a name: this is what keeps the shape
    /// independent of when the limit was passed.
    fn fold(&mut self, level: usize) -> &mut ValueShape {
        if let Fields::Named(names) = &self.fields {
            let mut values = Box::<ValueShape>::default();
            for field in names.values() {
                values.merge(field, level + 1);
            }
            self.fields = Fields::Dynamic(values);
            self.room = MAP_ROOM[level] + 1;
        }
        match &mut self.fields {
            Fields::Dynamic(values) => values,
            Fields::Named(_) => unreachable!("the names were given up above"),
        }
    }

    /// All values of all keys together; `None` where the keys are few and [`MapShape::fields`] has them.
    #[must_use]
    pub fn values(&self) -> Option<&ValueShape> {
        match &self.fields {
            Fields::Named(_) => None,
            Fields::Dynamic(values) => Some(values),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fields {
    #[serde(serialize_with = "by_name", deserialize_with = "from_names")]
    Named(Names),
    Dynamic(Box<ValueShape>),
}

impl Default for Fields {
    fn default() -> Self {
        Fields::Named(Names::default())
    }
}

/// Sorted, so that equal shapes have equal bytes.
fn by_name<S: Serializer>(names: &Names, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(names.iter().collect::<BTreeMap<_, _>>())
}

fn from_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
    Names::deserialize(deserializer)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Arena;

    fn shape_of(items: &[&[(&'static str, Value<'static>)]]) -> Shape {
        let arena = Arena::new();
        let mut shape = Shape::new::<&str>(&[]);
        for attributes in items {
            let mut item = Item::new_in(&arena);
            attributes.iter().for_each(|(name, value)| item.push(name, *value));
            shape.observe(&item);
        }
        shape
    }

    fn numbers_of(texts: &[&str]) -> Numbers {
        let mut numbers = Numbers::default();
        for text in texts {
            numbers.add(text);
        }
        numbers
    }

    #[test]
    fn counts_values_by_type_and_items_as_a_whole() {
        let shape = shape_of(&[&[("a", Value::S("xyz")), ("b", Value::Null)], &[("a", Value::N("1"))], &[]]);
        let a = shape.attribute("a").unwrap();
        assert_eq!((shape.items(), a.total(), a.count(Type::S), a.count(Type::N)), (3, 2, 1, 1));
        assert_eq!(a.kinds().collect::<Vec<_>>(), [Type::S, Type::N]);
        assert_eq!(a.texts(), Sizes { longest: 3, bytes: 3 });
        assert_eq!(shape.attribute("b").unwrap().kinds().count(), 0);
        assert!(shape.attribute("c").is_none());
    }

    #[test]
    fn numbers_are_measured_by_value() {
        let integers = Numbers { whole: 3, ..Numbers::default() };
        assert_eq!(numbers_of(&["1", "-200", "0", "1.0", "1E2"]), integers);
        assert_eq!(numbers_of(&["0.05", "12.5"]), Numbers { not_i64: 2, fractions: 2, whole: 2, scale: 2, malformed: 0 });
        assert_eq!(numbers_of(&["9223372036854775807", "-9223372036854775808"]).not_i64, 0);
        assert_eq!(numbers_of(&["9223372036854775808", "-9223372036854775809"]).not_i64, 2);
        assert_eq!(numbers_of(&["1E125"]), Numbers { not_i64: 1, whole: 126, ..Numbers::default() });
        assert_eq!(numbers_of(&["1E-130"]), Numbers { not_i64: 1, fractions: 1, scale: 130, ..Numbers::default() });
        assert_eq!(numbers_of(&["abc"]).malformed, 1);
    }

    #[test]
    fn a_number_is_scaled_exactly_or_not_at_all() {
        let scaled = |text: &str, scale| unscaled(&Decimal::parse(text).unwrap(), scale);
        assert_eq!(scaled("12.5", 2), Some(1250));
        assert_eq!(scaled("-0.05", 2), Some(-5));
        assert_eq!(scaled("0.005", 2), None);
        assert_eq!(scaled("0", 38), Some(0));
        assert_eq!(scaled(&"9".repeat(38), 0), Some(10_i128.pow(38) - 1));
        assert_eq!(scaled("1E38", 0), None);
        assert_eq!(scaled("1E99999999999999999999", 0), None);
    }

    #[test]
    fn a_map_with_too_many_keys_keeps_one_shape_for_its_values() {
        let keys: Vec<String> = (0..=MAP_KEYS).map(|n| format!("k{n}")).collect();
        let with_keys = |keys: &[String]| {
            let arena = Arena::new();
            let fields: Vec<_> = keys.iter().map(|key| (key.as_str(), Value::N("7"))).collect();
            let mut item = Item::new_in(&arena);
            item.push("m", Value::M(&fields));
            let mut shape = Shape::new::<&str>(&[]);
            shape.observe(&item);
            shape
        };
        let few = with_keys(&keys[..MAP_KEYS]);
        assert_eq!(few.attribute("m").unwrap().map().unwrap().fields().unwrap().len(), MAP_KEYS);
        let many = with_keys(&keys);
        let map = many.attribute("m").unwrap().map().unwrap();
        assert!(map.fields().is_none());
        assert_eq!(map.values().unwrap().count(Type::N), 65);

        // Both halves are below the limit, the whole is above it.
        let mut halves = with_keys(&keys[..40]);
        halves.merge(&with_keys(&keys[40..]));
        let values = |shape: &Shape| shape.attribute("m").unwrap().map().unwrap().values().cloned();
        assert_eq!(values(&halves), values(&many));
    }

    /// A shape of one item for each of these names; the first is pinned in it.
    fn with_names(names: &[String]) -> Shape {
        let arena = Arena::new();
        let mut shape = Shape::new(&["pinned-and-longer-than-the-others"]);
        for name in names {
            let mut item = Item::new_in(&arena);
            item.push(name, Value::Bool(true));
            shape.observe(&item);
        }
        shape
    }

    #[test]
    fn of_too_many_names_the_shortest_and_the_pinned_ones_are_kept_with_all_their_values() {
        let mut names: Vec<String> = (0..20_000).map(|n| format!("n{n}")).collect();
        names.extend(["pinned-and-longer-than-the-others".to_owned(), "status".to_owned(), "status".to_owned()]);
        names.rotate_right(2);
        let whole = with_names(&names);
        assert_eq!(whole.attributes().len(), ROOM + 1);
        assert_eq!(whole.attribute("n8190").unwrap().total(), 1);
        assert!(whole.attribute("n8192").is_none() && whole.others());
        assert!(whole.attribute("pinned-and-longer-than-the-others").is_some() && whole.attribute("status").is_none());
        let mut parts = with_names(&names[15_000..]);
        parts.merge(&with_names(&names[..9_000]));
        parts.merge(&with_names(&names[9_000..15_000]));
        assert_eq!(parts, whole);
        assert!(!with_names(&names[..ROOM]).others());
    }

    #[test]
    fn a_name_that_is_too_long_is_not_kept() {
        let shape = with_names(&["x".repeat(NAME_BYTES), "y".repeat(NAME_BYTES + 1)]);
        assert_eq!(shape.attributes().into_keys().map(|name| &name[..1]).collect::<String>(), "x");
        assert!(shape.others() && !with_names(&["x".repeat(NAME_BYTES)]).others());
    }

    #[test]
    fn maps_in_maps_keep_no_more_names_than_they_have_room_for() {
        let arena = Arena::new();
        let mut shape = Shape::new::<&str>(&[]);
        let mut nodes = 0;
        for n in 0..20_000_usize {
            let key = |n: usize| &*arena.alloc_str(&format!("k{}", n % 64));
            let mut value = Value::N("1");
            for level in 0..6 {
                value = Value::M(arena.alloc_slice_copy(&[(key(n * 31_usize.pow(level) / 64), value)]));
            }
            let mut item = Item::new_in(&arena);
            item.push("m", value);
            shape.observe(&item);
            nodes = nodes.max(shape.room);
        }
        assert!(nodes <= MAP_ROOM[0] + 2, "{nodes}");
        assert_eq!(shape.attribute("m").unwrap().count(Type::M), 20_000);
    }

    #[test]
    fn what_lies_too_deep_is_counted_and_not_opened() {
        let arena = Arena::new();
        let mut value = Value::S("bottom");
        for _ in 0..200 {
            value = Value::L(arena.alloc_slice_copy(&[value]));
        }
        let mut item = Item::new_in(&arena);
        item.push("deep", value);
        let mut shape = Shape::new::<&str>(&[]);
        shape.observe(&item);
        let mut at = shape.attribute("deep").unwrap();
        let mut levels = 0;
        while let Some(inner) = at.elements() {
            at = inner;
            levels += 1;
        }
        assert_eq!((levels, at.count(Type::L)), (LEVELS, 1));
    }

    #[test]
    fn a_saved_shape_is_read_back_equal_and_has_one_spelling() {
        let shape = shape_of(&[&[
            ("z", Value::S("x")),
            ("a", Value::M(&[("k", Value::L(&[Value::N("1.5"), Value::Null])), ("e", Value::M(&[]))])),
            ("s", Value::Ns(&["1", "22"])),
        ]]);
        let text = serde_json::to_string(&shape).unwrap();
        let back: Shape = serde_json::from_str(&text).unwrap();
        assert_eq!(back, shape);
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert!(text.find("\"a\"").unwrap() < text.find("\"s\"").unwrap());
    }

    mod any_split {
        use proptest::prelude::*;

        use super::*;

        /// A value made from a recipe of bytes, so that shrinking keeps it small.
        fn value<'a>(recipe: &mut std::slice::Iter<'_, u8>, arena: &'a Arena, depth: usize) -> Value<'a> {
            let mut next = || usize::from(recipe.next().copied().unwrap_or(0));
            let (kind, size) = (next() % 10, next());
            let texts = || arena.alloc_slice_fill_with(size % 3, |n| &*arena.alloc_str(&format!("{}", n + size)));
            match kind {
                0 => Value::S(arena.alloc_str(&"x".repeat(size % 5))),
                1 => Value::N(["0", "1", "-12.50", "9223372036854775808", "1e-3"][size % 5]),
                2 => Value::B(arena.alloc_slice_fill_copy(size % 4, 7_u8)),
                3 => Value::Bool(true),
                4 => Value::Ss(texts()),
                5 => Value::Ns(texts()),
                6 | 7 if depth < 4 => {
                    let fields: Vec<_> = (0..size)
                        .map(|n| (&*arena.alloc_str(&format!("k{}", n * (size % 7 + 1))), value(recipe, arena, depth + 1)))
                        .collect();
                    Value::M(arena.alloc_slice_copy(&fields))
                }
                8 if depth < 4 => {
                    let elements: Vec<_> = (0..size % 4).map(|_| value(recipe, arena, depth + 1)).collect();
                    Value::L(arena.alloc_slice_copy(&elements))
                }
                _ => Value::Null,
            }
        }

        /// An item whose attributes have names of several lengths, some of them with as many maps below as are needed to run out of room.
        fn crowded<'a>(seed: usize, arena: &'a Arena) -> Item<'a> {
            let mut item = Item::new_in(arena);
            item.push("pinned", Value::N("1"));
            let inner = |n: usize| -> &'a [(&'a str, Value<'a>)] {
                arena.alloc_slice_fill_with(n % 64, |k| (&*arena.alloc_str(&format!("{k}.{n}")), Value::Bool(true)))
            };
            for n in 0..40 {
                let name = arena.alloc_str(&"n".repeat((seed * 7 + n) % 41 + 1));
                let fields =
                    arena.alloc_slice_fill_with(seed % 60, |k| (&*arena.alloc_str(&format!("k{k}")), Value::M(inner(seed + k + n % 3))));
                item.push(name, Value::M(fields));
            }
            item
        }

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(24))]
            #[test]
            fn gives_the_same_shape_when_names_run_out_of_room(items in prop::collection::vec((0..1000_usize, 0..3_usize), 1..10)) {
                let arena = Arena::new();
                let mut whole = Shape::new(&["pinned"]);
                let mut parts = vec![Shape::new(&["pinned"]); 3];
                for (seed, worker) in &items {
                    let item = crowded(*seed, &arena);
                    whole.observe(&item);
                    parts[*worker].observe(&item);
                }
                let mut left = parts[0].clone();
                left.merge(&parts[1]);
                left.merge(&parts[2]);
                let mut pair = parts[2].clone();
                pair.merge(&parts[1]);
                let mut right = Shape::new(&["pinned"]);
                right.merge(&pair);
                right.merge(&parts[0]);
                prop_assert_eq!(&left, &whole);
                prop_assert_eq!(&right, &whole);
                let items: Vec<_> = items.iter().map(|(seed, _)| crowded(*seed, &arena)).collect();
                let mut at_once = Shape::new(&["pinned"]);
                at_once.observe_all(&ByAttribute::of(&items));
                prop_assert_eq!(&at_once, &whole);
                prop_assert_eq!(whole.attribute("pinned").unwrap().total(), items.len() as u64);
                let room: usize = whole.attributes.iter().filter(|(name, _)| &***name != "pinned").map(|(name, shape)| room_of(name) + shape.room()).sum();
                prop_assert_eq!(room, whole.room);
                prop_assert!(room <= ROOM);
            }
        }

        proptest! {
            #[test]
            fn gives_the_same_shape(items in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), 0..4_usize), 0..20), from in 0..4_usize) {
                let arena = Arena::new();
                let mut whole = Shape::new::<&str>(&[]);
                let mut parts = vec![Shape::new::<&str>(&[]); 4];
                for (recipe, worker) in &items {
                    let mut item = Item::new_in(&arena);
                    let mut recipe = recipe.iter();
                    item.push("a", value(&mut recipe, &arena, 0));
                    item.push("b", value(&mut recipe, &arena, 0));
                    whole.observe(&item);
                    parts[*worker].observe(&item);
                }
                // Two groupings and two orders.
                let mut left = Shape::new::<&str>(&[]);
                (0..4).for_each(|n| left.merge(&parts[(from + n) % 4]));
                let mut right = parts[3].clone();
                right.merge(&parts[1]);
                let mut pair = parts[2].clone();
                pair.merge(&parts[0]);
                right.merge(&pair);
                prop_assert_eq!(&left, &whole);
                prop_assert_eq!(&right, &whole);
                prop_assert_eq!(serde_json::to_string(&left).unwrap(), serde_json::to_string(&whole).unwrap());
            }
        }
    }
}
