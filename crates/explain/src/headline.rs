//! What comes first: whether the result can be used at all, and then the result.
//!
//! The headline of every report and the first findings come from here, so they can't contradict each other.

use crate::drift;
use crate::level::{Level, levels_evidence, levels_of};
use crate::model::{Doubt, Drift, Evidence, Finding, Input};
use crate::regime::{Shape, as_measured};
use crate::{others, rates, warnings};

/// What makes the result unusable, the most serious first.
pub(crate) fn doubts(
    levels: &[Level],
    shape: Option<&Shape>,
    drift: Option<&Drift>,
    input: &Input,
) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let is_over_rates = levels.iter().any(|level| level.rate_per_s.is_some());
    if shape.is_none() && !is_over_rates {
        doubts.push(doubt("no-result", warnings::why_no_result(levels)));
    }
    let missing = where_the_peak_may_lie(levels, shape);
    let invalid: Vec<&Level> = missing.iter().filter(|level| !level.verdict.valid).copied().collect();
    if let Some(last) = invalid.last() {
        let text = format!("{} can't be judged: {}", levels_of(&invalid), last.verdict.invalid_why);
        doubts.push(doubt("generator", text));
    }
    let unsteady: Vec<&Level> = missing.iter().filter(|level| level.verdict.valid).copied().collect();
    if let Some(last) = unsteady.last() {
        let how = warnings::how_unstable(last);
        let text = match unsteady.len() {
            1 => format!("{} was not steady: {how}", levels_of(&unsteady)),
            _ => format!("{} were not steady; at the last, {how}", levels_of(&unsteady)),
        };
        doubts.push(doubt("unsteady", text));
    }
    doubts.extend(
        drift.filter(|drift| drift::is_large(drift)).map(|drift| doubt("drift", drift::in_short(drift))),
    );
    let cut: Vec<&Level> =
        levels.iter().filter(|level| !level.cut_short.is_empty() && !level.repeat).collect();
    if let Some(last) = cut.last() {
        doubts.push(doubt("cut-short", format!("{} ended early: {}", levels_of(&cut), last.cut_short)));
    }
    doubts.extend(others::programs_in_short(levels, &input.machine).map(|text| doubt("other-load", text)));
    doubts.extend(others::steal_in_short(levels).map(|text| doubt("steal", text)));
    doubts
}

fn doubt(id: &str, text: String) -> Doubt {
    Doubt { id: id.to_string(), text: text.trim_end_matches('.').replace('\n', " ") }
}

/// Levels of the sweep that can't be judged, at numbers of users that may be the peak. Other such levels change nothing.
fn where_the_peak_may_lie<'a, 'b>(levels: &'b [Level<'a>], shape: Option<&Shape>) -> Vec<&'b Level<'a>> {
    let Some(shape) = shape else { return Vec::new() };
    let (low, high) = shape.peak().users_interval;
    let may_be = |level: &&Level| level.users >= low && high.is_none_or(|high| level.users <= high);
    levels.iter().filter(|level| !level.repeat && !level.counts()).filter(may_be).collect()
}

/// The result in a sentence or two.
pub(crate) fn headline(levels: &[Level], shape: Option<&Shape>, doubts: &[Doubt]) -> String {
    let Some(shape) = shape else {
        return match levels.iter().any(|level| level.rate_per_s.is_some()) {
            true => led_by(doubts, &rates::in_short(levels)),
            false if levels.is_empty() => "No level of load was measured.".to_string(),
            false => led_by(doubts, ""),
        };
    };
    let statement = shape.statement(levels, "");
    led_by(doubts, &if doubts.is_empty() { statement } else { as_measured(&statement) })
}

/// Doubts first, then the statement, each with its full stop.
fn led_by(doubts: &[Doubt], statement: &str) -> String {
    let statement = match statement {
        "" => String::new(),
        text => format!("{}.", text.trim_end_matches('.')),
    };
    if doubts.is_empty() {
        return statement;
    }
    let not_usable = format!("Not usable: {}.", listed(doubts));
    if statement.is_empty() { not_usable } else { format!("{not_usable} {statement}") }
}

fn listed(doubts: &[Doubt]) -> String {
    doubts.iter().map(|doubt| doubt.text.as_str()).collect::<Vec<_>>().join("; ")
}

