//! What becomes of the commands of `--trace-sql` at many times their rate: how many are lost, and what the rest costs.
//!
//! ```text
//! flood RECORDING FOLDER [TIMES …]
//! ```
//!
//! Replays the commands of a recording so many times at once, each copy with connections of its own and at another place of the
//! recording. They arrive in a buffer as large as that of 64 CPUs. What it has no room for is lost, as in the kernel. The reader
//! and the recorder are the real ones, and write to FOLDER. Where no TIMES is given: 1, 10 and 50.

use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use whyso_clock::{process_cpu_ns, thread_cpu_ns};
use whyso_model::COMMANDS_INTERVAL;
use whyso_record::data::ClientCommand;
use whyso_record::run::RunInfo;
use whyso_record::{Options, Recorder, Recording};
use whyso_trace::{
    COMMANDS_AT_ONCE, Client, Command, CommandCounts, CommandTimes, StatementRef, command_name,
    commands_ring_bytes,
};
use whyso_tracing::{CommandIntake, Literals};

const CPUS: usize = 64;
const READ_INTERVAL: Duration = Duration::from_millis(50);
const LENGTH: Duration = Duration::from_secs(10);
/// Of a record in the buffer: its length in front, and the command up to its text.
const RECORD_BYTES: usize = 8 + 128;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(recording), Some(folder)) = (arguments.first(), arguments.get(1)) else {
        eprintln!(
            "flood: give a recording with --trace-sql, a folder for what is recorded, and how many times the rate"
        );
        return ExitCode::from(2);
    };
    let times: Vec<usize> = arguments[2..].iter().filter_map(|times| times.parse().ok()).collect();
    let times = if times.is_empty() { vec![1, 10, 50] } else { times };
    match measure(Path::new(recording), Path::new(folder), &times) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("flood: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(recording: &Path, folder: &Path, times: &[usize]) -> Result<(), Failure> {
    let stream = Stream::of(recording)?;
    println!("| times | commands/s that came | read | lost | reader, CPU | recorder, CPU | ns per command |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for times in times {
        let folder = folder.join(format!("{times}-times"));
        let found = flood(&stream, *times, &folder)?;
        let seconds = LENGTH.as_secs_f64();
        println!(
            "| {times} | {:.0} | {:.0} | {:.1} % | {:.1} % | {:.1} % | {:.0} |",
            found.came as f64 / seconds,
            found.read as f64 / seconds,
            100.0 * found.lost as f64 / found.came.max(1) as f64,
            found.reader_ns as f64 / LENGTH.as_nanos() as f64 * 100.0,
            (found.process_ns - found.reader_ns) as f64 / LENGTH.as_nanos() as f64 * 100.0,
            found.process_ns as f64 / found.read.max(1) as f64,
        );
        // None is in neither of them, and none in both.
        assert_eq!(found.came, found.read + found.lost + found.left);
        println!("in the recording: {}; pieces that it lost: {}", found.recorded, found.recorder_lost);
        assert!(found.recorded == found.read || found.recorder_lost > 0);
    }
    Ok(())
}

/// The commands of a recording, by the interval in which they ended.
struct Stream {
    intervals: Vec<Vec<StreamCommand>>,
}

struct StreamCommand {
    command: ClientCommand,
    number: u8,
    text: Option<String>,
}

impl Stream {
    fn of(dir: &Path) -> Result<Stream, Failure> {
        let recording = Recording::open(dir)?;
        let texts = recording.statements()?;
        let commands = recording.commands(None)?;
        let first_ns = commands.first().ok_or("it has no commands: record it with --trace-sql")?.t_ns;
        let mut intervals: Vec<Vec<StreamCommand>> = Vec::new();
        for command in commands {
            let place = (command.t_ns - first_ns) as usize / READ_INTERVAL.as_nanos() as usize;
            intervals.resize_with(intervals.len().max(place + 1), Vec::new);
            let number = (0..=u8::MAX).find(|number| command_name(*number) == command.command);
            let text = command.statement.filter(|_| !command.command.starts_with("STMT_EXECUTE"));
            let text = text.and_then(|statement| texts.get(&statement)).cloned();
            intervals[place].push(StreamCommand { command, number: number.unwrap_or(0), text });
        }
        Ok(Stream { intervals })
    }

