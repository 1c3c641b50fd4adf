//! `rename`: a value moves to another name or place.
//!
//! ```toml
//! steps = [{ rename = { title = "name", "owner.id" = "ownerId" } }]
//! ```
//!
//! All values are taken first and placed then, so that two attributes can change names with each other. An
//! absent attribute is left alone. Reject `rename-target`: the target is there and holds something else; drop
//! it in a step before, if that is meant. Reject `rename-path`: the target's place cannot be made.

use std::fmt;

use bumpalo::collections::Vec as ArenaVec;

use crate::document::Node;
use crate::error::{Diagnostics, Reason};
use crate::model::{Batch, Fate, Path, Row};
use crate::ops::{Op, read, refused};

#[derive(Debug)]
struct Rename {
    pairs: Vec<(Path, Path)>,
}

pub(super) fn bind(node: Node<'_>, _captures: &[String], diagnostics: &mut Diagnostics) -> Option<Box<dyn Op>> {
    Some(Box::new(Rename { pairs: read::pairs(node, "`rename`", diagnostics)? }))
}

impl Rename {
    fn row(&self, row: &mut Row<'_>) -> Result<Fate, Reason> {
        let item = &mut row.item;
        let mut taken = ArenaVec::with_capacity_in(self.pairs.len(), item.arena());
        for (from, to) in &self.pairs {
            if let Some(value) = item.remove_path(from) {
                taken.push((from, to, value));
            }
        }
        for (from, to, value) in taken {
            let step = format_args!("rename {from} -> {to}");
            match to.get(item) {
                None => item.set_path(to, value).map_err(|error| refused("rename-path", step, error))?,
                Some(known) if known == value => {}
                Some(_) => return Err(refused("rename-target", step, "the target is there already and holds something else")),
            }
        }
        Ok(Fate::Keep)
    }
}

impl Op for Rename {
    fn apply(&self, batch: &mut Batch<'_>) {
        batch.each(|row| self.row(row));
    }
}

impl fmt::Display for Rename {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rename ")?;
        read::write_pairs(&self.pairs, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{check, mistakes};

    #[test]
    fn a_value_moves_untouched_and_an_absent_one_is_left_alone() {
        check(
            r#"{ rename = { title = "name", none = "other" } }"#,
            r#"{ title = { SS = ["a", "b"] }, n = { N = "1.0" } }"#,
            r#"{ n = { N = "1.0" }, name = { SS = ["a", "b"] } }"#,
        );
        check(
            r#"{ rename = { "owner.id" = "ownerId", a = "meta.a" } }"#,
            r#"{ owner = { M = { id = { S = "7" }, x = { NULL = true } } }, a = { S = "1" } }"#,
            r#"{ owner = { M = { x = { NULL = true } } }, ownerId = { S = "7" }, meta = { M = { a = { S = "1" } } } }"#,
        );
    }

    #[test]
    fn two_attributes_change_names_with_each_other() {
        check(r#"{ rename = { a = "b", b = "a" } }"#, r#"{ a = { S = "1" }, b = { S = "2" } }"#, r#"{ b = { S = "1" }, a = { S = "2" } }"#);
    }

    #[test]
    fn a_target_that_holds_something_else_is_a_reject() {
        check(
            r#"{ rename = { a = "b" } }"#,
            r#"{ a = { S = "1" }, b = { S = "2" } }"#,
            "step/rename-target: rename a -> b: the target is there already and holds something else",
        );
        check(r#"{ rename = { a = "b" } }"#, r#"{ a = { S = "1" }, b = { S = "1" } }"#, r#"{ b = { S = "1" } }"#);
        check(
            r#"{ rename = { a = "b.c" } }"#,
            r#"{ a = { S = "1" }, b = { S = "2" } }"#,
            "step/rename-path: rename a -> b.c: `b` is S, expected M",
        );
    }

    #[test]
    fn mistakes_are_found_by_check() {
        mistakes(r#"{ rename = { a = "b", c = "b" } }"#, "two values would go to `b`");
        mistakes(r#"{ rename = { a = "a" } }"#, "`a` would go to itself");
        mistakes(r#"{ rename = { a = 1 } }"#, "the target of `a` must be a string, found an integer");
        mistakes(r#"{ rename = { owner.id = "ownerId" } }"#, "write a nested path in quotes: \"owner.id\"");
        mistakes(r"{ rename = {} }", "`rename` names nothing");
    }
}
