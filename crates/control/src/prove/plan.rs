//! What was asked of a proof, and the load and the server that its experiments begin with.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use whyso_load::Think;
use whyso_model::{Pacing, ThinkTime};
use whyso_record::run::RunInfo;
use whyso_remedy::Cost;
use whyso_server::Neighbour;
use whyso_server::dataset::Dataset;

use crate::Error;
use crate::ab::{AbSide, SideChange};
use crate::hosts::HostsPlan;
use crate::server_plan::ServerPlan;
use crate::source::Source;

/// A recording whose suspects are to be tested.
#[derive(Clone, Debug)]
pub struct ProvePlan {
    /// Folder of the recording.
    pub recording: PathBuf,
    /// Folder in which the recording after the experiments is made.
    pub out: PathBuf,
    /// The recording's server, where it is one of the user's own.
    pub dsn: Option<String>,
    /// The user permits experiments on it.
    pub allow_experiments: bool,
    /// Longest that all experiments may take.
    pub budget: Duration,
    /// What experiments may cost.
    pub accept: Vec<Cost>,
    /// The smallest gain that matters, as a multiple of the throughput.
    pub smallest: f64,
    /// Continue with what remains until throughput is this multiple of what it was.
    pub until: Option<f64>,
    /// The user's own workload, which is not in the recording.
    pub source: Option<Source>,
    /// What the user proposes against the first suspect.
    pub own: Option<SideChange>,
    /// Programs of others that may be paused.
    pub pause: Vec<Neighbour>,
    pub allow_writes: Option<String>,
    /// Replicas whose lag ends an experiment.
    pub replicas: Vec<String>,
    /// Hosts that send the load, and the server's own.
    pub hosts: Option<HostsPlan>,
    pub command: Vec<String>,
}

impl ProvePlan {
    /// Checks everything that can be checked without a recording.
    ///
    /// # Errors
    /// One sentence for the first thing that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Plan(text));
        if !(1.0..=10.0).contains(&self.smallest) {
            return wrong(format!(
                "--smallest-gain {} is out of range: give 1 to 10, such as 1.05",
                self.smallest
            ));
        }
        if self.until.is_some_and(|until| !(until > 1.0 && until.is_finite())) {
            return wrong("--until must be above 1, such as 2x".to_string());
        }
        if !(Duration::from_secs(30)..=Duration::from_secs(86_400)).contains(&self.budget) {
            return wrong("--budget is out of range: give 30s to a day, such as 5m".to_string());
        }
        if self.dsn.is_some() && !self.allow_experiments {
            return wrong(
                "an experiment changes settings of your server for some minutes: permit it with --allow-experiments, or see what it would do \
                 with --dry-run"
                    .to_string(),
            );
        }
        Ok(())
    }

    /// A load that other hosts sent is another one where this host sends it.
    fn check_hosts(&self, run: &RunInfo) -> Result<(), Error> {
        let has_generators = self.hosts.as_ref().is_some_and(HostsPlan::has_generators);
        let sent = run.levels.iter().flat_map(|level| &level.result.generators);
        let hosts: BTreeSet<&str> = sent.map(|generator| generator.host.as_str()).collect();
        if hosts.is_empty() || has_generators {
            return Ok(());
        }
        let hosts: Vec<&str> = hosts.into_iter().collect();
        Err(Error::Plan(format!(
            "the load of {} came from {}: give --hosts with a load for each, and they send it again",
            run.id,
            hosts.join(", ")
        )))
    }

    /// The recording's load and server, as the baseline of every experiment.
    pub(super) fn baseline(&self, run: &RunInfo, users: u32) -> Result<AbSide, Error> {
        self.check_hosts(run)?;
        let baseline = baseline_of(run, users, self.source.as_ref())?;
        match &self.dsn {
            Some(dsn) => Ok(AbSide {
                server: ServerPlan::Dsn { dsn: dsn.clone(), set: asked_settings(run) },
                ..baseline
            }),
            None => Ok(AbSide { server: own_server(run)?, ..baseline }),
        }
    }
}

/// The recording's load on a server like its own, which whyso starts. `source`: where it was the user's own.
///
/// # Errors
/// The load was not whyso's, or the server was the user's.
pub(crate) fn own_baseline(run: &RunInfo, users: u32, source: Option<&Source>) -> Result<AbSide, Error> {
    Ok(AbSide { server: own_server(run)?, ..baseline_of(run, users, source)? })
}

/// Without a server yet.
fn baseline_of(run: &RunInfo, users: u32, source: Option<&Source>) -> Result<AbSide, Error> {
    let spec = &run.spec;
    if run.is_recorded() || spec.recorded {
        return Err(Error::Plan(format!(
            "{} holds a load that whyso did not drive, so it can't be repeated: record it with whyso run, or compare settings by hand with \
             whyso ab",
            run.id
        )));
    }
    if !spec.rates_per_s.is_empty() {
        return Err(Error::Plan(format!(
            "{} has an open loop, whose throughput no change can raise: run it again with --users and without --rate",
            run.id
        )));
    }
    let source =
        source.cloned().unwrap_or_else(|| Source::Builtin(spec.workload.clone().unwrap_or_default()));
    let pairs = spec.options.iter().filter_map(|option| option.split_once('='));
    let options = pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let server = ServerPlan::Dsn { dsn: String::new(), set: Vec::new() };
    Ok(AbSide {
        server,
        source,
        options,
        data: Dataset {
            tables: spec.tables.unwrap_or(1),
            rows: spec.rows.unwrap_or(1),
            seed: spec.seed.unwrap_or(1),
            engine: spec.table_engine.clone().unwrap_or_else(|| "InnoDB".to_string()),
        },
        users,
        think: think_of(spec.pacing.as_ref())?,
        set: Vec::new(),
        prepare: Vec::new(),
        left_out: Vec::new(),
        paused: Vec::new(),
        cpu_speed: None,
        storage_speed: None,
    })
}

/// The pauses of a load's users.
///
/// # Errors
/// How many are at work changes during a level.
fn think_of(pacing: Option<&Pacing>) -> Result<Think, Error> {
    match pacing {
        Some(Pacing::Closed { stages: Some(_), .. }) => Err(Error::Plan(
            "the load has stages, and an experiment needs the same load in each window: run it again with --users and without --stages".to_string(),
        )),
        Some(Pacing::Closed { think: Some(ThinkTime { mean_ms, is_exponential }), .. }) => {
            let mean = Duration::try_from_secs_f64(mean_ms / 1e3).unwrap_or(Duration::ZERO);
            Ok(if *is_exponential { Think::Exponential(mean) } else { Think::Fixed(mean) })
        }
        _ => Ok(Think::None),
    }
}

fn asked_settings(run: &RunInfo) -> Vec<(String, String)> {
    let asked = run.spec.settings.iter().filter(|setting| setting.is_asked());
    asked.map(|setting| (setting.name.clone(), setting.value.clone())).collect()
}

/// A server like the recorded one, where whyso started that.
fn own_server(run: &RunInfo) -> Result<ServerPlan, Error> {
    if !run.server.throw_away {
        return Err(Error::Plan(format!(
            "{} is of a server that whyso did not start: whyso prove tests it with --dsn and --allow-experiments",
            run.id
        )));
    }
    Ok(ServerPlan::ThrowAway {
        build: run.server.variables.get("basedir").map(PathBuf::from),
        parent: None,
        set: asked_settings(run),
        defaults_file: None,
        cpus: (!run.spec.server_cpus_words.is_empty()).then(|| cpu_list(&run.spec.server_cpus)),
        memory_bytes: None,
        is_without_quota: false,
        preload: None,
    })
}

fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
