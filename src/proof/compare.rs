//! Compares what must be in a target with what is there: keys and hashes alone, exactly and in bounded memory.
//!
//! Both sides append an entry for each item to a log of many partition files, chosen by the key; each partition of one side is then
//! read beside that of the other, and entries are paired by the bytes of their keys. Knows nothing of items and of what a place is.
//! Memory: the entries of one partition, some 64 MiB unless very many items have one key.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::model::{Arena, FileId, Origin, TableId};
use crate::proof::collisions;
use crate::proof::log::{self, Block, failed};

/// Partitions of both sides that are larger together are split again before they are held in memory.
const PARTITION_BYTES: u64 = 64 << 20;
/// How often a partition is split again. The entries of one key cannot be split.
const SPLITS: u32 = 3;
/// Into how many parts a large partition is split.
const SPLIT_INTO: usize = 16;
/// Bytes of an entry before its key.
const HEAD: usize = 40;

/// An item of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'k> {
    /// Where items are compared with each other: a table, a dataset.
    pub place: u32,
    /// What the item is counted as.
    pub row: u32,
    /// What tells the item from others of its place.
    pub key: &'k [u8],
    /// The hash of the whole item.
    pub hash: u128,
    /// Where it was read.
    pub origin: Origin,
}

/// How many partitions a comparison of so many items uses. Both sides must have as many.
#[must_use]
pub fn partitions_for(items: Option<u64>) -> usize {
    // Files of both sides are open at one time, and some systems allow no more than 1,024; larger partitions are split again.
    collisions::partitions_for(items).min(256)
}

/// Adds an entry to a block.
pub fn push(block: &mut Block, entry: &Entry<'_>) {
    record(block.partition(TableId(entry.place), entry.key), entry);
}

/// How two sides differ at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// It must be there and is not.
    Missing,
    /// It is there and must not be.
    Extra,
    /// It is there, with other content.
    Different,
    /// It is there once more, under the key of another item.
    Duplicate,
}

impl DifferenceKind {
    /// All of them, in the order in which they are told.
    pub const ALL: [DifferenceKind; 4] =
        [DifferenceKind::Missing, DifferenceKind::Extra, DifferenceKind::Different, DifferenceKind::Duplicate];

    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DifferenceKind::Missing => "missing",
            DifferenceKind::Extra => "extra",
            DifferenceKind::Different => "different",
            DifferenceKind::Duplicate => "duplicate",
        }
    }
}

/// One side of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Side {
    /// Where the item was read.
    pub origin: Origin,
    /// Its hash.
    pub hash: u128,
}

/// A key at which the two sides differ. Ordered by place and key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The place.
    pub place: u32,
    /// The key.
    pub key: Box<[u8]>,
    /// How they differ.
    pub kind: DifferenceKind,
    /// What it is counted as.
    pub row: u32,
    /// What must be there; `None` where nothing must.
    pub expected: Option<Side>,
    /// What is there; `None` where nothing is.
    pub found: Option<Side>,
}

/// The counts of the items of one kind at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Items that must be there.
    pub expected: u64,
    /// Items that are there.
    pub found: u64,
    /// How many differ, by [`DifferenceKind`].
    pub differences: [u64; 4],
    /// The sum of the hashes of the items that must be there.
    pub expected_sum: u128,
    /// The sum of the hashes of the items that are there.
    pub found_sum: u128,
}

impl Tally {
    /// Whether the items are the same.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.expected == self.found && self.differences == [0; 4] && self.expected_sum == self.found_sum
    }

    /// Adds the counts of another part.
    pub fn add(&mut self, other: &Tally) {
        let Tally { expected, found, differences, expected_sum, found_sum } = other;
        self.expected += expected;
        self.found += found;
        for (mine, theirs) in self.differences.iter_mut().zip(differences) {
            *mine += theirs;
        }
        self.expected_sum = self.expected_sum.wrapping_add(*expected_sum);
        self.found_sum = self.found_sum.wrapping_add(*found_sum);
    }

    fn expect(&mut self, hash: u128) {
        self.expected += 1;
        self.expected_sum = self.expected_sum.wrapping_add(hash);
    }

    fn find(&mut self, hash: u128) {
        self.found += 1;
        self.found_sum = self.found_sum.wrapping_add(hash);
    }
}

