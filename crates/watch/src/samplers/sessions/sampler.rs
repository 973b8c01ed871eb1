//! The sampler: reads the process list five times per second.

use std::collections::BTreeMap;

use mysql_async::Error;
use whyso_clock::monotonic_ns;

use super::states::{Line, add, by_state};
use super::tally::{SessionSums, SessionTally};
use crate::metric::{Metric, counter, gauge};
use crate::own_statements::ControlConnection;
use crate::sampler::{Failure, Sampler};
use crate::samplers::lock_waits::RowLockActivity;
use crate::schedule::Pace;
use crate::sink::Batch;
use crate::sql::{OwnConnections, Sql, bounded_select, is_not_for_us};

pub(crate) const METRICS: [Metric; 3] = [
    counter("looks", "1", "times that the process list was read"),
    counter(
        "in_statement",
        "1",
        "clients' sessions that were found in a statement, added up over all snapshots, by their state",
    ),
    gauge("clients", "1", "clients' connections, whyso's own left out"),
];
const SNAPSHOTS: Metric = METRICS[0];
const IN_STATEMENT: Metric = METRICS[1];
const CLIENTS: Metric = METRICS[2];

/// A reading that took 10 ms is repeated after 200 ms at the earliest: 5 % of the time.
const PACE_FACTOR: i64 = 20;
/// To count its connections a server adds up all of its status counters.
const CONNECTED_EVERY: u64 = 5;
/// Sessions of a snapshot, at most.
const SESSIONS_MAX: usize = 20_000;
/// Snapshots in a row that show fewer sessions than are connected, after which this is no chance.
const UNSEEN_IN_A_ROW_MIN: u32 = 3;

/// Tables that hold the process list. MySQL's own costs no lock that every session takes, and is empty where the Performance Schema is off.
const TABLES: [&str; 2] = ["performance_schema.processlist", "information_schema.PROCESSLIST"];

pub(crate) struct SessionStates {
    sql: Sql,
    own: OwnConnections,
    activity: RowLockActivity,
    tally: SessionTally,
    /// Position of the table that was found to have lines.
    table: Option<usize>,
    pace: Pace,
    sums: SessionSums,
    by_state: BTreeMap<String, u64>,
    /// By the server's own count of its connections, which is asked for at every [`CONNECTED_EVERY`]th reading.
    clients_unseen: u64,
    unseen_in_a_row: u32,
}

impl SessionStates {
    pub(crate) fn new(
        sql: Sql,
        own: OwnConnections,
        activity: RowLockActivity,
        tally: SessionTally,
    ) -> SessionStates {
        SessionStates {
            sql,
            own,
            activity,
            tally,
            table: None,
            pace: Pace::default(),
            sums: SessionSums::default(),
            by_state: BTreeMap::new(),
            clients_unseen: 0,
            unseen_in_a_row: 0,
        }
    }

    /// Enters a reading's lines. `connected`: the server's own count of its connections, where it was asked.
    fn enter(&mut self, lines: &[Line], connected: Option<u64>, at_ns: i64) -> u64 {
        let own = self.own.clone();
        let states = by_state(lines, |id| own.contains(id), &self.activity.row_waiters(at_ns));
        let of_clients = lines.iter().filter(|line| !line.is_of_server());
        let (own_lines, client_lines): (Vec<&Line>, Vec<&Line>) =
            of_clients.partition(|line| own.contains(line.id));
        let clients_shown = client_lines.len() as u64;
        if let Some(all) = connected {
            self.clients_unseen = all.saturating_sub(own_lines.len() as u64 + clients_shown);
            // One that comes or goes between the two answers is no session that may not be seen.
            self.unseen_in_a_row = if self.clients_unseen > 1 { self.unseen_in_a_row + 1 } else { 0 };
        }
        let clients = clients_shown + self.clients_unseen;
        self.sums.snapshots += 1;
        self.sums.in_statement += states.values().sum::<u64>();
        self.sums.clients += clients;
        self.tally.set(self.sums);
        add(&mut self.by_state, states);
        clients
    }
}

