//! What the SQL nodes of MySQL Cluster wait for: their data nodes.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use crate::model::{Evidence, NodeInput, Part};
use crate::nodes::{self, NodeState, data_node};

/// Time that threads of an SQL node waited for data nodes, by its own clock.
const WAITED_NS: &str = "Ndb_api_wait_nanos_count";
/// Times that a thread waited for operations that it had sent to data nodes.
const ASKED: &str = "Ndb_api_wait_exec_complete_count";
/// Parts of the time budget in which a thread waits for data nodes: on a condition, or in a read of the link itself.
const PARTS: [Part; 3] = [Part::Lock, Part::Sleep, Part::Other];
/// Waits for a smaller share of the response time are nobody's trouble.
const SHARE_MIN: f64 = 0.02;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    let Some(waited) = case.count(&[WAITED_NS]) else { return Vec::new() };
    // The server's own threads wait, too, so of transactions that ask no data node nothing is held.
    let asked = case.count(&[ASKED]).map_or(0.0, |count| count.per_transaction.min(1.0));
    let by_its_clock_ms = waited.per_transaction / 1e6 * asked;
    let waited_ms = match case.is_traced() {
        true => by_its_clock_ms.min(asked * PARTS.into_iter().map(|part| case.ms(part)).sum::<f64>()),
        false => by_its_clock_ms.min(case.response_ms),
    };
    if case.share(waited_ms) < SHARE_MIN {
        return Vec::new();
    }
    let waits = Waits { case, ms: waited_ms, evidence: case.series(&waited.series) };
    let states = nodes::states(case.level);
    let pages = waits.for_pages();
    let pages_ms = pages.as_ref().map_or(0.0, |claim| claim.ms);
    let work = data_node::busiest(case.level, &states).and_then(|busiest| waits.for_work(busiest, pages_ms));
    pages.into_iter().chain(work).collect()
}

struct Waits<'c, 'a, 'b> {
    case: &'c Case<'a, 'b>,
    /// Of the mean transaction.
    ms: f64,
    evidence: Evidence,
}

impl Waits<'_, '_, '_> {
    /// A data node whose busiest thread does what a thread can.
    fn for_work(&self, node: &NodeState, pages_ms: f64) -> Option<Claim> {
        let thread = node.applier.as_ref().filter(|thread| thread.busy >= data_node::FULL)?;
        let ms = self.ms - pages_ms;
        if self.case.share(ms) < SHARE_MIN {
            return None;
        }
        let in_kernel = node.in_kernel.map_or(String::new(), |share| {
            format!(", {} of its CPU time in the kernel", whyso_words::percent(share))
        });
        let why = format!(
            "the busiest thread of {}, {}, had work for {} of the time{in_kernel}",
            node.name,
            thread.name,
            whyso_words::percent(thread.busy)
        );
        Some(
            Claim::new(Cause::NdbCpuBound, "waits for data nodes that have too much to do hold", why)
                .holds_lock(ms.min(self.case.lock_ms()))
                .holds((ms - self.case.lock_ms()).max(0.0))
                .certain(0.9)
                .rests_on([self.evidence.clone()])
                .rests_on(self.case.parts(&PARTS)),
        )
    }

    /// Pages of disk data that are read: how many by the data nodes' counters, and how long each takes by their threads' time in reads.
    fn for_pages(&self) -> Option<Claim> {
        let nodes = &self.case.level.nodes;
        let of_ndbinfo = |metric: &str| -> f64 {
            let counters = nodes.first().into_iter().flat_map(|node: &NodeInput| &node.counters);
            let chosen = counters
                .filter(|counter| counter.series.source == "ndbinfo" && counter.series.metric == metric);
            chosen.map(|counter| counter.increase.max(0.0)).sum()
        };
        let read_ns: f64 = nodes
            .iter()
            .filter(|node| node.ndb_id.is_some())
            .flat_map(|node| &node.counters)
            .filter(|counter| counter.series.source == "threads" && counter.series.metric == "file_read_ns")
            .map(|counter| counter.increase.max(0.0))
            .sum();
        let waits =
            (of_ndbinfo("disk_page_waits_io") + of_ndbinfo("disk_page_waits_queue")) / self.case.transactions;
        let page_ms = read_ns / 1e6 / of_ndbinfo("disk_pages_read");
        if waits <= 0.0 || !page_ms.is_finite() {
            return None;
        }
        let ms = (waits * page_ms).min(self.ms);
        if self.case.share(ms) < SHARE_MIN {
            return None;
        }
        let hits = of_ndbinfo("disk_page_hits");
        let share = hits / (hits + waits * self.case.transactions);
        let why = format!(
            "the data nodes' buffer had {} of the pages that were asked for; {} reads per {} took {} each",
            whyso_words::percent(share),
            whyso_words::number(waits),
            self.case.unit(),
            whyso_words::milliseconds(page_ms)
        );
        Some(
            Claim::new(Cause::NdbDiskBuffer, "waits for pages of disk data hold", why)
                .holds_lock(ms.min(self.case.lock_ms()))
                .holds((ms - self.case.lock_ms()).max(0.0))
                .certain(0.8)
                .by(Class::Inferred)
                .rests_on([self.evidence.clone()])
                .rests_on(self.case.parts(&PARTS)),
        )
    }
}
