//! What was asked for, checked before anything starts.

use std::path::PathBuf;
use std::time::Duration;

use whyso_explain::slo::Requirement;
use whyso_hub::{LoadRequest, LoadSource};
use whyso_load::{Arrivals, EngineKind, LevelSpec, Pacing, Profile, Think, Tuning};
use whyso_trace::{StackSampling, StacksOf};

use crate::Error;
use crate::action::{Action, ActionKind};
use crate::cluster_node::{self, ClusterNode, OwnCluster};
use crate::hosts::HostsPlan;
use crate::server_plan::ServerPlan;
use crate::source::Source;
use crate::stacks_choice::{check_stacks, check_stacks_of_hosts};
use whyso_tracing::Literals;

/// Most users that one run may ask for.
pub const USERS_MAX: u32 = 20_000;

/// Bound on what happens between two levels, such as sealing.
const BETWEEN_LEVELS_MAX: Duration = Duration::from_secs(60);

/// One run, as the user asked for it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub source: Source,
    /// Options of the workload, (name, value).
    pub options: Vec<(String, String)>,
    pub tables: u32,
    pub rows: u64,
    /// Storage engine of the tables, such as "InnoDB".
    pub table_engine: String,
    pub seed: u64,
    /// Users at each level, in the order in which they run.
    pub users: Vec<u32>,
    /// Length of a level's measured window.
    pub measure: Duration,
    /// Bound on a level's warm-up.
    pub warmup_max: Duration,
    /// Begin with an empty buffer pool and none of the data in the page cache; of a throw-away server.
    pub cold: bool,
    pub interval: Duration,
    /// Account for the time of the server's threads and requests, where this machine allows it.
    pub trace: bool,
    /// Which of their stacks are recorded, too.
    pub stacks: StackSampling,
    /// Whether those of all other programs on the machine are recorded, too.
    pub stacks_of: StacksOf,
    /// Follow the commands of the server's clients.
    pub sql: Option<Literals>,
    pub engine: EngineKind,
    /// Number of event loops; `None`: the engine chooses.
    pub loops: Option<u32>,
    pub tuning: Tuning,
    /// Pause between a user's transactions, in a closed loop.
    pub think: Think,
    /// Transactions due per second. One number is for every level. Several are one per level, and `users` is one number then.
    /// Empty: a closed loop.
    pub rates_per_s: Vec<f64>,
    pub arrivals: Arrivals,
    /// Response times that are required at each level.
    pub slo: Vec<Requirement>,
    /// Repeat the best level at the end, to look for drift.
    pub repeat_best: bool,
    /// Run a level twice where the number of event loops changes before it. This separates the generator's own step from the server's.
    pub check_loops: bool,
    pub actions: Vec<Action>,
    pub server: ServerPlan,
    /// The nodes of its cluster, itself first; the others are watched, too. Empty where it is in none that whyso knows.
    pub nodes: Vec<ClusterNode>,
    /// Servers that are loaded and watched together with `server`. Each gets the data.
    pub other_servers: Vec<ServerPlan>,
    /// That cluster, where it was started for this run alone.
    pub cluster: Option<OwnCluster>,
    /// What the Performance Schema is to count; `None`: as the server has it.
    pub pfs: Option<whyso_server::knobs::pfs::PfsRequest>,
    pub client_cpus: Option<String>,
    /// Schema that may be written although whyso did not make it.
    pub allow_writes: Option<String>,
    /// Sources of the user's own.
    pub add_ons: Vec<whyso_watch::AddOn>,
    /// Access logs of web servers that are followed.
    pub access_logs: Vec<whyso_watch::AccessLog>,
    /// Where samples go in addition to the recording.
    pub relay: whyso_relay::RelayTargets,
    /// Other machines that record with this one.
    pub hosts: Option<HostsPlan>,
    /// Folder that holds the recordings.
    pub out: PathBuf,
    /// What the user calls the run.
    pub labels: whyso_record::Labels,
    /// The command line, secrets masked, as it goes into the recording.
    pub command: Vec<String>,
}

impl Plan {
    /// A generous bound on the time of all levels.
    pub(crate) fn length_max(&self) -> Duration {
        let levels = u32::try_from(self.sweep().len() + 2).unwrap_or(u32::MAX);
        (self.warmup_max + self.measure + BETWEEN_LEVELS_MAX).saturating_mul(levels).saturating_mul(2)
    }

