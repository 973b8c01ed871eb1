//! What each kind of statement does in the server: one execution, alone, before the load begins.
//!
//! The server counts rows for the session: read, sorted, entered into temporary tables. MariaDB from 10.1 and MySQL from 8.0.18 also
//! analyse an execution, which shows how many rows met no condition ([`analysis`]). Only statements that read rows are executed, in a read-only
//! transaction where the server has one.

mod analysis;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::time::timeout;
use whyso_model::{Missing, NotMeasured};
use whyso_record::run::StatementWork;
use whyso_server::Dsn;
use whyso_server::answers::log_out;
use whyso_workload::{Example, Workload};

/// Longest that one execution may take.
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest that all of them may take together.
const ALL_TIME_MAX: Duration = Duration::from_secs(15);
/// Kinds of statements that are executed.
const KINDS_MAX: usize = 64;

const COUNTERS: &str = "SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler\\_%' OR Variable_name IN ('Sort_rows', 'Select_full_join')";

/// What executions showed, and why one is missing.
#[derive(Debug, Default)]
pub(crate) struct Executions {
    pub(crate) work: Vec<StatementWork>,
    /// `None` where each kind was executed.
    pub(crate) not_measured: Option<NotMeasured>,
}

/// Executes one statement of each kind that only reads rows. Never fails: what can't be executed is left out.
pub(crate) async fn measure(dsn: &Dsn, workload: &Workload, seed: u64) -> Executions {
    let mut examples = workload.examples(seed);
    examples.truncate(KINDS_MAX);
    if examples.is_empty() {
        return Executions::default();
    }
    let executed = whyso_connect::caught(execute(dsn, workload, &examples)).await;
    executed.unwrap_or_else(|panic| Executions {
        not_measured: Some(not_measured("statements", &panic.to_string())),
        ..Executions::default()
    })
}

async fn execute(dsn: &Dsn, workload: &Workload, examples: &[Example]) -> Executions {
    let mut executions = Executions::default();
    match timeout(STATEMENT_TIME_MAX, dsn.connect()).await {
        Ok(Ok(mut conn)) => {
            prepare(&mut conn, workload).await;
            measure_all(dsn, conn, examples, &mut executions).await;
        }
        Ok(Err(error)) => executions.not_measured = Some(not_measured("statements", &error.to_string())),
        Err(_) => {
            executions.not_measured = Some(not_measured("statements", "the server did not let whyso log in"))
        }
    }
    executions
}

/// Makes the session what the load's are, and keeps it from writing. What fails here is missing from some servers, or fails for the load, too.
async fn prepare(conn: &mut Conn, workload: &Workload) {
    let own = ["SET SESSION query_cache_type = OFF", "START TRANSACTION READ ONLY"];
    for statement in workload.session.iter().map(String::as_str).chain(own) {
        let _ = timeout(STATEMENT_TIME_MAX, conn.query_drop(statement)).await;
    }
}

