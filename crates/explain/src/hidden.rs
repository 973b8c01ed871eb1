//! Sources that are hidden when a recording is read, as if they had been absent when it was taken. One recording then shows what whyso
//! names with and without them.
//!
//! Two things can't be undone: what a source cost the server while it was there, and what other samplers learned from it. The process
//! list's sampler, for one, finds waits for rows in MySQL 8's Performance Schema and counts them by state.

use std::str::FromStr;
use whyso_model::{LockKind, Missing, NotMeasured};

use crate::locks;
use crate::model::{Input, LevelInput, LockObject, Part, SeriesName};

const PERFORMANCE_SCHEMA: &str = "the Performance Schema's counts, such as waits for one mutex";
const HIDDEN: &str = "hidden by --without";

/// Names that the command line takes, with what they stand for.
const NAMES: [(&str, Source); 4] = [
    ("tracer", Source::Tracer),
    ("stacks", Source::Stacks),
    ("waits", Source::WaitStacks),
    ("pfs", Source::PerformanceSchema),
];

/// Sources about taking stacks, those of other programs included.
const OF_STACKS: [&str; 4] = ["stacks", "program_stacks", "program_waits", "programs"];
/// Series that only the tracer records.
const OF_TRACER: [&str; 9] =
    ["trace", "threads", "appliers", "tier", "upstream", "file_waits", "pauses", "trace_cost", "sql"];
/// What only a run with a tracer reports as not measured.
const MISSING_OF_TRACER: [Missing; 4] =
    [Missing::ServerThreads, Missing::Requests, Missing::Commands, Missing::ThreadConnections];
/// The same of a run with stacks.
const MISSING_OF_STACKS: [Missing; 3] = [Missing::Stacks, Missing::WaitStacks, Missing::ThreadStacks];

/// Something that whyso reads while a server runs, and may lack elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The kernel's programs that follow requests and threads. Without it there are no stacks either.
    Tracer,
    /// Sampled stacks.
    Stacks,
    /// Stacks of threads that wait, which only `--stacks` samples.
    WaitStacks,
    PerformanceSchema,
}

/// A text that names no [`Source`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no source that can be hidden: give any of {names}, separated by commas", names = source_names())]
pub struct UnknownSource(String);

fn source_names() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}

impl FromStr for Source {
    type Err = UnknownSource;

    fn from_str(text: &str) -> Result<Source, UnknownSource> {
        let found = NAMES.iter().find(|(name, _)| *name == text.trim());
        found.map(|(_, source)| *source).ok_or_else(|| UnknownSource(text.to_string()))
    }
}

/// Returns the input as a recording without these sources would give it.
pub fn without(input: Input, hidden: &[Source]) -> Input {
    hidden.iter().fold(input, |input, source| match source {
        Source::Tracer => without_tracer(input),
        Source::Stacks => without_stacks(input),
        Source::WaitStacks => without_wait_stacks(input),
        Source::PerformanceSchema => without_performance_schema(input),
    })
}

fn without_tracer(input: Input) -> Input {
    let mut input = without_stacks(input);
    for level in &mut input.levels {
        drop_series(level, |series| OF_TRACER.contains(&series.source.as_str()));
        level.file_waits.clear();
        level.program_file_waits.clear();
        level.pauses.clear();
    }
    drop_missing(&mut input, |source| MISSING_OF_TRACER.contains(&source));
    input.not_measured.push(NotMeasured::server_threads(HIDDEN));
    input
}

fn without_stacks(mut input: Input) -> Input {
    for level in &mut input.levels {
        drop_series(level, |series| OF_STACKS.contains(&series.source.as_str()));
        level.wait_classes.clear();
        level.activities.clear();
        level.ended_waits.clear();
    }
    drop_missing(&mut input, |source| MISSING_OF_STACKS.contains(&source));
    input.not_measured.push(NotMeasured::stacks());
    input
}

fn without_wait_stacks(mut input: Input) -> Input {
    for level in &mut input.levels {
        level.wait_classes.retain(|class| class.state == Part::Cpu.name());
        level.ended_waits.clear();
    }
    drop_missing(&mut input, |source| source == Missing::WaitStacks);
    if input.not_measured.iter().all(|line| line.source != Missing::Stacks) {
        input.not_measured.push(NotMeasured::wait_stacks());
    }
    input
}

fn without_performance_schema(mut input: Input) -> Input {
    let has_row_locks = keeps_row_locks_in_performance_schema(&input);
    for level in &mut input.levels {
        drop_series(level, is_of_performance_schema);
        level.lock_objects.retain(|object| object.kind != LockKind::Row || !has_row_locks);
        level.lock_objects.iter_mut().filter(|object| object.kind != LockKind::Row).for_each(forget_object);
        // Its lock tables are still read, and empty.
        let is_row_waits = |series: &SeriesName| series.source == locks::SOURCE && series.instance == "row";
        for gauge in level.gauges.iter_mut().filter(|gauge| has_row_locks && is_row_waits(&gauge.series)) {
            (gauge.mean, gauge.max) = (0.0, 0.0);
        }
    }
    drop_missing(&mut input, Missing::is_of_performance_schema);
    input.not_measured.push(NotMeasured::new(Missing::PerformanceSchema, PERFORMANCE_SCHEMA, HIDDEN));
    input.performance_schema = None;
    input.performance_schema_lost.clear();
    if let Some(value) = input.variables.get_mut("performance_schema") {
        *value = "OFF".to_string();
    }
    input
}

