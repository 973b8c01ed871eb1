//! One line of a replica's status, as numbers and words; no I/O.
//!
//! MySQL since 8.0.22 writes source and replica, others master and slave. What is recorded has one name on every server, the newer one in
//! lower case.

use whyso_record::data::Value;

use crate::metric::{Metric, counter, gauge};
use crate::samplers::status::parse_number;

pub(crate) const SECONDS_BEHIND: Metric = gauge(
    "seconds_behind_source",
    "s",
    "how far the replica is behind its source, as the server shows it; absent while it does not know",
);
pub(crate) const IO_RUNNING: Metric =
    gauge("replica_io_running", "1", "1 while the thread that fetches the source's log is connected");
pub(crate) const SQL_RUNNING: Metric =
    gauge("replica_sql_running", "1", "1 while the thread that executes what was fetched runs");

/// What the columns that most servers have mean.
pub(crate) const METRICS: [Metric; 18] = [
    SECONDS_BEHIND,
    IO_RUNNING,
    SQL_RUNNING,
    counter("read_source_log_pos", "bytes", "position in the source's binary log up to which it was fetched"),
    counter(
        "exec_source_log_pos",
        "bytes",
        "position in the source's binary log up to which it was executed",
    ),
    counter("relay_log_pos", "bytes", "position in the relay log up to which it was executed"),
    gauge("relay_log_space", "bytes", "size of all relay logs"),
    gauge("last_io_errno", "1", "number of the error that fetching ended in; 0 for none"),
    gauge("last_sql_errno", "1", "number of the error that executing ended in; 0 for none"),
    gauge("sql_delay", "s", "how far the replica is set to stay behind"),
    gauge("sql_remaining_delay", "s", "for how much longer the next event is held back"),
    counter("retried_transactions", "1", "transactions that were executed again after a passing error"),
    counter("executed_log_entries", "1", "events of the log that were executed"),
    counter("replica_received_heartbeats", "1", "heartbeats received from the source"),
    gauge("replica_heartbeat_period", "s", "how often the source is to send one while it has nothing else"),
    counter("replica_ddl_groups", "1", "groups of statements that change definitions, executed"),
    counter("replica_non_transactional_groups", "1", "groups without transactions that were executed"),
    counter("replica_transactional_groups", "1", "transactions that were executed"),
];

/// Numbers that name something, and count nothing.
const NAMES: [&str; 2] = ["source_port", "source_server_id"];

/// One connection of a replica to a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Channel {
    /// What the server calls it; empty where it has no name.
    pub(crate) name: String,
    /// (metric, value), in the server's order.
    pub(crate) numbers: Vec<(String, Value)>,
    /// What the two threads do, as the server names it, such as "Yes", "No" and "Connecting".
    pub(crate) io_running: Option<String>,
    pub(crate) sql_running: Option<String>,
    pub(crate) io_error: String,
    pub(crate) sql_error: String,
}

impl Channel {
    /// From a line's columns and their values.
    pub(crate) fn of<'a>(cells: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Channel {
        let mut channel = Channel::default();
        for (column, value) in cells {
            channel.take(&metric_name(column), value);
        }
        channel
    }

    fn take(&mut self, name: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        match name {
            "channel_name" | "connection_name" => self.name = value.to_string(),
            "replica_io_running" => self.io_running = self.running(name, value),
            "replica_sql_running" => self.sql_running = self.running(name, value),
            "last_io_error" => self.io_error = value.to_string(),
            "last_sql_error" => self.sql_error = without_literals(value),
            _ if NAMES.contains(&name) => {}
            _ => {
                if let Some(number) = parse_number(value) {
                    self.numbers.push((name.to_string(), number));
                }
            }
        }
    }

    fn running(&mut self, name: &str, value: &str) -> Option<String> {
        self.numbers.push((name.to_string(), Value::Int(i64::from(value == "Yes"))));
        Some(value.to_string())
    }

    /// What changed since `before`, as texts.
    pub(crate) fn changes_since(&self, before: &Channel) -> Vec<String> {
        let mut texts = Vec::new();
        let states = [
            ("Replica_IO_Running", &before.io_running, &self.io_running),
            ("Replica_SQL_Running", &before.sql_running, &self.sql_running),
        ];
        for (which, then, now) in states {
            if let (Some(then), Some(now)) = (then, now)
                && then != now
            {
                texts.push(format!("{which}: {then} → {now}"));
            }
        }
        let errors = [
            ("Last_IO_Error", &before.io_error, &self.io_error),
            ("Last_SQL_Error", &before.sql_error, &self.sql_error),
        ];
        for (which, then, now) in errors {
            // A server that tries again counts its attempts in the text.
            if words_of(then) == words_of(now) {
                continue;
            }
            texts.push(if now.is_empty() {
                format!("{which}: none any more")
            } else {
                format!("{which}: {now}")
            });
        }
        if !self.name.is_empty() {
            texts.iter_mut().for_each(|text| *text = format!("{}: {text}", self.name));
        }
        texts
    }
}

/// "Seconds_Behind_Master" is "seconds_behind_source".
fn metric_name(column: &str) -> String {
    column.to_ascii_lowercase().replace("master", "source").replace("slave", "replica")
}

