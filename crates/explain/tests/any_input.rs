//! Whatever the numbers, explaining neither panics nor returns a number that is none.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use whyso_explain::explain;
use whyso_explain::model::{
    ActionInput, Cause, Counter, CpuUse, Explanation, FileWait, Input, LevelInput, LoopKind, Machine,
    Moments, PageTimes, Pauses, SeriesName, StatementTime, StatementWork,
};

/// Ordinary numbers, and those that break formulas.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..1e6,
        1 => any::<f64>(),
        1 => prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(f64::MAX),
            Just(f64::MIN_POSITIVE),
            Just(-1.0),
        ],
    ]
}

fn cpu() -> impl Strategy<Value = CpuUse> {
    prop_oneof![
        (0.0..0.5, 0.0..0.5).prop_map(|(user, system)| CpuUse {
            user,
            system,
            idle: 1.0 - user - system,
            ..CpuUse::default()
        }),
        (number(), number(), number(), number(), number())
            .prop_map(|(user, system, iowait, steal, idle)| CpuUse { user, system, iowait, steal, idle }),
    ]
}

fn bins() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        vec(any::<u32>(), 0..120),
        (0_u32..500, 0_usize..150).prop_map(|(count, length)| vec![count; length]),
        (0_u32..500, 0_u32..500, 20_usize..80).prop_map(|(before, after, length)| [
            vec![before; length],
            vec![after; length]
        ]
        .concat()),
        vec(90_u32..110, 30..150),
    ]
}

fn counters() -> impl Strategy<Value = Vec<Counter>> {
    let names = [
        ("status", "Innodb_row_lock_time"),
        ("status", "Innodb_row_lock_waits"),
        ("sessions", "looks"),
        ("sessions", "in_statement"),
        ("neighbours", "cpu_ns"),
        ("cpu", "context_switches"),
        ("pressure", "some_ns"),
        ("status", "Com_show_status"),
        ("unheard", "öf"),
        ("trace", "request_ns"),
        ("trace", "request_cpu_ns"),
        ("trace", "request_lock_ns"),
        ("trace", "transit_in_ns"),
        ("trace", "transit_in_runqueue_ns"),
        ("trace", "client_held_ns"),
        ("trace", "wire_ns"),
        ("trace", "cpu_user_samples"),
        ("trace", "cpu_system_samples"),
        ("trace", "lost"),
        ("threads", "file_sync_ns"),
        ("disk", "flush_ns"),
        ("status", "Connections"),
        ("status", "Handler_read_rnd_next"),
        ("status", "Handler_write"),
        ("status", "Handler_commit"),
        ("status", "Innodb_buffer_pool_reads"),
        ("status", "Innodb_log_waits"),
        ("status", "Sort_rows"),
        ("status", "Rows_read"),
    ];
    vec((0..names.len(), number(), prop_oneof!["1", "ns", "bytes", "ms", ""]), 0..14).prop_map(
        move |picked| {
            picked
                .into_iter()
                .map(|(at, increase, unit)| Counter {
                    series: SeriesName {
                        source: names[at].0.to_string(),
                        metric: names[at].1.to_string(),
                        ..SeriesName::default()
                    },
                    unit,
                    increase,
                })
                .collect()
        },
    )
}

prop_compose! {
    fn moments()(count in number(), mean_ns in number(), spread_ns in number()) -> Moments {
        Moments { count, mean_ns, spread_ns }
    }
}

prop_compose! {
    fn pauses()(
        (tid, requests, in_request) in (0_u32..4, number(), any::<bool>()),
        state in prop_oneof!["net_receive", "lock", "sleep", "öf"],
        role in prop_oneof!["connection", "page cleaner"],
        client in prop_oneof!["load", "own", "unknown", ""],
        (length, period) in prop_oneof![
            (moments(), moments()),
            (8.0..1e4_f64, 2e7..1e9_f64).prop_map(|(count, mean_ns)| {
                let regular = Moments { count, mean_ns, spread_ns: 0.0 };
                (regular, Moments { mean_ns: mean_ns * 10.0, ..regular })
            }),
        ],
    ) -> Pauses {
        Pauses { tid, role, state, client, in_request, requests, length, period, ..Pauses::default() }
    }
}

