//! The connection on which the Performance Schema's views are read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mysql_async::Error;

use super::probe::{Tables, tables};
use crate::own_statements::ControlConnection;
use crate::sampler::Failure;
use crate::sql::Sql;

/// The connection that all views share, and what was found out about the server.
pub(crate) struct Reader {
    sql: Sql,
    tables: Option<Arc<Tables>>,
    /// Open tables times their definitions, asked once.
    pairs: Option<f64>,
}

/// A reader that all views share.
pub(crate) type SharedReader = Arc<Mutex<Reader>>;

impl Reader {
    pub(crate) fn new(sql: Sql) -> Reader {
        Reader { sql, tables: None, pairs: None }
    }

    /// What the server has, asked once.
    pub(crate) fn tables(&mut self) -> Result<Arc<Tables>, Failure> {
        if let Some(tables) = &self.tables {
            return Ok(tables.clone());
        }
        let found = Arc::new(self.sql.run(async |conn| tables(conn).await)?);
        self.tables = Some(found.clone());
        Ok(found)
    }

    /// How many pairs the server compares where it adds up what it counted by table.
    pub(super) fn pairs(&mut self) -> Result<f64, Failure> {
        if let Some(pairs) = self.pairs {
            return Ok(pairs);
        }
        let question = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Open_tables', 'Open_table_definitions')";
        let counts: Vec<(String, f64)> = self.sql.run(async |conn| conn.query(question).await)?;
        let pairs = counts.iter().map(|(_, count)| count).product();
        self.pairs = Some(pairs);
        Ok(pairs)
    }

    /// Within the time of the watching, or as its last question.
    pub(crate) fn run<T>(
        &mut self,
        last: bool,
        query: impl AsyncFnOnce(&mut ControlConnection<'_>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        if last { self.sql.run_last(query) } else { self.sql.run(query) }
    }
}

pub(crate) fn lock(shared: &SharedReader) -> MutexGuard<'_, Reader> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a reader that all views share.
pub(crate) fn share(sql: Sql) -> SharedReader {
    Arc::new(Mutex::new(Reader::new(sql)))
}
