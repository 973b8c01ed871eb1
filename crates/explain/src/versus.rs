//! Two versions side by side: the ratio of one to the other over paired rounds, with an interval.
//!
//! Rounds alternate, so that whatever drifts on the machine meets both. Ratios of positive quantities are symmetric in
//! their logarithm, so the interval is Student's t over the rounds' log ratios. Its ends are a factor apart. The ratio of B to A has the
//! reciprocal of the interval of A to B.

use serde::{Deserialize, Serialize};

use whyso_inference::interval::t_quantile_975;
use whyso_words::number;

/// How much one is of the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Geometric mean over the rounds of b ÷ a.
    pub ratio: f64,
    /// 95 %; `None` with fewer than two rounds.
    pub ci95: Option<[f64; 2]>,
    /// Rounds that count.
    pub rounds: u32,
}

impl Ratio {
    /// Whether the interval leaves out 1: the two differ.
    pub fn is_significant(&self) -> bool {
        self.ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0)
    }
}

/// b ÷ a from rounds of (a, b). A round in which either is not above 0 shows nothing about the ratio and is left out; `None`
/// where none is left.
pub fn ratio_of_rounds(rounds: &[(f64, f64)]) -> Option<Ratio> {
    let is_positive = |value: f64| value.is_finite() && value > 0.0;
    let logs: Vec<f64> = rounds
        .iter()
        .filter(|(a, b)| is_positive(*a) && is_positive(*b))
        .map(|(a, b)| (b / a).ln())
        .collect();
    if logs.is_empty() {
        return None;
    }
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let ci95 = (logs.len() > 1).then(|| {
        let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / (count - 1.0);
        let half = t_quantile_975(count - 1.0) * (variance / count).sqrt();
        [(mean - half).exp(), (mean + half).exp()]
    });
    Some(Ratio { ratio: mean.exp(), ci95, rounds: logs.len() as u32 })
}

/// What one version did in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundResult {
    pub transactions_per_s: f64,
    pub mean_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
}

/// Two versions over their rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub a: String,
    pub b: String,
    pub rounds: u32,
    /// Throughput first.
    pub quantities: Vec<Quantity>,
}

/// One quantity of both: means over the rounds, and the ratio of b to a.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    /// Such as "transactions_per_s" or "p99_ms".
    pub name: String,
    pub a: f64,
    pub b: f64,
    pub ratio: Option<Ratio>,
}

/// Compares two versions over rounds of (a, b); `None` where there is no round.
pub fn compare(a: &str, b: &str, rounds: &[(RoundResult, RoundResult)]) -> Option<Comparison> {
    if rounds.is_empty() {
        return None;
    }
    let quantity = |name: &str, of: fn(&RoundResult) -> f64| {
        let pairs: Vec<(f64, f64)> = rounds.iter().map(|(a, b)| (of(a), of(b))).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
        let (a, b) = (mean(|pair| pair.0), mean(|pair| pair.1));
        Quantity { name: name.to_string(), a, b, ratio: ratio_of_rounds(&pairs) }
    };
    Some(Comparison {
        a: a.to_string(),
        b: b.to_string(),
        rounds: rounds.len() as u32,
        quantities: vec![
            quantity("transactions_per_s", |side| side.transactions_per_s),
            quantity("mean_ms", |side| side.mean_ms),
            quantity("p95_ms", |side| side.p95_ms),
            quantity("p99_ms", |side| side.p99_ms),
        ],
    })
}

impl Comparison {
    /// What throughput shows, as a sentence.
    pub fn sentence(&self) -> String {
        let Some(ratio) = self.quantities.first().and_then(|quantity| quantity.ratio) else {
            return format!("{} and {} can't be compared: in no round both did something.", self.a, self.b);
        };
        let Some([low, high]) = ratio.ci95 else {
            return format!(
                "{} did {} times the transactions of {}, in a single round: how sure that is, is unknown.",
                self.b,
                number(ratio.ratio),
                self.a
            );
        };
        let interval = format!("95 % interval {} to {}, {} rounds", number(low), number(high), ratio.rounds);
        if !ratio.is_significant() {
            return format!(
                "{} and {} can't be distinguished by their throughput: ratio {} ({interval}).",
                self.a,
                self.b,
                number(ratio.ratio)
            );
        }
        format!("{} does {} times the transactions of {} ({interval}).", self.b, number(ratio.ratio), self.a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_random::noise::Noise;

    #[test]
    fn the_interval_holds_the_true_ratio_in_about_ninety_five_of_a_hundred() {
        let mut covered = 0;
        for seed in 0..1_000 {
            let mut noise = Noise::new(seed);
            let rounds: Vec<(f64, f64)> = (0..8)
                .map(|_| {
                    let machine = (0.3 * noise.normal()).exp();
                    let each = |noise: &mut Noise| machine * (0.05 * noise.normal()).exp();
                    (1000.0 * each(&mut noise), 1500.0 * each(&mut noise))
                })
                .collect();
            let [low, high] = ratio_of_rounds(&rounds).unwrap().ci95.unwrap();
            covered += i32::from(low <= 1.5 && 1.5 <= high);
        }
        assert!((930..=970).contains(&covered), "{covered} of 1,000");
    }

    #[test]
    fn turned_around_it_is_the_reciprocal() {
        let rounds = [(100.0, 210.0), (90.0, 171.0), (120.0, 250.0)];
        let turned: Vec<(f64, f64)> = rounds.iter().map(|(a, b)| (*b, *a)).collect();
        let (one, other) = (ratio_of_rounds(&rounds).unwrap(), ratio_of_rounds(&turned).unwrap());
        assert!((one.ratio * other.ratio - 1.0).abs() < 1e-12);
        assert!((one.ci95.unwrap()[0] * other.ci95.unwrap()[1] - 1.0).abs() < 1e-9);
        assert!(one.is_significant() && other.is_significant());
    }

    #[test]
    fn rounds_that_say_nothing_are_left_out() {
        assert_eq!(ratio_of_rounds(&[]), None);
        assert_eq!(ratio_of_rounds(&[(0.0, 1.0), (1.0, f64::NAN)]), None);
        let ratio = ratio_of_rounds(&[(1.0, 2.0), (0.0, 5.0)]).unwrap();
        assert_eq!((ratio.ratio, ratio.ci95, ratio.rounds), (2.0, None, 1));
        assert!(!ratio.is_significant());
    }
}
