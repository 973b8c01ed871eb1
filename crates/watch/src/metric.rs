//! What a number is called, how it counts and what it means.

use whyso_record::data::Kind;

/// One number of a sampler whose names are ours. The samplers `status` and `innodb_metrics` keep
/// the server's own names instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Unit last, such as "read_bytes".
    pub name: &'static str,
    pub kind: Kind,
    /// "ns", "bytes", "cores", "1" (a plain count).
    pub unit: &'static str,
    /// One plain sentence, for a person who picks a chart.
    pub meaning: &'static str,
}

pub(crate) const fn counter(name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, unit, meaning }
}

pub(crate) const fn gauge(name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, unit, meaning }
}

/// What the metric `name` of the sampler `source` means. `None` for a source that keeps the
/// server's own names, and for names that are not ours.
///
/// ```
/// let metric = whyso_watch::describe("cpu", "iowait_ns").unwrap();
/// assert_eq!(metric.unit, "ns");
/// ```
pub fn describe(source: &str, name: &str) -> Option<&'static Metric> {
    let tables: &[&'static [Metric]] = match source {
        "cpu" => &[&crate::cpu::TIMES, &crate::cpu::COUNTS, &crate::cpu::LOAD],
        "pressure" => &[&crate::pressure::METRICS],
        "memory" => &[&crate::memory::SIZES, &crate::memory::VMSTAT],
        "disk" => &[&crate::disk::METRICS],
        "net" => &[&crate::net::INTERFACE, &crate::net::TCP],
        "server_process" | "generator_process" => {
            &[&crate::process::METRICS, &crate::process::THREAD_METRICS]
        }
        "neighbours" => &[&crate::neighbours::METRICS],
        "cgroup" => &[&crate::cgroup::METRICS],
        "sessions" => &[&crate::sessions::METRICS],
        "lock_waits" => &[&crate::lock_waits::METRICS],
        "innodb_mutexes" => &[&crate::innodb_mutexes::METRICS],
        "innodb_status" => &[&crate::innodb_status::METRICS],
        "replication" => &crate::replication::METRICS,
        source if source.starts_with("pfs_") => &crate::pfs::METRICS,
        "watch" => &[&crate::cost::METRICS],
        _ => &[],
    };
    for table in tables {
        for metric in *table {
            if metric.name == name {
                return Some(metric);
            }
        }
    }
    None
}
