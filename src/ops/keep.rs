//! `keep`: what is not named goes.
//!
//! ```toml
//! steps = [{ keep = ["PK", "SK", "title", "owner.id"] }]
//! ```
//!
//! It is meant literally, key attributes included: templates see the item after the steps, so a template that
//! takes a captured name still works, and an entity without `key` must name its key attributes here. Of a
//! nested path only the way to the value stays; where nothing is at the path, nothing stays. What is
//! absent is left alone; nothing is ever rejected.

use std::fmt;

use bumpalo::collections::Vec as ArenaVec;

use crate::document::Node;
use crate::error::Diagnostics;
use crate::model::path::Segment;
use crate::model::{Arena, Attribute, Batch, Fate, Item, Path, Value};
use crate::ops::{Op, read};

#[derive(Debug)]
struct Keep {
    paths: Vec<Path>,
    /// The same as a tree, by top-level name.
    tree: Vec<(Box<str>, Kept)>,
}

/// What stays of a value.
#[derive(Debug)]
enum Kept {
    Whole,
    Names(Vec<(Box<str>, Kept)>),
    Positions(Vec<(usize, Kept)>),
}

pub(super) fn bind(node: Node<'_>, _captures: &[String], diagnostics: &mut Diagnostics) -> Option<Box<dyn Op>> {
    let paths = read::paths(node, "`keep`", diagnostics)?;
    let mut tree: Vec<(Box<str>, Kept)> = Vec::new();
    for (at, path) in paths.iter().enumerate() {
        if let Some(other) = paths[..at].iter().find(|other| other.holds(path) || path.holds(other)) {
            let (wide, narrow) = if other.holds(path) { (other, path) } else { (path, other) };
            diagnostics.error(node.span(), format!("`{narrow}` is a part of `{wide}`, which is kept as a whole"));
            return None;
        }
        let ways: Vec<_> = path.rest().iter().collect();
        let kept = match tree.iter().position(|(name, _)| **name == *path.top()) {
            Some(known) => tree[known].1.add(&ways),
            None => {
                tree.push((path.top().into(), Kept::only(&ways)));
                true
            }
        };
        if !kept {
            diagnostics.error(node.span(), format!("`{path}` takes a list for what another path takes for a map"));
            return None;
        }
    }
    Some(Box::new(Keep { paths, tree }))
}

impl Kept {
    /// What stays for one path alone.
    fn only(rest: &[&Segment]) -> Self {
        match rest.split_first() {
            None => Kept::Whole,
            Some((Segment::Name(name), rest)) => Kept::Names(vec![(name.clone(), Kept::only(rest))]),
            Some((Segment::Index(position), rest)) => Kept::Positions(vec![(*position, Kept::only(rest))]),
        }
    }

    /// Adds a path; false where one takes a list and the other a map. As deep as the path is long, which is limited.
    fn add(&mut self, rest: &[&Segment]) -> bool {
        match (self, rest.split_first()) {
            (Kept::Names(names), Some((Segment::Name(name), rest))) => match names.iter_mut().find(|(known, _)| known == name) {
                Some((_, kept)) => kept.add(rest),
                None => {
                    names.push((name.clone(), Kept::only(rest)));
                    true
                }
            },
            (Kept::Positions(positions), Some((Segment::Index(position), rest))) => {
                match positions.iter_mut().find(|(known, _)| known == position) {
                    Some((_, kept)) => kept.add(rest),
                    None => {
                        positions.push((*position, Kept::only(rest)));
                        true
                    }
                }
            }
            _ => false,
        }
    }

    /// What stays of `value`; `None` where nothing does.
    fn of<'a>(&self, value: Value<'a>, arena: &'a Arena) -> Option<Value<'a>> {
        match (self, value) {
            (Kept::Whole, value) => Some(value),
            (Kept::Names(names), Value::M(entries)) => {
                let mut found: ArenaVec<'a, Attribute<'a>> = ArenaVec::new_in(arena);
                for (name, value) in entries {
                    if let Some((_, kept)) = names.iter().find(|(known, _)| **known == **name)
                        && let Some(value) = kept.of(*value, arena)
                    {
                        found.push((name, value));
                    }
                }
                (!found.is_empty()).then(|| Value::M(found.into_bump_slice()))
            }
            (Kept::Positions(positions), Value::L(elements)) => {
                let mut found: ArenaVec<'a, Value<'a>> = ArenaVec::new_in(arena);
                for (at, value) in elements.iter().enumerate() {
                    if let Some((_, kept)) = positions.iter().find(|(known, _)| *known == at)
                        && let Some(value) = kept.of(*value, arena)
                    {
                        found.push(value);
                    }
                }
                (!found.is_empty()).then(|| Value::L(found.into_bump_slice()))
            }
            _ => None,
        }
    }
}

impl Keep {
    fn item<'a>(&self, item: &Item<'a>) -> Item<'a> {
        let mut left = Item::new_in(item.arena());
        for (name, value) in item.attributes() {
            if let Some((_, kept)) = self.tree.iter().find(|(known, _)| **known == **name)
                && let Some(value) = kept.of(*value, item.arena())
            {
                left.push(name, value);
            }
        }
        left
    }
}

impl Op for Keep {
    fn apply(&self, batch: &mut Batch<'_>) {
        batch.each(|row| {
            row.item = self.item(&row.item);
            Ok(Fate::Keep)
        });
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keep ")?;
        read::write_paths(&self.paths, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{check, mistakes};

    #[test]
    fn only_what_is_named_stays_in_the_order_of_the_item() {
        check(
            r#"{ keep = ["owner.id", "a", "l[1]", "owner.x.y", "s.t"] }"#,
            r#"{ a = { S = "1" }, b = { S = "2" }, owner = { M = { n = { S = "3" }, id = { N = "4" } } }, l = { L = [{ S = "5" }, { S = "6" }] }, s = { S = "7" } }"#,
            r#"{ a = { S = "1" }, owner = { M = { id = { N = "4" } } }, l = { L = [{ S = "6" }] } }"#,
        );
    }

    #[test]
    fn mistakes_are_found_by_check() {
        mistakes(r#"{ keep = ["a.b", "a"] }"#, "`a.b` is a part of `a`");
        mistakes(r#"{ keep = ["a.b", "a[0]"] }"#, "`a[0]` takes a list");
        mistakes(r#"{ keep = [1] }"#, "`keep` must be a string, found an integer");
    }
}
