//! `dynamorph undo`: take a live run back.

use std::fmt::Write as _;

use dynamorph::limits::thousands;
use dynamorph::{UndoCounts, UndoOptions, Undone, undo as take_back};

use crate::cli::args::{self, Args, Output};
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
    let undone = take_back(&options).map_err(interrupt::how_to_go_on)?;
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
    let heads = ["table", "keys", "restored", "removed", "unchanged", "already undone", "changed since", "already gone"];
    let row = |name: &str, counts: &UndoCounts| {
        let UndoCounts { keys, restored, removed, unchanged, already_undone, changed_since, already_gone } = counts;
        let numbers = [keys, restored, removed, unchanged, already_undone, changed_since, already_gone];
        let mut cells = vec![name.to_owned()];
        cells.extend(numbers.map(|number| thousands(*number)));
        <[String; 8]>::try_from(cells).unwrap_or_default()
    };
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(undone.tables.iter().map(|(table, counts)| row(table, counts)));
    let total = undone.total();
    rows.push(row("total", &total));
    let mut out = aligned(&rows);
    if undone.dry_run {
        out.push_str("\nnothing was changed (--dry-run)\n");
    }
    if total.left_alone() > 0 {
        let keys = if total.left_alone() == 1 { "1 item was".to_owned() } else { format!("{} items were", thousands(total.left_alone())) };
        let _ = write!(out, "\n{keys} left alone: not what the run wrote any more");
        if let Some(left) = &undone.left {
            let _ = write!(out, "; see {}", left.display());
        }
        out.push('\n');
    }
    out
}
