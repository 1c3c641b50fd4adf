//! Where the run of an undo log wrote, and whether that is still there.
//!
//! The log says it in `target.json`, which the run writes before its first put. Whoever has another region in the environment than at the
//! time of the run would otherwise take back tables of the same names that the run never saw.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use crate::aws;
use crate::aws::dynamodb::DynamoDb;
use crate::error::{Error, Kind, Result};

/// The file in the folder of the log.
const TARGET: &str = "target.json";

/// Where a run wrote.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Target {
    region: String,
    /// The address, where it was not the service's own.
    endpoint: Option<String>,
    pub(super) tables: Vec<Table>,
}

/// A table that a run wrote to. What is not known is not compared.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Table {
    /// In the service.
    pub(super) name: String,
    arn: Option<String>,
    /// A table that is deleted and made again has another one.
    id: Option<String>,
}

impl Table {
    /// A table of which nothing but its name is known.
    pub(super) fn unknown(name: String) -> Self {
        Self { name, arn: None, id: None }
    }
}

/// What the log in this folder says; `None` where it has no such file.
///
/// # Errors
/// Kind `Input` when the file cannot be read.
pub(super) fn read(folder: &Path) -> Result<Option<Target>> {
    let path = folder.join(TARGET);
    let failed = || {
        Error::new(Kind::Input, "cannot read where the run wrote")
            .with("file", path.display())
            .with("expected", r#"{"region":"eu-west-1","endpoint":null,"tables":[{"name":"docs","arn":null,"id":null}]}"#)
    };
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| failed().with("found", &error).caused_by(error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed().caused_by(error)),
    }
}

/// How the place is reached where the run wrote. What the environment says of region and address does not count.
///
/// # Errors
/// Kind `Usage` when the options name another region or address than the log, and when nothing says the region.
pub(super) fn reached(options: &aws::Options, target: Option<&Target>) -> Result<aws::Options> {
    let Some(target) = target else {
        return match options.region {
            Some(_) => Ok(options.clone()),
            None => Err(Error::new(Kind::Usage, "the undo log does not say where the run wrote")
                .with("expected", format_args!("{TARGET}, which an older version did not write"))
                .with("hint", "name the region of the run with --region, and its address with --endpoint-url if it had one")),
        };
    };
    let plain = |url: &str| url.trim_end_matches('/').to_owned();
    let other_region = options.region.as_ref().is_some_and(|region| *region != target.region);
    let other_address = options.endpoint_url.as_deref().is_some_and(|url| target.endpoint.as_deref().map(plain) != Some(plain(url)));
    if other_region || other_address {
        let place = |region: &str, endpoint: Option<&str>| match endpoint {
            Some(url) => format!("region {region} at {url}"),
            None => format!("region {region} at the service's own address"),
        };
        let region = options.region.as_deref().unwrap_or(&target.region);
        let endpoint = options.endpoint_url.as_deref().or(target.endpoint.as_deref());
        return Err(Error::new(Kind::Usage, "the run wrote to another place than the command line names")
            .with("the run", place(&target.region, target.endpoint.as_deref()))
            .with("the command line", place(region, endpoint))
            .with("hint", "leave --region and --endpoint-url away: the undo log knows where the run wrote"));
    }
    Ok(aws::Options {
        region: Some(target.region.clone()),
        endpoint_url: target.endpoint.clone(),
        own_address: target.endpoint.is_none(),
        ..options.clone()
    })
}

/// Those of the tables that were asked for; all where none was named.
///
/// # Errors
/// Kind `Usage` when one is asked for that the log does not name.
pub(super) fn chosen(mut tables: Vec<Table>, asked: &[String]) -> Result<Vec<Table>> {
    if let Some(name) = asked.iter().find(|name| tables.iter().all(|table| table.name != **name)) {
        let names = tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(Error::new(Kind::Usage, format!("the undo log names no table `{name}`"))
            .with("found", names)
            .with("expected", "the names that tables have in the service, not those of the pipeline"));
    }
    tables.retain(|table| asked.is_empty() || asked.contains(&table.name));
    Ok(tables)
}

