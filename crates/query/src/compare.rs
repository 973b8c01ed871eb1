//! Recordings for comparison: two sides of them, or many in order of time. What is in a recording goes to
//! [`whyso_explain::comparison`], which judges it.

use std::path::{Path, PathBuf};

use whyso_explain::comparison::{
    self, At, Comparison, FactOf, Facts, History, LevelValue, Metric, MetricValue, Run, Values,
};
use whyso_explain::model::{Counter, Gauge, LevelInput};
use whyso_record::Recording;
use whyso_record::data::SeriesKey;
use whyso_record::run::{Level, LevelResult, Purpose, RunEnd, RunInfo};
use whyso_record::{LoadedRun, load_run, load_runs};

use crate::Error;
use crate::evidence::{judge_alone, level_input};
use crate::level_series::add_chosen;

/// Sources of series that say what the load and the watching did, and not the server.
const NOT_THE_SERVERS: [&str; 3] = ["load", "watch", "recorder"];

/// How two sides of recordings are to be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareBy {
    pub metric: Metric,
    /// Smallest difference that is worth knowing.
    pub matters_percent: f64,
    /// Also where workload or data set differ.
    pub anyway: bool,
}

/// Compares the second side with the first, each recording being one fresh start.
///
/// # Errors
/// The runs are not comparable, one is named twice, they have no level in common, or a recording can't be read.
pub fn compare(first: &[Recording], second: &[Recording], by: CompareBy) -> Result<Comparison, Error> {
    check_matters(by.matters_percent)?;
    let mut ids: Vec<&str> =
        first.iter().chain(second).map(|recording| recording.run().id.as_str()).collect();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::WrongUse(format!(
            "run {} is named twice: each run is one start, and counts once",
            twice[0]
        )));
    }
    let runs = |side: &[Recording], metric: Metric| -> Vec<Run> {
        side.iter().map(|recording| run_of(recording.run(), metric)).collect()
    };
    let (ours, theirs) = (runs(first, by.metric), runs(second, by.metric));
    if let Some(why) = comparison::incomparable(&ours, &theirs).filter(|_| !by.anyway) {
        return Err(Error::WrongUse(why));
    }
    let mut compared = comparison::compare(&ours, &theirs, by.metric, by.matters_percent);
    if compared.rows.is_empty() {
        return Err(Error::WrongUse(format!(
            "these runs can't be compared: both sides need a level of the same users or rate at which {} was measured",
            by.metric
        )));
    }
    let throughput = |side: &[Recording]| runs(side, Metric::TransactionsPerS);
    if let Some(at) = comparison::best_level(&throughput(first), &throughput(second)) {
        let pairs = comparison::pairs_in_time(&ours, &theirs);
        let (ours, theirs) = (metrics(first, at)?, metrics(second, at)?);
        compared.metrics =
            Some(comparison::metrics_that_differ(at, &ours, &theirs, Values::of_pairs(pairs.as_deref())));
    }
    Ok(compared)
}

/// Recordings in order of time, by what must be equal, with the changes for good. `users`: only that number.
///
/// # Errors
/// A percentage that makes no sense, or no run has such a level.
pub fn history(
    runs: &[RunInfo],
    users: Option<u32>,
    metric: Metric,
    matters_percent: f64,
) -> Result<History, Error> {
    check_matters(matters_percent)?;
    let mut ids: Vec<&str> = Vec::new();
    let mut runs_of_history: Vec<Run> = Vec::new();
    for run in runs {
        // A run that is named twice, as by its folder and in another, is still one start.
        if !ids.contains(&run.id.as_str()) {
            ids.push(&run.id);
            runs_of_history.push(run_of(run, metric));
        }
    }
    let found = comparison::history(&runs_of_history, users, metric, matters_percent);
    if found.groups.is_empty() {
        let of_users = users.map_or(String::new(), |users| format!(" at {users} users"));
        return Err(Error::WrongUse(format!(
            "in none of these {} runs {metric} was measured{of_users}",
            runs_of_history.len()
        )));
    }
    Ok(found)
}

