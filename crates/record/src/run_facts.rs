//! What a list of runs shows of each one, and searches in.

use serde::{Deserialize, Serialize};

use crate::run::{Purpose, RunEnd, RunInfo};

/// Levels whose throughput a list shows.
const LEVELS_MAX: usize = 64;

/// Facts about a run: a small part of its [`RunInfo`].
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunFacts {
    /// As the plan names it.
    pub workload: Option<String>,
    /// The word after the program's name in the command line.
    pub subcommand: Option<String>,
    /// What the watched processes are called, if they are no server's.
    pub process: Option<String>,
    pub flavor: String,
    pub server_version: String,
    pub hostname: String,
    /// See [`RunInfo::performance_schema`].
    pub performance_schema: Option<String>,
    /// Wall time in nanoseconds. `None`: not recorded.
    pub began_wall_ns: Option<i64>,
    /// Nanoseconds from the first anchor to the last.
    pub length_ns: Option<i64>,
    /// See [`RunInfo::is_recorded`].
    pub is_recorded: bool,
    pub swept_levels: usize,
    /// Transactions per second of each level of the sweep, in order.
    #[serde(with = "exact_list")]
    pub per_s: Vec<f64>,
    /// See [`RunInfo::best_level`].
    pub best: Option<BestLevel>,
    /// `None` during the run, and after a crash.
    pub ended: Option<RunEnd>,
    /// What was set by the user's own wish, as "name=value".
    #[serde(default)]
    pub set: Vec<String>,
    /// What else of the plan decides what a level does: two runs with the same text sent the same load.
    #[serde(default)]
    pub plan: String,
}

/// The sweep's level with the highest throughput.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BestLevel {
    pub users: u32,
    pub transactions: u64,
    /// Length of the measured window.
    #[serde(with = "exact")]
    pub seconds: f64,
    #[serde(with = "exact")]
    pub transactions_per_s: f64,
    #[serde(with = "exact")]
    pub latency_p95_ms: f64,
    /// Transactions that were due per second. `None` in a closed loop.
    #[serde(with = "exact_option")]
    pub rate_per_s: Option<f64>,
}

impl RunFacts {
    pub(crate) fn of(run: &RunInfo) -> RunFacts {
        let (first, last) = (run.anchors.first(), run.anchors.last());
        RunFacts {
            workload: run.spec.workload.clone(),
            subcommand: run.command.get(1).cloned(),
            process: run.process().map(str::to_string),
            flavor: run.server.flavor.clone(),
            server_version: run.server.version.clone(),
            hostname: run.host.hostname.clone(),
            performance_schema: run.performance_schema(),
            began_wall_ns: first.map(|anchor| anchor.wall_ns),
            length_ns: first
                .zip(last)
                .map(|(first, last)| last.monotonic_ns.saturating_sub(first.monotonic_ns)),
            is_recorded: run.is_recorded(),
            swept_levels: run.levels.iter().filter(|level| level.purpose == Purpose::Sweep).count(),
            per_s: run
                .levels
                .iter()
                .filter(|level| level.purpose == Purpose::Sweep)
                .map(|level| level.result.transactions_per_s)
                .take(LEVELS_MAX)
                .collect(),
            best: run.best_level().map(|level| BestLevel {
                users: level.users,
                transactions: level.result.transactions,
                seconds: level.result.seconds,
                transactions_per_s: level.result.transactions_per_s,
                latency_p95_ms: level.result.latency_ms.p95,
                rate_per_s: level.result.rate_per_s,
            }),
            ended: run.ended.clone(),
            plan: plan_words(run),
            set: run
                .spec
                .settings
                .iter()
                .filter(|setting| setting.is_asked())
                .map(|setting| format!("{}={}", setting.name, setting.value))
                .collect(),
        }
    }
}

fn plan_words(run: &RunInfo) -> String {
    let spec = &run.spec;
    format!(
        "options {:?}, tables {:?}, rows {:?}, engine {:?}, users {:?}, rates {:?}, pacing {:?}, cold {}, CPUs {:?}",
        spec.options,
        spec.tables,
        spec.rows,
        spec.table_engine,
        spec.users,
        spec.rates_per_s,
        spec.pacing,
        spec.cold,
        spec.server_cpus,
    )
}

/// Numbers as their bits: a decimal text may come back as the number next to it.
mod exact {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

mod exact_list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        Ok(Vec::<u64>::deserialize(deserializer)?.into_iter().map(f64::from_bits).collect())
    }
}

mod exact_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(f64::to_bits).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(f64::from_bits))
    }
}
