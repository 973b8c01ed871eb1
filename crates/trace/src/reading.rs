//! What the tracer has counted up to one moment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::account::{Account, LOADS, OTHERS};
use whyso_model::{Role, STATES, State};

/// Reasons why something could not be counted.
pub(crate) const LOST: usize = LOST_REASONS.len();
pub(crate) const LOST_REASONS: [&str; 8] = [
    "no account",
    "no storage",
    "clock went back",
    "no place for a pause",
    "no place for a file",
    "no place for a path",
    "no place for a request",
    "no place for a client",
];

/// Sums since the tracer started, in nanoseconds and counts; none ever falls.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// When it was taken: `CLOCK_MONOTONIC`, in nanoseconds.
    pub at_ns: i64,
    pub server: ServerSums,
    pub client: ClientSums,
    /// What the server did for clients that are neither the generator nor this program.
    pub others: OtherSums,
    /// The server's threads by role: how many there are, and their time by state, those that are gone included.
    pub roles: BTreeMap<Role, (u64, [u64; STATES])>,
    /// The server's threads that live.
    pub threads: Vec<ThreadSums>,
    /// Of a program that is no database server: the time that its threads waited for the next request on connections that stay open.
    pub kept_ns: u64,
    /// Of a program that is no database server: the servers that it asked within requests.
    pub upstreams: Vec<UpstreamSums>,
    /// What could not be counted, by why.
    pub lost: [(&'static str, u64); LOST],
}

/// A server that threads of a program asked within requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamSums {
    /// Where it listens: "tcp 3306" with the port, or "unix /run/a.sock" with the path of its socket.
    pub address: String,
    /// Times that a thread sent to it, after it had received.
    pub asked: u64,
    /// The time that threads waited for it.
    pub wait_ns: u64,
    /// The time from when an answer had arrived to when a thread received it. Of a thread that waits for it, that is what it takes to run again.
    pub late_ns: u64,
    /// Connections to it over TCP that failed because no local port was left.
    pub without_port: u64,
}

/// The server's side of the load's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerSums {
    /// Requests that were answered.
    pub requests: u64,
    /// From picked to replied.
    pub request_ns: u64,
    /// The same time by state of the thread.
    pub in_requests: [u64; STATES],
    /// From when a request was in the server's socket to when it was picked.
    pub transit_ns: u64,
    /// Of which the thread was already woken, on a CPU that was idle.
    pub transit_wakeup_ns: u64,
    /// Of which the thread was ready while another task had the CPU.
    pub transit_runqueue_ns: u64,
    /// Requests of connections that are not the load's, this program's among them.
    pub others: u64,
    /// Requests whose arrival was not seen.
    pub unseen: u64,
    /// The load's requests over sockets to which no watched program was seen to send. Something relays them, or the load comes from
    /// programs that are not watched.
    pub relayed: u64,
    /// Samples of the server's CPU time within requests, in user mode.
    pub user_samples: u64,
    /// The same in the kernel.
    pub system_samples: u64,
    /// Requests of a program that is no database server whose thread worked on others meanwhile.
    pub interleaved: u64,
}

impl ServerSums {
    /// Keeps sums from falling. A request that its thread leaves for another one to answer counts again when that one does. Meanwhile
    /// its time in flight is nobody's.
    pub(crate) fn keep_at_least(&mut self, before: &ServerSums) {
        self.request_ns = self.request_ns.max(before.request_ns);
        for (sum, before) in self.in_requests.iter_mut().zip(before.in_requests) {
            *sum = (*sum).max(before);
        }
    }

    pub(crate) fn add(&mut self, more: &ServerSums) {
        for (sum, more) in self.plain().into_iter().zip(more.clone().plain()) {
            *sum += *more;
        }
        add(&mut self.in_requests, &more.in_requests);
    }

    /// What they grew by since `before`; a sum that fell, such as a transit that was taken back, did not grow.
    pub(crate) fn since(&self, before: &ServerSums) -> ServerSums {
        let mut grown = *self;
        for (sum, before) in grown.plain().into_iter().zip(before.clone().plain()) {
            *sum = sum.saturating_sub(*before);
        }
        for (sum, before) in grown.in_requests.iter_mut().zip(before.in_requests) {
            *sum = sum.saturating_sub(before);
        }
        grown
    }

