use super::*;
use crate::model::SeriesName;
use whyso_inference::Verdict;
use whyso_random::noise::Noise;

const SECOND_NS: i64 = 1_000_000_000;

fn at(users: u32) -> At {
    At { users, rate_per_s: None }
}

/// A run of a minute that began at this many minutes, with (users, value).
fn run(minute: i64, levels: &[(u32, f64)]) -> Run {
    let begin_ns = (1 + minute) * 60 * SECOND_NS;
    let levels = levels.iter().map(|(users, value)| LevelValue {
        at: at(*users),
        value: *value,
        ..LevelValue::default()
    });
    let mut run = Run {
        id: format!("r{minute}"),
        begin_ns,
        end_ns: begin_ns + 59 * SECOND_NS,
        levels: levels.collect(),
        ..Run::default()
    };
    for (of, name, value) in [
        (FactOf::Work, "workload", "oltp-read-write"),
        (FactOf::Work, "rows", "1000"),
        (FactOf::Host, "hostname", "h1"),
        (FactOf::Variable, "sync_binlog", "0"),
    ] {
        run.facts.insert((of, name.to_string()), value.to_string());
    }
    run
}

fn set(run: &mut Run, of: FactOf, name: &str, value: &str) {
    run.facts.insert((of, name.to_string()), value.to_string());
}

#[test]
fn runs_in_turn_are_paired_and_what_drifts_meets_both() {
    const JITTER: [f64; 8] = [0.999, 1.001, 1.0, 1.001, 1.0, 0.999, 1.0, 1.001];
    // The machine doubles its speed from block to block; the second side is a tenth faster at 8 users.
    let value = |minute: i64, users: u32, faster: f64| {
        let block = (minute / 2) as f64;
        1000.0 * f64::from(users) * 2.0_f64.powf(block) * faster * JITTER[minute as usize]
    };
    let side = |minutes: [i64; 4], faster: f64| {
        minutes.map(|minute| run(minute, &[(1, value(minute, 1, 1.0)), (8, value(minute, 8, faster))]))
    };
    let (first, second) = (side([6, 3, 4, 0], 1.0), side([1, 2, 5, 7], 1.1));
    let found = compare(&first, &second, Metric::TransactionsPerS, 3.0);
    assert_eq!((found.method, found.rows.len()), (Method::Paired, 2));
    assert_eq!(found.first, ["r0", "r3", "r4", "r6"]);
    assert!(found.why.contains("4 blocks") && found.notes.is_empty(), "{found:?}");
    let [one, eight] = &found.rows[..] else { panic!("{found:?}") };
    assert_eq!(one.contrast.verdict, Some(Verdict::NoDifferenceFound));
    assert_eq!(eight.contrast.verdict, Some(Verdict::Faster));
    assert!((eight.contrast.ratio - 1.1).abs() < 0.005, "{eight:?}");
    assert!(one.first_unstable, "its own starts differ eightfold");
    assert!(eight.contrast.p_corrected > eight.contrast.p, "two rows were tested");
}

#[test]
fn runs_not_in_turn_are_tested_by_welch_and_times_turn_the_words_around() {
    let first = [100.0, 101.0, 99.0].map(|value| run((value - 99.0) as i64, &[(4, value)]));
    let second = [111.0, 109.0, 110.0, 112.0].map(|value| run(value as i64, &[(4, value), (9, 5.0)]));
    let found = compare(&first, &second, Metric::LatencyP99Ms, 3.0);
    assert_eq!((found.method, found.rows.len()), (Method::Welch, 1));
    assert_eq!(found.rows[0].contrast.verdict, Some(Verdict::Slower));
    assert!(found.why.contains("Welch") && found.notes[0].contains("9 users"), "{found:?}");
}

