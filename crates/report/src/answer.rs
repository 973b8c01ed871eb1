//! The answer of a run in a few words, as data: what a command prints when it ends ([`lines`]), and what the page begins with.
//!
//! Whether the result can be used, where throughput stops, the limit, the causes, who holds them, and what is worth a try.

mod levels;
mod line;
mod lines;
mod time;

pub use line::{Line, Span, Tone};
pub use lines::{AnswerPlace, LINES_MAX, RunBefore, answer_lines};

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use whyso_explain::model::{
    Cause, Class, Explanation, Gain, Limit, Part, Regime, Resource, Suspect, SuspectObject, TierCause,
    TierTime,
};
use whyso_record::run::{Level, Purpose, RunInfo};
use whyso_words::{milliseconds, number, percent, users};

use crate::text::clean;
use crate::text::level::unit;

/// Causes that the page shows.
const CAUSES_MAX: usize = 3;
/// From this share of the samples on, an object is named alone.
const ALL: f64 = 0.95;
/// A gain below this is none.
const GAIN_MIN: f64 = 1.01;

/// What a run has shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Answer {
    /// What makes the result unusable, the most serious first; empty where it is usable.
    pub doubts: Vec<String>,
    /// Such as "Stops at 8 users".
    pub extent: String,
    /// Throughput there, such as "1,392 tps"; empty where no level was measured.
    pub rate: String,
    /// The response time there within which 95 % of the transactions stayed, such as "9 ms"; empty where that is not known.
    pub p95: String,
    /// What bounds throughput, such as "locks"; empty where nothing was measured.
    pub limit: String,
    /// The first suspects, the first one first.
    pub causes: Vec<AnswerCause>,
    /// Where the time of a request went, of each program that no other one asks; the result above is about the database behind them then.
    pub requests: Vec<AnswerRequest>,
    /// Whether most of the time of all these requests goes into something else than a database.
    pub is_elsewhere: bool,
}

/// Where most of the time of a request to a program went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct AnswerRequest {
    /// Such as "86 % of a request to apache2: waiting on locks in the database".
    pub headline: String,
    /// Such as "apache2 answered 123 requests per second, in 64 ms in the mean".
    pub result: String,
    /// What to look at next; empty where whyso knows nothing.
    pub advice: String,
    /// What the longest part shows, where it has a name.
    pub cause: Option<TierCause>,
}

/// One suspect in a few words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct AnswerCause {
    pub id: Cause,
    /// Such as "row locks on shop.stock (PRIMARY)".
    pub words: String,
    /// Share of the response time, 0 to 1.
    pub share: f64,
    /// The level of that response time, such as "at 64 users"; empty where it is the one of the throughput.
    pub at: String,
    pub class: Class,
    /// The statement that held it most often; empty where that is not known.
    pub held_by: String,
    /// How often, such as "87 % of 412 samples"; empty where that is not known.
    pub held_share: String,
    /// What is worth a try, or what to measure next where the cause is not known; empty where whyso knows nothing.
    pub remedy: String,
    /// An estimate of throughput without the cause, such as "×1.3 to ×3"; empty where there is none.
    pub gain: String,
}

impl Answer {
    /// "Stops at 8 users: 1,392 tps, p95 9 ms. Limit: locks."; whether the result can be used comes first.
    pub fn sentence(&self) -> String {
        let doubts = match self.doubts.is_empty() {
            true => String::new(),
            false => format!("Not usable: {}. ", self.doubts.join("; ")),
        };
        let limit = match self.limit.as_str() {
            "" => String::new(),
            limit => format!(" Limit: {limit}."),
        };
        let requests: String =
            self.requests.iter().map(|request| format!("{}. ", request.headline)).collect();
        match self.is_elsewhere {
            // What the database behind it did is no answer.
            true => format!("{doubts}{}", requests.trim_end()),
            false => format!("{doubts}{requests}{}.{limit}", self.result()),
        }
    }

    /// "Stops at 8 users: 1,392 tps, p95 9 ms"
    fn result(&self) -> String {
        let mut text = self.extent.clone();
        if !self.rate.is_empty() {
            text.push_str(&format!(": {}", self.rate));
        }
        if !self.p95.is_empty() {
            text.push_str(&format!(", p95 {}", self.p95));
        }
        text
    }
}

