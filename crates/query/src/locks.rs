//! Lock waits by object, over a window of a recording.

use std::collections::BTreeMap;

use whyso_explain::locks::{
    InstrumentWait, LockObject, LockSnapshot, Snapshots, TableWait, instruments, is_lock_source, objects,
    tables,
};
use whyso_explain::model::{Counter, LevelInput, SeriesName};
use whyso_model::{LockKind, LockWait};
use whyso_record::Recording;
use whyso_record::data::{SeriesKey, TextRows};
use whyso_record::run::Window;
use whyso_report::LocksOf;

use crate::Error;
use crate::level_series::add_chosen;

/// What was waited for over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocksOver {
    pub window: Window,
    /// Snapshots of who waits that the window has.
    pub snapshot_count: u64,
    /// How well that went.
    pub snapshots: Snapshots,
    pub objects: Vec<LockObject>,
    /// What InnoDB itself counted: waits for row locks, and their time in ns; `None` where that was not read.
    pub row_locks_counted: Option<(f64, f64)>,
    pub instruments: Vec<InstrumentWait>,
    pub tables: Vec<TableWait>,
    /// Time that the load's requests waited for locks, the `lock` part of the time budget; `None` where the run was not traced.
    pub requests_waited_ns: Option<f64>,
    /// What of this the run lacks, and what would change that; one sentence each.
    pub not_measured: Vec<String>,
}

impl LocksOver {
    /// As a report takes it. `window`: what it is called, such as "the level of 16 users".
    pub fn for_window<'a>(&'a self, window: &'a str) -> LocksOf<'a> {
        LocksOf {
            window,
            seconds: self.window.seconds(),
            snapshot_count: self.snapshot_count,
            snapshots: self.snapshots,
            objects: &self.objects,
            row_locks_counted: self.row_locks_counted,
            instruments: &self.instruments,
            tables: &self.tables,
            requests_waited_ns: self.requests_waited_ns,
            not_measured: &self.not_measured,
        }
    }
}

/// Adds to each level what connections were found waiting for.
///
/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn add(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    for level in levels {
        let window = Window { begin_ns: level.begin_ns, end_ns: level.end_ns };
        level.lock_objects = objects(&lock_snapshots(recording, window)?, &waited_ns(level));
    }
    Ok(())
}

/// What a recording holds of lock waits over a window.
///
/// # Errors
/// Where the recording's files can't be read, or it holds nothing of lock waits.
pub fn locks_in(recording: &Recording, window: Window) -> Result<LocksOver, Error> {
    let not_measured: Vec<String> = recording
        .run()
        .not_measured
        .iter()
        .filter(|line| line.source.is_of_locks())
        .map(ToString::to_string)
        .collect();
    if !holds_locks(recording) {
        let why = match not_measured.is_empty() {
            true => "whyso records them of servers since version 0.1.0".to_string(),
            false => not_measured.join("; "),
        };
        return Err(Error::NotRecorded(format!("this run holds no lock waits: {why}")));
    }
    let mut measured =
        LevelInput { begin_ns: window.begin_ns, end_ns: window.end_ns, ..LevelInput::default() };
    add_chosen(recording, std::slice::from_mut(&mut measured), is_needed)?;
    let snapshots = lock_snapshots(recording, window)?;
    let counted = |names: [&str; 2], ns_each: f64| {
        let find = |name: &str| {
            measured.counters.iter().find(|counter| counter.series.metric.eq_ignore_ascii_case(name))
        };
        names.into_iter().find_map(find).map(|counter: &Counter| counter.increase * ns_each)
    };
    let waits = counted(["Innodb_row_lock_waits", "lock_row_lock_waits"], 1.0);
    let time_ns = counted(["Innodb_row_lock_time", "lock_row_lock_time"], 1e6);
    Ok(LocksOver {
        window,
        snapshot_count: count_snapshots(recording, window)?,
        snapshots: snapshot_quality(recording, window, &measured, &snapshots, time_ns)?,
        objects: objects(&snapshots, &waited_ns(&measured)),
        row_locks_counted: waits.zip(time_ns),
        instruments: instruments(&measured.counters),
        tables: tables(&measured.counters),
        requests_waited_ns: counted(["request_lock_ns", "request_lock_ns"], 1.0),
        not_measured,
    })
}

/// Whether anything of lock waits was recorded.
pub(crate) fn holds_locks(recording: &Recording) -> bool {
    recording
        .series()
        .iter()
        .any(|info| info.key.source == LockWait::SOURCE || is_lock_source(&info.key.source))
}

/// Whether a table of lock waits is based on this series.
fn is_needed(key: &SeriesKey) -> bool {
    let is_of_innodb = ["status", "innodb_metrics"].contains(&key.source.as_str())
        && ["innodb_row_lock_waits", "innodb_row_lock_time", "lock_row_lock_waits", "lock_row_lock_time"]
            .iter()
            .any(|name| key.metric.eq_ignore_ascii_case(name));
    let is_current = key.source == "status" && key.metric.eq_ignore_ascii_case(LockWait::ROW_WAITS_NOW);
    let is_of_sampler = key.source == "watch" && key.instance == LockWait::SOURCE;
    let is_of_requests = key.source == "trace" && key.metric == "request_lock_ns";
    is_of_innodb
        || is_current
        || is_of_sampler
        || is_of_requests
        || key.source == LockWait::SOURCE
        || is_lock_source(&key.source)
}

