//! `dynamorph load`: import files in S3 into new tables.

use std::io::Write as _;
use std::path::Path;

use dynamorph::aws::Aws;
use dynamorph::aws::dynamodb::DynamoDb;
use dynamorph::error::{Error, Kind};
use dynamorph::limits::{counted, thousands};
use dynamorph::store::{OutputFolder, S3Folder};
use dynamorph::{LoadEvent, LoadOptions, LoadSummary, TableLoad};

use crate::cli::args::{Args, Load, Output};
use crate::cli::report::aligned;
use crate::cli::run::table_names;
use crate::cli::service::Connections;
use crate::cli::{DONE, FAILED, Failure, interrupt, print};

pub(crate) fn load(args: &Args, command: &Load) -> Result<u8, Failure> {
    let connections = Connections::new(&command.service);
    let folder = match connections.output(&command.files)? {
        OutputFolder::S3(folder) => folder,
        OutputFolder::Local(dir) => return Err(on_this_machine(&dir).into()),
    };
    let (table_names, stop) = (table_names(&command.table)?, interrupt::stop_on_signals());
    let options = LoadOptions { table_names, only: command.only.clone(), stop, ..LoadOptions::default() };
    let summary = follow(args, &connections, &folder, &options).map_err(|error| {
        // What the service refuses, it refuses again; its error says what to do first.
        if can_go_on(&error) { interrupt::how_to_go_on(error) } else { error }
    })?;
    match args.output {
        Output::Text => print(&text(&summary))?,
        Output::Json => print(&format!("{}\n", json(&summary)))?,
    }
    Ok(if summary.ok { DONE } else { FAILED })
}

/// Whether the imports go on and only their following ended, or the service may be asked once more.
pub(crate) fn can_go_on(error: &Error) -> bool {
    matches!(error.kind(), Kind::Interrupted | Kind::Unavailable)
}

/// Loads, and says on stderr how far it is.
pub(crate) fn follow(args: &Args, connections: &Connections, folder: &S3Folder, options: &LoadOptions) -> Result<LoadSummary, Error> {
    let aws = Aws::connect(&connections.options())?;
    let quiet = args.quiet || args.output == Output::Json;
    let mut said = None;
    let mut observer = |event: LoadEvent<'_>| {
        let line = match event {
            LoadEvent::Started { table, arn } => format!("{table}: started {arn}"),
            LoadEvent::Found { table, arn } => format!("{table}: found {arn}, which an earlier command started"),
            LoadEvent::Running { table, processed, items } => format!("{table}: {} of {}", thousands(processed), counted(items, "item")),
            LoadEvent::Ended(table) if table.ok => format!("{}: done", table.table),
            LoadEvent::Ended(table) => format!("{}: failed", table.table),
            _ => return,
        };
        if !quiet && said.as_ref() != Some(&line) {
            // What is done is worth more than what is said of it.
            drop(std::io::stderr().write_all(format!("{line}\n").as_bytes()));
            said = Some(line);
        }
    };
    dynamorph::load(&DynamoDb::connect(aws)?, folder, options, &mut observer)
}

/// Checks that an import can make these tables, before there are files for it.
pub(crate) fn check_new(connections: &Connections, tables: &[&str]) -> Result<(), Error> {
    dynamorph::check_new(&DynamoDb::connect(Aws::connect(&connections.options())?)?, tables)
}

/// `DynamoDB` reads from S3 alone.
fn on_this_machine(dir: &Path) -> Error {
    let dir = dir.display();
    Error::new(Kind::Usage, "an import reads from S3, and this is a folder of this machine")
        .with("found", &dir)
        .with("hint", format_args!("copy it with `aws s3 sync {dir} s3://BUCKET/PREFIX`, then `dynamorph load s3://BUCKET/PREFIX`"))
}

pub(crate) fn json(summary: &LoadSummary) -> String {
    serde_json::to_string_pretty(summary).expect("a summary has only string keys and finite numbers")
}

/// A table a row, then what is wrong. The counts are those of the import, not of what the table holds now.
pub(crate) fn text(summary: &LoadSummary) -> String {
    let row = |table: &TableLoad| {
        [
            table.table.clone(),
            if table.ok { "done" } else { "failed" }.to_owned(),
            format!("{} of {} imported", thousands(table.imported), counted(table.items, "item")),
            format!("{} refused", thousands(table.errors)),
            format!("{} bytes read", thousands(table.processed_bytes)),
        ]
    };
    let mut out = aligned(&summary.tables.iter().map(row).collect::<Vec<_>>());
    for table in &summary.tables {
        let facts = [("found", &table.failure), ("hint", &table.advice)];
        let facts: Vec<_> = facts.iter().filter_map(|(name, text)| text.as_ref().map(|text| format!("  {name}: {text}\n"))).collect();
        if !facts.is_empty() {
            out.push_str(&format!("\n{}: {}\n{}", table.table, table.import_arn, facts.concat()));
        }
    }
    out
}
