//! Finds items that would have equal keys in one table, exactly and in bounded memory.
//!
//! The first pass appends every key to one of many partition files, chosen by the key's hash; each partition is
//! then read back alone and its keys are compared byte for byte, so a hash decides where a key is looked at and
//! never whether two keys are equal. Memory: one partition's distinct keys, plus about 120 bytes for each colliding item.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use rustc_hash::FxHashMap;

use crate::error::{Error, Kind, Result};
use crate::model::{Arena, FileId, Origin, TableId};
use crate::proof::log::{Block, failed, place};

/// A partition larger than this is split again before its keys are held in memory.
const PARTITION_BYTES: u64 = 64 << 20;
/// How often a partition is split again. One key alone may fill a partition, and then splitting cannot help.
const SPLITS: u32 = 3;
/// Into how many parts a large partition is split.
const SPLIT_INTO: usize = 16;
/// More colliding items than this end the run: a template lacks a part, and rejecting them one by one helps nobody.
const MOST_COLLISIONS: usize = 4_000_000;

/// The bytes of a colliding item in [`Collisions::to_bytes`].
const RECORD: usize = 28;

/// An item whose key another item has too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The item.
    pub origin: Origin,
    /// The first other item with the same key; for that first item, the second.
    pub other: Origin,
    /// The table in which the keys are equal.
    pub table: TableId,
}

/// The colliding items of a run, by origin.
#[derive(Debug, Default)]
pub struct Collisions {
    by_origin: FxHashMap<Origin, (Origin, TableId)>,
}

impl Collisions {
    /// The other item that has the same key as the item from `origin`, and the table.
    #[must_use]
    pub fn of(&self, origin: Origin) -> Option<(Origin, TableId)> {
        self.by_origin.get(&origin).copied()
    }

    /// How many items collide.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_origin.len()
    }

    /// Whether no two items have equal keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_origin.is_empty()
    }

    /// All of it as bytes, 28 for each item: file, line, the other's file and line, table; all numbers little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut known: Vec<_> = self.by_origin.iter().collect();
        known.sort_unstable();
        let mut bytes = Vec::with_capacity(known.len() * RECORD);
        for (origin, (other, table)) in known {
            for Origin { file, line } in [origin, other] {
                bytes.extend_from_slice(&file.0.to_le_bytes());
                bytes.extend_from_slice(&line.to_le_bytes());
            }
            bytes.extend_from_slice(&table.0.to_le_bytes());
        }
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) wrote; `None` for other bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (records, rest) = bytes.as_chunks::<RECORD>();
        let known = records.iter().map(|record| {
            let words: [u32; RECORD / 4] = std::array::from_fn(|at| u32::from_le_bytes(std::array::from_fn(|byte| record[at * 4 + byte])));
            let [file, low, high, other, other_low, other_high, table] = words;
            let origin = |file, low, high| Origin { file: FileId(file), line: u64::from(high) << 32 | u64::from(low) };
            (origin(file, low, high), (origin(other, other_low, other_high), TableId(table)))
        });
        rest.is_empty().then(|| Self { by_origin: known.collect() })
    }
}

/// How many partitions the keys of so many items go to; unknown counts get as many as a large run.
#[must_use]
pub fn partitions_for(items: Option<u64>) -> usize {
    // About 250,000 keys of 100 bytes fill 24 MiB, well below the size at which a partition is split again.
    let wanted = items.unwrap_or(64_000_000) / 250_000;
    usize::try_from(wanted).unwrap_or(512).clamp(16, 512)
}

/// Adds a key to a block: the canonical bytes that [`crate::limits::canonical_key`] gives.
pub fn push(block: &mut Block, table: TableId, key: &[u8], origin: Origin) {
    record(block.partition(table, key), table, key, origin);
}

/// Searches one partition file, which stays as it is.
///
/// # Errors
/// When the file cannot be read.
pub fn search(partition: &Path) -> Result<Vec<Collision>> {
    let mut found = Vec::new();
    search_split(partition, 1, &mut found).map_err(|error| failed(partition, error))?;
    Ok(found)
}

/// Puts the findings of all partitions together.
///
/// # Errors
/// When more than four million items collide.
pub fn collect(found: impl IntoIterator<Item = Vec<Collision>>) -> Result<Collisions> {
    let mut by_origin = FxHashMap::default();
    for Collision { origin, other, table } in found.into_iter().flatten() {
        // An item may collide with several outputs; the smallest answer is the same for any order of partitions.
        let answer = (other, table);
        by_origin.entry(origin).and_modify(|known| *known = answer.min(*known)).or_insert(answer);
        if by_origin.len() > MOST_COLLISIONS {
            return Err(Error::new(Kind::Input, "more than 4,000,000 items would share their key with another item")
                .with("expected", "keys that differ for every item of a table")
                .with("hint", "a key template lacks a part that tells the items apart; run with --limit to see examples in the rejects"));
        }
    }
    Ok(Collisions { by_origin })
}