#[test]
fn one_start_each_gives_a_ratio_and_no_verdict() {
    let found = compare(&[run(0, &[(4, 100.0)])], &[run(1, &[(4, 120.0)])], Metric::TransactionsPerS, 3.0);
    let contrast = found.rows[0].contrast;
    assert!((contrast.ratio - 1.2).abs() < 1e-9);
    assert_eq!(
        (contrast.ci95, contrast.p, contrast.verdict, contrast.smallest_detectable),
        (None, None, None, None)
    );
    assert!(found.why.starts_with("One start each says nothing of how starts differ"), "{}", found.why);
}

#[test]
fn what_differs_in_work_can_not_be_compared_and_the_rest_is_reported() {
    let (first, mut second) = ([run(0, &[(4, 100.0)])], [run(1, &[(4, 100.0)]), run(2, &[(4, 100.0)])]);
    set(&mut second[1], FactOf::Variable, "sync_binlog", "1");
    set(&mut second[0], FactOf::Server, "version", "11.8");
    assert_eq!(incomparable(&first, &second), None);
    let found = compare(&first, &second, Metric::TransactionsPerS, 3.0).differing;
    let facts: Vec<(&str, &[String], bool)> =
        found.iter().map(|fact| (fact.name.as_str(), &fact.second[..], fact.is_within_a_side())).collect();
    let words = |values: [&str; 2]| values.map(str::to_string);
    assert_eq!(
        facts,
        [("version", &words(["11.8", ""])[..], true), ("sync_binlog", &words(["0", "1"])[..], true)]
    );
    set(&mut second[1], FactOf::Work, "rows", "2000");
    let refused = incomparable(&first, &second).unwrap();
    assert!(refused.contains("differ in rows (1000, 2000)") && refused.contains("--anyway"), "{refused}");
    assert!(incomparable(&second, &first).is_some(), "also where one side differs in itself");
}

#[test]
fn runs_that_overlap_and_levels_that_say_nothing_are_reported() {
    let (first, mut second) = (run(0, &[(4, 100.0)]), run(0, &[(4, 100.0)]));
    second.id = "other".to_string();
    second.begin_ns += 5 * SECOND_NS;
    second.levels[0].invalid_why = "the generator was at its limit".to_string();
    let found =
        compare(std::slice::from_ref(&first), std::slice::from_ref(&second), Metric::TransactionsPerS, 3.0);
    assert!(found.notes[0].contains("other began before r0 had ended"), "{:?}", found.notes);
    assert_eq!(found.rows[0].invalid, ["other: the generator was at its limit"]);
    set(&mut second, FactOf::Host, "hostname", "h2");
    assert!(compare(&[first], &[second], Metric::TransactionsPerS, 3.0).notes.is_empty());
}

fn metric(name: &str, value: f64, count: Option<f64>) -> MetricValue {
    let series = SeriesName { source: "status".into(), metric: name.into(), ..SeriesName::default() };
    MetricValue { series, unit: "1".into(), value, count, per_second: false }
}

#[test]
fn metrics_that_differ_surely_come_first_and_what_may_be_chance_does_not_come() {
    let values = |doubled: f64, noisy: f64, jitter: f64| {
        vec![
            metric("doubled", doubled * jitter, Some(1000.0)),
            metric("noisy", noisy, Some(1000.0)),
            metric("same", 5.0 * jitter, None),
            metric("rare", doubled, Some(20.0)),
            metric("gone", 0.0, Some(1000.0)),
        ]
    };
    let first = [values(1.0, 1.0, 1.0), values(1.0, 9.0, 1.01), values(1.0, 3.0, 0.99)];
    let second = [values(2.0, 20.0, 1.0), values(2.0, 2.0, 0.99), values(2.0, 7.0, 1.01)];
    for pairs in [None, Some(&[(0, 0), (1, 1), (2, 2)][..])] {
        let found = metrics_that_differ(at(8), &first, &second, Values::of_pairs(pairs));
        assert_eq!((found.compared, found.differ, found.lines.len()), (3, 1, 1), "{found:?}");
        let line = &found.lines[0];
        assert_eq!((line.series.metric.as_str(), line.per_transaction), ("doubled", true));
        assert!(
            (line.ratio - 2.0).abs() < 1e-9 && line.ci95.is_some_and(|[low, high]| low > 1.8 && high < 2.2)
        );
    }
    let alone = metrics_that_differ(at(8), &first[..1], &second[..1], Values::Apart);
    let names: Vec<&str> = alone.lines.iter().map(|line| line.series.metric.as_str()).collect();
    assert_eq!(names, ["noisy", "doubled"], "by how much they differ, where nothing says how sure that is");
    assert!(alone.lines.iter().all(|line| line.ci95.is_none()));
    let one_run_lacks_it =
        metrics_that_differ(at(8), &[first[0].clone(), Vec::new()], &second[..2], Values::Apart);
    assert_eq!(one_run_lacks_it.compared, 0);
}

