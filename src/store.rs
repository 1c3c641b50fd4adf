//! Where files are read and written, and how output becomes visible: durable before it is named, and never half of it.
//!
//! Nothing here knows what the files hold. A sink writes into a [`Staging`] folder inside its final folder; what
//! it publishes appears there by rename or by completing uploads, so half a file is never seen under a final name.

mod local;
mod location;
mod published;
#[cfg(feature = "s3")]
mod s3;

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};

pub use local::{LocalFile, LocalStaging, write_atomically};
pub use location::{Facts, Found, Location, Stamp, look_all};
#[cfg(feature = "s3")]
pub use s3::{S3File, S3Folder, S3Staging};

/// The folder for unfinished output, inside the final one so that a rename never crosses a file system.
pub const UNFINISHED: &str = ".dynamorph-unfinished";

/// The list of published files, at the top of the final folder; what may be removed when a run overwrites.
pub const PUBLISHED: &str = ".dynamorph-output.json";

/// An error of the file system with the path it concerns.
pub(crate) fn io_error(kind: Kind, message: &str, path: &Path, cause: io::Error) -> Error {
    Error::new(kind, message).with("file", path.display()).caused_by(cause)
}

/// Reads a small file whole.
///
/// # Errors
/// Kind `Input`, with the path, when it cannot be read.
pub fn read_whole(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|cause| io_error(Kind::Input, "cannot read the file", path, cause))
}

/// How a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// From nothing; what a run that was stopped left unfinished is removed.
    Anew,
    /// Where the same run was stopped; what it left unfinished stays.
    GoOn,
}

/// The final folder of a sink.
#[derive(Clone, Debug)]
pub enum OutputFolder {
    /// A folder of this machine.
    Local(PathBuf),
    /// A prefix in a bucket.
    #[cfg(feature = "s3")]
    S3(S3Folder),
}

impl OutputFolder {
    /// The folder that `s3://BUCKET/PREFIX` names, or a whole bucket; `None` for any other text.
    ///
    /// # Errors
    /// Kind `Usage` when the bucket is missing, and what `connect` says.
    #[cfg(feature = "s3")]
    pub fn in_s3(url: &str, connect: impl FnOnce() -> Result<std::sync::Arc<crate::aws::s3::S3>>) -> Result<Option<Self>> {
        let Some((bucket, prefix)) = location::bucket_and_key(url)? else { return Ok(None) };
        Ok(Some(S3Folder::new(connect()?.bucket(bucket), prefix).into()))
    }

    /// Makes the folder ready and gives a staging folder in it.
    ///
    /// Nothing that was published is removed or replaced before [`Staging::publish`], so that a run that fails costs nothing.
    /// What a run that was killed before its publication staged is removed, unless this one goes on where that one stopped. What a
    /// publication that was cut short left is as good as published, its staging folder too; where that run had found the folder empty,
    /// `overwrite` is not needed to go on from there.
    ///
    /// # Errors
    /// Kind `Usage` when the folder holds published files and `overwrite` is false, or when it holds anything that
    /// dynamorph did not write; the first such path is named. Kind `Output` or `Service` when the folder cannot be made, read or written.
    pub fn prepare(&self, overwrite: bool, begin: Begin) -> Result<Staging> {
        match self {
            Self::Local(dir) => LocalStaging::prepare(dir, overwrite, begin).map(Staging::Local),
            #[cfg(feature = "s3")]
            Self::S3(folder) => S3Staging::prepare(folder, overwrite, begin).map(Staging::S3),
        }
    }

    /// Makes a folder ready that others write into too, and gives a staging folder in it. What a run that was killed staged is removed,
    /// unless this one goes on where that one stopped; in S3 that is what is called `mine…`, since others may have uploads under way.
    ///
    /// # Errors
    /// Kind `Usage` when the folder is a file, or holds what a sink published that has its folder for itself. Kind `Output` or `Service`
    /// when the folder cannot be made, read or written.
    #[cfg_attr(not(feature = "s3"), expect(unused_variables, reason = "a folder of this machine has nobody else's uploads"))]
    pub fn prepare_shared(&self, mine: &str, begin: Begin) -> Result<Staging> {
        match self {
            Self::Local(dir) => LocalStaging::prepare_shared(dir, begin).map(Staging::Local),
            #[cfg(feature = "s3")]
            Self::S3(folder) => S3Staging::prepare_shared(folder, mine, begin).map(Staging::S3),
        }
    }

    /// The name of the folder that means it wherever it is said: a path from the root with no links in it, or `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// Kind `Output` when the folder is not there, or its path is no text.
    pub fn address(&self) -> Result<String> {
        match self {
            Self::Local(dir) => {
                let cannot = || Error::new(Kind::Output, "cannot use the output folder").with("path", dir.display());
                let path = dir.canonicalize().map_err(|cause| cannot().caused_by(cause))?;
                path.into_os_string().into_string().map_err(|_| cannot().with("expected", "a path that is UTF-8 text"))
            }
            #[cfg(feature = "s3")]
            Self::S3(folder) => Ok(folder.to_string()),
        }
    }

