//! Sentences about tiers.

use whyso_words::{milliseconds, number, percent};

use super::cause::{BY_TURNS_MIN, held_after, is_of_page};
use super::model::{TierCause, TierLine, TierTime};
use super::nested::INTERLEAVED_MIN;
use crate::budget::Part;
use crate::model::Finding;

/// From this share on, arrivals that were not seen are reported.
const REPORTED_MIN: f64 = 0.01;
/// From so many connections on, in the mean, accept queues are reported.
const QUEUED_MIN: f64 = 0.1;
/// From so many threads on, in the mean, connections that stay open are reported.
const KEPT_MIN: f64 = 1.0;

/// Each first tier in a sentence, with what most of its time goes into; and what limits these sums.
pub(crate) fn findings(tiers: &[TierTime]) -> Vec<Finding> {
    let mut texts: Vec<(&str, String)> = Vec::new();
    for tier in tiers.iter().filter(|tier| tier.is_first) {
        texts.push(("tier-budget", sentence(tier, tiers)));
    }
    for tier in tiers {
        texts.extend(notes(tier).into_iter().map(|note| ("tier-note", note)));
    }
    let finding = |(id, text): (&str, String)| Finding { id: id.to_string(), text, evidence: Vec::new() };
    texts.into_iter().map(finding).collect()
}

/// The result in a sentence: of the first tier with the most requests.
pub(crate) fn headline(tiers: &[TierTime]) -> Option<String> {
    let firsts = tiers.iter().filter(|tier| tier.is_first);
    firsts.max_by(|a, b| a.requests.total_cmp(&b.requests)).map(|tier| sentence(tier, tiers))
}

/// What the time of a request shows, as text. Only the advice ends with a full stop.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestWords {
    /// "At 8 users, apache2 answered 123 requests per second, in 64 ms in the mean". Of a load on a site: "…; users waited 65 ms in the mean".
    pub result: String,
    /// Share of the longest line, 0 to 1, and where it is: "waiting on locks in the database". `None` where nothing is known.
    pub longest: Option<(f64, String)>,
    /// What to look at next, in sentences; empty where nothing is known.
    pub advice: String,
}

/// Of a first tier, one of `tiers`.
pub fn request_words(tier: &TierTime, tiers: &[TierTime]) -> RequestWords {
    let line = tier.longest.and_then(|at| tier.lines.get(at as usize));
    RequestWords {
        result: format!(
            "{}{} answered {} requests per second{} in the mean",
            if tier.level.is_empty() { String::new() } else { format!("At {}, ", tier.level) },
            tier.name,
            number(tier.requests_per_s),
            match tier.page_ms {
                Some(page_ms) => format!("; users waited {}", milliseconds(page_ms)),
                None => format!(", in {}", milliseconds(tier.mean_ms)),
            },
        ),
        longest: line.map(|line| (line.share, place(line))),
        advice: line.map_or(String::new(), |line| advice(tier, line, tiers)),
    }
}

fn sentence(tier: &TierTime, tiers: &[TierTime]) -> String {
    let RequestWords { result, longest, advice } = request_words(tier, tiers);
    let space = if advice.is_empty() { "" } else { " " };
    match longest {
        Some((share, place)) => format!("{result}. {} of that is {place}.{space}{advice}", percent(share)),
        None => format!("{result}."),
    }
}

fn place(line: &TierLine) -> String {
    match line.part {
        _ if line.is_unrecorded => line.text.clone(),
        Some(Part::TransitOut) => line.text.clone(),
        // It names the tier already.
        Some(Part::TransitIn) if line.text.ends_with(&line.tier) => line.text.clone(),
        _ => format!("{} in {}", line.text, line.tier),
    }
}

