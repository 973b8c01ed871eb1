//! Ten thousand connections, open and at work, and the memory that they take.

use crate::contestants::{Contestant, Load};
use crate::options::Plan;
use crate::places::NullServer;
use crate::table::{Score, Target, head, row};

const CONNECTIONS: u32 = 10_000;
const MEGABYTES_MAX: f64 = 200.0;

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let server = NullServer::start(plan)?;
    let mut score = Score::default();
    head(
        "10,000 connections at work, on the null server",
        &["link", "engine", "#queries/s", "#CPU µs/query", "peak MB"],
    );
    for link in &plan.links {
        for engine in &plan.engines {
            let workload = "oltp-point-select";
            let load = Load { workload, users: CONNECTIONS, seconds: plan.seconds, rate: None };
            let run = Contestant::Whyso(*engine).run(plan, &server.place, *link, &load)?;
            let megabytes = run.max_rss_kb / 1024.0;
            row(&[
                link.to_string(),
                run.engine.clone(),
                format!("{:.0}", run.queries_per_s()),
                format!("{:.2}", run.cpu_us_per_query()),
                format!("**{megabytes:.1}**{}", score.judge(megabytes, Target::AtMost(MEGABYTES_MAX))),
            ]);
        }
    }
    score.print();
    Ok(())
}
