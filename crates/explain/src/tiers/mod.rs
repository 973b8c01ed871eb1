//! A request's time over several programs: what each program did itself, and what it waited for in the programs and servers behind it,
//! down to the last one that was recorded.
//!
//! All are sums over a window, divided by its requests. A program's threads wait for a server behind it: that wait is the requests of that
//! server, and what lies between. No two clocks are compared, and no single request is followed.

mod cause;
mod listeners;
mod model;
mod nested;
mod words;

pub use model::{TierCause, TierFile, TierLine, TierPart, TierTime, UpstreamTime};
pub use words::{RequestWords, request_words};
pub(crate) use words::{findings, headline};

use whyso_model::{State, state, tier};

use crate::budget::Part;
use crate::level::Level;
use crate::model::{Counter, FileWait, NodeInput};
use listeners::Listeners;
use nested::{lines, longest};

/// Source and metrics of a database server's sums, in the order of [`PROGRAM_SUMS`].
const SERVER: &str = "trace";
const SERVER_SUMS: [&str; 6] = [
    "requests",
    "request_ns",
    "transit_in_ns",
    "transit_in_wakeup_ns",
    "transit_in_runqueue_ns",
    "unseen_arrivals",
];
const PROGRAM_SUMS: [&str; 6] = [
    tier::REQUESTS,
    tier::REQUEST_NS,
    tier::QUEUE_NS,
    tier::QUEUE_WAKEUP_NS,
    tier::QUEUE_RUNQUEUE_NS,
    tier::UNSEEN,
];
/// Source of the time of threads by state.
const THREADS: &str = "threads";
/// Role of processes that are none of a server.
const PROGRAM: &str = "program";
/// Source and metric of the connections that wait to be accepted.
const LISTENERS: &str = "listeners";
const ACCEPT_QUEUE: &str = "accept_queue";
/// What the only database server of a recording is called.
const DATABASE: &str = "the database";
/// A file with a smaller share of a part's waits is not named.
const FILE_SHARE_MIN: f64 = 0.2;
/// Fewer requests have no mean.
const REQUESTS_MIN: f64 = 2.0;
/// A page is one request where the two numbers differ by this share at most: windows cut some requests off, and some pages fail.
const ONE_REQUEST_WITHIN: f64 = 0.1;
/// A request takes no longer than its page, apart from what windows cut off.
const LONGER_MAX: f64 = 1.05;
/// More makes no sense.
const SUM_MAX: f64 = 1e18;

/// The tiers of a level, those first that no other one asks. Empty where no program was recorded that answers requests.
/// `only`: what the watched processes are called, where they are the only target.
pub(crate) fn times(level: &Level, only: Option<&str>) -> Vec<TierTime> {
    let mut tiers = Vec::new();
    match (level.nodes, only) {
        ([], Some(name)) => tiers.extend(time(
            &TierFacts { name, listens: &[], files: level.file_waits.iter().collect() },
            &Sums::of_program(level.counters),
            level.seconds,
        )),
        (nodes, _) if nodes.iter().any(|node| node.role == PROGRAM) => {
            tiers.extend(nodes.iter().filter_map(|node| of_node(node, level)));
        }
        _ => {}
    }
    if tiers.iter().all(|tier| tier.is_database) {
        return Vec::new();
    }
    let listeners = Listeners::of(&tiers, level.nodes);
    for tier in &mut tiers {
        for upstream in &mut tier.upstreams {
            upstream.tier = listeners.behind(&tier.name, &upstream.address);
        }
    }
    let asked: Vec<String> =
        tiers.iter().flat_map(|tier| &tier.upstreams).filter_map(|upstream| upstream.tier.clone()).collect();
    for tier in &mut tiers {
        tier.accept_queue = accept_queue(&tier.listens, level);
        tier.is_first = !asked.contains(&tier.name);
    }
    tiers.sort_by_key(|tier| !tier.is_first);
    name_page(level, &mut tiers);
    for at in 0..tiers.len() {
        if tiers[at].is_first {
            tiers[at].lines = lines(&tiers, at);
            tiers[at].longest = longest(&tiers[at].lines);
            tiers[at].cause = cause::cause(&tiers[at], &tiers, level);
        }
    }
    crate::ports::name_causes(level, only, &mut tiers);
    tiers
}

