//! Connections: which of the kernel's threads works for which, and what it executes, into the text table `connections`.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use whyso_record::data::TextRows;

use crate::digest::digest;
use crate::sampler::{Failure, Sampler};
use crate::sink::Batch;
use crate::sql::Sql;

/// A connection of the server that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The kernel's number of the thread that works for it now.
    pub tid: u32,
    /// The server's number of it.
    pub id: u64,
    /// What it executes, literals replaced by `?`; `None` where it waits for its client.
    pub statement: Option<String>,
}

/// MariaDB tells the kernel's number of a thread in its process list, MySQL in the Performance Schema; older servers nowhere.
const QUESTIONS: [&str; 2] = [
    "SELECT TID, ID, INFO FROM information_schema.PROCESSLIST WHERE TID IS NOT NULL",
    "SELECT THREAD_OS_ID, PROCESSLIST_ID, PROCESSLIST_INFO FROM performance_schema.threads \
     WHERE THREAD_OS_ID IS NOT NULL AND PROCESSLIST_ID IS NOT NULL",
];

/// Every connection with its thread; `None` where the server tells no threads.
///
/// # Errors
/// The server closed the connection, or the like; that it does not know a table or a column is none.
pub async fn connections(conn: &mut Conn) -> Result<Option<Vec<Connection>>, Error> {
    for question in QUESTIONS {
        let rows: Result<Vec<(u32, u64, Option<String>)>, Error> = conn.query(question).await;
        match rows {
            Ok(rows) => {
                let told = rows.into_iter().map(|(tid, id, text)| Connection {
                    tid,
                    id,
                    statement: text.map(|text| digest(&text)),
                });
                return Ok(Some(told.collect()));
            }
            Err(Error::Server(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

pub(crate) struct Connections {
    sql: Sql,
}

impl Connections {
    pub(crate) fn new(sql: Sql) -> Connections {
        Connections { sql }
    }
}

impl Sampler for Connections {
    fn source(&self) -> &'static str {
        "connections"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let Some(found) = self.sql.run(async |conn| connections(conn).await)? else {
            return Err(Failure::Absent(
                "which thread works for which connection: this server does not tell".to_string(),
            ));
        };
        let row = |one: Connection| vec![Some(one.tid.to_string()), Some(one.id.to_string()), one.statement];
        batch.sink.rows(TextRows {
            source: "connections".to_string(),
            t_ns: whyso_clock::monotonic_ns(),
            columns: ["tid", "connection", "statement"].map(str::to_string).to_vec(),
            rows: found.into_iter().map(row).collect(),
        });
        Ok(())
    }
}
