//! The sampler: which processes used the CPUs between two readings, and what each is to the server.

use std::collections::{BTreeMap, HashMap};

use whyso_clock::{monotonic_ns, thread_cpu_ns};
use whyso_record::data::Value;

use super::families::Families;
use super::peers::{Address, Peers, Relation};
use super::processes::{self, Stat};
use crate::metric::{Metric, counter, gauge};
use crate::pid::{NodePids, Pid};
use crate::sampler::{Failure, Sampler};
use crate::schedule::Pace;
use crate::sink::Batch;
use crate::text::Machine;

pub(crate) const METRICS: [Metric; 5] = [
    counter(
        "cpu_ns",
        "ns",
        "CPU time of neighbours: neither the server, nor its clients, nor whyso, by name",
    ),
    counter("clients_cpu_ns", "ns", "CPU time of the server's clients on its machine, by name"),
    counter("unclear_cpu_ns", "ns", "CPU time of processes that may be clients or neighbours, by name"),
    counter("disk_bytes", "bytes", "read from devices and sent towards them by neighbours, by name"),
    gauge("resident_bytes", "bytes", "memory that neighbours have in RAM, by name"),
];
const DISK_BYTES: Metric = METRICS[3];
const RESIDENT_BYTES: Metric = METRICS[4];

/// A reading that took 10 ms of CPU time is repeated after half a second at the earliest: 2 % of a core.
const PACE_FACTOR: i64 = 50;
/// Of one CPU: a process that used less between two readings is not checked.
const BUSY_SHARE_MIN: f64 = 0.005;
/// Processes whose relation to the server one reading checks, the busiest first.
const CHECKED_MAX: usize = 64;
/// Names that have series of their own.
const NAMES_MAX: usize = 48;
/// The rest.
const OTHERS: &str = "others";
/// A process without a connection to the server at this many checks is a neighbour. At a single check a client may be between two
/// connections.
const CHECKS_OF_STRANGER: u32 = 2;
/// How often a neighbour is checked again: it may become a client.
const CHECK_AGAIN_NS: i64 = 5_000_000_000;

/// What a process is to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ProcessKind {
    Neighbour,
    Client,
    Unclear,
}

/// A process that used a CPU.
#[derive(Clone, Debug, Default)]
struct FollowedProcess {
    start_ticks: u64,
    cpu_ticks: u64,
    /// Ticks that it used until it was known who it is.
    pending_ticks: u64,
    who: Option<ProcessKind>,
    checks: u32,
    checked_ns: i64,
    /// As it was read last; `None`: not yet.
    disk_bytes: Option<u64>,
}

/// Sums of the processes of one name.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sums {
    cpu_ticks: BTreeMap<ProcessKind, u64>,
    disk_bytes: u64,
    resident_pages: u64,
    /// It was written before.
    was_written: bool,
}

pub(crate) struct Neighbours {
    /// `None`: this machine has no server that is watched.
    server: Option<Pid>,
    /// whyso itself, and what it started.
    own: u32,
    /// Other nodes of the server's cluster.
    nodes: NodePids,
    address: Address,
    machine: Machine,
    pace: Pace,
    followed: HashMap<u32, FollowedProcess>,
    by_name: BTreeMap<String, Sums>,
    last_ns: Option<i64>,
    /// Start of the youngest process that the last reading found, in ticks since the machine started.
    youngest_ticks: u64,
    buffer: Vec<u8>,
}

impl Neighbours {
    pub(crate) fn new(
        server: Option<Pid>,
        own: u32,
        opts: Option<&mysql_async::Opts>,
        machine: Machine,
    ) -> Neighbours {
        let address = opts.map_or_else(Address::default, |opts| Address {
            port: opts.socket().is_none().then(|| opts.tcp_port()),
            socket: opts.socket().map(Into::into),
        });
        Neighbours {
            server,
            own,
            nodes: NodePids::default(),
            address,
            machine,
            pace: Pace::default(),
            followed: HashMap::new(),
            by_name: BTreeMap::new(),
            last_ns: None,
            youngest_ticks: 0,
            buffer: Vec::new(),
        }
    }

    /// The same, where these processes and their children are no neighbours.
    pub(crate) fn without(self, nodes: NodePids) -> Neighbours {
        Neighbours { nodes, ..self }
    }

