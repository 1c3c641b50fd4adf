//! Several exports of one table: windows that follow each other.

use crate::error::{Error, Kind, Result};
use crate::source::manifest::find::Time;
use crate::source::manifest::{Export, Window};

/// The exports in the order of their windows.
///
/// # Errors
/// Kind `Input`: one is a full export, they are of different tables, or their windows leave a gap or overlap.
pub(super) fn in_order(mut exports: Vec<Export>) -> Result<Vec<Export>> {
    if let Some(full) = exports.iter().find(|export| export.window().is_none()) {
        return Err(Error::new(Kind::Input, "a full export was named together with another export of the same source")
            .with("export", name(full))
            .with("expected", "one full export, or incremental exports whose windows follow each other")
            .with("hint", "name the full export alone"));
    }
    if let Some(unknown) = exports.iter().find(|export| !matches!(ends(export), (Some(start), Some(end)) if start < end)) {
        let told = |time: Option<&String>| time.cloned().unwrap_or_else(|| "nothing".to_owned());
        let window = unknown.window();
        return Err(Error::new(
            Kind::Input,
            "an incremental export does not say its window, so that it cannot be put in order with others",
        )
        .with("export", name(unknown))
        .with("expected", "exportFromTime before exportToTime, such as 2026-01-14T10:20:00.000Z")
        .with(
            "found",
            format_args!(
                "{} and {}",
                told(window.and_then(|window| window.from.as_ref())),
                told(window.and_then(|window| window.to.as_ref()))
            ),
        )
        .with("hint", "name it alone"));
    }
    exports.sort_by_key(ends);
    let mut notes = Vec::new();
    for (at, pair) in exports.windows(2).enumerate() {
        let [before, after] = pair else { continue };
        // The last one that says its table's id stands for those after it that do not.
        let known = exports[..=at].iter().rev().find(|export| table_id(export).is_some()).unwrap_or(before);
        same_table(before, after)?;
        same_table(known, after)?;
        if table_id(known).is_none() != table_id(after).is_none() {
            let message = "one of two exports has no tableId, so that it cannot be told whether the table was made anew in between";
            notes.push((at + 1, format!("{message}: {} and {}", name(before), name(after))));
        }
        let ((_, end), (start, _)) = (ends(before), ends(after));
        let told = match start.cmp(&end) {
            std::cmp::Ordering::Equal => continue,
            std::cmp::Ordering::Greater => "the windows of two incremental exports leave a gap; what was written in it is in neither",
            std::cmp::Ordering::Less => "the windows of two incremental exports overlap; what was written in both would be read twice",
        };
        return Err(Error::new(Kind::Input, told)
            .with("first", name(before))
            .with("which ends", end.map_or_else(String::new, |time| time.to_string()))
            .with("second", name(after))
            .with("which starts", start.map_or_else(String::new, |time| time.to_string()))
            .with("hint", "name exports whose windows follow each other without a gap"));
    }
    for (at, note) in notes {
        exports[at].notes.push(note);
    }
    Ok(exports)
}

fn table_id(export: &Export) -> Option<&str> {
    export.summary.as_ref()?.table_id.as_deref()
}

/// Checks that two exports are of one table, as far as they say it.
fn same_table(one: &Export, other: &Export) -> Result<()> {
    let of = |export: &Export| (export.summary.as_ref().and_then(|summary| summary.table_arn.clone()), table_id(export).map(str::to_owned));
    let ((arn, id), (other_arn, other_id)) = (of(one), of(other));
    let (message, hint) = if arn != other_arn {
        ("two exports of one source are of different tables", "name the exports of one table; a pipeline may have several sources")
    } else if id != other_id && id.is_some() && other_id.is_some() {
        (
            "two exports of one source are of tables with one name: the table was made anew in between",
            "name the exports of one of the two; a table that was made anew starts with a full export",
        )
    } else {
        return Ok(());
    };
    let told = |arn: Option<String>, id: Option<String>| format!("{} ({})", arn.unwrap_or_default(), id.unwrap_or_default());
    Err(Error::new(Kind::Input, message).with("first", told(arn, id)).with("second", told(other_arn, other_id)).with("hint", hint))
}

/// Start and end of an export's window, where they are times.
fn ends(export: &Export) -> (Option<Time>, Option<Time>) {
    let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok());
    export.window().map_or((None, None), |Window { from, to, .. }| (time(from), time(to)))
}

fn name(export: &Export) -> &str {
    export.summary.as_ref().and_then(|summary| summary.export_arn.as_deref()).unwrap_or("(without ARN)")
}
