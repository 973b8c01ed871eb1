//! The cause, named: what is suspected of keeping the server from getting faster. A suspect has its share of the response time, an estimate
//! of what would be gained without it, and the reason.
//!
//! Each cause has a function that reads the level in question and returns a claim, or none. A claim holds time that was measured to be its
//! own:
//!
//! - row locks by the server's own clock,
//! - reads by file,
//! - waits by the stacks of those that waited,
//! - or a share of the CPUs' time with the queues in front of them.
//!
//! What no claim holds is unknown, and shown as such. Suspects are ranked by the share of
//! the response time that they hold, weighed by how sure the evidence makes their claim. A claim without measured time (a
//! setting, a version, a count) is possible: it has no share, and never comes first.
//!
//! Shares are never adjusted to fit. Where they add up to more than the response time, a finding reports it. Where the budget leaves more
//! than a fifth unaccounted for, only the gap is named.

mod activities;
mod case;
mod claim;
mod classes;
mod clients;
mod closed_system;
mod cluster;
mod commits;
mod cpus;
mod fitted;
mod gain;
mod latches;
mod limit;
mod load;
mod logs;
mod model;
mod ndb;
mod pages;
mod plans;
mod pool;
mod proxy;
mod quota;
mod remedies;
mod resource;
mod rows;
mod rows_read;
mod sampled_waits;
mod statement_work;
mod statements;
mod tables;
mod untraced;

pub use model::{Cause, Class, CpuGains, Gain, Holder, Possible, Suspect, SuspectObject};
pub use resource::{Limit, Resource};

use crate::level::Level;
use crate::model::{Budget, Evidence, Finding, Input, Part};
use crate::regime::Shape;
use case::Case;
use claim::Claim;
use closed_system::{GAIN_MIN, HeldTime};
use whyso_model::LockKind;

/// Smaller shares are not listed.
const SHARE_MIN: f64 = 0.05;
const LISTED_MAX: usize = 6;

/// Without a cause of this share, throughput would be 1.25 times what it is where nothing else bounds it.
const LARGE_SHARE: f64 = 0.2;

/// The second is close to the first where it has this much of its weight.
const CLOSE: f64 = 0.8;

/// Counters alone show that something happened, not what waited for it.
const CERTAINTY_WITHOUT_TRACE: f64 = 0.7;

/// How sure one is of what nobody claims.
const CERTAINTY_OF_UNKNOWN: f64 = 0.6;

/// Suspects that a report's findings name.
const NAMED_MAX: usize = 3;

/// A budget that leaves more than this share of the response time unaccounted for, or holds more than this beyond it, names no cause.
const UNACCOUNTED_MAX: f64 = 0.2;

/// Claims may add up to this much of the response time before a finding reports it: what rounding and the window's ends leave.
const CLAIMED_MAX: f64 = 1.01;

/// The causes at one level.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspicions {
    /// What bounds throughput; `None` where nothing was measured.
    pub(crate) limit: Option<Limit>,
    /// The first suspect first; empty where nothing was measured.
    pub(crate) suspects: Vec<Suspect>,
    pub(crate) possible: Vec<Possible>,
    pub(crate) cpu_gains: CpuGains,
    /// Where the measured times of all claims add up to more than the response time.
    overclaimed: Option<Finding>,
}

