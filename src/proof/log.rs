//! Records on disk, spread over partition files by the hash of their key, so that each partition can be held in memory alone.
//!
//! Knows nothing of what a record holds.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustc_hash::{FxBuildHasher, FxHasher};

use crate::error::{Error, Kind, Result};
use crate::model::TableId;

/// Records of a chunk, sorted into partitions by a worker.
#[derive(Debug)]
pub struct Block {
    partitions: Vec<Vec<u8>>,
}

impl Block {
    /// An empty block for a log with this many partitions.
    #[must_use]
    pub fn new(partitions: usize) -> Self {
        Self { partitions: vec![Vec::new(); partitions] }
    }

    /// The partition of a key, for a record to be appended.
    pub(super) fn partition(&mut self, table: TableId, key: &[u8]) -> &mut Vec<u8> {
        let partition = place(0, table, key, self.partitions.len());
        &mut self.partitions[partition]
    }
}

/// Records on disk, while they are being collected.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    partitions: Vec<BufWriter<File>>,
}

impl Log {
    /// Starts a log in `folder`, which is emptied first.
    ///
    /// # Errors
    /// When the folder or a file cannot be made.
    pub fn create(folder: &Path, partitions: usize) -> Result<Self> {
        let open = || -> io::Result<Vec<BufWriter<File>>> {
            match fs::remove_dir_all(folder) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => fs::create_dir_all(folder)?,
            }
            (0..partitions).map(|at| Ok(BufWriter::with_capacity(32 << 10, File::create(folder.join(at.to_string()))?))).collect()
        };
        let partitions = open().map_err(|error| failed(folder, error))?;
        Ok(Self { folder: folder.to_owned(), partitions })
    }

    /// Appends a block.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn append(&mut self, block: &Block) -> Result<()> {
        for (file, bytes) in self.partitions.iter_mut().zip(&block.partitions) {
            file.write_all(bytes).map_err(|error| failed(&self.folder, error))?;
        }
        Ok(())
    }

    /// Ends the log; gives its partition files, each to be read alone.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn finish(self) -> Result<Vec<PathBuf>> {
        let Self { folder, partitions } = self;
        let count = partitions.len();
        for mut file in partitions {
            file.flush().map_err(|error| failed(&folder, error))?;
        }
        Ok((0..count).map(|at| folder.join(at.to_string())).collect())
    }
}

/// Where a key goes; each depth looks at the hash anew, so that a split spreads what shared a partition before.
pub(super) fn place(depth: u32, table: TableId, key: &[u8], partitions: usize) -> usize {
    let mut hasher: FxHasher = FxBuildHasher.build_hasher();
    hasher.write_u32(depth);
    hasher.write_u32(table.0);
    hasher.write(key);
    usize::try_from(hasher.finish() % partitions as u64).expect("the remainder is below a usize")
}

/// The disk refused.
pub(super) fn failed(path: &Path, error: io::Error) -> Error {
    Error::new(Kind::Output, "cannot keep keys on disk").with("path", path.display()).caused_by(error)
}
