//! S3 for callers that block: objects are looked at, read, listed, written and removed.
//!
//! Requests run on the runtime of [`Aws`]; callers wait on plain threads of their own. What fails for now is sent again, since all that is
//! asked of S3 here may be asked twice: an upload that was started twice leaves one that nobody finishes, which
//! [`Bucket::list_uploads`] finds. Nothing here knows what objects hold.
//!
//! # Memory
//!
//! A [`Reader`] holds one part, and what it asks for ahead comes out of one allowance that all readers share; an [`Upload`] fills one part,
//! and parts under way come out of another. So with [`Limits::default`] it is at most 8 MiB for each open reader and 96 MiB for all of them,
//! 8 MiB for each open upload and 64 MiB for all of them. Parts of uploads beyond 10 GiB are larger.

mod reader;
mod request;
mod upload;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{RequestChecksumCalculation, ResponseChecksumValidation};
use aws_sdk_s3::operation::list_objects_v2::builders::ListObjectsV2FluentBuilder;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::aws::{Aws, CONNECT};
use crate::error::{Error, Kind, Result};

pub use reader::Reader;
pub use upload::{PartReceipt, PendingUpload, Receipt, Upload};

use request::{Action, Attempts, Class, Failure};

/// The service's name in variables and profiles.
const S3_ID: &str = "S3";

/// Requests for many objects that are under way at a time.
const SIDE_BY_SIDE: usize = 32;

/// The most objects that one request can remove.
const REMOVED_AT_ONCE: usize = 1000;

/// A way out that is slower than this fails. What is sent is one piece for the SDK, so that its end is all there is to see.
const SLOWEST_BYTES_PER_SECOND: u32 = 64 << 10;

/// How much goes on at a time, and how long a failing service is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes that a reader asks for with one request.
    pub part: usize,
    /// The most parts that a reader asks for beyond the one that is being used.
    pub ahead: usize,
    /// The most bytes that all readers together ask for ahead.
    pub read_ahead: usize,
    /// The most bytes of parts that are under way to S3; a single larger part passes alone.
    pub sending: usize,
    /// The longest wait for the next bytes of an object.
    pub stall: Duration,
    /// How often a request is sent in a row without any progress.
    pub attempts: u32,
    /// The longest first pause between two attempts.
    pub first_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            part: 8 << 20,
            ahead: 3,
            read_ahead: 96 << 20,
            sending: 64 << 20,
            stall: Duration::from_secs(30),
            // Half a minute on average, a minute at most.
            attempts: 10,
            first_pause: Duration::from_millis(100),
        }
    }
}

/// A client of S3.
#[derive(Debug)]
pub struct S3 {
    aws: Arc<Aws>,
    shared: Arc<Shared>,
    /// In words for a message.
    place: String,
}

/// What tasks hold.
#[derive(Debug)]
struct Shared {
    client: Client,
    limits: Limits,
    /// The longest that an answer to a small request may take.
    attempt_timeout: Duration,
    /// The account that must own the buckets.
    owner: Option<String>,
    /// Check sums of what is sent and of what is read.
    sends_checksums: bool,
    reads_checksums: bool,
    /// S3 has answered before, so that credentials were there.
    answered: AtomicBool,
    read_ahead: Arc<Semaphore>,
    sending: Arc<Semaphore>,
}

/// A bucket. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct Bucket {
    s3: Arc<S3>,
    name: Arc<str>,
    kms_key: Option<Arc<str>>,
}

/// An object by its name.
#[derive(Clone, Debug)]
struct Object {
    bucket: Arc<str>,
    key: Arc<str>,
}

/// What is known of an object that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjectFacts {
    /// Its size.
    pub bytes: u64,
    /// Its tag, without quotes. It is another one when the object is replaced.
    pub etag: String,
}

impl ObjectFacts {
    fn new(bytes: Option<i64>, etag: Option<&str>) -> std::result::Result<Self, Failure> {
        let lacks = |what: &str| Failure::new(Class::Final, format!("an answer without {what}"));
        let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok()).ok_or_else(|| lacks("the object's size"))?;
        let etag = etag.ok_or_else(|| lacks("an ETag"))?.trim_matches('"').to_owned();
        Ok(Self { bytes, etag })
    }

    fn quoted_etag(&self) -> String {
        format!("\"{}\"", self.etag)
    }
}

/// What was found below a prefix, in the order of the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<Listed>,
    /// Where a delimiter was given: what is common to the keys that have it after the prefix, up to and with the delimiter.
    pub folders: Vec<String>,
}

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// Its size and tag.
    pub facts: ObjectFacts,
}

