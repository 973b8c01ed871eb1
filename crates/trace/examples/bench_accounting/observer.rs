//! What the programs cost: their own run time, and what throughput does without them, in one run.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use whyso_trace::{NOTHING, TraceSpec, Tracer};

use crate::Outcome;
use crate::cpus::{CpuTime, process_cpu_ns};
use crate::windows::{self, next};

const USERS: usize = 4;
/// In which the programs' own run time is counted.
const DIRECT: Duration = Duration::from_secs(5);
/// The client's half of the handshake: 4.1 protocol, plugins, a schema, no password.
const CAPABILITIES: u32 = 0x0008 | 0x0200 | 0x8000 | 0x8_0000;
const ROWS: u64 = 100_000;

/// Which parts are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    All,
    /// What throughput and CPU time per query do with the programs and without them.
    Switched,
}

pub(crate) fn run(pid: &str, socket: &str, seconds: u64, parts: Parts) -> Outcome {
    let pid = pid.parse()?;
    let count = Arc::new(AtomicU64::new(0));
    let ends = Arc::new(AtomicBool::new(false));
    let mut users = Vec::new();
    for number in 0..USERS {
        let (count, ends, socket) = (count.clone(), ends.clone(), login(socket)?);
        let name = format!("load-{number}");
        users.push(std::thread::Builder::new().name(name).spawn(move || query(socket, &count, &ends))?);
    }
    let outcome = match parts {
        Parts::All => direct(pid, &count)
            .and_then(|()| switched(pid, &count, seconds))
            .and_then(|()| performance_schema(pid, socket, &count, seconds)),
        Parts::Switched => switched(pid, &count, seconds),
    };
    ends.store(true, Ordering::Relaxed);
    for user in users {
        user.join().map_err(|_| "a user panicked")??;
    }
    outcome
}

/// The programs' own run time, as the kernel measures it.
fn direct(pid: u32, count: &AtomicU64) -> Outcome {
    let mut tracer = Tracer::start(&TraceSpec { servers: vec![pid], cost: true, ..TraceSpec::default() })?;
    let (queries, cpus, begun) = (count.load(Ordering::Relaxed), CpuTime::now()?, Instant::now());
    let before = tracer.cost();
    std::thread::sleep(DIRECT);
    let after = tracer.cost();
    let elapsed = begun.elapsed();
    let queries = count.load(Ordering::Relaxed) - queries;
    let cpus = cpus.until_now()?;
    let read_begun = Instant::now();
    tracer.read();
    let read_us = read_begun.elapsed().as_secs_f64() * 1e6;
    println!(
        "{:.0} queries/s, one reading takes {read_us:.0} us; the hypervisor took {:.1} % of the CPUs.\n",
        queries as f64 / elapsed.as_secs_f64(),
        cpus.per_cent(cpus.stolen_ns)
    );
    println!("| program | runs a query | ns a run | ns a query |");
    println!("| --- | ---: | ---: | ---: |");
    let per = |of: u64, what: u64| of as f64 / what.max(1) as f64;
    let (mut all_runs, mut all_ns, mut counting_ns) = (0, 0, 0.0);
    for (before, after) in before.iter().zip(&after) {
        let (runs, ns) = (after.runs - before.runs, after.ns - before.ns);
        if after.program == NOTHING {
            counting_ns = per(ns, runs);
            continue;
        }
        all_runs += runs;
        all_ns += ns;
        println!(
            "| {} | {:.2} | {:.0} | {:.0} |",
            after.program,
            per(runs, queries),
            per(ns, runs),
            per(ns, queries)
        );
    }
    println!("| all | {:.2} | | {:.0} |\n", per(all_runs, queries), per(all_ns, queries));
    let share = |ns: f64| ns / cpus.busy_ns as f64 * 100.0;
    println!("{:.2} % of all CPU time that was used.", share(all_ns as f64));
    println!(
        "A program that only returns is counted with {counting_ns:.0} ns a run. Without that much a run, which is the counting's own, \
         the programs take {:.2} %.",
        share(all_ns as f64 - all_runs as f64 * counting_ns)
    );
    Ok(())
}

