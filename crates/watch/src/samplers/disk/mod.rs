//! Whole disks, from `/proc/diskstats`: one instance a device.
//!
//! Partitions, loop and RAM devices are left out, and so are devices that were never used.
//! Layered devices (`dm-0`, `md0`) are counted in addition to those below them: do not add them up.

use std::collections::HashMap;
use std::path::Path;

use crate::metric::{Metric, counter, gauge};
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler};
use crate::sink::Batch;
use crate::text::{KernelFile, number};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["disk"],
    counts: "whole disks",
    origin: "`/proc/diskstats`",
    metrics: &[&METRICS],
    start: |_| vec![ScheduledSampler::of_machine(Disk::new())],
};

/// In the order of the columns, see Documentation/admin-guide/iostats.rst.
pub(crate) const METRICS: [Metric; 17] = [
    counter("reads", "1", "reads completed"),
    counter("reads_merged", "1", "reads joined to a neighbouring one"),
    counter("read_bytes", "bytes", "read from the device"),
    counter("read_ns", "ns", "sum of the time that reads took, waiting included"),
    counter("writes", "1", "writes completed"),
    counter("writes_merged", "1", "writes joined to a neighbouring one"),
    counter("write_bytes", "bytes", "written to the device"),
    counter("write_ns", "ns", "sum of the time that writes took, waiting included"),
    gauge("in_flight", "1", "requests under way"),
    counter("busy_ns", "ns", "time with at least one request under way"),
    counter("queue_ns", "ns", "sum of the time that all requests took: its rate is the mean queue"),
    counter("discards", "1", "discards completed"),
    counter("discards_merged", "1", "discards joined to a neighbouring one"),
    counter("discard_bytes", "bytes", "discarded on the device"),
    counter("discard_ns", "ns", "sum of the time that discards took"),
    counter("flushes", "1", "flushes of the device's cache completed"),
    counter("flush_ns", "ns", "sum of the time that flushes took"),
];

/// Sectors of this file have 512 bytes whatever the device.
const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;

pub(crate) struct Disk {
    file: KernelFile,
    /// Whether a device is a whole disk; asked of sysfs once a name.
    whole: HashMap<String, bool>,
}

impl Disk {
    pub(crate) fn new() -> Disk {
        Disk { file: KernelFile::new("/proc/diskstats"), whole: HashMap::new() }
    }
}

impl Sampler for Disk {
    fn source(&self) -> &'static str {
        "disk"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let whole = &mut self.whole;
        let text = match self.file.read() {
            Ok(text) => text,
            Err(error) => {
                let why = format!("cannot read /proc/diskstats: {error}");
                return Err(Failure::quick(why));
            }
        };
        parse(&text, |device| is_whole_disk(device, whole), batch);
        Ok(())
    }
}

fn is_whole_disk(device: &str, whole_by_device: &mut HashMap<String, bool>) -> bool {
    if let Some(whole) = whole_by_device.get(device) {
        return *whole;
    }
    let virtual_device = device.starts_with("loop") || device.starts_with("ram");
    // sysfs writes a slash in a device's name, as in cciss/c0d0, as an exclamation mark.
    let entry = Path::new("/sys/block").join(device.replace('/', "!"));
    let whole = !virtual_device && entry.exists();
    whole_by_device.insert(device.to_string(), whole);
    whole
}

fn parse(text: &str, mut wanted: impl FnMut(&str) -> bool, batch: &mut Batch<'_>) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some(device) = words.next() else {
            continue;
        };
        if !wanted(device) {
            continue;
        }
        let mut numbers = [0_u64; METRICS.len()];
        let mut count = 0;
        for (slot, word) in numbers.iter_mut().zip(words) {
            let Some(value) = number(word) else {
                break;
            };
            *slot = value;
            count += 1;
        }
        let never_used = numbers.iter().all(|value| *value == 0);
        if never_used {
            continue;
        }
        for (metric, value) in METRICS.iter().zip(&numbers[..count]) {
            let scaled = match metric.unit {
                "bytes" => value.saturating_mul(SECTOR_BYTES),
                "ns" => value.saturating_mul(NS_PER_MS),
                _ => *value,
            };
            batch.put(metric, device, scaled);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sink::memory::collect;

    const DISKSTATS: &str = include_str!("../../../tests/data/diskstats");

    #[test]
    fn a_disk_has_bytes_and_nanoseconds() {
        let values = collect(|batch| parse(DISKSTATS, |device| device == "vda", batch));
        assert_eq!(values["reads vda"], 31_373.0);
        assert_eq!(values["read_bytes vda"], 2_892_362.0 * 512.0);
        assert_eq!(values["write_ns vda"], 14_080e6);
        assert_eq!(values["flush_ns vda"], 28e6);
        assert_eq!(values.len(), METRICS.len());
    }

    #[test]
    fn devices_that_were_never_used_are_left_out() {
        let values = collect(|batch| parse(DISKSTATS, |_| true, batch));
        assert!(!values.keys().any(|name| name.contains("loop")), "{values:?}");
    }

    #[test]
    fn a_kernel_of_four_fields_fewer_gives_what_it_has() {
        let text = "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n";
        let values = collect(|batch| parse(text, |_| true, batch));
        assert_eq!(values["queue_ns sda"], 11e6);
        assert_eq!(values.len(), 11);
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in "(?s)( 8 0 sda)?.{0,200}") {
            collect(|batch| parse(&text, |_| true, batch));
        }
    }
}
