//! Causes that lie between the nodes of a cluster: commits that wait for other nodes, and transactions that these refuse.

use super::case::Case;
use super::claim::Claim;
use super::model::Cause;
use crate::model::{Evidence, Part};
use crate::nodes::{self, NodeState};

/// Pauses for a smaller share of the time are nobody's trouble.
const PAUSED_MIN: f64 = 0.01;
/// The same for waits and lost attempts, of the response time.
const SHARE_MIN: f64 = 0.02;
/// MySQL's number of the error that a transaction gets which another node's change ended.
const CONFLICT: &str = "1213";
/// Transactions that were refused, and those that were ended while they ran.
const CONFLICTS: [&str; 2] = ["wsrep_local_cert_failures", "wsrep_local_bf_aborts"];
/// Total time that commits waited for a replica, in µs: MySQL 8.0.26 and later, then older ones and MariaDB.
const SEMI_SYNC_US: [&str; 2] = ["Rpl_semi_sync_source_tx_wait_time", "Rpl_semi_sync_master_tx_wait_time"];
const SEMI_SYNC_WAITS: [&str; 2] = ["Rpl_semi_sync_source_tx_waits", "Rpl_semi_sync_master_tx_waits"];

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [flow_control(case), certification(case), semi_sync(case)].into_iter().flatten().collect()
}

/// Galera: a node whose queue of changes to apply is long lets nobody commit until it is shorter.
fn flow_control(case: &Case) -> Option<Claim> {
    let paused = case.count(&["wsrep_flow_control_paused_ns"])?;
    let share = (paused.per_s / 1e9).min(1.0);
    if share < PAUSED_MIN {
        return None;
    }
    // Users who commit changes wait until a pause ends, and others are not paused: it holds no more than the sleep on locks, and nothing of
    // transactions that change nothing.
    let changes = case.count(&["wsrep_replicated"]).map_or(0.0, |count| count.per_transaction.min(1.0));
    let asleep_ms = if case.is_traced() { case.lock_ms() } else { f64::INFINITY };
    let held_ms = (share * case.response_ms).min(asleep_ms) * changes;
    if case.share(held_ms) < SHARE_MIN {
        return None;
    }
    let why = format!(
        "no transaction of the cluster could commit for {} of the time{}",
        whyso_words::percent(share),
        who_asked(&nodes::states(case.level))
    );
    Some(
        Claim::new(Cause::FlowControl, "pauses by flow control hold", why)
            .holds_lock(held_ms)
            .certain(0.9)
            .rests_on([case.series(&paused.series)])
            .rests_on(case.parts(&[Part::Lock]))
            .rests_on(queues(case)),
    )
}

/// "; galera-3 asked for it, 12 times per second: 40 changes waited there to be applied"
fn who_asked(states: &[NodeState]) -> String {
    let asked = |state: &NodeState| state.pauses_asked_per_s.unwrap_or(0.0);
    let Some(who) = states.iter().max_by(|one, other| asked(one).total_cmp(&asked(other))) else {
        return String::new();
    };
    if asked(who) <= 0.0 {
        return String::new();
    }
    let queue = who.receive_queue.map_or(String::new(), |queue| {
        format!(": {} changes waited there to be applied, in the mean", whyso_words::number(queue))
    });
    format!("; {} asked for it, {} times per second{queue}", who.name, whyso_words::number(asked(who)))
}

/// The nodes' queues of changes to apply.
fn queues(case: &Case) -> Vec<Evidence> {
    let of_nodes = case.level.nodes.iter().flat_map(|node| &node.gauges);
    let queues = of_nodes.filter(|gauge| gauge.series.metric == "wsrep_local_recv_queue");
    queues.map(|gauge| case.series(&gauge.series)).collect()
}

/// Galera: transactions that were refused or ended because another node had changed the same rows before.
fn certification(case: &Case) -> Option<Claim> {
    let (conflicts, series) = case.counts(&CONFLICTS);
    let lost_ms = conflict_ms(case);
    if case.share(lost_ms) < SHARE_MIN {
        return None;
    }
    let why = format!(
        "attempts that were ended because another node had changed the same rows took {} per {}, and were begun again, \
         {} per {}",
        whyso_words::milliseconds(lost_ms),
        case.unit(),
        whyso_words::number(conflicts),
        case.unit(),
    );
    Some(
        Claim::new(Cause::Certification, "conflicts between nodes hold", why)
            .holds(lost_ms)
            .certain(0.9)
            .rests_on([case.level_quantity("errors")])
            .rests_on(case.all_series(&series)),
    )
}

/// Time that attempts lost to conflicts, for one transaction that ended well. To its client a conflict is a deadlock: the two are divided by
/// how often each was counted.
pub(super) fn conflict_ms(case: &Case) -> f64 {
    let conflicts = case.counts(&CONFLICTS).0;
    let deadlocks =
        case.count(&["Innodb_deadlocks", "lock_deadlocks"]).map_or(0.0, |count| count.per_transaction);
    if conflicts > 0.0 { case.lost_ms(CONFLICT) * conflicts / (conflicts + deadlocks) } else { 0.0 }
}

/// Semi-synchronous replication: a commit is answered once a replica has its changes.
fn semi_sync(case: &Case) -> Option<Claim> {
    let waited = case.count(&SEMI_SYNC_US)?;
    let waited_ms = waited.per_transaction / 1e3;
    if case.share(waited_ms) < SHARE_MIN {
        return None;
    }
    let held_ms = if case.is_traced() { waited_ms.min(case.lock_ms()) } else { waited_ms };
    let waits = case.count(&SEMI_SYNC_WAITS).filter(|waits| waits.per_transaction > 0.0);
    let each = waits.map_or(String::new(), |waits| {
        format!(", {} each time", whyso_words::milliseconds(waited_ms / waits.per_transaction))
    });
    let why = format!(
        "commits waited {} per {} until a replica had received their changes{each}",
        whyso_words::milliseconds(waited_ms),
        case.unit()
    );
    Some(
        Claim::new(Cause::SemiSync, "waits for a replica hold", why)
            .holds_lock(held_ms)
            .certain(0.95)
            .rests_on([case.series(&waited.series)])
            .rests_on(case.parts(&[Part::Lock])),
    )
}
