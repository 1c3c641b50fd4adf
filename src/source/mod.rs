//! Exports: which data files there are, and their lines in chunks. Knows manifests, compression and how records lie in a file;
//! knows nothing of items.

pub mod chunk;
mod frame;
mod inflate;
pub mod manifest;
mod sniff;

/// Whole lines of one data file, the unit of parallel work and of order.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The file and the number of the first line. Where lines were made of the elements of JSON documents, elements are counted.
    pub first: crate::model::Origin,
    /// How each line is written.
    pub format: crate::model::Format,
    /// Whole lines, each ended by `\n` but perhaps the last of a file.
    pub bytes: Vec<u8>,
}
