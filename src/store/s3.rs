//! Output below a prefix in a bucket: staged files are uploads that were finished and not completed, so that nobody sees them.
//!
//! The receipt of each lies as a small object below the prefix, under [`UNFINISHED`]: whoever publishes may be another process than
//! the one that wrote. There is no lock in S3. Two runs that write below one prefix at a time abort each other's uploads.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::aws::s3::{Bucket, Receipt, Upload};
use crate::error::Result;
use crate::store::published::{Published, State, in_the_way, missing, named, not_shared, published_name, wrong_size};
use crate::store::{Begin, PUBLISHED, UNFINISHED};

/// A prefix in a bucket, taken as a folder.
#[derive(Clone, Debug)]
pub struct S3Folder {
    bucket: Bucket,
    /// Empty, or with a `/` at its end.
    prefix: String,
}

impl S3Folder {
    /// What lies below `prefix`, with or without a `/` at its end; all of the bucket where it is empty.
    #[must_use]
    pub fn new(bucket: Bucket, prefix: &str) -> Self {
        let prefix = prefix.trim_end_matches('/');
        Self { bucket, prefix: if prefix.is_empty() { String::new() } else { format!("{prefix}/") } }
    }

    /// The bucket.
    #[must_use]
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// The prefix: empty, or with a `/` at its end.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// An object in words for a message.
    fn place(&self, name: &str) -> String {
        format!("s3://{}/{}", self.bucket.name(), self.key(name))
    }

    fn receipt_key(&self, name: &str) -> String {
        format!("{}{UNFINISHED}/{name}", self.prefix)
    }

    /// The names of the objects below the prefix, but for unfinished ones.
    fn present(&self) -> Result<Vec<String>> {
        let listing = self.bucket.list(&self.prefix, None)?;
        let name = |key: &str| key.strip_prefix(&self.prefix).unwrap_or(key).to_owned();
        // An empty object whose name ends so is what the console makes of a folder.
        let files = listing.objects.iter().filter(|object| !(object.key.ends_with('/') && object.facts.bytes == 0));
        Ok(files.map(|object| name(&object.key)).filter(|name| !Path::new(name).starts_with(UNFINISHED)).collect())
    }

    fn list(&self) -> Result<Option<Published>> {
        let list = self.bucket.get_whole(&self.key(PUBLISHED))?;
        list.map(|bytes| Published::parse(&bytes, &self.place(PUBLISHED))).transpose()
    }

    fn write_list(&self, list: Published) -> Result<()> {
        self.bucket.put_whole(&self.key(PUBLISHED), list.into_json())
    }

    pub(super) fn put_whole(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        self.bucket.put_whole(&self.key(name), bytes)
    }

    /// Removes what is staged and called `mine…`: the uploads that nobody will complete, and all receipts.
    fn clear(&self, mine: &str) -> Result<()> {
        let mut uploads = self.bucket.list_uploads(&self.prefix)?;
        uploads.retain(|upload| upload.key.rsplit('/').next().is_some_and(|name| name.starts_with(mine)));
        self.bucket.abort_all(&uploads)?;
        self.forget_receipts()
    }

    fn forget_receipts(&self) -> Result<()> {
        let receipts = self.bucket.list(&self.receipt_key(""), None)?;
        self.bucket.delete(&receipts.objects.into_iter().map(|object| object.key).collect::<Vec<_>>())
    }
}

impl fmt::Display for S3Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place("").trim_end_matches('/'))
    }
}

/// Output that is not visible yet.
#[derive(Debug)]
pub struct S3Staging {
    folder: S3Folder,
}

impl S3Staging {
    /// Makes the final folder ready; see [`OutputFolder::prepare`](crate::store::OutputFolder::prepare).
    pub(super) fn prepare(folder: &S3Folder, overwrite: bool, begin: Begin) -> Result<Self> {
        if begin == Begin::GoOn {
            // The run that was stopped has looked; what it published since is its own.
            return Ok(Self::open(folder));
        }
        let published = folder.list()?.unwrap_or_default();
        published.check_not_replacing(folder, overwrite)?;
        published.check_present(&folder.present()?, folder, overwrite)?;
        if published.state == State::Complete {
            // Nothing of anybody else is below the prefix, so these uploads are of a run that was killed.
            folder.clear("")?;
        }
        Ok(Self::open(folder))
    }

    /// Makes a folder ready that others write into too; see [`OutputFolder::prepare_shared`](crate::store::OutputFolder::prepare_shared).
    pub(super) fn prepare_shared(folder: &S3Folder, mine: &str, begin: Begin) -> Result<Self> {
        if begin == Begin::Anew {
            if folder.list()?.is_some() {
                return Err(not_shared(folder));
            }
            folder.clear(mine)?;
        }
        Ok(Self::open(folder))
    }