/// How entries are compared.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// A place holds a key once: another item under it is a duplicate, not one too many.
    pub keys_are_unique: bool,
    /// What is there, is not expected and is counted as none of these is left out.
    pub only: Option<BTreeSet<u32>>,
    /// Only these places are compared; `None`: all.
    pub places: Option<BTreeSet<u32>>,
    /// How many differences of each kind are kept.
    pub keep: usize,
}

/// What a comparison gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// By place and by what the items are counted as.
    pub tallies: BTreeMap<(u32, u32), Tally>,
    /// Items that were there and were left out.
    pub left_out: u64,
    /// The first differences of each kind, in the order of their places and keys.
    pub first: [Vec<Difference>; 4],
}

impl Outcome {
    /// Adds the outcome of another partition. The answer is the same for any order of partitions.
    pub fn add(&mut self, other: Outcome, rules: &Rules) {
        for (row, tally) in &other.tallies {
            self.tallies.entry(*row).or_default().add(tally);
        }
        self.left_out += other.left_out;
        for (mine, theirs) in self.first.iter_mut().zip(other.first) {
            mine.extend(theirs);
            mine.sort_unstable();
            mine.truncate(rules.keep);
        }
    }
}

/// Compares a partition of both sides. `each` gets every difference, in the order of places and keys unless the partition was split.
///
/// # Errors
/// When a file cannot be read or `each` fails.
pub fn compare(expected: &Path, found: &Path, rules: &Rules, each: &mut dyn FnMut(&Difference) -> Result<()>) -> Result<Outcome> {
    let mut comparison =
        Comparison { rules, each, tallies: BTreeMap::new(), left_out: 0, first: std::array::from_fn(|_| BinaryHeap::new()) };
    comparison.partition(expected, found, 1)?;
    let Comparison { tallies, left_out, first, .. } = comparison;
    Ok(Outcome { tallies, left_out, first: first.map(BinaryHeap::into_sorted_vec) })
}

struct Comparison<'c> {
    rules: &'c Rules,
    each: &'c mut dyn FnMut(&Difference) -> Result<()>,
    tallies: BTreeMap<(u32, u32), Tally>,
    left_out: u64,
    /// The smallest of each kind, the largest of them on top.
    first: [BinaryHeap<Difference>; 4],
}

/// An entry in memory. The order of the fields is that of comparing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Held<'a> {
    place: u32,
    key: &'a [u8],
    is_found: bool,
    hash: u128,
    origin: Origin,
    row: u32,
}

impl Held<'_> {
    fn side(&self) -> Side {
        Side { origin: self.origin, hash: self.hash }
    }
}

