//! What sampled stacks show of the sleep on locks and by the clock. Where a rule names a function of a wait's stack, the wait has its cause.

use std::collections::BTreeMap;

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use crate::budget::COUNT_MIN;
use crate::level::Level;
use crate::model::Part;

/// How sure waits are whose stacks were sampled, 0 to 1.
const CERTAINTY: f64 = 0.95;

/// The cause of a wait class; `None` for classes without one, such as the allocator's locks.
fn cause_of(class: &str) -> Option<(Cause, &'static str)> {
    Some(match class {
        "row_lock" => (Cause::RowLock, "waits for row locks hold"),
        "lock_system" => (Cause::LockSys, "latches of the lock system hold"),
        "metadata_lock" => (Cause::MetadataLock, "metadata locks hold"),
        "user_lock" => (Cause::UserLock, "locks that statements ask for by name hold"),
        "sleep" => (Cause::Sleep, "statements that sleep on purpose hold"),
        "table_lock" => (Cause::TableLock, "table locks hold"),
        "table_cache" => (Cause::TableCache, "locks of the table cache hold"),
        "redo_flush" => (Cause::RedoFlush, "waits for flushes of the redo log hold"),
        "redo_write" => (Cause::RedoWrite, "locks of the redo log hold"),
        "binlog" => (Cause::Binlog, "locks of the binary log hold"),
        "page_latch" => (Cause::PageLatch, "latches on pages hold"),
        "page_read" => (Cause::BufferPoolMiss, "waits for pages that are being read hold"),
        "buffer_pool" | "page_flush" => (Cause::PageFlush, "waits for free and flushed pages hold"),
        "checkpoint" => (Cause::Checkpoint, "waits for the checkpoint hold"),
        "auto_increment" => (Cause::AutoIncrement, "locks on AUTO_INCREMENT columns hold"),
        "doublewrite" => (Cause::Doublewrite, "locks of the doublewrite buffer hold"),
        "adaptive_hash" => (Cause::AdaptiveHash, "latches of the adaptive hash index hold"),
        "index_latch" => (Cause::IndexLatch, "latches on index trees hold"),
        "trx_system" => (Cause::TrxSys, "the transaction system's locks hold"),
        "thread_concurrency" => (Cause::ThreadConcurrency, "the wait to get into InnoDB holds"),
        "query_cache" => (Cause::QueryCache, "the query cache's lock holds"),
        _ => return None,
    })
}

/// Those that [`cause_of`] names.
const CLASSES: [&str; 22] = [
    "checkpoint",
    "auto_increment",
    "user_lock",
    "sleep",
    "row_lock",
    "lock_system",
    "metadata_lock",
    "table_lock",
    "table_cache",
    "redo_flush",
    "redo_write",
    "binlog",
    "page_latch",
    "page_read",
    "buffer_pool",
    "page_flush",
    "doublewrite",
    "adaptive_hash",
    "index_latch",
    "trx_system",
    "thread_concurrency",
    "query_cache",
];

/// Fewer followed waits are chance.
const FOLLOWED_MIN: u64 = 20;

/// Whether it is known what those did that the level's connections waited for.
pub(super) fn are_chains_followed(level: &Level) -> bool {
    level.ended_waits.iter().map(|wait| wait.count).sum::<u64>() >= FOLLOWED_MIN
}

/// The share of the time of a class's followed waits in which the ends of their chains had no CPU. These are threads that were ready to run.
/// With it, the number of waits. `None` where too few were followed.
fn without_cpu(level: &Level, class: &str) -> Option<(f64, u64)> {
    let waits = level.ended_waits.iter().find(|wait| wait.class == class)?;
    let ready = waits.deeds.iter().filter(|deed| deed.state == Part::Runqueue.name());
    let share: f64 = ready.map(|deed| deed.share).sum();
    (waits.count >= FOLLOWED_MIN && (0.0..=1.0).contains(&share)).then_some((share, waits.count))
}

struct ClassWaits {
    what: &'static str,
    ms: f64,
    /// Of `ms`, what lies in sleep on locks.
    lock_ms: f64,
    waits: u64,
    class: String,
}

/// Parts of the budget of which only stacks know whose they are.
const PARTS: [Part; 3] = [Part::Lock, Part::Sleep, Part::Other];

