//! `whyso timeline`: the threads of a recorded server over time, coloured by state.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use whyso_query::{TimelineOf, timeline_in};
use whyso_report::{TimelineRow, TimelineView};
use whyso_series::KnownBy;

use crate::choice_args::{WhoseArgs, WindowArgs, choose_part};
use crate::recordings::open;
use crate::terminal::width;

/// Of more threads each role is one line, unless --by says otherwise.
const THREADS_MAX: usize = 40;

#[derive(Args, Debug)]
pub(crate) struct TimelineArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) part: WindowArgs,

    #[command(flatten)]
    pub(crate) whose: WhoseArgs,

    /// What a line is [default: a thread, or a role if there are more than 40 threads]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<By>,

    /// Longest waits that are listed, of a run that was recorded with --stacks: those of connections' threads, or of the threads
    /// that are asked for
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) waits: usize,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    pub(crate) runs: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Thread,
    Role,
}

pub(crate) fn timeline(args: &TimelineArgs) -> Result<ExitCode> {
    let (recording, _) = open(&args.run, &args.runs)?;
    let origin_ns = whyso_report::origin_ns(recording.run(), recording.load_begin_ns()?);
    // All levels, unless one is asked for.
    let window = if args.part.is_given() { Some(choose_part(&recording, &args.part)?.window) } else { None };
    let filter = args.whose.filter();
    let columns = whyso_report::timeline_columns(width());
    let found = timeline_in(&recording, window, columns, &filter, args.waits)?;
    let TimelineOf { timeline, chosen, snapshot_s, waits, waits_of, .. } = &found;
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
        snapshot_interval_s: *snapshot_s,
        waits,
        waits_of,
    };
    let mut out = crate::out::stdout();
    if args.json {
        let object = whyso_report::timeline_json(&view);
        crate::json::write(&mut out, "timeline", object)?;
    } else {
        let colors = crate::terminal::has_color();
        let text = whyso_report::timeline(&view, colors);
        // Where there are colors, they are the only sequences: names come without any.
        if colors {
            crate::out::own().write_all(text.as_bytes())?
        } else {
            out.write_all(text.as_bytes())?
        }
        match found.known_by {
            Some(KnownBy::SqlTrace) => {
                writeln!(out, "Threads that worked on such a command meanwhile, by the SQL trace.")?
            }
            Some(KnownBy::Snapshots) => writeln!(
                out,
                "Threads by the connection and the statement that each was last found with, in snapshots every few seconds (a run with --trace-sql has them exactly)."
            )?,
            None => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}