/// The runs that are meant by a path: the recordings in a folder of them, or the one that it is.
///
/// # Errors
/// It can't be read.
pub fn runs_at(path: &Path) -> Result<Vec<LoadedRun>, Error> {
    let loaded = load_runs(path)?;
    if !loaded.is_empty() {
        return Ok(loaded);
    }
    let run = load_run(path);
    run.map(|run| vec![run]).ok_or_else(|| Error::WrongUse(format!("{} holds no run", path.display())))
}

pub(crate) fn check_matters(percent: f64) -> Result<(), Error> {
    if !(0.0..=1000.0).contains(&percent) {
        return Err(Error::WrongUse(format!(
            "--matters {percent} makes no sense: give per cent from 0 to 1000"
        )));
    }
    Ok(())
}

fn run_of(run: &RunInfo, metric: Metric) -> Run {
    let swept = run.levels.iter().filter(|level| level.purpose == Purpose::Sweep);
    let wall = |anchor: Option<&whyso_clock::Anchor>| anchor.map_or(0, |anchor| anchor.wall_ns);
    Run {
        id: run.id.clone(),
        begin_ns: wall(run.anchors.first()),
        end_ns: wall(run.anchors.last()),
        facts: facts(run),
        levels: swept.map(|level| measured(level, metric)).collect(),
    }
}

fn at(level: &Level) -> At {
    At { users: level.users, rate_per_s: level.result.rate_per_s }
}

fn measured(level: &Level, metric: Metric) -> LevelValue {
    let invalid_why = match (judge_alone(level).invalid_why, &level.ended) {
        (invalid_why, RunEnd::CutShort { why, .. }) if invalid_why.is_empty() => format!("cut short: {why}"),
        (invalid_why, _) => invalid_why,
    };
    let value = if level.result.transactions == 0 { 0.0 } else { value(&level.result, metric) };
    LevelValue { at: at(level), value, invalid_why }
}

fn value(result: &LevelResult, metric: Metric) -> f64 {
    match metric {
        Metric::TransactionsPerS => result.transactions_per_s,
        Metric::QueriesPerS => result.queries_per_s,
        Metric::LatencyMeanMs => result.latency_ms.mean,
        Metric::LatencyP95Ms => result.latency_ms.p95,
        Metric::LatencyP99Ms => result.latency_ms.p99,
    }
}

/// What was set and found, without what is another at every start by itself.
pub(crate) fn facts(run: &RunInfo) -> Facts {
    let mut facts = Facts::new();
    let mut add = |of: FactOf, name: &str, value: String| {
        if !value.is_empty() {
            facts.insert((of, name.to_string()), value);
        }
    };
    let spec = &run.spec;
    let workload = spec.workload.clone().unwrap_or_default();
    add(FactOf::Work, "workload", workload.clone());
    add(FactOf::Work, "tables", number(spec.tables));
    add(FactOf::Work, "rows", number(spec.rows));
    let mut options = spec.options.clone();
    options.sort();
    add(FactOf::Work, "workload options", options.join(" "));
    // What whyso's own send follows from their name and options, however a version words it.
    if whyso_workload::Workload::builtin(&workload, &whyso_workload::Options::default()).is_err() {
        add(FactOf::Work, "workload text", spec.describe.clone().unwrap_or_default());
    }
    // Levels differ by their rates.
    add(FactOf::Work, "pacing", spec.pacing.as_ref().map_or(String::new(), whyso_words::pacing_without_rate));
    add(FactOf::Plan, "seconds of a level", number(spec.seconds));
    add(FactOf::Plan, "seconds of warm-up at most", number(spec.warmup_seconds_max));
    add(FactOf::Plan, "engine", spec.engine_asked.clone().unwrap_or_default());
    add(FactOf::Plan, "event loops", number(spec.loops_asked));
    add(FactOf::Plan, "interval ms", number(spec.interval_ms));
    add(FactOf::Plan, "seed", number(spec.seed));
    add(FactOf::Plan, "CPUs of the server", numbers(&spec.server_cpus));
    add(FactOf::Plan, "CPUs of the load", numbers(&spec.client_cpus));
    add(FactOf::Plan, "Performance Schema", run.performance_schema().unwrap_or_default());
    add(FactOf::Plan, "whyso", run.tool_version.clone());
    let server = &run.server;
    add(FactOf::Server, "flavor", server.flavor.clone());
    add(FactOf::Server, "version", server.version.clone());
    add(FactOf::Server, "build", server.version_comment.clone());
    let host = &run.host;
    for (name, value) in [
        ("hostname", &host.hostname),
        ("kernel", &host.kernel),
        ("OS", &host.os),
        ("CPU model", &host.cpu_model),
        ("clock source", &host.clocksource),
        ("virtualization", &host.virtualization),
        ("file system of the data", &host.data_filesystem),
    ] {
        add(FactOf::Host, name, value.clone());
    }
    add(FactOf::Host, "logical CPUs", host.logical_cpus.to_string());
    add(FactOf::Host, "memory bytes", host.memory_bytes.to_string());
    for (name, value) in &host.other {
        add(FactOf::Host, name, value.clone());
    }
    let own_folder = own_folder(run);
    for (name, value) in server.variables.iter().filter(|(name, _)| !is_of_one_start(name)) {
        let value = own_folder.as_ref().map_or_else(|| value.clone(), |folder| value.replace(folder, "…"));
        add(FactOf::Variable, name, value);
    }
    facts
}

