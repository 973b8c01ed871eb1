//! Records hosts by their agents, into one recording of here.

use std::time::Instant;

use whyso_clock::monotonic_ns;
use whyso_model::{RunSpec, ServerFacts};
use whyso_record::run::{Level, LevelResult, Purpose, RunEnd, RunInfo, Window};
use whyso_watch::{WatchSpec, Watcher};

use super::plan::RecordPlan;
use super::session::CHECK_INTERVAL;
use crate::hosts::{HostsPlan, HostsSession, WhatToRecord};
use crate::progress::{Listener, News};
use crate::recording::{Outcome, Recording, SLOW_INTERVAL, record_event};
use crate::{Error, Stop, facts};

/// Records until the plan's end. Of the server, its host's agent records as `whyso record` does there.
pub(super) fn record_across_hosts(
    plan: &RecordPlan,
    hosts: &HostsPlan,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Outcome, Error> {
    let has_server = hosts.hosts.iter().any(|host| host.server.is_some());
    let process = (!has_server).then(|| "several hosts".to_string());
    let spec = RunSpec { process, ..plan.spec(&[]) };
    let info = facts::new_info(&plan.command_line, spec, ServerFacts::default(), None);
    let mut recording = Recording::begin_within(&plan.out, info, plan.bytes_max)?;
    recording.label(&plan.labels)?;
    recording.relay(&plan.relay)?;
    let watched = WatchSpec {
        interval: plan.interval,
        slow_interval: SLOW_INTERVAL.max(plan.interval),
        server_host: "client".to_string(),
        ..WatchSpec::default()
    };
    let what = WhatToRecord {
        interval: plan.interval,
        trace: plan.trace,
        stacks: plan.stacks,
        length: plan.length,
        has_clients: true,
    };
    let watcher = Watcher::start(watched, recording.recorder.clone())?;
    let session = match HostsSession::begin(hosts, what, (&recording.recorder, &recording.info), listener) {
        Ok(session) => session,
        Err(error) => {
            recording.discard(watcher)?;
            return Err(error);
        }
    };
    session.describe(&mut recording.info);
    recording.recorder.set_run(&recording.info);
    record_event(&recording.recorder, "level_begin", "recording".to_string());
    let (begin_ns, began) = (monotonic_ns(), Instant::now());
    listener.hear(News::Step(&match plan.length {
        Some(length) => format!("recording for {} s", length.as_secs_f64()),
        None => "recording until Ctrl-C".to_string(),
    }));
    let mut failure = None;
    while !stop.is_asked() && failure.is_none() && plan.length.is_none_or(|length| began.elapsed() < length) {
        std::thread::sleep(CHECK_INTERVAL);
        failure = session.server_ended();
    }
    let window = Window { begin_ns, end_ns: monotonic_ns() };
    record_event(&recording.recorder, "level_end", "recording".to_string());
    let of_server = session.end(&mut recording.info, listener);
    if let Some(there) = of_server {
        take_over(there, &mut recording.info);
    }
    if recording.info.levels.is_empty() {
        let problem = recording.level(level_of(window));
        failure = failure.or(problem);
    } else {
        recording.recorder.set_run(&recording.info);
    }
    let interrupted = stop.is_asked() && plan.length.is_some();
    recording.finish(watcher, None, failure, interrupted)
}

/// What the server's host found out belongs to the run.
fn take_over(there: RunInfo, info: &mut RunInfo) {
    let RunInfo { spec, server, levels, host, node, nodes, .. } = there;
    info.spec = spec;
    (info.server, info.levels, info.host) = (server, levels, host);
    (info.node, info.nodes) = (node, nodes);
}

/// A window in which no server was watched.
fn level_of(window: Window) -> Level {
    Level {
        index: 0,
        users: 0,
        purpose: Purpose::Sweep,
        warmup: Window { begin_ns: window.begin_ns, end_ns: window.begin_ns },
        warmup_steady: false,
        window,
        result: LevelResult { seconds: window.seconds(), ..LevelResult::default() },
        ended: RunEnd::Complete { at_ns: window.end_ns },
    }
}
