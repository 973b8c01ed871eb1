//! Threads that pause alike, as one pattern.

use whyso_model::Moments;

use super::model::{Kind, Pauses, Regular};
use crate::level::Level;
use crate::model::LoopKind;

/// Pauses of two threads are alike where their mean lengths are within this factor.
const ALIKE: f64 = 1.2;

/// Pauses that hold less than this share of their threads' time are not worth a word.
const SHARE_MIN: f64 = 0.01;

/// A wait within requests that comes back with each transaction is a part of its work, or of a queue, which the time budget
/// shows. A stall comes more rarely: at least this many transactions lie between two.
const TRANSACTIONS_BETWEEN_MIN: f64 = 5.0;

/// Threads of one role whose regular pauses are alike.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) kind: Kind,
    pub(super) role: String,
    pub(super) state: String,
    pub(super) call: String,
    pub(super) regular: Regular,
    pub(super) threads: u32,
    /// Requests that these threads answered.
    pub(super) requests: f64,
    pub(super) length: Moments,
    pub(super) period: Moments,
}

impl Pattern {
    fn of(first: &Pauses, regular: Regular) -> Pattern {
        Pattern {
            kind: first.kind(),
            role: first.role.clone(),
            state: first.state.clone(),
            call: first.call.clone(),
            regular,
            threads: 0,
            requests: 0.0,
            length: Moments::default(),
            period: Moments::default(),
        }
    }

    fn takes(&self, pauses: &Pauses, regular: Regular) -> bool {
        self.kind == pauses.kind()
            && (&self.role, &self.state, &self.call) == (&pauses.role, &pauses.state, &pauses.call)
            && self.regular.length == regular.length
            && is_alike(self.length.mean_ns, pauses.length.mean_ns)
            && (regular.length || is_alike(self.period.mean_ns, pauses.period.mean_ns))
    }

    fn add(&mut self, pauses: &Pauses, regular: Regular) {
        self.threads += 1;
        self.regular.period &= regular.period;
        self.requests += pauses.requests.max(0.0);
        self.length = self.length.and(pauses.length);
        self.period = self.period.and(pauses.period);
    }

    /// Of the threads' time.
    pub(super) fn share(&self, level: &Level) -> f64 {
        (self.length.sum_ns() / 1e9 / (level.seconds * f64::from(self.threads))).min(1.0)
    }

    /// Whether it is the same at another level.
    pub(super) fn is_like(&self, other: &Pattern) -> bool {
        (self.kind, &self.state, &self.call) == (other.kind, &other.state, &other.call)
            && self.regular.length == other.regular.length
            && is_alike(self.length.mean_ns, other.length.mean_ns)
    }
}

pub(super) fn is_alike(one: f64, other: f64) -> bool {
    one <= other * ALIKE && other <= one * ALIKE
}

/// Every regular pattern of a level, what is by design included.
pub(super) fn patterns(level: &Level) -> Vec<Pattern> {
    let mut regular: Vec<(&Pauses, Regular)> =
        level.pauses.iter().filter_map(|pause| Some((pause, pause.regular()?))).collect();
    // So that a pattern begins with its shortest, whatever the order of the threads.
    regular.sort_by(|(a, _), (b, _)| a.length.mean_ns.total_cmp(&b.length.mean_ns).then(a.tid.cmp(&b.tid)));
    let mut patterns: Vec<Pattern> = Vec::new();
    for (pauses, regular) in regular {
        let at = patterns.iter().position(|pattern| pattern.takes(pauses, regular)).unwrap_or_else(|| {
            patterns.push(Pattern::of(pauses, regular));
            patterns.len() - 1
        });
        patterns[at].add(pauses, regular);
    }
    patterns
}

/// Those that nobody meant, the one that holds most thread time first.
pub(super) fn unmeant(level: &Level) -> Vec<Pattern> {
    if level.seconds <= 0.0 || level.transactions == 0 || !level.verdict.valid {
        return Vec::new();
    }
    let of_load =
        level.pauses.iter().filter(|pause| pause.client == "load" || level.pacing == LoopKind::Recorded);
    let of_load: Vec<Pauses> = of_load.cloned().collect();
    let mut found = patterns(&Level { pauses: &of_load, ..level.clone() });
    found.retain(|pattern| pattern.share(level) >= SHARE_MIN);
    found.retain(|pattern| match pattern.kind {
        Kind::NextCommand => matches!(level.pacing, LoopKind::Closed | LoopKind::Recorded),
        Kind::RestOfRequest => true,
        Kind::InRequest => pattern.regular.period && pattern.period.mean_ns >= stall_period_min_ns(level),
        Kind::Timer | Kind::Own | Kind::Idle => false,
    });
    if generator_came_late(level, &found) {
        found.retain(|pattern| pattern.kind != Kind::NextCommand);
    }
    found.sort_by(|a, b| b.length.sum_ns().total_cmp(&a.length.sum_ns()));
    found
}

fn stall_period_min_ns(level: &Level) -> f64 {
    let transaction_s = f64::from(level.users) * level.seconds / level.transactions as f64;
    TRANSACTIONS_BETWEEN_MIN * transaction_s * 1e9
}

/// Sum of the waits for the next command.
pub(super) fn waits_for_commands_ns(patterns: &[Pattern]) -> f64 {
    patterns
        .iter()
        .filter(|pattern| pattern.kind == Kind::NextCommand)
        .map(|pattern| pattern.length.sum_ns())
        .sum()
}

/// With many users on few CPUs, answers wait for the generator's threads for long, and evenly so: a queue, which the time
/// budget shows.
fn generator_came_late(level: &Level, patterns: &[Pattern]) -> bool {
    let delay = level.counter(crate::budget::SOURCE, "client_delay_ns", "");
    delay.is_some_and(|delay| delay.increase > waits_for_commands_ns(patterns) / 2.0)
}
