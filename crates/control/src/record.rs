//! Records a server that something else loads, or processes of any kind. Nothing is written to a server, and it needs no
//! schema of ours.

mod attended;
mod edges;
mod level;
mod successor;
mod toggles;
mod watched;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Runtime;
use whyso_record::run::ServerFacts;
use whyso_server::answers::{answered, log_out};
use whyso_server::knobs::Undo;
use whyso_server::{Dsn, schema};
use whyso_trace::{Generator, StackSampling};
use whyso_watch::{WatchSpec, Watcher};

use crate::Stop;
use crate::leave::put_back_on;
use crate::prepare::AskPassword;
use crate::progress::{Listener, News};
use crate::recording::{Recording, SLOW_INTERVAL, watch_spec};
use crate::run::{Outcome, runtime};
use crate::{Error, facts, login, pfs_setup};
use attended::Attended;
use successor::Successor;
pub use watched::{Show, Watched, watch};
use whyso_tracing::Counting;
use whyso_tracing::Processes;
use whyso_tracing::{Literals, ToFollow};
use whyso_tracing::{ToTrace, Tracing};

/// What is recorded.
#[derive(Clone, Debug)]
pub enum Recorded {
    /// A server, by its DSN.
    Server(String),
    /// Processes of any kind, by a number, a name, or a part of one.
    Processes(String),
}

/// What is recorded, and for how long.
#[derive(Clone, Debug)]
pub struct RecordPlan {
    pub of: Recorded,
    /// Length of the window; `None`: until the command ends, or until Ctrl-C.
    pub length: Option<Duration>,
    /// A command that loads the server, with its arguments; empty: something else does.
    pub command: Vec<String>,
    /// Windows begin and end when the user says so, by Enter or by SIGUSR1.
    pub toggle: bool,
    pub interval: Duration,
    pub trace: bool,
    /// What of the stacks of the server's threads is taken.
    pub stacks: StackSampling,
    /// Follow the commands of the server's clients.
    pub sql: Option<Literals>,
    /// Sources of the user's own.
    pub add_ons: Vec<whyso_watch::AddOn>,
    /// Where samples go beside the recording.
    pub relay: whyso_relay::RelayTargets,
    /// What the Performance Schema is to count; `None`: as the server has it, and nothing is changed.
    pub pfs: Option<whyso_server::knobs::pfs::PfsRequest>,
    /// Folder that holds the recordings.
    pub out: PathBuf,
    /// Size of the recording beyond which its oldest detail is removed.
    pub bytes_max: Option<u64>,
    /// The command line, secrets masked.
    pub command_line: Vec<String>,
}

impl RecordPlan {
    fn check(&self) -> Result<(), Error> {
        if self.toggle && !self.command.is_empty() {
            return Err(Error::Plan(
                "--toggle can't be given with a command: the command's own time is the window".to_string(),
            ));
        }
        if self.length.is_some_and(|length| length < Duration::from_secs(1)) {
            return Err(Error::Plan("--for must be at least one second".to_string()));
        }
        if let Some(wanted) = &self.pfs {
            wanted.check()?;
            if matches!(self.of, Recorded::Processes(_)) {
                return Err(Error::Plan("--pfs is for a server: give its --dsn".to_string()));
            }
        }
        if !self.trace && matches!(self.of, Recorded::Processes(_)) {
            return Err(Error::Plan(
                "of a process all is told by the tracer: leave --no-trace away".to_string(),
            ));
        }
        Ok(())
    }

    /// What the load is called: something else drives it.
    fn workload(&self) -> &str {
        self.command.first().map_or("recorded", String::as_str)
    }

    fn spec(&self, server_cpus: &[u32]) -> serde_json::Value {
        json!({
            "workload": self.workload(),
            "seconds": self.length.map(|length| length.as_secs_f64()),
            "interval_ms": self.interval.as_millis() as u64,
            "server_cpus": server_cpus,
            "client_cpus": facts::allowed_cpus(),
            "recorded": true,
        })
    }

    /// `dsn`: the server's; of processes there is none.
    fn to_trace(&self, dsn: Option<&Dsn>) -> ToTrace {
        let generator = if self.command.is_empty() { Generator::Unknown } else { Generator::Command };
        let sql = self.sql.zip(dsn).map(|(literals, dsn)| ToFollow { literals, opts: dsn.opts() });
        ToTrace { trace: self.trace, stacks: self.stacks, sql, generator }
    }
}

