//! `whyso watch`: a server as it is now, in the terminal.

mod watch_hosts;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use whyso_control::{
    Error, Listener, News, Outcome, RecordPlan, RecordTarget, SessionActions, Show, StackSampling, StacksOf,
    WatchedServer,
};
use whyso_live::{About, AskError, Control, History, Server};
use whyso_model::Stop;
use whyso_record::Tap;
use whyso_record::run::RunInfo;

use crate::addon::OthersArgs;
use crate::pfs_args::PfsSetupArgs;
use crate::progress::Bars;
use crate::run::{ExplainedRun, explain_run};
use crate::trace_args::StacksOfArg;
use crate::user::{ask_password, handle_ctrl_c};
use crate::values::Size;

/// Of what is recorded meanwhile, in case that the user wants to keep it.
const SIZE_MAX: Size = Size(2 << 30);

#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Server to watch: mysql://user@host:3306/ or mysql://user@localhost/?socket=/path [default: that of the configuration, else this
    /// machine's, as ~/.my.cnf names it]; may be given more than once
    #[arg(long, value_name = "DSN")]
    dsn: Vec<String>,

    /// Cluster to watch, as `whyso server cluster list` names it: every node, each on a screen of its own
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dsn", "container"])]
    cluster: Option<String>,

    /// A server in a container of this machine, by the container's name, id or image; --dsn may give user and schema
    #[arg(long, value_name = "NAME")]
    container: Option<String>,

    /// Hosts to watch by their agents, each on a screen of its own
    #[arg(long, value_name = "LAB.toml", conflicts_with_all = ["dsn", "cluster", "container", "allow_kill"])]
    hosts: Option<PathBuf>,

    /// Time between two readings of each sampler, in milliseconds, from 100
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    interval_ms: u64,

    /// Do not account for the time of the server's threads and requests
    #[arg(long)]
    no_trace: bool,

    /// Take stacks of threads on CPUs, 49 times per second on each CPU. With all, table 9 shows the functions of each program
    /// [default: none]
    #[arg(long, value_enum, value_name = "WHOSE", conflicts_with = "no_trace")]
    stacks_of: Option<StacksOfArg>,

    #[command(flatten)]
    others: OthersArgs,

    #[command(flatten)]
    pfs: PfsSetupArgs,

    /// Size of the recording, beyond which its oldest detail is removed [default: 2GiB]
    #[arg(long, value_name = "SIZE")]
    disk_max: Option<Size>,

    /// Let the key K end the statement of a selected connection, after it asked; the recording gets a note of it
    #[arg(long)]
    allow_kill: bool,

    /// Folder that holds the recordings; one stays there if you press r
    #[arg(long = "runs", alias = "out", value_name = "DIR", default_value = crate::config::runs())]
    out: PathBuf,
}

