//! Envelopes: how a dense series is drawn without dropping a point.

use serde::{Deserialize, Serialize};

use crate::rollup::Rollup;

/// Minimum, quartiles and maximum of each of some equal buckets: one vector a quantity, all of one
/// length. A bucket without a value is a gap: `NaN` in each (null in JSON), `count` 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// Begin of each bucket.
    pub t_ns: Vec<i64>,
    pub min: Vec<f64>,
    pub q1: Vec<f64>,
    pub median: Vec<f64>,
    pub q3: Vec<f64>,
    pub max: Vec<f64>,
    /// Values (not roll-ups) in the bucket.
    pub count: Vec<u32>,
}

/// Envelope of the values in `[begin_ns, end_ns)`, in `buckets` equal buckets. The extremes are exact, so
/// that a spike of one sample stays visible; quartiles are interpolated between neighbours
/// (Hyndman and Fan's type 7).
pub fn envelope(t_ns: &[i64], value: &[f64], begin_ns: i64, end_ns: i64, buckets: usize) -> Envelope {
    let mut envelope = Envelope::with_gaps(begin_ns, end_ns, buckets);
    let length = t_ns.len().min(value.len());
    let first = t_ns[..length].partition_point(|&t| t < begin_ns);
    let last = t_ns[..length].partition_point(|&t| t < end_ns);
    let mut bucket_values = Vec::new();
    let mut current = 0;
    // Readings come in order of time: their bucket is worked out only where the next one has begun.
    let mut next_ns = begin_ns;
    for index in first..last {
        if t_ns[index] >= next_ns {
            envelope.set_values(current, &mut bucket_values);
            current = bucket_of(t_ns[index], begin_ns, end_ns, buckets);
            next_ns = envelope.t_ns.get(current + 1).copied().unwrap_or(end_ns);
        }
        if value[index].is_finite() {
            bucket_values.push(value[index]);
        }
    }
    envelope.set_values(current, &mut bucket_values);
    envelope
}

/// Envelope from roll-ups in order of time, each counted where it begins. The extremes are those of the roll-ups; the quartiles are
/// those of their means, and so narrower than the values' own.
pub fn envelope_of_rollups(rollups: &[Rollup], begin_ns: i64, end_ns: i64, buckets: usize) -> Envelope {
    let mut envelope = Envelope::with_gaps(begin_ns, end_ns, buckets);
    let mut means: Vec<Vec<f64>> = vec![Vec::new(); buckets];
    for rollup in rollups {
        let is_within = rollup.t_ns >= begin_ns && rollup.t_ns < end_ns;
        let (true, Some(mean)) = (is_within && buckets > 0, rollup.mean()) else { continue };
        let bucket = bucket_of(rollup.t_ns, begin_ns, end_ns, buckets);
        // A roll-up may come from a recording that rounds its extremes.
        means[bucket].push(mean.max(rollup.min).min(rollup.max));
        envelope.min[bucket] = envelope.min[bucket].min(rollup.min);
        envelope.max[bucket] = envelope.max[bucket].max(rollup.max);
        envelope.count[bucket] += rollup.count;
    }
    for (bucket, means) in means.iter_mut().enumerate() {
        envelope.set_quartiles(bucket, means);
    }
    envelope
}

impl Envelope {
    /// Number of buckets.
    pub fn len(&self) -> usize {
        self.t_ns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.t_ns.is_empty()
    }

    fn with_gaps(begin_ns: i64, end_ns: i64, buckets: usize) -> Envelope {
        let length_ns = i128::from(end_ns) - i128::from(begin_ns);
        let begin = |bucket| begin_ns + (length_ns * bucket as i128 / buckets as i128) as i64;
        let gaps = vec![f64::NAN; buckets];
        Envelope {
            t_ns: (0..buckets).map(begin).collect(),
            min: gaps.clone(),
            q1: gaps.clone(),
            median: gaps.clone(),
            q3: gaps.clone(),
            max: gaps,
            count: vec![0; buckets],
        }
    }

    fn set_values(&mut self, bucket: usize, values: &mut Vec<f64>) {
        if values.is_empty() || bucket >= self.len() {
            return;
        }
        self.count[bucket] = values.len() as u32;
        self.set_quartiles(bucket, values);
        self.min[bucket] = values[0];
        self.max[bucket] = values[values.len() - 1];
        values.clear();
    }

