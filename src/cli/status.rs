//! `dynamorph status`: where a run is.

use std::fmt::Write as _;

use dynamorph::limits::thousands;
use dynamorph::{Status, status as look};

use crate::cli::args::{self, Args, Output};
use crate::cli::{DONE, Failure, print};

pub(crate) fn status(args: &Args, command: &args::Status) -> Result<u8, Failure> {
    let status = look(&command.work)?;
    match args.output {
        Output::Text => print(&text(&status))?,
        Output::Json => {
            let json = serde_json::to_string_pretty(&status).expect("a status has only string keys and finite numbers");
            print(&format!("{json}\n"))?;
        }
    }
    Ok(DONE)
}

fn text(status: &Status) -> String {
    let mut out = match status.state {
        "stopped" => "stopped; the same command goes on\n".to_owned(),
        state => format!("{state}\n"),
    };
    let _ = writeln!(out, "to: {}", status.sinks.join(", "));
    // Of a run that was stopped the units tell what is done; what it had read beyond them is done again.
    if let Some(pass) = status.pass.as_ref().filter(|_| status.state == "running") {
        let _ = write!(out, "{pass}: {}", thousands(status.items));
        if let Some(all) = status.items_in_all {
            let percent = status.items.saturating_mul(100).checked_div(all).unwrap_or(100);
            let _ = write!(out, " of {} items ({percent} %)", thousands(all));
        } else {
            out.push_str(" items");
        }
        if let Some(taken) = status.items_taken {
            let _ = write!(out, " read, {} taken by live tables since the run began or went on", thousands(taken));
        }
        if let Some(rate) = status.items_per_second {
            let _ = write!(out, ", {rate:.0} items/s");
        }
        if let Some(left) = status.seconds_left {
            let _ = write!(out, ", about {left:.0} s left");
        }
        out.push('\n');
    }
    if let Some(silent) = status.silent_seconds.filter(|seconds| *seconds > 5) {
        let _ = writeln!(out, "nothing was read for {silent} s");
    }
    let total = &status.total;
    let _ = writeln!(
        out,
        "{} of {} units done: read {}, written {}, dropped {}, rejected {}",
        status.units_done,
        status.units,
        thousands(total.read),
        thousands(total.written),
        thousands(total.dropped),
        thousands(total.rejected)
    );
    for (rule, count) in &status.rejects {
        let _ = writeln!(out, "  {rule}  {}", thousands(*count));
    }
    out
}
