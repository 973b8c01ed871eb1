//! What a study asks the sample application for: a page, or the pages of a scenario.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use whyso_load::{Arrivals, EngineKind, Think, Tuning};
use whyso_study::{Cell, StoredStudy};

use crate::Error;
use crate::load::{HttpPlan, LoadPlan};

/// The median of pages is no measure; these are.
const PERCENTILES: [f64; 2] = [90.0, 99.0];
/// Stands for the application's address, which is not known before it is started.
const NO_URL: &str = "http://127.0.0.1:1/";

/// Reads a scenario, so that the study stays what it was.
pub(super) fn read_pages(
    files: &mut BTreeMap<String, String>,
    workload: &str,
    folder: &Path,
) -> Result<(), Error> {
    if workload.starts_with('/') || files.contains_key(workload) {
        return Ok(());
    }
    let path = folder.join(workload);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Error::Plan(format!("workload = {workload:?} can't be read: {}: {error}", path.display()))
    })?;
    files.insert(workload.to_string(), text);
    Ok(())
}

/// The load of a cell on the application at `url`.
pub(super) fn pages(study: &StoredStudy, cell: &Cell, url: &str) -> Result<HttpPlan, Error> {
    let workload = &cell.setup.workload;
    match study.files.get(workload) {
        Some(text) => HttpPlan::new(url, Some((workload, text))),
        None => HttpPlan::new(&format!("{}{workload}", url.trim_end_matches('/')), None),
    }
}

/// Checks what a cell asks for before anything is started.
pub(super) fn check_pages(study: &StoredStudy, cell: &Cell) -> Result<(), Error> {
    plan_of_load(study, cell, pages(study, cell, NO_URL)?).check()
}

pub(super) fn plan_of_load(study: &StoredStudy, cell: &Cell, http: HttpPlan) -> LoadPlan {
    let (spec, setup) = (&study.spec, &cell.setup);
    LoadPlan {
        http: Some(http),
        sources: Vec::new(),
        options: Vec::new(),
        tables: setup.tables,
        rows: setup.rows,
        table_engine: setup.engine.clone(),
        seed: spec.seed,
        servers: Vec::new(),
        placement: None,
        users: spec.users.clone(),
        rates_per_s: Vec::new(),
        arrivals: Arrivals::Poisson,
        think: Think::None,
        stages: None,
        measure: Duration::from_secs_f64(spec.seconds),
        warmup_max: Duration::from_secs_f64(spec.warmup),
        transactions_max: None,
        reconnect_every: None,
        engine: EngineKind::default(),
        loops: None,
        tuning: Tuning::default(),
        connections: None,
        idle_connections: 0,
        compression: false,
        client_cpus: setup.client_cpus.clone(),
        allow_writes: None,
        slo: Vec::new(),
        find_capacity: false,
        rounds: 1,
        percentiles: PERCENTILES.to_vec(),
    }
}
