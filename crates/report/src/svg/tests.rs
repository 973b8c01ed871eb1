use super::*;
use proptest::prelude::*;
use whyso_explain::model::Steadiness;
use whyso_record::run::{Latency, LevelResult, Window};

pub(crate) fn level(index: u32, users: u32, per_s: f64) -> Level {
    let mean = f64::from(users) / per_s.max(1e-9) * 1e3;
    Level {
        index,
        users,
        purpose: Purpose::Sweep,
        warmup: Window::default(),
        warmup_steady: true,
        window: Window { begin_ns: 0, end_ns: 1_000_000_000 },
        result: LevelResult {
            latency_ms: Latency { mean, p95: mean * 2.0, p99: mean * 3.0, ..Latency::default() },
            ..LevelResult::default()
        },
        ended: RunEnd::Complete { at_ns: 1_000_000_000 },
    }
}

fn verdict(index: u32, users: u32, per_s: f64, regime: Regime) -> LevelVerdict {
    LevelVerdict {
        index,
        users,
        transactions_per_s: per_s,
        transactions_per_s_ci95: Some([per_s * 0.98, per_s * 1.02]),
        steadiness: Steadiness::Steady,
        regime,
        valid: true,
        ..LevelVerdict::default()
    }
}

fn example_run() -> (RunInfo, Explanation) {
    let measured = [(1, 400.0, Regime::RampingUp), (4, 1200.0, Regime::Peak), (16, 900.0, Regime::Degrading)];
    let mut run = RunInfo { id: "made".to_string(), ..RunInfo::default() };
    let mut explanation = Explanation::default();
    for (index, (users, per_s, regime)) in measured.into_iter().enumerate() {
        run.levels.push(level(index as u32, users, per_s));
        explanation.levels.push(verdict(index as u32, users, per_s, regime));
    }
    (run, explanation)
}

#[test]
fn every_regime_and_every_level_is_on_the_chart() {
    let (run, explanation) = example_run();
    let chart = svg(&run, &explanation);
    for words in ["ramping up", "peak", "degrading", "transactions per second", "latency, ms", "p99", ">16<"]
    {
        assert!(chart.contains(words), "{words} is missing");
    }
    // Three levels of throughput and three of each latency, and the legend's own.
    assert_eq!(chart.matches("<circle").count(), 3 + 9 + 1);
}

#[test]
fn a_level_that_does_not_count_is_hollow_and_says_why() {
    let (run, mut explanation) = example_run();
    explanation.levels[1].steadiness = Steadiness::UnstableFrom { s: 3.2 };
    let chart = svg(&run, &explanation);
    assert!(chart.contains("unstable from 3.2 s"));
    assert!(chart.contains(r##"r="3.8" fill="#ffffff""##));
}

#[test]
fn the_load_generators_own_step_is_drawn_next_to_the_level_that_it_belongs_to() {
    let (mut run, explanation) = example_run();
    assert!(!svg(&run, &explanation).contains("own step"));
    let mut step = Level { purpose: Purpose::Switch, ..level(3, 4, 1000.0) };
    step.result.transactions_per_s = 1000.0;
    run.levels.push(step);
    let chart = svg(&run, &explanation);
    assert!(chart.contains("the load generator's own step"));
    // Its square and the legend's; no diamond, which is a level that was repeated.
    assert_eq!(chart.matches("h9v9h-9z").count(), 2);
    assert!(!chart.contains("repeated at the end"));
}

#[test]
fn a_sweep_over_rates_is_drawn_against_rates() {
    let (mut run, explanation) = example_run();
    for (level, rate_per_s) in run.levels.iter_mut().zip([500.0, 1000.0, 2000.0]) {
        level.users = 128;
        level.result.rate_per_s = Some(rate_per_s);
    }
    let chart = svg(&run, &explanation);
    assert!(chart.contains("transactions due per second (open loop") && !chart.contains("users (concurrent"));
    assert!(chart.contains(">1,000<") && !chart.contains(">128<"));
    // The same rate at every level is a sweep over users, though an open loop's.
    run.levels.iter_mut().for_each(|level| level.result.rate_per_s = Some(500.0));
    assert!(svg(&run, &explanation).contains("users (concurrent"));
}

#[test]
fn a_run_without_levels_says_so() {
    let chart = svg(&RunInfo::default(), &Explanation::default());
    assert!(chart.contains("No level was measured."));
}

proptest! {
    #[test]
    fn no_text_and_no_number_breaks_the_markup(name in ".*", per_s in any::<f64>(), users in 0u32..100_000) {
        let (mut run, mut explanation) = example_run();
        run.server.version = name;
        run.levels[0].users = users;
        explanation.levels[0].transactions_per_s = per_s;
        let chart = svg(&run, &explanation);
        prop_assert!(!chart.contains("NaN"));
        let tags = chart.matches('<').count();
        prop_assert_eq!(tags, chart.matches('>').count());
        prop_assert!(!chart.chars().any(|character| character.is_control() && character != '\n'));
    }
}
