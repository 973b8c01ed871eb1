//! What was done during a run, and what it did to throughput: before, during, after.

use crate::level::Level;
use crate::model::{ActionEffect, ActionInput, Estimate, Evidence, Finding};
use whyso_inference::bins::{BINS_PER_S, mean_of, median};
use whyso_inference::interval::{half_width_per_s, independent_values};
use whyso_inference::steady::{self, Warmup};
use whyso_words::number;

const BIN_NS: f64 = 1e9 / BINS_PER_S;
/// "During" ends when a second's mean lies this close to the median of what follows, as a fraction. Where two standard deviations of
/// such a second are more, these count.
const BACK_TO_STEADY: f64 = 0.05;

/// The part after an action begins where it resembles its later half. Among fewer values that are correlated this choice shows, and an
/// interval would be too narrow. Chosen by simulation, see `bench/statistics`.
const INDEPENDENT_VALUES_MIN: f64 = 10.0;

/// One effect per action, in order.
pub(crate) fn effects(actions: &[ActionInput], levels: &[Level]) -> Vec<ActionEffect> {
    actions.iter().map(|action| effect(action, levels)).collect()
}

fn effect(action: &ActionInput, levels: &[Level]) -> ActionEffect {
    let mut effect = ActionEffect {
        text: action.text.clone(),
        level: None,
        before: None,
        during: None,
        during_s: 0.0,
        after: None,
    };
    let has_action = |level: &&Level| (level.begin_ns..level.end_ns).contains(&action.begin_ns);
    let Some(level) = levels.iter().find(has_action) else { return effect };
    let bins = &level.bins;
    let bin_of = |t_ns: i64| {
        let bin = (t_ns.saturating_sub(level.begin_ns)) as f64 / BIN_NS;
        (bin.max(0.0) as usize).min(bins.len())
    };
    let begin = bin_of(action.begin_ns);
    let done = bin_of(action.end_ns.max(action.begin_ns)).max(begin);
    let steady = done + bins_until_steady(&bins[done..]);
    effect.level = Some(level.index);
    effect.before = estimate_of_steady(&bins[..begin]);
    effect.during = estimate(&bins[begin..steady]);
    effect.during_s = (steady - begin) as f64 / BINS_PER_S;
    effect.after = estimate_of_steady(&bins[steady..])
        .filter(|_| independent_values(&bins[steady..]) >= INDEPENDENT_VALUES_MIN);
    effect
}

/// Bins until a whole second's mean is close to the median of the later half.
fn bins_until_steady(bins: &[f64]) -> usize {
    let second = BINS_PER_S as usize;
    if bins.len() < 3 * second {
        return 0;
    }
    let later = &bins[bins.len() / 2..];
    let level = median(later);
    let seconds: Vec<f64> = later.chunks_exact(second).map(mean_of).collect();
    let mean = mean_of(&seconds);
    let variance =
        seconds.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / seconds.len() as f64;
    let close = (BACK_TO_STEADY * level).max(2.0 * variance.sqrt());
    for (at, window) in bins.windows(second).enumerate() {
        if (mean_of(window) - level).abs() <= close {
            return at;
        }
    }
    bins.len()
}

/// As of a level: what climbs or changes has no mean that stands for it.
fn estimate_of_steady(bins: &[f64]) -> Option<Estimate> {
    let is_steady = steady::check(bins, Warmup::Unremarkable) == steady::Verdict::Steady;
    is_steady.then(|| estimate(bins)).flatten()
}

fn estimate(bins: &[f64]) -> Option<Estimate> {
    let half_width = half_width_per_s(bins)?;
    let value = mean_of(bins) * BINS_PER_S;
    Some(Estimate { value, low95: (value - half_width).max(0.0), high95: value + half_width })
}

