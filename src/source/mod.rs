//! Exports: which data files there are, and their lines in chunks. Knows manifests, compression and how records lie in a file;
//! knows nothing of items.

pub mod chunk;
mod frame;
mod inflate;
pub mod manifest;
mod sniff;
pub mod turns;

/// Whole lines of one data file, the unit of parallel work and of order.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The file and the number of the first line. Where lines were made of the elements of JSON documents, elements are counted.
    pub first: crate::model::Origin,
    /// How each line is written.
    pub format: crate::model::Format,
    /// Which lines are records.
    pub lines: Lines,
    /// Whole lines, each ended by `\n` but perhaps the last of a file.
    pub bytes: Vec<u8>,
}

/// Which lines of a data file are records, by the first ones. A line that broke off inside its brackets leaves lines behind it that are
/// the inside of an item, and these must not be taken for items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// All: they were made of the elements of documents.
    Elements,
    /// Those with a wrapper such as `{"Item":…}`. In JSON nothing inside of an item looks like that.
    Wrapped,
    /// Those of Amazon Ion that have a version marker too, which nothing inside of an item has.
    Marked,
    /// Bare items too, as the first record is one. The inside of an item may look like that.
    Bare,
}
