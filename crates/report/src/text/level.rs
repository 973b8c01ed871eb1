//! A level of a run in a few words: its name, its regime, and whether it counts.

use whyso_explain::model::{LevelVerdict, Regime, Steadiness};
use whyso_record::run::{Level, RunEnd, RunInfo};
use whyso_words::{rate, seconds, users};

/// Returns a level's name as the page writes it: "8 users", or "1,000/s" of a sweep over rates.
pub(crate) fn level_name(run: &RunInfo, level: &Level) -> String {
    match level.result.rate_per_s.filter(|_| run.sweeps_rates()) {
        Some(per_s) => rate(per_s),
        None => users(level.users),
    }
}

/// Returns a level's name by what it did: "16 users", or the rate at which transactions were due.
pub(crate) fn due_name(level: &Level) -> String {
    match &level.result.arrivals {
        Some(arrivals) => rate(arrivals.due_per_s),
        None => users(level.users),
    }
}

/// The workload as the plan names it, else the run's name.
pub(crate) fn workload(run: &RunInfo) -> &str {
    let name = run.spec.workload.as_deref();
    name.or(run.command.get(2).map(String::as_str)).unwrap_or(&run.id)
}

pub(crate) fn regime_name(regime: Regime) -> &'static str {
    match regime {
        Regime::RampingUp => "ramping up",
        Regime::Peak => "peak",
        Regime::Degrading => "degrading",
        Regime::Unknown => "not judged",
    }
}

/// "transaction", or "request" where something else loaded the server.
pub(crate) fn unit(run: &RunInfo) -> &'static str {
    unit_name(run.is_recorded())
}

/// The same by what loaded the server.
pub(crate) fn unit_name(is_recorded: bool) -> &'static str {
    if is_recorded { "request" } else { "transaction" }
}

/// One word, or why the level does not count.
pub(crate) fn validity(level: &Level, verdict: Option<&LevelVerdict>) -> String {
    if let Some(verdict) = verdict.filter(|verdict| !verdict.valid) {
        return format!("invalid: {}", verdict.invalid_why);
    }
    if let RunEnd::CutShort { why, .. } = &level.ended {
        return format!("cut short: {why}");
    }
    if verdict.is_some_and(|verdict| !verdict.stuck.is_empty()) {
        return "stuck users".to_string();
    }
    match verdict.map(|verdict| verdict.steadiness) {
        Some(Steadiness::TooShort) => "too short to tell".to_string(),
        steadiness => steadiness.and_then(how_unsteady).unwrap_or_else(|| "valid".to_string()),
    }
}

/// "unstable from 8.25 s", "throughput climbed from 10,400/s to 42,100/s"; `None` where nothing shows that the level was not steady.
pub(crate) fn how_unsteady(steadiness: Steadiness) -> Option<String> {
    match steadiness {
        Steadiness::UnstableFrom { s } => Some(format!("unstable from {}", seconds(s))),
        Steadiness::Trend { from_per_s, to_per_s } => {
            let verb = if to_per_s > from_per_s { "climbed" } else { "fell" };
            Some(format!("throughput {verb} from {} to {}", rate(from_per_s), rate(to_per_s)))
        }
        Steadiness::StillWarming => Some("still warming up".to_string()),
        Steadiness::Steady | Steadiness::TooShort => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_says_why_it_does_not_count() {
        let verdict = LevelVerdict {
            users: 4,
            transactions_per_s: 100.0,
            steadiness: Steadiness::UnstableFrom { s: 8.25 },
            valid: true,
            ..LevelVerdict::default()
        };
        let level = crate::svg::tests::level(0, 4, 100.0);
        assert_eq!(validity(&level, Some(&verdict)), "unstable from 8.25 s");
        let invalid =
            LevelVerdict { valid: false, invalid_why: "the generator was full".to_string(), ..verdict };
        assert_eq!(validity(&level, Some(&invalid)), "invalid: the generator was full");
    }
}
