//! whyso's side: one level in a process of its own, so that all that it uses is counted and nothing else.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use whyso_load::{
    Address, Arrivals, Endpoint, Engine, EngineKind, EngineUse, LevelSpec, LoadSpec, NativeWork, Pacing,
    Profile, Target, Tls,
};
use whyso_workload::{Options, Workload};

use crate::contestants::Run;
use crate::support::SCHEMA;

/// The first argument that makes this program a child.
pub(crate) const COMMAND: &str = "child";

/// Time between two checks whether the level has failed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

struct Level {
    addresses: Vec<Address>,
    workload: String,
    options: Options,
    engine: EngineKind,
    loops: Option<u32>,
    users: u32,
    seconds: u64,
    rate: Option<f64>,
}

pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let level = match parse(arguments) {
        Ok(level) => level,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    match run(&level) {
        Ok(printed) => {
            println!("{printed}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Level> {
    let mut level = Level {
        addresses: Vec::new(),
        workload: String::new(),
        options: Options::default(),
        engine: EngineKind::Auto,
        loops: None,
        users: 1,
        seconds: 1,
        rate: None,
    };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { bail!("{} needs a value", pair[0]) };
        let wrong = || anyhow!("{name} can't be '{value}'");
        match name.as_str() {
            "--unix" => level.addresses.push(Address::Unix(PathBuf::from(value))),
            "--tcp" => {
                let (host, port) = value.rsplit_once(':').ok_or_else(wrong)?;
                let port = port.parse().map_err(|_| wrong())?;
                level.addresses.push(Address::Tcp { host: host.to_string(), port });
            }
            "--workload" => level.workload = value.clone(),
            "--engine" => level.engine = value.parse().map_err(|_| wrong())?,
            "--loops" => level.loops = Some(value.parse().map_err(|_| wrong())?),
            "--users" => level.users = value.parse().map_err(|_| wrong())?,
            "--seconds" => level.seconds = value.parse().map_err(|_| wrong())?,
            "--rate" => level.rate = Some(value.parse().map_err(|_| wrong())?),
            "--tables" => level.options.set("tables", value)?,
            "--rows" => level.options.set("table_size", value)?,
            _ => bail!("unknown option {name}"),
        }
    }
    Ok(level)
}

fn run(level: &Level) -> Result<String> {
    let endpoint = |address: &Address| Endpoint { target: target(address.clone()), weight: 1 };
    let endpoints: Vec<Endpoint> = level.addresses.iter().map(endpoint).collect();
    let first = endpoints.first().context("nowhere to send to: give --unix PATH or --tcp ADDRESS:PORT")?;
    let seed = std::process::id().into();
    let load = LoadSpec {
        engine: level.engine,
        loops: level.loops,
        ..LoadSpec::new(first.target.clone(), level.users, seed)
    };
    let workload = Workload::builtin(&level.workload, &level.options)?;
    let mut engine =
        Engine::open(&LoadSpec { endpoints, ..load }, Arc::new(NativeWork::new(&workload, seed)))?;
    let mut level_spec = LevelSpec::users(level.users);
    if let Some(rate) = level.rate {
        level_spec.pacing = Pacing::Open { arrivals: Arrivals::Poisson, rate: Profile::constant(rate) };
    }
    let mut running = engine.level_with(&level_spec)?;
    running.begin_measuring();
    let end = Instant::now() + Duration::from_secs(level.seconds);
    while Instant::now() < end && running.failure().is_none() {
        std::thread::sleep(POLL_INTERVAL.min(end.saturating_duration_since(Instant::now())));
    }
    let outcome = running.stop();
    if let Some(failure) = outcome.failure {
        bail!(failure.message);
    }
    let seconds = (outcome.window_end_ns - outcome.window_begin_ns) as f64 / 1e9;
    let quantile_us = |share| outcome.response.quantile_ns(share) as f64 / 1e3;
    let EngineUse { kind, loops, .. } = outcome.engine;
    Ok(format!(
        "queries {}\nseconds {seconds}\ntransactions {}\np50_us {}\np99_us {}\nengine {kind} × {loops}",
        outcome.queries,
        outcome.transactions,
        quantile_us(0.5),
        quantile_us(0.99),
    ))
}

fn target(address: Address) -> Target {
    Target {
        address,
        user: "root".to_string(),
        password: String::new(),
        schema: SCHEMA.to_string(),
        tls: Tls::Off,
    }
}

/// What a child printed.
pub(crate) fn read(printed: &str) -> Option<Run> {
    let of = |name: &str| printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let number = |name: &str| of(name)?.parse().ok();
    Some(Run {
        queries: number("queries")?,
        seconds: number("seconds")?,
        transactions: number("transactions")?,
        p50_us: number("p50_us")?,
        p99_us: number("p99_us")?,
        engine: of("engine")?.to_string(),
        ..Run::default()
    })
}