async fn measure_all(dsn: &Dsn, mut conn: Conn, examples: &[Example], executions: &mut Executions) {
    let begin = Instant::now();
    let id = conn.id();
    for example in examples {
        let why = if begin.elapsed() > ALL_TIME_MAX {
            format!("executing all kinds takes longer than {} s", ALL_TIME_MAX.as_secs())
        } else {
            match timeout(STATEMENT_TIME_MAX, measure_one(&mut conn, example)).await {
                Ok(Ok(work)) => {
                    executions.work.push(work);
                    continue;
                }
                // The others may succeed: a table may be missing that the load makes itself.
                Ok(Err(mysql_async::Error::Server(error))) => {
                    executions.not_measured = Some(not_measured(&example.kind, &error.message));
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => {
                    end_connection(dsn, id).await;
                    format!("one execution takes longer than {} s", STATEMENT_TIME_MAX.as_secs())
                }
            }
        };
        executions.not_measured = Some(not_measured(&example.kind, &why));
        return;
    }
    log_out(conn).await;
}

fn not_measured(what: &str, why: &str) -> NotMeasured {
    NotMeasured::new(Missing::Other, format!("what one execution of {what} does in the server"), why)
}

/// Ends a connection whose statement takes too long.
async fn end_connection(dsn: &Dsn, id: u32) {
    let _ = timeout(STATEMENT_TIME_MAX, async {
        if let Ok(mut other) = dsn.connect().await {
            let _ = other.query_drop(format!("KILL CONNECTION {id}")).await;
            log_out(other).await;
        }
    })
    .await;
}

async fn measure_one(conn: &mut Conn, example: &Example) -> Result<StatementWork, mysql_async::Error> {
    // The first execution fills the caches.
    conn.query_drop(&example.sql).await?;
    let first = counters(conn).await?;
    let before = counters(conn).await?;
    let begin = Instant::now();
    let rows: Vec<mysql_async::Row> = conn.query(&example.sql).await?;
    let seconds = begin.elapsed().as_secs_f64();
    let after = counters(conn).await?;
    let analysed = analysis::rows_rejected(conn, &example.sql).await?;
    let counted = SessionCounters { first, before, after };
    // MySQL counts rows of temporary tables as ordinary ones.
    let in_temporary = ["Handler_tmp_write", "Handler_tmp_update", "Handler_write", "Handler_update"];
    let read = ["Handler_read_next", "Handler_read_prev", "Handler_read_rnd_next", "Handler_read_key"];
    let (rows_read, rows_sent) = (counted.sum(&read), rows.len() as u64);
    // Rows that are neither added up nor put together are sent, or met no condition. A join without an index compares nearly all in vain.
    let is_full_join = counted.of("Select_full_join") > 0;
    let is_in_vain = is_full_join || !puts_rows_together(&example.sql);
    let not_sent = || is_in_vain.then(|| rows_read.saturating_sub(rows_sent));
    Ok(StatementWork {
        kind: example.kind.clone(),
        seconds,
        rows_sent,
        rows_read,
        rows_sorted: counted.sum(&["Sort_rows"]),
        rows_in_temporary_tables: counted.sum(&in_temporary),
        rows_rejected: analysed.or_else(not_sent),
    })
}

/// Whether a statement may send fewer rows than meet its conditions, as far as its text shows.
fn puts_rows_together(sql: &str) -> bool {
    const PARTS: [&str; 12] = [
        "count(",
        "sum(",
        "avg(",
        "min(",
        "max(",
        "group_concat(",
        "bit_",
        "std",
        "var",
        "group by",
        "distinct",
        "limit",
    ];
    let text = sql.to_ascii_lowercase();
    PARTS.iter().any(|part| text.contains(part))
}

async fn counters(conn: &mut Conn) -> Result<BTreeMap<String, u64>, mysql_async::Error> {
    let rows: Vec<(String, String)> = conn.query(COUNTERS).await?;
    Ok(rows.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect())
}

/// Counters of a session around a statement. Reading them counts, too: by as much as between the first two readings.
struct SessionCounters {
    first: BTreeMap<String, u64>,
    before: BTreeMap<String, u64>,
    after: BTreeMap<String, u64>,
}

impl SessionCounters {
    fn sum(&self, names: &[&str]) -> u64 {
        names.iter().map(|name| self.of(name)).sum()
    }

    fn of(&self, name: &str) -> u64 {
        let value = |counters: &BTreeMap<String, u64>| counters.get(name).copied().unwrap_or(0);
        let [first, before, after] = [&self.first, &self.before, &self.after].map(value);
        after.saturating_sub(before).saturating_sub(before.saturating_sub(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reading_the_counters_counts_is_subtracted() {
        let counters = |value| BTreeMap::from([("Handler_read_rnd_next".to_string(), value)]);
        let counted = SessionCounters { first: counters(100), before: counters(150), after: counters(260) };
        assert_eq!(counted.of("Handler_read_rnd_next"), 60);
        assert_eq!(counted.of("Sort_rows"), 0);
    }

    #[test]
    fn statements_that_add_up_or_cut_off_are_recognised_by_their_text() {
        assert!(!puts_rows_together("SELECT id FROM t WHERE pad = 5 AND id <= 1000"));
        for sql in ["SELECT COUNT(*) FROM t", "SELECT DISTINCT a FROM t", "SELECT a FROM t LIMIT 5"] {
            assert!(puts_rows_together(sql), "{sql}");
        }
    }
}
