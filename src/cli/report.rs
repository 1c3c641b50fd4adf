//! The end table, and the same facts as JSON.

use std::fmt::Write;
use std::path::Path;

use dynamorph::limits::{counted, thousands};
use dynamorph::sink::Traffic;
use dynamorph::{LoadSummary, Summary};

/// The summary, with what was loaded as `load` where something was.
pub(crate) fn json(summary: &Summary, loaded: Option<&LoadSummary>) -> String {
    #[derive(serde::Serialize)]
    struct Both<'s> {
        #[serde(flatten)]
        summary: &'s Summary,
        #[serde(skip_serializing_if = "Option::is_none")]
        load: Option<&'s LoadSummary>,
    }
    serde_json::to_string_pretty(&Both { summary, load: loaded }).expect("a summary has only string keys and finite numbers")
}

/// The end table: an entity a row, then the sinks, what was mended on the way, and the rejects.
pub(crate) fn text(summary: &Summary, work: &Path, verbose: bool) -> String {
    let mut rows = vec![["entity", "read", "written", "dropped", "rejected", "bytes", "seconds"].map(str::to_owned)];
    let fanned_out = summary.total.fanned_out > 0;
    let row = |name: &str, counts: &dynamorph::Counts| {
        let read = if counts.fanned_out > 0 {
            format!("{} (+{})", thousands(counts.read), thousands(counts.fanned_out))
        } else {
            thousands(counts.read)
        };
        let seconds = counts.nanos / 10_000_000;
        [
            name.to_owned(),
            read,
            thousands(counts.written),
            thousands(counts.dropped),
            thousands(counts.rejected),
            thousands(counts.bytes),
            format!("{}.{:02}", seconds / 100, seconds % 100),
        ]
    };
    rows.extend(summary.entities.iter().map(|entity| row(&entity.entity, &entity.counts)));
    rows.push(row("total", &summary.total));
    let mut out = aligned(&rows);
    if fanned_out {
        out.push_str("(+N: outputs that `emit` adds; read + N = written + dropped + rejected)\n");
    }
    let kept = kept(summary);
    if kept > 0 {
        let _ = writeln!(out, "(written: {} of them kept out by the condition, and not counted in the sink's row)", thousands(kept));
    }
    out.push('\n');
    let sinks: Vec<_> = summary
        .sinks
        .iter()
        .map(|sink| {
            let items: u64 = sink.items.values().sum();
            let files = if sink.files == 0 { String::new() } else { counted(sink.files as u64, "file") };
            let traffic = sink.traffic.as_ref().map(traffic).unwrap_or_default();
            [sink.sink.clone(), counted(items, "item"), files, format!("{} bytes", thousands(sink.bytes)), traffic]
        })
        .collect();
    out.push_str(&aligned(&sinks));
    for sink in summary.sinks.iter().filter(|sink| sink.kept > 0) {
        let _ = writeln!(
            out,
            "\n{} kept: the table has another item under their key, and the condition does not replace it",
            counted(sink.kept, "item")
        );
    }
    if !summary.changes.is_empty() {
        let counts: Vec<_> = summary.changes.iter().map(|(op, count)| format!("{op} {}", thousands(*count))).collect();
        let _ = writeln!(out, "\nchanges: {}", counts.join(", "));
    }
    let changes = changes(summary);
    if !changes.is_empty() {
        let _ = writeln!(out, "\n{}", changes.join("\n"));
    }
    out.push_str(&ledger(summary));
    match summary.limit {
        None => {}
        Some(1) => out.push_str("only the first item was read (--limit); this is no whole run\n"),
        Some(limit) => {
            let _ = writeln!(out, "only the first {} items were read (--limit); this is no whole run", thousands(limit));
        }
    }
    if summary.rejects.count > 0 {
        let rejects = if summary.rejects.count == 1 { "reject" } else { "rejects" };
        let _ = writeln!(out, "\n{} {rejects}:", thousands(summary.rejects.count));
        let rules: Vec<_> = summary.rejects.by_rule.iter().map(|(rule, count)| [format!("  {rule}"), thousands(*count)]).collect();
        out.push_str(&aligned(&rules));
        for file in &summary.rejects.files {
            let _ = writeln!(out, "  in {}", file.display());
        }
        let total = &summary.total;
        if total.rejected > 0 && total.written == 0 && total.dropped == 0 {
            out.push_str("all items were rejected: is this the right export for the pipeline?\n");
        }
        let (undecoded, others): (Vec<_>, Vec<_>) = summary.rejects.by_rule.keys().partition(|rule| rule.starts_with("decode/"));
        if !others.is_empty() {
            out.push_str("mend the pipeline, then run the rejects alone into new folders: --from takes their file\n");
        }
        if !undecoded.is_empty() {
            out.push_str("decode: get the item from the source; a replay refuses it again\n");
        }
    }
    if verbose {
        let _ = writeln!(out, "report: {}", work.join("report.json").display());
    }
    out
}

