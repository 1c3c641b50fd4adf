//! Changes to nested attributes: set and remove at a path.
//!
//! Values are borrowed, so a change copies the slices on the way from the top-level attribute to the place,
//! never the texts and never what lies beside the way.

use std::fmt;

use bumpalo::collections::Vec as ArenaVec;

use crate::model::item::{Arena, Item};
use crate::model::path::{Path, Segment};
use crate::model::value::{Attribute, Type, Value};

/// Why nothing can be set at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    /// A part of the path is neither a map nor a list that the next part could be in.
    Through {
        /// The path up to that part.
        at: String,
        /// What it holds.
        found: Type,
        /// What the next part needs.
        expected: Type,
    },
    /// The list ends before the position.
    Beyond {
        /// The path to the list.
        at: String,
        /// How many elements it has.
        elements: usize,
        /// The position that was asked for.
        position: usize,
    },
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathError::Through { at, found, expected } => write!(f, "`{at}` is {found}, expected {expected}"),
            PathError::Beyond { at, elements, position } => {
                write!(f, "`{at}` has {elements} elements, so there is none at position {position}")
            }
        }
    }
}

impl<'a> Item<'a> {
    /// Sets the value at `path`. Maps that are missing on the way are made; a list takes a value at a position it has.
    ///
    /// # Errors
    /// What stands in the way; the item is unchanged then.
    pub fn set_path(&mut self, path: &Path, value: Value<'a>) -> Result<(), PathError> {
        let arena = self.arena();
        let old = self.get(path.top());
        let value = if path.is_top_level() { value } else { put(old, path, 0, value, arena)? };
        if old.is_some() {
            self.replace(path.top(), value);
        } else {
            self.push(arena.alloc_str(path.top()), value);
        }
        Ok(())
    }

    /// Takes out what is at `path` and gives it; `None` where nothing is there. Later elements of a list move up.
    pub fn remove_path(&mut self, path: &Path) -> Option<Value<'a>> {
        if path.is_top_level() {
            return self.remove(path.top());
        }
        let found = path.get(self)?;
        let top = self.get(path.top())?;
        let changed = take(top, path.rest(), self.arena());
        self.replace(path.top(), changed);
        Some(found)
    }

    /// Replaces the value of an attribute that is there.
    fn replace(&mut self, name: &str, value: Value<'a>) {
        if let Some(slot) = self.attributes_mut().iter_mut().find(|(known, _)| *known == name) {
            slot.1 = value;
        }
    }
}

/// `old` with `value` set below it at the parts of the path from `depth` on. As deep as the path is long, which the pipeline file limits.
fn put<'a>(old: Option<Value<'a>>, path: &Path, depth: usize, value: Value<'a>, arena: &'a Arena) -> Result<Value<'a>, PathError> {
    let Some(segment) = path.rest().get(depth) else {
        return Ok(value);
    };
    match (segment, old) {
        (Segment::Name(name), None | Some(Value::M(_))) => {
            let entries = if let Some(Value::M(entries)) = old { entries } else { &[] };
            let at = entries.iter().position(|(known, _)| **known == **name);
            let inner = put(at.map(|at| entries[at].1), path, depth + 1, value, arena)?;
            let mut changed: ArenaVec<'a, Attribute<'a>> = ArenaVec::with_capacity_in(entries.len() + 1, arena);
            changed.extend_from_slice(entries);
            match at {
                Some(at) => changed[at].1 = inner,
                None => changed.push((arena.alloc_str(name), inner)),
            }
            Ok(Value::M(changed.into_bump_slice()))
        }
        (Segment::Index(position), Some(Value::L(elements))) => {
            let Some(element) = elements.get(*position) else {
                return Err(PathError::Beyond { at: upto(path, depth), elements: elements.len(), position: *position });
            };
            let inner = put(Some(*element), path, depth + 1, value, arena)?;
            let changed = arena.alloc_slice_copy(elements);
            changed[*position] = inner;
            Ok(Value::L(changed))
        }
        (Segment::Index(position), None) => Err(PathError::Beyond { at: upto(path, depth), elements: 0, position: *position }),
        (Segment::Name(_), Some(other)) => Err(PathError::Through { at: upto(path, depth), found: other.kind(), expected: Type::M }),
        (Segment::Index(_), Some(other)) => Err(PathError::Through { at: upto(path, depth), found: other.kind(), expected: Type::L }),
    }
}

