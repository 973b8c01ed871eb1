//! Pseudo-random numbers that are available for any transaction without drawing those before it.

use whyso_random::{GOLDEN_GAMMA, SplitMix64, mix};

/// A xoshiro256++ generator (Blackman and Vigna, "Scrambled linear pseudorandom number
/// generators", 2021), seeded from a key and a position.
///
/// The numbers of transaction `k` of user `u` are a function of `(seed, u, k)` only. So a retry, a replay, and another
/// engine draw the same ones. Seeding costs about as much as six draws.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator for transaction `k` of user `user` under `seed`.
    #[inline]
    pub fn for_transaction(seed: u64, user: u64, k: u64) -> Rng {
        let user_key = mix(mix(seed.wrapping_add(GOLDEN_GAMMA)) ^ user.wrapping_mul(0xd1b5_4a32_d192_ed03));
        let mut seeds = SplitMix64::new(mix(user_key ^ k.wrapping_mul(GOLDEN_GAMMA)));
        let state = std::array::from_fn(|_| seeds.next_u64());
        // xoshiro's one forbidden state is all zeros; SplitMix64 never gives four zeros in a row.
        Rng { state }
    }

    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound` (0 where `bound` is 0), by the high word of a product. The bias is at
    /// most `bound / 2^64`, far below what any sample of a load could show.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next_u64()) * u128::from(bound);
        (product >> 64) as u64
    }

    /// Uniform in `[0, 1)` with 53 bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_transaction_draws_the_same_numbers_and_another_does_not() {
        let draw = |seed, user, k| {
            let mut rng = Rng::for_transaction(seed, user, k);
            [rng.next_u64(), rng.next_u64(), rng.next_u64()]
        };
        assert_eq!(draw(1, 2, 3), draw(1, 2, 3));
        let others = [draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4), draw(1, 3, 2), draw(0, 0, 0)];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(*other, draw(1, 2, 3));
            assert!(!others[..i].contains(other));
        }
    }

    #[test]
    fn a_seed_draws_the_same_numbers_in_every_version() {
        let mut rng = Rng::for_transaction(1, 2, 3);
        let drawn = [rng.next_u64(), rng.next_u64(), rng.next_u64()];
        assert_eq!(drawn, [15_367_573_629_369_181_687, 2_141_791_452_605_139_207, 1_125_250_003_742_503_354]);
    }

    #[test]
    fn first_draws_of_successive_transactions_are_uniform_and_uncorrelated() {
        // What a counter must not leak: a pattern in k. Chi-square over 64 cells, and lag-1 correlation.
        for user in 0..4 {
            let draws: Vec<f64> = (0..64_000).map(|k| Rng::for_transaction(7, user, k).unit_f64()).collect();
            let mut cells = [0u32; 64];
            for draw in &draws {
                cells[(draw * 64.0) as usize] += 1;
            }
            let chi_square: f64 = cells.iter().map(|n| (f64::from(*n) - 1000.0).powi(2) / 1000.0).sum();
            assert!(chi_square < 120.0, "chi-square {chi_square} with 63 degrees of freedom");
            let covariance: f64 = draws.windows(2).map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5)).sum();
            let correlation = covariance / draws.len() as f64 * 12.0;
            assert!(correlation.abs() < 0.02, "lag-1 correlation {correlation}");
        }
    }

    #[test]
    fn below_covers_its_range_and_nothing_else() {
        let mut rng = Rng::for_transaction(1, 1, 1);
        let mut drawn = [false; 7];
        for _ in 0..1000 {
            drawn[rng.below(7) as usize] = true;
        }
        assert_eq!(drawn, [true; 7]);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
    }
}
