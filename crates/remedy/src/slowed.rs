//! What CPUs or storage that are slowed by known amounts show of faster ones.
//!
//! Its work is made to take f times as long, for some f above 1. A transaction takes t(f) times as long then, by what was measured. The part of
//! it that is this work grows with f, and the rest stays: t(f) = 1 − b + b · f. The line goes through t(1) = 1, and its slope b is
//! fitted. At twice the speed f is ½, so throughput is 1 / (1 − b/2) of what it is: as long as nothing else becomes the limit, and at most twice.

use serde::{Deserialize, Serialize};
use whyso_explain::model::Gain;

use crate::MeasuredGain;

/// How long work takes at twice the speed.
const FASTER: f64 = 0.5;
/// Slopes that differ by no more are one, whatever their intervals are.
const SAME_SLOPE: f64 = 0.05;

/// Throughput of a slowed server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowedPoint {
    /// Of what the speed is otherwise.
    pub speed_percent: u8,
    /// Throughput as a share of what it is at full speed.
    pub ratio: MeasuredGain,
}

/// A slope and its 95 % interval.
#[derive(Clone, Copy)]
struct Slope {
    value: f64,
    low: f64,
    high: f64,
}

impl SlowedPoint {
    fn slope(&self) -> Option<Slope> {
        let work = 100.0 / f64::from(self.speed_percent) - 1.0;
        let slope = |ratio: f64| (1.0 / ratio - 1.0) / work;
        let MeasuredGain { value, low, high } = self.ratio;
        (work > 0.0 && low > 0.0).then(|| Slope { value: slope(value), low: slope(high), high: slope(low) })
    }
}

/// Throughput at twice the speed, as a multiple of what it is: from the line through the points. Where they lie on no line, the interval holds
/// what each of them gives. `None` without points.
///
/// ```
/// use whyso_remedy::{MeasuredGain, SlowedPoint, at_twice_the_speed};
///
/// let point = |speed_percent, value: f64| SlowedPoint {
///     speed_percent,
///     ratio: MeasuredGain { value, low: value * 0.99, high: value * 1.01 },
/// };
/// // All of a transaction is work that was slowed: at twice the speed it takes half the time.
/// let gain = at_twice_the_speed(&[point(80, 0.8), point(50, 0.5)]).unwrap();
/// assert!((gain.value - 2.0).abs() < 1e-9);
/// // None of it.
/// let gain = at_twice_the_speed(&[point(80, 1.0), point(50, 1.0)]).unwrap();
/// assert!((gain.value - 1.0).abs() < 1e-9);
/// assert!(gain.low < 1.0 && gain.high > 1.0);
/// ```
pub fn at_twice_the_speed(points: &[SlowedPoint]) -> Option<MeasuredGain> {
    let slopes: Vec<Slope> = points.iter().filter_map(SlowedPoint::slope).collect();
    let first = slopes.first()?;
    // Each point weighs by how narrow its interval is.
    let weight = |slope: &Slope| (slope.high - slope.low).max(1e-6).powi(-2);
    let weights: f64 = slopes.iter().map(weight).sum();
    let mean = slopes.iter().map(|slope| slope.value * weight(slope)).sum::<f64>() / weights;
    let half = 0.5 * weights.sqrt().recip();
    let low = slopes.iter().fold(first.low, |low, slope| low.min(slope.low));
    let high = slopes.iter().fold(first.high, |high, slope| high.max(slope.high));
    let is_one_line = slopes
        .iter()
        .all(|slope| (slope.value - mean).abs() <= SAME_SLOPE || (slope.low..=slope.high).contains(&mean));
    let fitted = match is_one_line {
        true => Slope { value: mean, low: mean - half, high: mean + half },
        false => Slope { value: mean, low, high },
    };
    // No more than all of a transaction can be work.
    let gain = |slope: f64| 1.0 / (1.0 - slope.clamp(-1.0, 1.0) * (1.0 - FASTER));
    Some(MeasuredGain { value: gain(fitted.value), low: gain(fitted.low), high: gain(fitted.high) })
}

/// The gain where half of a cause goes, from that where all of it goes: storage of twice the speed takes half of the time.
///
/// ```
/// use whyso_explain::model::Gain;
/// use whyso_remedy::of_half;
///
/// // Half of a transaction waits: without the waits it takes half the time, with half of them three quarters.
/// let half = of_half(Gain { low: 1.0, high: 2.0 });
/// assert!((half.high - 4.0 / 3.0).abs() < 1e-9);
/// assert!((half.low - 1.0).abs() < 1e-9);
/// ```
pub fn of_half(Gain { low, high }: Gain) -> Gain {
    let half = |gain: f64| 1.0 / ((1.0 - FASTER) / gain + FASTER);
    Gain { low: half(low), high: half(high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(speed_percent: u8, value: f64, half: f64) -> SlowedPoint {
        SlowedPoint {
            speed_percent,
            ratio: MeasuredGain { value, low: value * (1.0 - half), high: value * (1.0 + half) },
        }
    }

    #[test]
    fn a_half_that_is_work_gains_a_third() {
        // t = 0.5 + 0.5 f
        let at = |speed: f64| 1.0 / (0.5 + 0.5 / speed);
        let gain = at_twice_the_speed(&[point(80, at(0.8), 0.01), point(60, at(0.6), 0.01)]).unwrap();
        assert!((gain.value - 1.0 / 0.75).abs() < 1e-9, "{gain:?}");
        assert!(gain.low < gain.value && gain.value < gain.high);
        assert!(gain.high - gain.low < 0.1, "two points are narrower than the first: {gain:?}");
    }

    #[test]
    fn a_bend_makes_the_interval_wide() {
        // The first 20 % cost nothing: something else was the limit until then.
        let gain = at_twice_the_speed(&[point(80, 1.0, 0.005), point(60, 0.7, 0.005)]).unwrap();
        assert!(gain.low < 1.02 && gain.high > 1.4, "{gain:?}");
    }

    #[test]
    fn nothing_is_made_of_nothing() {
        assert_eq!(at_twice_the_speed(&[]), None);
        assert_eq!(at_twice_the_speed(&[point(100, 1.0, 0.0)]), None);
        assert_eq!(at_twice_the_speed(&[point(80, 0.0, 0.0)]), None);
    }
}