    /// Writes a small file whole, durably, and at once under its final name; what had the name is replaced.
    ///
    /// # Errors
    /// Kind `Output` or `Service`, with the place.
    pub fn put_whole(&self, relative: &str, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Local(dir) => write_atomically(&dir.join(relative), bytes),
            #[cfg(feature = "s3")]
            Self::S3(folder) => folder.put_whole(relative, bytes.to_owned()),
        }
    }

    /// Takes away what is staged, for a run that will never publish it; in S3 that is what is called `mine…`. What a publication that was
    /// cut short left stays, since it may be the only copy.
    ///
    /// # Errors
    /// Kind `Output` or `Service` when it cannot be removed.
    #[cfg_attr(not(feature = "s3"), expect(unused_variables, reason = "a folder of this machine has nobody else's uploads"))]
    pub fn forget(&self, mine: &str) -> Result<()> {
        match self {
            Self::Local(dir) => LocalStaging::forget(dir),
            #[cfg(feature = "s3")]
            Self::S3(folder) => S3Staging::forget(folder, mine),
        }
    }

    /// Opens the staging folder. What is staged already stays.
    ///
    /// # Errors
    /// Kind `Output` when the folder cannot be made.
    pub fn staging(&self) -> Result<Staging> {
        match self {
            Self::Local(dir) => LocalStaging::open(dir).map(Staging::Local),
            #[cfg(feature = "s3")]
            Self::S3(folder) => Ok(Staging::S3(S3Staging::open(folder))),
        }
    }
}

impl From<PathBuf> for OutputFolder {
    fn from(dir: PathBuf) -> Self {
        Self::Local(dir)
    }
}

#[cfg(feature = "s3")]
impl From<S3Folder> for OutputFolder {
    fn from(folder: S3Folder) -> Self {
        Self::S3(folder)
    }
}

impl fmt::Display for OutputFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(dir) => dir.display().fmt(f),
            #[cfg(feature = "s3")]
            Self::S3(folder) => folder.fmt(f),
        }
    }
}

/// Output that is not visible yet.
#[derive(Debug)]
pub enum Staging {
    /// In a folder of this machine.
    Local(LocalStaging),
    /// Below a prefix in a bucket.
    #[cfg(feature = "s3")]
    S3(S3Staging),
}

impl Staging {
    /// Creates a file that will be `relative` below the final folder. A staged file of that name is replaced, so
    /// that a unit that is run again writes the same names. While it is open it costs a buffer of 256 KiB, in S3 one of 8 MiB.
    ///
    /// # Errors
    /// Kind `Output` when `relative` leaves the folder; kind `Output` or `Service` when the file cannot be created.
    pub fn create(&self, relative: &Path) -> Result<StagedFile> {
        match self {
            Self::Local(staging) => staging.create(relative).map(StagedFile::Local),
            #[cfg(feature = "s3")]
            Self::S3(staging) => staging.create(relative).map(|file| StagedFile::S3(Box::new(file))),
        }
    }

    /// Checks that files are staged with these sizes, or are there under their final names where they may be `published` already.
    ///
    /// # Errors
    /// Kind `Output` when a file is missing or has another size than reported.
    pub fn check(&self, files: &[(PathBuf, u64)], published: bool) -> Result<()> {
        match self {
            Self::Local(staging) => staging.check(files, published),
            #[cfg(feature = "s3")]
            Self::S3(staging) => staging.check(files, published),
        }
    }

    /// Gives the staged files their final names beside all that is there, and removes the staging folder. No list of them is kept: what
    /// they are for must say so. When it returns, everything is durable. What was cut short is finished by the same call.
    ///
    /// # Errors
    /// Kind `Output` when a file is missing or has another size than reported; no file has got its name then. Also when a file cannot be
    /// given its name.
    pub fn publish_beside(self, files: &[(PathBuf, u64)]) -> Result<()> {
        match self {
            Self::Local(staging) => staging.publish_beside(files),
            #[cfg(feature = "s3")]
            Self::S3(staging) => staging.publish_beside(files),
        }
    }

    /// Gives the staged files their final names, removes what an earlier run had published and this one did not
    /// replace, and removes the staging folder. When it returns, everything is durable.
    ///
    /// A publication that is cut short is finished by the next one, whose files replace what it left: the list of
    /// published files is written, marked incomplete, before the first file gets its name.
    ///
    /// # Errors
    /// Kind `Output` when a file is missing, has another size than reported, or would replace a file that
    /// dynamorph did not write; no file has got its name then. Also when a file cannot be given its name.
    pub fn publish(self, files: &[(PathBuf, u64)]) -> Result<()> {
        match self {
            Self::Local(staging) => staging.publish(files),
            #[cfg(feature = "s3")]
            Self::S3(staging) => staging.publish(files),
        }
    }
}

/// A file on its way; buffered. Dropped without [`finish`](Self::finish) it stays unfinished, or is forgotten.
#[derive(Debug)]
pub enum StagedFile {
    /// In a folder of this machine.
    Local(LocalFile),
    /// An upload.
    #[cfg(feature = "s3")]
    S3(Box<S3File>),
}

impl StagedFile {
    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// Kind `Output` or `Service`, with the place.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Local(file) => file.put(bytes),
            #[cfg(feature = "s3")]
            Self::S3(file) => file.put(bytes),
        }
    }

    /// Writes what is left in buffers, makes the content durable and closes; gives the size in bytes.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    pub fn finish(self) -> Result<u64> {
        match self {
            Self::Local(file) => file.finish(),
            #[cfg(feature = "s3")]
            Self::S3(file) => file.finish(),
        }
    }
}

impl Write for StagedFile {
    /// An error of S3 is inside the [`io::Error`], and comes out of it by [`downcast`](io::Error::downcast).
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Local(file) => file.write(bytes),
            #[cfg(feature = "s3")]
            Self::S3(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Local(file) => file.flush(),
            #[cfg(feature = "s3")]
            Self::S3(file) => file.flush(),
        }
    }
}
