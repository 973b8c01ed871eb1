//! A planted network: a relay between load and server that holds what it passes on back by a known time in each direction.
//!
//! The relay is a process of its own and measures by its own clock how long it held each piece. The tracer sees the load's side
//! of the wire and the server's side of each request. What lies between is the relay's.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use whyso_trace::{TraceSpec, Tracer};

use crate::planted::Awake;
use crate::{Outcome, RequestCounts};

const DELAYS_US: [u64; 3] = [500, 2_000, 10_000];
const USERS: [u32; 2] = [1, 4];
const SHARE_MAX: f64 = 0.03;
const PIECE_BYTES: usize = 64 * 1024;

/// What the relay passed on to the server, and how long it held that and the answers.
#[derive(Default)]
struct RelayTimes {
    requests: AtomicU64,
    ns: AtomicU64,
}

/// The relay itself: prints where it listens, runs until its standard input ends, and prints what it held.
pub(crate) fn serve(target: &str, delay_us: u64) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("listening on tcp:{}\nready", listener.local_addr()?);
    let held = Arc::new(RelayTimes::default());
    let (all, target) = (held.clone(), target.to_string());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let passed = client.and_then(|client| both_ways(client, &target, delay_us, &all));
            if let Err(error) = passed {
                eprintln!("relay: a connection could not be made: {error}");
            }
        }
    });
    io::copy(&mut io::stdin(), &mut io::sink())?;
    println!("requests {}\nheld {}", held.requests.load(Ordering::Relaxed), held.ns.load(Ordering::Relaxed));
    Ok(())
}

fn both_ways(client: TcpStream, target: &str, delay_us: u64, held: &Arc<RelayTimes>) -> io::Result<()> {
    let server = TcpStream::connect(target)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ways = [(client.try_clone()?, server.try_clone()?, true), (server, client, false)];
    for (from, to, is_request) in ways {
        let held = held.clone();
        // It ends with its connection.
        std::thread::spawn(move || forward(from, to, is_request, delay_us, &held));
    }
    Ok(())
}

fn forward(
    mut from: TcpStream,
    mut to: TcpStream,
    is_request: bool,
    delay_us: u64,
    held: &RelayTimes,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = from.read(&mut piece)?;
        let received = Instant::now();
        if length == 0 {
            return to.shutdown(std::net::Shutdown::Write);
        }
        std::thread::sleep(Duration::from_micros(delay_us));
        // Before it is passed on: the receiver may read the sums.
        held.ns.fetch_add(received.elapsed().as_nanos() as u64, Ordering::Relaxed);
        held.requests.fetch_add(u64::from(is_request), Ordering::Relaxed);
        to.write_all(&piece[..length])?;
    }
}

/// A child that prints where it listens, then `ready`.
pub(crate) struct Listening {
    pub(crate) child: Child,
    printed: BufReader<ChildStdout>,
    pub(crate) address: String,
}

impl Listening {
    pub(crate) fn start(command: &mut Command) -> Result<Listening, Box<dyn std::error::Error>> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut printed = BufReader::new(child.stdout.take().ok_or("a child without output")?);
        let (mut address, mut line) = (String::new(), String::new());
        while line.trim() != "ready" {
            line.clear();
            if printed.read_line(&mut line)? == 0 {
                return Err("a child ended at once".into());
            }
            if let Some(tcp) = line.trim().strip_prefix("listening on tcp:") {
                address = tcp.to_string();
            }
        }
        Ok(Listening { child, printed, address })
    }

    /// Ends it, and returns what it printed.
    pub(crate) fn end(mut self) -> io::Result<String> {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.printed.read_to_string(&mut rest)?;
        self.child.wait()?;
        Ok(rest)
    }
}

/// The rows of the planted network.
pub(crate) fn run(driver: &str, seconds: u64) -> Outcome {
    let _awake = Awake::all()?;
    println!("| delay each way us | users | requests | held us per request | measured us | difference |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for delay_us in DELAYS_US {
        for users in USERS {
            run_case(driver, seconds, delay_us, users)?;
        }
    }
    Ok(())
}

fn run_case(driver: &str, seconds: u64, delay_us: u64, users: u32) -> Outcome {
    let own = std::env::current_exe()?;
    let program = own.with_file_name("planted_server");
    let server = Listening::start(Command::new(program).args(["--tcp", "127.0.0.1:0"]))?;
    let relay = Listening::start(Command::new(own).args(["relay", &server.address, &delay_us.to_string()]))?;
    let servers = [server.child.id()];
    let mut tracer = Tracer::start(&TraceSpec { servers: servers.to_vec(), ..TraceSpec::default() })?;
    let before = tracer.read();
    let mut load = Command::new(driver)
        .args(["child", "--tcp", &relay.address, "--workload", "oltp-point-select"])
        .args(["--users", &users.to_string(), "--seconds", &seconds.to_string()])
        .stdout(Stdio::null())
        .spawn()?;
    // It has not connected yet.
    tracer.watch(&servers, &[load.id()])?;
    let outcome = load.wait()?;
    let counted = RequestCounts::between(&before, &tracer.read());
    let printed = relay.end()?;
    server.end()?;
    if !outcome.success() {
        return Err(format!("{driver} failed: {outcome}").into());
    }
    let number = |name: &str| -> Result<f64, Box<dyn std::error::Error>> {
        let value = printed.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.ok_or_else(|| format!("the relay printed no {name}").into())
    };
    let requests = number("requests")?;
    let held_ns = number("held")? / requests;
    let served_ns = (counted.request_ns + counted.transit_ns) as f64 / counted.requests.max(1) as f64;
    let measured_ns = counted.wire_ns as f64 / counted.answers.max(1) as f64 - served_ns;
    let share = measured_ns / held_ns - 1.0;
    println!(
        "| {delay_us} | {users} | {requests} | {:.1} | {:.1} | {:+.1} %{} |",
        held_ns / 1e3,
        measured_ns / 1e3,
        share * 100.0,
        if share.abs() > SHARE_MAX { " ✗" } else { "" }
    );
    Ok(())
}
