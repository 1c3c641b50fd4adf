//! A place that is read: a file or a folder, wherever it lies.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[cfg(feature = "s3")]
use crate::aws::s3::{Bucket, ObjectFacts, S3};
use crate::error::{Error, Kind, Result};
use crate::store::{OutputFolder, io_error};

/// Where a file or a folder lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// A path of this machine.
    Local(PathBuf),
    /// An object of S3, or what has a key as its prefix.
    #[cfg(feature = "s3")]
    S3(Key),
}

/// A key in a bucket, without `/` at its end. Two are equal when bucket and key have the same names.
#[cfg(feature = "s3")]
#[derive(Clone, Debug)]
pub struct Key {
    bucket: Bucket,
    key: String,
}

#[cfg(feature = "s3")]
impl Key {
    fn parts(&self) -> (&str, &str) {
        (self.bucket.name(), &self.key)
    }

    /// The prefix of all keys below this one.
    fn prefix(&self) -> String {
        if self.key.is_empty() { String::new() } else { format!("{}/", self.key) }
    }
}

#[cfg(feature = "s3")]
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

#[cfg(feature = "s3")]
impl Eq for Key {}

#[cfg(feature = "s3")]
impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// What lies at a [`Location`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file that gives the same bytes each time it is read.
    File(Facts),
    /// A folder.
    Folder,
    /// A pipe or a device: it may give other bytes when it is read again, or none at all.
    Other,
}

/// What is known of a file before it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its size in bytes.
    pub bytes: u64,
    /// What changes with its content.
    pub stamp: Stamp,
}

/// What tells one state of a file from a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// When it was last written, where the file system says so.
    Modified(Option<SystemTime>),
    /// The tag that S3 gives each state of an object.
    ETag(String),
}

impl Location {
    /// The place that `s3://BUCKET/KEY` names; `None` for any other text.
    ///
    /// # Errors
    /// Kind `Usage` when the bucket is missing, and what `connect` says.
    #[cfg(feature = "s3")]
    pub fn in_s3(url: &str, connect: impl FnOnce() -> Result<std::sync::Arc<S3>>) -> Result<Option<Self>> {
        let Some((bucket, key)) = bucket_and_key(url)? else { return Ok(None) };
        Ok(Some(Location::S3(Key { bucket: connect()?.bucket(bucket), key: key.trim_end_matches('/').to_owned() })))
    }

    /// The same place, knowing that what lies there is encrypted with this key of KMS.
    #[must_use]
    pub fn encrypted_with(self, kms_key: &str) -> Self {
        match self {
            #[cfg(feature = "s3")]
            Location::S3(Key { bucket, key }) => Location::S3(Key { bucket: bucket.encrypted_with(kms_key), key }),
            other @ Location::Local(_) => {
                let _ = kms_key;
                other
            }
        }
    }

    /// The place `relative`, with `/` between names, below this one.
    #[must_use]
    pub fn join(&self, relative: &str) -> Self {
        match self {
            Location::Local(path) => Location::Local(path.join(relative)),
            #[cfg(feature = "s3")]
            Location::S3(place) => Location::S3(Key { bucket: place.bucket.clone(), key: format!("{}{relative}", place.prefix()) }),
        }
    }