/// Looks at every table before anything is changed, and gives the tables and their place in words.
///
/// # Errors
/// Kind `Usage` when a table is missing or is another one than the run wrote to.
pub(super) fn compare(service: &DynamoDb, tables: &[Table]) -> Result<String> {
    let mut account = None;
    for table in tables {
        let about = |message| Error::new(Kind::Usage, message).with("table", &table.name).with("at", service.place());
        let Some(found) = service.describe_table(&table.name)? else {
            let error = about("the target table does not exist").with("expected", "the table that the run wrote to");
            return Err(if tables.len() > 1 { error.with("hint", "name the tables that are still there with --table") } else { error });
        };
        let (arn, id) = (found.table_arn(), found.table_id());
        let same = |known: Option<&str>, found: Option<&str>| known.is_none() || known == found;
        if !same(table.arn.as_deref(), arn) || !same(table.id.as_deref(), id) {
            return Err(about("the table is another one than the run wrote to")
                .with("the run", in_words(table.arn.as_deref(), table.id.as_deref()))
                .with("found", in_words(arn, id))
                .with("hint", "credentials may be of another account, or the table was deleted and made again"));
        }
        account = account.or_else(|| arn?.split(':').nth(4).filter(|account| !account.is_empty()).map(str::to_owned));
    }
    let names = tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ");
    let account = account.map(|account| format!("account {account}, ")).unwrap_or_default();
    Ok(format!("table{} {names} in {account}{}", if tables.len() == 1 { "" } else { "s" }, service.place()))
}

fn in_words(arn: Option<&str>, id: Option<&str>) -> String {
    format!("{} with id {}", arn.unwrap_or("(no ARN)"), id.unwrap_or("(none)"))
}

/// A put into a table that was not looked at.
pub(super) fn unknown(file: &Path, table: &str) -> Error {
    Error::new(Kind::Input, format!("the undo log has a put into table `{table}`, which its {TARGET} does not name"))
        .with("file", file.display())
        .with("hint", "the log was changed after the run, or holds files of another one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(endpoint: Option<&str>) -> Target {
        Target { region: "eu-west-1".to_owned(), endpoint: endpoint.map(str::to_owned), tables: Vec::new() }
    }

    fn options(region: Option<&str>, endpoint_url: Option<&str>) -> aws::Options {
        aws::Options { region: region.map(str::to_owned), endpoint_url: endpoint_url.map(str::to_owned), ..aws::Options::default() }
    }

    #[test]
    fn region_and_address_are_those_of_the_run_and_no_others_can_be_named() {
        let local = Some("http://localhost:8000");
        for (endpoint, region, url) in [
            (None, None, None),
            (None, Some("eu-west-1"), None),
            (local, None, None),
            (local, Some("eu-west-1"), Some("http://localhost:8000/")),
        ] {
            let reached = reached(&options(region, url), Some(&target(endpoint))).unwrap();
            assert_eq!((reached.region.as_deref(), reached.endpoint_url.as_deref()), (Some("eu-west-1"), endpoint));
            // Without an address, none of the environment counts.
            assert_eq!(reached.own_address, endpoint.is_none());
        }
        for (endpoint, region, url) in
            [(None, Some("eu-west-2"), None), (None, None, local), (local, None, Some("http://localhost:8001")), (local, Some("x"), local)]
        {
            let error = reached(&options(region, url), Some(&target(endpoint))).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage);
            let text = error.to_string();
            assert!(text.contains("the run: region eu-west-1") && text.contains("the command line: region "), "{text}");
        }
    }

    #[test]
    fn a_log_that_does_not_say_where_the_run_wrote_needs_the_region() {
        let error = reached(&options(None, Some("http://localhost:8000")), None).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains("--region"), "{error}");
        let reached = reached(&options(Some("eu-west-1"), None), None).unwrap();
        assert_eq!((reached.region.as_deref(), reached.own_address), (Some("eu-west-1"), false));
    }

    #[test]
    fn what_is_not_known_of_a_table_may_be_null() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
        let path = folder.path().join(TARGET);
        let tables = r#""tables":[{"name":"docs","arn":null,"id":null}]"#;
        fs::write(&path, format!(r#"{{"region":"eu-west-1","endpoint":null,{tables}}}"#)).unwrap();
        let expected = Target { tables: vec![Table::unknown("docs".to_owned())], ..target(None) };
        assert_eq!(read(folder.path()).unwrap(), Some(expected));
        fs::write(&path, "{").unwrap();
        assert_eq!(read(folder.path()).unwrap_err().kind(), Kind::Input);
    }
}
