//! The program nats-server, as a child of the hub.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::bus;
use crate::error::{Error, Result};
use crate::folder::HubFolder;
use crate::reload::{CONFIG, PID, running_on};

/// The program that a hub starts.
pub const NATS_SERVER: &str = "nats-server";
/// Names another program in place of the one on the PATH.
const PROGRAM: &str = "WHYSO_NATS_SERVER";
const LOG: &str = "nats-server.log";
const LOCK: &str = "lock";
/// Bound on its start, and on its end after SIGTERM.
const START_TIME_MAX: Duration = Duration::from_secs(20);
const END_TIME_MAX: Duration = Duration::from_secs(10);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Of the log, what an error quotes.
const LOG_LINES: usize = 5;

/// A hub that runs. Dropping it ends it.
pub struct HubServer {
    child: Child,
    folder: HubFolder,
    /// The configuration that it has read last.
    config: Option<ConfigFile>,
    _lock: fs::File,
}

/// Which file a configuration is: another one takes its place at each change.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ConfigFile {
    inode: u64,
    changed_at: (i64, i64),
}

impl ConfigFile {
    fn of(folder: &HubFolder) -> Option<ConfigFile> {
        let facts = fs::metadata(folder.path().join(CONFIG)).ok()?;
        Some(ConfigFile { inode: facts.ino(), changed_at: (facts.ctime(), facts.ctime_nsec()) })
    }
}

impl HubServer {
    /// Starts the hub, and returns when members can join.
    ///
    /// # Errors
    /// There is no nats-server, or it does not start, as where the port is taken.
    pub async fn start(folder: HubFolder) -> Result<HubServer> {
        let lock = lock(&folder)?;
        let log_path = folder.path().join(LOG);
        let log = fs::File::create(&log_path).map_err(|cause| Error::io(&log_path, cause))?;
        let errors = log.try_clone().map_err(|cause| Error::io(&log_path, cause))?;
        let mut command = Command::new(program()?);
        command.arg("--config").arg(folder.path().join(CONFIG));
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        // SAFETY: a system call, between fork and exec.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
        }
        if running_on(folder.path()).is_some() {
            return Err(runs_already());
        }
        let pid_path = folder.path().join(PID);
        // That of a hub that was killed.
        let _ = fs::remove_file(&pid_path);
        let child = command.spawn().map_err(|error| Error::NatsServer { why: error.to_string() })?;
        let mut server = HubServer { child, folder, config: None, _lock: lock };
        server.wait_until_ready().await?;
        // Only now does it understand the signal. A member that was invited meanwhile is let in by this one.
        fs::write(&pid_path, server.child.id().to_string()).map_err(|cause| Error::io(&pid_path, cause))?;
        server.reload_if_changed()?;
        Ok(server)
    }

    /// Lets it read its members again where they have changed. Who changed them may see other processes than this one, as in a container, and
    /// can't signal it.
    ///
    /// # Errors
    /// It can't be signalled.
    pub fn reload_if_changed(&mut self) -> Result<()> {
        let now = ConfigFile::of(&self.folder);
        if now == self.config {
            return Ok(());
        }
        self.config = now;
        let Some(pid) = Pid::from_raw(self.child.id() as i32) else { return Ok(()) };
        kill_process(pid, Signal::HUP)
            .map_err(|error| Error::NatsServer { why: format!("it can't be signalled: {error}") })
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            if let Some(why) = self.ended() {
                return Err(Error::NatsServer { why });
            }
            let own = self.folder.own()?;
            let last = match bus::make_streams(&own, self.folder.settings()).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if begun.elapsed() > START_TIME_MAX {
                return Err(last);
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Why it ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        let how = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Some(format!("{how}; its log ends with: {}", self.last_lines()))
    }

    fn last_lines(&self) -> String {
        let mut text = String::new();
        let read =
            fs::File::open(self.folder.path().join(LOG)).and_then(|mut log| log.read_to_string(&mut text));
        if read.is_err() {
            return "nothing that can be read".to_string();
        }
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join(" | ")
    }

    pub fn folder(&self) -> &HubFolder {
        &self.folder
    }
}

impl Drop for HubServer {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
        let asked = Instant::now();
        while asked.elapsed() < END_TIME_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                let _ = fs::remove_file(self.folder.path().join(PID));
                return;
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Only one hub runs on a folder. The lock goes with the process.
fn lock(folder: &HubFolder) -> Result<fs::File> {
    let path = folder.path().join(LOCK);
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(|cause| Error::io(&path, cause))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => Err(runs_already()),
    }
}

fn runs_already() -> Error {
    Error::NatsServer { why: "a hub runs on this folder already".to_string() }
}

fn program() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(PROGRAM) {
        return Ok(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(NATS_SERVER)).find(|file| file.is_file());
    found.ok_or(Error::NoNatsServer)
}
