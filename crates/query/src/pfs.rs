//! What a recording holds of the Performance Schema over a window.

use std::collections::{BTreeMap, HashMap};

use whyso_explain::model::{Counter, LevelInput, PfsSetup};
use whyso_explain::pfs::{Table, VIEWS, View};
use whyso_explain::timer::{Timing, timing};
use whyso_model::Missing;
use whyso_record::Recording;
use whyso_record::data::{LoadCount, SeriesKey};
use whyso_record::run::Window;
use whyso_report::{LevelPfs, RunPfs};

use crate::Error;
use crate::level_series::add_chosen;
use crate::pfs_setup;

/// The load's own name for whole transactions, in place of a statement's.
const TRANSACTION: &str = "transaction";
/// The server's count of what clients sent.
const QUESTIONS: &str = "Questions";

/// A view over a window, and what its lines say.
#[derive(Clone, Debug, PartialEq)]
pub struct PfsOver {
    pub table: Table,
    /// Text of a digest, by the name of its line.
    pub texts: HashMap<String, String>,
    /// What of the Performance Schema the run lacks; one sentence each.
    pub not_measured: Vec<String>,
}

impl PfsOver {
    /// Keeps only lines whose name or text contains `text`, in any case.
    pub fn keep_like(&mut self, text: &str) {
        let text = text.to_lowercase();
        let texts = &self.texts;
        self.table.keep(|line| {
            let shown = texts.get(&line.name).map_or(line.name.as_str(), String::as_str);
            shown.to_lowercase().contains(&text) || line.name.to_lowercase().contains(&text)
        });
    }
}

/// What a recording holds of `view` over a window.
///
/// # Errors
/// Where the recording's files can't be read, or it holds nothing of this view.
pub fn pfs_in(recording: &Recording, view: &'static View, window: Window) -> Result<PfsOver, Error> {
    let not_measured: Vec<String> = recording
        .run()
        .not_measured
        .iter()
        .filter(|line| {
            let of_lock_tables = matches!(line.source, Missing::RowLockWaits | Missing::MetadataLockTables);
            line.source.is_of_performance_schema() || of_lock_tables
        })
        .map(ToString::to_string)
        .collect();
    let has = |source: &str| recording.series().iter().any(|info| info.key.source == source);
    if !has(view.source) {
        let there: Vec<&str> = VIEWS.iter().filter(|view| has(view.source)).map(|view| view.name).collect();
        let why = match (there.is_empty(), not_measured.is_empty()) {
            (false, _) => format!(
                "the server counted nothing there, or has no such table; this run has {}",
                there.join(", ")
            ),
            (true, false) => not_measured.join("; "),
            (true, true) => "whyso reads the Performance Schema since version 0.1.0".to_string(),
        };
        return Err(Error::NotRecorded(format!("this run holds nothing of the view {}: {why}", view.name)));
    }
    let load = recording.load_counts(window)?;
    let mut tables = tables(recording, view, &[window], &load)?;
    let table = tables.remove(0);
    Ok(PfsOver { table, texts: texts(recording)?, not_measured })
}

/// What a recording holds of every view that it has, window by window; `None` where it has none. The first of a pair names the window.
///
/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn every_view(
    recording: &Recording,
    parts: &[(Option<u32>, Window)],
) -> Result<Option<RunPfs>, Error> {
    let has = |view: &&View| recording.series().iter().any(|info| info.key.source == view.source);
    let views: Vec<&'static View> = VIEWS.iter().filter(has).collect();
    if views.is_empty() || parts.is_empty() {
        return Ok(None);
    }
    let windows: Vec<Window> = parts.iter().map(|(_, window)| *window).collect();
    let load = recording.load_counts(Window { begin_ns: i64::MIN, end_ns: i64::MAX })?;
    let setup = pfs_setup::of_run(&recording.run().spec);
    let mut timings = match setup.filter(|setup| !setup.timers.is_empty()) {
        Some(setup) => timings(recording, &setup, &windows, &load)?.into_iter().map(Some).collect(),
        None => vec![None; parts.len()],
    };
    let level = |((level, _), timing): (&(Option<u32>, Window), &mut Option<Timing>)| LevelPfs {
        level: *level,
        tables: Vec::new(),
        timing: timing.take(),
    };
    let mut levels: Vec<LevelPfs> = parts.iter().zip(&mut timings).map(level).collect();
    for view in views {
        for (level, mut table) in levels.iter_mut().zip(tables(recording, view, &windows, &load)?) {
            table.sort(table.main_column());
            level.tables.push(table);
        }
    }
    Ok(Some(RunPfs { levels, texts: texts(recording)? }))
}

/// Whether a recording has what the server's timers take.
pub fn timing_is_known(recording: &Recording) -> bool {
    let setup = pfs_setup::of_run(&recording.run().spec);
    setup.is_some_and(|setup| !setup.timers.is_empty())
}

/// What timing cost the server over a window.
///
/// # Errors
/// Where the recording's files can't be read, or it does not have what the server's timers take.
pub fn timing_in(recording: &Recording, window: Window) -> Result<Timing, Error> {
    let run = recording.run();
    let state = || run.performance_schema().unwrap_or_else(|| "not recorded".to_string());
    let setup = pfs_setup::of_run(&run.spec).unwrap_or_default();
    if setup.timers.is_empty() {
        return Err(Error::NotRecorded(format!(
            "this run does not have what the server's timers take (Performance Schema: {}): record it again with --pfs default, or \
             start the server with performance_schema=ON",
            state()
        )));
    }
    let load = recording.load_counts(window)?;
    let mut timings = timings(recording, &setup, &[window], &load)?;
    Ok(timings.remove(0))
}

