//! A refused item: data that flows to a file of its own and can be run again.

use std::fmt;

use crate::model::{EntityId, Origin};

/// Where on its way an item was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// The line is no item.
    Decode,
    /// No entity claims the item.
    Classify,
    /// A step refused it.
    Step,
    /// A key or index key cannot be made.
    Key,
    /// `DynamoDB` would refuse it.
    Limits,
    /// Another item has the same key in the same table.
    Collision,
    /// The target refused it.
    Write,
}

impl Stage {
    /// The name in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stage::Decode => "decode",
            Stage::Classify => "classify",
            Stage::Step => "step",
            Stage::Key => "key",
            Stage::Limits => "limits",
            Stage::Collision => "collision",
            Stage::Write => "write",
        }
    }
}

/// Why an item cannot be carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Where it was refused.
    pub stage: Stage,
    /// A stable short name such as `item-size`; rejects are counted by it.
    pub rule: &'static str,
    /// What was found, what was expected, what to do; sizes and names, but no values of the item.
    pub message: String,
}

impl Reason {
    /// A reason at `stage`.
    pub fn new(stage: Stage, rule: &'static str, message: impl Into<String>) -> Self {
        Self { stage, rule, message: message.into() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}: {}", self.stage.name(), self.rule, self.message)
    }
}

/// A refused item as the rejects file holds it; owns what it keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Where the item was read.
    pub origin: Origin,
    /// The entity, where one was found.
    pub entity: Option<EntityId>,
    /// The source key as text, such as `PK=WS#acme, SK=META`; empty where there is none.
    pub key: String,
    /// Why.
    pub reason: Reason,
    /// The item or change record as a line of `DynamoDB` JSON, as it was read; for a line that is neither, the line.
    pub source: Vec<u8>,
}
