//! How much of a user's stack has to be copied. It measures which share of a server's stacks reaches its root at 4, 8, 16 and 32 KiB.
//!
//! ```text
//! bench_stack_bytes PID [SECONDS]
//! ```
//!
//! Takes the stacks of a running process as a recording does, and unwinds each at each size. Prints the shares, what the programs cost,
//! and how much there was to copy.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use whyso_stacks::{End, Registers, Unwinding};
use whyso_trace::{StackKind, StackSampling, TraceSpec, Tracer};

const SIZES: [usize; 6] = [2 << 10, 4 << 10, 8 << 10, 16 << 10, 24 << 10, 32 << 10];
const READ_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Default)]
struct StackCounts {
    stacks: u64,
    roots: [u64; SIZES.len()],
    lost: u64,
    bytes: u64,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(pid) = arguments.next().and_then(|pid| pid.parse().ok()) else {
        eprintln!("bench_stack_bytes: name the process to trace: bench_stack_bytes PID [SECONDS]");
        return ExitCode::from(2);
    };
    let seconds = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(10);
    match measure(pid, Duration::from_secs(seconds)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench_stack_bytes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(pid: u32, length: Duration) -> Result<(), whyso_trace::Error> {
    let tracer = Tracer::start(&TraceSpec {
        servers: vec![pid],
        stacks: StackSampling::Full,
        cost: true,
        ..TraceSpec::default()
    })?;
    let mut stacks = tracer.stacks()?;
    let mut unwinding = Unwinding::default();
    let mut counts_by_kind: BTreeMap<&str, StackCounts> = BTreeMap::new();
    let mut unwound_ns = 0;
    let began = Instant::now();
    while began.elapsed() < length {
        std::thread::sleep(READ_INTERVAL);
        stacks.take(|record| {
            let what = match record.kind {
                StackKind::OnCpu => "on CPU",
                StackKind::Back => "waited",
                StackKind::Ready => "was ready",
                StackKind::Waker if record.pid == pid => "woke",
                StackKind::Waker | StackKind::Wait | StackKind::Past => return,
            };
            let from = record.registers;
            if from.stack_pointer == 0 {
                return;
            }
            let registers = Registers {
                instruction_pointer: from.instruction_pointer,
                stack_pointer: from.stack_pointer,
                frame_pointer: from.frame_pointer,
                link_register: from.link_register,
            };
            let counts = counts_by_kind.entry(what).or_default();
            counts.stacks += 1;
            counts.bytes += record.user.len() as u64;
            for (size, roots) in SIZES.into_iter().zip(&mut counts.roots) {
                let began = Instant::now();
                let bytes = &record.user[..record.user.len().min(size)];
                let stack = unwinding.user(pid, registers, bytes);
                *roots += u64::from(stack.end == End::Root);
                if size == SIZES[SIZES.len() - 1] {
                    counts.lost += u64::from(stack.end == End::Lost);
                    unwound_ns += began.elapsed().as_nanos() as u64;
                }
            }
        })?;
    }
    print!("{:8} {:>8} {:>12}", "", "stacks", "mean bytes");
    SIZES.iter().for_each(|size| print!(" {:>8}", format!("{} KiB", size >> 10)));
    println!(" {:>8}", "lost");
    let share = |part: u64, of: u64| format!("{:.1} %", part as f64 * 100.0 / of as f64);
    let mut all = 0;
    for (what, counts) in &counts_by_kind {
        all += counts.stacks;
        print!("{what:8} {:8} {:12}", counts.stacks, counts.bytes / counts.stacks);
        counts.roots.iter().for_each(|roots| print!(" {:>8}", share(*roots, counts.stacks)));
        println!(" {:>8}", share(counts.lost, counts.stacks));
    }
    println!("unwinding: {} us per stack; {:?}", unwound_ns / 1000 / all.max(1), stacks.lost());
    for cost in stacks.cost().into_iter().chain(tracer.cost()) {
        let mean_ns = cost.ns.checked_div(cost.runs).unwrap_or(0);
        let share = cost.ns as f64 * 100.0 / began.elapsed().as_nanos() as f64;
        println!("{:22} {:>9} runs, {mean_ns:>6} ns each, {share:.3} % of one CPU", cost.program, cost.runs);
    }
    Ok(())
}
