//! Waits for the server's own locks, by the instrument that counts them: the Performance Schema's mutexes, read-write locks, conditions and
//! metadata locks; its waits by table; and InnoDB's own count of waits by lock, `SHOW ENGINE INNODB MUTEX`, in servers that still have one.
//!
//! All of it is read one after the other on one connection, never two at a time, and not soon again where it was dear: a summary adds up what
//! every thread has counted. The server is asked what is on; nothing is turned on. Times are of every thread, those in the background
//! included, and a condition's are mostly those of threads that wait for work.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use whyso_clock::monotonic_ns;
use whyso_record::data::{Kind, Value};

use crate::metric::{Metric, counter};
use crate::sampler::{Failure, Sampler};
use crate::schedule::Pace;
use crate::sink::Batch;
use crate::sql::{Sql, bounded_select, is_not_for_us};
use crate::status::text_of;

pub(crate) const METRICS: [Metric; 7] = [
    counter("count", "1", "how often an instrument of the Performance Schema counted a wait"),
    counter("wait_ns", "ns", "time of these waits, where the instrument is timed"),
    counter("table_lock_count", "1", "locks of the SQL layer that were taken on a table"),
    counter("table_lock_wait_ns", "ns", "time that taking them took"),
    counter("table_io_count", "1", "rows of a table that were read and changed"),
    counter("table_io_wait_ns", "ns", "time that this took, waits for row locks included"),
    counter("os_waits", "1", "times that a thread slept on a lock of InnoDB's"),
];
const INSTRUMENT: [Metric; 2] = [METRICS[0], METRICS[1]];
const TABLE_LOCK: [Metric; 2] = [METRICS[2], METRICS[3]];
const TABLE_IO: [Metric; 2] = [METRICS[4], METRICS[5]];
const OS_WAITS: Metric = METRICS[6];

/// Tables that are told, those with the most time.
const TABLES_MAX: usize = 200;
const PICOSECONDS_PER_NS: u64 = 1000;

/// A summary of the Performance Schema, and what its lines are recorded as.
struct Summary {
    what: String,
    metrics: [Metric; 2],
}

pub(crate) struct Instruments {
    sql: Sql,
    /// Those that are there, once that was asked.
    summaries: Option<Vec<Summary>>,
    innodb_has_its_own: bool,
    pace: Pace,
}

impl Instruments {
    pub(crate) fn new(sql: Sql) -> Instruments {
        Instruments { sql, summaries: None, innodb_has_its_own: true, pace: Pace::default() }
    }
}

impl Sampler for Instruments {
    fn source(&self) -> &'static str {
        "instruments"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let begin_ns = monotonic_ns();
        if !self.pace.due(begin_ns) {
            batch.nothing_to_read();
            return Ok(());
        }
        if self.summaries.is_none() {
            let (found, absent) = self.sql.run(async |conn| probe(conn).await)?;
            absent.into_iter().for_each(|line| batch.absent(line));
            self.summaries = Some(found);
        }
        let summaries = self.summaries.as_deref().unwrap_or_default();
        let innodb = &mut self.innodb_has_its_own;
        let read_ns = monotonic_ns();
        self.sql.run(async |conn| read_all(conn, summaries, innodb, batch).await)?;
        self.pace.spent(begin_ns, monotonic_ns() - read_ns);
        match summaries.is_empty() && !*innodb {
            true => Err(Failure::Absent(
                "InnoDB's own count of waits by lock, SHOW ENGINE INNODB MUTEX: grant PROCESS".to_string(),
            )),
            false => Ok(()),
        }
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let Some(summaries) = self.summaries.as_deref() else {
            batch.nothing_to_read();
            return Ok(());
        };
        let innodb = &mut self.innodb_has_its_own;
        self.sql.run_last(async |conn| read_all(conn, summaries, innodb, batch).await)
    }
}

/// The summaries that count something here, and a sentence for each that does not.
async fn probe(conn: &mut Conn) -> Result<(Vec<Summary>, Vec<String>), Error> {
    let mut found = Vec::new();
    let mut absent = Vec::new();
    let is_on: Option<Option<String>> =
        unless_absent(conn.query_first("SELECT @@performance_schema").await)?.flatten();
    if is_on.flatten().as_deref() != Some("1") {
        absent.push(
            "waits by instrument, such as those for one mutex: the Performance Schema is off; start the server with \
             performance_schema=ON and its wait/synch instruments enabled"
                .to_string(),
        );
        return Ok((found, absent));
    }
    let counted = "SELECT COUNT(*), COALESCE(SUM(TIMED = 'YES'), 0) FROM performance_schema.setup_instruments \
                   WHERE NAME LIKE 'wait/synch/%' AND ENABLED = 'YES'";
    match conn.query_first::<(u64, u64), _>(counted).await {
        Ok(Some((1.., 1..))) => {}
        Ok(Some((1.., 0))) => absent.push(
            "the time of waits by instrument: the Performance Schema's wait/synch instruments are not timed; UPDATE \
             performance_schema.setup_instruments SET TIMED = 'YES' WHERE NAME LIKE 'wait/synch/%'"
                .to_string(),
        ),
        Ok(_) => absent.push(
            "waits by instrument, such as those for one mutex: the Performance Schema's wait/synch instruments are off; UPDATE \
             performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'wait/synch/%'"
                .to_string(),
        ),
        Err(Error::Server(error)) if is_not_for_us(error.code) => {
            absent.push(format!(
                "waits by instrument: {} (error {}); grant SELECT on performance_schema.*",
                error.message, error.code
            ));
            return Ok((found, absent));
        }
        Err(error) => return Err(error),
    }
    for summary in summaries() {
        // LIMIT 0 asks whether it is there, and for nothing else.
        let asked = conn.query_drop(format!("SELECT {} LIMIT 0", summary.what)).await;
        if unless_absent(asked)?.is_some() {
            found.push(summary);
        }
    }
    Ok((found, absent))
}

