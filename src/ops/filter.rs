//! `filter`: an item that does not meet the condition is dropped, and counted.
//!
//! ```toml
//! steps = [{ filter = "attribute_exists(updatedAt) AND state <> 'archived'" }]
//! ```
//!
//! The condition sees the item as the steps before left it. Nothing is ever rejected.

use std::fmt;

use crate::document::Node;
use crate::error::Diagnostics;
use crate::expr::Condition;
use crate::model::{Batch, Fate};
use crate::ops::{Op, read};

#[derive(Debug)]
struct Filter {
    condition: Condition,
}

pub(super) fn bind(node: Node<'_>, _captures: &[String], diagnostics: &mut Diagnostics) -> Option<Box<dyn Op>> {
    Some(Box::new(Filter { condition: read::condition(node, "`filter`", diagnostics)? }))
}

impl Op for Filter {
    fn apply(&self, batch: &mut Batch<'_>) {
        batch.each(|row| Ok(if self.condition.holds(&row.item) { Fate::Keep } else { Fate::Drop }));
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "filter {}", self.condition)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{check, mistakes};

    #[test]
    fn an_item_that_does_not_meet_the_condition_is_dropped() {
        let item = r#"{ a = { S = "1" } }"#;
        check("{ filter = \"a = '1'\" }", item, item);
        check("{ filter = \"a = '2'\" }", item, "dropped");
        check("{ filter = \"attribute_exists(b)\" }", item, "dropped");
    }

    #[test]
    fn mistakes_are_found_by_check() {
        mistakes("{ filter = true }", "`filter` must be a string, found a boolean");
        mistakes("{ filter = \"a ==\" }", "p.toml:1:");
    }
}