/// Notes how long users waited for a page where each page was one request to the only first tier: then both are of the same requests. Requests
/// that took longer than the pages show that others are among them, such as those of pages that failed.
fn name_page(level: &Level, tiers: &mut [TierTime]) {
    let Some(pages) = level.pages else { return };
    let mut firsts = tiers.iter_mut().filter(|tier| tier.is_first && !tier.is_database);
    let (Some(only), None) = (firsts.next(), firsts.next()) else { return };
    let requests = only.requests / pages.count as f64;
    if (requests - 1.0).abs() <= ONE_REQUEST_WITHIN && only.mean_ms <= pages.mean_ms * LONGER_MAX {
        only.page_ms = Some(pages.mean_ms);
    }
}

/// Connections that waited at these listeners together, in the mean; `None` where none was sampled.
fn accept_queue(listens: &[String], level: &Level) -> Option<f64> {
    if level.is_over_hosts() {
        return None;
    }
    let means = listens.iter().filter_map(|address| level.gauge(LISTENERS, ACCEPT_QUEUE, address));
    let means: Vec<f64> = means.map(|gauge| gauge.mean).filter(|mean| *mean >= 0.0).collect();
    (!means.is_empty()).then(|| means.iter().sum())
}

fn of_node(node: &NodeInput, level: &Level) -> Option<TierTime> {
    // Only of the first target the requests to a database are counted, and the files have a table of their own.
    let is_first = level.nodes.first().is_some_and(|first| first.name == node.name);
    let listens = node.listens.as_slice();
    if node.role == PROGRAM {
        let files = match is_first {
            true if !level.file_waits.is_empty() => level.file_waits.iter().collect(),
            _ => level.program_file_waits.iter().filter(|wait| wait.role == node.name).collect(),
        };
        let facts = TierFacts { name: &node.name, listens, files };
        return time(&facts, &Sums::of_program(&node.counters), level.seconds);
    }
    let sums = Sums { counters: level.counters, source: SERVER, names: SERVER_SUMS };
    let is_only = level.nodes.iter().filter(|node| node.role != PROGRAM).count() == 1;
    let name = if is_only { DATABASE } else { &node.name };
    let facts = TierFacts { name, listens, files: Vec::new() };
    is_first.then(|| time(&facts, &sums, level.seconds)).flatten()
}

/// What a tier is.
struct TierFacts<'a> {
    name: &'a str,
    listens: &'a [String],
    /// Waits of its threads by file. Of a database others name what it waits for.
    files: Vec<&'a FileWait>,
}

impl TierFacts<'_> {
    fn waits(&self, state: State) -> impl Iterator<Item = &&FileWait> {
        self.files.iter().filter(move |wait| wait.state == state.name() && (0.0..SUM_MAX).contains(&wait.ns))
    }

    /// The file that its threads waited for most in a state, with its share of a part of that time: `part_ns` of `all_ns`. Which waits were in
    /// the part is not known, so the share is the least: as if all others were for the file, too. `None` where that is little.
    fn main_file(&self, state: State, part_ns: f64, all_ns: f64) -> Option<TierFile> {
        let in_files_ns: f64 = self.waits(state).map(|wait| wait.ns).sum();
        let named = self.waits(state).filter(|wait| !wait.path.is_empty());
        let longest = named.max_by(|a, b| a.ns.total_cmp(&b.ns))?;
        let all_ns = all_ns.max(part_ns);
        // Tables of files are read less often than sums of threads, so of their time only the share counts. But they do not have every wait.
        let of_file_ns = longest.ns.min(all_ns * longest.ns / in_files_ns);
        let least_ns = of_file_ns - (all_ns - part_ns);
        let share = least_ns / part_ns;
        (share >= FILE_SHARE_MIN).then(|| TierFile { path: longest.path.clone(), share: share.min(1.0) })
    }
}