fn is_of_performance_schema(series: &SeriesName) -> bool {
    let is_count_of_lost =
        series.source == "status" && series.metric.to_lowercase().starts_with("performance_schema_");
    let is_cost = series.source == "watch" && series.instance.starts_with("pfs");
    series.source.starts_with("pfs") || is_count_of_lost || is_cost
}

/// The process list names a wait for a lock of the SQL layer, and not what is locked or by whom.
fn forget_object(object: &mut LockObject) {
    object.object.clear();
    object.index.clear();
    object.blocking_statement = None;
    object.blocking_share = 0.0;
}

/// MySQL 8 and later; MariaDB and older MySQL have `information_schema.INNODB_LOCKS`.
fn keeps_row_locks_in_performance_schema(input: &Input) -> bool {
    let version = input.variables.get("version").map_or("", String::as_str);
    let major: u32 = version.split('.').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    !version.to_lowercase().contains("mariadb") && major >= 8
}

fn drop_series(level: &mut LevelInput, is_hidden: impl Fn(&SeriesName) -> bool) {
    level.counters.retain(|counter| !is_hidden(&counter.series));
    level.gauges.retain(|gauge| !is_hidden(&gauge.series));
    for node in &mut level.nodes {
        node.counters.retain(|counter| !is_hidden(&counter.series));
        node.gauges.retain(|gauge| !is_hidden(&gauge.series));
    }
}