/// Throughput with and without the programs.
fn switched(pid: u32, count: &AtomicU64, seconds: u64) -> Outcome {
    let mut tracer = Tracer::start(&TraceSpec { servers: vec![pid], ..TraceSpec::default() })?;
    let modes = ["without the programs", "with the programs"];
    let cpu_ns = || cpu_ns_with_server(pid);
    windows::compare(&modes, count, seconds, cpu_ns, |mode| match mode {
        0 => {
            tracer.pause();
            Ok(())
        }
        _ => Ok(tracer.resume()?),
    })
}

/// CPU time of the server and of this program, which is the load.
fn cpu_ns_with_server(pid: u32) -> io::Result<u64> {
    Ok(process_cpu_ns(pid)? + process_cpu_ns(std::process::id())?)
}

/// Throughput by what the Performance Schema does, where it is started.
fn performance_schema(pid: u32, socket: &str, count: &AtomicU64, seconds: u64) -> Outcome {
    let mut server = login(socket)?;
    let mut ask = |sql: &str| -> io::Result<()> {
        send(&mut server, 0, format!("\x03{sql}").as_bytes())?;
        match packet(&mut server)?.as_slice() {
            [0xff, error @ ..] => Err(io::Error::other(format!("{sql}: {}", String::from_utf8_lossy(error)))),
            _ => Ok(()),
        }
    };
    for table in ["setup_instruments", "setup_consumers"] {
        let sql = format!("CREATE TEMPORARY TABLE {table} AS SELECT * FROM performance_schema.{table}");
        if let Err(error) = ask(&sql) {
            println!("\nThe Performance Schema's cost is not measured: {error}");
            return Ok(());
        }
    }
    let mut set = |mode: usize| -> Outcome {
        if mode == 1 {
            ask("UPDATE performance_schema.setup_instruments s JOIN setup_instruments d USING (NAME) \
                 SET s.ENABLED = d.ENABLED, s.TIMED = d.TIMED")?;
            ask("UPDATE performance_schema.setup_consumers s JOIN setup_consumers d USING (NAME) \
                 SET s.ENABLED = d.ENABLED")?;
        } else {
            let word = if mode == 0 { "NO" } else { "YES" };
            ask(&format!(
                "UPDATE performance_schema.setup_instruments SET ENABLED = '{word}', TIMED = '{word}'"
            ))?;
            ask(&format!("UPDATE performance_schema.setup_consumers SET ENABLED = '{word}'"))?;
        }
        Ok(())
    };
    let modes = [
        "with every instrument and consumer of the Performance Schema off",
        "with the Performance Schema as it was started",
        "with all of them on, and timed",
    ];
    let outcome = windows::compare(&modes, count, seconds, || cpu_ns_with_server(pid), &mut set);
    set(1)?;
    outcome
}

fn login(socket: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    packet(&mut stream)?;
    let mut login = CAPABILITIES.to_le_bytes().to_vec();
    login.extend_from_slice(&[0, 0, 0, 1, 45]);
    login.extend_from_slice(&[0; 23]);
    login.extend_from_slice(b"root\0\0whyso\0mysql_native_password\0");
    send(&mut stream, 1, &login)?;
    match packet(&mut stream)?.first() {
        Some(0) => Ok(stream),
        _ => Err(io::Error::other("the server refused root without a password, or has no schema whyso")),
    }
}

/// Point selects until the end.
fn query(mut stream: UnixStream, count: &AtomicU64, ends: &AtomicBool) -> io::Result<()> {
    let mut random = 88_172_645_463_325_252;
    let mut answer = vec![0; 16 * 1024];
    while !ends.load(Ordering::Relaxed) {
        let id = next(&mut random) % ROWS + 1;
        send(&mut stream, 0, format!("\x03SELECT c FROM sbtest1 WHERE id={id}").as_bytes())?;
        // The answer is shorter than the server's buffer and comes at once.
        let length = stream.read(&mut answer)?;
        if length < 5 || answer[4] == 0xff {
            return Err(io::Error::other("the server answered a point select with an error"));
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn send(stream: &mut UnixStream, sequence: u8, payload: &[u8]) -> io::Result<()> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes[3] = sequence;
    bytes.extend_from_slice(payload);
    stream.write_all(&bytes)
}

fn packet(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut payload)?;
    Ok(payload)
}
