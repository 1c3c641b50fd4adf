//! How far a text in quotes goes on without anything special in it.

/// Where the first byte at or after `from` stands that a text in quotes may not hold as it is: `QUOTE`, a backslash or a control
/// character below 0x20. `bytes.len()` where there is none.
///
/// Eight bytes at a time: names and values are short, so a call into a vectorised search costs more than it saves.
#[inline]
pub(super) fn end_of_plain<const QUOTE: u8>(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = from;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let quote = word ^ (ONES * u64::from(QUOTE));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        // A zero byte borrows into its high bit. A borrow can also mark a byte after the first hit, never one before it.
        let hits =
            ((quote.wrapping_sub(ONES) & !quote) | (backslash.wrapping_sub(ONES) & !backslash) | (word.wrapping_sub(ONES * 0x20) & !word))
                & HIGH;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        if *byte == QUOTE || matches!(byte, b'\\' | 0..0x20) {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_run_ends_at_the_first_quote_backslash_or_control_wherever_it_stands() {
        for length in 0..40 {
            for at in 0..length {
                for special in [b'"', b'\\', 0, 1, 0x1f] {
                    // Neighbours of the special bytes, and bytes with the high bit set, are plain.
                    let mut bytes: Vec<u8> =
                        [b'!', b'#', b'[', b']', b' ', 0x7f, 0x80, 0xff, 0xa2].into_iter().cycle().take(length).collect();
                    assert_eq!(end_of_plain::<b'"'>(&bytes, 0), length);
                    bytes[at] = special;
                    bytes[length - 1] = special;
                    assert_eq!(end_of_plain::<b'"'>(&bytes, 0), at);
                    assert_eq!(end_of_plain::<b'\''>(&bytes, 0), if special == b'"' { length } else { at });
                    assert_eq!(end_of_plain::<b'"'>(&bytes, at + 1), if at + 1 < length { length - 1 } else { length });
                }
            }
        }
    }
}
