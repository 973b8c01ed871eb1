//! Each thread's stack as it is now, with what the server says of its connection.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use whyso_model::{Role, State};
use whyso_profile::{FunctionNow, StackNow};
use whyso_series::ThreadTime;
use whyso_server::Dsn;
use whyso_stacks::{End, Frame, Names, Registers, Unwinding};
use whyso_trace::{ThreadNow, ThreadSnapshot};

use crate::login::AskPassword;
use crate::process::check_processes;
use crate::record::RecordTarget;
use crate::runtime::{GOODBYE_TIME_MAX, runtime};
use crate::threads_now::{connections_now, server_here};
use whyso_query::ThreadFilter;
use whyso_tracing::Processes;
use whyso_tracing::kernel_frames;

use crate::Error;

/// A thread that is on a CPU is looked at so often again, until it is found off one.
const READS_MAX: u32 = 5;
/// Time between two such reads.
const READ_INTERVAL: Duration = Duration::from_millis(5);
/// Most threads that are read, of all processes.
const THREADS_MAX: usize = 20_000;

/// The stacks of a server's threads, or of other processes', read one after the other without stopping any.
///
/// # Errors
/// There is no such server or process here, it may not be read, or no thread is left of those that are asked for.
pub fn stacks_now(
    of: &RecordTarget,
    filter: &ThreadFilter,
    ask_password: &AskPassword,
) -> Result<Vec<StackNow>, Error> {
    check_processes()?;
    match of {
        RecordTarget::Machine => {
            Err(Error::Plan("a machine has no threads of its own: name a server or a process".to_string()))
        }
        RecordTarget::Processes(asked) => {
            let pids = Processes::find(asked)?.pids;
            read_stacks(&pids, &HashMap::new(), filter)
        }
        RecordTarget::Server(dsn) => {
            let runtime = runtime()?;
            let (dsn, pid): (Dsn, u32) = server_here(dsn, &runtime, ask_password)?;
            let connections = runtime.block_on(connections_now(&dsn)).by_tid;
            let stacks = read_stacks(&[pid], &connections, filter);
            runtime.shutdown_timeout(GOODBYE_TIME_MAX);
            stacks
        }
    }
}

/// `connections`: connection and statement by thread.
fn read_stacks(
    pids: &[u32],
    connections: &HashMap<u32, (u64, Option<String>)>,
    filter: &ThreadFilter,
) -> Result<Vec<StackNow>, Error> {
    let mut snapshot = ThreadSnapshot::start()
        .map_err(|error| Error::Failed(format!("stacks can't be read here: {error}")))?;
    let mut found = Vec::new();
    for tid in pids.iter().flat_map(|pid| threads_of(*pid)).take(THREADS_MAX) {
        if let Some(thread) = at_rest(&mut snapshot, tid)? {
            found.push((role(&thread, connections.contains_key(&tid)), thread));
        }
    }
    let described: Vec<ThreadTime> =
        found.iter().map(|(role, thread)| described(*role, thread, connections)).collect();
    let chosen: BTreeSet<u32> = filter.choose(&described)?.into_iter().map(|thread| thread.tid).collect();
    found.retain(|(_, thread)| chosen.contains(&thread.tid));
    Ok(named(found, connections))
}

/// As the filter knows a thread.
fn described(
    role: Role,
    thread: &ThreadNow,
    connections: &HashMap<u32, (u64, Option<String>)>,
) -> ThreadTime {
    let (connection, statement) = connections.get(&thread.tid).cloned().unzip();
    ThreadTime {
        tid: thread.tid,
        name: thread.name.clone(),
        role: role.name().to_string(),
        connection,
        statement: statement.flatten(),
        ..ThreadTime::default()
    }
}

/// The thread, off its CPU if it can be found so.
fn at_rest(snapshot: &mut ThreadSnapshot, tid: u32) -> Result<Option<ThreadNow>, Error> {
    let mut reads = 0;
    loop {
        let found = snapshot
            .at(tid)
            .map_err(|error| Error::Failed(format!("thread {tid} can't be looked at: {error}")))?;
        reads += 1;
        if reads == READS_MAX || found.as_ref().is_none_or(|thread| !thread.is_running) {
            return Ok(found);
        }
        std::thread::sleep(READ_INTERVAL);
    }
}

fn role(thread: &ThreadNow, has_connection: bool) -> Role {
    if has_connection { Role::Connection } else { Role::of_name(&thread.name) }
}

fn threads_of(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"));
    let names =
        entries.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut tids: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
    tids.sort_unstable();
    tids
}