/// What to look at next; empty where nothing is known.
fn advice(tier: &TierTime, line: &TierLine, tiers: &[TierTime]) -> String {
    let name = &line.tier;
    let of = tiers.iter().find(|other| other.name == line.tier);
    let held = of.filter(|_| line.part == Some(Part::TransitIn)).and_then(held_after);
    match tier.cause {
        cause @ (Some(TierCause::LogFile | TierCause::SessionFiles) | None) if let Some(held) = &held => {
            let remedy = match cause {
                Some(TierCause::LogFile) => {
                    ". If requests waited for these threads, buffer the log, or write it through a pipe"
                }
                Some(_) => {
                    ". If requests waited for these threads, keep sessions in memory, such as in memcached, or in several folders"
                }
                None => "",
            };
            format!(
                "After its answers, {name} waited for {}, {} ms for each request, and picked up nothing meanwhile{remedy}.",
                held.path,
                number(held.ms),
            )
        }
        Some(TierCause::Upstream) => "Record it, too, by --process or --dsn.".to_string(),
        Some(TierCause::KeepaliveIdle) => {
            let (kept, threads) = of.map_or((0.0, 0.0), |other| (other.kept_threads, other.threads));
            format!(
                "{} of the {} threads of {name} waited for the next request on connections that stay open: shorten the keep-alive \
                 time, or allow more clients.",
                number(kept),
                number(threads),
            )
        }
        Some(TierCause::EventLoop) => format!(
            "A thread of {name} works on several requests by turns, and was at others: shorten what it does or waits for in one turn, or \
             start more processes."
        ),
        Some(TierCause::WorkerPool) => {
            format!("Most threads of {name} were at work: give it more workers, if CPUs are left.")
        }
        Some(TierCause::SessionFiles) => {
            "Keep sessions in memory, such as in memcached, or in several folders.".to_string()
        }
        Some(TierCause::LogFile) => {
            "One process at a time writes to this log: buffer it, or write it through a pipe.".to_string()
        }
        Some(TierCause::DelayedAck) => format!(
            "The kernel acknowledged late, at least once for every two requests. A server that sends an answer in several pieces waits for \
             that. If {name} does so, or a proxy before it, let it send the answer at once, or set TCP_NODELAY."
        ),
        Some(TierCause::EphemeralPorts) => "Local ports to a server behind ran out meanwhile.".to_string(),
        None if line.part == Some(Part::TransitIn) && of.is_some_and(|other| !other.is_database) => {
            format!(
                "Most threads of {name} were idle meanwhile, or were not counted: look at what hands requests to them."
            )
        }
        None if is_of_page(tier, line) => format!(
            "{name} did not have these requests then: look at the way to it, at connections being made, and at the load's own machine."
        ),
        None if line.part == Some(Part::Other)
            && of.is_some_and(|other| other.interleaved >= BY_TURNS_MIN) =>
        {
            format!(
                "The thread of {name} had nothing to do for them then: look for a pool of connections that is too small, or for a lock or a \
                 timer of its own."
            )
        }
        None if line.part == Some(Part::Runqueue) => "The CPUs are full.".to_string(),
        None => String::new(),
    }
}

fn notes(tier: &TierTime) -> Vec<String> {
    let name = &tier.name;
    let mut notes = Vec::new();
    if tier.interleaved >= INTERLEAVED_MIN {
        notes.push(format!(
            "The thread of {} of the requests to {name} worked on others meanwhile: what the thread did after an answer of a server behind \
             counts as the wait for that server.",
            percent(tier.interleaved),
        ));
    }
    if tier.unseen >= REPORTED_MIN {
        notes.push(format!(
            "Of {} of the requests to {name}, the arrival was not seen: their wait to be picked up is missing.",
            percent(tier.unseen),
        ));
    }
    if tier.kept_threads >= KEPT_MIN {
        notes.push(format!(
            "{} threads of {name} waited for the next request on connections that stay open, in the mean.",
            number(tier.kept_threads),
        ));
    }
    if let Some(queued) = tier.accept_queue.filter(|queued| *queued >= QUEUED_MIN) {
        let queue_ms: f64 =
            tier.parts.iter().filter(|part| part.part == Part::TransitIn).map(|part| part.ms).sum();
        notes.push(format!(
            "{} connections waited in the accept queue of {name}, in the mean of samples. By its requests' rate and their wait to be \
             picked up, {} requests waited.",
            number(queued),
            number(tier.requests_per_s * queue_ms / 1e3),
        ));
    }
    notes
}
