//! Causes that lie with rows and transactions: their locks, deadlocks, numbers, and versions that nobody needs any more.

use super::case::{Case, Measure};
use super::claim::{Claim, Class};
use super::cluster;
use super::model::Cause;
use crate::model::{Evidence, Part};
use whyso_model::LockKind;

/// MySQL's number of the error that a deadlock's victim gets.
const DEADLOCK: &str = "1213";

/// Fewer deadlocks per transaction are nobody's trouble.
const DEADLOCKS_MIN: f64 = 0.005;

/// Old row versions from which readers have a long way.
const HISTORY_MIN: f64 = 20_000.0;
/// From here on it is possible: without stacks nothing shows how many of them readers step over.
const HISTORY_MIN_WITHOUT_STACKS: f64 = 1_000.0;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [row_lock(case), deadlock(case), lock_sys(case), auto_increment(case), purge_lag(case)]
        .into_iter()
        .flatten()
        .collect()
}

/// Time that attempts lost to deadlocks, for one transaction that ended well.
fn deadlocked_ms(case: &Case) -> f64 {
    case.lost_ms(DEADLOCK) - cluster::conflict_ms(case)
}

fn row_lock(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let time = case.count(&["Innodb_row_lock_time", "lock_row_lock_time"])?;
    // InnoDB counts waits once they have ended, in whole milliseconds by a clock that ticks some hundred times per second. Of short waits, and
    // of those that still last, what connections were found in is the better measure.
    let sampled_ms = case.is_traced().then(|| super::clients::sampled_wait_ms(case, LockKind::Row)).flatten();
    let counts_less = sampled_ms.is_some_and(|sampled| sampled > 1.5 * time.per_transaction);
    let all_ms = time.per_transaction.max(sampled_ms.unwrap_or(0.0));
    // What ends in a deadlock is counted there.
    let waited_ms = (all_ms - deadlocked_ms(case)).max(0.0).min(case.lock_ms());
    if case.share(waited_ms) < 0.02 {
        return None;
    }
    let waits = case.count(&["Innodb_row_lock_waits", "lock_row_lock_waits"]);
    let often = waits.as_ref().filter(|waits| waits.per_transaction > 0.0).map_or(String::new(), |waits| {
        format!(
            ", {} waits of {} each",
            whyso_words::number(waits.per_transaction),
            whyso_words::milliseconds(time.per_transaction / waits.per_transaction)
        )
    });
    let why = format!(
        "statements waited {} per {unit} for rows that other transactions had locked{often}{}{}",
        whyso_words::milliseconds(waited_ms),
        if counts_less { ", by InnoDB's count; more by samples of who waits" } else { "" },
        case.lock_object(LockKind::Row)
    );
    Some(
        Claim::new(Cause::RowLock, "waits for row locks hold", why)
            .holds_lock(waited_ms)
            .certain(0.95)
            .by(if counts_less { Class::Sampled } else { Class::Measured })
            .rests_on([case.series(&time.series)])
            .rests_on(waits.map(|waits| case.series(&waits.series)))
            .rests_on(case.lock_samples(LockKind::Row))
            .rests_on(case.parts(&[Part::Lock])),
    )
}

fn deadlock(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let lost_ms = deadlocked_ms(case);
    let counted = case.count(&["Innodb_deadlocks", "lock_deadlocks"]);
    if case.share(lost_ms) < 0.02 {
        return counted.filter(|_| lost_ms == 0.0).and_then(|counted| counted_deadlocks(case, counted));
    }
    let often = counted.as_ref().map_or(String::new(), |counted| {
        format!(", {} deadlocks per {unit}", whyso_words::number(counted.per_transaction))
    });
    let why = format!(
        "attempts that a deadlock ended took {} per {unit}, and were begun again{often}{}",
        whyso_words::milliseconds(lost_ms),
        case.lock_object(LockKind::Row)
    );
    Some(
        Claim::new(Cause::Deadlock, "deadlocks hold", why)
            .holds_lock(lost_ms.min(case.lock_ms()))
            .holds((lost_ms - case.lock_ms()).max(0.0))
            .certain(0.95)
            .rests_on([case.level_quantity("errors")])
            .rests_on(counted.map(|counted| case.series(&counted.series))),
    )
}

