//! What a run did: the same facts for the end table and for `report.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::exec::ledger::{Counts, Ledger};
use crate::model::SourceId;
use crate::plan::Plan;
use crate::sink::{Traffic, Written};
use crate::source::manifest::{Content, Export};

/// A finished run. The field names are stable.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The program's version.
    pub dynamorph: &'static str,
    /// The exports that were read.
    pub exports: Vec<ExportSummary>,
    /// Items by the manifests; absent where files without a manifest were read.
    pub manifest_items: Option<u64>,
    /// Only so many lines were to be read (`--limit`); the rest of the exports was not looked at.
    pub limit: Option<u64>,
    /// Items and other lines read.
    pub read: u64,
    /// All entities together.
    pub total: Counts,
    /// What happened to the items, where change records were read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, u64>,
    /// An entity a row, in the order of the pipeline; entities without items too.
    pub entities: Vec<EntitySummary>,
    /// A sink a row, in the order of the command line.
    pub sinks: Vec<SinkSummary>,
    /// Refused items.
    pub rejects: RejectsSummary,
    /// `aws:rep:*` attributes dropped.
    pub replication_attributes_dropped: u64,
    /// Wall time in seconds.
    pub seconds: f64,
}

/// One export.
#[derive(Clone, Debug, Serialize)]
pub struct ExportSummary {
    /// The name of the source, where the pipeline has several.
    pub source: Option<String>,
    /// `full` or `incremental`, from the export's summary.
    pub kind: Option<&'static str>,
    /// Its ARN.
    pub export_arn: Option<String>,
    /// The table's ARN.
    pub table_arn: Option<String>,
    /// The point in time of a full export.
    pub export_time: Option<String>,
    /// The start of an incremental export's window, which belongs to it.
    pub from_time: Option<String>,
    /// The end of the window, which does not.
    pub to_time: Option<String>,
    /// Which images an incremental export has: `NEW_IMAGE` or `NEW_AND_OLD_IMAGES`.
    pub view: Option<&'static str>,
    /// Data files, empty ones too.
    pub files: usize,
    /// Their compressed bytes.
    pub compressed_bytes: u64,
    /// Items, or change records, by the manifest.
    pub items: Option<u64>,
    /// Whether every file was compared with an md5.
    pub md5_checked: bool,
}

impl ExportSummary {
    /// What is known of an export, which was read for the source of this name.
    pub(crate) fn new(source: Option<String>, export: &Export) -> Self {
        let summary = export.summary.as_ref();
        let (kind, export_time, window) = match summary.map(|summary| &summary.content) {
            None => (None, None, None),
            Some(Content::Items { export_time }) => (Some("full"), export_time.clone(), None),
            Some(Content::Changes(window)) => (Some("incremental"), None, Some(window)),
        };
        Self {
            source,
            kind,
            export_arn: summary.and_then(|summary| summary.export_arn.clone()),
            table_arn: summary.and_then(|summary| summary.table_arn.clone()),
            export_time,
            from_time: window.and_then(|window| window.from.clone()),
            to_time: window.and_then(|window| window.to.clone()),
            view: window.map(|window| window.view.name()),
            files: export.files.len(),
            compressed_bytes: export.compressed_bytes(),
            items: export.items,
            md5_checked: export.checked,
        }
    }
}

/// One entity.
#[derive(Clone, Debug, Serialize)]
pub struct EntitySummary {
    /// Its name; `(unclassified)` and `(unreadable)` stand for what is no entity.
    pub entity: String,
    /// Its counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// One sink.
#[derive(Clone, Debug, Serialize)]
pub struct SinkSummary {
    /// As it was named on the command line.
    pub sink: String,
    /// Items written, by entity.
    pub items: BTreeMap<String, u64>,
    /// Items refused by the target.
    pub refused: u64,
    /// Items that a condition of the user kept from being written: the target has another item under their key.
    pub kept: u64,
    /// What went over the wire, for a live sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// Files written.
    pub files: usize,
    /// Bytes written or sent.
    pub bytes: u64,
}

/// The refused items.
#[derive(Clone, Debug, Serialize)]
pub struct RejectsSummary {
    /// How many.
    pub count: u64,
    /// How many by `stage/rule`.
    pub by_rule: BTreeMap<String, u64>,
    /// Where they are; `dynamorph run … --from FILE` reads them back.
    pub files: Vec<PathBuf>,
}

impl Summary {
    #[expect(clippy::too_many_arguments, reason = "each is one fact of the run, and only the commit makes a summary")]
    pub(crate) fn new(
        plan: &Plan,
        exports: &[(SourceId, Export)],
        ledger: &Ledger,
        manifest_items: Option<u64>,
        limit: Option<u64>,
        written: &[(String, Vec<Written>)],
        reject_files: Vec<PathBuf>,
        elapsed: Duration,
    ) -> Self {
        let exports = exports.iter().map(|(id, export)| ExportSummary::new(plan.sources[id.index()].name.clone(), export)).collect();
        let mut entities: Vec<_> = plan
            .entities
            .iter()
            .zip(&ledger.entities)
            .map(|(entity, counts)| EntitySummary { entity: entity.name.clone(), counts: *counts })
            .collect();
        let unclassified = ledger.entities.last().copied().unwrap_or_default();
        let unreadable = Counts { read: ledger.unreadable, rejected: ledger.unreadable, ..Counts::default() };
        for (name, counts) in [("(unclassified)", unclassified), ("(unreadable)", unreadable)] {
            if counts.read > 0 {
                entities.push(EntitySummary { entity: name.to_owned(), counts });
            }
        }
        let sinks = written
            .iter()
            .map(|(name, units)| {
                let mut items = BTreeMap::new();
                for (dataset, count) in units.iter().flat_map(|written| &written.items) {
                    *items.entry(plan.targets.datasets[*dataset as usize].name.clone()).or_default() += count;
                }
                SinkSummary {
                    sink: name.clone(),
                    items,
                    refused: units.iter().flat_map(|written| written.refused.values()).sum(),
                    kept: units.iter().flat_map(|written| written.kept.values()).sum(),
                    traffic: units.iter().filter_map(|written| written.traffic).reduce(|mut all, one| {
                        all.add(&one);
                        all
                    }),
                    files: units.iter().map(|written| written.files.len()).sum(),
                    bytes: units.iter().map(|written| written.bytes).sum(),
                }
            })
            .collect();
        Self {
            dynamorph: env!("CARGO_PKG_VERSION"),
            exports,
            manifest_items,
            limit,
            read: ledger.records(),
            total: ledger.total(),
            changes: ledger.changes.clone(),
            entities,
            sinks,
            rejects: RejectsSummary { count: ledger.rules.values().sum(), by_rule: ledger.rules.clone(), files: reject_files },
            replication_attributes_dropped: ledger.replication_attributes,
            seconds: elapsed.as_secs_f64(),
        }
    }
}
