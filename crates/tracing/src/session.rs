//! Records what the tracer counts: each second, and exactly at both ends of every measured window.

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use whyso_model::{Missing, NotMeasured, Stacks};
use whyso_record::Recorder;
use whyso_record::run::RunInfo;
use whyso_trace::{Generator, ProgramStacks, Reading, StackSampling, StacksOf};

use crate::counting::{Counting, Sight};
use crate::error::Error;
use crate::keeper::Keeper;
use crate::no_process::no_process;
use crate::programs::ProgramTaking;
use crate::request::Request;
use crate::sql_trace::{FollowSpec, SqlTracing};
use crate::stacks::{BusyFunctions, Owner, StackTaking};

/// Bound on the wait for the sums at a window's edge.
const EDGE_TIME_MAX: Duration = Duration::from_secs(2);
/// Requests to the tracing thread that wait, at most.
const REQUESTS_MAX: usize = 16;

/// What of a server's threads is to be recorded.
#[derive(Clone, Debug)]
pub struct TracingSpec {
    /// The account of their time.
    pub trace: bool,
    /// Their stacks, on top of that.
    pub stacks: StackSampling,
    /// Whose stacks that is about.
    pub stacks_of: StacksOf,
    /// The commands that they work on, on top of that.
    pub sql: Option<FollowSpec>,
    /// Other servers that take parts of the same load: their processes, and their TCP ports for clients.
    pub others: Vec<(u32, Option<u16>)>,
    /// Where the load comes from: this program, a command that it will start, or something else.
    pub generator: Generator,
}

/// Which functions of a server's program will have no names, and what would give them some; `None` where all have one.
fn nameless_functions(pid: u32) -> Option<NotMeasured> {
    let symbols = whyso_stacks::program_symbols(pid).filter(|symbols| !symbols.are_complete)?;
    let program = symbols.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let advice = match &symbols.package {
        Some(package) => format!("install {package}, or set DEBUGINFOD_URLS"),
        None => "install its package of debug symbols, or set DEBUGINFOD_URLS".to_string(),
    };
    let failed: String = symbols.failures.iter().map(|failure| format!("{failure}; ")).collect();
    Some(NotMeasured::new(
        Missing::FunctionNames,
        format!("the names of functions that {program} does not export"),
        format!("{failed}it has no symbols for them: {advice}"),
    ))
}

/// A tracer in a thread of its own.
pub struct Tracing {
    // Both end before the tracer, whose accounts they read.
    stacks: Option<StackTaking>,
    sql: Option<SqlTracing>,
    programs: Option<ProgramTaking>,
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
    sight: Sight,
}

impl Tracing {
    /// Begins to trace, unless it is not wanted or this machine does not allow it: then the recording has the reason.
    pub fn begin(info: &mut RunInfo, recorder: &Recorder, wanted: TracingSpec) -> Option<Tracing> {
        let no_process = no_process(&info.server.variables);
        let counting = match (wanted.trace, info.server.pid) {
            (false, _) => Err(Error::SwitchedOff),
            (true, None) if wanted.generator != Generator::Unknown => Counting::of_the_wire(&no_process),
            (true, None) => Err(Error::NoProcess(no_process)),
            (true, Some(pid)) => {
                let mut ports = client_ports(&info.server.variables);
                ports.extend(wanted.others.iter().filter_map(|(_, port)| *port));
                let servers = servers(Some(pid), &wanted.others);
                Counting::of(servers, wanted.stacks, wanted.generator, ports)
            }
        };
        let follows = wanted.sql.is_some();
        let sampling = wanted.programs_sampling();
        let started = counting.and_then(|(counting, lost)| {
            info.not_measured.extend(lost);
            let servers = servers(info.server.pid, &wanted.others);
            Tracing::start(counting, servers, wanted, info, recorder)
        });
        match started {
            Ok(tracing) => Some(tracing),
            Err(why) => {
                if follows {
                    info.not_measured.push(NotMeasured::commands(why.to_string()));
                }
                info.not_measured.push(NotMeasured::server_threads(why.to_string()));
                sampling.and_then(|sampling| Tracing::of_machine(info, recorder, sampling))
            }
        }
    }

