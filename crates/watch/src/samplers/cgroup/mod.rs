//! Limits of the server's control group and how often it ran into them, versions 1 and 2.
//!
//! One instance `server`. A limit is the tightest one from the server's group up to the root;
//! where there is none, its series does not exist. A group is also stopped by the limit of a group above it, which
//! counts that itself. So periods and stops are those of all groups from the server's up to the root. See
//! Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.

mod layout;

use std::path::Path;

use whyso_record::data::Value;

use crate::metric::{Metric, counter, gauge};
use crate::pid::Pid;
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};
use crate::sink::Batch;
use crate::text::{cpu_list, first_number, number};
use layout::{Group, Groups, find_groups};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["cgroup"],
    counts: "limits of the server's group, throttling",
    origin: "`/sys/fs/cgroup`, v1 and v2",
    metrics: &[&METRICS],
    start,
};

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    if !context.server_is_here() {
        return Vec::new();
    }
    vec![ScheduledSampler::of_server(Cgroup::new(context.server_pid.clone()))]
}

pub(crate) const METRICS: [Metric; 11] = [
    gauge("cpu_limit", "cores", "CPUs' worth of time that the group may use"),
    gauge("cpus_allowed", "1", "CPUs that the group may run on"),
    counter("cpu_ns", "ns", "CPU time that the group used"),
    counter("cpu_periods", "1", "periods in which a CPU limit of the group, or of one above it, was counted"),
    counter("cpu_throttled_periods", "1", "periods in which the group was stopped by such a limit"),
    counter(
        "cpu_throttled_ns",
        "ns",
        "time for which the group was stopped by such a limit, added up over CPUs",
    ),
    gauge("memory_limit_bytes", "bytes", "memory that the group may use"),
    gauge("memory_bytes", "bytes", "memory that the group uses, page cache included"),
    counter("memory_limit_hits", "1", "times that the group ran into its memory limit"),
    counter("oom_kills", "1", "processes of the group ended for want of memory"),
    gauge("processes_limit", "1", "tasks that the group may have"),
];

const INSTANCE: &str = "server";
/// Version 1 writes "no limit" as a number near 2⁶³.
const NO_LIMIT: u64 = 1 << 60;

pub(crate) struct Cgroup {
    pid: Pid,
    groups: Option<(u32, Groups)>,
}

impl Cgroup {
    pub(crate) fn new(pid: Pid) -> Cgroup {
        Cgroup { pid, groups: None }
    }
}

impl Sampler for Cgroup {
    fn source(&self) -> &'static str {
        "cgroup"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let Some(pid) = self.pid.get() else {
            batch.nothing_to_read();
            return Ok(());
        };
        if !matches!(&self.groups, Some((followed, _)) if *followed == pid) {
            // A process that ended is the gap of `server_process`; here it is nothing to read.
            let Ok(membership) = std::fs::read_to_string(format!("/proc/{pid}/cgroup")) else {
                batch.nothing_to_read();
                return Ok(());
            };
            let mounts = std::fs::read_to_string("/proc/self/mountinfo")
                .map_err(|error| Failure::quick(format!("cannot read the mounts: {error}")))?;
            self.groups = Some((pid, find_groups(&membership, &mounts)));
        }
        if let Some((_, groups)) = &self.groups {
            read_groups(groups, batch);
        }
        Ok(())
    }
}

fn read_groups(groups: &Groups, batch: &mut Batch<'_>) {
    // Where both versions are mounted, a controller is in version 1 or in version 2. Version 2 shows some of what
    // version 1 governs. So each thing is read from one of them only.
    if let Some(group) = &groups.unified {
        read_unified(group, groups, batch);
    }
    if let Some(group) = &groups.cpu {
        let limit = group.tightest_of_folder(read_cfs_limit);
        put_limit(&METRICS[0], limit.map(Value::Float), batch);
        put_cpu_stat(group, batch);
    }
    if let Some(group) = &groups.cpuacct {
        put_number(&group.folder, "cpuacct.usage", &METRICS[2], batch);
    }
    if let Some(group) = &groups.memory {
        put_number(&group.folder, "memory.usage_in_bytes", &METRICS[7], batch);
        put_number(&group.folder, "memory.failcnt", &METRICS[8], batch);
        let limit = group.tightest("memory.limit_in_bytes", parse_limit);
        put_limit(&METRICS[6], limit.map(as_value), batch);
    }
    if let Some(group) = &groups.pids {
        let limit = group.tightest("pids.max", parse_limit);
        put_limit(&METRICS[10], limit.map(as_value), batch);
    }
    if let Some(group) = &groups.cpuset {
        put_cpus(&group.folder, "cpuset.effective_cpus", batch);
    }
}

