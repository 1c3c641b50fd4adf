//! Units: the pieces of work that are done or not done, and their reports.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};
use crate::exec::ledger::Ledger;
use crate::exec::record::{Holds, Kinds};
use crate::model::{FileId, Format, SourceId};
use crate::shape::Shape;
use crate::sink::Written;
use crate::source::Lines;
use crate::source::manifest::DataFile;
use crate::store;

/// A data file of the run.
#[derive(Debug, Clone)]
pub(crate) struct RunFile {
    /// The source it belongs to.
    pub(crate) source: SourceId,
    /// The file.
    pub(crate) file: DataFile,
    /// The export it belongs to, by its place among those of the run.
    pub(crate) export: usize,
    /// What it holds.
    pub(crate) holds: Holds,
    /// How its records are written and which lines are records, once one was read.
    pub(crate) seen: OnceLock<(Format, Lines)>,
}

impl RunFile {
    /// Its name and how its records are written, once one was read.
    pub(crate) fn seen_format(&self) -> Option<(String, Format)> {
        self.seen.get().map(|(format, _)| (self.file.name.clone(), *format))
    }

    /// Whether places in it are numbers of elements, not of lines.
    pub(crate) fn counts_elements(&self) -> bool {
        matches!(self.seen.get(), Some((_, Lines::Elements)))
    }
}

/// Whole data files that are worked on together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// 1, 2, …; names of output carry it.
    pub(crate) number: u32,
    /// Its files, in the order in which they are opened.
    pub(crate) files: Vec<FileId>,
}

/// Packs the files into units of about `unit_bytes`: the largest first, each into the first unit with room. Depends on the manifest alone.
pub(crate) fn pack(files: &[RunFile], unit_bytes: u64) -> Vec<Unit> {
    let mut order: Vec<_> = (0_u32..).map(FileId).zip(files).collect();
    // Equal sizes go by place in the manifest, so that the order is whole.
    order.sort_by_key(|(id, file)| (std::cmp::Reverse(file.file.facts.bytes), *id));
    let mut units: Vec<(u64, Vec<FileId>)> = Vec::new();
    for (id, file) in order {
        let size = file.file.facts.bytes;
        match units.iter_mut().find(|(bytes, _)| bytes.saturating_add(size) <= unit_bytes) {
            Some((bytes, ids)) => {
                *bytes += size;
                ids.push(id);
            }
            None => units.push((size, vec![id])),
        }
    }
    (1..).zip(units).map(|(number, (_, files))| Unit { number, files }).collect()
}

/// What a unit did. It exists only when everything that the unit wrote is durable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct UnitReport {
    /// The unit's number.
    pub(crate) unit: u32,
    /// The names of its data files.
    pub(crate) files: Vec<String>,
    /// Its counts.
    pub(crate) ledger: Ledger,
    /// What each sink wrote, in the order of the command line.
    pub(crate) written: Vec<Written>,
    /// Items in its rejects file.
    pub(crate) rejects: u64,
    /// What was seen on the way, where the unit was written before all items were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seen: Option<Seen>,
}

/// What a unit that was written ahead says for the end of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// The shapes of its items by dataset id; none where no sink asks for them.
    pub(crate) shapes: Vec<Shape>,
    /// How long the log of keys is after it, by partition.
    pub(crate) keys: Vec<u64>,
    /// The kinds of its records, as the ledger has them.
    pub(crate) kinds: Vec<(Option<u32>, Kinds)>,
}

impl UnitReport {
    pub(crate) fn path(work: &Path, unit: u32) -> PathBuf {
        work.join("units").join(format!("unit-{unit:05}.json"))
    }

    pub(crate) fn save(&self, work: &Path) -> Result<()> {
        let bytes =
            serde_json::to_vec_pretty(self).map_err(|error| Error::new(Kind::Bug, "cannot write a unit's report").caused_by(error))?;
        store::write_atomically(&Self::path(work, self.unit), &bytes)
    }

    pub(crate) fn load(work: &Path, unit: u32) -> Result<Self> {
        let path = Self::path(work, unit);
        let bytes = store::read_whole(&path)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::new(Kind::Input, "a unit's report cannot be read").with("file", path.display()).caused_by(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Facts, Location, Stamp};

    fn file(name: &str, bytes: u64) -> RunFile {
        let facts = Facts { bytes, stamp: Stamp::Modified(None) };
        let file = DataFile { location: Location::Local(name.into()), name: name.to_owned(), items: None, md5: None, facts };
        RunFile { source: SourceId(0), export: 0, holds: Holds::Either, seen: OnceLock::new(), file }
    }

    #[test]
    fn units_hold_whole_files_the_largest_first() {
        let files = [file("a", 100 << 20), file("b", 300 << 20), file("c", 200 << 20), file("d", 20), file("e", 20)];
        let units: Vec<Vec<u32>> =
            pack(&files, 256 << 20).into_iter().map(|unit| unit.files.into_iter().map(|id| id.0).collect()).collect();
        assert_eq!(units, [vec![1], vec![2, 3, 4], vec![0]]);
    }

    #[test]
    fn an_export_without_files_has_no_units() {
        assert_eq!(pack(&[], 1), []);
    }
}