impl Comparison<'_> {
    fn partition(&mut self, expected: &Path, found: &Path, depth: u32) -> Result<()> {
        let sides = [expected, found];
        let mut bytes = 0;
        for path in sides {
            bytes += fs::metadata(path).map_err(|error| failed(path, error))?.len();
        }
        if bytes > PARTITION_BYTES && depth <= SPLITS {
            let parts = [split(expected, depth)?, split(found, depth)?];
            for (expected, found) in parts[0].iter().zip(&parts[1]) {
                self.partition(expected, found, depth + 1)?;
            }
            return parts.iter().flatten().try_for_each(|part| fs::remove_file(part).map_err(|error| failed(part, error)));
        }
        let arena = Arena::new();
        let mut entries = Vec::new();
        for (path, is_found) in sides.into_iter().zip([false, true]) {
            each_entry(path, |Entry { place, row, key, hash, origin }| {
                if self.rules.places.as_ref().is_some_and(|places| !places.contains(&place)) {
                    return Ok(());
                }
                entries.push(Held { place, key: arena.alloc_slice_copy(key), is_found, hash, origin, row });
                Ok(())
            })
            .map_err(|error| failed(path, error))?;
        }
        entries.sort_unstable();
        entries.chunk_by(|one, other| one.place == other.place && one.key == other.key).try_for_each(|group| self.group(group))
    }

    /// Compares the entries of one key: those that must be there, then those that are there, each in the order of their hashes.
    fn group(&mut self, group: &[Held<'_>]) -> Result<()> {
        let (expected, found) = group.split_at(group.partition_point(|entry| !entry.is_found));
        let place = group[0].place;
        let (missing, surplus) = self.pair(place, expected, found);
        let pairs = missing.len().min(surplus.len());
        for (lacking, other) in missing.iter().zip(&surplus) {
            let tally = self.tallies.entry((place, lacking.row)).or_default();
            tally.expect(lacking.hash);
            tally.find(other.hash);
            self.differ(DifferenceKind::Different, lacking.row, Some(lacking), Some(other))?;
        }
        for lacking in &missing[pairs..] {
            self.tallies.entry((place, lacking.row)).or_default().expect(lacking.hash);
            self.differ(DifferenceKind::Missing, lacking.row, Some(lacking), None)?;
        }
        for (at, other) in surplus[pairs..].iter().enumerate() {
            let known = expected.first().or_else(|| (at > 0).then(|| surplus[0]));
            let is_selected = |row| self.rules.only.as_ref().is_none_or(|only| only.contains(&row));
            if expected.is_empty() && !is_selected(other.row) {
                self.left_out += 1;
                continue;
            }
            let (kind, row) = match known {
                Some(known) if self.rules.keys_are_unique => (DifferenceKind::Duplicate, known.row),
                _ => (DifferenceKind::Extra, other.row),
            };
            self.tallies.entry((place, row)).or_default().find(other.hash);
            self.differ(kind, row, None, Some(other))?;
        }
        Ok(())
    }

    /// Counts the entries of both sides that are equal; gives those that are left.
    fn pair<'g, 'a>(&mut self, place: u32, expected: &'g [Held<'a>], found: &'g [Held<'a>]) -> (Vec<&'g Held<'a>>, Vec<&'g Held<'a>>) {
        let (mut missing, mut surplus) = (Vec::new(), Vec::new());
        let mut found = found.iter().peekable();
        for entry in expected {
            while let Some(other) = found.next_if(|other| other.hash < entry.hash) {
                surplus.push(other);
            }
            if found.next_if(|other| other.hash == entry.hash).is_some() {
                let tally = self.tallies.entry((place, entry.row)).or_default();
                tally.expect(entry.hash);
                tally.find(entry.hash);
            } else {
                missing.push(entry);
            }
        }
        surplus.extend(found);
        (missing, surplus)
    }

    fn differ(&mut self, kind: DifferenceKind, row: u32, expected: Option<&Held<'_>>, found: Option<&Held<'_>>) -> Result<()> {
        let Some(entry) = expected.or(found) else { return Ok(()) };
        let difference = Difference {
            place: entry.place,
            key: entry.key.into(),
            kind,
            row,
            expected: expected.map(Held::side),
            found: found.map(Held::side),
        };
        self.tallies.entry((entry.place, row)).or_default().differences[kind as usize] += 1;
        (self.each)(&difference)?;
        let first = &mut self.first[kind as usize];
        first.push(difference);
        if first.len() > self.rules.keep {
            first.pop();
        }
        Ok(())
    }
}

/// Whether a key is in a sample of this many of a hundred keys. The same for both sides, and has nothing to do with partitions.
#[must_use]
pub fn is_sampled(place: u32, key: &[u8], percent: f64) -> bool {
    // FNV-1a with a last mixing, so that keys that differ in one byte are sampled independently.
    let mut hash = place
        .to_le_bytes()
        .iter()
        .chain(key)
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let parts = u32::try_from((hash ^ (hash >> 31)) >> 32).unwrap_or(u32::MAX);
    f64::from(parts) / (f64::from(u32::MAX) + 1.0) * 100.0 < percent
}

fn split(path: &Path, depth: u32) -> Result<Vec<PathBuf>> {
    let parts: Vec<_> = (0..SPLIT_INTO).map(|at| path.with_extension(format!("{depth}-{at}"))).collect();
    let split = || {
        let mut files = parts.iter().map(|part| Ok(BufWriter::new(File::create(part)?))).collect::<io::Result<Vec<_>>>()?;
        let mut bytes = Vec::new();
        each_entry(path, |entry| {
            bytes.clear();
            record(&mut bytes, &entry);
            files[log::place(depth, TableId(entry.place), entry.key, SPLIT_INTO)].write_all(&bytes)
        })?;
        files.iter_mut().try_for_each(Write::flush)
    };
    split().map_err(|error| failed(path, error))?;
    Ok(parts)
}

/// Appends an entry: key length, place, row, file (4 bytes each), line (8 bytes), hash (16 bytes), key; all numbers little-endian.
fn record(out: &mut Vec<u8>, entry: &Entry<'_>) {
    let length = u32::try_from(entry.key.len()).expect("a key is part of an item, which has far less than 4 GB");
    for word in [length, entry.place, entry.row, entry.origin.file.0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&entry.origin.line.to_le_bytes());
    out.extend_from_slice(&entry.hash.to_le_bytes());
    out.extend_from_slice(entry.key);
}

