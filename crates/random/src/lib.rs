//! SplitMix64, the small generator that rows, studies and data for tests are drawn from.
//!
//! The same seed gives the same numbers on any machine and in any version of whyso. Data sets, the order of a study's starts and a
//! load's parameters are reproduced by their seeds. So the sequence never changes.
//!
//! This crate does no I/O, reads no clock, and takes no seed from its surroundings. Nothing here is a secret: the next
//! number follows from the one before.
//!
//! ```
//! let mut random = whyso_random::SplitMix64::new(7);
//! let die = 1 + random.below(6);
//! assert!((1..=6).contains(&die));
//! ```

pub mod noise;

/// What the state grows by at every step: 2⁶⁴ divided by the golden ratio, made odd.
pub const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// S. Vigna's SplitMix64, after Steele, Lea and Flood ("Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Copy, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Returns 64 uniform bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        mix(self.0)
    }

    /// Returns a number that is uniform in `0..bound`, or 0 where `bound` is 0.
    ///
    /// It is the high word of a product (Lemire, 2019). The bias is at most `bound / 2^64`.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Returns a number that is uniform in `[0, 1)`, with 53 bits.
    #[inline]
    pub const fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts values in a random order: R. A. Fisher and F. Yates' shuffle, as R. Durstenfeld wrote it (1964).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// SplitMix64's finaliser: maps every word to another one, and each bit of it to all bits.
#[inline]
pub const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_numbers_are_those_that_its_author_published() {
        let mut random = SplitMix64::new(1_234_567);
        let first = [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut random = SplitMix64::new(1);
        let mut drawn = [false; 7];
        (0..1000).for_each(|_| drawn[random.below(7) as usize] = true);
        assert_eq!(drawn, [true; 7]);
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit_f64())));
    }

    #[test]
    fn a_shuffle_keeps_every_value_and_follows_from_the_seed() {
        let shuffled = |seed| {
            let mut values: Vec<u32> = (0..100).collect();
            SplitMix64::new(seed).shuffle(&mut values);
            values
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
    }
}
