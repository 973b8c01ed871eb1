//! Waits for InnoDB's locks: from `performance_schema.data_lock_waits` where the server has it, otherwise from
//! `information_schema.INNODB_LOCK_WAITS` and its two companions, which show one moment: InnoDB fills the three together, and again only
//! when nobody asked for them for 0.1 s.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mysql_async::Error;

use super::text::{statement, unquoted};
use crate::own_statements::ControlConnection;
use crate::sql::bounded_select;
use whyso_model::{LockKind, LockWait};

/// A queue with at most this many waiters is read whole, each waiter with all before it. Of longer ones only those that hold a lock are
/// read.
const WHOLE_QUEUE_MAX: usize = 64;

/// Rows of a table that a snapshot reads, at most.
const ROWS_MAX: usize = 4096;

/// Where a server shows row locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowSource {
    DataLocks,
    InnodbLocks,
}

impl RowSource {
    pub(super) const ALL: [RowSource; 2] = [RowSource::DataLocks, RowSource::InnodbLocks];

    /// Every connection that waits for a lock of InnoDB.
    ///
    /// # Errors
    /// The server does not have these tables, the user may not read them, or the connection is gone.
    pub(super) async fn read(self, conn: &mut ControlConnection<'_>) -> Result<Vec<LockWait>, Error> {
        match self {
            RowSource::DataLocks => data_locks(conn).await,
            RowSource::InnodbLocks => innodb_locks(conn).await,
        }
    }
}

/// One pair of a waiter and someone before it.
struct Pair {
    requested: String,
    /// The lock that is in the way.
    held: String,
    wait: LockWait,
}

async fn data_locks(conn: &mut ControlConnection<'_>) -> Result<Vec<LockWait>, Error> {
    let question = bounded_select(&format!(
        "w.REQUESTING_ENGINE_LOCK_ID, w.BLOCKING_ENGINE_LOCK_ID, waiter.PROCESSLIST_ID, blocker.PROCESSLIST_ID, \
         CONCAT_WS('.', l.OBJECT_SCHEMA, l.OBJECT_NAME), l.INDEX_NAME, l.LOCK_MODE, waiter.PROCESSLIST_TIME, \
         waiter.PROCESSLIST_INFO, COALESCE(blocker.PROCESSLIST_INFO, latest.SQL_TEXT) \
         FROM performance_schema.data_lock_waits w \
         JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID AND l.ENGINE = w.ENGINE \
         JOIN performance_schema.threads waiter ON waiter.THREAD_ID = w.REQUESTING_THREAD_ID \
         LEFT JOIN performance_schema.threads blocker ON blocker.THREAD_ID = w.BLOCKING_THREAD_ID \
         LEFT JOIN performance_schema.events_statements_current latest \
         ON latest.THREAD_ID = w.BLOCKING_THREAD_ID AND latest.NESTING_EVENT_LEVEL = 0 \
         WHERE waiter.PROCESSLIST_ID IS NOT NULL LIMIT {ROWS_MAX}"
    ));
    let rows: Vec<mysql_async::Row> = conn.query(question).await?;
    let mut pairs = Vec::new();
    for mut row in rows {
        let mut text = |at: usize| row.take_opt::<Option<String>, usize>(at).and_then(Result::ok).flatten();
        let (Some(requested), Some(held)) = (text(0), text(1)) else { continue };
        let Some(waiting) = text(2).and_then(|id| id.parse().ok()) else { continue };
        let wait = LockWait {
            kind: LockKind::Row,
            waiting,
            blocking: text(3).and_then(|id| id.parse().ok()),
            object: text(4).unwrap_or_default(),
            index: text(5).unwrap_or_default(),
            mode: text(6).unwrap_or_default(),
            waited_s: text(7).and_then(|seconds| seconds.parse().ok()).unwrap_or(0),
            statement: statement(text(8)),
            blocking_statement: statement(text(9)),
        };
        pairs.push(Pair { requested, held, wait });
    }
    Ok(one_per_waiter(pairs))
}

/// Of each waiter the pair with the one that holds the lock; of those that wait for others who wait, the first pair.
fn one_per_waiter(pairs: Vec<Pair>) -> Vec<LockWait> {
    let requested: BTreeSet<String> = pairs.iter().map(|pair| pair.requested.clone()).collect();
    let mut waits: BTreeMap<u64, (bool, LockWait)> = BTreeMap::new();
    for pair in pairs {
        let holds = !requested.contains(&pair.held);
        let has_better = waits.get(&pair.wait.waiting).is_some_and(|(holds_lock, _)| *holds_lock || !holds);
        if !has_better {
            waits.insert(pair.wait.waiting, (holds, pair.wait));
        }
    }
    waits.into_values().map(|(_, wait)| wait).collect()
}

/// A transaction as `INNODB_TRX` has it.
struct Transaction {
    id: String,
    /// The lock that it waits for.
    requested: Option<String>,
    connection: u64,
    waited_s: u64,
    query: Option<String>,
}

