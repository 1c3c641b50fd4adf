//! Records on disk, spread over partition files by the hash of their key, so that each partition can be held in memory alone.
//!
//! Knows nothing of what a record holds.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustc_hash::{FxBuildHasher, FxHasher};

use crate::error::{Error, Kind, Result};
use crate::model::TableId;

/// Writes to a partition gather in this many bytes.
const BUFFER: usize = 32 << 10;

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
            (0..partitions).map(|at| Ok(BufWriter::with_capacity(BUFFER, File::create(folder.join(at.to_string()))?))).collect()
        };
        let partitions = open().map_err(|error| failed(folder, error))?;
        Ok(Self { folder: folder.to_owned(), partitions })
    }

    /// Goes on with a log where it had these [lengths](Self::sync); what came after them is cut off.
    ///
    /// # Errors
    /// When a file is missing, shorter than it was, or cannot be opened.
    pub fn go_on(folder: &Path, lengths: &[u64]) -> Result<Self> {
        let open = |(at, length): (usize, &u64)| -> io::Result<BufWriter<File>> {
            let mut file = File::options().write(true).open(folder.join(at.to_string()))?;
            if file.metadata()?.len() < *length {
                return Err(io::Error::other("a file of keys is shorter than it was"));
            }
            file.set_len(*length)?;
            file.seek(SeekFrom::End(0))?;
            Ok(BufWriter::with_capacity(BUFFER, file))
        };
        let partitions = lengths.iter().enumerate().map(open).collect::<io::Result<_>>().map_err(|error| failed(folder, error))?;
        Ok(Self { folder: folder.to_owned(), partitions })
    }

    /// How many partitions there are.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Makes what was appended durable; gives the lengths of all partitions.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&mut self) -> Result<Vec<u64>> {
        let sync = |file: &mut BufWriter<File>| -> io::Result<u64> {
            file.flush()?;
            let length = file.get_ref().metadata()?.len();
            if length > 0 {
                file.get_ref().sync_data()?;
            }
            Ok(length)
        };
        self.partitions.iter_mut().map(sync).collect::<io::Result<_>>().map_err(|error| failed(&self.folder, error))
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
