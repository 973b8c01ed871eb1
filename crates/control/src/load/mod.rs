//! Only the load: levels of one workload or of a site's pages, a search for capacity, or two workloads side by side. Nothing is watched or
//! recorded; what the load itself saw is the result.

mod capacity;
mod endpoint;
mod http;
mod http_session;
mod outcome;
mod plan;
mod session;
mod versus;

use mysql_async::prelude::Queryable;
use whyso_server::answers::{answered, log_out};
use whyso_server::dataset::Dataset;
use whyso_server::{CpuSet, Dsn};
use whyso_workload::Workload;

pub use http::{HttpPlan, Trust};
pub use outcome::LoadOutcome;
pub(crate) use plan::LevelPlan;
pub use plan::LoadPlan;

use crate::Error;
use crate::Stop;
use crate::engine::Engine;
use crate::login::AskPassword;
use crate::own_data::{fill_dictionaries, set_up};
use crate::process::check_processes;
use crate::progress::Listener;
use crate::put_back::put_everything_back;
use crate::runtime::{GOODBYE_TIME_MAX, runtime};
use crate::server_plan::ServerPlan;
use crate::server_setup::{ServerNeeds, prepare_server};
use crate::server_under_test::ServerUnderTest;
use crate::service_level::check_kinds;
use crate::source::READ_ONLY;
use session::Session;

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
/// Whatever keeps the first level from being run. A later failure is in the outcome.
pub fn load(
    plan: &LoadPlan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<LoadOutcome, Error> {
    if let Some(http) = &plan.http {
        return http_session::load(plan, http, listener, stop);
    }
    plan.check()?;
    check_processes()?;
    let mut workloads = plan.workloads()?;
    for workload in &workloads {
        check_kinds(&plan.slo, workload)?;
    }
    let client_cpus = plan.client_cpus.as_deref().map(CpuSet::resolve).transpose()?;
    let placement = endpoint::placement(plan.placement, &plan.servers)?;
    let runtime = runtime()?;
    let mut tested: Vec<ServerUnderTest> = Vec::new();
    let mut weights = Vec::new();
    let mut refused = None;
    for server in &plan.servers {
        match prepare_one(plan, &workloads, server, &runtime, listener, stop, ask_password) {
            Ok((server_under_test, weight)) => {
                tested.push(server_under_test);
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
            let targets = tested.iter().map(ServerUnderTest::target).collect();
            let load_spec = plan.load_spec(targets, &weights, placement, cpus);
            Session::new(plan, listener, stop).run(&workloads, &load_spec)
        }
    };
    for server_under_test in tested {
        runtime.block_on(put_everything_back(server_under_test, listener));
    }
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    done
}

/// Connects the users of a load over HTTP, ready to run its levels.
///
/// # Errors
/// The plan has no address, or the site can't be reached.
pub(crate) fn open_site(plan: &LoadPlan) -> Result<Engine, Error> {
    match &plan.http {
        Some(http) => http_session::open(plan, http),
        None => Err(Error::Plan("this load has no site: give --url".to_string())),
    }
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
pub(crate) async fn bring_data(
    tested: &[ServerUnderTest],
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
            set_up(server, workload, listener).await?;
        }
        if let Some(first) = tested.first() {
            fill_dictionaries(&first.dsn, workload).await?;
        }
    }
    Ok(())
}

/// A prepared server, and its weight among the endpoints.
fn prepare_one(
    plan: &LoadPlan,
    workloads: &[Workload],
    server: &ServerPlan,
    runtime: &tokio::runtime::Runtime,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<(ServerUnderTest, u32), Error> {
    let (server, weight) = endpoint::split_weight(server)?;
    let needs = ServerNeeds {
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
        can_be_slowed: false,
    };
    Ok((prepare_server(runtime, &needs, listener, stop, ask_password)?, weight.unwrap_or(1)))
}
