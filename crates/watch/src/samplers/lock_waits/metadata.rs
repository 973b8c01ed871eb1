//! Waits for the SQL layer's locks. The process list of any server shows who waits. The Performance Schema's table of metadata locks, or
//! MariaDB's plugin METADATA_LOCK_INFO, shows for what and for whom.

use std::collections::BTreeMap;

use mysql_async::Error;

use super::text::statement;
use crate::own_statements::ControlConnection;
use crate::sql::bounded_select;
use whyso_model::{LockKind, LockWait};

/// Waiting connections of a snapshot, at most.
const WAITERS_MAX: usize = 1000;
/// Rows of the tables of metadata locks, at most.
const ROWS_MAX: usize = 4096;

/// Where a server shows who holds metadata locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetadataSource {
    PerformanceSchema,
    Plugin,
}

impl MetadataSource {
    pub(super) const ALL: [MetadataSource; 2] = [MetadataSource::PerformanceSchema, MetadataSource::Plugin];
}

/// Every connection that waits for a lock of the SQL layer; what it waits for is not known yet.
pub(super) async fn waiters(conn: &mut ControlConnection<'_>) -> Result<Vec<LockWait>, Error> {
    type Row = (u64, String, Option<i64>, Option<String>);
    let question = bounded_select(&format!(
        "ID, STATE, TIME, INFO FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for %lock' \
         OR STATE IN ('Waiting for table flush', 'Table lock', 'User lock') LIMIT {WAITERS_MAX}"
    ));
    let rows: Vec<Row> = conn.query(question).await?;
    let wait = |(waiting, state, seconds, text): Row| LockWait {
        kind: kind_of(&state),
        waiting,
        blocking: None,
        object: String::new(),
        index: String::new(),
        mode: state.strip_prefix("Waiting for ").unwrap_or(&state).to_string(),
        waited_s: seconds.unwrap_or(0).max(0).unsigned_abs(),
        statement: statement(text),
        blocking_statement: None,
    };
    Ok(rows.into_iter().map(wait).collect())
}

fn kind_of(state: &str) -> LockKind {
    let state = state.to_lowercase();
    if state.contains("metadata") {
        LockKind::Metadata
    } else if state.contains("table") {
        LockKind::Table
    } else if state.starts_with("user lock") {
        LockKind::User
    } else {
        LockKind::Other
    }
}

/// Adds what is waited for, and who holds it.
///
/// # Errors
/// The server does not have this source, the user may not read it, or the connection is gone.
pub(super) async fn learn(
    waits: &mut [LockWait],
    source: MetadataSource,
    conn: &mut ControlConnection<'_>,
) -> Result<(), Error> {
    match source {
        MetadataSource::PerformanceSchema => {
            let pairs = pending(conn).await?;
            learn_from_pairs(waits, &pairs);
        }
        MetadataSource::Plugin => {
            let held = read_held_locks(conn).await?;
            learn_from_held(waits, &held);
        }
    }
    Ok(())
}

/// A lock that is waited for, with one that another connection holds on the same object.
#[derive(Clone, Debug)]
struct Pair {
    waiting: u64,
    object: String,
    wanted: String,
    holder: u64,
    holds: String,
    statement: Option<String>,
}

