//! One change of a setup table, as SQL both ways.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use serde::{Deserialize, Serialize};

use super::names::{Names, quoted};
use crate::error::{Error, Result, refused, server_code};

/// A row, by column; `None` is NULL.
pub(super) type Row = Vec<(String, Option<String>)>;

/// A change of a table of the Performance Schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetupChange {
    /// Rows that have one value in a column get another.
    Column { table: String, key: String, names: Names, column: String, before: String, after: String },
    /// Rows that are deleted, and rows that are inserted.
    Rows { table: String, keys: Vec<String>, removed: Vec<Row>, added: Vec<Row> },
}

impl SetupChange {
    pub fn table(&self) -> &str {
        match self {
            SetupChange::Column { table, .. } | SetupChange::Rows { table, .. } => table,
        }
    }

    /// The statements that make it.
    pub fn sql(&self) -> Vec<String> {
        match self {
            SetupChange::Column { before, after, .. } => vec![self.update(before, after)],
            SetupChange::Rows { table, removed, added, .. } => {
                let out = removed.iter().map(|row| delete(table, row));
                out.chain(added.iter().map(|row| insert(table, row))).collect()
            }
        }
    }

    fn update(&self, from: &str, to: &str) -> String {
        let SetupChange::Column { table, key, names, column, .. } = self else { return String::new() };
        format!(
            "UPDATE performance_schema.{table} SET {column} = {} WHERE {} AND {column} = {}",
            quoted(to),
            names.condition(key),
            quoted(from)
        )
    }

    pub(crate) async fn make(&self, connection: &mut Conn) -> Result<()> {
        for sql in self.sql() {
            run(connection, self.table(), &sql).await?;
        }
        Ok(())
    }

    /// Takes it back; gives the number of rows that somebody else has changed since, which are left as they are.
    pub(crate) async fn unmake(&self, connection: &mut Conn) -> Result<u64> {
        match self {
            SetupChange::Column { table, key, names, column, before, after } => {
                run(connection, table, &self.update(after, before)).await?;
                let others = format!(
                    "SELECT COUNT(*) FROM performance_schema.{table} WHERE {} AND {column} <> {}",
                    names.condition(key),
                    quoted(before)
                );
                count(connection, table, &others).await
            }
            SetupChange::Rows { table, keys, removed, added } => {
                let mut left_alone = 0;
                for row in added {
                    run(connection, table, &delete(table, row)).await?;
                    // Ours with another's values is another's now.
                    left_alone += is_there(connection, table, &key_of(row, keys)).await?;
                }
                for row in removed {
                    if is_there(connection, table, &key_of(row, keys)).await? == 0 {
                        run(connection, table, &insert(table, row)).await?;
                    } else if is_there(connection, table, row).await? == 0 {
                        left_alone += 1;
                    }
                }
                Ok(left_alone)
            }
        }
    }
}

fn key_of(row: &Row, keys: &[String]) -> Row {
    row.iter().filter(|(column, _)| keys.contains(column)).cloned().collect()
}

fn condition(row: &Row) -> String {
    let parts: Vec<String> = row
        .iter()
        .map(|(column, value)| match value {
            Some(value) => format!("{column} = {}", quoted(value)),
            None => format!("{column} IS NULL"),
        })
        .collect();
    parts.join(" AND ")
}

fn delete(table: &str, row: &Row) -> String {
    format!("DELETE FROM performance_schema.{table} WHERE {}", condition(row))
}

fn insert(table: &str, row: &Row) -> String {
    let columns: Vec<&str> = row.iter().map(|(column, _)| column.as_str()).collect();
    let values: Vec<String> =
        row.iter().map(|(_, value)| value.as_deref().map_or("NULL".to_string(), quoted)).collect();
    format!("INSERT INTO performance_schema.{table} ({}) VALUES ({})", columns.join(", "), values.join(", "))
}

async fn is_there(connection: &mut Conn, table: &str, row: &Row) -> Result<u64> {
    let sql = format!("SELECT COUNT(*) FROM performance_schema.{table} WHERE {}", condition(row));
    count(connection, table, &sql).await
}

async fn count(connection: &mut Conn, table: &str, sql: &str) -> Result<u64> {
    let counted: Option<u64> = connection.query_first(sql).await.map_err(|error| denied(error, table))?;
    Ok(counted.unwrap_or(0))
}

async fn run(connection: &mut Conn, table: &str, sql: &str) -> Result<()> {
    connection.query_drop(sql).await.map_err(|error| denied(error, table))
}

/// Access denied to a schema, a table, or a column.
const DENIED: [u16; 3] = [1044, 1142, 1143];

pub(super) fn denied(error: mysql_async::Error, table: &str) -> Error {
    match server_code(&error) {
        Some(code) if DENIED.contains(&code) => Error::PerformanceSchema(format!(
            "--pfs needs rights that this user lacks on performance_schema.{table} ({error}): GRANT SELECT, UPDATE ON \
             performance_schema.* TO it, and INSERT, DELETE too for --pfs-user, --pfs-host and --pfs-object"
        )),
        _ => refused(format!("read or change performance_schema.{table}"))(error),
    }
}
