//! The order of the lines of a window: those of one partition key far from each other, and the same order each time.
//!
//! An export has the items of a partition key together, and new keys often bring more of them together. An import that reads them so
//! writes to one partition at a time, the "rolling hot partition" that AWS warns of ("Best practices for importing from Amazon S3 into
//! `DynamoDB`").

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

/// Makes the hashes others than those of the same bytes elsewhere.
const SEED: u64 = 0x6479_6e61_6d6f_7270;

/// The hash of a partition key, given as its canonical bytes.
pub(super) fn hash(partition_key: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u64(SEED);
    hasher.write(partition_key);
    hasher.finish()
}

/// The order in which lines with these hashes of their partition keys are written, as places in `keys`.
///
/// The key with the most lines takes places at even distances over the whole window, the next one at even distances among those that
/// are left, and so on; keys of one line take the rest in the order of their hashes. So two lines of a key are neighbours only
/// where the keys with no more lines than it have fewer lines together.
pub(super) fn spread(keys: &[u64]) -> Vec<u32> {
    let lines = u32::try_from(keys.len()).expect("a window has fewer than 2^32 lines");
    let mut by_key: Vec<(u64, u32)> = keys.iter().copied().zip(0..lines).collect();
    by_key.sort_unstable();
    let (mut groups, single): (Vec<_>, Vec<_>) = by_key.chunk_by(|(one, _), (other, _)| one == other).partition(|group| group.len() > 1);
    // Of equally many lines the lower hash first: the sort keeps the order of equal ones.
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let mut order = vec![None; keys.len()];
    if !groups.is_empty() {
        let mut free = Free::new(keys.len());
        let mut left = keys.len();
        for group in groups {
            let count = group.len();
            for (at, (_, line)) in group.iter().enumerate() {
                // In the middle of its share, so that a window's last lines are not of the key of the next one's first.
                let rank = (2 * at + 1) * left / (2 * count);
                order[free.take(rank - at)] = Some(*line);
            }
            left -= count;
        }
    }
    let mut single = single.into_iter().flatten().map(|(_, line)| *line);
    order.into_iter().filter_map(|line| line.or_else(|| single.next())).collect()
}

/// The places that are free, in a Fenwick tree: finding the n-th and taking it costs the logarithm of their number.
struct Free {
    /// From 1: how many of the places that end here are free, as many as the lowest set bit of the index says.
    counts: Vec<usize>,
    /// The largest power of two that is an index.
    top: usize,
}

impl Free {
    fn new(places: usize) -> Self {
        let lowest_bit = |index: usize| index & index.wrapping_neg();
        Self { counts: (0..=places).map(lowest_bit).collect(), top: places.checked_ilog2().map_or(0, |log| 1 << log) }
    }

    /// Takes the free place that so many free ones are before.
    fn take(&mut self, mut before: usize) -> usize {
        let (mut place, mut step) = (0, self.top);
        while step > 0 {
            match self.counts.get_mut(place + step) {
                Some(count) if *count <= before => {
                    before -= *count;
                    place += step;
                }
                Some(count) => *count -= 1,
                None => {}
            }
            step /= 2;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys as they come from an export: the lines of a key together.
    fn clustered(counts: &[usize]) -> Vec<u64> {
        (0_u64..).zip(counts).flat_map(|(key, count)| std::iter::repeat_n(hash(&key.to_le_bytes()), *count)).collect()
    }

    /// The keys in the new order, each line checked to be there once.
    fn spread_keys(keys: &[u64]) -> Vec<u64> {
        let order = spread(keys);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..u32::try_from(keys.len()).unwrap()).collect::<Vec<_>>());
        order.iter().map(|line| keys[*line as usize]).collect()
    }

    #[test]
    fn places_are_taken_by_their_rank_among_the_free_ones() {
        for places in [1, 2, 3, 7, 8, 9, 100] {
            let mut free = Free::new(places);
            let mut expected: Vec<_> = (0..places).collect();
            let mut rank = 5;
            while !expected.is_empty() {
                rank = (rank * 7 + 3) % expected.len();
                assert_eq!(free.take(rank), expected.remove(rank));
            }
        }
    }

    #[test]
    fn no_neighbours_share_a_key_where_there_are_others_enough() {
        for counts in [
            vec![300].into_iter().chain(std::iter::repeat_n(1, 700)).collect::<Vec<_>>(),
            vec![500].into_iter().chain(std::iter::repeat_n(1, 500)).collect(),
            vec![10; 1000],
            vec![2; 5],
            vec![300, 200, 100, 50, 50, 25, 25].into_iter().chain(std::iter::repeat_n(3, 250)).collect(),
            (1..100).collect(),
            vec![1, 1, 1],
        ] {
            let keys = clustered(&counts);
            let spread = spread_keys(&keys);
            assert!(spread.windows(2).all(|pair| pair[0] != pair[1]), "{counts:?}");
            // Nor where one such window follows the other, but for a key of half of it.
            assert_ne!(spread.first(), spread.last(), "{counts:?}");
        }
    }

    #[test]
    fn each_part_of_a_window_has_its_share_of_a_hot_key() {
        let keys = clustered(&[vec![3000], vec![1000], vec![7; 400], vec![1; 3200]].concat());
        let spread = spread_keys(&keys);
        for (hot, share) in [(keys[0], 300), (keys[3000], 100)] {
            for part in spread.chunks(1000) {
                let found = part.iter().filter(|key| **key == hot).count();
                assert!(found.abs_diff(share) <= 1, "{found} of {share}");
            }
        }
    }

    #[test]
    fn a_key_with_more_lines_than_all_others_is_spread_as_far_as_they_go() {
        let keys = clustered(&[80, 10, 10]);
        let spread = spread_keys(&keys);
        let longest = spread.chunk_by(|one, other| one == other).map(<[u64]>::len).max();
        assert!(longest <= Some(5), "{longest:?}");
        assert_eq!(spread_keys(&clustered(&[5])).len(), 5);
        assert!(spread_keys(&[]).is_empty());
    }

    #[test]
    fn lines_of_one_key_keep_their_order() {
        let keys = clustered(&[40, 60]);
        let order = spread(&keys);
        for lines in [0..40, 40..100] {
            let of_key: Vec<_> = order.iter().filter(|line| lines.contains(*line)).collect();
            assert!(of_key.is_sorted());
        }
    }
}