    /// Those that are no list.
    fn plain(&mut self) -> [&mut u64; 11] {
        [
            &mut self.requests,
            &mut self.request_ns,
            &mut self.transit_ns,
            &mut self.transit_wakeup_ns,
            &mut self.transit_runqueue_ns,
            &mut self.others,
            &mut self.unseen,
            &mut self.relayed,
            &mut self.user_samples,
            &mut self.system_samples,
            &mut self.interleaved,
        ]
    }
}

/// Clients that are neither the generator nor this program, where the generator's own connections are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherSums {
    /// Requests that were answered.
    pub requests: u64,
    /// Connections, each counted once in a window: see [`Tracer::begin_window`](crate::Tracer::begin_window).
    pub connections: u64,
    /// The time of the server's threads within their requests, by state.
    pub in_requests: [u64; STATES],
}

/// The generator's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientSums {
    /// Answers after which another request was sent on the same connection.
    pub answers: u64,
    /// From when an answer was in the generator's socket to when it was received.
    pub delay_ns: u64,
    pub delay_wakeup_ns: u64,
    pub delay_runqueue_ns: u64,
    /// From when an answer was received to when the next request was sent.
    pub held_ns: u64,
    /// From when a request was sent to when its answer was in the generator's socket.
    pub wire_ns: u64,
}

/// One thread of the server.
#[derive(Clone, Debug)]
pub struct ThreadSums {
    pub tid: u32,
    /// Of its process.
    pub pid: u32,
    pub name: String,
    pub role: Role,
    /// When it was seen first.
    pub born_ns: u64,
    pub requests: u64,
    pub states: [u64; STATES],
    /// What it is in now.
    pub now: State,
}

/// Waits for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWait {
    /// A folder's ends in a slash. `None`: no watched process has it open any more, and it is not known from before.
    pub path: Option<PathBuf>,
    pub inode: u64,
    pub state: State,
    pub role: Role,
    pub count: u64,
    pub ns: u64,
}

impl FileWait {
    /// Returns the row that a recording has of it. A file without a path has its inode instead.
    pub fn row(&self) -> whyso_model::FileWait {
        let path = match &self.path {
            Some(path) => path.display().to_string(),
            None => format!("inode {}, closed", self.inode),
        };
        whyso_model::FileWait {
            path,
            state: self.state.name().to_string(),
            role: self.role.name().to_string(),
            count: self.count as f64,
            ns: self.ns as f64,
        }
    }
}

/// Sums of threads that are gone, and of those that live while a reading is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// Requests that a generator's thread was seen to send.
    pub(crate) server: ServerSums,
    /// Those that nobody known was seen to send.
    pub(crate) strange: ServerSums,
    pub(crate) connections: u64,
    pub(crate) own: u64,
    pub(crate) kept_ns: u64,
    pub(crate) client: ClientSums,
    pub(crate) roles: BTreeMap<Role, (u64, [u64; STATES])>,
}

impl Sums {
    pub(crate) fn add_server(&mut self, account: &Account, role: Role, lives: bool) {
        for (whose, sums) in [(LOADS, &mut self.server), (OTHERS, &mut self.strange)] {
            let served = &account.served[whose];
            sums.requests += served.requests;
            sums.request_ns += served.request_ns;
            add(&mut sums.in_requests, &account.times_in_requests(whose));
            sums.transit_ns += served.transit_ns;
            sums.transit_wakeup_ns += served.transit_wakeup_ns;
            sums.transit_runqueue_ns += served.transit_runqueue_ns;
            sums.unseen += served.unseen;
            sums.user_samples += served.user_samples;
            sums.system_samples += served.system_samples;
            sums.interleaved += served.interleaved;
        }
        self.kept_ns += account.kept_ns;
        self.own += account.own;
        self.connections += account.connections;
        let of_role = self.roles.entry(role).or_default();
        of_role.0 += u64::from(lives);
        add(&mut of_role.1, &account.sums());
    }

    pub(crate) fn add_client(&mut self, account: &Account) {
        let sums = &mut self.client;
        sums.answers += account.answers;
        sums.delay_ns += account.delay_ns;
        sums.delay_wakeup_ns += account.delay_wakeup_ns;
        sums.delay_runqueue_ns += account.delay_runqueue_ns;
        sums.held_ns += account.held_ns;
        sums.wire_ns += account.wire_ns;
    }
}

pub(crate) fn add(sums: &mut [u64; STATES], more: &[u64; STATES]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}
