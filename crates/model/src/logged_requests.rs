//! What access logs got between two readings, as a recording's text table has it.

use serde::{Deserialize, Serialize};

/// What requests of an access log were added up by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogGroup {
    /// All lines of the log.
    #[default]
    Log,
    /// Requests of one kind, such as `GET /items/{}`.
    Kind,
    /// Requests that one process served.
    Process,
}

impl LogGroup {
    pub fn name(self) -> &'static str {
        match self {
            LogGroup::Log => "log",
            LogGroup::Kind => "kind",
            LogGroup::Process => "process",
        }
    }

    fn of_name(name: &str) -> Option<LogGroup> {
        [LogGroup::Log, LogGroup::Kind, LogGroup::Process].into_iter().find(|group| group.name() == name)
    }
}

/// Requests of one group whose lines were read between two readings. The second one's time is that of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoggedRequests {
    /// Name of the log's file.
    pub log: String,
    pub group: LogGroup,
    /// The kind, or the process's number; empty for all lines.
    pub name: String,
    /// The first reading, monotonic.
    pub begin_ns: i64,
    pub requests: u64,
    /// Answers with a status from 400 to 499.
    pub errors_4xx: u64,
    /// Answers with a status from 500 to 599.
    pub errors_5xx: u64,
    /// Lines that are no requests in the log's format: only of all lines.
    pub malformed: u64,
    /// Requests that have a duration.
    pub timed: u64,
    pub duration_ns: u64,
    pub duration_ns_max: u64,
    /// How many requests took how long, in microseconds: at most 1 % too high. By duration.
    pub durations_us: Vec<(u64, u64)>,
}

impl LoggedRequests {
    /// Source of the text table.
    pub const SOURCE: &'static str = "access_log_requests";

    /// Columns of the text table, in the order of [`LoggedRequests::into_cells`].
    pub const COLUMNS: [&'static str; 12] = [
        "log",
        "group",
        "name",
        "begin_ns",
        "requests",
        "errors_4xx",
        "errors_5xx",
        "malformed",
        "timed",
        "duration_ns",
        "duration_ns_max",
        "durations_us",
    ];

    /// Returns the row's cells, in the order of [`LoggedRequests::COLUMNS`]. Durations are a text such as "1200:3 1500:1".
    pub fn into_cells(self) -> [String; 12] {
        let durations: Vec<String> =
            self.durations_us.iter().map(|(us, count)| format!("{us}:{count}")).collect();
        [
            self.log,
            self.group.name().to_string(),
            self.name,
            self.begin_ns.to_string(),
            self.requests.to_string(),
            self.errors_4xx.to_string(),
            self.errors_5xx.to_string(),
            self.malformed.to_string(),
            self.timed.to_string(),
            self.duration_ns.to_string(),
            self.duration_ns_max.to_string(),
            durations.join(" "),
        ]
    }

    /// Reads a row whose cells are found by the column's name. What is missing or no number becomes empty or 0. `None`: its group is unknown.
    pub fn from_cells<'a>(cell: impl Fn(&str) -> Option<&'a str>) -> Option<LoggedRequests> {
        let text = |name: &str| cell(name).unwrap_or_default();
        let count = |name: &str| text(name).parse::<u64>().unwrap_or(0);
        let duration = |pair: &str| {
            let (us, count) = pair.split_once(':')?;
            Some((us.parse().ok()?, count.parse().ok()?))
        };
        Some(LoggedRequests {
            log: text("log").to_string(),
            group: LogGroup::of_name(text("group"))?,
            name: text("name").to_string(),
            begin_ns: text("begin_ns").parse().unwrap_or(0),
            requests: count("requests"),
            errors_4xx: count("errors_4xx"),
            errors_5xx: count("errors_5xx"),
            malformed: count("malformed"),
            timed: count("timed"),
            duration_ns: count("duration_ns"),
            duration_ns_max: count("duration_ns_max"),
            durations_us: text("durations_us").split(' ').filter_map(duration).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cells: &[String; 12]) -> Option<LoggedRequests> {
        let place = |name: &str| LoggedRequests::COLUMNS.iter().position(|column| *column == name);
        LoggedRequests::from_cells(|name| Some(cells[place(name)?].as_str()))
    }

    #[test]
    fn a_row_comes_back_from_its_cells() {
        let row = LoggedRequests {
            log: "access.log".to_string(),
            group: LogGroup::Kind,
            name: "GET /items/{}".to_string(),
            begin_ns: -5,
            requests: 4,
            errors_4xx: 1,
            errors_5xx: 2,
            malformed: 0,
            timed: 4,
            duration_ns: u64::MAX,
            duration_ns_max: 9,
            durations_us: vec![(1_200, 3), (1_500, 1)],
        };
        let cells = row.clone().into_cells();
        assert_eq!(cells[11], "1200:3 1500:1");
        assert_eq!(read(&cells), Some(row));
    }

    #[test]
    fn what_is_no_number_is_zero_and_an_unknown_group_is_no_row() {
        let mut cells = LoggedRequests::default().into_cells();
        cells[4] = "-1".to_string();
        cells[11] = "a:b 7 8:2".to_string();
        let row = read(&cells).unwrap();
        assert_eq!((row.requests, row.durations_us), (0, vec![(8, 2)]));
        cells[1] = "color".to_string();
        assert_eq!(read(&cells), None);
    }
}
