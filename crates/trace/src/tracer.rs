//! The programs in the kernel, and what is read from them.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, ProgramInput, ProgramMut};
use whyso_model::{Role, State};

use crate::account::{Account, Accounts, LOADS, OTHERS, SIDE_LOAD, SIDE_SERVER};
use crate::attribution::{Attribution, Generator, RequestSums};
use crate::capacity::{Capacity, Surroundings};
use crate::cost::{Cost, CountingCost, NOTHING, SAMPLES_PER_S, attach_sampler, cost_of};
use crate::dispatcher::Dispatcher;
use crate::error::Error;
use crate::files::{Paths, as_folder, path_here, path_within};
use crate::listeners::Listeners;
use crate::mounts::Mounts;
use crate::namespace::PidNamespace;
use crate::pauses::{PauseBaseline, Pauses};
use crate::program_stacks::ProgramStacks;
use crate::reading::{FileWait, LOST, LOST_REASONS, Reading, ServerSums, Sums, ThreadSums};
use crate::skeleton::{BudgetSkel, BudgetSkelBuilder};
use crate::sql::SqlTrace;
use crate::stack_sampling::StackSampling;
use crate::stacks::Stacks;
use crate::system_calls::{POLL, descriptor_of_syscall, state_of_syscall};
use crate::upstreams::upstreams;

/// Processes whose descriptors are read for the paths of files, at most: those that do the same work have the same files open.
const PROCESSES_READ_MAX: usize = 64;

/// What is watched.
#[derive(Clone, Debug, Default)]
pub struct TraceSpec {
    /// Processes whose threads are a server's.
    pub servers: Vec<u32>,
    /// Processes whose threads are the generator's. This program's own threads that are named `load-N` always are.
    pub generators: Vec<u32>,
    /// What [`Tracer::stacks`] will take. With waits threads keep what they did last, 520 bytes for each that can be watched.
    pub stacks: StackSampling,
    /// Watched in place of a server, with all that its processes start.
    pub program: Option<Program>,
    /// What is known of where the load comes from: whether requests of unknown clients are the load's.
    pub generator: Generator,
    /// TCP ports at which the server takes clients, at most four; none: any. At other ports it is a client itself, such as a replica.
    pub client_ports: Vec<u16>,
    /// Whether what the programs cost is counted, which itself costs some 40 ns per run of a program.
    pub cost: bool,
}

impl TraceSpec {
    /// The processes that are known when the tracer starts.
    fn processes(&self) -> Vec<u32> {
        let of_program = self.program.iter().flat_map(|program| &program.pids);
        self.servers.iter().chain(&self.generators).chain(of_program).copied().collect()
    }
}

/// Processes of any kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Those that run already.
    pub pids: Vec<u32>,
    /// Every process whose main thread has this name, whenever it begins; the kernel keeps 15 bytes of it. Empty: only those above.
    pub name: String,
    /// They are threads of the kernel's own, such as those of its NFS server.
    pub is_kernel: bool,
}

/// Programs that are attached; they are gone when this is dropped.
pub struct Tracer {
    // Declared before what they refer to, so that they end first.
    links: Vec<Link>,
    accounts: Accounts,
    skeleton: BudgetSkel<'static>,
    _object: Box<MaybeUninit<OpenObject>>,
    stats: Option<CountingCost>,
    gone: Sums,
    read_last: ServerSums,
    strange_last: ServerSums,
    attribution: Attribution,
    generators: Vec<u32>,
    /// Connections of others that were at work when their window began.
    at_work_before: u64,
    /// Shared with who takes stacks: whether requests of unknown clients are the load's.
    strange_is_load: Arc<AtomicBool>,
    roles: Vec<Role>,
    paths: Paths,
    pauses: PauseBaseline,
    /// Those that have threads, as of the last reading.
    processes: BTreeSet<u32>,
    is_program: bool,
    namespace: PidNamespace,
    stack_sampling: StackSampling,
}

