//! What a comparison found: the same facts for people and for programs. The field names are stable.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::exec::summary::ExportSummary;
use crate::exec::verify::Setting;
use crate::exec::verify::expected::Expected;
use crate::exec::verify::form::View;
use crate::exec::verify::target::{Open, Unreadable};
use crate::model::Origin;
use crate::proof::compare::{Difference, Outcome, Tally};
use crate::proof::difference::Change;

/// A finished comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// The program's version.
    pub dynamorph: &'static str,
    /// Whether every target is as the pipeline says.
    pub equal: bool,
    /// The exports that were read.
    pub exports: Vec<ExportSummary>,
    /// Items and other lines read from them.
    pub read: u64,
    /// Items that rules of the pipeline drop; they are expected nowhere. Those of entities that were not asked for do not count.
    pub dropped: u64,
    /// Items that are rejects; they are expected nowhere.
    pub rejected: u64,
    /// Only counts were compared.
    pub counts_only: bool,
    /// Only so many of a hundred keys were compared.
    pub sample_percent: Option<f64>,
    /// Only these entities were compared; empty: all.
    pub only: Vec<String>,
    /// The targets, in the order of the command line.
    pub targets: Vec<TargetReport>,
    /// The file with all keys that differ, where there are any.
    pub differences: Option<PathBuf>,
    /// Wall time in seconds.
    pub seconds: f64,
}

/// One target.
#[derive(Clone, Debug, Serialize)]
pub struct TargetReport {
    /// As it was named.
    pub target: String,
    /// Whether it is as the pipeline says.
    pub equal: bool,
    /// A table and entity a row; those without items are left out.
    pub rows: Vec<RowReport>,
    /// All of them together.
    pub total: RowReport,
    /// Outputs of items that this target does not hold: of other tables, or for Parquet only.
    pub elsewhere: u64,
    /// Items that are there and were left out, since their entity was not asked for.
    pub left_out: u64,
    /// Lines that hold no item.
    pub unreadable: u64,
    /// The place of the first of them, and what is wrong with it.
    pub first_unreadable: Option<String>,
    /// The first keys that differ.
    pub shown: Vec<Shown>,
}

/// The items of an entity in a table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RowReport {
    /// The table's name in the pipeline; absent for Parquet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The entity; `(other)` where an item does not say it.
    pub entity: String,
    /// Items that must be there.
    pub expected: u64,
    /// Items that are there.
    pub found: u64,
    /// Items that must be there and are not.
    pub missing: u64,
    /// Items that are there and must not be.
    pub extra: u64,
    /// Items with other content.
    pub different: u64,
    /// Items under a key that another item of the target has too.
    pub duplicate: u64,
    /// The sum of the hashes of the items that must be there, in hexadecimal; absent where only counts were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_checksum: Option<String>,
    /// The same of those that are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_checksum: Option<String>,
}

/// A key that differs.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// `missing`, `extra`, `different` or `duplicate`.
    pub kind: &'static str,
    /// The table's name in the pipeline; absent for Parquet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The entity.
    pub entity: String,
    /// The key as `DynamoDB` JSON; null where the item has none.
    pub key: Json,
    /// The key in words: `PK=WS#acme, SK=META`.
    #[serde(skip)]
    pub key_in_words: String,
    /// Where the item that must be there comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_at: Option<String>,
    /// Where the item that is there lies, in a target of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_at: Option<String>,
    /// What is different.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// What a second look at the items showed besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

