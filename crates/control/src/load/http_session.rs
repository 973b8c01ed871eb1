//! Carries out a load over HTTP. Nothing of a server is started, changed or read.

use std::sync::Arc;

use whyso_http::BODY_BYTES_MAX;
use whyso_load::{HttpSpec, HttpWork, Placement, Target};
use whyso_server::CpuSet;

use super::http::HttpPlan;
use super::outcome::LoadOutcome;
use super::plan::LoadPlan;
use super::session::Session;
use crate::Error;
use crate::Stop;
use crate::engine::Engine;
use crate::process::check_processes;
use crate::progress::Listener;

/// Carries out a plan over HTTP.
pub(super) fn load(
    plan: &LoadPlan,
    http: &HttpPlan,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<LoadOutcome, Error> {
    plan.check()?;
    http.check(&plan.slo)?;
    check_processes()?;
    let engine = open(plan, http)?;
    Session::new(plan, listener, stop).carry_out(vec![(engine, http.scenario.name.as_str())])
}

/// Connects the users of a plan over HTTP, ready to run its levels.
pub(super) fn open(plan: &LoadPlan, http: &HttpPlan) -> Result<Engine, Error> {
    let cpus = plan.client_cpus.as_deref().map(CpuSet::resolve).transpose()?;
    let address = http.reach()?;
    let (user, password, schema) = Default::default();
    let target = Target { address, user, password, schema, tls: http.tls() };
    let cpus = cpus.map(|cpus| cpus.cpus().to_vec());
    let mut spec = plan.load_spec(vec![target], &[1], Placement::RoundRobin, cpus);
    spec.limits = http.limits();
    let work = HttpWork::new(HttpSpec {
        scenario: http.scenario.clone(),
        site: http.site.clone(),
        keeps_connections: http.keeps_connections,
        body_bytes_max: BODY_BYTES_MAX,
        seed: plan.seed,
    });
    Engine::open_work(&spec, Arc::new(work))
}
