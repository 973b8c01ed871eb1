//! Causes that lie with the logs: the redo log's writes, flushes and checkpoints, and the binary log.

use super::case::{Case, FileTime};
use super::claim::Claim;
use super::model::Cause;
use crate::model::Part;

/// A log in whose one file threads are in writes from this share of the time on may be what commits wait for.
const BUSY: f64 = 0.5;

/// The same for syncs, in which no other thread can get its own log written.
const BUSY_MIN: f64 = 0.06;

/// Below this share of the response time a log's own waits are not worth a word.
const SHARE_MIN: f64 = 0.03;

/// The checkpoint's age as a share of its limit from which InnoDB makes transactions wait.
const CHECKPOINT_AGE_MIN: f64 = 0.9;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [redo_flush(case), redo_write(case), binlog(case), checkpoint(case)].into_iter().flatten().collect()
}

pub(super) fn is_redo(path: &str) -> bool {
    path.contains("ib_logfile") || path.contains("#innodb_redo") || path.contains("#ib_redo")
}

fn is_binlog(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, number) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_numbered = number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_numbered && !stem.contains("relay")
}

/// Commits of transactions that wrote something, for one transaction of the load.
pub(super) fn commits(case: &Case) -> f64 {
    let (begun, _) = case.counts(&["Handler_commit"]);
    if case.writes() > 0.0 { begun.max(1e-9) } else { 0.0 }
}

/// The log whose writes and syncs threads were in for longer. Where that is not known, the binary log if it is synced with each commit.
pub(super) fn busier(case: &Case) -> Cause {
    let busy = |is_log: fn(&str) -> bool| {
        ["file_sync", "file_write"].map(|state| case.file_waits(state, is_log).busy).iter().sum::<f64>()
    };
    let syncs_binlog = case.is_on("log_bin") && case.number("sync_binlog").is_some_and(|every| every >= 1.0);
    let is_binlog_busier = match case.has_file_waits() {
        true => busy(is_binlog) > busy(is_redo),
        false => syncs_binlog,
    };
    if is_binlog_busier { Cause::Binlog } else { Cause::RedoFlush }
}

fn redo_flush(case: &Case) -> Option<Claim> {
    let at_commit = case.variable("innodb_flush_log_at_trx_commit");
    if at_commit.is_some_and(|value| value != "1") || commits(case) == 0.0 {
        return None;
    }
    let (own_ms, busy, what) = if case.has_file_waits() {
        let FileTime { busy, connection_ms } = case.file_waits("file_sync", is_redo);
        (connection_ms.min(case.ms(Part::FileSync)), busy, "the redo log was in fsync")
    } else if case.is_traced() {
        // Which file was synced is not known.
        let busy = case.ms(Part::FileSync) * case.transactions / case.level.seconds / 1e3;
        (0.0, busy, "connections were in fsync")
    } else {
        (0.0, disk_flushes_busy(case), "a disk was flushing its cache")
    };
    if busy < BUSY_MIN && case.share(own_ms) < SHARE_MIN {
        return None;
    }
    let setting = at_commit.map_or("", |_| ", and innodb_flush_log_at_trx_commit is 1");
    let why = format!(
        "{what} {} of the time{setting}: each commit waits for the log to be on disk",
        whyso_words::percent(busy.min(1.0))
    );
    Some(
        Claim::new(Cause::RedoFlush, "flushes of the redo log hold", why)
            .holds(own_ms)
            .may_be_in(&[Part::Lock, Part::FileSync])
            .certain(0.9)
            .rests_on(case.parts(&[Part::FileSync, Part::Lock]))
            .rests_on(case.fact("innodb_flush_log_at_trx_commit")),
    )
}

/// Disks' time in flushes as a share of the window, the busiest of them.
fn disk_flushes_busy(case: &Case) -> f64 {
    let busy = |counter: &crate::model::Counter| counter.increase / 1e9 / case.level.seconds;
    case.disks("flush_ns").map(busy).fold(0.0, f64::max)
}

