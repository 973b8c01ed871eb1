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

    /// Ends of all good readings.
    pub(crate) fn read_at_ns(&self) -> impl Iterator<Item = i64> + '_ {
        let good = self.readings.iter().filter(|reading| reading.status == Status::Ok);
        good.map(|reading| reading.window.end_ns)
    }
}
