//! The guard: an engine that answers many connections at once must not let them wait for it. Open loop at half of what
//! the server can do, response times against those of blocking threads.

use whyso_load::EngineKind;

use crate::contestants::{Contestant, Load, Run, alternate};
use crate::options::Plan;
use crate::places::MariaDb;
use crate::table::{Ratios, Score, Target, head, median_of, row};

const OVER_THREADS_MAX: f64 = 1.05;
/// Users that are enough to hold the rate, whatever a server's stumbling costs.
const USERS: [u32; 2] = [32, 128];

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let server = MariaDb::start(plan)?;
    let mut score = Score::default();
    head(
        "Response time in an open loop at half of capacity, against blocking threads",
        &[
            "workload",
            "link",
            "#users at most",
            "#transactions/s",
            "engine",
            "#p50 µs",
            "#threads",
            "ratio",
            "#p99 µs",
            "#threads",
            "ratio",
        ],
    );
    let event_loops = plan.engines.iter().filter(|engine| **engine != EngineKind::Threads);
    let mut contestants = vec![Contestant::Whyso(EngineKind::Threads)];
    contestants.extend(event_loops.copied().map(Contestant::Whyso));
    for workload in &plan.workloads {
        for link in &plan.links {
            for users in USERS {
                let closed = Load { workload, users, seconds: plan.seconds, rate: None };
                let capacity = contestants[0].run(plan, &server.place, *link, &closed)?;
                let rate = (capacity.transactions / capacity.seconds / 2.0).floor().max(1.0);
                let load = Load { rate: Some(rate), ..closed };
                let all_rounds = Plan { rounds_min: None, ..plan.clone() };
                let runs = alternate(&all_rounds, &server.place, *link, &load, &contestants)?;
                for ours in &runs[1..] {
                    let (p50, p99) = (|run: &Run| run.p50_us, |run: &Run| run.p99_us);
                    let mut ratio = |of: &dyn Fn(&Run) -> f64| {
                        Ratios::of(ours, &runs[0], of).cell(Target::AtMost(OVER_THREADS_MAX), &mut score)
                    };
                    let (p50_ratio, p99_ratio) = (ratio(&p50), ratio(&p99));
                    row(&[
                        workload.clone(),
                        link.to_string(),
                        users.to_string(),
                        format!("{rate:.0}"),
                        ours.first().map(|run| run.engine.clone()).unwrap_or_default(),
                        format!("{:.0}", median_of(ours, p50)),
                        format!("{:.0}", median_of(&runs[0], p50)),
                        p50_ratio,
                        format!("{:.0}", median_of(ours, p99)),
                        format!("{:.0}", median_of(&runs[0], p99)),
                        p99_ratio,
                    ]);
                }
            }
        }
    }
    score.print();
    Ok(())
}
