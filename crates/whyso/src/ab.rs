//! `whyso ab`: two sides that alternate on a loaded server, and one sentence about which is faster.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use whyso_control::{AbPlan, AbSide, Error, ServerPlan, SideChange, ab};
use whyso_load::Think;
use whyso_server::dataset::Dataset;

use crate::exit_codes::INTERRUPTED;
use crate::plan_args::{knobs, seconds, source, throw_away, workload_options};
use crate::progress::Bars;
use crate::run_args::{DataArgs, ServerArgs, WorkloadArgs};
use crate::user::{ask_password, handle_ctrl_c};
use crate::versus::{change, of_build, query};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  whyso ab --set innodb_flush_log_at_trx_commit=1 --versus --set innodb_flush_log_at_trx_commit=2
  whyso ab oltp-read-only --versus --server mysql-9.7
  whyso ab --query 'SELECT c FROM sbtest1 WHERE k = 7' --versus --query 'SELECT c FROM sbtest1 WHERE k + 0 = 7'")]
pub(crate) struct AbArgs {
    /// The workload of both sides, named as sysbench names it, or a file of SQL
    ///
    /// [default: oltp-read-write]
    #[arg(value_name = "WORKLOAD|FILE.sql", conflicts_with = "query")]
    workload: Option<String>,

    /// Load with this single statement
    #[arg(long, value_name = "SQL")]
    query: Option<String>,

    /// What differs on the other side, up to the end of the line: --set, --query, --workload, --option, --tables, --rows, --table-engine, --users, --sql, --leave-out, --pause, --server, --server-cpus, --cpu-speed, --storage-speed or --dsn
    ///
    /// The rest is as on the first side.
    #[arg(long, value_name = "WHAT", num_args = 1.., allow_hyphen_values = true)]
    versus: Vec<OsString>,

    /// The other side is this server build: the same as --versus --server
    #[arg(long, value_name = "DIR|NAME", conflicts_with = "versus")]
    versus_server: Option<PathBuf>,

    #[command(flatten)]
    server: ServerArgs,

    /// Users at work
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Design")]
    users: u32,

    /// Longest that the sides alternate, all starts together; it ends earlier when the answer is sure
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = crate::values::seconds, help_heading = "Design")]
    seconds: f64,

    /// Length of a window, 200ms to 30s [default: chosen, 0.5 s to 5 s]
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds, help_heading = "Design")]
    window: Option<f64>,

    /// Starts of whyso's own servers [default: 1 on one server, 3 with two]
    #[arg(long, value_name = "N", help_heading = "Design")]
    starts: Option<u32>,

    /// The smallest ratio that matters: what surely differs by less is equivalent
    #[arg(long, value_name = "RATIO", default_value_t = 1.01, help_heading = "Design")]
    matters: f64,

    /// A replica of the server: the comparison ends where it falls 5 s further behind; several times for several
    #[arg(long, value_name = "DSN", help_heading = "Design")]
    replica: Vec<String>,

    /// Hosts that send the load by their agents, and the host of --dsn, whose agent has to allow experiments
    #[arg(long, value_name = "LAB.toml", requires = "dsn", help_heading = "Design")]
    hosts: Option<PathBuf>,

    /// Seed of the order of windows, and of everything that is random in the load
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Design")]
    seed: u64,

    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    options: WorkloadArgs,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long, help_heading = "Output")]
    json: bool,
}

pub(crate) fn run(args: &AbArgs) -> Result<ExitCode> {
    let plan = plan(args)?;
    plan.check()?;
    let bars = Bars::new();
    let stop = handle_ctrl_c()?;
    let outcome = ab(&plan, &bars, stop, &ask_password);
    bars.clear();
    let outcome = outcome?;
    let Some(answer) = whyso_explain::ab::answer(&outcome) else {
        bail!("it ended before there was enough to compare: leave it running for longer");
    };
    let mut out = crate::out::stdout();
    match args.json {
        true => crate::json::write(&mut out, "ab", whyso_report::ab::ab_json(&outcome, &answer))?,
        false => write!(out, "{}", whyso_report::ab::ab_text(&outcome, &answer))?,
    }
    Ok(if outcome.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn plan(args: &AbArgs) -> Result<AbPlan> {
    let baseline = baseline(args)?;
    let variant = variant(args, &baseline)?;
    Ok(AbPlan {
        sides: [baseline, variant],
        seed: args.seed,
        window: args.window.map(|window| seconds("--window", window)).transpose()?,
        length: seconds("--seconds", args.seconds)?,
        starts: args.starts,
        matters: args.matters,
        threshold: None,
        slow: std::time::Duration::ZERO,
        client_cpus: args.server.client_cpus.clone(),
        allow_writes: args.server.allow_writes.clone(),
        replicas: args.replica.clone(),
        hosts: args.hosts.as_deref().map(crate::hosts_file::read).transpose()?,
    })
}

fn baseline(args: &AbArgs) -> Result<AbSide> {
    let server = match &args.server.dsn[..] {
        [] => throw_away(&args.server, Vec::new()),
        [dsn] => ServerPlan::Dsn { dsn: dsn.clone(), set: Vec::new() },
        _ => bail!(Error::Plan("give one --dsn, and the other server after --versus".to_string())),
    };
    let source = match (&args.query, &args.workload) {
        (Some(sql), _) => query(sql),
        (None, Some(workload)) => source(workload)?,
        (None, None) => source("oltp-read-write")?,
    };
    Ok(AbSide {
        server,
        source,
        options: workload_options(&args.options)?,
        data: Dataset {
            tables: args.data.tables,
            rows: args.data.rows,
            seed: args.seed,
            engine: args.data.engine(None),
        },
        users: args.users,
        think: Think::None,
        set: knobs(&args.server)?,
        prepare: Vec::new(),
        left_out: Vec::new(),
        paused: Vec::new(),
        cpu_speed: None,
        storage_speed: None,
    })
}

/// The other side: as the baseline, except for what stands after `--versus`.
fn variant(args: &AbArgs, baseline: &AbSide) -> Result<AbSide> {
    let own_server = throw_away(&args.server, Vec::new());
    if let Some(build) = &args.versus_server {
        let change =
            SideChange { server: Some(of_build(&own_server, Some(build), None)), ..SideChange::default() };
        return Ok(change.apply(baseline));
    }
    if args.versus.is_empty() {
        bail!(Error::Plan(
            "there is nothing to compare with: end the line with --versus and what differs, such as --versus --set KNOB=VALUE".to_string()
        ));
    }
    Ok(change(&args.versus, &own_server)?.apply(baseline))
}
