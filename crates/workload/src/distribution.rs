//! How row numbers are chosen, as sysbench's `--rand-type` and pgbench's `random_…` functions name it.

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// A distribution over the rows `1..=rows` of a table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Distribution {
    Uniform,
    /// Row `r` has weight `r^-exponent`; low row numbers are hot. `exponent` is at least 0.
    Zipfian {
        exponent: f64,
    },
    /// `rows · U^p` with `p = ln h / ln (1-h)`: a share `1-h` of the draws falls in the first share `h` of the
    /// rows. `0 < h < 1`.
    Pareto {
        h: f64,
    },
    /// Mean of `iterations` uniform draws: a bell around the middle row.
    Gaussian {
        iterations: u32,
    },
    /// `hot_draws_pct` of the draws fall uniformly on the `hot_rows_pct` of the rows in the middle, the others as
    /// in `Gaussian`.
    Special {
        iterations: u32,
        hot_rows_pct: u32,
        hot_draws_pct: u32,
    },
    /// A normal distribution around the middle, cut off `parameter` standard deviations from it on both sides. So
    /// larger parameters make a narrower bell: pgbench's `random_gaussian`. `parameter` is at least 2.
    Normal {
        parameter: f64,
    },
    /// Low rows are hot: pgbench's `random_exponential`. Each of two equal shares of the range has a frequency that
    /// falls by the same factor, `exp(-parameter)` over the whole. `parameter` is above 0.
    Exponential {
        parameter: f64,
    },
}

impl std::fmt::Display for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Distribution::Uniform => write!(f, "uniform"),
            Distribution::Zipfian { exponent } => write!(f, "zipfian (exponent {exponent})"),
            Distribution::Pareto { h } => write!(f, "pareto (h {h})"),
            Distribution::Gaussian { iterations } => write!(f, "gaussian ({iterations} iterations)"),
            Distribution::Normal { parameter } => write!(f, "normal (parameter {parameter})"),
            Distribution::Exponential { parameter } => write!(f, "exponential (parameter {parameter})"),
            Distribution::Special { iterations, hot_rows_pct, hot_draws_pct } => write!(
                f,
                "special ({hot_draws_pct} % of draws on the middle {hot_rows_pct} % of rows, the others gaussian with \
                 {iterations} iterations)"
            ),
        }
    }
}

/// A distribution with its constants worked out for one number of rows.
#[derive(Clone, Debug)]
pub struct Sampler {
    rows: u64,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Uniform,
    Zipfian(Zipfian),
    Pareto { power: f64 },
    Gaussian { iterations: u32 },
    Special { iterations: u32, hot_begin: u64, hot_rows: u64, hot_share: u64 },
    Normal { parameter: f64 },
    Exponential { parameter: f64, cut: f64 },
}

impl Sampler {
    /// A sampler of `1..=rows`; of row 1 alone where `rows` is 0 or 1.
    pub fn new(distribution: Distribution, rows: u64) -> Sampler {
        let rows = rows.max(1);
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Zipfian { exponent } => Shape::Zipfian(Zipfian::new(rows, exponent.max(0.0))),
            Distribution::Pareto { h } => Shape::Pareto { power: h.ln() / (1.0 - h).ln() },
            Distribution::Gaussian { iterations } => Shape::Gaussian { iterations: iterations.max(1) },
            Distribution::Special { iterations, hot_rows_pct, hot_draws_pct } => {
                let hot_rows = (u128::from(rows) * u128::from(hot_rows_pct) / 100) as u64;
                let hot_rows = hot_rows.clamp(1, rows);
                Shape::Special {
                    iterations: iterations.max(1),
                    hot_begin: (rows - hot_rows) / 2,
                    hot_rows,
                    hot_share: u64::from(hot_draws_pct.min(100)),
                }
            }
            Distribution::Normal { parameter } => {
                Shape::Normal { parameter: parameter.max(NORMAL_PARAMETER_MIN) }
            }
            Distribution::Exponential { parameter } => {
                let parameter = parameter.max(f64::MIN_POSITIVE);
                Shape::Exponential { parameter, cut: (-parameter).exp_m1() }
            }
        };
        Sampler { rows, shape }
    }

    /// A row number in `1..=rows`.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        let offset = match &self.shape {
            Shape::Uniform => rng.below(self.rows),
            Shape::Zipfian(zipfian) => zipfian.sample(rng) - 1,
            Shape::Pareto { power } => (self.rows as f64 * rng.unit_f64().powf(*power)) as u64,
            Shape::Gaussian { iterations } => mean_of_draws(rng, self.rows, *iterations),
            Shape::Special { iterations, hot_begin, hot_rows, hot_share } => {
                if rng.below(100) < *hot_share {
                    hot_begin + rng.below(*hot_rows)
                } else {
                    mean_of_draws(rng, self.rows, *iterations)
                }
            }
            Shape::Normal { parameter } => {
                let place = (normal_within(rng, *parameter) / parameter + 1.0) / 2.0;
                (self.rows as f64 * place) as u64
            }
            Shape::Exponential { parameter, cut } => {
                let place = -(cut * rng.unit_f64()).ln_1p() / parameter;
                (self.rows as f64 * place) as u64
            }
        };
        1 + offset.min(self.rows - 1)
    }
}

