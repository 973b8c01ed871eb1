//! Makes a recording of a large server for benches and tests: `make_large DIR [HOURS] [CONNECTIONS] [SERIES]`; by default 24 hours of 10,000
//! connections and 3,000 series.
//!
//! - One connection in twenty is at work in any second, for twenty seconds at a time. The others wait for their clients.
//! - 100 samples and 125 chosen waits per second, of 2,000 stacks.
//! - The server lists its connections every ten seconds.
//! - What the load did, second by second; one level over all of it.
//!
//! It is recorded as a run is. The same numbers give the same recording.

#[expect(dead_code, reason = "it makes whole recordings of series for other benches, too")]
mod recording_maker;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use recording_maker::Generator;
use whyso_random::SplitMix64;
use whyso_record::data::{
    Kind, LoadInterval, PastState, Reading, SeriesId, SeriesKey, StackFrame, StackSample, StackWait,
    StatesInterval, Status, TextRows, ThreadStates, Value,
};
use whyso_record::run::{Level, LevelResult, Purpose, RunEnd, RunInfo, Window};
use whyso_record::{Options, Recorder, Result, Summary};

const S: i64 = 1_000_000_000;
const BEGIN_NS: i64 = 1_000 * S;
const SEGMENT_S: u32 = 300;
/// What may wait before this waits: it has no clock that would slow it down.
const QUEUED_BYTES_MAX: usize = 64 << 20;
const SAMPLES_PER_S: u32 = 100;
const WAITS_PER_S: u32 = 125;
const STACKS: u32 = 2_000;
const DEPTH: u32 = 25;
const FUNCTIONS: u64 = 900;
/// A connection works for so many seconds at a time,
const AT_WORK_S: u32 = 20;
/// and rests for so many times as long.
const RESTS: u32 = 19;
/// Between two lists of the server's connections.
const LISTED_EVERY_S: u32 = 10;
const STATEMENTS: u64 = 40;
const STATES: [&str; 15] = [
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
    "idle",
];
const IDLE: usize = 9;
/// States of a thread at work, and their mean shares in per mille.
const AT_WORK: [(usize, f64); 8] =
    [(0, 90.0), (1, 210.0), (2, 15.0), (3, 420.0), (5, 25.0), (7, 130.0), (8, 5.0), (IDLE, 105.0)];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u32| arguments.get(place).map_or(Ok(default), |text| text.parse());
    let hours = arguments.get(1).map_or(Ok(24.0), |hours| hours.parse::<f64>());
    let (Some(dir), Ok(hours), Ok(connections), Ok(series)) =
        (arguments.first(), hours, number(2, 10_000), number(3, 3_000))
    else {
        eprintln!("give a folder, the hours (24), the connections (10000) and the series (3000)");
        return ExitCode::from(2);
    };
    match record(Path::new(dir), (hours * 3600.0) as u32, connections, series) {
        Ok(summary) => {
            println!("{} samples of series, {} bytes", summary.samples, summary.bytes);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn record(dir: &Path, seconds: u32, connections: u32, series: u32) -> Result<Summary> {
    let options = Options {
        own_cost: false,
        reserve_bytes: 0,
        segment_s: 86_400,
        queue_bytes_max: 4 * QUEUED_BYTES_MAX,
        ..Options::default()
    };
    let recorder = Recorder::create(dir, options)?;
    let mut large = Large::new(&recorder, connections, series);
    for second in 0..seconds {
        large.second(second);
        while recorder.queued_bytes() > QUEUED_BYTES_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
        if second % SEGMENT_S == SEGMENT_S - 1 {
            recorder.seal()?;
        }
    }
    recorder.frames(&frames());
    recorder.set_run(&run(dir, seconds, connections, large.requests));
    recorder.finish()
}

fn run(dir: &Path, seconds: u32, connections: u32, requests: u64) -> RunInfo {
    let id = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let end_ns = BEGIN_NS + i64::from(seconds) * S;
    let window = Window { begin_ns: BEGIN_NS, end_ns };
    let result = LevelResult { transactions: requests, queries: requests, ..LevelResult::default() };
    let level = Level {
        index: 0,
        users: connections,
        purpose: Purpose::Sweep,
        warmup: Window { begin_ns: BEGIN_NS, end_ns: BEGIN_NS },
        warmup_steady: true,
        window,
        result,
        ended: RunEnd::Complete { at_ns: end_ns },
    };
    let anchors = vec![whyso_clock::Anchor {
        monotonic_ns: BEGIN_NS,
        wall_ns: 1_750_000_000 * S,
        boot_id: String::new(),
    }];
    let ended = Some(RunEnd::Complete { at_ns: end_ns });
    RunInfo { id, ended, anchors, levels: vec![level], ..RunInfo::default() }
}

struct Large<'a> {
    recorder: &'a Recorder,
    noise: SplitMix64,
    series: Generator,
    /// Of the threads' time by state, and of requests.
    sums: Vec<(SeriesId, i64)>,
    interval: StatesInterval,
    requests: u64,
}

impl<'a> Large<'a> {
    fn new(recorder: &'a Recorder, connections: u32, series: u32) -> Large<'a> {
        let sum = |source: &str, metric: &str, instance: &str, unit: &str| {
            let id = recorder.series(&SeriesKey {
                host: "server".to_string(),
                source: source.to_string(),
                metric: metric.to_string(),
                instance: instance.to_string(),
                kind: Kind::Counter,
                unit: unit.to_string(),
            });
            (id, 0)
        };
        let mut sums: Vec<(SeriesId, i64)> =
            STATES.iter().map(|state| sum("threads", &format!("{state}_ns"), "connection", "ns")).collect();
        sums.push(sum("trace", "requests", "", "1"));
        let thread = |number: u32| ThreadStates {
            tid: 4_000 + number,
            born_ns: BEGIN_NS - S + i64::from(number),
            name: "one_connection".to_string(),
            role: "connection".to_string(),
            states_ms: vec![0; STATES.len()],
            requests: 0,
        };
        let states = STATES.map(str::to_string).to_vec();
        let threads = (0..connections).map(thread).collect();
        let made = (series as usize).saturating_sub(sums.len());
        Large {
            recorder,
            noise: SplitMix64::new(7),
            series: Generator::new(recorder, made),
            sums,
            interval: StatesInterval { begin_ns: 0, t_ns: 0, states, threads },
            requests: 0,
        }
    }

    fn second(&mut self, second: u32) {
        let begin_ns = BEGIN_NS + i64::from(second) * S;
        for reading in self.series.second(begin_ns) {
            self.recorder.reading(reading);
        }
        let before = self.requests;
        let at_work = self.states(second, begin_ns);
        self.sums_reading(begin_ns + S);
        self.recorder.stacks(&self.samples(begin_ns, &at_work));
        let waits = self.waits(begin_ns, &at_work);
        self.recorder.waits(&waits);
        self.load(begin_ns, self.requests - before);
        if second.is_multiple_of(LISTED_EVERY_S) {
            self.list(begin_ns, &at_work);
        }
    }

    /// What every thread did in a second. Gives the places of those that worked.
    fn states(&mut self, second: u32, begin_ns: i64) -> Vec<u32> {
        let mut at_work = Vec::new();
        (self.interval.begin_ns, self.interval.t_ns) = (begin_ns, begin_ns + S);
        for (number, thread) in (0..).zip(&mut self.interval.threads) {
            thread.states_ms.fill(0);
            thread.requests = 0;
            if !works(number, second) {
                thread.states_ms[IDLE] = 1000;
                self.sums[IDLE].1 += S;
                continue;
            }
            at_work.push(number);
            let mut left = 1000;
            for (state, mean) in &AT_WORK[..AT_WORK.len() - 1] {
                let ms = ((mean * (0.4 + 1.2 * self.noise.unit_f64())) as u16).min(left);
                thread.states_ms[*state] = ms;
                left -= ms;
            }
            thread.states_ms[IDLE] = left;
            for (sum, ms) in self.sums.iter_mut().zip(&thread.states_ms) {
                sum.1 += i64::from(*ms) * 1_000_000;
            }
            thread.requests = 20 + self.noise.below(20) as u32;
            self.requests += u64::from(thread.requests);
        }
        self.recorder.states(&self.interval);
        at_work
    }

    fn sums_reading(&mut self, t_ns: i64) {
        if let Some(requests) = self.sums.last_mut() {
            requests.1 = self.requests as i64;
        }
        let values: Vec<(SeriesId, Value)> =
            self.sums.iter().map(|(id, sum)| (*id, Value::Int(*sum))).collect();
        let (of_threads, of_requests) = values.split_at(STATES.len());
        for (source, values) in [("threads", of_threads), ("trace", of_requests)] {
            let (source, values) = (source.to_string(), values.to_vec());
            self.recorder.reading(Reading {
                source,
                begin_ns: t_ns,
                end_ns: t_ns,
                status: Status::Ok,
                values,
            });
        }
    }

    fn samples(&mut self, begin_ns: i64, at_work: &[u32]) -> Vec<StackSample> {
        let mut sample = |number: u32| StackSample {
            t_ns: begin_ns + i64::from(number) * S / i64::from(SAMPLES_PER_S),
            tid: self.one_of(at_work),
            role: "connection".to_string(),
            stack: self.stack(),
            weight_ns: 20_202_020,
        };
        (0..SAMPLES_PER_S).map(&mut sample).collect()
    }

    fn waits(&mut self, begin_ns: i64, at_work: &[u32]) -> Vec<StackWait> {
        let mut wait = |number: u32| {
            let length_ns = (50_000.0 / (1.0 - self.noise.unit_f64()).max(1e-4)) as u64;
            StackWait {
                waker_past: vec![PastState { state: "cpu".to_string(), ns: length_ns / 2 }],
                t_ns: begin_ns + i64::from(number) * S / i64::from(WAITS_PER_S),
                wait: u64::from(number),
                tid: self.one_of(at_work),
                role: "connection".to_string(),
                state: if number.is_multiple_of(4) { "file_sync" } else { "lock" }.to_string(),
                length_ns,
                weight_ns: length_ns.max(5_000_000),
                stack: self.stack(),
                waker_tid: self.one_of(at_work),
                waker_stack: Some(self.stack()),
            }
        };
        (0..WAITS_PER_S).map(&mut wait).collect()
    }

    fn one_of(&mut self, at_work: &[u32]) -> u32 {
        let place = self.noise.below(at_work.len().max(1) as u64) as usize;
        4_000 + at_work.get(place).copied().unwrap_or(0)
    }

    /// Some stacks are found far more often than others.
    fn stack(&mut self) -> u32 {
        (self.noise.unit_f64().powi(4) * f64::from(STACKS)) as u32
    }

    fn load(&mut self, begin_ns: i64, requests: u64) {
        let buckets: Vec<(u64, u64)> = (0..60).map(|place| (100_000 << (place / 6), requests / 60)).collect();
        for statement in ["transaction", "point select"] {
            self.recorder.load(LoadInterval {
                begin_ns,
                end_ns: begin_ns + S,
                level: 0,
                measured: true,
                statement: statement.to_string(),
                count: requests,
                rows: requests,
                errors: Vec::new(),
                response_sum_ns: requests * 900_000,
                service_sum_ns: requests * 800_000,
                response_max_ns: 50_000_000,
                response: buckets.clone(),
                service: buckets.clone(),
            });
        }
    }

    fn list(&mut self, t_ns: i64, at_work: &[u32]) {
        let columns = ["tid", "connection", "statement", "since_ns"].map(str::to_string).to_vec();
        let mut working = at_work.iter().peekable();
        let mut row = |number: u32| {
            let works = working.next_if(|next| **next == number).is_some();
            let statement =
                works.then(|| format!("SELECT c FROM table_{} WHERE id = ?", self.noise.below(STATEMENTS)));
            let since_ns = works.then(|| (t_ns - self.noise.below(2_000_000) as i64).to_string());
            vec![Some((4_000 + number).to_string()), Some((10 + number).to_string()), statement, since_ns]
        };
        let rows = (0..self.interval.threads.len() as u32).map(&mut row).collect();
        self.recorder.rows(TextRows { source: "connections".to_string(), t_ns, columns, rows });
    }
}

/// Whether a connection is at work in a second. Each begins at another time.
fn works(number: u32, second: u32) -> bool {
    let phase = number.wrapping_mul(2_654_435_761) % (AT_WORK_S * (RESTS + 1));
    (second + phase) % (AT_WORK_S * (RESTS + 1)) < AT_WORK_S
}

fn frames() -> Vec<StackFrame> {
    let mut noise = SplitMix64::new(9);
    let mut frame = |stack: u32, depth: u32| StackFrame {
        stack,
        depth,
        function: format!("made_function_{:03}(THD*, unsigned long)", noise.below(FUNCTIONS)),
        module: "mariadbd".to_string(),
        build_id: None,
        address: 0,
        source_file: None,
        line: None,
        inlined: false,
    };
    (0..STACKS)
        .flat_map(|stack| (0..DEPTH).map(move |depth| (stack, depth)))
        .map(|(stack, depth)| frame(stack, depth))
        .collect()
}