fn drop_missing(input: &mut Input, is_hidden: impl Fn(Missing) -> bool) {
    input.not_measured.retain(|line| !is_hidden(line.source));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Counter, EndedWaits, FileWait, Gauge, PfsSetup, SampledClass};
    use crate::pauses::Pauses;

    fn series(source: &str, metric: &str, instance: &str) -> SeriesName {
        SeriesName {
            host: "server".to_string(),
            source: source.to_string(),
            metric: metric.to_string(),
            instance: instance.to_string(),
        }
    }

    fn object(kind: LockKind) -> LockObject {
        LockObject {
            kind,
            object: "shop.orders".to_string(),
            blocking_statement: Some("COMMIT".to_string()),
            samples: 30,
            share: 1.0,
            ..LockObject::default()
        }
    }

    /// A level of a MySQL server of which every source was read.
    fn full() -> Input {
        let counted = [
            ("trace", "request_ns", ""),
            ("threads", "cpu_ns", "connection"),
            ("trace_cost", "tracer_cpu_ns", ""),
            ("stacks", "cpu_ns", ""),
            ("pfs_file_types", "read_ns", "innodb_data_file"),
            ("watch", "cpu_ns", "pfs_files"),
            ("watch", "cpu_ns", "status"),
            ("status", "Performance_schema_digest_lost", ""),
            ("status", "Questions", ""),
            ("sessions", "looks", ""),
        ];
        let counter = |(source, metric, instance)| Counter {
            series: series(source, metric, instance),
            unit: "1".to_string(),
            increase: 5.0,
        };
        let gauge = |(source, metric, instance)| Gauge {
            series: series(source, metric, instance),
            unit: "1".to_string(),
            mean: 1.0,
            max: 2.0,
        };
        let level = LevelInput {
            counters: counted.map(counter).to_vec(),
            gauges: [
                ("trace_cost", "counting_ns", ""),
                ("lock_waits", "waiting", "row"),
                ("lock_waits", "waiting", "user"),
            ]
            .map(gauge)
            .to_vec(),
            file_waits: vec![FileWait::default()],
            pauses: vec![Pauses::default()],
            wait_classes: vec![SampledClass {
                state: "lock".to_string(),
                class: "row lock".to_string(),
                count: 30,
                ns: 1e9,
                seen_ns: 0.0,
            }],
            ended_waits: vec![EndedWaits { class: String::new(), count: 1, ns: 1.0, deeds: Vec::new() }],
            lock_objects: vec![object(LockKind::Row), object(LockKind::Metadata)],
            ..LevelInput::default()
        };
        Input {
            levels: vec![level],
            not_measured: vec![
                NotMeasured::new(
                    Missing::ThreadConnections,
                    "the connections of 3 of the 4 threads",
                    "none named",
                ),
                NotMeasured::new(Missing::InstrumentWaits, "waits by instrument", "wait/synch is off"),
                NotMeasured::new(Missing::RowLockWaits, "who waits for whom in row locks; grant PROCESS", ""),
                NotMeasured::new(Missing::Other, "the disk", ""),
                NotMeasured::wait_stacks(),
            ],
            variables: [("performance_schema", "ON"), ("version", "9.7.4-2")]
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .into(),
            performance_schema: Some(PfsSetup::default()),
            performance_schema_lost: [("Performance_schema_digest_lost".to_string(), 3.0)].into(),
            ..Input::default()
        }
    }

    fn sources(input: &Input) -> Vec<&str> {
        let level = &input.levels[0];
        let counters = level.counters.iter().map(|counter| counter.series.source.as_str());
        counters.chain(level.gauges.iter().map(|gauge| gauge.series.source.as_str())).collect()
    }

    #[test]
    fn nothing_is_changed_where_nothing_is_hidden() {
        assert_eq!(without(full(), &[]), full());
    }

    #[test]
    fn without_stacks_the_counts_of_the_tracer_stay() {
        let input = without(full(), &[Source::Stacks]);
        let level = &input.levels[0];
        assert!(level.wait_classes.is_empty() && level.ended_waits.is_empty());
        assert_eq!((level.file_waits.len(), level.pauses.len(), level.lock_objects.len()), (1, 1, 2));
        assert!(!sources(&input).contains(&"stacks") && sources(&input).contains(&"trace"));
        assert_eq!(input.not_measured.last(), Some(&NotMeasured::stacks()));
        assert!(!input.not_measured.contains(&NotMeasured::wait_stacks()));
    }

    #[test]
    fn without_the_stacks_of_waits_those_of_threads_on_cpus_stay() {
        let mut full = full();
        let on_cpu =
            SampledClass { state: Part::Cpu.name().to_string(), ..full.levels[0].wait_classes[0].clone() };
        full.levels[0].wait_classes.push(on_cpu.clone());
        let input = without(full, &[Source::WaitStacks]);
        let level = &input.levels[0];
        assert_eq!(level.wait_classes, [on_cpu]);
        assert!(level.ended_waits.is_empty() && sources(&input).contains(&"stacks"));
        assert_eq!(input.not_measured.last(), Some(&NotMeasured::wait_stacks()));
        assert_eq!(input.not_measured.iter().filter(|line| line.source == Missing::WaitStacks).count(), 1);
    }

    #[test]
    fn without_a_tracer_there_are_no_stacks_and_the_servers_own_counts_stay() {
        let input = without(full(), &[Source::Tracer]);
        let level = &input.levels[0];
        assert!(level.wait_classes.is_empty() && level.file_waits.is_empty() && level.pauses.is_empty());
        let left =
            ["pfs_file_types", "watch", "watch", "status", "status", "sessions", "lock_waits", "lock_waits"];
        assert_eq!(sources(&input), left);
        let missing: Vec<Missing> = input.not_measured[3..].iter().map(|line| line.source).collect();
        assert_eq!(missing, [Missing::Stacks, Missing::ServerThreads]);
        let line = input.not_measured.last().map(ToString::to_string);
        assert_eq!(line.as_deref(), Some("the time of the server's threads: hidden by --without"));
        assert!(input.not_measured.iter().all(|line| line.source != Missing::ThreadConnections));
    }

    #[test]
    fn without_the_performance_schema_its_lock_tables_are_empty_where_the_server_has_no_others() {
        let input = without(full(), &[Source::PerformanceSchema]);
        let left = "trace threads trace_cost stacks watch status sessions trace_cost lock_waits lock_waits";
        assert_eq!(sources(&input).join(" "), left);
        let waiting = |input: &Input| input.levels[0].gauges[1].max;
        assert_eq!(waiting(&input), 0.0);
        let objects: Vec<(&str, &str)> = input.levels[0]
            .lock_objects
            .iter()
            .map(|object| (object.kind.name(), object.object.as_str()))
            .collect();
        assert_eq!(objects, [("metadata", "")]);
        assert_eq!((input.performance_schema, input.performance_schema_lost.len()), (None, 0));
        assert_eq!(input.variables["performance_schema"], "OFF");
        let count = |source| input.not_measured.iter().filter(|line| line.source == source).count();
        assert_eq!(
            (count(Missing::InstrumentWaits), count(Missing::RowLockWaits), count(Missing::Other)),
            (0, 1, 1)
        );

        let mut mariadb = full();
        mariadb.variables.insert("version".to_string(), "11.4.5-MariaDB".to_string());
        let input = without(mariadb, &[Source::PerformanceSchema]);
        assert_eq!(input.levels[0].lock_objects[0], object(LockKind::Row));
        assert_eq!(waiting(&input), 2.0);
    }

    #[test]
    fn a_source_is_named_by_one_word_and_another_is_refused_with_those_that_there_are() {
        assert_eq!("pfs".parse(), Ok(Source::PerformanceSchema));
        assert_eq!(" stacks".parse(), Ok(Source::Stacks));
        let refused = "disk".parse::<Source>().unwrap_err().to_string();
        assert_eq!(
            refused,
            "'disk' is no source that can be hidden: give any of tracer, stacks, waits, pfs, separated by commas"
        );
    }
}