/// Forty runs, slower by a tenth from the 25th on, with a setting that changed there.
fn forty() -> Vec<Run> {
    let mut noise = Noise::new(11);
    (0..40)
        .map(|minute| {
            let slower = if minute >= 25 { 0.9 } else { 1.0 };
            let value = 1000.0 * slower * (1.0 + 0.01 * noise.normal());
            let mut run = run(minute, &[(1, 50.0), (8, value)]);
            if minute >= 25 {
                set(&mut run, FactOf::Variable, "sync_binlog", "1");
                set(&mut run, FactOf::Server, "version", "11.8");
            }
            run
        })
        .collect()
}

#[test]
fn a_change_is_reported_with_its_runs_its_size_and_the_settings_that_differ() {
    let mut runs = forty();
    // Another data set, and another machine, are groups of their own.
    set(&mut runs[3], FactOf::Work, "rows", "5");
    set(&mut runs[5], FactOf::Host, "hostname", "h2");
    runs[7].levels[1].invalid_why = "the generator was at its limit".to_string();
    runs.reverse();
    let found = history(&runs, Some(8), Metric::TransactionsPerS, 1.0);
    let sizes: Vec<usize> = found.groups.iter().map(|group| group.points.len()).collect();
    assert_eq!(sizes, [37, 1, 1]);
    assert!(found.groups[1].too_few && found.groups[1].steps.is_empty());
    let group = &found.groups[0];
    assert_eq!((group.at, &group.invalid[..]), (at(8), &["r7".to_string()][..]));
    let [step] = &group.steps[..] else { panic!("{:?}", group.steps) };
    assert_eq!((step.last_before.as_str(), step.first_after.as_str()), ("r24", "r25"));
    assert_eq!((step.runs_before, step.runs_after, step.at), (22, 15, 22));
    assert!((step.percent + 10.0).abs() < 1.0, "{step:?}");
    let [low, high] = step.percent_ci95.unwrap();
    assert!(low < -10.0 && -10.0 < high && high - low < 3.0, "{low} {high}");
    let changed: Vec<(&str, &str, &str)> = step
        .changed
        .iter()
        .map(|change| (change.name.as_str(), change.from.as_str(), change.to.as_str()))
        .collect();
    assert_eq!(changed, [("version", "", "11.8"), ("sync_binlog", "0", "1")]);
    assert_eq!(history(&runs, None, Metric::TransactionsPerS, 1.0).groups.len(), 6, "two levels each");
    let coarse = history(&runs, Some(8), Metric::TransactionsPerS, 30.0);
    assert!(coarse.groups[0].steps.is_empty(), "a tenth is less than what matters");
}

#[test]
fn metrics_are_named_as_they_are_written_and_an_unknown_one_is_refused_with_all() {
    for metric in Metric::ALL {
        assert_eq!(metric.name().parse(), Ok(metric));
        assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
    }
    assert!("tps".parse::<Metric>().unwrap_err().to_string().contains("latency_p99_ms"));
}
