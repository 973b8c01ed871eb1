//! What was asked of a load, checked before anything starts.

use std::time::Duration;

use whyso_explain::slo::Requirement;
use whyso_load::{
    Arrivals, Endpoint, EngineKind, LevelSpec, Limits, LoadSpec, Pacing, Placement, Profile, Target, Think,
    Tuning,
};
use whyso_workload::Workload;

use super::endpoint;
use super::http::HttpPlan;
use crate::Error;
use crate::pacing::{Quantity, Stages};
use crate::plan::{THINK_IN_OPEN_LOOP, USERS_MAX, check_data_set, check_rate, check_times, check_users};
use crate::runtime::RECONNECT_TIME_MAX;
use crate::server_plan::ServerPlan;
use crate::source::{Source, WorkloadContext};

/// One load, as the user asked for it.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Load over HTTP instead, which uses neither sources nor servers.
    pub http: Option<HttpPlan>,
    /// One, or two to be run side by side.
    pub sources: Vec<Source>,
    /// Options of the workload, (name, value).
    pub options: Vec<(String, String)>,
    pub tables: u32,
    pub rows: u64,
    /// Storage engine of the tables, such as "InnoDB".
    pub table_engine: String,
    pub seed: u64,
    /// At least one; several are endpoints of one load.
    pub servers: Vec<ServerPlan>,
    /// Which connection goes where; `None`: by weight where a server has one, else in turn.
    pub placement: Option<Placement>,
    /// Users at each level of a closed loop; in an open one a single number, the most transactions under way at once.
    pub users: Vec<u32>,
    /// Transactions due per second at each level; empty: a closed loop.
    pub rates_per_s: Vec<f64>,
    pub arrivals: Arrivals,
    pub think: Think,
    /// One level that changes; `measure` and `warmup_max` play no part then.
    pub stages: Option<Stages>,
    pub measure: Duration,
    pub warmup_max: Duration,
    /// A level ends after this many transactions, all of which are measured.
    pub transactions_max: Option<u64>,
    /// Each connection is opened again after this many transactions.
    pub reconnect_every: Option<u32>,
    pub engine: EngineKind,
    pub loops: Option<u32>,
    pub tuning: Tuning,
    /// Connections that all users share; `None`: each has its own.
    pub connections: Option<u32>,
    pub idle_connections: u32,
    /// Compress what is sent and received.
    pub compression: bool,
    pub client_cpus: Option<String>,
    pub allow_writes: Option<String>,
    pub slo: Vec<Requirement>,
    /// Search the highest rate that holds the service level.
    pub find_capacity: bool,
    /// Rounds of two workloads side by side.
    pub rounds: u32,
    /// Above 0, at most 100.
    pub percentiles: Vec<f64>,
}

/// A level to be run.
pub(crate) struct LevelPlan {
    pub(crate) spec: LevelSpec,
    pub(crate) measure: Duration,
    pub(crate) warmup_max: Duration,
}

impl LoadPlan {
    /// A load on a site by one user in a closed loop. It is measured for 10 s, after a warm-up of at most 10 s.
    pub fn of_site(http: HttpPlan) -> LoadPlan {
        LoadPlan {
            slo: http.requirements(),
            http: Some(http),
            sources: Vec::new(),
            options: Vec::new(),
            tables: 1,
            rows: 1,
            table_engine: String::new(),
            seed: 1,
            servers: Vec::new(),
            placement: None,
            users: vec![1],
            rates_per_s: Vec::new(),
            arrivals: Arrivals::Poisson,
            think: Think::None,
            stages: None,
            measure: Duration::from_secs(10),
            warmup_max: Duration::from_secs(10),
            transactions_max: None,
            reconnect_every: None,
            engine: EngineKind::Auto,
            loops: None,
            tuning: Tuning::default(),
            connections: None,
            idle_connections: 0,
            compression: false,
            client_cpus: None,
            allow_writes: None,
            find_capacity: false,
            rounds: 2,
            percentiles: Vec::new(),
        }
    }

