//! Bounds on waits for a server. No question of whyso's own waits forever, whatever a server does after it let whyso
//! log in. No answer ends more than the work on its connection.

use std::future::Future;
use std::time::Duration;

use mysql_async::Conn;
use tokio::time::timeout;
use whyso_connect::caught;

use crate::dsn::Dsn;
use crate::error::Error;

/// A server may take this many times the DSN's `connect_timeout` for a few short questions.
const CONNECT_TIMES: u32 = 6;

/// A good-bye is one short message.
const LOG_OUT_TIME_MAX: Duration = Duration::from_secs(1);

/// The slowest server that data sets are for loads as many rows over one connection.
const ROWS_PER_S_MIN: u64 = 100;

/// Longest that a statement may take that fills tables, or reads all of one.
pub const FILL_TIME_MAX: Duration = Duration::from_secs(3600);

/// Returns how long a server may take for a few short questions.
pub fn time_max(dsn: &Dsn) -> Duration {
    dsn.connect_timeout * CONNECT_TIMES
}

/// Does what takes a few short questions. `doing`: what the user waits for, such as "looking for the schema".
///
/// # Errors
/// The work's own, [`Error::NoAnswer`] after [`time_max`], and [`Error::NoProtocol`] if the driver can't continue with an answer.
pub async fn answered<T, E: From<Error>>(
    dsn: &Dsn,
    doing: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    within(time_max(dsn), dsn, doing, work).await
}

/// The same with a bound of its own.
///
/// # Errors
/// As for [`answered`].
pub async fn within<T, E: From<Error>>(
    bound: Duration,
    dsn: &Dsn,
    doing: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let (endpoint, doing) = (dsn.endpoint(), doing.to_string());
    match timeout(bound, caught(work)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(why)) => Err(Error::NoProtocol { endpoint, doing, why }.into()),
        Err(_) => Err(Error::NoAnswer { endpoint, doing, seconds: bound.as_secs() }.into()),
    }
}

/// Ends a connection whose work is done; how it ends changes nothing.
pub async fn log_out(conn: Conn) {
    let _ = timeout(LOG_OUT_TIME_MAX, whyso_connect::disconnect(conn)).await;
}

/// How long a server may take to load or to index rows.
pub fn rows_time_max(dsn: &Dsn, rows: u64) -> Duration {
    time_max(dsn) + Duration::from_secs(rows / ROWS_PER_S_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_never_answers_ends_with_a_sentence() {
        let dsn = Dsn::resolve("mysql://u@db1:3306/shop?connect_timeout=2").unwrap();
        assert_eq!(time_max(&dsn), Duration::from_secs(12));
        let never = std::future::pending::<Result<(), Error>>();
        let bound = Duration::from_millis(20);
        let error = within(bound, &dsn, "looking for the schema", never).await.unwrap_err().to_string();
        for part in ["db1:3306", "within 0 s", "looking for the schema", "FLUSH TABLES WITH READ LOCK"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert_eq!(answered(&dsn, "asking", async { Ok::<_, Error>(5) }).await.unwrap(), 5);
    }
}
