//! Whether a name stands twice in an item or a map.

use rustc_hash::FxHashSet;

use crate::model::Attribute;

/// The names that an item or a map has so far.
#[derive(Default)]
pub(super) struct Names<'a> {
    /// A bit for each name, by its length and some of its bytes. Only a name whose bit is set is looked for. Four words, since of ten
    /// names two would often share one of 64 bits.
    bits: [u64; 4],
    /// From [`Names::MANY`] names on.
    many: Option<FxHashSet<&'a str>>,
}

impl<'a> Names<'a> {
    /// Up to here a walk over the names is quicker than a hash; beyond, walks would make a huge map quadratic.
    const MANY: usize = 48;

    /// Whether `name` is among the attributes; remembers it.
    #[inline]
    pub(super) fn are_known(&mut self, name: &'a str, attributes: &[Attribute<'a>]) -> bool {
        if attributes.len() >= Self::MANY {
            return !self.many.get_or_insert_with(|| attributes.iter().map(|(known, _)| *known).collect()).insert(name);
        }
        let bytes = name.as_bytes();
        let byte = |at: usize| u64::from(bytes.get(at).copied().unwrap_or(0));
        let length = bytes.len();
        let mixed = byte(0) ^ byte(length / 2) << 8 ^ byte(length.wrapping_sub(1)) << 16 ^ (length as u64) << 24;
        let hash = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (word, bit) = (&mut self.bits[(hash >> 62) as usize], 1 << (hash >> 56 & 63));
        let maybe = *word & bit != 0;
        *word |= bit;
        maybe && attributes.iter().any(|(known, _)| *known == name)
    }
}
