//! Whether the tracer's account is right, and what it costs.
//!
//! ```text
//! bench_accounting planted DRIVER [SECONDS]         what a server spent by its own clocks, against what the tracer counted
//! bench_accounting network DRIVER [SECONDS]         what a relay held back by its own clock, against what the tracer counted
//! bench_accounting wire DRIVER [SECONDS]            the generator's side of the wire, against the server's; SECONDS a window
//! bench_accounting relay TARGET DELAY_US            the relay itself
//! bench_accounting server WHYSO PID DSN USERS,… [WORKLOAD…]
//!                                                   requests and parts of the response time on a MariaDB
//! bench_accounting observer PID SOCKET [SECONDS]    what the programs cost, directly and by their effect on throughput;
//!                                                   the Performance Schema's effect next to it
//! bench_accounting switched PID SOCKET [SECONDS]    only the programs' effect on throughput and on CPU time per query
//! ```
//!
//! DRIVER is `bench_client_cost` of crates/load, WHYSO the program itself. `bench/accounting/README.md` and
//! `bench/observer-cost/README.md` describe how they are used.

mod cpus;
mod observer;
mod planted;
mod relay;
mod server;
mod windows;
mod wire;

use std::process::ExitCode;

use whyso_model::STATES;
use whyso_trace::Reading;

use crate::observer::Parts;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["planted", driver, seconds @ ..] => planted::run(driver, number(seconds.first(), 4)),
        ["network", driver, seconds @ ..] => relay::run(driver, number(seconds.first(), 4)),
        ["wire", driver, seconds @ ..] => wire::run(driver, number(seconds.first(), 1)),
        ["relay", target, delay_us] => relay::serve(target, number(Some(delay_us), 0)),
        ["server", whyso, pid, dsn, users, workloads @ ..] => server::run(whyso, pid, dsn, users, workloads),
        ["observer", pid, socket, seconds @ ..] => {
            observer::run(pid, socket, number(seconds.first(), 40), Parts::All)
        }
        ["switched", pid, socket, seconds @ ..] => {
            observer::run(pid, socket, number(seconds.first(), 600), Parts::Switched)
        }
        _ => {
            eprintln!(
                "bench_accounting: give planted, network, wire, server, observer or switched, with what each needs"
            );
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench_accounting: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The default where it is missing or no number.
fn number(word: Option<&&str>, default: u64) -> u64 {
    word.and_then(|word| word.parse().ok()).unwrap_or(default)
}

/// What was counted between two readings, in nanoseconds.
struct RequestCounts {
    requests: u64,
    request_ns: u64,
    transit_ns: u64,
    in_requests: [u64; STATES],
    answers: u64,
    delay_ns: u64,
    held_ns: u64,
    wire_ns: u64,
    samples: [u64; 2],
    lost: u64,
}

impl RequestCounts {
    fn between(before: &Reading, after: &Reading) -> RequestCounts {
        let (s, t, c, d) = (&before.server, &after.server, &before.client, &after.client);
        let mut in_requests = t.in_requests;
        for (ns, before) in in_requests.iter_mut().zip(s.in_requests) {
            *ns -= before;
        }
        RequestCounts {
            requests: t.requests - s.requests,
            request_ns: t.request_ns - s.request_ns,
            transit_ns: t.transit_ns - s.transit_ns,
            in_requests,
            answers: d.answers - c.answers,
            delay_ns: d.delay_ns - c.delay_ns,
            held_ns: d.held_ns - c.held_ns,
            wire_ns: d.wire_ns - c.wire_ns,
            samples: [t.user_samples - s.user_samples, t.system_samples - s.system_samples],
            lost: after.lost.iter().map(|(_, count)| count).sum(),
        }
    }
}
