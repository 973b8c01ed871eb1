//! `whyso note`: a note on a recording, drawn on every chart.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use whyso_control::Error;

use crate::choice_args::time_s;
use crate::recordings::open;

#[derive(Args, Debug)]
pub(crate) struct NoteArgs {
    /// What happened, such as "switched the RAID cache off"
    text: String,

    /// The run: its folder, or its id under --runs [default: the one that is being recorded]
    run: Option<PathBuf>,

    /// When it happened, since the load began as the report counts it: 90s, 1:10 [default: now]
    #[arg(long, value_name = "TIME", requires = "run")]
    at: Option<String>,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

pub(crate) fn note(args: &NoteArgs) -> Result<ExitCode> {
    if args.text.trim().is_empty() {
        bail!(Error::Plan(
            "the note says nothing: give its text, such as \"switched the RAID cache off\"".to_string()
        ));
    }
    let Some(run) = &args.run else {
        let id = whyso_record::note_now(&args.runs, &args.text)?;
        writeln!(crate::out::stdout(), "noted on the run {id}, now")?;
        return Ok(ExitCode::SUCCESS);
    };
    let (recording, _) = open(run, &args.runs)?;
    let at_s = match &args.at {
        None => None,
        Some(text) => match time_s(text) {
            Some(seconds) => Some(seconds),
            None => bail!(Error::Plan(format!("--at {text}: give a time, such as 90s or 1:10"))),
        },
    };
    let origin_ns = whyso_report::origin_ns(recording.run(), recording.load_begin_ns()?);
    whyso_record::note_on(&recording, at_s.map(|seconds| origin_ns + (seconds * 1e9) as i64), &args.text)?;
    writeln!(crate::out::stdout(), "noted on the run {}", recording.run().id)?;
    Ok(ExitCode::SUCCESS)
}