    /// Enters what all processes had used by `now_ns`.
    fn enter(
        &mut self,
        all: &[Stat],
        server: Option<u32>,
        now_ns: i64,
        relation: &mut dyn FnMut(u32) -> Relation,
        disk_bytes: &dyn Fn(u32) -> Option<u64>,
    ) {
        let families = Families::of(all);
        let passed_ns = self.last_ns.map_or(0, |last_ns| now_ns - last_ns);
        let busy_ticks = passed_ns as f64 * BUSY_SHARE_MIN / self.machine.tick_ns.max(1) as f64;
        let mut before = std::mem::take(&mut self.followed);
        let mut busy: Vec<(u64, &Stat)> = Vec::new();
        self.by_name.values_mut().for_each(|sums| sums.resident_pages = 0);
        let nodes = self.nodes.get();
        let heads: Vec<u32> = server.into_iter().chain([self.own]).chain(nodes.iter().copied()).collect();
        for stat in all {
            let head = families.head_of(stat.pid, &heads);
            let is_tested = head.is_some_and(|head| Some(head) == server || nodes.contains(&head));
            if stat.is_kernels || stat.pid == self.own || is_tested {
                continue;
            }
            let seen_before =
                before.remove(&stat.pid).filter(|process| process.start_ticks == stat.start_ticks);
            let is_new = seen_before.is_none();
            let mut followed = seen_before.unwrap_or_else(|| FollowedProcess {
                start_ticks: stat.start_ticks,
                // A process that began since the last reading has used all of it since.
                cpu_ticks: if stat.start_ticks > self.youngest_ticks { 0 } else { stat.cpu_ticks },
                // What whyso started to load the server may not be connected yet.
                who: (head == Some(self.own)).then_some(ProcessKind::Client),
                ..FollowedProcess::default()
            });
            if is_new && self.last_ns.is_none() {
                followed.cpu_ticks = stat.cpu_ticks;
            }
            let used = stat.cpu_ticks.saturating_sub(followed.cpu_ticks);
            followed.cpu_ticks = stat.cpu_ticks;
            followed.pending_ticks += used;
            if self.last_ns.is_some() && used as f64 > busy_ticks {
                busy.push((used, stat));
            }
            self.followed.insert(stat.pid, followed);
        }
        busy.sort_by_key(|(used, stat)| (std::cmp::Reverse(*used), stat.pid));
        for (_, stat) in busy.into_iter().take(CHECKED_MAX) {
            self.check_relation(stat, now_ns, relation, disk_bytes);
        }
        self.add_up(all);
        self.youngest_ticks = all.iter().map(|stat| stat.start_ticks).max().unwrap_or(0);
        self.last_ns = Some(now_ns);
    }

    fn check_relation(
        &mut self,
        stat: &Stat,
        now_ns: i64,
        relation: &mut dyn FnMut(u32) -> Relation,
        disk_bytes: &dyn Fn(u32) -> Option<u64>,
    ) {
        let Some(followed) = self.followed.get_mut(&stat.pid) else { return };
        let is_due = match followed.who {
            // Once a client, always one.
            Some(ProcessKind::Client) => false,
            Some(_) => now_ns - followed.checked_ns >= CHECK_AGAIN_NS,
            None => true,
        };
        // From now on it has series, so that what it uses until it is known who it is counts from here.
        place(&mut self.by_name, &stat.name);
        if is_due {
            followed.checks += 1;
            followed.checked_ns = now_ns;
            followed.who = match relation(stat.pid) {
                Relation::Client => Some(ProcessKind::Client),
                Relation::Stranger if followed.checks >= CHECKS_OF_STRANGER => Some(ProcessKind::Neighbour),
                Relation::Stranger | Relation::Gone => followed.who,
                Relation::Unclear => Some(ProcessKind::Unclear),
            };
        }
        let now = disk_bytes(stat.pid);
        let was = std::mem::replace(&mut followed.disk_bytes, now);
        if let (Some(ProcessKind::Neighbour), Some(was), Some(now)) = (followed.who, was, now) {
            let moved = now.saturating_sub(was);
            place(&mut self.by_name, &stat.name).disk_bytes += moved;
        }
    }

    /// Adds what processes used to the sums of their names.
    fn add_up(&mut self, all: &[Stat]) {
        for stat in all {
            let Some(followed) = self.followed.get_mut(&stat.pid) else { continue };
            let Some(who) = followed.who else { continue };
            let ticks = std::mem::take(&mut followed.pending_ticks);
            let sums = place(&mut self.by_name, &stat.name);
            *sums.cpu_ticks.entry(who).or_default() += ticks;
            if who == ProcessKind::Neighbour {
                sums.resident_pages += stat.resident_pages;
            }
        }
    }

