//! The edges of a window: what was counted at its begin and at its end.

use tokio::runtime::Runtime;
use whyso_clock::monotonic_ns;
use whyso_server::Dsn;
use whyso_server::answers::{log_out, within};
use whyso_trace::Reading;
use whyso_watch::{SessionSums, Watcher};

use crate::Error;
use crate::runtime::GOODBYE_TIME_MAX;
use whyso_tracing::Sight;
use whyso_tracing::Tracing;

/// How many statements the server has executed.
const QUESTIONS: &str = "SHOW GLOBAL STATUS LIKE 'Questions'";

/// One edge of a window.
pub(super) struct Edge {
    pub(super) at_ns: i64,
    pub(super) read: Option<Reading>,
    pub(super) questions: u64,
    pub(super) sessions: SessionSums,
}

/// What takes a window's edges.
#[derive(Clone, Copy)]
pub(super) struct Edges<'a> {
    pub(super) tracing: Option<&'a Tracing>,
    pub(super) dsn: Option<&'a Dsn>,
    pub(super) watcher: &'a Watcher,
    pub(super) runtime: &'a Runtime,
}

impl Edges<'_> {
    pub(super) fn sees_requests(self) -> bool {
        self.tracing.is_some_and(|tracing| tracing.sight() == Sight::Requests)
    }

    pub(super) fn take(self) -> Result<Edge, Error> {
        let read = self.tracing.and_then(Tracing::edge);
        let questions = if self.sees_requests() { 0 } else { self.questions()? };
        let at_ns = read.as_ref().map_or_else(monotonic_ns, |read| read.at_ns);
        Ok(Edge { at_ns, read, questions, sessions: self.watcher.sessions() })
    }

    /// Statements that the server has executed since it started.
    fn questions(self) -> Result<u64, Error> {
        use mysql_async::prelude::Queryable;
        let Some(dsn) = self.dsn else { return Ok(0) };
        let _own = self.watcher.executes(&dsn.schema, &[QUESTIONS]);
        self.runtime.block_on(within(GOODBYE_TIME_MAX, dsn, "counting its statements", async {
            let mut conn = dsn.connect().await?;
            let row: Option<(String, u64)> = conn.query_first(QUESTIONS).await.map_err(connection_closed)?;
            log_out(conn).await;
            Ok(row.map_or(0, |(_, value)| value))
        }))
    }
}

fn connection_closed(error: mysql_async::Error) -> Error {
    Error::Failed(format!("the server closed the connection: {error}"))
}
