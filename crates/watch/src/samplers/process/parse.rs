//! The texts of `/proc/PID`, see proc_pid_stat(5), proc_pid_status(5), proc_pid_io(5) and
//! Documentation/scheduler/sched-stats.rst.

use crate::metric::{Metric, gauge};
use crate::sink::Batch;
use crate::text::{first_number, number};

pub(crate) const MEMORY: [Metric; 4] = [
    gauge("peak_resident_bytes", "bytes", "most memory that the process ever had in RAM"),
    gauge("anonymous_bytes", "bytes", "resident memory without a file behind it"),
    gauge("swapped_bytes", "bytes", "memory of the process that was swapped out"),
    gauge("virtual_bytes", "bytes", "address space of the process"),
];
const MEMORY_WORDS: [&str; 4] = ["VmHWM", "RssAnon", "VmSwap", "VmSize"];

const IO_WORDS: [&str; 6] = ["rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    pub(crate) threads: u64,
    pub(crate) start_ticks: u64,
    pub(crate) resident_pages: u64,
    pub(crate) io_delay_ticks: u64,
}

/// `None` for what is no `stat` line. The command may contain spaces and parentheses: what counts
/// begins after the last `)`.
pub(crate) fn parse_stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?.chars().next()?;
    // `numbers[i]` is field i + 4 of the manual.
    let mut numbers = [0_u64; 39];
    let mut count = 0;
    for (slot, word) in numbers.iter_mut().zip(words) {
        // Some fields are negative (priority, terminal); none of those is used.
        *slot = number(word).unwrap_or(0);
        count += 1;
    }
    let field = |number: usize| numbers[number - 4];
    if count < 24 - 3 {
        return None;
    }
    Some(Stat {
        state,
        minor_faults: field(10),
        major_faults: field(12),
        user_ticks: field(14),
        system_ticks: field(15),
        threads: field(20),
        start_ticks: field(22),
        resident_pages: field(24),
        io_delay_ticks: field(42),
    })
}

pub(super) fn parse_status(text: &str, instance: &str, batch: &mut Batch<'_>) {
    for line in text.lines() {
        let Some((word, rest)) = line.split_once(':') else {
            continue;
        };
        let Some(position) = MEMORY_WORDS.iter().position(|name| *name == word) else {
            continue;
        };
        if let Some(kib) = first_number(rest) {
            batch.put(&MEMORY[position], instance, kib.saturating_mul(1024));
        }
    }
}

/// `metrics` are those of [`IO_WORDS`], in that order.
pub(super) fn parse_io(text: &str, metrics: &[Metric], instance: &str, batch: &mut Batch<'_>) {
    for line in text.lines() {
        let Some((word, rest)) = line.split_once(':') else {
            continue;
        };
        let position = IO_WORDS.iter().position(|name| *name == word);
        let Some(metric) = position.and_then(|position| metrics.get(position)) else {
            continue;
        };
        if let Some(value) = first_number(rest) {
            batch.put(metric, instance, value);
        }
    }
}

/// Time on a CPU, time ready without one, times put on one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedStat {
    pub(crate) run_ns: u64,
    pub(crate) runqueue_ns: u64,
    pub(crate) timeslices: u64,
}

impl SchedStat {
    pub(super) fn add(&mut self, other: SchedStat) {
        self.run_ns = self.run_ns.saturating_add(other.run_ns);
        self.runqueue_ns = self.runqueue_ns.saturating_add(other.runqueue_ns);
        self.timeslices = self.timeslices.saturating_add(other.timeslices);
    }

    /// What was added since `before`; the whole where a counter went back, since then it is
    /// another thread of the same number.
    pub(super) fn since(self, before: SchedStat) -> SchedStat {
        if self.run_ns < before.run_ns || self.timeslices < before.timeslices {
            return self;
        }
        SchedStat {
            run_ns: self.run_ns - before.run_ns,
            runqueue_ns: self.runqueue_ns.saturating_sub(before.runqueue_ns),
            timeslices: self.timeslices - before.timeslices,
        }
    }
}

pub(super) fn parse_schedstat(text: &str) -> Option<SchedStat> {
    let mut words = text.split_ascii_whitespace();
    Some(SchedStat {
        run_ns: number(words.next()?)?,
        runqueue_ns: number(words.next()?)?,
        timeslices: number(words.next()?)?,
    })
}

/// Voluntary and involuntary switches of a thread's `status`.
pub(super) fn parse_switches(text: &str) -> Option<(u64, u64)> {
    // They are the last two lines; the thirty before need not be read.
    let (rest, involuntary) = text.rsplit_once("nonvoluntary_ctxt_switches:")?;
    let (_, voluntary) = rest.rsplit_once("voluntary_ctxt_switches:")?;
    Some((first_number(voluntary)?, first_number(involuntary)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sink::memory::collect;

    const STAT: &str = include_str!("../../../tests/data/pid_stat");
    const STATUS: &str = include_str!("../../../tests/data/pid_status");

    #[test]
    fn a_command_with_parentheses_is_no_obstacle() {
        let stat = parse_stat(STAT).unwrap();
        assert_eq!(stat.state, 'S');
        assert_eq!(stat.user_ticks, 812);
        assert_eq!(stat.system_ticks, 365);
        assert_eq!(stat.threads, 13);
        assert_eq!(stat.start_ticks, 170_164);
        assert_eq!(stat.resident_pages, 22_412);
        assert_eq!(stat.io_delay_ticks, 77);
        assert_eq!(parse_stat("17 (x) S 1 2"), None);
    }

    #[test]
    fn memory_and_switches_come_from_status() {
        let values = collect(|batch| parse_status(STATUS, "server", batch));
        assert_eq!(values["peak_resident_bytes server"], 1760.0 * 1024.0);
        assert_eq!(values.len(), 4);
        assert_eq!(parse_switches(STATUS), Some((21, 4)));
    }

    #[test]
    fn a_thread_of_the_same_number_counts_from_zero() {
        let before = parse_schedstat("1000 50 7\n").unwrap();
        let after = parse_schedstat("1500 60 9\n").unwrap();
        assert_eq!(after.since(before), parse_schedstat("500 10 2").unwrap());
        let other = parse_schedstat("400 5 1").unwrap();
        assert_eq!(other.since(before), other);
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in "(?s)(1 \\(a\\) S |VmHWM:|rchar: )?[0-9 -]{0,60}.{0,200}") {
            parse_stat(&text);
            parse_schedstat(&text);
            parse_switches(&text);
            collect(|batch| {
                parse_status(&text, "x", batch);
                parse_io(&text, &crate::samplers::process::METRICS[11..17], "x", batch);
            });
        }
    }
}