    fn put(&mut self, batch: &mut Batch<'_>) {
        for (name, sums) in &mut self.by_name {
            let was_written = std::mem::replace(&mut sums.was_written, true);
            for (who, metric) in
                [ProcessKind::Neighbour, ProcessKind::Client, ProcessKind::Unclear].into_iter().zip(&METRICS)
            {
                if !was_written {
                    batch.put_before(metric, name, Value::Int(0));
                }
                let ticks = sums.cpu_ticks.get(&who).copied().unwrap_or(0);
                batch.put(metric, name, ticks.saturating_mul(self.machine.tick_ns));
            }
            if sums.cpu_ticks.contains_key(&ProcessKind::Neighbour) {
                batch.put(&DISK_BYTES, name, sums.disk_bytes);
                let bytes = sums.resident_pages.saturating_mul(self.machine.page_bytes);
                batch.put(&RESIDENT_BYTES, name, bytes);
            }
        }
    }
}

/// The sums of a name; names beyond a bound share one.
fn place<'a>(by_name: &'a mut BTreeMap<String, Sums>, name: &str) -> &'a mut Sums {
    let has_place = by_name.contains_key(name) || by_name.len() < NAMES_MAX;
    by_name.entry(if has_place { name } else { OTHERS }.to_string()).or_default()
}

impl Sampler for Neighbours {
    fn source(&self) -> &'static str {
        "neighbours"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let now_ns = monotonic_ns();
        let server = self.server.as_ref().and_then(Pid::get);
        if server.is_some() != self.server.is_some() || !self.pace.due(now_ns) {
            batch.nothing_to_read();
            return Ok(());
        }
        let cpu_before_ns = thread_cpu_ns();
        let all = processes::all(&mut self.buffer)
            .map_err(|error| Failure::quick(format!("cannot list processes in /proc: {error}")))?;
        let address = self.address.clone();
        let mut peers: Option<Peers> = None;
        let mut relation = |pid: u32| match server {
            Some(server) => peers.get_or_insert_with(|| Peers::read(server, &address)).relation(pid),
            None => Relation::Stranger,
        };
        self.enter(&all, server, now_ns, &mut relation, &processes::disk_bytes);
        if self.followed.values().any(|process| process.who == Some(ProcessKind::Unclear)) {
            batch.absent(
                "which other programs are the server's clients and which are neighbours: their sockets may not be seen by this \
                 user, so that the CPU time of some is of neither; run whyso as root, or as their user"
                    .to_string(),
            );
        }
        self.put(batch);
        self.pace.rest(now_ns, thread_cpu_ns() - cpu_before_ns, PACE_FACTOR);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: u32 = 10;
    const OWN: u32 = 20;
    const S: i64 = 1_000_000_000;

    fn stat(pid: u32, name: &str, parent: u32, cpu_ticks: u64) -> Stat {
        let name = name.to_string();
        Stat {
            pid,
            name,
            parent,
            is_kernels: false,
            cpu_ticks,
            start_ticks: u64::from(pid),
            resident_pages: 5,
        }
    }

    fn sampler() -> Neighbours {
        let machine = Machine { tick_ns: 10_000_000, page_bytes: 4096 };
        Neighbours::new(Some(Pid::new(Some(SERVER))), OWN, None, machine)
    }

    fn enter(sampler: &mut Neighbours, all: &[Stat], at_s: i64, relation: fn(u32) -> Relation) {
        sampler.enter(all, Some(SERVER), at_s * S, &mut { relation }, &|_| None);
    }

    fn ticks(sampler: &Neighbours, who: ProcessKind) -> BTreeMap<&str, u64> {
        let named = sampler.by_name.iter();
        named.filter_map(|(name, sums)| Some((name.as_str(), *sums.cpu_ticks.get(&who)?))).collect()
    }

    fn by_number(pid: u32) -> Relation {
        match pid {
            40 => Relation::Client,
            60 => Relation::Unclear,
            _ => Relation::Stranger,
        }
    }

