//! Short texts compared without a call into the C library, which takes longer than the comparison.

/// Whether two texts are equal.
#[inline]
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && same_bytes(one.as_bytes(), other.as_bytes())
}

/// Whether `text` starts with `start`.
#[inline]
pub(crate) fn starts_with(text: &str, start: &str) -> bool {
    text.as_bytes().get(..start.len()).is_some_and(|bytes| same_bytes(bytes, start.as_bytes()))
}

/// Of equal length.
#[inline]
fn same_bytes(one: &[u8], other: &[u8]) -> bool {
    match (one.first_chunk::<8>(), other.first_chunk::<8>()) {
        // The last eight overlap the first where there are fewer than sixteen.
        (Some(first), Some(others)) if first == others && one.len() <= 16 => one.last_chunk::<8>() == other.last_chunk::<8>(),
        (Some(first), Some(others)) => first == others && one == other,
        _ => one.iter().zip(other).all(|(byte, other)| byte == other),
    }
}

/// How many places there are.
pub(crate) const PLACES: usize = 256;

/// What tells a text quickly from most others: its length and its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    length: usize,
    ends: [u64; 2],
}

impl Name {
    #[inline]
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        // The ends overlap where the text is shorter than both. Each length has its own way, without a loop over the bytes.
        let ends = if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            [u64::from_le_bytes(*first), u64::from_le_bytes(*last)]
        } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
            [u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last))]
        } else if let [first, .., last] = bytes {
            [u64::from(*first), u64::from(bytes[bytes.len() / 2]) << 8 | u64::from(*last)]
        } else {
            [bytes.first().map_or(0, |byte| u64::from(*byte)), 0]
        };
        Self { length: bytes.len(), ends }
    }

    /// Whether it says all of the text, so that equal ones are of equal texts.
    #[inline]
    pub(crate) fn is_whole(self) -> bool {
        self.length <= 16
    }

    /// A place for the text: where the few names of a dataset are looked for first. Names may share one.
    #[inline]
    pub(crate) fn place(self) -> usize {
        let mixed = (self.ends[0] ^ self.ends[1].rotate_left(23) ^ self.length as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        usize::from(mixed.to_be_bytes()[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_are_equal_just_where_each_byte_is() {
        for length in 0..40 {
            let text = "x".repeat(length);
            assert!(same(&text, &text.clone()));
            assert!(!same(&text, &"x".repeat(length + 1)));
            assert!(Name::of(&text) == Name::of(&text.clone()) && Name::of(&text).is_whole() == (length <= 16));
            for at in 0..length {
                let mut other = text.clone();
                other.replace_range(at..=at, "y");
                assert!(!same(&text, &other), "{other}");
                assert!(!starts_with(&format!("{text}tail"), &other), "{other}");
                assert!(Name::of(&text) != Name::of(&other) || length > 16, "{other}");
            }
            assert!(starts_with(&format!("{text}tail"), &text));
            assert_eq!(starts_with(&text, "xxx"), length >= 3);
        }
    }
}
