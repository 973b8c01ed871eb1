//! The user's own notes on a recording. They are no stream of the recorder's. Anybody who may write to the folder can add one, during
//! the run and when it has long ended. What was sealed stays as it is.

use std::io::Write;
use std::path::Path;

use whyso_clock::{Anchor, monotonic_ns};

use crate::error::{Error, Result};
use crate::note_file::Line;
use crate::read::version::{newer_words, run_of};
use crate::{Recording, layout, list_runs, private};

/// A longer note is cut, in characters.
const TEXT_MAX: usize = 2000;
/// Adds a note to the recording in `dir`, at `t_ns` on its clock. Control characters become blanks.
///
/// # Errors
/// The folder is no recording, is one of a newer version's, or can't be written.
pub fn add_note(dir: &Path, t_ns: i64, text: &str) -> Result<()> {
    if !dir.join(layout::RUN).is_file() {
        return Err(Error::NotARecording(dir.to_path_buf()));
    }
    let run = dir.join(layout::RUN);
    let (run, _) = run_of(
        &private::read_file(&run, layout::RUN_BYTES_MAX).map_err(|cause| Error::io(&run, cause))?,
        "run.json",
    );
    if let Some(words) = newer_words(&run) {
        return Err(Error::Newer(words));
    }
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let text: String = text.trim().chars().take(TEXT_MAX).map(plain).collect();
    let path = dir.join(layout::NOTES);
    let io = |cause| Error::io(&path, cause);
    let line = serde_json::to_string(&Line { t_ns, text }).map_err(|cause| io(cause.into()))?;
    let line_break = private::line_break_due(&path).map_err(io)?;
    let mut file = private::append_to_file(&path).map_err(io)?;
    // One write, so that two notes at a time don't mix.
    file.write_all(format!("{line_break}{line}\n").as_bytes()).map_err(io)?;
    file.sync_all().map_err(io)
}

/// Adds a note to the recording that is running in `runs`, and returns its id.
///
/// # Errors
/// None is running there, or its folder can't be written.
pub fn note_now(runs: &Path, text: &str) -> Result<String> {
    let Some(run) = list_runs(runs)?.into_iter().rfind(|run| run.live) else {
        return Err(Error::Note(format!(
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
/// It has ended and `t_ns` is `None`, it was recorded on another boot, or its folder can't be written.
pub fn note_on(recording: &Recording, t_ns: Option<i64>, text: &str) -> Result<()> {
    let t_ns = match t_ns {
        Some(t_ns) => t_ns,
        None if !recording.live() => {
            return Err(Error::Note(format!(
                "the run {} has ended: say with --at when in it that was, such as --at 1:10",
                recording.run().id
            )));
        }
        None if !is_of_this_boot(recording) => {
            return Err(Error::Note(format!(
                "the run {} is recorded on another machine: say with --at when in it that was, such as --at 1:10",
                recording.run().id
            )));
        }
        None => monotonic_ns(),
    };
    add_note(recording.dir(), t_ns, text)
}

fn is_of_this_boot(recording: &Recording) -> bool {
    recording.run().anchors.last().is_some_and(|anchor| anchor.boot_id == Anchor::now().boot_id)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::note_file::notes;

    #[test]
    fn a_note_is_read_back_and_a_broken_line_loses_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        assert!(matches!(add_note(dir, 1, "x"), Err(Error::NotARecording(_))));
        fs::write(dir.join(layout::RUN), "{}").unwrap();
        assert!(notes(dir).is_empty());
        add_note(dir, 5, " switched the\nRAID cache \u{1b}[31m off ").unwrap();
        let mut file = private::append_to_file(&dir.join(layout::NOTES)).unwrap();
        file.write_all(b"{\"t_ns\": 7, \"te\n\xff\xfe\n").unwrap();
        add_note(dir, 9, "and on again").unwrap();
        let texts: Vec<(i64, String)> =
            notes(dir).into_iter().map(|event| (event.t_ns, event.text)).collect();
        assert_eq!(
            texts,
            [(5, "switched the RAID cache  [31m off".to_string()), (9, "and on again".to_string())]
        );
        add_note(dir, 10, &"ä".repeat(5000)).unwrap();
        assert_eq!(notes(dir)[2].text.chars().count(), TEXT_MAX);
        // A disk that was full in the middle of a note: the next one is a line of its own.
        file.write_all(b"{\"t_ns\": 11, \"te").unwrap();
        add_note(dir, 12, "after a torn one").unwrap();
        assert_eq!(notes(dir).last().map(|note| note.text.clone()), Some("after a torn one".to_string()));
    }
}