/// Everyone suspected at the level at this position. Empty where nothing was measured there.
pub(crate) fn suspects(
    about: Option<usize>,
    levels: &[Level],
    shape: Option<&Shape>,
    budgets: &[Budget],
    input: &Input,
) -> Suspicions {
    let Some(level) = about.and_then(|at| levels.get(at)) else {
        return Suspicions::default();
    };
    let Some(case) = Case::new(level, levels, shape, budgets, input) else {
        return Suspicions::default();
    };
    if let Some(claim) = load::hardly_asked(&case) {
        let only = BlamedClaim { share: 1.0, cpu_ms: 0.0, claim };
        let limit = limit::limit(&case, std::slice::from_ref(&only));
        return Suspicions {
            limit,
            suspects: vec![only.into_suspect(&case, &[], None)],
            ..Suspicions::default()
        };
    }
    let Accusation { mut accused, mut possible, claimed_ms } = accuse(&case);
    let held: Vec<HeldTime> = accused.iter().map(BlamedClaim::held_time).collect();
    let mut overclaimed = None;
    if let Some(gap) = unaccounted(&case) {
        // How long users were outside of transactions is known without the budget.
        accused.retain(|blamed| blamed.claim.is_first && blamed.claim.cause == Cause::Unsaturated);
        accused.push(gap);
    } else if claimed_ms > CLAIMED_MAX * case.response_ms {
        overclaimed = Some(overclaimed_finding(&case, claimed_ms));
    }
    let limit = limit::limit(&case, &accused);
    rank(&mut accused, &mut possible);
    if accused.is_empty() {
        accused.push(BlamedClaim { claim: unknown(&case, 0.0, &[]), share: 0.0, cpu_ms: 0.0 });
    }
    let runner_up = runner_up(&accused);
    let suspects = accused.into_iter().enumerate();
    Suspicions {
        limit,
        suspects: suspects
            .map(|(at, blamed)| blamed.into_suspect(&case, &held, runner_up.filter(|_| at == 0)))
            .collect(),
        possible: possible.into_iter().filter(|claim| is_possible(&case, claim)).map(into_possible).collect(),
        cpu_gains: gain::with_other_cpus(&case, &held),
        overclaimed,
    }
}

/// The first suspect first; those whose share is too small to be listed are possible at most.
fn rank(accused: &mut Vec<BlamedClaim>, possible: &mut Vec<Claim>) {
    let (listed, small): (Vec<BlamedClaim>, Vec<BlamedClaim>) =
        accused.drain(..).partition(|blamed| blamed.share >= SHARE_MIN || blamed.claim.is_first);
    possible.extend(small.into_iter().map(|blamed| blamed.claim));
    possible.sort_by_key(|claim| claim.cause);
    *accused = listed;
    accused.sort_by(|a, b| {
        let by_score = b.score().total_cmp(&a.score());
        b.claim.is_first.cmp(&a.claim.is_first).then(by_score).then(a.claim.cause.cmp(&b.claim.cause))
    });
    put_ordinary_work_last(accused);
    accused.truncate(LISTED_MAX);
}

/// Ordinary work is what a server is there for. A cause that holds a good part of the time comes before it, however much that work is.
fn put_ordinary_work_last(accused: &mut Vec<BlamedClaim>) {
    // Where the server's CPUs are full, users would only wait there for the time that they spend elsewhere.
    let is_large = |blamed: &BlamedClaim| {
        let is_removable = !blamed.claim.cause.is_ordinary()
            && !matches!(
                blamed.claim.cause,
                Cause::Observer | Cause::Generator | Cause::Network | Cause::Proxy
            );
        is_removable && blamed.share >= LARGE_SHARE
    };
    let Some(last) = accused.iter().rposition(is_large) else { return };
    let is_work =
        |blamed: &BlamedClaim| blamed.claim.cause.is_ordinary() && blamed.claim.cause != Cause::Unknown;
    let (work, mut ranked): (Vec<BlamedClaim>, Vec<BlamedClaim>) = accused.drain(..=last).partition(is_work);
    ranked.extend(work);
    ranked.append(accused);
    *accused = ranked;
}

/// The second suspect, where it is close to the first.
fn runner_up(accused: &[BlamedClaim]) -> Option<Cause> {
    let (first, second) = (accused.first()?, accused.get(1)?);
    let is_close = !first.claim.is_first
        && first.claim.cause != Cause::Unknown
        && second.score() >= CLOSE * first.score()
        && !second.claim.cause.is_ordinary();
    is_close.then_some(second.claim.cause)
}

