//! Records hosts by their agents, into one recording of here.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use whyso_clock::monotonic_ns;
use whyso_model::{RunSpec, ServerFacts};
use whyso_record::Tap;
use whyso_record::run::{Level, LevelResult, Purpose, RecordedHost, RunEnd, RunInfo, Window};
use whyso_watch::{WatchSpec, Watcher};

use super::edges::Edge;
use super::plan::{RecordPlan, Taps};
use super::session::CHECK_INTERVAL;
use super::site_level::{Meanwhile, RecordedLoad};
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
    let mut recording = HostsRecording::begin(plan, hosts, &plan.taps, listener)?;
    if let Some(site) = &plan.load {
        let HostsRecording { recording: kept, watcher, session, .. } = &mut recording;
        let meanwhile = LoadedHosts { session, watcher };
        let loaded = RecordedLoad { site, meanwhile: &meanwhile, listener, stop }.run(kept);
        let failure = loaded.err().map(|error| error.to_string()).or(recording.session.server_ended());
        return recording.finish(failure, stop.is_asked(), listener);
    }
    record_event(&recording.recording.recorder, "level_begin", "recording".to_string());
    let began = Instant::now();
    listener.hear(News::Step(&match plan.length {
        Some(length) => format!("recording for {} s", length.as_secs_f64()),
        None => "recording until Ctrl-C".to_string(),
    }));
    let mut failure = None;
    while !stop.is_asked() && failure.is_none() && plan.length.is_none_or(|length| began.elapsed() < length) {
        std::thread::sleep(CHECK_INTERVAL);
        failure = recording.session.server_ended();
    }
    recording.finish(failure, stop.is_asked() && plan.length.is_some(), listener)
}

/// Agents count what their hosts do, and windows are cut from it afterwards. This machine, which sends the load, is watched from here.
struct LoadedHosts<'a> {
    session: &'a HostsSession,
    watcher: &'a Watcher,
}

impl Meanwhile for LoadedHosts<'_> {
    fn check(&self) {}

    fn window_edge(&self) -> Result<Option<Edge>, Error> {
        self.watcher.note_window_edge();
        Ok(None)
    }

    fn between_levels(&self) -> Result<(), Error> {
        match self.session.server_ended() {
            Some(why) => Err(Error::Failed(why)),
            None => Ok(()),
        }
    }

    fn with_requests(&self, loaded: Level, _edges: &[Edge]) -> Level {
        loaded
    }
}

/// What shows hosts while they are watched.
pub trait ShowHosts: Sync {
    /// Returns the tap that receives the readings of all hosts, from before the first one on.
    fn tap(&self) -> Arc<dyn Tap>;

    /// Shows them until the user has seen enough, or [`WatchedHosts::is_over`].
    ///
    /// # Errors
    /// Why they can't be shown.
    fn show(&self, watched: &WatchedHosts<'_>) -> Result<(), Error>;
}

/// Hosts that are watched by their agents.
pub struct WatchedHosts<'a> {
    recording: &'a HostsRecording,
    stop: &'a Stop,
    /// The user wants to keep what is recorded.
    is_wanted: AtomicBool,
}

impl WatchedHosts<'_> {
    /// Each host that is watched: its name, and what is known of it by now. The first one has the server, if there is one.
    pub fn hosts(&self) -> Vec<(String, RunInfo)> {
        let mut info = RunInfo::default();
        self.recording.session.describe(&mut info);
        let mut of_server = self.recording.session.server_run();
        info.hosts.sort_by_key(|host| !host.has_server);
        let mut run = |host: &RecordedHost| match of_server.take_if(|_| host.has_server) {
            Some(run) => run,
            None => RunInfo { host: host.facts.clone(), ..RunInfo::default() },
        };
        info.hosts.iter().map(|host| (host.name.clone(), run(host))).collect()
    }

    /// Where it is recorded.
    pub fn path(&self) -> &Path {
        &self.recording.recording.path
    }

    /// The recording is to stay, all of it.
    pub fn keep(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    /// Begin of what stays, in monotonic nanoseconds; `None` where nobody wants it yet.
    pub fn kept_since_ns(&self) -> Option<i64> {
        self.is_wanted.load(Ordering::Relaxed).then_some(self.recording.begin_ns)
    }

    /// Adds a note to the recording, now.
    ///
    /// # Errors
    /// Its folder can't be written.
    pub fn note(&self, text: &str) -> Result<(), Error> {
        Ok(whyso_record::add_note(self.path(), monotonic_ns(), text)?)
    }

    /// Whether something else than the user's keys ends it, such as a signal, or the end of the server's host.
    pub fn is_over(&self) -> bool {
        self.stop.is_asked() || self.recording.session.server_ended().is_some()
    }

    /// Why nothing can be recorded at present.
    pub fn trouble(&self) -> Option<String> {
        self.recording.recording.recorder.failed()
    }
}

