//! Starts the samplers, each in a thread of its own, and ends them within a bound.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mysql_async::Opts;
use whyso_clock::monotonic_ns;

use crate::addon::{AddOn, AddOnSampler, Handed};
use crate::cgroup::Cgroup;
use crate::connections::Connections;
use crate::cost::{Cost, CostSampler};
use crate::cpu::Cpu;
use crate::disk::Disk;
use crate::error::Error;
use crate::innodb_metrics::InnodbMetrics;
use crate::innodb_mutexes::InnodbMutexes;
use crate::innodb_status::InnodbStatus;
use crate::lock_waits::{LockWaits, RowLockActivity};
use crate::memory::Memory;
use crate::neighbours::Neighbours;
use crate::net::Net;
use crate::own_statements::{OwnExecution, OwnStatements};
use crate::pfs::{self, Often};
use crate::pressure::Pressure;
use crate::process::{Pid, Process};
use crate::replication::Replication;
use crate::sampler::{Notes, Runner, Sampler, Surroundings, run_in_turn};
use crate::sessions::{SessionStates, SessionSums, SessionTally};
use crate::sink::Sink;
use crate::sql::{OwnConnections, Sql};
use crate::status::Status;
use crate::stop::Stop;
use crate::text::Machine;
use crate::variables::Variables;

/// Between two readings of what costs more than a glance, and is looked up rather than drawn.
const NOW_AND_THEN: Duration = Duration::from_secs(5);
/// Between two readings of what has thousands of lines.
const SELDOM: Duration = Duration::from_secs(10);
/// Who waits for whom is looked at as often, or more often where the interval is shorter.
const LOCK_WAITS_INTERVAL: Duration = Duration::from_millis(500);
/// The process list is a sample of what sessions do: a level of some seconds has too few of them at a slower pace.
const SESSIONS_INTERVAL: Duration = Duration::from_millis(200);
/// The process list is read this long after it was looked who waits, which says who of its sessions waits for rows.
const AFTER_LOCK_WAITS_NS: i64 = 50_000_000;
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// How long `stop` waits for readings that are under way and for the last ones.
const STOP_TIME_MAX: Duration = Duration::from_millis(1_900);

/// What is to be watched, and how often.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    /// Between two readings of a source; at least 100 ms.
    pub interval: Duration,
    /// Between two readings of what rarely changes (variables); at least `interval`.
    pub slow_interval: Duration,
    /// How to reach the server; `None` watches the machine alone. Its schema is not used.
    pub server: Option<Opts>,
    /// The server's process, where it runs on this machine.
    pub server_pid: Option<u32>,
    /// Name of the server's machine in the recording: "server" or a host name.
    pub server_host: String,
    /// The process that makes the load; mostly whyso itself.
    pub generator_pid: u32,
    /// The server's data directory, where it is on this machine.
    pub data_dir: Option<PathBuf>,
    /// Sources of the user's own, each with a name of its own.
    pub add_ons: Vec<AddOn>,
}

impl Default for WatchSpec {
    fn default() -> WatchSpec {
        WatchSpec {
            interval: Duration::from_secs(1),
            slow_interval: Duration::from_secs(60),
            server: None,
            server_pid: None,
            server_host: "server".to_string(),
            generator_pid: std::process::id(),
            data_dir: None,
            add_ons: Vec::new(),
        }
    }
}

impl WatchSpec {
    /// Whether the server's machine is this one, so that this one's CPUs and disks are its own.
    fn server_is_here(&self) -> bool {
        if self.server_pid.is_some() || self.data_dir.is_some() {
            return true;
        }
        let Some(opts) = &self.server else {
            return true;
        };
        let host = opts.ip_or_hostname();
        opts.socket().is_some() || ["localhost", "127.0.0.1", "::1"].contains(&host)
    }
}

