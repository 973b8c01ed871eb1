//! When each reading was taken.

use std::collections::HashMap;
use std::sync::Arc;

use crate::data::Status;
use crate::run::Window;
use crate::table::Collection;

/// Readings that may be missing between others, of all sources together: this number,
const MISSING_MAX: usize = 1 << 20;
/// and this number for each one that is there. A number beyond them is damage.
const MISSING_EACH_MAX: usize = 64;

/// The half of a collection's number that counts the readings of its source.
const NUMBER: i64 = 0xffff_ffff;

#[derive(Clone, Default)]
pub(crate) struct Collections {
    sources: HashMap<i64, Source>,
    /// Readings that are there.
    added: usize,
    /// Those that are missing between them.
    missing: usize,
}

#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    /// By the lower half of the collection's number, from `first` on: the oldest detail of a recording may be removed.
    readings: Vec<ReadingTime>,
    first: usize,
}

#[derive(Clone, Copy)]
struct ReadingTime {
    window: Window,
    status: Status,
}

/// Good readings of a source that end in one bucket of time, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReadingBucket {
    /// Begin of the bucket.
    pub(crate) t_ns: i64,
    /// Collections of the first reading and of the last.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// When these two were taken.
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    pub(crate) count: u32,
    /// Good readings in the buckets before.
    pub(crate) count_before: usize,
    /// Whether a reading failed between two of them.
    pub(crate) has_gap: bool,
    /// How uneven the distances between them are: the sum of their deviations from their mean, divided by the sum of the distances.
    /// Infinite where the times do not ascend.
    pub(crate) unevenness: f64,
}

/// What stands where a collection is missing: it lies before every time.
const UNKNOWN: ReadingTime =
    ReadingTime { window: Window { begin_ns: i64::MIN, end_ns: i64::MIN }, status: Status::Missed };

impl Collections {
    /// Adds one; `false` where its number can't be right.
    pub(crate) fn add(&mut self, collection: &Collection) -> bool {
        let number = (collection.id & 0xffff_ffff) as usize;
        let new = || Source { name: Arc::clone(&collection.source), readings: Vec::new(), first: number };
        let source = self.sources.entry(collection.id >> 32).or_insert_with(new);
        let missing = self.missing + source.missing_up_to(number);
        if missing > MISSING_MAX.saturating_add(self.added.saturating_mul(MISSING_EACH_MAX)) {
            return false;
        }
        (self.missing, self.added) = (missing, self.added + 1);
        let window = Window { begin_ns: collection.begin_ns, end_ns: collection.end_ns };
        source.put(number, ReadingTime { window, status: collection.status });
        true
    }

    pub(crate) fn source_of(&self, collection: i64) -> Option<&Source> {
        self.sources.get(&(collection >> 32))
    }

    pub(crate) fn window(&self, collection: i64) -> Option<Window> {
        self.source_of(collection)?.window(collection)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Source> {
        self.sources.values().find(|source| &*source.name == name)
    }
}

impl Source {
    /// How many readings would lie between those that are there and another one.
    fn missing_up_to(&self, number: usize) -> usize {
        let end = self.first + self.readings.len();
        self.first.saturating_sub(number + 1) + number.saturating_sub(end)
    }

    fn put(&mut self, number: usize, reading: ReadingTime) {
        if number < self.first {
            // As many again as there are, so that readings in falling order are not moved each time.
            let more = (self.first - number).max(self.readings.len()).min(self.first);
            self.readings.splice(0..0, std::iter::repeat_n(UNKNOWN, more));
            self.first -= more;
        }
        let place = number - self.first;
        if self.readings.len() <= place {
            self.readings.resize(place + 1, UNKNOWN);
        }
        self.readings[place] = reading;
    }

    /// Of one of its own collections.
    pub(crate) fn window(&self, collection: i64) -> Option<Window> {
        let reading = self.readings.get(((collection & 0xffff_ffff) as usize).checked_sub(self.first)?)?;
        (reading.window.end_ns != i64::MIN).then_some(reading.window)
    }

