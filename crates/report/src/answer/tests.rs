use whyso_explain::model::{
    Class, Doubt, Explanation, Finding, Holder, LevelVerdict, Peak, Regime, SuspectObject,
};
use whyso_record::run::{Latency, Level, LevelResult, RunEnd, RunInfo, Window};

use super::*;

const PLACE: AnswerPlace =
    AnswerPlace { width: 110, report: Some("runs/x/report.html"), before: None, is_head: false };

fn level(index: u32, users: u32, per_s: f64) -> Level {
    let latency_ms = Latency { mean: 2.0, p95: 9.0, ..Latency::default() };
    Level {
        index,
        users,
        purpose: Purpose::Sweep,
        warmup: Window::default(),
        warmup_steady: true,
        window: Window { begin_ns: 0, end_ns: 10_000_000_000 },
        result: LevelResult { transactions_per_s: per_s, latency_ms, ..LevelResult::default() },
        ended: RunEnd::Complete { at_ns: 10_000_000_000 },
    }
}

fn run(levels: Vec<Level>) -> RunInfo {
    RunInfo { id: "20260101-1721-9".to_string(), levels, ..RunInfo::default() }
}

fn row_lock() -> Suspect {
    let holder = Holder { statement: "SELECT COUNT(*) FROM stock WHERE w=?".to_string(), share: 0.87 };
    Suspect {
        id: Cause::RowLock,
        share: 0.73,
        class: Class::Measured,
        predicted_gain: Some(Gain { low: 1.3, high: 3.0 }),
        object: Some(SuspectObject {
            name: "shop.stock (PRIMARY)".to_string(),
            share: 0.97,
            samples: 412,
            holder: Some(holder),
        }),
        evidence: Vec::new(),
        text: "Waits for row locks hold 73 %.".to_string(),
    }
}

fn verdicts(run: &RunInfo, best: u32) -> Vec<LevelVerdict> {
    let regime = |users: u32| match users.cmp(&best) {
        std::cmp::Ordering::Less => Regime::RampingUp,
        std::cmp::Ordering::Equal => Regime::Peak,
        std::cmp::Ordering::Greater => Regime::Degrading,
    };
    let verdict = |level: &Level| LevelVerdict {
        index: level.index,
        users: level.users,
        transactions_per_s: level.result.transactions_per_s,
        regime: regime(level.users),
        valid: true,
        ..LevelVerdict::default()
    };
    run.levels.iter().map(verdict).collect()
}

fn explained(run: &RunInfo) -> Explanation {
    Explanation {
        levels: verdicts(run, 8),
        peak: Some(Peak {
            users: 8,
            users_interval: (4, Some(16)),
            transactions_per_s: 1392.0,
            witnesses: Vec::new(),
        }),
        about: Some(2),
        limit: Some(Limit { id: Resource::Lock, share: 0.73, text: String::new() }),
        suspects: vec![row_lock(), Suspect { id: Cause::Cpu, share: 0.12, object: None, ..row_lock() }],
        ..Explanation::default()
    }
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text() + "\n").collect()
}

#[test]
fn the_answer_leads_with_the_verdict_and_ends_with_what_to_ask_next() {
    let run = run(vec![level(0, 1, 620.0), level(1, 8, 1392.0), level(2, 64, 820.0)]);
    let expected = "\
✓ Stops at 8 users: 1,392 tps, p95 9 ms.  Limit: locks.
  cause     row locks on shop.stock (PRIMARY), 73 % of the response time at 64 users (measured)
  held by   SELECT COUNT(*) FROM stock WHERE w=?  (87 % of 412 samples)
  try       shorten the transactions that hold these rows   ×1.3 to ×3 (estimate)
  also      cpu 12 %
  users    tps   p95  verdict
      1    620  9 ms  ramping up
      8  1,392  9 ms  peak (4 to 16 users)
     64    820  9 ms  −41 %
  more      whyso why · whyso locks · whyso serve   run: latest (20260101-1721-9)
  report    runs/x/report.html
";
    assert_eq!(text(&answer_lines(&run, &explained(&run), &PLACE)), expected);
}

#[test]
fn it_has_twenty_lines_at_most_and_none_is_wider_than_the_terminal() {
    let mut run = run((0..40).map(|index| level(index, index + 1, 100.0 * f64::from(index))).collect());
    run.levels[39].result.slo = vec![Default::default()];
    let mut explanation = explained(&run);
    explanation.unusable = vec![Doubt { id: "drift".to_string(), text: "x".repeat(500) }; 4];
    for width in [40, 80, 200] {
        let lines = answer_lines(&run, &explanation, &AnswerPlace { width, ..PLACE });
        assert_eq!(lines.len(), LINES_MAX);
        for line in &lines {
            assert!(line.text().chars().count() <= width, "{width}: {}", line.text());
        }
        let text = text(&lines);
        assert!(text.starts_with("✗ Not usable: x"), "{text}");
        assert!(text.contains("2 more: whyso why"), "{text}");
        for words in ["service level missed", "levels more: whyso why"] {
            assert!(width < 80 || text.contains(words), "{words}: {text}");
        }
    }
}

