//! A load that something else drives within this process, recorded as a run of one level. The server and this machine
//! are watched meanwhile, on the same clock.

use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;
use whyso_load::{Address, EngineKind, Interval, LevelOutcome, Pacing, Target, Tls};
use whyso_model::{Missing, NotMeasured, RunSpec};
use whyso_record::run::Level;
use whyso_server::{Dsn, dsn};
use whyso_trace::{Generator, StackSampling, StacksOf};
use whyso_watch::Watcher;

use crate::hosts::{HostsPlan, HostsSession, WhatToRecord};
use crate::level::{Cut, only_level};
use crate::progress::Quiet;
use crate::recording::{Outcome, Recording, record_event, record_interval, watch_spec};
use crate::result::LevelRequest;
use crate::runtime::{GOODBYE_TIME_MAX, runtime};
use crate::{Error, facts, pacing};
use whyso_tracing::{Tracing, TracingSpec};

/// Between two readings of a source.
const INTERVAL: Duration = Duration::from_secs(1);

/// A load, as its driver describes it.
#[derive(Clone, Debug)]
pub struct DrivenLoad {
    /// What it is called in the result.
    pub workload: String,
    /// Where it goes; the first is the one that is watched.
    pub targets: Vec<Target>,
    pub users: u32,
    pub pacing: Pacing,
    /// Length of the measured window; `None`: until something else ends it.
    pub measure: Option<Duration>,
    pub warmup: Duration,
    pub seed: u64,
    pub engine: EngineKind,
    /// Options, (name, value), without passwords.
    pub options: Vec<(String, String)>,
    /// Percentiles that are wanted in addition to the usual ones, above 0, at most 100.
    pub percentiles: Vec<f64>,
    /// The command line, without passwords.
    pub command: Vec<String>,
}

impl DrivenLoad {
    /// Its result as that of a run's only level. `interrupted`: somebody broke it off.
    pub fn level(&self, outcome: &LevelOutcome, interrupted: bool) -> Level {
        let pacing = pacing::recorded(&self.pacing, None);
        let asked = LevelRequest {
            workload: &self.workload,
            pacing: &pacing,
            percentiles: &self.percentiles,
            slo: &[],
            bounds_errors: false,
            rate_per_s: None,
        };
        only_level(outcome, &asked, &Cut::of(outcome, interrupted))
    }

    fn spec(&self, server_cpus: &[u32]) -> RunSpec {
        RunSpec {
            workload: Some(self.workload.clone()),
            options: self.options.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            seed: Some(self.seed),
            users: vec![self.users],
            seconds: self.measure.map(|measure| measure.as_secs_f64()),
            warmup_seconds_max: Some(self.warmup.as_secs_f64()),
            interval_ms: Some(INTERVAL.as_millis() as u64),
            engine_asked: Some(self.engine.to_string()),
            pacing: Some(pacing::recorded(&self.pacing, None)),
            server_cpus: server_cpus.to_vec(),
            client_cpus: facts::allowed_cpus(),
            ..RunSpec::default()
        }
    }

    /// What a reader of the recording must know to be missing.
    fn not_measured(&self) -> Vec<NotMeasured> {
        let why = "the load began without waiting for what the server still did";
        let mut lines = vec![NotMeasured::new(Missing::Other, "a server at rest", why)];
        if let [watched, _, ..] = &self.targets[..] {
            let others = format!("servers other than {}", watched.address);
            lines.push(NotMeasured::new(Missing::Other, others, "they were loaded, and not watched"));
        }
        lines
    }
}

/// A recording of a load that something else drives.
pub struct LoadRecording {
    load: DrivenLoad,
    recording: Recording,
    watcher: Watcher,
    tracing: Option<Tracing>,
    hosts: Option<HostsSession>,
    dsn: Dsn,
    runtime: Runtime,
}

impl LoadRecording {
    /// Begins to record in a folder of its own within `folder`, and to watch; the load begins after that. It makes a few
    /// connections to the first target. `hosts`: other machines that record, too.
    ///
    /// # Errors
    /// The server does not let us ask it, or the folder can't be written. A host can't be reached, or refuses.
    pub fn begin(
        load: DrivenLoad,
        folder: &std::path::Path,
        hosts: Option<&HostsPlan>,
    ) -> Result<LoadRecording, Error> {
        if hosts.is_some_and(HostsPlan::has_generators) {
            let why = "a script's load comes from this machine: leave out load in the file of --hosts";
            return Err(Error::Plan(why.to_string()));
        }
        let target = load.targets.first();
        let target = target.ok_or_else(|| Error::Plan("a load needs a server to be watched".to_string()))?;
        let dsn = dsn_of(target);
        let runtime = runtime()?;
        let server = facts::server_now(&dsn, false, None, &runtime)?;
        let spec = load.spec(&server.cpus);
        let mut info = facts::new_info(&load.command, spec, server, None);
        if hosts.is_some_and(|hosts| hosts.server_host().is_some()) {
            // Its own host traces it, even where this machine sees the process, too.
            info.server.pid = None;
        }
        info.not_measured.extend(load.not_measured());
        let mut watch = watch_spec(Some(&dsn), info.server.pid, None, INTERVAL);
        if let Some(name) = hosts.and_then(HostsPlan::server_host) {
            watch.server_host = name.to_string();
            watch.server_pid = None;
        }
        let mut recording = Recording::begin(folder, info)?;
        let watcher = Watcher::start(watch, recording.recorder.clone())?;
        let wanted = TracingSpec {
            trace: true,
            stacks: StackSampling::Light,
            stacks_of: StacksOf::Server,
            sql: None,
            others: Vec::new(),
            generator: Generator::Own,
        };
        let tracing = Tracing::begin(&mut recording.info, &recording.recorder, wanted);
        let hosts = match hosts.map(|hosts| begin_hosts(&load, hosts, &mut recording)).transpose() {
            Ok(hosts) => hosts,
            Err(error) => {
                drop(tracing);
                recording.discard(watcher)?;
                return Err(error);
            }
        };
        record_event(&recording.recorder, "level_begin", format!("{} users", load.users));
        Ok(LoadRecording { load, recording, watcher, tracing, hosts, dsn, runtime })
    }

