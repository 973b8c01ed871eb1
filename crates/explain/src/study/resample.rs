//! Resampling: B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7, 1979.

const RESAMPLES: usize = 2_000;

/// 95 % of the means of resampled values.
pub(super) fn bootstrap95(values: &[f64], seed: u64) -> [f64; 2] {
    let mut random = Random(seed);
    let mean = |random: &mut Random| {
        let sum: f64 = (0..values.len()).map(|_| values[random.below(values.len())]).sum();
        sum / values.len() as f64
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| mean(&mut random)).collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((RESAMPLES - 1) as f64 * share).round() as usize];
    [at(0.025), at(0.975)]
}

/// S. Vigna's SplitMix64: the same numbers for the same seed, on any machine.
#[derive(Clone, Debug)]
pub struct Random(pub(crate) u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `count` − 1; `count` is above 0.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_interval_around_the_mean() {
        let values = [0.1, 0.12, 0.08, 0.11, 0.09];
        let [low, high] = bootstrap95(&values, 5);
        assert_eq!([low, high], bootstrap95(&values, 5));
        assert!(low < 0.1 && 0.1 < high && low >= 0.08 && high <= 0.12, "{low} {high}");
    }

    #[test]
    fn its_numbers_are_those_that_its_author_published() {
        let mut random = Random(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
