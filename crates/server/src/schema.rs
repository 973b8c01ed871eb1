//! The schema that whyso may write to: one that it made, found empty, or marked before.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params};

use crate::error::{Error, Result, refused};

/// The table that marks a schema as whyso's.
pub const MARK_TABLE: &str = "whyso_mark";

/// Why a schema is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It did not exist.
    Created,
    /// It existed and was empty.
    Adopted,
    /// It bore the mark.
    Marked,
}

/// A table that the mark lists as ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedTable {
    pub table: String,
    /// Description of its content, by the part that created it.
    pub content: String,
    /// `false` while it is being loaded, and after that was interrupted.
    pub complete: bool,
}

/// A name in backquotes.
pub(crate) fn quote_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Makes sure that whyso may write to the schema, and makes it the connection's default.
///
/// # Errors
///
/// [`Error::NotOurs`] where the schema holds something and bears no mark; [`Error::Refused`] where
/// the user may not create it.
pub async fn claim(connection: &mut Conn, schema: &str) -> Result<Claim> {
    let claim = match state_of(connection, schema).await? {
        State::Missing => {
            let statement = format!("CREATE DATABASE IF NOT EXISTS {}", quote_name(schema));
            connection
                .query_drop(statement)
                .await
                .map_err(refused(format!("create the schema '{schema}'")))?;
            Claim::Created
        }
        State::Empty => Claim::Adopted,
        State::Marked => Claim::Marked,
        State::Foreign => {
            return Err(Error::NotOurs(format!(
                "schema '{schema}' on {} was not made by whyso and is not empty: name another schema in the DSN (one that \
                 does not exist is created), empty this one, or consent with --allow-writes {schema}",
                whyso_connect::server_name(connection)
            )));
        }
    };
    connection
        .query_drop(format!("USE {}", quote_name(schema)))
        .await
        .map_err(refused(format!("use the schema '{schema}'")))?;
    if claim != Claim::Marked {
        let statement = format!(
            "CREATE TABLE IF NOT EXISTS {MARK_TABLE} (name VARCHAR(64) NOT NULL PRIMARY KEY, content VARCHAR(1024) NOT NULL, \
             complete TINYINT NOT NULL) COMMENT='whyso made this schema and may change and drop the tables listed here'"
        );
        connection.query_drop(statement).await.map_err(refused(format!("mark the schema '{schema}'")))?;
    }
    Ok(claim)
}

/// Whether whyso may write to the schema as it is: it bears the mark. Changes nothing.
pub async fn is_marked(connection: &mut Conn, schema: &str) -> Result<bool> {
    Ok(matches!(state_of(connection, schema).await?, State::Marked))
}

/// Whether there is such a schema, as far as this user may see. Changes nothing.
///
/// # Errors
///
/// [`Error::Refused`].
pub async fn exists(connection: &mut Conn, schema: &str) -> Result<bool> {
    let found: Option<u64> = connection
        .exec_first("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", (schema,))
        .await
        .map_err(refused(format!("examine the schema '{schema}'")))?;
    Ok(found.unwrap_or(0) > 0)
}

enum State {
    Missing,
    Empty,
    Marked,
    Foreign,
}

async fn state_of(connection: &mut Conn, schema: &str) -> Result<State> {
    let examining = || refused(format!("examine the schema '{schema}'"));
    if !exists(connection, schema).await? {
        return Ok(State::Missing);
    }
    let marked: Option<u64> = connection
        .exec_first(
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
            (schema, MARK_TABLE),
        )
        .await
        .map_err(examining())?;
    if marked.unwrap_or(0) > 0 {
        return Ok(State::Marked);
    }
    // counted one by one: old servers build these tables by opening files, and a union opens them all
    for (kind, column) in
        [("tables", "table_schema"), ("routines", "routine_schema"), ("events", "event_schema")]
    {
        let statement = format!("SELECT COUNT(*) FROM information_schema.{kind} WHERE {column} = ?");
        let found: Option<u64> = connection.exec_first(statement, (schema,)).await.map_err(examining())?;
        if found.unwrap_or(0) > 0 {
            return Ok(State::Foreign);
        }
    }
    Ok(State::Empty)
}

/// The tables that the mark of the default schema lists.
pub async fn marked_tables(connection: &mut Conn) -> Result<Vec<MarkedTable>> {
    let rows: Vec<(String, String, bool)> = connection
        .query(format!("SELECT name, content, complete FROM {MARK_TABLE} ORDER BY name"))
        .await
        .map_err(refused("read whyso's mark"))?;
    Ok(rows.into_iter().map(|(table, content, complete)| MarkedTable { table, content, complete }).collect())
}

/// Lists a table as ours in the default schema, or changes its description. To be called before
/// the table is created, so that it can be dropped after an interruption.
pub async fn mark_table(connection: &mut Conn, table: &MarkedTable) -> Result<()> {
    let values: Params = (&table.table, &table.content, table.complete).into();
    connection
        .exec_drop(format!("REPLACE INTO {MARK_TABLE} (name, content, complete) VALUES (?, ?, ?)"), values)
        .await
        .map_err(refused("write whyso's mark"))
}

/// Drops a table of the default schema, if the mark lists it.
///
/// # Errors
///
/// [`Error::NotOurs`] where the table exists and is not listed.
pub async fn drop_marked(connection: &mut Conn, schema: &str, table: &str) -> Result<()> {
    let listed = marked_tables(connection).await?.iter().any(|marked| marked.table == table);
    if !listed {
        if table_exists(connection, schema, table).await? {
            return Err(Error::NotOurs(format!(
                "the table '{schema}.{table}' was not made by whyso: drop it yourself, or name another schema in the DSN"
            )));
        }
        return Ok(());
    }
    connection
        .query_drop(format!("DROP TABLE IF EXISTS {}.{}", quote_name(schema), quote_name(table)))
        .await
        .map_err(refused(format!("drop the table '{schema}.{table}'")))?;
    connection
        .exec_drop(format!("DELETE FROM {MARK_TABLE} WHERE name = ?"), (table,))
        .await
        .map_err(refused("write whyso's mark"))
}

pub(crate) async fn table_exists(connection: &mut Conn, schema: &str, table: &str) -> Result<bool> {
    let found: Option<u64> = connection
        .exec_first(
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
            (schema, table),
        )
        .await
        .map_err(refused(format!("examine the schema '{schema}'")))?;
    Ok(found.unwrap_or(0) > 0)
}
