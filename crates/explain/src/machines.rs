//! Machines other than the server's: which of them had no CPU time left, and what took it.

use crate::level::Level;
use crate::model::{Counter, Evidence, Finding, MachineInput};

/// From this share of its CPUs' time on, a machine is full.
const FULL: f64 = 0.95;
/// Programs that are named, and the least that is worth a name: a tenth of a CPU.
const NAMED_MAX: usize = 2;
const NAMED_MIN: f64 = 0.1;

/// A machine whose CPUs were full at a level.
struct FullMachine<'a> {
    machine: &'a MachineInput,
    level: &'a Level<'a>,
    busy: f64,
}

/// Names the machines whose CPUs were full, each at the level at which it was busiest; `None` where none was.
pub(crate) fn finding(levels: &[Level]) -> Option<Finding> {
    let mut full: Vec<FullMachine> = Vec::new();
    for level in levels {
        for machine in level.machines {
            let Some(busy) = busy_share(machine).filter(|busy| *busy >= FULL) else { continue };
            let next = FullMachine { machine, level, busy };
            match full.iter_mut().find(|other| other.machine.name == machine.name) {
                Some(before) if before.busy < busy => *before = next,
                Some(_) => {}
                None => full.push(next),
            }
        }
    }
    if full.is_empty() {
        return None;
    }
    let sentences: Vec<String> = full.iter().map(FullMachine::sentence).collect();
    let evidence = full.iter().flat_map(FullMachine::evidence).collect();
    Some(Finding { id: "machine-full".to_string(), text: sentences.join(" "), evidence })
}

/// Share of the time in which the machine's CPUs were busy; `None` where that was not recorded.
fn busy_share(machine: &MachineInput) -> Option<f64> {
    let of_cpus = machine.counters.iter().filter(|counter| counter.series.source == "cpu");
    let (mut busy_ns, mut all_ns) = (0.0, 0.0);
    for counter in of_cpus.filter(|counter| (0.0..1e24).contains(&counter.increase)) {
        let is_busy = match counter.series.metric.as_str() {
            "user_ns" | "nice_ns" | "system_ns" | "irq_ns" | "softirq_ns" => true,
            "idle_ns" | "iowait_ns" | "steal_ns" => false,
            _ => continue,
        };
        all_ns += counter.increase;
        if is_busy {
            busy_ns += counter.increase;
        }
    }
    (all_ns > 0.0).then(|| busy_ns / all_ns)
}

impl FullMachine<'_> {
    /// Programs that took CPU time, the one with the most first.
    fn programs(&self) -> Vec<(&Counter, f64)> {
        let of_programs =
            self.machine.counters.iter().filter(|counter| counter.series.source == "neighbours");
        let cpus = |counter: &Counter| counter.increase / 1e9 / self.level.seconds.max(1e-9);
        let mut found: Vec<(&Counter, f64)> = of_programs.map(|counter| (counter, cpus(counter))).collect();
        found.retain(|(_, cpus)| (NAMED_MIN..1e6).contains(cpus));
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.series.instance.cmp(&b.0.series.instance)));
        found.truncate(NAMED_MAX);
        found
    }

    fn sentence(&self) -> String {
        let name = match self.machine.is_generator {
            true => "the machine of the load",
            false => &self.machine.name,
        };
        let named: Vec<String> = self
            .programs()
            .iter()
            .map(|(counter, cpus)| {
                format!("{} {} of a CPU", counter.series.instance, whyso_words::percent(*cpus))
            })
            .collect();
        let by = if named.is_empty() { String::new() } else { format!(" ({})", whyso_words::list(&named)) };
        let busy = whyso_words::percent(self.busy.min(1.0));
        let so = if self.machine.is_generator { "; the load is slower for it" } else { "" };
        format!("The CPUs of {name} were full at {}: {busy} of their time{by}{so}.", self.level.name())
    }

    fn evidence(&self) -> Vec<Evidence> {
        let of_cpus = self.machine.counters.iter().filter(|counter| counter.series.metric == "idle_ns");
        let named = of_cpus.chain(self.programs().into_iter().map(|(counter, _)| counter));
        named
            .map(|counter| Evidence::Series {
                series: counter.series.clone(),
                begin_ns: self.level.begin_ns,
                end_ns: self.level.end_ns,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Input, LevelInput, SeriesName};

    use super::*;

    fn counter(source: &str, metric: &str, instance: &str, seconds: f64) -> Counter {
        let [host, source, metric, instance] = ["load-1", source, metric, instance].map(str::to_string);
        let series = SeriesName { host, source, metric, instance };
        Counter { series, unit: "ns".to_string(), increase: seconds * 1e9 }
    }

    /// Ten seconds on a machine of two CPUs; `idle`: seconds in which one had nothing to do.
    fn finding_of(name: &str, is_generator: bool, idle: f64) -> Option<Finding> {
        let counters = vec![
            counter("cpu", "user_ns", "all", 20.0 - idle),
            counter("cpu", "guest_ns", "all", 20.0),
            counter("cpu", "idle_ns", "all", idle),
            counter("neighbours", "cpu_ns", "python3", 15.0),
            counter("neighbours", "cpu_ns", "cron", 0.2),
        ];
        let machine = MachineInput { name: name.to_string(), is_generator, counters };
        let level = LevelInput {
            users: 8,
            end_ns: 10_000_000_000,
            transactions: 100,
            machines: vec![machine],
            ..LevelInput::default()
        };
        let input = Input { levels: vec![level], ..Input::default() };
        let findings = crate::explain(&input).findings;
        findings.into_iter().find(|finding| finding.id == "machine-full")
    }

    #[test]
    fn a_machine_without_cpu_time_is_named_with_what_took_it() {
        let finding = finding_of("load-1", false, 0.5).unwrap();
        assert_eq!(
            finding.text,
            "The CPUs of load-1 were full at 8 users: 98 % of their time (python3 150 % of a CPU)."
        );
        assert_eq!(finding.evidence.len(), 2);
        let generator = finding_of("client", true, 0.0).unwrap();
        assert!(
            generator.text.starts_with("The CPUs of the machine of the load were full"),
            "{}",
            generator.text
        );
    }

    #[test]
    fn a_machine_with_cpu_time_left_is_not_named() {
        assert_eq!(finding_of("load-1", false, 4.0), None);
    }
}
