//! Causes that lie with pages on their way between memory and disk.

use super::case::Case;
use super::claim::Claim;
use super::model::Cause;
use crate::budget::busiest;
use crate::model::Part;
use crate::numbers;

/// Pages read from or written to swap a second that are worth a word.
const SWAPPED_PER_S_MIN: f64 = 10.0;

/// Time of one page read from swap, where nothing measured it; an order of magnitude.
const SWAP_READ_MS: f64 = 0.2;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [buffer_pool_miss(case), page_flush(case), doublewrite(case), swap(case), kernel_inode_lock(case)]
        .into_iter()
        .flatten()
        .collect()
}

fn buffer_pool_miss(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let reads = case.count(&["Innodb_buffer_pool_reads", "buffer_pool_reads"])?;
    if reads.per_transaction < 0.01 {
        return None;
    }
    let ms =
        if case.is_traced() { case.ms(Part::FileRead) } else { reads.per_transaction * disk_read_ms(case) };
    if case.share(ms) < 0.03 {
        return None;
    }
    let asked = case.count(&["Innodb_buffer_pool_read_requests", "buffer_pool_read_requests"]);
    let of_all = asked.filter(|asked| asked.per_transaction > 0.0).map_or(String::new(), |asked| {
        format!(
            ", {} of those that it asks for",
            numbers::percent(reads.per_transaction / asked.per_transaction)
        )
    });
    let why = format!(
        "{} pages a {unit} are not in the buffer pool{of_all}",
        numbers::plain(reads.per_transaction)
    );
    let claim = Claim::new(Cause::BufferPoolMiss, "reads of pages from disk hold", why)
        .certain(if case.is_traced() { 0.95 } else { 0.6 })
        // Others wait for a page that one reads.
        .asks_for_locks(0.5 * case.share(ms))
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
                numbers::percent(busy.share)
            )
        });
    let why = format!(
        "a free page was waited for {} times a {unit}{flusher}",
        numbers::plain(waits.per_transaction)
    );
    Some(
        Claim::new(Cause::PageFlush, "waits for changed pages to be written hold as much as", why)
            .holds(own.connection_ms.min(case.ms(Part::FileWrite)))
            .asks_for_locks(waits.per_transaction * 10.0)
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
    let strength = if is_waited_for { 0.9 * busy.min(1.0) } else { 0.0 };
    if case.share(own_ms) < 0.03 && strength < 0.3 {
        return None;
    }
    let why = format!(
        "threads were in writes and syncs of the doublewrite buffer {} of the time{}",
        numbers::percent(busy.min(1.0)),
        if is_waited_for { " while transactions wait for free pages" } else { "" }
    );
    Some(
        Claim::new(Cause::Doublewrite, "the doublewrite buffer holds as much as", why)
            .holds(own_ms.min(case.ms(Part::FileWrite) + case.ms(Part::FileSync)))
            .asks_for_locks(strength)
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
    let read = moved.first().map_or(0.0, |measure| measure.per_transaction);
    let why = format!("{} pages a second moved between memory and swap", numbers::plain(per_s));
    let claim = Claim::new(Cause::Swap, "memory that was swapped out holds", why)
        .rests_on(moved.iter().map(|measure| case.series(&measure.series)))
        .rests_on(case.parts(&[Part::PageFault]));
    Some(if case.is_traced() {
        claim.holds(case.ms(Part::PageFault)).asks_for_locks(0.3).certain(0.95)
    } else {
        claim.holds_lock((read * SWAP_READ_MS).min(case.lock_ms())).certain(0.7)
    })
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