impl Verification {
    pub(super) fn new(
        setting: &Setting<'_>,
        expected: &Expected<'_>,
        targets: Vec<TargetReport>,
        differences: Option<PathBuf>,
        elapsed: Duration,
    ) -> Self {
        let total = expected.ledger.total();
        let by_rules = expected.only.iter().map(|id| expected.ledger.entities[id.index()].dropped);
        let exports = expected.exports.iter();
        Self {
            dynamorph: env!("CARGO_PKG_VERSION"),
            equal: targets.iter().all(|target| target.equal),
            exports: exports.map(|(id, export)| ExportSummary::new(setting.plan.sources[id.index()].name.clone(), export)).collect(),
            read: expected.ledger.records(),
            // The ledger has as dropped what is left out since it was not asked for.
            dropped: if expected.only.is_empty() { total.dropped } else { by_rules.sum() },
            rejected: total.rejected + expected.refused,
            counts_only: setting.options.counts,
            sample_percent: setting.options.sample,
            only: setting.options.only.clone(),
            targets,
            differences,
            seconds: elapsed.as_secs_f64(),
        }
    }
}

impl TargetReport {
    pub(super) fn new(
        setting: &Setting<'_>,
        target: &Open,
        expected: &Expected<'_>,
        outcome: &Outcome,
        unreadable: Unreadable,
        shown: Vec<Shown>,
    ) -> Self {
        let view = target.view();
        let mut whole = Tally::default();
        outcome.tallies.values().for_each(|tally| whole.add(tally));
        let row = |((place, row), tally): (&(u32, u32), &Tally)| {
            let table = setting.forms.table_name(view, *place).map(str::to_owned);
            RowReport::new(setting, table, setting.forms.row_name(*row).to_owned(), tally)
        };
        let outgoing: u64 = expected.ledger.outgoing.values().map(|outgone| outgone.placed + outgone.unplaced).sum();
        let refused = if view == View::Tables { 0 } else { expected.refused };
        Self {
            target: target.name.clone(),
            equal: unreadable.count == 0 && outcome.tallies.values().all(Tally::is_equal),
            rows: outcome.tallies.iter().map(row).collect(),
            total: RowReport::new(setting, None, "total".to_owned(), &whole),
            elsewhere: if setting.options.sample.is_some() { 0 } else { outgoing.saturating_sub(whole.expected + refused) },
            left_out: outcome.left_out,
            unreadable: unreadable.count,
            first_unreadable: unreadable.first,
            shown,
        }
    }
}

impl RowReport {
    fn new(setting: &Setting<'_>, table: Option<String>, entity: String, tally: &Tally) -> Self {
        let Tally { expected, found, differences: [missing, extra, different, duplicate], expected_sum, found_sum } = *tally;
        let checksum = |sum: u128| (!setting.options.counts).then(|| format!("{sum:032x}"));
        let (expected_checksum, found_checksum) = (checksum(expected_sum), checksum(found_sum));
        Self { table, entity, expected, found, missing, extra, different, duplicate, expected_checksum, found_checksum }
    }
}

/// A key that differs, before the second look.
pub(super) fn shown(setting: &Setting<'_>, target: &Open, expected: &Expected<'_>, difference: &Difference) -> Shown {
    let view: View = target.view();
    let source = |origin: Origin| Some(format!("{}:{}", expected.file(origin.file)?.name, origin.line));
    Shown {
        kind: difference.kind.name(),
        table: setting.forms.table_name(view, difference.place).map(str::to_owned),
        entity: setting.forms.row_name(difference.row).to_owned(),
        key: setting.forms.key_json(view, difference.place, &difference.key),
        key_in_words: setting.forms.key_in_words(view, difference.place, &difference.key),
        expected_at: difference.expected.and_then(|side| source(side.origin)),
        found_at: difference.found.and_then(|side| target.content().place(side.origin)),
        changes: Vec::new(),
        note: None,
    }
}

/// A key that differs, for the list of all of them.
pub(super) fn line(setting: &Setting<'_>, target: &Open, expected: &Expected<'_>, difference: &Difference) -> Json {
    let mut line = json!({ "target": target.name });
    let shown = serde_json::to_value(shown(setting, target, expected, difference)).unwrap_or_default();
    if let (Json::Object(line), Json::Object(shown)) = (&mut line, shown) {
        line.extend(shown);
    }
    line
}
