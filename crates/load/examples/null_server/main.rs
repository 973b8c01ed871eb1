//! A server that answers at once from canned packets, so that only the client's cost is measured.
//!
//! ```text
//! null_server [--unix PATH]… [--tcp ADDRESS:PORT]… [--threads 1] [--cpus 1,…] [--spin]
//! ```
//!
//! It lets anyone in, and prepares anything; there are no tables. It answers each kind of statement with the bytes that
//! a MariaDB 10.11 sent for sysbench's (see `answers.rs`). It prints where it listens, then `ready`, and runs until it
//! is
//! ended. `bench/client-cost/README.md` says how it is used.

mod answers;
mod serve;
mod session;

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use answers::AnswerCatalogue;
use serve::Listener;

struct Plan {
    listeners: Vec<Listener>,
    threads: usize,
    /// Thread t runs on the t-th, round again where there are more threads; empty: wherever the kernel puts it.
    cpus: Vec<usize>,
    /// Look for requests all the time in place of sleeping until one comes.
    spins: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let plan = match parse(&arguments) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("null_server: {error}");
            return ExitCode::from(2);
        }
    };
    allow_files();
    for listener in &plan.listeners {
        println!("listening on {listener}");
    }
    println!("ready");
    let listeners = Arc::new(plan.listeners);
    let canned = Arc::new(AnswerCatalogue::new());
    let threads: Vec<_> = (0..plan.threads)
        .map(|number| {
            let (listeners, canned, spins) = (listeners.clone(), canned.clone(), plan.spins);
            let cpu = plan.cpus.get(number % plan.cpus.len().max(1)).copied();
            std::thread::spawn(move || {
                if let Some(cpu) = cpu {
                    let mut set = CpuSet::new();
                    set.set(cpu);
                    sched_setaffinity(None, &set)?;
                }
                serve::run(&listeners, &canned, spins)
            })
        })
        .collect();
    for thread in threads {
        match thread.join() {
            Ok(Ok(never)) => match never {},
            Ok(Err(error)) => eprintln!("null_server: {error}"),
            Err(_) => eprintln!("null_server: a thread panicked"),
        }
    }
    ExitCode::FAILURE
}

fn parse(arguments: &[String]) -> Result<Plan> {
    let mut plan = Plan { listeners: Vec::new(), threads: 1, cpus: Vec::new(), spins: false };
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        if name == "--spin" {
            plan.spins = true;
            continue;
        }
        let value = arguments.next().ok_or_else(|| anyhow!("{name} needs a value"))?;
        let wrong = |why: String| anyhow!("{name} can't be '{value}': {why}");
        match name.as_str() {
            "--unix" => {
                let listener = UnixListener::bind(value).map_err(|error| wrong(error.to_string()))?;
                plan.listeners.push(Listener::Unix(listener));
            }
            "--tcp" => {
                let listener = TcpListener::bind(value).map_err(|error| wrong(error.to_string()))?;
                plan.listeners.push(Listener::Tcp(listener));
            }
            "--threads" => match value.parse() {
                Ok(threads @ 1..=64) => plan.threads = threads,
                _ => return Err(wrong("give 1 to 64".to_string())),
            },
            "--cpus" => {
                let cpus: Result<Vec<usize>, _> = value.split(',').map(str::parse).collect();
                let exist = |cpus: &Vec<usize>| cpus.iter().all(|cpu| *cpu < CpuSet::MAX_CPU);
                plan.cpus = cpus
                    .ok()
                    .filter(exist)
                    .ok_or_else(|| wrong("give numbers of CPUs, as in 0,1".to_string()))?;
            }
            _ => bail!("unknown option {name}"),
        }
    }
    if plan.listeners.is_empty() {
        bail!("nowhere to listen: give --unix PATH or --tcp ADDRESS:PORT");
    }
    Ok(plan)
}

/// As many open files as the machine lets us have: one a connection is needed.
fn allow_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it can't be raised, accepting says so.
    let _ = setrlimit(Resource::Nofile, limit);
}
