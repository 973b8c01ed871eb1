//! The tracing thread: takes the readings that are due or asked for, and writes them to the recording.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use whyso_clock::{monotonic_ns, thread_cpu_ns};
use whyso_model::{PauseRow, State, state};
use whyso_record::Recorder;
use whyso_record::data::{self, Kind, SeriesId, SeriesKey, Status, TextRows, Value};
use whyso_trace::{ClientSums, FileWait, Generator, OtherSums, Pauses, Reading, ServerSums, ThreadSums};

use crate::cost::{CountedTimes, program_values};
use crate::counting::{Counting, Sight};
use crate::request::Request;
use crate::thread_states::StatesTaking;
use crate::tier::TierSeries;
use crate::workers;

/// Between two readings of the sums.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two readings of the waits by file and of the long waits. The ends of a window have them too.
const TABLES_INTERVAL: Duration = Duration::from_secs(10);

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

/// What the tracing thread works with.
pub(crate) struct Keeper {
    counting: Counting,
    recorder: Recorder,
    servers: Vec<u32>,
    generators: Vec<u32>,
    generator: Generator,
    states: StatesTaking,
    tier: TierSeries,
    /// `None` where no program of the tracer's runs, or the kernel may not be asked what they cost.
    cost: Option<CountedTimes>,
    begun: Instant,
    tables_due: Instant,
}

impl Keeper {
    pub(crate) fn new(
        counting: Counting,
        servers: Vec<u32>,
        generator: Generator,
        recorder: Recorder,
    ) -> Keeper {
        let now = Instant::now();
        let cost =
            if counting.has_programs() { CountedTimes::begin(|| counting.counting_ns()) } else { None };
        Keeper {
            counting,
            recorder,
            servers,
            generators: Vec::new(),
            generator,
            states: StatesTaking::default(),
            tier: TierSeries::default(),
            cost,
            begun: now,
            tables_due: now,
        }
    }

