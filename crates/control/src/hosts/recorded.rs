//! One host's part of a recording, as it arrives.

use std::collections::BTreeMap;

use whyso_clock::{ClockBetween, ClockLine, ClockQuestion, monotonic_ns};
use whyso_hub::{Frame, HostCpus};
use whyso_model::HostFacts;
use whyso_record::data::{Kind, Reading, SeriesId, SeriesKey, Status, Value};
use whyso_record::run::{HostClock, Level, NodeFacts, PROGRAM, RecordedHost, RunEnd, RunInfo, Window};
use whyso_record::{Entry, Recorder, Replay};

use super::HostPlan;

/// Between two entries of a host's clock in `run.json`.
const ANCHOR_INTERVAL_NS: i64 = 60_000_000_000;
/// Frames that wait for an earlier one, at most.
const HELD_MAX: usize = 8;
const CLOCK: &str = "clock";
/// Name and role of a server that is in no cluster.
const SERVER: &str = "server";

/// What is known of a host that records.
pub(super) struct RecordedPart {
    pub(super) plan: HostPlan,
    facts: HostFacts,
    cpus: HostCpus,
    clock: ClockBetween,
    clock_series: [SeriesId; 4],
    recorder: Recorder,
    anchors: Vec<HostClock>,
    replay: Replay,
    /// Number of the frame that comes next.
    next: u64,
    /// Frames that came before an earlier one.
    held: BTreeMap<u64, Frame>,
    lost: u64,
    problem: String,
    /// The last error that it reported: why it ended, where it did without a word of what it records.
    error: String,
    /// `run.json` of that host, its times on this clock.
    pub(super) run: Option<RunInfo>,
    /// Its last frame has come.
    pub(super) is_over: bool,
}

impl RecordedPart {
    /// `place`: among the hosts of the recording. `has_clients`: as of [`Replay::new`].
    pub(super) fn new(
        plan: HostPlan,
        (facts, cpus): (HostFacts, HostCpus),
        recorder: &Recorder,
        (place, has_clients): (u32, bool),
    ) -> RecordedPart {
        let host = plan.name.as_str();
        let series = |metric: &str, unit: &str| {
            recorder.series(&SeriesKey {
                host: host.to_string(),
                source: CLOCK.to_string(),
                metric: metric.to_string(),
                instance: String::new(),
                kind: Kind::Gauge,
                unit: unit.to_string(),
            })
        };
        let clock_series = [
            series("offset_ns", "ns"),
            series("drift_ppb", "1"),
            series("bound_ns", "ns"),
            series("round_trip_ns", "ns"),
        ];
        let replay = Replay::new(recorder.clone(), host, has_clients, plan.server.is_some());
        let replay = if plan.programs.is_empty() { replay } else { replay.with_programs(place) };
        RecordedPart {
            facts,
            cpus,
            clock: ClockBetween::default(),
            clock_series,
            recorder: recorder.clone(),
            anchors: Vec::new(),
            replay,
            next: 1,
            held: BTreeMap::new(),
            lost: 0,
            problem: String::new(),
            error: String::new(),
            run: None,
            is_over: false,
            plan,
        }
    }

    /// Takes in what the host's clock showed.
    pub(super) fn clock(&mut self, question: ClockQuestion) {
        self.clock.add(question);
        let Some(now) = self.clock_now() else { return };
        let values = [now.offset_ns, now.drift_ppb, now.bound_ns, now.round_trip_ns];
        self.recorder.reading(Reading {
            source: CLOCK.to_string(),
            begin_ns: question.sent_ns,
            end_ns: question.received_ns,
            status: Status::Ok,
            values: self.clock_series.into_iter().zip(values.map(Value::Int)).collect(),
        });
        let is_due = self.anchors.last().is_none_or(|last| now.t_ns - last.t_ns >= ANCHOR_INTERVAL_NS);
        if is_due {
            self.anchors.push(now);
        }
    }

    pub(super) fn cpus(&self) -> &HostCpus {
        &self.cpus
    }

    /// Its clock against this one's, by what is known so far.
    pub(super) fn line(&self) -> Option<ClockLine> {
        self.clock.line()
    }

    fn clock_now(&self) -> Option<HostClock> {
        let line = self.clock.line()?;
        let t_ns = monotonic_ns();
        Some(HostClock {
            t_ns,
            offset_ns: line.offset_at(t_ns),
            drift_ppb: (line.drift * 1e9).round() as i64,
            bound_ns: line.bound_at(t_ns),
            round_trip_ns: line.round_trip_ns,
        })
    }

    /// Takes in a frame. One that came before is left out, and one that came too early waits for those before it.
    pub(super) fn frame(&mut self, frame: Frame) {
        if frame.number == 0 && frame.is_last {
            self.complain("its agent was ended meanwhile".to_string());
            self.is_over = true;
        }
        if frame.number < self.next || self.is_over {
            return;
        }
        self.held.insert(frame.number, frame);
        if self.held.len() > HELD_MAX {
            self.skip_missing();
        }
        while let Some(frame) = self.held.remove(&self.next) {
            self.next += 1;
            self.record(&frame);
        }
    }

