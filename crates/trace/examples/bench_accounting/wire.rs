//! Whether both sides of the wire agree: the generator's time from sending to the answer's arrival, and the server's transit and request.

use std::process::{Command, Stdio};

use whyso_trace::{TraceSpec, Tracer};

use crate::relay::Listening;
use crate::{Outcome, RequestCounts};

const USERS: [u32; 3] = [1, 4, 8];
/// What the server computes in each request, in microseconds.
const WORK_US: u64 = 50;
/// Windows of each kind of socket, in turn: what drifts meets both alike.
const WINDOWS: usize = 9;
/// Of the median of these windows, in microseconds per request.
const DIFFERENCE_MAX_US: f64 = 1.0;

/// The medians, by kind of socket and number of users. Answers are sent in one part.
pub(crate) fn run(driver: &str, seconds: u64) -> Outcome {
    println!("| link | users | wire less transit and request, median us | lowest | highest |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let mut missed = 0;
    for users in USERS {
        let mut differences = [Vec::new(), Vec::new()];
        for _ in 0..WINDOWS {
            for (tcp, differences) in [false, true].into_iter().zip(&mut differences) {
                differences.push(window(driver, seconds, tcp, users)?);
            }
        }
        for (link, mut differences) in ["unix", "tcp"].into_iter().zip(differences) {
            differences.sort_by(f64::total_cmp);
            let median = differences[WINDOWS / 2];
            let misses = median.abs() > DIFFERENCE_MAX_US;
            missed += u32::from(misses);
            println!(
                "| {link} | {users} | {median:+.2}{} | {:+.2} | {:+.2} |",
                if misses { " ✗" } else { "" },
                differences[0],
                differences[WINDOWS - 1]
            );
        }
    }
    let rows = USERS.len() * 2;
    println!("\n{} of {rows} medians are within 1 us.", rows as u32 - missed);
    Ok(())
}

/// By how much the wire is longer than transit and request, in microseconds per request.
fn window(driver: &str, seconds: u64, tcp: bool, users: u32) -> Result<f64, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("s");
    let mut command = Command::new(std::env::current_exe()?.with_file_name("planted_server"));
    match tcp {
        true => command.args(["--tcp", "127.0.0.1:0"]),
        false => command.arg("--unix").arg(&socket),
    };
    let server = Listening::start(command.args(["--user-us", &WORK_US.to_string()]))?;
    let servers = [server.child.id()];
    let mut tracer = Tracer::start(&TraceSpec { servers: servers.to_vec(), ..TraceSpec::default() })?;
    let before = tracer.read();
    let mut load = Command::new(driver);
    load.arg("child");
    match tcp {
        true => load.args(["--tcp", &server.address]),
        false => load.arg("--unix").arg(&socket),
    };
    let mut load = load
        .args(["--workload", "oltp-point-select", "--users", &users.to_string()])
        .args(["--seconds", &seconds.to_string()])
        .stdout(Stdio::null())
        .spawn()?;
    // It has not connected yet.
    tracer.watch(&servers, &[load.id()])?;
    let outcome = load.wait()?;
    let counted = RequestCounts::between(&before, &tracer.read());
    server.end()?;
    if !outcome.success() {
        return Err(format!("{driver} failed: {outcome}").into());
    }
    let wire_ns = counted.wire_ns as f64 / counted.answers.max(1) as f64;
    let served_ns = (counted.transit_ns + counted.request_ns) as f64 / counted.requests.max(1) as f64;
    Ok((wire_ns - served_ns) / 1e3)
}
