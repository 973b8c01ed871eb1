//! The planted truth: each part as the server spent it, and as the tracer counted it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use whyso_trace::{State, TraceSpec, Tracer};

use crate::{Counted, Outcome};

/// What is planted: nothing first, then each part alone, then mixed.
const CASES: &[&[(&str, u64)]] = &[
    &[],
    &[("sleep-us", 500)],
    &[("lock-us", 500)],
    &[("sync", 1)],
    &[("spin-us", 300)],
    &[("user-us", 300)],
    &[("kernel-us", 300)],
    &[("user-us", 300), ("kernel-us", 100)],
    &[("sleep-us", 500), ("user-us", 200)],
    &[
        ("sleep-us", 300),
        ("lock-us", 300),
        ("sync", 1),
        ("spin-us", 100),
        ("user-us", 100),
        ("kernel-us", 100),
    ],
];

/// Parts below this much a request are shown and not judged, in nanoseconds.
const JUDGED_NS: f64 = 50_000.0;
const SHARE_MAX: f64 = 0.03;

pub(crate) fn run(driver: &str, seconds: u64) -> Outcome {
    println!("| planted | link | users | requests | part | planted us | measured us | difference |");
    println!("| --- | --- | ---: | ---: | --- | ---: | ---: | ---: |");
    let mut missed = 0;
    for tcp in [false, true] {
        for users in [1, 4] {
            let mut beside = Beside::default();
            for case in CASES {
                let spent = one(driver, seconds, case, tcp, users)?;
                if case.is_empty() {
                    beside = spent.beside();
                }
                missed += spent.print(case, tcp, users, &beside);
            }
        }
    }
    println!("\n{missed} parts of 50 us a request or more differ by more than 3 %.");
    Ok(())
}

/// Runs one case.
fn one(
    driver: &str,
    seconds: u64,
    case: &[(&str, u64)],
    tcp: bool,
    users: u32,
) -> Result<Case, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("s");
    let program = std::env::current_exe()?.with_file_name("planted_server");
    let mut command = Command::new(program);
    match tcp {
        true => command.args(["--tcp", "127.0.0.1:0"]),
        false => command.arg("--unix").arg(&socket),
    };
    for (name, value) in case {
        command.arg(format!("--{name}")).arg(value.to_string());
    }
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut printed = BufReader::new(server.stdout.take().ok_or("the server prints nothing")?);
    let mut address = format!("--unix={}", socket.display());
    let mut line = String::new();
    while line.trim() != "ready" {
        line.clear();
        if printed.read_line(&mut line)? == 0 {
            return Err("the planted server ended at once".into());
        }
        if let Some(tcp) = line.trim().strip_prefix("listening on tcp:") {
            address = format!("--tcp={tcp}");
        }
    }
    let (option, value) = address.split_once('=').ok_or("an address has two parts")?;
    // Before the load: what both count is the same requests.
    let mut tracer = Tracer::start(&TraceSpec { servers: vec![server.id()], ..TraceSpec::default() })?;
    let before = tracer.read();
    let mut load = Command::new(driver)
        .args(["child", option, value, "--workload", "oltp-point-select"])
        .args(["--users", &users.to_string(), "--seconds", &seconds.to_string()])
        .stdout(Stdio::null())
        .spawn()?;
    let outcome = load.wait()?;
    let counted = Counted::between(&before, &tracer.read());
    drop(server.stdin.take());
    let mut spent = String::new();
    printed.read_to_string(&mut spent)?;
    server.wait()?;
    if !outcome.success() {
        return Err(format!("{driver} failed: {outcome}").into());
    }
    Ok(Case { spent, counted })
}

/// What both sides say of one case.
struct Case {
    /// As the server printed it.
    spent: String,
    counted: Counted,
}

/// Of a request for which nothing is planted, in nanoseconds: receiving and sending are part of a request, and the
/// server's own clocks do not see them.
#[derive(Default)]
struct Beside {
    cpu_ns: f64,
    elapsed_ns: f64,
}

impl Case {
    /// A part a request, in nanoseconds, as the server measured it.
    fn planted_ns(&self, part: &str) -> f64 {
        let value = self.spent.lines().find_map(|line| line.strip_prefix(part)?.trim().parse::<f64>().ok());
        value.unwrap_or(f64::NAN)
    }

    fn measured_ns(&self, states: &[State]) -> f64 {
        states.iter().map(|state| self.counted.inside[*state as usize]).sum::<u64>() as f64
    }

    fn beside(&self) -> Beside {
        let requests = self.planted_ns("requests");
        Beside {
            cpu_ns: (self.measured_ns(&[State::Cpu]) - self.planted_ns("cpu")) / requests,
            elapsed_ns: (self.counted.request_ns as f64 - self.planted_ns("elapsed")) / requests,
        }
    }

    /// Prints the rows of a case; gives how many parts differ by more than is allowed.
    fn print(&self, case: &[(&str, u64)], tcp: bool, users: u32, beside: &Beside) -> u32 {
        let requests = self.planted_ns("requests");
        let parts = [
            ("sleep", self.measured_ns(&[State::Sleep]), 0.0),
            ("lock", self.measured_ns(&[State::Lock]), 0.0),
            ("sync", self.measured_ns(&[State::FileWrite, State::FileSync, State::KernelLock]), 0.0),
            ("cpu", self.measured_ns(&[State::Cpu]), beside.cpu_ns),
            ("ready", self.measured_ns(&[State::Runqueue, State::Wakeup]), 0.0),
            ("elapsed", self.counted.request_ns as f64, beside.elapsed_ns),
        ];
        let name: Vec<String> = case.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let name = if name.is_empty() { "nothing".to_string() } else { name.join(", ") };
        let link = if tcp { "tcp" } else { "unix" };
        let mut missed = 0;
        for (part, measured, beside) in parts {
            let (planted, measured) = (self.planted_ns(part) / requests, measured / requests - beside);
            if planted < 1000.0 && measured < 1000.0 {
                continue;
            }
            let share = (measured - planted) / planted;
            let misses = part != "ready" && planted >= JUDGED_NS && share.abs() > SHARE_MAX;
            missed += u32::from(misses);
            println!(
                "| {name} | {link} | {users} | {requests} | {part} | {:.1} | {:.1} | {:+.1} %{} |",
                planted / 1e3,
                measured / 1e3,
                share * 100.0,
                if misses { " ✗" } else { "" }
            );
        }
        let [user, system] = self.counted.samples;
        if user + system > 0 {
            println!(
                "| {name} | {link} | {users} | {requests} | samples user, system | | {user}, {system} | |"
            );
        }
        missed
    }
}
