//! Hosts that record: from the order to begin until their last frame.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, JoinSet};
use whyso_hub::{
    Answer, Bus, Frames, HostName, HostState, LoadRequest, Order, RecordOrder, RecordingId, Right,
};
use whyso_model::{Missing, NotMeasured};
use whyso_record::Recorder;
use whyso_record::run::{NodeFacts, PROGRAM, RunInfo};
use whyso_trace::StackSampling;

use super::generators::{GeneratorCandidate, Generators, generator_plans};
use super::load_host::{ClockNow, LoadOrders};
use super::recorded::RecordedPart;
use super::{HostPlan, HostsPlan};
use crate::Error;
use crate::progress::{Listener, News};
use crate::runtime::{GOODBYE_TIME_MAX, runtime};

/// Questions about a host's clock before it begins to record.
pub(super) const FIRST_QUESTIONS: usize = 20;
pub(super) const FIRST_INTERVAL: Duration = Duration::from_millis(10);
/// Between two such questions later.
pub(super) const CLOCK_INTERVAL: Duration = Duration::from_millis(500);
/// Bound on the first word of the host of the server: what it records there.
const FIRST_FRAME_TIME_MAX: Duration = Duration::from_secs(30);
/// Bound on the last frames of all hosts, once they were asked for.
const LAST_FRAMES_TIME_MAX: Duration = Duration::from_secs(60);
/// Between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Bound on one wait for a frame.
const FRAME_TIME: Duration = Duration::from_millis(500);
/// A recording whose length is not known ends there by itself after this time.
const LENGTH_MAX: Duration = Duration::from_secs(7 * 86_400);
/// What a run may take longer than its plan, before its hosts end by themselves.
const LONGER: Duration = Duration::from_secs(600);

/// What can be measured on the server's own host only.
const OF_THE_SERVERS_HOST: [Missing; 6] = [
    Missing::ServerThreads,
    Missing::Requests,
    Missing::Stacks,
    Missing::WaitStacks,
    Missing::ThreadStacks,
    Missing::FunctionNames,
];

/// What hosts are to record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WhatToRecord {
    pub(crate) interval: Duration,
    pub(crate) trace: bool,
    pub(crate) stacks: StackSampling,
    /// How long, where that is known.
    pub(crate) length: Option<Duration>,
    /// The load comes from elsewhere than this program: what hosts know of their clients counts.
    pub(crate) has_clients: bool,
}

type Parts = Arc<Mutex<Vec<RecordedPart>>>;

/// Hosts that record with this one.
pub(crate) struct HostsSession {
    runtime: Runtime,
    bus: Bus,
    recording: RecordingId,
    parts: Parts,
    clocks: Vec<AbortHandle>,
    receiver: Option<AbortHandle>,
    has_clients: bool,
}

impl HostsSession {
    /// Begins to record on all hosts, and returns when each does.
    ///
    /// # Errors
    /// The hub or an agent can't be reached, or an agent may not do this.
    pub(crate) fn begin(
        plan: &HostsPlan,
        what: WhatToRecord,
        (recorder, run): (&Recorder, &RunInfo),
        listener: &dyn Listener,
    ) -> Result<HostsSession, Error> {
        let runtime = runtime()?;
        listener.hear(News::Step(&format!("joining the hub at {}", plan.token.address)));
        let recording = RecordingId::new(&run.id)?;
        let (bus, states, frames) = runtime.block_on(async {
            let bus = Bus::join(&plan.token).await?;
            let states = states(&bus, &plan.hosts).await?;
            let frames = bus.frames(&recording).await?;
            Ok::<_, Error>((bus, states, frames))
        })?;
        // What is recorded here comes before what hosts send.
        let part = |(place, (host, state)): (u32, (HostPlan, HostState))| {
            RecordedPart::new(host, (state.facts, state.cpus), recorder, (place, what.has_clients))
        };
        let parts: Parts = Arc::new(Mutex::new((1..).zip(states).map(part).collect()));
        let mut session = HostsSession {
            runtime,
            bus,
            recording,
            parts,
            clocks: Vec::new(),
            receiver: None,
            has_clients: what.has_clients,
        };
        let begun = session.start(what, frames, listener);
        match begun {
            Ok(()) => Ok(session),
            Err(error) => {
                session.order_end();
                Err(error)
            }
        }
    }