    /// The last name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Location::Local(path) => path.file_name().and_then(|name| name.to_str()),
            #[cfg(feature = "s3")]
            Location::S3(place) => place.key.rsplit('/').next().filter(|name| !name.is_empty()),
        }
    }

    /// The folder it lies in.
    #[must_use]
    pub fn parent(&self) -> Self {
        match self {
            Location::Local(path) => Location::Local(match (path.file_name(), path.parent()) {
                (Some(_), Some(parent)) if !parent.as_os_str().is_empty() => parent.to_owned(),
                (Some(_), _) => PathBuf::from("."),
                // `.` and `..` have no name of their own.
                (None, _) => path.join(".."),
            }),
            #[cfg(feature = "s3")]
            Location::S3(Key { bucket, key }) => {
                let parent = key.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
                Location::S3(Key { bucket: bucket.clone(), key: parent })
            }
        }
    }

    /// The path, where it is one of this machine.
    #[must_use]
    pub fn local(&self) -> Option<&Path> {
        match self {
            Location::Local(path) => Some(path),
            #[cfg(feature = "s3")]
            Location::S3(_) => None,
        }
    }

    /// Looks what is there; `None`: nothing.
    ///
    /// # Errors
    /// Kind `Input`, with the place, when it cannot be looked at.
    pub fn look(&self) -> Result<Option<Found>> {
        match self {
            Location::Local(path) => match fs::metadata(path) {
                Ok(found) if found.is_dir() => Ok(Some(Found::Folder)),
                Ok(found) if found.is_file() => Ok(Some(Found::File(facts(&found)))),
                Ok(_) => Ok(Some(Found::Other)),
                Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
                Err(cause) => Err(io_error(Kind::Input, "cannot look at the path", path, cause)),
            },
            #[cfg(feature = "s3")]
            Location::S3(place) => {
                if !place.key.is_empty()
                    && let Some(found) = place.bucket.head(&place.key)?
                {
                    return Ok(Some(Found::File(found.into())));
                }
                Ok(place.bucket.any(&place.prefix())?.then_some(Found::Folder))
            }
        }
    }

    /// Whether a file is there.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn is_file(&self) -> Result<bool> {
        match self {
            Location::Local(_) => Ok(matches!(self.look()?, Some(Found::File(_)))),
            #[cfg(feature = "s3")]
            Location::S3(place) => Ok(place.bucket.head(&place.key)?.is_some()),
        }
    }

    /// The names of the folders in a folder, in order; none where there is no such folder.
    ///
    /// # Errors
    /// Kind `Input`, with the place, when it cannot be listed.
    pub fn folders(&self) -> Result<Vec<String>> {
        match self {
            Location::Local(path) => {
                let failed = |cause| io_error(Kind::Input, "cannot look into the folder", path, cause);
                let mut folders = Vec::new();
                let entries = match fs::read_dir(path) {
                    Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(folders),
                    entries => entries.map_err(failed)?,
                };
                for entry in entries {
                    let entry = entry.map_err(failed)?;
                    if entry.path().is_dir()
                        && let Some(name) = entry.file_name().to_str()
                    {
                        folders.push(name.to_owned());
                    }
                }
                folders.sort_unstable();
                Ok(folders)
            }
            #[cfg(feature = "s3")]
            Location::S3(place) => {
                let prefix = place.prefix();
                let listing = place.bucket.list(&prefix, Some("/"))?;
                let name = |folder: &String| Some(folder.strip_prefix(&prefix)?.trim_end_matches('/').to_owned());
                Ok(listing.folders.iter().filter_map(name).collect())
            }
        }
    }

    /// The files in a folder and in those below it, by their names below the folder with `/` between them, in order; none where there
    /// is no such folder. Memory grows with the listing.
    ///
    /// # Errors
    /// Kind `Input`, with the place, when it cannot be listed.
    pub fn files_below(&self) -> Result<Vec<(String, Facts)>> {
        let mut files = Vec::new();
        match self {
            Location::Local(path) => {
                let mut folders = vec![(path.clone(), String::new())];
                while let Some((folder, prefix)) = folders.pop() {
                    let failed = |cause| io_error(Kind::Input, "cannot look into the folder", &folder, cause);
                    let entries = match fs::read_dir(&folder) {
                        Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
                        entries => entries.map_err(failed)?,
                    };
                    for entry in entries {
                        let entry = entry.map_err(failed)?;
                        let found = fs::metadata(entry.path()).map_err(failed)?;
                        let name = entry.file_name();
                        let Some(name) = name.to_str() else {
                            return Err(Error::new(Kind::Input, "a file's name is no text").with("path", entry.path().display()));
                        };
                        let name = format!("{prefix}{name}");
                        if found.is_dir() {
                            folders.push((entry.path(), format!("{name}/")));
                        } else {
                            files.push((name, facts(&found)));
                        }
                    }
                }
            }
            #[cfg(feature = "s3")]
            Location::S3(place) => {
                let prefix = place.prefix();
                for object in place.bucket.list(&prefix, None)?.objects {
                    let name = object.key.strip_prefix(&prefix).unwrap_or(&object.key);
                    // Some consoles make an empty object for a folder.
                    if !name.is_empty() && !name.ends_with('/') {
                        files.push((name.to_owned(), object.facts.into()));
                    }
                }
            }
        }
        files.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(files)
    }

    /// Reads a small file whole; `None` where there is none.
    ///
    /// # Errors
    /// Kind `Input`, with the place, when it cannot be read.
    pub fn read_whole(&self) -> Result<Option<Vec<u8>>> {
        match self {
            Location::Local(path) => match fs::read(path) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(cause) => Err(io_error(Kind::Input, "cannot read the file", path, cause)),
            },
            #[cfg(feature = "s3")]
            Location::S3(place) => place.bucket.get_whole(&place.key),
        }
    }

    /// Opens the file that was looked at, to be read from its start. In S3 an object that was replaced since is not read.
    ///
    /// # Errors
    /// Kind `Input`, with the place, when it cannot be opened.
    #[cfg_attr(not(feature = "s3"), expect(unused_variables, reason = "a local file is opened whatever it was before"))]
    pub fn open(&self, facts: &Facts) -> Result<Box<dyn Read + Send>> {
        match self {
            Location::Local(path) => {
                let file = File::open(path).map_err(|cause| io_error(Kind::Input, "cannot open the file", path, cause))?;
                Ok(Box::new(file))
            }
            #[cfg(feature = "s3")]
            Location::S3(place) => {
                let Stamp::ETag(etag) = &facts.stamp else {
                    return Err(Error::new(Kind::Bug, "an object of S3 without its tag").with("file", self));
                };
                Ok(Box::new(place.bucket.reader(&place.key, &ObjectFacts { bytes: facts.bytes, etag: etag.clone() })))
            }
        }
    }

    /// Checks that the file is still the one that was looked at: what was proved of it in one pass must hold in the next.
    ///
    /// # Errors
    /// Kind `Input`, with the place, when it has changed or is gone.
    pub fn check_unchanged(&self, before: &Facts) -> Result<()> {
        match self {
            Location::Local(path) => {
                if fs::metadata(path).is_ok_and(|found| facts(&found) == *before) {
                    return Ok(());
                }
                Err(Error::new(Kind::Input, "a data file changed while it was read")
                    .with("file", self)
                    .with("expected", "the same size and time of last change as at the start")
                    .with("hint", "run again when nothing writes to the file any more"))
            }
            // Every request named the tag.
            #[cfg(feature = "s3")]
            Location::S3(_) => Ok(()),
        }
    }
}

