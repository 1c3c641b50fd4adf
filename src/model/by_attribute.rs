//! The values of many items, by attribute: who handles all values of one attribute together looks its name up once.

use rustc_hash::FxHashMap;

use crate::model::item::Item;
use crate::model::short::{Name, PLACES};
use crate::model::value::Value;

/// The values of some items by their top-level attributes.
///
/// Cost: 16 bytes a value, and some 100 for each name.
#[derive(Debug, Default)]
pub struct ByAttribute<'i, 'a> {
    items: usize,
    attributes: Vec<Values<'i, 'a>>,
}

/// The values of one attribute.
#[derive(Debug)]
pub struct Values<'i, 'a> {
    /// The attribute.
    pub name: &'a str,
    /// For each item that has it: the item's place among all, from 0, and the value. In the order of the items.
    pub values: Vec<(u32, &'i Value<'a>)>,
}

/// The usual items have no more attributes than this, and those of a chunk about so many values each.
const FEW: usize = 64;
const ROOM: usize = 256;

impl<'i, 'a> ByAttribute<'i, 'a> {
    /// The values of these items.
    ///
    /// # Panics
    /// With more than 2^32 items.
    #[must_use]
    pub fn of(items: impl IntoIterator<Item = &'i Item<'a>>) -> Self
    where
        'a: 'i,
    {
        let mut attributes: Vec<Values<'i, 'a>> = Vec::new();
        let mut names: Vec<Name> = Vec::new();
        let mut known: FxHashMap<&'a str, usize> = FxHashMap::default();
        // Where an attribute of a name like this was found last.
        let mut last = [0; PLACES];
        let mut count = 0;
        for (place, item) in items.into_iter().enumerate() {
            let place = u32::try_from(place).expect("a chunk has far fewer than 2^32 items");
            for (text, value) in item.attributes() {
                let name = Name::of(text);
                let guess = &mut last[name.place()];
                let is_it = names.get(*guess).is_some_and(|other| *other == name) && (name.is_whole() || attributes[*guess].name == *text);
                if !is_it {
                    *guess = *known.entry(text).or_insert_with(|| {
                        let room = if names.len() < FEW { ROOM } else { 0 };
                        attributes.push(Values { name: text, values: Vec::with_capacity(room) });
                        names.push(name);
                        names.len() - 1
                    });
                }
                attributes[*guess].values.push((place, value));
            }
            count += 1;
        }
        Self { items: count, attributes }
    }

    /// How many items there are.
    #[must_use]
    pub fn items(&self) -> usize {
        self.items
    }

    /// The attributes, in the order in which the items first have them.
    #[must_use]
    pub fn attributes(&self) -> &[Values<'i, 'a>] {
        &self.attributes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Arena;

    #[test]
    fn every_value_is_found_under_its_attribute() {
        let arena = Arena::new();
        // Of lengths for which names are compared in different ways, and alike at both ends.
        let names: Vec<String> = (0..40).flat_map(|length| ["", "x"].map(|middle| format!("ab{}{middle}cd", "-".repeat(length)))).collect();
        let item = |row: usize| {
            let mut item = Item::new_in(&arena);
            let names = names.iter().enumerate().filter(|(at, _)| !(at + row).is_multiple_of(3));
            names.for_each(|(at, name)| item.push(name, Value::N(arena.alloc_str(&format!("{}", row * 1000 + at)))));
            item
        };
        let items: Vec<Item<'_>> = (0..50).map(item).collect();
        let values = ByAttribute::of(&items);
        assert_eq!(values.items(), 50);
        let mut found = 0;
        for Values { name, values } in values.attributes() {
            assert!(values.is_sorted_by_key(|(row, _)| row));
            for (row, value) in values {
                assert_eq!(items[*row as usize].get(name), Some(**value));
                found += 1;
            }
        }
        assert_eq!(found, items.iter().map(|item| item.attributes().len()).sum::<usize>());
    }
}