    /// Only the stacks of all programs on this machine; nothing else is traced. `None`: they can't be taken, and the recording has the reason.
    pub fn of_machine(info: &mut RunInfo, recorder: &Recorder, sampling: StackSampling) -> Option<Tracing> {
        let host = host_here(info);
        let programs =
            program_taking(ProgramStacks::of_machine(sampling).map_err(Error::from), host, recorder);
        let programs = note_missing_programs(programs, info)?;
        let (stacks, sql, requests, thread) = (None, None, None, None);
        Some(Tracing { stacks, sql, programs: Some(programs), requests, thread, sight: Sight::Wire })
    }

    /// With what counts already, and knows what it watches.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn with(
        counting: Counting,
        info: &mut RunInfo,
        recorder: &Recorder,
        wanted: TracingSpec,
    ) -> Result<Tracing, Error> {
        Tracing::start(counting, Vec::new(), wanted, info, recorder)
    }

    fn start(
        counting: Counting,
        servers: Vec<u32>,
        wanted: TracingSpec,
        info: &mut RunInfo,
        recorder: &Recorder,
    ) -> Result<Tracing, Error> {
        if wanted.stacks != StackSampling::Off {
            info.not_measured.extend(servers.first().and_then(|pid| nameless_functions(*pid)));
        }
        let stacks = match (&counting, wanted.stacks) {
            (_, StackSampling::Off) => Ok(None),
            (Counting::Traced(tracer), StackSampling::Light | StackSampling::Full) => {
                let started = tracer.stacks().map_err(Error::from);
                let strange_is_load = tracer.strange_is_load();
                started
                    .and_then(|stacks| {
                        StackTaking::start(stacks, Owner::Server, strange_is_load, recorder.clone())
                    })
                    .map(Some)
            }
            (Counting::Wire(_), _) => Err(Error::NoProcess(self::no_process(&info.server.variables))),
            (Counting::Sampled(_), _) => Err(Error::NotAllowed),
        };
        let stacks = stacks.unwrap_or_else(|why| {
            info.not_measured.push(NotMeasured::new(
                Missing::ThreadStacks,
                "the stacks of the server's threads",
                why.to_string(),
            ));
            None
        });
        let of_programs = wanted.programs_sampling();
        let sql = wanted.sql.map(|follow| sql_tracing(&counting, follow, info, recorder)).transpose();
        let sql = sql.unwrap_or_else(|why| {
            info.not_measured.push(NotMeasured::commands(why.to_string()));
            None
        });
        let programs = of_programs.and_then(|sampling| {
            let started = match &counting {
                Counting::Traced(tracer) | Counting::Wire(tracer) => {
                    tracer.program_stacks(sampling).map_err(Error::from)
                }
                Counting::Sampled(_) => Err(Error::NotAllowed),
            };
            note_missing_programs(program_taking(started, host_here(info), recorder), info)
        });
        let (sender, requests) = sync_channel(REQUESTS_MAX);
        let sampling = if stacks.is_some() { wanted.stacks } else { StackSampling::Off };
        note_sampling(info, sampling);
        let sight = counting.sight();
        let mut keeper = Keeper::new(counting, servers, wanted.generator, recorder.clone());
        let spawned =
            std::thread::Builder::new().name("trace".to_string()).spawn(move || keeper.run(&requests));
        let thread = spawned.map_err(Error::Thread)?;
        Ok(Tracing { stacks, sql, programs, requests: Some(sender), thread: Some(thread), sight })
    }

    /// What the readings hold.
    pub fn sight(&self) -> Sight {
        self.sight
    }

    /// A level has ended, and the next has not begun: a time for what would disturb a measurement.
    pub fn between_levels(&self) {
        if let Some(stacks) = &self.stacks {
            stacks.name();
        }
        if let Some(programs) = &self.programs {
            programs.name();
        }
    }

    /// The functions that were busiest in the last seconds; `None` until there is something new, and where no stacks are taken.
    pub fn busy_functions(&self) -> Option<BusyFunctions> {
        self.stacks.as_ref()?.busy_functions()
    }

    /// A measured window begins or ends.
    pub fn mark(&self) {
        self.send(Request::Mark);
    }

    /// A measured window begins or ends: the sums up to now; `None` where the tracer does not answer.
    pub fn edge(&self) -> Option<Reading> {
        let (reply, answer) = sync_channel(1);
        self.send(Request::Edge(reply));
        answer.recv_timeout(EDGE_TIME_MAX).ok()
    }

    /// Another process loads the server; returns when it is watched, or the tracer does not answer.
    pub fn generator(&self, pid: u32) {
        let (reply, answer) = sync_channel(1);
        self.send(Request::Generator(pid, reply));
        let _ = answer.recv_timeout(EDGE_TIME_MAX);
    }

    pub fn server_pid_changed(&self, pid: u32) {
        if let Some(sql) = &self.sql {
            sql.server_pid_changed(pid);
        }
        self.send(Request::Server(pid));
    }

    /// Another server that takes parts of the load was started again.
    pub fn other_pid_changed(&self, old: u32, new: u32) {
        self.send(Request::OtherServer(old, new));
    }

    /// Never waits: a tracer that is that far behind takes its next reading all the sooner.
    fn send(&self, request: Request) {
        if let Some(requests) = &self.requests {
            let _ = requests.try_send(request);
        }
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.stacks = None;
        self.sql = None;
        self.programs = None;
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic there is no reason to lose the recording.
            let _ = thread.join();
        }
    }
}

