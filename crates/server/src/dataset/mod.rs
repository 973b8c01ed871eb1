//! The tables that the built-in workloads run on: those of sysbench's OLTP tests, so that both tools
//! can drive the same data.

mod load;
mod rows;

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use serde::{Deserialize, Serialize};

use crate::answers::{answered, log_out, time_max, within};
use crate::dsn::Dsn;
use crate::error::{Error, Result, refused};
use crate::schema::{MarkedTable, claim, drop_marked, mark_table, marked_tables, table_exists};

pub use load::Method;

/// Version of the way in which rows are generated; a data set of another version is another one.
const FORMAT: u32 = 1;
const MAX_TABLES: u32 = 10_000;
/// `id` and `k` are INTEGER.
const MAX_ROWS: u64 = i32::MAX as u64;
/// How long to wait for another whyso that loads into the same schema.
const LOCK_SECONDS: u32 = 30;

/// Tables `sbtest1` to `sbtestN` with `rows` rows each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dataset {
    /// 1 to 10,000.
    pub tables: u32,
    /// In each table: 1 to 2,147,483,647.
    pub rows: u64,
    pub seed: u64,
    /// Storage engine, such as "InnoDB".
    pub engine: String,
}

impl Default for Dataset {
    fn default() -> Dataset {
        Dataset { tables: 4, rows: 250_000, seed: 1, engine: "InnoDB".to_string() }
    }
}

impl Dataset {
    /// Rows in all tables.
    pub fn rows_total(&self) -> u64 {
        u64::from(self.tables).saturating_mul(self.rows)
    }

    /// Estimates the tables' bytes on disk: 225 per row with both indexes, by the widths of their columns. A small table takes
    /// more per row, since InnoDB allocates by the megabyte (545 bytes per row were measured with 25,000 rows).
    pub fn bytes_estimate(&self) -> u64 {
        self.rows_total().saturating_mul(225)
    }

    /// # Errors
    ///
    /// [`Error::Dataset`] where a number is out of range or the engine's name is none.
    pub fn check(&self) -> Result<()> {
        if self.tables == 0 || self.tables > MAX_TABLES {
            return Err(Error::Dataset(format!(
                "a data set has 1 to {MAX_TABLES} tables, not {}",
                self.tables
            )));
        }
        if self.rows == 0 || self.rows > MAX_ROWS {
            return Err(Error::Dataset(format!("a table has 1 to {MAX_ROWS} rows, not {}", self.rows)));
        }
        let is_name = !self.engine.is_empty()
            && self.engine.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        if !is_name {
            return Err(Error::Dataset(format!(
                "'{}' is no storage engine's name",
                self.engine.escape_default()
            )));
        }
        Ok(())
    }

    pub fn table_name(table: u32) -> String {
        format!("sbtest{table}")
    }

    /// What the mark says of one of its tables.
    fn content_of_table(&self) -> String {
        format!(
            "sysbench oltp, format {FORMAT}, rows {}, seed {}, engine {}",
            self.rows,
            self.seed,
            self.engine.to_lowercase()
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Rows,
    /// The secondary indexes are built, after the rows.
    Indexes,
}

/// How far the loading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub phase: Phase,
    /// Rows sent, or rows of indexed tables.
    pub rows_done: u64,
    /// Rows of the tables that have to be loaded.
    pub rows_total: u64,
}

/// What [`ensure`] did.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSummary {
    /// Rows that were loaded; 0 where everything was there.
    pub rows: u64,
    pub seconds: f64,
    pub rows_per_s: f64,
    /// `None` where nothing had to be loaded.
    pub method: Option<Method>,
}

/// Called now and then with how far it is.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// Makes sure that the DSN's schema holds the data set: claims the schema, then loads the tables that
/// are missing, differ, or were interrupted. Tables that are as asked for are left as they are, with
/// whatever workloads have changed in them.
///
/// # Errors
///
/// [`Error::NotOurs`] for a schema or a table that whyso did not make, [`Error::Dataset`],
/// [`Error::Refused`], and those of connecting.
pub async fn ensure(dsn: &Dsn, dataset: &Dataset, progress: OnProgress<'_>) -> Result<LoadSummary> {
    ensure_by(dsn, dataset, None, progress).await
}

