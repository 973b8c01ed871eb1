//! `whyso run --url`: a load on a site, recorded.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use whyso_control::load::LoadPlan;
use whyso_control::{Error, RecordPlan, RecordTarget, SiteLoad, StackSampling, StacksOf, Taps};

use crate::answer::print_answer;
use crate::exit_codes::{FAILED, INTERRUPTED};
use crate::plan_args::{OPEN_USERS, arrivals, http_plan, seconds, think, tuning};
use crate::progress::Bars;
use crate::run::{ExplainedRun, explain_run, print_cost_of_sql_trace, print_json};
use crate::run_args::RunArgs;
use crate::user::{ask_password, handle_ctrl_c};

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let plan = plan(args)?;
    let stop = handle_ctrl_c()?;
    let bars = Bars::new();
    let outcome = whyso_control::record(&plan, &bars, stop, &ask_password);
    bars.clear();
    let outcome = outcome?;

    let ExplainedRun { recording, explanation, report, written } = explain_run(&outcome.path)?;
    let mut out = crate::out::stdout();
    if args.output.json {
        print_json(&mut out, &outcome.path, &recording, &explanation)?;
    } else {
        if args.output.verbose {
            writeln!(out, "\n{}", whyso_report::why(&explanation))?;
            print_cost_of_sql_trace(&mut out, &recording)?;
        }
        drop(out);
        let report = Some(report.as_path()).filter(|_| written.is_ok());
        print_answer(&outcome.path, recording.run(), &explanation, report)?;
        write!(crate::out::stdout(), "{}", whyso_report::pages(recording.run()))?;
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

/// The load, and what is recorded meanwhile.
fn plan(args: &RunArgs) -> Result<RecordPlan> {
    let dsn = args.server.dsn.first();
    let has_server = dsn.is_some();
    let target = match (dsn, args.http.process.first()) {
        (Some(dsn), _) => RecordTarget::Server(dsn.clone()),
        (None, Some(process)) => RecordTarget::Processes(process.clone()),
        (None, None) => RecordTarget::Machine,
    };
    let recording = &args.levels.recording;
    Ok(RecordPlan {
        // Agents record the stacks of servers.
        stacks_of: match (&target, recording.trace.stacks()) {
            (RecordTarget::Machine, StackSampling::Light | StackSampling::Full) if args.hosts.is_none() => {
                StacksOf::All
            }
            _ => recording.trace.stacks_of(),
        },
        target,
        nodes: Vec::new(),
        other_dsns: args.server.dsn.iter().skip(1).cloned().collect(),
        other_processes: args.http.process.iter().skip(usize::from(!has_server)).cloned().collect(),
        length: None,
        command: Vec::new(),
        load: Some(load(args)?),
        toggle: false,
        interval: recording.interval(),
        trace: recording.trace.is_wanted(),
        stacks: recording.trace.stacks(),
        sql: recording.sql.literals(),
        bytes_max: None,
        add_ons: args.others.add_ons()?,
        access_logs: args.others.access_logs()?,
        relay: args.others.relay(),
        taps: Taps::default(),
        hosts: args.hosts.as_deref().map(crate::hosts_file::read).transpose()?,
        pfs: args.pfs.setup()?,
        out: args.output.out.clone(),
        labels: args.output.labels()?,
        command_line: crate::user::command_line(),
    })
}

fn load(args: &RunArgs) -> Result<SiteLoad> {
    let url = args.http.url.as_deref().unwrap_or_default();
    let mut load = LoadPlan::of_site(http_plan(url, args.workload.as_deref(), &args.http.connection)?);
    if args.drive.arrivals.is_some() && args.rate.is_empty() {
        bail!(Error::Plan("--arrivals is for an open loop: give --rate".to_string()));
    }
    load.slo.extend(args.drive.slo.iter().cloned());
    load.users = match (&args.levels.users[..], &args.rate[..]) {
        ([], []) => vec![1],
        ([], _) => vec![OPEN_USERS],
        (users, _) => users.to_vec(),
    };
    load.rates_per_s.clone_from(&args.rate);
    load.arrivals = arrivals(args.drive.arrivals);
    load.think = think(&args.drive)?;
    load.measure = seconds("--seconds", args.levels.seconds)?;
    load.warmup_max = seconds("--warmup", args.levels.warmup)?;
    load.seed = args.levels.seed;
    load.engine = args.drive.engine;
    load.loops = args.drive.loops;
    load.tuning = tuning(&args.drive)?;
    load.client_cpus.clone_from(&args.server.client_cpus);
    let ramp_down = seconds("--ramp-down", args.http.ramp_down.unwrap_or_default())?;
    Ok(SiteLoad::new(load, ramp_down)?)
}
