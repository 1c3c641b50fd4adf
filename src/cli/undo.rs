//! `dynamorph undo`: take a live run back.

use std::fmt::Write as _;

use dynamorph::error::Kind;
use dynamorph::limits::thousands;
use dynamorph::{UndoCounts, UndoOptions, Undone, undo as take_back};

use crate::cli::args::{self, Args, Output};
use crate::cli::progress::Progress;
use crate::cli::report::aligned;
use crate::cli::service::Connections;
use crate::cli::{DONE, Failure, REJECTS, interrupt, print};

/// Requests under way unless told otherwise; they mostly wait.
const JOBS: usize = 16;

pub(crate) fn undo(args: &Args, command: &args::Undo) -> Result<u8, Failure> {
    let options = UndoOptions {
        work: command.work.clone(),
        log: command.log.clone(),
        service: Connections::new(&command.service).options(),
        tables: command.table.clone(),
        dry_run: command.dry_run,
        jobs: command.jobs.map_or(JOBS, usize::from),
    };
    let mut progress = Progress::new(args.quiet || args.output == Output::Json);
    let undone = take_back(&options, &mut progress).map_err(|error| match error.kind() {
        // A request that was refused is refused again until somebody does something about it.
        Kind::Service => error,
        _ => interrupt::how_to_go_on(error),
    })?;
    match args.output {
        Output::Text => print(&text(&undone))?,
        Output::Json => {
            let json = serde_json::to_string_pretty(&undone).expect("the counts have only string keys");
            print(&format!("{json}\n"))?;
        }
    }
    Ok(if undone.total().left_alone() > 0 { REJECTS } else { DONE })
}

fn text(undone: &Undone) -> String {
    let heads = ["table", "keys", "restored", "removed", "unchanged", "as before", "not there", "changed since", "already gone"];
    let row = |name: &str, counts: &UndoCounts| {
        let UndoCounts { keys, restored, removed, unchanged, as_before, not_there, changed_since, already_gone } = counts;
        let numbers = [keys, restored, removed, unchanged, as_before, not_there, changed_since, already_gone];
        let mut cells = vec![name.to_owned()];
        cells.extend(numbers.map(|number| thousands(*number)));
        <[String; 9]>::try_from(cells).unwrap_or_default()
    };
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(undone.tables.iter().map(|(table, counts)| row(table, counts)));
    let total = undone.total();
    rows.push(row("total", &total));
    let mut out = aligned(&rows);
    let items = |count: u64| if count == 1 { "1 item".to_owned() } else { format!("{} items", thousands(count)) };
    let taken_back = items(total.taken_back());
    if undone.dry_run {
        let _ = writeln!(out, "\nnothing was changed (--dry-run): {taken_back} would be taken back; the tables themselves stay");
    } else {
        let _ = writeln!(out, "\n{taken_back} taken back; the tables themselves stay");
    }
    if total.left_alone() > 0 {
        let were = if total.left_alone() == 1 { "was" } else { "were" };
        let _ = write!(out, "{} {were} left alone: not what the run wrote any more", items(total.left_alone()));
        if let Some(left) = &undone.left {
            let _ = write!(out, "; see {}", left.display());
        }
        out.push('\n');
    }
    out
}
