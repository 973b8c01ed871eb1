//! `whyso record`, `whyso threads` and `whyso doctor`: servers that something else loads, and the machine itself.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use whyso_lab::doctor::Verdict;
use whyso_lab::{Error, RecordPlan, ThreadTime};
use whyso_record::Recording;
use whyso_record::run::Window;
use whyso_report::ThreadRow;

use crate::args::{RecordArgs, ThreadsArgs};
use crate::commands::open;
use crate::given::{ask_password, hide_passwords, take_ctrl_c};
use crate::progress::Bars;
use crate::run::{Explained, explained, print_json};
use crate::{FAILED, INTERRUPTED};

pub(crate) fn record(args: &RecordArgs) -> Result<ExitCode> {
    hide_passwords(std::slice::from_ref(&args.dsn));
    let plan = RecordPlan {
        dsn: args.dsn.clone(),
        length: args.length.map(|length| length.0),
        command: args.command.clone(),
        toggle: args.toggle,
        interval: Duration::from_millis(args.interval_ms),
        trace: !args.no_trace,
        stacks: args.stacks,
        out: args.out.clone(),
        command_line: whyso_lab::masked_command_line(std::env::args()),
    };
    let stop = take_ctrl_c()?;
    let bars = Bars::new();
    let outcome = whyso_lab::record(&plan, &bars, stop, &ask_password);
    bars.clear();
    let outcome = outcome?;

    let Explained { recording, explanation, report, written } = explained(&outcome.path)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        print_json(&mut out, &outcome.path, &recording, &explanation)?;
    } else {
        let differences = whyso_report::differences(&whyso_lab::input(&recording)?);
        writeln!(out, "\n{differences}")?;
        writeln!(out, "{}", whyso_report::why(&explanation))?;
        writeln!(out, "Report: {}", report.display())?;
    }
    written?;
    if let Some(failure) = outcome.failure {
        bail!("{failure}");
    }
    // Ctrl-C is how a recording without an end is ended.
    let cut = stop.is_asked() && (plan.length.is_some() || !plan.command.is_empty());
    Ok(if cut { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

pub(crate) fn threads(args: &ThreadsArgs) -> Result<ExitCode> {
    let found = match (&args.run, &args.dsn) {
        (Some(run), None) => {
            let (recording, _) = open(run, &args.runs)?;
            whyso_lab::threads_in(&recording, window(&recording, args.users)?)?
        }
        (None, Some(dsn)) => {
            hide_passwords(std::slice::from_ref(dsn));
            let stop = take_ctrl_c()?;
            whyso_lab::threads_now(dsn, args.length.0, stop, &ask_password)?
        }
        _ => bail!(Error::Plan("give a recorded run, or a server with --dsn".to_string())),
    };
    let wanted = |thread: &&ThreadTime| {
        args.role.as_ref().is_none_or(|role| thread.role == *role)
            && (args.thread.is_empty() || args.thread.contains(&thread.tid))
    };
    let rows: Vec<ThreadRow<'_>> = found.iter().filter(wanted).map(row).collect();
    if rows.is_empty() {
        bail!("no thread is left: leave --role and --thread away to see all {}", found.len());
    }
    print!("{}", whyso_report::threads(&rows, &whyso_lab::state_names()));
    Ok(ExitCode::SUCCESS)
}

fn row(thread: &ThreadTime) -> ThreadRow<'_> {
    ThreadRow {
        tid: thread.tid,
        name: &thread.name,
        role: &thread.role,
        connection: thread.connection,
        statement: thread.statement.as_deref(),
        requests: thread.requests,
        window_ns: thread.window_ns,
        states_ns: &thread.states_ns,
    }
}

/// The window of the level with so many users, or of the last one.
pub(crate) fn window(recording: &Recording, users: Option<u32>) -> Result<Window> {
    let levels = &recording.run().levels;
    let level = match users {
        Some(users) => levels.iter().find(|level| level.users == users),
        None => levels.last(),
    };
    match level {
        Some(level) => Ok(level.window),
        None => {
            let there: Vec<String> = levels.iter().map(|level| level.users.to_string()).collect();
            bail!(Error::Plan(format!(
                "this run has no such level; it has those of {} users",
                there.join(", ")
            )))
        }
    }
}

pub(crate) fn doctor() -> Result<ExitCode> {
    let checks = whyso_lab::doctor::doctor();
    let mut out = std::io::stdout().lock();
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
