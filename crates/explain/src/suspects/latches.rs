//! Causes that lie with InnoDB's own latches and with the limit on threads. Counters and settings show that threads may have
//! waited, never how long: only stacks give these causes a share. The wait for a thread of the pool is in the time budget, too.

use super::case::Case;
use super::claim::Claim;
use super::model::Cause;
use super::tables::{is_busy_with_locks, is_older_than};
use crate::model::Part;

/// Waits that the operating system had a part in, all kinds of InnoDB's read-write latches.
const OS_WAITS: [&str; 7] = [
    "innodb_rwlock_s_os_waits",
    "innodb_rwlock_x_os_waits",
    "innodb_rwlock_sx_os_waits",
    "Innodb_s_lock_os_waits",
    "Innodb_x_lock_os_waits",
    "Innodb_sx_lock_os_waits",
    "Innodb_mutex_os_waits",
];

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [index_latch(case), page_latch(case), adaptive_hash(case), trx_sys(case), thread_concurrency(case)]
        .into_iter()
        .flatten()
        .collect()
}

fn index_latch(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let splits = case.count(&["index_page_splits", "Innodb_buffer_pool_pages_split"])?;
    if splits.per_transaction < 0.005 || !is_busy_with_locks(case) {
        return None;
    }
    let why = format!(
        "{} index pages split per {unit}, and a split latches the index's upper pages",
        whyso_words::number(splits.per_transaction)
    );
    Some(
        Claim::new(Cause::IndexLatch, "latches on index trees hold", why)
            .may_be_in(&[Part::Lock])
            .rests_on([case.series(&splits.series)])
            .rests_on(case.parts(&[Part::Lock])),
    )
}

fn page_latch(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let (waits, series) = case.counts(&OS_WAITS);
    if waits < 0.02 || !is_busy_with_locks(case) {
        return None;
    }
    let why = format!("threads slept for InnoDB's latches {} times per {unit}", whyso_words::number(waits));
    Some(
        Claim::new(Cause::PageLatch, "latches on pages hold", why)
            .may_be_in(&[Part::Lock])
            .rests_on(case.all_series(&series))
            .rests_on(case.parts(&[Part::Lock])),
    )
}

fn adaptive_hash(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    if !case.is_on("innodb_adaptive_hash_index") || !is_busy_with_locks(case) {
        return None;
    }
    let found = case.count(&["Innodb_adaptive_hash_hash_searches", "adaptive_hash_searches"])?;
    if found.per_transaction < 0.1 {
        return None;
    }
    let parts = case.number("innodb_adaptive_hash_index_parts").unwrap_or(1.0);
    let why = format!(
        "the adaptive hash index is on, in {} parts with a latch each, and a {unit} looks it up {} times",
        whyso_words::number(parts),
        whyso_words::number(found.per_transaction)
    );
    Some(
        Claim::new(Cause::AdaptiveHash, "latches of the adaptive hash index hold", why)
            .may_be_in(&[Part::Lock])
            .rests_on([case.series(&found.series)])
            .rests_on(case.parts(&[Part::Lock]))
            .rests_on(case.fact("innodb_adaptive_hash_index")),
    )
}

/// The list of transactions under one mutex, copied for every read view.
fn trx_sys(case: &Case) -> Option<Claim> {
    if !is_older_than(case, 5, 7) || !is_busy_with_locks(case) || case.level.users < 8 {
        return None;
    }
    let why =
        "this server copies the list of all transactions under one mutex for every read view".to_string();
    Some(
        Claim::new(Cause::TrxSys, "the transaction system's mutex holds", why)
            .may_be_in(&[Part::Lock])
            .rests_on(case.parts(&[Part::Lock]))
            .rests_on(case.fact("version")),
    )
}

/// A limit on the threads that may work at a time: InnoDB's own, or the thread pool's.
fn thread_concurrency(case: &Case) -> Option<Claim> {
    let users = f64::from(case.level.users);
    let limit = case.number("innodb_thread_concurrency").filter(|limit| *limit > 0.0 && *limit < users);
    if let Some(limit) = limit {
        let why = format!(
            "innodb_thread_concurrency lets {} threads into InnoDB at a time, of {} users",
            whyso_words::number(limit),
            whyso_words::number(users)
        );
        return Some(
            Claim::new(Cause::ThreadConcurrency, "the wait to get into InnoDB holds", why)
                .may_be_in(&[Part::Lock, Part::Sleep])
                .rests_on(case.parts(&[Part::Lock, Part::Sleep]))
                .rests_on(case.fact("innodb_thread_concurrency")),
        );
    }
    if case.variable("thread_handling") != Some("pool-of-threads") || case.are_cpus_full() {
        return None;
    }
    let waited_ms = case.ms(Part::TransitIn);
    if case.is_traced() && case.share(waited_ms) < 0.1 {
        return None;
    }
    let threads = case.gauge("Threadpool_threads");
    let at_work = threads
        .as_ref()
        .map_or(String::new(), |threads| format!(" with {} threads", whyso_words::number(threads.0)));
    let why = format!("requests wait in their sockets for a thread of the pool{at_work} while CPUs are idle");
    let claim = Claim::new(Cause::ThreadConcurrency, "the wait for a thread of the pool holds", why)
        .certain(0.85)
        .rests_on(case.parts(&[Part::TransitIn]))
        .rests_on(threads.map(|threads| case.series(&threads.2)))
        .rests_on(case.fact("thread_pool_size"));
    Some(claim.holds(waited_ms).may_be_in(&[Part::TransitIn]))
}
