//! What can be compared and shown of a level: numbers with a name each, from what was loaded, watched and counted.

use std::collections::BTreeMap;

use whyso_model::measures::find;

use crate::model::{LevelInput, PfsSetup};
use crate::timer::timing;

/// What a level has of them. One that was not measured, or can't be, as a share of nothing, is left out. `pfs`: how the Performance Schema
/// was set.
pub fn of(level: &LevelInput, pfs: Option<&PfsSetup>) -> BTreeMap<String, f64> {
    let seconds = (level.end_ns - level.begin_ns) as f64 / 1e9;
    let mut found = BTreeMap::new();
    if seconds <= 0.0 {
        return found;
    }
    let mut put = |name: &str, value: Option<f64>| {
        debug_assert!(find(name).is_some(), "{name}");
        if let Some(value) = value.filter(|value| value.is_finite()) {
            found.insert(name.to_string(), value);
        }
    };
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    let transactions = level.transactions as f64;
    put("transactions_per_s", Some(transactions / seconds));
    put("queries_per_s", Some(level.queries as f64 / seconds));
    if level.transactions > 0 {
        put("latency_mean_ms", Some(level.latency_mean_ms));
        put("latency_p99_ms", Some(level.latency_p99_ms));
    }
    let failed = level.errors as f64;
    put("errors_percent", share(100.0 * failed, transactions + failed));
    cpu(level, seconds, &mut put);

    let status = |metric: &str| grown(level, "status", metric);
    // The connection that asks runs, too, and so does MySQL's event scheduler: no more than the load's own can count.
    let running = gauge(level, "status", "Threads_running");
    put("threads_running", running.map(|running| (running - 1.0).clamp(0.0, f64::from(level.users))));
    put("rows_read_per_transaction", rows_read(level).and_then(|rows| share(rows, transactions)));
    let (reads, asked) = (status("Innodb_buffer_pool_reads"), status("Innodb_buffer_pool_read_requests"));
    put(
        "buffer_pool_hit_percent",
        reads.zip(asked).and_then(|(reads, asked)| share(100.0 * (asked - reads).max(0.0), asked)),
    );
    put("buffer_pool_reads_per_s", reads.map(|reads| reads / seconds));
    put("log_fsyncs_per_s", status("Innodb_os_log_fsyncs").map(|syncs| syncs / seconds));
    put(
        "sort_merge_passes_per_transaction",
        status("Sort_merge_passes").and_then(|passes| share(passes, transactions)),
    );
    events(level, pfs, seconds, &mut put);
    let hits = of_data_nodes(level, "disk_page_hits");
    let misses = of_data_nodes(level, "disk_page_waits_io") + of_data_nodes(level, "disk_page_waits_queue");
    put("disk_buffer_hit_percent", share(100.0 * hits, hits + misses));
    let states = crate::nodes::states_of(&level.nodes, seconds);
    let most = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
    put("replica_behind_s", most(&mut states.iter().filter_map(|node| node.behind_s)));
    let paused = most(&mut states.iter().filter_map(|node| node.paused));
    put("flow_control_percent", paused.map(|share| 100.0 * share));
    found
}

fn cpu(level: &LevelInput, seconds: f64, put: &mut impl FnMut(&str, Option<f64>)) {
    let Some(cpu) = level.cpu.or_else(|| crate::cpu_use(&level.counters)) else { return };
    put("cpu_user_percent", Some(100.0 * cpu.user));
    put("cpu_system_percent", Some(100.0 * cpu.system));
    put("cpu_iowait_percent", Some(100.0 * cpu.iowait));
    put("cpu_idle_percent", Some(100.0 * cpu.idle));
    put("cpu_steal_percent", Some(100.0 * cpu.steal));
    let server_s = level.server_cpu_s.or_else(|| crate::server_cpu_s(&level.counters));
    put("server_cpus", server_s.map(|cpu_s| cpu_s / seconds));
    put("client_cpus", Some(level.client_cpu_s / seconds));
    let transactions = level.transactions as f64;
    put(
        "server_cpu_us_per_transaction",
        server_s.filter(|_| transactions > 0.0).map(|cpu_s| cpu_s * 1e6 / transactions),
    );
    let all_s = level.counters.iter().filter(|counter| {
        let series = &counter.series;
        series.source == "cpu" && series.instance == "all" && !series.is_of_generator()
    });
    let busy = ["user_ns", "nice_ns", "system_ns", "irq_ns", "softirq_ns"];
    let busy_s: f64 = all_s
        .filter(|counter| busy.contains(&counter.series.metric.as_str()))
        .map(|counter| counter.increase / 1e9)
        .sum();
    put("other_cpus", server_s.map(|cpu_s| ((busy_s - cpu_s - level.client_cpu_s) / seconds).max(0.0)));
}

