//! `whyso run`: from what was typed to a plan, and from its outcome to what is printed.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use whyso_lab::{Action, Error, Plan, ServerPlan, Stop, parse_knob};
use whyso_record::Recording;

use crate::args::RunArgs;
use crate::progress::Bars;

static STOP: Stop = Stop::new();

pub(crate) fn run(args: RunArgs) -> Result<ExitCode> {
    // Before anything that takes time: a process list shows the command line to everyone.
    if let Some(password) = args.server.dsn.as_deref().and_then(whyso_server::dsn::password_as_typed) {
        whyso_server::overwrite_in_arguments(password);
    }
    let plan = plan(&args)?;
    if args.describe {
        print!("{}", whyso_lab::describe(&plan)?);
        return Ok(ExitCode::SUCCESS);
    }
    ctrlc::set_handler(|| {
        if STOP.ask() > 1 {
            // The throw-away server is ended and removed by its supervisor once this process is gone.
            std::process::exit(130);
        }
        eprintln!("\nwhyso: ending the level; Ctrl-C again ends at once");
    })
    .context("can't take Ctrl-C")?;

    let bars = Bars::new();
    let outcome = whyso_lab::run(&plan, &bars, &STOP, &ask_password);
    bars.clear();
    let outcome = outcome?;

    let recording = Recording::open(&outcome.path)?;
    let explanation = whyso_lab::explain(&recording)?;
    let report = outcome.path.join("report.html");
    let written = write_report(&recording, &explanation, &report);
    let mut out = std::io::stdout().lock();
    if args.json {
        let path = std::path::absolute(&outcome.path)?;
        let object = whyso_report::json(recording.run(), &explanation, &path);
        writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
    } else {
        writeln!(out, "\n{}", whyso_report::terminal(recording.run(), &explanation))?;
        if written.is_ok() {
            writeln!(out, "Report: {}", report.display())?;
        }
    }
    written?;
    if let Some(failure) = outcome.failure {
        bail!("{failure}");
    }
    Ok(ExitCode::SUCCESS)
}

fn write_report(
    recording: &Recording,
    explanation: &whyso_explain::model::Explanation,
    path: &std::path::Path,
) -> Result<()> {
    let file = std::fs::File::create(path).with_context(|| format!("can't write {}", path.display()))?;
    let mut out = std::io::BufWriter::new(file);
    whyso_report::html::write(recording, explanation, &mut out)?;
    out.flush().with_context(|| format!("can't write {}", path.display()))?;
    Ok(())
}

fn plan(args: &RunArgs) -> Result<Plan> {
    let mut options = args.options.given();
    for option in &args.options.option {
        let Some((name, value)) = option.split_once('=') else {
            bail!(Error::Plan(format!("--option {option}: give NAME=VALUE, such as range-size=50")));
        };
        options.push((name.trim().to_string(), value.trim().to_string()));
    }
    let mut set = Vec::new();
    for knob in &args.server.set {
        set.push(parse_knob(knob)?);
    }
    let mut actions = Vec::new();
    for pair in args.levels.at.chunks(2) {
        actions.push(Action::parse(&pair[0], &pair[1])?);
    }
    let server = match &args.server.dsn {
        Some(dsn) => ServerPlan::Dsn { dsn: dsn.clone(), set },
        None => ServerPlan::ThrowAway {
            build: args.server.server.clone(),
            parent: args.server.server_dir.clone(),
            set,
            defaults_file: args.server.defaults_file.clone(),
            cpus: args.server.server_cpus.clone(),
        },
    };
    let plan = Plan {
        workload: args.workload.clone(),
        options,
        tables: args.data.tables,
        rows: args.data.rows,
        seed: args.levels.seed,
        users: args.levels.users.clone(),
        measure: seconds("--seconds", args.levels.seconds)?,
        warmup_max: seconds("--warmup", args.levels.warmup)?,
        interval: Duration::from_millis(args.levels.interval_ms),
        repeat_best: !args.levels.no_repeat,
        actions,
        server,
        client_cpus: args.server.client_cpus.clone(),
        allow_writes: args.server.allow_writes.clone(),
        out: args.out.clone(),
        command: whyso_lab::masked_command_line(std::env::args()),
    };
    plan.check()?;
    Ok(plan)
}

fn seconds(flag: &str, seconds: f64) -> Result<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) => Ok(duration),
        Err(_) => {
            bail!(Error::Plan(format!("{flag} {seconds} is no length of time: give seconds, such as 10")))
        }
    }
}

/// Asks for a password where there is somebody to ask.
fn ask_password(question: &str) -> Option<String> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    rpassword::prompt_password(format!("{question}: ")).ok()
}
