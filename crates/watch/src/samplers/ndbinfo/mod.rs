//! What the data nodes of MySQL Cluster count, as `ndbinfo` shows it on any SQL node: memory, work, threads, links and buffers of each.
//!
//! Each table is probed by asking. One that this version does not have, or has with other columns, is not asked again.

mod questions;

use mysql_async::Row;
use whyso_clock::monotonic_ns;

use crate::own_statements::ControlConnection;
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};
use crate::samplers::status::{parse_number, text_of};
use crate::schedule::Pace;
use crate::sink::Batch;
use crate::sql::{Sql, is_not_for_us};
use questions::{COUNTERS, METRICS, Question, TABLES};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["ndbinfo"],
    counts: "memory, work, threads, links and buffers of each data node",
    origin: "`ndbinfo` of an SQL node of MySQL Cluster",
    metrics: &METRICS,
    start,
};

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(sql) = context.sql() else { return Vec::new() };
    let questions = TABLES.iter().map(|table| AskedQuestion { question: table, is_asked: true }).collect();
    vec![ScheduledSampler::of_server(Ndbinfo {
        sql,
        is_here: None,
        questions,
        asks_counters: true,
        pace: Pace::default(),
    })]
}

/// Data nodes gather the answer: one that took 20 ms is followed by the next after 1 s at the earliest.
const PACE_FACTOR: i64 = 50;
/// A table or a column that this version does not have.
const UNKNOWN: [u16; 2] = [1054, 1146];
const IS_HERE: &str =
    "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'ndbinfo' AND TABLE_NAME = 'nodes'";

struct AskedQuestion {
    question: &'static Question,
    is_asked: bool,
}

struct Ndbinfo {
    sql: Sql,
    /// Whether the server has the tables; asked again after an outage, since it may be another server.
    is_here: Option<bool>,
    questions: Vec<AskedQuestion>,
    asks_counters: bool,
    pace: Pace,
}

impl Sampler for Ndbinfo {
    fn source(&self) -> &'static str {
        "ndbinfo"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let begin_ns = monotonic_ns();
        if !self.pace.due(begin_ns) {
            batch.put_off();
            return Ok(());
        }
        let Ndbinfo { sql, is_here, questions, asks_counters, pace } = self;
        let outcome = sql.run(async |conn| ask(conn, is_here, questions, asks_counters, batch).await);
        pace.rest(begin_ns, monotonic_ns() - begin_ns, PACE_FACTOR);
        if outcome.is_err() {
            self.is_here = None;
        }
        outcome?;
        match self.is_here {
            Some(false) => Err(Failure::NotHere),
            _ => Ok(()),
        }
    }
}

async fn ask(
    conn: &mut ControlConnection<'_>,
    is_here: &mut Option<bool>,
    questions: &mut [AskedQuestion],
    asks_counters: &mut bool,
    batch: &mut Batch<'_>,
) -> Result<(), mysql_async::Error> {
    if is_here.is_none() {
        *is_here = Some(conn.query_first::<u64, _>(IS_HERE).await?.is_some_and(|tables| tables > 0));
    }
    if *is_here == Some(false) {
        return Ok(());
    }
    for asked in questions.iter_mut().filter(|asked| asked.is_asked) {
        asked.is_asked = put_rows(conn, asked.question, batch).await?;
    }
    if *asks_counters {
        *asks_counters = put_counters(conn, batch).await?;
    }
    Ok(())
}

async fn put_rows(
    conn: &mut ControlConnection<'_>,
    question: &Question,
    batch: &mut Batch<'_>,
) -> Result<bool, mysql_async::Error> {
    each_row(conn, &question.sql(), |row| {
        let Some(instance) = text_of(row, 0) else { return };
        for (at, (_, metric)) in question.columns.iter().enumerate() {
            if let Some(value) = text_of(row, at + 1).and_then(parse_number) {
                batch.put_value(metric, instance, value);
            }
        }
    })
    .await
}

/// Counters have names of their own in a column.
async fn put_counters(
    conn: &mut ControlConnection<'_>,
    batch: &mut Batch<'_>,
) -> Result<bool, mysql_async::Error> {
    each_row(conn, COUNTERS, |row| {
        let (Some(node), Some(name)) = (text_of(row, 0), text_of(row, 1)) else { return };
        if let Some(value) = text_of(row, 2).and_then(parse_number) {
            batch.put_named(name, node, value, || (whyso_record::data::Kind::Counter, "1"));
        }
    })
    .await
}

/// False where the server does not know the table.
async fn each_row(
    conn: &mut ControlConnection<'_>,
    sql: &str,
    mut put: impl FnMut(&Row),
) -> Result<bool, mysql_async::Error> {
    let mut rows = match conn.query_iter(sql).await {
        Ok(rows) => rows,
        Err(mysql_async::Error::Server(error))
            if UNKNOWN.contains(&error.code) || is_not_for_us(error.code) =>
        {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    while let Some(row) = rows.next().await? {
        put(&row);
    }
    Ok(true)
}