fn each_entry(path: &Path, mut take: impl FnMut(Entry<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufReader::with_capacity(256 << 10, File::open(path)?);
    let mut head = [0; HEAD];
    let mut key = Vec::new();
    loop {
        match file.read(&mut head[..1])? {
            0 => return Ok(()),
            _ => file.read_exact(&mut head[1..])?,
        }
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let line = u64::from_le_bytes(head[16..24].try_into().expect("eight bytes"));
        let hash = u128::from_le_bytes(head[24..HEAD].try_into().expect("sixteen bytes"));
        key.resize(word(0) as usize, 0);
        file.read_exact(&mut key)?;
        take(Entry { place: word(4), row: word(8), key: &key, hash, origin: Origin { file: FileId(word(12)), line } })?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::log::Log;

    /// Place, key, hash, row.
    type Given = (u32, &'static str, u128, u32);

    fn log(folder: &Path, partitions: usize, entries: &[Given]) -> Vec<PathBuf> {
        let mut log = Log::create(folder, partitions).unwrap();
        for (line, (place, key, hash, row)) in (1..).zip(entries) {
            let mut block = Block::new(partitions);
            let origin = Origin { file: FileId(7), line };
            push(&mut block, &Entry { place: *place, row: *row, key: key.as_bytes(), hash: *hash, origin });
            log.append(&block).unwrap();
        }
        log.finish().unwrap()
    }

    fn outcome(expected: &[Given], found: &[Given], rules: &Rules, partitions: usize) -> (Outcome, Vec<Difference>) {
        let folder = tempfile::tempdir().unwrap();
        let sides = [log(&folder.path().join("e"), partitions, expected), log(&folder.path().join("f"), partitions, found)];
        let (mut whole, mut all) = (Outcome::default(), Vec::new());
        for (expected, found) in sides[0].iter().zip(&sides[1]) {
            let mut each = |difference: &Difference| {
                all.push(difference.clone());
                Ok(())
            };
            let part = compare(expected, found, rules, &mut each).unwrap();
            whole.add(part, rules);
        }
        all.sort_unstable();
        (whole, all)
    }

    /// Kind, key, and the lines of both sides.
    fn told(differences: &[Difference]) -> Vec<(&'static str, String, Option<u64>, Option<u64>)> {
        let line = |side: &Option<Side>| side.map(|side| side.origin.line);
        let one = |difference: &Difference| {
            let key = String::from_utf8(difference.key.to_vec()).unwrap();
            (difference.kind.name(), key, line(&difference.expected), line(&difference.found))
        };
        differences.iter().map(one).collect()
    }

    const UNIQUE: Rules = Rules { keys_are_unique: true, only: None, places: None, keep: 10 };

    #[test]
    fn missing_extra_different_and_duplicate_keys_are_told_apart_for_any_number_of_partitions() {
        let expected = [(0, "same", 1, 0), (0, "gone", 2, 0), (0, "other", 3, 1), (0, "twice", 4, 1), (1, "same", 5, 0)];
        let found = [(0, "twice", 9, 1), (0, "same", 1, 8), (0, "other", 30, 8), (0, "new", 6, 8), (0, "twice", 4, 1), (1, "same", 5, 0)];
        for partitions in [1, 2, 16] {
            let (outcome, all) = outcome(&expected, &found, &UNIQUE, partitions);
            let key = str::to_owned;
            let told = told(&all);
            let different = ("different", key("other"), Some(3), Some(3));
            let duplicate = ("duplicate", key("twice"), None, Some(1));
            assert_eq!(told, [("missing", key("gone"), Some(2), None), ("extra", key("new"), None, Some(4)), different, duplicate]);
            let tally =
                |expected, found, differences, expected_sum, found_sum| Tally { expected, found, differences, expected_sum, found_sum };
            // What has a partner is counted as that; only what nobody expects is counted as what it says.
            let tallies = [
                ((0, 0), tally(2, 1, [1, 0, 0, 0], 3, 1)),
                ((0, 1), tally(2, 3, [0, 0, 1, 1], 7, 43)),
                ((0, 8), tally(0, 1, [0, 1, 0, 0], 0, 6)),
                ((1, 0), tally(1, 1, [0; 4], 5, 5)),
            ];
            assert_eq!(outcome.tallies, BTreeMap::from(tallies));
            assert!(outcome.tallies[&(1, 0)].is_equal() && !outcome.tallies[&(0, 0)].is_equal());
        }
    }

    #[test]
    fn where_keys_are_not_unique_items_are_compared_as_often_as_they_are_there() {
        let rules = Rules { keys_are_unique: false, ..UNIQUE };
        let expected = [(0, "k", 1, 0), (0, "k", 1, 0), (0, "k", 2, 0)];
        assert_eq!(outcome(&expected, &[(0, "k", 2, 0), (0, "k", 1, 0), (0, "k", 1, 0)], &rules, 4).1, []);
        let (_, all) = outcome(&expected, &[(0, "k", 1, 0), (0, "k", 3, 0), (0, "k", 4, 0), (0, "k", 4, 0)], &rules, 4);
        assert_eq!(all.iter().map(|difference| difference.kind.name()).collect::<Vec<_>>(), ["extra", "different", "different"]);
    }

    #[test]
    fn extra_items_of_one_key_are_one_extra_item_and_duplicates() {
        let (_, all) = outcome(&[], &[(0, "k", 1, 0), (0, "k", 1, 0), (0, "k", 2, 0)], &UNIQUE, 1);
        assert_eq!(all.iter().map(|difference| difference.kind.name()).collect::<Vec<_>>(), ["extra", "duplicate", "duplicate"]);
    }

    #[test]
    fn what_was_not_asked_for_is_left_out_unless_it_is_expected() {
        let rules = Rules { only: Some(BTreeSet::from([1])), ..UNIQUE };
        let found = [(0, "a", 1, 9), (0, "b", 2, 9), (0, "b", 2, 9), (0, "c", 3, 1)];
        let (outcome, all) = outcome(&[(0, "a", 1, 1)], &found, &rules, 2);
        assert_eq!((outcome.left_out, told(&all)), (2, vec![("extra", "c".to_owned(), None, Some(4))]));
    }

    #[test]
    fn only_the_first_of_each_kind_are_kept_and_they_are_the_same_for_any_number_of_partitions() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let missing: Vec<Given> = names.iter().rev().map(|name| (0, *name, 1, 0)).collect();
        let rules = Rules { keep: 2, ..UNIQUE };
        for partitions in [1, 3, 16] {
            let (outcome, all) = outcome(&missing, &[(0, "z", 1, 0)], &rules, partitions);
            assert_eq!(all.len(), 7);
            let [missing, extra, ..] = outcome.first;
            assert_eq!(missing.iter().map(|difference| difference.key.to_vec()).collect::<Vec<_>>(), [b"a", b"b"]);
            assert_eq!(extra.len(), 1);
        }
    }

    #[test]
    fn a_partition_that_is_split_gives_the_same_answer() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, numbers: &[u8]| {
            let path = folder.path().join(name);
            let mut bytes = Vec::new();
            for number in numbers {
                let mut key = vec![b'k'; 9 << 20];
                key.push(*number);
                let origin = Origin { file: FileId(0), line: u64::from(*number) };
                record(&mut bytes, &Entry { place: 0, row: 0, key: &key, hash: 1, origin });
            }
            fs::write(&path, bytes).unwrap();
            path
        };
        let (expected, found) = (write("e", &[1, 2, 3, 4]), write("f", &[2, 3, 4, 5]));
        let mut lines = Vec::new();
        let mut each = |difference: &Difference| {
            lines.push((difference.kind.name(), difference.expected.or(difference.found).unwrap().origin.line));
            Ok(())
        };
        compare(&expected, &found, &UNIQUE, &mut each).unwrap();
        lines.sort_unstable();
        assert_eq!(lines, [("extra", 5), ("missing", 1)]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_sample_is_about_as_large_as_it_says_and_depends_on_the_key_alone() {
        let keys: Vec<String> = (0..20_000).map(|number| format!("DOC#{number:010}")).collect();
        let sampled = |percent| keys.iter().filter(|key| is_sampled(3, key.as_bytes(), percent)).count();
        assert_eq!((sampled(0.0), sampled(100.0)), (0, 20_000));
        assert!((1_800..2_200).contains(&sampled(10.0)), "{}", sampled(10.0));
        assert!((130..270).contains(&sampled(1.0)), "{}", sampled(1.0));
        assert!(keys.iter().filter(|key| is_sampled(3, key.as_bytes(), 1.0)).all(|key| is_sampled(3, key.as_bytes(), 10.0)));
    }
}
