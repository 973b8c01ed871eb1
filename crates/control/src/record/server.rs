//! Begins to record a server, and puts back what was changed for it.

use tokio::runtime::Runtime;
use whyso_model::{Missing, NotMeasured, PerformanceSchema, RunSpec};
use whyso_server::answers::{answered, log_out};
use whyso_server::knobs::Undo;
use whyso_server::{Dsn, schema};
use whyso_tracing::Tracing;
use whyso_watch::Watcher;

use super::plan::RecordPlan;
use super::programs;
use super::session::RecordingSession;
use super::successor::Successor;
use crate::cluster_node::{self, ClusterNode};
use crate::login::AskPassword;
use crate::other_nodes::OtherNodes;
use crate::progress::{Listener, News};
use crate::put_back::put_settings_back;
use crate::recording::{Recording, watch_spec};
use crate::runtime::runtime;
use crate::{Error, Stop, facts, login, pfs_setup, process, several_servers};

/// Reaches a server, begins to record it, runs `attend`, and puts back what was changed for it.
pub(super) fn with_server<T>(
    plan: &RecordPlan,
    dsn: &str,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
    attend: impl FnOnce(RecordingSession<'_>, Recording) -> Result<T, Error>,
) -> Result<T, Error> {
    let threads = runtime()?;
    let mut dsn = login::neutral(dsn)?;
    listener.hear(News::Step(&format!("connecting to {}", dsn.endpoint())));
    let (mut undo, performance_schema) = threads.block_on(set_up(plan, &mut dsn, listener, ask_password))?;
    let nodes = nodes(plan, &dsn, &threads, ask_password);
    let begun = match &nodes {
        Ok(nodes) => begin(plan, nodes, &dsn, performance_schema, &threads),
        Err(error) => Err(Error::Failed(error.to_string())),
    };
    let recorded = begun.and_then(|NewRecording { recording, watcher, others, tracing }| {
        // Those of a cluster's nodes are found together.
        let successor = Successor::of(recording.info.server.pid.filter(|_| !others.has_nodes()));
        let dsn = Some(dsn.clone());
        attend(
            RecordingSession {
                plan,
                listener,
                stop,
                dsn,
                runtime: threads,
                watcher,
                others,
                tracing,
                successor,
            },
            recording,
        )
    });
    if let Some(undo) = &mut undo {
        listener.hear(News::Step("putting everything back"));
        runtime()?.block_on(put_settings_back(&dsn, undo, listener));
    }
    recorded
}

/// All that is recorded, the server itself first; empty where it is all.
fn nodes(
    plan: &RecordPlan,
    dsn: &Dsn,
    runtime: &Runtime,
    ask_password: &AskPassword,
) -> Result<Vec<ClusterNode>, Error> {
    let mut nodes = several_servers::recorded_nodes(dsn, &plan.other_dsns, runtime, ask_password)?;
    if nodes.is_empty() {
        nodes.clone_from(&plan.nodes);
    }
    if plan.other_processes.is_empty() {
        return Ok(nodes);
    }
    if nodes.is_empty() {
        nodes.push(several_servers::node(dsn, runtime.block_on(process::of_server(dsn))));
    }
    let known: Vec<u32> = nodes.iter().filter_map(|node| node.pid).collect();
    nodes.extend(programs::nodes(&plan.other_processes, &known)?);
    programs::tell_apart(&mut nodes);
    Ok(nodes)
}

/// Logs in, and sets what the Performance Schema is to count where that was asked for.
async fn set_up(
    plan: &RecordPlan,
    dsn: &mut Dsn,
    listener: &dyn Listener,
    ask_password: &AskPassword,
) -> Result<(Option<Undo>, Option<PerformanceSchema>), Error> {
    let mut conn = login::log_in(dsn, ask_password).await?;
    let exists = answered(dsn, "looking for the schema", schema::exists(&mut conn, &dsn.schema)).await?;
    if dsn.schema_given && !exists {
        // What `whyso server start` prints names the schema that a load makes, which may come later.
        if dsn.schema != whyso_server::dsn::DEFAULT_SCHEMA {
            return Err(login::no_such_schema(dsn, "a recording makes none"));
        }
        dsn.schema = login::NEUTRAL_SCHEMA.to_string();
    }
    let doing = "putting back settings that an earlier run left";
    for undone in answered(dsn, doing, pfs_setup::undo_pending(&mut conn)).await? {
        listener
            .hear(News::Warning(&format!("an earlier run ended without putting a setting back; {undone}")));
    }
    let (mut undo, mut setup) = (None, None);
    if let Some(wanted) = &plan.pfs {
        let mut journal = answered(dsn, "preparing to change settings", Undo::open(&mut conn)).await?;
        let work = pfs_setup::set_up(wanted, &mut conn, &mut journal);
        match answered(dsn, "setting up the Performance Schema", work).await {
            Ok(in_force) => setup = Some(in_force),
            Err(error) => {
                put_settings_back(dsn, &mut journal, listener).await;
                return Err(error);
            }
        }
        undo = Some(journal);
    }
    log_out(conn).await;
    Ok((undo, setup))
}

/// A recording that has begun.
struct NewRecording<'a> {
    recording: Recording,
    watcher: Watcher,
    others: OtherNodes<'a>,
    tracing: Option<Tracing>,
}

/// Begins to record a server that is set up.
fn begin<'a>(
    plan: &'a RecordPlan,
    nodes: &'a [ClusterNode],
    dsn: &Dsn,
    performance_schema: Option<PerformanceSchema>,
    runtime: &Runtime,
) -> Result<NewRecording<'a>, Error> {
    let server = facts::server_now(dsn, false, None, runtime)?;
    let performance_schema = performance_schema.unwrap_or_else(|| pfs_setup::as_it_is(dsn, runtime));
    let spec = RunSpec { performance_schema: Some(performance_schema), ..plan.spec(&server.cpus) };
    let mut info = facts::new_info(&plan.command_line, spec, server, None);
    let why = match &plan.load {
        None => {
            "the load is not whyso's own, so that only what the kernel saw of its requests is known, and no percentiles"
        }
        Some(_) => {
            "the load asks a site for pages, so that of the site's statements only what the kernel saw is known"
        }
    };
    info.not_measured.push(NotMeasured::new(Missing::Other, "response times as clients see them", why));
    cluster_node::describe(nodes, &mut info);
    let pid = info.server.pid;
    let mut recording = Recording::begin_within(&plan.out, info, plan.bytes_max)?;
    recording.label(&plan.labels)?;
    recording.relay(&plan.relay)?;
    recording.tap(&plan.taps);
    let mut watched = watch_spec(Some(dsn), pid, None, plan.interval);
    watched.add_ons.clone_from(&plan.add_ons);
    watched.access_logs.clone_from(&plan.access_logs);
    watched.other_node_pids = cluster_node::other_pids(nodes);
    let recorder = recording.recorder.clone();
    let watcher = Watcher::start(watched, recorder.clone())?;
    let traced = plan.trace.then(|| plan.other_stacks());
    let others = OtherNodes::watch(nodes, plan.interval, (runtime, traced), &recorder, &mut recording.info)?;
    let tracing =
        Tracing::begin(&mut recording.info, &recording.recorder, plan.tracing_spec(Some(dsn), nodes));
    Ok(NewRecording { recording, watcher, others, tracing })
}