fn read_unified(group: &Group, groups: &Groups, batch: &mut Batch<'_>) {
    if groups.cpu.is_none() && groups.cpuacct.is_none() {
        let cpu_limit = group.tightest("cpu.max", parse_cpu_max);
        put_limit(&METRICS[0], cpu_limit.map(Value::Float), batch);
        put_cpu_stat(group, batch);
    }
    if groups.memory.is_none() {
        put_number(&group.folder, "memory.current", &METRICS[7], batch);
        let memory_limit = group.tightest("memory.max", parse_limit);
        put_limit(&METRICS[6], memory_limit.map(as_value), batch);
        put_file(&group.folder, "memory.events", parse_memory_events, batch);
    }
    if groups.pids.is_none() {
        let processes = group.tightest("pids.max", parse_limit);
        put_limit(&METRICS[10], processes.map(as_value), batch);
    }
    if groups.cpuset.is_none() {
        put_cpus(&group.folder, "cpuset.cpus.effective", batch);
    }
}

fn as_value(limit: f64) -> Value {
    Value::Int(limit as i64)
}

fn put_limit(metric: &Metric, limit: Option<Value>, batch: &mut Batch<'_>) {
    if let Some(limit) = limit {
        batch.put_value(metric, INSTANCE, limit);
    }
}

fn put_number(folder: &Path, file: &str, metric: &Metric, batch: &mut Batch<'_>) {
    if let Some(value) = read(folder, file).and_then(|text| first_number(&text)) {
        batch.put(metric, INSTANCE, value);
    }
}

fn put_cpus(folder: &Path, file: &str, batch: &mut Batch<'_>) {
    let cpus = read(folder, file).map_or(0, |text| cpu_list(&text).len());
    if cpus > 0 {
        batch.put(&METRICS[1], INSTANCE, cpus as u64);
    }
}

fn put_file(folder: &Path, file: &str, parse: fn(&str, &mut Batch<'_>), batch: &mut Batch<'_>) {
    if let Some(text) = read(folder, file) {
        parse(&text, batch);
    }
}

/// Which files exist depends on the kernel and on the group: one that can't be read is no limit.
fn read(folder: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(file)).ok()
}

/// What groups' `cpu.stat` files count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CpuStat {
    usage_ns: Option<u64>,
    periods: Option<u64>,
    throttled_periods: Option<u64>,
    throttled_ns: Option<u64>,
}

/// `cpu.stat` of both versions: version 2 counts in µs, version 1 its `throttled_time` in ns.
fn parse_cpu_stat(text: &str) -> CpuStat {
    let mut stat = CpuStat::default();
    for line in text.lines() {
        let Some((word, value)) = line.split_once(' ') else {
            continue;
        };
        let value = first_number(value);
        let in_ns = |us: Option<u64>| us.map(|us| us.saturating_mul(1_000));
        match word {
            "usage_usec" => stat.usage_ns = in_ns(value),
            "nr_periods" => stat.periods = value,
            "nr_throttled" => stat.throttled_periods = value,
            "throttled_usec" => stat.throttled_ns = in_ns(value),
            "throttled_time" => stat.throttled_ns = value,
            _ => {}
        }
    }
    stat
}

/// CPU time is the group's own; its periods and stops are those of the groups above it, too.
fn put_cpu_stat(group: &Group, batch: &mut Batch<'_>) {
    let stats: Vec<CpuStat> =
        group.folders().filter_map(|folder| Some(parse_cpu_stat(&read(folder, "cpu.stat")?))).collect();
    let sum = |of: fn(&CpuStat) -> Option<u64>| stats.iter().filter_map(of).reduce(u64::saturating_add);
    let own = read(&group.folder, "cpu.stat").and_then(|text| parse_cpu_stat(&text).usage_ns);
    let counted = [
        (&METRICS[2], own),
        (&METRICS[3], sum(|stat| stat.periods)),
        (&METRICS[4], sum(|stat| stat.throttled_periods)),
        (&METRICS[5], sum(|stat| stat.throttled_ns)),
    ];
    for (metric, value) in counted {
        if let Some(value) = value {
            batch.put(metric, INSTANCE, value);
        }
    }
}

fn parse_memory_events(text: &str, batch: &mut Batch<'_>) {
    for line in text.lines() {
        let Some((word, value)) = line.split_once(' ') else {
            continue;
        };
        let metric = match word {
            "max" => &METRICS[8],
            "oom_kill" => &METRICS[9],
            _ => continue,
        };
        if let Some(value) = first_number(value) {
            batch.put(metric, INSTANCE, value);
        }
    }
}

