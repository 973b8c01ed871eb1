//! A sampler's entry in the catalogue: what it counts, and how it starts.

use std::time::Duration;

use mysql_async::Opts;

use crate::metric::Metric;
use crate::own_statements::OwnStatements;
use crate::pid::{NodePids, Pid};
use crate::sampler::Sampler;
use crate::samplers::lock_waits::RowLockActivity;
use crate::samplers::pfs::{SharedReader, share};
use crate::samplers::sessions::SessionTally;
use crate::spec::WatchSpec;
use crate::sql::{OwnConnections, Sql};
use crate::stop::Stop;
use crate::text::Machine;

/// Between two readings of what costs more, and is looked up rather than drawn.
pub(crate) const NOW_AND_THEN: Duration = Duration::from_secs(5);

/// The description of a sampler.
pub(crate) struct SamplerEntry {
    /// Names of its sources in a recording. "pfs_…" stands for all that begin with "pfs_".
    pub(crate) sources: &'static [&'static str],
    /// What it counts, for people.
    pub(crate) counts: &'static str,
    /// Where it reads that.
    pub(crate) origin: &'static str,
    /// Its numbers. Empty for a sampler that keeps the names of its source.
    pub(crate) metrics: &'static [&'static [Metric]],
    /// Starts the samplers that the context has a reason for.
    pub(crate) start: fn(&StartContext<'_>) -> Vec<ScheduledSampler>,
}

impl SamplerEntry {
    /// Returns whether the entry has this source.
    pub(crate) fn has_source(&self, source: &str) -> bool {
        self.sources.iter().any(|name| match name.strip_suffix('…') {
            Some(prefix) => source.starts_with(prefix),
            None => *name == source,
        })
    }
}

/// Whose machine a sampler reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// This machine, which may be the server's.
    Machine,
    Server,
    Generator,
}

/// How often a sampler reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interval {
    /// As often as the run asks for.
    Run,
    /// As often as the run asks for, and at most this often.
    AtLeast(Duration),
    /// As often as the run asks for, and at least this often.
    AtMost(Duration),
    /// As often as the run asks for what rarely changes.
    Slow,
    /// Its own interval.
    Own(Duration),
}

impl Interval {
    /// Returns the time between two readings.
    pub(crate) fn resolve(self, spec: &WatchSpec) -> Duration {
        match self {
            Interval::Run => spec.interval,
            Interval::AtLeast(least) => least.max(spec.interval),
            Interval::AtMost(most) => most.min(spec.interval),
            Interval::Slow => spec.slow_interval.max(spec.interval),
            Interval::Own(interval) => interval,
        }
    }

    /// Whether it is longer than what the run asks for.
    pub(crate) fn is_stretched(self, spec: &WatchSpec) -> bool {
        matches!(self, Interval::AtLeast(least) if least > spec.interval)
    }
}

/// A sampler with its schedule.
pub(crate) struct ScheduledSampler {
    pub(crate) sampler: Box<dyn Sampler>,
    pub(crate) host: Host,
    pub(crate) interval: Interval,
    /// How long after the others it reads.
    pub(crate) delay_ns: i64,
    /// Samplers that name one thread are read one at a time. `None`: a thread of its own.
    pub(crate) thread: Option<&'static str>,
}

impl ScheduledSampler {
    fn on(host: Host, sampler: impl Sampler + 'static) -> ScheduledSampler {
        let sampler = Box::new(sampler);
        ScheduledSampler { sampler, host, interval: Interval::Run, delay_ns: 0, thread: None }
    }

    pub(crate) fn of_machine(sampler: impl Sampler + 'static) -> ScheduledSampler {
        ScheduledSampler::on(Host::Machine, sampler)
    }

    pub(crate) fn of_server(sampler: impl Sampler + 'static) -> ScheduledSampler {
        ScheduledSampler::on(Host::Server, sampler)
    }

    pub(crate) fn of_generator(sampler: impl Sampler + 'static) -> ScheduledSampler {
        ScheduledSampler::on(Host::Generator, sampler)
    }

    /// With this much time or more between two readings.
    pub(crate) fn at_least_every(self, least: Duration) -> ScheduledSampler {
        ScheduledSampler { interval: Interval::AtLeast(least), ..self }
    }

    /// With this much time or less between two readings.
    pub(crate) fn at_most_every(self, most: Duration) -> ScheduledSampler {
        ScheduledSampler { interval: Interval::AtMost(most), ..self }
    }

    /// As often as what rarely changes.
    pub(crate) fn slowly(self) -> ScheduledSampler {
        ScheduledSampler { interval: Interval::Slow, ..self }
    }

    /// With its own interval.
    pub(crate) fn every(self, interval: Duration) -> ScheduledSampler {
        ScheduledSampler { interval: Interval::Own(interval), ..self }
    }

    /// This long after the others.
    pub(crate) fn delayed_by(self, delay_ns: i64) -> ScheduledSampler {
        ScheduledSampler { delay_ns, ..self }
    }

    /// On a thread that it shares.
    pub(crate) fn on_thread(self, thread: &'static str) -> ScheduledSampler {
        ScheduledSampler { thread: Some(thread), ..self }
    }
}

/// What samplers start from.
pub(crate) struct StartContext<'s> {
    pub(crate) spec: &'s WatchSpec,
    pub(crate) stop: Stop,
    pub(crate) machine: Machine,
    /// The server's process, which changes when the server is restarted.
    pub(crate) server_pid: Pid,
    /// Those of the cluster's other nodes.
    pub(crate) node_pids: NodePids,
    pub(crate) own_connections: OwnConnections,
    pub(crate) statements: OwnStatements,
    pub(crate) row_lock_activity: RowLockActivity,
    pub(crate) sessions: SessionTally,
    pfs: Option<SharedReader>,
}

impl<'s> StartContext<'s> {
    pub(crate) fn new(
        spec: &'s WatchSpec,
        stop: Stop,
        (server_pid, node_pids): (Pid, NodePids),
        statements: OwnStatements,
        sessions: SessionTally,
    ) -> StartContext<'s> {
        let mut context = StartContext {
            spec,
            stop,
            machine: Machine::read(),
            server_pid,
            node_pids,
            own_connections: OwnConnections::default(),
            statements,
            row_lock_activity: RowLockActivity::default(),
            sessions,
            pfs: None,
        };
        context.pfs = context.sql().map(share);
        context
    }

    /// Returns whether the server's machine is this one.
    pub(crate) fn server_is_here(&self) -> bool {
        self.spec.server_is_here()
    }

    /// Returns how to reach the server. `None`: only the machine is watched.
    pub(crate) fn server(&self) -> Option<&Opts> {
        self.spec.server.as_ref()
    }

    /// Returns a new connection to the server. `None`: only the machine is watched.
    pub(crate) fn sql(&self) -> Option<Sql> {
        let sql = Sql::new(self.server()?, self.stop.clone());
        Some(sql.with_own_connections(&self.own_connections).counted_in(&self.statements))
    }

    /// Returns the connection to the Performance Schema. `None`: only the machine is watched.
    pub(crate) fn pfs(&self) -> Option<SharedReader> {
        self.pfs.clone()
    }
}