    /// Gives up the frames before the first one that waits.
    fn skip_missing(&mut self) {
        if let Some(first) = self.held.first_key_value().map(|(number, _)| *number) {
            self.complain(format!("{} of its frames are missing", first - self.next));
            self.next = first;
        }
    }

    fn record(&mut self, frame: &Frame) {
        self.lost = self.lost.max(frame.lost);
        let Some(line) = self.clock.line() else {
            self.complain("its clock is not known".to_string());
            return;
        };
        let name = self.plan.name.clone();
        for entry in frame.entries(name.as_str()) {
            let recorded = match entry {
                Ok(entry) => {
                    if let Entry::Event(event) = &entry
                        && event.kind == "error"
                    {
                        self.error.clone_from(&event.text);
                    }
                    self.replay.entry(entry, |t_ns| line.here(t_ns)).map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            match recorded {
                Ok(None) => {}
                Ok(Some(json)) => self.take_run(&json, &line),
                Err(problem) => self.complain(problem),
            }
        }
        self.is_over |= frame.is_last;
    }

    /// The nodes that were recorded there, as this recording names them: its server first, then its programs.
    pub(super) fn nodes(&self) -> Vec<NodeFacts> {
        let host = self.plan.name.to_string();
        let Some(run) = &self.run else { return Vec::new() };
        let of_server = self.plan.server.is_some().then(|| server_node(run));
        let of_run = run.node.iter().chain(&run.nodes);
        let programs = of_run
            .filter(|node| node.role == PROGRAM)
            .map(|node| NodeFacts { name: Replay::program_name(&host, &node.name), ..node.clone() });
        of_server.into_iter().chain(programs).map(|node| NodeFacts { host: host.clone(), ..node }).collect()
    }

    fn take_run(&mut self, json: &[u8], line: &ClockLine) {
        match serde_json::from_slice::<RunInfo>(json) {
            Ok(run) => self.run = Some(on_this_clock(run, line)),
            Err(error) => self.complain(format!("what it says of itself can't be read ({error})")),
        }
    }

    /// The first complaint is kept: those that follow mostly come of it.
    pub(super) fn complain(&mut self, problem: String) {
        if self.problem.is_empty() {
            self.problem = problem;
        }
    }

    /// Why its part is not whole; `None` where it is.
    pub(super) fn problem(&self) -> Option<String> {
        if !self.problem.is_empty() {
            return Some(self.problem.clone());
        }
        match &self.run.as_ref().and_then(|run| run.ended.clone()) {
            Some(RunEnd::CutShort { why, .. }) => Some(why.clone()),
            Some(RunEnd::Complete { .. }) if self.is_over => None,
            _ if !self.error.is_empty() => Some(self.error.clone()),
            _ => Some("its end did not arrive".to_string()),
        }
    }

    /// What `run.json` has of it at the end.
    pub(super) fn facts(&mut self) -> RecordedHost {
        while !self.held.is_empty() {
            self.skip_missing();
            while let Some(frame) = self.held.remove(&self.next) {
                self.next += 1;
                self.record(&frame);
            }
        }
        self.facts_now()
    }

    /// The same by now.
    pub(super) fn facts_now(&self) -> RecordedHost {
        let mut clock = self.anchors.clone();
        clock.extend(self.clock_now());
        RecordedHost {
            name: self.plan.name.to_string(),
            has_server: self.plan.server.is_some(),
            facts: self.facts.clone(),
            clock,
            lost: self.lost,
            problem: self.problem().unwrap_or_default(),
        }
    }
}

/// A server as a node, with where it takes clients by what it says itself.
fn server_node(run: &RunInfo) -> NodeFacts {
    if let Some(node) = run.node.as_ref().filter(|node| node.role != PROGRAM) {
        return node.clone();
    }
    let variable = |name: &str| run.server.variables.get(name).filter(|value| !value.is_empty());
    let port = variable("port").map(|port| format!("tcp {port}"));
    let socket = variable("socket").map(|path| format!("unix {path}"));
    NodeFacts {
        name: SERVER.to_string(),
        role: SERVER.to_string(),
        endpoint: run.server.endpoint.clone(),
        listens: port.into_iter().chain(socket).collect(),
        ..NodeFacts::default()
    }
}

/// The same with all times on this host's clock.
fn on_this_clock(mut run: RunInfo, line: &ClockLine) -> RunInfo {
    let moved =
        |window: Window| Window { begin_ns: line.here(window.begin_ns), end_ns: line.here(window.end_ns) };
    let end = |ended: RunEnd| match ended {
        RunEnd::Complete { at_ns } => RunEnd::Complete { at_ns: line.here(at_ns) },
        RunEnd::CutShort { at_ns, why } => RunEnd::CutShort { at_ns: line.here(at_ns), why },
    };
    for anchor in &mut run.anchors {
        anchor.monotonic_ns = line.here(anchor.monotonic_ns);
    }
    let levels = run.levels.into_iter().map(|level| Level {
        warmup: moved(level.warmup),
        window: moved(level.window),
        ended: end(level.ended),
        ..level
    });
    run.levels = levels.collect();
    run.ended = run.ended.map(end);
    run
}
