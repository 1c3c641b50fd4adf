//! Reads one object from start to end: parts asked for ahead, given out in order, resumed where they broke off.
//!
//! An object is never mixed with another one that took its key meanwhile: every request and every answer names the tag.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::ChecksumMode;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::aws::s3::request::{Action, Attempts, Class, Failure};
use crate::aws::s3::{Bucket, Object, ObjectFacts, Shared, broke_off};
use crate::error::{Error, Kind, Result};

/// Reads one object from start to end. It must be used and dropped outside the runtime.
#[derive(Debug)]
pub struct Reader {
    bucket: Bucket,
    key: String,
    facts: Arc<ObjectFacts>,
    /// The part that is being used, from `at` on.
    current: Buffer,
    at: usize,
    /// The parts after it, in order.
    ahead: VecDeque<Part>,
    /// Where the first part starts that was not asked for.
    next: u64,
    /// An error was given; what comes after it must not look like the end of the object.
    broken: bool,
}

/// The bytes of a part, with the room they take in the allowance. The first buffer of a reader is its own and takes none.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

/// A part on its way.
#[derive(Debug)]
struct Part {
    task: JoinHandle<std::result::Result<Vec<u8>, Failure>>,
    room: Option<OwnedSemaphorePermit>,
}

impl Drop for Part {
    /// Nobody waits for it any more.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reader {
    pub(super) fn new(bucket: Bucket, key: &str, facts: ObjectFacts) -> Self {
        let facts = Arc::new(facts);
        Self { bucket, key: key.to_owned(), facts, current: Buffer::default(), at: 0, ahead: VecDeque::new(), next: 0, broken: false }
    }

    /// Makes sure that some bytes are there to be used, except at the end.
    fn fill(&mut self) -> Result<()> {
        if self.broken {
            return Err(Error::new(Kind::Bug, "an object is read on after an error").with("object", &self.key));
        }
        let used_up = self.at == self.current.bytes.len();
        if used_up {
            self.at = 0;
            let buffer = mem::take(&mut self.current);
            self.ask_for_next(buffer);
        }
        let shared = &self.bucket.s3.shared;
        let (limit, part) = (shared.limits.ahead + usize::from(used_up), shared.limits.part);
        let allowance = Arc::clone(&shared.read_ahead);
        while self.ahead.len() < limit && self.next < self.facts.bytes {
            let permits = u32::try_from(part).unwrap_or(u32::MAX);
            let Ok(room) = Arc::clone(&allowance).try_acquire_many_owned(permits) else { break };
            self.ask_for_next(Buffer { bytes: Vec::new(), room: Some(room) });
        }
        if used_up && let Some(mut part) = self.ahead.pop_front() {
            let arrived = self.bucket.s3.aws.block_on(&mut part.task).map_err(broke_off)?;
            let bytes = arrived.map_err(|failure| self.bucket.error(Action::GetObject, Some(&self.key), failure))?;
            self.current = Buffer { bytes, room: part.room.take() };
        }
        Ok(())
    }

    /// Asks for the next part, if there is one more, into this buffer.
    fn ask_for_next(&mut self, buffer: Buffer) {
        if self.next == self.facts.bytes {
            return;
        }
        let shared = Arc::clone(&self.bucket.s3.shared);
        let end = self.facts.bytes.min(self.next.saturating_add(shared.limits.part.max(1) as u64));
        let range = mem::replace(&mut self.next, end)..end;
        let (object, facts) = (self.bucket.object(&self.key), Arc::clone(&self.facts));
        let Buffer { mut bytes, room } = buffer;
        bytes.clear();
        let task = self.bucket.s3.aws.spawn(async move { shared.get_part(&object, &facts, range, bytes).await });
        self.ahead.push_back(Part { task, room });
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Err(error) = self.fill() {
            self.broken = true;
            self.ahead.clear();
            return Err(io::Error::other(error));
        }
        Ok(&self.current.bytes[self.at..])
    }

    fn consume(&mut self, used: usize) {
        self.at = self.current.bytes.len().min(self.at + used);
    }
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let there = self.fill_buf()?;
        let taken = there.len().min(into.len());
        into[..taken].copy_from_slice(&there[..taken]);
        self.consume(taken);
        Ok(taken)
    }
}

