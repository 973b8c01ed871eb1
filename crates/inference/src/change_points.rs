//! Where a series of values changes for good.
//!
//! Places are proposed by E-divisive: D. Matteson and N. James, "A nonparametric approach for multiple change point analysis of multivariate
//! data", Journal of the American Statistical Association 109, 2014. Student's t test between the parts on either side decides whether a place is
//! a change. It replaces the paper's permutations, so that the answer is the same each time. This follows M. Fleming, P. Kołaczkowski, I. Kumar, S. Das,
//! S. McCarthy, P. Pattabhiraman and H. Ingo, "Hunter: Using change point detection to hunt for performance regressions", ICPE 2023 (now Apache Otava).
//! From there come also:
//!
//! - windows, so that a long past does not hide what is near;
//! - a first pass that allows ten times the probability;
//! - a second pass that drops the weakest places one at a time and tests the others again.
//!
//! This crate adds one rule: a change must hold without the value that speaks most for it, so that one outlier is no change.

use serde::{Deserialize, Serialize};

use crate::student::two_sided_p;

/// Fewer values make no part: without the one that speaks most for a change, a spread must be left.
pub const PART_MIN: usize = 3;
/// The first pass proposes places of up to this many times the probability.
const PROPOSED: f64 = 10.0;
/// A wider window would take memory by the square of it.
const WINDOW_MAX: usize = 500;

/// What counts as a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeRule {
    /// Values that are tested together, from 6 to 500; windows overlap by half.
    pub window: usize,
    /// Highest probability of such a difference by chance. It is that of one place, not of the whole series, which has as many places as values.
    /// A wrong change in a series of 60 is some ten to twenty times likelier.
    pub p_max: f64,
    /// Smallest difference of the means that counts, in the unit of the values.
    pub size_min: f64,
}

impl Default for ChangeRule {
    /// 50 values, 0.001, any size.
    fn default() -> ChangeRule {
        ChangeRule { window: 50, p_max: 0.001, size_min: 0.0 }
    }
}

/// A change of the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// Place of the first value after it.
    pub at: usize,
    /// Mean from the change before it, or the beginning, up to it.
    pub before: f64,
    /// Mean from it to the change after it, or the end.
    pub after: f64,
    /// Probability of such a difference by chance, by Student's t test between both parts. The test is done with all values, and without the value
    /// of either part that speaks most for a change. This is the highest of the results.
    pub p: f64,
}

/// Returns the changes in a series, in order. Values that are no finite number are left out. A change has at least [`PART_MIN`] values on either side.
///
/// ```
/// use whyso_inference::{ChangeRule, change_points};
/// let values: Vec<f64> = (0..40).map(|at| if at < 25 { 100.0 } else { 90.0 } + f64::from(at % 3)).collect();
/// let found = change_points(&values, &ChangeRule::default());
/// assert_eq!((found.len(), found[0].at), (1, 25));
/// ```
pub fn change_points(values: &[f64], wanted: &ChangeRule) -> Vec<ChangePoint> {
    let places: Vec<usize> = (0..values.len()).filter(|at| values[*at].is_finite()).collect();
    let finite: Vec<f64> = places.iter().map(|at| values[*at]).collect();
    let mut changes = confirmed(&finite, proposed(&finite, wanted), wanted);
    for change in &mut changes {
        change.at = places[change.at];
    }
    changes
}

/// Places that the first pass takes, in order.
fn proposed(values: &[f64], wanted: &ChangeRule) -> Vec<usize> {
    let window = wanted.window.clamp(2 * PART_MIN, WINDOW_MAX);
    let mut found: Vec<usize> = Vec::new();
    let mut begin = 0;
    loop {
        let end = (begin + window).min(values.len());
        let mut in_window = divided(&values[begin..end], wanted.p_max * PROPOSED);
        in_window.sort_unstable();
        found.extend(in_window.iter().map(|at| begin + at));
        if end == values.len() {
            return found;
        }
        // What is known to have changed begins the next window.
        begin = found.last().map_or(0, |last| *last).max(begin + window / 2);
    }
}

/// Divides a window at the place of the largest divergence, and each part again, for as long as the parts differ.
fn divided(values: &[f64], p_max: f64) -> Vec<usize> {
    let distances = Distances::new(values);
    let mut parts = vec![(0, values.len())];
    let mut found = Vec::new();
    while let Some((begin, end)) = parts.pop() {
        let Some((at, until)) = distances.widest(begin, end) else { continue };
        if p_of(&values[begin..at], &values[at..until]) < p_max {
            found.push(at);
            parts.extend([(begin, at), (at, end)]);
        }
    }
    found
}

