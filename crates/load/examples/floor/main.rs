//! What sending a request and receiving its answer costs at least. Loops send the bytes of one point select, and
//! receive as many bytes as its answer has, whatever they are.
//!
//! ```text
//! floor (--unix PATH | --tcp ADDRESS:PORT) [--engine io-uring|epoll] [--connections 8] [--loops 1] [--seconds 4]
//!       [--cpus 0,…]
//! ```
//!
//! Nothing is scanned, timed or counted but answers; a server that answers in another length makes it fail. It prints
//! the number of answers and the seconds. `bench/client-cost/README.md` says what it is compared with.

mod by_epoll;
mod by_uring;
mod peer;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use peer::{Address, Peer};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    Epoll,
    IoUring,
}

struct Plan {
    address: Address,
    engine: Engine,
    connections: usize,
    loops: usize,
    duration: Duration,
    /// Loop l runs on the l-th, round again where there are more loops; empty: wherever the kernel puts it.
    cpus: Vec<usize>,
}

/// How long to wait at most before the clock is looked at again.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(100);

/// What every loop works on.
pub(crate) struct Exchange {
    pub(crate) peers: Vec<Peer>,
    pub(crate) deadline: Instant,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let plan = match parse(&arguments) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("floor: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&plan) {
        Ok((answers, elapsed)) => {
            println!("{answers} {}", elapsed.as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Plan> {
    let (mut address, mut engine, mut cpus) = (None, Engine::IoUring, Vec::new());
    let (mut connections, mut loops, mut seconds) = (8, 1, 4);
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { bail!("{} needs a value", pair[0]) };
        let wrong = || anyhow!("{name} can't be '{value}'");
        match (name.as_str(), value.as_str()) {
            ("--unix", path) => address = Some(Address::Unix(PathBuf::from(path))),
            ("--tcp", text) => {
                let parsed: SocketAddr = text.parse().map_err(|_| wrong())?;
                address = Some(Address::Tcp(parsed));
            }
            ("--engine", "epoll") => engine = Engine::Epoll,
            ("--engine", "io-uring") => engine = Engine::IoUring,
            ("--connections", _) => connections = value.parse().map_err(|_| wrong())?,
            ("--loops", _) => loops = value.parse().map_err(|_| wrong())?,
            ("--seconds", _) => seconds = value.parse().map_err(|_| wrong())?,
            ("--cpus", _) => {
                let parsed: Result<Vec<usize>, _> = value.split(',').map(str::parse).collect();
                let exist = |cpus: &Vec<usize>| cpus.iter().all(|cpu| *cpu < CpuSet::MAX_CPU);
                cpus = parsed.ok().filter(exist).ok_or_else(wrong)?;
            }
            ("--engine", _) => return Err(wrong()),
            _ => bail!("unknown option {name}"),
        }
    }
    let address = address.context("nowhere to send to: give --unix PATH or --tcp ADDRESS:PORT")?;
    if loops == 0 || loops > connections {
        bail!("{loops} loops can't share {connections} connections: give each at least one");
    }
    Ok(Plan { address, engine, connections, loops, duration: Duration::from_secs(seconds), cpus })
}

/// Returns the number of answers, and the time in which they arrived.
fn run(plan: &Plan) -> io::Result<(u64, Duration)> {
    allow_files();
    let peers: Vec<Peer> =
        (0..plan.connections).map(|_| Peer::connect(&plan.address)).collect::<io::Result<_>>()?;
    let begin = Instant::now();
    let deadline = begin + plan.duration;
    let mut shares: Vec<Vec<Peer>> = (0..plan.loops).map(|_| Vec::new()).collect();
    for (number, peer) in peers.into_iter().enumerate() {
        shares[number % plan.loops].push(peer);
    }
    let all_ready = Barrier::new(plan.loops);
    let answers: io::Result<u64> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, peers) in shares.into_iter().enumerate() {
            let cpu = plan.cpus.get(number % plan.cpus.len().max(1)).copied();
            let all_ready = &all_ready;
            threads.push(scope.spawn(move || {
                let pinned = cpu.map_or(Ok(()), pin);
                all_ready.wait();
                pinned?;
                let exchange = Exchange { peers, deadline };
                match plan.engine {
                    Engine::Epoll => by_epoll::run(exchange),
                    Engine::IoUring => by_uring::run(exchange),
                }
            }));
        }
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|result| result.unwrap_or_else(|_| Err(io::Error::other("a loop panicked")))).sum()
    });
    Ok((answers?, begin.elapsed()))
}

fn wrong_length() -> io::Error {
    io::Error::other("the server closed a connection, or its answers differ in length")
}

fn pin(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

fn allow_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it can't be raised, opening the connection too many says so.
    let _ = setrlimit(Resource::Nofile, limit);
}
