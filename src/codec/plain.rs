//! How far a text in quotes goes on without anything special in it.

/// Where the first byte at or after `from` stands that a text in quotes may not hold as it is: `QUOTE`, a backslash or a control
/// character below 0x20. `bytes.len()` where there is none.
///
/// Sixteen bytes at a time: names and values are short, so a call into a vectorised search costs more than it saves. A text that turns
/// out to be longer goes on in blocks.
#[expect(clippy::inline_always, reason = "measured: a tenth of the time of decoding")]
#[inline(always)]
pub(super) fn end_of_plain<const QUOTE: u8>(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    for _ in 0..SHORT / 16 {
        let Some(sixteen) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else { break };
        match special::<QUOTE>(*sixteen) {
            Some(offset) => return at + offset,
            None => at += 16,
        }
    }
    end_of_long::<QUOTE>(bytes, at)
}

/// A text that goes on beyond so many bytes is searched in blocks.
const SHORT: usize = 32;

#[inline(never)]
fn end_of_long<const QUOTE: u8>(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    // Without a way out in the middle, which would keep the compiler from vector instructions too.
    let is_plain = |block: &[u8; 32]| !block.iter().fold(false, |found, byte| found | is_special::<QUOTE>(*byte));
    while bytes.get(at..).and_then(|rest| rest.first_chunk()).is_some_and(is_plain) {
        at += 32;
    }
    while let Some(sixteen) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        match special::<QUOTE>(*sixteen) {
            Some(offset) => return at + offset,
            None => at += 16,
        }
    }
    while bytes.get(at).is_some_and(|byte| !is_special::<QUOTE>(*byte)) {
        at += 1;
    }
    at
}

#[expect(clippy::needless_bitwise_bool, reason = "without branches the compiler makes vector instructions of it")]
fn is_special<const QUOTE: u8>(byte: u8) -> bool {
    (byte == QUOTE) | (byte == b'\\') | (byte < 0x20)
}

/// Where the first special one of sixteen bytes stands.
#[inline(always)]
fn special<const QUOTE: u8>(sixteen: [u8; 16]) -> Option<usize> {
    const ONES: u128 = u128::from_le_bytes([1; 16]);
    const HIGH: u128 = ONES << 7;
    let word = u128::from_le_bytes(sixteen);
    let quote = word ^ (ONES * u128::from(QUOTE));
    let backslash = word ^ (ONES * u128::from(b'\\'));
    // A zero byte borrows into its high bit. A borrow can also mark a byte after the first hit, never one before it.
    let hits =
        ((quote.wrapping_sub(ONES) & !quote) | (backslash.wrapping_sub(ONES) & !backslash) | (word.wrapping_sub(ONES * 0x20) & !word))
            & HIGH;
    (hits != 0).then(|| (hits.trailing_zeros() / 8) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_run_ends_at_the_first_quote_backslash_or_control_wherever_it_stands() {
        for length in 0..100 {
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