prop_compose! {
    fn level()(
        (index, users) in (0_u32..20, prop_oneof![4 => 0_u32..100, 1 => any::<u32>()]),
        repeat in prop::bool::weighted(0.15),
        (begin_ns, end_ns) in prop_oneof![
            3 => (0_i64..1_000_000_000, 1_000_000_000_i64..20_000_000_000),
            1 => (any::<i64>(), any::<i64>()),
        ],
        (transactions, errors) in prop_oneof![
            4 => (0_u64..100_000, 0_u64..100),
            1 => (any::<u64>(), any::<u64>()),
        ],
        (latency_mean_ms, client_cpu_s, server_cpu_s) in (number(), number(), option::of(number())),
        bins_100ms in bins(),
        (why, cut) in (prop_oneof!["", "it had no CPU"], prop_oneof!["", "the server died"]),
        cpu in option::of(cpu()),
        counters in counters(),
        (pacing, service_mean_ms, lost_ms, pages) in (
            prop_oneof![Just(LoopKind::Closed), Just(LoopKind::ClosedWithPauses), Just(LoopKind::Open), Just(LoopKind::Recorded)],
            number(),
            number(),
            option::of((any::<u64>(), number()).prop_map(|(count, mean_ms)| PageTimes { count, mean_ms })),
        ),
        (wait_ns, state) in (number(), prop_oneof!["file_sync", "kernel_lock"]),
        (pauses, statements) in (vec(pauses(), 0..6), vec(statement_time(), 0..3)),
    ) -> LevelInput {
        LevelInput {
            index, users, repeat, begin_ns, end_ns, transactions, errors, latency_mean_ms, bins_100ms, client_cpu_s,
            client_saturated_why: why, cut_short: cut, cpu, server_cpu_s, counters, pacing, service_mean_ms, pages,
            lost_ms_by_code: [("1213 (40001)".to_string(), lost_ms)].into(),
            pauses,
            statements,
            file_waits: vec![FileWait { path: "ib_logfile0".to_string(), state, ns: wait_ns, ..FileWait::default() }],
            ..LevelInput::default()
        }
    }
}

fn statement_time() -> impl Strategy<Value = StatementTime> {
    (prop_oneof!["a", "b"], any::<u64>(), number()).prop_map(|(kind, count, mean_ms)| StatementTime {
        kind,
        count,
        mean_ms,
    })
}

fn statement_work() -> impl Strategy<Value = StatementWork> {
    let rows = (number(), number(), number(), proptest::option::of(number()));
    (prop_oneof!["a", "b"], rows).prop_map(|(kind, (rows_sent, rows_read, rows_sorted, rows_rejected))| {
        StatementWork {
            kind,
            rows_sent,
            rows_read,
            rows_sorted,
            rows_rejected,
            rows_in_temporary_tables: 0.0,
        }
    })
}

prop_compose! {
    fn action()(
        (begin_ns, end_ns) in prop_oneof![
            3 => (0_i64..20_000_000_000, 0_i64..20_000_000_000),
            1 => (any::<i64>(), any::<i64>()),
        ],
        error in prop_oneof!["", "it was denied"],
    ) -> ActionInput {
        ActionInput { begin_ns, end_ns, error, text: "SET GLOBAL x = 1".to_string() }
    }
}

fn variable() -> impl Strategy<Value = (String, String)> {
    let names = [
        "version",
        "log_bin",
        "sync_binlog",
        "innodb_flush_log_at_trx_commit",
        "innodb_thread_concurrency",
        "query_cache_type",
        "query_cache_size",
        "thread_handling",
        "innodb_autoinc_lock_mode",
        "metadata_locks_hash_instances",
    ];
    let value =
        prop_oneof!["0", "1", "2", "ON", "5.5.9", "10.11.14-MariaDB", "pool-of-threads", "nan", ".{0,6}"];
    (0..names.len(), value).prop_map(move |(at, value)| (names[at].to_string(), value))
}