/// Names the functions of all stacks at once: what was read of a module is of use for every thread.
fn named(
    threads: Vec<(Role, ThreadNow)>,
    connections: &HashMap<u32, (u64, Option<String>)>,
) -> Vec<StackNow> {
    let mut unwinding = Unwinding::default();
    let unwound: Vec<(Vec<Frame>, bool)> =
        threads.iter().map(|(_, thread)| frames(thread, &mut unwinding)).collect();
    let mut distinct: Vec<Frame> = unwound.iter().flat_map(|(frames, _)| frames.iter().copied()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let names = Names::default().of(&distinct, &unwinding);
    let of_thread = |((role, thread), (frames, is_whole)): ((Role, ThreadNow), (Vec<Frame>, bool))| {
        let functions = frames.iter().flat_map(|frame| names.get(frame).map_or(&[][..], Vec::as_slice));
        let functions: Vec<FunctionNow> = functions
            .map(|function| FunctionNow {
                name: function.name.clone(),
                module: function.module.clone(),
                source: function.file.clone().zip(function.line),
            })
            .collect();
        let (state, file) = state(&thread);
        let (connection, statement) = connections.get(&thread.tid).cloned().unzip();
        StackNow {
            tid: thread.tid,
            pid: thread.pid,
            name: thread.name,
            role: role.name().to_string(),
            state: state.name().to_string(),
            file,
            connection,
            statement: statement.flatten(),
            functions,
            is_whole,
        }
    };
    threads.into_iter().zip(unwound).map(of_thread).collect()
}

/// Innermost first, and whether they reach the thread's begin.
fn frames(thread: &ThreadNow, unwinding: &mut Unwinding) -> (Vec<Frame>, bool) {
    if thread.is_running {
        return (Vec::new(), false);
    }
    let mut frames = kernel_frames(&thread.kernel);
    let from = thread.registers;
    if from.stack_pointer == 0 {
        // A thread of the kernel's.
        return (frames, true);
    }
    let registers = Registers {
        instruction_pointer: from.instruction_pointer,
        stack_pointer: from.stack_pointer,
        frame_pointer: from.frame_pointer,
        link_register: from.link_register,
    };
    let user = unwinding.user(thread.pid, registers, &thread.user);
    frames.extend(user.frames);
    (frames, user.end == End::Root)
}

/// What the thread is in, and on which file, by its system call and its descriptor.
fn state(thread: &ThreadNow) -> (State, Option<PathBuf>) {
    let is_file = matches!(thread.state, State::FileRead | State::FileWrite | State::FileSync);
    let descriptor = is_file.then(|| format!("/proc/{}/fd/{}", thread.pid, thread.argument));
    let target = descriptor.and_then(|link| std::fs::read_link(link).ok());
    let state = match target.as_ref().and_then(|target| target.to_str()) {
        Some(target) if target.starts_with("socket:") && thread.state == State::FileRead => State::NetReceive,
        Some(target) if target.starts_with("socket:") => State::NetSend,
        Some(target) if !target.starts_with('/') => State::Other,
        _ => thread.state,
    };
    (state, target.filter(|target| target.is_absolute()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(state: State, argument: u64) -> ThreadNow {
        ThreadNow {
            tid: 1,
            pid: std::process::id(),
            name: "one_connection".to_string(),
            state,
            is_running: false,
            call: None,
            argument,
            kernel: vec![1],
            registers: whyso_trace::Registers::default(),
            user: Vec::new(),
            user_rest_bytes: None,
        }
    }

    #[test]
    fn files_sockets_and_pipes_are_distinguished_by_their_descriptors() {
        use std::os::fd::AsRawFd;
        let file = tempfile::NamedTempFile::new().unwrap();
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let (pipe, _end) = std::io::pipe().unwrap();
        let state_of = |state, fd: i32| super::state(&thread(state, fd as u64));
        let path = std::fs::canonicalize(file.path()).unwrap();
        assert_eq!(state_of(State::FileWrite, file.as_file().as_raw_fd()), (State::FileWrite, Some(path)));
        assert_eq!(state_of(State::FileRead, socket.as_raw_fd()), (State::NetReceive, None));
        assert_eq!(state_of(State::FileWrite, socket.as_raw_fd()), (State::NetSend, None));
        assert_eq!(state_of(State::FileRead, pipe.as_raw_fd()), (State::Other, None));
        assert_eq!(state_of(State::FileRead, -1), (State::FileRead, None), "a descriptor that is closed");
    }

    #[test]
    fn a_thread_that_a_connection_has_is_one_of_connections() {
        let nameless = ThreadNow { name: "mysqld".to_string(), ..thread(State::Lock, 0) };
        assert_eq!(role(&nameless, true), Role::Connection);
        assert_eq!(role(&nameless, false), Role::Other);
        assert_eq!(role(&thread(State::Lock, 0), false), Role::Connection, "by its name");
    }
}
