//! `dynamorph iam-policy`: what a run must be allowed to do.

use std::collections::BTreeSet;
use std::io::Write as _;

use dynamorph::Plan;
use dynamorph::aws::Aws;
use dynamorph::error::{Error, Kind};
use dynamorph::proof::iam::{Access, ExportAccess, KnownExport, LiveAccess, S3Place, policy};
use dynamorph::source::manifest::{self, Content, Head};
use dynamorph::store::Location;

use crate::cli::args::{Args, IamPolicy};
use crate::cli::check::load;
use crate::cli::run::{hint_at_sink, source_of, table_names};
use crate::cli::service::Connections;
use crate::cli::{DONE, Failure, print};

pub(crate) fn iam_policy(args: &Args, command: &IamPolicy) -> Result<u8, Failure> {
    let plan = load(&command.pipeline)?;
    let connections = Connections::new(&command.service);
    let mut notes = Vec::new();
    let names = tables(&plan, command)?;
    let tagged = plan.targets().tables.iter().zip(&names).filter(|(table, _)| !table.creation.tags.is_empty());
    let tagged = tagged.map(|(_, name)| name.clone()).collect();
    let mut access = Access { tables: names, tagged, undo: command.undo, ..Access::default() };
    sinks(&plan, command, &mut access)?;
    targets(command, &mut access)?;
    let exported = exports(&plan, command, &connections, &mut access, &mut notes)?;
    access.output_key.clone_from(&command.kms_key);
    access.region = command.service.region.clone().or_else(|| Aws::connect(&connections.options()).ok().map(|aws| aws.region().to_owned()));
    access.account.clone_from(&command.account);
    let wants_tables = access.live.is_some() || !access.imports.is_empty() || access.verify_tables;
    if let Some((region, account)) = exported {
        if let (None, Some(chosen)) = (&command.service.region, access.region.as_ref().filter(|chosen| **chosen != region)) {
            notes.push(format!(
                "region {chosen} comes from the environment or the profile, and wins over {region}, that of the exported table; --region says another"
            ));
        }
        if access.region.is_none() {
            notes.push(format!("region {region} is that of the exported table; name that of the target with --region"));
            access.region = Some(region);
        }
        if access.account.is_none() {
            if wants_tables {
                notes.push(format!("account {account} is that of the exported table; name that of the target with --account"));
            }
            access.account = Some(account);
        }
    }
    let policy = policy(&access);
    print(&format!("{}\n", serde_json::to_string_pretty(&policy).expect("a policy has only texts")))?;
    if !args.quiet {
        let mut told = BTreeSet::new();
        let mut text = String::new();
        for note in notes.iter().chain(&policy.notes).filter(|note| told.insert(*note)) {
            text.push_str(&format!("note: {note}\n"));
        }
        // Nobody is left to be told when stderr is closed.
        drop(std::io::stderr().write_all(text.as_bytes()));
    }
    Ok(DONE)
}

/// The names that the tables have in the service.
fn tables(plan: &Plan, command: &IamPolicy) -> Result<Vec<String>, Error> {
    let names = table_names(&command.table)?;
    let tables = &plan.targets().tables;
    if let Some(name) = names.keys().find(|name| tables.iter().all(|table| table.name != **name)) {
        let known: Vec<_> = tables.iter().map(|table| table.name.as_str()).collect();
        return Err(
            Error::new(Kind::Usage, format!("--table renames `{name}`, which is no table of the pipeline")).with("known", known.join(", "))
        );
    }
    Ok(tables.iter().map(|table| names.get(&table.name).unwrap_or(&table.name).clone()).collect())
}

/// Where the run writes.
fn sinks(plan: &Plan, command: &IamPolicy, access: &mut Access) -> Result<(), Error> {
    for sink in &command.to {
        match sink.split_once(':') {
            None if sink == "dynamodb" => {
                access.live = Some(LiveAccess {
                    conditional: command.if_absent || command.if_newer.is_some(),
                    undo_log: command.undo_log,
                    create_tables: command.create_tables,
                });
            }
            Some(("batch", folder)) if !folder.is_empty() && !folder.starts_with("s3://") => {}
            Some((kind @ ("parquet" | "iceberg" | "import"), folder)) if !folder.is_empty() => {
                let Some(place) = in_s3(folder)?.map(below) else { continue };
                if kind == "import" && command.start_import {
                    let data = |table: &str| S3Place { bucket: place.bucket.clone(), key: format!("{}{table}/data/", place.key) };
                    access.imports.extend(plan.targets().tables.iter().map(|table| data(&table.name)));
                }
                access.outputs.push(place);
            }
            _ => {
                let wrong = Error::new(Kind::Usage, "unknown sink").with("found", sink);
                return Err(hint_at_sink(wrong.with("expected", "parquet:DIR, iceberg:DIR, import:DIR, batch:DIR or dynamodb"), sink));
            }
        }
    }
    let live = [
        (command.if_absent, "--if-absent"),
        (command.if_newer.is_some(), "--if-newer"),
        (command.create_tables, "--create-tables"),
        (command.undo_log, "--undo-log"),
    ];
    if let (None, Some((_, option))) = (access.live, live.iter().find(|(given, _)| *given)) {
        return Err(Error::new(Kind::Usage, format!("{option} says how live tables are written, and there is no --to dynamodb"))
            .with("hint", format_args!("add --to dynamodb, or take {option} away")));
    }
    if command.start_import && access.imports.is_empty() {
        return Err(Error::new(Kind::Usage, "--start-import needs files in S3").with("expected", "--to import:s3://BUCKET/PREFIX"));
    }
    Ok(())
}