    /// Records what the load did in an interval, warm-up included.
    pub fn interval(&mut self, interval: &Interval) {
        record_interval(&self.recording.recorder, 0, interval);
    }

    /// The measured window begins, or is about to end: the server's threads are looked at, and what is read seldom is read.
    pub fn window_edge(&self) {
        self.watcher.note_window_edge();
        if let Some(tracing) = &self.tracing {
            tracing.mark();
        }
    }

    /// Ends the recording with the load's result. `interrupted`: somebody broke it off.
    ///
    /// # Errors
    /// The files could not be written to their end.
    pub fn finish(mut self, outcome: &LevelOutcome, interrupted: bool) -> Result<PathBuf, Error> {
        record_event(&self.recording.recorder, "level_end", format!("{} users", self.load.users));
        let level = self.load.level(outcome, interrupted);
        let failure = match Cut::of(outcome, interrupted) {
            Cut::Failed(why) | Cut::Silent(why) => Some(why),
            Cut::No | Cut::ByUser => None,
        };
        let problem = self.recording.level(level);
        drop(self.tracing.take());
        let variables = facts::variables_now(&self.dsn, &self.watcher, &self.runtime);
        if let Some(hosts) = self.hosts.take() {
            hosts.end(&mut self.recording.info, &Quiet);
        }
        let finished = self.recording.finish(self.watcher, variables, failure.clone(), interrupted);
        self.runtime.shutdown_timeout(GOODBYE_TIME_MAX);
        let Outcome { path, failure: now } = finished?;
        // What drove the load reports that it failed.
        match problem.or(now.filter(|now| failure.as_ref() != Some(now))) {
            Some(problem) => Err(Error::Failed(problem)),
            None => Ok(path),
        }
    }
}

/// Other machines begin to record.
fn begin_hosts(
    load: &DrivenLoad,
    hosts: &HostsPlan,
    recording: &mut Recording,
) -> Result<HostsSession, Error> {
    let length = load.measure.map(|measure| measure + load.warmup);
    let what = WhatToRecord {
        interval: INTERVAL,
        trace: true,
        stacks: StackSampling::Light,
        length,
        has_clients: false,
    };
    let session = HostsSession::begin(hosts, what, (&recording.recorder, &recording.info), &Quiet)?;
    session.describe(&mut recording.info);
    if let Some(there) = session.server_run() {
        recording.info.spec.server_cpus = there.server.cpus;
    }
    recording.recorder.set_run(&recording.info);
    Ok(session)
}

/// A target of the load as control connections know it.
fn dsn_of(target: &Target) -> Dsn {
    let (host, port, socket) = match &target.address {
        Address::Unix(socket) => ("localhost".to_string(), 3306, Some(socket.clone())),
        Address::Tcp { host, port } => (host.clone(), *port, None),
    };
    let tls = match &target.tls {
        Tls::Off => dsn::Tls::Disabled,
        Tls::Verify { ca, .. } => dsn::Tls::Verify { ca: ca.clone() },
        Tls::Insecure => dsn::Tls::Insecure,
    };
    Dsn {
        user: target.user.clone(),
        password: (!target.password.is_empty()).then(|| target.password.clone()),
        host,
        port,
        socket,
        schema: target.schema.clone(),
        schema_given: true,
        tls,
        connect_timeout: dsn::DEFAULT_CONNECT_TIMEOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_reached_by_control_connections_as_by_the_load() {
        let target = Target {
            address: Address::Tcp { host: "db1".to_string(), port: 3307 },
            user: "bench".to_string(),
            password: "x".to_string(),
            schema: "sbtest".to_string(),
            tls: Tls::Verify { ca: Some("/ca.pem".into()), host: "db1".to_string() },
        };
        let shown = "mysql://bench:***@db1:3307/sbtest?tls=verify&ssl-ca=/ca.pem";
        assert_eq!(dsn_of(&target).display_masked(), shown);
        let target =
            Target { address: Address::Unix("/s".into()), password: String::new(), tls: Tls::Off, ..target };
        assert_eq!(dsn_of(&target).display_masked(), "mysql://bench@localhost/sbtest?socket=/s");
    }
}
