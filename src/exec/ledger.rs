//! The balance of items: read = written + dropped + rejected, for each entity and for the whole run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Reason, Result};
use crate::exec::record::Kinds;
use crate::exec::units::RunFile;
use crate::model::Row;
use crate::plan::Plan;
use crate::plan::transform::{Changes, Claim, Told};

/// What happened to the items of one entity. `read + fanned_out = written + dropped + rejected`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Items read.
    pub read: u64,
    /// Outputs taken beyond the first of each item (`emit`).
    pub fanned_out: u64,
    /// Outputs handed to the sinks and not refused there.
    pub written: u64,
    /// Items that rules of the pipeline dropped: none of their outputs was taken.
    pub dropped: u64,
    /// Items that could not be carried, and outputs that a target refused; they are in the rejects.
    pub rejected: u64,
    /// Bytes written, by `DynamoDB`'s arithmetic of item sizes.
    pub bytes: u64,
    /// Nanoseconds of work in the pool: routing, steps, keys, limits. Reading, encoding and writing are not in it.
    pub nanos: u64,
    /// Told apart because their source holds one kind only.
    pub by_source: u64,
    /// Told apart by the type attribute.
    pub by_type: u64,
    /// Told apart by an alias of the type attribute.
    pub by_alias: u64,
    /// Told apart by their key.
    pub by_key: u64,
    /// Told apart by a condition.
    pub by_condition: u64,
    /// Type attribute and key name different entities; the type was believed.
    pub disagreements: u64,
    /// The type attribute says what no entity is called, and the key or a condition told the entity.
    pub unknown_types: u64,
    /// Outputs whose type attribute was missing and was filled in.
    pub backfilled: u64,
    /// Outputs whose type attribute was rewritten.
    pub retyped: u64,
    /// Index entries left out because a part of the index key is missing.
    pub unindexed: u64,
    /// Stale index key attributes taken off.
    pub stale_index_attributes: u64,
}

impl Counts {
    /// Counts how an item was told apart.
    pub(crate) fn tell(&mut self, claim: &Claim<'_>) {
        self.read += 1;
        self.disagreements += u64::from(claim.disagrees);
        self.unknown_types += u64::from(claim.unknown_type);
        *match claim.told {
            Told::BySource => &mut self.by_source,
            Told::ByType => &mut self.by_type,
            Told::ByAlias => &mut self.by_alias,
            Told::ByKey => &mut self.by_key,
            Told::ByCondition => &mut self.by_condition,
        } += 1;
    }

    pub(crate) fn change(&mut self, changes: Changes) {
        let Changes { backfilled, retyped, unindexed, stale_index_attributes } = changes;
        self.backfilled += backfilled;
        self.retyped += retyped;
        self.unindexed += unindexed;
        self.stale_index_attributes += stale_index_attributes;
    }

    /// Adds the counts of another part of the run.
    pub(crate) fn add(&mut self, other: &Counts) {
        // Destructured, so that a new count cannot be forgotten here.
        let Counts {
            read,
            fanned_out,
            written,
            dropped,
            rejected,
            bytes,
            nanos,
            by_source,
            by_type,
            by_alias,
            by_key,
            by_condition,
            disagreements,
            unknown_types,
            backfilled,
            retyped,
            unindexed,
            stale_index_attributes,
        } = other;
        for (mine, theirs) in [
            (&mut self.read, read),
            (&mut self.fanned_out, fanned_out),
            (&mut self.written, written),
            (&mut self.dropped, dropped),
            (&mut self.rejected, rejected),
            (&mut self.bytes, bytes),
            (&mut self.nanos, nanos),
            (&mut self.by_source, by_source),
            (&mut self.by_type, by_type),
            (&mut self.by_alias, by_alias),
            (&mut self.by_key, by_key),
            (&mut self.by_condition, by_condition),
            (&mut self.disagreements, disagreements),
            (&mut self.unknown_types, unknown_types),
            (&mut self.backfilled, backfilled),
            (&mut self.retyped, retyped),
            (&mut self.unindexed, unindexed),
            (&mut self.stale_index_attributes, stale_index_attributes),
        ] {
            *mine += theirs;
        }
    }

    fn balances(&self) -> bool {
        self.read + self.fanned_out == self.written + self.dropped + self.rejected
    }
}

/// The counts of a part of the run: a chunk, a unit, all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// By entity id; the last one stands for items that no entity claims.
    pub entities: Vec<Counts>,
    /// Lines that are no items; each is a reject.
    pub unreadable: u64,
    /// Lines read that hold something, by file id.
    pub lines: BTreeMap<u32, u64>,
    /// Rejects by `stage/rule`.
    pub rules: BTreeMap<String, u64>,
    /// `aws:rep:*` attributes of old global tables that were dropped.
    pub replication_attributes: u64,
    /// Change records by what happened.
    #[serde(default)]
    pub changes: BTreeMap<String, u64>,
    /// Outputs handed to the sinks by dataset id: those for a table, and those for Parquet only.
    pub outgoing: BTreeMap<u32, Outgone>,
    /// The kinds of records in files without a manifest, and those of the rows that were handed over by dataset id. They are
    /// looked at on the way; a unit's report has them apart.
    #[serde(skip)]
    pub kinds: BTreeMap<Option<u32>, Kinds>,
}

