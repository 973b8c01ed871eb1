//! What the load costs its own machine, side by side with sysbench: same server, same data, alternating rounds.
//!
//! ```text
//! bench_client_cost [SECTION…] [--seconds 5] [--rounds 5] [--rounds-min N] [--users 1,2,8,32,128,1024] [--links unix,tcp]
//!                   [--workloads oltp-point-select,oltp-read-write] [--engines auto] [--loops N]
//!                   [--tables 4] [--rows 100000] [--client-cpus 0] [--null-cpus 1]
//! ```
//!
//! Sections, all of them where none is named:
//!
//! - `server`: against sysbench on a MariaDB.
//! - `null`: on a server that answers at once, against sysbench and the floor.
//! - `many`: memory of 10,000 connections.
//! - `latency`: the event loop's delay at half of capacity.
//! - `calls`: system calls and context switches per query.
//! - `lua`: sysbench's bundled scripts through `whyso sysbench`.
//! - `loops`: throughput by number of event loops, the null server on CPUs of its own.
//!
//! With `--rounds-min` a cell's rounds end after that many, where the ratios of CPU and throughput lie within a tenth of their
//! median. `latency`, which compares percentiles, runs all of them.
//!
//! It prints Markdown. `bench/client-cost/README.md` explains the tables.

mod calls;
mod child;
mod contestants;
mod latency;
mod loops;
mod lua;
mod many;
mod null;
mod options;
mod places;
mod processes;
mod server;
mod table;

#[path = "../../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;

use options::{Plan, Section};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == child::COMMAND) {
        return child::main(&arguments[1..]);
    }
    let plan = match Plan::parse(&arguments) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("bench_client_cost: {error:#}");
            return ExitCode::from(2);
        }
    };
    let mut ended_well = true;
    for section in &plan.sections {
        let outcome = match section {
            Section::Server => server::run(&plan),
            Section::Null => null::run(&plan),
            Section::Many => many::run(&plan),
            Section::Latency => latency::run(&plan),
            Section::Calls => calls::run(&plan),
            Section::Lua => lua::run(&plan),
            Section::Loops => loops::run(&plan),
        };
        if let Err(error) = outcome {
            eprintln!("bench_client_cost: {section}: {error:#}");
            ended_well = false;
        }
    }
    if ended_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