/// Deadlocks of a load that something else makes: what its clients lost to them, only they know.
fn counted_deadlocks(case: &Case, counted: Measure) -> Option<Claim> {
    if counted.per_transaction < DEADLOCKS_MIN {
        return None;
    }
    let why = format!(
        "{} deadlocks per {} were counted, and only the clients know what they lost to them{}",
        whyso_words::number(counted.per_transaction),
        case.unit(),
        case.lock_object(LockKind::Row)
    );
    Some(
        Claim::new(Cause::Deadlock, "deadlocks hold", why)
            .may_be_in(&[Part::Lock])
            .rests_on([case.series(&counted.series)])
            .rests_on(case.lock_samples(LockKind::Row)),
    )
}

/// The lock system's own latches: many waiting transactions, each looked through whenever one asks.
fn lock_sys(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let waits = case.count(&["Innodb_row_lock_waits", "lock_row_lock_waits"])?;
    if waits.per_transaction < 0.3 || case.level.users < 16 {
        return None;
    }
    let why = format!(
        "{} users wait for row locks {} times per {unit}, and each wait makes InnoDB search the waiting transactions for a deadlock",
        whyso_words::whole(u64::from(case.level.users)),
        whyso_words::number(waits.per_transaction)
    );
    Some(
        Claim::new(Cause::LockSys, "InnoDB's lock system holds", why)
            .may_be_in(&[Part::Lock])
            .rests_on([case.series(&waits.series)])
            .rests_on(case.parts(&[Part::Lock]))
            .rests_on(case.fact("innodb_deadlock_detect")),
    )
}

fn auto_increment(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let mode = case.variable("innodb_autoinc_lock_mode")?;
    let (single, mut series) = case.counts(&["Com_insert", "Com_replace"]);
    let (bulk, of_bulk) = case.counts(&["Com_insert_select", "Com_load", "Com_replace_select"]);
    let is_held_to_the_end = match mode {
        "0" => single + bulk >= 0.1,
        "1" => bulk >= 0.1,
        _ => false,
    };
    if !is_held_to_the_end {
        return None;
    }
    series.extend(of_bulk);
    let waited_ms =
        case.lock_sampled_ms(LockKind::Row, |mode| mode.to_ascii_uppercase().contains("AUTO_INC"));
    let why = format!(
        "with innodb_autoinc_lock_mode {mode} a table gives numbers to one INSERT at a time, until its end, and a {unit} sends {} of them",
        whyso_words::number(single + bulk)
    );
    Some(
        Claim::new(Cause::AutoIncrement, "locks on AUTO_INCREMENT columns hold", why)
            .holds_lock(waited_ms.unwrap_or(0.0).min(case.lock_ms()))
            .by(Class::Sampled)
            .may_be_in(&[Part::Lock])
            .certain(0.9)
            .rests_on(case.all_series(&series))
            .rests_on(case.parts(&[Part::Lock]))
            .rests_on(case.fact("innodb_autoinc_lock_mode")),
    )
}

/// No counter of these servers counts how many versions readers step over, or how long changes are put off.
fn purge_lag(case: &Case) -> Option<Claim> {
    let history = ["Innodb_history_list_length", "trx_rseg_history_len", "history_list_length"];
    let history = history.iter().find_map(|name| case.gauge(name))?;
    let evidence: Vec<Evidence> = vec![case.series(&history.2)];
    let limit = case.number("innodb_max_purge_lag").filter(|limit| *limit > 0.0);
    if let Some(limit) = limit.filter(|limit| history.1 > *limit) {
        let why = format!(
            "{} old row versions wait for purge, more than innodb_max_purge_lag ({}), and InnoDB puts off every change for it",
            whyso_words::number(history.0),
            whyso_words::number(limit)
        );
        let claim = Claim::new(Cause::PurgeLag, "purge that lags behind holds", why).rests_on(evidence);
        let claim = claim.rests_on(case.fact("innodb_max_purge_lag")).rests_on(case.parts(&[Part::Sleep]));
        return Some(claim.may_be_in(&[Part::Sleep]));
    }
    let least = if case.level.activities.is_some() { HISTORY_MIN } else { HISTORY_MIN_WITHOUT_STACKS };
    if history.0 < least {
        return None;
    }
    let why = format!(
        "{} old row versions wait for purge, which readers may have to step over",
        whyso_words::number(history.0)
    );
    Some(
        Claim::new(Cause::PurgeLag, "purge that lags behind holds", why)
            .may_be_in(&[Part::Cpu])
            .rests_on(evidence),
    )
}