/// Watches hosts until `show` returns. Gives the recording where the user wanted one; else nothing is left of it.
///
/// # Errors
/// The hub or an agent can't be reached, nothing can be recorded, or they can't be shown.
pub fn watch_hosts(
    plan: &RecordPlan,
    show: &dyn ShowHosts,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Option<Outcome>, Error> {
    plan.check()?;
    let Some(hosts) = &plan.hosts else {
        return Err(Error::Plan("which hosts? Name the file of --hosts".to_string()));
    };
    let recording = HostsRecording::begin(plan, hosts, &Taps(vec![show.tap()]), listener)?;
    record_event(&recording.recording.recorder, "level_begin", "recording".to_string());
    let watched = WatchedHosts { recording: &recording, stop, is_wanted: AtomicBool::new(false) };
    let shown = show.show(&watched);
    let is_wanted = watched.is_wanted.load(Ordering::Relaxed);
    let failure = recording.session.server_ended();
    if !is_wanted {
        recording.discard(listener)?;
        return match (shown, failure) {
            (Ok(()), Some(failure)) => Err(Error::Failed(failure)),
            (shown, _) => shown.map(|()| None),
        };
    }
    let outcome = recording.finish(failure, false, listener)?;
    shown.map(|()| Some(outcome))
}

/// Hosts that are recorded.
struct HostsRecording {
    recording: Recording,
    watcher: Watcher,
    session: HostsSession,
    begin_ns: i64,
}

impl HostsRecording {
    fn begin(
        plan: &RecordPlan,
        hosts: &HostsPlan,
        taps: &Taps,
        listener: &dyn Listener,
    ) -> Result<HostsRecording, Error> {
        let has_server = hosts.hosts.iter().any(|host| host.server.is_some());
        // Levels of pages are none of the server's own load, which its causes would be shares of.
        let process = (!has_server || plan.load.is_some()).then(|| whyso_explain::SEVERAL_HOSTS.to_string());
        let spec = RunSpec { process, ..plan.spec(&[]) };
        let info = facts::new_info(&plan.command_line, spec, ServerFacts::default(), None);
        let mut recording = Recording::begin_within(&plan.out, info, plan.bytes_max)?;
        recording.label(&plan.labels)?;
        recording.relay(&plan.relay)?;
        recording.tap(taps);
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
        let begun = HostsSession::begin(hosts, what, (&recording.recorder, &recording.info), listener);
        let session = match begun {
            Ok(session) => session,
            Err(error) => {
                recording.discard(watcher)?;
                return Err(error);
            }
        };
        session.describe(&mut recording.info);
        recording.recorder.set_run(&recording.info);
        Ok(HostsRecording { recording, watcher, session, begin_ns: monotonic_ns() })
    }

    /// `failure`: why it was cut short.
    fn finish(
        self,
        failure: Option<String>,
        interrupted: bool,
        listener: &dyn Listener,
    ) -> Result<Outcome, Error> {
        let HostsRecording { mut recording, watcher, session, begin_ns } = self;
        let window = Window { begin_ns, end_ns: monotonic_ns() };
        let has_levels = !recording.info.levels.is_empty();
        if !has_levels {
            record_event(&recording.recorder, "level_end", "recording".to_string());
        }
        let of_server = session.end(&mut recording.info, listener);
        if let Some(there) = of_server {
            take_over(there, &mut recording.info, !has_levels);
        }
        let mut problem = None;
        if recording.info.levels.is_empty() {
            problem = recording.level(level_of(window));
        } else {
            recording.recorder.set_run(&recording.info);
        }
        recording.finish(watcher, None, failure.or(problem), interrupted)
    }

    /// Ends it, and removes what it has.
    fn discard(self, listener: &dyn Listener) -> Result<(), Error> {
        let HostsRecording { mut recording, watcher, session, .. } = self;
        session.end(&mut recording.info, listener);
        recording.discard(watcher)
    }
}

/// What the server's host found out belongs to the run; its window, too, unless the run has its own.
fn take_over(there: RunInfo, info: &mut RunInfo, with_levels: bool) {
    let RunInfo { spec, server, levels, host, node, nodes, .. } = there;
    if with_levels {
        (info.spec, info.levels) = (spec, levels);
    }
    (info.server, info.host) = (server, host);
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