/// The doubts as the first finding; `None` where there are none, or where nothing was measured, which the finding after it reports.
pub(crate) fn finding(doubts: &[Doubt], levels: &[Level]) -> Option<Finding> {
    if doubts.is_empty() || doubts.iter().any(|doubt| doubt.id == "no-result") {
        return None;
    }
    let shown: Vec<&Level> = levels.iter().collect();
    let evidence: Vec<Evidence> = vec![levels_evidence("transactions_per_s", &shown)];
    let text = format!("This result is not usable as it is: {}.", listed(doubts));
    Some(Finding { id: "unusable".to_string(), text, evidence })
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::model::{CpuUse, Explanation, Input, LevelInput, Machine};

    fn level(index: u32, users: u32, per_bin: u32) -> LevelInput {
        LevelInput {
            index,
            users,
            end_ns: 10_000_000_000,
            transactions: u64::from(per_bin) * 100,
            bins_100ms: vec![per_bin; 100],
            ..LevelInput::default()
        }
    }

    fn sweep() -> Vec<LevelInput> {
        [(1, 50), (2, 80), (4, 120), (8, 90)]
            .iter()
            .enumerate()
            .map(|(index, &(users, per_bin))| level(index as u32, users, per_bin))
            .collect()
    }

    fn explained(levels: Vec<LevelInput>, machine: Machine) -> Explanation {
        explain(&Input { levels, machine, ..Input::default() })
    }

    fn ids(explanation: &Explanation) -> Vec<&str> {
        explanation.unusable.iter().map(|doubt| doubt.id.as_str()).collect()
    }

    #[test]
    fn what_can_be_used_leads_with_its_result() {
        let explanation = explained(sweep(), Machine::default());
        assert_eq!(
            explanation.headline,
            "Throughput peaks at 4 users (anywhere from 3 to 7 users): 1,200 transactions/s."
        );
        assert!(explanation.unusable.is_empty());
        assert_eq!(explanation.findings[0].id, "peak");
    }

    /// The headline was "peaks at 4 users" where a finding was "still rising at 4 users".
    #[test]
    fn the_headline_and_the_finding_agree_on_the_peak() {
        let explanation = explained(sweep()[..3].to_vec(), Machine::default());
        let start =
            "Throughput was still rising at 4 users, the most that could be judged: 1,200 transactions/s";
        assert!(explanation.headline.starts_with(start), "{}", explanation.headline);
        assert!(explanation.findings[0].text.starts_with(start), "{}", explanation.findings[0].text);
    }

    /// A run that drifted by 54 % next to busy neighbours still led with its peak.
    #[test]
    fn a_run_that_drifted_next_to_neighbours_leads_with_that() {
        let mut levels = sweep();
        levels.push(LevelInput { repeat: true, ..level(4, 4, 55) });
        for level in &mut levels {
            level.cpu = Some(CpuUse { user: 0.9, idle: 0.1, ..CpuUse::default() });
            (level.server_cpu_s, level.client_cpu_s) = (Some(10.0), 2.0);
        }
        let machine = Machine { server_cpus: 4, client_cpus: 4, shared: true, ..Machine::default() };
        let explanation = explained(levels, machine);
        assert_eq!(ids(&explanation), ["drift", "other-load"]);
        let start = "Not usable: throughput drifted: 4 users did 1,200/s and at the end 550/s (−54 %); other programs used";
        assert!(explanation.headline.starts_with(start), "{}", explanation.headline);
        assert!(
            explanation.headline.contains("As measured, throughput peaks at 4 users"),
            "{}",
            explanation.headline
        );
        assert_eq!(explanation.findings[0].id, "unusable");
        assert!(explanation.findings[1].text.starts_with("As measured, throughput peaks at 4 users"));
    }

    #[test]
    fn a_level_that_can_not_be_judged_matters_where_the_peak_may_lie() {
        let mut levels = sweep();
        levels
            .push(LevelInput { client_saturated_why: "its CPUs were full".to_string(), ..level(4, 16, 200) });
        assert!(explained(levels.clone(), Machine::default()).unusable.is_empty(), "8 users do less than 4");
        levels.remove(3);
        let explanation = explained(levels.clone(), Machine::default());
        assert_eq!(ids(&explanation), ["generator"]);
        assert!(
            explanation.unusable[0]
                .text
                .starts_with("the level of 16 users can't be judged: the load generator")
        );
        levels[3] = level(3, 16, 200);
        levels[3].bins_100ms = (0..100).map(|bin| 100 + 3 * bin).collect();
        let explanation = explained(levels, Machine::default());
        assert_eq!(ids(&explanation), ["unsteady"]);
        assert!(explanation.headline.contains("throughput climbed from"), "{}", explanation.headline);
    }

    #[test]
    fn a_run_cut_short_and_one_without_a_level_say_so_first() {
        let mut levels = sweep();
        levels[3].cut_short = "the server went away".to_string();
        let explanation = explained(levels, Machine::default());
        assert_eq!(ids(&explanation), ["cut-short"]);
        assert!(
            explanation
                .headline
                .starts_with("Not usable: the level of 8 users ended early: the server went away.")
        );
        let nothing = explained(vec![LevelInput { errors: 5, ..level(0, 4, 0) }], Machine::default());
        assert_eq!(ids(&nothing), ["no-result"]);
        assert!(
            nothing.headline.starts_with("Not usable: no level can be judged: at 4 users"),
            "{}",
            nothing.headline
        );
        assert_eq!(explained(Vec::new(), Machine::default()).headline, "No level of load was measured.");
    }
}
