//! From a line to a record, by the rules of its file: what its first records look like, and what its manifest says that it holds.

use serde::{Deserialize, Serialize};

use crate::codec::{self, Decoded, Record, ion};
use crate::error::{Error, Kind, Reason, Stage};
use crate::exec::units::RunFile;
use crate::model::{Arena, Format, Origin};
use crate::source::manifest::{Export, View};
use crate::source::{Chunk, Lines};
use crate::store::Location;

/// What the records of a data file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Items, by the manifest.
    Items,
    /// Change records with these images, by the manifest.
    Changes(View),
    /// There is no manifest; one kind or the other.
    Either,
}

impl Holds {
    /// What the files of an export hold.
    pub(crate) fn of(export: &Export) -> Self {
        match (&export.summary, export.window()) {
            (None, _) => Self::Either,
            (Some(_), None) => Self::Items,
            (Some(_), Some(window)) => Self::Changes(window.view),
        }
    }

    fn check(self, record: &Record<'_>) -> Result<(), Reason> {
        let (rule, message) = match (self, record) {
            (Self::Items, Record::Change(_)) => ("change-among-items", "a change record in a full export, which holds items"),
            (Self::Changes(_), Record::Item(_)) => {
                ("item-among-changes", "an item in an incremental export, which holds change records: `Keys`, `Metadata` and images")
            }
            (Self::Changes(View::New), Record::Change(change)) if change.old.is_some() => {
                ("old-image", "a change record with `OldImage` in an export whose manifest says NEW_IMAGE")
            }
            _ => return Ok(()),
        };
        Err(Reason::new(Stage::Decode, rule, message))
    }
}

/// Decodes a line of the chunk, whose file holds what `holds` says.
///
/// # Errors
/// Why the line is no record of this file; stage `decode`.
pub(crate) fn decode<'a>(line: &'a str, chunk: &Chunk, holds: Holds, arena: &'a Arena) -> Result<Decoded<'a>, Reason> {
    let decoded = codec::decode_line(line, chunk.format, arena)?;
    holds.check(&decoded.record)?;
    let alike = match chunk.lines {
        Lines::Elements | Lines::Bare => return Ok(decoded),
        Lines::Wrapped => !decoded.bare,
        Lines::Marked => !decoded.bare && ion::is_marked(line),
    };
    if alike {
        return Ok(decoded);
    }
    let (has, lacks) = match (chunk.format, decoded.bare) {
        (Format::Json, _) => ("`{\"Item\":…}`", "a wrapper"),
        (Format::Ion, true) => ("`{Item:…}`", "a wrapper"),
        (Format::Ion, false) => ("`$ion_1_0`", "it"),
    };
    let message = format!("an item without {lacks} in a file whose first records have {has}; the inside of an item may look like that");
    Err(Reason::new(Stage::Decode, "not-alike", message))
}

/// The error that ends the run where a line that is no record, for `reason`, broke off inside its brackets, and the inside of an item
/// would look like the records of this file.
pub(crate) fn breaks_off(line: &[u8], chunk: &Chunk, at: Origin, file: &Location, reason: &str) -> Option<Error> {
    let trusted = match chunk.lines {
        Lines::Elements | Lines::Marked => true,
        Lines::Wrapped => chunk.format == Format::Json,
        Lines::Bare => false,
    };
    (!trusted && codec::breaks_off(line)).then(|| {
        Error::new(Kind::Input, "a line of the data file breaks off inside its brackets")
            .with("file", file)
            .with("line", at.line)
            .with("found", reason)
            .with("hint", "what follows may be the inside of an item and look like a record; mend the file, or make it again")
    })
}

/// The first item and the first change record among some records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kinds {
    pub(crate) item: Option<Origin>,
    pub(crate) change: Option<Origin>,
}

impl Kinds {
    /// Adds the kinds among records that come later.
    pub(crate) fn add(&mut self, later: Self) {
        self.item = self.item.or(later.item);
        self.change = self.change.or(later.change);
    }

    /// Checks that there is one kind alone: rows of items have no operation and no time of writing.
    ///
    /// # Errors
    /// Kind `Input`, with the place of one of each kind.
    pub(crate) fn check(self, files: &[RunFile]) -> Result<(), Error> {
        let (Some(item), Some(change)) = (self.item, self.change) else { return Ok(()) };
        Err(Error::new(Kind::Input, "items and change records were read together")
            .with("item", place(item, files))
            .with("change record", place(change, files))
            .with("expected", "one of the two kinds")
            .with("hint", "put each kind into files of its own where one file has both, and run them apart"))
    }
}

/// Where a record was read, for messages.
pub(crate) fn place(at: Origin, files: &[RunFile]) -> String {
    let file = &files[at.file.index()];
    place_in(&file.file.name, at.line, file.counts_elements())
}

/// `FILE:2`, or `FILE, element 2`.
pub(crate) fn place_in(file: &str, number: u64, is_element: bool) -> String {
    if is_element { format!("{file}, element {number}") } else { format!("{file}:{number}") }
}
