//! The sampler: the cost of a snapshot bounds how often it is taken.

use std::collections::BTreeSet;

use whyso_clock::monotonic_ns;
use whyso_record::data::TextRows;

use super::activity::RowLockActivity;
use super::sources::Sources;
use crate::metric::{Metric, gauge};
use crate::sampler::{Failure, Sampler};
use crate::schedule::Pace;
use crate::sink::Batch;
use crate::sql::Sql;
use whyso_model::{LockKind, LockWait};

pub(crate) const METRICS: [Metric; 2] = [
    gauge("waiting", "1", "connections that wait for a lock, by kind of lock"),
    gauge("snapshot_ns", "ns", "time that the last snapshot of the lock tables took"),
];
const WAITING: Metric = METRICS[0];
const SNAPSHOT_NS: Metric = METRICS[1];

/// A snapshot that took 25 ms is repeated after 500 ms at the earliest: 5 % of the time. Most of that is waiting where the server is busy.
const PACE_FACTOR: i64 = 20;

pub(crate) struct LockWaits {
    sql: Sql,
    activity: RowLockActivity,
    sources: Sources,
    /// Row locks were read once, so that what is not permitted is reported although nobody waits.
    probed: bool,
    rows_pace: Pace,
    others_pace: Pace,
    /// Time that the last snapshot of InnoDB's lock tables took; `None` until one was taken.
    snapshot_ns: Option<u64>,
}

impl LockWaits {
    pub(crate) fn new(sql: Sql, activity: RowLockActivity) -> LockWaits {
        LockWaits {
            sql,
            activity,
            sources: Sources::default(),
            probed: false,
            rows_pace: Pace::default(),
            others_pace: Pace::default(),
            snapshot_ns: None,
        }
    }

    /// `None` where no snapshot was taken.
    fn rows(&mut self) -> Result<Option<Vec<LockWait>>, Failure> {
        let begin_ns = monotonic_ns();
        if self.probed && !self.activity.is_snapshot_worthwhile(begin_ns) {
            // InnoDB's own counter shows that nobody waits.
            self.activity.found_waiting(begin_ns, BTreeSet::new());
            return Ok(Some(Vec::new()));
        }
        if !self.rows_pace.due(begin_ns) {
            return Ok(None);
        }
        let sources = &mut self.sources;
        let waits = self.sql.run(async |conn| sources.rows(conn).await)?;
        self.snapshot_ns = Some((monotonic_ns() - begin_ns).max(0).unsigned_abs());
        self.activity.found_waiting(begin_ns, waits.iter().map(|wait| wait.waiting).collect());
        // The first one connects, and asks which tables there are.
        if self.probed {
            self.rows_pace.rest(begin_ns, monotonic_ns() - begin_ns, PACE_FACTOR);
        }
        Ok(Some(waits))
    }

    fn others(&mut self) -> Result<Option<Vec<LockWait>>, Failure> {
        let begin_ns = monotonic_ns();
        if !self.others_pace.due(begin_ns) {
            return Ok(None);
        }
        let sources = &mut self.sources;
        let waits = self.sql.run(async |conn| sources.others(conn).await)?;
        if self.probed {
            self.others_pace.rest(begin_ns, monotonic_ns() - begin_ns, PACE_FACTOR);
        }
        Ok(Some(waits))
    }
}

impl Sampler for LockWaits {
    fn source(&self) -> &'static str {
        LockWait::SOURCE
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let t_ns = monotonic_ns();
        let rows = self.rows()?;
        let others = self.others()?;
        self.probed = true;
        for line in self.sources.absent.drain(..) {
            batch.absent(line);
        }
        if rows.is_none() && others.is_none() {
            batch.nothing_to_read();
            return Ok(());
        }
        for kind in LockKind::ALL {
            let snapshot = if kind == LockKind::Row { &rows } else { &others };
            if let Some(waits) = snapshot {
                let count = waits.iter().filter(|wait| wait.kind == kind).count();
                batch.put(&WAITING, kind.name(), count as u64);
            }
        }
        if let Some(snapshot_ns) = self.snapshot_ns {
            batch.put(&SNAPSHOT_NS, "", snapshot_ns);
        }
        let waits: Vec<LockWait> = rows.into_iter().chain(others).flatten().collect();
        if !waits.is_empty() {
            batch.sink.rows(TextRows {
                source: LockWait::SOURCE.to_string(),
                t_ns,
                columns: LockWait::COLUMNS.map(str::to_string).to_vec(),
                rows: waits.into_iter().map(|wait| wait.into_cells().to_vec()).collect(),
            });
        }
        Ok(())
    }
}
