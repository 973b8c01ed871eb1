//! What it costs a server to time what its Performance Schema counts.
//!
//! An event is timed by two readings of a timer, so that timing costs events × 2 × overhead ÷ frequency of the CPU's
//! cycles: the server itself says in `performance_timers` how many cycles a reading of each timer takes.

use std::collections::{BTreeMap, HashSet};

use crate::model::{Counter, PfsSetup, Timer};

/// Readings of a timer that one event takes.
const READINGS: f64 = 2.0;
const CYCLE: &str = "CYCLE";

/// What timing events of one kind costs.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerCost {
    /// "wait", "stage", "statement", "transaction" or "idle".
    pub what: String,
    pub timer: String,
    pub events: f64,
    /// CPU time, in seconds.
    pub cpu_s: f64,
}

/// CPU time, in seconds, of timing so many events. `None` where the server does not say what it takes, as where the CPU's
/// cycles can't be counted.
pub fn timing_cpu_s(timers: &[Timer], timer: &str, events: f64) -> Option<f64> {
    let named = |name: &str| timers.iter().find(|one| one.name == name);
    let hertz = named(CYCLE)?.frequency.filter(|hertz| *hertz > 0.0)?;
    let overhead_cycles = named(timer)?.overhead_cycles?;
    Some(events.max(0.0) * READINGS * overhead_cycles / hertz)
}

/// What timing costs over a window, kind by kind, the dearest first. Events of instruments that are counted without being
/// timed cost nothing.
pub fn timing_costs(setup: &PfsSetup, counters: &[Counter]) -> Vec<TimerCost> {
    let of = |metric: &'static str| counters.iter().filter(move |counter| counter.series.metric == metric);
    let timed: HashSet<(&str, &str)> = of("time_ns")
        .filter(|counter| counter.increase > 0.0)
        .map(|counter| (counter.series.source.as_str(), counter.series.instance.as_str()))
        .collect();
    let mut events: BTreeMap<&str, f64> = BTreeMap::new();
    for counter in of("count") {
        let (source, instance) = (counter.series.source.as_str(), counter.series.instance.as_str());
        if let Some(what) = kind(source, instance)
            && timed.contains(&(source, instance))
        {
            *events.entry(what).or_default() += counter.increase;
        }
    }
    let mut costs = Vec::new();
    for (what, events) in events {
        let timer = setup.timer_of(what);
        if let Some(cpu_s) = timing_cpu_s(&setup.timers, timer, events) {
            costs.push(TimerCost { what: what.to_string(), timer: timer.to_string(), events, cpu_s });
        }
    }
    costs.sort_by(|left, right| right.cpu_s.total_cmp(&left.cpu_s));
    costs
}

/// What the server calls events of this series where it gives them a timer.
fn kind(source: &str, instance: &str) -> Option<&'static str> {
    match source {
        "pfs_waits" if instance == "idle" => Some("idle"),
        "pfs_waits" => Some("wait"),
        "pfs_stages" => Some("stage"),
        "pfs_statements" => Some("statement"),
        _ => None,
    }
}

impl PfsSetup {
    /// The timer of a kind of events: as set up, or, where the server has no such table, the one that it takes always.
    fn timer_of(&self, what: &str) -> &str {
        match self.used.get(what) {
            Some(timer) => timer,
            None if what == "wait" => CYCLE,
            None => "NANOSECOND",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SeriesName;

    fn timer(name: &str, frequency: f64, overhead_cycles: f64) -> Timer {
        Timer { name: name.to_string(), frequency: Some(frequency), overhead_cycles: Some(overhead_cycles) }
    }

    /// The machine of the published study whose nanosecond timer took 1,404 cycles a reading.
    fn slow_machine() -> Vec<Timer> {
        vec![timer("CYCLE", 2_982_179_104.0, 36.0), timer("NANOSECOND", 1e9, 1404.0)]
    }

    fn counted(source: &str, instance: &str, count: f64, time_ns: f64) -> [Counter; 2] {
        [("count", count), ("time_ns", time_ns)].map(|(metric, increase)| Counter {
            series: SeriesName {
                host: "server".to_string(),
                source: source.to_string(),
                metric: metric.to_string(),
                instance: instance.to_string(),
            },
            unit: String::new(),
            increase,
        })
    }

    #[test]
    fn a_slow_nanosecond_timer_takes_a_ninth_of_the_server() {
        let setup = PfsSetup { timers: slow_machine(), ..PfsSetup::default() };
        let counters: Vec<Counter> = [
            counted("pfs_waits", "wait/synch/mutex/a", 1_098_658_477.0, 1.0),
            counted("pfs_stages", "stage/sql/init", 244_153_447.0, 1.0),
            counted("pfs_statements", "statement/sql/select", 18_602_306.0, 1.0),
            counted("pfs_waits", "wait/synch/mutex/not_timed", 5e9, 0.0),
        ]
        .concat();
        let costs = timing_costs(&setup, &counters);
        let told: Vec<(&str, f64)> =
            costs.iter().map(|cost| (cost.what.as_str(), (cost.cpu_s * 1e4).round() / 1e4)).collect();
        assert_eq!(told, [("stage", 229.8933), ("wait", 26.5254), ("statement", 17.5158)]);
        let by_nanoseconds: f64 =
            costs.iter().filter(|cost| cost.timer == "NANOSECOND").map(|cost| cost.cpu_s).sum();
        assert!((by_nanoseconds / 2169.0 - 0.114).abs() < 0.0005, "{by_nanoseconds}");
    }

    #[test]
    fn what_the_server_does_not_say_is_not_reckoned() {
        let timers = slow_machine();
        assert_eq!(timing_cpu_s(&timers, "TICK", 1e9), None);
        assert_eq!(timing_cpu_s(&timers[1..], "NANOSECOND", 1e9), None);
        let stopped = [timer("CYCLE", 0.0, 36.0)];
        assert_eq!(timing_cpu_s(&stopped, "CYCLE", 1e9), None);
        let everything_by_cycles = BTreeMap::from([("stage".to_string(), "CYCLE".to_string())]);
        let setup = PfsSetup { timers, used: everything_by_cycles, ..PfsSetup::default() };
        let costs = timing_costs(&setup, &counted("pfs_stages", "stage/sql/init", 1e6, 1.0));
        assert_eq!(costs[0].timer, "CYCLE");
    }
}
