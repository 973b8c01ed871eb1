//! The tables in which a server shows lock waits: found by asking, and remembered.

use mysql_async::{Conn, Error};

use super::metadata::{self, MetadataSource};
use super::rows::RowSource;
use crate::own_statements::ControlConnection;
use crate::sql::is_not_for_us;
use whyso_model::{LockKind, LockWait, Missing, NotMeasured};

/// What one snapshot found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockSnapshot {
    pub waits: Vec<LockWait>,
    /// What the server does not show, or not to this user, and what would change that; a sentence each.
    pub absent: Vec<NotMeasured>,
}

/// Every connection that waits for a lock now.
///
/// # Errors
/// The server closed the connection, or the like; that it does not have a table is none.
pub async fn lock_waits(conn: &mut Conn) -> Result<LockSnapshot, Error> {
    let conn = &mut ControlConnection::uncounted(conn);
    let mut sources = Sources::default();
    let mut waits = sources.rows(conn).await?;
    waits.extend(sources.others(conn).await?);
    Ok(LockSnapshot { waits, absent: sources.absent })
}

#[derive(Clone, Copy, Debug, Default)]
enum ProbeResult<T> {
    #[default]
    Not,
    Found(T),
    Absent,
}

#[derive(Debug, Default)]
pub(super) struct Sources {
    rows: ProbeResult<RowSource>,
    metadata: ProbeResult<MetadataSource>,
    others_are_absent: bool,
    holders_of_user_locks_are_absent: bool,
    /// What was found not to be there, each reported once.
    pub(super) absent: Vec<NotMeasured>,
}

impl Sources {
    /// Waits for InnoDB's locks.
    pub(super) async fn rows(&mut self, conn: &mut ControlConnection<'_>) -> Result<Vec<LockWait>, Error> {
        let candidates: &[RowSource] = match &self.rows {
            ProbeResult::Not => &RowSource::ALL,
            ProbeResult::Found(RowSource::DataLocks) => &[RowSource::DataLocks],
            ProbeResult::Found(RowSource::InnodbLocks) => &[RowSource::InnodbLocks],
            ProbeResult::Absent => return Ok(Vec::new()),
        };
        let mut refused = None;
        for source in candidates {
            match source.read(conn).await {
                Ok(waits) => {
                    self.rows = ProbeResult::Found(*source);
                    return Ok(waits);
                }
                // What the last one lacks is reported, unless one before it is there and refused.
                Err(Error::Server(error)) if is_not_for_us(error.code) => {
                    let is_refused = matches!(error.code, 1142 | 1143 | 1227);
                    if is_refused || refused.is_none() {
                        refused = Some(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        self.rows = ProbeResult::Absent;
        let why =
            refused.map_or(String::new(), |error| format!(": {} (error {})", error.message, error.code));
        let line = format!(
            "who waits for whom in row locks{why}; grant PROCESS, and SELECT on performance_schema.*"
        );
        self.absent.push(NotMeasured::of_line(Missing::RowLockWaits, &line));
        Ok(Vec::new())
    }

    /// Waits for locks of the SQL layer.
    pub(super) async fn others(&mut self, conn: &mut ControlConnection<'_>) -> Result<Vec<LockWait>, Error> {
        if self.others_are_absent {
            return Ok(Vec::new());
        }
        let mut waits = match metadata::waiters(conn).await {
            Ok(waits) => waits,
            Err(Error::Server(error)) if is_not_for_us(error.code) => {
                self.others_are_absent = true;
                let why = format!("{} (error {})", error.message, error.code);
                let what = "waits for metadata locks";
                self.absent.push(NotMeasured::new(Missing::MetadataLockWaits, what, why));
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        if waits.iter().any(|wait| wait.kind == LockKind::Metadata) {
            self.learn_metadata(&mut waits, conn).await?;
        } else if waits.iter().any(|wait| wait.kind == LockKind::User)
            && !self.holders_of_user_locks_are_absent
        {
            self.learn_holders_of_user_locks(&mut waits, conn).await?;
        }
        Ok(waits)
    }

    /// Where the Performance Schema does not show them, they stay unknown.
    async fn learn_holders_of_user_locks(
        &mut self,
        waits: &mut [LockWait],
        conn: &mut ControlConnection<'_>,
    ) -> Result<(), Error> {
        match metadata::learn(waits, MetadataSource::PerformanceSchema, conn).await {
            Ok(()) => {}
            Err(Error::Server(error)) if is_not_for_us(error.code) => {
                self.holders_of_user_locks_are_absent = true;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn learn_metadata(
        &mut self,
        waits: &mut [LockWait],
        conn: &mut ControlConnection<'_>,
    ) -> Result<(), Error> {
        let candidates: &[MetadataSource] = match &self.metadata {
            ProbeResult::Not => &MetadataSource::ALL,
            ProbeResult::Found(MetadataSource::PerformanceSchema) => &[MetadataSource::PerformanceSchema],
            ProbeResult::Found(MetadataSource::Plugin) => &[MetadataSource::Plugin],
            ProbeResult::Absent => return Ok(()),
        };
        for source in candidates {
            match metadata::learn(waits, *source, conn).await {
                // A table that is there and empty is that of an instrument that is off.
                Ok(()) if waits.iter().any(|wait| !wait.object.is_empty()) => {
                    self.metadata = ProbeResult::Found(*source);
                    return Ok(());
                }
                Ok(()) => {}
                Err(Error::Server(error)) if is_not_for_us(error.code) => {}
                Err(error) => return Err(error),
            }
        }
        self.metadata = ProbeResult::Absent;
        self.absent.push(NotMeasured::new(
            Missing::MetadataLockTables,
            "which table a metadata lock is on, and who holds it",
            "turn on the Performance Schema's instrument wait/lock/metadata/sql/mdl, or in MariaDB INSTALL SONAME \
             'metadata_lock_info'",
        ));
        Ok(())
    }
}