/// What the Performance Schema counted, and what timing it took.
fn events(level: &LevelInput, pfs: Option<&PfsSetup>, seconds: f64, put: &mut impl FnMut(&str, Option<f64>)) {
    let unknown = PfsSetup::default();
    let server_s = level.server_cpu_s.or_else(|| crate::server_cpu_s(&level.counters));
    let timing = timing(pfs.unwrap_or(&unknown), &level.counters, seconds, None, server_s);
    let of = |class: &str| {
        timing.classes.iter().find(|timed| timed.class == class).map_or(0.0, |timed| timed.events)
    };
    let all: f64 = ["wait", "stage", "statement", "transaction"].map(of).iter().sum();
    if all <= 0.0 {
        return;
    }
    put("pfs_waits_per_s", Some(of("wait") / seconds));
    put("pfs_stages_per_s", Some(of("stage") / seconds));
    put("pfs_statements_per_s", Some(of("statement") / seconds));
    put("pfs_events_per_s", Some(all / seconds));
    // Where statements are not counted there, those that were sent stand for them.
    let statements = Some(of("statement")).filter(|count| *count > 0.0).unwrap_or(level.queries as f64);
    put("pfs_events_per_statement", (statements > 0.0).then(|| all / statements));
    put("pfs_timer_percent", timing.share(timing.cpu_s).map(|share| 100.0 * share));
    put("pfs_timer_ns_per_event", timing.cpu_s.map(|cpu_s| cpu_s * 1e9 / all));
}

/// Rows that storage engines were asked for, in whichever way.
fn rows_read(level: &LevelInput) -> Option<f64> {
    let reads = level.counters.iter().filter(|counter| {
        counter.series.source == "status" && counter.series.metric.starts_with("Handler_read_")
    });
    let counts: Vec<f64> = reads.map(|counter| counter.increase).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

fn grown(level: &LevelInput, source: &str, metric: &str) -> Option<f64> {
    let is_it = |series: &crate::model::SeriesName| series.source == source && series.metric == metric;
    level.counters.iter().find(|counter| is_it(&counter.series)).map(|counter| counter.increase)
}

/// What the data nodes of MySQL Cluster counted, all together: the loaded SQL node is asked for it.
fn of_data_nodes(level: &LevelInput, metric: &str) -> f64 {
    let of_first = level.nodes.first().map_or(&level.counters, |node| &node.counters);
    let own = of_first
        .iter()
        .filter(|counter| counter.series.source == "ndbinfo" && counter.series.metric == metric);
    own.map(|counter| counter.increase.max(0.0)).sum()
}

fn gauge(level: &LevelInput, source: &str, metric: &str) -> Option<f64> {
    let is_it = |series: &crate::model::SeriesName| series.source == source && series.metric == metric;
    level.gauges.iter().find(|gauge| is_it(&gauge.series)).map(|gauge| gauge.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Counter, SeriesName};

    fn level(counters: &[(&str, &str, &str, f64)]) -> LevelInput {
        let counter = |(source, metric, instance, increase): &(&str, &str, &str, f64)| Counter {
            series: SeriesName {
                host: "server".to_string(),
                source: source.to_string(),
                metric: metric.to_string(),
                instance: instance.to_string(),
            },
            unit: String::new(),
            increase: *increase,
        };
        LevelInput {
            end_ns: 10_000_000_000,
            transactions: 1000,
            queries: 20_000,
            client_cpu_s: 1.0,
            counters: counters.iter().map(counter).collect(),
            ..LevelInput::default()
        }
    }

    #[test]
    fn numbers_are_by_second_by_transaction_or_a_share() {
        let found = of(
            &level(&[
                ("status", "Handler_read_key", "", 3000.0),
                ("status", "Handler_read_rnd_next", "", 97_000.0),
                ("status", "Innodb_buffer_pool_reads", "", 200.0),
                ("status", "Innodb_buffer_pool_read_requests", "", 10_000.0),
                ("cpu", "user_ns", "all", 12e9),
                ("cpu", "system_ns", "all", 2e9),
                ("cpu", "idle_ns", "all", 6e9),
                ("server_process", "run_ns", "server", 10e9),
            ]),
            None,
        );
        let measure = |name: &str| found.get(name).copied();
        assert_eq!(measure("transactions_per_s"), Some(100.0));
        assert_eq!(measure("rows_read_per_transaction"), Some(100.0));
        assert_eq!(measure("buffer_pool_hit_percent"), Some(98.0));
        assert_eq!((measure("cpu_user_percent"), measure("cpu_idle_percent")), (Some(60.0), Some(30.0)));
        assert_eq!((measure("server_cpus"), measure("client_cpus")), (Some(1.0), Some(0.1)));
        assert!(
            (measure("other_cpus").unwrap() - 0.3).abs() < 1e-9,
            "14 busy, 10 the server's, 1 the load's"
        );
        assert_eq!(measure("server_cpu_us_per_transaction"), Some(10_000.0));
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let found = of(&level(&[("status", "Innodb_buffer_pool_reads", "", 5.0)]), None);
        assert!(!found.contains_key("buffer_pool_hit_percent") && !found.contains_key("cpu_user_percent"));
        assert!(!found.contains_key("pfs_events_per_s") && !found.contains_key("rows_read_per_transaction"));
        assert!(of(&LevelInput::default(), None).is_empty());
    }
}