fn search_split(partition: &Path, depth: u32, found: &mut Vec<Collision>) -> io::Result<()> {
    if fs::metadata(partition)?.len() > PARTITION_BYTES && depth <= SPLITS {
        let parts: Vec<_> = (0..SPLIT_INTO).map(|at| partition.with_extension(format!("{depth}-{at}"))).collect();
        {
            let mut files = parts.iter().map(|path| Ok(BufWriter::new(File::create(path)?))).collect::<io::Result<Vec<_>>>()?;
            let mut bytes = Vec::new();
            each_record(partition, |table, key, origin| {
                bytes.clear();
                record(&mut bytes, table, key, origin);
                files[place(depth, table, key, SPLIT_INTO)].write_all(&bytes)
            })?;
            for mut file in files {
                file.flush()?;
            }
        }
        return parts.iter().try_for_each(|part| {
            search_split(part, depth + 1, found)?;
            fs::remove_file(part)
        });
    }
    let arena = Arena::new();
    let mut tables: FxHashMap<TableId, FxHashMap<&[u8], (Origin, bool)>> = FxHashMap::default();
    each_record(partition, |table, key, origin| {
        let first = tables.entry(table).or_default();
        match first.get_mut(key) {
            Some((earlier, told)) => {
                if !*told {
                    found.push(Collision { origin: *earlier, other: origin, table });
                    *told = true;
                }
                found.push(Collision { origin, other: *earlier, table });
            }
            None => {
                first.insert(arena.alloc_slice_copy(key), (origin, false));
            }
        }
        Ok(())
    })
}

/// Appends a record: key length, table, file (4 bytes each), line (8 bytes), key; all numbers little-endian.
fn record(out: &mut Vec<u8>, table: TableId, key: &[u8], origin: Origin) {
    let length = u32::try_from(key.len()).expect("the limits have checked that a key has at most 3,072 bytes");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&table.0.to_le_bytes());
    out.extend_from_slice(&origin.file.0.to_le_bytes());
    out.extend_from_slice(&origin.line.to_le_bytes());
    out.extend_from_slice(key);
}

fn each_record(path: &Path, mut take: impl FnMut(TableId, &[u8], Origin) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufReader::with_capacity(256 << 10, File::open(path)?);
    let mut head = [0; 20];
    let mut key = Vec::new();
    loop {
        match file.read(&mut head[..1])? {
            0 => return Ok(()),
            _ => file.read_exact(&mut head[1..])?,
        }
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let line = u64::from_le_bytes(head[12..20].try_into().expect("eight bytes"));
        key.resize(word(0) as usize, 0);
        file.read_exact(&mut key)?;
        take(TableId(word(4)), &key, Origin { file: FileId(word(8)), line })?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::log::Log;

    fn at(line: u64) -> Origin {
        Origin { file: FileId(0), line }
    }

    fn find(keys: &[(u32, &str)], partitions: usize) -> Vec<(u64, u64)> {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path(), partitions).unwrap();
        for (line, (table, key)) in (1..).zip(keys) {
            let mut block = Block::new(partitions);
            push(&mut block, TableId(*table), key.as_bytes(), at(line));
            log.append(&block).unwrap();
        }
        let collisions = collect(log.finish().unwrap().iter().map(|path| search(path).unwrap())).unwrap();
        let mut found: Vec<_> = collisions.by_origin.iter().map(|(origin, (other, _))| (origin.line, other.line)).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn both_items_of_a_pair_are_named_for_any_number_of_partitions() {
        for partitions in [1, 2, 16] {
            assert_eq!(find(&[(0, "a"), (0, "b"), (0, "a"), (0, "c"), (0, "a")], partitions), [(1, 3), (3, 1), (5, 1)]);
        }
    }

    #[test]
    fn equal_keys_in_two_tables_do_not_collide() {
        assert_eq!(find(&[(0, "a"), (1, "a")], 4), []);
    }

    #[test]
    fn a_split_partition_gives_the_same_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0");
        let mut file = File::create(&path).unwrap();
        for line in 1..=3 {
            let key = vec![b'k'; 40 << 20];
            let mut bytes = Vec::new();
            record(&mut bytes, TableId(0), &key, at(line));
            file.write_all(&bytes).unwrap();
        }
        let found = search(&path).unwrap();
        assert_eq!(
            found.iter().map(|collision| (collision.origin.line, collision.other.line)).collect::<Vec<_>>(),
            [(1, 2), (2, 1), (3, 1)]
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
