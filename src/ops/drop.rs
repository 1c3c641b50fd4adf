//! `drop`: attributes go, everything else stays.
//!
//! ```toml
//! steps = [{ drop = ["legacy", "owner.phone", "tags[0]"] }]
//! ```
//!
//! Positions in a list are those before the step, also where several elements of one list go. What is absent
//! is left alone; nothing is ever rejected. A map stays when its last entry goes.

use std::cmp::Ordering;
use std::fmt;

use crate::document::Node;
use crate::error::Diagnostics;
use crate::model::path::Segment;
use crate::model::{Batch, Fate, Path};
use crate::ops::{Op, read};

#[derive(Debug)]
struct Drop {
    /// As written.
    paths: Vec<Path>,
    /// In the order in which they are removed: of one list, later elements first.
    order: Vec<usize>,
}

pub(super) fn bind(node: Node<'_>, _captures: &[String], diagnostics: &mut Diagnostics) -> Option<Box<dyn Op>> {
    let paths = read::paths(node, "`drop`", diagnostics)?;
    let mut order: Vec<_> = (0..paths.len()).collect();
    order.sort_by(|left, right| removal_order(&paths[*left], &paths[*right]));
    Some(Box::new(Drop { paths, order }))
}

/// By name, and by position from the last to the first.
fn removal_order(left: &Path, right: &Path) -> Ordering {
    let parts = left.rest().iter().zip(right.rest()).map(|pair| match pair {
        (Segment::Name(left), Segment::Name(right)) => left.cmp(right),
        (Segment::Index(left), Segment::Index(right)) => right.cmp(left),
        (Segment::Name(_), Segment::Index(_)) => Ordering::Less,
        (Segment::Index(_), Segment::Name(_)) => Ordering::Greater,
    });
    let parts = parts.fold(left.top().cmp(right.top()), Ordering::then);
    parts.then(right.rest().len().cmp(&left.rest().len()))
}

impl Op for Drop {
    fn apply(&self, batch: &mut Batch<'_>) {
        batch.each(|row| {
            for at in &self.order {
                row.item.remove_path(&self.paths[*at]);
            }
            Ok(Fate::Keep)
        });
    }
}

impl fmt::Display for Drop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("drop ")?;
        read::write_paths(&self.paths, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{check, mistakes};

    #[test]
    fn what_is_named_goes_and_the_rest_stays() {
        check(
            r#"{ drop = ["legacy", "owner.phone", "none"] }"#,
            r#"{ a = { S = "1" }, legacy = { L = [] }, owner = { M = { phone = { S = "2" }, id = { S = "3" } } } }"#,
            r#"{ a = { S = "1" }, owner = { M = { id = { S = "3" } } } }"#,
        );
    }

    #[test]
    fn positions_are_those_before_the_step() {
        check(
            r#"{ drop = ["l[0]", "l[2]", "l[2].x"] }"#,
            r#"{ l = { L = [{ S = "a" }, { S = "b" }, { M = { x = { S = "c" } } }, { S = "d" }] } }"#,
            r#"{ l = { L = [{ S = "b" }, { S = "d" }] } }"#,
        );
    }

    #[test]
    fn mistakes_are_found_by_check() {
        mistakes(r#"{ drop = "a" }"#, "`drop` must be an array, found a string");
        mistakes(r#"{ drop = ["a", "a"] }"#, "`a` is named twice");
        mistakes(r"{ drop = [] }", "`drop` names nothing");
    }
}
