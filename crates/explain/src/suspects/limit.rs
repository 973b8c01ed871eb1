//! The limit: which resource or queue bounds throughput. The cause is what fills it.
//!
//! Each suspect's time belongs to the resource that it waits for or works on. The resource that holds most of the response time is the limit. Work on
//! CPUs that are not full is no limit, for nothing waits for it.

use super::case::Case;
use super::claim::Class;
use super::model::Cause;
use super::resource::{Limit, Resource};
use super::{BlamedClaim, capitalised};
use crate::model::Part;

impl Resource {
    /// Returns the resource that the time of a cause's waits belongs to.
    fn of(cause: Cause) -> Resource {
        match cause {
            Cause::Cpu
            | Cause::Runqueue
            | Cause::CpuQuota
            | Cause::NoisyNeighbour
            | Cause::Spin
            | Cause::Observer => Resource::Cpu,
            Cause::RedoWrite
            | Cause::RedoFlush
            | Cause::Doublewrite
            | Cause::Binlog
            | Cause::BufferPoolMiss
            | Cause::PageFlush
            | Cause::Checkpoint
            | Cause::TmpTableSort
            | Cause::Swap => Resource::Disk,
            Cause::PreemptedHolder
            | Cause::RowLock
            | Cause::Deadlock
            | Cause::LockSys
            | Cause::MetadataLock
            | Cause::MdlMap
            | Cause::GrantLock
            | Cause::TableLock
            | Cause::UserLock
            | Cause::KernelInodeLock
            | Cause::AutoIncrement
            | Cause::IndexLatch
            | Cause::PageLatch
            | Cause::AdaptiveHash
            | Cause::TrxSys
            | Cause::PurgeLag
            | Cause::TableCache
            | Cause::QueryCache => Resource::Lock,
            Cause::ThreadConcurrency => Resource::Pool,
            Cause::Network | Cause::Proxy | Cause::SlowReader => Resource::Network,
            Cause::SemiSync
            | Cause::FlowControl
            | Cause::Certification
            | Cause::NdbCpuBound
            | Cause::NdbDiskBuffer
            | Cause::NdbRoundTrips => Resource::Nodes,
            Cause::NdbPool => Resource::Lock,
            Cause::Generator => Resource::Client,
            Cause::WakeupLatency | Cause::Unsaturated | Cause::Sleep | Cause::FullScan => Resource::None,
            // A handshake is work on CPUs, most of all.
            Cause::ConnectionChurn => Resource::Cpu,
            Cause::Unknown => Resource::Unknown,
        }
    }
}

/// Returns the limit by the time that each suspect holds; `None` where nothing was measured.
pub(super) fn limit(case: &Case, accused: &[BlamedClaim]) -> Option<Limit> {
    let is_full = case.are_cpus_full();
    if let Some(first) = accused.iter().find(|blamed| blamed.claim.is_first) {
        let id = Resource::of(first.claim.cause);
        return Some(described(case, id, first.share));
    }
    let at_cpus = if is_full { Resource::Cpu } else { Resource::None };
    let ms = |resource: Resource| -> f64 {
        let of_one = |blamed: &BlamedClaim| {
            // What needs no queue to hold a transaction is the others' work.
            let is_counted = blamed.claim.cause != Cause::Unsaturated;
            let group = match Resource::of(blamed.claim.cause) {
                Resource::Cpu if !is_full && blamed.claim.cause == Cause::ConnectionChurn => Resource::None,
                group => group,
            };
            let own_ms = match group {
                _ if !is_counted || group != resource => 0.0,
                Resource::Unknown => blamed.share * case.response_ms - blamed.cpu_ms,
                _ => blamed.claim.ms,
            };
            let work_ms = if at_cpus == resource { blamed.cpu_ms } else { 0.0 };
            own_ms + work_ms
        };
        let pauses_ms = if resource == Resource::None { case.ms(Part::ClientPause) } else { 0.0 };
        accused.iter().map(of_one).sum::<f64>() + pauses_ms
    };
    let most = Resource::ALL.into_iter().max_by(|a, b| ms(*a).total_cmp(&ms(*b)).then(b.cmp(a)))?;
    let limit = (ms(most) > 0.0).then(|| described(case, most, case.share(ms(most))));
    let is_estimate = |blamed: &BlamedClaim| {
        blamed.claim.cause == Cause::Generator && blamed.claim.class == Class::Inferred
    };
    match limit {
        Some(limit) if limit.id == Resource::Client && accused.iter().any(is_estimate) => {
            Some(Limit { text: estimated(case, limit.share), ..limit })
        }
        limit => limit,
    }
}

/// What is said of hosts of the load whose own time was not traced.
fn estimated(case: &Case, share: f64) -> String {
    format!(
        "The hosts of the load are the limit at {}, not the server: by an estimate, their own work takes {} of the response time.",
        case.level.name(),
        whyso_words::percent(share)
    )
}

fn described(case: &Case, id: Resource, share: f64) -> Limit {
    let (level, unit) = (case.level.name(), case.unit());
    let held = whyso_words::percent(share);
    let text = match id {
        Resource::Cpu => format!(
            "the CPUs are the limit at {level}: work on them and waits for them take {held} of the response time"
        ),
        Resource::Lock => {
            format!("locks are the limit at {level}: waits for them take {held} of the response time")
        }
        Resource::Disk => {
            format!("the disk is the limit at {level}: waits for it take {held} of the response time")
        }
        Resource::Network => format!(
            "the network is the limit at {level}: the way between client and server takes {held} of the response time"
        ),
        Resource::Pool => {
            format!(
                "the limit on threads that may work at a time is reached at {level}: waits for it take {held} of the response time"
            )
        }
        Resource::Nodes => format!(
            "other nodes of the cluster are the limit at {level}: waits for them take {held} of the response time"
        ),
        Resource::Client => format!(
            "the load generator is the limit at {level}, not the server: it takes {held} of the response time"
        ),
        Resource::None => {
            format!(
                "nothing is the limit at {level}: {held} of the response time is the {unit}s' own work, which nothing waits for"
            )
        }
        Resource::Unknown => format!(
            "what bounds throughput at {level} is not known: {held} of the response time has no known cause"
        ),
    };
    Limit { id, share, text: format!("{}.", capitalised(&text)) }
}
