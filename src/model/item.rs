//! An item: attributes in document order, borrowed from its chunk.

use bumpalo::collections::Vec as ArenaVec;

use crate::model::short::same;
use crate::model::value::{Attribute, Value};

/// Where a worker puts what it makes anew for the items of one chunk. Emptied after each chunk.
pub type Arena = bumpalo::Bump;

/// The attributes of one item, in document order. Names are unique: the decoder refuses a line
/// that names an attribute twice, and [`Item::set`] replaces.
///
/// Cost: one small vector in the arena. A look-up walks the names, which for the usual ten to
/// thirty attributes is faster than a hash.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    attributes: ArenaVec<'a, Attribute<'a>>,
}

impl<'a> Item<'a> {
    /// An item without attributes, whose storage is in `arena`.
    #[must_use]
    pub fn new_in(arena: &'a Arena) -> Self {
        Self { attributes: ArenaVec::new_in(arena) }
    }

    /// An item of these attributes. The caller knows that no name stands there twice.
    #[must_use]
    pub fn from_attributes(attributes: ArenaVec<'a, Attribute<'a>>) -> Self {
        Self { attributes }
    }

    /// The arena that holds this item; a step puts new texts and slices there.
    #[must_use]
    pub fn arena(&self) -> &'a Arena {
        self.attributes.bump()
    }

    /// Adds an attribute at the end. The caller knows that the name is new.
    pub fn push(&mut self, name: &'a str, value: Value<'a>) {
        self.attributes.push((name, value));
    }

    /// The value of the top-level attribute `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.attributes.iter().find(|(known, _)| same(known, name)).map(|(_, value)| *value)
    }

    /// Sets a top-level attribute: in place when it is there, at the end when it is new.
    pub fn set(&mut self, name: &'a str, value: Value<'a>) {
        match self.attributes.iter_mut().find(|(known, _)| same(known, name)) {
            Some(slot) => slot.1 = value,
            None => self.attributes.push((name, value)),
        }
    }

    /// Takes a top-level attribute out and gives its value; the order of the others stays.
    pub fn remove(&mut self, name: &str) -> Option<Value<'a>> {
        let at = self.attributes.iter().position(|(known, _)| same(known, name))?;
        Some(self.attributes.remove(at).1)
    }

    /// Keeps the top-level attributes for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &Value<'a>) -> bool) {
        self.attributes.retain(|(name, value)| keep(name, value));
    }

    /// The attributes in document order.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute<'a>] {
        &self.attributes
    }

    /// The attributes in document order, to be changed in place.
    pub fn attributes_mut(&mut self) -> &mut [Attribute<'a>] {
        &mut self.attributes
    }
}
