//! The planted truth: each part as the server spent it, and as the tracer counted it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use whyso_trace::{State, TraceSpec, Tracer};

use crate::{Counted, Outcome};

/// What is planted, alone and mixed.
const CASES: &[&[(&str, u64)]] = &[
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
            for case in CASES {
                missed += one(driver, seconds, case, tcp, users)?;
            }
        }
    }
    println!("\n{missed} parts of 50 us a request or more differ by more than 3 %.");
    Ok(())
}

/// Prints the rows of one case; gives how many parts differ by more than is allowed.
fn one(
    driver: &str,
    seconds: u64,
    case: &[(&str, u64)],
    tcp: bool,
    users: u32,
) -> Result<u32, Box<dyn std::error::Error>> {
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
    let mut load = Command::new(driver)
        .args(["child", option, value, "--workload", "oltp-point-select"])
        .args(["--users", &users.to_string(), "--seconds", &seconds.to_string()])
        .stdout(Stdio::null())
        .spawn()?;
    let mut tracer =
        Tracer::start(&TraceSpec { servers: vec![server.id()], generators: vec![load.id()], cost: false })?;
    let before = tracer.read();
    let outcome = load.wait()?;
    let counted = Counted::between(&before, &tracer.read());
    drop(server.stdin.take());
    let mut spent = String::new();
    printed.read_to_string(&mut spent)?;
    server.wait()?;
    if !outcome.success() {
        return Err(format!("{driver} failed: {outcome}").into());
    }
    Ok(print(case, tcp, users, &spent, &counted))
}

fn print(case: &[(&str, u64)], tcp: bool, users: u32, spent: &str, counted: &Counted) -> u32 {
    let of = |name: &str| {
        let value = spent.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        value.unwrap_or(f64::NAN)
    };
    let requests = of("requests");
    let ns =
        |states: &[State]| states.iter().map(|state| counted.inside[*state as usize]).sum::<u64>() as f64;
    let parts = [
        ("sleep", ns(&[State::Sleep])),
        ("lock", ns(&[State::Lock])),
        ("sync", ns(&[State::FileWrite, State::FileSync, State::KernelLock])),
        ("cpu", ns(&[State::Cpu])),
        ("ready", ns(&[State::Runqueue, State::Wakeup])),
        ("elapsed", counted.request_ns as f64),
    ];
    let name: Vec<String> = case.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let mut missed = 0;
    for (part, measured) in parts {
        let (planted, measured) = (of(part) / requests, measured / requests);
        if planted < 1000.0 && measured < 1000.0 {
            continue;
        }
        let share = (measured - planted) / planted;
        let misses = part != "ready" && planted >= JUDGED_NS && share.abs() > SHARE_MAX;
        missed += u32::from(misses);
        println!(
            "| {} | {} | {users} | {requests} | {part} | {:.1} | {:.1} | {:+.1} %{} |",
            name.join(", "),
            if tcp { "tcp" } else { "unix" },
            planted / 1e3,
            measured / 1e3,
            share * 100.0,
            if misses { " ✗" } else { "" }
        );
    }
    let [user, system] = counted.samples;
    if user + system > 0 {
        println!("| | | | {} | samples user, system | | {user}, {system} | |", counted.requests);
    }
    missed
}