/// The first suspects as sentences of the report, and what is possible in one.
pub(crate) fn findings(suspected: &Suspicions) -> Vec<Finding> {
    let limit = suspected.limit.as_ref().zip(suspected.suspects.first());
    let of_limit = limit.map(|(limit, first)| Finding {
        id: "limit".to_string(),
        text: limit.text.clone(),
        evidence: first.evidence.clone(),
    });
    let named = suspected.suspects.iter().take(NAMED_MAX).enumerate();
    let of_suspects = named.map(|(at, suspect)| {
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
    });
    let mut findings: Vec<Finding> = of_limit.into_iter().chain(of_suspects).collect();
    if !suspected.possible.is_empty() {
        let each: Vec<String> = suspected
            .possible
            .iter()
            .map(|possible| format!("{} ({})", possible.id.name(), possible.text.trim_end_matches('.')))
            .collect();
        findings.push(Finding {
            id: "possible".to_string(),
            text: format!("Possible, not measured: {}.", each.join("; ")),
            evidence: suspected.possible.iter().flat_map(|possible| possible.evidence.clone()).collect(),
        });
    }
    findings.extend(suspected.overclaimed.iter().cloned());
    findings
}

/// A claim with all that it got.
struct BlamedClaim {
    claim: Claim,
    share: f64,
    /// Time at the CPUs, on top of the claim's own.
    cpu_ms: f64,
}

struct Accusation {
    accused: Vec<BlamedClaim>,
    /// Claims that no measured time bears out.
    possible: Vec<Claim>,
    /// What all claims hold together, in ms.
    claimed_ms: f64,
}

fn accuse(case: &Case) -> Accusation {
    let mut claims = cpus::claims(case);
    claims.extend(load::claims(case));
    claims.extend(proxy::claims(case));
    claims.extend(clients::claims(case));
    claims.extend(quota::claim(case));
    claims.extend(cluster::claims(case));
    claims.extend(ndb::claims(case));
    claims.extend(logs::claims(case));
    claims.extend(pages::claims(case));
    claims.extend(rows::claims(case));
    claims.extend(tables::claims(case));
    claims.extend(latches::claims(case));
    claims.extend(plans::claims(case));
    let claims = activities::settle(case, classes::settle(case, claims));
    let claims = sampled_waits::settle(case, untraced::settle(case, claims));
    let mut claims = commits::settle(case, claims);
    let instead = statement_work::may_be_instead(case, &claims);
    if !instead.is_empty() {
        claims.retain(|claim| claim.cause != Cause::Cpu);
    }

    let own_lock_ms: f64 = claims.iter().map(|claim| claim.lock_ms).sum();
    // The CPUs' pool can't hold what was measured to be someone's own, such as the attempts that a deadlock ended.
    let own_ms: f64 =
        claims.iter().filter(|claim| claim.cause != Cause::Unsaturated).map(|claim| claim.ms).sum();
    let pool_cpu_ms = pool::pool_ms(case).min((case.response_ms - own_ms).max(0.0));
    let mut cpu = CpuPool::new(pool_cpu_ms, case.cpu_ms(), &claims);

    let (mut accused, mut possible) = (Vec::new(), Vec::new());
    let mut claimed_ms = 0.0;
    for claim in claims {
        let cpu_ms = cpu.take(&claim);
        let ms = claim.ms + cpu_ms;
        // What needs no queue to hold a transaction is counted by the others, too.
        if claim.cause != Cause::Unsaturated {
            claimed_ms += ms;
        }
        if ms > 0.0 || claim.is_first {
            accused.push(BlamedClaim { share: case.share(ms), cpu_ms, claim });
        } else {
            possible.push(claim);
        }
    }
    // A pause that a script asks for has no cause to be found.
    let open_ms = (case.response_ms - claimed_ms - case.ms(Part::ClientPause)).max(0.0);
    if case.share(open_ms) >= SHARE_MIN {
        let claim = unknown(case, (case.lock_ms() - own_lock_ms).max(0.0), &instead);
        let cpu_ms = if instead.is_empty() { 0.0 } else { cpu.for_cpu_ms.min(open_ms) };
        accused.push(BlamedClaim { share: case.share(open_ms), cpu_ms, claim });
    }
    Accusation { accused, possible, claimed_ms }
}

/// The time that the CPUs hold. Other programs' part comes first. Of the rest each kind of work has its measured share, and no more than
/// the ones before it have left. What remains is the cause `cpu`.
struct CpuPool {
    of_others_ms: f64,
    of_server_ms: f64,
    left_ms: f64,
    for_cpu_ms: f64,
}