/// A number that is none becomes null in JSON: what comes back differs or does not parse.
fn is_finite(explanation: &Explanation) -> bool {
    let Ok(json) = serde_json::to_value(explanation) else {
        return false;
    };
    serde_json::from_value::<Explanation>(json).is_ok_and(|back| back == *explanation)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn any_input_is_explained_in_finite_numbers(
        levels in vec(level(), 0..9),
        (server_cpus, client_cpus, shared, cpus) in (0_u32..4, 0_u32..4, any::<bool>(), 0_u32..9),
        server_cpu_numbers in vec(0_u32..4, 0..4),
        not_measured in vec(".{0,12}", 0..3),
        actions in vec(action(), 0..3),
        variables in vec(variable(), 0..6),
        process in proptest::option::weighted(0.2, ".{0,12}"),
        work in vec(statement_work(), 0..3),
        lost in vec(("Performance_schema_[a-z_]{0,9}_lost", any::<f64>()), 0..3),
    ) {
        let machine = Machine { server_cpus, server_cpu_numbers, client_cpus, shared, cpus };
        let variables = variables.into_iter().collect();
        let input = Input {
            levels,
            machine,
            not_measured: not_measured.into_iter().map(whyso_model::NotMeasured::from).collect(),
            actions,
            variables,
            process,
            performance_schema: None,
            performance_schema_lost: lost.into_iter().collect(),
            statement_work: work,
        };
        let explanation = explain(&input);
        prop_assert!(is_finite(&explanation), "{explanation:#?}");
        prop_assert_eq!(explanation.levels.len(), input.levels.len());
        prop_assert!(!explanation.findings.is_empty());
        for finding in &explanation.findings {
            prop_assert!(!finding.text.contains("NaN") && !finding.text.contains("inf/"), "{}", finding.text);
        }
        for growth in &explanation.growth {
            let sweep = input.levels.iter().filter(|level| !level.repeat).count();
            prop_assert_eq!(growth.by_level.len(), sweep);
        }
        for budget in &explanation.budgets {
            let parts: f64 = budget.parts.iter().map(|part| part.ms).sum();
            let sum = parts + budget.unaccounted_ms;
            // A remainder below a millionth is left out, as rounding.
            prop_assert!((sum - budget.response_ms).abs() <= 1.001e-6 * parts.max(budget.response_ms), "{budget:#?}");
            prop_assert!(budget.parts.iter().all(|part| part.ms >= 0.0), "{budget:#?}");
        }
        // Also of processes that are no server's: a load on a site has transactions.
        let has_transactions = input.levels.iter().any(|level| level.transactions > 0 && !level.repeat);
        prop_assert_eq!(explanation.about.is_some(), has_transactions);
        for suspect in &explanation.suspects {
            prop_assert!((0.0..=1.0).contains(&suspect.share), "{suspect:#?}");
            if let Some(gain) = suspect.predicted_gain {
                prop_assert!(1.0 <= gain.low && gain.low <= gain.high && gain.high <= 1_000.0, "{suspect:#?}");
            }
            prop_assert!(!suspect.text.contains("NaN") && !suspect.text.contains("inf "), "{}", suspect.text);
        }
        // What nothing queues for is counted by the others, too.
        let queued = explanation.suspects.iter().filter(|suspect| suspect.id != Cause::Unsaturated);
        let held: f64 = queued.map(|suspect| suspect.share).sum();
        // Shares are not adjusted to fit: where they do not, a finding reports it.
        let overlap = explanation.findings.iter().any(|finding| finding.id == "suspects-overlap");
        prop_assert!(held <= 1.011 || overlap, "{held}: {:#?}", explanation.suspects);
        for possible in &explanation.possible {
            prop_assert!(explanation.suspects.iter().all(|suspect| suspect.id != possible.id), "{possible:#?}");
        }
        prop_assert_eq!(explain(&input), explanation);
    }
}
