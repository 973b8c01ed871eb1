//! Sessions of a server that others load: the plan of what one executes, and the end of that statement.
//!
//! A plan is asked for by `EXPLAIN`, never by `ANALYZE`: nothing is executed. A statement is only ended after the server was asked once
//! more whether the session still executes it.

mod explain;
mod kill;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::error::{Result, refused};

pub use explain::{Plan, explain};
pub use kill::kill_statement;

/// A session that executes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The server's number of the connection.
    pub connection: u64,
    /// The default schema; empty without one.
    pub schema: String,
    /// As it was sent.
    pub statement: String,
}

/// Sessions that execute something now, except for this one.
async fn sessions(conn: &mut Conn) -> Result<Vec<Session>> {
    let rows: Vec<mysql_async::Row> =
        conn.query("SHOW FULL PROCESSLIST").await.map_err(refused("show its process list"))?;
    let own = u64::from(conn.id());
    let of_row = |mut row: mysql_async::Row| {
        Some(Session {
            connection: row.take::<u64, _>("Id")?,
            schema: row.take::<Option<String>, _>("db")?.unwrap_or_default(),
            statement: row.take::<Option<String>, _>("Info")??,
        })
    };
    Ok(rows.into_iter().filter_map(of_row).filter(|session| session.connection != own).collect())
}
