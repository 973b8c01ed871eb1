//! Connections that are ready to run levels, and the choice of what drives them.

pub(crate) mod alone;
mod buffers;
mod choice;
pub(crate) mod command_result;
mod epoll;
pub(crate) mod event_loop;
pub(crate) mod level;
mod opener;
pub(crate) mod pace;
pub(crate) mod shared;
mod threads;
mod turn;
mod uring;
pub(crate) mod user;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::thread::CpuSet;
use whyso_clock::monotonic_ns;
use whyso_workload::Workload;

use crate::connection::connect;
use crate::connection::endpoints::Endpoints;
use crate::connection::login::Wishes;
use crate::connection::session::Session;
use crate::driver::{Nothing, Work};
use crate::engine::choice::{Choice, choose};
use crate::engine::epoll::Epoll;
use crate::engine::event_loop::Connections;
use crate::engine::level::Running;
use crate::engine::pace::Schedule;
use crate::engine::shared::{LevelState, Parts};
use crate::engine::uring::Uring;
use crate::engine_kind::EngineKind;
use crate::error::{LoadError, SpecError};
use crate::measure::collector::Collector;
use crate::native::NativeWork;
use crate::spec::{LevelSpec, LoadSpec};
use crate::target::{Limits, Target};
use crate::tuning::SchedulingPolicy;

/// Much more than a thread of the load needs; only what it touches takes memory. Scripts need more than
/// programs do.
const STACK_BYTES: usize = 1024 * 1024;
const INTERVALS_QUEUED_MAX: usize = 1024;
/// Threads that connect at the same time: a login is mostly waiting, but a server's backlog is short.
const CONNECTING_MAX: usize = 8;
/// Files that the rest of the process may want to open in addition to one socket per connection.
const FILES_SPARE: u64 = 512;
/// Levels get numbers of transactions of their own, so that none repeats what another did.
const TRANSACTIONS_PER_LEVEL: u64 = 1 << 40;
/// Largest weight of an endpoint.
const WEIGHT_MAX: u32 = 1_000;

/// The connections between levels.
pub(crate) struct Pool {
    /// By number; `None` where it was lost, or is in use.
    pub(crate) sessions: Mutex<Vec<Option<Session>>>,
    pub(crate) is_busy: AtomicBool,
}

/// Connections that are open and prepared, ready to run levels one after the other.
pub struct Engine {
    work: Arc<dyn Work>,
    endpoints: Arc<Endpoints>,
    spec: LoadSpec,
    choice: Choice,
    wishes: Wishes,
    cpus_allowed: u32,
    levels: u64,
    pool: Arc<Pool>,
    /// Held, and not used.
    idle: Vec<Session>,
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

