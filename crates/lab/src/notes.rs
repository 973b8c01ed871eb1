//! Which recording a note is for, and at what time.

use std::path::Path;

use whyso_clock::{Anchor, monotonic_ns};
use whyso_record::{Recording, add_note, list_runs};

use crate::Error;

/// Adds a note to the recording that goes on in `runs`. Gives its id.
///
/// # Errors
/// None goes on there, or its folder can't be written.
pub fn note_now(runs: &Path, text: &str) -> Result<String, Error> {
    let Some(run) = list_runs(runs)?.into_iter().rfind(|run| run.live) else {
        return Err(Error::Plan(format!(
            "no run is being recorded in {}: name the run, and say when with --at, such as --at 1:10",
            runs.display()
        )));
    };
    add_note(&run.path, monotonic_ns(), text)?;
    Ok(run.id)
}

/// Adds a note to `recording`, at `t_ns` on its clock; now, for `None`.
///
/// # Errors
/// It has ended and no time is given, was made on another boot, or its folder can't be written.
pub fn note_on(recording: &Recording, t_ns: Option<i64>, text: &str) -> Result<(), Error> {
    let t_ns = match t_ns {
        Some(t_ns) => t_ns,
        None if !recording.live() => {
            return Err(Error::Plan(format!(
                "the run {} has ended: say with --at when in it that was, such as --at 1:10",
                recording.run().id
            )));
        }
        None if !is_of_this_boot(recording) => {
            return Err(Error::Plan(format!(
                "the run {} is recorded on another machine: say with --at when in it that was, such as --at 1:10",
                recording.run().id
            )));
        }
        None => monotonic_ns(),
    };
    Ok(add_note(recording.dir(), t_ns, text)?)
}

fn is_of_this_boot(recording: &Recording) -> bool {
    recording.run().anchors.last().is_some_and(|anchor| anchor.boot_id == Anchor::now().boot_id)
}
