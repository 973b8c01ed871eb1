//! `whyso run`: from what was typed to a plan, and from its outcome to what is printed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use whyso_control::{Action, Error, Plan, ServerPlan};
use whyso_explain::model::Explanation;
use whyso_query::ForReport;
use whyso_record::Recording;

use crate::answer::{keep_answer, print_answer};
use crate::cluster;
use crate::exit_codes::{FAILED, INTERRUPTED};
use crate::plan_args::{
    OPEN_USERS, arrivals, knobs, seconds, source, think, throw_away, tuning, workload_options,
};
use crate::progress::Bars;
use crate::run_args::RunArgs;
use crate::user::{ask_password, handle_ctrl_c};

/// The sweep, where no users are named.
const SWEEP_USERS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

pub(crate) fn run(args: RunArgs) -> Result<ExitCode> {
    let plan = plan(&args)?;
    if args.describe {
        write!(crate::out::stdout(), "{}", whyso_control::describe(&plan)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(wanted), true) = (&plan.pfs, args.pfs.dry_run) {
        writeln!(
            crate::out::stdout(),
            "{}",
            whyso_control::pfs_dry_run(wanted, &plan.server, &ask_password)?
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = handle_ctrl_c()?;

    let bars = Bars::new();
    let outcome = whyso_control::run(&plan, &bars, stop, &ask_password);
    bars.clear();
    let outcome = outcome?;

    let ExplainedRun { recording, explanation, report, written } = explain_run(&outcome.path)?;
    let mut out = crate::out::stdout();
    if args.output.json {
        print_json(&mut out, &outcome.path, &recording, &explanation)?;
    } else {
        if args.output.verbose {
            writeln!(out, "\n{}", whyso_report::terminal(recording.run(), &explanation))?;
            print_cost_of_sql_trace(&mut out, &recording)?;
        }
        drop(out);
        let report = Some(report.as_path()).filter(|_| written.is_ok());
        print_answer(&outcome.path, recording.run(), &explanation, report)?;
    }
    written?;
    if let Some(failure) = outcome.failure {
        bail!("{failure}");
    }
    if stop.is_asked() {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let holds = recording.run().levels.iter().flat_map(|level| &level.result.slo).all(|slo| slo.held);
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Users of the sweep, as the user's configuration has them.
fn config_users() -> Option<Vec<u32>> {
    crate::config::config().ok()?.users.clone()
}

/// A recording with its findings and its report.
pub(crate) struct ExplainedRun {
    pub(crate) recording: Recording,
    pub(crate) explanation: Explanation,
    pub(crate) report: PathBuf,
    /// Whether the report could be written.
    pub(crate) written: Result<()>,
}

/// Explains what was recorded, and writes its report next to it.
pub(crate) fn explain_run(path: &Path) -> Result<ExplainedRun> {
    let recording = Recording::open(path)?;
    let explanation = whyso_query::explain(&recording)?;
    // Without it a list of runs shows less.
    let _ = keep_answer(path, &whyso_report::answer(recording.run(), &explanation));
    let report = path.join("report.html");
    let written = write_report(&recording, &explanation, &report);
    Ok(ExplainedRun { recording, explanation, report, written })
}

/// Where the commands of clients were followed.
pub(crate) fn print_cost_of_sql_trace(out: &mut impl Write, recording: &Recording) -> Result<()> {
    if let Some(cost) = whyso_query::sql_trace_cost(recording)? {
        writeln!(out, "{}", whyso_report::sql_trace_words(&cost))?;
    }
    Ok(())
}

pub(crate) fn print_json(
    out: &mut impl Write,
    path: &Path,
    recording: &Recording,
    explanation: &Explanation,
) -> Result<()> {
    let object = whyso_report::json(recording.run(), explanation, &std::path::absolute(path)?);
    crate::json::write(out, "run", object)
}

pub(crate) fn write_report(recording: &Recording, explanation: &Explanation, path: &Path) -> Result<()> {
    let file = whyso_record::private::create_file(path)
        .with_context(|| format!("can't write {}", path.display()))?;
    let mut out = std::io::BufWriter::new(file);
    let for_report = ForReport::new(recording, &[])?;
    for_report.lend(None, |parts| whyso_report::html::write(recording, explanation, parts, &mut out))?;
    out.flush().with_context(|| format!("can't write {}", path.display()))?;
    Ok(())
}

fn plan(args: &RunArgs) -> Result<Plan> {
    let workload = args.workload.as_deref().unwrap_or("oltp-read-write");
    if workload.ends_with(".toml") {
        bail!(Error::Plan(format!("{workload} is a scenario of pages: name the site by --url http://…")));
    }
    let knobs = knobs(&args.server)?;
    let set = knobs.clone();
    let mut actions = Vec::new();
    for pair in args.levels.at.chunks(2) {
        actions.push(Action::parse(&pair[0], &pair[1])?);
    }
    let (mut nodes, mut kind) = (Vec::new(), None);
    let server = match &args.server.dsn[..] {
        [] => match &args.cluster {
            Some(name) => {
                let loaded = cluster::loaded(name, args.all_nodes || cluster::has_proxy(name)?)?;
                nodes = loaded.nodes;
                kind = Some(loaded.kind);
                ServerPlan::Dsn { dsn: loaded.dsn, set }
            }
            None => throw_away(&args.server, set),
        },
        [dsn, ..] => ServerPlan::Dsn { dsn: dsn.clone(), set },
    };
    let others = args.server.dsn.iter().skip(1);
    let other_servers = others.map(|dsn| ServerPlan::Dsn { dsn: dsn.clone(), set: knobs.clone() }).collect();
    if args.drive.arrivals.is_some() && args.rate.is_empty() {
        bail!(Error::Plan("--arrivals is for an open loop: give --rate".to_string()));
    }
    let users = match (&args.levels.users[..], &args.rate[..]) {
        ([], []) => config_users().unwrap_or_else(|| SWEEP_USERS.to_vec()),
        ([], _) => vec![OPEN_USERS],
        (users, _) => users.to_vec(),
    };
    let plan = Plan {
        source: source(workload)?,
        options: workload_options(&args.options)?,
        tables: args.data.tables,
        rows: args.data.rows,
        table_engine: args.data.engine(kind),
        seed: args.levels.seed,
        users,
        measure: seconds("--seconds", args.levels.seconds)?,
        warmup_max: seconds("--warmup", args.levels.warmup)?,
        cold: args.levels.cold,
        interval: args.levels.recording.interval(),
        trace: args.levels.recording.trace.is_wanted(),
        stacks: args.levels.recording.trace.stacks(),
        stacks_of: args.levels.recording.trace.stacks_of(),
        sql: args.levels.recording.sql.literals(),
        engine: args.drive.engine,
        loops: args.drive.loops,
        tuning: tuning(&args.drive)?,
        think: think(&args.drive)?,
        rates_per_s: args.rate.clone(),
        arrivals: arrivals(args.drive.arrivals),
        slo: args.drive.slo.clone(),
        repeat_best: !args.levels.no_repeat,
        check_loops: true,
        actions,
        server,
        nodes,
        other_servers,
        cluster: None,
        pfs: args.pfs.setup()?,
        client_cpus: args.server.client_cpus.clone(),
        allow_writes: args.server.allow_writes.clone(),
        add_ons: args.others.add_ons()?,
        access_logs: args.others.access_logs()?,
        relay: args.others.relay(),
        hosts: args.hosts.as_deref().map(crate::hosts_file::read).transpose()?,
        out: args.output.out.clone(),
        labels: args.output.labels()?,
        command: crate::user::command_line(),
    };
    plan.check()?;
    Ok(plan)
}
