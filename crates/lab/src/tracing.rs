//! Records what the tracer counts: each second, and exactly at both ends of every measured window.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whyso_clock::{monotonic_ns, thread_cpu_ns};
use whyso_record::Recorder;
use whyso_record::data::{self, Kind, SeriesId, SeriesKey, Status, TextRows, Value};
use whyso_trace::{
    ClientSums, FileWait, Reading, Sampler, ServerSums, State, ThreadSums, TraceSpec, Tracer, state,
};

use crate::facts::COUNTERS_ALONE;
use crate::recording::Recording;
use crate::stacks::StackTaking;

/// Between two readings of the sums.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two looks at every thread and file, which a window's ends have besides.
const TABLES_INTERVAL: Duration = Duration::from_secs(10);
/// Bound on the wait for the sums at a window's edge.
const EDGE_TIME_MAX: Duration = Duration::from_secs(2);
/// Requests to the tracing thread that wait, at most.
const ASKED_MAX: usize = 16;

/// The states of a thread that works on a request; it receives and reaps elsewhere.
const IN_REQUESTS: [State; 12] = [
    State::Cpu,
    State::Runqueue,
    State::Wakeup,
    State::Lock,
    State::KernelLock,
    State::FileRead,
    State::FileWrite,
    State::FileSync,
    State::NetSend,
    State::PageFault,
    State::Sleep,
    State::Other,
];

enum Asked {
    /// A window begins or ends now.
    Mark,
    /// The same, and somebody waits for the sums.
    Edge(SyncSender<Reading>),
    /// A process that loads the server, beside this one.
    Generator(u32),
    /// The server was started anew.
    Server(u32),
}

/// What of a server's threads is to be recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToTrace {
    /// The account of their time.
    pub(crate) trace: bool,
    /// Their stacks, on top of that.
    pub(crate) stacks: bool,
}

/// A tracer in a thread of its own.
pub(crate) struct Tracing {
    // Ends before the tracer, whose accounts it looks into.
    stacks: Option<StackTaking>,
    asked: Option<SyncSender<Asked>>,
    thread: Option<JoinHandle<()>>,
}

impl Tracing {
    /// Begins to trace, unless it is not wanted or this machine does not allow it: then the recording says why.
    /// `generators` are processes that load the server, beside this one's own load.
    pub(crate) fn begin(recording: &mut Recording, wanted: ToTrace, generators: &[u32]) -> Option<Tracing> {
        let started = match (wanted.trace, recording.info.server.pid) {
            (false, _) => Err("--no-trace was given".to_string()),
            (true, None) => Err("the server's process is not on this machine".to_string()),
            (true, Some(pid)) => Tracing::start(pid, wanted.stacks, generators, recording),
        };
        match started {
            Ok(tracing) => {
                if tracing.stacks.is_some() {
                    recording.info.not_measured.retain(|line| line != COUNTERS_ALONE);
                }
                Some(tracing)
            }
            Err(why) => {
                recording.info.not_measured.push(format!("the time of the server's threads: {why}"));
                None
            }
        }
    }

    fn start(
        server_pid: u32,
        stacks: bool,
        generators: &[u32],
        recording: &mut Recording,
    ) -> Result<Tracing, String> {
        let spec =
            TraceSpec { servers: vec![server_pid], generators: generators.to_vec(), ..TraceSpec::default() };
        let counting = match Tracer::start(&spec) {
            Ok(tracer) => Counting::Traced(Box::new(tracer)),
            Err(error) => {
                let sampler = Sampler::start(server_pid)
                    .map_err(|second| format!("{error}; nor can its threads be looked at: {second}"))?;
                recording.info.not_measured.push(format!(
                    "where requests begin and end, and waits by file: {error}. The states of the server's threads are \
                     samples from /proc, some times a second: what its connections' threads do besides waiting for \
                     their clients stands for their requests"
                ));
                Counting::Sampled(Box::new(sampler))
            }
        };
        let stacks = match (&counting, stacks) {
            (_, false) => Ok(None),
            (Counting::Sampled(_), true) => Err("the tracer's programs are not allowed here".to_string()),
            (Counting::Traced(tracer), true) => {
                let taken = tracer.stacks().map_err(|error| error.to_string());
                taken.and_then(|stacks| StackTaking::start(stacks, recording.recorder.clone())).map(Some)
            }
        };
        let stacks = stacks.unwrap_or_else(|why| {
            recording.info.not_measured.push(format!("the stacks of the server's threads: {why}"));
            None
        });
        let (asked, asks) = sync_channel(ASKED_MAX);
        let mut keeper = Keeper::new(counting, spec, recording.recorder.clone());
        let spawned = std::thread::Builder::new().name("trace".to_string()).spawn(move || keeper.run(&asks));
        let thread = spawned.map_err(|error| format!("no thread could be started: {error}"))?;
        Ok(Tracing { stacks, asked: Some(asked), thread: Some(thread) })
    }

    /// A level has ended, and the next has not begun: a time for what would disturb a measurement.
    pub(crate) fn between_levels(&self) {
        if let Some(stacks) = &self.stacks {
            stacks.name();
        }
    }

