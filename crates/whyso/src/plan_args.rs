//! Turns options that `run` and `load` share into parts of a plan.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use whyso_control::load::{HttpPlan, Trust};
use whyso_control::{
    Error, ServerPlan, Source, parse_busy_poll, parse_knob, parse_min_complete, parse_think,
};
use whyso_load::{Arrivals, Think, Tuning};

use crate::http_args::HttpConnectionArgs;
use crate::run_args::{ArrivalsArg, DriveArgs, ServerArgs, WorkloadArgs};

/// Most transactions under way in an open loop, by default.
pub(crate) const OPEN_USERS: u32 = 128;

/// Returns a workload by its name, or by a file of SQL.
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

/// Returns a load over HTTP: of the pages in a file, or only of the address.
pub(crate) fn http_plan(url: &str, path: Option<&str>, args: &HttpConnectionArgs) -> Result<HttpPlan> {
    let file = match path {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("can't read {path}"))?;
            Some((path.rsplit('/').next().unwrap_or(path), text))
        }
    };
    let mut plan = HttpPlan::new(url, file.as_ref().map(|(name, text)| (*name, text.as_str())))?;
    plan.keeps_connections = !args.no_keep_alive;
    if let Some(timeout) = args.timeout {
        plan.timeout = seconds("--timeout", timeout)?;
    }
    plan.trust = match &args.ca {
        Some(path) => Trust::File(path.clone()),
        None if args.insecure => Trust::Any,
        None => Trust::Machine,
    };
    Ok(plan)
}

pub(crate) fn workload_options(args: &WorkloadArgs) -> Result<Vec<(String, String)>> {
    let mut options = args.named_options();
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
        is_without_quota: false,
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

pub(crate) fn arrivals(process: Option<ArrivalsArg>) -> Arrivals {
    match process {
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