/// Returns a number of the plan as text, a whole one of seconds as "20.0"; empty where it is absent.
fn number(value: Option<impl std::fmt::Debug>) -> String {
    value.map_or(String::new(), |value| format!("{value:?}"))
}

/// Returns numbers with blanks between.
fn numbers(list: &[u32]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The folder that whyso created for a throw-away server, which is another one each time.
fn own_folder(run: &RunInfo) -> Option<String> {
    let data = PathBuf::from(run.server.variables.get("datadir")?);
    let folder = data.parent().filter(|folder| run.server.throw_away && folder.components().count() > 1)?;
    Some(folder.to_string_lossy().into_owned())
}

/// Variables that name one start of a server or its place, are a reading, or are reported elsewhere.
fn is_of_one_start(name: &str) -> bool {
    const NAMES: [&str; 18] = [
        "admin_port",
        "error_count",
        "hostname",
        "identity",
        "innodb_buffer_pool_load_now",
        "insert_id",
        "last_gtid",
        "last_insert_id",
        "mysqlx_port",
        "port",
        "report_port",
        "server_uid",
        "server_uuid",
        "timestamp",
        "version",
        "version_comment",
        "warning_count",
        "wsrep_last_written_gtid",
    ];
    let begins = ["gtid_", "pseudo_", "rand_seed"];
    NAMES.contains(&name) || begins.iter().any(|begin| name.starts_with(begin))
}

/// Of each recording, what the server and its machine did at the level of `at`; the first, where there are several.
fn metrics(side: &[Recording], at_level: At) -> Result<Vec<Vec<MetricValue>>, Error> {
    side.iter()
        .map(|recording| {
            let is_it = |level: &&Level| level.purpose == Purpose::Sweep && at(level) == at_level;
            let Some(level) = recording.run().levels.iter().find(is_it) else { return Ok(Vec::new()) };
            let mut inputs = [level_input(level)];
            add_chosen(recording, &mut inputs, is_the_servers)?;
            let [input] = inputs;
            Ok(values(input))
        })
        .collect()
}

/// Whether a series is about what the server or its machine did.
pub(crate) fn is_the_servers(key: &SeriesKey) -> bool {
    key.host != "client" && !NOT_THE_SERVERS.contains(&key.source.as_str())
}

/// By transaction, or by second where none was counted.
pub(crate) fn values(input: LevelInput) -> Vec<MetricValue> {
    let per_second = input.transactions == 0;
    let by = match per_second {
        true => (input.end_ns - input.begin_ns) as f64 / 1e9,
        false => input.transactions as f64,
    };
    let of_counter = |counter: Counter| MetricValue {
        series: counter.series,
        unit: counter.unit,
        value: counter.increase / by,
        count: Some(counter.increase),
        per_second,
    };
    let of_gauge = |gauge: Gauge| MetricValue {
        series: gauge.series,
        unit: gauge.unit,
        value: gauge.mean,
        count: None,
        per_second: false,
    };
    let gauges = input.gauges.into_iter().map(of_gauge);
    input.counters.into_iter().map(of_counter).chain(gauges).collect()
}

#[cfg(test)]
mod tests {
    use whyso_model::{ArrivalRate, Arrivals, Pacing, RunSpec};

    use super::*;

    fn recorded(pairs: &[(&str, &str)]) -> RunInfo {
        let mut run = RunInfo {
            spec: RunSpec {
                workload: Some("oltp-read-write".to_string()),
                tables: Some(2),
                rows: Some(1000),
                options: vec!["b=2".to_string(), "a=1".to_string()],
                pacing: Some(Pacing::Open {
                    rate: ArrivalRate::PerSecond(500.0),
                    arrivals: Arrivals::Poisson,
                }),
                seconds: Some(20.0),
                server_cpus: vec![0, 1],
                ..RunSpec::default()
            },
            ..RunInfo::default()
        };
        run.server.throw_away = true;
        run.server.variables =
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        run
    }

    #[test]
    fn facts_are_those_that_a_start_does_not_change_by_itself() {
        let of_start = |folder: &str, port: &str| {
            let socket = format!("{folder}/s");
            let data = format!("{folder}/data/");
            recorded(&[
                ("datadir", &data),
                ("socket", &socket),
                ("port", port),
                ("server_uid", port),
                ("sync_binlog", "0"),
            ])
        };
        let (first, second) =
            (facts(&of_start("/var/tmp/a1", "4000")), facts(&of_start("/var/tmp/b22", "4001")));
        assert_eq!(first, second);
        let mut own_sql = of_start("/var/tmp/a1", "4000");
        own_sql.spec.describe = Some("shop: SELECT 1".to_string());
        assert_eq!(facts(&own_sql), first, "what a built-in workload sends follows from its name");
        own_sql.spec.workload = Some("shop".to_string());
        assert!(facts(&own_sql).contains_key(&(FactOf::Work, "workload text".to_string())));
        let of = |of: FactOf, name: &str| first.get(&(of, name.to_string())).map(String::as_str);
        assert_eq!(of(FactOf::Variable, "datadir"), Some("…/data/"));
        assert_eq!(of(FactOf::Variable, "sync_binlog"), Some("0"));
        assert_eq!(of(FactOf::Work, "workload options"), Some("a=1 b=2"));
        assert_eq!(of(FactOf::Work, "pacing"), Some("open loop, poisson"));
        assert_eq!(of(FactOf::Plan, "CPUs of the server"), Some("0 1"));
        assert_eq!(of(FactOf::Plan, "seconds of a level"), Some("20.0"));
        assert_eq!((of(FactOf::Plan, "event loops"), of(FactOf::Work, "rows")), (None, Some("1000")));
    }

    #[test]
    fn of_a_level_without_transactions_nothing_was_measured() {
        let mut level = Level {
            index: 0,
            users: 8,
            purpose: Purpose::Sweep,
            warmup: whyso_record::run::Window::default(),
            warmup_steady: true,
            window: whyso_record::run::Window { begin_ns: 0, end_ns: 10_000_000_000 },
            result: LevelResult {
                transactions: 100,
                transactions_per_s: 10.0,
                queries_per_s: 200.0,
                ..LevelResult::default()
            },
            ended: RunEnd::Complete { at_ns: 1 },
        };
        level.result.latency_ms.p99 = 7.0;
        let values = |level: &Level| Metric::ALL.map(|metric| measured(level, metric).value);
        assert_eq!(values(&level), [10.0, 200.0, 0.0, 0.0, 7.0]);
        assert_eq!(measured(&level, Metric::TransactionsPerS).invalid_why, "");
        level.ended = RunEnd::CutShort { at_ns: 1, why: "Ctrl-C".to_string() };
        assert_eq!(measured(&level, Metric::TransactionsPerS).invalid_why, "cut short: Ctrl-C");
        level.result.transactions = 0;
        assert_eq!(values(&level), [0.0; 5]);
        assert!(!measured(&level, Metric::TransactionsPerS).invalid_why.is_empty());
    }
}