pub(crate) fn watch(args: &WatchArgs) -> Result<ExitCode> {
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        bail!(Error::Plan(
            "whyso watch draws on a terminal, and this is none: `whyso record --dsn …` records without one"
                .to_string()
        ));
    }
    if args.pfs.dry_run {
        bail!(Error::Plan(
            "--dry-run is for `whyso record --pfs …`: it prints, and changes nothing".to_string()
        ));
    }
    if let Some(file) = &args.hosts {
        return watch_hosts::watch(args, file);
    }
    let mut dsns: Vec<String> =
        args.dsn.iter().map(|dsn| crate::config::dsn_of(Some(dsn), args.container.as_deref())).collect();
    if let Some(name) = &args.cluster {
        dsns = crate::cluster::dsns(name, true)?;
    }
    if dsns.is_empty() {
        dsns.push(crate::config::dsn_of(None, args.container.as_deref()));
    }
    let plans = dsns.into_iter().map(|dsn| plan(args, dsn)).collect::<Result<Vec<RecordPlan>>>()?;
    let common = Common {
        stop: handle_ctrl_c()?,
        bars: Bars::new(),
        is_drawn: AtomicBool::new(false),
        allow_kill: args.allow_kill,
        outcomes: Mutex::default(),
    };
    let watched = watch_next(&plans, &[], &common);
    common.bars.clear();
    watched?;
    show_outcomes(common.outcomes.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Prints why each recording that was kept did not go faster.
fn show_outcomes(outcomes: Vec<Outcome>) -> Result<ExitCode> {
    let mut failures = Vec::new();
    for outcome in outcomes {
        let ExplainedRun { report, explanation, written, .. } = explain_run(&outcome.path)?;
        let mut out = crate::out::stdout();
        writeln!(out, "{}", whyso_report::why(&explanation))?;
        writeln!(out, "Recorded in {}\nReport: {}", outcome.path.display(), report.display())?;
        written?;
        failures.extend(outcome.failure);
    }
    match failures.first() {
        Some(failure) => bail!("{failure}"),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn plan(args: &WatchArgs, dsn: String) -> Result<RecordPlan> {
    plan_of(args, RecordTarget::Server(dsn))
}

fn plan_of(args: &WatchArgs, target: RecordTarget) -> Result<RecordPlan> {
    Ok(RecordPlan {
        target,
        nodes: Vec::new(),
        other_dsns: Vec::new(),
        other_processes: Vec::new(),
        length: None,
        command: Vec::new(),
        load: None,
        toggle: true,
        interval: Duration::from_millis(args.interval_ms),
        trace: !args.no_trace,
        stacks: if args.stacks_of.is_some() { StackSampling::Light } else { StackSampling::Off },
        stacks_of: args.stacks_of.map(StacksOf::from).unwrap_or_default(),
        sql: None,
        bytes_max: Some(args.disk_max.unwrap_or(SIZE_MAX).0),
        add_ons: args.others.add_ons()?,
        access_logs: args.others.access_logs()?,
        relay: args.others.relay(),
        taps: whyso_control::Taps::default(),
        hosts: None,
        pfs: args.pfs.setup()?,
        out: args.out.clone(),
        labels: whyso_record::Labels::default(),
        command_line: crate::user::command_line(),
    })
}

/// What all servers that are watched share.
struct Common {
    stop: &'static Stop,
    /// Text that is printed before and after the screen is shown.
    bars: Bars,
    is_drawn: AtomicBool,
    allow_kill: bool,
    /// Of the recordings that the user kept.
    outcomes: Mutex<Vec<Outcome>>,
}

/// Watches the first of `plans`, and while that lasts the others. The last one draws all.
fn watch_next(plans: &[RecordPlan], shown: &[Server<'_>], common: &Common) -> Result<(), Error> {
    let Some((plan, rest)) = plans.split_first() else {
        common.is_drawn.store(true, Ordering::Relaxed);
        let drawn = whyso_live::show(shown);
        common.is_drawn.store(false, Ordering::Relaxed);
        return drawn.map_err(|error| Error::Failed(format!("the terminal can't be drawn on: {error}")));
    };
    let next = Next { history: Arc::default(), rest, shown, common };
    let outcome = whyso_control::watch(plan, &next, &next, common.stop, &ask_password)?;
    common.outcomes.lock().unwrap_or_else(PoisonError::into_inner).extend(outcome);
    Ok(())
}

/// A server that is watched, the plans of those that are not yet, and those that are already.
struct Next<'a> {
    history: Arc<History>,
    rest: &'a [RecordPlan],
    shown: &'a [Server<'a>],
    common: &'a Common,
}

impl Listener for Next<'_> {
    fn hear(&self, news: News<'_>) {
        if !self.common.is_drawn.load(Ordering::Relaxed) {
            self.common.bars.hear(news);
        }
    }
}

impl Show for Next<'_> {
    fn tap(&self) -> Arc<dyn Tap> {
        self.history.clone()
    }

    fn show(&self, watched: &WatchedServer<'_>) -> Result<(), Error> {
        self.common.bars.clear();
        let run = watched.run();
        let server = version_of(run);
        let about = About {
            endpoint: run.server.endpoint.clone(),
            server,
            machine: watched.machine(),
            variables: run.server.variables.clone(),
            recording: watched.path().display().to_string(),
        };
        let control = Keys { watched, history: &self.history, allow_kill: self.common.allow_kill };
        let this = Server { history: &self.history, about: &about, control: &control };
        let shown: Vec<Server<'_>> = self.shown.iter().copied().chain([this]).collect();
        watch_next(self.rest, &shown, self.common)
    }
}

/// The server's name and version.
fn version_of(run: &RunInfo) -> String {
    // MariaDB's version says that it is one.
    let (flavor, version) = (&run.server.flavor, &run.server.version);
    if version.contains(flavor.as_str()) { version.clone() } else { format!("{flavor} {version}") }
}

/// What the keys do.
struct Keys<'a> {
    watched: &'a WatchedServer<'a>,
    history: &'a Arc<History>,
    allow_kill: bool,
}

impl Keys<'_> {
    /// Asks the server on a thread of its own: the screen waits for nobody.
    fn ask(
        &self,
        question: impl FnOnce(SessionActions) -> Result<String, Error> + Send + 'static,
    ) -> Receiver<Result<String, AskError>> {
        let (send, answer) = channel();
        if let Some(sessions) = self.watched.sessions().cloned() {
            std::thread::spawn(move || {
                // Nobody waits for it where the screen has ended.
                let _ = send.send(question(sessions).map_err(|error| AskError(error.to_string())));
            });
        }
        answer
    }
}

impl Control for Keys<'_> {
    fn toggle_recording(&self) {
        self.watched.toggle();
    }

    fn recording_since_ns(&self) -> Option<i64> {
        self.watched.recording_since_ns()
    }

    fn note(&self, text: &str) -> Result<(), whyso_live::NoteError> {
        self.watched.note(text).map_err(|error| whyso_live::NoteError::Recorder(error.to_string()))?;
        self.history.note(text);
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.watched.is_over()
    }

    fn trouble(&self) -> Option<String> {
        self.watched.trouble()
    }

    fn explain(&self, statement: &str) -> Receiver<Result<String, AskError>> {
        let statement = statement.to_string();
        self.ask(move |sessions| {
            let plan = sessions.explain(&statement)?;
            Ok(whyso_report::plan(&plan.statement, &plan.columns, &plan.rows))
        })
    }

    fn kill(&self, connection: u64, statement: &str) -> Receiver<Result<String, AskError>> {
        let (statement, history) = (statement.to_string(), self.history.clone());
        self.ask(move |sessions| {
            sessions.kill(connection, &statement)?;
            let done = format!("ended the statement of connection {connection}");
            history.note(&done);
            Ok(format!("{done}; the recording has a note of it"))
        })
    }

    fn may_kill(&self) -> bool {
        self.allow_kill
    }

    fn not_measured(&self) -> Vec<whyso_model::NotMeasured> {
        self.watched.not_measured()
    }
}
