//! One request to S3: sent again while that can help, and, where it cannot, what the failure means in words.
//!
//! Knows codes, statuses and addresses; knows nothing of what objects hold.

use std::error::Error as StdError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::RequestId as _;
use tokio::time::{sleep, timeout};

use crate::aws::pauses::Pauses;
use crate::aws::s3::{Bucket, Shared};
use crate::error::{Error, Kind};

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// What is asked of S3, by the name of the permission that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    GetObject,
    PutObject,
    DeleteObject,
    AbortMultipartUpload,
    ListBucket,
    ListBucketMultipartUploads,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::GetObject => "s3:GetObject",
            Self::PutObject => "s3:PutObject",
            Self::DeleteObject => "s3:DeleteObject",
            Self::AbortMultipartUpload => "s3:AbortMultipartUpload",
            Self::ListBucket => "s3:ListBucket",
            Self::ListBucketMultipartUploads => "s3:ListBucketMultipartUploads",
        }
    }

    /// What the action takes on the key that encrypts the object.
    fn on_the_key(self) -> Option<&'static str> {
        match self {
            Self::GetObject => Some("kms:Decrypt"),
            // S3 reads the parts of an upload again when it puts them together.
            Self::PutObject => Some("kms:GenerateDataKey and kms:Decrypt"),
            _ => None,
        }
    }
}

/// What a failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The service, or the way to it, failed for now; nothing is known of what was done.
    Passing,
    /// There is no such object.
    Missing,
    /// The object is not the one that was asked for.
    Changed,
    /// The request could not be made, most often for want of credentials.
    Unsendable,
    /// The service will give the same answer again.
    Final,
}

/// A request that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) class: Class,
    pub(super) code: Option<String>,
    pub(super) status: Option<u16>,
    /// In words.
    what: String,
    /// The bucket's region, where the answer names it.
    region: Option<String>,
    /// How often the request was sent without any progress.
    attempts: u32,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Failure {
    /// A failure that the service did not tell.
    pub(super) fn new(class: Class, what: impl Into<String>) -> Self {
        Self { class, code: None, status: None, what: what.into(), region: None, attempts: 1, cause: None }
    }

    /// A failure with a code that came inside an answer.
    pub(super) fn with_code(code: &str, message: Option<&str>) -> Self {
        let what = message.map_or_else(|| code.to_owned(), |message| format!("{code}: {message}"));
        Self { code: Some(code.to_owned()), ..Self::new(classify(Some(code), Some(200), false), what) }
    }

    pub(super) fn caused_by(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    pub(super) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }
}

impl<E: ProvideErrorMetadata + StdError + Send + Sync + 'static> From<SdkError<E>> for Failure {
    fn from(error: SdkError<E>) -> Self {
        let answer = error.raw_response();
        let status = answer.map(|answer| answer.status().as_u16());
        let code = error.code().map(str::to_owned);
        let region = answer
            .and_then(|answer| answer.headers().get("x-amz-bucket-region"))
            .or_else(|| expected_region(code.as_deref()?, error.message()?))
            .map(str::to_owned);
        let mut what = match (&code, error.message(), status) {
            // The SDK's name for an answer to HEAD, which has none of its own.
            (Some(code), None, Some(status)) if code == "NotFound" => format!("HTTP status {status}"),
            (Some(code), Some(message), _) => format!("{code}: {message}"),
            (Some(code), None, _) => code.clone(),
            (None, _, Some(status)) if !(200..300).contains(&status) => format!("HTTP status {status}"),
            (None, _, Some(_)) => "an answer that cannot be read".to_owned(),
            (None, _, None) => "no answer".to_owned(),
        };
        if let Some(id) = error.request_id() {
            what += &format!(" (request {id})");
        }
        let class = classify(code.as_deref(), status, matches!(error, SdkError::ConstructionFailure(_)) || lacks_credentials(&error));
        // Where the service gave an answer that can be read, the SDK's words add nothing.
        let cause = if status.is_none_or(|status| (200..300).contains(&status)) && code.is_none() { Some(error.into()) } else { None };
        Self { class, code, status, what, region, attempts: 1, cause }
    }
}

/// For the SDK, a request without credentials is one that did not arrive.
fn lacks_credentials(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<CredentialsError>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// The region in `The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-west-1'`.
fn expected_region<'m>(code: &str, message: &'m str) -> Option<&'m str> {
    (code == "AuthorizationHeaderMalformed").then_some(message)?.split_once("expecting '")?.1.split('\'').next()
}