/// The least parameter of [`Distribution::Normal`]: 95 % of the normal draws are then within it.
pub(crate) const NORMAL_PARAMETER_MIN: f64 = 2.0;

/// A standard normal number (Box and Muller, 1958) from `-bound` to `bound`, of which `bound` is at least 2.
fn normal_within(rng: &mut Rng, bound: f64) -> f64 {
    // At most one draw in twenty is out of bounds; the count only keeps a broken constant from hanging a thread.
    for _ in 0..1000 {
        let radius = (-2.0 * (1.0 - rng.unit_f64()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * rng.unit_f64()).cos();
        if (-bound..bound).contains(&normal) {
            return normal;
        }
    }
    0.0
}

fn mean_of_draws(rng: &mut Rng, rows: u64, iterations: u32) -> u64 {
    let mut sum: u128 = 0;
    for _ in 0..iterations {
        sum += u128::from(rng.below(rows));
    }
    // Rows of a table fit in 32 bits, so the sum of what a user may ask for fits in 64, whose division is quicker.
    match u64::try_from(sum) {
        Ok(sum) => sum / u64::from(iterations),
        Err(_) => (sum / u128::from(iterations)) as u64,
    }
}

/// Rejection-inversion: no table, the same cost for any number of rows. From Hörmann and Derflinger,
/// "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996.
#[derive(Clone, Debug)]
struct Zipfian {
    rows: f64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    accept_below: f64,
}

impl Zipfian {
    fn new(rows: u64, exponent: f64) -> Zipfian {
        let mut zipfian = Zipfian {
            rows: rows as f64,
            exponent,
            integral_first: 0.0,
            integral_last: 0.0,
            accept_below: 0.0,
        };
        zipfian.integral_first = zipfian.integral(1.5) - 1.0;
        zipfian.integral_last = zipfian.integral(zipfian.rows + 0.5);
        zipfian.accept_below = 2.0 - zipfian.integral_inverse(zipfian.integral(2.5) - zipfian.density(2.0));
        zipfian
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// Antiderivative of the density, 0 at x = 1.
    fn integral(&self, x: f64) -> f64 {
        let one_less = 1.0 - self.exponent;
        if one_less.abs() < 1e-9 { x.ln() } else { (one_less * x.ln()).exp_m1() / one_less }
    }

    fn integral_inverse(&self, area: f64) -> f64 {
        let one_less = 1.0 - self.exponent;
        if one_less.abs() < 1e-9 {
            return area.exp();
        }
        let base = (area * one_less).max(-1.0);
        (base.ln_1p() / one_less).exp()
    }

    fn sample(&self, rng: &mut Rng) -> u64 {
        // About one draw in fifty is rejected; the bound only keeps a broken constant from hanging a thread.
        for _ in 0..1000 {
            let area = self.integral_last + rng.unit_f64() * (self.integral_first - self.integral_last);
            let x = self.integral_inverse(area);
            let rank = x.round().clamp(1.0, self.rows);
            let near = rank - x <= self.accept_below;
            if near || area >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64;
            }
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn counts(distribution: Distribution, rows: u64) -> Vec<u64> {
        let sampler = Sampler::new(distribution, rows);
        let mut counts = vec![0; rows as usize];
        let mut rng = Rng::for_transaction(42, 0, 0);
        for _ in 0..DRAWS {
            let row = sampler.sample(&mut rng);
            assert!((1..=rows).contains(&row), "row {row} of {rows}");
            counts[row as usize - 1] += 1;
        }
        counts
    }

    /// Sum over cells of (observed − expected)² / expected.
    fn chi_square(counts: &[u64], expected_share: impl Fn(usize) -> f64) -> f64 {
        let mut sum = 0.0;
        for (i, observed) in counts.iter().enumerate() {
            let expected = expected_share(i) * DRAWS as f64;
            sum += (*observed as f64 - expected).powi(2) / expected;
        }
        sum
    }

    #[test]
    fn uniform_is_uniform() {
        let chi_square = chi_square(&counts(Distribution::Uniform, 100), |_| 0.01);
        assert!(chi_square < 160.0, "chi-square {chi_square} with 99 degrees of freedom");
    }

    #[test]
    fn zipfian_has_its_power_law_for_exponents_around_one() {
        for exponent in [0.0, 0.5, 0.8, 1.0, 1.5] {
            let weight = |i: usize| (i as f64 + 1.0).powf(-exponent);
            let total: f64 = (0..100).map(weight).sum();
            let counts = counts(Distribution::Zipfian { exponent }, 100);
            let chi_square = chi_square(&counts, |i| weight(i) / total);
            assert!(
                chi_square < 160.0,
                "exponent {exponent}: chi-square {chi_square} with 99 degrees of freedom"
            );
        }
    }

    #[test]
    fn pareto_puts_80_percent_of_the_draws_on_20_percent_of_the_rows() {
        let counts = counts(Distribution::Pareto { h: 0.2 }, 1000);
        let first_fifth: u64 = counts[..200].iter().sum();
        let share = first_fifth as f64 / DRAWS as f64;
        assert!((share - 0.8).abs() < 0.005, "share {share}");
    }

    #[test]
    fn gaussian_has_the_mean_and_spread_of_a_mean_of_uniform_draws() {
        let counts = counts(Distribution::Gaussian { iterations: 12 }, 1000);
        let mean =
            counts.iter().enumerate().map(|(i, n)| (i + 1) as f64 * *n as f64).sum::<f64>() / DRAWS as f64;
        let variance =
            counts.iter().enumerate().map(|(i, n)| ((i + 1) as f64 - mean).powi(2) * *n as f64).sum::<f64>()
                / DRAWS as f64;
        // A uniform draw has standard deviation rows/√12; the mean of 12 of them rows/12.
        assert!((mean - 500.0).abs() < 1.5, "mean {mean}");
        assert!((variance.sqrt() - 1000.0 / 12.0).abs() < 1.5, "standard deviation {}", variance.sqrt());
    }

    #[test]
    fn special_puts_75_percent_of_the_draws_on_the_middle_percent() {
        let special = Distribution::Special { iterations: 12, hot_rows_pct: 1, hot_draws_pct: 75 };
        let counts = counts(special, 10_000);
        let hot: u64 = counts[4950..5050].iter().sum();
        // The bell's own part there: 100 rows at its peak of 1 / (833 · √2π) each.
        let expected = 0.75 + 0.25 * 100.0 * 0.3989 / (10_000.0 / 12.0);
        let share = hot as f64 / DRAWS as f64;
        assert!((share - expected).abs() < 0.004, "share {share}, expected {expected}");
    }

    #[test]
    fn normal_is_a_bell_of_the_width_that_its_parameter_gives() {
        let counts = counts(Distribution::Normal { parameter: 4.0 }, 1000);
        // Half of the normal distribution lies within 0.6745 standard deviations; one is an eighth of the rows.
        let half: u64 = counts[500 - 84..500 + 84].iter().sum();
        let share = half as f64 / DRAWS as f64;
        assert!((share - 0.498).abs() < 0.006, "share {share}");
        assert!(
            counts[..125].iter().sum::<u64>() < DRAWS as u64 / 500,
            "few beyond three standard deviations"
        );
    }

    #[test]
    fn exponential_falls_by_the_same_factor_over_equal_shares() {
        let counts = counts(Distribution::Exponential { parameter: 5.0 }, 100);
        let weight = |i: usize| (-5.0 * i as f64 / 100.0).exp();
        let total: f64 = (0..100).map(weight).sum();
        let chi_square = chi_square(&counts, |i| weight(i) / total);
        assert!(chi_square < 160.0, "chi-square {chi_square} with 99 degrees of freedom");
    }

    #[test]
    fn every_distribution_works_on_one_row_and_on_two_billion() {
        for distribution in [
            Distribution::Uniform,
            Distribution::Zipfian { exponent: 0.8 },
            Distribution::Pareto { h: 0.2 },
            Distribution::Gaussian { iterations: 12 },
            Distribution::Special { iterations: 12, hot_rows_pct: 1, hot_draws_pct: 75 },
            Distribution::Normal { parameter: 2.0 },
            Distribution::Exponential { parameter: 10.0 },
        ] {
            let mut rng = Rng::for_transaction(1, 2, 3);
            let sampler = Sampler::new(distribution, 1);
            let many = Sampler::new(distribution, 2_000_000_000);
            for _ in 0..1000 {
                assert_eq!(sampler.sample(&mut rng), 1);
                assert!((1..=2_000_000_000).contains(&many.sample(&mut rng)));
            }
        }
    }
}