/// Cores of `cpu.max`: quota over period, or `None` for `max`.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let mut words = text.split_ascii_whitespace();
    let quota_us = number(words.next()?)?;
    let period_us = number(words.next()?)?;
    (period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

fn parse_limit(text: &str) -> Option<f64> {
    let limit = first_number(text)?;
    (limit < NO_LIMIT).then_some(limit as f64)
}

fn read_cfs_limit(folder: &Path) -> Option<f64> {
    // The quota is -1 where there is none, which is no unsigned number.
    let quota_us = first_number(&read(folder, "cpu.cfs_quota_us")?)?;
    let period_us = first_number(&read(folder, "cpu.cfs_period_us")?)?;
    (period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sink::memory::collect;

    #[test]
    fn version_2_limits_and_throttling() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("a/b");
        std::fs::create_dir_all(&group).unwrap();
        let write = |path: &str, text: &str| std::fs::write(root.path().join(path), text).unwrap();
        write("a/cpu.max", "150000 100000\n");
        write("a/b/cpu.max", "400000 100000\n");
        write("a/memory.max", "max\n");
        write("a/b/memory.max", "1073741824\n");
        write("a/b/memory.current", "1000\n");
        write("a/b/memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n");
        write("a/b/cpu.stat", include_str!("../../../tests/data/cgroup2_cpu_stat"));
        write("a/cpu.stat", "usage_usec 99\nnr_periods 5\nnr_throttled 2\nthrottled_usec 1000\n");
        write("a/b/cpuset.cpus.effective", "0-3,7\n");
        let mounts =
            format!("30 23 0:26 / {} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n", root.path().display());
        let groups = find_groups("0::/a/b\n", &mounts);
        let values = collect(|batch| read_groups(&groups, batch));
        assert_eq!(values["cpu_limit server"], 1.5);
        assert_eq!(values["memory_limit_bytes server"], 1_073_741_824.0);
        assert_eq!(values["cpu_throttled_ns server"], 1_235_567e3, "of its own limit and of that above");
        assert_eq!(values["cpu_periods server"], 85.0);
        assert!(values["cpu_ns server"] > 99e3, "only its own");
        assert_eq!(values["memory_limit_hits server"], 12.0);
        assert_eq!(values["cpus_allowed server"], 5.0);
        assert!(!values.contains_key("processes_limit server"));
    }

    #[test]
    fn where_both_versions_are_mounted_each_thing_is_read_once() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("unified/cpu.stat", "usage_usec 7\n");
        write("cpuacct/cpuacct.usage", "9000\n");
        let mounts = format!(
            "30 23 0:26 / {0}/unified rw shared:4 - cgroup2 cgroup2 rw\n31 23 0:27 / {0}/cpuacct rw shared:5 - cgroup cgroup rw,cpuacct\n",
            root.path().display()
        );
        let groups = find_groups("6:cpuacct:/\n0::/\n", &mounts);
        let values = collect(|batch| read_groups(&groups, batch));
        assert_eq!(values["cpu_ns server"], 9000.0);
        assert_eq!(values.len(), 1);
    }

    #[test]
    fn version_1_limits_and_throttling() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("db");
        std::fs::create_dir_all(&group).unwrap();
        std::fs::write(root.path().join("cpu.cfs_quota_us"), "-1\n").unwrap();
        std::fs::write(root.path().join("cpu.cfs_period_us"), "100000\n").unwrap();
        std::fs::write(group.join("cpu.cfs_quota_us"), "50000\n").unwrap();
        std::fs::write(group.join("cpu.cfs_period_us"), "100000\n").unwrap();
        let stat = "nr_periods 9\nnr_throttled 4\nthrottled_time 777\n";
        std::fs::write(root.path().join("cpu.stat"), "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n")
            .unwrap();
        std::fs::write(group.join("cpu.stat"), stat).unwrap();
        let mounts = format!("33 23 0:29 / {} rw - cgroup cgroup rw,cpu,cpuacct\n", root.path().display());
        let groups = find_groups("2:cpu,cpuacct:/db\n0::/\n", &mounts);
        let values = collect(|batch| read_groups(&groups, batch));
        assert_eq!(values["cpu_limit server"], 0.5);
        assert_eq!(values["cpu_throttled_ns server"], 777.0);
        assert!(!values.contains_key("memory_limit_bytes server"));
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in "(?s)(nr_periods |0::/|max )?.{0,200}") {
            parse_cpu_max(&text);
            parse_limit(&text);
            find_groups(&text, &text);
            collect(|batch| {
                parse_cpu_stat(&text);
                parse_memory_events(&text, batch);
            });
        }
    }
}
