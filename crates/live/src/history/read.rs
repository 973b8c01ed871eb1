//! What is asked of the history: over a window, or bucket by bucket for a chart.

use std::collections::HashMap;

use whyso_explain::locks::{LockSnapshot, Snapshots};
use whyso_explain::model::{Counter, Gauge, LevelInput, LoopKind};
use whyso_model::{LockWait, tier};
use whyso_record::data::{Event, Kind, SeriesKey, TextRows};
use whyso_record::run::Window;

use super::points::Points;
use super::{History, Inner};

/// A source that was not read for longer has a gap.
const GAP_NS: i64 = 25_000_000_000;
/// Who waits for whom is read every half second, and recorded where anybody does: an older snapshot is over.
const LOCK_SNAPSHOT_NS: i64 = 3_000_000_000;
const LOCK_SNAPSHOTS_PER_S: f64 = 2.0;

/// Equal spans of time, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    pub(crate) end_ns: i64,
    pub(crate) step_ns: i64,
    pub(crate) count: usize,
}

impl Buckets {
    /// From the oldest to the newest.
    fn windows(self) -> impl Iterator<Item = (i64, i64)> {
        (0..self.count as i64).rev().map(move |back| {
            let end_ns = self.end_ns - back * self.step_ns;
            (end_ns - self.step_ns, end_ns)
        })
    }
}

/// A thread's time over a window, in milliseconds by state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TimeByState {
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) states_ms: Vec<u64>,
}

/// A series over a window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SeriesOver {
    pub(crate) key: SeriesKey,
    /// Of a counter: its growth per second. Of a gauge: its mean.
    pub(crate) value: f64,
}

impl History {
    /// What is known: from when, and until when. `None` until something was read.
    pub(crate) fn span_ns(&self) -> Option<(i64, i64)> {
        let inner = self.lock();
        let first_ns = inner.first_ns?;
        Some((first_ns.max(inner.from_ns), inner.last_ns))
    }

    /// Returns the window between two readings of a source that is nearest to the one asked for. It ends at the last reading until `end_ns`, and is
    /// about `length_ns` long. `None` where the source was not read, or not for a while.
    pub(crate) fn aligned(&self, source: &str, length_ns: i64, end_ns: i64) -> Option<Window> {
        let inner = self.lock();
        let readings = &inner.sources.get(source)?.readings_ns;
        let until = readings.partition_point(|t_ns| *t_ns <= end_ns);
        let last = *readings.get(until.checked_sub(1)?)?;
        let before = readings.partition_point(|t_ns| *t_ns <= last - length_ns);
        // Intervals are hit to a few milliseconds.
        let near = readings.get(before).filter(|t_ns| **t_ns - (last - length_ns) < length_ns / 10);
        let first = *near.or_else(|| readings.get(before.saturating_sub(1)))?;
        (first < last && end_ns - last < GAP_NS).then_some(Window { begin_ns: first, end_ns: last })
    }

    /// What the chosen series did over a window, as an explanation takes it.
    pub(crate) fn level(&self, window: Window, is_chosen: impl Fn(&SeriesKey) -> bool) -> LevelInput {
        let mut level = LevelInput {
            begin_ns: window.begin_ns,
            end_ns: window.end_ns,
            pacing: LoopKind::Recorded,
            ..LevelInput::default()
        };
        let inner = self.lock();
        for (key, points) in inner.keys.iter().zip(&inner.points) {
            if is_chosen(key) {
                add(&mut level, key, points);
            }
        }
        level
    }

    /// Growth per second of the counters of these names, all instances, bucket by bucket; `None` where they were not read.
    pub(crate) fn rates(&self, named: &[(&str, &str)], buckets: Buckets) -> Vec<Option<f64>> {
        let inner = self.lock();
        let series: Vec<&Points> = named.iter().flat_map(|name| inner.named(*name)).collect();
        let rate = |(begin_ns, end_ns)| {
            let each = series.iter().filter_map(|points| {
                let (t_ns, value) = points.times_and_values();
                let grown = whyso_series::increase(t_ns, value, begin_ns, end_ns)?;
                // A reading at the edge of a bucket comes a little late at times.
                (grown.covered_ns * 2 >= end_ns - begin_ns).then(|| grown.per_second())
            });
            each.reduce(|sum, rate| sum + rate)
        };
        buckets.windows().map(rate).collect()
    }

