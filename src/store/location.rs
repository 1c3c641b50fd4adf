//! A place that is read: a file or a folder, wherever it lies.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, Kind, Result};
use crate::store::io_error;

/// Where a file or a folder lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// A path of this machine.
    Local(PathBuf),
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
}

impl Location {
    /// The place `relative`, with `/` between names, below this one.
    #[must_use]
    pub fn join(&self, relative: &str) -> Self {
        match self {
            Location::Local(path) => Location::Local(path.join(relative)),
        }
    }

    /// The last name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Location::Local(path) => path.file_name().and_then(|name| name.to_str()),
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
        }
    }

    /// The path, where it is one of this machine.
    #[must_use]
    pub fn local(&self) -> Option<&Path> {
        match self {
            Location::Local(path) => Some(path),
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
        }
    }

    /// Whether a file is there.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn is_file(&self) -> Result<bool> {
        Ok(matches!(self.look()?, Some(Found::File(_))))
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
        }
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
        }
    }

    /// Opens a file to be read from its start.
    ///
    /// # Errors
    /// Kind `Input`, with the place, when it cannot be opened.
    pub fn open(&self) -> Result<Box<dyn Read + Send>> {
        match self {
            Location::Local(path) => {
                let file = File::open(path).map_err(|cause| io_error(Kind::Input, "cannot open the file", path, cause))?;
                Ok(Box::new(file))
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
        }
    }
}

/// Looks at many places, as [`Location::look`] does at one.
///
/// # Errors
/// The first that [`Location::look`] gives.
pub fn look_all(locations: &[Location]) -> Result<Vec<Option<Found>>> {
    locations.iter().map(Location::look).collect()
}

fn facts(found: &fs::Metadata) -> Facts {
    Facts { bytes: found.len(), stamp: Stamp::Modified(found.modified().ok()) }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Local(path) => path.display().fmt(f),
        }
    }
}