impl S3 {
    /// A client with the usual limits. Nothing is sent.
    #[must_use]
    pub fn connect(aws: Arc<Aws>) -> Arc<Self> {
        Self::with_limits(aws, Limits::default())
    }

    /// A client with other limits.
    #[must_use]
    pub fn with_limits(aws: Arc<Aws>, limits: Limits) -> Arc<Self> {
        let mut config = aws_sdk_s3::config::Builder::from(&aws.config);
        let endpoint = aws.options.s3_endpoint_url.clone().or_else(|| aws.endpoint(S3_ID));
        config.set_http_client(aws.http_client(endpoint.as_deref()));
        config.set_force_path_style(Some(aws.options.path_style || endpoint.is_some()));
        config.set_endpoint_url(endpoint.clone());
        // Time is limited here, by what is asked: an object may take longer than a look at it.
        config.set_timeout_config(Some(TimeoutConfig::builder().connect_timeout(CONNECT).build()));
        // Only asked for where a whole object is read: what a part's check sum would be, servers do not agree on.
        config.set_response_checksum_validation(Some(ResponseChecksumValidation::WhenRequired));
        let shared = Shared {
            client: Client::from_conf(config.build()),
            limits,
            attempt_timeout: aws.options.attempt_timeout,
            owner: aws.options.bucket_owner.clone(),
            sends_checksums: aws.config.request_checksum_calculation() != Some(RequestChecksumCalculation::WhenRequired),
            reads_checksums: aws.config.response_checksum_validation() != Some(ResponseChecksumValidation::WhenRequired),
            answered: AtomicBool::new(false),
            read_ahead: Arc::new(Semaphore::new(limits.read_ahead.min(Semaphore::MAX_PERMITS))),
            sending: Arc::new(Semaphore::new(limits.sending.min(Semaphore::MAX_PERMITS))),
        };
        let place = aws.place_at(endpoint.as_deref());
        Arc::new(Self { aws, shared: Arc::new(shared), place })
    }

    /// A bucket by its name, or an access point by its ARN. Nothing is sent.
    #[must_use]
    pub fn bucket(self: &Arc<Self>, name: &str) -> Bucket {
        Bucket { s3: Arc::clone(self), name: name.into(), kms_key: None }
    }
}

impl Bucket {
    /// The bucket's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The account that must own the bucket, where one was named.
    #[must_use]
    pub fn expected_owner(&self) -> Option<&str> {
        self.s3.shared.owner.as_deref()
    }

    /// Says that objects here are encrypted with this KMS key, so that a denial can say which permission may be missing.
    #[must_use]
    pub fn encrypted_with(mut self, kms_key: &str) -> Self {
        self.kms_key = Some(kms_key.into());
        self
    }

    fn object(&self, key: &str) -> Object {
        Object { bucket: Arc::clone(&self.name), key: key.into() }
    }

    /// Looks at an object; `None` where there is none.
    ///
    /// # Errors
    /// Kind `Usage` when the bucket does not exist or is in another region; kind `Service` when S3 refuses or does not answer.
    pub fn head(&self, key: &str) -> Result<Option<ObjectFacts>> {
        let (shared, object) = (&self.s3.shared, self.object(key));
        self.s3.aws.block_on(shared.head(&object)).map_err(|failure| self.error(Action::GetObject, Some(key), failure))
    }

    /// Looks at many objects, some at a time; gives what [`head`](Self::head) would give, in the order of the keys.
    ///
    /// # Errors
    /// As for [`head`](Self::head), by the first that fails.
    pub fn heads<K: AsRef<str>>(&self, keys: &[K]) -> Result<Vec<Option<ObjectFacts>>> {
        let look = |shared: Arc<Shared>, object: Object, ()| async move { shared.head(&object).await };
        self.side_by_side(Action::GetObject, keys.iter().map(|key| (key.as_ref(), ())), look)
    }

    /// Runs a request for each of many objects, some at a time; gives the results in the order of the keys.
    fn side_by_side<'k, A, T, F>(
        &self,
        action: Action,
        mut objects: impl Iterator<Item = (&'k str, A)>,
        request: impl Fn(Arc<Shared>, Object, A) -> F,
    ) -> Result<Vec<T>>
    where
        T: Send + 'static,
        F: Future<Output = std::result::Result<T, Failure>> + Send + 'static,
    {
        let mut results = BTreeMap::new();
        let ran = self.s3.aws.block_on(async {
            let mut running = JoinSet::new();
            let mut begun = 0_usize;
            loop {
                while running.len() < SIDE_BY_SIDE
                    && let Some((key, argument)) = objects.next()
                {
                    let object = self.object(key);
                    let (key, at, result) = (Arc::clone(&object.key), begun, request(Arc::clone(&self.s3.shared), object, argument));
                    running.spawn(async move { (at, key, result.await) });
                    begun += 1;
                }
                match running.join_next().await {
                    None => return Ok(()),
                    Some(Ok((at, _, Ok(result)))) => drop(results.insert(at, result)),
                    Some(Ok((_, key, Err(failure)))) => return Err(Ok((key, failure))),
                    Some(Err(cause)) => return Err(Err(cause)),
                }
            }
        });
        match ran {
            Ok(()) => Ok(results.into_values().collect()),
            Err(Ok((key, failure))) => Err(self.error(action, Some(&key), failure)),
            Err(Err(cause)) => Err(broke_off(cause)),
        }
    }

