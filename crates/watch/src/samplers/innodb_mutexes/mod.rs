//! InnoDB's own count of waits by lock, `SHOW ENGINE INNODB MUTEX`, in servers that still have one.

use std::collections::BTreeMap;

use mysql_async::Error;
use whyso_clock::monotonic_ns;

use crate::metric::{Metric, counter};
use crate::own_statements::ControlConnection;
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{NOW_AND_THEN, SamplerEntry, ScheduledSampler, StartContext};
use crate::samplers::status::text_of;
use crate::schedule::Pace;
use crate::sink::Batch;
use crate::sql::{Sql, is_not_for_us};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["innodb_mutexes"],
    counts: "waits for InnoDB's locks",
    origin: "`SHOW ENGINE INNODB MUTEX`",
    metrics: &[&METRICS],
    start,
};

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(sql) = context.sql() else { return Vec::new() };
    vec![ScheduledSampler::of_server(InnodbMutexes::new(sql)).at_least_every(NOW_AND_THEN)]
}

pub(crate) const METRICS: [Metric; 1] =
    [counter("os_waits", "1", "times that a thread slept on a lock of InnoDB's")];
const OS_WAITS: Metric = METRICS[0];

pub(crate) struct InnodbMutexes {
    sql: Sql,
    pace: Pace,
}

impl InnodbMutexes {
    pub(crate) fn new(sql: Sql) -> InnodbMutexes {
        InnodbMutexes { sql, pace: Pace::default() }
    }
}

impl Sampler for InnodbMutexes {
    fn source(&self) -> &'static str {
        "innodb_mutexes"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let begin_ns = monotonic_ns();
        if !self.pace.due(begin_ns) {
            batch.nothing_to_read();
            return Ok(());
        }
        let is_permitted = self.sql.run(async |conn| read_locks(conn, batch).await)?;
        self.pace.spent(begin_ns, monotonic_ns() - begin_ns);
        match is_permitted {
            true => Ok(()),
            false => Err(Failure::Absent(
                "InnoDB's own count of waits by lock, SHOW ENGINE INNODB MUTEX: grant PROCESS".to_string(),
            )),
        }
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        self.sql.run_last(async |conn| read_locks(conn, batch).await).map(|_| ())
    }
}

/// False where the server refuses.
async fn read_locks(conn: &mut ControlConnection<'_>, batch: &mut Batch<'_>) -> Result<bool, Error> {
    let rows: Vec<mysql_async::Row> = match conn.query("SHOW ENGINE INNODB MUTEX").await {
        Ok(rows) => rows,
        Err(Error::Server(error)) if is_not_for_us(error.code) => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for row in &rows {
        if let (Some(name), Some(status)) = (text_of(row, 1), text_of(row, 2))
            && let Some(waits) = waits_in(status)
        {
            *sums.entry(lock_name(name)).or_default() += waits;
        }
    }
    for (name, waits) in &sums {
        batch.put(&OS_WAITS, name, *waits);
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
