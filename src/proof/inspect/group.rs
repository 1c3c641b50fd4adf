//! What is summed up for items that belong together. Everything is a count, a sum, a maximum or a smallest origin, so
//! that the order of the items and the split into workers make no difference.

use rustc_hash::FxHashMap;

use crate::model::{Item, Origin, Type, Value};
use crate::proof::inspect::shape::Shapes;

/// Attribute names that are kept apart in one group: the first of them by their bytes, since that choice is the same
/// for any order of the items.
pub(super) const ATTRIBUTES: usize = 2_000;

/// Item sizes: how many, their sum, the largest with its place, and how many up to each power of two.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    pub items: u64,
    pub bytes: u64,
    pub largest: Option<(u64, Origin)>,
    up_to: [u64; Self::POWERS],
}

impl Sizes {
    /// The largest item that the service takes is below 2 to the 19; what is larger counts there too.
    const POWERS: usize = 20;

    pub(super) fn add(&mut self, bytes: u64, origin: Origin) {
        self.items += 1;
        self.bytes += bytes;
        self.widen(Some((bytes, origin)));
        let power = bytes.max(1).next_power_of_two().trailing_zeros() as usize;
        self.up_to[power.min(Self::POWERS - 1)] += 1;
    }

    pub(super) fn merge(&mut self, other: &Sizes) {
        self.items += other.items;
        self.bytes += other.bytes;
        self.widen(other.largest);
        for (mine, theirs) in self.up_to.iter_mut().zip(other.up_to) {
            *mine += theirs;
        }
    }

    /// Of equally large items the first one is named.
    fn widen(&mut self, candidate: Option<(u64, Origin)>) {
        if let Some((bytes, origin)) = candidate
            && self.largest.is_none_or(|(most, first)| bytes > most || (bytes == most && origin < first))
        {
            self.largest = Some((bytes, origin));
        }
    }

    /// A size that `percent` of the items do not exceed: the next power of two, or the largest size where that is less.
    pub(super) fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.items * percent).div_ceil(100);
        let mut seen = 0;
        let largest = self.largest.map_or(0, |(bytes, _)| bytes);
        for (power, items) in self.up_to.iter().enumerate() {
            seen += items;
            if seen >= rank {
                return largest.min(1 << power);
            }
        }
        largest
    }
}

/// One attribute of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Attribute {
    pub items: u64,
    pub types: [u64; Type::ALL.len()],
    pub largest: u64,
}

impl Attribute {
    fn merge(&mut self, other: &Attribute) {
        self.items += other.items;
        for (mine, theirs) in self.types.iter_mut().zip(other.types) {
            *mine += theirs;
        }
        self.largest = self.largest.max(other.largest);
    }
}

/// The attributes of a group, in bounded memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    kept: FxHashMap<Box<str>, Attribute>,
    /// No name above this one is kept: enough names stand before it.
    last: Option<Box<str>>,
    /// All values, of kept names and others.
    values: u64,
}

impl Attributes {
    pub(super) fn add(&mut self, name: &str, value: &Value<'_>, bytes: u64) {
        self.values += 1;
        let attribute = match self.kept.get_mut(name) {
            Some(attribute) => attribute,
            None if self.last.as_deref().is_some_and(|last| name > last) => return,
            None => self.insert(name),
        };
        attribute.items += 1;
        attribute.types[value.kind() as usize] += 1;
        attribute.largest = attribute.largest.max(bytes);
    }

    pub(super) fn merge(&mut self, other: &Attributes) {
        self.values += other.values;
        for (name, theirs) in &other.kept {
            match self.kept.get_mut(name) {
                Some(mine) => mine.merge(theirs),
                None if self.last.as_deref().is_some_and(|last| **name > *last) => {}
                None => self.insert(name).merge(theirs),
            }
        }
        if let Some(last) = &other.last
            && self.last.as_ref().is_none_or(|mine| last < mine)
        {
            self.last = Some(last.clone());
            self.kept.retain(|name, _| name <= last);
        }
    }

