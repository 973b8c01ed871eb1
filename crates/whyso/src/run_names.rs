//! What a run may be called on the command line: its id, the begin of it, or how long ago it was.

use std::path::Path;

use anyhow::{Result, bail};
use whyso_control::Error;
use whyso_record::RunSummary;

/// The run that began last, and what stands before a number of runs to go back.
pub(crate) const LATEST: &str = "latest";
const BACK: &str = "latest~";
/// Runs that are named where a text could mean any of them.
const NAMED_MAX: usize = 4;

/// Finds a run in a list by its id, the begin of its id, "latest" or "latest~2". `runs`: where the list is from.
pub(crate) fn find<'a>(typed: &str, all: &'a [RunSummary], runs: &Path) -> Result<&'a RunSummary> {
    if let Some(run) = all.iter().find(|run| run.id == typed) {
        return Ok(run);
    }
    if typed == LATEST {
        return before_last(0, all, runs);
    }
    if let Some(back) = typed.strip_prefix(BACK).and_then(|back| back.parse().ok()) {
        return before_last(back, all, runs);
    }
    by_begin(typed, all, runs)
}

fn before_last<'a>(back: usize, all: &'a [RunSummary], runs: &Path) -> Result<&'a RunSummary> {
    if all.is_empty() {
        bail!(Error::Plan(format!(
            "there is no run in {} yet: `whyso run` records one, and --runs names another folder",
            runs.display()
        )));
    }
    let Some(at) = all.len().checked_sub(back + 1) else {
        bail!(Error::Plan(format!(
            "{1} has {0}: the first is latest~{2}",
            whyso_words::count(all.len() as u64, "run"),
            runs.display(),
            all.len() - 1
        )));
    };
    Ok(&all[at])
}

fn by_begin<'a>(begin: &str, all: &'a [RunSummary], runs: &Path) -> Result<&'a RunSummary> {
    let found = || all.iter().filter(|run| !begin.is_empty() && run.id.starts_with(begin));
    match (found().next(), found().count()) {
        (Some(only), 1) => Ok(only),
        (Some(_), number) => {
            let ids: Vec<&str> = found().take(NAMED_MAX).map(|run| run.id.as_str()).collect();
            bail!(Error::Plan(format!(
                "{} begin with {begin}, such as {}: give more of the id",
                whyso_words::count(number as u64, "run"),
                ids.join(", ")
            )))
        }
        (None, _) => {
            bail!(Error::Plan(format!(
                "there is no run {begin}: `whyso runs` lists those in {}",
                runs.display()
            )))
        }
    }
}
