//! Where readings go.

use whyso_model::NotMeasured;
use whyso_record::Recorder;
use whyso_record::data::{Event, Kind, Reading, SeriesId, SeriesKey, TextRows, Value};

use crate::metric::Metric;

/// Takes what the samplers read. `whyso_record::Recorder` is the one that runs use.
///
/// No call may block for long: a sampler's schedule hangs on it.
pub trait Sink: Send + Sync {
    fn series(&self, key: &SeriesKey) -> SeriesId;
    fn reading(&self, reading: Reading);
    fn event(&self, event: Event);
    fn rows(&self, rows: TextRows);
}

impl Sink for Recorder {
    fn series(&self, key: &SeriesKey) -> SeriesId {
        Recorder::series(self, key)
    }
    fn reading(&self, reading: Reading) {
        Recorder::reading(self, reading);
    }
    fn event(&self, event: Event) {
        Recorder::event(self, event);
    }
    fn rows(&self, rows: TextRows) {
        Recorder::rows(self, rows);
    }
}

/// The series of a source by their position in its output. From one reading to the next the same
/// line mostly has the same name. So a comparison replaces a look-up.
#[derive(Default)]
pub(crate) struct SeriesCache {
    slots: Vec<Slot>,
}

struct Slot {
    metric: String,
    instance: String,
    id: SeriesId,
}

/// The values of one reading while it is taken.
pub(crate) struct Batch<'a> {
    pub(crate) sink: &'a dyn Sink,
    pub(crate) host: &'a str,
    pub(crate) source: &'a str,
    cache: &'a mut SeriesCache,
    position: usize,
    pub(crate) values: Vec<(SeriesId, Value)>,
    /// Values that series had at the reading before, which did not record them.
    before: Vec<(SeriesId, Value)>,
    absent: Vec<NotMeasured>,
    idle: bool,
    put_off: bool,
}

/// What is left of a batch when its reading is over.
pub(crate) struct BatchParts {
    pub(crate) values: Vec<(SeriesId, Value)>,
    pub(crate) before: Vec<(SeriesId, Value)>,
    pub(crate) absent: Vec<NotMeasured>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(
        sink: &'a dyn Sink,
        host: &'a str,
        source: &'a str,
        cache: &'a mut SeriesCache,
    ) -> Batch<'a> {
        let expected = cache.slots.len();
        Batch {
            sink,
            host,
            source,
            cache,
            position: 0,
            values: Vec::with_capacity(expected),
            before: Vec::new(),
            absent: Vec::new(),
            idle: false,
            put_off: false,
        }
    }

    pub(crate) fn put(&mut self, metric: &Metric, instance: &str, value: u64) {
        let value = Value::Int(crate::text::count(value));
        self.put_value(metric, instance, value);
    }

    pub(crate) fn put_value(&mut self, metric: &Metric, instance: &str, value: Value) {
        self.put_named(metric.name, instance, value, || (metric.kind, metric.unit));
    }

    /// `describe` is asked only when the name is new at its place.
    pub(crate) fn put_named<'u>(
        &mut self,
        metric: &str,
        instance: &str,
        value: Value,
        describe: impl FnOnce() -> (Kind, &'u str),
    ) {
        let position = self.position;
        self.position += 1;
        if let Some(slot) = self.cache.slots.get(position)
            && slot.metric == metric
            && slot.instance == instance
        {
            self.values.push((slot.id, value));
            return;
        }
        let (kind, unit) = describe();
        let id = self.id(metric, instance, kind, unit);
        let slot = Slot { metric: metric.to_string(), instance: instance.to_string(), id };
        match self.cache.slots.get_mut(position) {
            Some(old) => *old = slot,
            None => self.cache.slots.push(slot),
        }
        self.values.push((id, value));
    }

    fn id(&self, metric: &str, instance: &str, kind: Kind, unit: &str) -> SeriesId {
        self.sink.series(&SeriesKey {
            host: self.host.to_string(),
            source: self.source.to_string(),
            metric: metric.to_string(),
            instance: instance.to_string(),
            kind,
            unit: unit.to_string(),
        })
    }

    /// Puts the value that a series had at the reading before, which did not record it: what it grew by since is then known.
    pub(crate) fn put_before(&mut self, metric: &Metric, instance: &str, value: Value) {
        self.before.push((self.id(metric.name, instance, metric.kind, metric.unit), value));
    }

    pub(crate) fn event(&self, kind: &str, text: String) {
        self.sink.event(Event {
            t_ns: whyso_clock::monotonic_ns(),
            host: self.host.to_string(),
            kind: kind.to_string(),
            text,
        });
    }

    /// A part of the source that this machine or server does not have; reported once to the user.
    pub(crate) fn absent(&mut self, what: impl Into<NotMeasured>) {
        self.absent.push(what.into());
    }

    /// There is nothing to read at present, such as no process to follow: no reading is recorded.
    pub(crate) fn nothing_to_read(&mut self) {
        self.idle = true;
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.idle
    }

    /// It is due, and would take more of the server's time than it may: not read this time.
    pub(crate) fn put_off(&mut self) {
        self.idle = true;
        self.put_off = true;
    }

    pub(crate) fn is_put_off(&self) -> bool {
        self.put_off
    }

    pub(crate) fn into_parts(self) -> BatchParts {
        BatchParts { values: self.values, before: self.before, absent: self.absent }
    }
}

