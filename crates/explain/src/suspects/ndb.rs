//! What the SQL nodes of MySQL Cluster wait for: their data nodes.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use super::untraced;
use crate::model::{Evidence, NodeInput, Part};
use crate::nodes::{self, NodeState, data_node};

/// Time that threads of an SQL node waited for data nodes, by its own clock.
const WAITED_NS: &str = "Ndb_api_wait_nanos_count";
/// Times that a thread waited for operations that it had sent to data nodes.
const ASKED: &str = "Ndb_api_wait_exec_complete_count";
/// Connections of the SQL node to the data nodes.
const POOL: &str = "ndb_cluster_connection_pool";
/// Parts of the time budget in which a thread waits for data nodes: on a condition, or in a read of the link itself.
const PARTS: [Part; 3] = [Part::Lock, Part::Sleep, Part::Other];
/// Waits for a smaller share of the response time are nobody's trouble.
const SHARE_MIN: f64 = 0.02;

/// Wait classes of the stacks: waits for answers of data nodes, and for the locks of the links to them.
const ANSWERS: &str = "data_nodes";
const LINKS: &str = "ndb_link";

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    let Some(waited) = case.count(&[WAITED_NS]) else { return Vec::new() };
    let (ms, class) = match by_stacks(case, ANSWERS) {
        Some((ms, _)) => (ms, Class::Sampled),
        // The server's own threads wait, too, so of transactions that ask no data node nothing is held, and of others this is a bound.
        None => (bound_ms(case, waited.per_transaction / 1e6), Class::Inferred),
    };
    let links = by_stacks(case, LINKS).and_then(|links| for_links(case, links));
    if case.share(ms) < SHARE_MIN {
        return links.into_iter().collect();
    }
    let waits = Waits { case, ms, class, evidence: case.series(&waited.series) };
    let states = nodes::states(case.level);
    let pages = waits.for_pages();
    let pages_ms = pages.as_ref().map_or(0.0, |claim| claim.ms);
    let busiest = data_node::busiest(case.level, &states);
    let work = busiest.and_then(|busiest| waits.for_work(busiest, pages_ms));
    let answers = work.or_else(|| waits.for_answers(busiest, pages_ms));
    links.into_iter().chain(pages).chain(answers).collect()
}

/// Time of the mean transaction that may be waits for data nodes, in ms.
fn bound_ms(case: &Case, by_its_clock_ms: f64) -> f64 {
    let asked = case.count(&[ASKED]).map_or(0.0, |count| count.per_transaction.min(1.0));
    match case.is_traced() {
        true => {
            (asked * by_its_clock_ms).min(asked * PARTS.into_iter().map(|part| case.ms(part)).sum::<f64>())
        }
        false => (asked * by_its_clock_ms).min(case.response_ms),
    }
}

/// Time of the mean transaction in waits of a class, in ms, and the number of these waits; `None` where no stacks show any wait of NDB.
fn by_stacks(case: &Case, class: &str) -> Option<(f64, u64)> {
    let budget = case.budget.filter(|_| untraced::has_stacks(case))?;
    let all = || PARTS.into_iter().flat_map(|part| budget.classes_of(part));
    if !all().any(|time| [ANSWERS, LINKS].contains(&time.class.as_str())) {
        return None;
    }
    let own = all().filter(|time| time.class == class);
    Some(own.fold((0.0, 0), |(ms, count), time| (ms + time.ms, count + time.count)))
}

/// Threads of the SQL node that wait for each other at the links, and not for data nodes.
fn for_links(case: &Case, (ms, count): (f64, u64)) -> Option<Claim> {
    if case.share(ms) < SHARE_MIN {
        return None;
    }
    let pool = case.variable(POOL).map_or(String::new(), |pool| {
        format!(
            "; the SQL node has {} to the data nodes",
            whyso_words::count(pool.parse().unwrap_or(1), "connection")
        )
    });
    let why = format!(
        "{} per {} were waits of threads for each other, by the stacks of {} waits{pool}",
        whyso_words::milliseconds(ms),
        case.unit(),
        whyso_words::whole(count)
    );
    let lock_ms = ms.min(case.lock_ms());
    Some(
        Claim::new(Cause::NdbPool, "locks of the links to the data nodes hold", why)
            .holds_lock(lock_ms)
            .holds(ms - lock_ms)
            .certain(0.9)
            .by(Class::Sampled)
            .rests_on(case.parts(&PARTS)),
    )
}

struct Waits<'c, 'a, 'b> {
    case: &'c Case<'a, 'b>,
    /// Of the mean transaction.
    ms: f64,
    class: Class,
    evidence: Evidence,
}

impl Waits<'_, '_, '_> {
    /// A data node whose busiest thread does what a thread can.
    fn for_work(&self, node: &NodeState, pages_ms: f64) -> Option<Claim> {
        let thread = node.applier.as_ref().filter(|thread| thread.busy >= data_node::FULL)?;
        // A thread that waits for a CPU has work, and does none of it: then CPUs are missing, and not threads.
        if thread.busy - data_node::queued(thread) < data_node::FULL {
            return None;
        }
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
                .by(self.class)
                .rests_on([self.evidence.clone()])
                .rests_on(self.case.parts(&PARTS)),
        )
    }

    /// Answers of data nodes that have not too much to do: the way there and back, their work, and locks that others hold there.
    fn for_answers(&self, busiest: Option<&NodeState>, pages_ms: f64) -> Option<Claim> {
        let ms = self.ms - pages_ms;
        let trips = self.case.count(&[ASKED])?;
        if self.case.share(ms) < SHARE_MIN || trips.per_transaction <= 0.0 {
            return None;
        }
        let thread = busiest.and_then(|node| Some((node, node.applier.as_ref()?)));
        let doing = thread.map_or(String::new(), |(node, thread)| {
            let of = |name: &str| {
                let own = thread.states.iter().filter(|state| state.state == name);
                whyso_words::percent(own.map(|state| state.share).sum())
            };
            format!(
                "; the busiest thread of {}, {}, worked for {} of the time, and waited for a CPU for {}",
                node.name,
                thread.name,
                of(Part::Cpu.name()),
                of(Part::Runqueue.name())
            )
        });
        let why = format!(
            "{} per {} were waits for answers of data nodes, in {} round trips{doing}",
            whyso_words::milliseconds(ms),
            self.case.unit(),
            whyso_words::number(trips.per_transaction)
        );
        let certainty = if self.class == Class::Sampled { 0.8 } else { 0.5 };
        Some(
            Claim::new(Cause::NdbRoundTrips, "waits for answers of data nodes hold", why)
                .holds_lock(ms.min(self.case.lock_ms()))
                .holds((ms - self.case.lock_ms()).max(0.0))
                .certain(certainty)
                .by(self.class)
                .rests_on([self.evidence.clone(), self.case.series(&trips.series)])
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
