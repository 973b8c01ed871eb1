//! Recordings in order of time, and where they changed for good.

use std::fmt::Write as _;

use whyso_explain::comparison::{FactChange, Group, History, Metric, Step};
use whyso_inference::{PART_MIN, spread};
use whyso_words::{count, number, p_value, percent, percent_change};

use crate::text::clean;
use crate::text::comparison::{fact_group, value_text};
use crate::text::layout::{TEXT_WIDTH, wrapped};

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Of many runs, the last are drawn.
const BARS_MAX: usize = 100;
/// Groups of one or two runs that are shown; the rest is counted.
const SMALL_MAX: usize = 5;
/// Most changed settings that a step shows.
const CHANGED_MAX: usize = 12;

/// Returns the text for the terminal: one paragraph per group, with its changes.
pub fn history(history: &History) -> String {
    let mut out = String::new();
    let is_small = |group: &&Group| group.points.len() < 3;
    let small: Vec<&Group> = history.groups.iter().filter(is_small).collect();
    let large = history.groups.iter().filter(|group| !is_small(group));
    for group in large.chain(small.iter().take(SMALL_MAX).copied()) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&paragraph(group, history.metric));
    }
    let left = small.len().saturating_sub(SMALL_MAX);
    if left > 0 {
        let _ = writeln!(
            out,
            "\nand {} of one or two runs: --json has them all",
            count(left as u64, "more group")
        );
    }
    out.push('\n');
    out.push_str(&wrapped(
        &format!(
            "Each group holds runs that are comparable: the same workload, data set and machine. A change is one of {} or more that runs before and after it \
             bear out (E-divisive, Student's t test, p below 0.001 with and without any single run); its interval is Welch's. As many places as there are runs \
             were looked at.",
            percent(history.matters_percent / 100.0)
        ),
        "  ",
        TEXT_WIDTH,
    ));
    out
}

fn paragraph(group: &Group, metric: Metric) -> String {
    let shared: Vec<String> = group
        .shared
        .iter()
        .filter(|(name, _)| name != "workload text")
        .map(
            |(name, value)| {
                if name == "workload" { clean(value) } else { format!("{name} {}", value_text(value)) }
            },
        )
        .collect();
    let mut out = format!("{}: {}\n", group.at.words(), shared.join(", "));
    let values: Vec<f64> = group.points.iter().map(|point| point.value).collect();
    if let (Some(spread), Some(first), Some(last)) =
        (spread(&values), group.points.first(), group.points.last())
    {
        let runs = count(values.len() as u64, "run");
        let _ = writeln!(
            out,
            "  {runs}, {} to {}; {} {} ({} to {})",
            clean(&first.run),
            clean(&last.run),
            metric.words(),
            number(spread.mean),
            number(spread.lowest),
            number(spread.highest)
        );
        let _ = writeln!(out, "  {}", bars(&values[values.len().saturating_sub(BARS_MAX)..]));
    }
    if !group.invalid.is_empty() {
        let _ = writeln!(
            out,
            "  left out, because the level says nothing about the server: {}",
            clean(&group.invalid.join(", "))
        );
    }
    if group.too_few {
        let _ = writeln!(out, "  too few runs to look for a change: {} are needed", 2 * PART_MIN);
    } else if group.steps.is_empty() {
        out.push_str("  no change found\n");
    }
    for step in &group.steps {
        out.push_str(&wrapped(&sentence(step, metric), "    ", TEXT_WIDTH));
    }
    out
}

fn sentence(step: &Step, metric: Metric) -> String {
    let interval = step.percent_ci95.map_or(String::new(), |[low, high]| {
        format!(" (95 % interval {} to {})", percent_change(low / 100.0), percent_change(high / 100.0))
    });
    let is_faster = (step.percent > 0.0) == metric.more_is_faster();
    format!(
        "Between {} and {} it became {}: {} from {} to {}, {}{interval}, p {}, {} before and {} after. {}",
        clean(&step.last_before),
        clean(&step.first_after),
        if is_faster { "faster" } else { "slower" },
        metric.words(),
        number(step.before),
        number(step.after),
        percent_change(step.percent / 100.0),
        p_value(step.p),
        count(step.runs_before as u64, "run"),
        step.runs_after,
        changed(&step.changed)
    )
}

fn changed(changed: &[FactChange]) -> String {
    if changed.is_empty() {
        return "Nothing that was recorded of settings, server and machine changed there.".to_string();
    }
    let texts = changed.iter().take(CHANGED_MAX).map(|change| {
        format!(
            "{} {}: {} → {}",
            fact_group(change.of),
            clean(&change.name),
            value_text(&change.from),
            value_text(&change.to)
        )
    });
    let left = changed.len().saturating_sub(CHANGED_MAX);
    let more = if left > 0 { format!("; and {left} more") } else { String::new() };
    format!("Changed there: {}{more}.", texts.collect::<Vec<_>>().join("; "))
}

/// From the lowest value to the highest, not from 0.
fn bars(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: &f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        BARS[((share * BARS.len() as f64) as usize).min(BARS.len() - 1)]
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use whyso_explain::comparison::{At, FactOf, LevelValue, Run, history as find_changes};

    use super::*;

    #[test]
    fn a_change_is_shown_with_its_size_and_what_was_set() {
        let run = |at: i64| {
            let is_late = at >= 12;
            let value = if is_late { 900.0 } else { 1000.0 } + (at % 4) as f64;
            let at_users = At { users: 8, rate_per_s: None };
            let levels = vec![LevelValue { at: at_users, value, invalid_why: String::new() }];
            let mut run = Run { id: format!("run-{at}"), begin_ns: at, levels, ..Run::default() };
            run.facts.insert((FactOf::Work, "workload".to_string()), "point".to_string());
            run.facts.insert(
                (FactOf::Server, "version".to_string()),
                if is_late { "11" } else { "10" }.to_string(),
            );
            run
        };
        let runs: Vec<Run> = (0..20).map(run).collect();
        let shown = history(&find_changes(&runs, None, Metric::TransactionsPerS, 1.0));
        for part in [
            "8 users: point",
            "Between run-11 and run-12 it became slower",
            "−10 %",
            "server version: 10 → 11",
            "20 runs",
        ] {
            let joined = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains(part), "no {part:?} in\n{shown}");
        }
        let few = history(&find_changes(&runs[..4], None, Metric::TransactionsPerS, 1.0));
        assert!(few.contains("too few runs to look for a change: 6 are needed"), "{few}");
    }

    #[test]
    fn bars_go_from_the_lowest_to_the_highest() {
        assert_eq!(bars(&[10.0, 12.0, 11.0]), "▁█▅");
        assert_eq!(bars(&[7.0, 7.0]), "▅▅");
    }
}
