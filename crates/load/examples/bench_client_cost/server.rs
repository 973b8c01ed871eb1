//! Against sysbench on a MariaDB.

use crate::contestants::{Contestant, Load, Run, alternate};
use crate::options::{Link, Plan};
use crate::places::MariaDb;
use crate::table::{Ratios, Score, Target, head, median_of, row};

/// The targets by users: client CPU per query over a Unix socket and over TCP, throughput, peak resident memory.
const TARGETS: [(u32, f64, f64, f64, Option<f64>); 6] = [
    (1, 0.95, 0.95, 1.0, None),
    (2, 0.95, 0.95, 1.0, None),
    (8, 0.7, 0.8, 1.0, None),
    (32, 0.55, 0.7, 1.05, None),
    (128, 0.45, 0.55, 1.1, Some(0.3)),
    (1024, 0.2, 0.3, 1.2, Some(0.15)),
];

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let server = MariaDb::start(plan)?;
    let mut score = Score::default();
    head(
        "On a MariaDB, against sysbench",
        &[
            "workload",
            "link",
            "#users",
            "engine",
            "#queries/s whyso",
            "#sysbench",
            "ratio",
            "#CPU µs/query whyso (user + system)",
            "#sysbench",
            "ratio",
            "#peak MB whyso",
            "#sysbench",
            "ratio",
        ],
    );
    let mut contestants = vec![Contestant::Sysbench];
    contestants.extend(plan.engines.iter().copied().map(Contestant::Whyso));
    for workload in &plan.workloads {
        for link in &plan.links {
            for users in &plan.users {
                let load = Load { workload, users: *users, seconds: plan.seconds, rate: None };
                let runs = alternate(plan, &server.place, *link, &load, &contestants)?;
                for ours in &runs[1..] {
                    print_row(&load, *link, ours, &runs[0], &mut score);
                }
            }
        }
    }
    score.print();
    Ok(())
}

fn print_row(load: &Load<'_>, link: Link, ours: &[Run], theirs: &[Run], score: &mut Score) {
    let targets = TARGETS.iter().find(|(users, ..)| *users == load.users);
    let cpu = targets.map_or(Target::None, |(_, unix, tcp, ..)| match link {
        Link::Unix => Target::AtMost(*unix),
        Link::Tcp => Target::AtMost(*tcp),
    });
    let throughput = targets.map_or(Target::None, |(_, _, _, least, _)| Target::AtLeast(*least));
    let memory = targets.and_then(|(.., most)| *most).map_or(Target::None, Target::AtMost);
    let cost = |runs: &[Run]| {
        let user = median_of(runs, |run| run.user_cpu_s * 1e6 / run.queries);
        let system = median_of(runs, |run| run.system_cpu_s * 1e6 / run.queries);
        format!("{:.2} ({user:.2} + {system:.2})", median_of(runs, Run::cpu_us_per_query))
    };
    let megabytes = |runs: &[Run]| format!("{:.1}", median_of(runs, |run| run.max_rss_kb) / 1024.0);
    row(&[
        load.workload.to_string(),
        link.to_string(),
        load.users.to_string(),
        ours.first().map(|run| run.engine.clone()).unwrap_or_default(),
        format!("{:.0}", median_of(ours, Run::queries_per_s)),
        format!("{:.0}", median_of(theirs, Run::queries_per_s)),
        Ratios::of(ours, theirs, Run::queries_per_s).cell(throughput, score),
        cost(ours),
        cost(theirs),
        Ratios::of(ours, theirs, Run::cpu_us_per_query).cell(cpu, score),
        megabytes(ours),
        megabytes(theirs),
        Ratios::of(ours, theirs, |run| run.max_rss_kb).cell(memory, score),
    ]);
}
