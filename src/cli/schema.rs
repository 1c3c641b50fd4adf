//! `dynamorph schema ddl`: the SQL that brings datasets into an engine.

use std::path;

use dynamorph::error::{Error, Kind};
use dynamorph::sink::parquet::{Dialect, Manifest, ddl as statements};

use crate::cli::args::{self, Args, Output};
use crate::cli::service::Connections;
use crate::cli::{DONE, Failure, REJECTS, print};

pub(crate) fn schema(args: &Args, command: &args::Schema) -> Result<u8, Failure> {
    match command {
        args::Schema::Ddl(command) => ddl(args, command),
    }
}

fn ddl(args: &Args, command: &args::Ddl) -> Result<u8, Failure> {
    let folder = Connections::new(&command.service).location(&command.folder)?;
    let manifest = Manifest::read(&folder)?;
    let location = match (&command.location, folder.local()) {
        (Some(location), _) => location.clone(),
        (None, Some(folder)) => {
            let no_path = || Error::new(Kind::Usage, "the folder has no path as a text").with("folder", folder.display());
            let whole = path::absolute(folder).map_err(|cause| no_path().caused_by(cause))?;
            whole.to_str().ok_or_else(no_path)?.to_owned()
        }
        (None, None) => command.folder.clone(),
    };
    let ddl = statements(&manifest, dialect(command.dialect), &location)?;
    match args.output {
        Output::Text => print(&ddl.sql)?,
        Output::Json => {
            let json = serde_json::to_string_pretty(&ddl).expect("the statements have only string keys");
            print(&format!("{json}\n"))?;
        }
    }
    if !args.quiet {
        ddl.notes.iter().for_each(|note| eprintln!("note: {note}"));
    }
    Ok(if ddl.refused > 0 { REJECTS } else { DONE })
}

pub(crate) fn dialect(dialect: args::Dialect) -> Dialect {
    match dialect {
        args::Dialect::Duckdb => Dialect::DuckDb,
        args::Dialect::Spark => Dialect::Spark,
        args::Dialect::Athena => Dialect::Athena,
        args::Dialect::Redshift => Dialect::Redshift,
        args::Dialect::Snowflake => Dialect::Snowflake,
        args::Dialect::Bigquery => Dialect::BigQuery,
        args::Dialect::Clickhouse => Dialect::ClickHouse,
    }
}
