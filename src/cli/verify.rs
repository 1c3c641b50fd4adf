//! `dynamorph verify`: is a target what the pipeline says?

use std::fmt::Write;
use std::path::Path;

use dynamorph::error::{Error, Kind};
use dynamorph::limits::{counted, thousands};
use dynamorph::{Plan, RowReport, Shown, Stop, Target, TargetReport, Verification, VerifyOptions};

use crate::cli::args::{Args, Output, VerifyTargets};
use crate::cli::check::load;
use crate::cli::progress::Progress;
use crate::cli::report::aligned;
use crate::cli::run::{hint_at_sink, input, jobs, table_names};
use crate::cli::service::Connections;
use crate::cli::{DIFFERENT, DONE, Failure, print};

/// The longest value that is shown whole, in characters.
const LONGEST: usize = 200;

pub(crate) fn verify(args: &Args, command: &VerifyTargets) -> Result<u8, Failure> {
    let plan = load(&command.pipeline)?;
    let connections = Connections::new(&command.service);
    let inputs = command.from.iter().map(|text| input(&plan, text, &connections)).collect::<Result<Vec<_>, _>>()?;
    let targets = command.against.iter().map(|text| target(&plan, text, command, &connections)).collect::<Result<Vec<_>, _>>()?;
    if command.max_read_units.is_some() && !targets.iter().any(|target| matches!(target, Target::DynamoDb { .. })) {
        return Err(Error::new(Kind::Usage, "--max-read-units is for live tables").with("expected", "--against dynamodb").into());
    }
    let work = command.work.clone().unwrap_or_else(|| {
        let mut name = command.pipeline.file_stem().unwrap_or_else(|| "pipeline".as_ref()).to_owned();
        name.push(".verify");
        Path::new(".dynamorph").join(name)
    });
    let options = VerifyOptions {
        targets,
        table_names: table_names(&command.table)?,
        only: command.only.clone(),
        counts: command.counts,
        sample: command.sample,
        show: command.show,
        jobs: jobs(command.jobs),
        reading: command.reading.options(),
        work,
        stop: Stop::default(),
    };
    let mut progress = Progress::new(args.quiet || args.output == Output::Json);
    let verification = dynamorph::verify(&plan, &inputs, &options, &mut progress)?;
    drop(progress);
    match args.output {
        Output::Text => print(&text(&verification))?,
        Output::Json => {
            let json = serde_json::to_string_pretty(&verification).expect("a report has only string keys and finite numbers");
            print(&format!("{json}\n"))?;
        }
    }
    Ok(if verification.equal { DONE } else { DIFFERENT })
}

fn target(plan: &Plan, text: &str, command: &VerifyTargets, connections: &Connections) -> Result<Target, Error> {
    let expected = "dynamodb, import:DIR, batch:DIR, parquet:DIR or export:[TABLE=]EXPORT";
    let wrong = || Error::new(Kind::Usage, "unknown target").with("found", text).with("expected", expected);
    match text.split_once(':') {
        None if text == "dynamodb" => Ok(Target::DynamoDb { service: connections.options(), max_read_units: command.max_read_units }),
        Some((kind, "")) if kind != "dynamodb" => Err(wrong().with("hint", "a folder is missing after the colon")),
        Some(("import", place)) => connections.location(place).map(Target::Import),
        Some(("batch", place)) => connections.location(place).map(Target::Batch),
        Some(("parquet", place)) => connections.location(place).map(Target::Parquet),
        Some(("export", place)) => {
            let (table, place) = match place.split_once('=') {
                Some((name, rest)) if plan.targets().tables.iter().any(|table| table.name == name) => (Some(name.to_owned()), rest),
                _ => (None, place),
            };
            Ok(Target::Export { table, location: connections.location(place)? })
        }
        _ => Err(hint_at_sink(wrong(), text)),
    }
}

/// The counts of every target, then what differs, then what was not compared, and the answer.
fn text(verification: &Verification) -> String {
    let mut out = String::new();
    for target in &verification.targets {
        let _ = writeln!(out, "{}", target.target);
        out.push_str(&table(verification, target));
        out.push('\n');
        differences(&mut out, verification, target);
        left_out(&mut out, target);
    }
    let mut note = |count: u64, one: &str, many: &str| {
        if count > 0 {
            let _ = writeln!(out, "{} {}", counted(count, "item"), if count == 1 { one } else { many });
        }
    };
    note(verification.rejected, "is a reject and is not expected there", "are rejects and are not expected there");
    note(verification.dropped, "is dropped by a rule and is not expected there", "are dropped by rules and are not expected there");
    if let Some(percent) = verification.sample_percent {
        let _ = writeln!(out, "only the keys whose hash falls into {percent} % were compared (--sample); the others may differ");
    }
    if verification.counts_only {
        out.push_str("only counts were compared (--counts); items may differ\n");
    }
    out.push_str(&what_to_do(verification));
    let expected: u64 = verification.targets.iter().map(|target| target.total.expected).sum();
    out.push_str(&match (verification.equal, expected) {
        (true, 0) => "equal, but nothing is expected and nothing is there\n".to_owned(),
        (true, _) => format!("equal: {} as the pipeline says\n", counted(expected, "item")),
        (false, _) => "not equal\n".to_owned(),
    });
    out
}

