//! `whyso timeline`: the threads of a recorded server over time, coloured by state.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use whyso_lab::{Error, ThreadFilter, TimelineOf, timeline_in};
use whyso_record::Recording;
use whyso_record::run::Window;
use whyso_report::{TimelineRow, TimelineView};

use crate::commands::open;
use crate::terminal::width;
use crate::threads::{Stretch, level_window};

/// Of more threads each role is one line, unless --by says otherwise.
const THREADS_MAX: usize = 40;

#[derive(Args, Debug)]
pub(crate) struct TimelineArgs {
    /// The run: its folder, or its id under --runs
    pub(crate) run: PathBuf,

    /// The measured window of the level with so many users alone [default: all levels]
    #[arg(long, value_name = "N")]
    pub(crate) users: Option<u32>,

    /// The measured window of the level of this number alone, as the recording has it: the first is 0
    #[arg(long, value_name = "N", conflicts_with = "users")]
    pub(crate) level: Option<u32>,

    /// Any window, in time since the load began as the report counts it: 10s-25s, 1:10-1:25
    #[arg(long, value_name = "A-B", conflicts_with_all = ["users", "level"])]
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

    /// What a line is [default: a thread, or a role where there are more than 40 threads]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<By>,

    /// How many of the longest waits are told, of a run that was recorded with --stacks: those of connections' threads, or of the threads
    /// that are asked for
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) waits: usize,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) runs: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Thread,
    Role,
}

pub(crate) fn timeline(args: &TimelineArgs) -> Result<ExitCode> {
    let (recording, _) = open(&args.run, &args.runs)?;
    for problem in recording.problems() {
        eprintln!("whyso: warning: {problem}");
    }
    let origin_ns = whyso_report::origin_ns(recording.run(), &recording.load(None)?);
    let window = asked(&recording, args, origin_ns)?;
    let filter = ThreadFilter { role: args.role.clone(), name: args.name.clone(), tids: args.thread.clone() };
    let columns = whyso_report::timeline_columns(width());
    let found = timeline_in(&recording, window, columns, &filter, args.waits)?;
    let TimelineOf { timeline, chosen, look_s, waits, waits_of, .. } = &found;
    let rows = match args.by {
        Some(By::Role) => TimelineRow::of_roles(timeline, chosen),
        None if chosen.len() > THREADS_MAX => TimelineRow::of_roles(timeline, chosen),
        Some(By::Thread) | None => TimelineRow::of_threads(timeline, chosen),
    };
    let view = TimelineView {
        run: recording.run(),
        origin_ns,
        timeline,
        rows: &rows,
        look_s: *look_s,
        waits,
        waits_of,
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        let object = whyso_report::timeline_json(&view);
        writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
    } else {
        // As no-color.org asks: any text but none.
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
        let colors = out.is_terminal() && !is_plain;
        out.write_all(whyso_report::timeline(&view, colors).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The window that is asked for; `None`: all of it.
fn asked(recording: &Recording, args: &TimelineArgs, origin_ns: i64) -> Result<Option<Window>> {
    if let Some(stretch) = args.window {
        return Ok(Some(stretch.of(origin_ns)));
    }
    if args.users.is_none() && args.level.is_none() {
        return Ok(None);
    }
    if recording.run().levels.is_empty() {
        bail!(Error::Plan("this run has no levels: say which part of it with --window A-B".to_string()));
    }
    level_window(recording, args.level, args.users).map(Some)
}