impl Shared {
    /// The object whole; `None` where there is none.
    pub(super) async fn get_whole(&self, object: &Object) -> std::result::Result<Option<Vec<u8>>, Failure> {
        let Object { bucket, key } = object;
        let get = || {
            let get = self.client.get_object().bucket(&**bucket).key(&**key).set_expected_bucket_owner(self.owner.clone());
            get.set_checksum_mode(self.reads_checksums.then_some(ChecksumMode::Enabled)).send()
        };
        let output = match self.send(self.attempt_timeout, get).await {
            Ok(output) => output,
            Err(failure) if failure.class == Class::Missing => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let facts = ObjectFacts::new(output.content_length(), output.e_tag())?;
        let mut bytes = Vec::new();
        match self.drain(output.body, &mut bytes, length(&(0..facts.bytes))?).await {
            Err(failure) if failure.class == Class::Passing => self.get_part(object, &facts, 0..facts.bytes, bytes).await.map(Some),
            drained => drained.map(|()| Some(bytes)),
        }
    }

    /// A part of the object, or all of it; the range is not empty. `bytes` are those of its start that are known already.
    async fn get_part(
        &self,
        object: &Object,
        facts: &ObjectFacts,
        range: Range<u64>,
        mut bytes: Vec<u8>,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let mut furthest = bytes.len();
        let mut attempts = Attempts::new(self);
        loop {
            let Err(failure) = self.get_rest(object, facts, &range, &mut bytes).await else { return Ok(bytes) };
            if bytes.len() > furthest {
                furthest = bytes.len();
                attempts.start_again();
            }
            attempts.pause_after(failure).await?;
        }
    }

    /// Asks once for what is missing of the range, and adds what comes to `bytes`.
    async fn get_rest(
        &self,
        object: &Object,
        facts: &ObjectFacts,
        range: &Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> std::result::Result<(), Failure> {
        let from = range.start + bytes.len() as u64;
        let whole = from == 0 && range.end == facts.bytes;
        let get = self.client.get_object().bucket(&*object.bucket).key(&*object.key).set_expected_bucket_owner(self.owner.clone());
        let get = if whole {
            get.set_checksum_mode(self.reads_checksums.then_some(ChecksumMode::Enabled))
        } else {
            get.range(format!("bytes={from}-{}", range.end - 1))
        };
        let output = self.send_once(self.attempt_timeout, get.if_match(facts.quoted_etag()).send()).await?;
        let found = ObjectFacts::new(output.content_length(), output.e_tag())?;
        if found.etag != facts.etag {
            // A server that heeds no condition gives the other object.
            return Err(Failure::new(Class::Changed, format!("ETag {} in place of {}", found.etag, facts.etag)));
        }
        let of_the_range = output.content_range().is_some_and(|given| given.starts_with(&format!("bytes {from}-")));
        if !whole && !of_the_range {
            return Err(Failure::new(Class::Final, "an answer that is not the part that was asked for"));
        }
        self.drain(output.body, bytes, length(range)?).await
    }

    /// Adds a body to `bytes`, which should be `expected` long then. What has come stays there when the rest does not come.
    async fn drain(&self, mut body: ByteStream, bytes: &mut Vec<u8>, expected: usize) -> std::result::Result<(), Failure> {
        let too_large = |cause| Failure::new(Class::Final, format!("{expected} bytes do not fit into memory")).caused_by(cause);
        bytes.try_reserve_exact(expected.saturating_sub(bytes.len())).map_err(too_large)?;
        loop {
            match timeout(self.limits.stall, body.next()).await {
                Ok(Some(Ok(piece))) if piece.len() <= expected - bytes.len() => bytes.extend_from_slice(&piece),
                Ok(Some(Ok(_))) => return Err(Failure::new(Class::Final, "an answer that is longer than it says")),
                Ok(Some(Err(cause))) => {
                    if bytes.len() == expected {
                        // Everything came, and the check sum says that it is not what was stored.
                        bytes.clear();
                    }
                    return Err(Failure::new(Class::Passing, "the answer broke off").caused_by(cause));
                }
                Ok(None) if bytes.len() == expected => return Ok(()),
                Ok(None) => return Err(Failure::new(Class::Passing, "the answer ended early")),
                Err(_) => {
                    return Err(Failure::new(Class::Passing, format!("no byte for {} s", self.limits.stall.as_secs_f32())));
                }
            }
        }
    }
}

/// The length of a range of bytes in memory.
fn length(range: &Range<u64>) -> std::result::Result<usize, Failure> {
    let bytes = range.end - range.start;
    usize::try_from(bytes).map_err(|_| Failure::new(Class::Final, format!("{bytes} bytes do not fit into memory")))
}