/// Sums of the distances between values.
struct Distances {
    /// Of row and column: the sum over all pairs of a value before the row and one before the column.
    before: Vec<f64>,
    side: usize,
}

impl Distances {
    fn new(values: &[f64]) -> Distances {
        let side = values.len() + 1;
        let mut before = vec![0.0; side * side];
        for (row, one) in values.iter().enumerate() {
            let mut sum = 0.0;
            for (column, other) in values.iter().enumerate() {
                sum += (one - other).abs();
                before[(row + 1) * side + column + 1] = before[row * side + column + 1] + sum;
            }
        }
        Distances { before, side }
    }

    fn sum(&self, rows: [usize; 2], columns: [usize; 2]) -> f64 {
        let before = |row: usize, column: usize| self.before[row * self.side + column];
        before(rows[1], columns[1]) - before(rows[0], columns[1]) - before(rows[1], columns[0])
            + before(rows[0], columns[0])
    }

    /// Mean distance of two different values from `begin` up to `end`.
    fn within(&self, begin: usize, end: usize) -> f64 {
        let count = (end - begin) as f64;
        self.sum([begin, end], [begin, end]) / (count * (count - 1.0))
    }

    /// Returns the place where the values before it and those from it up to another place diverge most, and that other place. This is the paper's (7),
    /// with α = 1.
    fn widest(&self, begin: usize, end: usize) -> Option<(usize, usize)> {
        let mut widest = None;
        let mut most = 0.0;
        for at in begin + PART_MIN..(end + 1).saturating_sub(PART_MIN) {
            let before = (at - begin) as f64;
            let within_before = self.within(begin, at);
            for until in at + PART_MIN..=end {
                let after = (until - at) as f64;
                let between = self.sum([begin, at], [at, until]) / (before * after);
                let divergence = 2.0 * between - within_before - self.within(at, until);
                let scaled = divergence * before * after / (before + after);
                if scaled > most {
                    most = scaled;
                    widest = Some((at, until));
                }
            }
        }
        widest
    }
}

/// Drops the least sure of the places until all that are left are sure, then the smallest until all are large enough.
fn confirmed(values: &[f64], mut places: Vec<usize>, wanted: &ChangeRule) -> Vec<ChangePoint> {
    loop {
        let changes = between(values, &places);
        let size = |change: &ChangePoint| (change.after - change.before).abs();
        let least_sure = (0..changes.len())
            .filter(|at| changes[*at].p >= wanted.p_max)
            .max_by(|one, other| changes[*one].p.total_cmp(&changes[*other].p));
        let too_small = || {
            (0..changes.len())
                .filter(|at| size(&changes[*at]) < wanted.size_min)
                .min_by(|one, other| size(&changes[*one]).total_cmp(&size(&changes[*other])))
        };
        match least_sure.or_else(too_small) {
            Some(at) => places.remove(at),
            None => return changes,
        };
    }
}

/// Each place between the parts that all places make.
fn between(values: &[f64], places: &[usize]) -> Vec<ChangePoint> {
    let change = |(at, place): (usize, &usize)| {
        let begin = if at == 0 { 0 } else { places[at - 1] };
        let end = places.get(at + 1).map_or(values.len(), |end| *end);
        let (before, after) = (&values[begin..*place], &values[*place..end]);
        let p = p_of(before, after)
            .max(p_of(&without_leader(before, after), after))
            .max(p_of(before, &without_leader(after, before)));
        ChangePoint { at: *place, before: mean(before), after: mean(after), p }
    };
    places.iter().enumerate().map(change).collect()
}

/// A part without the value that lies farthest from the other part's mean, on this part's side of it.
fn without_leader(part: &[f64], other: &[f64]) -> Vec<f64> {
    let away = mean(part) - mean(other);
    let leads = |at: &usize| part[*at] * away.signum();
    let leader = (0..part.len()).max_by(|one, other| leads(one).total_cmp(&leads(other)));
    (0..part.len()).filter(|at| Some(*at) != leader).map(|at| part[at]).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Student's test of two samples whose spread is the same.
fn p_of(one: &[f64], other: &[f64]) -> f64 {
    let squares = |values: &[f64]| {
        let mean = mean(values);
        values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>()
    };
    let (one_count, other_count) = (one.len() as f64, other.len() as f64);
    let degrees = one_count + other_count - 2.0;
    let variance = (squares(one) + squares(other)) / degrees;
    let error = (variance * (1.0 / one_count + 1.0 / other_count)).sqrt();
    two_sided_p(mean(one) - mean(other), error, degrees)
}

#[cfg(test)]
mod tests;
