//! The machine's memory, from `/proc/meminfo`, and its paging, from `/proc/vmstat`.

use crate::metric::{Metric, counter, gauge};
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler};
use crate::sink::Batch;
use crate::text::{KernelFile, first_number};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["memory"],
    counts: "memory and paging",
    origin: "`/proc/meminfo`, `/proc/vmstat`",
    metrics: &[&SIZES, &VMSTAT],
    start: |_| vec![ScheduledSampler::of_machine(Memory::new())],
};

pub(crate) const SIZES: [Metric; 20] = [
    gauge("total_bytes", "bytes", "memory of the machine"),
    gauge("free_bytes", "bytes", "memory that nothing uses"),
    gauge("available_bytes", "bytes", "memory that programs could have without swapping"),
    gauge("buffers_bytes", "bytes", "cached blocks of disks"),
    gauge("cached_bytes", "bytes", "the page cache"),
    gauge("active_bytes", "bytes", "memory in recent use"),
    gauge("inactive_bytes", "bytes", "memory that would be taken back first"),
    gauge("dirty_bytes", "bytes", "pages that wait to be written to a disk"),
    gauge("writeback_bytes", "bytes", "pages that are being written to a disk"),
    gauge("anonymous_bytes", "bytes", "memory of programs without a file behind it"),
    gauge("mapped_bytes", "bytes", "files that are mapped into programs"),
    gauge("shared_bytes", "bytes", "shared memory and tmpfs"),
    gauge("slab_bytes", "bytes", "the kernel's own objects"),
    gauge("page_tables_bytes", "bytes", "page tables"),
    gauge("committed_bytes", "bytes", "memory that programs were promised"),
    gauge("anonymous_huge_bytes", "bytes", "programs' memory in transparent huge pages"),
    gauge("swap_total_bytes", "bytes", "swap space"),
    gauge("swap_free_bytes", "bytes", "swap space that is free"),
    gauge("huge_pages_total", "pages", "huge pages set aside"),
    gauge("huge_pages_free", "pages", "huge pages set aside that nothing uses"),
];
/// The kernel's words for [`SIZES`].
const SIZE_WORDS: [&str; 20] = [
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "Active",
    "Inactive",
    "Dirty",
    "Writeback",
    "AnonPages",
    "Mapped",
    "Shmem",
    "Slab",
    "PageTables",
    "Committed_AS",
    "AnonHugePages",
    "SwapTotal",
    "SwapFree",
    "HugePages_Total",
    "HugePages_Free",
];

/// Under the kernel's own names.
pub(crate) const VMSTAT: [Metric; 20] = [
    counter("pgfault", "1", "page faults"),
    counter("pgmajfault", "1", "page faults that had to read from a disk"),
    counter("pgpgin", "KiB", "read from disks"),
    counter("pgpgout", "KiB", "written to disks"),
    counter("pswpin", "pages", "pages read back from swap"),
    counter("pswpout", "pages", "pages written to swap"),
    counter("pgscan_kswapd", "pages", "pages scanned in the background for memory to take back"),
    counter("pgscan_direct", "pages", "pages scanned by a program that waits for memory"),
    counter("pgsteal_kswapd", "pages", "pages taken back in the background"),
    counter("pgsteal_direct", "pages", "pages taken back by a program that waits for memory"),
    counter("allocstall_normal", "1", "times that a program had to wait for memory"),
    counter("allocstall_movable", "1", "times that a program had to wait for movable memory"),
    counter("compact_stall", "1", "times that a program had to wait for memory to be compacted"),
    counter("oom_kill", "1", "programs ended for want of memory"),
    counter("thp_fault_alloc", "1", "page faults answered with a huge page"),
    counter("thp_split_page", "1", "huge pages that were split"),
    counter("numa_miss", "pages", "pages taken from another node than wanted"),
    counter("numa_pages_migrated", "pages", "pages moved between nodes"),
    counter("nr_dirtied", "pages", "pages made dirty"),
    counter("nr_written", "pages", "dirty pages written"),
];

pub(crate) struct Memory {
    meminfo: KernelFile,
    vmstat: KernelFile,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory { meminfo: KernelFile::new("/proc/meminfo"), vmstat: KernelFile::new("/proc/vmstat") }
    }
}

impl Sampler for Memory {
    fn source(&self) -> &'static str {
        "memory"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        match self.meminfo.read() {
            Ok(text) => parse_meminfo(&text, batch),
            Err(error) => return Err(Failure::quick(self.meminfo.failure(&error))),
        }
        match self.vmstat.read() {
            Ok(text) => parse_vmstat(&text, batch),
            Err(error) => batch.absent(self.vmstat.failure(&error)),
        }
        Ok(())
    }
}

fn parse_meminfo(text: &str, batch: &mut Batch<'_>) {
    for line in text.lines() {
        let Some((word, rest)) = line.split_once(':') else {
            continue;
        };
        let Some(position) = SIZE_WORDS.iter().position(|name| *name == word) else {
            continue;
        };
        let Some(value) = first_number(rest) else {
            continue;
        };
        let metric = &SIZES[position];
        let value = match metric.unit {
            "bytes" => value.saturating_mul(1024),
            _ => value,
        };
        batch.put(metric, "", value);
    }
}

fn parse_vmstat(text: &str, batch: &mut Batch<'_>) {
    for line in text.lines() {
        let Some((word, value)) = line.split_once(' ') else {
            continue;
        };
        let Some(metric) = VMSTAT.iter().find(|metric| metric.name == word) else {
            continue;
        };
        if let Some(value) = first_number(value) {
            batch.put(metric, "", value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sink::memory::collect;

    #[test]
    fn sizes_are_bytes() {
        let text = include_str!("../../../tests/data/meminfo");
        let values = collect(|batch| parse_meminfo(text, batch));
        assert_eq!(values["total_bytes"], 24_682_416.0 * 1024.0);
        assert_eq!(values["dirty_bytes"], 19_468.0 * 1024.0);
        assert_eq!(values["huge_pages_total"], 0.0);
        assert_eq!(values.len(), SIZES.len());
    }

    #[test]
    fn paging_is_counted() {
        let text = include_str!("../../../tests/data/vmstat");
        let values = collect(|batch| parse_vmstat(text, batch));
        assert!(values["pgfault"] > 0.0);
        assert_eq!(values["oom_kill"], 0.0);
        assert!(values.len() >= 15, "{values:?}");
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in "(?s)(MemTotal:|pgfault )?.{0,200}") {
            collect(|batch| {
                parse_meminfo(&text, batch);
                parse_vmstat(&text, batch);
            });
        }
    }
}
