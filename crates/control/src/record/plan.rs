//! What is recorded, and for how long.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use whyso_model::RunSpec;
use whyso_record::Tap;
use whyso_server::Dsn;
use whyso_trace::{Generator, StackSampling, StacksOf};
use whyso_tracing::{FollowSpec, Literals, OtherStacks, Processes, TracingSpec};

use super::programs::PROGRAMS_MAX;
use super::site_load::SiteLoad;
use crate::cluster_node::{self, ClusterNode};
use crate::hosts::HostsPlan;
use crate::stacks_choice::{check_stacks, check_stacks_of_hosts};
use crate::{Error, facts};

/// What is recorded.
#[derive(Clone, Debug)]
pub enum RecordTarget {
    /// A server, by its DSN.
    Server(String),
    /// Processes of any kind, by a number, a name, or a part of one.
    Processes(String),
    /// This machine only.
    Machine,
}

/// What receives a recording's readings in addition to the recording.
#[derive(Clone, Default)]
pub struct Taps(pub Vec<Arc<dyn Tap>>);

impl std::fmt::Debug for Taps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Taps({})", self.0.len())
    }
}

/// What is recorded, and for how long.
#[derive(Clone, Debug)]
pub struct RecordPlan {
    pub target: RecordTarget,
    /// The nodes of its cluster, itself first; the others are watched, too. Empty where it is in none that whyso knows.
    pub nodes: Vec<ClusterNode>,
    /// Servers that are recorded together with the first one.
    pub other_dsns: Vec<String>,
    /// Processes of any kind that are recorded together with the target, as of [`RecordTarget::Processes`].
    pub other_processes: Vec<String>,
    /// Length of the window; `None`: until the command ends, or until Ctrl-C.
    pub length: Option<Duration>,
    /// A command that loads the server, with its arguments; empty: something else does.
    pub command: Vec<String>,
    /// A load on a site that is sent meanwhile; its levels are the windows.
    pub load: Option<SiteLoad>,
    /// The user begins and ends windows, by Enter or by SIGUSR1.
    pub toggle: bool,
    pub interval: Duration,
    pub trace: bool,
    /// Which stacks of the server's threads are recorded.
    pub stacks: StackSampling,
    /// Whether those of all other programs on the machine are recorded, too.
    pub stacks_of: StacksOf,
    /// Follow the commands of the server's clients.
    pub sql: Option<Literals>,
    /// Sources of the user's own.
    pub add_ons: Vec<whyso_watch::AddOn>,
    /// Access logs of web servers that are followed.
    pub access_logs: Vec<whyso_watch::AccessLog>,
    /// Where samples go in addition to the recording.
    pub relay: whyso_relay::RelayTargets,
    pub taps: Taps,
    /// Other machines that record with this one.
    pub hosts: Option<HostsPlan>,
    /// What the Performance Schema is to count; `None`: as the server has it, and nothing is changed.
    pub pfs: Option<whyso_server::knobs::pfs::PfsRequest>,
    /// Folder that holds the recordings.
    pub out: PathBuf,
    /// What the user calls the run.
    pub labels: whyso_record::Labels,
    /// Size of the recording beyond which its oldest detail is removed.
    pub bytes_max: Option<u64>,
    /// The command line, secrets masked.
    pub command_line: Vec<String>,
}