/// The time that connections waited by kind of lock: how many waited on the mean, times the window's length.
fn waited_ns(level: &LevelInput) -> BTreeMap<LockKind, f64> {
    let window_ns = level.end_ns.saturating_sub(level.begin_ns) as f64;
    let waiting = level
        .gauges
        .iter()
        .filter(|gauge| gauge.series.source == LockWait::SOURCE && gauge.series.metric == LockWait::WAITING);
    waiting.map(|gauge| (LockKind::of_name(&gauge.series.instance), gauge.mean * window_ns)).collect()
}

fn count_snapshots(recording: &Recording, window: Window) -> Result<u64, Error> {
    let mut most = 0;
    for id in recording.find(LockWait::SOURCE, LockWait::WAITING, None) {
        let points = recording.samples(id, Some(window))?.points();
        let in_window =
            points.t_ns.iter().filter(|t_ns| **t_ns >= window.begin_ns && **t_ns <= window.end_ns);
        most = most.max(in_window.count() as u64);
    }
    Ok(most)
}

/// How well the lock tables were read over a window. `row_wait_ns`: what InnoDB counted of waits for rows meanwhile.
fn snapshot_quality(
    recording: &Recording,
    window: Window,
    measured: &LevelInput,
    in_window: &[LockSnapshot],
    row_wait_ns: Option<f64>,
) -> Result<Snapshots, Error> {
    let (mut count, mut last_ns) = (0, None);
    for id in recording.find(LockWait::SOURCE, LockWait::WAITING, Some("row")) {
        let t_ns = recording.samples(id, Some(Window { begin_ns: i64::MIN, ..window }))?.points().t_ns;
        let until = &t_ns[..t_ns.partition_point(|t_ns| *t_ns <= window.end_ns)];
        count += until.iter().filter(|t_ns| **t_ns >= window.begin_ns).count() as u64;
        last_ns = last_ns.max(until.last().copied());
    }
    let of_sampler = |metric: &str| {
        let found = measured.counters.iter().find(|counter| {
            let series = &counter.series;
            series.source == "watch" && series.metric == metric && series.instance == LockWait::SOURCE
        });
        found.map_or(0, |counter| counter.increase.round().max(0.0) as u64)
    };
    let gauge = |source: &str, metric: &str| {
        let is_named = |name: &SeriesName| name.source == source && name.metric.eq_ignore_ascii_case(metric);
        measured.gauges.iter().find(|gauge| is_named(&gauge.series))
    };
    let found_rows = in_window
        .iter()
        .flat_map(|snapshot| &snapshot.waits)
        .filter(|wait| wait.kind == LockKind::Row)
        .count();
    Ok(Snapshots {
        seconds: window.seconds(),
        count,
        failed: of_sampler("failed") + of_sampler("missed"),
        last_good_s: last_ns.map(|last_ns| (window.end_ns - last_ns) as f64 / 1e9),
        last_took_ms: gauge(LockWait::SOURCE, "snapshot_ns").map(|gauge| gauge.mean / 1e6),
        found_rows: found_rows as u64,
        row_wait_s: row_wait_ns.map(|ns| ns / 1e9),
        row_waits_now: gauge("status", LockWait::ROW_WAITS_NOW).map(|gauge| (gauge.mean, gauge.max)),
    })
}

/// Those of a window, in order of time.
fn lock_snapshots(recording: &Recording, window: Window) -> Result<Vec<LockSnapshot>, Error> {
    if !recording.row_sources().iter().any(|source| source == LockWait::SOURCE) {
        return Ok(Vec::new());
    }
    let mut snapshots: Vec<LockSnapshot> =
        recording.rows(LockWait::SOURCE, Some(window))?.iter().map(lock_snapshot).collect();
    snapshots.sort_by_key(|snapshot| snapshot.t_ns);
    Ok(snapshots)
}

