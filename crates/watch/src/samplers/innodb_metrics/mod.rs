//! `information_schema.INNODB_METRICS`: the counters that are enabled, under the server's own names.
//!
//! Type `value` is a gauge; `counter`, `status_counter`, `set_owner` and `set_member` are counters
//! since they were enabled. The column that shows what is enabled is `ENABLED` in some servers and
//! `STATUS` in others: the table itself is asked. Needs the privilege PROCESS.

use mysql_async::Error;
use whyso_record::data::Kind;

use crate::own_statements::ControlConnection;
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};
use crate::samplers::status::{parse_number, text_of};
use crate::sink::Batch;
use crate::sql::Sql;

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["innodb_metrics"],
    counts: "InnoDB's enabled counters",
    origin: "`information_schema.INNODB_METRICS`",
    metrics: &[],
    start,
};

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(sql) = context.sql() else { return Vec::new() };
    vec![ScheduledSampler::of_server(InnodbMetrics::new(sql))]
}

const BY_ENABLED: &str =
    "SELECT NAME, `COUNT`, TYPE FROM information_schema.INNODB_METRICS WHERE ENABLED = 1";
const BY_STATUS: &str =
    "SELECT NAME, `COUNT`, TYPE FROM information_schema.INNODB_METRICS WHERE STATUS = 'enabled'";

pub(crate) struct InnodbMetrics {
    sql: Sql,
    /// Found by asking the server; asked again after an outage, since it may be another server.
    query: Option<&'static str>,
}

impl InnodbMetrics {
    pub(crate) fn new(sql: Sql) -> InnodbMetrics {
        InnodbMetrics { sql, query: None }
    }
}

impl Sampler for InnodbMetrics {
    fn source(&self) -> &'static str {
        "innodb_metrics"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let query = &mut self.query;
        let outcome = self.sql.run(async |conn| read_metrics(conn, query, batch).await);
        if outcome.is_err() {
            self.query = None;
        }
        match outcome {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(Failure::Absent("InnoDB's own counters: this server has no INNODB_METRICS".to_string()))
            }
            Err(Failure::Absent(why)) => Err(Failure::Absent(format!("InnoDB's own counters: {why}"))),
            Err(failure) => Err(failure),
        }
    }
}

/// False where the server has no such table.
async fn read_metrics(
    conn: &mut ControlConnection<'_>,
    query: &mut Option<&'static str>,
    batch: &mut Batch<'_>,
) -> Result<bool, Error> {
    let query = match query {
        Some(query) => *query,
        None => match probe(conn).await? {
            Some(found) => query.insert(found),
            None => return Ok(false),
        },
    };
    let mut result = conn.query_iter(query).await?;
    while let Some(row) = result.next().await? {
        let (Some(name), Some(count)) = (text_of(&row, 0), text_of(&row, 1)) else {
            continue;
        };
        let Some(count) = parse_number(count) else {
            continue;
        };
        batch.put_named(name, "", count, || (kind(text_of(&row, 2)), "1"));
    }
    Ok(true)
}

async fn probe(conn: &mut ControlConnection<'_>) -> Result<Option<&'static str>, Error> {
    const COLUMNS: &str = "SELECT COLUMN_NAME FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'INNODB_METRICS'";
    let columns: Vec<String> = conn.query(COLUMNS).await?;
    let has = |wanted: &str| columns.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    if has("ENABLED") {
        return Ok(Some(BY_ENABLED));
    }
    Ok(has("STATUS").then_some(BY_STATUS))
}

fn kind(word: Option<&str>) -> Kind {
    match word {
        Some("value") => Kind::Gauge,
        _ => Kind::Counter,
    }
}
