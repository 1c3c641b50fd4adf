//! Steps: one change to an item each, one file each.
//!
//! A step is a patch: what it does not name survives, byte for byte. It does no IO and knows no threads.

use std::fmt;

use crate::document::{Node, unknown};
use crate::error::{Diagnostics, Reason, Stage};
use crate::model::Batch;

mod cast;
mod copy;
mod drop;
mod filter;
mod json;
mod keep;
pub mod literal;
pub mod read;
mod rename;
mod set;
#[cfg(test)]
mod testing;

/// A bound step. `Display` is its line in `explain`.
pub trait Op: fmt::Debug + fmt::Display + Send + Sync {
    /// Applies the step to every row of the batch; rows may be dropped or refused.
    fn apply(&self, batch: &mut Batch<'_>);
}

/// Reads what a step was given and makes the step; mistakes go to the diagnostics.
type Bind = fn(Node<'_>, &[String], &mut Diagnostics) -> Option<Box<dyn Op>>;

/// All steps, by the name that the pipeline file gives them.
const STEPS: [(&str, Bind); 8] = [
    ("rename", rename::bind),
    ("drop", drop::bind),
    ("keep", keep::bind),
    ("set", set::bind),
    ("default", set::bind_default),
    ("copy", copy::bind),
    ("cast", cast::bind),
    ("filter", filter::bind),
];

/// Why `step` cannot carry an item. The message starts with the step, as `explain` writes it.
fn refused(rule: &'static str, step: fmt::Arguments<'_>, what: impl fmt::Display) -> Reason {
    Reason::new(Stage::Step, rule, format!("{step}: {what}"))
}

/// Binds the steps of one way out, in order. `captures` are the names that the entity's key templates capture.
/// A step is a table with one field, its name. Steps with mistakes are reported and left out.
pub fn bind_steps(nodes: &[Node<'_>], captures: &[String], diagnostics: &mut Diagnostics) -> Vec<Box<dyn Op>> {
    nodes.iter().filter_map(|node| bind_step(*node, captures, diagnostics)).collect()
}

fn bind_step(node: Node<'_>, captures: &[String], diagnostics: &mut Diagnostics) -> Option<Box<dyn Op>> {
    let all = node.fields("a step", diagnostics)?.all();
    let [named] = &all[..] else {
        let message = format!("a step is a table with one field, its name; found {} fields", all.len());
        diagnostics.error_with_help(
            node.span(),
            message,
            "one step for each change: { rename = { title = \"name\" } }, { drop = [\"legacy\"] }",
        );
        return None;
    };
    match STEPS.iter().find(|(name, _)| *name == named.name) {
        Some((_, bind)) => bind(named.value, captures, diagnostics),
        None => {
            unknown("step", named.name, &named.name_span, STEPS.map(|(name, _)| name), diagnostics);
            None
        }
    }
}
