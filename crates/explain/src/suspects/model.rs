//! A suspect as data, and the names of the causes, which are fixed.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::model::Evidence;

/// Something that may keep the server from going faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Suspect {
    pub id: Cause,
    /// Share of the mean response time that was measured to be its own, 0 to 1.
    pub share: f64,
    /// How the share came to be known.
    #[serde(default)]
    pub class: Class,
    /// An estimate of throughput without it, as a multiple of what it is, with the same users; `None` where the evidence
    /// gives no bounds.
    #[serde(default)]
    pub predicted_gain: Option<Gain>,
    /// What was waited for, where samples show that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub object: Option<SuspectObject>,
    pub evidence: Vec<Evidence>,
    /// One sentence.
    pub text: String,
}

/// What the waits of a suspect were for, by samples of the connections that waited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct SuspectObject {
    /// Such as "shop.stock (PRIMARY)".
    pub name: String,
    /// Share of the samples of its kind of lock, 0 to 1.
    pub share: f64,
    /// Connections that were found waiting for it, each counted in each snapshot.
    pub samples: u64,
    /// `None` where those that held it were between statements, or are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub holder: Option<Holder>,
}

/// The statement that held an object most often while others waited for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Holder {
    /// Without its literals.
    pub statement: String,
    /// Share of the samples of the object, 0 to 1.
    pub share: f64,
}

/// How the time that a suspect holds came to be known; the surest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[ts(rename = "SuspectClass")]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// By clocks: the tracer's account, the server's timed counters, the load generator.
    #[default]
    Measured,
    /// By samples of stacks, of the process list or of lock tables.
    Sampled,
    /// By measured time that counters divide: the CPU time of all statements where nearly all do the same.
    Inferred,
}

/// Bounds, not an estimate with an interval of confidence; 1 is no gain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Gain {
    pub low: f64,
    pub high: f64,
}

/// What experiments with CPUs are to give: a machine has no more CPUs than it has, and theirs is another question than what more of them would give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct CpuGains {
    /// The server may use every CPU of the machine, those of the load generator included; `None` where it may already.
    pub every_cpu: Option<Gain>,
    /// Its CPUs work at twice the speed.
    pub twice_the_speed: Option<Gain>,
}

/// A cause that a setting, a version or a count points to, and that no measured time shows. It has no share, and never comes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Possible {
    pub id: Cause,
    /// One sentence: what points to it.
    pub text: String,
    pub evidence: Vec<Evidence>,
}

/// Every cause that whyso can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    Cpu,
    Runqueue,
    WakeupLatency,
    PreemptedHolder,
    Spin,
    Swap,
    RedoWrite,
    RedoFlush,
    Doublewrite,
    RowLock,
    Deadlock,
    LockSys,
    MetadataLock,
    MdlMap,
    GrantLock,
    TableLock,
    UserLock,
    KernelInodeLock,
    AutoIncrement,
    BufferPoolMiss,
    PageFlush,
    Checkpoint,
    IndexLatch,
    PageLatch,
    AdaptiveHash,
    TrxSys,
    PurgeLag,
    ThreadConcurrency,
    TableCache,
    QueryCache,
    TmpTableSort,
    FullScan,
    ConnectionChurn,
    Network,
    Proxy,
    SlowReader,
    Sleep,
    CpuQuota,
    Binlog,
    SemiSync,
    FlowControl,
    Certification,
    NdbCpuBound,
    NdbDiskBuffer,
    NdbPool,
    NdbRoundTrips,
    NoisyNeighbour,
    Observer,
    Generator,
    Unsaturated,
    Unknown,
}

impl Class {
    /// Returns the name that programs and people know.
    pub fn name(self) -> &'static str {
        match self {
            Class::Measured => "measured",
            Class::Sampled => "sampled",
            Class::Inferred => "inferred",
        }
    }
}

