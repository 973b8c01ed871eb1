//! Causes that lie with what clients do and ask for: answers that they read slowly, locks by name, statements that sleep.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use crate::locks;
use crate::model::{Evidence, Part};
use whyso_model::LockKind;

/// Sampler of what clients' sessions do, by the server's own names of states.
const SESSIONS: &str = "sessions";
/// Kind of lock, as the sampler of lock waits names it.
const USER_LOCK: LockKind = LockKind::User;
const USER_SLEEP: &str = "User sleep";
/// Waits for a smaller share of the response time are nobody's trouble.
const SHARE_MIN: f64 = 0.02;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [slow_reader(case), user_lock(case), sleep(case)].into_iter().flatten().collect()
}

/// The server waits until the socket takes more of its answer.
fn slow_reader(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let ms = case.ms(Part::NetSend);
    if case.share(ms) < SHARE_MIN {
        return None;
    }
    let sent = case.count(&["Bytes_sent"]).filter(|sent| sent.per_transaction > 0.0);
    let answers = sent.as_ref().map_or(String::new(), |sent| {
        format!(" of {} per {unit}", whyso_words::amount(sent.per_transaction, "bytes"))
    });
    let why = format!(
        "for {} per {unit} the server had more to send than the socket took: the client, or the network to it, takes answers{answers} more \
         slowly than the server sends them",
        whyso_words::milliseconds(ms)
    );
    Some(
        Claim::new(Cause::SlowReader, "clients that read slowly hold", why)
            .holds(ms)
            .certain(0.95)
            .rests_on(case.parts(&[Part::NetSend]))
            .rests_on(sent.map(|sent| case.series(&sent.series))),
    )
}

/// Connections that were found waiting for a kind of lock.
fn samples(case: &Case, kind: LockKind) -> u64 {
    case.level.lock_objects.iter().filter(|object| object.kind == kind).map(|object| object.samples).sum()
}

/// Time of the mean transaction in which connections waited for a kind of lock, in ms, by samples of who waits; `None` where those are
/// too few to go by.
pub(super) fn sampled_wait_ms(case: &Case, kind: LockKind) -> Option<f64> {
    let waiting = case.level.gauge(locks::SOURCE, locks::WAITING, kind.name())?;
    let is_known = samples(case, kind) >= locks::SAMPLES_MIN;
    is_known.then(|| waiting.mean * case.level.seconds * 1e3 / case.transactions)
}

/// GET_LOCK: who waits for it is in the process list.
fn user_lock(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let waiting = case.level.gauge(locks::SOURCE, locks::WAITING, USER_LOCK.name())?;
    let ms = sampled_wait_ms(case, USER_LOCK)?.min(case.lock_ms());
    if case.share(ms) < SHARE_MIN {
        return None;
    }
    let why = format!(
        "connections waited in GET_LOCK for locks that others held: {} per {unit}, by {} samples of the process list",
        whyso_words::milliseconds(ms),
        whyso_words::whole(samples(case, USER_LOCK))
    );
    Some(
        Claim::new(Cause::UserLock, "locks that statements ask for by name hold", why)
            .holds_lock(ms)
            .certain(0.9)
            .by(Class::Sampled)
            .rests_on([case.series(&waiting.series)])
            .rests_on(case.parts(&[Part::Lock])),
    )
}

/// SLEEP(): it waits on a condition, as for a lock.
fn sleep(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let found = case.level.counter(SESSIONS, "in_statement", USER_SLEEP)?;
    let snapshots = case.level.counter(SESSIONS, "looks", "")?;
    let slept_ms = found.increase / snapshots.increase * case.level.seconds * 1e3 / case.transactions;
    let ms = slept_ms.min(case.lock_ms());
    if !ms.is_finite() || found.increase < locks::SAMPLES_MIN as f64 || case.share(ms) < SHARE_MIN {
        return None;
    }
    let why = format!(
        "statements slept for {} per {unit} because they asked to (SLEEP), by {} samples of the process list",
        whyso_words::milliseconds(ms),
        whyso_words::number(found.increase)
    );
    let evidence: Vec<Evidence> = vec![case.series(&found.series)];
    Some(
        Claim::new(Cause::Sleep, "statements that sleep on purpose hold", why)
            .holds_lock(ms)
            .certain(0.9)
            .by(Class::Sampled)
            .rests_on(evidence)
            .rests_on(case.parts(&[Part::Lock])),
    )
}
