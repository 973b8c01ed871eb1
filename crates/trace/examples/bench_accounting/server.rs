//! On a MariaDB: requests against queries, and what the parts leave of the response time.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use whyso_trace::{TraceSpec, Tracer};

use crate::{Outcome, RequestCounts};

/// Transactions a level, at most; fewer where queries are many.
const WORKLOADS: [(&str, u64); 3] =
    [("oltp-point-select", 100_000), ("oltp-read-only", 8_000), ("oltp-read-write", 5_000)];

/// Answers a user has had when all are at work: to its login and its preparations, and some more.
const ANSWERS_BEFORE: u64 = 8;
const CONNECTING_MAX: Duration = Duration::from_secs(30);
const READ_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) fn run(whyso: &str, pid: &str, dsn: &str, users: &str, only: &[&str]) -> Outcome {
    let pid = pid.parse()?;
    println!(
        "| workload | users | queries | requests more | response us | transit | request | delay | held | wire over transit + request | unaccounted |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (workload, transactions) in WORKLOADS {
        if !only.is_empty() && !only.contains(&workload) {
            continue;
        }
        for users in users.split(',') {
            measure(whyso, pid, dsn, workload, users.parse()?, transactions)?;
        }
    }
    Ok(())
}

fn measure(whyso: &str, pid: u32, dsn: &str, workload: &str, users: u64, transactions: u64) -> Outcome {
    let mut command = Command::new(whyso);
    command.args(["load", workload, "--dsn", dsn, "--tables", "1", "--rows", "100000", "--json"]);
    command.args([
        "--users",
        &users.to_string(),
        "--transactions",
        &transactions.max(users * 20).to_string(),
    ]);
    let mut tracer = Tracer::start(&TraceSpec { servers: vec![pid], ..TraceSpec::default() })?;
    let before = tracer.read();
    let load = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    // It has not connected yet.
    tracer.watch(&[pid], &[load.id()])?;
    // Means are without logins, preparations and what lies between them; sums of requests are of all.
    let begun = Instant::now();
    let mut steady = tracer.read();
    while steady.client.answers < users * ANSWERS_BEFORE && begun.elapsed() < CONNECTING_MAX {
        std::thread::sleep(READ_INTERVAL);
        steady = tracer.read();
    }
    let output = load.wait_with_output()?;
    let after = tracer.read();
    let requests = after.server.requests - before.server.requests;
    let counted = RequestCounts::between(&steady, &after);
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let level = &printed["levels"][0];
    let field = |name: &str| level[name].as_f64().ok_or_else(|| format!("{whyso} printed no {name}"));
    let response_us = level["latency_ms"]["mean"].as_f64().ok_or("no mean response time")? * 1e3;
    let (queries, transactions) = (field("queries")?, field("transactions")?);
    let a_transaction = |ns: u64, count: u64| ns as f64 / count.max(1) as f64 * queries / transactions / 1e3;
    let [transit, request] =
        [counted.transit_ns, counted.request_ns].map(|ns| a_transaction(ns, counted.requests));
    let [delay, held, wire] =
        [counted.delay_ns, counted.held_ns, counted.wire_ns].map(|ns| a_transaction(ns, counted.answers));
    let unaccounted = response_us - (transit + request + delay + held);
    println!(
        "| {workload} | {users} | {queries} | {:+} | {response_us:.1} | {transit:.1} | {request:.1} | {delay:.1} | {held:.1} | {:.3} | {:+.1} % |",
        requests as f64 - queries,
        wire / (transit + request),
        unaccounted / response_us * 100.0
    );
    if counted.lost > 0 {
        println!("| | | {} lost | | | | | | | | |", counted.lost);
    }
    Ok(())
}
