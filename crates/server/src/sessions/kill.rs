//! The end of one statement.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::{Session, sessions};
use crate::error::{Error, Result, refused};

/// Ends the statement that a connection executes, if it still `is_wanted`. The connection stays. Returns the statement.
///
/// No server can be asked to end one statement and no other: what follows within the same millisecond may be hit.
///
/// # Errors
/// The connection has gone, it executes something else by now, or the server refuses.
pub async fn kill_statement(
    conn: &mut Conn,
    connection: u64,
    is_wanted: &(dyn Fn(&Session) -> bool + Sync),
) -> Result<Session> {
    let found = sessions(conn).await?.into_iter().find(|session| session.connection == connection);
    let Some(session) = found.filter(|session| is_wanted(session)) else {
        let doing = format!("end the statement of connection {connection}");
        return Err(Error::Session { doing, why: "the connection does not execute it any more".to_string() });
    };
    let doing = format!("end the statement of connection {connection}");
    conn.query_drop(format!("KILL QUERY {connection}")).await.map_err(refused(doing))?;
    Ok(session)
}