/// Outputs of a dataset that were handed to the sinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outgone {
    /// Those that go to a table.
    pub placed: u64,
    /// Those that go to Parquet only.
    pub unplaced: u64,
}

impl Ledger {
    /// An empty ledger for the entities of a plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { entities: vec![Counts::default(); plan.entities.len() + 1], ..Self::default() }
    }

    pub(crate) fn rejected(&mut self, reason: &Reason) {
        *self.rules.entry(format!("{}/{}", reason.stage.name(), reason.rule)).or_default() += 1;
    }

    /// Counts change records: `put`, or `put dropped`.
    pub(crate) fn changed(&mut self, what: &str, records: u64) {
        match self.changes.get_mut(what) {
            Some(count) => *count += records,
            None => drop(self.changes.insert(what.to_owned(), records)),
        }
    }

    /// Counts the change records among rows that a rule dropped.
    pub(crate) fn dropped<'r>(&mut self, rows: impl IntoIterator<Item = &'r Row<'r>>) {
        for change in rows.into_iter().filter_map(|row| row.change) {
            self.changed(&format!("{} dropped", change.op.name()), 1);
        }
    }

    /// Adds the ledger of another part of the run.
    pub(crate) fn add(&mut self, other: &Ledger) {
        let Ledger { entities, unreadable, lines, rules, replication_attributes, changes, outgoing, kinds } = other;
        if self.entities.len() < entities.len() {
            self.entities.resize(entities.len(), Counts::default());
        }
        for (mine, theirs) in self.entities.iter_mut().zip(entities) {
            mine.add(theirs);
        }
        self.unreadable += unreadable;
        for (file, count) in lines {
            *self.lines.entry(*file).or_default() += count;
        }
        for (rule, count) in rules {
            *self.rules.entry(rule.clone()).or_default() += count;
        }
        self.replication_attributes += replication_attributes;
        for (op, count) in changes {
            self.changed(op, *count);
        }
        for (dataset, count) in outgoing {
            let mine = self.outgoing.entry(*dataset).or_default();
            mine.placed += count.placed;
            mine.unplaced += count.unplaced;
        }
        for (of, kinds) in kinds {
            self.kinds.entry(*of).or_default().add(*kinds);
        }
    }

    /// Checks that nothing mixes items and changes.
    ///
    /// # Errors
    /// Kind `Input`, with the place of one of each kind.
    pub(crate) fn check_kinds(&self, files: &[RunFile]) -> Result<()> {
        self.kinds.values().try_for_each(|kinds| kinds.check(files))
    }

    /// All entities and the unreadable lines together.
    pub(crate) fn total(&self) -> Counts {
        let mut total = Counts { read: self.unreadable, rejected: self.unreadable, ..Counts::default() };
        for counts in &self.entities {
            total.add(counts);
        }
        total
    }

    /// Lines read that hold something.
    pub(crate) fn records(&self) -> u64 {
        self.lines.values().sum()
    }

    /// Checks every sum.
    ///
    /// # Errors
    /// Which sum is wrong, with both sides.
    pub(crate) fn check(&self, name: impl Fn(usize) -> String) -> Result<()> {
        for (at, counts) in self.entities.iter().enumerate() {
            if !counts.balances() {
                return Err(wrong_sum(&name(at))
                    .with("read", counts.read)
                    .with("fanned_out", counts.fanned_out)
                    .with("written", counts.written)
                    .with("dropped", counts.dropped)
                    .with("rejected", counts.rejected));
            }
        }
        let total = self.total();
        if total.read != self.records() {
            return Err(wrong_sum("all entities")
                .with("lines read", self.records())
                .with("items and unreadable lines counted", total.read));
        }
        Ok(())
    }
}

pub(crate) fn wrong_sum(of: &str) -> Error {
    Error::new(Kind::Bug, format!("the ledger of {of} does not balance; nothing was published"))
        .with("expected", "read + fanned_out = written + dropped + rejected")
        .with("hint", "this is a fault of dynamorph; keep the work folder and report it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_sum_ends_the_run_and_says_which() {
        let good = Counts { read: 3, fanned_out: 1, written: 2, dropped: 1, rejected: 1, ..Counts::default() };
        let mut ledger = Ledger { entities: vec![good], lines: BTreeMap::from([(0, 3)]), ..Ledger::default() };
        assert!(ledger.check(|_| "Document".to_owned()).is_ok());
        ledger.entities[0].written = 1;
        let error = ledger.check(|_| "Document".to_owned()).unwrap_err();
        assert!(error.to_string().contains("the ledger of Document does not balance"), "{error}");
        ledger.entities[0] = good;
        ledger.lines.insert(1, 1);
        assert!(ledger.check(|_| "Document".to_owned()).unwrap_err().to_string().contains("lines read: 4"));
    }
}
