//! How the server executes a statement, as it plans it.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::{Session, sessions};
use crate::error::{Error, Result, refused, server_code};
use crate::schema::quote_name;

/// How long it is waited for a session that executes the statement, and between two looks at the process list.
const WAIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);
/// The server's error for a statement that writes in such a transaction.
const READ_ONLY: u16 = 1792;
/// What a server may explain without executing it.
const EXPLAINED: [&str; 7] = ["SELECT", "WITH", "TABLE", "INSERT", "REPLACE", "UPDATE", "DELETE"];

/// A plan, line by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The statement as it was sent.
    pub statement: String,
    pub columns: Vec<String>,
    /// By `columns`; a value that is NULL is empty.
    pub rows: Vec<Vec<String>>,
}

/// Waits until a session executes a statement that `is_wanted`, and asks how the server executes it. The transaction is rolled back, and
/// read-only unless the statement writes. So nothing is written, also where planning reads tables.
///
/// # Errors
/// Nobody executes it within two seconds, it is no statement with a plan, or the server refuses.
pub async fn explain(conn: &mut Conn, is_wanted: &(dyn Fn(&Session) -> bool + Sync)) -> Result<Plan> {
    let began = Instant::now();
    let session = loop {
        if let Some(session) = sessions(conn).await?.into_iter().find(is_wanted) {
            break session;
        }
        if began.elapsed() >= WAIT {
            let doing = "explain it";
            let why = format!("nobody executed it within {} s", WAIT.as_secs());
            return Err(Error::Session { doing: doing.to_string(), why });
        }
        tokio::time::sleep(PAUSE).await;
    };
    let question = question(&session.statement)?;
    if !session.schema.is_empty() {
        let doing = format!("use the schema '{}'", session.schema);
        conn.query_drop(format!("USE {}", quote_name(&session.schema))).await.map_err(refused(doing))?;
    }
    let mut asked = ask(conn, "START TRANSACTION READ ONLY", &question).await?;
    if asked.as_ref().is_err_and(|error| server_code(error) == Some(READ_ONLY)) {
        // Of a statement that writes. Its plan writes nothing either.
        asked = ask(conn, "START TRANSACTION", &question).await?;
    }
    let rows = asked.map_err(refused("explain it"))?;
    let columns = rows.first().map_or(Vec::new(), |row| {
        row.columns_ref().iter().map(|column| column.name_str().into_owned()).collect()
    });
    let cells = |row: Row| row.unwrap().into_iter().map(|value| cell(&value)).collect();
    Ok(Plan { statement: session.statement, columns, rows: rows.into_iter().map(cells).collect() })
}

/// Asks within a transaction, which is rolled back.
async fn ask(
    conn: &mut Conn,
    begin: &str,
    question: &str,
) -> Result<std::result::Result<Vec<Row>, mysql_async::Error>> {
    conn.query_drop(begin).await.map_err(refused("begin a transaction"))?;
    // Prepared, so that it is one statement whatever the text holds.
    let asked = conn.exec(question, ()).await;
    conn.query_drop("ROLLBACK").await.map_err(refused("end a transaction"))?;
    Ok(asked)
}

/// The question for the plan of a statement.
///
/// # Errors
/// It is none that can be explained without executing it.
fn question(statement: &str) -> Result<String> {
    let bare = without_comments(statement);
    let first: String = bare.chars().take_while(char::is_ascii_alphabetic).collect();
    if EXPLAINED.contains(&first.to_ascii_uppercase().as_str()) {
        return Ok(format!("EXPLAIN {bare}"));
    }
    let why = "only SELECT, WITH, TABLE, INSERT, REPLACE, UPDATE and DELETE have a plan".to_string();
    Err(Error::Session { doing: "explain it".to_string(), why })
}

/// What follows comments at the begin. Those that a server executes stay, and with them it is no statement that is explained.
fn without_comments(statement: &str) -> &str {
    let mut rest = statement.trim_start();
    while let Some(comment) = rest.strip_prefix("/*") {
        let is_executed = comment.starts_with(['!', '+', 'M']);
        match comment.split_once("*/") {
            Some((_, after)) if !is_executed => rest = after.trim_start(),
            _ => return rest,
        }
    }
    rest
}

fn cell(value: &mysql_async::Value) -> String {
    match value {
        mysql_async::Value::NULL => String::new(),
        mysql_async::Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.as_sql(true).trim_matches('\'').to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_executes_is_asked() {
        for right in
            ["SELECT 1", "/* of the app */ select a", "with x as (select 1) select 1", "UPDATE t SET a=1"]
        {
            assert!(question(right).unwrap().starts_with("EXPLAIN "), "{right}");
        }
        assert_eq!(question("/* app */ SELECT 1").unwrap(), "EXPLAIN SELECT 1");
        for wrong in [
            "ANALYZE SELECT 1",
            "/* x */ ANALYZE SELECT SLEEP(1)",
            "/*! ANALYZE */ SELECT 1",
            "/*M! ANALYZE */ SELECT 1",
            "FORMAT=JSON SELECT 1",
            "FOR CONNECTION 5",
            "CALL p()",
            "DROP TABLE t",
            "",
            "/* never ended",
        ] {
            assert!(question(wrong).is_err(), "{wrong}");
        }
    }
}
