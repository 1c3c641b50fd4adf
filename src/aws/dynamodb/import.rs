//! `ImportTable`: starts an import, finds one that was started before, and looks at how far it is.
//!
//! What a failure means for the user is said elsewhere.

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{ImportStatus, ImportTableDescription};

use crate::aws::dynamodb::DynamoDb;
use crate::error::{Error, Kind, Result};

/// The answers to `ImportTable` that are told apart. All others are errors.
const REFUSALS: [&str; 4] = ["ResourceInUseException", "ImportConflictException", "LimitExceededException", "AccessDeniedException"];

/// An import as the service describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Its ARN.
    pub arn: String,
    /// What the service says of it.
    pub state: State,
    /// The token that it was started with.
    pub token: Option<String>,
    /// The bucket and the prefix that it reads.
    pub source: Option<(String, String)>,
    /// Items read so far; the service may count only at the end.
    pub processed: u64,
    /// Items that are in the table.
    pub imported: u64,
    /// Items that were refused.
    pub errors: u64,
    /// Bytes read so far, before compression.
    pub processed_bytes: u64,
    /// Why it failed: the service's code and its message.
    pub failure: Option<(String, String)>,
    /// The ARN of the log group that names the refused items.
    pub log_group: Option<String>,
}

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It came to its end, and no item was refused.
    Completed,
    /// It ended otherwise.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

/// What became of a request to start an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// The import that it started, or one that was started with the same token before.
    Import(Box<Import>),
    /// The service will not: its code and its message.
    Refused(String, String),
}

impl Import {
    fn new(table: &str, description: Option<&ImportTableDescription>) -> Result<Self> {
        let lacks = |what: &str| Error::new(Kind::Service, format!("the service describes an import without {what}")).with("table", table);
        let found = description.ok_or_else(|| lacks("saying anything of it"))?;
        let state = match found.import_status() {
            Some(ImportStatus::InProgress | ImportStatus::Cancelling) => State::Running,
            Some(ImportStatus::Completed) => State::Completed,
            Some(ImportStatus::Failed) => State::Failed,
            Some(ImportStatus::Cancelled) => State::Cancelled,
            Some(other) => return Err(lacks("a known status").with("found", other.as_str())),
            None => return Err(lacks("a status")),
        };
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Ok(Self {
            arn: found.import_arn().ok_or_else(|| lacks("its ARN"))?.to_owned(),
            state,
            token: found.client_token().map(str::to_owned),
            source: found.s3_bucket_source().map(|source| (source.s3_bucket().to_owned(), text(source.s3_key_prefix()))),
            processed: count(found.processed_item_count()),
            imported: count(found.imported_item_count()),
            errors: count(found.error_count()),
            processed_bytes: count(found.processed_size_bytes().unwrap_or_default()),
            failure: found.failure_code().map(|code| (code.to_owned(), text(found.failure_message()))),
            log_group: found.cloud_watch_log_group_arn().map(str::to_owned),
        })
    }
}

impl DynamoDb {
    /// Asks for an import. `request` is the JSON of the whole request, `ClientToken` and all.
    ///
    /// # Errors
    /// Kind `Service` when the service refuses for a reason that is none of [`Started::Refused`], kind `Unavailable` when it gives no usable
    /// answer.
    pub fn start_import(&self, table: &str, request: &str) -> Result<Started> {
        // The SDK gets no parameters, since those of a newer API than its own must reach the service too; its body is replaced before it is
        // signed.
        let send = async |client: &aws_sdk_dynamodb::Client| {
            let body = request.to_owned();
            let sent = client.import_table().customize().mutate_request(move |request| {
                request.headers_mut().insert("content-length", body.len().to_string());
                *request.body_mut() = body.as_str().into();
            });
            match sent.send().await {
                Err(error) => match error.code() {
                    Some(code) if REFUSALS.contains(&code) => Ok(Err((code.to_owned(), error.message().unwrap_or_default().to_owned()))),
                    _ => Err(error),
                },
                Ok(output) => Ok(Ok(output)),
            }
        };
        match self.ask("dynamodb:ImportTable", table, &[], &send)? {
            Some(Ok(output)) => Import::new(table, output.import_table_description()).map(|import| Started::Import(Box::new(import))),
            Some(Err((code, message))) => Ok(Started::Refused(code, message)),
            None => Err(Error::new(Kind::Bug, "a request to import was neither answered nor refused").with("table", table)),
        }
    }

    /// Looks at an import; `None` where the service does not know it.
    ///
    /// # Errors
    /// Kind `Service` when the service refuses, kind `Unavailable` when it gives no usable answer.
    pub fn describe_import(&self, table: &str, arn: &str) -> Result<Option<Import>> {
        let send = async |client: &aws_sdk_dynamodb::Client| client.describe_import().import_arn(arn).send().await;
        let found = self.ask("dynamodb:DescribeImport", table, &["ImportNotFoundException"], &send)?;
        found.map(|found| Import::new(table, found.import_table_description())).transpose()
    }

    /// The import that made this table, if it was started with `token`. The service keeps what it knows of imports for 90 days.
    ///
    /// # Errors
    /// Kind `Service` when the service refuses, kind `Unavailable` when it gives no usable answer.
    pub fn import_of(&self, table: &str, table_arn: &str, token: &str) -> Result<Option<Import>> {
        let mut next: Option<String> = None;
        loop {
            let send = async |client: &aws_sdk_dynamodb::Client| {
                client.list_imports().table_arn(table_arn).set_next_token(next.clone()).send().await
            };
            let Some(page) = self.ask("dynamodb:ListImports", table, &[], &send)? else { return Ok(None) };
            for arn in page.import_summary_list().iter().filter_map(|summary| summary.import_arn()) {
                if let Some(import) = self.describe_import(table, arn)?.filter(|import| import.token.as_deref() == Some(token)) {
                    return Ok(Some(import));
                }
            }
            next = page.next_token().map(str::to_owned);
            if next.is_none() {
                return Ok(None);
            }
        }
    }
}