/// A sentence an action.
pub(crate) fn findings(actions: &[ActionInput], effects: &[ActionEffect], levels: &[Level]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, (action, effect)) in actions.iter().zip(effects).enumerate() {
        let id = if number == 0 { "action".to_string() } else { format!("action-{}", number + 1) };
        let level = effect.level.and_then(|index| levels.iter().find(|level| level.index == index));
        let evidence = level.map(|level| Evidence::Levels {
            quantity: "transactions_per_s".to_string(),
            levels: vec![level.index],
        });
        let text = sentence(action, effect, level);
        findings.push(Finding { id, text, evidence: evidence.into_iter().collect() });
    }
    findings
}

fn sentence(action: &ActionInput, effect: &ActionEffect, level: Option<&Level>) -> String {
    if !action.error.is_empty() {
        return format!("During the run, \"{}\" was tried and failed: {}.", action.text, action.error);
    }
    let Some(level) = level else {
        return format!("\"{}\" was done during the run, but while no level was measured.", action.text);
    };
    let part = |estimate: &Option<Estimate>| match estimate {
        Some(part) => format!("{} ({} to {})", number(part.value), number(part.low95), number(part.high95)),
        None => "too short or not steady enough to say".to_string(),
    };
    let at_s = action.begin_ns.saturating_sub(level.begin_ns) as f64 / 1e9;
    let mut text = format!(
        "During the run, {} into the level of {}, \"{}\": transactions/s before {}, during the {} until steady {}, \
         after {}",
        whyso_words::seconds(at_s),
        level.name(),
        action.text,
        part(&effect.before),
        whyso_words::seconds(effect.during_s),
        part(&effect.during),
        part(&effect.after),
    );
    if let (Some(before), Some(after)) = (&effect.before, &effect.after) {
        let is_different = after.low95 > before.high95 || after.high95 < before.low95;
        text.push_str(if is_different {
            "; before and after differ by more than their 95 % intervals"
        } else {
            "; before and after can't be distinguished"
        });
    }
    text.push('.');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LevelInput, Machine};

    fn level_input(bins_100ms: Vec<u32>) -> LevelInput {
        let end_ns = bins_100ms.len() as i64 * BIN_NS as i64;
        LevelInput { users: 4, end_ns, bins_100ms, transactions: 1, ..LevelInput::default() }
    }

    #[test]
    fn a_restart_shows_as_a_hole_between_two_steady_parts() {
        let mut bins = vec![100; 100];
        bins.extend(vec![0; 40]);
        bins.extend(vec![90; 110]);
        let input = level_input(bins);
        let levels = [crate::verdict::judge(&input, &Machine::default())];
        let action = ActionInput {
            text: "restart".to_string(),
            begin_ns: 10_000_000_000,
            end_ns: 13_500_000_000,
            ..ActionInput::default()
        };
        let effects = effects(std::slice::from_ref(&action), &levels);
        assert_eq!(effects[0].level, Some(0));
        assert_eq!(effects[0].before.unwrap().value, 1000.0);
        let during_s = effects[0].during_s;
        assert!((3.5..5.0).contains(&during_s), "{during_s}");
        let after = effects[0].after.unwrap().value;
        assert!((895.0..=900.0).contains(&after), "{after}");
        let text = &findings(&[action], &effects, &levels)[0].text;
        assert!(text.contains("differ by more"), "{text}");
    }

    #[test]
    fn an_action_outside_every_window_or_that_failed_is_reported_as_such() {
        let input = level_input(vec![100; 50]);
        let levels = [crate::verdict::judge(&input, &Machine::default())];
        let outside = ActionInput { text: "x".to_string(), begin_ns: -1, ..ActionInput::default() };
        let failed =
            ActionInput { text: "y".to_string(), error: "denied".to_string(), ..ActionInput::default() };
        let actions = [outside, failed];
        let found = findings(&actions, &effects(&actions, &levels), &levels);
        assert!(found[0].text.contains("no level was measured"));
        assert!(found[1].text.contains("denied"));
    }
}
