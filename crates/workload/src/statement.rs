//! Prepared statements of the bundled workloads.

use crate::workload::{Param, Protocol, Statement};

/// The row that was drawn.
pub(crate) const ROW: Param = Param::Drawn { slot: 0, plus: 0 };

/// Returns a prepared statement that keeps nothing of its answer.
pub(crate) fn statement(kind: &str, sql: &str, params: Vec<Param>) -> Statement {
    Statement {
        kind: kind.to_string(),
        sql: sql.to_string(),
        protocol: Protocol::Prepared,
        params,
        capture: None,
        local_rows: None,
    }
}
