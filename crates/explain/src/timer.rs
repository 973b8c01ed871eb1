//! What it costs a server to time what its Performance Schema counts.
//!
//! An event is timed by two readings of a timer. So timing costs events × 2 × overhead ÷ frequency of the CPU's cycles. The server itself
//! has in `performance_timers` how many cycles a reading of each timer takes.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use ts_rs::TS;

use crate::model::{Counter, PfsSetup, Timer};

/// Readings of a timer that one event takes.
const READINGS: f64 = 2.0;
const CYCLE: &str = "CYCLE";
const NANOSECOND: &str = "NANOSECOND";
const MICROSECOND: &str = "MICROSECOND";
/// Kinds of events that have a timer each, as the server names them there.
const CLASSES: [&str; 5] = ["wait", "stage", "statement", "transaction", "idle"];

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

/// What timing cost over a window, and what it would have cost otherwise. CPU times are in seconds, over the whole window; `None` where
/// the server does not say what its timers take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, TS)]
#[ts(rename = "PfsTiming")]
pub struct Timing {
    /// Length of the window.
    pub seconds: f64,
    pub statements: Option<f64>,
    /// CPU time that the server used; `None` where its process was not watched.
    pub server_cpu_s: Option<f64>,
    /// Always the five that there are.
    pub classes: Vec<ClassTiming>,
    /// Of all classes together.
    pub cpu_s: Option<f64>,
    pub cpu_s_if_all: Option<f64>,
    /// The server's timers in its order, and what each would cost if it alone served every class.
    pub timers: Vec<TimerChoice>,
}

/// Events of one class over a window, and what timing them cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, TS)]
#[ts(rename = "PfsClassTiming")]
pub struct ClassTiming {
    pub class: String,
    pub timer: String,
    /// The server's table setup_timers has it; otherwise it is the one that is documented for servers without it.
    pub timer_read: bool,
    pub events: f64,
    /// Those of instruments that are timed.
    pub timed_events: f64,
    pub cpu_s: Option<f64>,
    /// If every event were timed.
    pub cpu_s_if_all: Option<f64>,
}

/// A timer, and what it would cost if it served every class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, TS)]
#[ts(rename = "PfsTimerChoice")]
pub struct TimerChoice {
    #[serde(flatten)]
    pub timer: Timer,
    /// Of the events that were timed.
    pub cpu_s: Option<f64>,
    /// Of all events.
    pub cpu_s_if_all: Option<f64>,
}

impl Timing {
    /// A CPU time as a share of what the server used.
    pub fn share(&self, cpu_s: Option<f64>) -> Option<f64> {
        let of_server = self.server_cpu_s.filter(|server_s| *server_s > 0.0)?;
        Some(cpu_s? / of_server)
    }
}

/// CPU time, in seconds, of timing this many events. `None` where the server does not say what it takes, as where the CPU's
/// cycles can't be counted.
pub fn timing_cpu_s(timers: &[Timer], timer: &str, events: f64) -> Option<f64> {
    let named = |name: &str| timers.iter().find(|timer| timer.name == name);
    let hertz = named(CYCLE)?.frequency.filter(|hertz| *hertz > 0.0)?;
    let overhead_cycles = named(timer)?.overhead_cycles?;
    Some(events.max(0.0) * READINGS * overhead_cycles / hertz)
}

/// What timing cost over a window of this many seconds.
pub fn timing(
    setup: &PfsSetup,
    counters: &[Counter],
    seconds: f64,
    statements: Option<f64>,
    server_cpu_s: Option<f64>,
) -> Timing {
    let cost = |timer: &str, events: f64| timing_cpu_s(&setup.timers, timer, events);
    let counted = counted(setup, counters);
    let class = |class: &str| {
        let (timer, timer_read) = setup.timer_of(class);
        let (events, timed_events) = counted.get(class).copied().unwrap_or_default();
        ClassTiming {
            class: class.to_string(),
            timer: timer.to_string(),
            timer_read,
            events,
            timed_events,
            cpu_s: cost(timer, timed_events),
            cpu_s_if_all: cost(timer, events),
        }
    };
    let classes: Vec<ClassTiming> = CLASSES.into_iter().map(class).collect();
    let events: f64 = classes.iter().map(|class| class.events).sum();
    let timed_events: f64 = classes.iter().map(|class| class.timed_events).sum();
    let choice = |timer: &Timer| TimerChoice {
        timer: timer.clone(),
        cpu_s: cost(&timer.name, timed_events),
        cpu_s_if_all: cost(&timer.name, events),
    };
    // What has no events costs nothing, whether or not the server reports its timer.
    let sum = |of: fn(&ClassTiming) -> (f64, Option<f64>)| {
        classes
            .iter()
            .map(of)
            .filter(|(events, _)| *events > 0.0)
            .map(|(_, cpu_s)| cpu_s)
            .sum::<Option<f64>>()
    };
    Timing {
        seconds,
        statements,
        server_cpu_s,
        cpu_s: sum(|class| (class.timed_events, class.cpu_s)),
        cpu_s_if_all: sum(|class| (class.events, class.cpu_s_if_all)),
        timers: setup.timers.iter().map(choice).collect(),
        classes,
    }
}

