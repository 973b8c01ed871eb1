//! The cause, named: who is suspected of keeping the server from going faster, with how much of the response time, what
//! would be gained without it, and why.
//!
//! Each cause looks at the level that is asked about and makes a claim, or none. A claim holds time that was measured to be
//! its own (row locks, reads of files), or asks for a share of a pool: the sleep on locks that nothing measured explains,
//! or the CPUs' time with the queues in front of them. What no claim holds is unknown, and said to be. Suspects are
//! ranked by the share of the response time that they hold, weighed by how sure the evidence makes their claim.

mod case;
mod claim;
mod classes;
mod cpus;
mod gain;
mod latches;
mod load;
mod logs;
mod model;
mod pages;
mod plans;
mod rows;
mod tables;

pub use model::{Cause, Gain, Suspect};

use crate::level::Level;
use crate::model::{Budget, Finding, Input, Part};
use crate::numbers;
use crate::regime::Shape;
use case::Case;
use claim::Claim;

/// Smaller shares are not listed.
const SHARE_MIN: f64 = 0.05;
const LISTED_MAX: usize = 6;

/// The second is close to the first where it has this much of its weight.
const CLOSE: f64 = 0.8;

/// Counters alone tell that something happened, not what waited for it.
const CERTAINTY_WITHOUT_TRACE: f64 = 0.7;

/// How sure one is of what nobody claims.
const CERTAINTY_OF_UNKNOWN: f64 = 0.6;

/// Suspects that a report's findings name.
const TOLD_MAX: usize = 3;

/// Everyone suspected at the level at this position, the first one first. Empty where nothing was measured there.
pub(crate) fn suspects(
    about: Option<usize>,
    levels: &[Level],
    shape: Option<&Shape>,
    budgets: &[Budget],
    input: &Input,
) -> Vec<Suspect> {
    let Some(level) = about.and_then(|at| levels.get(at)) else {
        return Vec::new();
    };
    let Some(case) = Case::new(level, levels, shape, budgets, &input.machine, &input.variables) else {
        return Vec::new();
    };
    let mut accused = match load::hardly_asked(&case) {
        Some(claim) => vec![Accused { share: 1.0, ms: case.response_ms, cpu_ms: 0.0, claim }],
        None => accuse(&case),
    };
    accused.retain(|one| one.share >= SHARE_MIN || one.claim.is_first);
    accused.sort_by(|a, b| {
        let by_score = b.score().total_cmp(&a.score());
        b.claim.is_first.cmp(&a.claim.is_first).then(by_score).then(a.claim.cause.cmp(&b.claim.cause))
    });
    accused.truncate(LISTED_MAX);
    if accused.is_empty() {
        accused.push(Accused { claim: unknown(&case, 0.0), share: 0.0, ms: 0.0, cpu_ms: 0.0 });
    }
    let runner_up = accused.get(1).filter(|second| {
        let first = &accused[0];
        !first.claim.is_first
            && first.claim.cause != Cause::Unknown
            && second.score() >= CLOSE * first.score()
            && second.claim.cause != Cause::Unknown
    });
    let runner_up = runner_up.map(|second| second.claim.cause);
    accused
        .into_iter()
        .enumerate()
        .map(|(at, one)| one.into_suspect(&case, runner_up.filter(|_| at == 0)))
        .collect()
}

/// The first suspects as sentences of the report.
pub(crate) fn findings(suspects: &[Suspect]) -> Vec<Finding> {
    let told = suspects.iter().take(TOLD_MAX).enumerate();
    told.map(|(at, suspect)| {
        let name = suspect.id.name();
        let place = match suspect.id {
            Cause::Unknown => "Unknown".to_string(),
            _ if at == 0 => format!("First suspect, {name}"),
            _ => format!("Also suspected, {name}"),
        };
        Finding {
            id: if at == 0 { "suspect".to_string() } else { format!("suspect-{}", at + 1) },
            text: format!("{place}: {}{}", suspect.text, gain::sentence(suspect)),
            evidence: suspect.evidence.clone(),
        }
    })
    .collect()
}

/// A claim with all that it got.
struct Accused {
    claim: Claim,
    share: f64,
    /// Time of the mean transaction, in ms.
    ms: f64,
    /// Of what it got, time from the CPUs' pool, in ms.
    cpu_ms: f64,
}

