//! A recording in progress: what is measured goes to its recorder, facts of the run to `run.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use whyso_clock::{Anchor, monotonic_ns};
use whyso_load::Interval;
use whyso_record::data::{Event, Kind, Reading, SeriesKey, Status, Value};
use whyso_record::run::{Level, RunEnd, RunInfo};
use whyso_record::{Labels, Options, Recorder};
use whyso_relay::{Relay, RelayTargets};
use whyso_server::Dsn;
use whyso_watch::{WatchSpec, Watcher};

use crate::Error;
use crate::record::Taps;
use crate::result::load_intervals;

/// What a watcher reports as not measured where the server is on another machine.
const SERVERS_MACHINE: [&str; 2] = ["the machine of the server", "the server's process and its threads"];
/// Between two anchors of the clock to wall time.
const ANCHOR_INTERVAL_NS: i64 = 60_000_000_000;
/// Between two readings of what rarely changes.
pub(crate) const SLOW_INTERVAL: Duration = Duration::from_secs(60);

/// Where a run was recorded, and how it ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub path: PathBuf,
    /// Why the run was cut short by a failure. `None`: it was not.
    pub failure: Option<String>,
}

pub(crate) struct Recording {
    pub(crate) recorder: Recorder,
    pub(crate) info: RunInfo,
    pub(crate) path: PathBuf,
    relay: Option<Relay>,
}

impl Recording {
    /// Begins a recording in a folder of its own within `folder`.
    ///
    /// # Errors
    /// The folder can't be created or written.
    pub(crate) fn begin(folder: &Path, info: RunInfo) -> Result<Recording, Error> {
        Recording::begin_within(folder, info, None)
    }

    /// The same, of which the oldest detail is removed beyond `bytes_max`.
    ///
    /// # Errors
    /// The folder can't be created or written.
    pub(crate) fn begin_within(
        folder: &Path,
        info: RunInfo,
        bytes_max: Option<u64>,
    ) -> Result<Recording, Error> {
        let path = folder.join(&info.id);
        let recorder = Recorder::create(&path, Options { bytes_max, ..Options::default() })?;
        recorder.set_run(&info);
        Ok(Recording { recorder, info, path, relay: None })
    }

    /// Gives it the user's name and tags.
    ///
    /// # Errors
    /// The folder can't be written.
    pub(crate) fn label(&self, labels: &Labels) -> Result<(), Error> {
        if labels.is_empty() {
            return Ok(());
        }
        // The recorder writes `run.json` in its own thread.
        self.recorder.seal()?;
        Ok(whyso_record::set_labels(&self.path, labels)?)
    }

    /// Gives what is recorded on to others, where that is wanted.
    ///
    /// # Errors
    /// There is nowhere to give it to, as the command line names it.
    pub(crate) fn relay(&mut self, wanted: &RelayTargets) -> Result<(), Error> {
        if wanted.openmetrics.is_none() && wanted.graphite.is_none() {
            return Ok(());
        }
        let relay = Relay::start(wanted).map_err(|error| Error::Plan(error.to_string()))?;
        self.recorder.tap(relay.tap());
        self.relay = Some(relay);
        Ok(())
    }

    /// Lets others receive what is recorded, beginning with what is known of the run.
    pub(crate) fn tap(&self, taps: &Taps) {
        for tap in &taps.0 {
            self.recorder.tap(Arc::clone(tap));
        }
        if !taps.0.is_empty() {
            self.recorder.set_run(&self.info);
        }
    }

    /// Takes in the result of a level that has ended. Gives why nothing more can be recorded.
    pub(crate) fn level(&mut self, level: Level) -> Option<String> {
        self.info.levels.push(level);
        add_anchor(&mut self.info);
        self.recorder.set_run(&self.info);
        let sealed = self.recorder.seal();
        self.recorder.failed().or(sealed.err().map(|error| error.to_string()))
    }

