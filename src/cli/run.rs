//! `dynamorph run`: read, carry, write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dynamorph::error::{Error, Kind};
use dynamorph::limits::is_table_name;
use dynamorph::sink::batch_write::{self, Condition};
use dynamorph::store::{Location, OutputFolder, S3Folder};
use dynamorph::{Destination, Input, Job, LoadOptions, Options, Plan};

use crate::cli::args::{Args, Live, Output, Run};
use crate::cli::check;
use crate::cli::progress::Progress;
use crate::cli::schema::dialect;
use crate::cli::service::Connections;
use crate::cli::{DONE, FAILED, Failure, REJECTS, interrupt, load, print, report};

pub(crate) fn run(args: &Args, command: &Run) -> Result<u8, Failure> {
    let plan = check::load(&command.pipeline)?;
    let connections = Connections::new(&command.service);
    let inputs = command.from.iter().map(|text| input(&plan, text, &connections)).collect::<Result<Vec<_>, _>>()?;
    let work = command.work.clone().unwrap_or_else(|| default_work(&command.pipeline, &inputs));
    let destinations = command.to.iter().map(|text| destination(text, command, &work, &connections)).collect::<Result<Vec<_>, _>>()?;
    check_live(command)?;
    let names = table_names(&command.table)?;
    let import = command.import.start_import.then(|| only_import(&destinations)).transpose()?;
    if import.is_some() {
        let tables = plan.targets().tables.iter().map(|table| names.get(&table.name).unwrap_or(&table.name).as_str());
        load::check_new(&connections, &tables.collect::<Vec<_>>())?;
    }
    let stop = interrupt::stop_on_signals();
    let options = Options {
        destinations,
        overwrite: command.overwrite,
        append: command.append,
        import: command.import.options(),
        table_names: names,
        jobs: jobs(command.jobs),
        limit: command.limit,
        only: command.only.clone(),
        reading: command.reading.options(),
        work: work.clone(),
        restart: command.restart,
        unit_bytes: command.unit_size as u64,
        schema: command.schema.as_deref().map(schema).transpose()?,
        schema_out: command.schema_out.clone(),
        dialect: command.dialect.map(dialect),
        parquet: command.parquet.options(),
        stop: stop.clone(),
    };
    let mut progress = Progress::new(args.quiet || args.output == Output::Json);
    let summary = Job::open(plan, &inputs, options)?.run(&mut progress).map_err(interrupt::how_to_go_on)?;
    drop(progress);
    let too_many = summary.rejects.count > command.max_rejects;
    // The text first, since an import takes a while.
    if args.output == Output::Text {
        print(&report::text(&summary, &work, args.verbose > 0))?;
    }
    let loaded = match import {
        Some(_) if too_many => None,
        Some(folder) => {
            // The run is done, so another command goes on.
            let next = |error: Error| {
                let when = if load::can_go_on(&error) { "goes on with" } else { "the run is done; when this is mended" };
                error.with(when, format_args!("dynamorph load {folder}"))
            };
            Some(load::follow(args, &connections, &folder, &LoadOptions { stop, ..LoadOptions::default() }).map_err(next)?)
        }
        None => None,
    };
    match (args.output, &loaded) {
        (Output::Text, Some(loaded)) => print(&format!("\n{}", load::text(loaded)))?,
        (Output::Text, None) if command.import.start_import => {
            print("\nno import was started, since there are more rejects than --max-rejects; `dynamorph load` starts it\n")?;
        }
        (Output::Text, None) => {}
        (Output::Json, _) => print(&format!("{}\n", report::json(&summary, loaded.as_ref())))?,
    }
    Ok(match loaded {
        _ if too_many => REJECTS,
        Some(loaded) if !loaded.ok => FAILED,
        _ => DONE,
    })
}

/// The text of a schema.
fn schema(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path)
        .map_err(|error| Error::new(Kind::Input, "cannot read the schema").with("file", path.display()).caused_by(error))
}

/// The folder that --start-import means.
fn only_import(destinations: &[Destination]) -> Result<S3Folder, Error> {
    let folders = destinations.iter().filter_map(|destination| match destination {
        Destination::Import(OutputFolder::S3(folder)) => Some(folder),
        _ => None,
    });
    match folders.collect::<Vec<_>>()[..] {
        [folder] => Ok(folder.clone()),
        _ => Err(Error::new(Kind::Usage, "--start-import imports what one --to import:s3://BUCKET/PREFIX writes")
            .with("hint", "name one such sink, or take --start-import away")),
    }
}

/// `.dynamorph/PIPELINE`; where rejects of a work folder are what is read, the name of that folder with `.replay` behind it.
fn default_work(pipeline: &Path, inputs: &[Input]) -> PathBuf {
    let paths = inputs.iter().flat_map(|input| &input.locations).filter_map(Location::local);
    let paths: Vec<_> = paths.filter_map(|path| path.canonicalize().ok()).collect();
    let mut work = match paths.iter().find_map(|path| work_of_rejects(path)) {
        Some(work) => replay_of(work),
        None => Path::new(".dynamorph").join(pipeline.file_stem().unwrap_or_else(|| "pipeline".as_ref())),
    };
    // Rejects of a replay go one folder further.
    while let Ok(folder) = work.canonicalize()
        && paths.iter().any(|path| path.starts_with(&folder))
    {
        work = replay_of(&work);
    }
    // A short name, where the folder lies below this one.
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    match here.ok().as_ref().and_then(|here| work.strip_prefix(here).ok()) {
        Some(short) if !short.as_os_str().is_empty() => short.to_owned(),
        _ => work,
    }
}

