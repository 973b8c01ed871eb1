//! What several hosts recorded, each in a history of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whyso_record::Tap;
use whyso_record::data::{Event, Reading, SeriesId, SeriesKey, StatesInterval, TextRows};

use super::History;

/// What several hosts recorded: a tap that gives each host's part to the [`History`] of that host.
#[derive(Debug, Default)]
pub struct HostHistories {
    /// Host of the server: tables and threads are its own.
    server: Option<String>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    hosts: HashMap<String, HostHistory>,
    /// Of each series: its host, and its number there.
    places: Vec<(String, SeriesId)>,
}

#[derive(Debug, Default)]
struct HostHistory {
    history: Arc<History>,
    series: u32,
}

impl HostHistories {
    /// `server`: the host of the server, if there is one.
    pub fn new(server: Option<&str>) -> HostHistories {
        HostHistories { server: server.map(str::to_string), inner: Mutex::default() }
    }

    /// What this host recorded; empty until its first reading.
    pub fn of(&self, host: &str) -> Arc<History> {
        Arc::clone(&self.lock().host(host).history)
    }

    fn of_server(&self) -> Option<Arc<History>> {
        Some(self.of(self.server.as_deref()?))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn host(&mut self, host: &str) -> &mut HostHistory {
        self.hosts.entry(host.to_string()).or_default()
    }
}

impl Tap for HostHistories {
    fn series(&self, id: SeriesId, key: &SeriesKey) {
        let mut inner = self.lock();
        // Numbers come one after the other.
        if inner.places.len() != id.0 as usize {
            return;
        }
        let host = inner.host(&key.host);
        let here = SeriesId(host.series);
        host.series += 1;
        let history = Arc::clone(&host.history);
        inner.places.push((key.host.clone(), here));
        drop(inner);
        history.series(here, key);
    }

    fn reading(&self, reading: &Reading) {
        let inner = self.lock();
        let mut parts: HashMap<&str, Reading> = HashMap::new();
        for (id, value) in &reading.values {
            let Some((host, here)) = inner.places.get(id.0 as usize) else { continue };
            let part = parts.entry(host).or_insert_with(|| Reading { values: Vec::new(), ..reading.clone() });
            part.values.push((*here, *value));
        }
        for (host, part) in &parts {
            if let Some(host) = inner.hosts.get(*host) {
                host.history.reading(part);
            }
        }
    }

    fn rows(&self, rows: &TextRows) {
        if let Some(history) = self.of_server() {
            history.rows(rows);
        }
    }

    fn event(&self, event: &Event) {
        if self.lock().hosts.contains_key(&event.host) {
            self.of(&event.host).event(event);
        }
    }

    fn states(&self, interval: &StatesInterval) {
        if let Some(history) = self.of_server() {
            history.states(interval);
        }
    }
}

#[cfg(test)]
mod tests {
    use whyso_record::data::{Kind, Status, Value};

    use super::*;

    fn key(host: &str, metric: &str) -> SeriesKey {
        let [host, source, metric, instance, unit] = [host, "cpu", metric, "", "1"].map(str::to_string);
        SeriesKey { host, source, metric, instance, kind: Kind::Gauge, unit }
    }

    #[test]
    fn each_host_has_its_own_values_whatever_the_order_of_their_series() {
        let histories = HostHistories::new(Some("db"));
        let series = [("db", "load"), ("load-1", "load"), ("db", "free"), ("load-1", "free")];
        for (number, (host, metric)) in (0..).zip(series) {
            histories.series(SeriesId(number), &key(host, metric));
        }
        // What one question gave of several hosts is each host's own.
        histories.reading(&Reading {
            source: "cpu".to_string(),
            begin_ns: 1_000,
            end_ns: 2_000,
            status: Status::Ok,
            values: (0..4).map(|number| (SeriesId(number), Value::Float(f64::from(number)))).collect(),
        });
        let values = |host: &str| {
            let inner = histories.of(host);
            let inner = inner.lock();
            let metrics = inner.keys.iter().map(|key| key.metric.clone());
            let last = inner.points.iter().map(|points| points.last_until(i64::MAX).map(|(_, value)| value));
            metrics.zip(last).collect::<Vec<_>>()
        };
        assert_eq!(values("db"), [("load".to_string(), Some(0.0)), ("free".to_string(), Some(2.0))]);
        assert_eq!(values("load-1"), [("load".to_string(), Some(1.0)), ("free".to_string(), Some(3.0))]);
        assert!(values("load-2").is_empty());
    }
}
