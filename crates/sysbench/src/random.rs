//! Random numbers and texts for scripts.

use std::str::FromStr;

use thiserror::Error;
use whyso_workload::{Distribution, Rng, Sampler};

/// Ranges for which constants are stored: scripts draw from a few.
const SAMPLERS_MAX: usize = 8;
/// Digits that one draw of 64 bits is good for.
const DIGITS_PER_DRAW: u32 = 16;

/// What scripts' random numbers follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RandomOptions {
    pub(crate) default: Kind,
    pub(crate) iterations: u32,
    pub(crate) hot_rows_pct: u32,
    pub(crate) hot_draws_pct: u32,
    pub(crate) pareto_h: f64,
    pub(crate) zipfian_exponent: f64,
}

/// `--rand-type`, and the numbers that `lua/runtime.lua` gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Uniform = 1,
    Gaussian = 2,
    Special = 3,
    Pareto = 4,
    Zipfian = 5,
}

/// A text that names no distribution of random numbers.
#[derive(Debug, Error)]
#[error("Invalid random numbers distribution: {text}. Give uniform, gaussian, special, pareto or zipfian.")]
pub(crate) struct UnknownDistribution {
    text: String,
}

impl FromStr for Kind {
    type Err = UnknownDistribution;

    fn from_str(text: &str) -> Result<Kind, UnknownDistribution> {
        Ok(match text {
            "uniform" => Kind::Uniform,
            "gaussian" => Kind::Gaussian,
            "special" => Kind::Special,
            "pareto" => Kind::Pareto,
            "zipfian" => Kind::Zipfian,
            _ => return Err(UnknownDistribution { text: text.to_string() }),
        })
    }
}

impl RandomOptions {
    /// The distribution of this number, 0 for the one of `--rand-type`.
    fn distribution(&self, number: i32) -> Distribution {
        let number = if number == 0 { self.default as i32 } else { number };
        match number {
            2 => Distribution::Gaussian { iterations: self.iterations },
            3 => Distribution::Special {
                iterations: self.iterations,
                hot_rows_pct: self.hot_rows_pct,
                hot_draws_pct: self.hot_draws_pct,
            },
            4 => Distribution::Pareto { h: self.pareto_h },
            5 => Distribution::Zipfian { exponent: self.zipfian_exponent },
            _ => Distribution::Uniform,
        }
    }
}

/// Distributions with their constants worked out, for the ranges that were asked for last.
#[derive(Debug)]
pub(crate) struct Samplers {
    options: RandomOptions,
    samplers: Vec<(i32, u64, Sampler)>,
}

impl Samplers {
    pub(crate) fn new(options: RandomOptions) -> Samplers {
        Samplers { options, samplers: Vec::new() }
    }

    /// A number in `a..=b`; `a` where the range is empty.
    pub(crate) fn draw(&mut self, number: i32, a: i64, b: i64, rng: &mut Rng) -> i64 {
        if b <= a {
            return a;
        }
        let size = b.wrapping_sub(a) as u64;
        let size = size.saturating_add(1);
        let place = match self
            .samplers
            .iter()
            .position(|(of_number, of_size, _)| *of_number == number && *of_size == size)
        {
            Some(place) => place,
            None => {
                if self.samplers.len() == SAMPLERS_MAX {
                    self.samplers.remove(0);
                }
                self.samplers.push((number, size, Sampler::new(self.options.distribution(number), size)));
                self.samplers.len() - 1
            }
        };
        a.wrapping_add((self.samplers[place].2.sample(rng) - 1) as i64)
    }
}

/// A number in `a..=b`, each as likely; `a` where the range is empty.
pub(crate) fn uniform(a: i64, b: i64, rng: &mut Rng) -> i64 {
    if b <= a {
        return a;
    }
    let size = (b.wrapping_sub(a) as u64).saturating_add(1);
    a.wrapping_add(rng.below(size) as i64)
}

/// Writes a text: a digit for each `#`, a letter for each `@`, anything else as it is.
pub(crate) fn write_text(format: &[u8], rng: &mut Rng, mut write: impl FnMut(u8)) {
    let mut bits = 0u64;
    let mut left = 0;
    for byte in format {
        match byte {
            b'#' => {
                if left == 0 {
                    bits = rng.next_u64();
                    left = DIGITS_PER_DRAW;
                }
                left -= 1;
                let product = u128::from(bits) * 10;
                bits = product as u64;
                write(b'0' + (product >> 64) as u8);
            }
            b'@' => write(b'a' + rng.below(26) as u8),
            other => write(*other),
        }
    }
}

/// The `number`-th of all 32-bit numbers in an order that seems random and repeats none: every step can be undone.
pub(crate) fn unique(number: u32) -> u32 {
    let mut word = number.wrapping_mul(0x9e37_79b1);
    word ^= word >> 15;
    word = word.wrapping_mul(0x85eb_ca6b);
    word ^= word >> 13;
    word = word.wrapping_mul(0xc2b2_ae35);
    word ^ (word >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: RandomOptions = RandomOptions {
        default: Kind::Special,
        iterations: 12,
        hot_rows_pct: 1,
        hot_draws_pct: 75,
        pareto_h: 0.2,
        zipfian_exponent: 0.8,
    };

    #[test]
    fn every_distribution_stays_within_both_bounds() {
        let mut samplers = Samplers::new(OPTIONS);
        let mut rng = Rng::for_transaction(1, 2, 3);
        for number in 0..=5 {
            let draws: Vec<i64> = (0..2000).map(|_| samplers.draw(number, -3, 6, &mut rng)).collect();
            assert!(draws.iter().all(|draw| (-3..=6).contains(draw)), "distribution {number}");
            assert!(draws.iter().any(|draw| *draw != draws[0]), "distribution {number}");
            assert_eq!(samplers.draw(number, 5, 5, &mut rng), 5);
            assert_eq!(samplers.draw(number, 5, 4, &mut rng), 5);
        }
        for _ in 0..100 {
            samplers.draw(1, i64::MIN, i64::MAX, &mut rng);
        }
    }

    #[test]
    fn a_text_has_digits_and_letters_where_its_format_has_them() {
        let mut rng = Rng::for_transaction(1, 2, 3);
        let mut counts = [0u32; 10];
        for _ in 0..1000 {
            let mut text = Vec::new();
            write_text(b"####################-@@x", &mut rng, |byte| text.push(byte));
            assert!(text[..20].iter().all(u8::is_ascii_digit));
            assert_eq!(text[20], b'-');
            assert!(text[21..23].iter().all(u8::is_ascii_lowercase) && text[23] == b'x');
            for digit in &text[..20] {
                counts[usize::from(digit - b'0')] += 1;
            }
        }
        // 20,000 digits: 2,000 of each, give or take five standard deviations.
        assert!(counts.iter().all(|count| (1790..2210).contains(count)), "{counts:?}");
    }

    #[test]
    fn unique_numbers_repeat_none() {
        let mut numbers: Vec<u32> = (0..100_000).map(unique).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 100_000);
    }
}