fn words_of(error: &str) -> String {
    error.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// An error of a statement quotes values of rows and the statement itself: all from the first quote to the last is `?`.
fn without_literals(error: &str) -> String {
    let letters: Vec<(usize, char)> = error.char_indices().collect();
    let is_quote = |place: &usize| {
        let letter_at = |place: usize| letters.get(place).is_some_and(|(_, letter)| letter.is_alphanumeric());
        // That of "event's" is none.
        let is_within_a_word = *place > 0 && letter_at(place - 1) && letter_at(place + 1);
        matches!(letters[*place].1, '\'' | '"') && !is_within_a_word
    };
    let (Some(first), Some(last)) =
        ((0..letters.len()).find(is_quote), (0..letters.len()).rev().find(is_quote))
    else {
        return error.to_string();
    };
    if first == last {
        return format!("{}?", &error[..letters[first].0]);
    }
    format!("{}'?'{}", &error[..letters[first].0], &error[letters[last].0 + 1..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(channel: &Channel, name: &str) -> Option<f64> {
        channel.numbers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_f64())
    }

    const MYSQL: [(&str, Option<&str>); 14] = [
        ("Replica_IO_State", Some("Waiting for source to send event")),
        ("Source_Host", Some("10.0.0.1")),
        ("Source_Port", Some("3306")),
        ("Source_Log_File", Some("binlog.000012")),
        ("Read_Source_Log_Pos", Some("4711")),
        ("Relay_Log_Space", Some("99")),
        ("Replica_IO_Running", Some("Yes")),
        ("Replica_SQL_Running", Some("No")),
        ("Seconds_Behind_Source", None),
        ("Last_IO_Error", Some("")),
        ("Last_SQL_Errno", Some("1062")),
        (
            "Last_SQL_Error",
            Some(
                "Error 'Duplicate entry 'o'neil' for key 'PRIMARY'' on query. Default database: 'd'. Query: 'INSERT INTO t VALUES (\"x\")'",
            ),
        ),
        ("Source_UUID", Some("1e3a")),
        ("Channel_Name", Some("east")),
    ];

    #[test]
    fn every_servers_words_give_the_same_names() {
        let mysql = Channel::of(MYSQL);
        assert_eq!(mysql.name, "east");
        assert_eq!(number(&mysql, "read_source_log_pos"), Some(4711.0));
        assert_eq!(number(&mysql, "replica_io_running"), Some(1.0));
        assert_eq!(number(&mysql, "replica_sql_running"), Some(0.0));
        assert_eq!(number(&mysql, "last_sql_errno"), Some(1062.0));
        // NULL is not known, and what names something is no number.
        assert_eq!(number(&mysql, "seconds_behind_source"), None);
        assert_eq!(number(&mysql, "source_port"), None);
        let mariadb = Channel::of([
            ("Connection_name", Some("west")),
            ("Slave_IO_Running", Some("Connecting")),
            ("Slave_SQL_Running", Some("Yes")),
            ("Read_Master_Log_Pos", Some("12")),
            ("Seconds_Behind_Master", Some("7")),
            ("Slave_heartbeat_period", Some("30.000")),
            ("Gtid_IO_Pos", Some("0-1-2")),
        ]);
        assert_eq!(mariadb.name, "west");
        assert_eq!(number(&mariadb, "seconds_behind_source"), Some(7.0));
        assert_eq!(number(&mariadb, "replica_io_running"), Some(0.0));
        assert_eq!(number(&mariadb, "replica_heartbeat_period"), Some(30.0));
        assert_eq!(number(&mariadb, "gtid_io_pos"), None);
    }

    #[test]
    fn what_changed_is_reported_once_and_without_anybodys_data() {
        let stopped = Channel::of(MYSQL);
        let error = "Error '?'";
        assert_eq!(stopped.sql_error, error);
        let ran =
            Channel { sql_running: Some("Yes".to_string()), sql_error: String::new(), ..stopped.clone() };
        let texts = stopped.changes_since(&ran);
        assert_eq!(texts, ["east: Replica_SQL_Running: Yes → No", "east: Last_SQL_Error: Error '?'"]);
        assert_eq!(stopped.changes_since(&stopped), [""; 0]);
        assert_eq!(ran.changes_since(&stopped)[1], "east: Last_SQL_Error: none any more");
        let tried = |times: u32| Channel { io_error: format!("attempt {times}/86400"), ..Channel::default() };
        assert_eq!(tried(10).changes_since(&tried(9)), [""; 0]);
    }

    #[test]
    fn an_error_of_rows_keeps_its_words() {
        let error = "Could not execute Write_rows_v1 event on table d.t; Duplicate entry '7' for key 'PRIMARY', \
                     Error_code: 1062; the event's master log bin.000001, end_log_pos 42";
        assert_eq!(
            without_literals(error),
            "Could not execute Write_rows_v1 event on table d.t; Duplicate entry '?', Error_code: 1062; the event's \
             master log bin.000001, end_log_pos 42"
        );
        assert_eq!(without_literals("cut in 'the mid"), "cut in ?");
        assert_eq!(without_literals(""), "");
    }

    proptest! {
        #[test]
        fn nothing_quoted_is_left(before in "[a-z ]{0,9}", secret in "[A-Z'\" é]{0,20}", after in "[a-z ]{0,9}") {
            let text = without_literals(&format!("{before} '{secret}' {after}"));
            prop_assert!(!text.chars().any(|letter| letter.is_uppercase()), "{text}");
        }

        #[test]
        fn garbage_is_survived(column in "(?s).{0,30}", value in "(?s).{0,40}") {
            let channel = Channel::of([(column.as_str(), Some(value.as_str())), ("Last_SQL_Error", Some(&value))]);
            channel.changes_since(&Channel::default());
        }
    }
}