    /// Of the collections `first..=last`, those that end in the window, widened by one reading on the left where asked.
    pub(crate) fn ending_in(&self, first: i64, last: i64, window: Window, lead: bool) -> Option<(i64, i64)> {
        let base = first & !0xffff_ffff;
        let (first, last) = ((first & 0xffff_ffff) as usize, (last & 0xffff_ffff) as usize);
        // What lies before the first reading that is there ends before every window.
        let first = first.max(self.first);
        let range = self.readings.get(first - self.first..(last + 1).checked_sub(self.first)?)?;
        let mut begin = range.partition_point(|reading| reading.window.end_ns < window.begin_ns);
        let end = range.partition_point(|reading| reading.window.end_ns <= window.end_ns);
        if lead {
            begin = begin.saturating_sub(1);
        }
        (begin < end).then(|| (base + (first + begin) as i64, base + (first + end) as i64 - 1))
    }

    /// Windows of the readings that failed, in order.
    pub(crate) fn gaps(&self, window: Window) -> Vec<Window> {
        let first = self.readings.partition_point(|reading| reading.window.end_ns < window.begin_ns);
        let ended_within =
            self.readings[first..].iter().take_while(|reading| reading.window.end_ns <= window.end_ns);
        ended_within.filter(|reading| reading.status != Status::Ok).map(|reading| reading.window).collect()
    }

    /// The good ones of the collections `first..=last`, by the bucket of time in which they end.
    pub(crate) fn buckets(&self, first: i64, last: i64, bucket_ns: i64) -> Vec<ReadingBucket> {
        let mut buckets: Vec<ReadingBucket> = Vec::new();
        let mut ends_ns = Vec::new();
        for (count_before, (collection, end_ns)) in self.good(first, last).enumerate() {
            let t_ns = end_ns.div_euclid(bucket_ns).saturating_mul(bucket_ns);
            if let Some(bucket) = buckets.last_mut().filter(|bucket| bucket.t_ns == t_ns) {
                bucket.has_gap |= bucket.last + 1 != collection;
                (bucket.last, bucket.last_ns) = (collection, end_ns);
                bucket.count += 1;
            } else {
                if let Some(bucket) = buckets.last_mut() {
                    bucket.unevenness = unevenness(&ends_ns);
                }
                ends_ns.clear();
                buckets.push(ReadingBucket {
                    t_ns,
                    first: collection,
                    last: collection,
                    first_ns: end_ns,
                    last_ns: end_ns,
                    count: 1,
                    count_before,
                    has_gap: false,
                    unevenness: 0.0,
                });
            }
            ends_ns.push(end_ns);
        }
        if let Some(bucket) = buckets.last_mut() {
            bucket.unevenness = unevenness(&ends_ns);
        }
        buckets
    }

    /// The good ones of the collections `first..=last`, each with its end.
    pub(crate) fn good(&self, first: i64, last: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let base = first & !NUMBER;
        let begin = ((first & NUMBER) as usize).max(self.first);
        let end = ((last & NUMBER) as usize + 1).min(self.first + self.readings.len());
        let good = move |number: usize| {
            let reading = &self.readings[number - self.first];
            (reading.status == Status::Ok).then_some((base + number as i64, reading.window.end_ns))
        };
        (begin..end).filter_map(good)
    }

    /// Whether one of the readings `first..end` is not good.
    pub(crate) fn has_gap(&self, first: i64, end: i64) -> bool {
        // Nearly always, the one is next to the other.
        self.good(first, end.saturating_sub(1)).count() as i64 != end.saturating_sub(first)
    }

    /// Ends of all good readings.
    pub(crate) fn read_at_ns(&self) -> impl Iterator<Item = i64> + '_ {
        let good = self.readings.iter().filter(|reading| reading.status == Status::Ok);
        good.map(|reading| reading.window.end_ns)
    }
}

fn unevenness(ends_ns: &[i64]) -> f64 {
    let (Some(first), Some(last)) = (ends_ns.first(), ends_ns.last()) else { return 0.0 };
    if ends_ns.windows(2).any(|pair| pair[1] <= pair[0]) {
        return f64::INFINITY;
    }
    if ends_ns.len() < 2 {
        return 0.0;
    }
    let length_ns = (last - first) as f64;
    let mean_ns = length_ns / (ends_ns.len() - 1) as f64;
    let deviations = ends_ns.windows(2).map(|pair| ((pair[1] - pair[0]) as f64 - mean_ns).abs());
    deviations.sum::<f64>() / length_ns
}
