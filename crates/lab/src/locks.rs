//! Lock waits by object: what a recording holds of them over a window, and who waits for whom on a server now.

use std::collections::BTreeMap;

use whyso_explain::locks::{
    InstrumentWait, LockLook, LockObject, LockSeen, TableWait, WaitingTree, instruments, is_lock_source,
    objects, tables, waiting_trees,
};
use whyso_explain::model::{Counter, LevelInput};
use whyso_record::Recording;
use whyso_record::data::{SeriesKey, TextRows};
use whyso_record::run::Window;
use whyso_report::LocksOf;
use whyso_watch::{LockWait, lock_waits};

use crate::evidence::add_chosen;
use crate::prepare::AskPassword;
use crate::run::{GOODBYE_TIME_MAX, runtime};
use crate::{Error, login};

/// Sampler, table and gauge of connections that were found waiting.
const SOURCE: &str = "lock_waits";
const WAITING: &str = "waiting";
/// How long a server may take to say who waits.
const ANSWER_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// What was waited for over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocksOver {
    pub window: Window,
    /// Times that it was looked who waits.
    pub looks: u64,
    pub objects: Vec<LockObject>,
    /// What InnoDB itself counted: waits for row locks, and their time in ns; `None` where that was not read.
    pub row_locks_counted: Option<(f64, f64)>,
    pub instruments: Vec<InstrumentWait>,
    pub tables: Vec<TableWait>,
    /// Time that the load's requests waited for locks, the `lock` part of the time budget; `None` where the run was not traced.
    pub requests_waited_ns: Option<f64>,
    /// What of this the run lacks, and what would change that; a sentence each.
    pub not_measured: Vec<String>,
}

impl LocksOver {
    /// As a report takes it. `window`: what it is called, such as "the level of 16 users".
    pub fn told<'a>(&'a self, window: &'a str) -> LocksOf<'a> {
        LocksOf {
            window,
            seconds: self.window.seconds(),
            looks: self.looks,
            objects: &self.objects,
            row_locks_counted: self.row_locks_counted,
            instruments: &self.instruments,
            tables: &self.tables,
            requests_waited_ns: self.requests_waited_ns,
            not_measured: &self.not_measured,
        }
    }
}

/// Who waits for whom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocksNow {
    pub trees: Vec<WaitingTree>,
    /// What the server does not tell, and what would change that; a sentence each.
    pub not_told: Vec<String>,
}

/// Adds to each level what connections were found waiting for.
///
/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn add(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    let looks = looks(recording)?;
    for level in levels {
        let window = Window { begin_ns: level.begin_ns, end_ns: level.end_ns };
        level.lock_objects = objects(within(&looks, window), &waited_ns(level));
    }
    Ok(())
}

/// What a recording holds of lock waits over a window.
///
/// # Errors
/// Where the recording's files can't be read, or it holds nothing of lock waits.
pub fn locks_in(recording: &Recording, window: Window) -> Result<LocksOver, Error> {
    let not_measured: Vec<String> =
        recording.run().not_measured.iter().filter(|line| is_about_locks(line)).cloned().collect();
    if !holds_locks(recording) {
        let why = match not_measured.is_empty() {
            true => "whyso records them of servers since version 0.1.0".to_string(),
            false => not_measured.join("; "),
        };
        return Err(Error::Failed(format!("this run holds no lock waits: {why}")));
    }
    let mut measured =
        LevelInput { begin_ns: window.begin_ns, end_ns: window.end_ns, ..LevelInput::default() };
    add_chosen(recording, std::slice::from_mut(&mut measured), is_needed)?;
    let looks = looks(recording)?;
    let counted = |names: [&str; 2], ns_each: f64| {
        let find =
            |name: &str| measured.counters.iter().find(|one| one.series.metric.eq_ignore_ascii_case(name));
        names.into_iter().find_map(find).map(|counter: &Counter| counter.increase * ns_each)
    };
    let waits = counted(["Innodb_row_lock_waits", "lock_row_lock_waits"], 1.0);
    let time_ns = counted(["Innodb_row_lock_time", "lock_row_lock_time"], 1e6);
    Ok(LocksOver {
        window,
        looks: looks_taken(recording, window)?,
        objects: objects(within(&looks, window), &waited_ns(&measured)),
        row_locks_counted: waits.zip(time_ns),
        instruments: instruments(&measured.counters),
        tables: tables(&measured.counters),
        requests_waited_ns: counted(["request_lock_ns", "request_lock_ns"], 1.0),
        not_measured,
    })
}

/// Whether anything of lock waits was recorded.
pub(crate) fn holds_locks(recording: &Recording) -> bool {
    recording.series().iter().any(|one| one.key.source == SOURCE || is_lock_source(&one.key.source))
}

/// Series that a table of lock waits rests on.
fn is_needed(key: &SeriesKey) -> bool {
    let is_of_innodb = ["status", "innodb_metrics"].contains(&key.source.as_str())
        && ["innodb_row_lock_waits", "innodb_row_lock_time", "lock_row_lock_waits", "lock_row_lock_time"]
            .iter()
            .any(|name| key.metric.eq_ignore_ascii_case(name));
    let is_of_requests = key.source == "trace" && key.metric == "request_lock_ns";
    is_of_innodb || is_of_requests || key.source == SOURCE || is_lock_source(&key.source)
}

/// Lines that samplers of lock waits have for what is not there.
fn is_about_locks(line: &str) -> bool {
    const BEGINS: [&str; 8] = [
        "who waits for whom",
        "waits for metadata locks",
        "which table a metadata lock",
        "waits by instrument",
        "the Performance Schema's counts",
        "the time of waits by instrument",
        "InnoDB's own count of waits",
        "waits for InnoDB's locks",
    ];
    BEGINS.iter().any(|begin| line.starts_with(begin))
}

