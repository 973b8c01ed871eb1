//! A compact log-linear histogram of times.

use serde::{Deserialize, Serialize};

/// Sub-buckets of an octave, as a power of two: 128, so that a bucket is at most 1/128 of its lower bound wide.
const SUB_BITS: u32 = 7;
const SUB_BUCKETS: u64 = 1 << SUB_BITS;
/// Values of 2^42 ns (73 minutes) and more share the last bucket.
const TOP_BITS: u32 = 42;
const BUCKETS: usize = ((TOP_BITS - SUB_BITS + 1) as usize) << SUB_BITS;

/// Counts of times in nanoseconds, 1 ns to 73 minutes, in 4,608 buckets (36 KiB). Buckets are exact below 256 ns. From
/// there each is at most 1/128 (0.8 %) wide. Sum, smallest and largest are exact.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SparseHistogram", into = "SparseHistogram")]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Counts one value. Allocates nothing.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.counts[bucket_of(value_ns)] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(value_ns);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forgets everything; keeps its memory.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.counts.fill(0);
        }
        self.count = 0;
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact sum of all values, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Exact smallest value; 0 where there is none.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Exact largest value; 0 where there is none.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Exact mean; 0 where there is no value.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Returns the value that a share `quantile` (0 to 1) of all values does not exceed. It is the upper bound of the bucket
    /// that holds the value of rank ⌈quantile · count⌉. So it is never below the true value, and above it by at most 1/128
    /// of it. 0 where there is no value.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let rank = (quantile.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut passed = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            passed += count;
            if passed >= rank {
                return upper_bound_of(bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// The buckets that hold something: (largest value that the bucket takes in ns, count), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let non_empty = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        non_empty.map(|(bucket, count)| (upper_bound_of(bucket), *count))
    }
}

/// A histogram as it is sent: the buckets that hold something, by their number.
#[derive(Serialize, Deserialize)]
struct SparseHistogram {
    buckets: Vec<(u16, u64)>,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl From<Histogram> for SparseHistogram {
    fn from(histogram: Histogram) -> SparseHistogram {
        let Histogram { counts, sum_ns, min_ns, max_ns, .. } = histogram;
        let filled = counts.iter().zip(0u16..).filter(|(count, _)| **count > 0);
        SparseHistogram {
            buckets: filled.map(|(count, bucket)| (bucket, *count)).collect(),
            sum_ns,
            min_ns,
            max_ns,
        }
    }
}

impl TryFrom<SparseHistogram> for Histogram {
    type Error = String;

    fn try_from(sparse: SparseHistogram) -> Result<Histogram, String> {
        let mut histogram = Histogram::new();
        for (bucket, count) in sparse.buckets {
            let place = histogram.counts.get_mut(usize::from(bucket));
            let place = place.ok_or_else(|| format!("a histogram has no bucket {bucket}"))?;
            let sums = (place.checked_add(count), histogram.count.checked_add(count));
            let (Some(of_bucket), Some(of_all)) = sums else {
                return Err("a histogram counts more than it can".to_string());
            };
            (*place, histogram.count) = (of_bucket, of_all);
        }
        if histogram.count > 0 {
            (histogram.sum_ns, histogram.min_ns, histogram.max_ns) =
                (sparse.sum_ns, sparse.min_ns, sparse.max_ns);
        }
        Ok(histogram)
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("mean_ns", &self.mean_ns())
            .field("p50_ns", &self.quantile_ns(0.5))
            .field("p99_ns", &self.quantile_ns(0.99))
            .field("max_ns", &self.max_ns)
            .finish()
    }
}

#[inline]
fn bucket_of(value_ns: u64) -> usize {
    if value_ns < SUB_BUCKETS {
        return value_ns as usize;
    }
    let exponent = 63 - value_ns.leading_zeros();
    let shift = exponent - SUB_BITS;
    let within = (value_ns >> shift) & (SUB_BUCKETS - 1);
    let bucket = (u64::from(shift + 1) << SUB_BITS) + within;
    (bucket as usize).min(BUCKETS - 1)
}

/// The largest value that a bucket takes; of the last one, that it would take were it not the last.
fn upper_bound_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB_BUCKETS {
        return bucket;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    let lower = (SUB_BUCKETS + (bucket & (SUB_BUCKETS - 1))) << shift;
    lower + (1 << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    #[test]
    fn buckets_are_contiguous_and_ascending() {
        for bucket in 1..BUCKETS {
            let upper = upper_bound_of(bucket);
            let lower = upper_bound_of(bucket - 1) + 1;
            assert!(lower <= upper);
            assert_eq!(bucket_of(lower), bucket);
            assert_eq!(bucket_of(upper), bucket);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert!(upper_bound_of(BUCKETS - 1) > 3_600_000_000_000, "an hour has a bucket of its own");
    }

    proptest! {
        #[test]
        fn a_quantile_is_never_below_the_true_value_and_at_most_a_128th_above(
            mut values in prop::collection::vec(prop_oneof![0u64..1000, 0u64..4_000_000_000_000], 1..300),
            quantile in 0.0f64..=1.0,
        ) {
            let histogram = of(&values);
            values.sort_unstable();
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1);
            let truth = values[rank - 1];
            let estimate = histogram.quantile_ns(quantile);
            prop_assert!(estimate >= truth);
            prop_assert!((estimate - truth) as f64 <= truth as f64 / 128.0, "{estimate} for {truth}");
        }

        #[test]
        fn merging_two_is_counting_both(
            left in prop::collection::vec(any::<u64>().prop_map(|value| value >> 20), 0..100),
            right in prop::collection::vec(any::<u64>().prop_map(|value| value >> 20), 0..100),
        ) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let both: Vec<u64> = left.iter().chain(&right).copied().collect();
            prop_assert_eq!(&merged, &of(&both));
            let counted: u64 = merged.buckets().map(|(_, count)| count).sum();
            prop_assert_eq!(counted, both.len() as u64);
            prop_assert!(merged.buckets().is_sorted_by(|left, right| left.0 < right.0));
        }
    }

    #[test]
    fn what_is_sent_is_what_arrives_and_a_wrong_bucket_is_refused() {
        for values in [&[][..], &[1, 1, 300, 1_000_000, u64::MAX >> 20]] {
            let json = serde_json::to_string(&of(values)).unwrap();
            assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), of(values));
        }
        for buckets in ["[[65535,1]]", "[[1,18446744073709551615],[1,1]]", "[[1,18446744073709551615],[2,1]]"]
        {
            let json = format!(r#"{{"buckets":{buckets},"sum_ns":1,"min_ns":1,"max_ns":1}}"#);
            assert!(serde_json::from_str::<Histogram>(&json).is_err(), "{buckets}");
        }
    }

    #[test]
    fn clearing_forgets_everything() {
        let mut histogram = of(&[1, 1000, 1_000_000]);
        assert_eq!((histogram.min_ns(), histogram.max_ns(), histogram.sum_ns()), (1, 1_000_000, 1_001_001));
        histogram.clear();
        assert_eq!(histogram, Histogram::new());
        assert_eq!(histogram.quantile_ns(0.99), 0);
        assert_eq!(histogram.mean_ns(), 0.0);
    }
}
