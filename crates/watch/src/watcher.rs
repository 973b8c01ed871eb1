//! Starts the samplers, each in a thread of its own, and ends them within a bound.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_model::{Missing, NotMeasured};

use crate::cost::Cost;
use crate::error::Error;
use crate::own_statements::{OwnExecution, OwnStatements};
use crate::pid::{NodePids, Pid};
use crate::sampler::{Notes, Runner, Surroundings, run_in_turn};
use crate::sampler_entry::{Host, ScheduledSampler, StartContext};
use crate::samplers;
use crate::samplers::addon::AddOnError;
use crate::samplers::sessions::{SessionSums, SessionTally};
use crate::samplers::watch::CostSampler;
use crate::sink::Sink;
use crate::spec::WatchSpec;
use crate::stop::Stop;

const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// How long `stop` waits for readings that are under way and for the last ones.
const STOP_TIME_MAX: Duration = Duration::from_millis(1_900);

/// All samplers at work. Dropping it ends them, without waiting.
pub struct Watcher {
    stop: Stop,
    notes: Notes,
    server_pid: Pid,
    node_pids: NodePids,
    server_pid_expected: bool,
    sessions: SessionTally,
    statements: OwnStatements,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let samplers = self.threads.len();
        formatter.debug_struct("Watcher").field("samplers", &samplers).finish_non_exhaustive()
    }
}

impl Watcher {
    /// Starts every sampler that `spec` has a reason for. A server that does not answer is no
    /// error but a gap in the recording.
    ///
    /// # Errors
    /// The interval is too short, or the system gives no more threads or file descriptors.
    pub fn start(spec: WatchSpec, sink: impl Sink + 'static) -> Result<Watcher, Error> {
        if spec.interval < INTERVAL_MIN {
            return Err(Error::IntervalTooShort(spec.interval));
        }
        for (position, addon) in spec.add_ons.iter().enumerate() {
            if spec.add_ons[..position].iter().any(|before| before.name == addon.name) {
                return Err(AddOnError::SameName(addon.name.clone()).into());
            }
        }
        let sink: Arc<dyn Sink> = Arc::new(sink);
        let server_pid = Pid::new(spec.server_pid);
        let mut watcher = Watcher {
            stop: Stop::new(),
            notes: Notes::default(),
            server_pid: server_pid.clone(),
            node_pids: NodePids::new(&spec.other_node_pids),
            server_pid_expected: spec.server_is_here(),
            sessions: SessionTally::default(),
            statements: OwnStatements::default(),
            threads: Vec::new(),
        };
        if !watcher.server_pid_expected {
            watcher.notes.add(NotMeasured::new(
                Missing::Other,
                format!("the machine of the server, {}", spec.server_host),
                "its CPUs, memory, disks and network are not read from here",
            ));
        }
        let context = watcher.start_context(&spec);
        // All on one grid, a little from now so that each thread is there in time.
        let first_ns = monotonic_ns() + 20_000_000;
        let mut costs = Vec::new();
        let mut threads: Vec<(Option<&str>, Vec<Runner>)> = Vec::new();
        for scheduled in samplers::start_all(&context) {
            let cost = Arc::new(Cost::default());
            costs.push((scheduled.sampler.source(), cost.clone()));
            let thread = scheduled.thread;
            let runner = watcher.runner(&spec, &sink, first_ns, scheduled, cost);
            match threads.iter_mut().find(|(name, _)| thread.is_some() && *name == thread) {
                Some((_, runners)) => runners.push(runner),
                None => threads.push((thread, vec![runner])),
            }
        }
        for (name, runners) in threads {
            watcher.spawn(name, runners)?;
        }
        // What watching costs is a source of the generator: that of the first node.
        if !spec.is_other_node {
            let own = Arc::new(Cost::default());
            costs.push(("watch", own.clone()));
            let scheduled = ScheduledSampler::of_generator(CostSampler { costs });
            let runner = watcher.runner(&spec, &sink, first_ns, scheduled, own);
            watcher.spawn(None, vec![runner])?;
        }
        Ok(watcher)
    }

