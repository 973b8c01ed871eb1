//! How many event loops are worth having where the server has CPUs of its own. The null server runs on its CPUs, the
//! client's loops on the others.

use whyso_load::EngineKind;

use crate::contestants::{Contestant, Load, Run};
use crate::options::Plan;
use crate::places::NullServer;
use crate::table::{Ratios, Score, Target, head, median_of, row};

/// The first is what the others are compared with.
const LOOPS: [u32; 4] = [1, 2, 4, 8];
const WORKLOAD: &str = "oltp-point-select";

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let server = NullServer::start(plan)?;
    let named = |cpus: &str| if cpus.is_empty() { "any CPU".to_string() } else { format!("CPUs {cpus}") };
    head(
        &format!(
            "By number of event loops, oltp-point-select: null server on {}, client on {}",
            named(&plan.null_cpus),
            named(&plan.client_cpus)
        ),
        &[
            "link",
            "#users",
            "engine",
            "#queries/s",
            "over 1 loop's",
            "#CPU µs/query",
            "over 1 loop's",
            "#p99 µs",
        ],
    );
    for link in &plan.links {
        for users in &plan.users {
            let load = Load { workload: WORKLOAD, users: *users, seconds: plan.seconds, rate: None };
            let plans: Vec<Plan> = LOOPS
                .iter()
                .filter(|loops| *loops <= users)
                .map(|loops| Plan { loops: Some(*loops), ..plan.clone() })
                .collect();
            let runs = alternate(&plans, &load, |plan, load| {
                Contestant::Whyso(EngineKind::IoUring).run(plan, &server.place, *link, load)
            })?;
            for of_loops in &runs {
                let over_one = |quantity: fn(&Run) -> f64| {
                    Ratios::of(of_loops, &runs[0], quantity).cell(Target::None, &mut Score::default())
                };
                row(&[
                    link.to_string(),
                    users.to_string(),
                    of_loops.first().map(|run| run.engine.clone()).unwrap_or_default(),
                    format!("{:.0}", median_of(of_loops, Run::queries_per_s)),
                    over_one(Run::queries_per_s),
                    format!("{:.2}", median_of(of_loops, Run::cpu_us_per_query)),
                    over_one(Run::cpu_us_per_query),
                    format!("{:.0}", median_of(of_loops, |run| run.p99_us)),
                ]);
            }
        }
    }
    println!();
    Ok(())
}

/// Runs by each plan, taking turns at going first, after one run each that does not count.
fn alternate(
    plans: &[Plan],
    load: &Load<'_>,
    run: impl Fn(&Plan, &Load<'_>) -> anyhow::Result<Run>,
) -> anyhow::Result<Vec<Vec<Run>>> {
    let warm_up = Load { seconds: 1, ..*load };
    for plan in plans {
        run(plan, &warm_up)?;
    }
    let mut runs = vec![Vec::new(); plans.len()];
    for round in 0..plans[0].rounds {
        for turn in 0..plans.len() {
            let number = (round + turn) % plans.len();
            runs[number].push(run(&plans[number], load)?);
        }
    }
    Ok(runs)
}
