//! The work folder of a run: its reports, its rejects, and what a pass keeps on disk.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Kind, Result};
use crate::exec::made::Made;
use crate::exec::state;

/// Folders in the work folder that belong to one run; the next one empties them, but for the rejects, which it moves aside.
pub(super) const OF_A_RUN: [&str; 4] = ["units", "rejects", "keys", "unfinished"];

/// The folder in the work folder that holds the undo log of its run. Only a person removes it.
pub(super) const UNDO: &str = "undo";

/// The file that says whose folder it is, and that a run locks.
const LOCK: &str = "dynamorph.lock";

/// How often a run tries to take the folder, and how long it waits in between.
const LOOKS: u32 = 5;
const A_LOOK: Duration = Duration::from_millis(20);

/// A work folder that this run has for itself.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    _lock: File,
}

impl WorkFolder {
    /// Takes the folder, and makes it where it is missing. A folder with other people's files is refused, since a run removes
    /// what an earlier run left.
    ///
    /// `made` gets to know what was not there.
    pub(super) fn open(path: &Path, made: &mut Made) -> Result<Self> {
        let lock = path.join(LOCK);
        made.folder(path);
        fs::create_dir_all(path).map_err(|error| failed(path, error))?;
        let ours = lock.is_file() || fs::read_dir(path).map_err(|error| failed(path, error))?.next().is_none();
        if !ours {
            return Err(Error::new(Kind::Usage, "the work folder holds files that are not of a run")
                .with("path", path.display())
                .with("expected", "a new or empty folder, or the work folder of an earlier run")
                .with("hint", "name another folder with --work"));
        }
        let is_new = !lock.exists();
        let file = File::options().create(true).append(true).open(&lock).map_err(|error| failed(path, error))?;
        let mut locked = file.try_lock();
        // Whoever only looks at the folder holds the lock for a moment.
        for _ in 0..LOOKS {
            if !matches!(locked, Err(TryLockError::WouldBlock)) {
                break;
            }
            thread::sleep(A_LOOK);
            locked = file.try_lock();
        }
        match locked {
            Ok(()) if is_at(&file, &lock) => {
                if is_new {
                    made.file(lock);
                }
                Ok(Self { path: path.to_owned(), _lock: file })
            }
            Ok(()) | Err(TryLockError::WouldBlock) => Err(Error::new(Kind::Usage, "another run uses this work folder")
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

    /// Takes away what a run left that never goes on: all but rejects and undo logs.
    pub(super) fn forget(&self) -> Result<()> {
        state::forget(&self.path)?;
        let mut folders = OF_A_RUN.iter().filter(|folder| **folder != "rejects").map(|folder| self.path.join(folder));
        folders.try_for_each(|folder| absent_is_fine(fs::remove_dir_all(&folder)).map_err(|error| failed(&folder, error)))
    }

    /// Takes away what an earlier run left, so that no old report can be taken for a new one. Its rejects stay, and so does its undo log,
    /// which gets another name; gives that.
    pub(super) fn empty(&self) -> Result<Option<PathBuf>> {
        self.forget()?;
        let empty = || {
            fs::create_dir_all(self.unfinished())?;
            set_aside(&self.path.join(UNDO))
        };
        empty().map_err(|error| failed(&self.path, error))
    }

    /// Takes away the rejects of a unit that was not finished.
    pub(super) fn forget_rejects(&self, unit: u32) -> Result<()> {
        let folder = self.unfinished();
        let forget = || {
            fs::create_dir_all(&folder)?;
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if entry.file_name().to_string_lossy().starts_with(&rejects_stem(unit)) {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        forget().map_err(|error| failed(&folder, error))
    }

    /// Takes away the reports of all units, at one moment: they are to be done again.
    pub(super) fn forget_units(&self) -> Result<()> {
        let (units, aside) = (self.path.join("units"), self.unfinished().join("units"));
        absent_is_fine(fs::remove_dir_all(&aside)).map_err(|error| failed(&aside, error))?;
        fs::create_dir_all(self.unfinished()).map_err(|error| failed(&self.unfinished(), error))?;
        absent_is_fine(fs::rename(&units, &aside)).map_err(|error| failed(&units, error))?;
        absent_is_fine(fs::remove_dir_all(&aside)).map_err(|error| failed(&aside, error))
    }

    /// Whether a run holds the folder now.
    pub(super) fn is_held(path: &Path) -> bool {
        let Ok(file) = File::open(path.join(LOCK)) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

/// Whether the file or folder that is open is what lies at this path now: what is locked may have been taken away by the run that had it before.
pub(super) fn is_at(open: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let place = |found: fs::Metadata| (found.dev(), found.ino());
        open.metadata().ok().map(place) == fs::metadata(path).ok().map(place)
    }
    #[cfg(not(unix))]
    {
        let _ = open;
        path.exists()
    }
}

/// How the names of a unit's rejects files begin.
pub(super) fn rejects_stem(unit: u32) -> String {
    format!("unit-{unit:05}")
}

/// Moves a folder to the first free name of `NAME.1`, `NAME.2` … beside it, and gives that name; `None` where there is no such folder.
pub(super) fn set_aside(folder: &Path) -> io::Result<Option<PathBuf>> {
    if !folder.exists() {
        return Ok(None);
    }
    let free = (1..=u32::MAX).map(|number| folder.with_extension(number.to_string())).find(|path| !path.exists());
    let free = free.ok_or_else(|| io::Error::other("there are too many folders of earlier runs"))?;
    fs::rename(folder, &free).map(|()| Some(free))
}

/// Removing what is not there is no error.
pub(super) fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The disk refused.
pub(super) fn failed(path: &Path, error: io::Error) -> Error {
    Error::new(Kind::Output, "cannot use the work folder").with("path", path.display()).caused_by(error)
}
