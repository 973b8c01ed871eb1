//! What access logs got over each level's window, from the tables that were taken about once per second.

use std::collections::BTreeMap;

use whyso_explain::model::{AccessLogInput, LevelInput, RequestSums};
use whyso_model::{LogGroup, LoggedRequests};
use whyso_record::Recording;
use whyso_record::data::TextRows;
use whyso_record::run::Window;

use crate::Error;

/// A table that was read this long after a window may still be of requests within it.
const REACH_NS: i64 = 60_000_000_000;
/// Names of a log that are kept, at most: a recording can be a stranger's.
const NAMES_MAX: usize = 1_024;
/// Logs that are kept, at most.
const LOGS_MAX: usize = 16;

/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn add(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    if !recording.row_sources().iter().any(|known| known == LoggedRequests::SOURCE) {
        return Ok(());
    }
    for level in levels {
        let window = Window { begin_ns: level.begin_ns, end_ns: level.end_ns };
        let mut logs = LogsOver::new(window);
        let reach = Window { end_ns: window.end_ns.saturating_add(REACH_NS), ..window };
        recording.each_table(LoggedRequests::SOURCE, Some(reach), |table| logs.add(&table))?;
        level.access_logs = logs.finish();
    }
    Ok(())
}

/// Sums over the tables whose middle lies in a window: what a table at an edge has is not divided.
struct LogsOver {
    window: Window,
    logs: BTreeMap<String, LogOver>,
}

#[derive(Default)]
struct LogOver {
    covered_ns: i64,
    all: RequestSums,
    malformed: u64,
    kinds: BTreeMap<String, RequestSums>,
    processes: BTreeMap<String, RequestSums>,
}

impl LogsOver {
    fn new(window: Window) -> LogsOver {
        LogsOver { window, logs: BTreeMap::new() }
    }

    fn add(&mut self, table: &TextRows) {
        let place = |name: &str| table.columns.iter().position(|column| column == name);
        let places: BTreeMap<&str, usize> =
            LoggedRequests::COLUMNS.into_iter().filter_map(|name| Some((name, place(name)?))).collect();
        for cells in &table.rows {
            let cell = |name: &str| cells.get(*places.get(name)?)?.as_deref();
            let Some(row) = LoggedRequests::from_cells(cell) else { continue };
            let length_ns = table.t_ns.saturating_sub(row.begin_ns);
            let middle_ns = row.begin_ns.saturating_add(length_ns / 2);
            if length_ns <= 0 || !(self.window.begin_ns..self.window.end_ns).contains(&middle_ns) {
                continue;
            }
            if self.logs.len() >= LOGS_MAX && !self.logs.contains_key(&row.log) {
                continue;
            }
            let log = self.logs.entry(row.log.clone()).or_default();
            match row.group {
                LogGroup::Log => {
                    log.covered_ns = log.covered_ns.saturating_add(length_ns);
                    log.malformed = log.malformed.saturating_add(row.malformed);
                    log.all.add(&row);
                }
                LogGroup::Kind => add_named(&mut log.kinds, &row),
                LogGroup::Process => add_named(&mut log.processes, &row),
            }
        }
    }

    fn finish(self) -> Vec<AccessLogInput> {
        let input = |(log, over): (String, LogOver)| AccessLogInput {
            log,
            seconds: over.covered_ns as f64 / 1e9,
            malformed: over.malformed,
            all: over.all,
            kinds: over.kinds.into_values().collect(),
            processes: over.processes.into_values().collect(),
        };
        self.logs.into_iter().map(input).collect()
    }
}

fn add_named(sums: &mut BTreeMap<String, RequestSums>, row: &LoggedRequests) {
    if sums.len() < NAMES_MAX || sums.contains_key(&row.name) {
        sums.entry(row.name.clone()).or_default().add(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(t_ns: i64, rows: Vec<LoggedRequests>) -> TextRows {
        TextRows {
            source: LoggedRequests::SOURCE.to_string(),
            t_ns,
            columns: LoggedRequests::COLUMNS.map(str::to_string).to_vec(),
            rows: rows.into_iter().map(|row| row.into_cells().map(Some).to_vec()).collect(),
        }
    }

    fn row(begin_ns: i64, group: LogGroup, name: &str, requests: u64) -> LoggedRequests {
        let (log, name) = ("access.log".to_string(), name.to_string());
        let durations_us = vec![(10, requests)];
        LoggedRequests {
            log,
            group,
            name,
            begin_ns,
            requests,
            timed: requests,
            durations_us,
            ..LoggedRequests::default()
        }
    }

    #[test]
    fn tables_whose_middle_lies_in_the_window_are_added_up() {
        let mut logs = LogsOver::new(Window { begin_ns: 1_000, end_ns: 3_000 });
        for begin_ns in [0, 900, 1_900, 2_900] {
            let rows = vec![
                row(begin_ns, LogGroup::Log, "", 5),
                row(begin_ns, LogGroup::Kind, "GET /", 3),
                row(begin_ns, LogGroup::Process, "7", 5),
            ];
            logs.add(&table(begin_ns + 1_000, rows));
        }
        let logs = logs.finish();
        assert_eq!(logs.len(), 1);
        assert_eq!((logs[0].seconds, logs[0].all.requests), (2e-6, 10), "two of the four");
        assert_eq!((logs[0].kinds[0].requests, logs[0].processes[0].name.as_str()), (6, "7"));
        assert_eq!(logs[0].kinds[0].durations_us, [(10, 6)].into());
    }

    #[test]
    fn tables_that_are_not_what_they_should_be_give_nothing() {
        let window = Window { begin_ns: 0, end_ns: i64::MAX };
        let mut logs = LogsOver::new(window);
        logs.add(&TextRows {
            columns: vec!["log".to_string()],
            ..table(5, vec![row(0, LogGroup::Log, "", 1)])
        });
        logs.add(&table(i64::MIN, vec![row(i64::MAX, LogGroup::Log, "", 1)]));
        assert!(logs.finish().is_empty());
    }
}
