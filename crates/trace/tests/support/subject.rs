//! The process that the tests of the tracer watch: threads that do one known thing each, and a small server.
//!
//! ```text
//! trace-subject jobs                  threads that wait for a byte on standard input, then do what they are named for
//! trace-subject churn THREADS         this many short threads, one after the other, once there is a byte
//! trace-subject pauses                threads that pause, each in its own way, once there is a byte
//! trace-subject rename                a thread that takes another name once there is a byte
//! trace-subject sites                 threads that wait for locks at three known sites, and one that computes
//! trace-subject sleeper               a thread that sleeps on a condition from the first byte on; each other byte wakes it
//! trace-subject forks                 starts `sleep` once there is a byte, and prints its number
//! trace-subject writers PROCESSES     processes that queue on the lock of one log, and of one folder
//! trace-subject serve OPTIONS…        a server; see `subject/serve.rs`
//! trace-subject web OPTIONS…          a program that asks a server; see `subject/web.rs`
//! ```

#[path = "subject/jobs.rs"]
mod jobs;
#[path = "subject/pauses.rs"]
mod pauses;
#[path = "subject/serve.rs"]
mod serve;
#[path = "subject/sites.rs"]
mod sites;
#[path = "subject/web.rs"]
mod web;
#[path = "subject/writers.rs"]
mod writers;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["jobs"] => jobs::all(),
        ["churn", threads] => jobs::churn(threads.parse().expect("a number of threads")),
        ["pauses"] => pauses::all(),
        ["rename"] => jobs::rename(),
        ["sites"] => sites::all(),
        ["sleeper"] => jobs::sleeper(),
        ["forks"] => jobs::forks(),
        ["writers", processes] => writers::fork(processes.parse().expect("a number of processes")),
        ["serve", options @ ..] => serve::serve(&serve::Plan::of(options)),
        ["web", options @ ..] => web::serve(&web::Plan::of(options)),
        _ => {
            eprintln!(
                "trace-subject: give jobs, churn, pauses, rename, sites, sleeper, forks, writers, serve or web"
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Nanoseconds of a clock.
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is written to, and lives through the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

fn spin_ns(ns: u64) {
    let end = now_ns() + ns;
    while now_ns() < end {
        std::hint::spin_loop();
    }
}
