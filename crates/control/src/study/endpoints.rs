//! A load that is spread over several servers of its own. Nothing is watched: what the load itself saw is the result.

use whyso_explain::measures;
use whyso_study::LevelRecord;

use super::measurement::Measurement;
use crate::Stop;
use crate::load::LoadPlan;
use crate::login::AskPassword;
use crate::progress::Listener;
use crate::{Error, Plan, ServerPlan};
use whyso_query::{judge_alone, level_input};

/// As `whyso load` has it.
const PERCENTILES: [f64; 1] = [99.0];

pub(super) fn load(
    plan: &Plan,
    endpoints: u32,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Measurement, Error> {
    let servers = vec![plan.server.clone(); endpoints.max(1) as usize];
    let load = LoadPlan {
        sources: vec![plan.source.clone()],
        options: plan.options.clone(),
        tables: plan.tables,
        rows: plan.rows,
        table_engine: plan.table_engine.clone(),
        seed: plan.seed,
        servers,
        placement: None,
        users: plan.users.clone(),
        rates_per_s: Vec::new(),
        arrivals: plan.arrivals,
        think: plan.think,
        stages: None,
        measure: plan.measure,
        warmup_max: plan.warmup_max,
        transactions_max: None,
        reconnect_every: None,
        engine: plan.engine,
        loops: plan.loops,
        tuning: plan.tuning,
        connections: None,
        idle_connections: 0,
        compression: false,
        client_cpus: plan.client_cpus.clone(),
        allow_writes: None,
        slo: Vec::new(),
        find_capacity: false,
        rounds: 1,
        percentiles: PERCENTILES.to_vec(),
    };
    let outcome = crate::load::load(&load, listener, stop, ask_password)?;
    if outcome.interrupted {
        return Err(Error::Interrupted);
    }
    if let Some(failure) = outcome.failure {
        return Err(Error::Failed(failure));
    }
    let level = |level: &whyso_record::run::Level| {
        let verdict = judge_alone(level);
        let half_width_percent = verdict.transactions_per_s_ci95.map(|[low, high]| {
            100.0 * (high - low) / 2.0 / verdict.transactions_per_s.max(f64::MIN_POSITIVE)
        });
        LevelRecord {
            users: level.users,
            measures: measures::of(&level_input(level), None),
            half_width_percent: half_width_percent.filter(|percent| percent.is_finite()),
            invalid_why: verdict.invalid_why,
            ..LevelRecord::default()
        }
    };
    let measured_s = outcome.levels.iter().map(|level| level.warmup.seconds() + level.window.seconds()).sum();
    Ok(Measurement {
        version: version(&plan.server),
        measured_s,
        levels: outcome.levels.iter().map(level).collect(),
        ..Measurement::default()
    })
}

/// As the program says it.
fn version(server: &ServerPlan) -> String {
    match server {
        ServerPlan::ThrowAway { build, .. } => {
            whyso_server::find(build.as_deref()).map(|binary| binary.version).unwrap_or_default()
        }
        ServerPlan::Dsn { .. } => String::new(),
    }
}
