//! Shares of samples: states of the process list, and the part of CPU time that was in the server's own code.

use whyso_explain::explain;
use whyso_explain::model::{Counter, Gauge, Input, LevelInput, LoopKind, Machine, SeriesName};

use crate::simulate::{Seeds, Tally, ar1};

const SERIES: u32 = 2_000;

/// Snapshots of the process list, and sessions in a statement in each.
pub(crate) const SNAPSHOTS: [f64; 3] = [30.0, 100.0, 600.0];
const SESSIONS: usize = 8;

fn counter(source: &str, metric: &str, instance: &str, increase: f64) -> Counter {
    Counter { series: series(source, metric, instance), unit: String::new(), increase }
}

fn series(source: &str, metric: &str, instance: &str) -> SeriesName {
    SeriesName {
        host: "server".to_string(),
        source: source.to_string(),
        metric: metric.to_string(),
        instance: instance.to_string(),
    }
}

/// Sessions that wait for row locks for `truth` of the time. Sessions of one snapshot wait for each other and all do the same;
/// `phi`: how much neighbouring snapshots resemble each other.
pub(crate) fn of_process_list(seeds: Seeds, case: u64, snapshots: f64, phi: f64, truth: f64) -> Tally {
    let mut tally = Tally::default();
    for number in 0..SERIES / seeds.fewer {
        let mut noise = seeds.noise(case, number);
        let limit = normal_quantile(truth);
        let waits = ar1(&mut noise, snapshots as usize, phi).iter().filter(|value| **value < limit).count();
        let in_lock = (waits * SESSIONS) as f64;
        let all = snapshots * SESSIONS as f64;
        let level = LevelInput {
            users: SESSIONS as u32,
            end_ns: 60_000_000_000,
            transactions: 6_000,
            pacing: LoopKind::Recorded,
            counters: vec![
                counter("sessions", "looks", "", snapshots),
                counter("sessions", "in_statement", "Waiting for row lock", in_lock),
                counter("sessions", "in_statement", "Sending data", all - in_lock),
            ],
            gauges: vec![Gauge {
                series: series("sessions", "clients", ""),
                mean: SESSIONS as f64,
                ..Gauge::default()
            }],
            ..LevelInput::default()
        };
        let explanation = explain(&Input { levels: vec![level], ..Input::default() });
        let text = explanation
            .findings
            .iter()
            .find_map(|finding| printed(&finding.text, "waiting for row locks for "));
        tally.count(text, truth);
    }
    tally
}

/// Independent samples on a CPU, `truth` of them in the server's own code.
pub(crate) fn of_cpu_split(seeds: Seeds, case: u64, samples: u32, truth: f64) -> Tally {
    let mut tally = Tally::default();
    for number in 0..SERIES / seeds.fewer {
        let mut noise = seeds.noise(case, number);
        let user = (0..samples).filter(|_| noise.uniform() < truth).count() as f64;
        let sums = [("request_ns", 2e9), ("request_cpu_ns", 2e9)]
            .map(|(metric, ns)| counter("trace", metric, "", ns));
        let mut counters = sums.to_vec();
        counters.push(counter("trace", "cpu_user_samples", "", user));
        counters.push(counter("trace", "cpu_system_samples", "", f64::from(samples) - user));
        let level = LevelInput {
            users: 2,
            end_ns: 1_000_000_000,
            transactions: 1_000,
            latency_mean_ms: 2.0,
            bins_100ms: vec![100; 10],
            counters,
            ..LevelInput::default()
        };
        let input = Input { levels: vec![level], machine: Machine::default(), ..Input::default() };
        let split = explain(&input).budgets.first().and_then(|budget| budget.cpu_split);
        tally.count(split.map(|split| [split.user.low95, split.user.high95]), truth);
    }
    tally
}

/// The interval that is printed after `begin`, to half of its last digit. Its form is "(95 % interval 1.2 % to 30 %, 80 samples)".
fn printed(text: &str, begin: &str) -> Option<[f64; 2]> {
    let rest = &text[text.find(begin)?..];
    let rest = &rest[rest.find("(95 % interval ")? + "(95 % interval ".len()..];
    let (low, rest) = rest.split_once(" % to ")?;
    let (high, _) = rest.split_once(" %")?;
    let half = |number: &str| if number.contains('.') { 0.0005 } else { 0.005 };
    let (least, most): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
    Some([least / 100.0 - half(low), most / 100.0 + half(high)])
}

/// By bisection of the distribution of a normal number, to what a simulation needs.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal_share(middle) < share { low = middle } else { high = middle }
    }
    high
}

/// Simpson's rule over the density, from six standard deviations below.
fn normal_share(end: f64) -> f64 {
    let steps = 400;
    let step = (end + 6.0) / f64::from(steps);
    let density =
        |at: i32| (-0.5 * (-6.0 + f64::from(at) * step).powi(2)).exp() / std::f64::consts::TAU.sqrt();
    let inner: f64 = (1..steps).map(|at| density(at) * if at % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (density(0) + inner + density(steps)) * step / 3.0
}