/// Gives the claims the sleep that stacks show to be theirs, and adds claims that no counter led to. Time that a counter has measured, such
/// as that of row locks, stays as it is. Chains of waits may show that the thread that was waited for had no CPU meanwhile. That time is
/// not the lock's but goes to holders that were put off their CPU.
pub(super) fn settle(case: &Case, mut claims: Vec<Claim>) -> Vec<Claim> {
    let Some(budget) = case.budget else { return claims };
    let mut sums: BTreeMap<Cause, ClassWaits> = BTreeMap::new();
    let measured: Vec<Cause> =
        claims.iter().filter(|claim| claim.lock_ms > 0.0).map(|claim| claim.cause).collect();
    let (mut preempted_ms, mut followed) = (0.0, 0);
    for class_time in PARTS.into_iter().flat_map(|part| budget.classes_of(part)) {
        let named = cause_of(&class_time.class);
        let is_measured = named.is_some_and(|(cause, _)| measured.contains(&cause));
        let chains = match is_measured || class_time.part != Part::Lock {
            true => None,
            false => without_cpu(case.level, &class_time.class),
        };
        let (without_cpu, waits) = chains.unwrap_or_default();
        preempted_ms += class_time.ms * without_cpu;
        followed += waits;
        let Some((cause, what)) = named else { continue };
        let sum = sums.entry(cause).or_insert(ClassWaits {
            what,
            ms: 0.0,
            lock_ms: 0.0,
            waits: 0,
            class: class_time.words().unwrap_or_default(),
        });
        sum.ms += class_time.ms * (1.0 - without_cpu);
        sum.lock_ms += if class_time.part == Part::Lock { class_time.ms * (1.0 - without_cpu) } else { 0.0 };
        sum.waits += class_time.count;
    }
    // Waits for rows that ended in a deadlock are counted there.
    let deadlocked_ms: f64 =
        claims.iter().filter(|claim| claim.cause == Cause::Deadlock).map(|claim| claim.lock_ms).sum();
    if let Some(rows) = sums.get_mut(&Cause::RowLock) {
        rows.ms = (rows.ms - deadlocked_ms).max(0.0);
        rows.lock_ms = rows.lock_ms.min(rows.ms);
    }
    for claim in &mut claims {
        if let Some(sum) = sums.remove(&claim.cause)
            && claim.lock_ms == 0.0
        {
            claim.ms += sum.ms;
            claim.lock_ms = sum.lock_ms;
            claim.certainty = CERTAINTY;
            claim.class = claim.class.max(Class::Sampled);
            claim.why.push_str(&format!("; {}", describe(case, &sum)));
        }
    }
    for (cause, sum) in sums {
        let why = describe(case, &sum);
        claims.push(
            Claim::new(cause, sum.what, why)
                .holds_lock(sum.lock_ms)
                .holds(sum.ms - sum.lock_ms)
                .certain(CERTAINTY)
                .by(Class::Sampled)
                .rests_on(case.parts(&[Part::Lock])),
        );
    }
    if preempted_ms > 0.0 {
        claims.push(preempted_holder(case, preempted_ms, followed));
    }
    claims
}

/// Whether stacks would have shown the waits of a cause, and showed none: then it is not possible any more.
pub(super) fn is_ruled_out(case: &Case, claim: &Claim) -> bool {
    let Some(budget) = case.budget else { return false };
    let has_class =
        CLASSES.iter().any(|class| cause_of(class).is_some_and(|(cause, _)| cause == claim.cause));
    let is_divided = |part: &Part| match part {
        Part::FileRead | Part::FileWrite | Part::FileSync => case.has_file_waits(),
        part => PARTS.contains(part) && budget.classes_of(*part).next().is_some(),
    };
    let mut parts = claim.may_be_in.iter().filter(|part| budget.ms(**part) > 0.0);
    has_class && !claim.may_be_in.is_empty() && parts.all(is_divided)
}

fn preempted_holder(case: &Case, ms: f64, waits: u64) -> Claim {
    let why = format!(
        "for {} per {} those that connections waited for were ready to run and had no CPU, by {} waits whose chains were \
         followed to their ends",
        whyso_words::milliseconds(ms),
        case.unit(),
        whyso_words::whole(waits)
    );
    Claim::new(Cause::PreemptedHolder, "locks whose holders were put off their CPU hold", why)
        .holds_lock(ms)
        .certain(CERTAINTY)
        .by(Class::Sampled)
        .rests_on(case.parts(&[Part::Lock, Part::Runqueue]))
}

fn describe(case: &Case, sum: &ClassWaits) -> String {
    format!(
        "{} per {} were waits of the class {}, by the stacks of {} waits",
        whyso_words::milliseconds(sum.ms),
        case.unit(),
        sum.class,
        whyso_words::whole(sum.waits)
    )
}