    /// Commands of an interval and a copy.
    fn arriving(&self, interval: usize, copy: usize, copies: usize) -> &[StreamCommand] {
        let shift = copy * self.intervals.len() / copies;
        &self.intervals[(interval + shift) % self.intervals.len()]
    }
}

impl StreamCommand {
    fn bytes(&self) -> usize {
        (RECORD_BYTES + self.text.as_ref().map_or(0, String::len)).next_multiple_of(8)
    }

    /// As the programs hand it over, as one of a copy that ends now.
    fn command(&self, copy: usize, end_ns: i64) -> Command<'_> {
        let recorded = &self.command;
        let times = recorded.times.map(|times| CommandTimes {
            cpu_ns: times.cpu_ns,
            runqueue_ns: times.runqueue_ns,
            lock_ns: times.lock_ns,
            io_ns: times.io_ns,
        });
        Command {
            begin_ns: end_ns - recorded.response_ns as i64,
            end_ns,
            tid: recorded.tid,
            connection: (copy as u64) << 32 | u64::from(recorded.tid),
            number: self.number,
            client: Client::Load,
            times,
            counts: CommandCounts {
                rows_sent: recorded.rows_sent,
                rows_examined: recorded.rows_examined,
                rows_affected: recorded.rows_affected,
                error: recorded.error,
                connection_id: recorded.connection,
            },
            length: recorded.length,
            prepared: recorded.prepared.map(StatementRef::Number),
            text: self.text.as_deref().map(str::as_bytes),
        }
    }
}

#[derive(Default)]
struct Flood {
    came: u64,
    read: u64,
    lost: u64,
    /// In the buffer at the end.
    left: u64,
    recorded: u64,
    recorder_lost: u64,
    reader_ns: i64,
    process_ns: i64,
}

fn flood(stream: &Stream, copies: usize, folder: &Path) -> Result<Flood, Failure> {
    std::fs::create_dir_all(folder.parent().unwrap_or(folder))?;
    let recorder = Recorder::create(folder, Options { own_cost: false, ..Options::default() })?;
    let mut intake = CommandIntake::new(Literals::Replaced);
    let room = commands_ring_bytes(CPUS) as usize;
    let (mut ring, mut used) = (VecDeque::new(), 0);
    let mut found = Flood::default();
    let (began, mut interval) = (Instant::now(), 0);
    let mut due = began + COMMANDS_INTERVAL;
    let process_before_ns = process_cpu_ns();
    while began.elapsed() < LENGTH {
        if ring.len() < COMMANDS_AT_ONCE {
            std::thread::sleep(READ_INTERVAL);
        }
        // What came since the last time. Its cost is the kernel's, not the reader's.
        let come = (began.elapsed().as_nanos() / READ_INTERVAL.as_nanos()) as usize;
        let before_ns = thread_cpu_ns();
        for interval in interval..come {
            for copy in 0..copies {
                for recorded in stream.arriving(interval, copy, copies) {
                    found.came += 1;
                    if used + recorded.bytes() > room {
                        found.lost += 1;
                        continue;
                    }
                    used += recorded.bytes();
                    ring.push_back((recorded, copy));
                }
            }
        }
        interval = come;
        let came_ns = thread_cpu_ns();
        found.process_ns -= came_ns - before_ns;
        let end_ns = whyso_clock::monotonic_ns();
        for (recorded, copy) in ring.drain(..ring.len().min(COMMANDS_AT_ONCE)) {
            used -= recorded.bytes();
            found.read += 1;
            intake.enter(&recorded.command(copy, end_ns));
        }
        if Instant::now() >= due {
            due = Instant::now() + COMMANDS_INTERVAL;
            intake.hand_over(&recorder);
        }
        found.reader_ns += thread_cpu_ns() - came_ns;
    }
    intake.hand_over(&recorder);
    found.process_ns += process_cpu_ns() - process_before_ns;
    found.left = ring.len() as u64;
    recorder.set_run(&RunInfo { id: "flood".to_string(), ..RunInfo::default() });
    let summary = recorder.finish()?;
    found.recorder_lost = summary.lost;
    found.recorded = Recording::open(folder)?.commands(None)?.len() as u64;
    Ok(found)
}
