//! A program of a cluster that is no server for clients, such as a data node: in a folder of its own, and watched over as a server is.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::child::{ChildProcess, how_it_ended};
use super::home::{Home, Limits, SOCKET};
use super::kept_server::KeptServer;
use super::log;
use super::state::{KeptAs, KeptNode, NdbPlace, SavedCommand};
use crate::cluster::kind::{ClusterKind, Role};
use crate::cpus::CpuSet;
use crate::error::{Error, Result, io};
use crate::process::ProcessId;

/// A program that does not end within this time is killed.
const STOP_WITHIN: Duration = Duration::from_secs(60);
/// Lines at the end of its log that an error shows.
const LAST_LOG_LINES: usize = 12;

/// Dropping it ends the program and removes its folder.
pub(crate) struct Program {
    // dropped in this order: first the process, then its home
    process: Option<ChildProcess>,
    home: Home,
    /// What starts it again.
    command: Option<SavedCommand>,
    cpus: Option<CpuSet>,
}

impl Program {
    /// Makes its folder. `cpus`: those that it may run on; `None` for all.
    pub(crate) fn prepare(cpus: Option<CpuSet>) -> Result<Program> {
        let home = Home::create(None, false, &Limits::default())?;
        Ok(Program { process: None, home, command: None, cpus })
    }

    /// The folder that is its own, of mode 0700.
    pub(crate) fn folder(&self) -> &Path {
        &self.home.folder
    }

    /// Where clients reach it, if it takes any.
    pub(crate) fn socket(&self) -> PathBuf {
        self.home.folder.join(SOCKET)
    }

    /// Where it keeps its data.
    pub(crate) fn data(&self) -> PathBuf {
        self.home.data()
    }

    /// Starts it. `first`: arguments of its first start alone.
    pub(crate) fn start(&mut self, mut command: Command, first: &[&str]) -> Result<()> {
        command.current_dir(self.home.data()).env_remove("MYSQL_PWD");
        self.command = Some(SavedCommand::of(&command));
        let path = self.home.log();
        let open_log =
            || OpenOptions::new().create(true).append(true).open(&path).map_err(io("cannot write", &path));
        command.args(first).stdin(Stdio::null()).stdout(open_log()?).stderr(open_log()?);
        let program = PathBuf::from(command.get_program());
        let process = ChildProcess::spawn(command, &self.home, self.cpus.as_ref())
            .map_err(io("cannot run", &program))?;
        let pid = process.pid();
        self.process = Some(process);
        self.home.note_server(Some(pid))
    }

    /// Why it has ended, with the last lines of its log; `None` while it runs.
    pub(crate) fn why_ended(&mut self) -> Option<String> {
        let status = self.process.as_mut()?.ended()?;
        let lines = log::last_lines(&self.home.log(), LAST_LOG_LINES);
        Some(format!("{}: {}", how_it_ended(status), lines.join("; ")))
    }

    /// Ends it, and starts it on its data.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.signal(Signal::TERM);
            process.wait(STOP_WITHIN).await;
            process.bury(&self.home);
            self.home.note_server(None)?;
        }
        match &self.command {
            Some(command) => self.start(command.command(), &[]),
            None => Ok(()),
        }
    }

    /// As it would be kept; `None` where it does not run.
    pub(crate) fn described(
        &self,
        name: &str,
        server: String,
        (cluster, kind, role): (&str, ClusterKind, Role),
        place: Option<&NdbPlace>,
    ) -> Option<KeptServer> {
        let (process, command) = (self.process.as_ref()?, self.command.as_ref()?);
        let node = KeptNode {
            cluster: cluster.to_string(),
            kind,
            role,
            port: place.map_or(0, |place| place.manager_port),
            command: command.clone(),
            cpus: self.cpus.as_ref().map_or(Vec::new(), |cpus| cpus.cpus().to_vec()),
            ndb: place.cloned(),
        };
        let kept_as = KeptAs { name: name.to_string(), server, node: Some(node) };
        Some(KeptServer::of(kept_as, self.home.folder.clone(), ProcessId::of(process.pid())))
    }

    /// Lets it live on as a node of a cluster. `server`: what it is, such as "MySQL Cluster 9.7.4".
    pub(crate) fn keep(
        mut self,
        name: &str,
        server: String,
        of_cluster: (&str, ClusterKind, Role),
        place: Option<&NdbPlace>,
    ) -> Result<KeptServer> {
        let described = self.described(name, server, of_cluster, place);
        let (Some(kept), Some(process)) = (described, self.process.take()) else {
            return Err(Error::Build(format!("{name} was not started")));
        };
        self.home.keep(kept.kept_as())?;
        // its end would end the process
        std::mem::forget(process);
        Ok(kept)
    }
}
