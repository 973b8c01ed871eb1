//! The file of the user's own notes on a recording.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::Event;
use crate::{layout, private};

/// More of a file is not read.
pub(crate) const BYTES_MAX: u64 = 16 << 20;

/// The kind of the event that a note is.
pub const NOTE: &str = "note";

/// One line of the file.
#[derive(Deserialize, Serialize)]
pub(crate) struct Line {
    /// Monotonic nanoseconds, on the clock of the recording.
    pub(crate) t_ns: i64,
    pub(crate) text: String,
}

/// The notes on a recording; lines that can't be read are left out.
pub fn notes(dir: &Path) -> Vec<Event> {
    let path = dir.join(layout::NOTES);
    let Ok(bytes) = private::read_file(&path, BYTES_MAX) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let event =
        |line: Line| Event { t_ns: line.t_ns, host: String::new(), kind: NOTE.to_string(), text: line.text };
    lines.map(event).collect()
}
