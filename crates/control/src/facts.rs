//! What a recording says of the run, the server and the machine before anything is measured.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Runtime;
use whyso_clock::{Anchor, wall_ns};
use whyso_hub::HostCpus;
use whyso_model::ServerFacts;
use whyso_model::{NotMeasured, RunSpec, SettingReason};
use whyso_record::run::RunInfo;
use whyso_server::answers::{answered, log_out, within};
use whyso_server::{CpuSet, Dsn};
use whyso_watch::{GLOBAL_VARIABLES, Watcher, global_variables, host_facts, server_facts};
use whyso_workload::Workload;

use crate::runtime::GOODBYE_TIME_MAX;
use crate::server_under_test::ServerUnderTest;
use crate::{Error, Plan};

/// The beginning of `run.json`.
pub(crate) fn run_info(
    plan: &Plan,
    workload: &Workload,
    client_cpus: Option<&CpuSet>,
    tested: &ServerUnderTest,
    runtime: &Runtime,
) -> Result<RunInfo, Error> {
    let throw_away = tested.throw_away.is_some();
    let server = server_now(&tested.dsn, throw_away, tested.pid, runtime)?;
    let server_cpus = tested.cpus.clone().unwrap_or_else(|| server.cpus.clone());
    let asked = tested.performance_schema.clone();
    let performance_schema = asked.unwrap_or_else(|| crate::pfs_setup::as_it_is(&tested.dsn, runtime));
    let setting = |(name, value, why): &(String, String, String)| SettingReason {
        name: name.clone(),
        value: whyso_watch::mask_variable(&name.to_ascii_lowercase(), value),
        why: why.clone(),
    };
    let option = |(name, value): &(String, String)| whyso_server::redact::text(&format!("{name}={value}"));
    let pacing = &plan.level_spec(1, plan.rates_per_s.first().copied()).pacing;
    let spec = RunSpec {
        workload: Some(plan.source.name().to_string()),
        options: plan.options.iter().map(option).collect(),
        describe: Some(workload.describe()),
        tables: Some(plan.tables),
        rows: Some(plan.rows),
        table_engine: Some(plan.table_engine.clone()),
        cold: plan.cold,
        seed: Some(plan.seed),
        users: plan.users.clone(),
        rates_per_s: plan.rates_per_s.clone(),
        seconds: Some(plan.measure.as_secs_f64()),
        warmup_seconds_max: Some(plan.warmup_max.as_secs_f64()),
        interval_ms: Some(plan.interval.as_millis() as u64),
        engine_asked: Some(plan.engine.to_string()),
        loops_asked: plan.loops,
        pacing: Some(crate::pacing::recorded(pacing, None)),
        slo: plan.slo.clone(),
        settings: tested.settings.iter().map(setting).collect(),
        server_cpus,
        server_cpus_words: tested.cpus_words.clone(),
        client_cpus: client_cpus.map_or_else(allowed_cpus, |cpus| cpus.cpus().to_vec()),
        client_cpus_words: client_cpus.map_or(String::new(), ToString::to_string),
        notes: tested.notes.clone(),
        performance_schema: Some(performance_schema),
        ..RunSpec::default()
    };
    Ok(new_info(&plan.command, spec, server, tested.data_dir.as_deref()))
}

/// A recording's first facts, whatever drives the load.
pub(crate) fn new_info(
    command: &[String],
    spec: RunSpec,
    server: ServerFacts,
    data_dir: Option<&Path>,
) -> RunInfo {
    RunInfo {
        id: new_id(),
        tool_version: env!("CARGO_PKG_VERSION").to_string(),
        command: command.to_vec(),
        spec,
        host: host_facts(data_dir),
        server,
        anchors: vec![Anchor::now()],
        not_measured: vec![NotMeasured::stacks()],
        ..RunInfo::default()
    }
}

/// What the server says of itself.
pub(crate) fn server_now(
    dsn: &Dsn,
    throw_away: bool,
    pid: Option<u32>,
    runtime: &Runtime,
) -> Result<ServerFacts, Error> {
    let pid = pid.or_else(|| dsn.server_pid());
    runtime.block_on(answered(dsn, "reading the server's variables", async {
        let mut conn = dsn.connect().await?;
        let facts = server_facts(&mut conn, &dsn.endpoint(), throw_away, pid).await?;
        log_out(conn).await;
        Ok::<_, Error>(facts)
    }))
}

/// The server's variables, while it is watched; `None` where it does not answer any more.
pub(crate) fn variables_now(
    dsn: &Dsn,
    watcher: &Watcher,
    runtime: &Runtime,
) -> Option<BTreeMap<String, String>> {
    let _own = watcher.executes(&dsn.schema, &[GLOBAL_VARIABLES]);
    runtime.block_on(async {
        let asked = within(GOODBYE_TIME_MAX, dsn, "reading the server's variables", async {
            let mut conn = dsn.connect().await?;
            let variables = global_variables(&mut conn).await?;
            log_out(conn).await;
            Ok::<_, Error>(variables)
        });
        asked.await.ok()
    })
}

/// CPUs that this process may run on.
pub(crate) fn allowed_cpus() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

/// The CPUs that this process may use.
pub fn host_cpus() -> HostCpus {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    HostCpus { boot_id: boot_id.trim().to_string(), cpus: allowed_cpus() }
}

/// A run's id: its begin in UTC and the process, such as "20260131-235959-1234". One that begins within the same second of the same process
/// has its number, too: "20260131-235959-1234-2".
pub(crate) fn new_id() -> String {
    static LAST: Mutex<(String, u32)> = Mutex::new((String::new(), 0));
    let begin = jiff::Timestamp::from_nanosecond(i128::from(wall_ns())).unwrap_or_default();
    let id = format!("{}-{}", begin.strftime("%Y%m%d-%H%M%S"), std::process::id());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.0 != id {
        *last = (id.clone(), 1);
        return id;
    }
    last.1 += 1;
    format!("{id}-{}", last.1)
}
