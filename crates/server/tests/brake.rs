//! CPUs that are taken away from everything else.

// Runs alone: it judges shares of a CPU, and takes that CPU from others.

use std::fs;
use std::time::{Duration, Instant};

use whyso_server::Brake;

/// CPU time of this process's child that takes a CPU, in nanoseconds.
fn taken_ns() -> u64 {
    let own = std::process::id();
    let is_ours = |pid: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        text.contains("(whyso-brake)") && fields.get(1).is_some_and(|parent| *parent == own.to_string())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut names = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let pid = names.find(|name| is_ours(name)).expect("a process takes the CPU");
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Share of the time for which the CPU was taken, over a second.
fn share_taken() -> f64 {
    let (begin, begin_ns) = (Instant::now(), taken_ns());
    std::thread::sleep(Duration::from_secs(1));
    (taken_ns() - begin_ns) as f64 / begin.elapsed().as_nanos() as f64
}

#[test]
fn a_cpu_is_taken_away_for_its_share_of_the_time_whatever_else_runs_there() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).unwrap() as u32;
    let mut brake = Brake::start(&[cpu]).unwrap();
    for percent in [80, 40, 100] {
        brake.slow_to(percent).unwrap();
        let taken = share_taken();
        let expected = 1.0 - f64::from(percent) / 100.0;
        assert!((taken - expected).abs() < 0.05, "{percent} %: {taken}");
    }
}

#[test]
fn a_cpu_that_does_not_exist_is_refused() {
    let refused = Brake::start(&[100_000]).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("CPUs can't be taken away"), "{refused}");
}
