//! Gets the rows into the server, over several connections at a time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::rows::{Form, MAX_ROW_BYTES, append};
use super::{Dataset, OnProgress, Phase, Progress};
use crate::answers::{answered, log_out, rows_time_max, within};
use crate::dsn::Dsn;
use crate::error::{Error, Result, refused};

/// How rows get into the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `LOAD DATA LOCAL INFILE`, answered from bytes that are generated on the way.
    LoadData,
    /// `INSERT` with many rows each.
    Insert,
}

impl std::fmt::Display for Method {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Method::LoadData => "LOAD DATA LOCAL",
            Method::Insert => "INSERT",
        })
    }
}

/// The file name in our statements; there is no such file, and no other name is answered.
const PENDING: &str = "whyso-generated-rows";
/// Rows of one LOAD DATA statement, one transaction, where a table is loaded in parts.
const PART_ROWS: u64 = 100_000;
/// What is handed to the driver at a time while it sends a statement's rows.
const CHUNK_ROWS: u64 = 1_000;
/// One INSERT statement, at most; and at most half of what the server takes.
const INSERT_BYTES: usize = 1 << 20;
/// More connections than that do not make a load faster: the server's commits and its log are one.
pub(super) const MAX_CONNECTIONS: usize = 16;

/// A range of ids of one table, loaded by one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    table: u32,
    first_id: u64,
    last_id: u64,
}

/// Loads the rows of `tables`, then makes their secondary indexes.
pub(super) async fn load(
    connection: &mut Conn,
    dsn: &Dsn,
    dataset: &Dataset,
    tables: &[u32],
    method: Option<Method>,
    progress: OnProgress<'_>,
) -> Result<Method> {
    let asked = answered(dsn, "asking how it takes rows", async {
        let allowed: Option<u8> = connection
            .query_first("SELECT @@GLOBAL.local_infile")
            .await
            .map_err(refused("tell local_infile"))?;
        let packet: Option<usize> = connection
            .query_first("SELECT @@max_allowed_packet")
            .await
            .map_err(refused("tell max_allowed_packet"))?;
        Ok::<_, Error>((allowed, packet))
    });
    let (allowed, packet) = asked.await?;
    let method = method.unwrap_or(if allowed == Some(1) { Method::LoadData } else { Method::Insert });
    let insert_bytes = INSERT_BYTES.min(packet.unwrap_or(INSERT_BYTES) / 2).max(4 * MAX_ROW_BYTES);

    let connections = connections();
    let parts = parts(dataset.rows, tables, connections);
    let job = Arc::new(Job { dsn: dsn.clone(), dataset: dataset.clone(), method, insert_bytes });

    let rows_total = dataset.rows * tables.len() as u64;
    let tell = |phase, rows_done| progress(Progress { phase, rows_done, rows_total });
    tell(Phase::Rows, 0);
    run(&job, parts, connections, |rows_done| tell(Phase::Rows, rows_done)).await?;
    tell(Phase::Indexes, 0);
    let indexes = tables.iter().map(|table| Part { table: *table, first_id: 1, last_id: 0 }).collect();
    let tables_done = run(&job, indexes, connections, |_| ());
    tables_done.await?;
    tell(Phase::Indexes, rows_total);
    Ok(method)
}

fn connections() -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
    (cpus * 2).clamp(2, MAX_CONNECTIONS)
}

/// Whole tables where there are enough of them for the connections. Else the parts of each, in turn from all tables, so
/// that the connections seldom meet in one.
fn parts(rows: u64, tables: &[u32], connections: usize) -> Vec<Part> {
    let part_rows = if tables.len() >= connections { rows } else { PART_ROWS.min(rows) };
    let mut parts = Vec::new();
    let mut first_id = 1;
    while first_id <= rows {
        let last_id = (first_id + part_rows - 1).min(rows);
        parts.extend(tables.iter().map(|table| Part { table: *table, first_id, last_id }));
        first_id = last_id + 1;
    }
    parts
}

struct Job {
    dsn: Dsn,
    dataset: Dataset,
    method: Method,
    insert_bytes: usize,
}

/// Works the parts off over several connections; one that has no rows stands for its table's index.
/// When this is dropped or fails, all connections are.
async fn run(job: &Arc<Job>, parts: Vec<Part>, connections: usize, on_rows: impl Fn(u64)) -> Result<()> {
    let workers = connections.min(parts.len());
    let queue = Arc::new(Mutex::new(parts.into_iter()));
    let (rows_sender, mut rows_receiver) = mpsc::unbounded_channel();
    let mut set = JoinSet::new();
    for number in 0..workers {
        let worker = work(Arc::clone(job), number, Arc::clone(&queue), rows_sender.clone());
        set.spawn(worker);
    }
    drop(rows_sender);
    let mut rows_done = 0;
    while let Some(rows) = rows_receiver.recv().await {
        rows_done += rows;
        on_rows(rows_done);
    }
    while let Some(ended) = set.join_next().await {
        ended.map_err(|error| Error::Dataset(format!("a loading connection broke off: {error}")))??;
    }
    Ok(())
}

