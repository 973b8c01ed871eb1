//! Causes that lie with pages on their way between memory and disk.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use crate::budget::busiest;
use crate::model::Part;

/// Pages read from or written to swap a second that are worth a word.
const SWAPPED_PER_S_MIN: f64 = 10.0;

/// Threads at a time in writes and syncs of the doublewrite buffer from which others may wait for it.
const BUSY_MIN: f64 = 0.3;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [buffer_pool_miss(case), page_flush(case), doublewrite(case), swap(case), kernel_inode_lock(case)]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether it is a file whose pages the buffer pool holds: tables' and system tablespaces and undo logs, and no temporary table's.
fn is_innodb_data(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_undo = name.ends_with(".ibu")
        || name.strip_prefix("undo").is_some_and(|number| {
            let number = number.trim_start_matches('_');
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
    let is_table = name.ends_with(".ibd") && !name.starts_with("#sql");
    is_table || is_undo || name.starts_with("ibdata")
}

fn buffer_pool_miss(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let reads = case.count(&["Innodb_buffer_pool_reads", "buffer_pool_reads"])?;
    if reads.per_transaction < 0.01 {
        return None;
    }
    // With a trace the time of reads by file; without one, the time that a read took on the disks.
    let ms = match case.is_traced() {
        true => case.file_waits("file_read", is_innodb_data).connection_ms.min(case.ms(Part::FileRead)),
        false => reads.per_transaction * disk_read_ms(case),
    };
    let is_unknown = case.is_traced() && !case.has_file_waits();
    if case.share(ms) < 0.03 && !is_unknown {
        return None;
    }
    let asked = case.count(&["Innodb_buffer_pool_read_requests", "buffer_pool_read_requests"]);
    let of_all = asked.filter(|asked| asked.per_transaction > 0.0).map_or(String::new(), |asked| {
        format!(
            ", {} of those that it asks for",
            whyso_words::percent(reads.per_transaction / asked.per_transaction)
        )
    });
    let why = format!(
        "{} pages per {unit} are not in the buffer pool{of_all}",
        whyso_words::number(reads.per_transaction)
    );
    let claim = Claim::new(Cause::BufferPoolMiss, "reads of pages from disk hold", why)
        .certain(if case.is_traced() { 0.95 } else { 0.6 })
        .by(if case.is_traced() { Class::Measured } else { Class::Inferred })
        .may_be_in(&[Part::FileRead])
        .rests_on(case.parts(&[Part::FileRead]))
        .rests_on([case.series(&reads.series)])
        .rests_on(case.fact("innodb_buffer_pool_size"));
    Some(if case.is_traced() { claim.holds(ms) } else { claim.holds_lock(ms.min(case.lock_ms())) })
}

/// Mean time of a read on the disks that were read from.
fn disk_read_ms(case: &Case) -> f64 {
    let sum = |metric: &str| -> f64 { case.disks(metric).map(|counter| counter.increase.max(0.0)).sum() };
    let reads = sum("reads");
    if reads > 0.0 { sum("read_ns") / reads / 1e6 } else { 0.0 }
}

fn page_flush(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let waits = case.count(&["Innodb_buffer_pool_wait_free", "buffer_pool_wait_free"])?;
    let own = case.file_waits("file_write", |path| path.ends_with(".ibd"));
    if waits.per_transaction < 1e-3 {
        return None;
    }
    let flusher =
        busiest(case.level).filter(|busy| busy.role.contains("cleaner")).map_or(String::new(), |busy| {
            format!(
                ", while the {} is {} {} of the time",
                busy.role,
                busy.state,
                whyso_words::percent(busy.share)
            )
        });
    let why = format!(
        "a free page was waited for {} times per {unit}{flusher}",
        whyso_words::number(waits.per_transaction)
    );
    Some(
        Claim::new(Cause::PageFlush, "waits for changed pages to be written hold", why)
            .holds(own.connection_ms.min(case.ms(Part::FileWrite)))
            .may_be_in(&[Part::Lock, Part::FileWrite])
            .rests_on([case.series(&waits.series)])
            .rests_on(case.parts(&[Part::Lock, Part::FileWrite]))
            .rests_on(case.fact("innodb_io_capacity")),
    )
}

fn doublewrite(case: &Case) -> Option<Claim> {
    if !case.is_on("innodb_doublewrite") && case.variable("innodb_doublewrite").is_some() {
        return None;
    }
    let is_buffer = |path: &str| path.contains("dblwr") || path.ends_with("ibdata1");
    let written = case.file_waits("file_write", is_buffer);
    let synced = case.file_waits("file_sync", is_buffer);
    let own_ms = written.connection_ms + synced.connection_ms;
    let busy = written.busy + synced.busy;
    let waits = case.count(&["Innodb_buffer_pool_wait_free", "buffer_pool_wait_free"]);
    let is_waited_for = waits.as_ref().is_some_and(|waits| waits.per_transaction >= 1e-3);
    if case.share(own_ms) < 0.03 && !(is_waited_for && busy > BUSY_MIN) {
        return None;
    }
    let why = format!(
        "threads were in writes and syncs of the doublewrite buffer {} of the time{}",
        whyso_words::percent(busy.min(1.0)),
        if is_waited_for { " while transactions wait for free pages" } else { "" }
    );
    Some(
        Claim::new(Cause::Doublewrite, "the doublewrite buffer holds", why)
            .holds(own_ms.min(case.ms(Part::FileWrite) + case.ms(Part::FileSync)))
            .may_be_in(&[Part::Lock])
            .rests_on(case.parts(&[Part::FileWrite, Part::FileSync]))
            .rests_on(case.fact("innodb_doublewrite")),
    )
}

fn swap(case: &Case) -> Option<Claim> {
    let moved: Vec<_> = ["pswpin", "pswpout"]
        .iter()
        .filter_map(|metric| case.measure("memory", metric, ""))
        .filter(|measure| !measure.series.is_of_generator())
        .collect();
    let per_s: f64 = moved.iter().map(|measure| measure.per_s).sum();
    if per_s < SWAPPED_PER_S_MIN {
        return None;
    }
    let why = format!("{} pages per second moved between memory and swap", whyso_words::number(per_s));
    let claim = Claim::new(Cause::Swap, "memory that was swapped out holds", why)
        .rests_on(moved.iter().map(|measure| case.series(&measure.series)))
        .rests_on(case.parts(&[Part::PageFault]));
    Some(claim.holds(case.ms(Part::PageFault)).may_be_in(&[Part::PageFault, Part::Lock]).certain(0.95))
}

/// One thread at a time may write to a file, as some file systems have it: the kernel's lock of the file's inode.
fn kernel_inode_lock(case: &Case) -> Option<Claim> {
    let ms = case.ms(Part::KernelLock);
    if case.share(ms) < 0.03 {
        return None;
    }
    let file = case
        .worst_file("kernel_lock")
        .map_or(String::new(), |wait| format!(", on {} most of all", wait.path));
    let why = format!("the server's threads slept inside the kernel on a lock{file}");
    Some(
        Claim::new(Cause::KernelInodeLock, "locks inside the kernel hold", why)
            .holds(ms)
            .certain(0.95)
            .rests_on(case.parts(&[Part::KernelLock]))
            .rests_on(case.fact("innodb_flush_method")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_buffer_pool_are_known_by_their_files() {
        for path in [
            "/tmp/data/shop/orders.ibd",
            "/data/ibdata1",
            "/data/undo001",
            "/data/undo_002",
            "/data/mysql.ibd",
        ] {
            assert!(is_innodb_data(path), "{path}");
        }
        for path in [
            "/data/ibtmp1",
            "/data/#innodb_temp/temp_1.ibt",
            "/tmp/#sql-temptable-1f-3-0.MAI",
            "/tmp/#sqla_0.MAD",
            "/data/shop/#sql-ib99.ibd",
            "/data/shop/old.MYD",
            "/data/ib_logfile0",
            "/data/mysql-bin.000001",
        ] {
            assert!(!is_innodb_data(path), "{path}");
        }
    }
}