    pub(crate) fn run(&mut self, requests: &Receiver<Request>) {
        let mut next = self.begun + INTERVAL;
        self.read(true);
        loop {
            let due = self.cost.as_ref().map_or(next, |cost| cost.due().min(next));
            let rest = due.saturating_duration_since(Instant::now());
            let until_sample = self.counting.sample_interval().filter(|interval| *interval < rest);
            match requests.recv_timeout(until_sample.unwrap_or(rest)) {
                Err(RecvTimeoutError::Timeout) if until_sample.is_some() => self.counting.sample(),
                Ok(Request::Mark) => {
                    self.edge();
                }
                Ok(Request::Edge(reply)) => {
                    // The sender may have given up.
                    let _ = reply.try_send(self.edge());
                }
                Ok(Request::Server(pid)) => {
                    // The run's server is the first one.
                    match self.servers.first_mut() {
                        Some(first) => *first = pid,
                        None => self.servers.push(pid),
                    }
                    self.watch();
                }
                Ok(Request::OtherServer(old, new)) => {
                    if let Some(other) = self.servers.iter_mut().skip(1).find(|pid| **pid == old) {
                        *other = new;
                    }
                    self.watch();
                }
                Ok(Request::Generator(pid, reply)) => {
                    self.generators = vec![pid];
                    self.watch();
                    let _ = reply.try_send(());
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(cost) = &mut self.cost {
                        cost.turn();
                    }
                    if next <= Instant::now() {
                        self.read(false);
                    }
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

    /// A window ends, and another begins.
    fn edge(&mut self) -> Reading {
        let begin_ns = monotonic_ns();
        let read = self.counting.read_to_end();
        self.counting.begin_window();
        self.record(begin_ns, read, true)
    }

    fn read(&mut self, tables: bool) -> Reading {
        let begin_ns = monotonic_ns();
        let read = self.counting.read();
        self.record(begin_ns, read, tables)
    }

    fn record(&mut self, begin_ns: i64, mut read: Reading, tables: bool) -> Reading {
        if self.generator == Generator::Unknown {
            // Threads of this program that load something else, such as a site before the server, are none of its clients.
            read.client = ClientSums::default();
        }
        let end_ns = monotonic_ns();
        let mut values = Vec::new();
        let sight = self.counting.sight();
        if sight != Sight::Wire {
            values.extend(self.server_values(&read.server, sight));
        }
        if sight == Sight::Requests && self.generator != Generator::Unknown {
            values.extend(self.other_values(&read.others));
        }
        if matches!(sight, Sight::Requests | Sight::Wire) {
            values.extend(self.client_values(&read.client));
        }
        for (why, count) in read.lost {
            let id = self.series("server", "trace", "lost", why, Kind::Counter, "1");
            values.push((id, to_value(count)));
        }
        self.reading("trace", begin_ns, end_ns, values);
        if self.counting.is_of_program() {
            self.tier.record(&self.recorder, "server", &read, (begin_ns, end_ns));
        }

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

        if let Some(states) = self.states.since_the_last(end_ns, &read.threads) {
            self.recorder.states(&states);
        }

        if tables {
            self.recorder.rows(threads_table(end_ns, &read.threads));
        }
        if tables || Instant::now() >= self.tables_due {
            self.tables_due = Instant::now() + TABLES_INTERVAL;
            let files = self.counting.files();
            self.recorder.rows(files_table(end_ns, &files));
            if self.counting.is_of_program() {
                workers::record(&self.recorder, std::iter::once(("server", read.threads.as_slice())));
            }
            let pauses = self.counting.pauses(&read);
            if !pauses.is_empty() {
                self.recorder.rows(pauses_table(end_ns, &pauses));
            }
        }
        let id = self.series("client", "trace_cost", "tracer_cpu_ns", "", Kind::Counter, "ns");
        let mut values = vec![(id, Value::Int(thread_cpu_ns()))];
        if let Some(cost) = &self.cost {
            let id = self.series("client", "trace_cost", "counted_ns", "", Kind::Counter, "ns");
            values.push((id, to_value(cost.counted().as_nanos() as u64)));
            if let Some(ns) = cost.added_ns {
                let id = self.series("client", "trace_cost", "counting_ns", "", Kind::Gauge, "ns");
                values.push((id, Value::Float(ns)));
            }
            values.extend(program_values(&self.recorder, "trace_cost", &self.counting.cost()));
        }
        self.reading("trace_cost", begin_ns, end_ns, values);
        read
    }

    fn server_values(&self, sums: &ServerSums, sight: Sight) -> Vec<(SeriesId, Value)> {
        let mut named = vec![
            ("requests".to_string(), "1", sums.requests),
            ("transit_in_ns".to_string(), "ns", sums.transit_ns),
            ("transit_in_wakeup_ns".to_string(), "ns", sums.transit_wakeup_ns),
            ("transit_in_runqueue_ns".to_string(), "ns", sums.transit_runqueue_ns),
            // On one machine the last reply is in the client's socket when it is sent.
            ("transit_out_ns".to_string(), "ns", 0),
            ("other_requests".to_string(), "1", sums.others),
            ("unseen_arrivals".to_string(), "1", sums.unseen),
            ("relayed_requests".to_string(), "1", sums.relayed),
            ("cpu_user_samples".to_string(), "1", sums.user_samples),
            ("cpu_system_samples".to_string(), "1", sums.system_samples),
        ];
        match sight {
            Sight::Requests => {}
            // Samples know nothing of single requests.
            Sight::Threads => named.clear(),
            Sight::Cpu | Sight::Wire => return Vec::new(),
        }
        named.push(("request_ns".to_string(), "ns", sums.request_ns));
        for state in IN_REQUESTS {
            // To /proc a thread that was woken is ready, whatever its CPU did.
            if sight == Sight::Threads && state == State::Wakeup {
                continue;
            }
            let mut ns = sums.in_requests[state as usize];
            if state == State::Other {
                ns += sums.in_requests[State::Aio as usize] + sums.in_requests[State::NetReceive as usize];
            }
            named.push((format!("request_{}_ns", state.name()), "ns", ns));
        }
        self.values("server", &named)
    }

    fn other_values(&self, sums: &OtherSums) -> Vec<(SeriesId, Value)> {
        self.values(
            "server",
            &[
                ("other_clients_requests".to_string(), "1", sums.requests),
                ("other_clients_connections".to_string(), "1", sums.connections),
                ("other_clients_cpu_ns".to_string(), "ns", sums.in_requests[State::Cpu as usize]),
            ],
        )
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
    let fixed = ["tid", "born_ns", "name", "role", "now", "requests"];
    let mut columns: Vec<String> = fixed.map(str::to_string).to_vec();
    columns.extend(state::ALL.map(|state| format!("{}_ns", state.name())));
    let row = |thread: &ThreadSums| {
        let mut row = vec![
            Some(thread.tid.to_string()),
            Some(thread.born_ns.to_string()),
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

/// Pauses since the table before.
fn pauses_table(t_ns: i64, pauses: &[Pauses]) -> TextRows {
    let row = |kind: &Pauses| kind.row().into_cells().map(Some).to_vec();
    let columns = PauseRow::COLUMNS.map(str::to_string).to_vec();
    TextRows { source: PauseRow::SOURCE.to_string(), t_ns, columns, rows: pauses.iter().map(row).collect() }
}

/// Waits for files since the tracing began.
fn files_table(t_ns: i64, files: &[FileWait]) -> TextRows {
    let columns = whyso_model::FileWait::COLUMNS.map(str::to_string).to_vec();
    let row = |wait: &FileWait| wait.row().into_cells().map(Some).to_vec();
    let source = whyso_model::FileWait::SOURCE.to_string();
    TextRows { source, t_ns, columns, rows: files.iter().map(row).collect() }
}
