//! What is inlined of a recording too long to be inlined whole.
//!
//! Nothing is dropped in silence. The page shows what was done:
//!
//! - a counter keeps its reading at the end of every bucket, so that its increase over any bucket is exact;
//! - a gauge becomes an envelope (least, quartiles, greatest of every bucket), so that a spike of one sample stays visible.

use serde::Serialize;
use ts_rs::TS;
use whyso_record::data::Kind;

use crate::source::Column;

/// An hour of 3,000 series each second is 10.8 million values, and must come through whole.
const SAMPLES_MAX: u64 = 12_000_000;
/// A gauge's bucket becomes five numbers, a counter's one.
const NUMBERS_A_BUCKET: u64 = 3;
/// Bucket lengths to choose from.
const BUCKET_S: [i64; 9] = [2, 5, 10, 30, 60, 120, 300, 600, 3_600];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    Samples,
    Envelope,
}

/// One series as it is inlined.
pub(crate) struct ThinColumn {
    pub(crate) t_ns: Vec<i64>,
    pub(crate) form: Form,
    /// One for samples; min, lower quartile, median, upper quartile, max for an envelope.
    pub(crate) streams: Vec<Vec<f64>>,
}

impl ThinColumn {
    pub(crate) fn samples(column: Column) -> ThinColumn {
        ThinColumn { t_ns: column.t_ns, form: Form::Samples, streams: vec![column.value] }
    }
}

/// How a recording is thinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thinning {
    bucket_s: Option<i64>,
}

/// Whole where it fits, else the shortest buckets that fit, computed for one sample per second.
pub(crate) fn plan(samples: u64) -> Thinning {
    if samples <= SAMPLES_MAX {
        return Thinning { bucket_s: None };
    }
    let fits = |bucket_s: &&i64| samples * NUMBERS_A_BUCKET / **bucket_s as u64 <= SAMPLES_MAX;
    let bucket_s = BUCKET_S.iter().find(fits).or(BUCKET_S.last()).copied();
    Thinning { bucket_s }
}

impl Thinning {
    /// What the page says about it.
    pub(crate) fn note(&self) -> Option<String> {
        let bucket_s = self.bucket_s?;
        Some(format!(
            "This recording is too long to be inlined sample by sample. Counters keep one reading every {bucket_s} s, so that rates \
             are exact means of {bucket_s} s; gauges are drawn from the least, the quartiles and the greatest value of every {bucket_s} s. \
             The recording itself holds every sample."
        ))
    }

    pub(crate) fn apply(&self, kind: Kind, column: Column) -> ThinColumn {
        let Some(bucket_s) = self.bucket_s else { return ThinColumn::samples(column) };
        let bucket_ns = bucket_s * 1_000_000_000;
        match kind {
            Kind::Counter => ThinColumn::samples(last_of_buckets(&column, bucket_ns)),
            Kind::Gauge => envelope(&column, bucket_ns),
        }
    }
}

/// Runs of samples that fall into the same bucket, as ranges of indexes.
fn buckets(column: &Column, bucket_ns: i64) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut begin = 0;
    for index in 1..=column.t_ns.len() {
        let ends = index == column.t_ns.len()
            || column.t_ns[index].div_euclid(bucket_ns) != column.t_ns[begin].div_euclid(bucket_ns);
        if ends {
            ranges.push(begin..index);
            begin = index;
        }
    }
    ranges
}

fn last_of_buckets(column: &Column, bucket_ns: i64) -> Column {
    let mut thinned = Column::default();
    for range in buckets(column, bucket_ns) {
        // A bucket whose readings all failed stays a gap.
        let last = range.clone().rev().find(|index| !column.value[*index].is_nan()).unwrap_or(range.end - 1);
        thinned.t_ns.push(column.t_ns[last]);
        thinned.value.push(column.value[last]);
    }
    thinned
}

fn envelope(column: &Column, bucket_ns: i64) -> ThinColumn {
    let (Some(first_ns), Some(last_ns)) = (column.t_ns.first(), column.t_ns.last()) else {
        return ThinColumn { t_ns: Vec::new(), form: Form::Envelope, streams: vec![Vec::new(); 5] };
    };
    let begin_ns = first_ns.div_euclid(bucket_ns) * bucket_ns;
    let buckets = (last_ns - begin_ns) / bucket_ns + 1;
    let end_ns = begin_ns + buckets * bucket_ns;
    let envelope = whyso_series::envelope(&column.t_ns, &column.value, begin_ns, end_ns, buckets as usize);
    let t_ns = (0..buckets).map(|bucket| begin_ns + bucket * bucket_ns + bucket_ns / 2).collect();
    let streams = vec![envelope.min, envelope.q1, envelope.median, envelope.q3, envelope.max];
    ThinColumn { t_ns, form: Form::Envelope, streams }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn an_hour_of_three_thousand_series_comes_through_whole() {
        assert_eq!(plan(3_600 * 3_000).note(), None);
    }

    #[test]
    fn a_day_of_three_thousand_series_is_thinned_and_says_so() {
        let note = plan(86_400 * 3_000).note().unwrap();
        assert!(note.contains("120 s"), "{note}");
    }

    #[test]
    fn a_spike_of_one_sample_stays_in_the_envelope() {
        let column = Column {
            t_ns: (0..100).map(|s| s * S).collect(),
            value: (0..100).map(|s| if s == 57 { 900.0 } else { 1.0 }).collect(),
        };
        let thinned = Thinning { bucket_s: Some(10) }.apply(Kind::Gauge, column);
        assert_eq!(thinned.t_ns.len(), 10);
        assert_eq!(thinned.streams[4][5], 900.0);
        assert_eq!(thinned.streams[2][5], 1.0);
    }

    proptest! {
        #[test]
        fn a_thinned_counter_keeps_its_total(steps in prop::collection::vec(0u32..1000, 1..300), bucket_s in 1i64..60) {
            let mut total = 0.0;
            let value: Vec<f64> = steps.iter().map(|step| { total += f64::from(*step); total }).collect();
            let column = Column { t_ns: (0..value.len() as i64).map(|s| s * S).collect(), value };
            let thinned = Thinning { bucket_s: Some(bucket_s) }.apply(Kind::Counter, column);
            prop_assert_eq!(*thinned.streams[0].last().unwrap(), total);
        }
    }
}