/// As [`ensure`], by `method` only, where one is named.
pub async fn ensure_by(
    dsn: &Dsn,
    dataset: &Dataset,
    method: Option<Method>,
    progress: OnProgress<'_>,
) -> Result<LoadSummary> {
    dataset.check()?;
    let begin = Instant::now();
    let mut connection = dsn.connect_without_schema().await?;
    answered(dsn, "marking the schema as whyso's", claim(&mut connection, &dsn.schema)).await?;
    let bound = Duration::from_secs(LOCK_SECONDS.into()) + time_max(dsn);
    let locked = lock(&mut connection, &dsn.schema);
    within(bound, dsn, "waiting for another whyso that loads data", locked).await?;
    let former = wait_for_former_loaders(&mut connection, &dsn.schema);
    within(bound, dsn, "waiting for a load that was broken off", former).await?;
    let looking = missing_tables(&mut connection, &dsn.schema, dataset);
    let missing = answered(dsn, "looking for the tables", looking).await?;
    if missing.is_empty() {
        log_out(connection).await;
        return Ok(LoadSummary {
            rows: 0,
            seconds: begin.elapsed().as_secs_f64(),
            rows_per_s: 0.0,
            method: None,
        });
    }
    for table in &missing {
        let name = Dataset::table_name(*table);
        let mark = MarkedTable { table: name.clone(), content: dataset.content_of_table(), complete: false };
        answered(dsn, &format!("creating the table '{name}'"), async {
            drop_marked(&mut connection, &dsn.schema, &name).await?;
            mark_table(&mut connection, &mark).await?;
            create_table(&mut connection, &name, &dataset.engine).await
        })
        .await?;
    }
    let method = load::load(&mut connection, dsn, dataset, &missing, method, progress).await?;
    for table in &missing {
        let mark = MarkedTable {
            table: Dataset::table_name(*table),
            content: dataset.content_of_table(),
            complete: true,
        };
        answered(dsn, "marking the tables as loaded", mark_table(&mut connection, &mark)).await?;
    }
    log_out(connection).await;
    let rows = missing.len() as u64 * dataset.rows;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(LoadSummary { rows, seconds, rows_per_s: rows as f64 / seconds.max(1e-9), method: Some(method) })
}

/// Whether the schema holds the whole data set. Changes nothing.
pub async fn is_loaded(dsn: &Dsn, dataset: &Dataset) -> Result<bool> {
    let mut connection = dsn.connect_without_schema().await?;
    let loaded = answered(dsn, "looking for the tables", async {
        if !crate::schema::is_marked(&mut connection, &dsn.schema).await? {
            return Ok(false);
        }
        let schema = crate::schema::quote_name(&dsn.schema);
        connection.query_drop(format!("USE {schema}")).await.map_err(refused("use the schema"))?;
        Ok::<_, Error>(missing_tables(&mut connection, &dsn.schema, dataset).await?.is_empty())
    });
    let loaded = loaded.await?;
    log_out(connection).await;
    Ok(loaded)
}

/// One loader at a time in a schema. The server lets go when the connection ends, however it ends.
async fn lock(connection: &mut Conn, schema: &str) -> Result<()> {
    let name = lock_name(format!("whyso {schema}"));
    let got: Option<Option<u8>> = connection
        .exec_first("SELECT GET_LOCK(?, ?)", (name, LOCK_SECONDS))
        .await
        .map_err(refused("take whyso's lock"))?;
    if got.flatten() == Some(1) {
        return Ok(());
    }
    Err(Error::NotOurs(format!(
        "another whyso is loading into the schema '{schema}' for more than {LOCK_SECONDS} s: wait for it, or name another schema"
    )))
}

/// A lock's name has at most 64 characters.
fn lock_name(name: String) -> String {
    name.chars().take(64).collect()
}

/// The lock of one of a loader's connections.
fn loader_lock(schema: &str, number: usize) -> String {
    lock_name(format!("whyso {number} {schema}"))
}

/// Waits until the locks of an interrupted loader's connections are free. The server may still run its statements, and
/// these would find the tables that are created again under the same names.
async fn wait_for_former_loaders(connection: &mut Conn, schema: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(LOCK_SECONDS.into());
    for number in 0..load::MAX_CONNECTIONS {
        let name = loader_lock(schema, number);
        loop {
            let free: Option<Option<u8>> = connection
                .exec_first("SELECT IS_FREE_LOCK(?)", (&name,))
                .await
                .map_err(refused("tell whether whyso's lock is free"))?;
            if free.flatten() == Some(1) {
                break;
            }
            if Instant::now() >= deadline {
                return Err(Error::NotOurs(format!(
                    "the server is still at a load into the schema '{schema}' that was broken off: wait for it, or name \
                     another schema"
                )));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

async fn missing_tables(connection: &mut Conn, schema: &str, dataset: &Dataset) -> Result<Vec<u32>> {
    let marked = marked_tables(connection).await?;
    let content = dataset.content_of_table();
    let mut missing = Vec::new();
    for table in 1..=dataset.tables {
        let name = Dataset::table_name(table);
        let is_there =
            marked.iter().any(|mark| mark.table == name && mark.complete && mark.content == content);
        if !is_there || !table_exists(connection, schema, &name).await? {
            missing.push(table);
        }
    }
    Ok(missing)
}

async fn create_table(connection: &mut Conn, name: &str, engine: &str) -> Result<()> {
    let statement = format!(
        "CREATE TABLE {name} (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, \
         c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) ENGINE={engine}"
    );
    connection.query_drop(statement).await.map_err(refused(format!("create the table '{name}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_that_makes_no_sense_is_refused() {
        let wrong = |change: fn(&mut Dataset)| {
            let mut dataset = Dataset::default();
            change(&mut dataset);
            dataset.check().unwrap_err().to_string()
        };
        assert_eq!(wrong(|set| set.tables = 0), "a data set has 1 to 10000 tables, not 0");
        assert_eq!(wrong(|set| set.rows = 0), "a table has 1 to 2147483647 rows, not 0");
        assert_eq!(wrong(|set| set.rows = 1 << 31), "a table has 1 to 2147483647 rows, not 2147483648");
        assert_eq!(
            wrong(|set| set.engine = "InnoDB; DROP".into()),
            "'InnoDB; DROP' is no storage engine's name"
        );
        assert!(Dataset::default().check().is_ok());
    }
}
