//! What fills the CPUs, by the sampled stacks of the server's threads. Each activity that is no ordinary work has its cause.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use super::plans;
use super::statement_work;
use crate::activities::Activity;
use crate::model::Part;

/// How sure work is whose stacks were sampled, 0 to 1.
const CERTAINTY: f64 = 0.95;

/// A smaller share of the CPU time is nobody's trouble.
const SHARE_MIN: f64 = 0.02;

/// Activities that a sentence names.
const NAMED_MAX: usize = 4;
const NAMED_SHARE_MIN: f64 = 0.05;

struct Work {
    cause: Cause,
    activity: Activity,
    /// Subject and verb of the sentence.
    what: &'static str,
}

const fn work(cause: Cause, activity: Activity, what: &'static str) -> Work {
    Work { cause, activity, what }
}

/// Sorts and scans are divided by [`plans`], which knows what rows are read for.
const WORK: [Work; 6] = [
    work(Cause::ConnectionChurn, Activity::Connect, "making connections holds"),
    work(Cause::TableCache, Activity::TableOpen, "opening tables holds"),
    work(Cause::QueryCache, Activity::QueryCache, "the query cache holds"),
    work(Cause::PurgeLag, Activity::Versions, "walking back old versions of rows holds"),
    work(Cause::LockSys, Activity::RowLocks, "InnoDB's lock system holds"),
    work(Cause::BufferPoolMiss, Activity::PageRead, "reads of pages from disk hold"),
];

/// Gives the claims the CPU time that stacks show to be theirs, and adds claims that no counter led to. Claims lose CPU time that stacks
/// do not confirm.
pub(super) fn settle(case: &Case, mut claims: Vec<Claim>) -> Vec<Claim> {
    let Some(activities) = &case.level.activities else {
        return statement_work::settle(case, claims);
    };
    for Work { cause, activity, what } in WORK {
        // The time of a handshake, as clients measured it, holds the server's work on it.
        if cause == Cause::ConnectionChurn
            && claims.iter().any(|claim| claim.cause == cause && claim.ms > 0.0)
        {
            continue;
        }
        let share = activities.share(&[activity]);
        let why = format!(
            "{} of the server's CPU time is {}, by {} sampled stacks",
            whyso_words::percent(share),
            activity.text(),
            whyso_words::whole(activities.samples())
        );
        give(case, &mut claims, cause, what, share, why);
    }
    for (cause, what, share, why) in plans::sampled(case, activities) {
        give(case, &mut claims, cause, what, share, why);
    }
    claims
}

fn give(case: &Case, claims: &mut Vec<Claim>, cause: Cause, what: &'static str, share: f64, why: String) {
    match claims.iter_mut().find(|claim| claim.cause == cause) {
        Some(claim) => {
            claim.cpu_share = share;
            if share >= SHARE_MIN {
                claim.class = claim.class.max(Class::Sampled);
                claim.certainty = CERTAINTY;
                claim.why = format!("{why}; {}", claim.why);
            }
        }
        None if share >= SHARE_MIN => {
            let claim = Claim::new(cause, what, why)
                .holds_cpu(share)
                .certain(CERTAINTY)
                .rests_on(case.parts(&[Part::Cpu]));
            claims.push(claim.by(Class::Sampled));
        }
        None => {}
    }
}

/// Whether stacks would have shown a cause's work, and showed next to none: then it is not possible any more.
pub(super) fn is_ruled_out(case: &Case, claim: &Claim) -> bool {
    let is_of_cpu = claim.may_be_in.iter().all(|part| *part == Part::Cpu);
    let is_known = WORK.iter().any(|work| work.cause == claim.cause) || plans::CAUSES.contains(&claim.cause);
    is_of_cpu && is_known && case.level.activities.is_some()
}

/// Returns the share of the server's CPU time that goes where a cause goes, where its share of the response time was measured otherwise.
pub(super) fn work_share(case: &Case, cause: Cause) -> f64 {
    let activities = WORK.iter().filter(|work| work.cause == cause).map(|work| work.activity);
    let activities: Vec<Activity> = activities.collect();
    case.level.activities.as_ref().map_or(0.0, |sampled| sampled.share(&activities))
}

/// Returns what the ordinary work is, such as "40 % is reading rows by an index"; empty where no stacks were sampled.
pub(super) fn ordinary_work(case: &Case) -> String {
    let Some(activities) = &case.level.activities else { return String::new() };
    let ordinary =
        activities.largest(NAMED_SHARE_MIN).into_iter().filter(|(activity, _)| activity.is_ordinary());
    let named: Vec<String> = ordinary
        .take(NAMED_MAX)
        .map(|(activity, share)| format!("{} {}", activity.text(), whyso_words::percent(share)))
        .collect();
    match named.is_empty() {
        true => String::new(),
        false => format!("; of the server's CPU time {} (sampled)", whyso_words::list(&named)),
    }
}