/// The work folder whose rejects lie at `path`, or whose folder of rejects that is.
fn work_of_rejects(path: &Path) -> Option<&Path> {
    path.ancestors().find_map(|folder| {
        let name = folder.file_name()?.to_str()?;
        let work = folder.parent()?;
        ((name == "rejects" || name.starts_with("rejects.")) && work.join("dynamorph.lock").is_file()).then_some(work)
    })
}

fn replay_of(work: &Path) -> PathBuf {
    let mut replay = work.to_owned();
    replay.as_mut_os_string().push(".replay");
    replay
}

/// As many threads as there are processors unless told otherwise.
pub(crate) fn jobs(jobs: Option<u16>) -> usize {
    jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// `EXPORT`, or `NAME=EXPORT` where the pipeline's sources have names.
pub(crate) fn input(plan: &Plan, text: &str, connections: &Connections) -> Result<Input, Error> {
    let (source, path) = source_of(plan, text)?;
    Ok(Input { source: source.map(str::to_owned), locations: vec![connections.location(path)?] })
}

/// The name of the source and the place that `--from` says.
pub(crate) fn source_of<'t>(plan: &Plan, text: &'t str) -> Result<(Option<&'t str>, &'t str), Error> {
    let named = plan.sources().iter().any(|source| source.name.is_some());
    match text.split_once('=') {
        Some((name, path)) if named => Ok((Some(name), path)),
        Some((name, rest)) if !Path::new(text).exists() && Path::new(rest).exists() => {
            Err(Error::new(Kind::Usage, format!("--from names source `{name}`, but the pipeline's only source has no name"))
                .with("hint", format!("write --from {rest}")))
        }
        _ => Ok((None, text)),
    }
}

fn destination(text: &str, command: &Run, work: &Path, connections: &Connections) -> Result<Destination, Error> {
    let expected = "parquet:DIR, iceberg:DIR, import:DIR, batch:DIR or dynamodb";
    let wrong = |found: &str| Error::new(Kind::Usage, "unknown sink").with("found", found).with("expected", expected);
    match text.split_once(':') {
        None if text == "dynamodb" => Ok(Destination::DynamoDb(Box::new(live(&command.live, work, connections)))),
        Some((kind, "")) if kind != "dynamodb" => Err(wrong(text).with("hint", "a folder is missing after the colon")),
        Some(("parquet", dir)) => connections.output(dir).map(Destination::Parquet),
        Some(("iceberg", dir)) => connections.output(dir).map(Destination::Iceberg),
        Some(("import", dir)) => connections.output(dir).map(Destination::Import),
        Some(("batch", dir)) if dir.starts_with("s3://") => Err(Error::new(Kind::Usage, "request files are not written to S3")
            .with("found", text)
            .with("hint", "write them to a folder: aws dynamodb batch-write-item reads them from there")),
        Some(("batch", dir)) => Ok(Destination::Batch(dir.into())),
        _ => Err(hint_at_sink(wrong(text), text)),
    }
}

/// Adds to the error what was most likely meant by a sink or target that there is not.
pub(crate) fn hint_at_sink(error: Error, text: &str) -> Error {
    match text.split_once(':') {
        Some(("dynamodb", "")) => error.with("hint", "write dynamodb, without a colon"),
        Some(("dynamodb", table)) => error.with(
            "hint",
            format_args!("write dynamodb; the pipeline says which tables, and --table NAME={table} calls its table NAME {table}"),
        ),
        Some(("s3", _)) => error.with("hint", format_args!("say what the files are: parquet:{text} or import:{text}")),
        _ => error,
    }
}

/// What is said of live writing.
fn live(live: &Live, work: &Path, connections: &Connections) -> batch_write::Options {
    batch_write::Options {
        aws: connections.options(),
        max_write_units: live.max_write_units,
        ramp: live.ramp,
        condition: match &live.if_newer {
            Some(attribute) => Condition::IfNewer(attribute.clone()),
            None if live.if_absent => Condition::IfAbsent,
            None => Condition::None,
        },
        create_tables: live.create_tables,
        undo_log: live.undo_log.then(|| work.join("undo")),
    }
}

/// An option that nothing heeds is a mistake, most likely a forgotten sink.
fn check_live(command: &Run) -> Result<(), Error> {
    match command.live.given() {
        Some(option) if command.to.iter().all(|sink| sink != "dynamodb") => {
            Err(Error::new(Kind::Usage, format!("{option} says how live tables are written, and there is no --to dynamodb"))
                .with("hint", format_args!("add --to dynamodb, or take {option} away")))
        }
        _ => Ok(()),
    }
}

/// The real names of tables.
pub(crate) fn table_names(pairs: &[String]) -> Result<BTreeMap<String, String>, Error> {
    let mut names = BTreeMap::new();
    for pair in pairs {
        match pair.split_once('=') {
            Some((name, real)) if !name.is_empty() && !real.is_empty() => {
                if !is_table_name(real) {
                    return Err(Error::new(Kind::Usage, format!("`{real}` cannot be the name of a table"))
                        .with("found", format_args!("--table {pair}"))
                        .with("expected", "3 to 255 of a-z A-Z 0-9 _ . -"));
                }
                if names.insert(name.to_owned(), real.to_owned()).is_some() {
                    return Err(Error::new(Kind::Usage, format!("--table names `{name}` twice")).with("found", pair));
                }
            }
            _ => {
                return Err(Error::new(Kind::Usage, "--table takes NAME=REAL")
                    .with("found", pair)
                    .with("expected", "for example docs=prod-docs"));
            }
        }
    }
    Ok(names)
}