    /// The levels of the sweep in order: users, and the rate of an open loop.
    pub(crate) fn sweep(&self) -> Vec<(u32, Option<f64>)> {
        match (&self.rates_per_s[..], &self.users[..]) {
            ([], users) => users.iter().map(|&users| (users, None)).collect(),
            ([rate_per_s], users) => users.iter().map(|&users| (users, Some(*rate_per_s))).collect(),
            (rates, users) => {
                let users = users.first().copied().unwrap_or(1);
                rates.iter().map(|&rate_per_s| (users, Some(rate_per_s))).collect()
            }
        }
    }

    /// Returns the level of this many users, in an open loop if there is a rate.
    pub(crate) fn level_spec(&self, users: u32, rate_per_s: Option<f64>) -> LevelSpec {
        let pacing = match rate_per_s {
            Some(rate_per_s) => Pacing::Open { arrivals: self.arrivals, rate: Profile::constant(rate_per_s) },
            None => Pacing::Closed { think: self.think, active: None },
        };
        LevelSpec { pacing, ..LevelSpec::users(users) }
    }

    /// Whether other hosts send the load.
    pub(crate) fn has_generators(&self) -> bool {
        self.hosts.as_ref().is_some_and(HostsPlan::has_generators)
    }

    /// What all hosts of the load are asked to send. Each gets its own target, seed and number of users.
    pub(crate) fn load_request(&self, reconnect: Duration) -> LoadRequest {
        LoadRequest {
            target: String::new(),
            server: None,
            source: LoadSource::from(&self.source),
            options: self.options.clone(),
            session: Vec::new(),
            left_out: Vec::new(),
            tables: self.tables,
            rows: self.rows,
            users_max: self.users.iter().copied().max().unwrap_or(1),
            seed: self.seed,
            engine: self.engine,
            loops: self.loops,
            tuning: self.tuning,
            reconnect,
        }
    }

    fn check_generators(&self) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Plan(what.to_string()));
        match self.has_generators() {
            false => Ok(()),
            true if matches!(self.server, ServerPlan::ThrowAway { .. }) => wrong(
                "other hosts can't reach a throw-away server, which has a socket only: name a server of their network by --dsn",
            ),
            true if !self.nodes.is_empty() => wrong(
                "a load of several hosts goes to one target of each host: leave out --cluster or load in the file of --hosts",
            ),
            true if !self.other_servers.is_empty() => wrong(
                "a load of several hosts goes to one target of each host: give one --dsn, or leave out load in the file of --hosts",
            ),
            true if self.client_cpus.is_some() => wrong(
                "--client-cpus is about a load of this machine, and other hosts send it: start their agents on those CPUs",
            ),
            true => Ok(()),
        }
    }

    /// Checks everything that can be checked without a server.
    ///
    /// # Errors
    /// One sentence for the first thing that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        check_users(&self.users)?;
        cluster_node::check(&self.nodes, self.sql.is_some())?;
        cluster_node::check_servers(self.other_servers.len() + 1, self.sql.is_some())?;
        check_times(self.measure, self.warmup_max)?;
        check_stacks(self.stacks, self.stacks_of)?;
        check_stacks_of_hosts(self.hosts.is_some(), self.stacks_of)?;
        self.rates_per_s.iter().try_for_each(|rate_per_s| check_rate(*rate_per_s))?;
        if !self.rates_per_s.is_empty() && self.think != Think::None {
            return Err(Error::Plan(THINK_IN_OPEN_LOOP.into()));
        }
        if self.rates_per_s.len() > 1 && self.users.len() > 1 {
            return Err(Error::Plan(RATES_AND_USERS.into()));
        }
        if self.interval < Duration::from_millis(100) || self.interval > Duration::from_secs(60) {
            return Err(Error::Plan(format!(
                "--interval-ms {} can't be kept: give 100 to 60000",
                self.interval.as_millis()
            )));
        }
        check_data_set(self.tables, self.rows)?;
        self.check_generators()?;
        crate::pfs_setup::check(self.pfs.as_ref(), &self.actions)?;
        self.tuning.check(self.engine).map_err(|error| Error::Plan(error.to_string()))?;
        if self.cold && matches!(self.server, ServerPlan::Dsn { .. }) {
            return Err(Error::Plan(
                "--cold empties the caches of a throw-away server: a server of your own is left as it is"
                    .into(),
            ));
        }
        let measured = self.measure * self.sweep().len() as u32;
        for action in &self.actions {
            if action.after >= measured {
                return Err(Error::Plan(format!(
                    "--at {}s comes after the last level has ended: all levels together measure {}s",
                    action.after.as_secs_f64(),
                    measured.as_secs_f64()
                )));
            }
            let remote = matches!(self.server, ServerPlan::Dsn { .. }) && self.cluster.is_none();
            if matches!(action.what, ActionKind::Restart { .. }) && remote {
                return Err(Error::Plan(
                    "--at … restart works on a throw-away server only: for a server of your own give the command \
                     that restarts it, such as --at 60 '!systemctl restart mariadb'"
                        .into(),
                ));
            }
        }
        Ok(())
    }
}

