//! Makes a recording of a server's threads for benches: `make_threads DIR [THREADS] [SECONDS] [--stacks]`.
//!
//! Connections work in eight states whose shares wander, in four levels of more and more of them. The others wait for their clients.
//! `--stacks` adds 200 samples and 400 chosen waits per second, of 2,000 stacks, as two CPUs give. The same numbers give the same
//! recording.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use whyso_random::SplitMix64;
use whyso_record::data::{StackFrame, StackSample, StackWait, StatesInterval, ThreadStates};
use whyso_record::run::{Level, Purpose, RunEnd, RunInfo, Window};
use whyso_record::{Options, Recorder, Result, Summary};

const S: i64 = 1_000_000_000;
const BEGIN_NS: i64 = 1_000 * S;
const LEVELS: u32 = 4;
const SEGMENT_S: u32 = 300;
/// What may wait before this waits: it has no clock that would slow it down.
const QUEUED_BYTES_MAX: usize = 16 << 20;
const SAMPLES_PER_S: u32 = 200;
const WAITS_PER_S: u32 = 400;
const STACKS: u32 = 2_000;
const DEPTH: u32 = 25;
const FUNCTIONS: u64 = 900;
const STATES: [&str; 14] = [
    "cpu",
    "runqueue",
    "wakeup",
    "lock",
    "kernel_lock",
    "file_read",
    "file_write",
    "file_sync",
    "net_send",
    "net_receive",
    "page_fault",
    "sleep",
    "aio",
    "other",
];
const IDLE: usize = 9;
/// States of a thread at work, and their mean shares in per mille.
const AT_WORK: [(usize, f64); 8] =
    [(0, 90.0), (1, 210.0), (2, 15.0), (3, 420.0), (5, 25.0), (7, 130.0), (8, 5.0), (IDLE, 105.0)];

