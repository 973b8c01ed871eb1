//! Did something else use the machine's CPUs meanwhile? Neither the server nor the generator: a
//! backup, a build, or another machine behind the hypervisor. It disturbs every level that it meets.

use crate::level::{Level, levels_evidence, levels_of};
use crate::model::{Evidence, Finding, Machine, SeriesName};
use crate::neighbours::Neighbours;

/// A level counts as disturbed from this share on of the CPUs that the server and the generator may use. It is that of other programs.
/// Below lie interrupts and the kernel's own threads.
const OTHERS_MIN: f64 = 0.15;

/// The kernel counts CPU time by ticks, which misses: less than this many CPUs is never reported.
const OTHERS_MIN_CPUS: f64 = 0.2;

/// A level counts as disturbed from this share on of the machine's CPU time that the hypervisor gave to other machines. Two runs of the
/// same level differ by a twentieth anyway.
pub(crate) const STOLEN_MIN: f64 = 0.05;

/// Metrics of the sampler "cpu" that add up to the time in which a CPU was not idle.
const BUSY: [&str; 5] = ["user_ns", "nice_ns", "system_ns", "irq_ns", "softirq_ns"];

/// Whether it is a part of the time in which a CPU, or all of them, was not idle.
pub(crate) fn is_busy_time(series: &SeriesName) -> bool {
    series.source == "cpu" && BUSY.contains(&series.metric.as_str())
}

/// What other programs of this machine took.
pub(crate) fn programs_finding(levels: &[Level], machine: &Machine) -> Option<Finding> {
    let disturbed = disturbed(levels, |level| disturbing_cpus(level, machine))?;
    let named = levels.iter().find(|level| level.index == disturbed.index).and_then(|level| {
        let words = Neighbours::of(level)?.in_words(machine);
        (!words.is_empty()).then(|| format!(" ({words})"))
    });
    let text = format!(
        "Other programs used the machine's CPUs meanwhile, neither the server nor the generator: up to {} CPUs, at {}{}. \
         That disturbed {}; measure again on a quiet machine.",
        whyso_words::number(disturbed.most),
        disturbed.worst,
        named.unwrap_or_default(),
        disturbed.which,
    );
    Some(Finding { id: "other-load".to_string(), text, evidence: vec![disturbed.evidence] })
}

/// "other programs used up to 2.1 CPUs, at 4 users".
pub(crate) fn programs_in_short(levels: &[Level], machine: &Machine) -> Option<String> {
    let disturbed = disturbed(levels, |level| disturbing_cpus(level, machine))?;
    Some(format!(
        "other programs used up to {} CPUs, at {}",
        whyso_words::number(disturbed.most),
        disturbed.worst
    ))
}

/// Share of the CPUs' time that the hypervisor took at this level, where it is enough to disturb it.
fn stolen(level: &Level) -> Option<f64> {
    level.cpu.map(|cpu| cpu.steal).filter(|steal| (STOLEN_MIN..=1.0).contains(steal))
}

/// "the hypervisor took up to 12 % of the CPUs' time, at 4 users".
pub(crate) fn steal_in_short(levels: &[Level]) -> Option<String> {
    let disturbed = disturbed(levels, stolen)?;
    Some(format!(
        "the hypervisor took up to {} of the CPUs' time, at {}",
        whyso_words::percent(disturbed.most),
        disturbed.worst
    ))
}

/// What the hypervisor gave to other machines.
pub(crate) fn steal_finding(levels: &[Level]) -> Option<Finding> {
    let disturbed = disturbed(levels, stolen)?;
    let text = format!(
        "The hypervisor ran other machines on this machine's CPUs (steal): it took up to {} of their time, at {}, and \
         what ran then took that much longer. That disturbed {}; measure again when the host is quiet, or on CPUs \
         that are not shared.",
        whyso_words::percent(disturbed.most),
        disturbed.worst,
        disturbed.which,
    );
    Some(Finding { id: "steal".to_string(), text, evidence: vec![disturbed.evidence] })
}

