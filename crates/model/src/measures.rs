//! Numbers that a level has, by name: what studies compare and show.

/// A number that a level has.
#[derive(Debug, PartialEq, Eq)]
pub struct Measure {
    /// As a study's file has it.
    pub name: &'static str,
    /// As a table's head has it.
    pub words: &'static str,
    pub better: Better,
}

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
    /// Neither: it describes a load, or how something came about.
    Neither,
}

const fn measure(name: &'static str, words: &'static str, better: Better) -> Measure {
    Measure { name, words, better }
}

use Better::{Higher, Lower, Neither};

pub const MEASURES: [Measure; 30] = [
    measure("transactions_per_s", "transactions/s", Higher),
    measure("queries_per_s", "queries/s", Higher),
    measure("latency_mean_ms", "mean response, ms", Lower),
    measure("latency_p99_ms", "p99 response, ms", Lower),
    measure("errors_percent", "failed, %", Lower),
    measure("cpu_user_percent", "CPU user, %", Neither),
    measure("cpu_system_percent", "CPU system, %", Neither),
    measure("cpu_iowait_percent", "CPU I/O wait, %", Neither),
    measure("cpu_idle_percent", "CPU idle, %", Neither),
    measure("cpu_steal_percent", "CPU stolen, %", Neither),
    measure("server_cpus", "server, CPUs", Neither),
    measure("client_cpus", "load, CPUs", Neither),
    measure("other_cpus", "others, CPUs", Neither),
    measure("server_cpu_us_per_transaction", "server CPU, µs/transaction", Lower),
    measure("threads_running", "threads running", Neither),
    measure("rows_read_per_transaction", "rows read/transaction", Lower),
    measure("buffer_pool_hit_percent", "buffer pool hits, %", Higher),
    measure("buffer_pool_reads_per_s", "pages read/s", Neither),
    measure("log_fsyncs_per_s", "log syncs/s", Neither),
    measure("sort_merge_passes_per_transaction", "merge passes/transaction", Lower),
    measure("pfs_waits_per_s", "waits/s", Neither),
    measure("pfs_stages_per_s", "stages/s", Neither),
    measure("pfs_statements_per_s", "statements/s", Neither),
    measure("pfs_events_per_s", "events/s", Neither),
    measure("pfs_events_per_statement", "events/statement", Neither),
    measure("pfs_timer_percent", "timing, % of server CPU", Neither),
    measure("pfs_timer_ns_per_event", "timing, ns/event", Neither),
    measure("replica_behind_s", "replica behind at most, s", Lower),
    measure("disk_buffer_hit_percent", "data nodes' buffer hits, %", Higher),
    measure("flow_control_percent", "no commit for flow control, %", Lower),
];

pub fn find(name: &str) -> Option<&'static Measure> {
    MEASURES.iter().find(|measure| measure.name == name)
}

pub fn names() -> Vec<&'static str> {
    MEASURES.iter().map(|measure| measure.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_of_its_own() {
        let mut names = names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MEASURES.len());
    }
}
