//! Golden findings: recordings as JSON in `tests/data`, and the findings that they must give.
//!
//! `UPDATE_EXPECT=1` writes the expected texts again.

#![allow(clippy::disallowed_methods, reason = "a test reads and updates its recordings")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use whyso_explain::explain;
use whyso_explain::model::{CpuUse, Explanation, Input};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Explains `tests/data/NAME.json` and compares with `tests/data/NAME.txt`.
fn check(name: &str) -> Explanation {
    let path = data(&format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let input: Input =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let explanation = explain(&input);
    let actual = to_text(&explanation);
    let expected_path = data(&format!("{name}.txt"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&expected_path, &actual)
            .unwrap_or_else(|error| panic!("{}: {error}", expected_path.display()));
    }
    let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
    assert_eq!(actual, expected, "{name}: UPDATE_EXPECT=1 writes the findings of now");
    explanation
}

/// Findings, verdicts and the first suspects, as text.
fn to_text(explanation: &Explanation) -> String {
    let mut text = String::new();
    for finding in &explanation.findings {
        writeln!(text, "{}\n    {}", finding.id, finding.text).unwrap();
    }
    text.push_str("\nlevels\n");
    for level in &explanation.levels {
        let interval = match level.transactions_per_s_ci95 {
            Some([low, high]) => format!("{low:.1} to {high:.1}"),
            None => "no interval".to_string(),
        };
        let validity = if level.valid { "valid" } else { &level.invalid_why };
        writeln!(
            text,
            "    {} users: {:.1}/s, {interval}, {:?}, {:?}, {validity}",
            level.users, level.transactions_per_s, level.steadiness, level.regime
        )
        .unwrap();
    }
    if let Some(peak) = &explanation.peak {
        writeln!(text, "\nwitnesses of the peak {:?}", peak.users_interval).unwrap();
        for witness in &peak.witnesses {
            writeln!(text, "    {witness}").unwrap();
        }
    }
    if !explanation.growth.is_empty() {
        text.push_str("\nwhat grows\n");
    }
    for growth in explanation.growth.iter().take(8) {
        writeln!(
            text,
            "    {}.{} {}: {:.5} to {:.5}",
            growth.series.source,
            growth.series.metric,
            growth.series.instance,
            growth.best_per_transaction,
            growth.last_per_transaction
        )
        .unwrap();
    }
    text.push_str("\nsuspects\n");
    for suspect in &explanation.suspects {
        let gain = suspect
            .predicted_gain
            .map_or("no estimate".to_string(), |gain| format!("gain {:.2} to {:.2}", gain.low, gain.high));
        writeln!(text, "    {} {:.2}, {gain}", suspect.id.name(), suspect.share).unwrap();
    }
    for possible in &explanation.possible {
        writeln!(text, "    possible: {}", possible.id.name()).unwrap();
    }
    text
}

fn ids(explanation: &Explanation) -> Vec<&str> {
    explanation.findings.iter().map(|finding| finding.id.as_str()).collect()
}

#[test]
fn full_cpus_are_named_as_the_limit() {
    let explanation = check("cpu-bound");
    assert!(ids(&explanation).contains(&"server-cpu-full"));
    assert!(explanation.usl.is_some());
}

#[test]
fn row_locks_with_idle_cpus_are_the_first_suspect() {
    let explanation = check("lock-bound");
    assert!(ids(&explanation).contains(&"limit-not-cpu"));
    assert_eq!(explanation.growth[0].series.metric, "Innodb_row_lock_time");
}

#[test]
fn a_collapse_half_way_is_not_averaged() {
    let explanation = check("collapse");
    assert!(ids(&explanation).contains(&"unstable"));
    assert!(explanation.peak.is_some_and(|peak| peak.users != 32));
}

#[test]
fn a_saturated_generator_makes_levels_invalid() {
    let explanation = check("generator");
    assert!(ids(&explanation).contains(&"generator-bottleneck"));
    assert!(explanation.levels.iter().any(|level| !level.valid));
}

#[test]
fn what_the_hypervisor_took_is_reported_with_its_levels() {
    let text = std::fs::read_to_string(data("idle-wake.json")).unwrap();
    let mut input: Input = serde_json::from_str(&text).unwrap();
    let steal_text = |input: &Input| {
        let findings = explain(input).findings;
        findings.into_iter().find(|finding| finding.id == "steal").map(|finding| finding.text)
    };
    for (level, steal) in input.levels.iter_mut().zip([0.29, 0.49, 0.02]) {
        level.cpu = Some(CpuUse { user: 1.0 - steal, steal, ..CpuUse::default() });
    }
    let text = steal_text(&input).unwrap();
    assert!(text.contains("up to 49 % of their time, at 2 users"), "{text}");
    assert!(text.contains("That disturbed the levels of 1 and 2 users;"), "{text}");
    // A twentieth and more disturbs; less is noise.
    for level in &mut input.levels {
        level.cpu = Some(CpuUse { user: 0.96, steal: 0.04, ..CpuUse::default() });
    }
    assert_eq!(steal_text(&input), None);
}

#[test]
fn noise_on_a_plateau_is_reported_as_an_interval_of_users() {
    let explanation = check("noisy-flat");
    assert!(explanation.peak.is_some_and(|peak| peak.users_interval == (2, None)));
}

#[test]
fn one_level_alone_has_no_peak_to_speak_of() {
    check("one-level");
}

#[test]
fn no_transaction_at_all_is_reported_plainly() {
    let explanation = check("only-errors");
    assert!(explanation.peak.is_none());
}

/// The published sweep without the Performance Schema on 8 cores. Its author sees ramping up from 1 to 8 connections, peak efficiency from 8
/// to 48, degradation beyond.
#[test]
fn the_published_three_regimes_come_out() {
    use whyso_explain::model::Regime::{Degrading, Peak, RampingUp};

    let explanation = check("published-8-cores");
    let regimes: Vec<_> = explanation.levels.iter().map(|level| (level.users, level.regime)).collect();
    let expected = [
        (1, RampingUp),
        (2, RampingUp),
        (4, RampingUp),
        (8, Peak),
        (12, Peak),
        (16, Peak),
        (32, Peak),
        (48, Peak),
        (64, Degrading),
        (128, Degrading),
        (256, Degrading),
    ];
    assert_eq!(regimes, expected);
}

#[test]
fn waking_an_idle_cpu_does_not_count_as_scaling() {
    let explanation = check("idle-wake");
    assert!(ids(&explanation).contains(&"idle-wake"));
    assert!(explanation.usl.is_some_and(|fit| fit.outside.contains(&0)));
}

#[test]
fn levels_in_any_order_twice_and_without_cpu_are_explained() {
    check("unordered");
}

/// Recorded on a real MariaDB 10.11 while other programs kept the machine busy.
#[test]
fn a_disturbed_machine_is_reported() {
    check("recorded-busy");
}