/// Judges a failure by the service's code, else by the HTTP status; both are absent where no answer came.
fn classify(code: Option<&str>, status: Option<u16>, unsendable: bool) -> Class {
    match (code, status) {
        _ if unsendable => Class::Unsendable,
        (
            Some(
                "InternalError"
                | "InternalFailure"
                | "ServiceUnavailable"
                | "SlowDown"
                | "Throttling"
                | "ThrottlingException"
                | "TooManyRequestsException"
                | "RequestLimitExceeded"
                | "BandwidthLimitExceeded"
                | "RequestTimeout"
                // The SDK learns the service's clock from this answer.
                | "RequestTimeTooSkewed"
                | "OperationAborted"
                | "ConditionalRequestConflict"
                // What arrived is not what was sent.
                | "BadDigest"
                | "IncompleteBody"
                | "XAmzContentSHA256Mismatch"
                | "XAmzContentChecksumMismatch",
            ),
            _,
        )
        | (None, None | Some(200..=299))
        | (_, Some(408 | 429 | 500 | 502..)) => Class::Passing,
        (None | Some("NoSuchKey" | "NotFound"), Some(404)) => Class::Missing,
        (Some("PreconditionFailed"), _) | (None, Some(412)) => Class::Changed,
        _ => Class::Final,
    }
}

impl Shared {
    /// Sends a request until it succeeds, fails for good, or has failed too often. An attempt takes at most `limit`.
    pub(super) async fn send<T, E, F>(&self, limit: Duration, mut request: impl FnMut() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, SdkError<E>>>,
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
    {
        let mut attempts = Attempts::new(self);
        loop {
            match self.send_once(limit, request()).await {
                Ok(output) => return Ok(output),
                Err(failure) => attempts.pause_after(failure).await?,
            }
        }
    }

    /// Sends a request once.
    pub(super) async fn send_once<T, E, F>(&self, limit: Duration, request: F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, SdkError<E>>>,
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
    {
        let answered = match timeout(limit, request).await {
            Ok(answer) => answer.map_err(Failure::from),
            Err(_) => return Err(Failure::new(Class::Passing, format!("no answer within {} s", limit.as_secs_f32()))),
        };
        if answered.as_ref().err().is_none_or(|failure| failure.status.is_some()) {
            self.answered.store(true, Ordering::Relaxed);
        }
        answered
    }
}

/// Counts the attempts at one request and pauses between them.
pub(super) struct Attempts<'s> {
    shared: &'s Shared,
    pauses: Pauses,
    made: u32,
}

impl<'s> Attempts<'s> {
    pub(super) fn new(shared: &'s Shared) -> Self {
        Self { shared, pauses: Pauses::new(shared.limits.first_pause, LONGEST_PAUSE), made: 0 }
    }

    /// The last attempt brought the request further, so that the ones before it do not count.
    pub(super) fn start_again(&mut self) {
        self.made = 0;
    }

    /// Pauses before the next attempt; gives the failure back where there should be none.
    pub(super) async fn pause_after(&mut self, failure: Failure) -> Result<(), Failure> {
        self.made += 1;
        let passing = match failure.class {
            Class::Passing => true,
            // Credentials that were there before are asked for again: they may come from a service that fails for now.
            Class::Unsendable => self.shared.answered.load(Ordering::Relaxed),
            Class::Missing | Class::Changed | Class::Final => false,
        };
        if !passing || self.made >= self.shared.limits.attempts {
            return Err(Failure { attempts: self.made, ..failure });
        }
        sleep(self.pauses.after(self.made - 1)).await;
        Ok(())
    }
}

impl Bucket {
    /// The failure as an error that says what was refused, on what, and what to do. `key` is the object it was about. Must be called
    /// outside the runtime.
    pub(super) fn error(&self, action: Action, key: Option<&str>, failure: Failure) -> Error {
        if failure.class == Class::Unsendable
            && let Err(missing) = self.s3.aws.check_credentials()
        {
            return missing.with("at", &self.s3.place);
        }
        let (kind, message, hint) = self.meaning(action, &failure);
        let mut error = Error::new(kind, message)
            .with("action", action.name())
            .with("on", self.arn(key))
            .with("at", &self.s3.place)
            .with("found", failure.what);
        if failure.attempts > 1 {
            error = error.with("attempts", failure.attempts);
        }
        if let Some(hint) = hint {
            error = error.with("hint", hint);
        }
        match failure.cause {
            Some(cause) => error.caused_by(cause),
            None => error,
        }
    }

