//! The user's own notes on a recording. They are no stream of the recorder's. Anybody who may write to the folder can add, change and remove
//! one, during the run and when it has long ended. What was sealed stays as it is.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use whyso_clock::{Anchor, monotonic_ns};

use crate::error::{Error, Result};
use crate::note_file::{BYTES_MAX, Line};
use crate::read::version::{newer_words, run_of};
use crate::{Recording, layout, list_runs, private};

/// A longer note is cut, in characters.
const TEXT_MAX: usize = 2000;
/// Attempts to get the file of notes while others write to it, and the wait between two.
const ATTEMPTS: u32 = 100;
const WAIT: Duration = Duration::from_millis(20);

/// Adds a note to the recording in `dir`, at `t_ns` on its clock. Control characters become blanks.
///
/// # Errors
/// The folder is no recording, is one of a newer version's, or can't be written.
pub fn add_note(dir: &Path, t_ns: i64, text: &str) -> Result<()> {
    check_folder(dir)?;
    let path = dir.join(layout::NOTES);
    let io = |cause| Error::io(&path, cause);
    let line = line_of(t_ns, text).map_err(io)?;
    let mut file = open_locked(&path).map_err(io)?;
    let line_break = private::line_break_due(&path).map_err(io)?;
    file.write_all(format!("{line_break}{line}\n").as_bytes()).map_err(io)?;
    file.sync_all().map_err(io)
}

/// Gives a note another text; for `None`, removes it. The note is the one at `t_ns` with the text `before`, as it was read.
///
/// # Errors
/// There is no such note (somebody may have changed it), the new text is empty, or the folder is none that [`add_note`] takes.
pub fn change_note(dir: &Path, t_ns: i64, before: &str, text: Option<&str>) -> Result<()> {
    check_folder(dir)?;
    if text.is_some_and(|text| text.trim().is_empty()) {
        return Err(Error::Note("the note needs a text: give one, or remove the note".to_string()));
    }
    let path = dir.join(layout::NOTES);
    let io = |cause| Error::io(&path, cause);
    let _locked = open_locked(&path).map_err(io)?;
    let content = private::read_file(&path, BYTES_MAX).map_err(io)?;
    let mut lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    let is_it = |line: &&[u8]| {
        serde_json::from_slice::<Line>(line).is_ok_and(|line| line.t_ns == t_ns && line.text == before)
    };
    let Some(place) = lines.iter().position(is_it) else {
        return Err(Error::Note("the run has no such note: it may have been changed meanwhile".to_string()));
    };
    let new = match text {
        Some(text) => format!("{}\n", line_of(t_ns, text).map_err(io)?),
        None => String::new(),
    };
    lines[place] = new.as_bytes();
    // Written next to it and then renamed: a reader never meets half of it.
    let next = dir.join(format!("{}notes-{}", layout::TEMPORARY_PREFIX, std::process::id()));
    let mut file = private::create_file(&next).map_err(io)?;
    file.write_all(&lines.concat()).and_then(|()| file.sync_all()).map_err(io)?;
    fs::rename(&next, &path).map_err(io)
}

fn check_folder(dir: &Path) -> Result<()> {
    let run = dir.join(layout::RUN);
    if !run.is_file() {
        return Err(Error::NotARecording(dir.to_path_buf()));
    }
    let (run, _) = run_of(
        &private::read_file(&run, layout::RUN_BYTES_MAX).map_err(|cause| Error::io(&run, cause))?,
        "run.json",
    );
    match newer_words(&run) {
        Some(words) => Err(Error::Newer(words)),
        None => Ok(()),
    }
}

fn line_of(t_ns: i64, text: &str) -> io::Result<String> {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let text: String = text.trim().chars().take(TEXT_MAX).map(plain).collect();
    Ok(serde_json::to_string(&Line { t_ns, text })?)
}

/// Opens the file of notes to append to it, locked against others. A change replaces the file, so the one that was locked must still be it.
fn open_locked(path: &Path) -> io::Result<File> {
    for _ in 0..ATTEMPTS {
        let file = private::append_to_file(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(WAIT),
            // A file system without locks: two changes at a time are rare.
            Err(TryLockError::Error(_)) => return Ok(file),
            Ok(()) if fs::symlink_metadata(path).is_ok_and(|now| is_same(&now, &file)) => return Ok(file),
            Ok(()) => {}
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another program keeps it locked: try again"))
}

fn is_same(now: &fs::Metadata, file: &File) -> bool {
    file.metadata().is_ok_and(|opened| opened.ino() == now.ino() && opened.dev() == now.dev())
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

    #[test]
    fn a_note_is_changed_and_removed_and_every_other_line_stays() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        fs::write(dir.join(layout::RUN), "{}").unwrap();
        add_note(dir, 5, "first").unwrap();
        fs::write(
            dir.join(layout::NOTES),
            [&fs::read(dir.join(layout::NOTES)).unwrap()[..], b"{\"torn\n"].concat(),
        )
        .unwrap();
        add_note(dir, 5, "second").unwrap();
        let texts = || notes(dir).into_iter().map(|note| note.text).collect::<Vec<_>>();
        change_note(dir, 5, "second", Some(" it was the\ncache ")).unwrap();
        assert_eq!(texts(), ["first", "it was the cache"]);
        for (t_ns, before, text) in [(5, "second", Some("x")), (6, "first", None), (5, "first", Some(" "))] {
            assert!(matches!(change_note(dir, t_ns, before, text), Err(Error::Note(_))), "{t_ns} {before}");
        }
        change_note(dir, 5, "first", None).unwrap();
        assert_eq!(texts(), ["it was the cache"]);
        assert!(fs::read_to_string(dir.join(layout::NOTES)).unwrap().starts_with("{\"torn\n"));
        assert_eq!(fs::read_dir(dir).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn notes_that_are_added_while_others_are_changed_are_all_there() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        fs::write(dir.join(layout::RUN), "{}").unwrap();
        add_note(dir, 0, "0").unwrap();
        thread::scope(|scope| {
            scope.spawn(|| (1..=40).for_each(|t_ns| add_note(dir, t_ns, "added").unwrap()));
            scope.spawn(|| {
                for number in 0..40 {
                    change_note(dir, 0, &number.to_string(), Some(&(number + 1).to_string())).unwrap();
                }
            });
        });
        let notes = notes(dir);
        assert_eq!((notes.len(), notes.iter().any(|note| note.text == "40")), (41, true));
    }
}