    /// Completes the uploads beside all that is there.
    pub(super) fn publish_beside(self, files: &[(PathBuf, u64)]) -> Result<()> {
        let names = named(files)?;
        let receipts = self.receipts(&names, |_| true)?;
        self.folder.bucket.complete_all(&receipts)?;
        self.folder.forget_receipts()
    }

    /// Takes away what is staged; see [`OutputFolder::forget`](crate::store::OutputFolder::forget).
    pub(super) fn forget(folder: &S3Folder, mine: &str) -> Result<()> {
        match folder.list()?.unwrap_or_default().state {
            State::Complete => folder.clear(mine),
            State::Filling | State::Replacing => Ok(()),
        }
    }

    /// Checks that the uploads are there, or the objects where they may be published already.
    pub(super) fn check(&self, files: &[(PathBuf, u64)], published: bool) -> Result<()> {
        self.receipts(&named(files)?, |_| published).map(drop)
    }

    pub(super) fn open(folder: &S3Folder) -> Self {
        Self { folder: folder.clone() }
    }

    pub(super) fn create(&self, relative: &Path) -> Result<S3File> {
        let name = published_name(relative)?;
        let upload = self.folder.bucket.upload(&self.folder.key(&name))?;
        Ok(S3File { upload, bucket: self.folder.bucket.clone(), receipt_key: self.folder.receipt_key(&name) })
    }

    pub(super) fn publish(self, files: &[(PathBuf, u64)]) -> Result<()> {
        let folder = &self.folder;
        let names = named(files)?;
        let earlier = folder.list()?;
        let may_be_there = |name: &String| earlier.as_ref().is_some_and(|list| list.state == State::Complete && list.files.contains(name));
        let receipts = self.receipts(&names, may_be_there)?;
        let is_ours = |name: &String| earlier.as_ref().is_some_and(|list| list.files.contains(name));
        if let Some(foreign) = folder.present()?.iter().find(|name| names.contains_key(*name) && !is_ours(name)) {
            return Err(in_the_way(&folder.place(foreign)));
        }
        folder.write_list(Published::under_way(earlier.as_ref(), &names))?;
        folder.bucket.complete_all(&receipts)?;
        let earlier = earlier.unwrap_or_default();
        folder.bucket.delete(&earlier.without(&names).map(|name| folder.key(name)).collect::<Vec<_>>())?;
        folder.write_list(Published::complete(&names))?;
        folder.clear("")
    }

    /// The receipts of the staged files, each of the size that its writer reported. A publication that was cut short has none for what it
    /// had published, and completed all of it before.
    fn receipts(&self, names: &BTreeMap<String, u64>, may_be_there: impl Fn(&String) -> bool) -> Result<Vec<Receipt>> {
        let keys: Vec<_> = names.keys().map(|name| self.folder.receipt_key(name)).collect();
        let found = self.folder.bucket.get_all(&keys)?;
        let missing = |name: &str| missing(&self.folder.place(name));
        let mut receipts = Vec::with_capacity(names.len());
        let mut published = Vec::new();
        for ((name, bytes), receipt) in names.iter().zip(found) {
            let Some(receipt) = receipt else {
                published.push((name, *bytes));
                continue;
            };
            let receipt: Receipt = serde_json::from_slice(&receipt)
                .map_err(|cause| missing(name).with("found", "a receipt that cannot be read").caused_by(cause))?;
            if receipt.key != self.folder.key(name) {
                return Err(missing(name).with("found", format_args!("a receipt of {}", receipt.key)));
            }
            if receipt.bytes != *bytes {
                return Err(wrong_size(&self.folder.place(name), *bytes, receipt.bytes));
            }
            receipts.push(receipt);
        }
        if let Some((name, _)) = published.iter().find(|(name, _)| !may_be_there(name)) {
            return Err(missing(name));
        }
        let keys: Vec<_> = published.iter().map(|(name, _)| self.folder.key(name)).collect();
        for ((name, bytes), facts) in published.iter().zip(self.folder.bucket.heads(&keys)?) {
            match facts {
                Some(facts) if facts.bytes == *bytes => {}
                Some(facts) => return Err(wrong_size(&self.folder.place(name), *bytes, facts.bytes)),
                None => return Err(missing(name)),
            }
        }
        Ok(receipts)
    }
}

/// A file on its way. Dropped before its end it is forgotten.
#[derive(Debug)]
pub struct S3File {
    upload: Upload,
    bucket: Bucket,
    receipt_key: String,
}

impl S3File {
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.upload.put(bytes)
    }

    pub(super) fn finish(self) -> Result<u64> {
        let receipt = self.upload.finish()?;
        let json = serde_json::to_vec(&receipt).expect("texts and numbers can be written as JSON");
        self.bucket.put_whole(&self.receipt_key, json)?;
        Ok(receipt.bytes)
    }
}

impl Write for S3File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.upload.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}