    /// The same, with the caller's bounds.
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
        let spec = LoadSpec { cpus, limits, ..LoadSpec::new(target.clone(), users_max, seed) };
        Engine::open(&spec, Arc::new(NativeWork::for_users(workload, seed, users_max)))
    }

    /// Opens the connections of a load, and prepares the work's statements on each.
    ///
    /// # Errors
    /// What the server or the machine refuses, and a spec that contradicts itself, in one sentence; see [`LoadError`].
    pub fn open(spec: &LoadSpec, work: Arc<dyn Work>) -> Result<Engine, LoadError> {
        check(spec)?;
        let cpus_allowed = count_cpus(spec.cpus.as_deref())?;
        let choice = choose(spec, work.connects(), cpus_allowed)?;
        let connections = spec.connections.unwrap_or(spec.users_max).min(spec.users_max);
        allow_files(u64::from(connections) + u64::from(spec.idle_connections));
        let endpoints = Arc::new(Endpoints::new(spec));
        let wishes = Wishes { compression: spec.compression, local_files: work.sends_files() };
        let mut sessions: Vec<Option<Session>> = (0..connections).map(|_| None).collect();
        open_missing(&mut sessions, &endpoints, &*work, wishes, &spec.limits)?;
        let mut idle: Vec<Option<Session>> = (0..spec.idle_connections).map(|_| None).collect();
        open_missing(&mut idle, &endpoints, &Nothing, wishes, &spec.limits)?;
        Ok(Engine {
            work,
            endpoints,
            spec: spec.clone(),
            choice,
            wishes,
            cpus_allowed,
            levels: 0,
            pool: Arc::new(Pool { sessions: Mutex::new(sessions), is_busy: AtomicBool::new(false) }),
            idle: idle.into_iter().flatten().collect(),
        })
    }

    /// Begins a level in a closed loop without think time; see [`level_with`](Engine::level_with).
    ///
    /// # Errors
    /// As there.
    pub fn level(&mut self, users: u32) -> Result<Running, LoadError> {
        self.level_with(&LevelSpec::users(users))
    }

    /// Begins a level; connections that it does not need are idle. Connections that an earlier level has lost are
    /// opened again first.
    ///
    /// # Errors
    /// More users than the load has, a level that still runs, no threads left, or what connecting gives.
    pub fn level_with(&mut self, level: &LevelSpec) -> Result<Running, LoadError> {
        if self.pool.is_busy.swap(true, Ordering::Acquire) {
            return Err(LoadError::Busy);
        }
        let result = self.begin_level(level);
        if result.is_err() {
            self.pool.is_busy.store(false, Ordering::Release);
        }
        result
    }

    /// What drives this load's levels.
    pub fn engine(&self) -> EngineKind {
        self.choice.kind
    }

    /// Event loops, or threads, that a level of this many users would have.
    pub fn loops(&self, users: u32) -> u32 {
        self.choice.loops(users, None)
    }

    fn begin_level(&mut self, level: &LevelSpec) -> Result<Running, LoadError> {
        let users = level.users;
        if users == 0 || users > self.spec.users_max {
            return Err(LoadError::Users { users, users_max: self.spec.users_max });
        }
        let loops = self.choice.loops(users, level.loops);
        let connections = {
            let mut sessions = self.pool.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            let count = (sessions.len() as u32).min(users).max(loops);
            let wanted = &mut sessions[..count as usize];
            drop_dead(wanted, self.work.body_bytes_max().is_some(), &self.spec.limits);
            open_missing(wanted, &self.endpoints, &*self.work, self.wishes, &self.spec.limits)?;
            wanted.iter_mut().map(Option::take).collect::<Vec<_>>()
        };
        let first_transaction = self.levels * TRANSACTIONS_PER_LEVEL;
        self.levels += 1;
        let begin_ns = monotonic_ns();
        let shared = LevelState::new(Parts {
            work: self.work.clone(),
            endpoints: self.endpoints.clone(),
            limits: self.spec.limits,
            wishes: self.wishes,
            schedule: Schedule::new(level, self.spec.seed, first_transaction, begin_ns)?,
            reconnect_every: level.reconnect_every,
            finishes_transactions: level.finishes_transactions,
            loops,
            has_event_loops: self.choice.kind != EngineKind::Threads,
            tuning: self.spec.tuning,
            begin_ns,
            users,
        });
        let failed = |user: u32, source| LoadError::Thread { user, users, source };
        let shared = Arc::new(shared.map_err(|source| failed(0, source))?);
        let (interval_sender, intervals) = sync_channel(INTERVALS_QUEUED_MAX);
        let (collecting, over) = channel();
        let mut running = Running {
            shared: shared.clone(),
            pool: self.pool.clone(),
            users,
            begin_ns,
            cpus_allowed: self.cpus_allowed,
            engine: self.choice.describe(loops),
            threads: Vec::with_capacity(loops as usize),
            collector: None,
            collecting: Some(collecting),
            intervals,
            usage_at_begin: None,
            usage_at_end: None,
            measures_all: false,
        };
        if level.transactions_max.is_some() {
            running.measure_all();
        }
        let collector = Collector::new(shared.clone(), interval_sender);
        let spawned =
            thread::Builder::new().name("load-collect".to_string()).spawn(move || collector.run(over));
        running.collector = Some(spawned.map_err(|source| failed(0, source))?);
        for (number, share) in share_out(connections, users, loops).into_iter().enumerate() {
            if let Err(source) = self.spawn(&shared, number as u32, share, &mut running) {
                // Threads that never began can't finish; nothing waits for them.
                for ring in &shared.rings[number..] {
                    ring.finished.store(true, Ordering::Release);
                }
                return Err(failed(number as u32 + 1, source));
            }
        }
        while shared.rings.iter().any(|ring| ring.thread_id.load(Ordering::Acquire) == 0) {
            thread::yield_now();
        }
        Ok(running)
    }

    fn spawn(
        &self,
        shared: &Arc<LevelState>,
        number: u32,
        share: Share,
        running: &mut Running,
    ) -> io::Result<()> {
        let cpus = self.spec.cpus.as_deref().map(cpu_set);
        let kind = self.choice.kind;
        let policy = self.spec.tuning.scheduling_policy;
        let shared = shared.clone();
        let builder = thread::Builder::new().name(format!("load-{number}")).stack_size(STACK_BYTES);
        let thread = builder.spawn(move || {
            if let Some(cpus) = cpus {
                // That these CPUs are available was tried when the engine was created.
                let _ = rustix::thread::sched_setaffinity(None, &cpus);
            }
            if let Some(policy) = policy {
                // That it can be had was tried too.
                let _ = policy.apply();
            }
            let Share { users, mut connections } = share;
            match kind {
                EngineKind::Epoll => event_loop::run::<Epoll>(&shared, number, &users, connections),
                EngineKind::IoUring => event_loop::run::<Uring>(&shared, number, &users, connections),
                EngineKind::Threads | EngineKind::Auto => {
                    let session = connections.pop().and_then(|(_, session)| session);
                    if let Some(session) = &session {
                        shared.set_socket(number as usize, Some(session.socket().clone()));
                    }
                    vec![(number, threads::run(&shared, number, session))]
                }
            }
        })?;
        running.threads.push(thread);
        Ok(())
    }
}

