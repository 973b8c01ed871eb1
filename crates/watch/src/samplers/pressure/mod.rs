//! Time in which tasks had to wait for a CPU, for memory or for a disk: the kernel's
//! pressure stall information, `/proc/pressure/*`, see Documentation/accounting/psi.rst.
//!
//! Instances are `cpu`, `io` and `memory`. Only the cumulative totals are kept; the kernel's
//! averages follow from them for any window.

use crate::metric::{Metric, counter};
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler};
use crate::sink::Batch;
use crate::text::{KernelFile, number};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["pressure"],
    counts: "time in which tasks waited for CPU, memory or disk",
    origin: "`/proc/pressure`",
    metrics: &[&METRICS],
    start: |_| vec![ScheduledSampler::of_machine(Pressure::new())],
};

pub(crate) const METRICS: [Metric; 2] = [
    counter("some_ns", "ns", "time in which at least one task was held up"),
    counter("full_ns", "ns", "time in which every task that was not idle was held up"),
];

const RESOURCES: [&str; 3] = ["cpu", "io", "memory"];

pub(crate) struct Pressure {
    files: Vec<(&'static str, KernelFile)>,
}

impl Pressure {
    pub(crate) fn new() -> Pressure {
        let mut files = Vec::new();
        for resource in RESOURCES {
            let path = format!("/proc/pressure/{resource}");
            files.push((resource, KernelFile::new(path)));
        }
        Pressure { files }
    }
}

impl Sampler for Pressure {
    fn source(&self) -> &'static str {
        "pressure"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let mut absent = None;
        for (resource, file) in &mut self.files {
            match file.read() {
                Ok(text) => parse(&text, resource, batch),
                Err(error) => absent = Some(file.failure(&error)),
            }
        }
        match absent {
            Some(why) if batch.values.is_empty() => {
                Err(Failure::Absent(format!("pressure stall information is off in this kernel ({why})")))
            }
            Some(why) => {
                batch.absent(why);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn parse(text: &str, resource: &str, batch: &mut Batch<'_>) {
    for line in text.lines() {
        let metric = match line.split_ascii_whitespace().next() {
            Some("some") => &METRICS[0],
            Some("full") => &METRICS[1],
            _ => continue,
        };
        let total = line.rsplit_once("total=").map(|(_, total)| total.trim());
        if let Some(total_us) = total.and_then(number) {
            batch.put(metric, resource, total_us.saturating_mul(1_000));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sink::memory::collect;

    #[test]
    fn totals_become_nanoseconds() {
        let text = "some avg10=1.13 avg60=0.55 avg300=0.51 total=25826885\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        let values = collect(|batch| parse(text, "io", batch));
        assert_eq!(values["some_ns io"], 25_826_885e3);
        assert_eq!(values["full_ns io"], 7e3);
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in "(?s)(some|full)?.{0,80}(total=)?.{0,20}") {
            collect(|batch| parse(&text, "cpu", batch));
        }
    }
}
