//! `DynamoDB` for callers that block: one request at a time, sent again while the failure may pass.
//!
//! Nothing here knows what is asked. The live sink has a queue of its own and takes only what an error means from here.

pub mod import;
mod items;
pub mod read_rate;
pub mod scan;
mod tables;

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use tokio::time::Instant;

use crate::aws::Aws;
use crate::aws::pauses::Pauses;
use crate::error::{Error, Kind, Result};

pub use items::{Attributes, Conditional};

/// The first pause before a request is sent again; it doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(20);

/// A connection to `DynamoDB`.
#[derive(Clone, Debug)]
pub struct DynamoDb {
    aws: Arc<Aws>,
    asker: Asker,
}

impl DynamoDb {
    /// The service that `aws` leads to. Credentials are looked for now, so that their absence is told first.
    ///
    /// # Errors
    /// Kind `Service` when there are no credentials.
    pub fn connect(aws: Arc<Aws>) -> Result<Self> {
        aws.check_credentials()?;
        let asker = Asker::new(&aws);
        Ok(Self { aws, asker })
    }

    /// Sets how long the service may give no usable answer.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.asker.patience = patience;
        self
    }

    /// Where requests go, in words for a message.
    #[must_use]
    pub fn place(&self) -> String {
        self.aws.place()
    }

    /// Asks as [`Asker::ask`] does, and waits for the answer.
    pub(crate) fn ask<T, E>(
        &self,
        action: &'static str,
        table: &str,
        expected: &[&str],
        send: &impl AsyncFn(&Client) -> std::result::Result<T, SdkError<E>>,
    ) -> Result<Option<T>>
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        self.aws.block_on(self.asker.ask(action, table, expected, |client| async move { send(&client).await }))
    }
}

/// The part of a connection that tasks may hold: it does not keep the runtime.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    client: Client,
    place: Arc<str>,
    /// How long the service may give no usable answer before the caller gets an error. Being throttled is an answer.
    patience: Duration,
}

impl Asker {
    pub(crate) fn new(aws: &Aws) -> Self {
        Self { client: aws.dynamodb(), place: aws.place().into(), patience: Duration::from_mins(1) }
    }

    /// Asks until there is an answer that is no passing failure: throttling is waited for without end, other failures for a minute
    /// without any answer between them. `action` is what a policy calls it, such as `dynamodb:Scan`. An answer in `expected` codes is
    /// given as `None`.
    pub(crate) async fn ask<T, E, F>(
        &self,
        action: &'static str,
        table: &str,
        expected: &[&str],
        send: impl Fn(Client) -> F,
    ) -> Result<Option<T>>
    where
        F: Future<Output = std::result::Result<T, SdkError<E>>>,
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let mut pauses = Pauses::new(FIRST_PAUSE, LAST_PAUSE);
        let mut silent: Option<Instant> = None;
        for attempt in 0.. {
            let error = match send(self.client.clone()).await {
                Ok(answer) => return Ok(Some(answer)),
                Err(error) if error.code().is_some_and(|code| expected.contains(&code)) => return Ok(None),
                Err(error) => error,
            };
            let status = error.raw_response().map(|response| response.status().as_u16());
            let class = classify(error.code(), status, matches!(error, SdkError::ConstructionFailure(_)));
            let goes_on = match class {
                Class::Throttled => {
                    silent = None;
                    true
                }
                Class::Failed => silent.get_or_insert_with(Instant::now).elapsed() < self.patience,
                Class::Refused | Class::Fatal => false,
            };
            if !goes_on {
                let found = match (error.code(), error.message()) {
                    (Some(code), Some(message)) => format!("{code}: {message}"),
                    (Some(code), None) => code.to_owned(),
                    (None, _) => "no usable answer".to_owned(),
                };
                let (kind, message) = match class {
                    Class::Throttled | Class::Failed => (Kind::Unavailable, "DynamoDB gives no usable answer"),
                    Class::Refused | Class::Fatal => (Kind::Service, "DynamoDB refuses the request"),
                };
                return Err(Error::new(kind, message)
                    .with("action", action)
                    .with("table", table)
                    .with("at", &*self.place)
                    .with("found", found)
                    .caused_by(error));
            }
            tokio::time::sleep(pauses.after(attempt)).await;
        }
        unreachable!("the loop has no end of its own")
    }
}

/// What an error means, without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Throttled,
    Failed,
    Refused,
    Fatal,
}

/// Judges an error by the service's code, else by the HTTP status; both are absent where no answer came.
pub(crate) fn classify(code: Option<&str>, status: Option<u16>, unsendable: bool) -> Class {
    match (code, status) {
        _ if unsendable => Class::Fatal,
        (
            Some(
                "ProvisionedThroughputExceededException"
                | "ThrottlingException"
                | "Throttling"
                | "ThrottledException"
                | "RequestThrottled"
                | "RequestThrottledException"
                | "TooManyRequestsException"
                | "RequestLimitExceeded"
                | "LimitExceededException"
                | "SlowDown"
                | "BandwidthLimitExceeded",
            ),
            _,
        )
        | (None, Some(429)) => Class::Throttled,
        // A full item collection takes no more puts, however long one waits; other items of the request may be fine.
        (Some("ValidationException" | "SerializationException" | "ItemCollectionSizeLimitExceededException"), _) | (_, Some(413)) => {
            Class::Refused
        }
        (
            Some(
                "InternalServerError"
                | "InternalFailure"
                | "ServiceUnavailable"
                | "ServiceUnavailableException"
                | "RequestTimeout"
                | "RequestTimeoutException"
                | "ReplicatedWriteConflictException"
                | "TransactionConflictException"
                | "TransactionInProgressException",
            ),
            _,
        )
        | (_, None | Some(200..=299 | 408 | 500..)) => Class::Failed,
        _ => Class::Fatal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_means_follows_from_its_code_then_from_its_status() {
        for (code, status, expected) in [
            (Some("ProvisionedThroughputExceededException"), Some(400), Class::Throttled),
            (Some("ThrottlingException"), Some(400), Class::Throttled),
            (Some("RequestLimitExceeded"), Some(400), Class::Throttled),
            (None, Some(429), Class::Throttled),
            (Some("InternalServerError"), Some(500), Class::Failed),
            (Some("SomethingNew"), Some(503), Class::Failed),
            (None, Some(200), Class::Failed),
            (None, None, Class::Failed),
            (Some("ValidationException"), Some(400), Class::Refused),
            (None, Some(413), Class::Refused),
            (Some("ItemCollectionSizeLimitExceededException"), Some(400), Class::Refused),
            (Some("ResourceNotFoundException"), Some(400), Class::Fatal),
            (Some("AccessDeniedException"), Some(400), Class::Fatal),
            (Some("UnrecognizedClientException"), Some(400), Class::Fatal),
            (Some("ExpiredTokenException"), Some(400), Class::Fatal),
            (Some("SomethingNew"), Some(400), Class::Fatal),
            (None, Some(404), Class::Fatal),
        ] {
            assert_eq!(classify(code, status, false), expected, "{code:?} {status:?}");
        }
        assert_eq!(classify(None, None, true), Class::Fatal);
    }
}