fn accuse(case: &Case) -> Vec<Accused> {
    let mut claims = cpus::claims(case);
    claims.extend(load::claims(case));
    claims.extend(logs::claims(case));
    claims.extend(pages::claims(case));
    claims.extend(rows::claims(case));
    claims.extend(tables::claims(case));
    claims.extend(latches::claims(case));
    claims.extend(plans::claims(case));
    let claims = classes::settle(case, claims);

    let own_lock_ms: f64 = claims.iter().map(|claim| claim.lock_ms).sum();
    // Without a trace, what is left of a response on full CPUs is mostly the queue for them.
    let has_pool_of_locks = case.is_traced() || !case.are_cpus_full();
    let rest_lock_ms = if has_pool_of_locks { (case.lock_ms() - own_lock_ms).max(0.0) } else { 0.0 };
    // The CPUs' pool can't hold what was measured to be someone's own, such as the attempts that a deadlock ended.
    let own_ms: f64 =
        claims.iter().filter(|claim| claim.cause != Cause::Unsaturated).map(|claim| claim.ms).sum();
    let pool_cpu_ms = cpus::pool_ms(case).min((case.response_ms - own_ms).max(0.0));
    let asked_lock: f64 = claims.iter().map(|claim| claim.lock_strength).sum();
    let asked_cpu: f64 = claims.iter().map(|claim| claim.cpu_strength).sum();

    let mut accused = Vec::new();
    let mut known_ms = 0.0;
    for claim in claims {
        let lock_ms = rest_lock_ms * claim.lock_strength / asked_lock.max(1.0);
        let cpu_ms = match claim.cause {
            Cause::Cpu => pool_cpu_ms * (1.0 - asked_cpu).max(0.0),
            _ => pool_cpu_ms * claim.cpu_strength / asked_cpu.max(1.0),
        };
        let ms = claim.ms + lock_ms + cpu_ms;
        // What needs no queue to hold a transaction is counted by the others, too.
        if claim.cause != Cause::Unsaturated {
            known_ms += ms;
        }
        accused.push(Accused { share: case.share(ms), cpu_ms, ms, claim });
    }
    // Requests that began before the window or end after it bring more time than those that were answered in it took.
    let fits = case.response_ms / known_ms;
    if fits < 1.0 {
        for one in accused.iter_mut().filter(|one| one.claim.cause != Cause::Unsaturated) {
            one.share = case.share(one.ms * fits);
            one.cpu_ms *= fits;
        }
    }
    let open_ms = (case.response_ms - known_ms).max(0.0);
    if case.share(open_ms) >= SHARE_MIN {
        let claim = unknown(case, rest_lock_ms * (1.0 - asked_lock).max(0.0));
        accused.push(Accused { share: case.share(open_ms), ms: open_ms, cpu_ms: 0.0, claim });
    }
    accused
}

/// What nobody claims, and what to measure next.
fn unknown(case: &Case, lock_ms: f64) -> Claim {
    let unit = case.unit();
    let open = [
        Part::Other,
        Part::Sleep,
        Part::FileWrite,
        Part::FileSync,
        Part::FileRead,
        Part::PageFault,
        Part::TransitIn,
    ];
    let largest = open.into_iter().max_by(|a, b| case.ms(*a).total_cmp(&case.ms(*b))).unwrap_or(Part::Other);
    let why = if case.is_elsewhere {
        "the counters do not say what it was waited for; record the server on its own machine next, where its threads can be traced".to_string()
    } else if !case.is_traced() {
        "the counters do not say what it was waited for; trace the run next, so that each thread's states are known".to_string()
    } else if lock_ms > case.ms(largest) {
        "threads slept on locks, and no counter says on which; record the stacks of their waits next"
            .to_string()
    } else if case.ms(largest) >= SHARE_MIN * case.response_ms {
        format!(
            "{} a {unit} went into {}, and no counter says why; record the stacks of these waits next",
            numbers::milliseconds(case.ms(largest)),
            largest.words()
        )
    } else {
        "the parts of the time budget leave it open; trace a longer window next, and see whether events were lost".to_string()
    };
    Claim::new(Cause::Unknown, "no cause that whyso knows holds", why)
        .certain(CERTAINTY_OF_UNKNOWN)
        .rests_on([case.level_quantity("latency_mean_ms")])
        .rests_on(case.parts(&[Part::Lock, largest]))
}

impl Accused {
    fn score(&self) -> f64 {
        self.share * self.claim.certainty
    }

    fn into_suspect(self, case: &Case, runner_up: Option<Cause>) -> Suspect {
        let certainty = match case.is_traced() || self.claim.is_first {
            true => self.claim.certainty,
            false => self.claim.certainty * CERTAINTY_WITHOUT_TRACE,
        };
        let frees_cpu = self.cpu_ms > 0.0;
        let predicted_gain = gain::predict(case, self.claim.cause, self.share, certainty, frees_cpu);
        let mut text = format!(
            "{} {} of the response time at {}: {}",
            capitalised(self.claim.what),
            numbers::percent(self.share),
            numbers::users(case.level.users),
            self.claim.why
        );
        if !case.is_traced() {
            text.push_str(" (from counters alone)");
        }
        if let Some(cause) = runner_up {
            text.push_str(&format!("; {} comes too close to be told apart from it", cause.name()));
        }
        text.push('.');
        let mut evidence = Vec::new();
        for one in self.claim.evidence {
            if !evidence.contains(&one) {
                evidence.push(one);
            }
        }
        Suspect { id: self.claim.cause, share: self.share, predicted_gain, evidence, text }
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}