    /// Ends the recording, and the samplers that wrote to it. `variables`: the server's now, where they could be had;
    /// `failure`: why the run was cut short.
    ///
    /// # Errors
    /// Nothing was measured. A failure that concerns only files is in the outcome.
    pub(crate) fn finish(
        mut self,
        watcher: Watcher,
        variables: Option<BTreeMap<String, String>>,
        failure: Option<String>,
        interrupted: bool,
    ) -> Result<Outcome, Error> {
        let info = &mut self.info;
        let by_agents = info.server_host().is_some();
        for line in watcher.stop() {
            // The server's machine is read by its agent.
            if by_agents && SERVERS_MACHINE.iter().any(|begin| line.what.starts_with(begin)) {
                continue;
            }
            if !info.not_measured.contains(&line) {
                info.not_measured.push(line);
            }
        }
        let not_relayed = self.relay.take().map(Relay::finish).unwrap_or_default();
        info.not_measured.extend(not_relayed.into_iter().map(whyso_model::NotMeasured::from));
        for (name, value) in variables.into_iter().flatten() {
            if info.server.variables.get(&name) != Some(&value) && !changes_by_itself(&name) {
                info.server.variables_changed.insert(name, value);
            }
        }
        let at_ns = monotonic_ns();
        info.ended = Some(match &failure {
            Some(why) => RunEnd::CutShort { at_ns, why: why.clone() },
            None if interrupted => RunEnd::CutShort { at_ns, why: "interrupted by Ctrl-C".to_string() },
            None => RunEnd::Complete { at_ns },
        });
        add_anchor(info);
        if let Some(why) = &failure {
            record_event(&self.recorder, "error", why.clone());
        }
        self.recorder.set_run(info);
        let finished = self.recorder.finish();
        if self.info.levels.is_empty() {
            return Err(failure.map_or(Error::Interrupted, Error::Failed));
        }
        let failure = failure.or(finished.err().map(|error| error.to_string()));
        Ok(Outcome { path: self.path, failure })
    }
}

impl Recording {
    /// Ends a recording that nobody wants, and the samplers that wrote to it, and removes it.
    ///
    /// # Errors
    /// Its folder can't be removed.
    pub(crate) fn discard(mut self, watcher: Watcher) -> Result<(), Error> {
        watcher.stop();
        self.relay.take().map(Relay::finish);
        Ok(self.recorder.discard()?)
    }
}

/// Returns what is watched while this process loads a server.
pub(crate) fn watch_spec(
    dsn: Option<&Dsn>,
    server_pid: Option<u32>,
    data_dir: Option<PathBuf>,
    interval: Duration,
) -> WatchSpec {
    WatchSpec {
        interval,
        slow_interval: SLOW_INTERVAL.max(interval),
        server: dsn.map(Dsn::opts),
        server_pid,
        server_host: match dsn {
            Some(dsn) if dsn.socket.is_none() => dsn.host.clone(),
            _ => "server".to_string(),
        },
        other_node_pids: Vec::new(),
        is_other_node: false,
        generator_pid: std::process::id(),
        data_dir,
        add_ons: Vec::new(),
        access_logs: Vec::new(),
    }
}

pub(crate) fn record_event(recorder: &Recorder, kind: &str, text: String) {
    let event = Event { t_ns: monotonic_ns(), host: "client".to_string(), kind: kind.to_string(), text };
    recorder.event(event);
}

/// Records what the load did in an interval.
pub(crate) fn record_interval(recorder: &Recorder, level: u32, interval: &Interval) {
    for row in load_intervals(level, interval) {
        recorder.load(row);
    }
    if let Some(backlog) = interval.backlog {
        record_backlog(recorder, interval, backlog);
    }
}

/// Transactions that were due and not begun at an interval's end, as a series of its own.
fn record_backlog(recorder: &Recorder, interval: &Interval, backlog: u64) {
    let key = SeriesKey {
        host: "client".to_string(),
        source: "load".to_string(),
        metric: "backlog".to_string(),
        instance: String::new(),
        kind: Kind::Gauge,
        unit: "1".to_string(),
    };
    recorder.reading(Reading {
        source: "load".to_string(),
        begin_ns: interval.begin_ns,
        end_ns: interval.end_ns,
        status: Status::Ok,
        values: vec![(recorder.series(&key), Value::Int(backlog as i64))],
    });
}

fn add_anchor(info: &mut RunInfo) {
    let last_ns = info.anchors.last().map_or(i64::MIN, |anchor| anchor.monotonic_ns);
    let ended = info.ended.is_some();
    if ended || monotonic_ns().saturating_sub(last_ns) >= ANCHOR_INTERVAL_NS || info.anchors.len() == 1 {
        info.anchors.push(Anchor::now());
    }
}

/// Variables whose value is a reading rather than a setting.
fn changes_by_itself(name: &str) -> bool {
    [
        "timestamp",
        "gtid_",
        "last_",
        "rand_seed",
        "warning_count",
        "error_count",
        "identity",
        "insert_id",
        "pseudo_",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}
