//! Transactions in each 100 ms: what tests of a window's throughput begin with.

/// Bins per second.
pub const BINS_PER_S: f64 = 10.0;

/// The fewest bins about whose steadiness anything is known: two seconds.
pub const BINS_MIN: usize = 20;

/// Returns the mean; 0 where there are no values.
pub fn mean_of(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the median; 0 where there are no values.
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        return sorted[middle];
    }
    (sorted[middle - 1] + sorted[middle]) / 2.0
}