async fn work(
    job: Arc<Job>,
    number: usize,
    queue: Arc<Mutex<std::vec::IntoIter<Part>>>,
    rows_sender: mpsc::UnboundedSender<u64>,
) -> Result<()> {
    let mut connection = job.dsn.connect().await?;
    // Held for as long as the server works for this connection, also when we are gone: see `wait_for_former_loaders`.
    answered(&job.dsn, "taking whyso's lock", async {
        let lock = (super::loader_lock(&job.dsn.schema, number),);
        let _: Option<Option<u8>> = connection
            .exec_first("SELECT GET_LOCK(?, 0)", lock)
            .await
            .map_err(refused("take whyso's lock"))?;
        Ok::<_, Error>(())
    })
    .await?;
    // unique_checks and foreign_key_checks stay on: there is no unique key but the primary one and no
    // foreign key to be checked, while MariaDB since 10.6 answers both being off by sorting the rows
    // through a temporary file: 250,000 rows in order took twice as long and a third more CPU
    loop {
        let next = queue.lock().await.next();
        let Some(part) = next else { break };
        if part.last_id < part.first_id {
            let bound = rows_time_max(&job.dsn, job.dataset.rows);
            let doing = format!("making the index of the table '{}'", Dataset::table_name(part.table));
            within(bound, &job.dsn, &doing, add_index(&mut connection, part.table)).await?;
            continue;
        }
        let bound = rows_time_max(&job.dsn, part.last_id + 1 - part.first_id);
        within(bound, &job.dsn, &format!("loading the table '{}'", Dataset::table_name(part.table)), async {
            match job.method {
                Method::LoadData => load_data(&mut connection, &job, part, &rows_sender).await,
                Method::Insert => insert(&mut connection, &job, part, &rows_sender).await,
            }
        })
        .await?;
    }
    log_out(connection).await;
    Ok(())
}

async fn add_index(connection: &mut Conn, table: u32) -> Result<()> {
    let name = Dataset::table_name(table);
    connection
        .query_drop(format!("CREATE INDEX k_{table} ON {name} (k)"))
        .await
        .map_err(refused(format!("index the table '{name}'")))
}

async fn load_data(
    connection: &mut Conn,
    job: &Job,
    part: Part,
    rows_sender: &mpsc::UnboundedSender<u64>,
) -> Result<()> {
    let name = Dataset::table_name(part.table);
    let lines = Lines {
        seed: job.dataset.seed,
        rows: job.dataset.rows,
        table: part.table,
        next_id: part.first_id,
        last_id: part.last_id,
        rows_sender: rows_sender.clone(),
    };
    // set for this one statement, and gone with it: a server that asks for anything at another time
    // gets nothing, and one that asks now gets these rows, whatever file it names
    connection.set_infile_handler(async move {
        let stream: mysql_async::InfileData = Box::pin(lines);
        Ok(stream)
    });
    connection
        .query_drop(format!(
            "LOAD DATA LOCAL INFILE '{PENDING}' INTO TABLE {name} CHARACTER SET latin1 (id, k, c, pad)"
        ))
        .await
        .map_err(refused(format!("load the table '{name}'")))
}

/// The rows of a part as lines, generated when they are asked for.
struct Lines {
    seed: u64,
    rows: u64,
    table: u32,
    next_id: u64,
    last_id: u64,
    rows_sender: mpsc::UnboundedSender<u64>,
}

impl Stream for Lines {
    type Item = std::io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.next_id > self.last_id {
            return Poll::Ready(None);
        }
        let last_of_chunk = (self.next_id + CHUNK_ROWS - 1).min(self.last_id);
        let mut lines = Vec::new();
        append(&mut lines, Form::Lines, self.seed, self.table, self.rows, self.next_id, last_of_chunk);
        // nobody listens any more where the loading was given up
        let _ = self.rows_sender.send(last_of_chunk + 1 - self.next_id);
        self.next_id = last_of_chunk + 1;
        Poll::Ready(Some(Ok(Bytes::from(lines))))
    }
}

async fn insert(
    connection: &mut Conn,
    job: &Job,
    part: Part,
    rows_sender: &mpsc::UnboundedSender<u64>,
) -> Result<()> {
    let name = Dataset::table_name(part.table);
    let rows_a_statement = (job.insert_bytes / MAX_ROW_BYTES).max(1) as u64;
    let mut next_id = part.first_id;
    while next_id <= part.last_id {
        let last_id = (next_id + rows_a_statement - 1).min(part.last_id);
        let mut statement = format!("INSERT INTO {name} (id, k, c, pad) VALUES ").into_bytes();
        append(
            &mut statement,
            Form::Values,
            job.dataset.seed,
            part.table,
            job.dataset.rows,
            next_id,
            last_id,
        );
        // the comma after the last row
        statement.pop();
        connection.query_drop(statement).await.map_err(refused(format!("load the table '{name}'")))?;
        let _ = rows_sender.send(last_id + 1 - next_id);
        next_id = last_id + 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_every_row_once() {
        for (rows, tables, connections) in
            [(1, 1, 4), (250_000, 4, 4), (250_001, 1, 4), (100_000, 3, 8), (7, 9, 2)]
        {
            let names: Vec<u32> = (1..=tables).collect();
            let parts = parts(rows, &names, connections);
            for table in names {
                let mut next_id = 1;
                for part in parts.iter().filter(|part| part.table == table) {
                    assert_eq!(part.first_id, next_id);
                    assert!(part.last_id >= part.first_id);
                    next_id = part.last_id + 1;
                }
                assert_eq!(next_id, rows + 1);
            }
        }
    }
}
