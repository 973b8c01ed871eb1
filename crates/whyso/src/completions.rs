//! Completion of the command line by a shell: the shell asks this program, which also knows the runs that there are.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;

use crate::recordings::LATEST;

/// By this variable a shell asks for completions.
pub(crate) const VARIABLE: &str = "WHYSO_COMPLETE";
/// Runs that are offered, the newest ones.
const RUNS_MAX: usize = 50;
/// The folder of runs where none is named.
const RUNS: &str = "runs";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell that is to complete
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let shell = match args.shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
    };
    let shells = Shells::builtins();
    let completer = shells.completer(shell).context("this shell can't be completed")?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "whyso", "whyso", "whyso", &mut script)?;
    crate::out::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Completes the id of a run in the usual folder.
pub(crate) fn of_runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| candidates(&typed.to_string_lossy(), Path::new(RUNS)))
}

fn candidates(typed: &str, runs: &Path) -> Vec<CompletionCandidate> {
    let newest = whyso_record::list_runs(runs).unwrap_or_default().into_iter().rev();
    let named = newest.filter(|run| run.id.starts_with(typed)).take(RUNS_MAX).map(|run| {
        let about = match run.labels.name.as_str() {
            "" => run.facts.workload.unwrap_or_default(),
            name => name.to_string(),
        };
        CompletionCandidate::new(run.id).help(Some(about.into()))
    });
    let latest = LATEST.starts_with(typed).then(|| CompletionCandidate::new(LATEST));
    latest.into_iter().chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_offered_by_the_begin_of_their_id() {
        let folder = tempfile::tempdir().unwrap();
        for id in ["20260101-1000-1", "20260102-0900-3"] {
            std::fs::create_dir(folder.path().join(id)).unwrap();
            let info = format!("{{\"format\":3,\"id\":\"{id}\"}}");
            std::fs::write(folder.path().join(id).join("run.json"), info).unwrap();
        }
        let offered = |typed| -> Vec<String> {
            let all = candidates(typed, folder.path());
            all.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(offered(""), ["latest", "20260102-0900-3", "20260101-1000-1"]);
        assert_eq!(offered("20260101"), ["20260101-1000-1"]);
        assert_eq!(offered("lat"), ["latest"]);
        assert!(candidates("", Path::new("/nowhere")).len() == 1);
    }
}
