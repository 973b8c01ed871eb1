//! Only the load: levels of one workload, a search for capacity, or two workloads side by side. Nothing is watched or
//! recorded; what the load itself saw is the result.

mod capacity;
mod endpoint;
mod plan;
mod session;
mod versus;

use mysql_async::prelude::Queryable;
use whyso_explain::capacity::Answer;
use whyso_explain::versus::Comparison;
use whyso_record::run::Level;
use whyso_server::answers::{answered, log_out};
use whyso_server::dataset::Dataset;
use whyso_server::{CpuSet, Dsn};
use whyso_workload::Workload;

pub use plan::LoadPlan;

use crate::Error;
use crate::Stop;
use crate::leave::leave;
use crate::own_data::{fill_dictionaries, set_up};
use crate::plan::ServerPlan;
use crate::prepare::{AskPassword, Tested, Wanted};
use crate::progress::Listener;
use crate::run::{GOODBYE_TIME_MAX, prepare_server, runtime};
use crate::service_level::check_kinds;
use crate::source::READ_ONLY;
use session::Session;

/// What a load came to.
#[derive(Clone, Debug, Default)]
pub struct LoadOutcome {
    /// Every level in the order in which they ran; probes and rounds too.
    pub levels: Vec<Level>,
    pub capacity: Option<Answer>,
    pub comparison: Option<Comparison>,
    /// Why the load was cut short by a failure, in a sentence; `None` where it was not.
    pub failure: Option<String>,
    /// Ended by Ctrl-C.
    pub interrupted: bool,
}

impl LoadOutcome {
    /// Whether every level held what was required of it. Of a search for capacity, whether a rate was found that did.
    pub fn holds_slo(&self) -> bool {
        match &self.capacity {
            Some(answer) => answer.bounds.holds_per_s.is_some(),
            None => self.levels.iter().flat_map(|level| &level.result.slo).all(|slo| slo.held),
        }
    }
}

/// What the plan's workloads send, as text for people.
///
/// # Errors
/// Where a workload or one of its options is unknown, or the data set is too small for it.
pub fn describe(plan: &LoadPlan) -> Result<String, Error> {
    let workloads = plan.workloads()?;
    Ok(workloads.iter().map(Workload::describe).collect::<Vec<_>>().join("\n"))
}

/// Carries out a plan: server, data, levels.
///
/// # Errors
/// Whatever keeps the first level from being run. A failure after that is told in the outcome.
pub fn load(
    plan: &LoadPlan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<LoadOutcome, Error> {
    plan.check()?;
    let mut workloads = plan.workloads()?;
    for workload in &workloads {
        check_kinds(&plan.slo, workload)?;
    }
    let client_cpus = plan.client_cpus.as_deref().map(CpuSet::resolve).transpose()?;
    let placement = endpoint::placement(plan.placement, &plan.servers)?;
    let runtime = runtime()?;
    let mut tested: Vec<Tested> = Vec::new();
    let mut weights = Vec::new();
    let mut refused = None;
    for server in &plan.servers {
        match prepare_one(plan, &workloads, server, &runtime, listener, stop, ask_password) {
            Ok((one, weight)) => {
                tested.push(one);
                weights.push(weight);
            }
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    if refused.is_none() {
        refused = runtime.block_on(bring_data(&tested, &mut workloads, listener)).err();
    }
    let done = match refused {
        Some(error) => Err(error),
        None => {
            let cpus = client_cpus.map(|cpus| cpus.cpus().to_vec());
            let targets = tested.iter().map(Tested::target).collect();
            let load_spec = plan.load_spec(targets, &weights, placement, cpus);
            Session::new(plan, listener, stop).run(&workloads, &load_spec)
        }
    };
    for one in tested {
        runtime.block_on(leave(one, listener));
    }
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    done
}

/// Whether a server can keep a session to reading.
async fn check_read_only(dsn: &Dsn) -> Result<(), Error> {
    let mut conn = dsn.connect_without_schema().await?;
    let asked = async { Ok::<_, Error>(conn.query_drop(READ_ONLY).await) };
    let done = answered(dsn, "asking for a session that only reads", asked).await?;
    log_out(conn).await;
    done.map_err(|error| {
        Error::Plan(format!(
            "{} has no READ ONLY sessions, which came with MySQL 5.6 and MariaDB 10.0 ({error}), so nothing would keep your \
             SQL from writing: if it may, say so with --allow-writes {}",
            dsn.endpoint(),
            dsn.schema
        ))
    })
}

/// The data that the workloads bring along, on every server, and what they take from the first one.
async fn bring_data(
    tested: &[Tested],
    workloads: &mut [Workload],
    listener: &dyn Listener,
) -> Result<(), Error> {
    if workloads.iter().any(|workload| workload.session.iter().any(|sql| sql == READ_ONLY)) {
        for server in tested {
            check_read_only(&server.dsn).await?;
        }
    }
    for workload in workloads {
        for server in tested {
            set_up(&server.dsn, workload, server.consented, listener).await?;
        }
        if let Some(first) = tested.first() {
            fill_dictionaries(&first.dsn, workload).await?;
        }
    }
    Ok(())
}

/// A server made ready, and its weight among the endpoints.
fn prepare_one(
    plan: &LoadPlan,
    workloads: &[Workload],
    server: &ServerPlan,
    runtime: &tokio::runtime::Runtime,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<(Tested, u32), Error> {
    let (server, weight) = endpoint::split_weight(server)?;
    let wanted = Wanted {
        server: &server,
        dataset: Dataset {
            tables: plan.tables,
            rows: plan.rows,
            seed: plan.seed,
            engine: plan.table_engine.clone(),
        },
        data_wanted: workloads.iter().any(|workload| workload.requirements().tables > 0),
        writes: workloads.iter().any(|workload| !workload.only_reads() || workload.setup.is_some()),
        users_max: plan.connections_max(),
        allow_writes: plan.allow_writes.as_deref(),
        pfs: None,
        cold: false,
    };
    Ok((prepare_server(runtime, &wanted, listener, stop, ask_password)?, weight.unwrap_or(1)))
}