impl CpuPool {
    fn new(pool_ms: f64, work_ms: f64, claims: &[Claim]) -> CpuPool {
        let sum = |is_one: &dyn Fn(&Claim) -> bool| -> f64 {
            claims.iter().filter(|claim| is_one(claim)).map(|claim| claim.cpu_share).sum::<f64>().min(1.0)
        };
        let asked_by_others = sum(&|claim| claim.cause == Cause::NoisyNeighbour);
        // While the server works on a CPU, no other program holds it up.
        let of_others_ms = (pool_ms * asked_by_others).min((pool_ms - work_ms).max(0.0));
        let of_server_ms = pool_ms - of_others_ms;
        let asked = sum(&|claim| claim.cause != Cause::NoisyNeighbour);
        CpuPool {
            of_others_ms,
            of_server_ms,
            left_ms: of_server_ms,
            for_cpu_ms: of_server_ms * (1.0 - asked),
        }
    }

    fn take(&mut self, claim: &Claim) -> f64 {
        match claim.cause {
            Cause::Cpu => self.for_cpu_ms,
            Cause::NoisyNeighbour => self.of_others_ms,
            _ => {
                let ms = (self.of_server_ms * claim.cpu_share).min(self.left_ms);
                self.left_ms -= ms;
                ms
            }
        }
    }
}

/// Whether a cause without measured time is possible. The parts that it may be in, with what no part holds, must be a share of the response
/// time. And stacks must not show that nobody waited for it.
fn is_possible(case: &Case, claim: &Claim) -> bool {
    let in_parts_ms: f64 = claim.may_be_in.iter().map(|part| case.ms(*part)).sum();
    let open_ms = case.budget.map_or(0.0, |budget| budget.unaccounted_ms.max(0.0));
    let has_time = !case.is_traced() || case.share(in_parts_ms + open_ms) >= SHARE_MIN;
    !claim.may_be_in.is_empty()
        && has_time
        && !classes::is_ruled_out(case, claim)
        && !activities::is_ruled_out(case, claim)
}

fn into_possible(claim: Claim) -> Possible {
    let evidence = without_repeats(claim.evidence);
    Possible { id: claim.cause, text: format!("{}.", capitalised(&claim.why)), evidence }
}

/// The only suspect of a budget that does not add up.
fn unaccounted(case: &Case) -> Option<BlamedClaim> {
    let budget = case.budget?;
    // The budget holds the window's whole time, that of transactions in flight at its end as well, which no response time has.
    let share = (budget.unaccounted_ms + case.level.at_ends_ms) / case.response_ms;
    if !share.is_finite() || share.abs() <= UNACCOUNTED_MAX {
        return None;
    }
    let held = whyso_words::percent((1.0 - share).min(100.0));
    let why = format!(
        "the parts of the time budget hold {held} of it, and an account with such a gap names no cause; measure again, and see \
         whether events were lost or other clients' requests were counted"
    );
    let claim = Claim::new(Cause::Unknown, "what the time budget does not account for is", why)
        .certain(CERTAINTY_OF_UNKNOWN)
        .rests_on([case.level_quantity("latency_mean_ms")]);
    Some(BlamedClaim { share: share.abs().min(1.0), cpu_ms: 0.0, claim })
}

fn overclaimed_finding(case: &Case, claimed_ms: f64) -> Finding {
    let share = claimed_ms / case.response_ms;
    let text = format!(
        "The suspects' times add up to {} of the response time at {}: some of it was measured twice, or belongs to {}s that \
         ended outside of the window. Each share is shown as it was measured.",
        whyso_words::percent(share.min(100.0)),
        case.level.name(),
        case.unit(),
    );
    let evidence = vec![case.level_quantity("latency_mean_ms")];
    Finding { id: "suspects-overlap".to_string(), text, evidence }
}

