//! An agent at work: joined to a hub, answering, recording.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use whyso_control::Stop;
use whyso_hub::{Answer, Bus, HostState, MemberKind, Order, RecordOrder, RecordingId, Right, Token};

use crate::error::{Error, Result};
use crate::outbox::{Outbox, close_left, frame_numbers};
use crate::publisher::{publish_all, publish_outbox, remove_empty};
use crate::settings::Settings;
use crate::task::RecordingTask;

/// Recordings at a time.
const RECORDINGS_MAX: usize = 4;
/// Between two looks at what is under way.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Between two attempts to reach the hub.
const JOIN_INTERVAL: Duration = Duration::from_secs(2);
/// After this time without a connection, the agent logs in again. The hub's answer shows whether the token was withdrawn.
const AWAY_TIME_MAX: Duration = Duration::from_secs(10);
/// Bound on the time in which a hub may refuse a token that is new to it.
const REFUSED_TIME_MAX: Duration = Duration::from_secs(5);
/// Bound on what is handed over when the agent is ended.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(10);
const TOKEN: &str = "token";
const OUTBOX: &str = "outbox";
const RUNS: &str = "runs";
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
    publishers: Vec<tokio::task::JoinHandle<()>>,
}

impl Agent {
    /// # Errors
    /// This host has joined no hub, or another agent runs on the folder.
    pub fn new(folder: AgentFolder, settings: Settings) -> Result<Agent> {
        let token = folder.token()?;
        let lock = folder.lock()?;
        let bus = watch::Sender::new(None);
        Ok(Agent { folder, token, settings, _lock: lock, bus, tasks: HashMap::new(), publishers: Vec::new() })
    }

    /// Answers and records until `stop`. `report` hears what a user should know, as sentences.
    ///
    /// # Errors
    /// The hub refuses the token: then it was withdrawn.
    pub async fn run(mut self, stop: &Stop, report: &(dyn Fn(&str) + Sync)) -> Result<()> {
        self.hand_over_left();
        let ended = self.answer_until(stop, report).await;
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
                match question {
                    // Nobody asked.
                    Err(_) => {}
                    // The connection is over for good.
                    Ok(None) => break,
                    Ok(Some(question)) => {
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
            None => {
                let why = "this is no order that this version of whyso knows".to_string();
                report(&format!("refused an order: {why}"));
                Answer::Refused { why }
            }
        }
    }

    fn state(&self) -> HostState {
        let outbox = self.folder.0.join(OUTBOX);
        let folders = fs::read_dir(&outbox).into_iter().flatten().flatten();
        let waiting =
            folders.filter_map(|entry| frame_numbers(&entry.path()).ok()).map(|numbers| numbers.len() as u64);
        HostState {
            name: self.token.name.to_string(),
            whyso: env!("CARGO_PKG_VERSION").to_string(),
            facts: whyso_watch::host_facts(None),
            may: self.settings.may.clone(),
            servers: self.settings.servers.iter().map(|server| server.name.clone()).collect(),
            recording: self.tasks.keys().next().cloned(),
            waiting_frames: waiting.sum(),
        }
    }

    /// Begins to record, or says why not.
    fn record(&mut self, order: &RecordOrder) -> std::result::Result<(), String> {
        if !self.settings.may.contains(&Right::Observe) {
            return Err("this agent may not observe: its agent.toml does not allow it".to_string());
        }
        let server = match &order.server {
            None => None,
            Some(name) => {
                let known = self.settings.servers.iter().find(|server| server.name == *name);
                Some(known.ok_or_else(|| format!("its agent.toml names no server {name}"))?)
            }
        };
        if self.tasks.contains_key(&order.recording) {
            // The answer before was lost.
            return Ok(());
        }
        if self.tasks.len() >= RECORDINGS_MAX {
            return Err(format!("{RECORDINGS_MAX} recordings are under way here"));
        }
        let folder = self.folder.0.join(OUTBOX).join(order.recording.as_str());
        if folder.exists() {
            return Err(format!("it has recorded for {} before", order.recording));
        }
        let outbox =
            Outbox::begin(&folder, self.settings.waiting_bytes_max).map_err(|error| error.to_string())?;
        let runs = self.folder.0.join(RUNS);
        let keeps = self.settings.keep_recordings;
        let task = RecordingTask::begin(order, server, runs, Arc::new(outbox), keeps)
            .map_err(|error| format!("no thread could be started: {error}"))?;
        let outbox = Arc::clone(&task.outbox);
        let (bus, recording) = (self.bus.subscribe(), order.recording.clone());
        self.publishers.push(tokio::spawn(publish_outbox(bus, recording, outbox)));
        self.tasks.insert(order.recording.clone(), task);
        Ok(())
    }

    /// Hands over what an agent before this one left.
    fn hand_over_left(&mut self) {
        let folders = fs::read_dir(self.folder.0.join(OUTBOX)).into_iter().flatten().flatten();
        for folder in folders.map(|entry| entry.path()) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Ok(recording) = RecordingId::new(&name) else { continue };
            if close_left(&folder).is_err() {
                continue;
            }
            let bus = self.bus.subscribe();
            self.publishers.push(tokio::spawn(async move {
                let forget = |number: u64| {
                    // One that stays is published again at the next start.
                    let _ = fs::remove_file(folder.join(format!("{number:012}.frame")));
                };
                publish_all(bus, recording, &folder, forget, || true).await;
                remove_empty(&folder);
            }));
        }
    }
}