    fn meaning(&self, action: Action, failure: &Failure) -> (Kind, &'static str, Option<String>) {
        let hint = |text: &str| Some(text.to_owned());
        if let Some(region) = failure.region.as_deref().filter(|region| *region != self.s3.aws.region() && is_misdirected(failure)) {
            return (Kind::Usage, "the bucket is in another region", Some(format!("--region {region}")));
        }
        match (failure.class, failure.code.as_deref(), failure.status) {
            (_, Some("NoSuchBucket"), _) => {
                (Kind::Usage, "the bucket does not exist", hint("check its name, and --region or the endpoint"))
            }
            (_, Some("PermanentRedirect" | "TemporaryRedirect" | "IllegalLocationConstraintException"), _) | (_, None, Some(301 | 307)) => {
                (Kind::Usage, "the bucket is in another region", hint("name its region with --region"))
            }
            (_, Some("NoSuchUpload"), _) => {
                (Kind::Output, "the upload does not exist any more", hint("a rule of the bucket or someone else has aborted it; run again"))
            }
            (_, Some("InvalidObjectState"), _) => {
                (Kind::Input, "the object is archived", hint("restore it first: aws s3api restore-object"))
            }
            (_, Some("ExpiredToken" | "TokenRefreshRequired"), _) => {
                (Kind::Service, "the credentials have expired", hint("renew them and run the same command again"))
            }
            (_, Some("InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidToken" | "AuthorizationHeaderMalformed"), _) => {
                (Kind::Service, "S3 does not accept the credentials", hint("check the profile, or the key in the environment"))
            }
            (_, Some("RequestTimeTooSkewed"), _) => (Kind::Service, "this machine's clock is wrong", hint("set it to the right time")),
            (Class::Missing, ..) => (Kind::Input, "the object does not exist", None),
            (Class::Changed, ..) => (Kind::Input, "the object changed while it was read", hint("run again once nobody writes to it")),
            (Class::Passing, ..) => (Kind::Unavailable, "S3 gives no usable answer", None),
            (_, Some("AccessDenied" | "AllAccessDisabled"), _) | (_, None, Some(403)) => {
                (Kind::Service, "S3 denies access", Some(self.denied(action, failure)))
            }
            (Class::Final, None, None) => (Kind::Service, "S3 gives an answer that cannot be used", None),
            (Class::Unsendable | Class::Final, ..) => (Kind::Service, "S3 refuses the request", None),
        }
    }

    /// What to do when access is denied. The reason may lie with the bucket, or with the key that encrypts the object.
    fn denied(&self, action: Action, failure: &Failure) -> String {
        let by_the_key = failure.what.to_ascii_lowercase().contains("kms");
        let key = self.kms_key.as_deref().map_or_else(String::new, |key| format!(" {key}"));
        let mut hint = match action.on_the_key() {
            Some(needed) if by_the_key => return format!("allow {needed} on the KMS key{key} too"),
            Some(needed) if self.kms_key.is_some() => {
                format!("allow {}; objects here are encrypted with the KMS key{key}, which takes {needed} too", action.name())
            }
            Some(needed) => format!("allow {}; an object that is encrypted with a KMS key takes {needed} on the key too", action.name()),
            None => format!("allow {}", action.name()),
        };
        if action == Action::GetObject {
            hint += "; without s3:ListBucket, S3 also denies what does not exist";
        }
        if self.s3.shared.owner.is_some() {
            hint += "; or the bucket has another owner than the account that was named";
        }
        hint
    }

    /// The name of the bucket or of one of its objects in policies.
    fn arn(&self, key: Option<&str>) -> String {
        let name = &self.name;
        let (bucket, between) = if name.starts_with("arn:") {
            (name.to_string(), "/object/")
        } else {
            let partition = match self.s3.aws.region() {
                region if region.starts_with("cn-") => "aws-cn",
                region if region.starts_with("us-gov-") => "aws-us-gov",
                _ => "aws",
            };
            (format!("arn:{partition}:s3:::{name}"), "/")
        };
        match key {
            Some(key) => bucket + between + key,
            None => bucket,
        }
    }
}

/// Other answers name the bucket's region too, whether or not it is the reason.
fn is_misdirected(failure: &Failure) -> bool {
    matches!(failure.status, Some(301 | 307 | 400)) || failure.is("IllegalLocationConstraintException")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failure_means_follows_from_its_code_then_from_its_status() {
        for (code, status, expected) in [
            (Some("SlowDown"), Some(503), Class::Passing),
            (Some("InternalError"), Some(500), Class::Passing),
            // CompleteMultipartUpload answers before it knows whether it succeeds.
            (Some("InternalError"), Some(200), Class::Passing),
            (Some("InvalidPart"), Some(200), Class::Final),
            (Some("RequestTimeout"), Some(400), Class::Passing),
            (Some("SomethingNew"), Some(503), Class::Passing),
            (None, Some(500), Class::Passing),
            (None, Some(200), Class::Passing),
            (None, None, Class::Passing),
            (Some("NotImplemented"), Some(501), Class::Final),
            (Some("NoSuchKey"), Some(404), Class::Missing),
            (Some("NotFound"), Some(404), Class::Missing),
            (None, Some(404), Class::Missing),
            (Some("NoSuchBucket"), Some(404), Class::Final),
            (Some("NoSuchUpload"), Some(404), Class::Final),
            (Some("PreconditionFailed"), Some(412), Class::Changed),
            (None, Some(412), Class::Changed),
            (Some("AccessDenied"), Some(403), Class::Final),
            (None, Some(403), Class::Final),
            (None, Some(301), Class::Final),
            (Some("InvalidRange"), Some(416), Class::Final),
        ] {
            assert_eq!(classify(code, status, false), expected, "{code:?} {status:?}");
        }
        assert_eq!(classify(None, None, true), Class::Unsendable);
    }

    #[test]
    fn the_expected_region_is_read_from_the_only_message_that_has_it() {
        let message = "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-west-1'";
        assert_eq!(expected_region("AuthorizationHeaderMalformed", message), Some("eu-west-1"));
        assert_eq!(expected_region("AccessDenied", message), None);
        assert_eq!(expected_region("AuthorizationHeaderMalformed", "the credential is malformed"), None);
    }
}