/// Records until the plan's end, and gives where.
///
/// # Errors
/// The server can't be reached, there is no such process or it may not be watched, the command can't be started, or no window was
/// recorded.
pub fn record(
    plan: &RecordPlan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Outcome, Error> {
    plan.check()?;
    match &plan.of {
        Recorded::Server(dsn) => record_server(plan, dsn, listener, stop, ask_password),
        Recorded::Processes(asked) => record_processes(plan, asked, listener, stop),
    }
}

/// Processes of any kind: there are no requests, and there is nobody to ask.
fn record_processes(
    plan: &RecordPlan,
    asked: &str,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Outcome, Error> {
    let processes = Processes::find(asked)?;
    let (counting, lost) = Counting::of_processes(&processes, plan.stacks).map_err(Error::Failed)?;
    let runtime = runtime()?;
    let pid = processes.pids.first().copied();
    let server = ServerFacts { endpoint: processes.words.clone(), pid, ..ServerFacts::default() };
    let mut spec = plan.spec(&facts::allowed_cpus());
    spec["process"] = json!(processes.words);
    let mut info = facts::new_info(&plan.command_line, spec, server, None);
    info.not_measured = vec![facts::WITHOUT_STACKS.to_string()];
    info.not_measured.extend(lost);
    if processes.pids.len() > 1 {
        info.not_measured.push(format!(
            "memory, page faults and open files of the other {} processes: the kernel's own counters were read only for process {}",
            processes.pids.len() - 1,
            processes.pids[0]
        ));
    }
    let watched = WatchSpec {
        interval: plan.interval,
        slow_interval: SLOW_INTERVAL.max(plan.interval),
        server_pid: pid,
        server_host: "server".to_string(),
        generator_pid: std::process::id(),
        add_ons: plan.add_ons.clone(),
        ..WatchSpec::default()
    };
    let mut recording = Recording::begin_within(&plan.out, info, plan.bytes_max)?;
    recording.relay(&plan.relay)?;
    let watcher = Watcher::start(watched, recording.recorder.clone())?;
    let tracing = Tracing::with(counting, &mut recording.info, &recording.recorder, plan.to_trace(None))
        .map_err(Error::Failed)?;
    let (tracing, successor) = (Some(tracing), Successor::of(None));
    Attended { plan, listener, stop, dsn: None, runtime, watcher, tracing, successor }.go(recording)
}

fn record_server(
    plan: &RecordPlan,
    dsn: &str,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Outcome, Error> {
    on_server(plan, dsn, listener, stop, ask_password, |attended, recording| attended.go(recording))
}

/// Reaches a server, begins to record it, has `attend` go on, and puts back what was changed for it.
fn on_server<T>(
    plan: &RecordPlan,
    dsn: &str,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
    attend: impl FnOnce(Attended<'_>, Recording) -> Result<T, Error>,
) -> Result<T, Error> {
    let runtime = runtime()?;
    let mut dsn = login::neutral(dsn)?;
    listener.hear(News::Step(&format!("connecting to {}", dsn.endpoint())));
    let (mut undo, performance_schema) = runtime.block_on(set_up(plan, &mut dsn, listener, ask_password))?;
    let begun = begin(plan, &dsn, performance_schema, &runtime);
    let recorded = begun.and_then(|(recording, watcher, tracing)| {
        let successor = Successor::of(recording.info.server.pid);
        let dsn = Some(dsn.clone());
        attend(Attended { plan, listener, stop, dsn, runtime, watcher, tracing, successor }, recording)
    });
    if let Some(undo) = &mut undo {
        listener.hear(News::Step("putting everything back"));
        crate::run::runtime()?.block_on(put_back_on(&dsn, undo, listener));
    }
    recorded
}

/// Logs in, and sets what the Performance Schema is to count where that was asked for.
async fn set_up(
    plan: &RecordPlan,
    dsn: &mut Dsn,
    listener: &dyn Listener,
    ask_password: &AskPassword,
) -> Result<(Option<Undo>, serde_json::Value), Error> {
    let mut conn = login::log_in(dsn, ask_password).await?;
    let exists = answered(dsn, "looking for the schema", schema::exists(&mut conn, &dsn.schema)).await?;
    if dsn.schema_given && !exists {
        // What `whyso server start` prints names the schema that a load makes, which may come later.
        if dsn.schema != whyso_server::dsn::DEFAULT_SCHEMA {
            return Err(login::no_such_schema(dsn, "a recording makes none"));
        }
        dsn.schema = login::NEUTRAL_SCHEMA.to_string();
    }
    let doing = "putting back settings that an earlier run left";
    for undone in answered(dsn, doing, pfs_setup::undo_pending(&mut conn)).await? {
        listener
            .hear(News::Warning(&format!("an earlier run ended without putting a setting back; {undone}")));
    }
    let (mut undo, mut told) = (None, serde_json::Value::Null);
    if let Some(wanted) = &plan.pfs {
        let mut journal = answered(dsn, "preparing to change settings", Undo::open(&mut conn)).await?;
        let work = pfs_setup::set_up(wanted, &mut conn, &mut journal);
        match answered(dsn, "setting up the Performance Schema", work).await {
            Ok(in_force) => told = in_force,
            Err(error) => {
                put_back_on(dsn, &mut journal, listener).await;
                return Err(error);
            }
        }
        undo = Some(journal);
    }
    log_out(conn).await;
    Ok((undo, told))
}

/// Begins to record a server that is set up.
fn begin(
    plan: &RecordPlan,
    dsn: &Dsn,
    performance_schema: serde_json::Value,
    runtime: &Runtime,
) -> Result<(Recording, Watcher, Option<Tracing>), Error> {
    let server = facts::server_now(dsn, false, None, runtime)?;
    let mut spec = plan.spec(&server.cpus);
    spec["performance_schema"] = match performance_schema {
        serde_json::Value::Null => pfs_setup::as_it_is(dsn, runtime),
        asked => asked,
    };
    let mut info = facts::new_info(&plan.command_line, spec, server, None);
    info.not_measured.push(
        "response times as clients see them: the load is not whyso's own, so that only what the kernel saw of its \
         requests is known, and no percentiles"
            .to_string(),
    );
    let pid = info.server.pid;
    let mut recording = Recording::begin_within(&plan.out, info, plan.bytes_max)?;
    recording.relay(&plan.relay)?;
    let mut watched = watch_spec(dsn, pid, None, plan.interval);
    watched.add_ons.clone_from(&plan.add_ons);
    let watcher = Watcher::start(watched, recording.recorder.clone())?;
    let tracing = Tracing::begin(&mut recording.info, &recording.recorder, plan.to_trace(Some(dsn)));
    Ok((recording, watcher, tracing))
}

fn gone(error: mysql_async::Error) -> Error {
    Error::Failed(format!("the server closed the connection: {error}"))
}