    #[test]
    fn neighbours_are_neither_the_server_nor_its_clients_nor_whyso_nor_the_kernels_threads() {
        let mut sampler = sampler();
        let all = |ticks: u64| {
            let kernels = Stat { is_kernels: true, ..stat(50, "kworker", 2, ticks) };
            vec![
                stat(SERVER, "mariadbd", 1, ticks),
                stat(11, "mariadbd", SERVER, ticks),
                stat(OWN, "whyso", 1, ticks),
                stat(21, "app", OWN, ticks),
                stat(30, "loop", 1, ticks),
                stat(31, "loop", 1, ticks),
                stat(40, "app", 1, ticks),
                kernels,
                stat(60, "job", 1, ticks),
            ]
        };
        for (at_s, ticks) in [(1, 1_000), (2, 1_040), (3, 1_080), (4, 1_120)] {
            enter(&mut sampler, &all(ticks), at_s, by_number);
        }
        assert_eq!(
            ticks(&sampler, ProcessKind::Neighbour),
            BTreeMap::from([("loop", 240)]),
            "what it used before counts"
        );
        assert_eq!(ticks(&sampler, ProcessKind::Client), BTreeMap::from([("app", 240)]));
        assert_eq!(ticks(&sampler, ProcessKind::Unclear), BTreeMap::from([("job", 120)]));
        assert_eq!(sampler.by_name["loop"].resident_pages, 10);
    }

    #[test]
    fn on_a_machine_without_the_server_every_program_is_counted_except_whyso() {
        let machine = Machine { tick_ns: 10_000_000, page_bytes: 4096 };
        let mut sampler = Neighbours::new(None, OWN, None, machine);
        for at_s in 1..=4 {
            let ticks = 960 + 40 * at_s as u64;
            let all = [stat(OWN, "whyso", 1, ticks), stat(21, "app", OWN, ticks), stat(30, "loop", 1, ticks)];
            sampler.enter(&all, None, at_s * S, &mut |_| Relation::Stranger, &|_| None);
        }
        assert_eq!(ticks(&sampler, ProcessKind::Neighbour), BTreeMap::from([("loop", 120)]));
        assert_eq!(ticks(&sampler, ProcessKind::Client), BTreeMap::from([("app", 120)]));
    }

    #[test]
    fn other_nodes_of_the_cluster_and_what_they_start_are_no_neighbours() {
        let nodes = NodePids::new(&[69]);
        // It was restarted.
        nodes.replace(Some(69), 70);
        let mut sampler = sampler().without(nodes);
        let all = |ticks: u64| {
            vec![
                stat(SERVER, "mariadbd", 1, ticks),
                stat(70, "mariadbd", 1, ticks),
                stat(71, "sst", 70, ticks),
                stat(80, "mariadbd", 1, ticks),
            ]
        };
        for (at_s, ticks) in [(1, 1_000), (2, 1_040), (3, 1_080), (4, 1_120)] {
            enter(&mut sampler, &all(ticks), at_s, by_number);
        }
        let neighbours = ticks(&sampler, ProcessKind::Neighbour);
        assert_eq!(neighbours, BTreeMap::from([("mariadbd", 120)]), "only the server of somebody else");
    }

    #[test]
    fn a_process_that_connects_only_now_and_then_is_a_client() {
        let mut sampler = sampler();
        let strange: fn(u32) -> Relation = |_| Relation::Stranger;
        let client: fn(u32) -> Relation = |_| Relation::Client;
        for (at_s, relation) in [(1, strange), (2, strange), (3, client), (4, strange)] {
            let ticks = 100 * at_s as u64;
            enter(&mut sampler, &[stat(40, "app", 1, ticks)], at_s, relation);
        }
        assert_eq!(ticks(&sampler, ProcessKind::Client), BTreeMap::from([("app", 300)]));
        assert!(ticks(&sampler, ProcessKind::Neighbour).is_empty());
    }

    #[test]
    fn a_process_that_hardly_runs_is_not_checked_and_the_next_of_a_number_begins_at_zero() {
        let mut sampler = sampler();
        let never: fn(u32) -> Relation = |_| unreachable!("nobody was busy");
        enter(&mut sampler, &[stat(30, "loop", 1, 900)], 1, never);
        enter(&mut sampler, &[stat(30, "loop", 1, 900)], 2, never);
        let next = Stat { start_ticks: 400, ..stat(30, "loop", 1, 70) };
        enter(&mut sampler, std::slice::from_ref(&next), 3, by_number);
        enter(&mut sampler, &[Stat { cpu_ticks: 100, ..next }], 4, by_number);
        assert_eq!(ticks(&sampler, ProcessKind::Neighbour), BTreeMap::from([("loop", 100)]));
    }

    #[test]
    fn any_number_of_names_has_a_bound() {
        let mut sampler = sampler();
        for at_s in 1..4 {
            let all: Vec<Stat> =
                (100..200).map(|pid| stat(pid, &format!("p{pid}"), 1, 100 * at_s as u64)).collect();
            enter(&mut sampler, &all, at_s, by_number);
        }
        assert_eq!(sampler.by_name.len(), NAMES_MAX + 1);
        assert!(ticks(&sampler, ProcessKind::Neighbour)["others"] > 0);
    }
}
