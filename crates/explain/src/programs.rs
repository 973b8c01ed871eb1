//! CPU time of a machine by program: the server, its clients, other programs, whyso, and what is left.

use crate::model::{Counter, Gauge, SeriesName};

/// What a program is to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    Server,
    /// Another node of its cluster.
    Node,
    Client,
    Other,
    /// A client or another program: its sockets may not be seen.
    Unclear,
    Whyso,
    /// The kernel's threads, those of other PID namespaces, and processes that are too short or use too little to be followed.
    Rest,
}

impl ProgramKind {
    /// What it is, as text.
    pub fn words(self) -> &'static str {
        match self {
            ProgramKind::Server => "the server",
            ProgramKind::Node => "another server or node of the recording",
            ProgramKind::Client => "a client of the server",
            ProgramKind::Other => "another program",
            ProgramKind::Unclear => "a client or another program",
            ProgramKind::Whyso => "measures and records",
            ProgramKind::Rest => {
                "the kernel's threads, other PID namespaces, and processes that are too short or use too little"
            }
        }
    }
}

/// All processes of one name, over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    pub kind: ProgramKind,
    pub name: String,
    /// CPUs that it kept busy, in the mean.
    pub cpus: f64,
    /// Read from devices and sent towards them; `None` where that is not counted.
    pub disk_bytes_per_s: Option<f64>,
    /// Memory in RAM; `None` where that is not counted.
    pub resident_bytes: Option<f64>,
}

/// The programs of a machine, the one with the most CPU time first; what is left comes last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Programs {
    pub each: Vec<Program>,
    /// CPUs of the machine; `None` where their time was not read.
    pub cpus: Option<f64>,
}

/// Of a CPU: what is left is not worth a line below it.
const REST_MIN: f64 = 0.005;
const SERVER: &str = "server";

impl Programs {
    /// Whether a series is one of those that this is made of.
    pub fn has(source: &str, metric: &str) -> bool {
        match source {
            "neighbours" => true,
            "server_process" | "generator_process" => metric == "run_ns",
            "cpu" => is_busy(metric).is_some(),
            _ => false,
        }
    }

    /// Returns the programs of one machine, whose series these are. `None` where none was read.
    pub fn of(counters: &[Counter], gauges: &[Gauge], seconds: f64) -> Option<Programs> {
        if seconds.is_nan() || seconds <= 0.0 {
            return None;
        }
        let sound = |counter: &&Counter| (0.0..1e24).contains(&counter.increase);
        let mut each: Vec<Program> = counters
            .iter()
            .filter(sound)
            .filter_map(|counter| {
                let (kind, name) = program(&counter.series)?;
                let named = |metric: &str, series: &SeriesName| {
                    series.source == "neighbours" && series.metric == metric && series.instance == name
                };
                let is_other = kind == ProgramKind::Other;
                let disk = counters.iter().filter(sound).find(|disk| named("disk_bytes", &disk.series));
                let resident = gauges.iter().find(|gauge| named("resident_bytes", &gauge.series));
                Some(Program {
                    kind,
                    name: name.to_string(),
                    cpus: counter.increase / 1e9 / seconds,
                    disk_bytes_per_s: disk.filter(|_| is_other).map(|disk| disk.increase / seconds),
                    resident_bytes: resident.filter(|_| is_other).map(|gauge| gauge.mean),
                })
            })
            .collect();
        if each.is_empty() {
            return None;
        }
        each.retain(|program| program.cpus > 0.0);
        each.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then_with(|| a.name.cmp(&b.name)));
        let of_cpus = || {
            let all = counters.iter().filter(sound).filter(|counter| counter.series.source == "cpu");
            all.filter(|counter| counter.series.instance == "all").filter_map(|counter| {
                Some((is_busy(&counter.series.metric)?, counter.increase / 1e9 / seconds))
            })
        };
        let cpus = of_cpus().map(|(_, cpus)| cpus).sum::<f64>();
        let busy = of_cpus().filter(|(is_busy, _)| *is_busy).map(|(_, cpus)| cpus).sum::<f64>();
        let left = busy - each.iter().map(|program| program.cpus).sum::<f64>();
        if left >= REST_MIN {
            each.push(Program {
                kind: ProgramKind::Rest,
                name: "the rest".to_string(),
                cpus: left,
                disk_bytes_per_s: None,
                resident_bytes: None,
            });
        }
        Some(Programs { each, cpus: (cpus > 0.0).then(|| cpus.round().max(1.0)) })
    }
}