/// The same of each window. `load`: of all of them.
fn timings(
    recording: &Recording,
    setup: &PfsSetup,
    windows: &[Window],
    load: &[LoadCount],
) -> Result<Vec<Timing>, Error> {
    let is_needed = |key: &SeriesKey| match key.source.as_str() {
        "pfs_waits" | "pfs_stages" | "pfs_statements" | "pfs_transactions" | "server_process" => true,
        source => source == "status" && key.metric == QUESTIONS,
    };
    let mut measured = windows.iter().map(empty_level).collect::<Vec<_>>();
    add_chosen(recording, &mut measured, is_needed)?;
    let timing_of = |(measured, window): (&LevelInput, &Window)| {
        let counters = &measured.counters;
        let (statements, _) = sent_or_counted(load, counters, *window);
        timing(setup, counters, window.seconds(), statements, whyso_explain::server_cpu_s(counters))
    };
    Ok(measured.iter().zip(windows).map(timing_of).collect())
}

/// What the server's Performance Schema had no room for since the server's start, as it was last read.
pub(crate) fn lost(recording: &Recording) -> Result<BTreeMap<String, f64>, Error> {
    let is_lost = |key: &SeriesKey| {
        let name = key.metric.to_ascii_lowercase();
        key.source == "status" && name.starts_with("performance_schema_") && name.ends_with("_lost")
    };
    let mut lost = BTreeMap::new();
    for info in recording.series().iter().filter(|info| is_lost(&info.key)) {
        if let Some(last) = recording.samples(info.id, None)?.value.last() {
            lost.insert(info.key.metric.clone(), *last);
        }
    }
    Ok(lost)
}

fn empty_level(window: &Window) -> LevelInput {
    LevelInput { begin_ns: window.begin_ns, end_ns: window.end_ns, ..LevelInput::default() }
}

/// A view over each window. `load`: of all of them.
fn tables(
    recording: &Recording,
    view: &'static View,
    windows: &[Window],
    load: &[LoadCount],
) -> Result<Vec<Table>, Error> {
    let mut measured: Vec<LevelInput> = windows.iter().map(empty_level).collect();
    let is_needed =
        |key: &SeriesKey| key.source == view.source || (key.source == "status" && key.metric == QUESTIONS);
    add_chosen(recording, &mut measured, is_needed)?;
    let table = |(measured, window): (&LevelInput, &Window)| {
        let (statements, transactions) = sent_or_counted(load, &measured.counters, *window);
        let seconds = window.seconds();
        Table::new(view, &measured.counters, &measured.gauges, seconds, statements, transactions)
    };
    Ok(measured.iter().zip(windows).map(table).collect())
}

/// Statements and transactions of a window: those that the load sent, else the server's own count of statements.
fn sent_or_counted(load: &[LoadCount], counters: &[Counter], window: Window) -> (Option<f64>, Option<f64>) {
    let (statements, transactions) = sent(load, window);
    let questions =
        || counters.iter().find(|counter| counter.series.metric == QUESTIONS).map(|counter| counter.increase);
    (statements.or_else(questions), transactions)
}

/// Statements and transactions that ended within `window`; an interval that lies in it in part counts for that part.
fn sent(load: &[LoadCount], window: Window) -> (Option<f64>, Option<f64>) {
    let mut sums = [None::<f64>; 2];
    let lies_in =
        |interval: &&LoadCount| interval.begin_ns < window.end_ns && interval.end_ns > window.begin_ns;
    for interval in load.iter().filter(lies_in) {
        let begin_ns = interval.begin_ns.max(window.begin_ns);
        let end_ns = interval.end_ns.min(window.end_ns);
        let length_ns = (interval.end_ns - interval.begin_ns).max(1);
        let part = (end_ns - begin_ns).max(0) as f64 / length_ns as f64;
        let place = match interval.statement.split_once(':') {
            // One kind of transaction, of which the whole has its own line.
            Some((TRANSACTION, _)) => continue,
            _ => usize::from(interval.statement == TRANSACTION),
        };
        *sums[place].get_or_insert(0.0) += interval.count as f64 * part;
    }
    sums.into()
}

fn texts(recording: &Recording) -> Result<HashMap<String, String>, Error> {
    let mut texts = HashMap::new();
    for source in recording.row_sources().iter().filter(|source| source.starts_with("pfs_")) {
        for table in recording.rows(source, None)? {
            let rows = table.rows.into_iter().filter_map(|mut row| {
                let text = row.get_mut(2)?.take()?;
                Some((row.first_mut()?.take()?, text))
            });
            texts.extend(rows);
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(begin_ns: i64, end_ns: i64, statement: &str, count: u64) -> LoadCount {
        LoadCount { begin_ns, end_ns, statement: statement.to_string(), count }
    }

    #[test]
    fn an_interval_at_the_windows_edge_counts_for_the_part_that_lies_in_it() {
        let load = [
            interval(0, 100, "transaction", 10),
            interval(0, 100, "transaction:a", 10),
            interval(0, 100, "point select", 100),
            interval(100, 200, "transaction", 20),
            interval(100, 200, "point select", 200),
        ];
        let window = Window { begin_ns: 50, end_ns: 200 };
        assert_eq!(sent(&load, window), (Some(250.0), Some(25.0)));
        assert_eq!(sent(&[], window), (None, None));
    }
}