/// What a tier's counters grew by over a level's window.
struct Sums<'a> {
    counters: &'a [Counter],
    source: &'static str,
    names: [&'static str; 6],
}

impl Sums<'_> {
    fn of_program(counters: &[Counter]) -> Sums<'_> {
        Sums { counters, source: tier::TIER, names: PROGRAM_SUMS }
    }

    fn of(&self, metric: &str) -> f64 {
        let is_it =
            |counter: &&Counter| counter.series.source == self.source && counter.series.metric == metric;
        let found = self.counters.iter().find(is_it).map(|counter| counter.increase);
        found.filter(|sum| (0.0..SUM_MAX).contains(sum)).unwrap_or(0.0)
    }

    fn all(&self) -> [f64; 6] {
        self.names.map(|name| self.of(name))
    }

    /// The time of all threads.
    fn thread_ns(&self) -> f64 {
        let of_threads = self.counters.iter().filter(|counter| {
            counter.series.source == THREADS
                && counter.series.metric.ends_with("_ns")
                && (0.0..SUM_MAX).contains(&counter.increase)
        });
        of_threads.map(|counter| counter.increase).sum()
    }

    /// What threads that answer requests spent in a state outside of these.
    fn outside_ns(&self, state: State) -> f64 {
        let in_requests_ns = self.of(&tier::request_state(state)) + self.of(&tier::others_state(state));
        (self.of(&tier::answering_state(state)) - in_requests_ns).max(0.0)
    }

    /// What all threads spent in a state.
    fn state_ns(&self, state: State) -> f64 {
        let metric = format!("{}_ns", state.name());
        let of_threads = self.counters.iter().filter(|counter| {
            counter.series.source == THREADS
                && counter.series.metric == metric
                && (0.0..SUM_MAX).contains(&counter.increase)
        });
        of_threads.map(|counter| counter.increase).sum()
    }

    /// The servers behind, by address.
    fn upstreams(&self) -> Vec<UpstreamSums> {
        let mut found: Vec<UpstreamSums> = Vec::new();
        let makes_sense = |counter: &&Counter| (0.0..SUM_MAX).contains(&counter.increase);
        let of_upstreams = self.counters.iter().filter(|counter| counter.series.source == tier::UPSTREAM);
        for counter in of_upstreams.filter(makes_sense) {
            let address = &counter.series.instance;
            let at = found.iter().position(|known| known.address == *address).unwrap_or_else(|| {
                found.push(UpstreamSums { address: address.clone(), ..UpstreamSums::default() });
                found.len() - 1
            });
            match counter.series.metric.as_str() {
                tier::ASKED => found[at].asked += counter.increase,
                tier::WAIT_NS => found[at].ns += counter.increase,
                tier::LATE_NS => found[at].late_ns += counter.increase,
                _ => {}
            }
        }
        found
    }
}

/// What was waited for at a server behind.
#[derive(Default)]
struct UpstreamSums {
    address: String,
    asked: f64,
    ns: f64,
    late_ns: f64,
}

/// What threads that answer a program's requests did outside of them, for each request, at least: threads that have ended are missing. What
/// they wait for when there is nothing to do is left out.
fn after(facts: &TierFacts<'_>, sums: &Sums<'_>, requests: f64) -> Vec<TierPart> {
    let part = |state: State| {
        let part = match state {
            State::KernelLock => Part::KernelLock,
            State::FileRead => Part::FileRead,
            State::FileWrite => Part::FileWrite,
            State::FileSync => Part::FileSync,
            _ => Part::Cpu,
        };
        let outside_ns = sums.outside_ns(state);
        let file = facts.main_file(state, outside_ns, sums.state_ns(state));
        TierPart { file, ..TierPart::new(part, outside_ns / 1e6 / requests) }
    };
    let mut parts: Vec<TierPart> = tier::HELD_UP.map(part).into_iter().filter(|part| part.ms > 0.0).collect();
    parts.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    parts
}

