//! What a finding is based on.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::SeriesName;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Evidence {
    /// A result of these levels (by index), such as "transactions_per_s", "cpu".
    Levels {
        quantity: String,
        levels: Vec<u32>,
    },
    Series {
        series: SeriesName,
        begin_ns: i64,
        end_ns: i64,
    },
    /// A fact of `run.json`, such as "server.variables.innodb_flush_log_at_trx_commit".
    Fact {
        path: String,
        value: String,
    },
}
