//! What `run` and `load` have in common between what was typed and a plan.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use whyso_control::{
    Error, ServerPlan, Source, parse_busy_poll, parse_knob, parse_min_complete, parse_think,
};
use whyso_load::{Arrivals, Think, Tuning};
use whyso_model::Stop;

use crate::INTERRUPTED;
use crate::args::{ArrivalsArg, DriveArgs, ServerArgs, WorkloadArgs};

/// Most transactions under way in an open loop, where it is not said.
pub(crate) const OPEN_USERS: u32 = 128;

static STOP: Stop = Stop::new();

/// The first Ctrl-C ends the level and still reports, the second ends at once.
pub(crate) fn take_ctrl_c() -> Result<&'static Stop> {
    ctrlc::set_handler(|| {
        if STOP.ask() > 1 {
            // The throw-away server is ended and removed by its supervisor once this process is gone.
            std::process::exit(i32::from(INTERRUPTED));
        }
        say!("\nwhyso: ending the level; Ctrl-C again ends at once");
    })
    .context("can't take Ctrl-C")?;
    Ok(&STOP)
}

/// A workload by its name, or a file of SQL.
pub(crate) fn source(name: &str) -> Result<Source> {
    let is_file = name.ends_with(".sql") || name.contains('/');
    if !is_file {
        return Ok(Source::Builtin(name.to_string()));
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("can't read {name}"))?;
    let short =
        Path::new(name).file_name().map_or(name.to_string(), |name| name.to_string_lossy().into_owned());
    Ok(Source::File { name: short, text })
}

pub(crate) fn workload_options(args: &WorkloadArgs) -> Result<Vec<(String, String)>> {
    let mut options = args.given();
    for option in &args.option {
        let Some((name, value)) = option.split_once('=') else {
            bail!(Error::Plan(format!("--option {option}: give NAME=VALUE, such as range-size=50")));
        };
        options.push((name.trim().to_string(), value.trim().to_string()));
    }
    Ok(options)
}

pub(crate) fn knobs(args: &ServerArgs) -> Result<Vec<(String, String)>> {
    let mut set = Vec::new();
    for knob in &args.set {
        set.push(parse_knob(knob)?);
    }
    Ok(set)
}

pub(crate) fn throw_away(args: &ServerArgs, set: Vec<(String, String)>) -> ServerPlan {
    ServerPlan::ThrowAway {
        build: args.server.clone(),
        parent: args.server_dir.clone(),
        set,
        defaults_file: args.defaults_file.clone(),
        cpus: args.server_cpus.clone(),
        memory_bytes: args.server_memory,
        preload: args.server_preload.clone(),
    }
}

pub(crate) fn think(args: &DriveArgs) -> Result<Think> {
    Ok(match &args.think {
        Some(text) => parse_think(text)?,
        None => Think::None,
    })
}

pub(crate) fn tuning(args: &DriveArgs) -> Result<Tuning> {
    Ok(Tuning {
        min_complete: args.min_complete.as_deref().map(parse_min_complete).transpose()?,
        scheduling_policy: args.scheduling_policy,
        busy_poll: args.busy_poll.as_deref().map(parse_busy_poll).transpose()?.unwrap_or_default(),
    })
}

pub(crate) fn arrivals(given: Option<ArrivalsArg>) -> Arrivals {
    match given {
        Some(ArrivalsArg::Uniform) => Arrivals::Uniform,
        Some(ArrivalsArg::Poisson) | None => Arrivals::Poisson,
    }
}

pub(crate) fn seconds(flag: &str, seconds: f64) -> Result<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) => Ok(duration),
        Err(_) => {
            bail!(Error::Plan(format!("{flag} {seconds} is no length of time: give seconds, such as 10")))
        }
    }
}

/// Asks for a password where there is somebody to ask.
pub(crate) fn ask_password(question: &str) -> Option<String> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    rpassword::prompt_password(format!("{question}: ")).ok()
}

/// Without passwords. The process's own arguments are overwritten in part.
static COMMAND_LINE: OnceLock<Vec<String>> = OnceLock::new();

/// Keeps the command line as it may be recorded. An argument need not be UTF-8.
pub(crate) fn keep_command_line(arguments: &[OsString]) {
    let arguments = arguments.iter().map(|one| one.to_string_lossy().into_owned());
    COMMAND_LINE.get_or_init(|| whyso_control::masked_command_line(arguments));
}

/// The command line as it may be recorded.
pub(crate) fn command_line() -> Vec<String> {
    COMMAND_LINE.get().cloned().unwrap_or_default()
}
