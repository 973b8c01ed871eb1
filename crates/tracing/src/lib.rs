//! Records what the tracer sees: the account of the threads' time, their stacks, and the commands of the server's clients.
//!
//! [`Tracing::begin`] starts threads that read the tracer's sums each second, and exactly at both ends of every measured window, and
//! write them to a recording. Where the machine does not allow the tracer, states are sampled from `/proc`, and the
//! recording has a note on what it lacks.
//!
//! This crate starts no server and no load, and does not know when a level begins: its caller reports it by [`Tracing::mark`].

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cost;
mod counting;
mod error;
mod keeper;
mod literals;
mod no_process;
mod nodes;
mod processes;
mod programs;
mod request;
mod session;
mod sql_trace;
mod stacks;
mod thread_states;
mod tier;
mod workers;

pub use counting::{Counting, Sight};
pub use error::Error;
pub use literals::Literals;
pub use no_process::no_process;
pub use nodes::{NodeTracing, OtherStacks, TracedNode, TracedProgram};
pub use processes::{ProcessNotFound, Processes};
pub use session::{Tracing, TracingSpec};
pub use sql_trace::{CommandIntake, FollowSpec};
pub use stacks::{BusyFunctions, kernel_frames};