/// What nobody claims, and what to measure next. `instead`: causes that may fill the CPUs, of whose work no stacks were sampled.
fn unknown(case: &Case, lock_ms: f64, instead: &[Cause]) -> Claim {
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
    let between_ms = case.ms(Part::TransitOut);
    let is_between = load::are_hosts_starved(case) && between_ms > lock_ms && between_ms > case.ms(largest);
    let why = if let Some(used) = case.cpus_used().filter(|_| !instead.is_empty() && case.are_cpus_full()) {
        unknown_work(case, used, instead)
    } else if let Some(why) = untraced::unknown(case) {
        why
    } else if case.is_elsewhere {
        "the counters do not show what it was waited for; record the server on its own machine next, where its threads can be traced".to_string()
    } else if !case.is_traced() {
        "the counters do not show what it was waited for; trace the run next, so that each thread's states are known".to_string()
    } else if is_between {
        format!(
            "{} per {unit} passed between the server and the load hosts, whose threads waited for a CPU meanwhile: what of it is the way is not known; \
             give the load hosts more CPUs next",
            whyso_words::milliseconds(between_ms)
        )
    } else if lock_ms > case.ms(largest) {
        "threads slept on locks, and no counter shows on which; record the stacks of their waits next"
            .to_string()
    } else if case.ms(largest) >= SHARE_MIN * case.response_ms {
        format!(
            "{} per {unit} went into {}, and no counter shows why; record the stacks of these waits next",
            whyso_words::milliseconds(case.ms(largest)),
            largest.words()
        )
    } else {
        "the parts of the time budget leave it open; trace a longer window next, and see whether events were lost".to_string()
    };
    Claim::new(Cause::Unknown, "what no known cause holds is", why)
        .certain(CERTAINTY_OF_UNKNOWN)
        .rests_on([case.level_quantity("latency_mean_ms")])
        .rests_on(case.parts(&[Part::Lock, if is_between { Part::TransitOut } else { largest }]))
}

/// The CPUs are full, and nothing shows what with.
fn unknown_work(case: &Case, used: f64, instead: &[Cause]) -> String {
    let causes: Vec<String> = instead.iter().map(|cause| cause.name().to_string()).collect();
    format!(
        "{} of the CPUs that the server may use were busy, and without sampled stacks it is not known whether that is the statements' ordinary work, \
         or the work of {}{}; sample stacks next",
        whyso_words::percent(used),
        whyso_words::list(&causes),
        statements::busiest(case)
    )
}

impl BlamedClaim {
    fn score(&self) -> f64 {
        self.share * self.claim.certainty
    }

    fn held_time(&self) -> HeldTime {
        let Claim { cause, ms, lock_ms, cpu_share, certainty, .. } = self.claim;
        HeldTime { cause, ms, lock_ms, cpu_share, certainty }
    }

    fn into_suspect(self, case: &Case, all: &[HeldTime], runner_up: Option<Cause>) -> Suspect {
        let mut held = self.held_time();
        if !case.is_traced() && !self.claim.is_first {
            held.certainty *= CERTAINTY_WITHOUT_TRACE;
        }
        let predicted_gain = gain::predict(case, held, all);
        let level = case.level.name();
        let mut text = match self.share > 0.0 {
            true => format!(
                "{} {} of the response time at {level}: {}",
                capitalised(self.claim.what),
                whyso_words::percent(self.share),
                self.claim.why
            ),
            // What it holds was not measured.
            false => format!("At {level}, {}", self.claim.why),
        };
        text.push_str(untraced::basis(case));
        if let Some(cause) = runner_up {
            text.push_str(&format!("; {} comes too close to be distinguished from it", cause.name()));
        }
        if held.cause == Cause::Cpu
            && predicted_gain.is_some_and(|gain| gain.high >= GAIN_MIN)
            && let Some(left) = gain::left_with_enough_cpus(case, all)
        {
            text.push_str(&format!("; {left}"));
        }
        text.push('.');
        let evidence = without_repeats(self.claim.evidence);
        Suspect {
            id: self.claim.cause,
            share: self.share,
            class: self.claim.class,
            predicted_gain,
            object: lock_kind(self.claim.cause).and_then(|kind| case.object(kind)),
            evidence,
            text,
        }
    }
}

/// The kind of lock that a cause's waits are for, where samples of it name tables.
fn lock_kind(cause: Cause) -> Option<LockKind> {
    match cause {
        Cause::RowLock | Cause::Deadlock | Cause::AutoIncrement => Some(LockKind::Row),
        Cause::MetadataLock => Some(LockKind::Metadata),
        Cause::TableLock => Some(LockKind::Table),
        _ => None,
    }
}

fn without_repeats(evidence: Vec<Evidence>) -> Vec<Evidence> {
    let mut unique = Vec::new();
    for item in evidence {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    unique
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}
