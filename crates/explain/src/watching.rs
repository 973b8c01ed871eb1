//! What the watching itself cost: samplers, tracer, stacks, statements and the recording, of the CPU time that the
//! machine used.

use std::cmp::Ordering;

use crate::level::{Level, levels_evidence};
use crate::model::{Counter, Evidence, Finding, SeriesName};
use crate::others::is_busy_time;

/// Parts below this share of the CPU time that was used are not named one by one.
const NAMED_SHARE_MIN: f64 = 0.0005;

/// What watched, by the counters of its CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Samplers,
    Programs,
    Tracer,
    Stacks,
    Statements,
    Probes,
    Recording,
}

const PARTS: [Part; 7] = [
    Part::Samplers,
    Part::Programs,
    Part::Tracer,
    Part::Stacks,
    Part::Statements,
    Part::Probes,
    Part::Recording,
];

impl Part {
    fn of(series: &SeriesName) -> Option<Part> {
        match (series.source.as_str(), series.metric.as_str()) {
            ("watch", "cpu_ns") => Some(Part::Samplers),
            ("trace_cost" | "stacks" | "program_stacks" | "program_waits" | "sql", "program_ns") => {
                Some(Part::Programs)
            }
            ("trace_cost", "tracer_cpu_ns") => Some(Part::Tracer),
            ("stacks" | "program_stacks" | "program_waits", "cpu_ns") => Some(Part::Stacks),
            ("sql", "cpu_ns") => Some(Part::Statements),
            ("recorder", "cpu_ns") => Some(Part::Recording),
            _ => None,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Part::Samplers => "the samplers",
            Part::Programs => "the programs in the kernel",
            Part::Tracer => "reading what they count",
            Part::Stacks => "unwinding stacks",
            Part::Statements => "reading statements",
            Part::Probes => "the probes in the server",
            Part::Recording => "writing the recording",
        }
    }
}

/// The cost at one level.
pub(crate) struct WatchCost {
    /// CPU time that all programs on the machine used, in nanoseconds.
    used_ns: f64,
    parts: Vec<(Part, f64)>,
    /// Whether the kernel counted what the tracer's programs took; true also where there were none.
    programs_counted: bool,
    pub(crate) evidence: Vec<SeriesName>,
}

impl WatchCost {
    /// `None` where the machine's CPU time is not known, or nothing watched.
    pub(crate) fn of(level: &Level) -> Option<WatchCost> {
        let used = level.counters.iter().filter(|counter| {
            counter.series.source == "cpu" && matches!(counter.series.instance.as_str(), "" | "all")
        });
        let used_ns = used.filter(|counter| is_busy_time(&counter.series)).map(sane).sum::<f64>();
        let counted = share_counted(level);
        let added_ns = level.gauge("trace_cost", "counting_ns", "").map_or(0.0, |gauge| gauge.mean.max(0.0));
        let mut ns = [0.0; PARTS.len()];
        let mut evidence = Vec::new();
        for counter in level.counters {
            let Some(part) = Part::of(&counter.series) else { continue };
            let took = if part == Part::Programs {
                let runs = level.counter(&counter.series.source, "program_runs", &counter.series.instance);
                let added = runs.map_or(0.0, |runs| sane(runs) * added_ns);
                counted.map_or(0.0, |share| (sane(counter) - added).max(0.0) / share)
            } else {
                sane(counter)
            };
            if took > 0.0 {
                ns[part as usize] += took;
                evidence.push(counter.series.clone());
            }
        }
        // In the server's own threads: what two probes of a command were measured to take, without the programs at them.
        let commands = level.counter("sql", "commands", "");
        if let (Some(commands), Some(each_ns)) = (commands, level.gauge("sql", "probes_ns", "")) {
            ns[Part::Probes as usize] = sane(commands) * each_ns.mean.max(0.0);
            evidence.extend([commands.series.clone(), each_ns.series.clone()]);
        }
        let of_part = |part: Part| (part, ns[part as usize]);
        let parts: Vec<_> = PARTS.into_iter().map(of_part).filter(|(_, ns)| *ns > 0.0).collect();
        let has = |part| parts.iter().any(|(named, _)| *named == part);
        let programs_counted = has(Part::Programs) || !has(Part::Tracer);
        (used_ns > 0.0 && !parts.is_empty()).then_some(WatchCost {
            used_ns,
            parts,
            programs_counted,
            evidence,
        })
    }

    /// Of the CPU time that was used, 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        (self.parts.iter().map(|(_, ns)| ns).sum::<f64>() / self.used_ns).clamp(0.0, 1.0)
    }
}

/// Of the level's time, how much the kernel counted what programs took; `None` where it did not. One that counts all
/// the time shows no share.
fn share_counted(level: &Level) -> Option<f64> {
    let is_counted =
        |counter: &&Counter| counter.series.source == "trace_cost" && counter.series.metric == "counted_ns";
    match level.counters.iter().find(is_counted) {
        None => Some(1.0),
        Some(counter) => {
            let share = sane(counter) / (level.seconds * 1e9).max(1.0);
            (share > 0.0).then_some(share.min(1.0))
        }
    }
}

/// What no CPU can have used in one level is an error of the counter, and left out.
fn sane(counter: &Counter) -> f64 {
    if (0.0..1e24).contains(&counter.increase) { counter.increase } else { 0.0 }
}