async fn innodb_locks(conn: &mut ControlConnection<'_>) -> Result<Vec<LockWait>, Error> {
    let transactions = transactions(conn).await?;
    let waiting: Vec<&Transaction> =
        transactions.iter().filter(|transaction| transaction.requested.is_some()).collect();
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    type Lock = (String, Option<String>, Option<String>, Option<String>);
    let question = bounded_select(&format!(
        "lock_id, lock_table, lock_index, lock_mode FROM information_schema.INNODB_LOCKS LIMIT {ROWS_MAX}"
    ));
    let locks: Vec<Lock> = conn.query(question).await?;
    let locks: HashMap<&str, &Lock> = locks.iter().map(|lock| (lock.0.as_str(), lock)).collect();
    let requested: Vec<&str> =
        waiting.iter().filter_map(|transaction| transaction.requested.as_deref()).collect();
    let question = bounded_select(&format!(
        "CAST(requesting_trx_id AS CHAR), CAST(blocking_trx_id AS CHAR), blocking_lock_id \
         FROM information_schema.INNODB_LOCK_WAITS{} LIMIT {ROWS_MAX}",
        those_that_hold(&requested)
    ));
    let blocked: Vec<(String, String, String)> = conn.query(question).await?;

    let by_id: HashMap<&str, &Transaction> =
        transactions.iter().map(|transaction| (transaction.id.as_str(), transaction)).collect();
    let mut pairs = Vec::new();
    for transaction in waiting {
        let requested = transaction.requested.clone().unwrap_or_default();
        let (object, index, mode) = locks.get(requested.as_str()).map_or(Default::default(), |lock| {
            let described = |text: &Option<String>| unquoted(text.as_deref().unwrap_or_default());
            (described(&lock.1), described(&lock.2), described(&lock.3))
        });
        let wait = LockWait {
            kind: LockKind::Row,
            waiting: transaction.connection,
            blocking: None,
            object,
            index,
            mode,
            waited_s: transaction.waited_s,
            statement: statement(transaction.query.clone()),
            blocking_statement: None,
        };
        let before = pairs.len();
        for (_, blocking, held) in blocked.iter().filter(|(requesting, ..)| *requesting == transaction.id) {
            let blocking = by_id.get(blocking.as_str());
            let wait = LockWait {
                blocking: blocking.map(|other| other.connection),
                blocking_statement: blocking.and_then(|other| statement(other.query.clone())),
                ..wait.clone()
            };
            pairs.push(Pair { requested: requested.clone(), held: held.clone(), wait });
        }
        if pairs.len() == before {
            pairs.push(Pair { requested: requested.clone(), held: requested, wait });
        }
    }
    Ok(one_per_waiter(pairs))
}

async fn transactions(conn: &mut ControlConnection<'_>) -> Result<Vec<Transaction>, Error> {
    type Row = (String, String, Option<String>, u64, Option<u64>, Option<String>);
    let question = bounded_select(&format!(
        "CAST(trx_id AS CHAR), trx_state, trx_requested_lock_id, trx_mysql_thread_id, \
         CAST(GREATEST(TIMESTAMPDIFF(SECOND, trx_wait_started, NOW()), 0) AS UNSIGNED), trx_query \
         FROM information_schema.INNODB_TRX LIMIT {ROWS_MAX}"
    ));
    let rows: Vec<Row> = conn.query(question).await?;
    let of_row = |(id, state, requested, connection, waited_s, query): Row| Transaction {
        id,
        requested: requested.filter(|_| state == "LOCK WAIT"),
        connection,
        waited_s: waited_s.unwrap_or(0),
        query,
    };
    Ok(rows.into_iter().map(of_row).collect())
}

/// Leaves out those in a long queue who are only before others: the whole of it grows with the square of its length.
fn those_that_hold(requested: &[&str]) -> String {
    let is_plain = |id: &&&str| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b':');
    if requested.len() <= WHOLE_QUEUE_MAX {
        return String::new();
    }
    let quoted: Vec<String> = requested.iter().filter(is_plain).map(|id| format!("'{id}'")).collect();
    match quoted.is_empty() {
        true => String::new(),
        false => format!(" WHERE blocking_lock_id NOT IN ({})", quoted.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(waiting: u64, requested: &str, blocking: u64, held: &str) -> Pair {
        let wait = LockWait {
            kind: LockKind::Row,
            waiting,
            blocking: Some(blocking),
            object: "t.accounts".to_string(),
            index: "PRIMARY".to_string(),
            mode: "X".to_string(),
            waited_s: 0,
            statement: None,
            blocking_statement: None,
        };
        Pair { requested: requested.to_string(), held: held.to_string(), wait }
    }

    #[test]
    fn of_a_queue_each_waiter_is_recorded_once_with_the_one_that_holds_the_lock() {
        let waits = one_per_waiter(vec![
            pair(7, "25:5", 6, "24:5"),
            pair(7, "25:5", 5, "23:5"),
            pair(6, "24:5", 5, "23:5"),
            pair(9, "30:8", 7, "25:5"),
        ]);
        let pairs: Vec<(u64, Option<u64>)> = waits.iter().map(|wait| (wait.waiting, wait.blocking)).collect();
        assert_eq!(pairs, [(6, Some(5)), (7, Some(5)), (9, Some(7))]);
    }

    #[test]
    fn only_of_a_long_queue_those_in_between_are_left_out_and_no_odd_number_is_asked_for() {
        assert_eq!(those_that_hold(&["1:2"; WHOLE_QUEUE_MAX]), "");
        let mut long = vec!["1:2"; WHOLE_QUEUE_MAX];
        long.push("') OR 1=1 --");
        let asked = those_that_hold(&long);
        assert!(
            asked.starts_with(" WHERE blocking_lock_id NOT IN ('1:2', ") && !asked.contains("OR"),
            "{asked}"
        );
    }
}