    /// A measured window begins or ends.
    pub(crate) fn mark(&self) {
        self.ask(Asked::Mark);
    }

    /// A measured window begins or ends: the sums up to now; `None` where the tracer does not answer.
    pub(crate) fn edge(&self) -> Option<Reading> {
        let (reply, answer) = sync_channel(1);
        self.ask(Asked::Edge(reply));
        answer.recv_timeout(EDGE_TIME_MAX).ok()
    }

    /// Another process loads the server.
    pub(crate) fn generator(&self, pid: u32) {
        self.ask(Asked::Generator(pid));
    }

    pub(crate) fn server_pid_changed(&self, pid: u32) {
        self.ask(Asked::Server(pid));
    }

    /// Never waits: a tracer that is that far behind takes its next reading all the sooner.
    fn ask(&self, what: Asked) {
        if let Some(asked) = &self.asked {
            let _ = asked.try_send(what);
        }
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.stacks = None;
        self.asked = None;
        if let Some(thread) = self.thread.take() {
            // A panic there is no reason to lose the recording.
            let _ = thread.join();
        }
    }
}

/// What counts: the programs in the kernel, or looks at /proc where those are not allowed.
enum Counting {
    Traced(Box<Tracer>),
    Sampled(Box<Sampler>),
}

impl Counting {
    fn read(&mut self) -> Reading {
        match self {
            Counting::Traced(tracer) => tracer.read(),
            Counting::Sampled(sampler) => sampler.read(),
        }
    }

    fn files(&mut self) -> Vec<FileWait> {
        match self {
            Counting::Traced(tracer) => tracer.files(),
            Counting::Sampled(_) => Vec::new(),
        }
    }

    /// Between two looks, where there is more to do than to read sums.
    fn look_interval(&self) -> Option<Duration> {
        match self {
            Counting::Traced(_) => None,
            Counting::Sampled(sampler) => Some(sampler.interval()),
        }
    }

    fn look(&mut self) {
        if let Counting::Sampled(sampler) = self {
            sampler.look();
        }
    }

    fn watch(&mut self, servers: &[u32], generators: &[u32]) {
        match self {
            // One server and one generator always fit.
            Counting::Traced(tracer) => {
                let _ = tracer.watch(servers, generators);
            }
            Counting::Sampled(sampler) => servers.iter().for_each(|pid| sampler.watch(*pid)),
        }
    }
}

/// What the tracing thread works with.
struct Keeper {
    counting: Counting,
    recorder: Recorder,
    servers: Vec<u32>,
    generators: Vec<u32>,
    begun: Instant,
    tables_due: Instant,
}

impl Keeper {
    fn new(counting: Counting, spec: TraceSpec, recorder: Recorder) -> Keeper {
        let now = Instant::now();
        let TraceSpec { servers, generators, .. } = spec;
        Keeper { counting, recorder, servers, generators, begun: now, tables_due: now }
    }