/// All samplers at work. Dropping it ends them, without waiting.
pub struct Watcher {
    stop: Stop,
    notes: Notes,
    server_pid: Pid,
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

/// How often a sampler reads, and whose machine it tells of.
enum Place {
    Machine,
    Server,
    ServerOften,
    /// As often, a little later.
    ServerOftenAfter,
    ServerNowAndThen,
    ServerSeldom,
    ServerSlowly,
    /// An add-on that says itself how often.
    AddOn(Option<Duration>),
    Generator,
}

impl From<Often> for Place {
    fn from(often: Often) -> Place {
        match often {
            Often::Always => Place::Server,
            Often::NowAndThen => Place::ServerNowAndThen,
            Often::Seldom => Place::ServerSeldom,
            Often::Slowly => Place::ServerSlowly,
        }
    }
}

impl Watcher {
    /// Starts every sampler that `spec` gives reason for. A server that does not answer is no
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
                return Err(Error::AddOn(format!(
                    "two add-ons are named {}: rename one of them",
                    addon.name
                )));
            }
        }
        let sink: Arc<dyn Sink> = Arc::new(sink);
        let server_pid = Pid::new(spec.server_pid);
        let mut watcher = Watcher {
            stop: Stop::new(),
            notes: Notes::default(),
            server_pid: server_pid.clone(),
            server_pid_expected: spec.server_is_here(),
            sessions: SessionTally::default(),
            statements: OwnStatements::default(),
            threads: Vec::new(),
        };
        if !watcher.server_pid_expected {
            watcher.notes.add(format!(
                "the machine of the server, {}: its CPUs, memory, disks and network are not read \
                 from here",
                spec.server_host
            ));
        }
        let threads = watcher.samplers(&spec);
        // All on one grid, a little from now so that each thread is there in time.
        let first_ns = monotonic_ns() + 20_000_000;
        let mut costs = Vec::new();
        for thread in threads {
            let mut together = Vec::new();
            for (place, sampler) in thread {
                let cost = Arc::new(Cost::default());
                costs.push((sampler.source(), cost.clone()));
                together.push(watcher.runner(&spec, &sink, first_ns, &place, sampler, cost));
            }
            watcher.spawn(together)?;
        }
        let own = Arc::new(Cost::default());
        costs.push(("watch", own.clone()));
        let sampler = Box::new(CostSampler { costs });
        let runner = watcher.runner(&spec, &sink, first_ns, &Place::Generator, sampler, own);
        watcher.spawn(vec![runner])?;
        Ok(watcher)
    }

    /// A list a thread: what must not be read at the same time shares one.
    fn samplers(&self, spec: &WatchSpec) -> Vec<Vec<(Place, Box<dyn Sampler>)>> {
        let machine = Machine::read();
        let (own, statements) = (OwnConnections::default(), self.statements.clone());
        let generator_pid = Pid::new(Some(spec.generator_pid));
        let mut samplers: Vec<(Place, Box<dyn Sampler>)> = vec![
            (Place::Machine, Box::new(Cpu::new(machine))),
            (Place::Machine, Box::new(Pressure::new())),
            (Place::Machine, Box::new(Memory::new())),
            (Place::Machine, Box::new(Disk::new())),
            (Place::Machine, Box::new(Net::new())),
            (Place::Generator, Box::new(Process::generator(generator_pid, machine))),
        ];
        if self.server_pid_expected {
            let pid = || self.server_pid.clone();
            samplers.push((Place::Server, Box::new(Process::server(pid(), machine))));
            samplers.push((Place::Server, Box::new(Cgroup::new(pid()))));
            let neighbours = Neighbours::new(pid(), spec.generator_pid, spec.server.as_ref(), machine);
            samplers.push((Place::Server, Box::new(neighbours)));
        }
        if let Some(opts) = &spec.server {
            let sql = || Sql::new(opts, self.stop.clone()).known_in(&own).counted_in(&statements);
            let activity = RowLockActivity::default();
            samplers.push((Place::Server, Box::new(Status::new(sql(), activity.clone()))));
            samplers.push((Place::ServerOften, Box::new(LockWaits::new(sql(), activity.clone()))));
            let sessions = SessionStates::new(sql(), own.clone(), activity, self.sessions.clone());
            samplers.push((Place::ServerOftenAfter, Box::new(sessions)));
            samplers.push((Place::ServerNowAndThen, Box::new(InnodbMutexes::new(sql()))));
            samplers.push((Place::ServerNowAndThen, Box::new(InnodbStatus::new(sql()))));
            samplers.push((Place::Server, Box::new(InnodbMetrics::new(sql()))));
            samplers.push((Place::ServerNowAndThen, Box::new(Replication::new(sql()))));
            samplers.push((Place::ServerSlowly, Box::new(Variables::new(sql()))));
        }
        for addon in &spec.add_ons {
            let handed = Handed { server: spec.server.clone(), server_pid: spec.server_pid };
            let sampler = AddOnSampler::new(addon.clone(), handed, self.stop.clone());
            let sampler = sampler.counted_in(&statements);
            samplers.push((Place::AddOn(addon.interval), Box::new(sampler)));
        }
        let mut threads: Vec<_> = samplers.into_iter().map(|one| vec![one]).collect();
        if let Some(opts) = &spec.server {
            let sql = || Sql::new(opts, self.stop.clone()).known_in(&own).counted_in(&statements);
            let reader = pfs::reader(sql());
            let views =
                pfs::samplers(&reader, &statements).into_iter().map(|(often, view)| (often.into(), view));
            let mut together: Vec<(Place, Box<dyn Sampler>)> = views.collect();
            // It asks the Performance Schema, too, and waits for its turn.
            together.push((Place::ServerNowAndThen, Box::new(Connections::new(sql(), own, reader))));
            threads.push(together);
        }
        threads
    }

    fn runner(
        &self,
        spec: &WatchSpec,
        sink: &Arc<dyn Sink>,
        first_ns: i64,
        place: &Place,
        sampler: Box<dyn Sampler>,
        cost: Arc<Cost>,
    ) -> Runner {
        let host = match place {
            Place::Generator => "client",
            Place::Machine | Place::AddOn(_) if !self.server_pid_expected => "client",
            Place::Machine
            | Place::Server
            | Place::ServerOften
            | Place::ServerOftenAfter
            | Place::ServerNowAndThen
            | Place::ServerSeldom
            | Place::ServerSlowly
            | Place::AddOn(_) => &spec.server_host,
        };
        let interval = match place {
            Place::ServerOften => LOCK_WAITS_INTERVAL.min(spec.interval),
            Place::ServerOftenAfter => SESSIONS_INTERVAL.min(spec.interval),
            Place::ServerNowAndThen => NOW_AND_THEN.max(spec.interval),
            Place::ServerSeldom => SELDOM.max(spec.interval),
            Place::ServerSlowly => spec.slow_interval.max(spec.interval),
            Place::AddOn(asked) => (*asked).unwrap_or(spec.interval),
            Place::Machine | Place::Server | Place::Generator => spec.interval,
        };
        let first_ns = match place {
            Place::ServerOftenAfter => first_ns + AFTER_LOCK_WAITS_NS,
            _ => first_ns,
        };
        let around = Surroundings {
            sink: sink.clone(),
            host: host.to_string(),
            first_ns,
            interval_ns: i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX / 4),
            stop: self.stop.clone(),
            notes: self.notes.clone(),
            cost,
        };
        Runner::new(sampler, around)
    }

    /// A thread for samplers that are read one at a time.
    fn spawn(&mut self, together: Vec<Runner>) -> Result<(), Error> {
        let Some(first) = together.first() else { return Ok(()) };
        let name = match together.len() {
            1 => format!("watch-{}", first.source()),
            _ => "watch-pfs".to_string(),
        };
        let thread = std::thread::Builder::new().name(name).spawn(move || run_in_turn(together));
        self.threads.push(thread.map_err(Error::Resources)?);
        Ok(())
    }

    /// The server was restarted, or went away.
    pub fn server_pid_changed(&self, pid: Option<u32>) {
        self.server_pid.set(pid);
    }

    /// Counts statements as whyso's own that are about to be sent on a connection of their own with this default schema, until the value is dropped:
    /// drop it once they are answered.
    pub fn executes(&self, schema: &str, statements: &[&str]) -> OwnExecution {
        OwnExecution::begin(&self.statements, schema, statements)
    }

    /// What the process list showed of clients since the watching began.
    pub fn sessions(&self) -> SessionSums {
        self.sessions.get()
    }

    /// What is not measured and why, in plain words, as far as is known by now.
    pub fn not_measured(&self) -> Vec<String> {
        let mut lines = self.notes.lines();
        if self.server_pid_expected && self.server_pid.get().is_none() {
            lines.push("the server's process and its threads: its process id is not known".to_string());
        }
        lines
    }

    /// Takes a last reading of the server and ends every sampler. Gives what was not measured, as
    /// [`not_measured`](Watcher::not_measured) does. Returns within two seconds: a sampler that hangs is
    /// left behind, ends when its source answers, and is named too.
    pub fn stop(mut self) -> Vec<String> {
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
        lines.extend(left_behind);
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
    use super::*;

    fn server(url: &str) -> WatchSpec {
        WatchSpec { server: Some(Opts::from_url(url).unwrap()), ..WatchSpec::default() }
    }

    #[test]
    fn a_server_is_here_by_socket_loopback_or_process() {
        assert!(server("mysql://root@localhost/").server_is_here());
        assert!(server("mysql://root@127.0.0.1:3307/").server_is_here());
        assert!(server("mysql://root@x/?socket=%2Ftmp%2Fs").server_is_here());
        assert!(!server("mysql://root@db1:3306/").server_is_here());
        let mut by_name = server("mysql://root@db1:3306/");
        by_name.server_pid = Some(1);
        assert!(by_name.server_is_here());
    }

    #[test]
    fn the_machine_of_a_remote_server_is_said_not_to_be_measured() {
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
        assert!(lines.iter().any(|line| line.contains("db1")), "{lines:?}");
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