async fn pending(conn: &mut ControlConnection<'_>) -> Result<Vec<Pair>, Error> {
    let question = bounded_select(&format!(
        "waiter.PROCESSLIST_ID, COALESCE(CONCAT_WS('.', NULLIF(w.OBJECT_SCHEMA, ''), NULLIF(w.OBJECT_NAME, '')), ''), \
         w.LOCK_TYPE, holder.PROCESSLIST_ID, h.LOCK_TYPE, COALESCE(holder.PROCESSLIST_INFO, latest.SQL_TEXT) \
         FROM performance_schema.metadata_locks w \
         JOIN performance_schema.metadata_locks h ON h.OBJECT_TYPE = w.OBJECT_TYPE \
         AND h.OBJECT_SCHEMA <=> w.OBJECT_SCHEMA AND h.OBJECT_NAME <=> w.OBJECT_NAME \
         AND h.OWNER_THREAD_ID <> w.OWNER_THREAD_ID AND h.LOCK_STATUS = 'GRANTED' \
         JOIN performance_schema.threads waiter ON waiter.THREAD_ID = w.OWNER_THREAD_ID \
         JOIN performance_schema.threads holder ON holder.THREAD_ID = h.OWNER_THREAD_ID \
         LEFT JOIN performance_schema.events_statements_current latest \
         ON latest.THREAD_ID = h.OWNER_THREAD_ID AND latest.NESTING_EVENT_LEVEL = 0 \
         WHERE w.LOCK_STATUS = 'PENDING' AND waiter.PROCESSLIST_ID IS NOT NULL \
         AND holder.PROCESSLIST_ID IS NOT NULL LIMIT {ROWS_MAX}"
    ));
    type Row = (u64, String, String, u64, String, Option<String>);
    let rows: Vec<Row> = conn.query(question).await?;
    let pair = |(waiting, object, wanted, holder, holds, text): Row| Pair {
        waiting,
        object,
        wanted,
        holder,
        holds,
        statement: statement(text),
    };
    Ok(rows.into_iter().map(pair).collect())
}

/// An exclusive lock waits for everyone that holds any; a shared one for the connection that holds an exclusive lock or gets one next.
fn learn_from_pairs(waits: &mut [LockWait], pairs: &[Pair]) {
    let wants_all = |id: u64, object: &str| {
        pairs.iter().any(|pair| pair.waiting == id && pair.object == object && is_exclusive(&pair.wanted))
    };
    for wait in waits.iter_mut().filter(|wait| matches!(wait.kind, LockKind::Metadata | LockKind::User)) {
        let of_waiter = || pairs.iter().filter(|pair| pair.waiting == wait.waiting);
        let rank = |pair: &&Pair| match is_exclusive(&pair.wanted) {
            true => u8::from(of_waiter_waits(pairs, pair.holder)),
            false => match (wants_all(pair.holder, &pair.object), is_exclusive(&pair.holds)) {
                (_, true) => 0,
                (true, false) => 1,
                (false, false) => 2,
            },
        };
        let Some(best) = of_waiter().min_by_key(rank) else { continue };
        // A lock's name that a statement made up is a literal, which may be anybody's secret.
        if wait.kind == LockKind::Metadata {
            wait.object.clone_from(&best.object);
            wait.mode.clone_from(&best.wanted);
        }
        wait.blocking = Some(best.holder);
        wait.blocking_statement.clone_from(&best.statement);
    }
}

fn of_waiter_waits(pairs: &[Pair], connection: u64) -> bool {
    pairs.iter().any(|pair| pair.waiting == connection)
}

fn is_exclusive(mode: &str) -> bool {
    mode.eq_ignore_ascii_case("EXCLUSIVE") || mode.eq_ignore_ascii_case("SHARED_NO_READ_WRITE")
}

/// A metadata lock on a table, by the plugin, which shows only locks that are held.
struct HeldLock {
    connection: u64,
    schema: String,
    table: String,
    statement: Option<String>,
}

async fn read_held_locks(conn: &mut ControlConnection<'_>) -> Result<Vec<HeldLock>, Error> {
    let question = bounded_select(&format!(
        "i.THREAD_ID, i.TABLE_SCHEMA, i.TABLE_NAME, p.INFO FROM information_schema.METADATA_LOCK_INFO i \
         LEFT JOIN information_schema.PROCESSLIST p ON p.ID = i.THREAD_ID WHERE i.TABLE_NAME <> '' LIMIT {ROWS_MAX}"
    ));
    type Row = (u64, String, String, Option<String>);
    let rows: Vec<Row> = conn.query(question).await?;
    let held = |(connection, schema, table, text): Row| HeldLock {
        connection,
        schema,
        table,
        statement: statement(text),
    };
    Ok(rows.into_iter().map(held).collect())
}