impl TracingSpec {
    /// How densely other programs are sampled; `None`: not at all.
    fn programs_sampling(&self) -> Option<StackSampling> {
        let is_wanted = self.stacks_of == StacksOf::All && self.stacks != StackSampling::Off;
        is_wanted.then_some(self.stacks)
    }
}

/// Host of the series about this machine.
fn host_here(info: &RunInfo) -> &'static str {
    if info.server.pid.is_some() { "server" } else { "client" }
}

fn program_taking(
    started: Result<ProgramStacks, Error>,
    host: &str,
    recorder: &Recorder,
) -> Result<ProgramTaking, Error> {
    ProgramTaking::start(started?, host, recorder.clone())
}

/// Notes why the stacks of programs are missing, where they are.
fn note_missing_programs(started: Result<ProgramTaking, Error>, info: &mut RunInfo) -> Option<ProgramTaking> {
    let note = |why: &Error| {
        info.not_measured.push(NotMeasured::new(
            Missing::Other,
            "the stacks of programs other than the server",
            why.to_string(),
        ));
    };
    started.inspect_err(note).ok()
}

/// What of the stacks is taken, and what is missing.
fn note_sampling(info: &mut RunInfo, sampling: StackSampling) {
    info.spec.stacks = Some(match sampling {
        StackSampling::Off => Stacks::Off,
        StackSampling::Light => Stacks::Light,
        StackSampling::Full => Stacks::Full,
    });
    match sampling {
        StackSampling::Off => return,
        StackSampling::Light => info.not_measured.push(NotMeasured::wait_stacks()),
        StackSampling::Full => {}
    }
    info.not_measured.retain(|line| line.source != Missing::Stacks);
}

fn sql_tracing(
    counting: &Counting,
    follow: FollowSpec,
    info: &mut RunInfo,
    recorder: &Recorder,
) -> Result<SqlTracing, Error> {
    match (counting, info.server.pid) {
        (Counting::Traced(tracer), Some(pid)) => SqlTracing::start(tracer, pid, follow, info, recorder),
        (Counting::Sampled(_), _) => Err(Error::NotAllowed),
        _ => Err(Error::NoProcess(no_process(&info.server.variables))),
    }
}

/// The processes of the run's server and of the others.
fn servers(pid: Option<u32>, others: &[(u32, Option<u16>)]) -> Vec<u32> {
    pid.into_iter().chain(others.iter().map(|(pid, _)| *pid)).collect()
}

/// TCP ports at which a server takes clients, by its variables.
fn client_ports(variables: &BTreeMap<String, String>) -> Vec<u16> {
    let ports =
        ["port", "extra_port", "admin_port", "mysqlx_port"].map(|name| variables.get(name)?.parse().ok());
    ports.into_iter().flatten().filter(|port| *port != 0).collect()
}