    fn run(&mut self, asks: &Receiver<Asked>) {
        let mut next = self.begun + INTERVAL;
        self.read(true);
        loop {
            let rest = next.saturating_duration_since(Instant::now());
            let look = self.counting.look_interval().filter(|look| *look < rest);
            match asks.recv_timeout(look.unwrap_or(rest)) {
                Err(RecvTimeoutError::Timeout) if look.is_some() => self.counting.look(),
                Ok(Asked::Mark) => {
                    self.read(true);
                }
                Ok(Asked::Edge(reply)) => {
                    // Whoever asked may have given up.
                    let _ = reply.try_send(self.read(true));
                }
                Ok(Asked::Server(pid)) => {
                    self.servers = vec![pid];
                    self.watch();
                }
                Ok(Asked::Generator(pid)) => {
                    self.generators = vec![pid];
                    self.watch();
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.read(false);
                    while next <= Instant::now() {
                        next += INTERVAL;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.read(true);
    }

    fn watch(&mut self) {
        self.counting.watch(&self.servers, &self.generators);
    }

    fn read(&mut self, tables: bool) -> Reading {
        let begin_ns = monotonic_ns();
        let read = self.counting.read();
        let end_ns = monotonic_ns();
        let mut values = self.server_values(&read.server);
        values.extend(self.client_values(&read.client));
        for (why, count) in read.lost {
            let id = self.series("server", "trace", "lost", why, Kind::Counter, "1");
            values.push((id, to_value(count)));
        }
        self.reading("trace", begin_ns, end_ns, values);

        let mut values = Vec::new();
        for (role, (threads, states)) in &read.roles {
            let id = self.series("server", "threads", "count", role.name(), Kind::Gauge, "1");
            values.push((id, to_value(*threads)));
            for (state, ns) in state::ALL.iter().zip(states) {
                let metric = format!("{}_ns", state.name());
                let id = self.series("server", "threads", &metric, role.name(), Kind::Counter, "ns");
                values.push((id, to_value(*ns)));
            }
        }
        self.reading("threads", begin_ns, end_ns, values);

        if tables || Instant::now() >= self.tables_due {
            self.tables_due = Instant::now() + TABLES_INTERVAL;
            self.recorder.rows(threads_table(end_ns, &read.threads));
            let files = self.counting.files();
            self.recorder.rows(files_table(end_ns, &files));
        }
        let id = self.series("client", "trace_cost", "tracer_cpu_ns", "", Kind::Counter, "ns");
        self.reading("trace_cost", begin_ns, end_ns, vec![(id, Value::Int(thread_cpu_ns()))]);
        read
    }

    fn server_values(&self, sums: &ServerSums) -> Vec<(SeriesId, Value)> {
        let mut named = vec![
            ("requests".to_string(), "1", sums.requests),
            ("request_ns".to_string(), "ns", sums.request_ns),
            ("transit_in_ns".to_string(), "ns", sums.transit_ns),
            ("transit_in_wakeup_ns".to_string(), "ns", sums.transit_wakeup_ns),
            ("transit_in_runqueue_ns".to_string(), "ns", sums.transit_runqueue_ns),
            // On one machine the last reply is in the client's socket when it is sent.
            ("transit_out_ns".to_string(), "ns", 0),
            ("other_requests".to_string(), "1", sums.others),
            ("unseen_arrivals".to_string(), "1", sums.unseen),
            ("cpu_user_samples".to_string(), "1", sums.user_samples),
            ("cpu_system_samples".to_string(), "1", sums.system_samples),
        ];
        for state in IN_REQUESTS {
            let mut ns = sums.inside[state as usize];
            if state == State::Other {
                ns += sums.inside[State::Aio as usize] + sums.inside[State::NetReceive as usize];
            }
            named.push((format!("request_{}_ns", state.name()), "ns", ns));
        }
        self.values("server", &named)
    }

    fn client_values(&self, sums: &ClientSums) -> Vec<(SeriesId, Value)> {
        self.values(
            "client",
            &[
                ("answers".to_string(), "1", sums.answers),
                ("client_delay_ns".to_string(), "ns", sums.delay_ns),
                ("client_delay_wakeup_ns".to_string(), "ns", sums.delay_wakeup_ns),
                ("client_delay_runqueue_ns".to_string(), "ns", sums.delay_runqueue_ns),
                ("client_held_ns".to_string(), "ns", sums.held_ns),
                ("wire_ns".to_string(), "ns", sums.wire_ns),
            ],
        )
    }

    fn values(&self, host: &str, named: &[(String, &str, u64)]) -> Vec<(SeriesId, Value)> {
        let value = |(name, unit, sum): &(String, &str, u64)| {
            (self.series(host, "trace", name, "", Kind::Counter, unit), to_value(*sum))
        };
        named.iter().map(value).collect()
    }

    fn series(
        &self,
        host: &str,
        source: &str,
        metric: &str,
        instance: &str,
        kind: Kind,
        unit: &str,
    ) -> SeriesId {
        self.recorder.series(&SeriesKey {
            host: host.to_string(),
            source: source.to_string(),
            metric: metric.to_string(),
            instance: instance.to_string(),
            kind,
            unit: unit.to_string(),
        })
    }

    fn reading(&self, source: &str, begin_ns: i64, end_ns: i64, values: Vec<(SeriesId, Value)>) {
        let source = source.to_string();
        self.recorder.reading(data::Reading { source, begin_ns, end_ns, status: Status::Ok, values });
    }
}

fn to_value(sum: u64) -> Value {
    Value::Int(i64::try_from(sum).unwrap_or(i64::MAX))
}

/// Every thread of the server, with its time by state since the tracing began.
fn threads_table(t_ns: i64, threads: &[ThreadSums]) -> TextRows {
    let fixed = ["tid", "name", "role", "now", "requests"];
    let mut columns: Vec<String> = fixed.map(str::to_string).to_vec();
    columns.extend(state::ALL.map(|state| format!("{}_ns", state.name())));
    let row = |thread: &ThreadSums| {
        let mut row = vec![
            Some(thread.tid.to_string()),
            Some(thread.name.clone()),
            Some(thread.role.name().to_string()),
            Some(thread.now.name().to_string()),
            Some(thread.requests.to_string()),
        ];
        row.extend(thread.states.iter().map(|ns| Some(ns.to_string())));
        row
    };
    TextRows { source: "threads".to_string(), t_ns, columns, rows: threads.iter().map(row).collect() }
}

/// Waits for files since the tracing began.
fn files_table(t_ns: i64, files: &[FileWait]) -> TextRows {
    let columns = ["path", "state", "role", "count", "ns"].map(str::to_string).to_vec();
    let row = |wait: &FileWait| {
        let path = match &wait.path {
            Some(path) => path.display().to_string(),
            None => format!("inode {}, closed", wait.inode),
        };
        vec![
            Some(path),
            Some(wait.state.name().to_string()),
            Some(wait.role.name().to_string()),
            Some(wait.count.to_string()),
            Some(wait.ns.to_string()),
        ]
    };
    TextRows { source: "file_waits".to_string(), t_ns, columns, rows: files.iter().map(row).collect() }
}