/// What the signs mean, and how each kind of target is mended.
fn what_to_do(verification: &Verification) -> String {
    let mut out = String::new();
    let unequal = || verification.targets.iter().filter(|target| !target.equal);
    if unequal().flat_map(|target| &target.shown).any(|shown| !shown.changes.is_empty()) {
        out.push_str("- is expected: what the pipeline makes of the export; + is found: what the target holds\n");
    }
    // An export is a table at some time.
    let is_table = |target: &TargetReport| target.target == "dynamodb" || target.target.starts_with("export:");
    if unequal().any(is_table) {
        out.push_str(
            "to mend tables: the same `run` again puts missing and different items, with --if-absent the missing ones only; extra ones stay\n",
        );
    }
    if unequal().any(|target| !is_table(target)) {
        out.push_str("to mend files: the same `run` again with --overwrite writes all of them anew\n");
    }
    out
}

fn name(table: Option<&str>, entity: &str) -> String {
    table.map_or_else(|| entity.to_owned(), |table| format!("{table}/{entity}"))
}

fn table(verification: &Verification, target: &TargetReport) -> String {
    let has_duplicates = target.total.duplicate > 0;
    let has_tables = target.rows.iter().any(|row| row.table.is_some());
    let mut head = vec![if has_tables { "table/entity" } else { "entity" }, "expected", "found"];
    if !verification.counts_only {
        head.extend(["missing", "extra", "different"]);
        head.extend(has_duplicates.then_some("duplicate"));
        head.push("checksum");
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    let line = |row: &RowReport| {
        let mut cells = vec![name(row.table.as_deref(), &row.entity), thousands(row.expected), thousands(row.found)];
        if !verification.counts_only {
            cells.extend([row.missing, row.extra, row.different].map(thousands));
            cells.extend(has_duplicates.then(|| thousands(row.duplicate)));
            let (expected, found) = (row.expected_checksum.as_deref().unwrap_or(""), row.found_checksum.as_deref().unwrap_or(""));
            cells.push(if expected == found { expected.to_owned() } else { format!("{expected} <> {found}") });
        }
        cells
    };
    rows.extend(target.rows.iter().map(line));
    rows.push(line(&target.total));
    aligned(&rows)
}

fn differences(out: &mut String, verification: &Verification, target: &TargetReport) {
    let RowReport { missing, extra, different, duplicate, .. } = target.total;
    let all = missing + extra + different + duplicate;
    if all == 0 {
        return;
    }
    let kinds = [(missing, "missing"), (extra, "extra"), (different, "different"), (duplicate, "duplicate")];
    let kinds: Vec<_> = kinds.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{} {kind}", thousands(count))).collect();
    let _ = writeln!(out, "{}: {}", counted(all, "difference"), kinds.join(", "));
    for shown in &target.shown {
        show(out, shown);
    }
    let more = all - (target.shown.len() as u64).min(all);
    let list =
        verification.differences.as_ref().map_or_else(String::new, |path| format!("all keys that differ are in {}\n", path.display()));
    if more > 0 {
        let _ = writeln!(out, "… and {} more", thousands(more));
    }
    out.push_str(&list);
    out.push('\n');
}

fn show(out: &mut String, shown: &Shown) {
    let _ = write!(out, "{}  {}  {}", shown.kind, name(shown.table.as_deref(), &shown.entity), shown.key_in_words);
    for (what, place) in [("from", &shown.expected_at), ("in", &shown.found_at)] {
        if let Some(place) = place {
            let _ = write!(out, "  {what} {place}");
        }
    }
    if let Some(note) = shown.note {
        let _ = write!(out, "  ({note})");
    }
    out.push('\n');
    for change in &shown.changes {
        for (sign, value) in [('-', &change.expected), ('+', &change.found)] {
            if let Some(value) = value {
                let _ = writeln!(out, "  {sign} {}: {}", change.path, short(value));
            }
        }
    }
}

/// The value, or its beginning.
fn short(value: &str) -> String {
    match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}… ({} bytes)", &value[..end], thousands(value.len())),
        None => value.to_owned(),
    }
}

/// What the target does not hold, and what was passed over in it.
fn left_out(out: &mut String, target: &TargetReport) {
    if let Some(first) = &target.first_unreadable {
        let lines = if target.unreadable == 1 { "line is no item" } else { "lines are no items" };
        let _ = writeln!(out, "{} {lines}; the first: {first}", thousands(target.unreadable));
    }
    if target.elsewhere > 0 {
        let _ = writeln!(
            out,
            "{} of the pipeline: not compared, since they go to another table or to Parquet only",
            counted(target.elsewhere, "output")
        );
    }
    if target.left_out > 0 {
        let _ = writeln!(out, "{} of other entities: not compared (--only)", counted(target.left_out, "item"));
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_long_value_is_cut_between_characters() {
        assert_eq!(short("S \"x\""), "S \"x\"");
        let long = "ü".repeat(300);
        assert_eq!(short(&long), format!("{}… (600 bytes)", "ü".repeat(200)));
    }
}
