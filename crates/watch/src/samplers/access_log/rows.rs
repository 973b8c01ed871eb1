//! What a log got since the last table: by kind, by process, and all of it.

use std::collections::BTreeMap;

use whyso_access_log::{Request, Sums};
use whyso_model::{LogGroup, LoggedRequests};

/// Processes that have a line of their own in a table, at most; the rest is one line.
const PROCESSES_MAX: usize = 64;
/// The name of that line.
const OTHER: &str = "other";

#[derive(Default)]
pub(super) struct RecentRequests {
    /// By place in the tally.
    kinds: BTreeMap<usize, Sums>,
    /// By the process's number; `None`: those for which there was no room.
    processes: BTreeMap<Option<u32>, Sums>,
    pub(super) malformed: u64,
}

impl RecentRequests {
    pub(super) fn add(&mut self, place: usize, request: &Request) {
        self.kinds.entry(place).or_default().add(request);
        if let Some(pid) = request.pid {
            let has_room = self.processes.len() < PROCESSES_MAX || self.processes.contains_key(&Some(pid));
            self.processes.entry(has_room.then_some(pid)).or_default().add(request);
        }
    }

    /// A row for all lines, also where there were none, and one for each kind and process that had requests.
    pub(super) fn rows(
        self,
        log: &str,
        begin_ns: i64,
        name_at: impl Fn(usize) -> Option<String>,
    ) -> Vec<LoggedRequests> {
        let mut all = Sums::default();
        self.kinds.values().for_each(|sums| all.join(sums));
        let row = |group: LogGroup, name: String, sums: &Sums| row(log, begin_ns, (group, name), sums);
        let whole = LoggedRequests {
            malformed: self.malformed,
            // Those of the kinds are all.
            durations_us: Vec::new(),
            ..row(LogGroup::Log, String::new(), &all)
        };
        let kinds =
            self.kinds.iter().filter_map(|(place, sums)| Some(row(LogGroup::Kind, name_at(*place)?, sums)));
        let process_name = |pid: Option<u32>| pid.map_or_else(|| OTHER.to_string(), |pid| pid.to_string());
        let processes =
            self.processes.iter().map(|(pid, sums)| row(LogGroup::Process, process_name(*pid), sums));
        std::iter::once(whole).chain(kinds).chain(processes).collect()
    }
}

fn row(log: &str, begin_ns: i64, (group, name): (LogGroup, String), sums: &Sums) -> LoggedRequests {
    LoggedRequests {
        log: log.to_string(),
        group,
        name,
        begin_ns,
        requests: sums.requests,
        errors_4xx: sums.errors_4xx,
        errors_5xx: sums.errors_5xx,
        malformed: 0,
        timed: sums.timed,
        duration_ns: sums.duration_ns,
        duration_ns_max: sums.duration_ns_max,
        durations_us: sums.durations_us().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(pid: Option<u32>, duration_ns: u64) -> Request {
        Request { pid, duration_ns: Some(duration_ns), status: Some(503), ..Request::default() }
    }

    #[test]
    fn a_table_has_all_lines_kinds_and_processes() {
        let mut recent = RecentRequests { malformed: 2, ..RecentRequests::default() };
        recent.add(0, &request(Some(7), 1_000_000));
        recent.add(0, &request(Some(8), 3_000_000));
        recent.add(1, &request(None, 5_000_000));
        let rows = recent.rows("access.log", 9, |place| (place == 0).then(|| "GET /".to_string()));
        let of = |row: &LoggedRequests| (row.group.name(), row.name.clone(), row.requests, row.malformed);
        let all: Vec<(&str, String, u64, u64)> = rows.iter().map(of).collect();
        let line = |group, name: &str, requests, malformed| (group, name.to_string(), requests, malformed);
        let expected = [
            line("log", "", 3, 2),
            line("kind", "GET /", 2, 0),
            line("process", "7", 1, 0),
            line("process", "8", 1, 0),
        ];
        assert_eq!(all, expected);
        assert_eq!((rows[0].errors_5xx, rows[0].duration_ns), (3, 9_000_000));
        assert_eq!(rows[1].durations_us.iter().map(|(_, count)| count).sum::<u64>(), 2);
    }

    #[test]
    fn many_processes_share_a_line() {
        let mut recent = RecentRequests::default();
        (0..100).for_each(|pid| recent.add(0, &request(Some(pid), 1)));
        let rows = recent.rows("access.log", 0, |_| None);
        let processes: Vec<&LoggedRequests> =
            rows.iter().filter(|row| row.group == LogGroup::Process).collect();
        assert_eq!((processes.len(), processes.iter().map(|row| row.requests).sum::<u64>()), (65, 100));
        assert_eq!(processes[0].name, OTHER);
    }
}
