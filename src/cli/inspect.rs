//! `dynamorph inspect`: what is in an export.

use std::fmt::Write;

use dynamorph::error::{Error, Kind};
use dynamorph::proof::inspect::Options;

use crate::cli::args::{Args, Inspect, Output};
use crate::cli::progress::Progress;
use crate::cli::run::jobs;
use crate::cli::service::Connections;
use crate::cli::{DONE, Failure, print};

pub(crate) fn inspect(args: &Args, command: &Inspect) -> Result<u8, Failure> {
    if command.sort_key.is_some() && command.partition_key.is_none() {
        return Err(Error::new(Kind::Usage, "--sort-key needs --partition-key")
            .with("hint", "name both, or neither to have them guessed")
            .into());
    }
    let options = Options {
        partition: command.partition_key.clone(),
        sort: command.sort_key.clone(),
        type_attribute: command.type_attribute.clone(),
    };
    let connections = Connections::new(&command.service);
    let locations = command.exports.iter().map(|text| connections.location(text)).collect::<Result<Vec<_>, _>>()?;
    let mut progress = Progress::new(args.quiet || args.output == Output::Json);
    let inspection =
        dynamorph::inspect(&locations, &command.reading.options(), &options, jobs(command.jobs), command.limit, &mut progress)?;
    drop(progress);
    match args.output {
        Output::Json => {
            let json = serde_json::to_string_pretty(&inspection).expect("an inspection has only string keys and finite numbers");
            print(&format!("{json}\n"))?;
        }
        Output::Text => {
            let mut text = String::new();
            for export in &inspection.exports {
                if let (Some("incremental"), from, to, view) = (export.kind, &export.from_time, &export.to_time, export.view) {
                    let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "?".to_owned());
                    let _ = writeln!(text, "changes from {} until before {} ({})", time(from), time(to), view.unwrap_or_default());
                }
            }
            if !inspection.changes.is_empty() {
                let counts: Vec<_> = inspection.changes.iter().map(|(op, count)| format!("{op} {count}")).collect();
                let _ = writeln!(text, "{}; what follows describes the new images, and of deletes what is known\n", counts.join(", "));
            }
            text.push_str(&inspection.report.to_string());
            if let Some(first) = &inspection.first_unreadable {
                let _ = match inspection.unreadable {
                    1 => writeln!(text, "\n1 line is no item: {first}"),
                    many => writeln!(text, "\n{many} lines are no items; the first is {first}"),
                };
            }
            text.push_str("\nfiles\n");
            for (number, name) in (1..).zip(&inspection.files) {
                let _ = writeln!(text, "  {number}  {name}");
            }
            print(&text)?;
        }
    }
    Ok(DONE)
}
