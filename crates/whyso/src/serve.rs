//! `whyso serve`: recordings as a page.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use whyso_control::{
    Listener, Literals, News, RecordPlan, RecordTarget, RelayTargets, StackSampling, StacksOf,
};
use whyso_model::Stop;
use whyso_serve::{
    LiveRecorder, LiveServer, LiveTarget, PfsSetup, RecordProgress, RecordRequest, RecorderError, ServePlan,
    Server, Token,
};
use whyso_server::knobs::pfs::{PfsRequest, parse_object};

/// Threads that serve sockets; recordings are read by others.
const THREADS: usize = 2;

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
    /// Folder that holds the studies, which the page lists next to the runs
    #[arg(long, value_name = "DIR", default_value = crate::study::FOLDER)]
    studies: PathBuf,
    /// Address to listen on; port 0 is any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7979")]
    listen: SocketAddr,
    /// Further name by which browsers ask for this server, as a proxy passes it on, such as lab.example.org; may be given more than once
    #[arg(long = "host", value_name = "HOST[:PORT]")]
    hosts: Vec<String>,
    /// File that holds the token, 32 letters and digits or more, readable by you alone [default: a new token at each start]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Folder that holds your own sets of charts [default: charts in the folder of recordings]
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
    /// File that names servers and processes that may be recorded from the page, readable by you alone (see docs/how-to/serve.md)
    #[arg(long, value_name = "FILE")]
    servers: Option<PathBuf>,
}

pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode> {
    let token = match &args.token_file {
        Some(path) => Token::from_file(path)?,
        None => Token::random()?,
    };
    let plan = ServePlan {
        runs: args.runs.clone(),
        studies: args.studies.clone(),
        charts: args.charts.clone().unwrap_or_else(|| args.runs.join("charts")),
        verdicts: whyso_server::cache_dir().ok().map(|cache| cache.join("verdicts.json")),
        servers: match &args.servers {
            Some(path) => LiveServer::from_file(path, &Records)?,
            None => Vec::new(),
        },
        recorder: Arc::new(Records),
        listen: args.listen,
        token: token.clone(),
        hosts: args.hosts.clone(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("can't start")?;
    runtime.block_on(async {
        let server = Server::bind(plan).await?;
        if !server.address().ip().is_loopback() {
            print_stderr!(
                "whyso: warning: {} can be reached from other machines, and nothing is encrypted: anyone who reads the traffic has the token. \
                 Listen on 127.0.0.1 behind a proxy that speaks TLS (see docs/how-to/serve-proxy.md)",
                server.address()
            );
        }
        let mut out = crate::out::stdout();
        writeln!(out, "{}", server.url_with(&token))?;
        out.flush()?;
        drop(out);
        server.run(stopped()).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Records servers for the page.
struct Records;

impl LiveRecorder for Records {
    fn check(&self, request: &RecordRequest) -> Result<(), RecorderError> {
        plan_of(request)?;
        Ok(())
    }

    fn record(
        &self,
        request: &RecordRequest,
        progress: &(dyn Fn(RecordProgress<'_>) + Sync),
        stop: &Stop,
    ) -> Result<(), RecorderError> {
        let outcome = whyso_control::record(&plan_of(request)?, &ProgressListener(progress), stop, &|_| None);
        outcome?.failure.map_or(Ok(()), |why| Err(why.into()))
    }
}

/// The plan of a recording. It reads files of add-ons, and reaches nothing.
fn plan_of(request: &RecordRequest) -> Result<RecordPlan> {
    let literals = if request.keep_literals { Literals::Kept } else { Literals::Replaced };
    Ok(RecordPlan {
        target: match &request.target {
            LiveTarget::Server(dsn) => RecordTarget::Server(dsn.clone()),
            LiveTarget::Processes(named) => RecordTarget::Processes(named.clone()),
            LiveTarget::Hosts(_) => RecordTarget::Machine,
        },
        nodes: Vec::new(),
        other_dsns: Vec::new(),
        other_processes: Vec::new(),
        length: None,
        command: Vec::new(),
        load: None,
        toggle: false,
        interval: request.interval,
        trace: request.trace,
        stacks: if request.stacks { StackSampling::Full } else { StackSampling::Off },
        stacks_of: StacksOf::Server,
        sql: request.trace_sql.then_some(literals),
        add_ons: crate::addon::find_all(&request.add_ons)?,
        access_logs: Vec::new(),
        relay: RelayTargets::default(),
        taps: whyso_control::Taps::default(),
        hosts: match &request.target {
            LiveTarget::Hosts(file) => Some(crate::hosts_file::read(file)?),
            LiveTarget::Server(_) | LiveTarget::Processes(_) => None,
        },
        pfs: request.pfs.as_ref().map(pfs_request).transpose()?,
        out: request.runs.clone(),
        labels: whyso_record::Labels::default(),
        bytes_max: Some(request.bytes_max),
        command_line: request.command_line.clone(),
    })
}

fn pfs_request(setup: &PfsSetup) -> Result<PfsRequest> {
    let wanted = PfsRequest {
        preset: setup.preset.parse()?,
        timing: setup.timing.as_deref().map(str::parse).transpose()?,
        users: setup.users.clone(),
        hosts: setup.hosts.clone(),
        objects: setup.objects.iter().map(|named| parse_object(named)).collect::<Result<_, _>>()?,
    };
    wanted.check()?;
    Ok(wanted)
}

/// Passes on what a recording reports.
struct ProgressListener<'a>(&'a (dyn Fn(RecordProgress<'_>) + Sync));

impl Listener for ProgressListener<'_> {
    fn hear(&self, news: News<'_>) {
        match news {
            News::Step(step) => (self.0)(RecordProgress::Step(step)),
            News::Warning(warning) => (self.0)(RecordProgress::Warning(warning)),
            News::Level(_) => (self.0)(RecordProgress::Begun),
            _ => {}
        }
    }
}

/// Waits for Ctrl-C, or a request to end.
async fn stopped() {
    let mut term = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(term) => term,
        Err(_) => return std::future::pending().await,
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
    }
}