/// Users of one loop, and the connections that they have.
struct Share {
    users: Vec<u32>,
    connections: Connections,
}

/// Deals users and connections out to the loops in turn.
fn share_out(connections: Vec<Option<Session>>, users: u32, loops: u32) -> Vec<Share> {
    let mut shares: Vec<Share> =
        (0..loops).map(|_| Share { users: Vec::new(), connections: Vec::new() }).collect();
    for user in 0..users {
        shares[(user % loops) as usize].users.push(user);
    }
    for (number, session) in connections.into_iter().enumerate() {
        shares[number % loops as usize].connections.push((number as u32, session));
    }
    shares
}

fn check(spec: &LoadSpec) -> Result<(), LoadError> {
    if spec.users_max == 0 {
        return Err(LoadError::NoUsers);
    }
    if spec.endpoints.is_empty() {
        return Err(SpecError::NoServer.into());
    }
    if let Some(endpoint) = spec.endpoints.iter().find(|endpoint| endpoint.weight > WEIGHT_MAX) {
        let (weight, address) = (endpoint.weight, endpoint.target.address.clone());
        return Err(SpecError::Weight { weight, weight_max: WEIGHT_MAX, address }.into());
    }
    if spec.connections == Some(0) {
        return Err(SpecError::NoConnections.into());
    }
    if spec.loops == Some(0) {
        return Err(SpecError::NoLoops.into());
    }
    let shares = spec.connections.is_some_and(|connections| connections < spec.users_max);
    if shares && spec.engine == EngineKind::Threads {
        return Err(SpecError::SharedByThreads.into());
    }
    spec.tuning.check(spec.engine).map_err(SpecError::Tuning)?;
    spec.tuning.scheduling_policy.map_or(Ok(()), try_policy)
}

/// On a thread of its own, since a policy can't always be left again.
fn try_policy(policy: SchedulingPolicy) -> Result<(), LoadError> {
    let tried = thread::spawn(move || policy.apply()).join();
    let applied = tried.unwrap_or_else(|_| Err(io::Error::from_raw_os_error(libc::EINVAL)));
    applied.map_err(|source| LoadError::SchedulingPolicy { policy, source })
}

impl Drop for Engine {
    fn drop(&mut self) {
        let mut sessions = self.pool.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        for session in sessions.iter_mut().filter_map(Option::take).chain(self.idle.drain(..)) {
            session.quit();
        }
    }
}

/// Opens every connection that is missing, several at a time. Returns the first error.
fn open_missing(
    sessions: &mut [Option<Session>],
    endpoints: &Endpoints,
    work: &dyn Work,
    wishes: Wishes,
    limits: &Limits,
) -> Result<(), LoadError> {
    let mut missing: Vec<(u32, &mut Option<Session>)> =
        (0..).zip(sessions.iter_mut()).filter(|(_, session)| session.is_none()).collect();
    let each = missing.len().div_ceil(CONNECTING_MAX).max(1);
    let mut first_error = None;
    thread::scope(|scope| {
        let mut openers = Vec::new();
        for share in missing.chunks_mut(each) {
            openers.push(scope.spawn(move || -> Result<(), LoadError> {
                for (number, place) in share {
                    let endpoint = endpoints.choose(*number);
                    if work.connects_on_demand() {
                        let nowhere = Session::nowhere(endpoint);
                        **place = Some(nowhere.map_err(|source| LoadError::Socket { source })?);
                        continue;
                    }
                    let opened = connect::open(endpoints, endpoint, work, wishes, limits);
                    **place = Some(opened.map_err(connect::explained)?);
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
fn drop_dead(sessions: &mut [Option<Session>], is_http: bool, limits: &Limits) {
    for place in sessions {
        let is_dead = place.as_mut().is_some_and(|session| match session.is_to_nowhere() {
            true => is_http,
            false => !connect::answers(session, limits),
        });
        if is_dead {
            *place = None;
        }
    }
}

/// How many CPUs the load's threads may run on; tries on a thread of its own whether they are available.
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
    let wanted = connections + FILES_SPARE;
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| wanted.min(maximum)));
        // Where it can't be raised, opening the connection too many gives the clear error.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