impl Cause {
    /// Every cause, in the order of the declaration.
    pub const ALL: [Cause; 51] = [
        Cause::Cpu,
        Cause::Runqueue,
        Cause::WakeupLatency,
        Cause::PreemptedHolder,
        Cause::Spin,
        Cause::Swap,
        Cause::RedoWrite,
        Cause::RedoFlush,
        Cause::Doublewrite,
        Cause::RowLock,
        Cause::Deadlock,
        Cause::LockSys,
        Cause::MetadataLock,
        Cause::MdlMap,
        Cause::GrantLock,
        Cause::TableLock,
        Cause::UserLock,
        Cause::KernelInodeLock,
        Cause::AutoIncrement,
        Cause::BufferPoolMiss,
        Cause::PageFlush,
        Cause::Checkpoint,
        Cause::IndexLatch,
        Cause::PageLatch,
        Cause::AdaptiveHash,
        Cause::TrxSys,
        Cause::PurgeLag,
        Cause::ThreadConcurrency,
        Cause::TableCache,
        Cause::QueryCache,
        Cause::TmpTableSort,
        Cause::FullScan,
        Cause::ConnectionChurn,
        Cause::Network,
        Cause::Proxy,
        Cause::SlowReader,
        Cause::Sleep,
        Cause::CpuQuota,
        Cause::Binlog,
        Cause::SemiSync,
        Cause::FlowControl,
        Cause::Certification,
        Cause::NdbCpuBound,
        Cause::NdbDiskBuffer,
        Cause::NdbPool,
        Cause::NdbRoundTrips,
        Cause::NoisyNeighbour,
        Cause::Observer,
        Cause::Generator,
        Cause::Unsaturated,
        Cause::Unknown,
    ];

    /// Whether it is what a server does that simply works: no cause that could be removed.
    pub fn is_ordinary(self) -> bool {
        matches!(
            self,
            Cause::Cpu | Cause::Runqueue | Cause::WakeupLatency | Cause::Unsaturated | Cause::Unknown
        )
    }

    /// As programs know it.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Cpu => "cpu",
            Cause::Runqueue => "runqueue",
            Cause::WakeupLatency => "wakeup-latency",
            Cause::PreemptedHolder => "preempted-holder",
            Cause::Spin => "spin",
            Cause::Swap => "swap",
            Cause::RedoWrite => "redo-write",
            Cause::RedoFlush => "redo-flush",
            Cause::Doublewrite => "doublewrite",
            Cause::RowLock => "row-lock",
            Cause::Deadlock => "deadlock",
            Cause::LockSys => "lock-sys",
            Cause::MetadataLock => "metadata-lock",
            Cause::MdlMap => "mdl-map",
            Cause::GrantLock => "grant-lock",
            Cause::TableLock => "table-lock",
            Cause::UserLock => "user-lock",
            Cause::KernelInodeLock => "kernel-inode-lock",
            Cause::AutoIncrement => "auto-increment",
            Cause::BufferPoolMiss => "buffer-pool-miss",
            Cause::PageFlush => "page-flush",
            Cause::Checkpoint => "checkpoint",
            Cause::IndexLatch => "index-latch",
            Cause::PageLatch => "page-latch",
            Cause::AdaptiveHash => "adaptive-hash",
            Cause::TrxSys => "trx-sys",
            Cause::PurgeLag => "purge-lag",
            Cause::ThreadConcurrency => "thread-concurrency",
            Cause::TableCache => "table-cache",
            Cause::QueryCache => "query-cache",
            Cause::TmpTableSort => "tmp-table-sort",
            Cause::FullScan => "full-scan",
            Cause::ConnectionChurn => "connection-churn",
            Cause::Network => "network",
            Cause::Proxy => "proxy",
            Cause::SlowReader => "slow-reader",
            Cause::Sleep => "sleep",
            Cause::CpuQuota => "cpu-quota",
            Cause::Binlog => "binlog",
            Cause::SemiSync => "semi-sync",
            Cause::FlowControl => "flow-control",
            Cause::Certification => "certification",
            Cause::NdbCpuBound => "ndb-cpu-bound",
            Cause::NdbPool => "ndb-pool",
            Cause::NdbRoundTrips => "ndb-round-trips",
            Cause::NdbDiskBuffer => "ndb-disk-buffer",
            Cause::NoisyNeighbour => "noisy-neighbour",
            Cause::Observer => "observer",
            Cause::Generator => "generator",
            Cause::Unsaturated => "unsaturated",
            Cause::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cause;

    #[test]
    fn the_list_of_causes_is_whole() {
        assert!(Cause::ALL.iter().enumerate().all(|(at, cause)| *cause as usize == at));
        assert_eq!(Cause::ALL.last(), Some(&Cause::Unknown), "unknown is the last one");
    }
}
