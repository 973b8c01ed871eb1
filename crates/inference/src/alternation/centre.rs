//! The centre of pairs' logarithms and its interval, by Student's t with clipped deviations.

use crate::estimate::Estimate;
use crate::student::critical;

/// Deviations count up to this many times their scale.
pub(super) const CLIP: f64 = 2.0;
/// The median of normal values' sizes, times this, is their standard deviation.
pub(super) const NORMAL: f64 = 1.4826;
/// With fewer values nothing is clipped: their scale is too uncertain.
const CLIPPED_FROM: usize = 20;
/// Halvings of the range in which an edge of an interval lies.
const HALVINGS: u32 = 45;
/// Doublings until a range contains the edge.
const DOUBLINGS: u32 = 60;

/// Where values have their centre; all are logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Centre {
    pub(super) value: f64,
    pub(super) low95: f64,
    pub(super) high95: f64,
    pub(super) low90: f64,
    pub(super) high90: f64,
    /// Standard deviation of a value that would give an interval of this width. With one value it is not finite, nor are the intervals.
    pub(super) spread: f64,
    pub(super) values: usize,
}

impl Centre {
    /// `values` has one value at least, all of them finite.
    pub(super) fn of(values: &[f64]) -> Centre {
        let mut search = Search::new(values);
        let (value, count) = (search.centre(), values.len() as f64);
        if values.len() < 2 {
            let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
            let (spread, values) = (f64::INFINITY, values.len());
            return Centre { value, low95: low, high95: high, low90: low, high90: high, spread, values };
        }
        let bound = critical(count - 1.0, 0.05);
        let [low95, high95] = search.interval(value, bound);
        let [low90, high90] = search.interval(value, critical(count - 1.0, 0.1));
        let spread = (high95 - low95) / (2.0 * bound) * count.sqrt();
        Centre { value, low95, high95, low90, high90, spread, values: values.len() }
    }

    /// Standard error; `None` with one value.
    pub(super) fn error(&self) -> Option<f64> {
        (self.values > 1).then(|| self.spread / (self.values as f64).sqrt())
    }

    pub(super) fn ratio(&self) -> Estimate {
        Estimate { value: self.value.exp(), low95: self.low95.exp(), high95: self.high95.exp() }
    }

    /// The other centre's ratio as a multiple of this one's, by B. L. Welch (1947). `None` if either has one value.
    pub(super) fn difference_to(&self, other: &Centre) -> Option<Estimate> {
        let parts = [self.error()?.powi(2), other.error()?.powi(2)];
        let variance = parts[0] + parts[1];
        let weights: f64 = [self, other]
            .iter()
            .zip(parts)
            .map(|(centre, part)| part * part / (centre.values - 1) as f64)
            .sum();
        let degrees = if weights > 0.0 { variance * variance / weights } else { 1.0 };
        let half = if variance > 0.0 { critical(degrees, 0.05) * variance.sqrt() } else { 0.0 };
        let difference = other.value - self.value;
        let [low95, high95] = [difference - half, difference + half].map(f64::exp);
        Some(Estimate { value: difference.exp(), low95, high95 })
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The median; of an even number of values, the upper of the two in the middle. It puts them in another order. `values` is not empty.
pub(super) fn upper_median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// The deviation that counts in full at most, where the truth is `candidate`. The signs of the deviations do not change it.
pub(super) fn bound(values: &[f64], candidate: f64, sizes: &mut Vec<f64>) -> f64 {
    if values.len() < CLIPPED_FROM {
        return f64::INFINITY;
    }
    sizes.clear();
    sizes.extend(values.iter().map(|value| (value - candidate).abs()));
    let median = upper_median(sizes);
    if median > 0.0 { CLIP * NORMAL * median } else { f64::INFINITY }
}

/// Looks for the candidates that a test does not exclude.
struct Search<'a> {
    values: &'a [f64],
    lowest: f64,
    highest: f64,
    sizes: Vec<f64>,
}

impl Search<'_> {
    fn new(values: &[f64]) -> Search<'_> {
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Search { values, lowest, highest, sizes: Vec::with_capacity(values.len()) }
    }

    /// Student's t of the clipped deviations from a candidate.
    fn t_at(&mut self, candidate: f64) -> f64 {
        let bound = bound(self.values, candidate, &mut self.sizes);
        let (mut sum, mut squares) = (0.0, 0.0);
        for value in self.values {
            let deviation = (value - candidate).clamp(-bound, bound);
            sum += deviation;
            squares += deviation * deviation;
        }
        let count = self.values.len() as f64;
        let rest = count * squares - sum * sum;
        if sum == 0.0 {
            0.0
        } else if rest <= 0.0 {
            sum.signum() * f64::INFINITY
        } else {
            sum * ((count - 1.0) / rest).sqrt()
        }
    }

    /// The candidate from which the clipped deviations sum up to 0.
    fn centre(&mut self) -> f64 {
        if self.values.len() < CLIPPED_FROM {
            return mean(self.values);
        }
        let (mut low, mut high) = (self.lowest, self.highest);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.t_at(middle) > 0.0 { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    }

    /// The candidates around the centre whose t does not exceed `critical` in size.
    fn interval(&mut self, centre: f64, critical: f64) -> [f64; 2] {
        let step = (self.highest - self.lowest) / (self.values.len() as f64).sqrt();
        if step == 0.0 || !step.is_finite() {
            return [centre; 2];
        }
        [self.edge(centre, -step, critical), self.edge(centre, step, critical)]
    }

    fn edge(&mut self, centre: f64, step: f64, critical: f64) -> f64 {
        let (mut near, mut far) = (centre, centre + step);
        for doubling in 0..DOUBLINGS {
            if self.t_at(far).abs() >= critical {
                break;
            }
            near = far;
            far += step * f64::from(doubling + 1).exp2();
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(near, far);
            if self.t_at(middle).abs() >= critical { far = middle } else { near = middle }
        }
        f64::midpoint(near, far)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W. S. Gosset ("Student"), 1908: additional hours of sleep of ten patients.
    #[test]
    fn few_values_have_students_own_interval() {
        let hours = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let found = Centre::of(&hours);
        assert!((found.value - 1.58).abs() < 1e-9 && (found.spread - 1.229_995).abs() < 1e-5, "{found:?}");
        assert!((found.low95 - 0.700_114).abs() < 1e-4 && (found.high95 - 2.459_886).abs() < 1e-4);
        assert!(found.low90 > found.low95 && found.high90 < found.high95);
    }

    #[test]
    fn one_value_that_is_far_away_moves_the_centre_little() {
        let mut values: Vec<f64> = (0..40).map(|at| f64::from(at % 5) - 2.0).collect();
        values[7] = 1e6;
        let found = Centre::of(&values);
        assert!(found.value.abs() < 0.3 && found.high95 < 1.0, "{found:?}");
    }

    #[test]
    fn equal_values_have_an_interval_without_width() {
        for count in [2, 50] {
            let found = Centre::of(&vec![0.25; count]);
            assert!((found.low95 - 0.25).abs() < 1e-9 && (found.high95 - 0.25).abs() < 1e-9, "{found:?}");
        }
        assert!(Centre::of(&[0.5]).high95.is_infinite());
    }
}
