//! Commits in groups: one session writes and syncs the log, and the others sleep until it is done. Stacks show whose sleep that is.
//! Without them, samples of the process list do.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use super::{logs, untraced};
use crate::locks::SAMPLES_MIN;
use crate::model::Evidence;
use crate::sessions::{InState, SessionState, Sessions};

/// State of a session that waits for its log. MariaDB (10.6 and later) ends a statement that commits before its log is on disk, and keeps
/// only the answer back.
const KEEPS_ANSWER_BACK: &str = "Updating status";

/// Where fewer of the statements commit, a session in this state is as likely to send another statement's answer.
const COMMITS_MIN: f64 = 0.25;

/// A wait for a smaller share of the response time is nobody's trouble.
const SHARE_MIN: f64 = 0.02;

const CERTAINTY: f64 = 0.9;

/// Gives the log that commits wait for the sleep of those that do not write it themselves. Time that other claims hold stays theirs.
pub(super) fn settle(case: &Case, mut claims: Vec<Claim>) -> Vec<Claim> {
    let Some(sessions) = case.sessions().filter(|_| logs::commits(case) > 0.0 && !untraced::has_stacks(case))
    else {
        return claims;
    };
    let holds_answers = keeps_answers_back(case);
    let is_answer_held = |state: &InState| holds_answers && state.name == KEEPS_ANSWER_BACK;
    // Without a trace, the state of a commit has been judged already.
    let is_commit = |state: &InState| case.is_traced() && state.doing == SessionState::Commit;
    let share = sessions.share(|state| is_commit(state) || is_answer_held(state));
    if share.samples < SAMPLES_MIN as f64 {
        return claims;
    }
    let slept_ms = slept_ms(case, sessions, share.samples, &claims);
    let answers_held = sessions.share(is_answer_held).samples;
    let cause = if 2.0 * answers_held > share.samples { Cause::RedoFlush } else { logs::busier(case) };
    if case.share(slept_ms) < SHARE_MIN {
        return claims;
    }
    let why = format!(
        "sessions were found in the state{} {} for {}: {} per {} were sleep until another session had the log on disk",
        if share.states.len() > 1 { "s" } else { "" },
        untraced::names(&share),
        share.in_words(),
        whyso_words::milliseconds(slept_ms),
        case.unit()
    );
    let evidence: Vec<Evidence> = share.states.iter().map(|state| case.series(&state.series)).collect();
    match claims.iter_mut().find(|claim| claim.cause == cause) {
        Some(claim) => {
            claim.class = claim.class.max(Class::Sampled);
            claim.ms += slept_ms;
            claim.lock_ms += slept_ms;
            claim.certainty = claim.certainty.max(CERTAINTY);
            claim.why = format!("{}; {why}", claim.why);
            claim.evidence.extend(evidence);
        }
        // A trace would have seen a log that was synced.
        None if case.is_traced() => {}
        None => claims.push(
            Claim::new(cause, "commits, until their log is on disk, hold", why)
                .holds_lock(slept_ms)
                .certain(CERTAINTY)
                .by(Class::Sampled)
                .rests_on(evidence),
        ),
    }
    claims
}

/// Whether a session that has ended its statement may still wait for the redo log.
fn keeps_answers_back(case: &Case) -> bool {
    let is_waited_for = case.variable("innodb_flush_log_at_trx_commit") == Some("1");
    let statements = case.count(&["Questions"]).map_or(f64::INFINITY, |all| all.per_transaction);
    is_waited_for && logs::commits(case) >= COMMITS_MIN * statements
}

/// Of the time that these samples stand for, the sleep on locks that no other claim holds, in ms. In a traced level it is known what lies in
/// reads and writes of the logs. The rest is divided as the whole of a transaction is.
fn slept_ms(case: &Case, sessions: &Sessions, samples: f64, claims: &[Claim]) -> f64 {
    let sampled_ms = untraced::ms(case, sessions, samples);
    if !case.is_traced() {
        let held_ms: f64 =
            claims.iter().filter(|claim| claim.cause != Cause::Unsaturated).map(|claim| claim.ms).sum();
        return sampled_ms.min((case.response_ms - held_ms).max(0.0));
    }
    let is_log = |claim: &&Claim| matches!(claim.cause, Cause::RedoFlush | Cause::RedoWrite | Cause::Binlog);
    let in_files_ms: f64 = claims.iter().filter(is_log).map(|claim| claim.ms - claim.lock_ms).sum();
    let lock_ms = case.lock_ms();
    let of_locks = lock_ms / (lock_ms + case.runqueue_ms() + case.cpu_ms());
    let free_ms = lock_ms - claims.iter().map(|claim| claim.lock_ms).sum::<f64>();
    let slept_ms = ((sampled_ms - in_files_ms) * of_locks).min(free_ms);
    if slept_ms.is_finite() { slept_ms.max(0.0) } else { 0.0 }
}
