//! Writes one object as a multipart upload, which nobody sees before it is completed.
//!
//! The upload is finished by one call and made visible by another, maybe of another process: between the two its receipt can be kept.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::aws::s3::request::{Action, Class, Failure};
use crate::aws::s3::{Bucket, Shared, broke_off, next_page};
use crate::error::{Error, Kind, Result};

/// The size of parts, the last one aside, until the object is large.
const PART_BYTES: u64 = 8 << 20;

/// S3 takes parts of 5 GiB and no larger.
const MOST_PART_BYTES: u64 = 4 << 30;

/// A part is this much smaller than what was written before it, so that 10,000 parts hold more than 5 TiB.
const GROWTH: u64 = 1250;

/// S3's limit.
const MOST_PARTS: i32 = 10_000;

/// Parts of one upload that are under way at a time.
const UNDER_WAY: usize = 2;

/// Putting parts together takes time, and S3 answers only then.
const TIME_FOR_A_PART: Duration = Duration::from_millis(100);

/// The name under which an object says which upload made it.
const TOKEN: &str = "dynamorph-upload";

/// An upload under way. What is written is sent when a part is full.
///
/// An upload that is dropped before [`finish`](Self::finish) sends nothing more, and asks S3 to forget it. It must be used and
/// dropped outside the runtime.
#[derive(Debug)]
pub struct Upload {
    bucket: Bucket,
    receipt: Receipt,
    buffer: Vec<u8>,
    /// Parts that are being sent, in order.
    under_way: VecDeque<JoinHandle<std::result::Result<PartReceipt, Failure>>>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// An error was given.
    Broken,
    Finished,
}

/// All that is needed to make a finished upload visible, or to abort it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The key that the object will have.
    pub key: String,
    /// The service's name for the upload.
    pub upload_id: String,
    /// The object's own word on which upload made it.
    pub token: String,
    /// The object's size.
    pub bytes: u64,
    /// The parts in order.
    pub parts: Vec<PartReceipt>,
}

/// A part that is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartReceipt {
    /// From 1.
    pub number: i32,
    /// Its tag.
    pub etag: String,
    /// Its CRC-32, as S3 writes it, where the service keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<String>,
}

/// An upload that was started and neither completed nor aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingUpload {
    /// The key that the object would have.
    pub key: String,
    /// The service's name for the upload.
    pub upload_id: String,
}

impl Bucket {
    /// Starts to write an object. Nothing is visible before the upload is [completed](Self::complete).
    ///
    /// # Errors
    /// Kind `Usage` when the bucket does not exist or is in another region; kind `Service` when S3 refuses or does not answer.
    pub fn upload(&self, key: &str) -> Result<Upload> {
        let shared = &self.s3.shared;
        let token = format!("{:016x}{:016x}", RandomState::new().hash_one(0_u8), RandomState::new().hash_one(1_u8));
        let create = || {
            let create =
                shared.client.create_multipart_upload().bucket(&*self.name).key(key).set_expected_bucket_owner(shared.owner.clone());
            let checksum = shared.sends_checksums.then_some(ChecksumAlgorithm::Crc32);
            create.metadata(TOKEN, &token).set_checksum_algorithm(checksum).send()
        };
        let failed = |failure| self.error(Action::PutObject, Some(key), failure);
        let output = self.s3.aws.block_on(shared.send(shared.attempt_timeout, create)).map_err(failed)?;
        let Some(upload_id) = output.upload_id() else {
            return Err(failed(Failure::new(Class::Final, "an answer without an upload id")));
        };
        let receipt = Receipt { key: key.to_owned(), upload_id: upload_id.to_owned(), token, bytes: 0, parts: Vec::new() };
        Ok(Upload { bucket: self.clone(), receipt, buffer: Vec::new(), under_way: VecDeque::new(), state: State::Open })
    }

    /// Makes a finished upload visible, in place of what had its key. It may be asked again: an upload that is visible already is no
    /// error.
    ///
    /// # Errors
    /// Kind `Output` when the upload does not exist any more, and has not made the object that is there; else as for
    /// [`upload`](Self::upload).
    pub fn complete(&self, receipt: &Receipt) -> Result<()> {
        let completed = self.s3.aws.block_on(self.s3.shared.complete(&self.name, receipt));
        completed.map_err(|failure| self.error(Action::PutObject, Some(&receipt.key), failure))
    }

    /// Makes S3 forget an upload that is not visible yet, with its parts. One that does not exist any more is no error.
    ///
    /// # Errors
    /// As for [`upload`](Self::upload).
    pub fn abort(&self, key: &str, upload_id: &str) -> Result<()> {
        let aborted = self.s3.aws.block_on(self.s3.shared.abort(&self.name, key, upload_id));
        aborted.map_err(|failure| self.error(Action::AbortMultipartUpload, Some(key), failure))
    }

