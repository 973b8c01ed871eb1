//! Neighbours: other programs on the server's machine, with the CPU time, disk traffic and memory that they use, by name. Of a machine
//! without the server, these are all programs.
//!
//! A process at the other end of one of the server's sockets is the load. The server and what it started, whyso and what it started, and
//! the kernel's own threads are no neighbours either; any other process is one. A user without root's rights
//! may not see which sockets a process has, and then can't always distinguish a client from a neighbour: `unclear_cpu_ns` has that time.
//!
//! A process that begins and ends between two readings is not seen. Reading all processes is bounded to 2 % of one core, and names have
//! a bound.

mod diag;
mod families;
mod peers;
mod processes;
mod sampler;

use sampler::{METRICS, Neighbours};

use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["neighbours"],
    counts: "CPU, disk and memory of other programs, by name",
    origin: "`/proc`, the kernel's list of sockets",
    metrics: &[&METRICS],
    start,
};

/// Where the server is on another machine, the programs of this one are read: their host is that of the load.
fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let generator = context.spec.generator_pid;
    if !context.server_is_here() {
        let sampler = Neighbours::new(None, generator, None, context.machine);
        return vec![ScheduledSampler::of_generator(sampler)];
    }
    let has_server = context.spec.server.is_some() || context.spec.server_pid.is_some();
    let pid = has_server.then(|| context.server_pid.clone());
    let sampler = Neighbours::new(pid, generator, context.server(), context.machine);
    vec![ScheduledSampler::of_server(sampler.without(context.node_pids.clone()))]
}
