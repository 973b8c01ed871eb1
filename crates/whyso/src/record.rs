//! `whyso record` and `whyso doctor`: servers that something else loads, and the machine itself.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use whyso_control::doctor::Verdict;
use whyso_control::{RecordPlan, RecordTarget, ServerPlan, StackSampling, StacksOf};

use crate::answer::print_answer;
use crate::exit_codes::{FAILED, INTERRUPTED};
use crate::progress::Bars;
use crate::record_args::RecordArgs;
use crate::run::{ExplainedRun, explain_run, print_cost_of_sql_trace, print_json};
use crate::stacks::record_target;
use crate::user::{ask_password, handle_ctrl_c};

/// Before the name of a container whose processes are meant.
const OF_CONTAINER: &str = "container:";

pub(crate) fn record(args: &RecordArgs) -> Result<ExitCode> {
    let named = crate::config::dsns_of(&args.dsn, &args.container)?;
    let (dsn, other_dsns) = (named.first().map(String::as_str), named.iter().skip(1).cloned().collect());
    let processes = args.process.iter().map(|asked| process_of(asked)).collect::<Result<Vec<String>>>()?;
    let cluster = args.cluster.as_deref().map(|name| crate::cluster::loaded(name, false)).transpose()?;
    let (of_node, nodes) = cluster.map_or((None, Vec::new()), |cluster| (Some(cluster.dsn), cluster.nodes));
    let has_server = of_node.is_some() || dsn.is_some() || args.process.is_empty();
    let dsn = (has_server && args.hosts.is_none() && !args.machine)
        .then(|| crate::config::dsn_of(of_node.as_deref().or(dsn), None));
    let plan = RecordPlan {
        target: match &args.hosts {
            _ if args.machine => RecordTarget::Machine,
            Some(_) => RecordTarget::Machine,
            None => record_target(dsn.as_ref(), processes.first().filter(|_| !has_server))?,
        },
        nodes,
        other_dsns,
        other_processes: processes.iter().skip(usize::from(!has_server)).cloned().collect(),
        length: args.length.map(|length| length.0),
        command: args.command.clone(),
        load: None,
        toggle: args.toggle,
        interval: args.recording.interval(),
        trace: args.recording.trace.is_wanted(),
        stacks: args.recording.trace.stacks(),
        stacks_of: match (args.machine, args.recording.trace.stacks()) {
            (true, StackSampling::Light | StackSampling::Full) => StacksOf::All,
            _ => args.recording.trace.stacks_of(),
        },
        sql: args.recording.sql.literals(),
        bytes_max: args.disk_max.map(|size| size.0),
        add_ons: args.others.add_ons()?,
        access_logs: args.others.access_logs()?,
        relay: args.others.relay(),
        taps: whyso_control::Taps::default(),
        hosts: args.hosts.as_deref().map(crate::hosts_file::read).transpose()?,
        pfs: args.pfs.setup()?,
        out: args.output.out.clone(),
        labels: args.output.labels()?,
        command_line: crate::user::command_line(),
    };
    if let (Some(wanted), Some(dsn), true) = (&plan.pfs, &dsn, args.pfs.dry_run) {
        let server = ServerPlan::Dsn { dsn: dsn.clone(), set: Vec::new() };
        writeln!(crate::out::stdout(), "{}", whyso_control::pfs_dry_run(wanted, &server, &ask_password)?)?;
        return Ok(ExitCode::SUCCESS);
    }
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
            writeln!(out)?;
            if dsn.is_some() {
                writeln!(out, "{}", whyso_report::differences(&whyso_query::input(&recording)?))?;
            }
            writeln!(out, "{}", whyso_report::why(&explanation))?;
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
    // Ctrl-C is how a recording without an end is ended.
    let cut = stop.is_asked() && (plan.length.is_some() || !plan.command.is_empty());
    Ok(if cut { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Processes as the tracer finds them: those of a container by the number of its first one.
fn process_of(asked: &str) -> Result<String> {
    match asked.strip_prefix(OF_CONTAINER) {
        Some(container) => Ok(whyso_server::containers::first_process_in(container)?.to_string()),
        None => Ok(asked.to_string()),
    }
}

pub(crate) fn doctor() -> Result<ExitCode> {
    let checks = whyso_control::doctor::doctor();
    let mut out = crate::out::stdout();
    for check in &checks {
        let mark = match check.verdict {
            Verdict::Good => "ok",
            Verdict::Warning => "warning",
            Verdict::Missing => "missing",
        };
        writeln!(out, "{mark:8} {:12} {}", check.what, check.text)?;
    }
    let missing = checks.iter().any(|check| check.verdict == Verdict::Missing);
    Ok(if missing { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}
