//! What the longest line of a request's time shows.

use super::model::{TierCause, TierTime};
use crate::budget::Part;

/// From this share of a program's threads on, connections that stay open hold most of them.
const KEPT_MIN: f64 = 0.5;
/// A smaller share of the time names no cause.
const SHARE_MIN: f64 = 0.2;
/// Parts of the paths of PHP's and others' files of sessions.
const OF_SESSIONS: [&str; 2] = ["/sess", "session"];
/// Endings of logs' paths.
const OF_LOGS: [&str; 2] = [".log", "_log"];

/// The cause of a first tier; `None` where the line's own words are all that is known.
pub(super) fn cause(tier: &TierTime, tiers: &[TierTime]) -> Option<TierCause> {
    let line = tier.lines.get(tier.longest? as usize).filter(|line| line.share >= SHARE_MIN)?;
    if line.is_unrecorded {
        return Some(TierCause::Upstream);
    }
    let of = tiers.iter().find(|other| other.name == line.tier)?;
    let part = line.part?;
    match part {
        Part::TransitIn if of.is_database => None,
        Part::TransitIn if of.threads > 0.0 && of.kept_threads >= KEPT_MIN * of.threads => {
            Some(TierCause::KeepaliveIdle)
        }
        Part::TransitIn => Some(TierCause::WorkerPool),
        Part::KernelLock | Part::FileWrite => {
            let file = of.parts.iter().find(|own| own.part == part)?.file.as_ref()?;
            let is_log = OF_LOGS.iter().any(|ending| file.path.ends_with(ending));
            let is_session = OF_SESSIONS.iter().any(|piece| file.path.contains(piece));
            match (is_session, is_log) {
                (true, _) => Some(TierCause::SessionFiles),
                (_, true) => Some(TierCause::LogFile),
                _ => None,
            }
        }
        _ => None,
    }
}
