//! `whyso threads`: where each thread of a server spends its time, in a recorded run or now.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use whyso_lab::{Error, ThreadFilter, ThreadsOver};
use whyso_record::Recording;
use whyso_record::run::{Level, Window};
use whyso_report::ThreadsWindow;

use crate::args::Length;
use crate::commands::open;
use crate::given::{ask_password, hide_passwords, take_ctrl_c};

#[derive(Args, Debug)]
pub(crate) struct ThreadsArgs {
    /// The run: its folder, or its id under --runs
    pub(crate) run: Option<PathBuf>,

    /// A server on this machine, to look at now
    #[arg(long, value_name = "DSN", conflicts_with = "run")]
    pub(crate) dsn: Option<String>,

    /// How long to look at the server, such as 5s
    #[arg(long = "for", value_name = "TIME", default_value = "5s", conflicts_with = "run")]
    pub(crate) length: Length,

    /// The measured window of the level with so many users [default: of the last level]
    #[arg(long, value_name = "N", conflicts_with = "dsn")]
    pub(crate) users: Option<u32>,

    /// The measured window of the level of this number, as the recording has it: the first is 0
    #[arg(long, value_name = "N", conflicts_with_all = ["dsn", "users"])]
    pub(crate) level: Option<u32>,

    /// Any window, in time since the load began as the report counts it: 10s-25s, 1:10-1:25
    #[arg(long, value_name = "A-B", conflicts_with_all = ["dsn", "users", "level"])]
    pub(crate) window: Option<Stretch>,

    /// Threads of this role alone, such as connection or "page cleaner"
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,

    /// Threads alone whose name contains this text, in any case
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,

    /// These threads alone, by the kernel's numbers
    #[arg(long, value_name = "TID,TID,…", value_delimiter = ',')]
    pub(crate) thread: Vec<u32>,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) runs: PathBuf,
}

/// A stretch of a run as it is typed, in seconds since the load began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    begin_s: f64,
    end_s: f64,
}

impl Stretch {
    /// In monotonic nanoseconds, of a load that began then.
    pub(crate) fn of(self, origin_ns: i64) -> Window {
        let at = |seconds: f64| origin_ns + (seconds * 1e9) as i64;
        Window { begin_ns: at(self.begin_s), end_ns: at(self.end_s) }
    }
}

impl std::str::FromStr for Stretch {
    type Err = String;

    fn from_str(text: &str) -> Result<Stretch, String> {
        let ends = text.split_once('-').and_then(|(begin, end)| Some((time_s(begin)?, time_s(end)?)));
        match ends {
            Some((begin_s, end_s)) if begin_s < end_s => Ok(Stretch { begin_s, end_s }),
            _ => {
                Err(format!("{text:?} is no stretch of a run: give two times, such as 10s-25s or 1:10-1:25"))
            }
        }
    }
}

/// Seconds of 90, 90s, 1m, 1:30 or 1:02:03.5.
fn time_s(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(length) = text.parse::<Length>() {
        return Some(length.0.as_secs_f64());
    }
    let text = text.trim_end_matches('s');
    let mut seconds = 0.0;
    for part in text.split(':') {
        let digits = part.parse::<f64>().ok().filter(|number| (0.0..1e6).contains(number))?;
        seconds = seconds * 60.0 + digits;
    }
    Some(seconds)
}

pub(crate) fn threads(args: &ThreadsArgs) -> Result<ExitCode> {
    let (found, origin_ns) = match (&args.run, &args.dsn) {
        (Some(run), None) => {
            let (recording, _) = open(run, &args.runs)?;
            if let Some(words) = whyso_lab::thread_disagreement(&recording)? {
                eprintln!("whyso: warning: not known: {words}");
            }
            let origin_ns = whyso_report::origin_ns(recording.run(), &recording.load(None)?);
            let window = asked(&recording, args, origin_ns)?;
            (whyso_lab::threads_in(&recording, window)?, Some(origin_ns))
        }
        (None, Some(dsn)) => {
            hide_passwords(std::slice::from_ref(dsn));
            let stop = take_ctrl_c()?;
            (whyso_lab::threads_now(dsn, args.length.0, stop, &ask_password)?, None)
        }
        _ => bail!(Error::Plan("give a recorded run, or a server with --dsn".to_string())),
    };
    let ThreadsOver { window, states, threads, pauses } = &found;
    let filter = ThreadFilter { role: args.role.clone(), name: args.name.clone(), tids: args.thread.clone() };
    let rows = filter.choose(threads)?;
    let mut pauses = pauses.clone();
    pauses.retain(|one| rows.iter().any(|row| row.tid == one.tid));
    let told = ThreadsWindow {
        begin_s: origin_ns.map(|origin_ns| (window.begin_ns - origin_ns) as f64 / 1e9),
        seconds: window.seconds(),
        of: threads.len(),
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        let object = whyso_report::threads_json(told, &rows, states, &pauses);
        writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
    } else {
        write!(out, "{}", whyso_report::threads(told, &rows, states))?;
        let pauses = whyso_report::pauses(&pauses, window.end_ns.abs_diff(window.begin_ns));
        if !pauses.is_empty() {
            write!(out, "\n{pauses}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The window that is asked for.
fn asked(recording: &Recording, args: &ThreadsArgs, origin_ns: i64) -> Result<Window> {
    if let Some(stretch) = args.window {
        return Ok(stretch.of(origin_ns));
    }
    level_window(recording, args.level, args.users)
}

/// The measured window of the level of this number, or with so many users, or of the last level.
pub(crate) fn level_window(recording: &Recording, index: Option<u32>, users: Option<u32>) -> Result<Window> {
    let levels = &recording.run().levels;
    let level = match (index, users) {
        (Some(index), _) => levels.iter().find(|level| level.index == index),
        (None, Some(users)) => levels.iter().find(|level| level.users == users),
        (None, None) => levels.last(),
    };
    match level {
        Some(level) => Ok(level.window),
        None if levels.is_empty() => {
            bail!(Error::Plan(
                "no level of this run ended: say which part of it with --window A-B".to_string()
            ))
        }
        None => {
            let one = |level: &Level| format!("{} ({} users)", level.index, level.users);
            let there: Vec<String> = levels.iter().map(one).collect();
            bail!(Error::Plan(format!("this run has no such level; it has: {}", there.join(", "))))
        }
    }
}
