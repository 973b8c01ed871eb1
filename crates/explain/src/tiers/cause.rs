//! What the longest line of a request's time shows.

use super::model::{TierCause, TierFile, TierLine, TierPart, TierTime};
use crate::budget::Part;
use crate::level::Level;
use crate::model::LoopKind;

/// From this share of a program's threads on, connections that stay open hold most of them.
const KEPT_MIN: f64 = 0.5;
/// From this share of a program's threads on that work on requests, its workers are too few. Threads that only manage the others count, too.
const BUSY_MIN: f64 = 0.5;
/// From this share of a program's requests on, its threads work on several by turns.
pub(super) const BY_TURNS_MIN: f64 = 0.5;
/// From this share of the queue on, waits for a file after the answers explain it: threads pick up nothing meanwhile.
const AFTER_MIN: f64 = 0.5;
/// A smaller share of the time names no cause.
const SHARE_MIN: f64 = 0.2;
/// So many acknowledgements for each request were late.
const DELAYED_MIN: f64 = 0.5;
/// After so long Linux acknowledges at the earliest, if it has nothing to send.
const LATE_MS: f64 = 40.0;
/// What one late acknowledgement for every two requests adds to a request.
const LATE_MIN_MS: f64 = DELAYED_MIN * LATE_MS;
/// Parts of the paths of PHP's and others' files of sessions.
const OF_SESSIONS: [&str; 2] = ["/sess", "session"];
/// Endings of logs' paths.
const OF_LOGS: [&str; 2] = [".log", "_log"];

/// How long a request waited to be picked up.
fn queue_ms(tier: &TierTime) -> f64 {
    tier.parts.iter().filter(|part| part.part == Part::TransitIn).map(|part| part.ms).sum()
}

/// Threads that work on requests, wait within them, or do what is left to do after them, in the mean.
fn busy_threads(tier: &TierTime) -> f64 {
    let after_ms: f64 = tier.after.iter().map(|part| part.ms).sum();
    tier.requests_per_s * (tier.mean_ms - queue_ms(tier) + after_ms) / 1e3
}

/// A file that threads waited for after their answers.
pub(super) struct HeldAfter<'a> {
    pub(super) path: &'a str,
    /// For each request.
    pub(super) ms: f64,
}

/// The file that holds a program's threads up after their answers, while requests wait to be picked up by them.
pub(super) fn held_after(tier: &TierTime) -> Option<HeldAfter<'_>> {
    let of_files = || {
        tier.after
            .iter()
            .filter(|part| matches!(part.part, Part::KernelLock | Part::FileWrite | Part::FileSync))
    };
    let held = |TierFile { path, .. }: &TierFile| -> f64 {
        let for_path = |part: &TierPart| {
            part.file.as_ref().filter(|file| file.path == *path).map_or(0.0, |file| part.ms * file.share)
        };
        of_files().map(for_path).sum()
    };
    let longest = of_files().filter_map(|part| part.file.as_ref()).map(|file| (file, held(file)));
    let (file, ms) = longest.max_by(|(_, ms), (_, other)| ms.total_cmp(other))?;
    (ms >= AFTER_MIN * queue_ms(tier)).then_some(HeldAfter { path: &file.path, ms })
}

/// Threads that wait for this file have a cause.
fn of_file(path: &str) -> Option<TierCause> {
    if OF_SESSIONS.iter().any(|piece| path.contains(piece)) {
        return Some(TierCause::SessionFiles);
    }
    OF_LOGS.iter().any(|ending| path.ends_with(ending)).then_some(TierCause::LogFile)
}

/// Whether a line of a first tier lies between the load and this tier.
pub(super) fn is_of_page(tier: &TierTime, line: &TierLine) -> bool {
    tier.page_ms.is_some() && line.depth == 1 && line.part == Some(Part::TransitOut)
}

/// Acknowledgements that the kernel sent late, of all connections of the machine, less those that hold nobody up. `None`: not counted where the
/// load is.
fn late_acks(tier: &TierTime, level: &Level) -> Option<f64> {
    if level.is_over_hosts() {
        return None;
    }
    let all = level.counter("net", "DelayedACKs", "")?.increase;
    // A request whose answer takes as long is acknowledged late, and so is an answer after which a user pauses.
    let of_requests = if tier.mean_ms >= LATE_MS { tier.requests } else { 0.0 };
    let of_answers = match level.pacing {
        LoopKind::Closed | LoopKind::Recorded => 0.0,
        LoopKind::ClosedWithPauses | LoopKind::Open => tier.requests,
    };
    Some(all - of_requests - of_answers)
}

/// The cause of a first tier; `None` where the line's own words are all that is known.
pub(super) fn cause(tier: &TierTime, tiers: &[TierTime], level: &Level) -> Option<TierCause> {
    let line = tier.lines.get(tier.longest? as usize).filter(|line| line.share >= SHARE_MIN)?;
    if line.is_unrecorded {
        return Some(TierCause::Upstream);
    }
    let of = tiers.iter().find(|other| other.name == line.tier)?;
    let part = line.part?;
    if part == Part::TransitOut && is_of_page(tier, line) {
        let is_late = line.ms >= LATE_MIN_MS && late_acks(tier, level)? >= DELAYED_MIN * tier.requests;
        return is_late.then_some(TierCause::DelayedAck);
    }
    match part {
        Part::TransitIn if of.is_database => None,
        Part::TransitIn if of.interleaved >= BY_TURNS_MIN => Some(TierCause::EventLoop),
        Part::TransitIn if let Some(held) = held_after(of) => of_file(held.path),
        Part::TransitIn if of.threads > 0.0 && of.kept_threads >= KEPT_MIN * of.threads => {
            Some(TierCause::KeepaliveIdle)
        }
        // Threads that are idle meanwhile show that something else holds the requests up, such as what hands them on.
        Part::TransitIn => {
            (busy_threads(of) >= BUSY_MIN * of.threads && of.threads > 0.0).then_some(TierCause::WorkerPool)
        }
        Part::KernelLock | Part::FileWrite => {
            of_file(&of.parts.iter().find(|own| own.part == part)?.file.as_ref()?.path)
        }
        _ => None,
    }
}
