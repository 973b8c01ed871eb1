//! From a recording with the tracer's series to the time budget of its levels.

use whyso_explain::model::{Budget, Evidence, Part};
use whyso_query::{explain, explain_at};
use whyso_record::data::{Kind, Reading, SeriesKey, Status, TextRows, Value};
use whyso_record::run::{Latency, Level, LevelResult, Purpose, RunEnd, RunInfo, Window};
use whyso_record::{Options, Recorder, Recording};

const S: i64 = 1_000_000_000;

/// A level of ten seconds.
fn level(index: u32, users: u32, transactions: u64, response_ms: f64) -> Level {
    let begin_ns = i64::from(index) * 20 * S + 5 * S;
    Level {
        index,
        users,
        purpose: Purpose::Sweep,
        warmup: Window { begin_ns: begin_ns - 4 * S, end_ns: begin_ns },
        warmup_steady: true,
        window: Window { begin_ns, end_ns: begin_ns + 10 * S },
        result: LevelResult {
            seconds: 10.0,
            transactions,
            transactions_per_s: transactions as f64 / 10.0,
            latency_ms: Latency { mean: response_ms, ..Latency::default() },
            service_ms: Latency { mean: response_ms, ..Latency::default() },
            bins_100ms: vec![(transactions / 100) as u32; 100],
            ..LevelResult::default()
        },
        ended: RunEnd::Complete { at_ns: begin_ns + 10 * S },
    }
}

fn key(source: &str, metric: &str, instance: &str, kind: Kind) -> SeriesKey {
    SeriesKey {
        host: "server".to_string(),
        source: source.to_string(),
        metric: metric.to_string(),
        instance: instance.to_string(),
        kind,
        unit: if metric.ends_with("_ns") { "ns" } else { "1" }.to_string(),
    }
}

/// Two levels; of each, what a transaction spent in each state, in milliseconds.
fn record(dir: &std::path::Path) -> Recording {
    let levels = [level(0, 8, 38_000, 2.1), level(1, 64, 54_000, 11.8)];
    let states: [(&str, [f64; 2]); 5] = [
        ("request_ns", [2.0, 11.6]),
        ("request_cpu_ns", [1.0, 1.6]),
        ("request_lock_ns", [1.0, 9.9]),
        ("request_file_sync_ns", [0.0, 0.1]),
        ("client_held_ns", [0.05, 0.1]),
    ];
    let recorder = Recorder::create(dir, Options { reserve_bytes: 0, ..Options::default() }).unwrap();
    let series: Vec<_> =
        states.iter().map(|(metric, _)| recorder.series(&key("trace", metric, "", Kind::Counter))).collect();
    let sync = recorder.series(&key("threads", "file_sync_ns", "log writer", Kind::Counter));
    let count = recorder.series(&key("threads", "count", "log writer", Kind::Gauge));
    // Sums grow evenly within each level's window, and twice as fast outside.
    let mut sums = [0.0; 5];
    let mut sync_ns = 0.0;
    for second in 0..=40 {
        let end_ns = second * S;
        let in_window = |level: &&Level| (level.window.begin_ns..level.window.end_ns).contains(&end_ns);
        let at = levels.iter().find(in_window).map(|level| level.index as usize);
        let reading = |source: &str, values| Reading {
            source: source.to_string(),
            begin_ns: end_ns - 1_000,
            end_ns,
            status: Status::Ok,
            values,
        };
        let values = series.iter().zip(sums).map(|(id, sum)| (*id, Value::Int(sum as i64))).collect();
        recorder.reading(reading("trace", values));
        let values = vec![(sync, Value::Int(sync_ns as i64)), (count, Value::Int(1))];
        recorder.reading(reading("threads", values));
        recorder.rows(TextRows {
            source: "file_waits".to_string(),
            t_ns: end_ns,
            columns: ["path", "state", "role", "count", "ns"].map(str::to_string).to_vec(),
            rows: vec![
                ["ib_logfile0", "file_sync", "log writer", "5", &format!("{sync_ns}")]
                    .map(|cell| Some(cell.to_string()))
                    .to_vec(),
            ],
        });
        for (sum, (_, ms)) in sums.iter_mut().zip(&states) {
            let level = at.map_or(1, |at| at);
            let outside = if at.is_none() { 2.0 } else { 1.0 };
            *sum += outside * ms[level] * 1e6 * levels[level].result.transactions as f64 / 10.0;
        }
        sync_ns += if at == Some(1) { 0.94e9 } else { 0.2e9 };
    }
    let run = RunInfo { id: "made".to_string(), levels: levels.to_vec(), ..RunInfo::default() };
    recorder.set_run(&run);
    recorder.finish().unwrap();
    Recording::open(dir).unwrap()
}

fn is_near(budget: &Budget, part: Part, ms: f64) -> bool {
    (budget.ms(part) / ms - 1.0).abs() < 1e-3
}

#[test]
fn the_budget_of_a_recording_adds_up_to_what_the_client_measured() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(&folder.path().join("run"));
    let explanation = explain(&recording).unwrap();
    let [few, many] = &explanation.budgets[..] else { panic!("{:?}", explanation.budgets) };
    assert!(is_near(few, Part::Cpu, 1.0) && is_near(few, Part::Lock, 1.0), "{few:?}");
    assert!(is_near(many, Part::Lock, 9.9) && is_near(many, Part::ClientCpu, 0.1), "{many:?}");
    assert!((many.unaccounted_ms - 0.1).abs() < 0.001, "{}", many.unaccounted_ms);
    let growth = explanation.findings.iter().find(|finding| finding.id == "budget-growth").unwrap();
    assert!(growth.text.contains("while the log writer is in fsync 94 % of the time"), "{}", growth.text);
    let levels = &recording.run().levels;
    for evidence in &growth.evidence {
        if let Evidence::Series { series, begin_ns, end_ns } = evidence {
            assert!(recording.series().iter().any(|info| info.key.metric == series.metric));
            assert!(
                levels
                    .iter()
                    .any(|level| (level.window.begin_ns, level.window.end_ns) == (*begin_ns, *end_ns))
            );
        }
    }
    let input = whyso_query::input(&recording).unwrap();
    let wait = &input.levels[1].file_waits[0];
    assert_eq!((wait.path.as_str(), wait.role.as_str()), ("ib_logfile0", "log writer"));
    assert!((wait.ns / 9.4e9 - 1.0).abs() < 0.02, "{wait:?}");
}

#[test]
fn a_level_that_was_not_measured_is_refused_with_those_that_were() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(&folder.path().join("run"));
    assert_eq!(explain_at(&recording, Some(8), &[]).unwrap().about, Some(0));
    let refused = explain_at(&recording, Some(9), &[]).unwrap_err();
    assert!(refused.is_wrong_use());
    assert_eq!(refused.to_string(), "this run has no level of 9 users; it has those of 8, 64");
}
