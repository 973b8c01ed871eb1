//! `whyso prove`: each suspect of a recording, removed in an experiment.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use whyso_control::{Error, ProvePlan, ServerPlan, proposals_for, prove};
use whyso_remedy::{Cost, SMALLEST_GAIN};

use crate::exit_codes::INTERRUPTED;
use crate::plan_args::source;
use crate::progress::Bars;
use crate::recordings::{LATEST, open};
use crate::user::{ask_password, command_line, handle_ctrl_c};
use crate::values::Length;
use crate::versus::{change, neighbours};

/// A server of whyso's own, as it is without options.
const OWN_SERVER: ServerPlan = ServerPlan::ThrowAway {
    build: None,
    parent: None,
    set: Vec::new(),
    defaults_file: None,
    cpus: None,
    memory_bytes: None,
    is_without_quota: false,
    preload: None,
};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  whyso prove --dry-run                     what would be changed, and what it costs
  whyso prove --accept durability,memory    test the suspects of the last run, on a server like the recorded one
  whyso prove RUN --dsn DSN --allow-experiments --budget 2m")]
pub(crate) struct ProveArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last [default: latest]
    run: Option<PathBuf>,

    /// The recording's server, where it is your own: settings are switched on it and put back
    #[arg(long, value_name = "DSN")]
    dsn: Option<String>,

    /// Permit experiments on the server of --dsn
    #[arg(long, requires = "dsn")]
    allow_experiments: bool,

    /// Longest that all experiments may take
    #[arg(long, value_name = "TIME", default_value = "5m")]
    budget: Length,

    /// What experiments may cost: durability, memory, semantics, or several with commas
    #[arg(long, value_name = "COST,…", value_delimiter = ',')]
    accept: Vec<Cost>,

    /// The smallest gain that matters, as a multiple of the throughput
    #[arg(long, value_name = "RATIO", default_value_t = SMALLEST_GAIN)]
    smallest_gain: f64,

    /// Continue with what remains until throughput is this multiple of what it was, such as 2x
    #[arg(long, value_name = "RATIO", value_parser = multiple)]
    until: Option<f64>,

    /// The workload, where it was a file of SQL: the recording does not hold it
    #[arg(long, value_name = "FILE.sql")]
    workload: Option<String>,

    /// Test your own change against the first suspect, and nothing else: up to the end of the line, as for `whyso ab`
    #[arg(long, value_name = "WHAT", num_args = 1.., allow_hyphen_values = true)]
    versus: Vec<OsString>,

    /// A program of others that may be paused in some windows, to see what it costs: PID or PID@START; several times for several
    #[arg(long, value_name = "PID")]
    pause: Vec<String>,

    /// A replica of the server of --dsn: an experiment ends where it falls 5 s further behind; several times for several
    #[arg(long, value_name = "DSN", requires = "dsn")]
    replica: Vec<String>,

    /// Hosts that send the load by their agents, and the host of --dsn, whose agent has to allow experiments
    #[arg(long, value_name = "LAB.toml", requires = "dsn")]
    hosts: Option<PathBuf>,

    /// Permit writing to this schema although whyso did not make it
    #[arg(long, value_name = "SCHEMA")]
    allow_writes: Option<String>,

    /// Print what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

/// "2x" or "2".
fn multiple(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix(['x', '×']).unwrap_or(text);
    number.parse().map_err(|_| format!("'{text}' is no multiple: give one such as 2x"))
}

pub(crate) fn run(args: &ProveArgs) -> Result<ExitCode> {
    let (recording, path) = open(args.run.as_deref().unwrap_or(Path::new(LATEST)), &args.runs)?;
    let plan = ProvePlan {
        recording: path.clone(),
        out: args.runs.clone(),
        dsn: args.dsn.clone(),
        allow_experiments: args.allow_experiments || args.dry_run,
        budget: args.budget.0,
        accept: args.accept.clone(),
        smallest: args.smallest_gain,
        until: args.until,
        source: args.workload.as_deref().map(source).transpose()?,
        own: if args.versus.is_empty() { None } else { Some(change(&args.versus, &OWN_SERVER)?) },
        pause: neighbours(&args.pause)?,
        allow_writes: args.allow_writes.clone(),
        replicas: args.replica.clone(),
        hosts: args.hosts.as_deref().map(crate::hosts_file::read).transpose()?,
        command: command_line(),
    };
    plan.check()?;
    let mut out = crate::out::stdout();
    if args.dry_run {
        let proposals = proposals_for(&plan)?;
        match args.json {
            true => crate::json::write(&mut out, "prove-plan", whyso_report::prove::plan_json(&proposals))?,
            false => write!(out, "{}", whyso_report::prove::plan_text(&proposals))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let bars = Bars::new();
    let stop = handle_ctrl_c()?;
    let outcome = prove(&plan, &bars, stop, &ask_password);
    bars.clear();
    let outcome = outcome?;
    if outcome.interrupted && outcome.proofs.is_empty() {
        return Err(Error::Interrupted.into());
    }
    let object = whyso_report::prove::prove_json(&outcome);
    let mut file = whyso_record::private::create_file(&path.join(whyso_query::PROOFS))?;
    serde_json::to_writer(&mut file, &object)?;
    drop(file);
    let report = path.join("report.html");
    if report.exists() {
        crate::run::write_report(&recording, &whyso_query::explain(&recording)?, &report)?;
    }
    match args.json {
        true => crate::json::write(&mut out, "prove", object)?,
        false => write!(out, "{}", whyso_report::prove::prove_text(&outcome))?,
    }
    Ok(if outcome.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}
