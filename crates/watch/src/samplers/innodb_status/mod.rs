//! `SHOW ENGINE INNODB STATUS`: what no counter has in all servers, the purge's backlog, the log's positions, pending reads and writes, spins.
//!
//! It is a text for people, which differs from server to server. The server may cut it. What is not found is not recorded. The text itself, in
//! which statements stand with their literals, never is.

mod parse;

use mysql_async::{Error, Row};
use whyso_clock::monotonic_ns;

use crate::metric::{Metric, counter, gauge};
use crate::own_statements::ControlConnection;
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{NOW_AND_THEN, SamplerEntry, ScheduledSampler, StartContext};
use crate::samplers::status::text_of;
use crate::schedule::Pace;
use crate::sink::Batch;
use crate::sql::{Sql, is_not_for_us};
use parse::{Number, numbers};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["innodb_status"],
    counts: "the purge's backlog, the redo log's positions, pending reads and writes, spins",
    origin: "`SHOW ENGINE INNODB STATUS`",
    metrics: &[&METRICS],
    start,
};

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(sql) = context.sql() else { return Vec::new() };
    vec![ScheduledSampler::of_server(InnodbStatus::new(sql)).at_least_every(NOW_AND_THEN)]
}

pub(crate) const METRICS: [Metric; 20] = [
    gauge("history_list_length", "1", "undo logs of transactions that ended and were not purged yet"),
    counter("log_sequence_number", "bytes", "position in the redo log up to which changes were made"),
    counter("log_flushed", "bytes", "position in the redo log up to which it is on disk"),
    counter(
        "last_checkpoint",
        "bytes",
        "position in the redo log before which nothing is needed after a crash",
    ),
    gauge(
        "checkpoint_age",
        "bytes",
        "redo log since the last checkpoint: log_sequence_number less last_checkpoint",
    ),
    gauge("pending_reads", "1", "pages that are being read into the buffer pool"),
    gauge("pending_writes", "1", "pages of the buffer pool that wait to be written, of all its lists"),
    gauge("pending_log_flushes", "1", "flushes of the redo log that are under way"),
    gauge("pending_page_flushes", "1", "flushes of data files that are under way"),
    counter(
        "semaphore_reservations",
        "1",
        "times that a thread took a place in the array of those that sleep on a lock",
    ),
    counter("semaphore_signals", "1", "times that a thread in that array was woken"),
    counter("mutex_spins", "1", "waits for a mutex that began by spinning"),
    counter("mutex_rounds", "1", "rounds that were spun for mutexes"),
    counter("mutex_os_waits", "1", "waits for a mutex that went to sleep"),
    counter("rw_shared_rounds", "1", "rounds that were spun for shared read-write locks"),
    counter("rw_shared_os_waits", "1", "waits for shared read-write locks that went to sleep"),
    counter("rw_excl_rounds", "1", "rounds that were spun for exclusive read-write locks"),
    counter("rw_excl_os_waits", "1", "waits for exclusive read-write locks that went to sleep"),
    counter("rw_sx_rounds", "1", "rounds that were spun for shared-exclusive read-write locks"),
    counter("rw_sx_os_waits", "1", "waits for shared-exclusive read-write locks that went to sleep"),
];

pub(crate) struct InnodbStatus {
    sql: Sql,
    pace: Pace,
}

impl InnodbStatus {
    pub(crate) fn new(sql: Sql) -> InnodbStatus {
        InnodbStatus { sql, pace: Pace::default() }
    }
}

impl Sampler for InnodbStatus {
    fn source(&self) -> &'static str {
        "innodb_status"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let begin_ns = monotonic_ns();
        if !self.pace.due(begin_ns) {
            batch.nothing_to_read();
            return Ok(());
        }
        let numbers = self.sql.run(async |conn| status(conn).await)?;
        self.pace.spent(begin_ns, monotonic_ns() - begin_ns);
        match numbers {
            Some(numbers) => put(batch, &numbers),
            None => {
                return Err(Failure::Absent(
                    "InnoDB's status, such as the length of its history list: grant PROCESS".to_string(),
                ));
            }
        }
        Ok(())
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        if let Some(numbers) = self.sql.run_last(async |conn| status(conn).await)? {
            put(batch, &numbers);
        }
        Ok(())
    }
}

fn put(batch: &mut Batch<'_>, numbers: &[Number]) {
    for (name, value) in numbers {
        if let Some(metric) = METRICS.iter().find(|metric| metric.name == *name) {
            batch.put(metric, "", *value);
        }
    }
}

/// `None` where the server refuses.
async fn status(conn: &mut ControlConnection<'_>) -> Result<Option<Vec<Number>>, Error> {
    match conn.query_first::<Row, _>("SHOW ENGINE INNODB STATUS").await {
        Ok(row) => Ok(Some(row.as_ref().and_then(|row| text_of(row, 2)).map(numbers).unwrap_or_default())),
        Err(Error::Server(error)) if is_not_for_us(error.code) => Ok(None),
        Err(error) => Err(error),
    }
}