fn lock_snapshot(table: &TextRows) -> LockSnapshot {
    let places: BTreeMap<&str, usize> =
        table.columns.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let wait =
        |row: &Vec<Option<String>>| LockWait::from_cells(|name| row.get(*places.get(name)?)?.as_deref());
    LockSnapshot { t_ns: table.t_ns, waits: table.rows.iter().filter_map(wait).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_explain::model::Gauge;
    use whyso_record::data::{Kind, Reading, SeriesId, Status, Value};
    use whyso_record::run::RunInfo;
    use whyso_record::{Options, Recorder};

    fn table(t_ns: i64, rows: &[(&str, &str)]) -> TextRows {
        TextRows {
            source: LockWait::SOURCE.to_string(),
            t_ns,
            columns: ["kind", "waiting", "object"].map(str::to_string).to_vec(),
            rows: rows
                .iter()
                .map(|(waiting, object)| ["row", waiting, object].map(|cell| Some(cell.to_string())).to_vec())
                .collect(),
        }
    }

    #[test]
    fn a_window_has_the_snapshots_within_it_and_the_time_that_their_number_stands_for() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { own_cost: false, reserve_bytes: 0, ..Options::default() };
        let recorder = Recorder::create(&folder.path().join("run"), options).unwrap();
        for table in
            [table(5, &[("1", "t.a")]), table(10, &[("1", "t.a"), ("2", "t.b")]), table(20, &[("1", "t.b")])]
        {
            recorder.rows(table);
        }
        recorder.finish().unwrap();
        let recording = Recording::open(&folder.path().join("run")).unwrap();
        let within =
            |begin_ns, end_ns| lock_snapshots(&recording, Window { begin_ns, end_ns }).unwrap().len();
        assert_eq!((within(6, 20), within(21, 30)), (2, 0));
        let series = SeriesName {
            source: LockWait::SOURCE.to_string(),
            metric: LockWait::WAITING.to_string(),
            instance: "row".to_string(),
            ..SeriesName::default()
        };
        let gauges = vec![Gauge { series, mean: 1.5, ..Gauge::default() }];
        let level = LevelInput { begin_ns: 0, end_ns: 20, gauges, ..LevelInput::default() };
        assert_eq!(waited_ns(&level), BTreeMap::from([(LockKind::Row, 30.0)]));
    }

    /// Ten seconds in which the lock tables were read once, at 2 s, and then not any more, while InnoDB counted waits.
    #[test]
    fn a_recording_whose_snapshots_failed_does_not_report_that_nobody_waited() {
        const S: i64 = 1_000_000_000;
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let recorder = Recorder::create(&dir, Options { reserve_bytes: 0, ..Options::default() }).unwrap();
        recorder.set_run(&RunInfo::default());
        let series = |source: &str, metric: &str, instance: &str, kind: Kind| {
            recorder.series(&SeriesKey {
                host: "server".to_string(),
                source: source.to_string(),
                metric: metric.to_string(),
                instance: instance.to_string(),
                kind,
                unit: "1".to_string(),
            })
        };
        let waiting = series(LockWait::SOURCE, LockWait::WAITING, "row", Kind::Gauge);
        let snapshot_ns = series(LockWait::SOURCE, "snapshot_ns", "", Kind::Gauge);
        let failed = series("watch", "failed", LockWait::SOURCE, Kind::Counter);
        let time = series("status", "Innodb_row_lock_time", "", Kind::Counter);
        let waits = series("status", "Innodb_row_lock_waits", "", Kind::Counter);
        let current = series("status", LockWait::ROW_WAITS_NOW, "", Kind::Gauge);
        let read = |source: &str, at_s: i64, values: &[(SeriesId, i64)]| {
            recorder.reading(Reading {
                source: source.to_string(),
                begin_ns: at_s * S - 1,
                end_ns: at_s * S,
                status: Status::Ok,
                values: values.iter().map(|(id, value)| (*id, Value::Int(*value))).collect(),
            });
        };
        read(LockWait::SOURCE, 2, &[(waiting, 0), (snapshot_ns, 1_900_000_000)]);
        for at_s in 0..=10 {
            read("watch", at_s, &[(failed, at_s / 3)]);
            read("status", at_s, &[(time, 2_000 * at_s), (waits, at_s), (current, 4)]);
        }
        recorder.finish().unwrap();
        let recording = Recording::open(&dir).unwrap();

        let over = locks_in(&recording, Window { begin_ns: 0, end_ns: 10 * S }).unwrap();
        let snapshots = over.snapshots;
        assert_eq!((snapshots.count, snapshots.failed, snapshots.last_good_s), (1, 3, Some(8.0)));
        assert_eq!(snapshots.last_took_ms, Some(1_900.0));
        assert!((snapshots.row_wait_s.unwrap() - 20.0).abs() < 1e-6 && !snapshots.are_good());
        let text = whyso_report::locks(over.for_window("the whole run"));
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "was taken 8 s before the end and took 1.9 s; 3 attempts failed or came too late.",
            "But InnoDB counted 20 s of waits for row locks",
            "as many as 4 connections waiting for a row at a time",
        ] {
            assert!(line.contains(words), "{words} is missing in {text}");
        }
        // After the last good one nothing was read at all.
        let later = locks_in(&recording, Window { begin_ns: 4 * S, end_ns: 10 * S }).unwrap();
        let text = whyso_report::locks(later.for_window("the end"));
        assert!(!text.contains("No connection was found"), "{text}");
        assert!(text.contains("is not known"), "{text}");
    }

    #[test]
    fn a_table_that_is_not_what_it_should_be_gives_nothing() {
        let odd = TextRows { columns: vec!["kind".to_string()], ..table(1, &[("1", "t.a")]) };
        assert!(lock_snapshot(&odd).waits.is_empty());
        assert!(lock_snapshot(&table(1, &[("x", "t.a")])).waits.is_empty());
    }
}