#[test]
fn one_level_has_no_table_and_an_unknown_cause_says_what_to_measure() {
    let run = run(vec![level(0, 8, 1000.0)]);
    let mut explanation = explained(&run);
    explanation.peak = None;
    explanation.suspects = vec![Suspect {
        id: Cause::Unknown,
        text: "What no known cause holds is 60 %: threads slept; record the stacks of their waits next."
            .to_string(),
        predicted_gain: None,
        ..row_lock()
    }];
    explanation.about = Some(0);
    let text = text(&answer_lines(&run, &explanation, &PLACE));
    assert!(text.starts_with("✓ At 8 users: 1,000 tps, p95 9 ms.  Limit: locks.\n"), "{text}");
    assert!(text.contains("  cause     not known, 73 % of the response time (measured)\n"), "{text}");
    assert!(text.contains("  next      record the stacks of their waits next\n"), "{text}");
    assert!(!text.contains("users    tps"), "{text}");
}

#[test]
fn what_the_same_load_did_before_stands_next_to_how_to_compare_it() {
    let run = run(vec![level(0, 8, 1000.0)]);
    let before = RunBefore {
        id: "20260101-1000-1".to_string(),
        transactions_per_s: 1_040.0,
        users: 8,
        all_per_s: vec![1_000.0, 1_040.0, 1_020.0],
        this_per_s: 500.0,
    };
    let place = AnswerPlace { before: Some(&before), ..PLACE };
    let text = text(&answer_lines(&run, &explained(&run), &place));
    let expected = "\n  before    1,040 at 8 users in 20260101-1000-1   to see whether they differ: repeat, then whyso compare\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn only_repeated_starts_make_a_run_a_regression() {
    let run = run(vec![level(0, 1, 620.0), level(1, 8, 1392.0)]);
    let starts = |all_per_s: &[f64], this_per_s| RunBefore {
        id: "20260101-1000-1".to_string(),
        transactions_per_s: 1_040.0,
        users: 8,
        all_per_s: all_per_s.to_vec(),
        this_per_s,
    };
    let line = |before: RunBefore| {
        let place = AnswerPlace { before: Some(&before), ..PLACE };
        let lines = text(&answer_lines(&run, &explained(&run), &place));
        lines.lines().find(|line| line.contains("before  ")).unwrap().trim().to_string()
    };
    let four = [1_000.0, 1_010.0, 990.0, 1_000.0];
    assert!(
        line(starts(&four, 900.0)).starts_with("before    regressed: less than 97"),
        "{}",
        line(starts(&four, 900.0))
    );
    assert!(line(starts(&four, 1_100.0)).contains("improved: more than"));
    assert!(line(starts(&four, 1_001.0)).contains("as before: within"));
    let unlike = [9.0, 700.0, 210.0, 450.0];
    let shown = line(starts(&unlike, 500.0));
    assert_eq!(shown, "before    4 starts of this load differ too much to judge this one by them");
    assert!(line(starts(&four[..3], 900.0)).contains("to see whether they differ"));

    // What others did to a run is no regression.
    let unusable = vec![Doubt { id: "steal".to_string(), text: "others had the CPUs".to_string() }];
    let disturbed = Explanation { unusable, ..explained(&run) };
    let slow = starts(&four, 900.0);
    let lines = text(&answer_lines(&run, &disturbed, &AnswerPlace { before: Some(&slow), ..PLACE }));
    assert!(lines.contains("Not usable") && !lines.contains("regressed"), "{lines}");
}

#[test]
fn an_open_loop_says_which_rates_were_kept_up_with() {
    let mut run = run(vec![level(0, 128, 500.0), level(1, 128, 910.0)]);
    for (level, rate_per_s) in run.levels.iter_mut().zip([500.0, 1000.0]) {
        level.result.rate_per_s = Some(rate_per_s);
    }
    let unusable = vec![Doubt { id: "steal".to_string(), text: "others had the CPUs".to_string() }];
    let explanation = Explanation {
        peak: None,
        headline: "Not usable: others had the CPUs. The server kept up with 500/s, and not with 1,000/s."
            .to_string(),
        unusable,
        ..explained(&run)
    };
    let lines = text(&answer_lines(&run, &explanation, &PLACE));
    let expected = "✗ Not usable: others had the CPUs\n  The server kept up with 500/s, and not with 1,000/s.  Limit: locks.\n";
    assert!(lines.starts_with(expected), "{lines}");
}

#[test]
fn a_run_without_a_level_says_what_was_found() {
    let explanation = Explanation {
        headline: "No level of load was measured.".to_string(),
        findings: vec![Finding {
            id: "x".to_string(),
            text: "The\u{1b}[2J disk.".to_string(),
            evidence: Vec::new(),
        }],
        ..Explanation::default()
    };
    let text = text(&answer_lines(&run(Vec::new()), &explanation, &PLACE));
    assert!(text.starts_with("✓ No level of load was measured.\n  The?[2J disk.\n"), "{text}");
}

/// It said "stops at 8 users" where the peak may lie beyond all levels.
#[test]
fn a_flat_curve_does_not_stop_and_a_rising_one_still_rises() {
    let run = run(vec![level(0, 1, 620.0), level(1, 8, 1392.0), level(2, 64, 1390.0)]);
    let mut explanation = explained(&run);
    if let Some(peak) = &mut explanation.peak {
        peak.users_interval = (4, None);
    }
    let flat = text(&answer_lines(&run, &explanation, &PLACE));
    assert!(flat.starts_with("✓ Most at 8 users, and hardly less beyond: 1,392 tps"), "{flat}");
    explanation.levels[2].regime = Regime::Unknown;
    let rising = text(&answer_lines(&run, &explanation, &PLACE));
    assert!(rising.starts_with("✓ Still rises at 8 users: 1,392 tps"), "{rising}");
}