    /// Reads a small object whole into memory; `None` where there is none. Its check sum is compared where S3 has one.
    ///
    /// # Errors
    /// As for [`head`](Self::head); kind `Input` when the object is replaced meanwhile.
    pub fn get_whole(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let (shared, object) = (&self.s3.shared, self.object(key));
        self.s3.aws.block_on(shared.get_whole(&object)).map_err(|failure| self.error(Action::GetObject, Some(key), failure))
    }

    /// Reads many small objects, some at a time; gives what [`get_whole`](Self::get_whole) would give, in the order of the keys.
    ///
    /// # Errors
    /// As for [`get_whole`](Self::get_whole), by the first that fails.
    pub fn get_all<K: AsRef<str>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let get = |shared: Arc<Shared>, object: Object, ()| async move { shared.get_whole(&object).await };
        self.side_by_side(Action::GetObject, keys.iter().map(|key| (key.as_ref(), ())), get)
    }

    /// Reads an object from its start to its end, in parts that are asked for ahead.
    ///
    /// Every request names the object's tag, so what is read is the object of these facts, or an error of kind `Input`. A request that
    /// breaks off is sent again from where it broke off. An error reaches the caller inside a [`std::io::Error`], and comes out of it by
    /// [`downcast`](std::io::Error::downcast). Nothing is sent before the first read; a reader that is dropped asks for nothing more.
    #[must_use]
    pub fn reader(&self, key: &str, facts: &ObjectFacts) -> Reader {
        Reader::new(self.clone(), key, facts.clone())
    }

    /// Lists the objects whose keys start with `prefix`. Where a delimiter is given, keys that have it after the prefix are not
    /// listed but summed up as folders. Memory grows with the listing.
    ///
    /// # Errors
    /// As for [`head`](Self::head).
    pub fn list(&self, prefix: &str, delimiter: Option<&str>) -> Result<Listing> {
        let listed = self.s3.aws.block_on(self.s3.shared.list(&self.name, prefix, delimiter));
        listed.map_err(|failure| self.error(Action::ListBucket, None, failure))
    }

    /// Whether there is any object whose key starts with `prefix`.
    ///
    /// # Errors
    /// As for [`head`](Self::head).
    pub fn any(&self, prefix: &str) -> Result<bool> {
        let shared = &self.s3.shared;
        let list = || shared.list_page(&self.name, prefix).max_keys(1).send();
        match self.s3.aws.block_on(shared.send(shared.attempt_timeout, list)) {
            Ok(page) => Ok(!page.contents().is_empty()),
            Err(failure) => Err(self.error(Action::ListBucket, None, failure)),
        }
    }

    /// Writes an object that is in memory already. It is visible when this returns, and replaces what had its key.
    ///
    /// # Errors
    /// As for [`head`](Self::head).
    pub fn put_whole(&self, key: &str, bytes: Vec<u8>) -> Result<()> {
        let shared = &self.s3.shared;
        let bytes = Bytes::from(bytes);
        let put = || {
            let put = shared.client.put_object().bucket(&*self.name).key(key).set_expected_bucket_owner(shared.owner.clone());
            put.body(ByteStream::from(bytes.clone())).send()
        };
        let sent = self.s3.aws.block_on(shared.send(shared.limit_for(bytes.len()), put));
        sent.map(drop).map_err(|failure| self.error(Action::PutObject, Some(key), failure))
    }

    /// Removes objects; those that do not exist are no error.
    ///
    /// # Errors
    /// As for [`head`](Self::head). Some objects may be removed then.
    pub fn delete<K: AsRef<str>>(&self, keys: &[K]) -> Result<()> {
        for keys in keys.chunks(REMOVED_AT_ONCE) {
            let keys = keys.iter().map(|key| key.as_ref().to_owned()).collect();
            let deleted = self.s3.aws.block_on(self.s3.shared.delete(&self.name, keys));
            deleted.map_err(|(key, failure)| self.error(Action::DeleteObject, key.as_deref(), failure))?;
        }
        Ok(())
    }
}