/// What timing costs over a window, kind by kind, the dearest first. Events of instruments that are counted without being
/// timed cost nothing.
pub fn timing_costs(setup: &PfsSetup, counters: &[Counter]) -> Vec<TimerCost> {
    let timing = timing(setup, counters, 0.0, None, None);
    let cost = |class: ClassTiming| {
        let cpu_s = class.cpu_s.filter(|_| class.timed_events > 0.0)?;
        Some(TimerCost { what: class.class, timer: class.timer, events: class.timed_events, cpu_s })
    };
    let mut costs: Vec<TimerCost> = timing.classes.into_iter().filter_map(cost).collect();
    costs.sort_by(|left, right| right.cpu_s.total_cmp(&left.cpu_s));
    costs
}

/// By class its events, and those that were timed.
fn counted(setup: &PfsSetup, counters: &[Counter]) -> BTreeMap<&'static str, (f64, f64)> {
    let of = |metric: &'static str| counters.iter().filter(move |counter| counter.series.metric == metric);
    let grew: HashSet<(&str, &str)> = of("time_ns")
        .filter(|counter| counter.increase > 0.0)
        .map(|counter| (counter.series.source.as_str(), counter.series.instance.as_str()))
        .collect();
    let mut counted: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for counter in of("count") {
        let (source, instance) = (counter.series.source.as_str(), counter.series.instance.as_str());
        let Some(class) = class_of(source, instance) else { continue };
        let is_timed = match &setup.timed {
            Some(timed) => timed.contains(instance),
            None => grew.contains(&(source, instance)),
        };
        let events = counter.increase.max(0.0);
        let (all, timed) = counted.entry(class).or_default();
        *all += events;
        *timed += if is_timed { events } else { 0.0 };
    }
    counted
}

/// What the server calls events of this series where it gives them a timer.
fn class_of(source: &str, instance: &str) -> Option<&'static str> {
    match source {
        "pfs_waits" if instance == "idle" => Some("idle"),
        "pfs_waits" => Some("wait"),
        "pfs_stages" => Some("stage"),
        "pfs_statements" => Some("statement"),
        "pfs_transactions" => Some("transaction"),
        _ => None,
    }
}

