//! An agent at work: joined to a hub, answering, recording.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use whyso_control::{Generator, GeneratorTarget, Stop, identity_of};
use whyso_hub::{
    Answer, Bus, HostState, LoadOrder, LoadRequest, LoadStep, MemberKind, Order, Question, RecordOrder,
    RecordingId, Right, Token, WorkOrder, WorkState, WorkStep,
};

use crate::error::{Error, Result};
use crate::outbox::{Outbox, OutboxSpace, close_left, frame_numbers, remove_frame};
use crate::publisher::{publish_all, publish_outbox, remove_empty};
use crate::settings::{AgentServer, Settings};
use crate::task::RecordingTask;
use crate::worker::Worker;

/// Recordings at a time.
const RECORDINGS_MAX: usize = 4;
/// Recordings whose frames wait for the hub, at most.
const WAITING_MAX: usize = 64;
/// Loads at a time.
const LOADS_MAX: usize = 4;
/// Between two looks at what is under way.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Between two attempts to reach the hub.
const JOIN_INTERVAL: Duration = Duration::from_secs(2);
/// After this time without a connection, the agent logs in again. The hub's answer shows whether the token was withdrawn.
const AWAY_TIME_MAX: Duration = Duration::from_secs(10);
/// Bound on the time in which a hub may refuse a token that is new to it.
const REFUSED_TIME_MAX: Duration = Duration::from_secs(15);
/// Bound on what is handed over when the agent is ended.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(10);
/// A recording ends when no commander has asked for the clock for this long, although the hub was there.
const UNASKED_TIME_MAX: Duration = Duration::from_secs(30 * 60);
/// Bound on a server's answer who it is: sooner than the commander gives up.
const IDENTITY_TIME_MAX: Duration = Duration::from_secs(10);
const TOKEN: &str = "token";
const OUTBOX: &str = "outbox";
const RUNS: &str = "runs";
const WORK: &str = "work";
const LOCK: &str = "lock";

/// Where an agent keeps its token, and what waits for the hub.
#[derive(Clone, Debug)]
pub struct AgentFolder(PathBuf);

impl AgentFolder {
    pub fn new(path: PathBuf) -> AgentFolder {
        AgentFolder(path)
    }

    /// Keeps a token, for the agents that run on this folder from then on.
    ///
    /// # Errors
    /// It is no agent's, or the folder can't be written.
    pub fn join(&self, token: &Token) -> Result<()> {
        if token.kind != MemberKind::Agent {
            return Err(Error::NoAgent);
        }
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        made.map_err(|cause| Error::io(&self.0, cause))?;
        let path = self.0.join(TOKEN);
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(token.to_line().as_bytes()));
        written.map_err(|cause| Error::io(&path, cause))
    }

    /// # Errors
    /// There is none, or it is damaged.
    pub fn token(&self) -> Result<Token> {
        match fs::read_to_string(self.0.join(TOKEN)) {
            Ok(line) => Ok(Token::from_line(&line)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Error::NotJoined),
            Err(error) => Err(Error::io(&self.0, error)),
        }
    }

    /// Folders of frames that wait for the hub.
    fn outboxes(&self) -> impl Iterator<Item = PathBuf> + use<> {
        fs::read_dir(self.0.join(OUTBOX)).into_iter().flatten().flatten().map(|entry| entry.path())
    }

    fn waiting_bytes(&self) -> u64 {
        let files = self.outboxes().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        files.filter_map(|file| file.metadata().ok()).map(|facts| facts.len()).sum()
    }

    /// Only one agent runs on a folder.
    fn lock(&self) -> Result<fs::File> {
        let path = self.0.join(LOCK);
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(|cause| Error::io(&path, cause))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(_) => Err(Error::Running { path: self.0.clone() }),
        }
    }
}

/// An agent.
pub struct Agent {
    folder: AgentFolder,
    token: Token,
    settings: Settings,
    _lock: fs::File,
    /// The connection of the moment.
    bus: watch::Sender<Option<Bus>>,
    tasks: HashMap<RecordingId, RecordingTask>,
    loads: HashMap<RecordingId, Generator>,
    /// One study at a time.
    worker: Option<(RecordingId, Worker)>,
    space: OutboxSpace,
    publishers: Vec<tokio::task::JoinHandle<()>>,
}