    /// What one series did, bucket by bucket: growth per second of a counter, the mean of a gauge.
    pub(crate) fn course(&self, named: (&str, &str, &str), buckets: Buckets) -> Vec<Option<f64>> {
        let (source, metric, instance) = named;
        let inner = self.lock();
        let all = inner.by_metric.get(&(source.to_string(), metric.to_string()));
        let at = all.into_iter().flatten().find(|at| inner.keys[**at].instance == instance);
        let Some(at) = at else { return vec![None; buckets.count] };
        let (t_ns, value) = inner.points[*at].times_and_values();
        let over = |(begin_ns, end_ns)| match inner.keys[*at].kind {
            Kind::Counter => {
                whyso_series::increase(t_ns, value, begin_ns, end_ns).map(|grown| grown.per_second())
            }
            Kind::Gauge => whyso_series::mean_over(t_ns, value, begin_ns, end_ns),
        };
        buckets.windows().map(over).collect()
    }

    /// The highest of a gauge, bucket by bucket, all instances added up.
    pub(crate) fn levels(&self, named: (&str, &str), buckets: Buckets) -> Vec<Option<f64>> {
        let inner = self.lock();
        let series = inner.named(named);
        let highest = |(begin_ns, end_ns)| {
            let each = series.iter().filter_map(|points| {
                let (t_ns, value) = points.times_and_values();
                whyso_series::max_over(t_ns, value, begin_ns, end_ns)
            });
            each.reduce(|sum, value| sum + value)
        };
        buckets.windows().map(highest).collect()
    }

    /// Every series that was read in a window.
    pub(crate) fn every_series(
        &self,
        window: Window,
        is_chosen: impl Fn(&SeriesKey) -> bool,
    ) -> Vec<SeriesOver> {
        let inner = self.lock();
        let both = inner.keys.iter().zip(&inner.points).filter(|(key, _)| is_chosen(key));
        both.filter_map(|(key, points)| {
            let (t_ns, value) = points.times_and_values();
            let value = match key.kind {
                Kind::Counter => {
                    whyso_series::increase(t_ns, value, window.begin_ns, window.end_ns)?.per_second()
                }
                Kind::Gauge => whyso_series::mean_over(t_ns, value, window.begin_ns, window.end_ns)?,
            };
            Some(SeriesOver { key: key.clone(), value })
        })
        .collect()
    }

    pub(crate) fn has_source(&self, source: &str) -> bool {
        self.lock().by_source.contains_key(source)
    }

    /// Text of a line of the Performance Schema, such as a digest's statement.
    pub(crate) fn texts(&self) -> HashMap<String, String> {
        self.lock().texts.clone()
    }

    /// Returns the snapshots of who waited for whom in a window, the oldest first.
    pub(crate) fn lock_snapshots(&self, window: Window) -> Vec<LockSnapshot> {
        let inner = self.lock();
        let Some(tables) = inner.tables.get(LockWait::SOURCE) else { return Vec::new() };
        tables.within(window.begin_ns, window.end_ns).map(|(_, rows)| lock_snapshot(rows)).collect()
    }

    /// Who waits for whom at a time.
    pub(crate) fn lock_snapshot_at(&self, t_ns: i64) -> Option<LockSnapshot> {
        self.lock_snapshots(Window { begin_ns: t_ns - LOCK_SNAPSHOT_NS, end_ns: t_ns }).pop()
    }

    /// How well the lock tables were read over a window, and what InnoDB's status has of waits for rows at its end.
    pub(crate) fn lock_snapshot_quality(&self, window: Window) -> Snapshots {
        let inner = self.lock();
        let last_of = |named: (&str, &str)| {
            let readings =
                inner.named(named).into_iter().filter_map(|points| points.last_until(window.end_ns));
            readings.max_by_key(|(t_ns, _)| *t_ns)
        };
        let last = last_of((LockWait::SOURCE, LockWait::WAITING));
        let is_within = last.is_some_and(|(t_ns, _)| t_ns >= window.begin_ns);
        let now = last_of(("status", LockWait::ROW_WAITS_NOW));
        let now =
            now.filter(|(t_ns, _)| window.end_ns - t_ns <= LOCK_SNAPSHOT_NS).map(|(_, count)| (count, count));
        Snapshots {
            seconds: window.seconds(),
            // Of readings with the same value the history keeps two: how many there were is by the interval between them.
            count: if is_within { (window.seconds() * LOCK_SNAPSHOTS_PER_S).max(1.0) as u64 } else { 0 },
            failed: 0,
            last_good_s: last.map(|(t_ns, _)| (window.end_ns - t_ns) as f64 / 1e9),
            last_took_ms: last_of(("lock_waits", "snapshot_ns")).map(|(_, ns)| ns / 1e6),
            found_rows: 0,
            row_wait_s: None,
            row_waits_now: now,
        }
    }