    fn start(&mut self, what: WhatToRecord, frames: Frames, listener: &dyn Listener) -> Result<(), Error> {
        let hosts: Vec<HostPlan> = lock(&self.parts).iter().map(|part| part.plan.clone()).collect();
        for (place, host) in hosts.iter().enumerate() {
            listener.hear(News::Step(&format!("{}: asking for its clock", host.name)));
            self.runtime.block_on(async {
                for _ in 0..FIRST_QUESTIONS {
                    let question = self.bus.clock(&host.name).await?;
                    lock(&self.parts)[place].clock(question);
                    tokio::time::sleep(FIRST_INTERVAL).await;
                }
                Ok::<_, Error>(())
            })?;
            let (bus, parts, name) = (self.bus.clone(), Arc::clone(&self.parts), host.name.clone());
            self.clocks.push(self.runtime.spawn(keep_clock(bus, name, parts, place)).abort_handle());
        }
        self.receiver = Some(self.runtime.spawn(receive(frames, Arc::clone(&self.parts))).abort_handle());
        for host in &hosts {
            listener.hear(News::Step(&format!("{}: beginning to record", host.name)));
            let order = Order::Record(RecordOrder {
                recording: self.recording.clone(),
                server: host.server.clone(),
                programs: host.programs.clone(),
                interval_ms: u64::try_from(what.interval.as_millis()).unwrap_or(1000),
                trace: host.is_traced(what.trace),
                stacks: stacks_name(what.stacks).to_string(),
                seconds_max: what.length.map_or(LENGTH_MAX, |length| length + LONGER).as_secs(),
            });
            self.runtime.block_on(self.bus.order(&host.name, &order))?;
        }
        let with_targets = hosts.iter().enumerate().filter(|(_, host)| host.has_target());
        with_targets.map(|(place, _)| place).try_for_each(|place| self.wait_for_target(&hosts, place))
    }

