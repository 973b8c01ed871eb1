//! On the null server, so that only the client is measured: queries per second of client CPU, against sysbench and
//! against the floor.

use whyso_load::EngineKind;

use crate::contestants::{Contestant, Load, Run, alternate};
use crate::options::Plan;
use crate::places::NullServer;
use crate::table::{Ratios, Score, Target, head, median_of, row};

const OVER_SYSBENCH_MIN: f64 = 3.0;
const FLOOR_OVER_MAX: f64 = 1.25;
const FLOORS: [EngineKind; 2] = [EngineKind::Epoll, EngineKind::IoUring];
/// The floor sends the bytes of this one.
const WORKLOAD: &str = "oltp-point-select";

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let server = NullServer::start(plan)?;
    let mut score = Score::default();
    head(
        "On the null server, oltp-point-select: queries per second of client CPU",
        &[
            "link",
            "#users",
            "engine",
            "#queries/s",
            "#queries per core-second whyso",
            "#sysbench",
            "whyso over sysbench",
            "#floor epoll",
            "#floor io-uring",
            "better floor over whyso",
        ],
    );
    let mut contestants = vec![Contestant::Sysbench];
    contestants.extend(FLOORS.map(Contestant::Floor));
    contestants.extend(plan.engines.iter().copied().map(Contestant::Whyso));
    for link in &plan.links {
        for users in &plan.users {
            let load = Load { workload: WORKLOAD, users: *users, seconds: plan.seconds, rate: None };
            let runs = alternate(plan, &server.place, *link, &load, &contestants)?;
            let (others, ours) = runs.split_at(1 + FLOORS.len());
            let per_core: Vec<f64> =
                others.iter().map(|runs| median_of(runs, Run::queries_per_core_s)).collect();
            let floor = if per_core[1] >= per_core[2] { &others[1] } else { &others[2] };
            for ours in ours {
                row(&[
                    link.to_string(),
                    users.to_string(),
                    ours.first().map(|run| run.engine.clone()).unwrap_or_default(),
                    format!("{:.0}", median_of(ours, Run::queries_per_s)),
                    format!("{:.0}", median_of(ours, Run::queries_per_core_s)),
                    format!("{:.0}", per_core[0]),
                    Ratios::of(ours, &others[0], Run::queries_per_core_s)
                        .cell(Target::AtLeast(OVER_SYSBENCH_MIN), &mut score),
                    format!("{:.0}", per_core[1]),
                    format!("{:.0}", per_core[2]),
                    Ratios::of(floor, ours, Run::queries_per_core_s)
                        .cell(Target::AtMost(FLOOR_OVER_MAX), &mut score),
                ]);
            }
        }
    }
    score.print();
    Ok(())
}
