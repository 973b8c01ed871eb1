//! Sleep on locks of a traced server whose waits have no stacks: samples of the process list show what it was for.

use super::case::Case;
use super::claim::{Claim, Class};
use super::untraced::{self, WAITS};
use crate::model::{Evidence, Part};
use crate::sessions::{SAMPLES_MIN, SessionState};

/// How sure one is of waits that the server named itself.
const CERTAINTY: f64 = 0.9;

/// A wait for a smaller share of the response time is nobody's trouble.
const SHARE_MIN: f64 = 0.02;

/// Waits that a session sleeps in on a lock. Commits are judged by [`super::commits`].
const LOCKS: [SessionState; 6] = [
    SessionState::MetadataLock,
    SessionState::TableLock,
    SessionState::QueryCacheLock,
    SessionState::RowLock,
    SessionState::UserLock,
    SessionState::Sleep,
];

/// Gives causes the sleep that sessions were found in, where nothing else measured any of theirs. Time that other claims hold stays theirs.
pub(super) fn settle(case: &Case, mut claims: Vec<Claim>) -> Vec<Claim> {
    let Some(sessions) = case.sessions().filter(|_| case.is_traced() && !untraced::has_stacks(case)) else {
        return claims;
    };
    for doing in WAITS.into_iter().filter(|doing| LOCKS.contains(doing)) {
        let Some((cause, what)) = untraced::cause_of(case, doing) else { continue };
        let share = sessions.share_of(doing);
        let at = claims.iter().position(|claim| claim.cause == cause);
        let is_measured = at.is_some_and(|at| claims[at].ms > 0.0);
        if is_measured || share.samples < SAMPLES_MIN {
            continue;
        }
        let free_ms = case.lock_ms() - claims.iter().map(|claim| claim.lock_ms).sum::<f64>();
        let slept_ms = untraced::ms(case, sessions, share.samples).min(free_ms);
        if case.share(slept_ms.max(0.0)) < SHARE_MIN {
            continue;
        }
        let why =
            format!("sessions were found in the state {} for {}", untraced::names(&share), share.in_words());
        let evidence: Vec<Evidence> = share.states.iter().map(|state| case.series(&state.series)).collect();
        let claim = match at {
            Some(at) => {
                let claim = claims.remove(at);
                Claim { why: format!("{why}; {}", claim.why), ..claim }
            }
            None => Claim::new(cause, what, why).rests_on(case.parts(&[Part::Lock])),
        };
        claims.push(claim.holds_lock(slept_ms).certain(CERTAINTY).by(Class::Sampled).rests_on(evidence));
    }
    claims
}
