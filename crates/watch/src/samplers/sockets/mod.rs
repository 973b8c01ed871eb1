//! Local ports of connections, and the accept queues of listeners: the kernel's lists of sockets (sock_diag(7)).
//!
//! Both are of the network namespace that whyso runs in. The lists of connections are read only while there are enough of them to use
//! up a fourth of the local ports.

mod listeners;
mod ports;

use std::io;
use std::time::Duration;

use crate::metric::{Metric, gauge};
use crate::sampler::Failure;
use crate::sampler_entry::{SamplerEntry, ScheduledSampler};
use listeners::Listeners;
use ports::Ports;

/// Between two readings of the ports: a closed connection holds its port for 60 s.
const PORTS_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["ports", "listeners"],
    counts: "local ports in use by destination, connections that wait to be accepted",
    origin: "the kernel's lists of sockets, `/proc/net/sockstat`",
    metrics: &[&PORTS, &LISTENERS],
    start: |_| {
        vec![
            ScheduledSampler::of_machine(Ports::new()).at_least_every(PORTS_INTERVAL),
            ScheduledSampler::of_machine(Listeners),
        ]
    },
};

/// A list that did not come in time is a gap. One that the kernel does not have will not come.
fn failure(error: &io::Error) -> Failure {
    let why = format!("the kernel's list of sockets can't be read: {error}");
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::TimedOut => {
            Failure::quick(why)
        }
        _ => Failure::Absent(why),
    }
}

pub(crate) const PORTS: [Metric; 4] = [
    gauge("range", "1", "local ports that connections may get: net.ipv4.ip_local_port_range"),
    gauge("all_time_wait", "1", "closed connections that still hold their ports (TIME_WAIT)"),
    gauge("used", "1", "local ports of the range in use to this destination"),
    gauge("time_wait", "1", "of these, ports of closed connections (TIME_WAIT)"),
];

pub(crate) const LISTENERS: [Metric; 2] = [
    gauge("accept_queue", "1", "connections that wait to be accepted"),
    gauge("backlog", "1", "connections that may wait at most"),
];
