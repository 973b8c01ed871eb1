//! Records processes of any kind, or only this machine.

use whyso_model::ServerFacts;
use whyso_model::{Missing, NotMeasured, RunSpec};
use whyso_trace::{StackSampling, StacksOf};
use whyso_tracing::{Counting, Processes, Tracing};
use whyso_watch::{WatchSpec, Watcher};

use super::plan::RecordPlan;
use super::programs;
use super::session::RecordingSession;
use super::successor::Successor;
use crate::other_nodes::OtherNodes;
use crate::progress::Listener;
use crate::recording::{Outcome, Recording, SLOW_INTERVAL};
use crate::runtime::runtime;
use crate::{Error, Stop, cluster_node, facts};

/// Processes of any kind: there are no requests, and there is nobody to ask.
pub(super) fn record_processes(
    plan: &RecordPlan,
    asked: &str,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Outcome, Error> {
    let processes = Processes::find(asked)?;
    let mut nodes = programs::nodes(&plan.other_processes, &processes.pids)?;
    if !nodes.is_empty() {
        nodes.insert(0, programs::node(processes.clone()));
        programs::tell_apart(&mut nodes);
    }
    let (counting, lost) = Counting::of_processes(&processes, plan.stacks)?;
    let runtime = runtime()?;
    let pid = processes.pids.first().copied();
    let server = ServerFacts { endpoint: processes.words.clone(), pid, ..ServerFacts::default() };
    let process = Some(processes.words.clone());
    let spec = RunSpec { process, ..plan.spec(&facts::allowed_cpus()) };
    let mut info = facts::new_info(&plan.command_line, spec, server, None);
    info.not_measured = vec![NotMeasured::stacks()];
    info.not_measured.extend(lost);
    if processes.pids.len() > 1 {
        info.not_measured.push(NotMeasured::new(
            Missing::Other,
            match processes.pids.len() - 1 {
                1 => "memory, page faults and open files of the other process".to_string(),
                others => format!("memory, page faults and open files of the other {others} processes"),
            },
            format!("the kernel's own counters were read only for process {}", processes.pids[0]),
        ));
    }
    let watched = WatchSpec {
        interval: plan.interval,
        slow_interval: SLOW_INTERVAL.max(plan.interval),
        server_pid: pid,
        server_host: "server".to_string(),
        generator_pid: std::process::id(),
        add_ons: plan.add_ons.clone(),
        access_logs: plan.access_logs.clone(),
        ..WatchSpec::default()
    };
    cluster_node::describe(&nodes, &mut info);
    let mut recording = Recording::begin_within(&plan.out, info, plan.bytes_max)?;
    recording.label(&plan.labels)?;
    recording.relay(&plan.relay)?;
    recording.tap(&plan.taps);
    let recorder = recording.recorder.clone();
    let watcher = Watcher::start(watched, recorder.clone())?;
    let traced = (&runtime, Some(plan.other_stacks()));
    let others = OtherNodes::watch(&nodes, plan.interval, traced, &recorder, &mut recording.info)?;
    let tracing = Tracing::with(counting, &mut recording.info, &recorder, plan.tracing_spec(None, &[]))?;
    let (tracing, successor) = (Some(tracing), Successor::of(None));
    RecordingSession { plan, listener, stop, dsn: None, runtime, watcher, others, tracing, successor }
        .run(recording)
}

/// This machine's own counters, and the stacks of its programs where they are asked for. Only programs that are named are traced.
pub(super) fn record_machine(
    plan: &RecordPlan,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Outcome, Error> {
    let runtime = runtime()?;
    let mut nodes = programs::nodes(&plan.other_processes, &[])?;
    programs::tell_apart(&mut nodes);
    let process = Some(whyso_explain::THIS_MACHINE.to_string());
    let spec = RunSpec { process, ..plan.spec(&facts::allowed_cpus()) };
    let mut info = facts::new_info(&plan.command_line, spec, ServerFacts::default(), None);
    // There is no server whose stacks could be missing.
    info.not_measured = Vec::new();
    cluster_node::describe(&nodes, &mut info);
    let watched = WatchSpec {
        interval: plan.interval,
        slow_interval: SLOW_INTERVAL.max(plan.interval),
        add_ons: plan.add_ons.clone(),
        access_logs: plan.access_logs.clone(),
        ..WatchSpec::default()
    };
    let mut recording = Recording::begin_within(&plan.out, info, plan.bytes_max)?;
    recording.label(&plan.labels)?;
    recording.relay(&plan.relay)?;
    recording.tap(&plan.taps);
    let watcher = Watcher::start(watched, recording.recorder.clone())?;
    let is_sampled = plan.stacks_of == StacksOf::All && plan.stacks != StackSampling::Off;
    let tracing = is_sampled
        .then(|| Tracing::of_machine(&mut recording.info, &recording.recorder, plan.stacks))
        .flatten();
    let (recorder, successor) = (recording.recorder.clone(), Successor::of(None));
    let traced = (&runtime, Some(plan.other_stacks()));
    let others = OtherNodes::watch_all(&nodes, plan.interval, traced, &recorder, &mut recording.info)?;
    RecordingSession { plan, listener, stop, dsn: None, runtime, watcher, others, tracing, successor }
        .run(recording)
}
