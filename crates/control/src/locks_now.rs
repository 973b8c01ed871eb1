//! Who waits for whom on a server now.

use std::time::{Duration, Instant};

use whyso_connect::caught;
use whyso_explain::locks::{WaitingTree, waiting_trees};
use whyso_model::LockWait;
use whyso_server::answers::log_out;
use whyso_watch::lock_waits;

use crate::login::AskPassword;
use crate::runtime::{GOODBYE_TIME_MAX, runtime};
use crate::{Error, login};

/// How long a server may take to answer who waits.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Who waits for whom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocksNow {
    /// When the snapshot was asked for, as "2026-01-31 23:59:59 UTC".
    pub at: String,
    /// How long the server took for it.
    pub took_ms: f64,
    /// Why it failed; then there are no trees.
    pub failed: Option<String>,
    /// Connections that InnoDB's status counts as waiting for a row; `None` if the server does not count them.
    pub row_waits_counted: Option<u64>,
    pub trees: Vec<WaitingTree>,
    /// What the server does not report, and what would change that; one sentence each.
    pub not_reported: Vec<whyso_model::NotMeasured>,
}

/// Who waits for whom on a server, wherever it is, now.
///
/// # Errors
/// The server can't be reached. A server that does not answer within ten seconds is no error: [`LocksNow::failed`] has the reason.
pub fn locks_now(dsn: &str, ask_password: &AskPassword) -> Result<LocksNow, Error> {
    let runtime = runtime()?;
    let mut dsn = login::neutral(dsn)?;
    let asked: Result<LocksNow, Error> = runtime.block_on(async {
        let mut conn = login::log_in(&mut dsn, ask_password).await?;
        let (at, began) = (jiff::Timestamp::now(), Instant::now());
        let asked = tokio::time::timeout(ANSWER_TIME_MAX, caught(lock_waits(&mut conn))).await;
        let mut now = LocksNow {
            at: at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
            took_ms: began.elapsed().as_secs_f64() * 1e3,
            ..LocksNow::default()
        };
        match asked {
            Ok(Ok(Ok(snapshot))) => {
                (now.trees, now.not_reported) = (waiting_trees(&snapshot.waits), snapshot.absent);
            }
            Ok(Ok(Err(error))) => now.failed = Some(format!("the server can't say who waits: {error}")),
            Ok(Err(panic)) => return Err(Error::Failed(format!("the server can't say who waits: {panic}"))),
            Err(_) => {
                now.failed =
                    Some(format!("the server did not say within {} s who waits", ANSWER_TIME_MAX.as_secs()));
                // What is still being answered there takes this connection's next question for its own.
                drop(conn);
                conn = dsn.connect().await?;
            }
        }
        now.row_waits_counted = row_waits_counted(&mut conn).await;
        log_out(conn).await;
        Ok(now)
    });
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    asked
}

/// Connections that InnoDB counts as waiting for a row now; `None` where the server does not tell in time.
async fn row_waits_counted(conn: &mut mysql_async::Conn) -> Option<u64> {
    use mysql_async::prelude::Queryable;
    let question = format!("SHOW GLOBAL STATUS LIKE '{}'", LockWait::ROW_WAITS_NOW);
    let asked = conn.query_first::<(String, u64), _>(question);
    let row = tokio::time::timeout(GOODBYE_TIME_MAX, caught(asked)).await.ok()?.ok()?.ok()??;
    Some(row.1)
}
