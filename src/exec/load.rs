//! Loads files for import from S3: starts an import for each table, follows it, and compares its counts with those of the files.
//!
//! Nothing is kept on this machine. The token of an import is made from the request and the objects, so that the same call finds the
//! import that an earlier one started, and another request is another import.

use std::collections::BTreeMap;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::TableStatus;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::aws::dynamodb::DynamoDb;
use crate::aws::dynamodb::import::{Import, Started, State};
use crate::error::{Error, Kind, Result};
use crate::exec::stop::Stop;
use crate::limits::{counted, thousands};
use crate::sink::import_files::{COUNTS, Counts, TableCounts};
use crate::store::S3Folder;

/// How often a wait looks whether it was asked to stop.
const GLANCE: Duration = Duration::from_millis(100);

/// What a load may be told.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Real table names by their name in the pipeline; they win over those in the files.
    pub table_names: BTreeMap<String, String>,
    /// Load these tables only, by their name in the pipeline. Empty: all.
    pub only: Vec<String>,
    /// The pause after the first look at the imports; it grows by half with each.
    pub first_pause: Duration,
    /// The longest pause between two looks.
    pub longest_pause: Duration,
    /// Asks the load to stop following; the imports go on.
    pub stop: Stop,
}

impl Default for LoadOptions {
    /// An import of one item takes some two minutes, a large one hours.
    fn default() -> Self {
        Self {
            table_names: BTreeMap::new(),
            only: Vec::new(),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            stop: Stop::default(),
        }
    }
}

/// What a load tells while it goes on.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum LoadEvent<'l> {
    /// An import was started.
    Started {
        /// The table's name in the service.
        table: &'l str,
        /// The import.
        arn: &'l str,
    },
    /// An import that was started before was found.
    Found {
        /// The table's name in the service.
        table: &'l str,
        /// The import.
        arn: &'l str,
    },
    /// A running import was looked at.
    Running {
        /// The table's name in the service.
        table: &'l str,
        /// Items read. The service may count only at the end.
        processed: u64,
        /// Items in the files.
        items: u64,
    },
    /// An import ended.
    Ended(&'l TableLoad),
}

/// A load that came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadSummary {
    /// Whether each table has all its items.
    pub ok: bool,
    /// A table a row.
    pub tables: Vec<TableLoad>,
}

/// A table that was loaded. The field names are stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableLoad {
    /// The table's name in the service.
    pub table: String,
    /// The import.
    pub import_arn: String,
    /// Whether the table has all its items.
    pub ok: bool,
    /// Items in the files.
    pub items: u64,
    /// Items that the import read.
    pub processed: u64,
    /// Items that the import wrote.
    pub imported: u64,
    /// Items that it refused.
    pub errors: u64,
    /// Bytes that it read, before compression: what is billed.
    pub processed_bytes: u64,
    /// What is wrong, where something is.
    pub failure: Option<String>,
    /// What to do then.
    pub advice: Option<String>,
}

/// One table on its way.
struct Request {
    /// The table's name in the service.
    table: String,
    counts: TableCounts,
    bucket: String,
    prefix: String,
    token: String,
    body: String,
}

