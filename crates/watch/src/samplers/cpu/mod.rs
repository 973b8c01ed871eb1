//! CPU time of the machine, its switches and its load, from `/proc/stat` and `/proc/loadavg`.
//!
//! Instance `all` is the whole machine, `cpu0` and so on each logical CPU. The kernel gives ticks
//! (mostly 10 ms), which are multiplied out to nanoseconds. `guest_ns` is part of `user_ns`.

use whyso_record::data::Value;

use crate::metric::{Metric, counter, gauge};
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler};
use crate::sink::Batch;
use crate::text::{KernelFile, Machine, number};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["cpu"],
    counts: "CPU time, switches, load",
    origin: "`/proc/stat`, `/proc/loadavg`",
    metrics: &[&TIMES, &COUNTS, &LOAD],
    start: |context| vec![ScheduledSampler::of_machine(Cpu::new(context.machine))],
};

/// In the order of the columns of `/proc/stat`, see proc_stat(5).
pub(crate) const TIMES: [Metric; 9] = [
    counter("user_ns", "ns", "time in user code, that of guests included"),
    counter("nice_ns", "ns", "time in user code of lowered priority"),
    counter("system_ns", "ns", "time in the kernel"),
    counter("idle_ns", "ns", "time with nothing to run"),
    counter("iowait_ns", "ns", "idle time while some task waited for a disk"),
    counter("irq_ns", "ns", "time in interrupts"),
    counter("softirq_ns", "ns", "time in deferred interrupt work, mostly the network"),
    counter("steal_ns", "ns", "time that the hypervisor gave to others"),
    counter("guest_ns", "ns", "time of this machine's own guests, part of user_ns"),
];

pub(crate) const COUNTS: [Metric; 6] = [
    counter("context_switches", "1", "times that a CPU went from one task to another"),
    counter("interrupts", "1", "interrupts served"),
    counter("softirqs", "1", "deferred interrupts served"),
    counter("forks", "1", "processes and threads that were started"),
    gauge("running", "1", "tasks that run or want a CPU"),
    gauge("blocked", "1", "tasks that wait for a disk"),
];
/// The words that `/proc/stat` has for [`COUNTS`].
const COUNT_WORDS: [&str; 6] = ["ctxt", "intr", "softirq", "processes", "procs_running", "procs_blocked"];

pub(crate) const LOAD: [Metric; 4] = [
    gauge("load_1min", "1", "running or blocked tasks, mean of about a minute"),
    gauge("load_5min", "1", "running or blocked tasks, mean of about five minutes"),
    gauge("load_15min", "1", "running or blocked tasks, mean of about a quarter of an hour"),
    gauge("tasks", "1", "threads that exist on the machine"),
];

pub(crate) struct Cpu {
    stat: KernelFile,
    loadavg: KernelFile,
    tick_ns: u64,
}

impl Cpu {
    pub(crate) fn new(machine: Machine) -> Cpu {
        Cpu {
            stat: KernelFile::new("/proc/stat"),
            loadavg: KernelFile::new("/proc/loadavg"),
            tick_ns: machine.tick_ns,
        }
    }
}

impl Sampler for Cpu {
    fn source(&self) -> &'static str {
        "cpu"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        match self.stat.read() {
            Ok(text) => parse_stat(&text, self.tick_ns, batch),
            Err(error) => return Err(Failure::quick(self.stat.failure(&error))),
        }
        match self.loadavg.read() {
            Ok(text) => parse_loadavg(&text, batch),
            Err(error) => batch.absent(self.loadavg.failure(&error)),
        }
        Ok(())
    }
}

fn parse_stat(text: &str, tick_ns: u64, batch: &mut Batch<'_>) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(word) = words.next() else {
            continue;
        };
        if let Some(cpu) = word.strip_prefix("cpu") {
            let instance = if cpu.is_empty() { "all" } else { word };
            for (metric, ticks) in TIMES.iter().zip(words) {
                if let Some(ticks) = number(ticks) {
                    batch.put(metric, instance, ticks.saturating_mul(tick_ns));
                }
            }
            continue;
        }
        let Some(position) = COUNT_WORDS.iter().position(|name| *name == word) else {
            continue;
        };
        // Of `intr` and `softirq` the first number is the total; the rest is by line of interrupt.
        if let Some(count) = words.next().and_then(number) {
            batch.put(&COUNTS[position], "", count);
        }
    }
}

fn parse_loadavg(text: &str, batch: &mut Batch<'_>) {
    let mut words = text.split_ascii_whitespace();
    for metric in &LOAD[..3] {
        let Some(load) = words.next().and_then(|word| word.parse::<f64>().ok()) else {
            return;
        };
        if load.is_finite() {
            batch.put_value(metric, "", Value::Float(load));
        }
    }
    let tasks = words.next().and_then(|word| word.split_once('/'));
    if let Some(tasks) = tasks.and_then(|(_, tasks)| number(tasks)) {
        batch.put(&LOAD[3], "", tasks);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sink::memory::collect;

    const STAT: &str = include_str!("../../../tests/data/stat");

    #[test]
    fn the_machine_and_each_cpu_have_their_times() {
        let values = collect(|batch| parse_stat(STAT, 10_000_000, batch));
        assert_eq!(values["user_ns all"], 181_359.0 * 1e7);
        assert_eq!(values["user_ns cpu1"], 90_667.0 * 1e7);
        assert_eq!(values["steal_ns cpu0"], 57.0 * 1e7);
        assert_eq!(values["context_switches"], 2_093_437.0);
        assert_eq!(values["interrupts"], 1_467_829.0);
        assert_eq!(values["running"], 3.0);
        assert_eq!(values.len(), 3 * 9 + 6);
    }

    #[test]
    fn the_load_is_read() {
        let values = collect(|batch| parse_loadavg("0.04 0.58 0.87 1/105 16468\n", batch));
        assert_eq!(values["load_5min"], 0.58);
        assert_eq!(values["tasks"], 105.0);
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in "(?s)(cpu[0-9]{0,3}|ctxt|intr|[ -~]{0,9})?.{0,200}") {
            collect(|batch| {
                parse_stat(&text, u64::MAX, batch);
                parse_loadavg(&text, batch);
            });
        }
    }
}
