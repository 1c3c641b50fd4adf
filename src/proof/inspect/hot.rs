//! The partition keys with the most items and bytes, in bounded memory.

use rustc_hash::FxHashMap;

use crate::model::Value;
use crate::model::number::{self, Decimal};

/// Partition keys that are always kept apart. Up to twice as many the counts are exact.
const KEYS: usize = 10_000;

/// Items and bytes of one partition key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub items: u64,
    pub bytes: u64,
}

/// Loads by partition key.
///
/// Exact, and so the same for any order of the items, until twice [`KEYS`] keys were seen; then the smaller half is
/// forgotten each time, and the counts are lower bounds.
#[derive(Clone, Debug, Default)]
pub(super) struct HotKeys {
    loads: FxHashMap<Box<[u8]>, Load>,
    forgot: bool,
    buffer: Vec<u8>,
}

impl HotKeys {
    /// Counts an item of this partition key; a value that can be no key is not counted.
    pub(super) fn add(&mut self, partition: &Value<'_>, bytes: u64) {
        let mut key = std::mem::take(&mut self.buffer);
        key.clear();
        let plain;
        let (kind, text) = match partition {
            Value::S(text) => (b'S', text.as_bytes()),
            Value::B(bytes) => (b'B', *bytes),
            Value::N(text) if number::is_plain(text) => (b'N', text.as_bytes()),
            Value::N(text) => match Decimal::parse(text).filter(|decimal| decimal.check().is_ok()) {
                Some(decimal) => {
                    plain = decimal.plain();
                    (b'N', plain.as_bytes())
                }
                None => (b'N', text.as_bytes()),
            },
            _ => return,
        };
        key.push(kind);
        key.extend_from_slice(text);
        self.count(&key, Load { items: 1, bytes });
        self.buffer = key;
    }

    fn count(&mut self, key: &[u8], load: Load) {
        if let Some(known) = self.loads.get_mut(key) {
            known.items += load.items;
            known.bytes += load.bytes;
            return;
        }
        self.loads.insert(key.into(), load);
        if self.loads.len() > 2 * KEYS {
            self.forget();
        }
    }

    /// Keeps the [`KEYS`] keys with the largest part of the items and the bytes.
    fn forget(&mut self) {
        self.forgot = true;
        let total =
            self.loads.values().fold(Load::default(), |sum, load| Load { items: sum.items + load.items, bytes: sum.bytes + load.bytes });
        let weight = |load: &Load| u128::from(load.items) * u128::from(total.bytes) + u128::from(load.bytes) * u128::from(total.items);
        let mut ranked: Vec<_> = self.loads.drain().collect();
        ranked.sort_by(|(left_key, left), (right_key, right)| weight(right).cmp(&weight(left)).then_with(|| left_key.cmp(right_key)));
        ranked.truncate(KEYS);
        self.loads.extend(ranked);
    }

    pub(super) fn merge(&mut self, other: &HotKeys) {
        self.forgot |= other.forgot;
        for (key, load) in &other.loads {
            self.count(key, *load);
        }
    }

    pub(super) fn clear(&mut self) {
        self.loads.clear();
    }

    /// How many partition keys there are, where that is known.
    pub(super) fn distinct(&self) -> Option<usize> {
        (!self.forgot).then_some(self.loads.len())
    }

    /// The `count` keys with the most of what `rank` looks at, each as text.
    pub(super) fn top(&self, count: usize, rank: impl Fn(&Load) -> u64) -> Vec<(String, Load)> {
        let mut ranked: Vec<_> = self.loads.iter().collect();
        ranked.sort_by(|(left_key, left), (right_key, right)| rank(right).cmp(&rank(left)).then_with(|| left_key.cmp(right_key)));
        ranked.into_iter().take(count).map(|(key, load)| (readable(key), *load)).collect()
    }
}

/// The key as a reader knows it; binaries as hexadecimal digits.
fn readable(key: &[u8]) -> String {
    match key.split_first() {
        Some((b'B', bytes)) => bytes.iter().fold("0x".to_owned(), |mut text, byte| {
            for half in [byte >> 4, byte & 15] {
                text.push(char::from_digit(half.into(), 16).expect("half a byte is one hexadecimal digit"));
            }
            text
        }),
        Some((_, text)) => String::from_utf8_lossy(text).into_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_key_in_every_spelling() {
        let mut keys = HotKeys::default();
        for text in ["10", "1E1", "10.0"] {
            keys.add(&Value::N(text), 5);
        }
        keys.add(&Value::S("10"), 1);
        keys.add(&Value::B(&[1, 0xab]), 1);
        assert_eq!(
            keys.top(9, |load| load.items),
            [
                ("10".to_owned(), Load { items: 3, bytes: 15 }),
                ("0x01ab".to_owned(), Load { items: 1, bytes: 1 }),
                ("10".to_owned(), Load { items: 1, bytes: 1 }),
            ]
        );
        assert_eq!(keys.distinct(), Some(3));
    }

    #[test]
    fn hot_keys_survive_among_more_keys_than_are_kept() {
        let mut keys = HotKeys::default();
        for n in 0..100_000 {
            keys.add(&Value::S(&n.to_string()), 10);
            if n % 10 == 0 {
                keys.add(&Value::S("many"), 1);
            }
            if n % 10_000 == 0 {
                keys.add(&Value::S("large"), 400_000);
            }
        }
        assert_eq!(keys.distinct(), None);
        assert!(keys.loads.len() <= 2 * KEYS);
        assert_eq!(keys.top(1, |load| load.items), [("many".to_owned(), Load { items: 10_000, bytes: 10_000 })]);
        assert_eq!(keys.top(1, |load| load.bytes), [("large".to_owned(), Load { items: 10, bytes: 4_000_000 })]);
    }
}