/// The plugin does not show what is waited for: it is a locked table that the waiting statement names, where there is one such.
fn learn_from_held(waits: &mut [LockWait], held: &[HeldLock]) {
    let waiting: Vec<u64> = waits.iter().map(|wait| wait.waiting).collect();
    for wait in waits.iter_mut().filter(|wait| wait.kind == LockKind::Metadata) {
        let Some(text) = wait.statement.as_deref() else { continue };
        let mut named: BTreeMap<(&str, &str), Vec<&HeldLock>> = BTreeMap::new();
        for lock in held.iter().filter(|lock| lock.connection != wait.waiting && names(text, &lock.table)) {
            named.entry((&lock.schema, &lock.table)).or_default().push(lock);
        }
        if named.len() != 1 {
            continue;
        }
        let Some(((schema, table), holders)) = named.pop_first() else { continue };
        wait.object = format!("{schema}.{table}");
        if let Some(holder) = holders.iter().min_by_key(|holder| waiting.contains(&holder.connection)) {
            wait.blocking = Some(holder.connection);
            wait.blocking_statement.clone_from(&holder.statement);
        }
    }
}

/// Whether a statement has this name in it, as a word.
fn names(statement: &str, table: &str) -> bool {
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    statement.split(|letter| !is_of_name(letter)).any(|word| word.eq_ignore_ascii_case(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(waiting: u64, text: &str) -> LockWait {
        LockWait {
            kind: LockKind::Metadata,
            waiting,
            blocking: None,
            object: String::new(),
            index: String::new(),
            mode: "table metadata lock".to_string(),
            waited_s: 3,
            statement: Some(text.to_string()),
            blocking_statement: None,
        }
    }

    fn pair(waiting: u64, wanted: &str, holder: u64, holds: &str) -> Pair {
        Pair {
            waiting,
            object: "t.accounts".to_string(),
            wanted: wanted.to_string(),
            holder,
            holds: holds.to_string(),
            statement: Some(format!("of {holder}")),
        }
    }

    fn described(waits: &[LockWait]) -> Vec<(u64, Option<u64>, &str)> {
        waits.iter().map(|wait| (wait.waiting, wait.blocking, wait.object.as_str())).collect()
    }

    #[test]
    fn readers_wait_for_the_alter_that_waits_for_the_first_reader() {
        let mut waits = [waiter(2, "ALTER TABLE accounts"), waiter(3, "SELECT ? FROM accounts")];
        let pairs = [
            pair(3, "SHARED_READ", 1, "SHARED_READ"),
            pair(3, "SHARED_READ", 2, "SHARED_UPGRADABLE"),
            pair(2, "EXCLUSIVE", 1, "SHARED_READ"),
        ];
        learn_from_pairs(&mut waits, &pairs);
        assert_eq!(described(&waits), [(2, Some(1), "t.accounts"), (3, Some(2), "t.accounts")]);
        assert_eq!(waits[1].blocking_statement.as_deref(), Some("of 2"));
    }

    #[test]
    fn of_a_lock_by_name_the_holder_is_known_and_the_name_is_not_recorded() {
        let mut waits = [LockWait { kind: LockKind::User, ..waiter(2, "SELECT GET_LOCK(?, ?)") }];
        learn_from_pairs(&mut waits, &[pair(2, "EXCLUSIVE", 1, "EXCLUSIVE")]);
        assert_eq!(described(&waits), [(2, Some(1), "")]);
        assert_eq!(waits[0].blocking_statement.as_deref(), Some("of 1"));
    }

    #[test]
    fn where_only_holders_are_shown_the_table_is_found_by_the_name_in_the_statement() {
        let held = |connection, table: &str| HeldLock {
            connection,
            schema: "t".to_string(),
            table: table.to_string(),
            statement: None,
        };
        let all = [held(1, "accounts"), held(2, "accounts"), held(1, "accounts_old")];
        let mut waits = [waiter(2, "ALTER TABLE t.accounts ADD x INT"), waiter(9, "DROP TABLE other")];
        learn_from_held(&mut waits, &all);
        assert_eq!(described(&waits), [(2, Some(1), "t.accounts"), (9, None, "")]);
    }

    #[test]
    fn states_of_the_process_list_have_their_kinds() {
        assert_eq!(kind_of("Waiting for table metadata lock"), LockKind::Metadata);
        assert_eq!(kind_of("Waiting for table level lock"), LockKind::Table);
        assert_eq!(kind_of("Waiting for table flush"), LockKind::Table);
        assert_eq!(kind_of("User lock"), LockKind::User);
        assert_eq!(kind_of("Waiting for global read lock"), LockKind::Other);
    }
}