fn main() -> ExitCode {
    let (flags, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let number = |place: usize, default: u32| arguments.get(place).map_or(Ok(default), |text| text.parse());
    let (Some(dir), Ok(threads), Ok(seconds)) = (arguments.first(), number(1, 1000), number(2, 600)) else {
        eprintln!("give a folder, the number of threads (1000) and the seconds (600)");
        return ExitCode::from(2);
    };
    match record(Path::new(dir), threads, seconds, flags.iter().any(|flag| flag == "--stacks")) {
        Ok(summary) => {
            println!("{} bytes", summary.bytes);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Numbers of a fixed seed.
struct Noise(SplitMix64);

impl Noise {
    fn below(&mut self, most: u32) -> u32 {
        self.0.below(u64::from(most.max(1))) as u32
    }

    /// In [0, 1).
    fn share(&mut self) -> f64 {
        self.0.unit_f64()
    }
}

fn record(dir: &Path, threads: u32, seconds: u32, stacks: bool) -> Result<Summary> {
    let options = Options { own_cost: false, reserve_bytes: 0, segment_s: 3600, ..Options::default() };
    let recorder = Recorder::create(dir, options)?;
    let mut noise = Noise(SplitMix64::new(7));
    for second in 0..seconds {
        let t_ns = BEGIN_NS + i64::from(second) * S;
        let working = threads * (second * LEVELS / seconds + 1) / LEVELS;
        recorder.states(&states_of_second(t_ns, threads, working, &mut noise));
        if stacks {
            recorder.stacks(&samples(t_ns, working, &mut noise));
            recorder.waits(&waits(t_ns, working, &mut noise));
        }
        while recorder.queued_bytes() > QUEUED_BYTES_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
        if second % SEGMENT_S == SEGMENT_S - 1 {
            recorder.seal()?;
        }
    }
    if stacks {
        recorder.frames(&frames());
    }
    let id = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let ended = Some(RunEnd::Complete { at_ns: BEGIN_NS + i64::from(seconds) * S });
    let levels = (0..LEVELS).map(|index| level(index, threads, seconds)).collect();
    recorder.set_run(&RunInfo { id, levels, ended, ..RunInfo::default() });
    recorder.finish()
}

fn level(index: u32, threads: u32, seconds: u32) -> Level {
    let at = |part: u32| BEGIN_NS + i64::from(part * seconds / LEVELS) * S;
    let (begin_ns, end_ns) = (at(index), at(index + 1));
    Level {
        index,
        users: threads * (index + 1) / LEVELS,
        purpose: Purpose::Sweep,
        warmup: Window { begin_ns, end_ns: begin_ns + S },
        warmup_steady: true,
        window: Window { begin_ns: begin_ns + S, end_ns },
        result: Default::default(),
        ended: RunEnd::Complete { at_ns: end_ns },
    }
}

fn states_of_second(begin_ns: i64, threads: u32, working: u32, noise: &mut Noise) -> StatesInterval {
    let thread = |tid: u32| {
        let mut states_ms = vec![0; STATES.len()];
        if tid < working {
            let mut left = 1000;
            for (state, mean) in &AT_WORK[..AT_WORK.len() - 1] {
                let ms = ((mean * (0.4 + 1.2 * noise.share())) as u16).min(left);
                states_ms[*state] = ms;
                left -= ms;
            }
            states_ms[IDLE] = left;
        } else {
            // Snapshots are not exactly a second apart.
            states_ms[IDLE] = 999 + noise.below(3) as u16;
        }
        ThreadStates {
            tid: 4_000 + tid,
            born_ns: BEGIN_NS + i64::from(tid) * 1_234_567,
            name: "one_connection".to_string(),
            role: "connection".to_string(),
            states_ms,
            requests: 0,
        }
    };
    let states = STATES.map(str::to_string).to_vec();
    StatesInterval { begin_ns, t_ns: begin_ns + S, states, threads: (0..threads).map(thread).collect() }
}

fn samples(begin_ns: i64, working: u32, noise: &mut Noise) -> Vec<StackSample> {
    let sample = |number: u32| StackSample {
        t_ns: begin_ns + i64::from(number) * S / i64::from(SAMPLES_PER_S),
        tid: 4_000 + noise.below(working),
        role: "connection".to_string(),
        stack: noise.below(STACKS),
        weight_ns: 10_101_010,
    };
    (0..SAMPLES_PER_S).map(sample).collect()
}

fn waits(begin_ns: i64, working: u32, noise: &mut Noise) -> Vec<StackWait> {
    let wait = |number: u32| {
        let length_ns = (50_000.0 / (1.0 - noise.share()).max(1e-4)) as u64;
        StackWait {
            waker_past: Vec::new(),
            t_ns: begin_ns + i64::from(number) * S / i64::from(WAITS_PER_S),
            wait: u64::from(number),
            tid: 4_000 + noise.below(working),
            role: "connection".to_string(),
            state: if number.is_multiple_of(4) { "file_sync" } else { "lock" }.to_string(),
            length_ns,
            weight_ns: length_ns.max(5_000_000),
            stack: noise.below(STACKS),
            waker_tid: 4_000 + noise.below(working),
            waker_stack: Some(noise.below(STACKS)),
        }
    };
    (0..WAITS_PER_S).map(wait).collect()
}

fn frames() -> Vec<StackFrame> {
    let mut noise = Noise(SplitMix64::new(9));
    let frame = |stack: u32, depth: u32, noise: &mut Noise| StackFrame {
        stack,
        depth,
        function: format!("made_function_{:03}(THD*, unsigned long)", noise.0.below(FUNCTIONS)),
        module: "mariadbd".to_string(),
        build_id: None,
        address: 0,
        source_file: None,
        line: None,
        inlined: false,
    };
    (0..STACKS)
        .flat_map(|stack| (0..DEPTH).map(move |depth| (stack, depth)))
        .map(|(stack, depth)| frame(stack, depth, &mut noise))
        .collect()
}
