//! An item on its way: where it came from, what was captured from its key, and the batch it is in.

use crate::error::Reason;
use crate::model::item::Item;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub struct $name(pub u32);

        impl $name {
            /// This id as an index into the list it belongs to.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A data file of the run, by its place in the list of all data files.
    FileId
);
id!(
    /// An entity of the plan: what an item is classified as.
    EntityId
);
id!(
    /// A target table of the plan.
    TableId
);
id!(
    /// A dataset of the plan: the items that leave under one entity name.
    DatasetId
);
id!(
    /// A source of the plan: one export with its key names.
    SourceId
);

/// The place an item was read from. Lines count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Origin {
    /// The data file.
    pub file: FileId,
    /// The line in the uncompressed file, from 1; in a file of JSON documents, the number of the element in the file, from 1.
    pub line: u64,
}

/// How a record is written in a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `DynamoDB` JSON.
    Json,
    /// Amazon Ion text.
    Ion,
}

/// The text that a record was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    /// How it is written.
    pub format: Format,
    /// What it is.
    pub part: Part,
    /// The text, from `{` to `}`; for [`Format::Ion`] without a version marker.
    pub bytes: &'a [u8],
}

/// What part of a line a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The attributes of an item.
    Item,
    /// A change record with all its members.
    Change,
}

impl<'a> Raw<'a> {
    /// The attributes of an item in `DynamoDB` JSON.
    #[must_use]
    pub const fn json(bytes: &'a [u8]) -> Self {
        Self { format: Format::Json, part: Part::Item, bytes }
    }
}

/// What happened to an item within the window of an incremental export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// It is there now. It may have been there before, where the export has no old images.
    Put,
    /// It was there before and has changed.
    Update,
    /// It is gone.
    Delete,
}

impl Op {
    /// The name that users see.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Op::Put => "put",
            Op::Update => "update",
            Op::Delete => "delete",
        }
    }
}

/// What a change record says besides its images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// What happened.
    pub op: Op,
    /// When the last write happened, in microseconds since 1970.
    pub written_at: u64,
    /// Nothing but the key is known of the item.
    pub keys_only: bool,
}

impl Change {
    /// The attributes that say on an item what happened to it, and when.
    pub const COLUMNS: [&str; 2] = ["_op", "_written_at"];
}

/// One item with what is known about it.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Where the item was read.
    pub origin: Origin,
    /// The item as it is now.
    pub item: Item<'a>,
    /// What the entity's key templates captured, by the slot that `bind` gave each name.
    pub captures: &'a [Option<&'a str>],
    /// What it was read from; rejects hold it unchanged.
    pub source: Raw<'a>,
    /// What happened to it, where it comes from a change record.
    pub change: Option<Change>,
    /// Size in bytes by `DynamoDB`'s arithmetic, known once the limits were checked; 0 before.
    pub size: u32,
}

impl Row<'_> {
    /// Whether nothing but the key is known of the item, so that what is absent may have been there.
    #[must_use]
    pub fn is_keys_only(&self) -> bool {
        self.change.is_some_and(|change| change.keys_only)
    }
}

/// What becomes of a row after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    Keep,
    /// A rule that the user wrote drops it; it is counted.
    Drop,
}

/// Rows of one entity that take the same way through the plan.
#[derive(Debug, Default)]
pub struct Batch<'a> {
    /// The rows still on their way, in the order they were read.
    pub rows: Vec<Row<'a>>,
    /// Rows that a rule dropped.
    pub dropped: Vec<Row<'a>>,
    /// Rows that could not be carried, each with its reason.
    pub refused: Vec<(Row<'a>, Reason)>,
}

impl<'a> Batch<'a> {
    /// Calls `step` for each row and files the row by the answer: kept in order, dropped, refused.
    pub fn each(&mut self, mut step: impl FnMut(&mut Row<'a>) -> Result<Fate, Reason>) {
        let Self { rows, dropped, refused } = self;
        // Most steps keep every row, so rows move only from the first one that leaves.
        let mut kept = 0;
        let mut leaving = Vec::new();
        for (at, row) in rows.iter_mut().enumerate() {
            match step(row) {
                Ok(Fate::Keep) => kept += 1,
                Ok(Fate::Drop) => leaving.push((at, None)),
                Err(reason) => leaving.push((at, Some(reason))),
            }
        }
        if leaving.is_empty() {
            return;
        }
        let mut leaving = leaving.into_iter().peekable();
        let mut staying = Vec::with_capacity(kept);
        for (at, row) in std::mem::take(rows).into_iter().enumerate() {
            match leaving.next_if(|(gone, _)| *gone == at) {
                None => staying.push(row),
                Some((_, None)) => dropped.push(row),
                Some((_, Some(reason))) => refused.push((row, reason)),
            }
        }
        *rows = staying;
    }
}
