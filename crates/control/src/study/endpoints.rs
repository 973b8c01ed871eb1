//! A load that is spread over several servers of its own. Up to as many as a tracer follows, all are watched, traced and recorded. Of more,
//! what the load itself saw is the result.

use tokio::runtime::Runtime;
use whyso_explain::measures;
use whyso_study::LevelRecord;

use super::measurement::Measurement;
use crate::Stop;
use crate::cluster_node::ClusterNode;
use crate::load::LoadPlan;
use crate::login::AskPassword;
use crate::progress::Listener;
use crate::put_back::put_everything_back;
use crate::recording::Outcome;
use crate::run::set_up_run;
use crate::runtime::GOODBYE_TIME_MAX;
use crate::server_under_test::ServerUnderTest;
use crate::{Error, Plan, ServerPlan};
use whyso_query::{judge_alone, level_input};
use whyso_server::Dsn;

/// As `whyso load` has it.
const PERCENTILES: [f64; 1] = [99.0];

/// Runs a plan over this many servers of its own, and records them. One is a run as any other.
pub(super) fn run(
    plan: &Plan,
    endpoints: u32,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Outcome, Error> {
    if endpoints < 2 {
        return crate::run(plan, listener, stop, ask_password);
    }
    let mut others = OtherServers { each: Vec::new(), listener };
    for _ in 1..endpoints {
        let (tested, runtime, _) = set_up_run(plan, listener, stop, ask_password)?;
        others.each.push((tested, runtime));
    }
    let mut nodes: Vec<ClusterNode> = others
        .each
        .iter()
        .zip(2..)
        .map(|((tested, _), number)| node(number, tested.dsn.clone(), tested.pid))
        .collect();
    if let Some(second) = nodes.first() {
        // Where the first one will be reached is not known before it is started, and nobody reads it from here.
        nodes.insert(0, ClusterNode { name: "endpoint-1".to_string(), pid: None, ..second.clone() });
    }
    let plan = Plan { nodes, ..plan.clone() };
    crate::run(&plan, listener, stop, ask_password)
}

/// Servers of a load apart from its first. They are removed when it has ended, however it did.
struct OtherServers<'a> {
    each: Vec<(ServerUnderTest, Runtime)>,
    listener: &'a dyn Listener,
}

impl Drop for OtherServers<'_> {
    fn drop(&mut self) {
        for (tested, runtime) in self.each.drain(..) {
            runtime.block_on(put_everything_back(tested, self.listener));
            runtime.shutdown_timeout(GOODBYE_TIME_MAX);
        }
    }
}

fn node(number: u32, dsn: Dsn, pid: Option<u32>) -> ClusterNode {
    ClusterNode {
        entry: None,
        name: format!("endpoint-{number}"),
        role: "endpoint",
        dsn: Some(dsn),
        port: None,
        pid,
        is_loaded: true,
        ndb_id: None,
        processes: None,
    }
}

/// Loads this many servers, and records nothing.
pub(super) fn load(
    plan: &Plan,
    endpoints: u32,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Measurement, Error> {
    let servers = vec![plan.server.clone(); endpoints.max(1) as usize];
    let load = LoadPlan {
        http: None,
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
    let measured_s = outcome.levels.iter().map(|level| level.warmup.seconds() + level.window.seconds()).sum();
    Ok(Measurement {
        version: version(&plan.server),
        measured_s,
        levels: outcome.levels.iter().map(level_of_load).collect(),
        ..Measurement::default()
    })
}

/// What the load itself saw of a level.
pub(super) fn level_of_load(level: &whyso_record::run::Level) -> LevelRecord {
    let verdict = judge_alone(level);
    let half_width_percent = verdict
        .transactions_per_s_ci95
        .map(|[low, high]| 100.0 * (high - low) / 2.0 / verdict.transactions_per_s.max(f64::MIN_POSITIVE));
    LevelRecord {
        users: level.users,
        measures: measures::of(&level_input(level), None),
        half_width_percent: half_width_percent.filter(|percent| percent.is_finite()),
        invalid_why: verdict.invalid_why,
        ..LevelRecord::default()
    }
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
