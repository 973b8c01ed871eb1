//! `whyso programs`: the CPU time of every program of a machine, and the functions that each was found in.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use whyso_report::ProgramsOf;

use crate::choice_args::{WindowArgs, choose_part};
use crate::profile::{print_object, print_text};
use crate::profile_args::ShownArgs;
use crate::recordings::open;

#[derive(Args, Debug)]
pub(crate) struct ProgramsArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    run: PathBuf,

    /// Functions of each program that are shown, of a run that was recorded with --stacks-of all
    #[arg(long, value_name = "N", default_value_t = 3)]
    functions: usize,

    #[command(flatten)]
    part: WindowArgs,

    #[command(flatten)]
    shown: ShownArgs,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

pub(crate) fn programs(args: &ProgramsArgs) -> Result<ExitCode> {
    let (recording, _) = open(&args.run, &args.runs)?;
    let chosen = choose_part(&recording, &args.part)?;
    let found = whyso_query::programs_in(&recording, chosen.window, args.functions)?;
    let of = ProgramsOf {
        window: &chosen.words,
        seconds: chosen.window.seconds(),
        cpus: found.cpus,
        is_sampled: found.is_sampled,
        sampled_s: found.sampled_s,
        lost: found.lost,
    };
    if args.shown.json {
        print_object("programs", &whyso_report::programs_json(of, &found.lines, args.shown.limit))
    } else {
        print_text(&whyso_report::programs(of, &found.lines, args.shown.limit))
    }
}