/// `None`: too few requests were answered.
fn time(facts: &TierFacts<'_>, sums: &Sums<'_>, seconds: f64) -> Option<TierTime> {
    let [requests, request_ns, queue_ns, queue_wakeup_ns, queue_runqueue_ns, unseen] = sums.all();
    if requests < REQUESTS_MIN || seconds <= 0.0 {
        return None;
    }
    let ms = |ns: f64| ns / 1e6 / requests;
    let mut parts = vec![
        TierPart::new(Part::TransitIn, ms((queue_ns - queue_wakeup_ns - queue_runqueue_ns).max(0.0))),
        TierPart::new(Part::Wakeup, ms(queue_wakeup_ns)),
        TierPart::new(Part::Runqueue, ms(queue_runqueue_ns)),
    ];
    let (mut upstream_ns, mut in_states_ns) = (0.0, 0.0);
    for state in state::ALL {
        let ns = sums.of(&tier::request_state(state));
        in_states_ns += ns;
        let part = match state {
            State::Upstream => {
                upstream_ns = ns;
                continue;
            }
            State::Cpu => Part::Cpu,
            State::Runqueue => Part::Runqueue,
            State::Wakeup => Part::Wakeup,
            State::Lock => Part::Lock,
            State::KernelLock => Part::KernelLock,
            State::FileRead => Part::FileRead,
            State::FileWrite => Part::FileWrite,
            State::FileSync => Part::FileSync,
            State::NetSend => Part::NetSend,
            State::PageFault => Part::PageFault,
            State::Sleep => Part::Sleep,
            State::NetReceive | State::Aio | State::Other | State::Idle => Part::Other,
        };
        match parts.iter_mut().find(|known| known.part == part) {
            Some(known) => known.ms += ms(ns),
            None => {
                let file = facts.main_file(state, ns, sums.state_ns(state));
                parts.push(TierPart { file, ..TierPart::new(part, ms(ns)) });
            }
        }
    }
    parts.retain(|part| part.ms > 0.0);
    parts.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let is_program = sums.source == tier::TIER;
    let after = if is_program { after(facts, sums, requests) } else { Vec::new() };
    let waited = sums.upstreams();
    // Of a thread that works on several requests by turns, the waits of the thread are not those of the requests. They only divide these.
    let all_waited_ns: f64 = waited.iter().map(|sums| sums.ns).sum();
    let share = |ns: f64| if all_waited_ns > 0.0 { ns / all_waited_ns } else { 0.0 };
    let interleaved = (sums.of(tier::INTERLEAVED) / requests).min(1.0);
    let upstream = |sums: UpstreamSums| UpstreamTime {
        address: sums.address,
        tier: None,
        asked: sums.asked / requests,
        ms: ms(upstream_ns * share(sums.ns)),
        // Of a thread that waits for one answer, it is in the thread's own states.
        late_ms: if interleaved >= cause::BY_TURNS_MIN { ms(sums.late_ns) } else { 0.0 },
    };
    let mut upstreams: Vec<UpstreamTime> = waited.into_iter().map(upstream).collect();
    upstreams.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    Some(TierTime {
        name: facts.name.to_string(),
        is_database: !is_program,
        listens: facts.listens.to_vec(),
        is_first: false,
        level: String::new(),
        requests,
        requests_per_s: requests / seconds,
        mean_ms: ms(queue_ns + request_ns),
        page_ms: None,
        unaccounted_ms: ms(request_ns - in_states_ns),
        parts,
        after: if interleaved >= cause::BY_TURNS_MIN { Vec::new() } else { after },
        upstreams,
        interleaved,
        unseen: (unseen / requests).min(1.0),
        threads: if is_program { sums.thread_ns() / 1e9 / seconds } else { 0.0 },
        kept_threads: sums.of(tier::KEPT_NS) / 1e9 / seconds,
        accept_queue: None,
        lines: Vec::new(),
        longest: None,
        cause: None,
    })
}

#[cfg(test)]
mod tests;