    /// Adds a name. Twice the names that are kept have room, so that names are dropped seldom.
    fn insert(&mut self, name: &str) -> &mut Attribute {
        if self.kept.len() >= 2 * ATTRIBUTES {
            let mut names: Vec<Box<str>> = self.kept.keys().cloned().collect();
            let (_, last, _) = names.select_nth_unstable(ATTRIBUTES - 1);
            let last = last.clone();
            self.kept.retain(|name, _| *name <= last);
            self.last = Some(last);
        }
        self.kept.entry(name.into()).or_default()
    }

    /// The attributes by name, and how many values stood under other names.
    pub(super) fn sorted(&self) -> (Vec<(&str, &Attribute)>, u64) {
        let mut sorted: Vec<(&str, &Attribute)> = self.kept.iter().map(|(name, attribute)| (&**name, attribute)).collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        sorted.truncate(ATTRIBUTES);
        let kept: u64 = sorted.iter().map(|(_, attribute)| attribute.items).sum();
        (sorted, self.values - kept)
    }
}

/// Items that belong together.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub sizes: Sizes,
    pub first: Option<Origin>,
    pub attributes: Attributes,
    /// By key candidate.
    pub shapes: Vec<Shapes>,
}

impl Group {
    pub(super) fn new(keys: usize) -> Self {
        Self { shapes: vec![Shapes::default(); keys], ..Self::default() }
    }

    /// Counts an item; `values` are the sizes of its values in order, `bytes` is its own.
    pub(super) fn add(&mut self, item: &Item<'_>, values: &[u64], bytes: u64, origin: Origin) {
        self.sizes.add(bytes, origin);
        self.first = Some(self.first.map_or(origin, |first| first.min(origin)));
        for ((name, value), bytes) in item.attributes().iter().zip(values) {
            self.attributes.add(name, value, *bytes);
        }
    }

    pub(super) fn merge(&mut self, other: &Group) {
        let Group { sizes, first, attributes, shapes } = other;
        self.sizes.merge(sizes);
        self.first = self.first.into_iter().chain(*first).min();
        self.attributes.merge(attributes);
        for (mine, theirs) in self.shapes.iter_mut().zip(shapes) {
            mine.merge(theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FileId;

    fn at(line: u64) -> Origin {
        Origin { file: FileId(0), line }
    }

    #[test]
    fn sizes_have_percentiles_by_powers_of_two() {
        let mut sizes = Sizes::default();
        assert_eq!((sizes.percentile(50), sizes.percentile(99)), (0, 0));
        for line in 1..=98 {
            sizes.add(100, at(line));
        }
        sizes.add(1_024, at(99));
        sizes.add(409_600, at(100));
        assert_eq!([50, 98, 99, 100].map(|percent| sizes.percentile(percent)), [128, 128, 1_024, 409_600]);
        assert_eq!(sizes.largest, Some((409_600, at(100))));
        sizes.add(409_600, at(7));
        assert_eq!(sizes.largest, Some((409_600, at(7))));
    }

    #[test]
    fn the_same_attributes_are_kept_in_any_order() {
        let names: Vec<String> = (0..9_000).map(|n| format!("{:04x}", (n * 7_919) % 0x1_0000)).collect();
        let count = |names: &mut dyn Iterator<Item = &String>| {
            let mut attributes = Attributes::default();
            for name in names {
                attributes.add(name, &Value::Null, 1);
            }
            attributes
        };
        let whole = count(&mut names.iter());
        let mut left = count(&mut names[..2_500].iter());
        left.merge(&count(&mut names[2_500..].iter().rev()));
        let describe = |attributes: &Attributes| format!("{:?}", attributes.sorted());
        assert_eq!(describe(&left), describe(&whole));
        let (kept, others) = whole.sorted();
        let mut expected: Vec<&str> = names.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert!(kept.iter().map(|(name, _)| *name).eq(expected[..ATTRIBUTES].iter().copied()));
        assert_eq!(others, 7_000);
    }
}
