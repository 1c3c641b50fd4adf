//! Exports: which data files there are, and their lines in chunks. Knows manifests, gzip and line ends; knows
//! nothing of items.

pub mod chunk;
pub mod manifest;

/// Whole lines of one data file, the unit of parallel work and of order.
#[derive(Debug)]
pub struct Chunk {
    /// The file and the number of the first line.
    pub first: crate::model::Origin,
    /// How each line is written.
    pub format: crate::model::Format,
    /// Whole lines, each ended by `\n` but perhaps the last of a file.
    pub bytes: Vec<u8>,
}
