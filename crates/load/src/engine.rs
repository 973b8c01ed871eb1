//! Blocking threads, one a connection, in a closed loop.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::thread::CpuSet;
use whyso_clock::monotonic_ns;
use whyso_workload::Workload;

use crate::collector::Collector;
use crate::connection::Connection;
use crate::error::LoadError;
use crate::level::Running;
use crate::plan::{Machine, Plan};
use crate::shared::Shared;
use crate::target::{Limits, Target};
use crate::worker::Worker;

/// Much more than a thread of the load needs; only what it touches is taken from memory.
const STACK_BYTES: usize = 256 * 1024;
const INTERVALS_QUEUED_MAX: usize = 1024;
/// Threads that connect at the same time: a login is mostly waiting, but a server's backlog is short.
const CONNECTING_MAX: usize = 8;
/// Files that the rest of the process may want to open beside one socket a connection.
const FILES_BESIDE: u64 = 512;
/// Levels get numbers of transactions of their own, so that none repeats what another did.
const TRANSACTIONS_PER_LEVEL: u64 = 1 << 40;

/// The connections between levels.
pub(crate) struct Pool {
    /// One a user; `None` where it was lost, or is in use.
    pub(crate) connections: Mutex<Vec<Option<Connection>>>,
    pub(crate) is_busy: AtomicBool,
}

/// Connections that are open and prepared, ready to run levels one after the other.
pub struct Engine {
    target: Arc<Target>,
    plan: Arc<Plan>,
    limits: Limits,
    seed: u64,
    cpus: Option<Vec<u32>>,
    cpus_allowed: u32,
    levels: u64,
    pool: Arc<Pool>,
}

impl Engine {
    /// Opens `users_max` connections and prepares the workload's statements on each, with the default [`Limits`].
    ///
    /// The load of a level is a function of the workload, `seed`, the level's position and its number of users.
    /// `cpus`: the CPUs that the load's threads may run on; all that the process may use where it is `None`.
    ///
    /// # Errors
    /// What the server or the machine refuses, in one sentence; see [`LoadError`].
    pub fn connect(
        target: &Target,
        workload: &Workload,
        users_max: u32,
        seed: u64,
        cpus: Option<Vec<u32>>,
    ) -> Result<Engine, LoadError> {
        Engine::connect_with(target, workload, users_max, seed, cpus, Limits::default())
    }

    /// The same, with bounds of one's own.
    ///
    /// # Errors
    /// As [`connect`](Engine::connect).
    pub fn connect_with(
        target: &Target,
        workload: &Workload,
        users_max: u32,
        seed: u64,
        cpus: Option<Vec<u32>>,
        limits: Limits,
    ) -> Result<Engine, LoadError> {
        if users_max == 0 {
            return Err(LoadError::NoUsers);
        }
        let cpus_allowed = count_cpus(cpus.as_deref())?;
        allow_files(u64::from(users_max));
        let plan = Arc::new(Plan::new(workload));
        let mut connections: Vec<Option<Connection>> = (0..users_max).map(|_| None).collect();
        open_missing(&mut connections, target, &plan, &limits)?;
        let pool = Pool { connections: Mutex::new(connections), is_busy: AtomicBool::new(false) };
        Ok(Engine {
            target: Arc::new(target.clone()),
            plan,
            limits,
            seed,
            cpus,
            cpus_allowed,
            levels: 0,
            pool: Arc::new(pool),
        })
    }

    /// Begins a level with this many users, the other connections idle. Connections that a level before has lost are
    /// made anew first.
    ///
    /// # Errors
    /// More users than connections, a level that still runs, no threads left, or what connecting gives.
    pub fn level(&mut self, users: u32) -> Result<Running, LoadError> {
        if self.pool.is_busy.swap(true, Ordering::Acquire) {
            return Err(LoadError::Busy);
        }
        let result = self.begin_level(users);
        if result.is_err() {
            self.pool.is_busy.store(false, Ordering::Release);
        }
        result
    }