fn redo_write(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let waits = case.count(&["Innodb_log_waits", "log_waits"]);
    let waited = waits.as_ref().map_or(0.0, |waits| waits.per_transaction);
    let written = case.file_waits("file_write", is_redo);
    if waited < 1e-3 && case.share(written.connection_ms) < SHARE_MIN && written.busy < BUSY {
        return None;
    }
    let mut parts = Vec::new();
    if waited >= 1e-3 {
        parts
            .push(format!("the redo log's buffer was full {} times per {unit}", whyso_words::number(waited)));
    }
    if written.busy > 0.0 {
        parts.push(format!(
            "threads were in writes to the redo log {} of the time",
            whyso_words::percent(written.busy.min(1.0))
        ));
    }
    Some(
        Claim::new(Cause::RedoWrite, "writes of the redo log hold", whyso_words::list(&parts))
            .holds(written.connection_ms.min(case.ms(Part::FileWrite)))
            .may_be_in(&[Part::Lock])
            .rests_on(case.parts(&[Part::FileWrite, Part::Lock]))
            .rests_on(waits.map(|waits| case.series(&waits.series)))
            .rests_on(case.fact("innodb_log_buffer_size")),
    )
}

fn binlog(case: &Case) -> Option<Claim> {
    let is_synced = case.number("sync_binlog").is_some_and(|every| every >= 1.0);
    if !case.is_on("log_bin") || commits(case) == 0.0 {
        return None;
    }
    let synced = case.file_waits("file_sync", is_binlog);
    let written = case.file_waits("file_write", is_binlog);
    let busy = synced.busy + written.busy;
    let own_ms = synced.connection_ms.min(case.ms(Part::FileSync))
        + written.connection_ms.min(case.ms(Part::FileWrite));
    let is_busy = if case.has_file_waits() { busy >= BUSY_MIN } else { is_synced };
    if !is_busy && case.share(own_ms) < SHARE_MIN {
        return None;
    }
    let setting =
        case.variable("sync_binlog").map_or(String::new(), |value| format!(", and sync_binlog is {value}"));
    let why = if case.has_file_waits() {
        format!(
            "threads were in writes and syncs of the binary log {} of the time{setting}",
            whyso_words::percent(busy.min(1.0))
        )
    } else {
        format!("the binary log is on{setting}: commits wait for it, one group after the other")
    };
    Some(
        Claim::new(Cause::Binlog, "the binary log holds", why)
            .holds(own_ms)
            .may_be_in(&[Part::Lock, Part::FileSync])
            .certain(0.9)
            .rests_on(case.parts(&[Part::FileSync, Part::FileWrite, Part::Lock]))
            .rests_on(case.fact("sync_binlog"))
            .rests_on(case.fact("log_bin")),
    )
}

fn checkpoint(case: &Case) -> Option<Claim> {
    const AGES: [[&str; 2]; 2] = [
        ["Innodb_checkpoint_age", "Innodb_checkpoint_max_age"],
        ["log_lsn_checkpoint_age", "log_max_modified_age_sync"],
    ];
    let (age, limit) = AGES.iter().find_map(|[age, limit]| Some((case.gauge(age)?, case.gauge(limit)?)))?;
    let share = age.1 / limit.0;
    if share < CHECKPOINT_AGE_MIN || !share.is_finite() {
        return None;
    }
    let why = format!(
        "the redo log was {} full of changes that no checkpoint covers, so transactions wait until pages are flushed",
        whyso_words::percent(share.min(1.0))
    );
    Some(
        Claim::new(Cause::Checkpoint, "waits for the checkpoint hold", why)
            .may_be_in(&[Part::Lock, Part::Sleep])
            .rests_on([case.series(&age.2), case.series(&limit.2)])
            .rests_on(case.fact("innodb_log_file_size").or_else(|| case.fact("innodb_redo_log_capacity"))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_known_by_their_files() {
        assert!(is_redo("/data/ib_logfile0") && is_redo("/data/#innodb_redo/#ib_redo12"));
        assert!(is_binlog("/data/mysql-bin.000003") && is_binlog("binlog.1000001"));
        assert!(!is_binlog("/data/sbtest/sbtest1.ibd") && !is_binlog("/data/relay-bin.000002"));
        assert!(!is_redo("/data/ibdata1") && !is_binlog("/data/mysql-bin.index"));
    }
}