/// The answer of a run.
pub fn answer(run: &RunInfo, explanation: &Explanation) -> Answer {
    // Of an open loop the question is which rates were kept up with: the explanation says it in a sentence.
    // What a request is to a process that is no server, is not known.
    let level =
        best(run, explanation).filter(|level| level.result.rate_per_s.is_none() && run.process().is_none());
    let best_index = level.map(|level| level.index);
    let about = explanation.about.and_then(|index| run.levels.iter().find(|level| level.index == index));
    // The cause is asked about where throughput stops growing, which may be another level.
    let at = match about.filter(|level| Some(level.index) != best_index && !run.is_recorded()) {
        Some(level) => format!("at {}", users(level.users)),
        None => String::new(),
    };
    let causes = explanation.suspects.iter().take(CAUSES_MAX);
    Answer {
        doubts: explanation.unusable.iter().map(|doubt| clean(&doubt.text)).collect(),
        extent: match level {
            Some(level) => extent(run, explanation, level),
            None => statement(explanation),
        },
        rate: level.map_or(String::new(), |level| rate(run, explanation, level)),
        p95: level.map_or(String::new(), p95),
        limit: explanation.limit.as_ref().map_or("", limit_words).to_string(),
        causes: causes.map(|suspect| cause(suspect, &at)).collect(),
        requests: explanation.tiers.iter().filter(is_first).map(|tier| request(tier, explanation)).collect(),
        is_elsewhere: is_elsewhere(explanation),
    }
}

/// Programs that no other one asks.
fn is_first(tier: &&TierTime) -> bool {
    tier.is_first && !tier.is_database
}

fn request(tier: &TierTime, explanation: &Explanation) -> AnswerRequest {
    let words = whyso_explain::request_words(tier, &explanation.tiers);
    let headline = match &words.longest {
        Some((share, place)) if tier.page_ms.is_some() => {
            format!("{} of what users of {} waited for: {place}", percent(*share), tier.name)
        }
        Some((share, place)) => format!("{} of a request to {}: {place}", percent(*share), tier.name),
        None => words.result.clone(),
    };
    AnswerRequest {
        headline: clean(&headline),
        result: clean(&words.result),
        advice: clean(&words.advice),
        cause: tier.cause,
    }
}

/// Whether most of the time of the requests to every first program goes into something else than a database.
fn is_elsewhere(explanation: &Explanation) -> bool {
    let mut firsts = explanation.tiers.iter().filter(is_first).peekable();
    let is_database = |name: &str| explanation.tiers.iter().any(|tier| tier.is_database && tier.name == name);
    firsts.peek().is_some()
        && firsts.all(|tier| {
            let longest = tier.longest.and_then(|at| tier.lines.get(at as usize));
            longest.is_some_and(|line| !is_database(&line.tier) || line.part == Some(Part::TransitOut))
        })
}

/// The headline without what makes the result unusable, which has a place of its own.
fn statement(explanation: &Explanation) -> String {
    let doubts: Vec<&str> = explanation.unusable.iter().map(|doubt| doubt.text.as_str()).collect();
    let led_by = format!("Not usable: {}.", doubts.join("; "));
    let headline = explanation.headline.as_str();
    let statement = headline.strip_prefix(&led_by).unwrap_or(headline);
    match statement.trim().trim_end_matches('.') {
        "" => "No result".to_string(),
        text => clean(text),
    }
}

fn limit_words(limit: &Limit) -> &'static str {
    match limit.id {
        Resource::Cpu => "the CPUs",
        Resource::Lock => "locks",
        Resource::Disk => "the disk",
        Resource::Network => "the network",
        Resource::Pool => "the bound on threads at work",
        Resource::Nodes => "the other nodes of the cluster",
        Resource::Client => "the load generator, not the server",
        Resource::None => "none reached",
        Resource::Unknown => "unknown",
    }
}

/// The level that the first line is about: the peak, else the best of those that were measured.
fn best<'a>(run: &'a RunInfo, explanation: &Explanation) -> Option<&'a Level> {
    let mut swept = run.levels.iter().filter(|level| level.purpose == Purpose::Sweep);
    let at_peak = explanation.peak.as_ref().and_then(|peak| swept.find(|level| level.users == peak.users));
    at_peak.or_else(|| run.best_level())
}