impl Agent {
    /// # Errors
    /// This host has joined no hub, or another agent runs on the folder.
    pub fn new(folder: AgentFolder, settings: Settings) -> Result<Agent> {
        let token = folder.token()?;
        let lock = folder.lock()?;
        let bus = watch::Sender::new(None);
        if !settings.keep_recordings {
            // Those of an agent that was killed: what they have is in the outbox.
            let _ = fs::remove_dir_all(folder.0.join(RUNS));
        }
        let _ = fs::remove_dir_all(folder.0.join(WORK));
        let space = OutboxSpace::new(settings.waiting_bytes_max, folder.waiting_bytes());
        let (tasks, loads) = (HashMap::new(), HashMap::new());
        Ok(Agent {
            folder,
            token,
            settings,
            _lock: lock,
            bus,
            tasks,
            loads,
            worker: None,
            space,
            publishers: Vec::new(),
        })
    }

    /// Answers and records until `stop`. `report` hears what a user should know, as sentences.
    ///
    /// # Errors
    /// The hub refuses the token: then it was withdrawn.
    pub async fn run(mut self, stop: &Stop, report: &(dyn Fn(&str) + Sync)) -> Result<()> {
        self.hand_over_left();
        let ended = self.answer_until(stop, report).await;
        self.loads.clear();
        self.worker = None;
        for task in self.tasks.values() {
            task.end();
        }
        let rest = async {
            for publisher in self.publishers.drain(..) {
                // One that panicked has left its frames for the next start.
                let _ = publisher.await;
            }
        };
        // What is not handed over by then is handed over at the next start.
        let _ = tokio::time::timeout(GOODBYE_TIME_MAX, rest).await;
        ended
    }

    async fn answer_until(&mut self, stop: &Stop, report: &(dyn Fn(&str) + Sync)) -> Result<()> {
        let mut is_reported = false;
        let mut refused_since: Option<Instant> = None;
        while !stop.is_asked() {
            let bus = match Bus::join(&self.token).await {
                Ok(bus) => bus,
                Err(error @ whyso_hub::Error::Refused { .. }) => {
                    // A hub lets a new member in a moment after it was invited.
                    let since = *refused_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > REFUSED_TIME_MAX {
                        return Err(error.into());
                    }
                    tokio::time::sleep(LOOK_INTERVAL).await;
                    continue;
                }
                Err(error) => {
                    if !is_reported {
                        report(&format!("{error}; trying again every {} s", JOIN_INTERVAL.as_secs()));
                    }
                    is_reported = true;
                    self.look();
                    tokio::time::sleep(JOIN_INTERVAL).await;
                    continue;
                }
            };
            (is_reported, refused_since) = (false, None);
            let Token { name, address, .. } = &self.token;
            report(&format!("joined the hub at {address} as {name}"));
            self.bus.send_replace(Some(bus.clone()));
            let mut questions = match bus.questions().await {
                Ok(questions) => questions,
                Err(_) => {
                    self.bus.send_replace(None);
                    self.look();
                    tokio::time::sleep(JOIN_INTERVAL).await;
                    continue;
                }
            };
            let mut connected_at = Instant::now();
            while !stop.is_asked() && connected_at.elapsed() < AWAY_TIME_MAX {
                if bus.is_connected() {
                    connected_at = Instant::now();
                }
                let question = tokio::time::timeout(LOOK_INTERVAL, questions.next()).await;
                self.look();
                if bus.is_connected() && questions.unasked_for() > UNASKED_TIME_MAX {
                    self.tasks.values().for_each(RecordingTask::end);
                }
                match question {
                    // Nobody asked.
                    Err(_) => {}
                    // The connection is over for good.
                    Ok(None) => break,
                    Ok(Some(question)) => {
                        if let Some(Order::Identity { server }) = &question.order {
                            // A server may take its time, and delays nobody else.
                            tokio::spawn(answer_identity(self.dsn_to_observe(server), question));
                            continue;
                        }
                        let answer = self.answer(question.order.as_ref(), report);
                        question.answer(&answer).await;
                    }
                }
            }
            self.bus.send_replace(None);
        }
        Ok(())
    }

    /// Ends recordings that are due, and forgets those that are over.
    fn look(&mut self) {
        self.tasks.values().for_each(RecordingTask::end_if_due);
        self.tasks.retain(|_, task| !task.is_over());
        self.publishers.retain(|publisher| !publisher.is_finished());
        // Why one is over, its commander may still ask.
        self.loads.retain(|_, load| !load.is_over() || load.is_asked());
    }

