//! What is asked of a server about replication, and what it was found to know.

use mysql_async::{Error, Row};

use super::channel::Channel;
use super::state::ReplicationState;
use super::workers::Workers;
use crate::own_statements::ControlConnection;
use crate::samplers::status::text_of;
use crate::sql::is_not_for_us;

/// A statement that the server's language does not have.
const SYNTAX: u16 = 1064;
/// The first that a server understands; MariaDB shows named connections only in the first.
const OF_REPLICA: [&str; 3] = ["SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"];
const OF_BINARY_LOG: [&str; 2] = ["SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"];
const OF_REPLICAS: &str =
    "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'";

/// A question of which a server understands one form at most.
#[derive(Debug, Default)]
struct Question {
    form: usize,
    /// It was understood once, so that nothing else need be tried.
    is_known: bool,
    is_refused: bool,
}

impl Question {
    /// The answer to the first of `forms` that the server understands; `None` where it refuses, or understands none.
    async fn ask(
        &mut self,
        conn: &mut ControlConnection<'_>,
        forms: &[&str],
        refused: &mut Vec<String>,
        what: &str,
    ) -> Result<Option<Vec<Row>>, Error> {
        while let Some(form) = forms.get(self.form).filter(|_| !self.is_refused) {
            match conn.query(*form).await {
                Ok(rows) => {
                    self.is_known = true;
                    return Ok(Some(rows));
                }
                Err(Error::Server(error)) if error.code == SYNTAX && !self.is_known => self.form += 1,
                Err(Error::Server(error)) if is_not_for_us(error.code) => {
                    refused.push(format!("{what}: {} (error {}); {GRANT}", error.message, error.code));
                    self.is_refused = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

const GRANT: &str =
    "GRANT REPLICATION CLIENT ON *.*, on MariaDB 10.5 and later SLAVE MONITOR and BINLOG MONITOR";

#[derive(Debug, Default)]
pub(super) struct Questions {
    of_replica: Question,
    of_binary_log: Question,
    /// Whether a binary log is written; asked once.
    writes_log: Option<bool>,
    /// How replicas are counted, once that was found out; none where it is not granted.
    of_replicas: Option<Option<&'static str>>,
    workers: Workers,
}

impl Questions {
    /// Nothing of it is granted.
    pub(super) fn is_refused(&self) -> bool {
        let no_log = self.writes_log == Some(false) || self.of_binary_log.is_refused;
        self.of_replica.is_refused && no_log
    }

    /// Its connections to sources.
    pub(super) async fn channels(&mut self, conn: &mut ControlConnection<'_>) -> Result<Vec<Channel>, Error> {
        self.channels_or_why(conn, &mut Vec::new()).await
    }

    async fn channels_or_why(
        &mut self,
        conn: &mut ControlConnection<'_>,
        refused: &mut Vec<String>,
    ) -> Result<Vec<Channel>, Error> {
        let rows = self.of_replica.ask(conn, &OF_REPLICA, refused, "what it replicates").await?;
        Ok(rows.iter().flatten().map(channel).collect())
    }

    pub(super) async fn ask(&mut self, conn: &mut ControlConnection<'_>) -> Result<ReplicationState, Error> {
        let mut found = ReplicationState::default();
        found.channels = self.channels_or_why(conn, &mut found.refused).await?;
        if !found.channels.is_empty() {
            found.workers = self.workers.ask(conn).await?;
        }
        if !self.writes_log(conn).await? {
            return Ok(found);
        }
        found.replicas = self.replicas(conn, &mut found.refused).await?;
        if found.replicas.is_some_and(|replicas| replicas > 0) {
            let refused = &mut found.refused;
            let what = "the position of its binary log";
            let rows = self.of_binary_log.ask(conn, &OF_BINARY_LOG, refused, what).await?;
            let position = |row: &Row| text_of(row, 1).and_then(|text| text.parse().ok());
            found.binary_log_pos = rows.iter().flatten().next().and_then(position);
        }
        Ok(found)
    }

    async fn writes_log(&mut self, conn: &mut ControlConnection<'_>) -> Result<bool, Error> {
        if let Some(writes_log) = self.writes_log {
            return Ok(writes_log);
        }
        let answer: Option<Option<String>> = conn.query_first("SELECT @@log_bin").await?;
        let writes_log = answer.flatten().is_some_and(|value| value == "1");
        self.writes_log = Some(writes_log);
        Ok(writes_log)
    }

    /// How many connections fetch the binary log.
    async fn replicas(
        &mut self,
        conn: &mut ControlConnection<'_>,
        refused: &mut Vec<String>,
    ) -> Result<Option<u64>, Error> {
        if self.of_replicas.is_none() {
            self.of_replicas = match shows_all_connections(conn).await? {
                true => Some(Some(OF_REPLICAS)),
                false => {
                    refused.push("how many replicas fetch its binary log: GRANT PROCESS ON *.*".to_string());
                    Some(None)
                }
            };
        }
        match self.of_replicas.flatten() {
            Some(question) => conn.query_first(question).await,
            None => Ok(None),
        }
    }
}

/// Whether the process list is of all connections, and not only of our user's: it needs the same privilege as InnoDB's status does.
async fn shows_all_connections(conn: &mut ControlConnection<'_>) -> Result<bool, Error> {
    match conn.query_drop("SHOW ENGINE INNODB STATUS").await {
        Ok(()) => Ok(true),
        Err(Error::Server(error)) if is_not_for_us(error.code) => Ok(false),
        Err(error) => Err(error),
    }
}

fn channel(row: &Row) -> Channel {
    let columns: Vec<_> = row.columns_ref().iter().map(|column| column.name_str()).collect();
    Channel::of(columns.iter().enumerate().map(|(place, name)| (name.as_ref(), text_of(row, place))))
}
