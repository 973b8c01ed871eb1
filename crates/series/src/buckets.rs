//! Histograms as lists of buckets: (largest value that the bucket takes, count), ascending.

/// The value that a share `quantile` (0 to 1) of all values does not exceed. It is the upper bound of the bucket that holds the value of
/// rank ⌈quantile · count⌉. `None` where nothing was counted.
pub fn quantile_of_buckets(buckets: &[(u64, u64)], quantile: f64) -> Option<u64> {
    let total = count_in_buckets(buckets);
    let rank = ((total as f64 * quantile.clamp(0.0, 1.0)).ceil() as u64).max(1);
    let mut counted = 0u64;
    for (upper, count) in buckets {
        counted = counted.saturating_add(*count);
        if counted >= rank {
            return Some(*upper);
        }
    }
    None
}

/// How many values were counted.
pub fn count_in_buckets(buckets: &[(u64, u64)]) -> u64 {
    buckets.iter().fold(0, |total, (_, count)| total.saturating_add(*count))
}

/// Counts both; buckets of the same bound become one.
pub fn merge_buckets(left: &[(u64, u64)], right: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = left.iter().chain(right).copied().collect();
    all.sort_unstable_by_key(|(upper, _)| *upper);
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(all.len());
    for (upper, count) in all {
        match merged.last_mut() {
            Some((last, counted)) if *last == upper => *counted = counted.saturating_add(count),
            _ => merged.push((upper, count)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quantile_is_the_bound_of_the_bucket_that_holds_its_rank() {
        let buckets = [(10, 50), (20, 45), (30, 4), (1000, 1)];
        let cases = [(0.0, 10), (0.5, 10), (0.51, 20), (0.95, 20), (0.951, 30), (0.99, 30), (1.0, 1000)];
        for (quantile, expected) in cases {
            assert_eq!(quantile_of_buckets(&buckets, quantile), Some(expected), "{quantile}");
        }
        assert_eq!(quantile_of_buckets(&[], 0.5), None);
        assert_eq!(quantile_of_buckets(&[(10, 0)], 0.5), None, "a bucket that holds nothing has no quantile");
    }

    proptest! {
        #[test]
        fn merging_counts_everything_once_and_in_order(
            left in prop::collection::vec((0u64..50, 0u64..1000), 0..20),
            right in prop::collection::vec((0u64..50, 0u64..1000), 0..20),
        ) {
            let merged = merge_buckets(&left, &right);
            prop_assert_eq!(count_in_buckets(&merged), count_in_buckets(&left) + count_in_buckets(&right));
            prop_assert!(merged.is_sorted_by(|a, b| a.0 < b.0));
        }
    }
}
