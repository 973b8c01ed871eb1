//! What was found in the made run, written by hand.

use whyso_explain::model::{
    CpuUse, Drift, Estimate, Evidence, Explanation, Finding, Growth, LevelVerdict, Peak, Regime, SeriesName,
    Steadiness, UslFit,
};
use whyso_record::run::Purpose;
use whyso_report::Source;

use super::{HOSTILE, Made, throughput};

pub(crate) fn explanation(made: &Made) -> Explanation {
    let levels = &made.run.levels;
    let verdicts = levels
        .iter()
        .map(|level| {
            let per_s = level.result.transactions_per_s;
            let half = per_s * if level.users == 32 { 0.05 } else { 0.018 };
            LevelVerdict {
                cpu: Some(cpu(level.users)),
                server_cpus: Some(1.48 * busy(level.users)),
                client_cpus: 0.34 * busy(level.users),
                other_clients: None,
                index: level.index,
                users: level.users,
                transactions_per_s: per_s,
                transactions_per_s_ci95: Some([per_s - half, per_s + half]),
                steadiness: if level.users == 32 {
                    Steadiness::UnstableFrom { s: 8.3 }
                } else {
                    Steadiness::Steady
                },
                regime: match level.users {
                    1..=4 => Regime::RampingUp,
                    8..=16 => Regime::Peak,
                    32 => Regime::Unknown,
                    _ => Regime::Degrading,
                },
                valid: level.users != 1,
                invalid_why: if level.users == 1 {
                    "the generator used 97 % of its CPU".to_string()
                } else {
                    String::new()
                },
                stuck: String::new(),
            }
        })
        .collect();

    let status = |metric: &str| SeriesName {
        host: "server".to_string(),
        source: "status".to_string(),
        metric: metric.to_string(),
        instance: String::new(),
    };
    let last = &levels[6];
    let lock_waits = Evidence::Series {
        series: status("Innodb_row_lock_waits"),
        begin_ns: last.window.begin_ns,
        end_ns: last.window.end_ns,
    };
    let mut findings = vec![
        finding(
            "peak",
            "Throughput peaks at 16 users (anywhere from 5 to 31 users): 1,650 transactions/s.",
            vec![Evidence::Levels { quantity: "transactions_per_s".to_string(), levels: vec![3, 4] }],
        ),
        finding(
            "regimes",
            "Up to 4 users throughput grows; from 8 to 16 it stays at its peak; at 64 users it has fallen by 12 % while a transaction takes 4.6 times as long.",
            vec![Evidence::Levels { quantity: "latency_ms".to_string(), levels: vec![4, 6] }],
        ),
        finding(
            "server-cpu-full",
            "At 16 users both CPUs of the machine are full (3 % idle): 62 % user, 33 % system. As far as the counters tell, the CPU is the limit.",
            vec![Evidence::Levels { quantity: "cpu".to_string(), levels: vec![4] }],
        ),
        finding(
            "growth",
            "From 16 to 64 users, per transaction, row lock waits grew 16-fold (0.10 → 1.64) and context switches 1.6-fold (56 → 92).",
            vec![
                lock_waits,
                Evidence::Series {
                    series: SeriesName {
                        host: "server".to_string(),
                        source: "cpu".to_string(),
                        metric: "context_switches".to_string(),
                        instance: String::new(),
                    },
                    begin_ns: last.window.begin_ns,
                    end_ns: last.window.end_ns,
                },
            ],
        ),
        finding(
            "unstable",
            "The level with 32 users is unstable from 8.3 s on: 1,580/s before, 1,390/s after.",
            vec![Evidence::Levels { quantity: "transactions_per_s".to_string(), levels: vec![5] }],
        ),
        finding(
            "generator-bottleneck",
            "With 1 user the generator used 97 % of its CPU: that level says nothing about the server.",
            vec![Evidence::Levels { quantity: "client_cpu".to_string(), levels: vec![0] }],
        ),
        finding(
            "setting",
            "Each commit waits for the disk: innodb_flush_log_at_trx_commit is 1.",
            vec![Evidence::Fact {
                path: "server.variables.innodb_flush_log_at_trx_commit".to_string(),
                value: "1".to_string(),
            }],
        ),
        finding("not-measured", "Not measured: hardware counters, the Performance Schema.", Vec::new()),
    ];
    if made.problems().iter().any(|problem| problem == HOSTILE) {
        findings.push(finding("hostile", HOSTILE, Vec::new()));
    }

    let growth = [
        ("Innodb_row_lock_waits", "1", "waits for row locks", 0.0004, 2.0),
        ("Innodb_row_lock_time", "1", "milliseconds waited for row locks", 0.0009, 2.0),
        ("Innodb_mutex_os_waits", "1", "waits for InnoDB's own mutexes", 0.02, 0.8),
        ("Threads_created", "1", "new threads", 0.0001, 0.3),
        ("Innodb_os_log_fsyncs", "1", "flushes of the redo log", 1.0, -0.4),
    ];
    let growth = growth
        .iter()
        .map(|(metric, unit, meaning, factor, power)| {
            let at = |users: u32| factor * f64::from(users).powf(*power);
            Growth {
                series: status(metric),
                unit: unit.to_string(),
                best_users: 16,
                last_users: 64,
                best_per_transaction: at(16),
                last_per_transaction: at(64),
                ratio: Some(at(64) / at(16)),
                by_level: levels
                    .iter()
                    .filter(|level| level.purpose == Purpose::Sweep)
                    .map(|level| at(level.users))
                    .collect(),
                meaning: meaning.to_string(),
                same_as: None,
            }
        })
        .collect();

    Explanation {
        levels: verdicts,
        peak: Some(Peak {
            users: 16,
            users_interval: (5, Some(31)),
            transactions_per_s: throughput(16),
            witnesses: vec!["8 and 16 users differ by less than their intervals".to_string()],
        }),
        usl: Some(UslFit {
            lambda: Estimate { value: 420.0, low95: 405.0, high95: 436.0 },
            sigma: Estimate { value: 0.19, low95: 0.17, high95: 0.21 },
            kappa: Estimate { value: 0.0009, low95: 0.0007, high95: 0.0011 },
            peak_users: Some(30.0),
            peak_users_ci95: Some((24.0, Some(41.0))),
            r_squared: 0.994,
            outside: vec![0],
            curve: (4..=260)
                .map(|quarter| f64::from(quarter) / 4.0)
                .map(|n| [n, 420.0 * n / (1.0 + 0.19 * (n - 1.0) + 0.0009 * n * (n - 1.0))])
                .collect(),
        }),
        growth,
        drift: Some(Drift {
            users: 4,
            first_per_s: throughput(4),
            repeat_per_s: throughput(4) * 0.99,
            ratio: 0.99,
            significant: false,
        }),
        headline: "Throughput peaks at 16 users (anywhere from 5 to 31 users): 1,650 transactions/s."
            .to_string(),
        findings,
        budgets: super::budget::budgets(levels),
        about: Some(5),
        ..Explanation::default()
    }
}

fn finding(id: &str, text: &str, evidence: Vec<Evidence>) -> Finding {
    Finding { id: id.to_string(), text: text.to_string(), evidence }
}

/// Fraction of the machine's CPU time that is used with so many users.
fn busy(users: u32) -> f64 {
    0.97 * (1.0 - (-f64::from(users) / 2.2).exp())
}

fn cpu(users: u32) -> CpuUse {
    let (busy, rest) = (busy(users), 1.0 - busy(users));
    CpuUse {
        user: busy * 0.66,
        system: busy * 0.34,
        iowait: rest * 0.2,
        steal: rest * 0.05,
        idle: rest * 0.75,
    }
}
