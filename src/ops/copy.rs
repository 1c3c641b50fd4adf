//! `copy`: a value stands in a second place too.
//!
//! ```toml
//! steps = [{ copy = { updatedAt = "GSI1SK" } }]
//! ```
//!
//! Pairs are copied in the order of the file. An absent attribute is left alone. Reject `copy-target`: the
//! target is there and holds something else; drop it in a step before, if that is meant. Reject `copy-path`:
//! the target's place cannot be made.

use std::fmt;

use crate::document::Node;
use crate::error::{Diagnostics, Reason};
use crate::model::{Batch, Fate, Path, Row};
use crate::ops::{Op, read, refused};

#[derive(Debug)]
struct Copy {
    pairs: Vec<(Path, Path)>,
}

pub(super) fn bind(node: Node<'_>, _captures: &[String], diagnostics: &mut Diagnostics) -> Option<Box<dyn Op>> {
    Some(Box::new(Copy { pairs: read::pairs(node, "`copy`", diagnostics)? }))
}

impl Copy {
    fn row(&self, row: &mut Row<'_>) -> Result<Fate, Reason> {
        let item = &mut row.item;
        for (from, to) in &self.pairs {
            let Some(value) = from.get(item) else {
                continue;
            };
            let step = format_args!("copy {from} -> {to}");
            match to.get(item) {
                None => item.set_path(to, value).map_err(|error| refused("copy-path", step, error))?,
                Some(known) if known == value => {}
                Some(_) => return Err(refused("copy-target", step, "the target is there already and holds something else")),
            }
        }
        Ok(Fate::Keep)
    }
}

impl Op for Copy {
    fn apply(&self, batch: &mut Batch<'_>) {
        batch.each(|row| self.row(row));
    }
}

impl fmt::Display for Copy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("copy ")?;
        read::write_pairs(&self.pairs, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{check, mistakes};

    #[test]
    fn a_value_stands_in_both_places_and_an_absent_one_is_left_alone() {
        check(
            r#"{ copy = { "owner.id" = "ownerId", none = "x" } }"#,
            r#"{ owner = { M = { id = { N = "7" } } } }"#,
            r#"{ owner = { M = { id = { N = "7" } } }, ownerId = { N = "7" } }"#,
        );
    }

    #[test]
    fn a_target_that_holds_something_else_is_a_reject() {
        let item = r#"{ a = { S = "1" }, b = { S = "2" } }"#;
        check(r#"{ copy = { a = "b" } }"#, item, "step/copy-target: copy a -> b: the target is there already and holds something else");
        check(r#"{ copy = { a = "b[0]" } }"#, item, "step/copy-path: copy a -> b[0]: `b` is S, expected L");
        check(r#"{ copy = { a = "a.b" } }"#, item, "step/copy-path: copy a -> a.b: `a` is S, expected M");
    }

    #[test]
    fn mistakes_are_found_by_check() {
        mistakes(r#"{ copy = { a = "b[" } }"#, "`[` without `]`");
        mistakes(r#"{ copy = ["a"] }"#, "`copy` must be a table, found an array");
    }
}
