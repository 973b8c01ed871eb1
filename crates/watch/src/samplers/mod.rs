//! The catalogue of samplers. One folder is one sampler: its program, its numbers, its description.
//!
//! Only this file lists the samplers.

pub(crate) mod access_log;
pub(crate) mod addon;
pub(crate) mod applying;
pub(crate) mod cgroup;
pub(crate) mod connections;
pub(crate) mod cpu;
pub(crate) mod disk;
pub(crate) mod innodb_metrics;
pub(crate) mod innodb_mutexes;
pub(crate) mod innodb_status;
pub(crate) mod lock_waits;
pub(crate) mod memory;
pub(crate) mod ndbinfo;
pub(crate) mod neighbours;
pub(crate) mod net;
pub(crate) mod pfs;
pub(crate) mod pressure;
pub(crate) mod process;
pub(crate) mod replication;
pub(crate) mod sessions;
pub(crate) mod sockets;
pub(crate) mod status;
pub(crate) mod variables;
pub(crate) mod watch;

use crate::metric::Metric;
use crate::sampler_entry::{Host, SamplerEntry, ScheduledSampler, StartContext};

/// Every sampler. Those of one thread are read in this order when they are due together.
pub(crate) const CATALOGUE: [&SamplerEntry; 24] = [
    &cpu::SAMPLER,
    &pressure::SAMPLER,
    &memory::SAMPLER,
    &disk::SAMPLER,
    &net::SAMPLER,
    &sockets::SAMPLER,
    &process::SAMPLER,
    &cgroup::SAMPLER,
    &neighbours::SAMPLER,
    &status::SAMPLER,
    &lock_waits::SAMPLER,
    &sessions::SAMPLER,
    &innodb_mutexes::SAMPLER,
    &innodb_status::SAMPLER,
    &innodb_metrics::SAMPLER,
    &replication::SAMPLER,
    &applying::SAMPLER,
    &ndbinfo::SAMPLER,
    &variables::SAMPLER,
    &addon::SAMPLER,
    &access_log::SAMPLER,
    &pfs::SAMPLER,
    &connections::SAMPLER,
    &watch::SAMPLER,
];

/// What is read of the other nodes of a cluster.
const OF_EACH_NODE: [&SamplerEntry; 5] = [
    &process::SAMPLER,
    &status::SAMPLER,
    &innodb_metrics::SAMPLER,
    &replication::SAMPLER,
    &applying::SAMPLER,
];

/// Starts every sampler that there is a reason for.
pub(crate) fn start_all(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    if !context.spec.is_other_node {
        return CATALOGUE.iter().flat_map(|entry| (entry.start)(context)).collect();
    }
    let of_node = OF_EACH_NODE.iter().flat_map(|entry| (entry.start)(context));
    of_node.filter(|scheduled| scheduled.host == Host::Server).collect()
}

/// A source, as the book describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceDescription {
    /// Its names in a recording. "pfs_…" stands for all that begin with "pfs_".
    pub names: &'static [&'static str],
    /// What it counts.
    pub counts: &'static str,
    /// Where it reads that.
    pub origin: &'static str,
}

/// Returns the description of every source, in the order of the catalogue.
pub fn sources() -> impl Iterator<Item = SourceDescription> {
    CATALOGUE.iter().map(|entry| SourceDescription {
        names: entry.sources,
        counts: entry.counts,
        origin: entry.origin,
    })
}

/// Returns what the metric `name` of the sampler `source` means. `None` for a source that keeps the
/// server's own names, and for names that are not ours.
///
/// ```
/// let metric = whyso_watch::describe("cpu", "iowait_ns").unwrap();
/// assert_eq!(metric.unit, "ns");
/// ```
pub fn describe(source: &str, name: &str) -> Option<&'static Metric> {
    let entry = CATALOGUE.iter().find(|entry| entry.has_source(source))?;
    entry.metrics.iter().copied().flatten().find(|metric| metric.name == name)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn each_metric_is_described_and_has_a_unit() {
        for (source, name) in [("pfs_waits", "count"), ("generator_process", "run_ns"), ("watch", "cpu_ns")] {
            assert!(describe(source, name).is_some(), "{source} {name}");
        }
        assert_eq!(describe("status", "Questions"), None, "the server's own name");
        for metric in CATALOGUE.iter().flat_map(|entry| entry.metrics.iter().copied().flatten()) {
            assert!(!metric.meaning.is_empty() && !metric.unit.is_empty(), "{metric:?}");
        }
    }

    #[test]
    fn no_source_is_of_two_samplers() {
        for (place, entry) in CATALOGUE.iter().enumerate() {
            for source in entry.sources {
                let other = CATALOGUE[..place].iter().find(|other| other.has_source(source));
                assert!(other.is_none(), "{source}");
            }
        }
    }

    #[test]
    fn the_book_lists_every_source() {
        let mut table = String::new();
        for source in sources() {
            let names: Vec<String> = source.names.iter().map(|name| format!("`{name}`")).collect();
            writeln!(table, "| {} | {} | {} |", names.join(", "), source.counts, source.origin).unwrap();
        }
        let page = include_str!("../../../../docs/reference/watched.md");
        assert!(page.contains(&table), "docs/reference/watched.md needs this table of sources:\n{table}");
    }
}