/// Levels that something met, as text.
struct Disturbance {
    most: f64,
    /// The level that it met most.
    worst: String,
    index: u32,
    which: String,
    evidence: Evidence,
}

/// `None` where `took` gives nothing at any level.
fn disturbed(levels: &[Level], took: impl Fn(&Level) -> Option<f64>) -> Option<Disturbance> {
    let mut shown = Vec::new();
    let mut worst: Option<(f64, &Level)> = None;
    for level in levels {
        let Some(amount) = took(level) else { continue };
        shown.push(level);
        if worst.is_none_or(|(most, _)| amount > most) {
            worst = Some((amount, level));
        }
    }
    let (most, level) = worst?;
    let evidence = levels_evidence("cpu", &shown);
    let which = if shown.len() == levels.len() {
        "every level".to_string()
    } else {
        shown.sort_by_key(|level| level.users);
        shown.dedup_by(|one, other| one.name() == other.name());
        levels_of(&shown)
    };
    Some(Disturbance { most, worst: level.name(), index: level.index, which, evidence })
}

/// CPUs' worth of other programs, where it is enough to disturb the level.
pub(crate) fn disturbing_cpus(level: &Level, machine: &Machine) -> Option<f64> {
    // Where the two keep to CPUs of their own, others on the rest of the machine disturb less, and
    // how much can't be distinguished from totals.
    if !machine.shared || machine.server_cpus == 0 {
        return None;
    }
    let least = OTHERS_MIN_CPUS.max(OTHERS_MIN * f64::from(machine.server_cpus));
    others_cpus(level, machine).filter(|&cpus| cpus >= least)
}

/// Seconds in which CPUs of the server's own were not idle, all of them together; `None` where their numbers or their
/// accounts are not known.
pub(crate) fn busy_s_of_server_cpus(level: &Level, machine: &Machine) -> Option<f64> {
    let is_server_cpu = |instance: &str| {
        let number = instance.strip_prefix("cpu").and_then(|number| number.parse::<u32>().ok());
        number.is_some_and(|number| machine.server_cpu_numbers.contains(&number))
    };
    let is_busy = |counter: &&crate::model::Counter| {
        is_busy_time(&counter.series) && is_server_cpu(&counter.series.instance)
    };
    let busy: Vec<f64> =
        level.counters.iter().filter(is_busy).map(|counter| counter.increase.max(0.0) / 1e9).collect();
    let busy_s: f64 = busy.iter().sum();
    (!busy.is_empty() && busy_s.is_finite()).then_some(busy_s)
}

/// CPUs' worth of time that was neither the server's nor the generator's, nor that of the cluster's other nodes; `None` where a part is unknown.
fn others_cpus(level: &Level, machine: &Machine) -> Option<f64> {
    if level.client_cpu_s <= 0.0 {
        // Of what something else loads, clients are known by their sockets, and no remainder can be distinguished from them.
        return Neighbours::of(level).map(|neighbours| neighbours.cpus());
    }
    let server_cpu_s = level.server_cpu_s?;
    if level.seconds <= 0.0 {
        return None;
    }
    let mut busy_s = 0.0;
    for counter in level.counters {
        let is_total = matches!(counter.series.instance.as_str(), "" | "all");
        if is_total && is_busy_time(&counter.series) && counter.increase > 0.0 {
            busy_s += counter.increase / 1e9;
        }
    }
    if busy_s <= 0.0 && machine.server_cpus == machine.client_cpus {
        let cpu = level.cpu?;
        busy_s = (cpu.user + cpu.system) * f64::from(machine.server_cpus) * level.seconds;
    }
    let other_nodes_s = crate::nodes::others_cpu_s(level);
    let others = (busy_s - server_cpu_s - other_nodes_s - level.client_cpu_s) / level.seconds;
    others.is_finite().then_some(others)
}
