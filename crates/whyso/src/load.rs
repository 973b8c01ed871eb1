//! `whyso load`: from what was typed to a plan, and from its outcome to what is printed.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use whyso_control::load::{HttpPlan, LoadOutcome, LoadPlan, describe, load};
use whyso_control::{Error, Quantity, ServerPlan, Source, parse_stages};
use whyso_load::{Arrivals, Placement};
use whyso_report::load::LoadResult;

use crate::exit_codes::{FAILED, INTERRUPTED};
use crate::load_args::LoadArgs;
use crate::load_args::PlacementArg;
use crate::load_view::{LoadView, TableColumns};
use crate::plan_args::{
    OPEN_USERS, arrivals, http_plan, knobs, seconds, source, think, throw_away, tuning, workload_options,
};
use crate::user::{ask_password, handle_ctrl_c};

const SECONDS: f64 = 10.0;
const SECONDS_A_ROUND: f64 = 3.0;
const WARMUP_SECONDS: f64 = 10.0;
const WARMUP_SECONDS_A_ROUND: f64 = 1.0;
/// The most that a level may take where a number of transactions ends it.
const DAY_SECONDS: f64 = 86_400.0;

pub(crate) fn run(args: LoadArgs) -> Result<ExitCode> {
    let plan = plan(&args)?;
    if args.describe {
        write!(crate::out::stdout(), "{}", describe(&plan)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let view = LoadView::new(&args.output, table_columns(&plan))?;
    let stop = handle_ctrl_c()?;
    let outcome = load(&plan, &view, stop, &ask_password);
    view.clear();
    let outcome = outcome?;
    let interrupted = outcome.interrupted;
    let failed = !outcome.holds_slo();
    let failure = outcome.failure.clone();
    print(&args, &view, outcome)?;
    view.finish()?;
    if let Some(failure) = failure {
        bail!("{failure}");
    }
    Ok(match (interrupted, failed) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, true) => ExitCode::from(FAILED),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn print(args: &LoadArgs, view: &LoadView, outcome: LoadOutcome) -> Result<()> {
    let cut_short =
        outcome.failure.clone().or(outcome.interrupted.then(|| "interrupted by Ctrl-C".to_string()));
    let judged = outcome.levels.into_iter().map(|level| {
        let verdict = whyso_query::judge_alone(&level);
        (level, verdict)
    });
    let result = LoadResult {
        levels: judged.collect(),
        capacity: outcome.capacity,
        comparison: outcome.comparison,
        cut_short,
    };
    if args.output.json {
        let object = whyso_report::load::load_json(&result);
        crate::json::write(crate::out::stdout(), "load", object)?;
    } else {
        view.print_end(&result)?;
    }
    Ok(())
}

fn table_columns(plan: &LoadPlan) -> TableColumns {
    let names = plan.sources.iter().map(|source| source.name().chars().count());
    TableColumns {
        is_open: plan.is_open(),
        percentiles: plan.percentiles.clone(),
        workload_width: (plan.sources.len() > 1).then(|| names.max().unwrap_or(0)),
    }
}

fn plan(args: &LoadArgs) -> Result<LoadPlan> {
    let levels = &args.levels;
    let http = http(args)?;
    let sources = if http.is_some() { Vec::new() } else { sources(args)? };
    let stages = levels.stages.as_deref().map(parse_stages).transpose()?;
    let set = knobs(&args.server)?;
    let (kind, dsns) = match &args.cluster {
        Some(name) => (Some(crate::cluster::loaded(name, true)?.kind), crate::cluster::dsns(name, false)?),
        None => (None, args.server.dsn.clone()),
    };
    let mut servers: Vec<ServerPlan> =
        dsns.into_iter().map(|dsn| ServerPlan::Dsn { dsn, set: set.clone() }).collect();
    if servers.is_empty() {
        servers.push(throw_away(&args.server, set));
    }
    let side_by_side = sources.len() > 1;
    let default_seconds = match levels.transactions {
        Some(_) => DAY_SECONDS,
        None if side_by_side => SECONDS_A_ROUND,
        None => SECONDS,
    };
    let default_warmup = if side_by_side { WARMUP_SECONDS_A_ROUND } else { WARMUP_SECONDS };
    let goals = http.as_ref().map(HttpPlan::requirements).unwrap_or_default();
    let mut plan = LoadPlan {
        http,
        sources,
        options: workload_options(&args.options)?,
        tables: args.data.tables,
        rows: args.data.rows,
        table_engine: args.data.engine(kind),
        seed: levels.seed,
        servers,
        placement: args.connections.placement.map(|placement| match placement {
            PlacementArg::RoundRobin => Placement::RoundRobin,
            PlacementArg::Weighted => Placement::Weighted,
            PlacementArg::Pinned => Placement::Pinned,
        }),
        users: levels.users.clone(),
        rates_per_s: levels.rate.clone(),
        arrivals: Arrivals::Poisson,
        think: think(&args.drive)?,
        stages,
        measure: seconds("--seconds", levels.seconds.unwrap_or(default_seconds))?,
        warmup_max: seconds("--warmup", levels.warmup.unwrap_or(default_warmup))?,
        transactions_max: levels.transactions,
        reconnect_every: args.connections.reconnect_every,
        engine: args.drive.engine,
        loops: args.drive.loops,
        tuning: tuning(&args.drive)?,
        connections: args.connections.connections,
        idle_connections: args.connections.idle_connections,
        compression: args.connections.compress,
        client_cpus: args.server.client_cpus.clone(),
        allow_writes: args.server.allow_writes.clone(),
        slo: args.drive.slo.iter().cloned().chain(goals).collect(),
        find_capacity: levels.find_capacity,
        rounds: levels.rounds,
        percentiles: args.output.percentiles.clone(),
    };
    if args.drive.arrivals.is_some() && !plan.is_open() {
        bail!(Error::Plan(
            "--arrivals is for an open loop: give --rate, or --stages with numbers such as 500/s".to_string()
        ));
    }
    plan.arrivals = arrivals(args.drive.arrivals);
    let staged_users = plan.stages.as_ref().is_some_and(|stages| stages.quantity == Quantity::Users);
    if plan.users.is_empty() {
        plan.users.push(if plan.is_open() && !staged_users { OPEN_USERS } else { 1 });
    }
    plan.check()?;
    Ok(plan)
}

/// The load over HTTP, where an address was given.
fn http(args: &LoadArgs) -> Result<Option<HttpPlan>> {
    let Some(url) = &args.http.url else { return Ok(None) };
    match &args.workload[..] {
        [] => Ok(Some(http_plan(url, None, &args.http.connection)?)),
        [path] => Ok(Some(http_plan(url, Some(path), &args.http.connection)?)),
        _ => bail!(Error::Plan("with --url, give one scenario: FILE.toml".to_string())),
    }
}

/// Workloads by name, files, or statements of the command line.
fn sources(args: &LoadArgs) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for name in &args.workload {
        if name.ends_with(".toml") {
            bail!(Error::Plan(format!("{name} is a scenario of pages: name the site by --url http://…")));
        }
        sources.push(source(name)?);
    }
    for (label, sql) in [("query", &args.query), ("versus", &args.versus)] {
        if let Some(sql) = sql {
            sources.push(Source::Query { name: label.to_string(), sql: sql.clone() });
        }
    }
    if sources.is_empty() {
        sources.push(Source::Builtin("oltp-read-write".to_string()));
    }
    Ok(sources)
}
