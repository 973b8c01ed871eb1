//! sysbench's bundled Lua scripts through `whyso sysbench`, against sysbench itself, on a MariaDB.

use crate::contestants::{Contestant, Load, Run, alternate};
use crate::options::Plan;
use crate::places::MariaDb;
use crate::table::{Ratios, Score, Target, head, median_of, row};

/// From this many users on, client CPU per query is to be less than sysbench's; below, no more than that.
const LESS_FROM_USERS: u32 = 128;

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let server = MariaDb::start(plan)?;
    let mut score = Score::default();
    head(
        "sysbench's own scripts on a MariaDB: `whyso sysbench` against sysbench",
        &[
            "script",
            "link",
            "#users",
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
    for workload in &plan.workloads {
        for link in &plan.links {
            for users in &plan.users {
                let load = Load { workload, users: *users, seconds: plan.seconds, rate: None };
                let contestants = [Contestant::Script, Contestant::Sysbench];
                let runs = alternate(plan, &server.place, *link, &load, &contestants)?;
                let cells = compared(*users, &runs[0], &runs[1], &mut score);
                row(&[&[workload.replace('-', "_"), link.to_string(), users.to_string()][..], &cells]
                    .concat());
            }
        }
    }
    score.print();
    Ok(())
}

fn compared(users: u32, ours: &[Run], theirs: &[Run], score: &mut Score) -> [String; 9] {
    let cpu = if users < LESS_FROM_USERS { Target::AtMost(1.0) } else { Target::Below(1.0) };
    let cost = |runs: &[Run]| {
        let user = median_of(runs, |run| run.user_cpu_s * 1e6 / run.queries);
        let system = median_of(runs, |run| run.system_cpu_s * 1e6 / run.queries);
        format!("{:.2} ({user:.2} + {system:.2})", median_of(runs, Run::cpu_us_per_query))
    };
    let megabytes = |runs: &[Run]| format!("{:.1}", median_of(runs, |run| run.max_rss_kb) / 1024.0);
    [
        format!("{:.0}", median_of(ours, Run::queries_per_s)),
        format!("{:.0}", median_of(theirs, Run::queries_per_s)),
        Ratios::of(ours, theirs, Run::queries_per_s).cell(Target::None, score),
        cost(ours),
        cost(theirs),
        Ratios::of(ours, theirs, Run::cpu_us_per_query).cell(cpu, score),
        megabytes(ours),
        megabytes(theirs),
        Ratios::of(ours, theirs, |run| run.max_rss_kb).cell(Target::None, score),
    ]
}
