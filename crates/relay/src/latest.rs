//! The latest value of each series.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use whyso_record::data::{Kind, LoadInterval, Reading, SeriesId, SeriesKey, Value};

/// Sums of the load for one kind of statement, since the recording began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadSums {
    pub(crate) count: u64,
    pub(crate) rows: u64,
    pub(crate) errors: u64,
    pub(crate) response_ns: u64,
    /// Of the latest interval.
    pub(crate) response_max_ns: u64,
}

impl LoadSums {
    /// As values of series: name, kind, unit, value.
    pub(crate) fn values(&self) -> [(&'static str, Kind, &'static str, u64); 5] {
        [
            ("executions", Kind::Counter, "1", self.count),
            ("rows", Kind::Counter, "1", self.rows),
            ("errors", Kind::Counter, "1", self.errors),
            ("response_ns", Kind::Counter, "ns", self.response_ns),
            ("response_max_ns", Kind::Gauge, "ns", self.response_max_ns),
        ]
    }
}

#[derive(Default)]
pub(crate) struct Latest {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    keys: Vec<Option<Arc<SeriesKey>>>,
    values: Vec<Option<Value>>,
    load: BTreeMap<String, LoadSums>,
}

impl Latest {
    pub(crate) fn series(&self, id: SeriesId, key: &SeriesKey) {
        let mut inner = self.lock();
        let at = id.0 as usize;
        if inner.keys.len() <= at {
            inner.keys.resize(at + 1, None);
            inner.values.resize(at + 1, None);
        }
        inner.keys[at] = Some(Arc::new(key.clone()));
    }

    pub(crate) fn reading(&self, reading: &Reading) {
        let mut inner = self.lock();
        for (id, value) in &reading.values {
            if let Some(slot) = inner.values.get_mut(id.0 as usize) {
                *slot = Some(*value);
            }
        }
    }

    pub(crate) fn load(&self, interval: &LoadInterval) -> LoadSums {
        let mut inner = self.lock();
        let sums = inner.load.entry(interval.statement.clone()).or_default();
        sums.count += interval.count;
        sums.rows += interval.rows;
        sums.errors += interval.errors.iter().map(|(_, count)| count).sum::<u64>();
        sums.response_ns += interval.response_sum_ns;
        sums.response_max_ns = interval.response_max_ns;
        *sums
    }

    pub(crate) fn key(&self, id: SeriesId) -> Option<Arc<SeriesKey>> {
        self.lock().keys.get(id.0 as usize).cloned().flatten()
    }

    /// Every series that has a value, the load's own sums among them.
    pub(crate) fn all(&self) -> Vec<(Arc<SeriesKey>, Value)> {
        let inner = self.lock();
        let mut all = Vec::with_capacity(inner.values.len());
        for (key, value) in inner.keys.iter().zip(&inner.values) {
            if let (Some(key), Some(value)) = (key, value) {
                all.push((key.clone(), *value));
            }
        }
        for (statement, sums) in &inner.load {
            for (metric, kind, unit, value) in sums.values() {
                let value = Value::Int(i64::try_from(value).unwrap_or(i64::MAX));
                all.push((Arc::new(load_key(statement, metric, kind, unit)), value));
            }
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        match self.inner.lock() {
            Ok(inner) => inner,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

pub(crate) fn load_key(statement: &str, metric: &str, kind: Kind, unit: &str) -> SeriesKey {
    SeriesKey {
        host: "client".to_string(),
        source: "load".to_string(),
        metric: metric.to_string(),
        instance: statement.to_string(),
        kind,
        unit: unit.to_string(),
    }
}
