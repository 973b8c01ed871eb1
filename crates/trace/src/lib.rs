//! Where the time goes: the states of a server's threads, and the requests that waited in them.
//!
//! BPF programs on the scheduler's and the sockets' tracepoints keep one account per thread. It holds how long the thread ran, and
//! waited for a CPU, a lock or a file. It also holds how much of that lay within requests.
//!
//! A request lives on the server from when it was *picked* (received) to when its last reply was in the client's socket. The next
//! receive shows which reply was the last. [`Tracer::read`] returns the sums up to now, including what has not ended yet. So the
//! difference of two readings accounts for all the time between them.
//!
//! - [`Stacks`] copies stacks of threads on CPUs and of waits.
//! - [`ProgramStacks`] copies stacks of all other programs on the machine.
//! - [`SqlTrace`] follows the commands of clients by probes.
//! - [`ThreadSnapshot`] reads every thread once.
//! - [`Sampler`] reads `/proc` where BPF is not allowed.
//!
//! Nothing here writes to the server, asks it anything, or attaches to `raw_syscalls`. The system call that a thread is in
//! is read from its registers when it leaves its CPU.
//!
//! ```no_run
//! use whyso_model::State;
//! use whyso_trace::{TraceSpec, Tracer};
//!
//! # fn main() -> Result<(), whyso_trace::Error> {
//! let mut tracer = Tracer::start(&TraceSpec { servers: vec![4711], ..TraceSpec::default() })?;
//! let before = tracer.read();
//! std::thread::sleep(std::time::Duration::from_secs(10));
//! let after = tracer.read();
//! let requests = after.server.requests - before.server.requests;
//! let lock_ns = after.server.in_requests[State::Lock as usize] - before.server.in_requests[State::Lock as usize];
//! println!("{requests} requests waited {lock_ns} ns for locks");
//! # Ok(())
//! # }
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod account;
mod attribution;
mod capacity;
mod command;
mod cost;
pub mod dispatcher;
mod emulated;
mod error;
mod files;
mod listeners;
mod mounts;
mod namespace;
mod now;
mod pauses;
pub mod places;
mod program_stacks;
mod reading;
mod ring;
mod sampled;
mod sql;
mod stack_record;
mod stack_sampling;
mod stacks;
mod system_calls;
mod tracer;
mod upstreams;

/// Generated from `bpf/stacks.bpf.c` by the build script.
#[allow(unreachable_pub, clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, missing_docs)]
mod stacks_skeleton {
    include!(concat!(env!("OUT_DIR"), "/stacks.skel.rs"));
}

/// Generated from `bpf/namespace.bpf.c` by the build script.
#[allow(unreachable_pub, clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, missing_docs)]
mod namespace_skeleton {
    include!(concat!(env!("OUT_DIR"), "/namespace.skel.rs"));
}

/// Generated from `bpf/programs.bpf.c` by the build script.
#[allow(unreachable_pub, clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, missing_docs)]
mod programs_skeleton {
    include!(concat!(env!("OUT_DIR"), "/programs.skel.rs"));
}

/// Generated from `bpf/now.bpf.c` by the build script.
#[allow(unreachable_pub, clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, missing_docs)]
mod now_skeleton {
    include!(concat!(env!("OUT_DIR"), "/now.skel.rs"));
}

/// Generated from `bpf/sql.bpf.c` by the build script.
#[allow(unreachable_pub, clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, missing_docs)]
mod sql_skeleton {
    include!(concat!(env!("OUT_DIR"), "/sql.skel.rs"));
}

/// Generated from `bpf/budget.bpf.c` by the build script.
#[allow(unreachable_pub, clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, missing_docs)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/budget.skel.rs"));
}

pub use attribution::Generator;
pub use command::{
    COM_CHANGE_USER, COM_INIT_DB, COM_QUERY, COM_QUIT, COM_RESET_CONNECTION, COM_STMT_CLOSE,
    COM_STMT_PREPARE, Command, CommandCounts, CommandTimes, StatementRef, TEXT_BYTES_MAX, command_name,
};
pub use cost::{Cost, CountingCost, NOTHING};
pub use dispatcher::{Dispatcher, DispatcherError, ProbePlace};
pub use error::Error;
pub use listeners::Listeners;
pub use namespace::check_proc;
pub use now::{ThreadNow, ThreadSnapshot};
pub use pauses::{Client, Moments, Pauses};
pub use places::Places;
pub use program_stacks::{ProgramOrigin, ProgramRecord, ProgramStacks};
pub use reading::{ClientSums, FileWait, OtherSums, Reading, ServerSums, ThreadSums, UpstreamSums};
pub use sampled::Sampler;
pub use sql::{COMMANDS_AT_ONCE, CommandsLost, SqlTrace, commands_ring_bytes};
pub use stack_record::{Registers, StackKind, StackRecord};
pub use stack_sampling::{StackSampling, StacksOf};
pub use stacks::{Stacks, StacksLost, WAITS_PER_READING_AND_CPU};
pub use system_calls::{name_of_syscall, state_of_syscall};
pub use tracer::{Program, TraceSpec, Tracer};
pub use upstreams::tcp_address;
