//! The work folder of a run: its reports, its rejects, and what a pass keeps on disk.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};

/// Folders in the work folder that belong to one run; the next one empties them, but for the rejects, which it moves aside.
pub(super) const OF_A_RUN: [&str; 4] = ["units", "rejects", "keys", "unfinished"];

/// The file that says whose folder it is, and that a run locks.
const LOCK: &str = "dynamorph.lock";

/// A work folder that this run has for itself.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    _lock: File,
}

impl WorkFolder {
    /// Takes the folder, and makes it where it is missing. A folder with other people's files is refused, since a run removes
    /// what an earlier run left.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let lock = path.join(LOCK);
        fs::create_dir_all(path).map_err(|error| failed(path, error))?;
        let ours = lock.is_file() || fs::read_dir(path).map_err(|error| failed(path, error))?.next().is_none();
        if !ours {
            return Err(Error::new(Kind::Usage, "the work folder holds files that are not of a run")
                .with("path", path.display())
                .with("expected", "a new or empty folder, or the work folder of an earlier run")
                .with("hint", "name another folder with --work"));
        }
        let file = File::options().create(true).append(true).open(&lock).map_err(|error| failed(path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: file }),
            Err(TryLockError::WouldBlock) => Err(Error::new(Kind::Usage, "another run uses this work folder")
                .with("path", path.display())
                .with("hint", "wait for it to end, or name another folder with --work")),
            Err(TryLockError::Error(error)) => Err(failed(path, error)),
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is not published yet.
    pub(super) fn unfinished(&self) -> PathBuf {
        self.path.join("unfinished")
    }

    /// Where rejects are published.
    pub(super) fn rejects(&self) -> PathBuf {
        self.path.join("rejects")
    }

    /// Where the survey keeps keys.
    pub(super) fn keys(&self) -> PathBuf {
        self.path.join("keys")
    }

    /// Takes away what an earlier run left, so that no old report can be taken for a new one. Its rejects stay.
    pub(super) fn empty(&self) -> Result<()> {
        let empty = || {
            absent_is_fine(fs::remove_file(self.path.join("report.json")))?;
            for folder in OF_A_RUN.iter().filter(|folder| **folder != "rejects") {
                absent_is_fine(fs::remove_dir_all(self.path.join(folder)))?;
            }
            fs::create_dir_all(self.unfinished())
        };
        empty().map_err(|error| failed(&self.path, error))
    }
}

/// Removing what is not there is no error.
fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The disk refused.
pub(super) fn failed(path: &Path, error: io::Error) -> Error {
    Error::new(Kind::Output, "cannot use the work folder").with("path", path.display()).caused_by(error)
}
