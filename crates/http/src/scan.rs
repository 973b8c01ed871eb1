//! Looks through bytes many at a time: heads of answers are read for each request of a load.

/// Bytes of one step.
const STEP: usize = 8;
const LOW_BITS: u64 = u64::MAX / 255;
const HIGH_BITS: u64 = LOW_BITS << 7;
/// Bytes whose sum of ones fits into one.
const COUNTED_AT_ONCE: usize = 128;

/// Place of the first byte of this value.
#[inline]
pub(crate) fn first(bytes: &[u8], wanted: u8) -> Option<usize> {
    let pattern = LOW_BITS * u64::from(wanted);
    let mut steps = bytes.chunks_exact(STEP);
    for (number, step) in steps.by_ref().enumerate() {
        let Ok(step) = <[u8; STEP]>::try_from(step) else { continue };
        // A byte that is equal becomes 0. The lowest high bit that is set then is that of the first 0: a borrow runs upwards only.
        let difference = u64::from_le_bytes(step) ^ pattern;
        let zeros = difference.wrapping_sub(LOW_BITS) & !difference & HIGH_BITS;
        if zeros != 0 {
            return Some(number * STEP + zeros.trailing_zeros() as usize / 8);
        }
    }
    let rest = steps.remainder();
    let place = rest.iter().position(|byte| *byte == wanted)?;
    Some(bytes.len() - rest.len() + place)
}

/// How many bytes no line of a head may have, line ends included.
pub(crate) fn control_characters(bytes: &[u8]) -> usize {
    let is_one = |byte: &u8| u8::from((*byte < b' ') & (*byte != b'\t') | (*byte == 0x7f));
    // Without an end before the last byte, so that the compiler takes many at a time.
    bytes.chunks(COUNTED_AT_ONCE).map(|part| usize::from(part.iter().map(is_one).sum::<u8>())).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn many_at_a_time_find_what_one_at_a_time_finds(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..16, 0x7eu8..0x82], 0..300),
            wanted in prop_oneof![any::<u8>(), 0u8..16],
        ) {
            prop_assert_eq!(first(&bytes, wanted), bytes.iter().position(|byte| *byte == wanted));
            let is_one = |byte: &&u8| byte.is_ascii_control() && **byte != b'\t';
            prop_assert_eq!(control_characters(&bytes), bytes.iter().filter(is_one).count());
        }
    }
}