/// "Stops at 8 users", "Still rises at 64 users", "At 8 users".
fn extent(run: &RunInfo, explanation: &Explanation, level: &Level) -> String {
    // A level that has not ended has no number of users yet.
    if run.is_recorded() || level.users == 0 {
        let window = whyso_words::seconds(level.window.seconds());
        // Next to a request to a program, it is about the database behind it.
        let is_behind = explanation.tiers.iter().any(|tier| tier.is_database);
        return if is_behind { format!("The database, in {window}") } else { format!("In {window}") };
    }
    let swept = run.levels.iter().filter(|level| level.purpose == Purpose::Sweep).count();
    let at = users(level.users);
    match explanation.peak.as_ref().filter(|_| swept > 1) {
        Some(peak) if peak.users_interval.1.is_none() && is_last_judged(explanation, level.users) => {
            format!("Still rises at {at}")
        }
        // Those with more users did hardly less: nobody knows that it stops there.
        Some(peak) if peak.users_interval.1.is_none() => format!("Most at {at}, and hardly less beyond"),
        Some(_) => format!("Stops at {at}"),
        None => format!("At {at}"),
    }
}

/// Whether no level with more users could be judged.
fn is_last_judged(explanation: &Explanation, users: u32) -> bool {
    !explanation.levels.iter().any(|level| level.users > users && level.regime != Regime::Unknown)
}

fn rate(run: &RunInfo, explanation: &Explanation, level: &Level) -> String {
    let per_s = number(throughput(explanation, level));
    if run.is_recorded() { format!("{per_s} {}s/s", unit(run)) } else { format!("{per_s} tps") }
}

/// Transactions per second as the explanation has them: of the steady part of the window.
fn throughput(explanation: &Explanation, level: &Level) -> f64 {
    let verdict = explanation.levels.iter().find(|verdict| verdict.index == level.index);
    verdict.map_or(level.result.transactions_per_s, |verdict| verdict.transactions_per_s)
}

fn p95(level: &Level) -> String {
    let latency = &level.result.latency_ms;
    match latency.p95 > 0.0 {
        true => whyso_words::at_least(milliseconds(latency.p95), latency.is_lower_bound(95.0)),
        false => String::new(),
    }
}

fn cause(suspect: &Suspect, at: &str) -> AnswerCause {
    let holder = suspect.object.as_ref().and_then(|object| Some((object, object.holder.as_ref()?)));
    let gain = suspect.predicted_gain.filter(|gain| gain.high >= GAIN_MIN);
    AnswerCause {
        id: suspect.id,
        words: words(suspect.id, suspect.object.as_ref()),
        share: suspect.share,
        at: at.to_string(),
        class: suspect.class,
        held_by: holder.map_or(String::new(), |(_, holder)| clean(&holder.statement)),
        held_share: holder.map_or(String::new(), |(object, holder)| {
            format!("{} of {} samples", percent(holder.share), whyso_words::whole(object.samples))
        }),
        remedy: remedy(suspect),
        gain: gain.map_or(String::new(), |gain| gain_words(suspect.id, gain)),
    }
}

fn words(cause: Cause, object: Option<&SuspectObject>) -> String {
    match object {
        _ if cause == Cause::Unknown => "not known".to_string(),
        Some(object) if object.share >= ALL => format!("{} on {}", cause.words(), clean(&object.name)),
        Some(object) => {
            format!("{} ({} of them on {})", cause.words(), percent(object.share), clean(&object.name))
        }
        None => cause.words().to_string(),
    }
}

/// What is worth a try. Where the cause is not known, what to measure next: the end of the suspect's text says it.
fn remedy(suspect: &Suspect) -> String {
    match suspect.id {
        Cause::Unknown => {
            let next = suspect.text.rsplit_once("; ").map_or("", |(_, next)| next);
            clean(next.trim_end_matches('.'))
        }
        cause => cause.remedy().unwrap_or_default().to_string(),
    }
}

fn gain_words(cause: Cause, Gain { low, high }: Gain) -> String {
    let (low, high) = (number(low), number(high));
    match cause {
        Cause::Cpu => format!("×{low} with twice the CPUs"),
        _ if low == high => format!("×{high}"),
        _ => format!("×{low} to ×{high}"),
    }
}

#[cfg(test)]
mod tests;
