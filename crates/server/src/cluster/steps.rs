//! What the kinds of clusters need when they start.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Value};

use super::kind::Role;
use crate::answers::{answered, log_out};
use crate::error::{Error, Result, refused};
use crate::throwaway::{NodeSpec, ThrowAway};

/// A node that is to be started.
pub(super) struct NodePlan {
    pub(super) role: Role,
    pub(super) node: NodeSpec,
}

/// Executes statements on a node.
pub(super) async fn execute(server: &ThrowAway, doing: &str, statements: &[String]) -> Result<()> {
    let dsn = server.dsn();
    let mut conn: Conn = dsn.connect_without_schema().await?;
    answered(&dsn, doing, async {
        for sql in statements {
            conn.query_drop(sql).await.map_err(refused(doing))?;
        }
        Ok::<_, Error>(())
    })
    .await?;
    log_out(conn).await;
    Ok(())
}

/// A text as a literal of SQL.
pub(super) fn quoted(text: &str) -> String {
    Value::Bytes(text.as_bytes().to_vec()).as_sql(true)
}
