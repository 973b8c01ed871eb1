//! `whyso threads`: where each thread of a server spends its time, in a recorded run or now.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use whyso_query::ThreadsOver;
use whyso_report::ThreadsWindow;

use crate::choice_args::{WhoseArgs, WindowArgs, choose_part};
use crate::recordings::{LATEST, open};
use crate::user::{ask_password, handle_ctrl_c};
use crate::values::Length;

#[derive(Args, Debug)]
pub(crate) struct ThreadsArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last [default: latest]
    pub(crate) run: Option<PathBuf>,

    /// A server on this machine, to show it now
    #[arg(long, value_name = "DSN", conflicts_with_all = ["run", "users", "level", "window"])]
    pub(crate) dsn: Option<String>,

    /// How long to watch the server, such as 5s
    #[arg(long = "for", value_name = "TIME", default_value = "5s", conflicts_with = "run")]
    pub(crate) length: Length,

    #[command(flatten)]
    pub(crate) part: WindowArgs,

    #[command(flatten)]
    pub(crate) whose: WhoseArgs,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    pub(crate) runs: PathBuf,
}

pub(crate) fn threads(args: &ThreadsArgs) -> Result<ExitCode> {
    let (found, origin_ns) = match &args.dsn {
        None => {
            let run = args.run.as_deref().unwrap_or(Path::new(LATEST));
            let (recording, _) = open(run, &args.runs)?;
            if let Some(words) = whyso_query::thread_disagreement(&recording)? {
                print_stderr!("whyso: warning: not known: {words}");
            }
            let origin_ns = whyso_report::origin_ns(recording.run(), recording.load_begin_ns()?);
            let window = choose_part(&recording, &args.part)?.window;
            (whyso_query::threads_in(&recording, window)?, Some(origin_ns))
        }
        Some(dsn) => {
            let stop = handle_ctrl_c()?;
            (whyso_control::threads_now(dsn, args.length.0, stop, &ask_password)?, None)
        }
    };
    let ThreadsOver { window, states, threads, pauses } = &found;
    let filter = args.whose.filter();
    let rows = filter.choose(threads)?;
    let mut pauses = pauses.clone();
    pauses.retain(|pause| rows.iter().any(|row| row.tid == pause.tid));
    let described = ThreadsWindow {
        begin_s: origin_ns.map(|origin_ns| (window.begin_ns - origin_ns) as f64 / 1e9),
        seconds: window.seconds(),
        of: threads.len(),
    };
    let mut out = crate::out::stdout();
    if args.json {
        let object = whyso_report::threads_json(described, &rows, states, &pauses);
        crate::json::write(&mut out, "threads", object)?;
    } else {
        write!(out, "{}", whyso_report::threads(described, &rows, states))?;
        let pauses = whyso_report::pauses(&pauses, window.end_ns.abs_diff(window.begin_ns));
        if !pauses.is_empty() {
            write!(out, "\n{pauses}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