impl Tracer {
    /// Loads the programs and attaches them.
    ///
    /// # Errors
    /// Where the kernel or the rights do not allow it; the message names what is missing.
    pub fn start(spec: &TraceSpec) -> Result<Tracer, Error> {
        if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(Error::NoBtf);
        }
        libbpf_rs::set_print(None);
        let namespace = PidNamespace::own()?;
        let mut object = Box::new(MaybeUninit::uninit());
        // SAFETY: the box outlives the skeleton, which is declared before it, and its content does not move.
        let place: &'static mut MaybeUninit<OpenObject> =
            unsafe { &mut *std::ptr::from_mut(object.as_mut()) };
        let mut open = BudgetSkelBuilder::default().open(place).map_err(Error::of)?;
        if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
            constants.clock_offset_ns = whyso_clock::namespace_offset_ns();
            constants.pid_namespace = namespace.inode;
            constants.pid_namespace_level = namespace.level;
            for (number, state) in constants.state_of_syscall.iter_mut().enumerate() {
                *state = state_of_syscall(number as i64) as u8;
            }
            for (number, descriptor) in constants.descriptor_of_syscall.iter_mut().enumerate() {
                *descriptor = descriptor_of_syscall(number as i64);
            }
            constants.call_of_poll = call_number(POLL);
            constants.call_of_ppoll = call_number(Some(libc::SYS_ppoll));
            constants.keeps_pasts = spec.stacks.takes_waits();
            constants.follows_kernel_threads = spec.program.as_ref().is_some_and(|program| program.is_kernel);
        }
        let around = Surroundings::of(&spec.processes());
        let capacity = Capacity::of(around, spec.stacks.takes_waits());
        let pasts = if spec.stacks.takes_waits() { capacity.accounts } else { 1 };
        let maps = &mut open.maps;
        for (map, entries) in [
            (&mut maps.accounts, capacity.accounts),
            (&mut maps.free_accounts, capacity.accounts),
            (&mut maps.pasts, pasts),
            (&mut maps.pauses, capacity.pauses),
            (&mut maps.file_paths, capacity.paths),
            (&mut maps.file_waits, capacity.file_waits),
            (&mut maps.left, capacity.left),
            (&mut maps.server_of, capacity.server_of),
        ] {
            map.set_max_entries(entries).map_err(Error::of)?;
        }
        let skeleton = open.load().map_err(Error::of)?;
        let map = &skeleton.maps.accounts;
        let accounts = Accounts::map(map.as_fd(), map.value_size(), capacity.accounts)?;
        for place in 0..capacity.accounts {
            free(&skeleton, place)?;
        }
        let mut tracer = Tracer {
            links: Vec::new(),
            accounts,
            skeleton,
            _object: object,
            stats: if spec.cost { CountingCost::begin() } else { None },
            gone: Sums::default(),
            read_last: ServerSums::default(),
            strange_last: ServerSums::default(),
            attribution: Attribution::new(spec.generator),
            generators: Vec::new(),
            at_work_before: 0,
            strange_is_load: Arc::default(),
            roles: vec![Role::Other; capacity.accounts as usize],
            paths: Paths::default(),
            pauses: PauseBaseline::default(),
            processes: BTreeSet::new(),
            is_program: spec.program.is_some(),
            namespace,
            stack_sampling: spec.stacks,
        };
        if let Some(program) = &spec.program {
            tracer.watch_program(program)?;
        }
        tracer.set_client_ports(&spec.client_ports);
        tracer.begin_window();
        tracer.watch(&spec.servers, &spec.generators)?;
        tracer.attach()?;
        Ok(tracer)
    }

    /// Names the processes again, after a server was restarted. Known threads stay known.
    ///
    /// # Errors
    /// Where there are more than four.
    pub fn watch(&mut self, servers: &[u32], generators: &[u32]) -> Result<(), Error> {
        let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() else {
            return Ok(());
        };
        let max = data.watched.tgid.len();
        if servers.len() + generators.len() > max {
            return Err(Error::TooManyProcesses { max });
        }
        let all = servers
            .iter()
            .map(|pid| (*pid, SIDE_SERVER))
            .chain(generators.iter().map(|pid| (*pid, SIDE_LOAD)));
        let mut all = all.collect::<Vec<_>>();
        all.resize(max, (0, 0));
        for (place, (pid, side)) in all.into_iter().enumerate() {
            data.watched.side[place] = side;
            data.watched.tgid[place] = pid;
        }
        data.own_tgid = std::process::id();
        if generators != self.generators {
            self.generators = generators.to_vec();
            self.attribution.command_begins();
        }
        self.processes = servers.iter().copied().collect();
        Ok(())
    }

    fn set_client_ports(&mut self, ports: &[u16]) {
        let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() else { return };
        for (place, port) in data.client_ports.port.iter_mut().zip(ports) {
            *place = *port;
        }
    }

    /// Whether it watches processes that are no database server.
    pub fn is_of_program(&self) -> bool {
        self.is_program
    }

    /// A window begins: connections of others are counted in it once each, those that are at work now among them.
    pub fn begin_window(&mut self) {
        let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() else { return };
        data.window.number += 1;
        data.window.begin_ns = whyso_clock::monotonic_ns().unsigned_abs();
        let accounts = (0..self.accounts.count()).filter_map(|place| self.accounts.read(place));
        self.at_work_before += accounts.filter(Account::works_for_others).count() as u64;
    }

    /// Whether requests of clients that nobody knows count as the load's, as of the last reading.
    pub fn strange_is_load(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.strange_is_load)
    }

    fn watch_program(&mut self, program: &Program) -> Result<(), Error> {
        let pids = &self.skeleton.maps.program_pids;
        for pid in &program.pids {
            pids.update(&pid.to_ne_bytes(), &1_u32.to_ne_bytes(), MapFlags::ANY).map_err(Error::of)?;
        }
        let ports = &self.skeleton.maps.ports_listened;
        for port in Listeners::of(&program.pids).ports {
            ports.update(&port.to_ne_bytes(), &[1], MapFlags::ANY).map_err(Error::of)?;
        }
        let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() else { return Ok(()) };
        data.watched.programs = 1;
        data.watched.paths = 1;
        // The last byte stays 0.
        let length = data.watched.name.len() - 1;
        for (to, from) in data.watched.name[..length].iter_mut().zip(program.name.bytes()) {
            *to = from.cast_signed();
        }
        Ok(())
    }

    fn attach(&mut self) -> Result<(), Error> {
        let programs = &mut self.skeleton.progs;
        let mut plain: [&mut ProgramMut<'_>; 12] = [
            &mut programs.on_switch,
            &mut programs.on_waking,
            &mut programs.on_exit,
            &mut programs.on_free,
            &mut programs.on_fork,
            &mut programs.on_rename,
            &mut programs.on_contention,
            &mut programs.on_contention_end,
            &mut programs.on_receive,
            &mut programs.on_send,
            &mut programs.on_arrival,
            &mut programs.on_tcp_state,
        ];
        for program in &mut plain {
            self.links.push(program.attach().map_err(Error::of)?);
        }
        for cpu in 0..libbpf_rs::num_possible_cpus().map_err(Error::of)? {
            // Without samples only the split of the CPU time is missing.
            self.links.extend(attach_sampler(&programs.on_sample, cpu, SAMPLES_PER_S)?);
        }
        if self.stats.is_some() {
            self.links.push(programs.on_nothing.attach().map_err(Error::of)?);
        }
        Ok(())
    }

    /// Takes the programs off their tracepoints, so that they cost nothing; what they have counted stays. For measuring
    /// what they cost: once they are back, the time between is entered in what each thread was in when they went.
    pub fn pause(&mut self) {
        self.links.clear();
    }

    /// Puts the programs back after [`Tracer::pause`].
    ///
    /// # Errors
    /// Where the kernel does not take them again.
    pub fn resume(&mut self) -> Result<(), Error> {
        if self.links.is_empty() { self.attach() } else { Ok(()) }
    }

    /// All sums up to now.
    pub fn read(&mut self) -> Reading {
        self.read_up_to(false)
    }

    /// The same at a window's end: what is open of whose requests are the load's is decided by what is known now.
    pub fn read_to_end(&mut self) -> Reading {
        self.read_up_to(true)
    }

    fn read_up_to(&mut self, settle: bool) -> Reading {
        let mut sums = self.gone.clone();
        let (mut threads, mut strange) = (Vec::new(), Vec::new());
        for place in 0..self.accounts.count() {
            let Some(mut account) = self.accounts.read(place) else {
                self.roles[place] = Role::Other;
                continue;
            };
            let role = self.role(place, &account);
            if account.gone == 1 {
                self.retire(place, &account, role);
                // It counts in this reading as it will in all that follow.
                enter(&mut sums, &account, role, false);
                continue;
            }
            // The clock is read after the account: nothing in it is later.
            account.carry_to(whyso_clock::monotonic_ns().unsigned_abs());
            enter(&mut sums, &account, role, true);
            if account.side == SIDE_SERVER {
                strange.push(account.served[OTHERS].requests);
                threads.push(ThreadSums {
                    tid: account.tid,
                    pid: account.tgid,
                    name: account.name(),
                    role,
                    born_ns: account.born_ns,
                    requests: account.served[LOADS].requests,
                    states: account.sums(),
                    now: account.state(),
                });
            }
        }
        sums.server.keep_at_least(&self.read_last);
        self.read_last = sums.server;
        sums.strange.keep_at_least(&self.strange_last);
        self.strange_last = sums.strange;
        let connections = sums.connections + self.at_work_before;
        let (direct, client, own) = (sums.server, sums.client, sums.own);
        let requests = RequestSums { direct, strange: sums.strange, connections, own, client };
        let (server, others) = self.attribution.divide(requests, settle);
        let is_load = self.attribution.strange_is_load();
        self.strange_is_load.store(is_load, Ordering::Relaxed);
        if is_load {
            threads.iter_mut().zip(strange).for_each(|(thread, requests)| thread.requests += requests);
        }
        self.processes.extend(threads.iter().map(|thread| thread.pid));
        self.processes.retain(|pid| threads.iter().any(|thread| thread.pid == *pid));
        Reading {
            at_ns: whyso_clock::monotonic_ns(),
            server,
            client: sums.client,
            others,
            roles: sums.roles,
            threads,
            kept_ns: sums.kept_ns,
            upstreams: if self.is_program { upstreams(&self.skeleton.maps.upstreams) } else { Vec::new() },
            lost: self.lost(),
        }
    }

    /// The server's waits for files, by file, since the tracer started.
    pub fn files(&mut self) -> Vec<FileWait> {
        for pid in self.processes.iter().take(PROCESSES_READ_MAX) {
            self.paths.read_descriptors(*pid);
        }
        let walked = self.walked_paths();
        let map = &self.skeleton.maps.file_waits;
        let mut waits = Vec::new();
        for key in map.keys() {
            let Ok(Some(value)) = map.lookup(&key, MapFlags::ANY) else { continue };
            let (Some(inode), Some(device)) = (long(&key, 0), key.get(8..12)) else { continue };
            let device = u32::from_ne_bytes(device.try_into().unwrap_or_default());
            let (Some(state), Some(role)) = (key.get(12), key.get(13)) else { continue };
            let (Some(count), Some(ns)) = (long(&value, 0), long(&value, 8)) else { continue };
            waits.push(FileWait {
                path: self.paths.of(device, inode).or_else(|| walked.get(&(device, inode))).cloned(),
                inode,
                state: State::of_number(*state).unwrap_or(State::Other),
                role: Role::of_number(*role).unwrap_or(Role::Other),
                count,
                ns,
            });
        }
        waits
    }

    /// Paths that the programs walked up, by device and inode.
    fn walked_paths(&self) -> BTreeMap<(u32, u64), PathBuf> {
        let mounts = Mounts::of(self.processes.first().copied().unwrap_or_else(std::process::id));
        let map = &self.skeleton.maps.file_paths;
        let path = |key: Vec<u8>| {
            let value = map.lookup(&key, MapFlags::ANY).ok().flatten()?;
            let device = u32::from_ne_bytes(key.get(8..12)?.try_into().ok()?);
            let (within, is_folder) = path_within(&value)?;
            let here = path_here(&mounts, device, &within)?;
            Some(((device, long(&key, 0)?), if is_folder { as_folder(here) } else { here }))
        };
        map.keys().filter_map(path).collect()
    }

    /// The pauses of the server's threads since the last call. `reading` has the threads that live.
    pub fn pauses(&mut self, reading: &Reading) -> Vec<Pauses> {
        let map = &self.skeleton.maps.pauses;
        let entry = |key: Vec<u8>| {
            let value = map.lookup(&key, MapFlags::ANY).ok().flatten()?;
            Some((key, value))
        };
        let grown = self.pauses.grown(map.keys().filter_map(entry).collect());
        for key in self.pauses.departed(&reading.threads) {
            // Where it fails, a place is taken for longer; the programs count pauses that find none.
            let _ = map.delete(&key);
        }
        grown
    }

    /// What counting adds to each run of a program, in nanoseconds, as measured now on a program that does nothing; `None`
    /// where the kernel does not count ([`CountingCost`]). One that is run by the thousand has all it needs in the caches:
    /// it is rather more.
    pub fn counting_ns(&self) -> Option<f64> {
        const RUNS: usize = 2_000;
        let program = &self.skeleton.progs.on_nothing;
        let before = cost_of(NOTHING, program.as_fd())?;
        for _ in 0..RUNS {
            let mut arguments = [0; 8];
            let input = ProgramInput { context_in: Some(&mut arguments), ..ProgramInput::default() };
            program.test_run(input).ok()?;
        }
        let after = cost_of(NOTHING, program.as_fd())?;
        let runs = after.runs.checked_sub(before.runs).filter(|runs| *runs > 0)?;
        Some((after.ns - before.ns) as f64 / runs as f64)
    }

    /// What the programs have cost; nothing unless [`TraceSpec::cost`] asked for it.
    pub fn cost(&self) -> Vec<Cost> {
        let programs = &self.skeleton.progs;
        let all = [
            ("sched_switch", programs.on_switch.as_fd()),
            ("sched_waking", programs.on_waking.as_fd()),
            ("sched_process_exit", programs.on_exit.as_fd()),
            ("sched_process_free", programs.on_free.as_fd()),
            ("sched_process_fork", programs.on_fork.as_fd()),
            ("task_rename", programs.on_rename.as_fd()),
            ("contention_begin", programs.on_contention.as_fd()),
            ("contention_end", programs.on_contention_end.as_fd()),
            ("sock_recv_length", programs.on_receive.as_fd()),
            ("sock_send_length", programs.on_send.as_fd()),
            ("sk_data_ready", programs.on_arrival.as_fd()),
            ("inet_sock_set_state", programs.on_tcp_state.as_fd()),
            ("perf_event", programs.on_sample.as_fd()),
            (NOTHING, programs.on_nothing.as_fd()),
        ];
        all.into_iter().filter_map(|(name, fd)| cost_of(name, fd)).collect()
    }

    /// Takes stacks too, of the processes that this tracer watches.
    ///
    /// # Errors
    /// Where the kernel does not take the programs.
    pub fn stacks(&self) -> Result<Stacks, Error> {
        let maps = &self.skeleton.maps;
        let [accounts, account_of, pasts] =
            [maps.accounts.as_fd(), maps.account_of.as_fd(), maps.pasts.as_fd()];
        Stacks::start(self.stack_sampling, self.namespace, accounts, account_of, pasts)
    }

    /// Takes stacks of all programs on this machine except the servers, too.
    ///
    /// # Errors
    /// Where the kernel does not take the program.
    pub fn program_stacks(&self, sampling: StackSampling) -> Result<ProgramStacks, Error> {
        let maps = &self.skeleton.maps;
        let accounts = (maps.accounts.as_fd(), maps.account_of.as_fd());
        ProgramStacks::start(sampling, Some(accounts))
    }

    /// Follows the commands of clients too, of one of the servers that this tracer watches. `file`: where its dispatcher is.
    ///
    /// # Errors
    /// Where the kernel does not take the programs.
    pub fn sql(&self, pid: u32, file: &Path, dispatcher: &Dispatcher) -> Result<SqlTrace, Error> {
        let maps = &self.skeleton.maps;
        let (accounts, account_of) = (maps.accounts.as_fd(), maps.account_of.as_fd());
        SqlTrace::start(self.namespace, accounts, account_of, pid, file, dispatcher)
    }

    fn role(&mut self, place: usize, account: &Account) -> Role {
        if self.roles[place] == Role::Other && account.side == SIDE_SERVER {
            let of_name = Role::of_name(&account.name());
            // A program of any kind receives for many reasons.
            let works = !self.is_program && account.requests() > 0;
            let role = if of_name == Role::Other && works { Role::Connection } else { of_name };
            if role != Role::Other {
                self.roles[place] = role;
                self.accounts.set_role(place, role as u8);
            }
        }
        self.roles[place]
    }

    fn retire(&mut self, place: usize, account: &Account, role: Role) {
        enter(&mut self.gone, account, role, false);
        self.roles[place] = Role::Other;
        self.accounts.clear(place);
        // Where it fails, one account less is left; the programs count threads that find none.
        let _ = free(&self.skeleton, place as u32);
    }

    fn lost(&self) -> [(&'static str, u64); LOST] {
        let lost = self.skeleton.maps.bss_data.as_deref().map(|data| data.lost).unwrap_or_default();
        let counts = [
            lost.accounts,
            lost.storage,
            lost.clock,
            lost.pauses,
            lost.files,
            lost.paths,
            lost.requests,
            lost.clients,
        ];
        std::array::from_fn(|reason| (LOST_REASONS[reason], counts[reason]))
    }
}

fn enter(sums: &mut Sums, account: &Account, role: Role, lives: bool) {
    match account.side {
        SIDE_SERVER => sums.add_server(account, role, lives),
        SIDE_LOAD => sums.add_client(account),
        _ => {}
    }
}

/// As the programs compare it; one past all numbers where this architecture has no such call.
fn call_number(call: Option<i64>) -> u16 {
    call.and_then(|number| u16::try_from(number).ok()).unwrap_or(u16::MAX)
}

fn free(skeleton: &BudgetSkel<'_>, place: u32) -> Result<(), Error> {
    skeleton.maps.free_accounts.update(&[], &place.to_ne_bytes(), MapFlags::ANY).map_err(Error::of)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