/// The error for a task that ended before its result.
fn broke_off(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(Kind::Bug, "a request to S3 broke off").caused_by(cause)
}

impl Shared {
    /// The longest that sending this many bytes may take.
    fn limit_for(&self, bytes: usize) -> Duration {
        let seconds = bytes / SLOWEST_BYTES_PER_SECOND as usize;
        self.attempt_timeout + Duration::from_secs(seconds as u64)
    }

    async fn head(&self, object: &Object) -> std::result::Result<Option<ObjectFacts>, Failure> {
        let Object { bucket, key } = object;
        let head = || self.client.head_object().bucket(&**bucket).key(&**key).set_expected_bucket_owner(self.owner.clone()).send();
        let failure = match self.send(self.attempt_timeout, head).await {
            Ok(output) => return ObjectFacts::new(output.content_length(), output.e_tag()).map(Some),
            Err(failure) => failure,
        };
        if failure.status.is_none() || failure.class == Class::Passing {
            return Err(failure);
        }
        // An answer to HEAD has no words: is it the object that is missing or the bucket? The same question as a GET has them.
        let get = || {
            let get = self.client.get_object().bucket(&**bucket).key(&**key).set_expected_bucket_owner(self.owner.clone());
            get.range("bytes=0-0").send()
        };
        let failure = match self.send(self.attempt_timeout, get).await {
            Err(explained) if explained.status.is_some() && explained.code.is_some() => explained,
            _ => failure,
        };
        if failure.class == Class::Missing { Ok(None) } else { Err(failure) }
    }

    fn list_page(&self, bucket: &str, prefix: &str) -> ListObjectsV2FluentBuilder {
        self.client.list_objects_v2().bucket(bucket).prefix(prefix).set_expected_bucket_owner(self.owner.clone())
    }

    async fn list(&self, bucket: &str, prefix: &str, delimiter: Option<&str>) -> std::result::Result<Listing, Failure> {
        let mut listing = Listing::default();
        let mut next = None;
        loop {
            let list = || {
                let list = self.list_page(bucket, prefix).set_delimiter(delimiter.map(str::to_owned));
                list.set_continuation_token(next.clone()).send()
            };
            let page = self.send(self.attempt_timeout, list).await?;
            for object in page.contents() {
                let facts = ObjectFacts::new(object.size(), object.e_tag())?;
                listing.objects.push(Listed { key: object.key().unwrap_or_default().to_owned(), facts });
            }
            listing.folders.extend(page.common_prefixes().iter().filter_map(|folder| folder.prefix().map(str::to_owned)));
            if page.is_truncated() != Some(true) {
                return Ok(listing);
            }
            next = Some(next_page(next.as_ref(), page.next_continuation_token().map(str::to_owned))?);
        }
    }

    /// Removes objects. A failure may concern one of them.
    async fn delete(&self, bucket: &str, keys: Vec<String>) -> std::result::Result<(), (Option<String>, Failure)> {
        let mut left: BTreeSet<String> = keys.into_iter().collect();
        let mut attempts = Attempts::new(self);
        while !left.is_empty() {
            let unsendable = |cause| (None, Failure::new(Class::Final, "no such request").caused_by(cause));
            let objects = left.iter().map(|key| ObjectIdentifier::builder().key(key).build());
            let objects = objects.collect::<std::result::Result<_, _>>().map_err(unsendable)?;
            let delete = Delete::builder().quiet(true).set_objects(Some(objects)).build().map_err(unsendable)?;
            let delete = || {
                let request = self.client.delete_objects().bucket(bucket).set_expected_bucket_owner(self.owner.clone());
                request.delete(delete.clone()).send()
            };
            let output = self.send(self.attempt_timeout, delete).await.map_err(|failure| (None, failure))?;
            let refused = output.errors();
            let key = |error: &aws_sdk_s3::types::Error| error.key().map(str::to_owned);
            let failure = |error: &aws_sdk_s3::types::Error| Failure::with_code(error.code().unwrap_or("unknown"), error.message());
            let Some(first) = refused.first() else { return Ok(()) };
            // The worst is told: what will not pass decides.
            let worst = refused.iter().find(|error| failure(error).class != Class::Passing).unwrap_or(first);
            left = refused.iter().filter_map(key).collect();
            attempts.pause_after(failure(worst)).await.map_err(|failure| (key(worst), failure))?;
        }
        Ok(())
    }
}

/// The marker of the next page. It must be another one: a server that gives the same for ever would be listed for ever.
fn next_page<M: PartialEq>(this: Option<&M>, next: Option<M>) -> std::result::Result<M, Failure> {
    next.filter(|next| this != Some(next)).ok_or_else(|| Failure::new(Class::Final, "a listing that says it goes on, but not where"))
}