impl RecordPlan {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.load.is_some() && (self.toggle || !self.command.is_empty()) {
            return Err(Error::Plan(
                "a load on a site has its own windows: leave out --toggle and the command".to_string(),
            ));
        }
        self.check_load_of_hosts()?;
        if self.toggle && !self.command.is_empty() {
            return Err(Error::Plan(
                "--toggle can't be given with a command: the command's own time is the window".to_string(),
            ));
        }
        if self.length.is_some_and(|length| length < Duration::from_secs(1)) {
            return Err(Error::Plan("--for must be at least one second".to_string()));
        }
        if let Some(wanted) = &self.pfs {
            wanted.check()?;
            if matches!(self.target, RecordTarget::Processes(_)) {
                return Err(Error::Plan("--pfs is for a server: give its --dsn".to_string()));
            }
        }
        if self.hosts.is_some() && (self.toggle || !self.command.is_empty() || self.sql.is_some()) {
            return Err(Error::Plan(
                "--hosts records one window, which --for or Ctrl-C ends: leave out --toggle, --trace-sql and the command"
                    .to_string(),
            ));
        }
        cluster_node::check_servers(self.other_dsns.len() + 1, self.sql.is_some())?;
        if self.other_processes.len() > PROGRAMS_MAX {
            return Err(Error::Plan(format!(
                "up to {PROGRAMS_MAX} programs are recorded next to the first target: leave out some of --process"
            )));
        }
        // Before anything is connected to.
        for asked in &self.other_processes {
            Processes::find(asked)?;
        }
        check_stacks(self.stacks, self.stacks_of)?;
        if self.pfs.is_some() && self.hosts.is_none() && matches!(self.target, RecordTarget::Machine) {
            return Err(Error::Plan("--pfs is for a server: give its --dsn".to_string()));
        }
        check_stacks_of_hosts(self.hosts.is_some(), self.stacks_of)?;
        if self.hosts.is_some() && (self.pfs.is_some() || !self.add_ons.is_empty()) {
            return Err(Error::Plan(
                "--hosts records what agents record, without add-ons and with the Performance Schema as it is: leave out --pfs and --add-on"
                    .to_string(),
            ));
        }
        if !self.trace
            && (matches!(self.target, RecordTarget::Processes(_))
                || !self.other_processes.is_empty()
                || self.hosts.iter().flat_map(|plan| &plan.hosts).any(|host| !host.programs.is_empty()))
        {
            return Err(Error::Plan("only the tracer measures processes: leave out --no-trace".to_string()));
        }
        Ok(())
    }

    /// A load on a site is sent from here, and what --hosts names is recorded by its agents.
    fn check_load_of_hosts(&self) -> Result<(), Error> {
        let (Some(_), Some(hosts)) = (&self.load, &self.hosts) else { return Ok(()) };
        if !matches!(self.target, RecordTarget::Machine) {
            return Err(Error::Plan(
                "with --hosts, agents record servers and programs: leave out --dsn and --process".to_string(),
            ));
        }
        if self.sql.is_some() || !self.access_logs.is_empty() {
            return Err(Error::Plan(
                "with --hosts, a load on a site is recorded without statements and logs: leave out --trace-sql and --access-log"
                    .to_string(),
            ));
        }
        match hosts.hosts.iter().find(|host| host.load.is_some()) {
            Some(host) => Err(Error::Plan(format!(
                "a site is loaded from this machine alone: leave out load of the host {}",
                host.name
            ))),
            None => Ok(()),
        }
    }

    /// What the load is called.
    pub(super) fn workload(&self) -> &str {
        match &self.load {
            Some(site) => site.title(),
            None => self.command.first().map_or("recorded", String::as_str),
        }
    }

    pub(super) fn spec(&self, server_cpus: &[u32]) -> RunSpec {
        let load = self.load.as_ref().map(|site| &site.load);
        let length = load.map(|load| load.measure).or(self.length);
        RunSpec {
            workload: Some(self.workload().to_string()),
            recorded: true,
            users: load.map(|load| load.users.clone()).unwrap_or_default(),
            seed: load.map(|load| load.seed),
            warmup_seconds_max: load.map(|load| load.warmup_max.as_secs_f64()),
            engine_asked: load.map(|load| load.engine.to_string()),
            seconds: length.map(|length| length.as_secs_f64()),
            interval_ms: Some(self.interval.as_millis() as u64),
            server_cpus: server_cpus.to_vec(),
            client_cpus: facts::allowed_cpus(),
            ..RunSpec::default()
        }
    }

    /// Of the programs after the first target.
    pub(super) fn other_stacks(&self) -> OtherStacks {
        OtherStacks { sampling: self.stacks, of: self.stacks_of }
    }

    /// `dsn`: the server's; of processes there is none.
    pub(super) fn tracing_spec(&self, dsn: Option<&Dsn>, nodes: &[ClusterNode]) -> TracingSpec {
        let generator = if self.command.is_empty() { Generator::Unknown } else { Generator::Command };
        let others =
            cluster_node::loaded_others(nodes).filter_map(|node| Some((node.pid?, node.port))).collect();
        let sql = self.sql.zip(dsn).map(|(literals, dsn)| FollowSpec { literals, opts: dsn.opts() });
        TracingSpec {
            trace: self.trace,
            stacks: self.stacks,
            stacks_of: self.stacks_of,
            sql,
            others,
            generator,
        }
    }
}