    /// Checks everything that can be checked without a server.
    ///
    /// # Errors
    /// One sentence for the first thing that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        check_users(&self.users)?;
        check_times(self.measure, self.warmup_max)?;
        check_data_set(self.tables, self.rows)?;
        self.rates_per_s.iter().try_for_each(|rate_per_s| check_rate(*rate_per_s))?;
        self.check_pacing()?;
        self.check_engine()?;
        self.check_job()?;
        endpoint::placement(self.placement, &self.servers)?;
        let wrong = |text: &str| Err(Error::Plan(text.to_string()));
        if self.transactions_max == Some(0) {
            return wrong("--transactions 0 loads nothing: give 1 or more");
        }
        if self.reconnect_every == Some(0) {
            return wrong("--reconnect-every 0 would never begin a transaction: give 1 or more");
        }
        if self.percentiles.iter().any(|percentile| !(*percentile > 0.0 && *percentile <= 100.0)) {
            return wrong("--percentiles are above 0 and at most 100: give some such as 50,95,99,99.9");
        }
        Ok(())
    }

    fn check_pacing(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Plan(text.to_string()));
        let staged_users = self.stages.as_ref().is_some_and(|stages| stages.quantity == Quantity::Users);
        if self.stages.is_some() && !self.rates_per_s.is_empty() {
            return wrong("--stages and --rate both say when transactions are due: give one of them");
        }
        if staged_users && self.users != [1] {
            return wrong(
                "--stages says how many users are at work: leave out --users, or write rates as 500/s",
            );
        }
        if let Some(stages) = self.stages.as_ref().filter(|_| staged_users)
            && stages.profile.max() > f64::from(USERS_MAX)
        {
            let most = stages.profile.max();
            return Err(Error::Plan(format!(
                "--stages: {most} users are more than the {USERS_MAX} that one run may ask for: give fewer"
            )));
        }
        if self.is_open() && self.think != Think::None {
            return wrong(THINK_IN_OPEN_LOOP);
        }
        if self.is_open() && self.users.len() > 1 {
            return wrong(
                "with a rate, --users is the most transactions that are under way at once: give one number, and \
                 several rates for several levels",
            );
        }
        Ok(())
    }

    fn check_engine(&self) -> Result<(), Error> {
        self.tuning.check(self.engine).map_err(|error| Error::Plan(error.to_string()))?;
        let wrong = |text: &str| Err(Error::Plan(text.to_string()));
        let needs_loops = |flag: &str| {
            Err(Error::Plan(format!(
                "{flag} needs event loops, and --engine threads has none: leave out one of the two"
            )))
        };
        match (self.loops, self.connections) {
            (Some(0), _) => wrong("--loops 0 drives nothing: give 1 or more"),
            (_, Some(0)) => wrong("--connections 0 carries nothing: give 1 or more"),
            (Some(_), _) if self.engine == EngineKind::Threads => needs_loops("--loops"),
            (_, Some(_)) if self.engine == EngineKind::Threads => needs_loops("--connections"),
            _ if self.idle_connections > USERS_MAX => Err(Error::Plan(format!(
                "--idle-connections {} are more than the {USERS_MAX} that one load may hold: give fewer",
                self.idle_connections
            ))),
            _ => Ok(()),
        }
    }

    /// Levels, a search and a comparison are three different things.
    fn check_job(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Plan(text.to_string()));
        let levels = self.users.len().max(self.rates_per_s.len());
        if self.find_capacity {
            if self.slo.is_empty() {
                return wrong(
                    "--find-capacity searches the highest rate that holds a service level: give one, such as \
                              --slo p99=20ms",
                );
            }
            if self.stages.is_some()
                || self.transactions_max.is_some()
                || levels > 1
                || self.think != Think::None
            {
                return wrong(
                    "--find-capacity chooses the rates itself: leave out --stages, --transactions and --think, \
                              and give one --users and at most one --rate to begin with",
                );
            }
            if self.sources.len() > 1 {
                return wrong("--find-capacity searches for one workload: run it for each");
            }
        }
        if self.sources.len() > 2 {
            return wrong("two workloads can be run side by side, not more: compare them in pairs");
        }
        if self.sources.len() == 2 {
            if levels > 1 || self.stages.is_some() {
                return wrong(
                    "two workloads are compared at one level: give one number to --users or --rate",
                );
            }
            if !(2..=1000).contains(&self.rounds) {
                return Err(Error::Plan(format!(
                    "--rounds {} is out of range: give 2 to 1000, and 5 or more for intervals that say something",
                    self.rounds
                )));
            }
        }
        Ok(())
    }

    /// Whether transactions are due by a schedule.
    pub fn is_open(&self) -> bool {
        let staged = self.stages.as_ref().is_some_and(|stages| stages.quantity == Quantity::PerSecond);
        staged || !self.rates_per_s.is_empty() || self.find_capacity
    }

    /// The workloads, checked against the data set.
    pub(super) fn workloads(&self) -> Result<Vec<Workload>, Error> {
        let around = WorkloadContext {
            options: &self.options,
            tables: self.tables,
            rows: self.rows,
            servers: &self.servers,
            allow_writes: self.allow_writes.as_deref(),
        };
        self.sources.iter().map(|source| source.workload(&around)).collect()
    }

    /// Connections that a server must allow.
    pub(super) fn connections_max(&self) -> u32 {
        let each = self.connections.unwrap_or(self.users_max());
        each * self.sources.len() as u32 + self.idle_connections
    }

    fn users_max(&self) -> u32 {
        let staged = self.stages.as_ref().filter(|stages| stages.quantity == Quantity::Users);
        let staged = staged.map_or(0, |stages| stages.profile.max() as u32);
        self.users.iter().copied().max().unwrap_or(1).max(staged)
    }

    pub(super) fn load_spec(
        &self,
        targets: Vec<Target>,
        weights: &[u32],
        placement: Placement,
        cpus: Option<Vec<u32>>,
    ) -> LoadSpec {
        let endpoints: Vec<Endpoint> =
            targets.into_iter().zip(weights).map(|(target, &weight)| Endpoint { target, weight }).collect();
        let mut spec = LoadSpec {
            placement,
            users_max: self.users_max(),
            seed: self.seed,
            cpus,
            engine: self.engine,
            loops: self.loops,
            tuning: self.tuning,
            connections: self.connections,
            idle_connections: self.idle_connections,
            compression: self.compression,
            endpoints,
            limits: Limits::default(),
        };
        // Where there is another endpoint to go to, one that fails is left and rejoined.
        if spec.endpoints.len() > 1 {
            spec.limits.reconnect = RECONNECT_TIME_MAX;
        }
        spec
    }

    /// The levels in their order.
    pub(crate) fn levels(&self) -> Vec<LevelPlan> {
        if let Some(stages) = &self.stages {
            let rate = stages.profile.clone();
            let pacing = match stages.quantity {
                Quantity::Users => Pacing::Closed { think: self.think, active: Some(rate) },
                Quantity::PerSecond => Pacing::Open { arrivals: self.arrivals, rate },
            };
            return vec![LevelPlan {
                spec: self.level_spec(self.users_max(), pacing),
                measure: stages.length,
                warmup_max: Duration::ZERO,
            }];
        }
        if self.rates_per_s.is_empty() {
            let closed = |&users: &u32| self.level(users, Pacing::Closed { think: self.think, active: None });
            return self.users.iter().map(closed).collect();
        }
        self.rates_per_s.iter().map(|&rate_per_s| self.level_at_rate(rate_per_s)).collect()
    }

    pub(super) fn level_at_rate(&self, rate_per_s: f64) -> LevelPlan {
        let rate = Profile::constant(rate_per_s);
        self.level(self.users_max(), Pacing::Open { arrivals: self.arrivals, rate })
    }

    pub(super) fn level(&self, users: u32, pacing: Pacing) -> LevelPlan {
        // So that the number that was asked for is the number that is measured.
        let warmup_max = if self.transactions_max.is_some() { Duration::ZERO } else { self.warmup_max };
        LevelPlan { spec: self.level_spec(users, pacing), measure: self.measure, warmup_max }
    }

    fn level_spec(&self, users: u32, pacing: Pacing) -> LevelSpec {
        LevelSpec {
            users,
            pacing,
            transactions_max: self.transactions_max,
            reconnect_every: self.reconnect_every,
            finishes_transactions: false,
            begins_within: Duration::ZERO,
            loops: None,
        }
    }
}