impl PfsSetup {
    /// The timer of a class of events, and whether the server reported it. Where it has no such table it is the one that MySQL's manual
    /// names. That is cycles for waits, and nanoseconds for everything else where the machine has them, else microseconds.
    fn timer_of(&self, class: &str) -> (&str, bool) {
        let is_there =
            |name: &str| self.timers.iter().any(|timer| timer.name == name && timer.frequency.is_some());
        match self.used.get(class) {
            Some(timer) => (timer, true),
            None if class == "wait" => (CYCLE, false),
            None if !is_there(NANOSECOND) && is_there(MICROSECOND) => (MICROSECOND, false),
            None => (NANOSECOND, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::{Instruments, SeriesName};

    fn timer(name: &str, frequency: f64, overhead_cycles: f64) -> Timer {
        Timer {
            name: name.to_string(),
            frequency: Some(frequency),
            resolution: Some(1.0),
            overhead_cycles: Some(overhead_cycles),
        }
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
        let by_class: Vec<(&str, f64)> =
            costs.iter().map(|cost| (cost.what.as_str(), (cost.cpu_s * 1e4).round() / 1e4)).collect();
        assert_eq!(by_class, [("stage", 229.8933), ("wait", 26.5254), ("statement", 17.5158)]);
        let by_nanoseconds: f64 =
            costs.iter().filter(|cost| cost.timer == "NANOSECOND").map(|cost| cost.cpu_s).sum();
        assert!((by_nanoseconds / 2169.0 - 0.114).abs() < 0.0005, "{by_nanoseconds}");
    }

    #[test]
    fn what_the_server_does_not_report_is_not_reckoned() {
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
    /// The published study's load in 300 s, in which the server used 2,169 s of CPU.
    fn published(used: &[(&str, &str)]) -> Timing {
        let setup = PfsSetup {
            timers: slow_machine(),
            used: used.iter().map(|(class, timer)| (class.to_string(), timer.to_string())).collect(),
            timed: Some(Instruments {
                beginnings: vec!["wait/".to_string(), "stage/".to_string()],
                names: BTreeSet::from(["statement/sql/select".to_string()]),
            }),
            ..PfsSetup::default()
        };
        let counters: Vec<Counter> = [
            counted("pfs_waits", "wait/synch/mutex/a", 1_098_658_477.0, 0.0),
            counted("pfs_waits", "idle", 500.0, 7.0),
            counted("pfs_stages", "stage/sql/init", 244_153_447.0, 1.0),
            counted("pfs_statements", "statement/sql/select", 18_602_306.0, 1.0),
            counted("pfs_transactions", "transaction", 1_000_000.0, 1.0),
            counted("pfs_files", "wait/io/file/a", 1e9, 1.0),
        ]
        .concat();
        timing(&setup, &counters, 300.0, Some(18_602_306.0), Some(2169.0))
    }

    #[test]
    fn another_timer_and_what_is_not_timed_are_reckoned_in_addition_to_what_it_cost() {
        let timing = published(&[]);
        let class = |name: &str| timing.classes.iter().find(|class| class.class == name).unwrap();
        assert_eq!(timing.classes.len(), 5);
        assert!((class("wait").cpu_s.unwrap() - 26.5254).abs() < 1e-4);
        // What is not timed costs nothing, and has its cost if it were timed.
        assert_eq!((class("transaction").events, class("transaction").timed_events), (1e6, 0.0));
        assert_eq!(class("transaction").cpu_s, Some(0.0));
        assert!((class("transaction").cpu_s_if_all.unwrap() - 0.941593).abs() < 1e-5);
        assert_eq!((class("idle").events, class("idle").timed_events), (500.0, 0.0));
        let total = 26.5254 + 229.8933 + 17.5158;
        assert!((timing.cpu_s.unwrap() - total).abs() < 1e-3);
        assert!((timing.share(timing.cpu_s).unwrap() - total / 2169.0).abs() < 1e-6);
        assert!((timing.cpu_s_if_all.unwrap() - total - 0.941593 - 0.000471).abs() < 1e-3);
        // The study's remedy: everything by cycles takes 6.4 s of stages in place of 229.9.
        let cycles = &timing.timers[0];
        assert_eq!(cycles.timer.name, "CYCLE");
        let stages_s = 244_153_447.0 * 72.0 / 2_982_179_104.0;
        assert!(
            (cycles.cpu_s.unwrap() - 26.5254 - stages_s - 18_602_306.0 * 72.0 / 2_982_179_104.0).abs() < 1e-3
        );
        assert!(timing.timers[1].cpu_s_if_all.unwrap() > 1000.0);
        assert!(!class("stage").timer_read && class("stage").timer == "NANOSECOND");
    }

    #[test]
    fn what_the_server_reports_of_its_timers_goes_before_what_is_documented() {
        let timing = published(&[("stage", "CYCLE"), ("idle", "TICK")]);
        let timers: Vec<(&str, bool)> =
            timing.classes.iter().map(|class| (class.timer.as_str(), class.timer_read)).collect();
        let documented = ("NANOSECOND", false);
        assert_eq!(timers, [("CYCLE", false), ("CYCLE", true), documented, documented, ("TICK", true)]);
        // A timer that the server does not describe makes the whole unknown, where there is something to time by it.
        assert_eq!(timing.classes[4].cpu_s_if_all, None);
        assert_eq!(timing.cpu_s_if_all, None);
        assert!(timing.cpu_s.is_some());

        let no_nanoseconds = [timer("CYCLE", 3e9, 36.0), timer("MICROSECOND", 1e6, 90.0)].to_vec();
        let setup = PfsSetup { timers: no_nanoseconds, ..PfsSetup::default() };
        assert_eq!(setup.timer_of("statement"), ("MICROSECOND", false));
    }
}