    /// Returns what samplers share.
    fn start_context<'s>(&self, spec: &'s WatchSpec) -> StartContext<'s> {
        StartContext::new(
            spec,
            self.stop.clone(),
            (self.server_pid.clone(), self.node_pids.clone()),
            self.statements.clone(),
            self.sessions.clone(),
        )
    }

    fn runner(
        &self,
        spec: &WatchSpec,
        sink: &Arc<dyn Sink>,
        first_ns: i64,
        scheduled: ScheduledSampler,
        cost: Arc<Cost>,
    ) -> Runner {
        let host = match scheduled.host {
            Host::Generator => "client",
            Host::Machine if !self.server_pid_expected => "client",
            Host::Machine | Host::Server => &spec.server_host,
        };
        let interval = scheduled.interval.resolve(spec);
        let reads_at_edges = scheduled.interval.is_stretched(spec);
        let around = Surroundings {
            sink: sink.clone(),
            host: host.to_string(),
            first_ns: first_ns + scheduled.delay_ns,
            interval_ns: i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX / 4),
            reads_at_edges,
            stop: self.stop.clone(),
            notes: self.notes.clone(),
            cost,
        };
        Runner::new(scheduled.sampler, around)
    }

    /// Starts a thread whose samplers are read one at a time.
    fn spawn(&mut self, name: Option<&str>, together: Vec<Runner>) -> Result<(), Error> {
        let Some(first) = together.first() else { return Ok(()) };
        let name = format!("watch-{}", name.unwrap_or(first.source()));
        let thread = std::thread::Builder::new().name(name).spawn(move || run_in_turn(together));
        self.threads.push(thread.map_err(Error::Resources)?);
        Ok(())
    }

    /// The server was restarted, or went away.
    pub fn server_pid_changed(&self, pid: Option<u32>) {
        self.server_pid.set(pid);
    }

    /// Another node of the cluster is this process of the machine now. `old`: what it was before, if it was any.
    pub fn other_node_pid_changed(&self, old: Option<u32>, new: u32) {
        self.node_pids.replace(old, new);
    }

    /// A window begins, or is about to end: what is read less often than the run asks for is read once more, so that the window's counts are
    /// its own.
    pub fn note_window_edge(&self) {
        self.stop.note_edge();
    }

    /// Counts statements as whyso's own that are about to be sent on a connection of their own with this default schema. They count as under
    /// way until the value is dropped: drop it once they are answered.
    pub fn executes(&self, schema: &str, statements: &[&str]) -> OwnExecution {
        OwnExecution::begin(&self.statements, schema, statements)
    }

    /// What the process list showed of clients since the watching began.
    pub fn sessions(&self) -> SessionSums {
        self.sessions.get()
    }

    /// What is not measured and why, as far as is known by now.
    pub fn not_measured(&self) -> Vec<NotMeasured> {
        let mut lines = self.notes.lines();
        if self.server_pid_expected && self.server_pid.get().is_none() {
            let what = "the server's process and its threads";
            lines.push(NotMeasured::new(Missing::Other, what, "its process id is not known"));
        }
        lines
    }

    /// Takes a last reading of the server and ends every sampler. Returns what was not measured, as
    /// [`not_measured`](Watcher::not_measured) does. Returns within two seconds: a sampler that hangs is
    /// left behind, ends when its source answers, and is named too.
    pub fn stop(mut self) -> Vec<NotMeasured> {
        self.stop.stop();
        let deadline = Instant::now() + STOP_TIME_MAX;
        let mut left_behind = Vec::new();
        for thread in std::mem::take(&mut self.threads) {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
            let name = thread.thread().name().unwrap_or("watch").to_string();
            let ended_well = thread.is_finished() && thread.join().is_ok();
            if !ended_well {
                left_behind.push(name);
            }
        }
        let mut lines = self.not_measured();
        lines.extend(left_behind.into_iter().map(NotMeasured::from));
        lines
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

#[cfg(test)]
mod tests {
    use mysql_async::Opts;

    use super::*;

    #[test]
    fn the_machine_of_a_remote_server_is_reported_as_not_measured() {
        let sink = Arc::new(crate::sink::memory::MemorySink::default());
        let spec = WatchSpec {
            // Nothing listens there, and the name resolves nowhere.
            server: Some(Opts::from_url("mysql://root@db1.invalid:1/").unwrap()),
            server_host: "db1".to_string(),
            interval: Duration::from_millis(100),
            ..WatchSpec::default()
        };
        let watcher = Watcher::start(spec, sink.clone()).unwrap();
        let lines = watcher.not_measured();
        assert!(lines.iter().any(|line| line.what.contains("db1")), "{lines:?}");
        let begin = Instant::now();
        while sink.readings.lock().unwrap().len() < 10 && begin.elapsed().as_secs() < 10 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let at_the_end = watcher.stop();
        assert!(lines.iter().all(|line| at_the_end.contains(line)), "{at_the_end:?}");
        let keys = sink.keys.lock().unwrap();
        assert!(keys.iter().any(|key| key.source == "cpu"), "{keys:?}");
        assert!(keys.iter().all(|key| key.host == "client"), "{keys:?}");
    }
}