/// Why a think time and a rate don't go together.
pub(crate) const THINK_IN_OPEN_LOOP: &str =
    "--think is a pause in a closed loop, and --rate says when transactions are due: give one of them";

/// Why several rates and several numbers of users don't go together.
pub(crate) const RATES_AND_USERS: &str = "with several rates, --users is the most transactions that are under way at once: give one number, and several rates for \
     several levels";

pub(crate) fn check_users(levels: &[u32]) -> Result<(), Error> {
    if levels.is_empty() {
        return Err(Error::Plan("--users needs at least one number of users, such as 1,2,4,8".into()));
    }
    for &users in levels {
        if users == 0 {
            return Err(Error::Plan("--users 0 loads nothing: give 1 or more".into()));
        }
        if users > USERS_MAX {
            return Err(Error::Plan(format!(
                "--users {users} is more than the {USERS_MAX} that one run may ask for: give fewer"
            )));
        }
    }
    Ok(())
}

pub(crate) fn check_times(measure: Duration, warmup_max: Duration) -> Result<(), Error> {
    let seconds = measure.as_secs_f64();
    if !(0.5..=86_400.0).contains(&seconds) {
        return Err(Error::Plan(format!(
            "--seconds {seconds} can't be measured: give 0.5 to 86400, and 5 or more for intervals that hold"
        )));
    }
    if warmup_max > Duration::from_secs(86_400) {
        return Err(Error::Plan("--warmup is more than a day: give 0 to 86400 seconds".into()));
    }
    Ok(())
}

pub(crate) fn check_rate(rate_per_s: f64) -> Result<(), Error> {
    if !(0.01..=1e7).contains(&rate_per_s) {
        return Err(Error::Plan(format!(
            "--rate {rate_per_s} is out of range: give 0.01 to 10000000 transactions per second"
        )));
    }
    Ok(())
}

pub(crate) fn check_data_set(tables: u32, rows: u64) -> Result<(), Error> {
    if tables == 0 || tables > 10_000 {
        return Err(Error::Plan(format!("--tables {tables} is out of range: give 1 to 10000")));
    }
    if rows == 0 || rows > i32::MAX as u64 {
        return Err(Error::Plan(format!(
            "--rows {rows} is out of range: the tables' id is an INTEGER, give 1 to {}",
            i32::MAX
        )));
    }
    Ok(())
}

/// Splits `knob=value`.
///
/// # Errors
/// Says how a setting is written.
pub fn parse_knob(text: &str) -> Result<(String, String), Error> {
    let bad = || {
        Error::Plan(format!("--set {text}: give a setting as knob=value, such as innodb_io_capacity=2000"))
    };
    let (name, value) = text.split_once('=').ok_or_else(bad)?;
    let name = name.trim().trim_start_matches("--");
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
        return Err(bad());
    }
    Ok((name.replace('-', "_"), value.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_is_a_name_and_a_value() {
        assert_eq!(parse_knob("--innodb-io-capacity = 5").unwrap().0, "innodb_io_capacity");
        for bad in ["x", "=1", "a b=1", "a;b=1"] {
            assert!(parse_knob(bad).is_err(), "{bad}");
        }
    }
}