    fn answer(&mut self, order: Option<&Order>, report: &(dyn Fn(&str) + Sync)) -> Answer {
        match order {
            Some(Order::State) => Answer::State(Box::new(self.state())),
            Some(Order::Record(order)) => match self.record(order) {
                Ok(()) => {
                    let what = order.server.as_deref().unwrap_or("this machine");
                    report(&format!("recording {what} for {}", order.recording));
                    Answer::Done
                }
                Err(why) => {
                    report(&format!("refused to record for {}: {why}", order.recording));
                    Answer::Refused { why }
                }
            },
            Some(Order::End { recording }) => {
                if let Some(task) = self.tasks.get(recording) {
                    task.end();
                }
                Answer::Done
            }
            Some(Order::Load(order)) => match self.load(order, report) {
                Ok(answer) => answer,
                Err(why) => {
                    report(&format!("refused a load for {}: {why}", order.load));
                    Answer::Refused { why }
                }
            },
            Some(Order::Work(order)) => match self.work(order, report) {
                Ok(state) => Answer::Work(state),
                Err(why) => {
                    report(&format!("refused to work for {}: {why}", order.work));
                    Answer::Refused { why }
                }
            },
            Some(Order::Identity { .. }) | None => {
                let why = "this is no order that this version of whyso knows".to_string();
                report(&format!("refused an order: {why}"));
                Answer::Refused { why }
            }
        }
    }

    fn state(&self) -> HostState {
        let folders = self.folder.outboxes();
        let waiting =
            folders.filter_map(|folder| frame_numbers(&folder).ok()).map(|numbers| numbers.len() as u64);
        HostState {
            name: self.token.name.to_string(),
            whyso: env!("CARGO_PKG_VERSION").to_string(),
            facts: whyso_watch::host_facts(None),
            cpus: whyso_control::host_cpus(),
            may: self.settings.may.clone(),
            servers: self.settings.servers.iter().map(|server| server.name.clone()).collect(),
            programs: self.settings.programs.iter().map(|program| program.name.clone()).collect(),
            targets: self.settings.targets.iter().map(|target| target.name.clone()).collect(),
            recording: self.tasks.keys().next().cloned(),
            waiting_frames: waiting.sum(),
        }
    }

    /// Takes a step of a load, or says why not.
    fn load(
        &mut self,
        order: &LoadOrder,
        report: &(dyn Fn(&str) + Sync),
    ) -> std::result::Result<Answer, String> {
        match &order.step {
            LoadStep::Open(request) if !self.loads.contains_key(&order.load) => {
                let load = self.open_load(request)?;
                report(&format!("loading {} for {}", request.target, order.load));
                self.loads.insert(order.load.clone(), load);
            }
            LoadStep::Close => {
                // It counts until its users are disconnected.
                self.loads.get(&order.load).inspect(|load| load.close());
                return Ok(Answer::Done);
            }
            _ => {}
        }
        let load = self.loads.get(&order.load).ok_or("there is no such load here: it has ended")?;
        Ok(Answer::Load(Box::new(load.step(&order.step, order.seen)?)))
    }

    /// Takes a step of a study, or says why not.
    fn work(
        &mut self,
        order: &WorkOrder,
        report: &(dyn Fn(&str) + Sync),
    ) -> std::result::Result<WorkState, String> {
        if !self.settings.may.contains(&Right::StartServers) {
            return Err("this agent may not start servers: its agent.toml does not allow it".to_string());
        }
        let of_order = self.worker.as_ref().filter(|(work, _)| *work == order.work);
        match (&order.step, of_order) {
            (WorkStep::Begin { study }, of_order) if of_order.is_none_or(|(_, worker)| worker.is_over()) => {
                if self.worker.as_ref().is_some_and(|(work, worker)| *work != order.work && !worker.is_over())
                {
                    return Err("another study is under way here".to_string());
                }
                let folder = self.folder.0.join(WORK);
                let worker = Worker::begin(&order.work, study, folder, self.bus.subscribe())?;
                report(&format!("working for the study {}", order.work));
                let state = worker.state();
                self.worker = Some((order.work.clone(), worker));
                Ok(state)
            }
            (WorkStep::End, Some((_, worker))) => {
                worker.end();
                Ok(worker.state())
            }
            (_, Some((_, worker))) => Ok(worker.state()),
            (_, None) => Ok(WorkState::default()),
        }
    }