    /// Waits until a host has sent what it knows of its server and its programs.
    fn wait_for_target(&self, hosts: &[HostPlan], place: usize) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            {
                let part = &lock(&self.parts)[place];
                if part.run.is_some() && !part.is_over {
                    return Ok(());
                }
                if part.is_over {
                    let why = part.problem().unwrap_or_default();
                    return Err(Error::Failed(format!("{} can't record: {why}", part.plan.name)));
                }
            }
            if begun.elapsed() > FIRST_FRAME_TIME_MAX {
                let host = hosts[place].name.to_string();
                return Err(whyso_hub::Error::Silent { host }.into());
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    /// Connects the users of the hosts that send the load.
    ///
    /// # Errors
    /// As of [`Generators::open`].
    pub(crate) fn open_load(&self, request: &LoadRequest, recorder: &Recorder) -> Result<Generators, Error> {
        let host = |(place, part): (usize, &RecordedPart)| {
            let parts = Arc::clone(&self.parts);
            let clock: ClockNow = Arc::new(move || lock(&parts).get(place)?.line());
            GeneratorCandidate { plan: part.plan.clone(), cpus: part.cpus().clone(), clock }
        };
        let hosts = lock(&self.parts).iter().enumerate().map(host).collect();
        let orders = LoadOrders {
            handle: self.runtime.handle().clone(),
            bus: self.bus.clone(),
            load: self.recording.clone(),
            recorder: Some(recorder.clone()),
        };
        Generators::open(orders, generator_plans(hosts, request))
    }

    /// `run.json` of the server's host as it is by now, its times on this clock.
    pub(crate) fn server_run(&self) -> Option<RunInfo> {
        let parts = lock(&self.parts);
        parts.iter().find(|part| part.plan.server.is_some())?.run.clone()
    }

    /// Why the server's host ended by itself; `None` while it records.
    pub(crate) fn server_ended(&self) -> Option<String> {
        let parts = lock(&self.parts);
        let part = parts.iter().find(|part| part.plan.server.is_some() && part.is_over)?;
        Some(format!("{}: {}", part.plan.name, part.problem().unwrap_or_else(|| "it has ended".to_string())))
    }

    fn order_end(&self) {
        let hosts: Vec<HostName> = lock(&self.parts).iter().map(|part| part.plan.name.clone()).collect();
        self.runtime.block_on(async {
            let mut asked = JoinSet::new();
            for host in hosts {
                let (bus, order) = (self.bus.clone(), Order::End { recording: self.recording.clone() });
                // One that is gone ends by itself.
                asked.spawn(async move { bus.order(&host, &order).await.map(drop) });
            }
            while asked.join_next().await.is_some() {}
        });
    }

    /// Ends the recording of all hosts, and writes down what each handed over. Returns `run.json` of the server's host.
    pub(crate) fn end(mut self, info: &mut RunInfo, listener: &dyn Listener) -> Option<RunInfo> {
        listener.hear(News::Step("waiting for the last frames of all hosts"));
        self.order_end();
        let asked = Instant::now();
        while asked.elapsed() < LAST_FRAMES_TIME_MAX && !lock(&self.parts).iter().all(|part| part.is_over) {
            std::thread::sleep(CHECK_INTERVAL);
        }
        self.abort();
        let mut parts = lock(&self.parts);
        for part in parts.iter_mut() {
            let facts = part.facts();
            let lines = part.run.as_ref().map(|run| run.not_measured.clone()).unwrap_or_default();
            // Of a host without a server, that nothing was traced needs no word.
            if facts.has_server {
                self.take_over_not_measured(lines, info);
            }
            if !facts.problem.is_empty() {
                let what = format!("{} as a whole", facts.name);
                info.not_measured.push(NotMeasured::new(Missing::Other, what, facts.problem.clone()));
            }
            if facts.lost > 0 {
                let what = format!("{} readings of {}", facts.lost, facts.name);
                let why = "its agent could not keep them until the hub took them";
                info.not_measured.push(NotMeasured::new(Missing::Other, what, why));
            }
            info.hosts.retain(|host| host.name != facts.name);
            info.hosts.push(facts);
        }
        let mut of_server =
            parts.iter().find(|part| part.plan.server.is_some()).and_then(|part| part.run.clone());
        if parts.iter().any(|part| !part.plan.programs.is_empty()) {
            // The server before all programs.
            let mut nodes: Vec<NodeFacts> = parts.iter().flat_map(RecordedPart::nodes).collect();
            nodes.sort_by_key(|node| node.role == PROGRAM);
            let mut nodes = nodes.into_iter();
            (info.node, info.nodes) = (nodes.next(), nodes.collect());
            if let Some(run) = &mut of_server {
                (run.node, run.nodes) = (info.node.clone(), info.nodes.clone());
            }
        }
        of_server
    }

    /// What was not measured of the server is what its own host could not measure.
    fn take_over_not_measured(&self, there: Vec<NotMeasured>, info: &mut RunInfo) {
        if !self.has_clients {
            info.not_measured.retain(|line| !OF_THE_SERVERS_HOST.contains(&line.source));
        }
        // There, nobody knows the load.
        let is_known_here =
            |line: &NotMeasured| !self.has_clients && line.what == "response times as clients see them";
        for line in there.into_iter().filter(|line| !is_known_here(line)) {
            if !info.not_measured.contains(&line) {
                info.not_measured.push(line);
            }
        }
    }

    /// What is known of the hosts by now.
    pub(crate) fn describe(&self, info: &mut RunInfo) {
        let parts = lock(&self.parts);
        info.hosts = parts.iter().map(RecordedPart::facts_now).collect();
    }

    fn abort(&mut self) {
        self.clocks.drain(..).for_each(|task| task.abort());
        if let Some(receiver) = self.receiver.take() {
            receiver.abort();
        }
    }
}

impl Drop for HostsSession {
    fn drop(&mut self) {
        self.abort();
        let bus = self.bus.clone();
        let recording = self.recording.clone();
        // What was not received, as after a failure, is forgotten at last by its age.
        let forget = async move {
            if let Ok(frames) = bus.frames(&recording).await {
                frames.forget().await;
            }
        };
        let _ = self.runtime.block_on(async { tokio::time::timeout(GOODBYE_TIME_MAX, forget).await });
    }
}

fn lock(parts: &Parts) -> MutexGuard<'_, Vec<RecordedPart>> {
    // What a panic left half done is one host's part, and shows as a problem of it.
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The hosts of a plan with what their agents are.
pub(super) async fn states(bus: &Bus, wanted: &[HostPlan]) -> Result<Vec<(HostPlan, HostState)>, Error> {
    if wanted.is_empty() {
        let found = bus.agents().await?;
        let plan = |state: HostState| {
            Ok((
                HostPlan {
                    name: HostName::new(&state.name)?,
                    server: None,
                    programs: Vec::new(),
                    load: None,
                },
                state,
            ))
        };
        let found = found.into_iter().map(plan).collect::<Result<Vec<_>, Error>>()?;
        if found.is_empty() {
            return Err(Error::Plan("no agent is connected: start whyso agent run on each host".to_string()));
        }
        return Ok(found);
    }
    let mut found = Vec::new();
    for host in wanted {
        let Answer::State(state) = bus.order(&host.name, &Order::State).await? else {
            return Err(whyso_hub::Error::Silent { host: host.name.to_string() }.into());
        };
        check(host, &state)?;
        found.push((host.clone(), *state));
    }
    Ok(found)
}

fn check(host: &HostPlan, state: &HostState) -> Result<(), Error> {
    if !state.may.contains(&Right::Observe) {
        return Err(Error::Plan(format!(
            "the agent on {} may not observe: allow it in its agent.toml, by may = [\"observe\"]",
            host.name
        )));
    }
    check_load(host, state)?;
    if let Some(server) = &host.server
        && !state.servers.contains(server)
    {
        let known = match state.servers.is_empty() {
            true => "none".to_string(),
            false => state.servers.join(", "),
        };
        return Err(Error::Plan(format!(
            "the agent on {} knows no server {server} (it knows {known}): name it in its agent.toml, as [[server]]",
            host.name
        )));
    }
    if let Some(unknown) = host.programs.iter().find(|program| !state.programs.contains(program)) {
        return Err(Error::Plan(format!(
            "the agent on {} knows no program {unknown}: name it in its agent.toml, as [[program]]",
            host.name
        )));
    }
    Ok(())
}

fn check_load(host: &HostPlan, state: &HostState) -> Result<(), Error> {
    let Some(target) = &host.load else { return Ok(()) };
    let name = &host.name;
    if !state.may.contains(&Right::Load) {
        return Err(Error::Plan(format!(
            "the agent on {name} may not load: allow it in its agent.toml, by may = [\"observe\", \"load\"]"
        )));
    }
    if !state.targets.contains(target) {
        return Err(Error::Plan(format!(
            "the agent on {name} knows no target {target}: name it in its agent.toml, as [[target]]"
        )));
    }
    let here = env!("CARGO_PKG_VERSION");
    if state.whyso != here {
        return Err(Error::Plan(format!(
            "the agent on {name} is whyso {}, and this is {here}: one load needs one version",
            state.whyso
        )));
    }
    Ok(())
}

fn stacks_name(stacks: StackSampling) -> &'static str {
    match stacks {
        StackSampling::Off => "off",
        StackSampling::Light => "light",
        StackSampling::Full => "full",
    }
}

/// Asks for a host's clock until it is aborted.
async fn keep_clock(bus: Bus, host: HostName, parts: Parts, place: usize) {
    loop {
        tokio::time::sleep(CLOCK_INTERVAL).await;
        // Without an answer, the bound grows.
        if let Ok(question) = bus.clock(&host).await {
            lock(&parts)[place].clock(question);
        }
    }
}

/// Receives frames until it is aborted.
async fn receive(mut frames: Frames, parts: Parts) {
    loop {
        let received = match frames.next(FRAME_TIME).await {
            Ok(Some(received)) => received,
            Ok(None) => continue,
            Err(_) => {
                // The connection is made again meanwhile.
                tokio::time::sleep(FRAME_TIME).await;
                continue;
            }
        };
        {
            let mut parts = lock(&parts);
            if let Some(part) = parts.iter_mut().find(|part| part.plan.name == received.host) {
                match &received.frame {
                    Ok(frame) => part.frame(frame.clone()),
                    Err(error) => part.complain(error.to_string()),
                }
            }
        }
        // Where this fails it comes once more, and is known by its number.
        let _ = received.done().await;
    }
}