/// The time that connections waited by kind of lock: how many waited on the mean, times the window's length.
fn waited_ns(level: &LevelInput) -> BTreeMap<String, f64> {
    let window_ns = level.end_ns.saturating_sub(level.begin_ns) as f64;
    let waiting =
        level.gauges.iter().filter(|gauge| gauge.series.source == SOURCE && gauge.series.metric == WAITING);
    waiting.map(|gauge| (gauge.series.instance.clone(), gauge.mean * window_ns)).collect()
}

fn looks_taken(recording: &Recording, window: Window) -> Result<u64, Error> {
    let mut most = 0;
    for id in recording.find(SOURCE, WAITING, None) {
        let points = recording.samples(id, Some(window))?.points();
        let inside = points.t_ns.iter().filter(|t_ns| **t_ns >= window.begin_ns && **t_ns <= window.end_ns);
        most = most.max(inside.count() as u64);
    }
    Ok(most)
}

fn looks(recording: &Recording) -> Result<Vec<LockLook>, Error> {
    if !recording.row_sources().iter().any(|source| source == SOURCE) {
        return Ok(Vec::new());
    }
    let mut looks: Vec<LockLook> = recording.rows(SOURCE)?.iter().map(look).collect();
    looks.sort_by_key(|look| look.t_ns);
    Ok(looks)
}

fn within(looks: &[LockLook], window: Window) -> &[LockLook] {
    let from = looks.partition_point(|look| look.t_ns < window.begin_ns);
    let to = looks.partition_point(|look| look.t_ns <= window.end_ns);
    &looks[from..to.max(from)]
}

fn look(table: &TextRows) -> LockLook {
    let places: BTreeMap<&str, usize> =
        table.columns.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let seen = |row: &Vec<Option<String>>| LockSeen::told(|name| row.get(*places.get(name)?)?.as_deref());
    LockLook { t_ns: table.t_ns, waits: table.rows.iter().filter_map(seen).collect() }
}

/// Who waits for whom on a server, wherever it is, now.
///
/// # Errors
/// The server can't be reached, or does not answer within ten seconds.
pub fn locks_now(dsn: &str, ask_password: &AskPassword) -> Result<LocksNow, Error> {
    let runtime = runtime()?;
    let mut dsn = login::neutral(dsn)?;
    let asked = runtime.block_on(async {
        let mut conn = login::log_in(&mut dsn, ask_password).await?;
        let asked = tokio::time::timeout(ANSWER_TIME_MAX, lock_waits(&mut conn)).await;
        let _ = tokio::time::timeout(GOODBYE_TIME_MAX, conn.disconnect()).await;
        match asked {
            Ok(Ok(look)) => Ok(look),
            Ok(Err(error)) => Err(Error::Failed(format!("the server can't say who waits: {error}"))),
            Err(_) => Err(Error::Failed(format!(
                "the server did not say within {} s who waits: see its log, and try again",
                ANSWER_TIME_MAX.as_secs()
            ))),
        }
    });
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    let look = asked?;
    let waits: Vec<LockSeen> = look.waits.into_iter().map(seen_now).collect();
    Ok(LocksNow { trees: waiting_trees(&waits), not_told: look.absent })
}

fn seen_now(wait: LockWait) -> LockSeen {
    LockSeen {
        kind: wait.kind.name().to_string(),
        waiting: wait.waiting,
        blocking: wait.blocking,
        object: wait.object,
        index: wait.index,
        mode: wait.mode,
        waited_s: wait.waited_s,
        statement: wait.statement,
        blocking_statement: wait.blocking_statement,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_explain::model::{Gauge, SeriesName};

    fn table(t_ns: i64, rows: &[(&str, &str)]) -> TextRows {
        TextRows {
            source: SOURCE.to_string(),
            t_ns,
            columns: ["kind", "waiting", "object"].map(str::to_string).to_vec(),
            rows: rows
                .iter()
                .map(|(waiting, object)| ["row", waiting, object].map(|cell| Some(cell.to_string())).to_vec())
                .collect(),
        }
    }

    #[test]
    fn a_window_has_the_looks_within_it_and_the_time_that_their_number_stands_for() {
        let looks: Vec<LockLook> =
            [table(5, &[("1", "t.a")]), table(10, &[("1", "t.a"), ("2", "t.b")]), table(20, &[("1", "t.b")])]
                .iter()
                .map(look)
                .collect();
        assert_eq!(within(&looks, Window { begin_ns: 6, end_ns: 20 }).len(), 2);
        assert!(within(&looks, Window { begin_ns: 21, end_ns: 30 }).is_empty());
        let series = SeriesName {
            source: SOURCE.to_string(),
            metric: WAITING.to_string(),
            instance: "row".to_string(),
            ..SeriesName::default()
        };
        let gauges = vec![Gauge { series, mean: 1.5, ..Gauge::default() }];
        let level = LevelInput { begin_ns: 0, end_ns: 20, gauges, ..LevelInput::default() };
        assert_eq!(waited_ns(&level), BTreeMap::from([("row".to_string(), 30.0)]));
    }

    #[test]
    fn a_table_that_is_not_what_it_should_be_gives_nothing() {
        let odd = TextRows { columns: vec!["kind".to_string()], ..table(1, &[("1", "t.a")]) };
        assert!(look(&odd).waits.is_empty());
        assert!(look(&table(1, &[("x", "t.a")])).waits.is_empty());
    }
}