    fn open_load(&self, request: &LoadRequest) -> std::result::Result<Generator, String> {
        if !self.settings.may.contains(&Right::Load) {
            return Err("this agent may not load: its agent.toml does not allow it".to_string());
        }
        let target = self.settings.targets.iter().find(|target| target.name == request.target);
        let target = target.ok_or_else(|| format!("its agent.toml names no target {}", request.target))?;
        if self.loads.len() >= LOADS_MAX {
            return Err(format!("{LOADS_MAX} loads are under way here"));
        }
        let target = GeneratorTarget {
            dsn: target.dsn.clone(),
            allow_writes: target.allow_writes,
            may_experiment: self.settings.may.contains(&Right::Experiment),
        };
        Generator::open(target, request.clone()).map_err(|error| error.to_string())
    }

    fn server(&self, name: &str) -> std::result::Result<&AgentServer, String> {
        let known = self.settings.servers.iter().find(|server| server.name == *name);
        known.ok_or_else(|| format!("its agent.toml names no server {name}"))
    }

    /// The process of a program of the file.
    fn program(&self, name: &str) -> std::result::Result<String, String> {
        let known = self.settings.programs.iter().find(|program| program.name == *name);
        let known = known.ok_or_else(|| format!("its agent.toml names no program {name}"))?;
        Ok(known.process.clone())
    }

    fn may_observe(&self) -> std::result::Result<(), String> {
        match self.settings.may.contains(&Right::Observe) {
            true => Ok(()),
            false => Err("this agent may not observe: its agent.toml does not allow it".to_string()),
        }
    }

    fn dsn_to_observe(&self, server: &str) -> std::result::Result<String, String> {
        self.may_observe()?;
        Ok(self.server(server)?.dsn.clone())
    }

    /// Begins to record, or says why not.
    fn record(&mut self, order: &RecordOrder) -> std::result::Result<(), String> {
        self.may_observe()?;
        let server = order.server.as_deref().map(|name| self.server(name)).transpose()?;
        let programs = order.programs.iter().map(|name| self.program(name));
        let programs = programs.collect::<std::result::Result<Vec<String>, String>>()?;
        if self.tasks.contains_key(&order.recording) {
            // The answer before was lost.
            return Ok(());
        }
        if self.tasks.len() >= RECORDINGS_MAX {
            return Err(format!("{RECORDINGS_MAX} recordings are under way here"));
        }
        if self.folder.outboxes().count() >= WAITING_MAX {
            return Err(format!("the frames of {WAITING_MAX} recordings wait for the hub here"));
        }
        let folder = self.folder.0.join(OUTBOX).join(order.recording.as_str());
        if folder.exists() {
            return Err(format!("it has recorded for {} before", order.recording));
        }
        let outbox = Outbox::begin(&folder, self.space.clone()).map_err(|error| error.to_string())?;
        let runs = self.folder.0.join(RUNS);
        let keeps = self.settings.keep_recordings;
        let task = RecordingTask::begin(order, (server, programs), runs, Arc::new(outbox), keeps)
            .map_err(|error| format!("no thread could be started: {error}"))?;
        let outbox = Arc::clone(&task.outbox);
        let (bus, recording) = (self.bus.subscribe(), order.recording.clone());
        self.publishers.push(tokio::spawn(publish_outbox(bus, recording, outbox)));
        self.tasks.insert(order.recording.clone(), task);
        Ok(())
    }

    /// Hands over what an agent before this one left.
    fn hand_over_left(&mut self) {
        for folder in self.folder.outboxes() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Ok(recording) = RecordingId::new(&name) else { continue };
            if close_left(&folder).is_err() {
                continue;
            }
            let (bus, space) = (self.bus.subscribe(), self.space.clone());
            self.publishers.push(tokio::spawn(async move {
                let forget = |number: u64| space.give_back(remove_frame(&folder, number));
                publish_all(bus, recording, &folder, &Notify::new(), forget, || true).await;
                remove_empty(&folder);
            }));
        }
    }
}

/// Asks a server who it is, and answers with that.
async fn answer_identity(dsn: std::result::Result<String, String>, question: Question) {
    let asked = tokio::task::spawn_blocking(move || identity_of(&dsn?).map_err(|error| error.to_string()));
    let answer = match tokio::time::timeout(IDENTITY_TIME_MAX, asked).await {
        Ok(Ok(Ok(identity))) => Answer::Identity { identity },
        Ok(Ok(Err(why))) => Answer::Refused { why },
        Ok(Err(_)) => Answer::Refused { why: "asking the server failed".to_string() },
        Err(_) => Answer::Refused { why: "its server does not answer".to_string() },
    };
    question.answer(&answer).await;
}