/// A sink that keeps everything, for tests.
#[cfg(test)]
pub(crate) mod memory {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    pub(crate) struct MemorySink {
        pub(crate) keys: Mutex<Vec<SeriesKey>>,
        pub(crate) readings: Mutex<Vec<Reading>>,
        pub(crate) events: Mutex<Vec<Event>>,
        pub(crate) rows: Mutex<Vec<TextRows>>,
    }

    impl Sink for MemorySink {
        fn series(&self, key: &SeriesKey) -> SeriesId {
            let mut keys = self.keys.lock().unwrap();
            let position = keys.iter().position(|other| other == key);
            let index = position.unwrap_or_else(|| {
                keys.push(key.clone());
                keys.len() - 1
            });
            SeriesId(index as u32)
        }
        fn reading(&self, reading: Reading) {
            self.readings.lock().unwrap().push(reading);
        }
        fn event(&self, event: Event) {
            self.events.lock().unwrap().push(event);
        }
        fn rows(&self, rows: TextRows) {
            self.rows.lock().unwrap().push(rows);
        }
    }

    impl<S: Sink> Sink for std::sync::Arc<S> {
        fn series(&self, key: &SeriesKey) -> SeriesId {
            (**self).series(key)
        }
        fn reading(&self, reading: Reading) {
            (**self).reading(reading);
        }
        fn event(&self, event: Event) {
            (**self).event(event);
        }
        fn rows(&self, rows: TextRows) {
            (**self).rows(rows);
        }
    }

    /// "metric instance" → value of one reading made by `read`.
    pub(crate) fn collect(read: impl FnOnce(&mut Batch<'_>)) -> std::collections::BTreeMap<String, f64> {
        let sink = MemorySink::default();
        let mut cache = SeriesCache::default();
        let mut batch = Batch::new(&sink, "host", "source", &mut cache);
        read(&mut batch);
        let values = batch.into_parts().values;
        let keys = sink.keys.lock().unwrap();
        let mut named = std::collections::BTreeMap::new();
        for (id, value) in values {
            let key = &keys[id.0 as usize];
            let name = format!("{} {}", key.metric, key.instance);
            named.insert(name.trim_end().to_string(), value.as_f64());
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use super::memory::MemorySink;
    use super::*;
    use crate::metric::gauge;

    #[test]
    fn a_line_that_moves_keeps_its_series() {
        const A: Metric = gauge("a", "1", "");
        const B: Metric = gauge("b", "1", "");
        let sink = MemorySink::default();
        let mut cache = SeriesCache::default();
        let mut first = Batch::new(&sink, "h", "s", &mut cache);
        first.put(&A, "", 1);
        first.put(&B, "", 2);
        let first = first.into_parts().values;
        let mut second = Batch::new(&sink, "h", "s", &mut cache);
        second.put(&B, "", 20);
        second.put(&A, "", 10);
        let second = second.into_parts().values;
        assert_eq!(second[0], (first[1].0, Value::Int(20)));
        assert_eq!(second[1], (first[0].0, Value::Int(10)));
    }
}