    /// Sorts the values.
    fn set_quartiles(&mut self, bucket: usize, values: &mut [f64]) {
        if values.is_empty() {
            return;
        }
        values.sort_unstable_by(f64::total_cmp);
        self.q1[bucket] = quantile(values, 0.25);
        self.median[bucket] = quantile(values, 0.5);
        self.q3[bucket] = quantile(values, 0.75);
    }
}

fn bucket_of(t_ns: i64, begin_ns: i64, end_ns: i64, buckets: usize) -> usize {
    let offset_ns = i128::from(t_ns) - i128::from(begin_ns);
    let length_ns = i128::from(end_ns) - i128::from(begin_ns);
    // The inverse of the begin of a bucket, which is rounded down: the last bucket that begins at or before t.
    let bucket = ((offset_ns + 1) * buckets as i128 - 1) / length_ns.max(1);
    (bucket as usize).min(buckets.saturating_sub(1))
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    below + (above - below) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollup::roll_up;
    use proptest::prelude::*;

    #[test]
    fn a_spike_of_one_sample_stays_visible() {
        let t: Vec<i64> = (0..100_000).collect();
        let mut v = vec![1.0; 100_000];
        v[54_321] = 1000.0;
        let drawn = envelope(&t, &v, 0, 100_000, 800);
        assert_eq!(drawn.max[54_321 / 125], 1000.0);
        assert_eq!(drawn.median[54_321 / 125], 1.0);
        assert_eq!(drawn.max.iter().filter(|max| **max > 1.0).count(), 1);
    }

    #[test]
    fn an_empty_bucket_is_a_gap() {
        let drawn = envelope(&[0, 1, 2, 25], &[1.0, 2.0, 3.0, f64::NAN], 0, 30, 3);
        assert_eq!(
            (drawn.min[0], drawn.q1[0], drawn.median[0], drawn.q3[0], drawn.max[0]),
            (1.0, 1.5, 2.0, 2.5, 3.0)
        );
        assert_eq!(drawn.count, [3, 0, 0]);
        assert!(drawn.max[1].is_nan() && drawn.max[2].is_nan());
        assert_eq!(envelope(&[0, 1], &[1.0, 2.0], 0, 2, 0), Envelope::default());
        assert_eq!(envelope(&[5], &[1.0], 5, 5, 2).count, [0, 0]);
    }

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket(v in prop::collection::vec(-1e9f64..1e9, 1..200), buckets in 1usize..50, end in 1i64..300) {
            let t: Vec<i64> = (0..v.len() as i64).collect();
            let drawn = envelope(&t, &v, 0, end, buckets);
            let within = t.iter().filter(|t| **t < end).count();
            prop_assert_eq!(drawn.count.iter().sum::<u32>() as usize, within);
            for (t, v) in t.iter().zip(&v).take(within) {
                let bucket = drawn.t_ns.partition_point(|begin| begin <= t) - 1;
                prop_assert!(drawn.min[bucket] <= *v && *v <= drawn.max[bucket]);
                prop_assert!(drawn.min[bucket] <= drawn.q1[bucket] && drawn.q1[bucket] <= drawn.median[bucket]);
                prop_assert!(drawn.median[bucket] <= drawn.q3[bucket] && drawn.q3[bucket] <= drawn.max[bucket]);
            }
        }

        /// Roll-ups lose no extreme and no count.
        #[test]
        fn rollups_keep_the_extremes(v in prop::collection::vec(-1e9f64..1e9, 1..300), buckets in 1usize..8) {
            let t: Vec<i64> = (0..v.len() as i64).collect();
            let end = 10 * buckets as i64 * 4;
            let exact = envelope(&t, &v, 0, end, buckets);
            let rolled = envelope_of_rollups(&roll_up(&t, &v, 10), 0, end, buckets);
            prop_assert_eq!(&exact.count, &rolled.count);
            for bucket in 0..buckets {
                prop_assert!(exact.min[bucket] == rolled.min[bucket] || exact.min[bucket].is_nan() && rolled.min[bucket].is_nan());
                prop_assert!(exact.max[bucket] == rolled.max[bucket] || exact.max[bucket].is_nan() && rolled.max[bucket].is_nan());
            }
        }
    }
}
