//! `whyso runs notes`: the notes on a recording, listed, changed and removed.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use whyso_control::Error;
use whyso_record::data::Event;
use whyso_record::{Recording, change_note, notes_of};

/// Step of the times that are shown, in seconds.
const STEP_S: f64 = 0.1;

/// A note as it is listed.
struct NumberedNote {
    /// From 1, in the order of time.
    number: usize,
    note: Event,
    /// Seconds since the load began.
    at_s: f64,
}

/// What is done to the notes, and what it printed: one JSON object, and lines of text.
pub(crate) struct NotesOutcome {
    pub(crate) json: Value,
    pub(crate) text: String,
}

/// Lists the notes; with `edit` or `rm`, changes them first. `edit`: a note's number and its new text. `rm`: numbers of notes, as they are listed
/// now.
pub(crate) fn run_notes(run: &Path, runs: &Path, edit: &[String], rm: &[usize]) -> Result<NotesOutcome> {
    let (recording, path) = crate::recordings::open(run, runs)?;
    let notes = number_notes(&recording, &path)?;
    let find = |number: usize| match notes.iter().find(|note| note.number == number) {
        Some(found) => Ok(found),
        None => bail!(Error::Plan(no_such_note(number, notes.len()))),
    };
    let edited = match edit {
        [number, text] => match number.parse() {
            Ok(number) => Some((find(number)?, text)),
            Err(_) => bail!(Error::Plan(format!(
                "{number} is no number of a note: `whyso runs notes RUN` lists them"
            ))),
        },
        _ => None,
    };
    // All are looked up before the first one goes: numbers are those of the list that the user saw.
    let removed = rm.iter().map(|number| find(*number)).collect::<Result<Vec<_>>>()?;
    if let Some((edited, text)) = edited {
        change_note(&path, edited.note.t_ns, &edited.note.text, Some(text))?;
    }
    for gone in removed {
        change_note(&path, gone.note.t_ns, &gone.note.text, None)?;
    }
    let notes = number_notes(&recording, &path)?;
    let id = &recording.run().id;
    let lines: Vec<String> = notes
        .iter()
        .map(|note| {
            format!("{:>3}  {}  {}", note.number, whyso_words::clock(note.at_s, STEP_S), note.note.text)
        })
        .collect();
    let text = match lines.is_empty() {
        true => format!("the run {id} has no notes: `whyso note` adds one"),
        false => lines.join("\n"),
    };
    let listed: Vec<Value> = notes
        .iter()
        .map(|note| json!({ "number": note.number, "at_s": note.at_s, "text": note.note.text }))
        .collect();
    Ok(NotesOutcome { json: json!({ "run": id, "notes": listed }), text })
}

fn number_notes(recording: &Recording, path: &Path) -> Result<Vec<NumberedNote>> {
    let origin_ns = whyso_report::origin_ns(recording.run(), recording.load_begin_ns()?);
    let mut notes = notes_of(path);
    notes.sort_by_key(|note| note.t_ns);
    let seconds = |t_ns: i64| t_ns.saturating_sub(origin_ns) as f64 / 1e9;
    let number =
        |(place, note): (usize, Event)| NumberedNote { number: place + 1, at_s: seconds(note.t_ns), note };
    Ok(notes.into_iter().enumerate().map(number).collect())
}

fn no_such_note(number: usize, there: usize) -> String {
    match there {
        0 => format!("there is no note {number}: the run has no notes"),
        _ => format!("there is no note {number}: the run has {}", whyso_words::count(there as u64, "note")),
    }
}
