//! Neighbours: other programs on the server's machine, by name, with what they used.

use crate::level::Level;
use crate::model::{Counter, Machine, SeriesName};
use crate::nodes::is_recorded_program;

/// Sampler of other programs.
const SOURCE: &str = "neighbours";
/// Host of series about the machine of the load, where the server is on another one.
const GENERATOR: &str = "client";
/// Of the CPUs that the server may use: a program that used less is not named.
const NAMED_MIN: f64 = 0.02;
const NAMED_MAX: usize = 3;
/// Bytes per second to and from devices that are worth a word.
const DISK_MIN: f64 = 1e6;
/// Bytes of memory that are.
const MEMORY_MIN: f64 = 1e9;

/// One name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Neighbour<'a> {
    pub(crate) name: &'a str,
    /// CPUs that it kept busy.
    pub(crate) cpus: f64,
    pub(crate) disk_bytes_per_s: f64,
    pub(crate) resident_bytes: f64,
    pub(crate) series: &'a SeriesName,
}

/// Those of a level, the one with the most CPU time first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Neighbours<'a> {
    pub(crate) each: Vec<Neighbour<'a>>,
    /// CPUs that the server's clients kept busy.
    pub(crate) clients_cpus: f64,
    /// CPUs of programs that may be either.
    pub(crate) unclear_cpus: f64,
}