    /// The uploads to keys that start with `prefix` which were neither completed nor aborted.
    ///
    /// # Errors
    /// As for [`upload`](Self::upload).
    pub fn list_uploads(&self, prefix: &str) -> Result<Vec<PendingUpload>> {
        let listed = self.s3.aws.block_on(self.s3.shared.list_uploads(&self.name, prefix));
        listed.map_err(|failure| self.error(Action::ListBucketMultipartUploads, None, failure))
    }
}

impl Upload {
    /// Bytes written so far, those in the buffer too.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.receipt.bytes
    }

    /// Writes all of `bytes`; waits while two parts are under way and a third is full.
    ///
    /// # Errors
    /// As for [`Bucket::upload`], by this or an earlier part; nothing can be written after that.
    pub fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.check_whole()?;
        while !bytes.is_empty() {
            // What is written already decides, so that the same bytes always make the same parts.
            let before = self.receipt.bytes - self.buffer.len() as u64;
            let part = usize::try_from(part_bytes(before)).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(bytes.len().min(part - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            self.receipt.bytes += now.len() as u64;
            bytes = rest;
            if self.buffer.len() == part {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Sends what is left and waits until all parts are stored. The object is not visible yet.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    pub fn finish(mut self) -> Result<Receipt> {
        self.check_whole()?;
        // An object without bytes has one part without bytes.
        if !self.buffer.is_empty() || self.receipt.bytes == 0 {
            self.send()?;
        }
        self.settle(0)?;
        self.state = State::Finished;
        Ok(mem::take(&mut self.receipt))
    }

    /// Whoever gets an error may go on all the same, and the object would have a gap.
    fn check_whole(&self) -> Result<()> {
        match self.state {
            State::Broken => Err(Error::new(Kind::Bug, "an upload goes on after an error").with("object", &self.receipt.key)),
            State::Open | State::Finished => Ok(()),
        }
    }

    /// Sends the buffer as the next part.
    fn send(&mut self) -> Result<()> {
        self.settle(UNDER_WAY - 1)?;
        let number = i32::try_from(self.receipt.parts.len() + self.under_way.len() + 1).unwrap_or(i32::MAX);
        if number > MOST_PARTS {
            self.state = State::Broken;
            return Err(Error::new(Kind::Output, "the object is too large").with("on", &self.receipt.key).with("found", self.bytes()));
        }
        let bytes = Bytes::from(mem::take(&mut self.buffer));
        let (shared, bucket) = (Arc::clone(&self.bucket.s3.shared), Arc::clone(&self.bucket.name));
        let (key, upload_id) = (self.receipt.key.clone(), self.receipt.upload_id.clone());
        // Parts that are under way end by themselves, so there will be room.
        let permits = u32::try_from(bytes.len().min(shared.limits.sending)).unwrap_or(u32::MAX);
        let room = self.bucket.s3.aws.block_on(Arc::clone(&shared.sending).acquire_many_owned(permits)).map_err(broke_off)?;
        self.under_way.push_back(self.bucket.s3.aws.spawn(async move {
            let _room = room;
            shared.put_part(&bucket, &key, &upload_id, number, bytes).await
        }));
        Ok(())
    }

    /// Waits until no more than `most` parts are under way.
    fn settle(&mut self, most: usize) -> Result<()> {
        while self.under_way.len() > most
            && let Some(part) = self.under_way.pop_front()
        {
            let stored = match self.bucket.s3.aws.block_on(part) {
                Ok(stored) => stored.map_err(|failure| self.bucket.error(Action::PutObject, Some(&self.receipt.key), failure)),
                Err(cause) => Err(broke_off(cause)),
            };
            match stored {
                Ok(part) => self.receipt.parts.push(part),
                Err(error) => {
                    self.state = State::Broken;
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    /// Nothing is sent before a part is full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.state == State::Finished {
            return;
        }
        // A part that arrives later than the request to forget the upload would stay.
        self.under_way.iter().for_each(JoinHandle::abort);
        let (shared, bucket) = (Arc::clone(&self.bucket.s3.shared), Arc::clone(&self.bucket.name));
        let (key, upload_id) = (mem::take(&mut self.receipt.key), mem::take(&mut self.receipt.upload_id));
        // Whether it succeeds nobody can be told; what stays is found by the list of uploads.
        drop(self.bucket.s3.aws.spawn(async move { shared.abort(&bucket, &key, &upload_id).await }));
    }
}

/// The size of a part that comes after so many bytes, in whole MiB.
fn part_bytes(before: u64) -> u64 {
    (before / GROWTH).next_multiple_of(1 << 20).clamp(PART_BYTES, MOST_PART_BYTES)
}

impl Shared {
    async fn put_part(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        number: i32,
        bytes: Bytes,
    ) -> std::result::Result<PartReceipt, Failure> {
        let put = || {
            let put = self.client.upload_part().bucket(bucket).key(key).set_expected_bucket_owner(self.owner.clone());
            put.upload_id(upload_id).part_number(number).body(ByteStream::from(bytes.clone())).send()
        };
        let output = self.send(self.limit_for(bytes.len()), put).await?;
        let etag = output.e_tag().ok_or_else(|| Failure::new(Class::Final, "an answer without an ETag"))?.to_owned();
        Ok(PartReceipt { number, etag, crc32: output.checksum_crc32().map(str::to_owned) })
    }

    async fn complete(&self, bucket: &str, receipt: &Receipt) -> std::result::Result<(), Failure> {
        let Receipt { key, upload_id, token, bytes, parts } = receipt;
        let completed = |part: &PartReceipt| {
            let PartReceipt { number, etag, crc32 } = part;
            CompletedPart::builder().part_number(*number).e_tag(etag).set_checksum_crc32(crc32.clone()).build()
        };
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts.iter().map(completed).collect())).build();
        let complete = || {
            let complete = self.client.complete_multipart_upload().bucket(bucket).key(key).set_expected_bucket_owner(self.owner.clone());
            complete.upload_id(upload_id).multipart_upload(parts.clone()).send()
        };
        let many = u32::try_from(receipt.parts.len()).unwrap_or(u32::MAX);
        let limit = self.attempt_timeout.saturating_add(TIME_FOR_A_PART.saturating_mul(many));
        let failure = match self.send(limit, complete).await {
            Ok(_) => return Ok(()),
            Err(failure) if failure.is("NoSuchUpload") => failure,
            Err(failure) => return Err(failure),
        };
        // It may have been completed already, by an attempt whose answer was lost or by an earlier run.
        let head = || self.client.head_object().bucket(bucket).key(key).set_expected_bucket_owner(self.owner.clone()).send();
        let Ok(found) = self.send(self.attempt_timeout, head).await else { return Err(failure) };
        let made_by = found.metadata().and_then(|metadata| metadata.get(TOKEN));
        let same_size = found.content_length().is_some_and(|length| u64::try_from(length) == Ok(*bytes));
        if made_by == Some(token) && same_size { Ok(()) } else { Err(failure) }
    }

    async fn abort(&self, bucket: &str, key: &str, upload_id: &str) -> std::result::Result<(), Failure> {
        let abort = || {
            let abort = self.client.abort_multipart_upload().bucket(bucket).key(key).set_expected_bucket_owner(self.owner.clone());
            abort.upload_id(upload_id).send()
        };
        match self.send(self.attempt_timeout, abort).await {
            Err(failure) if !failure.is("NoSuchUpload") => Err(failure),
            _ => Ok(()),
        }
    }

    async fn list_uploads(&self, bucket: &str, prefix: &str) -> std::result::Result<Vec<PendingUpload>, Failure> {
        let mut pending = Vec::new();
        let mut next: Option<(String, Option<String>)> = None;
        loop {
            let list = || {
                let (key, upload_id) = next.clone().unzip();
                let list = self.client.list_multipart_uploads().bucket(bucket).set_expected_bucket_owner(self.owner.clone());
                list.prefix(prefix).set_key_marker(key).set_upload_id_marker(upload_id.flatten()).send()
            };
            let page = self.send(self.attempt_timeout, list).await?;
            pending.extend(
                page.uploads()
                    .iter()
                    .filter_map(|upload| Some(PendingUpload { key: upload.key()?.to_owned(), upload_id: upload.upload_id()?.to_owned() })),
            );
            if page.is_truncated() != Some(true) {
                return Ok(pending);
            }
            let marker = page.next_key_marker().map(|key| (key.to_owned(), page.next_upload_id_marker().map(str::to_owned)));
            next = Some(next_page(next.as_ref(), marker)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_parts_hold_more_than_s3s_five_tebibytes_and_parts_stay_small_until_ten_gibibytes() {
        let (mut bytes, mut small_until) = (0_u64, 0);
        for _ in 0..MOST_PARTS {
            let part = part_bytes(bytes);
            assert!((PART_BYTES..=MOST_PART_BYTES).contains(&part));
            if part == PART_BYTES {
                small_until = bytes;
            }
            bytes += part;
        }
        assert!(bytes > 5 << 40, "{bytes}");
        assert!((9 << 30..11 << 30).contains(&small_until), "{small_until}");
    }
}