/// CPU time of the mean transaction that was spent spinning, in ms; `None` where no stacks were sampled.
pub(super) fn spun(case: &Case) -> Option<(f64, u64, Vec<String>)> {
    let budget = case.budget?;
    let on_cpu = || case.level.wait_classes.iter().filter(|class| class.state == Part::Cpu.name());
    if on_cpu().map(|class| class.count).sum::<u64>() < COUNT_MIN {
        return None;
    }
    let (mut ms, mut names) = (0.0, Vec::new());
    let mut count = 0;
    for class in budget.classes_of(Part::Cpu) {
        ms += class.ms;
        count += class.count;
        names.extend(class.words());
    }
    Some((ms, count, names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain;
    use crate::model::{
        Counter, DeedShare, EndedWaits, Explanation, Input, LevelInput, SampledClass, SeriesName,
    };

    /// Sixteen users, 10 ms per transaction: 2 on a CPU and 8 on locks.
    fn explained(classes: &[(&str, &str, u64, f64)], status: &[(&str, f64)]) -> Explanation {
        explain(&Input { levels: vec![level(classes, status)], ..Input::default() })
    }

    fn level(classes: &[(&str, &str, u64, f64)], status: &[(&str, f64)]) -> LevelInput {
        let series = |source: &str, metric: &str| SeriesName {
            host: "server".to_string(),
            source: source.to_string(),
            metric: metric.to_string(),
            instance: String::new(),
        };
        let mut level = LevelInput {
            users: 16,
            end_ns: 1_000_000_000,
            transactions: 1_600,
            latency_mean_ms: 10.0,
            bins_100ms: vec![160; 10],
            ..LevelInput::default()
        };
        let sums = [("request_ns", 10.0), ("request_cpu_ns", 2.0), ("request_lock_ns", 8.0)];
        let sums = sums.map(|(metric, ms)| (series("trace", metric), ms * 1e6));
        let status = status.iter().map(|(metric, count)| (series("status", metric), *count));
        for (series, a_transaction) in sums.into_iter().chain(status) {
            let increase = a_transaction * 1_600.0;
            level.counters.push(Counter { series, unit: "1".to_string(), increase });
        }
        level.wait_classes = classes
            .iter()
            .map(|(state, class, count, ns)| SampledClass {
                state: state.to_string(),
                class: class.to_string(),
                count: *count,
                ns: *ns,
                seen_ns: 0.0,
            })
            .collect();
        level
    }

    fn shares(explained: &Explanation) -> Vec<(&'static str, f64)> {
        let rounded = |share: f64| (share * 100.0).round() / 100.0;
        explained.suspects.iter().map(|suspect| (suspect.id.name(), rounded(suspect.share))).collect()
    }

    #[test]
    fn time_on_locks_goes_to_the_causes_of_sampled_stacks() {
        let explained = explained(
            &[("lock", "redo_flush", 60, 60.0), ("lock", "metadata_lock", 30, 30.0), ("lock", "", 10, 10.0)],
            &[],
        );
        let shares_found = shares(&explained);
        assert_eq!(shares_found[0], ("redo-flush", 0.48));
        assert!(shares_found.contains(&("metadata-lock", 0.24)), "{shares_found:?}");
        let text = &explained.suspects[0].text;
        assert!(
            text.contains("4.8 ms per transaction") && text.contains("by the stacks of 60 waits"),
            "{text}"
        );
        let budget = explained.findings.iter().find(|finding| finding.id == "budget").unwrap();
        assert!(budget.text.contains("60 % redo flush, 30 % metadata lock"), "{}", budget.text);
    }

    #[test]
    fn time_in_which_the_thread_that_was_waited_for_had_no_cpu_is_not_the_locks() {
        let mut level = level(&[("lock", "redo_flush", 80, 80.0), ("lock", "metadata_lock", 20, 20.0)], &[]);
        let ended = |class: &str, count, ready| EndedWaits {
            class: class.to_string(),
            count,
            ns: 1e6,
            deeds: [("runqueue", ready), ("file_sync", 1.0 - ready)]
                .map(|(state, share)| DeedShare {
                    role: "connection".to_string(),
                    state: state.to_string(),
                    share,
                })
                .to_vec(),
        };
        // Too few of the second to go by.
        level.ended_waits = vec![ended("redo_flush", 60, 0.25), ended("metadata_lock", 19, 1.0)];
        let explained = explain(&Input { levels: vec![level], ..Input::default() });
        let shares_found = shares(&explained);
        for expected in [("redo-flush", 0.48), ("metadata-lock", 0.16), ("preempted-holder", 0.16)] {
            assert!(shares_found.contains(&expected), "{shares_found:?}");
        }
        let preempted =
            explained.suspects.iter().find(|suspect| suspect.id == Cause::PreemptedHolder).unwrap();
        assert!(preempted.text.contains("1.6 ms per transaction"), "{}", preempted.text);
        assert!(preempted.text.contains("by 60 waits"), "{}", preempted.text);
    }

    #[test]
    fn what_a_counter_has_measured_stays_as_it_is() {
        let shares_found = shares(&explained(
            &[("lock", "row_lock", 100, 100.0)],
            &[("Innodb_row_lock_time", 4.0), ("Innodb_row_lock_waits", 1.0)],
        ));
        assert!(shares_found.contains(&("row-lock", 0.4)), "{shares_found:?}");
    }

    #[test]
    fn spinning_is_what_stacks_show_to_spin() {
        let spin_rounds = [("Innodb_mutex_spin_rounds", 1e6)];
        let spins =
            |explained: Explanation| explained.suspects.iter().any(|suspect| suspect.id == Cause::Spin);
        let may_spin =
            |explained: Explanation| explained.possible.iter().any(|possible| possible.id == Cause::Spin);
        assert!(spins(explained(&[("cpu", "page_latch", 40, 40.0), ("cpu", "", 60, 60.0)], &[])));
        assert!(!spins(explained(&[], &spin_rounds)) && may_spin(explained(&[], &spin_rounds)));
        let without = explained(&[("cpu", "", 100, 100.0)], &spin_rounds);
        assert!(!spins(without.clone()) && !may_spin(without), "no stack was of a thread that spun");
    }
}