impl<'a> Neighbours<'a> {
    /// `None` where other programs were not watched.
    pub(crate) fn of(level: &Level<'a>) -> Option<Neighbours<'a>> {
        if level.seconds <= 0.0 {
            return None;
        }
        let named = |metric: &'static str| {
            level.counters.iter().filter(move |counter: &&'a Counter| {
                let series = &counter.series;
                series.source == SOURCE
                    && series.host != GENERATOR
                    && series.metric == metric
                    && (0.0..1e24).contains(&counter.increase)
            })
        };
        let cpus = |counter: &Counter| counter.increase / 1e9 / level.seconds;
        let sum = |metric: &'static str| named(metric).map(cpus).sum::<f64>();
        let is_other = |counter: &&'a Counter| !is_recorded_program(level, &counter.series.instance);
        let mut each: Vec<Neighbour> = named("cpu_ns")
            .filter(is_other)
            .map(|counter| {
                let name = counter.series.instance.as_str();
                let disk = level.counter(SOURCE, "disk_bytes", name);
                Neighbour {
                    name,
                    cpus: cpus(counter),
                    disk_bytes_per_s: disk.map_or(0.0, |disk| disk.increase / level.seconds),
                    resident_bytes: level
                        .gauge(SOURCE, "resident_bytes", name)
                        .map_or(0.0, |gauge| gauge.mean),
                    series: &counter.series,
                }
            })
            .collect();
        each.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.name.cmp(b.name)));
        let found =
            Neighbours { each, clients_cpus: sum("clients_cpu_ns"), unclear_cpus: sum("unclear_cpu_ns") };
        (!found.each.is_empty() || found.clients_cpus > 0.0 || found.unclear_cpus > 0.0).then_some(found)
    }

    /// CPUs that all of them kept busy.
    pub(crate) fn cpus(&self) -> f64 {
        self.each.iter().map(|neighbour| neighbour.cpus).sum()
    }

    /// Those that used enough for a sentence.
    pub(crate) fn named(&self, machine: &Machine) -> impl Iterator<Item = &Neighbour<'a>> {
        let least = NAMED_MIN * f64::from(machine.server_cpus.max(1));
        self.each.iter().take(NAMED_MAX).filter(move |neighbour| neighbour.cpus >= least)
    }

    /// "sh 49 % of the CPUs, dd 3 % with 120 MB/s of disk traffic"; empty where none used enough.
    pub(crate) fn in_words(&self, machine: &Machine) -> String {
        let all = f64::from(machine.server_cpus.max(1));
        let words = |neighbour: &Neighbour| {
            let mut text =
                format!("{} {} of the CPUs", neighbour.name, whyso_words::percent(neighbour.cpus / all));
            if neighbour.disk_bytes_per_s >= DISK_MIN {
                let per_s = whyso_words::amount(neighbour.disk_bytes_per_s, "bytes");
                text.push_str(&format!(" and {per_s}/s of disk traffic"));
            }
            if neighbour.resident_bytes >= MEMORY_MIN {
                text.push_str(&format!(
                    " and {} of memory",
                    whyso_words::amount(neighbour.resident_bytes, "bytes")
                ));
            }
            text
        };
        self.named(machine).map(words).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::model::{
        Cause, Counter, CpuUse, Explanation, Input, LevelInput, LoopKind, Machine, SeriesName,
    };

    /// A recorded server on two CPUs: 5 ms per request, of which the thread ran for 0.5 and was ready for the rest.
    fn explained(neighbours: &[(&str, &str, f64)], idle: f64) -> Explanation {
        let series = |source: &str, metric: &str, instance: &str| SeriesName {
            host: "server".to_string(),
            source: source.to_string(),
            metric: metric.to_string(),
            instance: instance.to_string(),
        };
        let mut counters = vec![
            (series("cpu", "user_ns", "all"), 20e9 * (1.0 - idle)),
            (series("cpu", "idle_ns", "all"), 20e9 * idle),
            (series("trace", "request_ns", ""), 10e9),
            (series("trace", "request_cpu_ns", ""), 1e9),
            (series("trace", "request_runqueue_ns", ""), 9e9 * (1.0 - idle)),
            (series("trace", "requests", ""), 2_000.0),
        ];
        for (metric, name, cpus) in neighbours {
            counters.push((series("neighbours", metric, name), cpus * 10e9));
        }
        let counters = counters
            .into_iter()
            .map(|(series, increase)| Counter { series, unit: "ns".to_string(), increase })
            .collect();
        let level = LevelInput {
            users: 1,
            end_ns: 10_000_000_000,
            transactions: 2_000,
            latency_mean_ms: 5.0,
            pacing: LoopKind::Recorded,
            cpu: Some(CpuUse { user: 1.0 - idle, idle, ..CpuUse::default() }),
            server_cpu_s: Some(1.0),
            counters,
            ..LevelInput::default()
        };
        let machine =
            Machine { server_cpus: 2, server_cpu_numbers: vec![0, 1], client_cpus: 2, shared: true, cpus: 2 };
        explain(&Input { levels: vec![level], machine, ..Input::default() })
    }

    #[test]
    fn of_a_recorded_load_neighbours_are_suspected_by_name() {
        let explained = explained(
            &[("cpu_ns", "busyloop", 1.7), ("cpu_ns", "cron", 0.01), ("clients_cpu_ns", "app", 0.1)],
            0.0,
        );
        let first = &explained.suspects[0];
        assert_eq!(first.id, Cause::NoisyNeighbour, "{:#?}", explained.suspects);
        assert!(first.text.contains("busyloop 85 % of the CPUs"), "{}", first.text);
        assert!(!first.text.contains("cron") && !first.text.contains("app"), "{}", first.text);
        let finding = explained.findings.iter().find(|finding| finding.id == "other-load").unwrap();
        assert!(finding.text.contains("busyloop 85 % of the CPUs"), "{}", finding.text);
    }

    #[test]
    fn clients_and_programs_that_may_be_clients_are_not_suspected() {
        for neighbours in [
            &[("clients_cpu_ns", "app", 1.7)][..],
            &[("unclear_cpu_ns", "app", 1.7)],
            &[("cpu_ns", "cron", 0.01)],
            &[],
        ] {
            let explained = explained(neighbours, 0.0);
            let is_suspected = explained.suspects.iter().any(|suspect| suspect.id == Cause::NoisyNeighbour);
            assert!(!is_suspected, "{neighbours:?}: {:#?}", explained.suspects);
            assert!(explained.findings.iter().all(|finding| finding.id != "other-load"), "{neighbours:?}");
        }
    }
}