fn summaries() -> [Summary; 3] {
    let of_tables = |table: &str| {
        format!(
            "CONCAT_WS('.', OBJECT_SCHEMA, OBJECT_NAME), COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.{table} \
             WHERE COUNT_STAR > 0 AND OBJECT_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') \
             ORDER BY SUM_TIMER_WAIT DESC"
        )
    };
    let instruments = "EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT \
                       FROM performance_schema.events_waits_summary_global_by_event_name \
                       WHERE COUNT_STAR > 0 AND (EVENT_NAME LIKE 'wait/synch/%' OR EVENT_NAME LIKE 'wait/lock/%')";
    [
        Summary { what: instruments.to_string(), metrics: INSTRUMENT },
        Summary { what: of_tables("table_lock_waits_summary_by_table"), metrics: TABLE_LOCK },
        Summary { what: of_tables("table_io_waits_summary_by_table"), metrics: TABLE_IO },
    ]
}

/// `None` where the server does not have it, or not for this user.
fn unless_absent<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        // 1193: no such variable.
        Err(Error::Server(error)) if is_not_for_us(error.code) || error.code == 1193 => Ok(None),
        Err(error) => Err(error),
    }
}

async fn read_all(
    conn: &mut Conn,
    summaries: &[Summary],
    innodb_has_its_own: &mut bool,
    batch: &mut Batch<'_>,
) -> Result<(), Error> {
    for summary in summaries {
        let limit =
            if summary.metrics == INSTRUMENT { String::new() } else { format!(" LIMIT {TABLES_MAX}") };
        let mut result = conn.query_iter(bounded_select(&format!("{}{limit}", summary.what))).await?;
        while let Some(row) = result.next().await? {
            let Some(name) = text_of(&row, 0) else { continue };
            let number = |at: usize| text_of(&row, at).and_then(|text| text.parse::<u64>().ok());
            let [count, wait] = &summary.metrics;
            if let Some(times) = number(1) {
                put(batch, count, name, times);
            }
            if let Some(picoseconds) = number(2).filter(|picoseconds| *picoseconds > 0) {
                put(batch, wait, name, picoseconds / PICOSECONDS_PER_NS);
            }
        }
    }
    if *innodb_has_its_own {
        *innodb_has_its_own = read_innodb(conn, batch).await?;
    }
    Ok(())
}

fn put(batch: &mut Batch<'_>, metric: &Metric, instance: &str, value: u64) {
    let value = Value::Int(crate::text::count(value));
    batch.put_named(metric.name, instance, value, || (Kind::Counter, metric.unit));
}

/// False where the server refuses.
async fn read_innodb(conn: &mut Conn, batch: &mut Batch<'_>) -> Result<bool, Error> {
    let Some(rows) = unless_absent(conn.query::<mysql_async::Row, _>("SHOW ENGINE INNODB MUTEX").await)?
    else {
        return Ok(false);
    };
    let mut sums: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for row in &rows {
        if let (Some(name), Some(status)) = (text_of(row, 1), text_of(row, 2))
            && let Some(waits) = waits_in(status)
        {
            *sums.entry(lock_name(name)).or_default() += waits;
        }
    }
    for (name, waits) in &sums {
        put(batch, &OS_WAITS, name, *waits);
    }
    Ok(true)
}

/// The number of "os_waits=7" or "waits=7".
fn waits_in(status: &str) -> Option<u64> {
    let (name, number) = status.rsplit_once('=')?;
    number.trim().parse().ok().filter(|_| name.ends_with("waits"))
}

/// A lock's name without the folder of the machine that the server was built on: "rwlock: dict0dict.cc:1107", "log0log.c:832".
fn lock_name(name: &str) -> String {
    let (kind, place) = name.split_once(": ").map_or(("", name), |(kind, place)| (kind, place));
    let place = place.rsplit('/').next().unwrap_or(place);
    if kind.is_empty() { place.to_string() } else { format!("{kind}: {place}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn innodbs_own_lines_give_a_name_and_a_number() {
        assert_eq!(waits_in("os_waits=7"), Some(7));
        assert_eq!(waits_in("waits=12"), Some(12));
        assert_eq!(waits_in("spin=12"), None);
        assert_eq!(waits_in("waits"), None);
        assert_eq!(lock_name("/home/x/storage/innobase/log/log0log.c:832"), "log0log.c:832");
        assert_eq!(lock_name("rwlock: dict0dict.cc:1107"), "rwlock: dict0dict.cc:1107");
        assert_eq!(lock_name(""), "");
    }
}
