//! The planted truth: each part as the server spent it, and as the tracer counted it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use whyso_model::State;
use whyso_trace::{TraceSpec, Tracer};

use crate::cpus::CpuTime;
use crate::{Outcome, RequestCounts};

/// What is planted: nothing first, then each part by itself, then mixed.
const CASES: &[&[(&str, u64)]] = &[
    &[],
    &[("sleep-us", 500)],
    &[("lock-us", 500)],
    &[("sync-kib", 4096)],
    &[("spin-us", 300)],
    &[("user-us", 300)],
    &[("kernel-us", 300)],
    &[("user-us", 300), ("kernel-us", 100)],
    &[("sleep-us", 500), ("user-us", 200)],
    &[
        ("sleep-us", 300),
        ("lock-us", 300),
        ("sync-kib", 4096),
        ("spin-us", 100),
        ("user-us", 100),
        ("kernel-us", 100),
    ],
];

/// Parts below this much a request are shown and not judged, in nanoseconds.
const JUDGED_NS: f64 = 50_000.0;
const SHARE_MAX: f64 = 0.03;

pub(crate) fn run(driver: &str, seconds: u64) -> Outcome {
    println!(
        "| planted | link | users | requests | part | planted us | measured us | difference | interrupts, stolen |"
    );
    println!("| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |");
    let _awake = Awake::all()?;
    let (mut judged, mut missed) = (0, 0);
    for tcp in [false, true] {
        for users in [1, 4] {
            for case in CASES {
                let (parts, misses) = run_case(driver, seconds, case, tcp, users)?.print(case, tcp, users);
                judged += parts;
                missed += misses;
            }
        }
    }
    println!("\n{} of {judged} parts of 50 us per request or more are within 3 %.", judged - missed);
    Ok(())
}

/// Keeps every CPU from sleeping, by one thread per CPU that runs when nothing else does. The kernel counts no wait for a CPU to
/// wake up. The server's own clocks could not distinguish it from what the server waited for.
pub(crate) struct Awake {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    pub(crate) fn all() -> std::io::Result<Awake> {
        let ends = Arc::new(AtomicBool::new(false));
        let cpus = std::thread::available_parallelism()?.get();
        let spin = |ends: Arc<AtomicBool>| {
            move || {
                let parameters = libc::sched_param { sched_priority: 0 };
                // SAFETY: it takes a valid pointer and this thread.
                let refused = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
                assert_eq!(refused, 0, "a thread may always lower its priority");
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..cpus).map(|_| std::thread::spawn(spin(ends.clone()))).collect();
        Ok(Awake { ends, threads })
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Runs one case.
fn run_case(
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
    let (before, cpus) = (tracer.read(), CpuTime::now()?);
    let mut load = Command::new(driver)
        .args(["child", option, value, "--workload", "oltp-point-select"])
        .args(["--users", &users.to_string(), "--seconds", &seconds.to_string()])
        .stdout(Stdio::null())
        .spawn()?;
    let outcome = load.wait()?;
    let counted = RequestCounts::between(&before, &tracer.read());
    let cpus = cpus.until_now()?;
    drop(server.stdin.take());
    let mut spent = String::new();
    printed.read_to_string(&mut spent)?;
    server.wait()?;
    if !outcome.success() {
        return Err(format!("{driver} failed: {outcome}").into());
    }
    Ok(Case { spent, counted, cpus })
}

/// What both sides measured in one case.
struct Case {
    /// As the server printed it.
    spent: String,
    counted: RequestCounts,
    /// While it ran. A thread's own CPU clock leaves out what interrupted it and what the hypervisor took. The tracer's
    /// `cpu` has both, since the thread had the CPU.
    cpus: CpuTime,
}

impl Case {
    /// A part a request, in nanoseconds, as the server measured it.
    fn planted_ns(&self, part: &str) -> f64 {
        let value = self.spent.lines().find_map(|line| line.strip_prefix(part)?.trim().parse::<f64>().ok());
        value.unwrap_or(f64::NAN)
    }

    fn measured_ns(&self, states: &[State]) -> f64 {
        states.iter().map(|state| self.counted.in_requests[*state as usize]).sum::<u64>() as f64
    }

    /// Prints the rows of a case. Returns how many parts were judged, and how many of them differ by more than is allowed.
    fn print(&self, case: &[(&str, u64)], tcp: bool, users: u32) -> (u32, u32) {
        let requests = self.planted_ns("requests");
        let parts = [
            ("sleep", self.measured_ns(&[State::Sleep]), None),
            ("lock", self.measured_ns(&[State::Lock]), None),
            ("sync", self.measured_ns(&[State::FileWrite, State::FileSync, State::KernelLock]), None),
            ("cpu", self.measured_ns(&[State::Cpu]), Some("send-cpu")),
            ("ready", self.measured_ns(&[State::Runqueue, State::Wakeup]), Some("send-ready")),
            ("elapsed", self.counted.request_ns as f64, Some("send-elapsed")),
        ];
        let name: Vec<String> = case.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let name = if name.is_empty() { "nothing".to_string() } else { name.join(", ") };
        let link = if tcp { "tcp" } else { "unix" };
        let (mut judged, mut missed) = (0, 0);
        for (part, measured, send) in parts {
            let least = self.planted_ns(part) / requests;
            let most = least + send.map_or(0.0, |send| self.planted_ns(send) / requests);
            let measured = measured / requests;
            if most < 1000.0 && measured < 1000.0 {
                continue;
            }
            let share = (measured - measured.clamp(least, most)) / least;
            let judges = part != "ready" && least >= JUDGED_NS;
            let misses = judges && share.abs() > SHARE_MAX;
            judged += u32::from(judges);
            missed += u32::from(misses);
            let planted = match send {
                Some(_) => format!("{:.1} to {:.1}", least / 1e3, most / 1e3),
                None => format!("{:.1}", least / 1e3),
            };
            println!(
                "| {name} | {link} | {users} | {requests} | {part} | {planted} | {:.1} | {:+.1} %{} | {:.1}, {:.1} % |",
                measured / 1e3,
                share * 100.0,
                if misses { " ✗" } else { "" },
                self.cpus.per_cent(self.cpus.interrupts_ns),
                self.cpus.per_cent(self.cpus.stolen_ns)
            );
        }
        let [user, system] = self.counted.samples;
        if user + system > 0 {
            println!(
                "| {name} | {link} | {users} | {requests} | samples user, system | | {user}, {system} | | |"
            );
        }
        (judged, missed)
    }
}