impl Sampler for SessionStates {
    fn source(&self) -> &'static str {
        "sessions"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let begin_ns = monotonic_ns();
        if !self.pace.due(begin_ns) {
            batch.nothing_to_read();
            return Ok(());
        }
        let (table, is_first) = (self.table, self.table.is_none());
        let asks_connected = self.sums.snapshots.is_multiple_of(CONNECTED_EVERY);
        let (found, lines, connected) =
            self.sql.run(async |conn| read_sessions(conn, table, asks_connected).await)?;
        let Some(found) = found else {
            return Err(Failure::Absent(
                "what sessions do and wait for: this user may not read the process list".to_string(),
            ));
        };
        self.table = Some(found);
        let clients = self.enter(&lines, connected, begin_ns);
        if !is_first {
            self.pace.rest(begin_ns, monotonic_ns() - begin_ns, PACE_FACTOR);
        }
        if self.unseen_in_a_row == UNSEEN_IN_A_ROW_MIN {
            batch.absent(
                "what the sessions of other users do and wait for: the process list shows this user's own; grant PROCESS"
                    .to_string(),
            );
        }
        batch.put(&SNAPSHOTS, "", self.sums.snapshots);
        batch.put(&CLIENTS, "", clients);
        for (state, count) in &self.by_state {
            batch.put(&IN_STATEMENT, state, *count);
        }
        Ok(())
    }
}

/// The table that has lines, those lines, and how many connections the server counts.
async fn read_sessions(
    conn: &mut ControlConnection<'_>,
    table: Option<usize>,
    asks_connected: bool,
) -> Result<(Option<usize>, Vec<Line>, Option<u64>), Error> {
    let own_id = u64::from(conn.id());
    let candidates = table.map_or(0..TABLES.len(), |at| at..at + 1);
    for at in candidates {
        match lines(conn, TABLES[at]).await {
            Ok(lines) if lines.iter().any(|line| line.id == own_id) => {
                let connected: Option<(String, u64)> = match asks_connected {
                    true => conn.query_first("SHOW GLOBAL STATUS LIKE 'Threads_connected'").await?,
                    false => None,
                };
                return Ok((Some(at), lines, connected.map(|(_, count)| count)));
            }
            Ok(_) => {}
            Err(Error::Server(error)) if is_not_for_us(error.code) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((None, Vec::new(), None))
}

async fn lines(conn: &mut ControlConnection<'_>, table: &str) -> Result<Vec<Line>, Error> {
    type Row = (u64, Option<String>, Option<String>, Option<String>);
    let question = bounded_select(&format!("ID, USER, COMMAND, STATE FROM {table} LIMIT {SESSIONS_MAX}"));
    let rows: Vec<Row> = conn.query(question).await?;
    let text = Option::unwrap_or_default;
    let line = |(id, user, command, state): Row| Line {
        id,
        user: text(user),
        command: text(command),
        state: text(state),
    };
    Ok(rows.into_iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;

    fn sampler() -> SessionStates {
        let opts = mysql_async::Opts::from_url("mysql://root@db1.invalid:1/").unwrap();
        let own = OwnConnections::default();
        own.add(9);
        let sql = Sql::new(&opts, Stop::new());
        SessionStates::new(sql, own, RowLockActivity::default(), SessionTally::default())
    }

    fn line(id: u64, command: &str) -> Line {
        Line { id, user: "app".to_string(), command: command.to_string(), state: String::new() }
    }

    #[test]
    fn snapshots_sessions_in_a_statement_and_clients_add_up_without_our_own() {
        let mut sampler = sampler();
        let lines = [line(1, "Query"), line(2, "Sleep"), line(9, "Query")];
        assert_eq!(sampler.enter(&lines, Some(3), 1), 2);
        assert_eq!(sampler.enter(&lines, None, 2), 2);
        let sums = SessionSums { snapshots: 2, in_statement: 2, clients: 4 };
        assert_eq!((sampler.sums, sampler.tally.get()), (sums, sums));
        assert_eq!(sampler.unseen_in_a_row, 0);
    }

    #[test]
    fn sessions_that_may_not_be_seen_are_noticed() {
        let mut sampler = sampler();
        let lines = [line(1, "Query"), line(9, "Query")];
        assert_eq!(sampler.enter(&lines, Some(40), 1), 39);
        assert_eq!(sampler.enter(&lines, Some(3), 2), 2, "one that has just come");
        assert_eq!(sampler.unseen_in_a_row, 0);
        for at in 0..3 {
            sampler.enter(&lines, Some(40), at);
        }
        assert_eq!(sampler.unseen_in_a_row, UNSEEN_IN_A_ROW_MIN);
    }
}
