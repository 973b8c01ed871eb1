//! `whyso locks`: what connections waited for when they waited for locks, in a recorded run; or who waits for whom, now.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use whyso_query::locks_in;
use whyso_report::LocksNowOf;

use crate::choice_args::{RunPart, WindowArgs, choose_part};
use crate::exit_codes::FAILED;
use crate::recordings::{LATEST, open};
use crate::user::ask_password;

#[derive(Args, Debug)]
pub(crate) struct LocksArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last [default: latest]
    run: Option<PathBuf>,

    /// A server, to show who waits for whom now
    #[arg(long, value_name = "DSN", conflicts_with_all = ["run", "users", "level", "window"])]
    dsn: Option<String>,

    #[command(flatten)]
    part: WindowArgs,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

pub(crate) fn locks(args: &LocksArgs) -> Result<ExitCode> {
    let mut failed = false;
    let (schema, text, object) = match &args.dsn {
        None => of_run(args, args.run.as_deref().unwrap_or(Path::new(LATEST)))?,
        Some(dsn) => {
            let found = whyso_control::locks_now(dsn, &ask_password)?;
            let of = LocksNowOf {
                at: &found.at,
                took_ms: found.took_ms,
                failed: found.failed.as_deref(),
                row_waits_counted: found.row_waits_counted,
                trees: &found.trees,
                not_reported: &found.not_reported,
            };
            failed = of.failed.is_some();
            ("locks-now", whyso_report::locks_now(of), whyso_report::locks_now_json(of))
        }
    };
    let mut out = crate::out::stdout();
    match args.json {
        true => crate::json::write(&mut out, schema, object)?,
        false => write!(out, "{text}")?,
    }
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn of_run(args: &LocksArgs, run: &Path) -> Result<(&'static str, String, serde_json::Value)> {
    let (recording, _) = open(run, &args.runs)?;
    let RunPart { window, words, .. } = choose_part(&recording, &args.part)?;
    let found = locks_in(&recording, window)?;
    let of = found.for_window(&words);
    Ok(("locks", whyso_report::locks(of), whyso_report::locks_json(of)))
}