impl From<&OutputFolder> for Location {
    fn from(folder: &OutputFolder) -> Self {
        match folder {
            OutputFolder::Local(dir) => Location::Local(dir.clone()),
            #[cfg(feature = "s3")]
            OutputFolder::S3(folder) => {
                Location::S3(Key { bucket: folder.bucket().clone(), key: folder.prefix().trim_end_matches('/').to_owned() })
            }
        }
    }
}

/// What `s3://BUCKET/KEY` names; `None` for any other text.
#[cfg(feature = "s3")]
pub(super) fn bucket_and_key(url: &str) -> Result<Option<(&str, &str)>> {
    let Some(rest) = url.strip_prefix("s3://") else { return Ok(None) };
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(Error::new(Kind::Usage, "the bucket is missing").with("found", url).with("expected", "s3://BUCKET/PREFIX"));
    }
    Ok(Some((bucket, key)))
}

/// Looks at many places, as [`Location::look`] does at one.
///
/// # Errors
/// The first that [`Location::look`] gives.
pub fn look_all(locations: &[Location]) -> Result<Vec<Option<Found>>> {
    #[cfg(feature = "s3")]
    if let Some(Location::S3(first)) = locations.first() {
        let key = |location: &Location| match location {
            Location::S3(place) if place.bucket.name() == first.bucket.name() => Some(place.key.clone()),
            _ => None,
        };
        // Many data files lie in one bucket; each by itself would take a round trip.
        if let Some(keys) = locations.iter().map(key).collect::<Option<Vec<_>>>() {
            return Ok(first.bucket.heads(&keys)?.into_iter().map(|found| found.map(|found| Found::File(found.into()))).collect());
        }
    }
    locations.iter().map(Location::look).collect()
}

#[cfg(feature = "s3")]
impl From<ObjectFacts> for Facts {
    fn from(found: ObjectFacts) -> Self {
        Self { bytes: found.bytes, stamp: Stamp::ETag(found.etag) }
    }
}

fn facts(found: &fs::Metadata) -> Facts {
    Facts { bytes: found.len(), stamp: Stamp::Modified(found.modified().ok()) }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Local(path) => path.display().fmt(f),
            #[cfg(feature = "s3")]
            Location::S3(place) => write!(f, "s3://{}/{}", place.bucket.name(), place.key),
        }
    }
}