/// The level where watching took the largest share of the CPU time that was used, as text.
pub(crate) fn finding(levels: &[Level]) -> Option<Finding> {
    let costs = levels.iter().filter_map(|level| Some((level, WatchCost::of(level)?)));
    let costs: Vec<_> = costs.collect();
    let by_share = |one: &&(&Level, WatchCost), other: &&(&Level, WatchCost)| {
        one.1.share().partial_cmp(&other.1.share()).unwrap_or(Ordering::Equal)
    };
    let (level, cost) = costs.iter().max_by(by_share)?;
    let mut parts_shown: Vec<_> = cost.parts.iter().map(|(part, ns)| (part, ns / cost.used_ns)).collect();
    parts_shown.retain(|(_, share)| *share >= NAMED_SHARE_MIN);
    parts_shown.sort_by(|one, other| other.1.total_cmp(&one.1));
    let parts_shown =
        parts_shown.iter().map(|(part, share)| format!("{} {}", whyso_words::percent(*share), part.words()));
    let parts_shown = parts_shown.collect::<Vec<_>>();
    let parts =
        if parts_shown.len() > 1 { format!(": {}", whyso_words::list(&parts_shown)) } else { String::new() };
    let most = if costs.len() > 1 { "at most " } else { "" };
    let without = if cost.programs_counted {
        ""
    } else {
        ", without the tracer's programs in the kernel, whose time was not counted here"
    };
    let text = format!(
        "Watching took {most}{} of the CPU time that was used, at {}{without}{parts}.",
        whyso_words::percent(cost.share()),
        level.name(),
    );
    let mut evidence: Vec<Evidence> = vec![levels_evidence("cpu", &[level])];
    let of_level = |series: &SeriesName| Evidence::Series {
        series: series.clone(),
        begin_ns: level.begin_ns,
        end_ns: level.end_ns,
    };
    evidence.extend(cost.evidence.iter().map(of_level));
    Some(Finding { id: "watching".to_string(), text, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Gauge, Input, LevelInput, Machine};

    fn counter(source: &str, metric: &str, instance: &str, increase: f64) -> Counter {
        let [host, source, metric, instance] =
            ["server", source, metric, instance].map(std::string::ToString::to_string);
        let series = SeriesName { host, source, metric, instance };
        Counter { series, unit: "ns".to_string(), increase }
    }

    fn finding_text(counters: Vec<Counter>) -> Option<String> {
        let level = LevelInput { users: 8, end_ns: 10_000_000_000, counters, ..LevelInput::default() };
        let input = Input { levels: vec![level], ..Input::default() };
        let levels: Vec<Level> =
            input.levels.iter().map(|level| crate::verdict::judge(level, &Machine::default())).collect();
        finding(&levels).map(|finding| finding.text)
    }

    #[test]
    fn each_part_is_a_share_of_the_cpu_time_that_was_used() {
        let counters = vec![
            counter("cpu", "user_ns", "all", 8e9),
            counter("cpu", "system_ns", "all", 2e9),
            counter("cpu", "idle_ns", "all", 10e9),
            counter("cpu", "user_ns", "cpu0", 4e9),
            counter("trace_cost", "program_ns", "sched_switch", 0.2e9),
            counter("stacks", "program_ns", "rseq_update", 0.1e9),
            counter("trace_cost", "tracer_cpu_ns", "", 0.05e9),
            counter("watch", "cpu_ns", "status", 0.02e9),
            counter("recorder", "cpu_ns", "", 0.001e9),
        ];
        assert_eq!(
            finding_text(counters).unwrap(),
            "Watching took 3.7 % of the CPU time that was used, at 8 users: 3 % the programs in the kernel, 0.5 % \
             reading what they count and 0.2 % the samplers."
        );
    }

    #[test]
    fn programs_that_were_counted_for_a_tenth_of_the_time_took_ten_times_as_much() {
        let counters = |counted| {
            vec![
                counter("cpu", "user_ns", "all", 10e9),
                counter("trace_cost", "program_ns", "sched_switch", 0.02e9),
                counter("trace_cost", "counted_ns", "", counted),
                counter("trace_cost", "tracer_cpu_ns", "", 0.1e9),
            ]
        };
        let all = finding_text(counters(1e9)).unwrap();
        assert!(all.contains("took 3 % of"), "{all}");
        let none = finding_text(counters(0.0)).unwrap();
        assert!(none.contains("took 1 % of") && none.contains("was not counted"), "{none}");
    }

    #[test]
    fn what_counting_adds_to_the_runs_that_are_counted_is_no_cost_of_the_others() {
        let mut level = LevelInput {
            users: 8,
            end_ns: 10_000_000_000,
            counters: vec![
                counter("cpu", "user_ns", "all", 10e9),
                counter("trace_cost", "counted_ns", "", 1e9),
                counter("trace_cost", "program_ns", "sched_switch", 0.05e9),
                counter("trace_cost", "program_runs", "sched_switch", 1e6),
            ],
            ..LevelInput::default()
        };
        let series = counter("trace_cost", "counting_ns", "", 0.0).series;
        level.gauges = vec![Gauge { series, unit: "ns".to_string(), mean: 30.0, max: 30.0 }];
        let cost = WatchCost::of(&crate::verdict::judge(&level, &Machine::default())).unwrap();
        assert!((cost.share() - 0.02).abs() < 1e-9, "{}", cost.share());
    }

    #[test]
    fn nothing_is_reported_where_nothing_watched_or_the_cpus_are_not_known() {
        assert_eq!(finding_text(vec![counter("cpu", "user_ns", "all", 10e9)]), None);
        assert_eq!(finding_text(vec![counter("watch", "cpu_ns", "status", 10e9)]), None);
        assert_eq!(
            finding_text(vec![
                counter("cpu", "user_ns", "all", 1e9),
                counter("watch", "cpu_ns", "", f64::NAN)
            ]),
            None
        );
    }
}