/// `old` without what is at `rest`, which the caller knows to be there.
fn take<'a>(old: Value<'a>, rest: &[Segment], arena: &'a Arena) -> Value<'a> {
    let Some((segment, rest)) = rest.split_first() else {
        return old;
    };
    match (segment, old) {
        (Segment::Name(name), Value::M(entries)) => {
            let mut changed: ArenaVec<'a, Attribute<'a>> = ArenaVec::with_capacity_in(entries.len(), arena);
            for (known, value) in entries {
                if **known != **name {
                    changed.push((known, *value));
                } else if !rest.is_empty() {
                    changed.push((known, take(*value, rest, arena)));
                }
            }
            Value::M(changed.into_bump_slice())
        }
        (Segment::Index(position), Value::L(elements)) => {
            let mut changed: ArenaVec<'a, Value<'a>> = ArenaVec::with_capacity_in(elements.len(), arena);
            for (at, value) in elements.iter().enumerate() {
                if at != *position {
                    changed.push(*value);
                } else if !rest.is_empty() {
                    changed.push(take(*value, rest, arena));
                }
            }
            Value::L(changed.into_bump_slice())
        }
        (_, other) => other,
    }
}

/// The path without its last parts: its name and `depth` parts behind it.
fn upto(path: &Path, depth: usize) -> String {
    path.first_parts(depth).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        Path::parse(text).unwrap()
    }

    /// `{ a: "1", owner: { id: "7", tags: ["x", "y"] } }`
    fn item(arena: &Arena) -> Item<'_> {
        let mut item = Item::new_in(arena);
        item.push("a", Value::S("1"));
        let tags = arena.alloc_slice_copy(&[Value::S("x"), Value::S("y")]);
        item.push("owner", Value::M(arena.alloc_slice_copy(&[("id", Value::S("7")), ("tags", Value::L(tags))])));
        item
    }

    #[test]
    fn a_nested_value_is_set_and_what_lies_beside_it_stays() {
        let arena = Arena::new();
        let mut item = item(&arena);
        item.set_path(&path("owner.tags[1]"), Value::S("z")).unwrap();
        item.set_path(&path("owner.name"), Value::S("Ann")).unwrap();
        item.set_path(&path("new.deep"), Value::Null).unwrap();
        item.set_path(&path("a"), Value::N("2")).unwrap();
        let owner = [("id", Value::S("7")), ("tags", Value::L(&[Value::S("x"), Value::S("z")])), ("name", Value::S("Ann"))];
        assert_eq!(item.attributes(), [("a", Value::N("2")), ("owner", Value::M(&owner)), ("new", Value::M(&[("deep", Value::Null)]))]);
    }

    #[test]
    fn what_stands_in_the_way_is_named_and_nothing_changes() {
        let arena = Arena::new();
        let mut item = item(&arena);
        for (text, expected) in [
            ("a.b", "`a` is S, expected M"),
            ("owner.id[0]", "`owner.id` is S, expected L"),
            ("owner.tags[2]", "`owner.tags` has 2 elements, so there is none at position 2"),
            ("owner.tags.x", "`owner.tags` is L, expected M"),
            ("b[0]", "`b` has 0 elements, so there is none at position 0"),
        ] {
            assert_eq!(item.set_path(&path(text), Value::Null).unwrap_err().to_string(), expected);
        }
        assert_eq!(item.attributes(), super::tests::item(&Arena::new()).attributes());
    }

    #[test]
    fn removing_gives_the_value_and_later_elements_move_up() {
        let arena = Arena::new();
        let mut item = item(&arena);
        assert_eq!(item.remove_path(&path("owner.tags[0]")), Some(Value::S("x")));
        assert_eq!(item.remove_path(&path("owner.tags[1]")), None);
        assert_eq!(item.remove_path(&path("owner.id")), Some(Value::S("7")));
        assert_eq!(item.remove_path(&path("owner.none.x")), None);
        assert_eq!(item.remove_path(&path("a")), Some(Value::S("1")));
        assert_eq!(item.attributes(), [("owner", Value::M(&[("tags", Value::L(&[Value::S("y")]))]))]);
    }
}