/// What the run's outcome is compared with.
fn targets(command: &IamPolicy, access: &mut Access) -> Result<(), Error> {
    for target in &command.verify_against {
        let place = match target.split_once(':') {
            None if target == "dynamodb" => {
                access.verify_tables = true;
                continue;
            }
            Some(("export", place)) => place.split_once("=s3://").map_or(place, |(name, _)| &place[name.len() + 1..]),
            Some(("parquet" | "import" | "batch", folder)) => folder,
            _ => {
                return Err(Error::new(Kind::Usage, "unknown target")
                    .with("found", target)
                    .with("expected", "dynamodb, import:DIR, parquet:DIR, batch:DIR or export:DIR"));
            }
        };
        access.verify_files.extend(in_s3(place)?.map(below));
    }
    Ok(())
}

/// What the run reads. Gives region and account of the first table that a manifest names.
fn exports(
    plan: &Plan,
    command: &IamPolicy,
    connections: &Connections,
    access: &mut Access,
    notes: &mut Vec<String>,
) -> Result<Option<(String, String)>, Error> {
    let inputs = command.from.iter().map(|text| source_of(plan, text)).collect::<Result<Vec<_>, _>>()?;
    let mut table = None;
    for (source, text) in &inputs {
        let head = match in_s3(text)? {
            None => manifest::head(&connections.location(text)?, &command.reading.options())?,
            Some(named) => {
                let read = connections.location(text).and_then(|location| manifest::head(&location, &command.reading.options()));
                let one_of_several = inputs.iter().filter(|(other, _)| other == source).count() > 1;
                let (known, head) = match read {
                    Ok(head) => (Some(known(head.as_ref())), head),
                    Err(error) => {
                        notes.push(format!("the manifest of {text} cannot be read now: {}", error.message()));
                        (None, None)
                    }
                };
                access.exports.push(ExportAccess { named, known, one_of_several });
                head
            }
        };
        table = table.or_else(|| region_and_account(head?.summary.table_arn.as_deref()?));
    }
    Ok(table)
}

fn known(head: Option<&Head>) -> KnownExport {
    let Some(Head { folder, summary, checked }) = head else {
        return KnownExport { folder: None, incremental: false, kms_key: None, checked: true };
    };
    KnownExport {
        folder: Some(key_of(folder)),
        incremental: matches!(summary.content, Content::Changes(_)),
        kms_key: summary.kms_key.clone(),
        checked: *checked,
    }
}

/// The key of a place in S3.
fn key_of(location: &Location) -> String {
    let text = location.to_string();
    let key = text.strip_prefix("s3://").and_then(|rest| rest.split_once('/')).map_or("", |(_, key)| key);
    key.to_owned()
}

/// Region and account in `arn:aws:dynamodb:eu-west-1:111122223333:table/docs`.
fn region_and_account(arn: &str) -> Option<(String, String)> {
    let mut parts = arn.split(':').skip(3).map(str::to_owned);
    Some((parts.next()?, parts.next()?)).filter(|(region, account)| !region.is_empty() && !account.is_empty())
}

/// What `s3://BUCKET/KEY` names, without `/` at its end; `None` for any other text.
fn in_s3(text: &str) -> Result<Option<S3Place>, Error> {
    let Some(rest) = text.strip_prefix("s3://") else { return Ok(None) };
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(Error::new(Kind::Usage, "the bucket is missing").with("found", text).with("expected", "s3://BUCKET/PREFIX"));
    }
    Ok(Some(S3Place { bucket: bucket.to_owned(), key: key.trim_end_matches('/').to_owned() }))
}

/// All that lies below a place.
fn below(place: S3Place) -> S3Place {
    let S3Place { bucket, key } = place;
    S3Place { bucket, key: if key.is_empty() { key } else { format!("{key}/") } }
}