/// `31 requests, 0 throttled, 2 sent again, 1,204 write units, 402/s`.
fn traffic(traffic: &Traffic) -> String {
    let Traffic { requests, puts: _, sent_again, throttled, failed, write_units, seconds } = traffic;
    let failed = if *failed > 0 { format!(", {} failed", thousands(*failed)) } else { String::new() };
    let units = thousands(format_args!("{write_units:.0}"));
    let rate = if *seconds > 0.0 { format!(", {}/s", thousands(format_args!("{:.0}", write_units / seconds))) } else { String::new() };
    format!(
        "{}, {} throttled{failed}, {} sent again, {units} write units{rate}",
        counted(*requests, "request"),
        thousands(*throttled),
        thousands(*sent_again)
    )
}

/// The sums, which were checked before anything was published.
fn ledger(summary: &Summary) -> String {
    let total = &summary.total;
    let manifest = match summary.manifest_items {
        Some(items) if items == summary.read => format!("manifest {} = ", thousands(items)),
        _ => String::new(),
    };
    let fanned_out = if total.fanned_out > 0 { format!(" + {} fanned out", thousands(total.fanned_out)) } else { String::new() };
    let kept = match kept(summary) {
        0 => String::new(),
        kept => format!(" ({} of them kept out by the condition)", thousands(kept)),
    };
    format!(
        "\nledger: {manifest}read {}{fanned_out} = written {}{kept} + dropped {} + rejected {}\n",
        thousands(summary.read),
        thousands(total.written),
        thousands(total.dropped),
        thousands(total.rejected),
    )
}

/// Items that count as written and that a condition kept out of a live table.
fn kept(summary: &Summary) -> u64 {
    summary.sinks.iter().map(|sink| sink.kept).sum()
}

/// What was mended or must be looked at, a line each.
fn changes(summary: &Summary) -> Vec<String> {
    let (total, replicated) = (&summary.total, summary.replication_attributes_dropped);
    let number = |count: u64, [one, many]: [&'static str; 2]| if count == 1 { one } else { many };
    [
        (total.backfilled, "had no type attribute and got one"),
        (total.retyped.saturating_sub(total.unknown_types), "had another spelling of their type, rewritten"),
        (total.unknown_types, "had a type that no entity is called; their key or a condition told the entity, and the type was rewritten"),
        (total.by_key + total.by_condition, "were told apart by their key or a condition, not by their type"),
        (total.disagreements, "have a type that their key does not fit; the type was believed"),
        (
            total.unindexed,
            number(
                total.unindexed,
                [
                    "index entry left out, since a part of the index key is missing",
                    "index entries left out, since a part of the index key is missing",
                ],
            ),
        ),
        (
            total.stale_index_attributes,
            number(
                total.stale_index_attributes,
                [
                    "index key attribute taken off, since its entity is not in that index",
                    "index key attributes taken off, since their entity is not in that index",
                ],
            ),
        ),
        (
            replicated,
            number(
                replicated,
                ["attribute of old global tables (aws:rep:*) dropped", "attributes of old global tables (aws:rep:*) dropped"],
            ),
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, text)| format!("{} {text}", thousands(count)))
    .collect()
}

/// Columns: the first to the left, the others to the right, two blanks between.
pub(crate) fn aligned<R: AsRef<[String]>>(rows: &[R]) -> String {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let width = |at: usize| rows.iter().filter_map(|row| row.as_ref().get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        for (at, (cell, width)) in row.as_ref().iter().zip(&widths).enumerate() {
            let _ = if at == 0 { write!(out, "{cell:width$}") } else { write!(out, "  {cell:>width$}") };
        }
        let kept = out.trim_end_matches(' ').len();
        out.truncate(kept);
        out.push('\n');
    }
    out
}
