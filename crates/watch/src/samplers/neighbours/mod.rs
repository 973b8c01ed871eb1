//! Neighbours: other programs on the server's machine, with the CPU time, disk traffic and memory that they use, by name.
//!
//! A process at the other end of one of the server's sockets is the load. The server and what it started, whyso and what it started, and
//! the kernel's own threads are no neighbours either; any other process is one. Whoever may not see which sockets a process has, such as
//! a user without root's rights, can't always tell a client from a neighbour: its time is then of metric `unclear_cpu_ns`.
//!
//! What begins and ends between two looks is not seen. A look at all processes is bounded to 2 % of one core, and names have a bound.

mod diag;
mod families;
mod peers;
mod processes;
mod sampler;

use sampler::{METRICS, Neighbours};

use crate::sampler_entry::{SamplerEntry, Scheduled, StartContext};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["neighbours"],
    counts: "CPU, disk and memory of other programs, by name",
    origin: "`/proc`, the kernel's list of sockets",
    metrics: &[&METRICS],
    start,
};

fn start(context: &StartContext<'_>) -> Vec<Scheduled> {
    if !context.server_is_here() {
        return Vec::new();
    }
    let (pid, generator) = (context.server_pid.clone(), context.spec.generator_pid);
    vec![Scheduled::of_server(Neighbours::new(pid, generator, context.server(), context.machine))]
}
