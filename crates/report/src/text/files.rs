//! Waits by file, as rows of a table.

use whyso_explain::model::FileWait;
use whyso_words::{number, whole};

/// Most files that a table shows, those with the longest waits. The JSON has more.
pub(crate) const FILES_SHOWN_MAX: usize = 15;

/// Returns the number of waits, their seconds, the mean in milliseconds, the state and the path.
pub(crate) fn file_cells(wait: &FileWait) -> [String; 5] {
    [
        whole(wait.count.round() as u64),
        number(wait.ns / 1e9),
        number(wait.ns / 1e6 / wait.count.max(1.0)),
        wait.state.clone(),
        wait.path.clone(),
    ]
}