/// Loads what a run wrote to `folder` with `import:`.
///
/// All is looked at before the first import is started: that the objects are those that the run wrote, and that no table is there
/// already, unless it was made by an import of the same request and the same objects; that one is followed then.
///
/// # Errors
/// Kind `Usage` when there are no such files, or a table exists; kind `Input` when they are not as the run wrote them; kind `Service` when the
/// service refuses to import; kinds `Interrupted` and `Unavailable` when the imports go on without being followed. An import that failed is no error but a row of
/// the summary.
pub fn load(dynamodb: &DynamoDb, folder: &S3Folder, options: &LoadOptions, observer: &mut dyn FnMut(LoadEvent<'_>)) -> Result<LoadSummary> {
    let requests = requests(folder, options)?;
    let mut imports = Vec::with_capacity(requests.len());
    for request in &requests {
        imports.push(match dynamodb.describe_table(&request.table)? {
            None => None,
            Some(table) => match dynamodb.import_of(&request.table, table.table_arn().unwrap_or_default(), &request.token)? {
                Some(import) => Some(import),
                // A list may lack imports that run; asking for one again gives it, and where it is another's, the table stands in the way.
                None if table.table_status() == Some(&TableStatus::Creating) => Some(start(dynamodb, request)?),
                None => return Err(table_exists(&request.table, &dynamodb.place())),
            },
        });
    }
    let mut followed = Vec::with_capacity(requests.len());
    for (request, found) in requests.iter().zip(imports) {
        let (table, started) = (request.table.as_str(), found.is_none());
        let import = match found {
            Some(import) => import,
            None => start(dynamodb, request)?,
        };
        let arn = import.arn.as_str();
        observer(if started { LoadEvent::Started { table, arn } } else { LoadEvent::Found { table, arn } });
        followed.push((request, import));
    }
    follow(dynamodb, followed, options, observer)
}

/// Checks that none of these tables exists, by their names in the service: an import makes a new one.
///
/// # Errors
/// Kind `Usage` when one exists; kind `Service` or `Unavailable` when it cannot be told.
pub fn check_new(dynamodb: &DynamoDb, tables: &[&str]) -> Result<()> {
    tables.iter().try_for_each(|table| match dynamodb.describe_table(table)? {
        None => Ok(()),
        Some(_) => Err(table_exists(table, &dynamodb.place())),
    })
}

/// Looks at the imports until all have ended.
fn follow(
    dynamodb: &DynamoDb,
    mut followed: Vec<(&Request, Import)>,
    options: &LoadOptions,
    observer: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<LoadSummary> {
    let mut ended: Vec<Option<TableLoad>> = followed.iter().map(|_| None).collect();
    let mut length = options.first_pause;
    loop {
        for ((request, import), ended) in followed.iter().zip(&mut ended).filter(|(_, ended)| ended.is_none()) {
            if import.state == State::Running {
                observer(LoadEvent::Running { table: &request.table, processed: import.processed, items: request.counts.items });
            } else {
                observer(LoadEvent::Ended(ended.insert(outcome(request, import))));
            }
        }
        if ended.iter().all(Option::is_some) {
            break;
        }
        if !pause(length, &options.stop) {
            return Err(Error::new(Kind::Interrupted, "stopped following the imports, which go on")
                .with("hint", "load the same files again to follow them"));
        }
        length = length.mul_f64(1.5).min(options.longest_pause);
        for ((request, import), _) in followed.iter_mut().zip(&ended).filter(|(_, ended)| ended.is_none()) {
            let look = dynamodb.describe_import(&request.table, &import.arn);
            let found = look.map_err(|error| {
                error.with("import", &import.arn).with("hint", "the imports go on; load the same files again to follow them")
            })?;
            *import = found.ok_or_else(|| {
                Error::new(Kind::Service, "the service does not know the import any more")
                    .with("table", &request.table)
                    .with("import", &import.arn)
            })?;
        }
    }
    let tables: Vec<TableLoad> = ended.into_iter().flatten().collect();
    Ok(LoadSummary { ok: tables.iter().all(|table| table.ok), tables })
}

/// Waits; gives false when it was asked to stop meanwhile.
fn pause(length: Duration, stop: &Stop) -> bool {
    let until = Instant::now() + length;
    while !stop.asked() {
        match until.checked_duration_since(Instant::now()) {
            Some(left) => thread::sleep(left.min(GLANCE)),
            None => return true,
        }
    }
    false
}

/// Reads what the run wrote, and checks that the data is what it wrote.
fn requests(folder: &S3Folder, options: &LoadOptions) -> Result<Vec<Request>> {
    let (bucket, root) = (folder.bucket(), folder.prefix());
    let lacks = |name: &dyn fmt::Display| {
        Error::new(Kind::Usage, "the prefix holds no files for import")
            .with("folder", folder)
            .with("missing", name)
            .with("hint", "name the prefix that `run --to import:s3://…` wrote, or that its folder was copied to")
    };
    let text = bucket.get_whole(&format!("{root}{COUNTS}"))?.ok_or_else(|| lacks(&COUNTS))?;
    let counts: Counts = serde_json::from_slice(&text).map_err(|cause| unreadable(folder, COUNTS, cause))?;
    for name in bucket.list(root, Some("/"))?.folders.iter().filter_map(|folder| folder.strip_prefix(root)?.strip_suffix('/')) {
        if counts.tables.iter().all(|table| table.table != name) && bucket.head(&format!("{root}{name}/table.json"))?.is_some() {
            return Err(Error::new(Kind::Input, "there are files for a table that counts.json does not list")
                .with("folder", folder)
                .with("table", name)
                .with("hint", "copy all that the run wrote, and nothing else, to a prefix of its own"));
        }
    }
    for name in options.only.iter().chain(options.table_names.keys()) {
        if !counts.tables.iter().any(|table| table.table == *name) {
            let known: Vec<_> = counts.tables.iter().map(|table| table.table.as_str()).collect();
            return Err(Error::new(Kind::Usage, format!("no table `{name}` in the files for import")).with("known", known.join(", ")));
        }
    }
    let wanted = |table: &TableCounts| options.only.is_empty() || options.only.contains(&table.table);
    let mut requests: Vec<Request> = Vec::new();
    for counts in counts.tables.into_iter().filter(wanted) {
        let name = format!("{}/table.json", counts.table);
        let text = bucket.get_whole(&format!("{root}{name}"))?.ok_or_else(|| lacks(&name))?;
        let mut body: Value = serde_json::from_slice(&text).map_err(|cause| unreadable(folder, &name, cause))?;
        let prefix = format!("{root}{}/data/", counts.table);
        let mut token = Sha256::new();
        let (mut objects, mut bytes) = (0, 0);
        for object in bucket.list(&prefix, None)?.objects {
            objects += 1;
            bytes += object.facts.bytes;
            token.update(format!("{} {} {}\n", object.key, object.facts.bytes, object.facts.etag));
        }
        if (objects, bytes) != (counts.objects, counts.bytes) {
            return Err(Error::new(Kind::Input, "the prefix does not hold the objects that the run wrote")
                .with("table", &counts.table)
                .with("prefix", format_args!("s3://{}/{prefix}", bucket.name()))
                .with("expected", format_args!("{}, {}", counted(counts.objects, "object"), counted(counts.bytes, "byte")))
                .with("found", format_args!("{}, {}", counted(objects, "object"), counted(bytes, "byte")))
                .with("hint", "an import reads every object below the prefix; take away what is not the run's, and copy what is missing"));
        }
        let Some(parameters) = body.get_mut("TableCreationParameters").and_then(Value::as_object_mut) else {
            return Err(Error::new(Kind::Input, "the request has no TableCreationParameters").with("file", format_args!("{folder}/{name}")));
        };
        if let Some(real) = options.table_names.get(&counts.table) {
            parameters.insert("TableName".to_owned(), json!(real));
        }
        let Some(table) = parameters.get("TableName").and_then(Value::as_str).map(str::to_owned) else {
            return Err(Error::new(Kind::Input, "the request has no TableName").with("file", format_args!("{folder}/{name}")));
        };
        if let Some(other) = requests.iter().find(|other| other.table == table) {
            return Err(Error::new(Kind::Usage, format!("two tables would be imported into the one table `{table}`"))
                .with("found", format_args!("{} and {}", other.counts.table, counts.table)));
        }
        // Where the files lie is known better than when they were written.
        let mut source = json!({ "S3Bucket": bucket.name(), "S3KeyPrefix": prefix });
        if let Some(owner) = bucket.expected_owner() {
            source["S3BucketOwner"] = json!(owner);
        }
        body["S3BucketSource"] = source;
        token.update(body.to_string());
        let token = token.finalize().iter().take(16).fold("dynamorph-".to_owned(), |token, byte| format!("{token}{byte:02x}"));
        body["ClientToken"] = json!(token);
        requests.push(Request { table, counts, bucket: bucket.name().to_owned(), prefix, token, body: body.to_string() });
    }
    Ok(requests)
}

fn unreadable(folder: &S3Folder, name: &str, cause: serde_json::Error) -> Error {
    Error::new(Kind::Input, "a file beside the data cannot be understood").with("file", format_args!("{folder}/{name}")).caused_by(cause)
}

fn table_exists(table: &str, place: &str) -> Error {
    Error::new(Kind::Usage, "the table exists, and an import makes a new one")
        .with("table", table)
        .with("at", place)
        .with("hint", "give the new table another name with --table, fill the one that exists with `sh import.sh existing` or `run --to dynamodb`, or delete it")
}

/// Asks for the import of one table.
fn start(dynamodb: &DynamoDb, request: &Request) -> Result<Import> {
    let about = |error: Error| error.with("table", &request.table).with("at", dynamodb.place());
    match dynamodb.start_import(&request.table, &request.body)? {
        Started::Import(import) => {
            let source = (request.bucket.clone(), request.prefix.clone());
            if import.source.as_ref().is_some_and(|found| *found != source) {
                return Err(about(Error::new(Kind::Service, "the service gives an import of other files for this request"))
                    .with("import", import.arn));
            }
            if import.state != State::Running {
                return Err(about(Error::new(Kind::Service, "the service remembers an earlier import of these files, and starts none"))
                    .with("import", import.arn)
                    .with("hint", "it forgets it 8 hours after its end; copy the files to another prefix to import them at once"));
            }
            Ok(*import)
        }
        Started::Refused(code, message) => {
            let found = format!("{code}: {message}");
            let (kind, text, hint) = match code.as_str() {
                "ResourceInUseException" => return Err(table_exists(&request.table, &dynamodb.place()).with("found", found)),
                "LimitExceededException" => (
                    Kind::Unavailable,
                    "the service runs as many imports as it will at a time",
                    "wait until others have ended (50 at a time, 500 tables at a time that are made or changed), then run the same command again",
                ),
                "ImportConflictException" => (
                    Kind::Service,
                    "the import is at odds with an earlier one",
                    "see what `aws dynamodb list-imports` says of this table; run the same command again when that import has ended",
                ),
                _ => (
                    Kind::Service,
                    "the service denies the import",
                    "it takes dynamodb:ImportTable, DescribeImport, ListImports and DescribeTable on the table, s3:GetObject and s3:ListBucket on the bucket, and logs:CreateLogGroup, CreateLogStream, DescribeLogGroups, DescribeLogStreams, PutLogEvents and PutRetentionPolicy",
                ),
            };
            Err(about(Error::new(kind, text)).with("found", found).with("hint", hint))
        }
    }
}

/// What an import that ended means.
fn outcome(request: &Request, import: &Import) -> TableLoad {
    let items = request.counts.items;
    let whole = import.processed == items && import.imported == items && import.errors == 0;
    let (failure, advice) = match (import.state, &import.failure) {
        (State::Completed, _) if whole => (None, None),
        (State::Completed | State::Running, _) => (
            Some(format!(
                "it read {} and wrote {}; the files hold {}",
                counted(import.processed, "item"),
                thousands(import.imported),
                thousands(items)
            )),
            Some(
                "the table is not what the files say; delete it and load again, or find the difference with `dynamorph verify`".to_owned(),
            ),
        ),
        (State::Cancelled, _) => {
            (Some("it was cancelled".to_owned()), Some("delete the table if it was made, then run the same command again".to_owned()))
        }
        (State::Failed, None) => (Some("it failed, and the service does not say why".to_owned()), Some(again())),
        (State::Failed, Some((code, message))) => (Some(format!("{code}: {message}")), Some(advice(code, request, import))),
    };
    TableLoad {
        table: request.table.clone(),
        import_arn: import.arn.clone(),
        ok: failure.is_none(),
        items,
        processed: import.processed,
        imported: import.imported,
        errors: import.errors,
        processed_bytes: import.processed_bytes,
        failure,
        advice,
    }
}

fn again() -> String {
    "look at the import with `aws dynamodb describe-import`; delete the table if it was made, then run the same command again".to_owned()
}

/// What to do about the code of an import that failed.
fn advice(code: &str, request: &Request, import: &Import) -> String {
    let Request { table, bucket, prefix, .. } = request;
    match code {
        "ItemValidationError" => {
            let group = import.log_group.as_deref().unwrap_or("/aws-dynamodb/imports");
            let id = import.arn.rsplit('/').next().unwrap_or_default();
            format!(
                "table {table} exists and holds the items that were written; each refused one, up to some number, is named in CloudWatch Logs, group {group}, stream {id}/error; put those live, or delete the table before the files are loaded again"
            )
        }
        "S3NoSuchBucket" => format!("there is no bucket {bucket}; no table was made"),
        "S3NoSuchKey" => format!("nothing lies below s3://{bucket}/{prefix}"),
        "S3AccessDenied" | "AccessDenied" | "AccessDeniedException" => format!(
            "whoever imports needs s3:ListBucket on {bucket}, s3:GetObject on {bucket}/{prefix}* and kms:Decrypt on its key; for a bucket of another account name it with --bucket-owner"
        ),
        "ObjectModifiedInS3DuringImport" => format!(
            "something wrote below s3://{bucket}/{prefix} while the import read it; leave the files alone, delete table {table} if it was made, and load again"
        ),
        "TableAlreadyExists" | "ResourceInUseException" => {
            format!("somebody made table {table} meanwhile; give another name with --table, or delete it")
        }
        _ => again(),
    }
}