/// Whether a part of the CPUs' time is busy; `None`: it is part of another one, or no time.
fn is_busy(metric: &str) -> Option<bool> {
    match metric {
        "user_ns" | "nice_ns" | "system_ns" | "irq_ns" | "softirq_ns" => Some(true),
        "idle_ns" | "iowait_ns" | "steal_ns" => Some(false),
        _ => None,
    }
}

/// The program whose CPU time a series is.
fn program(series: &SeriesName) -> Option<(ProgramKind, &str)> {
    let SeriesName { host, source, metric, instance } = series;
    match (source.as_str(), metric.as_str()) {
        ("neighbours", "cpu_ns") => Some((ProgramKind::Other, instance)),
        ("neighbours", "clients_cpu_ns") => Some((ProgramKind::Client, instance)),
        ("neighbours", "unclear_cpu_ns") => Some((ProgramKind::Unclear, instance)),
        ("server_process", "run_ns") if instance == SERVER && host == SERVER => {
            Some((ProgramKind::Server, "server"))
        }
        ("server_process", "run_ns") if instance == SERVER => Some((ProgramKind::Node, host)),
        ("generator_process", "run_ns") if instance == "generator" => Some((ProgramKind::Whyso, "whyso")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(host: &str, source: &str, metric: &str, instance: &str, seconds: f64) -> Counter {
        let [host, source, metric, instance] = [host, source, metric, instance].map(str::to_string);
        let series = SeriesName { host, source, metric, instance };
        Counter { series, unit: "ns".to_string(), increase: seconds * 1e9 }
    }

    #[test]
    fn programs_are_ordered_by_their_cpu_time_and_the_rest_is_what_no_program_used() {
        let counters = [
            counter("server", "cpu", "user_ns", "all", 12.0),
            counter("server", "cpu", "system_ns", "all", 4.0),
            counter("server", "cpu", "guest_ns", "all", 9.0),
            counter("server", "cpu", "idle_ns", "all", 4.0),
            counter("server", "cpu", "idle_ns", "cpu0", 4.0),
            counter("server", "server_process", "run_ns", "server", 8.0),
            counter("server", "server_process", "run_ns", "server/1", 8.0),
            counter("node-2", "server_process", "run_ns", "server", 1.0),
            counter("server", "neighbours", "cpu_ns", "backup", 3.0),
            counter("server", "neighbours", "clients_cpu_ns", "backup", 0.0),
            counter("server", "neighbours", "clients_cpu_ns", "app", 2.0),
            counter("client", "generator_process", "run_ns", "generator", 0.5),
            counter("server", "neighbours", "disk_bytes", "backup", 1.0),
        ];
        let series = SeriesName { metric: "resident_bytes".to_string(), ..counters[8].series.clone() };
        let memory = Gauge { series, unit: "bytes".to_string(), mean: 5.0, max: 6.0 };
        let programs = Programs::of(&counters, &[memory], 10.0).unwrap();
        let found: Vec<_> =
            programs.each.iter().map(|program| (program.kind, program.name.as_str(), program.cpus)).collect();
        assert_eq!(
            found[..5],
            [
                (ProgramKind::Server, "server", 0.8),
                (ProgramKind::Other, "backup", 0.3),
                (ProgramKind::Client, "app", 0.2),
                (ProgramKind::Node, "node-2", 0.1),
                (ProgramKind::Whyso, "whyso", 0.05),
            ]
        );
        let rest = &programs.each[5];
        assert!(rest.kind == ProgramKind::Rest && (rest.cpus - 0.15).abs() < 1e-9, "{rest:?}");
        assert_eq!(programs.cpus, Some(2.0));
        assert_eq!(
            (programs.each[1].disk_bytes_per_s, programs.each[1].resident_bytes),
            (Some(1e8), Some(5.0))
        );
        assert!(programs.each[2].disk_bytes_per_s.is_none());
    }

    #[test]
    fn a_machine_whose_programs_were_not_read_has_none() {
        let idle = [counter("server", "cpu", "idle_ns", "all", 4.0)];
        assert_eq!(Programs::of(&idle, &[], 10.0), None);
        let programs = [counter("server", "neighbours", "cpu_ns", "sh", f64::NAN)];
        assert_eq!(Programs::of(&programs, &[], 10.0), None);
        assert_eq!(Programs::of(&programs, &[], 0.0), None);
    }
}