    fn begin_level(&mut self, users: u32) -> Result<Running, LoadError> {
        let taken: Vec<Connection> = {
            let mut connections = self.pool.connections.lock().unwrap_or_else(PoisonError::into_inner);
            let users_max = connections.len() as u32;
            if users == 0 || users > users_max {
                return Err(LoadError::Users { users, users_max });
            }
            let wanted = &mut connections[..users as usize];
            drop_dead(wanted, &self.limits);
            open_missing(wanted, &self.target, &self.plan, &self.limits)?;
            wanted.iter_mut().filter_map(Option::take).collect()
        };
        let begin_ns = monotonic_ns();
        let sockets = taken.iter().map(|connection| connection.socket().clone()).collect();
        let shared =
            Arc::new(Shared::new(self.target.clone(), self.plan.clone(), self.limits, sockets, begin_ns));
        let (interval_sender, intervals) = sync_channel(INTERVALS_QUEUED_MAX);
        let (collecting, over) = channel();
        let mut running = Running {
            shared: shared.clone(),
            pool: self.pool.clone(),
            users,
            begin_ns,
            cpus_allowed: self.cpus_allowed,
            threads: Vec::with_capacity(users as usize),
            collector: None,
            collecting: Some(collecting),
            intervals,
            usage_at_begin: None,
        };
        let failed = |user: u32, source| LoadError::Thread { user, users, source };
        let collector = Collector::new(shared.clone(), interval_sender);
        let spawned =
            thread::Builder::new().name("load-collect".to_string()).spawn(move || collector.run(over));
        running.collector = Some(spawned.map_err(|source| failed(0, source))?);
        let first_transaction = self.levels * TRANSACTIONS_PER_LEVEL;
        self.levels += 1;
        for (user, connection) in taken.into_iter().enumerate() {
            let machine = Machine::new(self.plan.clone(), self.seed, user as u64, first_transaction);
            let worker = Worker::new(shared.clone(), user, machine, connection);
            let cpus = self.cpus.as_deref().map(cpu_set);
            let builder = thread::Builder::new().name(format!("load-{user}")).stack_size(STACK_BYTES);
            let spawned = builder.spawn(move || {
                if let Some(cpus) = cpus {
                    // That these CPUs can be had was tried when the engine was made.
                    let _ = rustix::thread::sched_setaffinity(None, &cpus);
                }
                worker.run()
            });
            match spawned {
                Ok(thread) => running.threads.push(thread),
                Err(source) => {
                    // Threads that never began can't finish; nothing waits for them.
                    for ring in &shared.rings[user..] {
                        ring.finished.store(true, Ordering::Release);
                    }
                    return Err(failed(user as u32 + 1, source));
                }
            }
        }
        while shared.rings.iter().any(|ring| ring.thread_id.load(Ordering::Acquire) == 0) {
            thread::yield_now();
        }
        Ok(running)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let mut connections = self.pool.connections.lock().unwrap_or_else(PoisonError::into_inner);
        for connection in connections.iter_mut().filter_map(Option::take) {
            connection.quit();
        }
    }
}

/// Opens every connection that is missing, several at a time. The first error is told.
fn open_missing(
    connections: &mut [Option<Connection>],
    target: &Target,
    plan: &Plan,
    limits: &Limits,
) -> Result<(), LoadError> {
    let mut missing: Vec<&mut Option<Connection>> =
        connections.iter_mut().filter(|one| one.is_none()).collect();
    let each = missing.len().div_ceil(CONNECTING_MAX).max(1);
    let mut first_error = None;
    thread::scope(|scope| {
        let mut openers = Vec::new();
        for share in missing.chunks_mut(each) {
            openers.push(scope.spawn(move || -> Result<(), LoadError> {
                for place in share {
                    **place = Some(Connection::open(target, plan, limits)?);
                }
                Ok(())
            }));
        }
        for opener in openers {
            if let Ok(Err(error)) = opener.join() {
                first_error.get_or_insert(error);
            }
        }
    });
    first_error.map_or(Ok(()), Err)
}

/// Drops the connections that the server has closed while they were idle, or no longer serves.
fn drop_dead(connections: &mut [Option<Connection>], limits: &Limits) {
    for place in connections {
        let is_dead = place.as_mut().is_some_and(|connection| !connection.answers(limits));
        if is_dead {
            *place = None;
        }
    }
}

/// How many CPUs the load's threads may run on; tries on a thread of its own whether they can be had.
fn count_cpus(cpus: Option<&[u32]>) -> Result<u32, LoadError> {
    let Some(cpus) = cpus else {
        let allowed = rustix::thread::sched_getaffinity(None);
        return Ok(allowed.map_or(1, |allowed| allowed.count()));
    };
    let failed = |source: io::Error| LoadError::Cpus { cpus: cpus.to_vec(), source };
    if cpus.iter().any(|cpu| *cpu as usize >= CpuSet::MAX_CPU) || cpus.is_empty() {
        return Err(failed(io::Error::from_raw_os_error(libc::EINVAL)));
    }
    let set = cpu_set(cpus);
    let tried = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            rustix::thread::sched_setaffinity(None, &set)?;
            rustix::thread::sched_getaffinity(None)
        });
        thread.join().unwrap_or(Err(rustix::io::Errno::INVAL))
    });
    match tried {
        // The kernel leaves out CPUs that are not there without a word.
        Ok(allowed) if allowed.count() == set.count() => Ok(allowed.count()),
        Ok(_) => Err(failed(io::Error::from_raw_os_error(libc::EINVAL))),
        Err(error) => Err(failed(error.into())),
    }
}

fn cpu_set(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize);
    }
    set
}

/// Raises the soft limit on open files where this many connections need it, as far as the hard limit allows.
fn allow_files(connections: u64) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = connections + FILES_BESIDE;
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| wanted.min(maximum)));
        // Where it can't be raised, opening the connection too many gives the clear error.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