    /// Returns the snapshots of connections in a window, the newest first.
    pub(crate) fn connection_snapshots(&self, window: Window) -> Vec<TextRows> {
        let inner = self.lock();
        let Some(tables) = inner.tables.get("connections") else { return Vec::new() };
        tables.within(window.begin_ns, window.end_ns).rev().map(|(_, rows)| rows.clone()).collect()
    }

    /// What the server's threads did over a window, by their number, and the names of the states.
    pub(crate) fn threads(&self, window: Window) -> (Vec<String>, HashMap<u32, TimeByState>) {
        let inner = self.lock();
        let mut names = Vec::new();
        let mut threads: HashMap<u32, TimeByState> = HashMap::new();
        for (_, snapshot) in inner.states.within(window.begin_ns, window.end_ns) {
            names.clone_from(&snapshot.states);
            for thread in &snapshot.threads {
                let time = threads.entry(thread.tid).or_default();
                time.name.clone_from(&thread.name);
                time.role.clone_from(&thread.role);
                time.states_ms.resize(snapshot.states.len(), 0);
                for (sum, ms) in time.states_ms.iter_mut().zip(&thread.states_ms) {
                    *sum += u64::from(*ms);
                }
            }
        }
        (names, threads)
    }

    /// Events until a time, the newest first.
    pub(crate) fn events(&self, until_ns: i64) -> Vec<Event> {
        let inner = self.lock();
        inner.events.iter().rev().filter(|event| event.t_ns <= until_ns).cloned().collect()
    }

    /// Sources that can't be read now, and since when.
    pub(crate) fn failed(&self) -> Vec<(String, i64)> {
        let inner = self.lock();
        let failed =
            inner.sources.iter().filter_map(|(name, source)| Some((name.clone(), source.failed_ns?)));
        let mut failed: Vec<(String, i64)> = failed.collect();
        failed.sort();
        failed
    }
}

impl Inner {
    fn named(&self, (source, metric): (&str, &str)) -> Vec<&Points> {
        let found = self.by_metric.get(&(source.to_string(), metric.to_string()));
        found.into_iter().flatten().map(|at| &self.points[*at]).collect()
    }
}

fn add(level: &mut LevelInput, key: &SeriesKey, points: &Points) {
    let (t_ns, value) = points.times_and_values();
    let (begin_ns, end_ns) = (level.begin_ns, level.end_ns);
    match key.kind {
        Kind::Counter => {
            let Some(grown) = whyso_series::increase(t_ns, value, begin_ns, end_ns) else { return };
            let increase = grown.over(begin_ns, end_ns, tier::begins_with_use(&key.source));
            level.counters.push(Counter { series: key.name(), unit: key.unit.clone(), increase });
        }
        Kind::Gauge => {
            let mean = whyso_series::mean_over(t_ns, value, begin_ns, end_ns);
            let max = whyso_series::max_over(t_ns, value, begin_ns, end_ns);
            if let (Some(mean), Some(max)) = (mean, max) {
                level.gauges.push(Gauge { series: key.name(), unit: key.unit.clone(), mean, max });
            }
        }
    }
}

/// A row's cells by the names of their columns.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a> {
    pub(crate) columns: &'a [String],
    pub(crate) row: &'a [Option<String>],
}

impl<'a> Cells<'a> {
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        let at = self.columns.iter().position(|column| column == name)?;
        self.row.get(at)?.as_deref()
    }

    pub(crate) fn number(self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }
}

fn lock_snapshot(rows: &TextRows) -> LockSnapshot {
    let lock_wait = |row: &Vec<Option<String>>| {
        let cells = Cells { columns: &rows.columns, row };
        LockWait::from_cells(|name| cells.text(name))
    };
    LockSnapshot { t_ns: rows.t_ns, waits: rows.rows.iter().filter_map(lock_wait).collect() }
}
