//! What happened: notes, restarts, changed variables, sources that can't be read.

use super::{TabData, plain};
use crate::screen::clock::time_of_day;
use crate::screen::listing::{Cell, Column, Line, Listing, REST};

pub(super) fn listing(shown: &TabData, until_ns: i64) -> Listing {
    let lines = shown.history.events(until_ns).into_iter().map(|event| {
        let (time, text) = (time_of_day(event.t_ns), plain(&event.text));
        Line {
            executed: None,
            whole: format!("{time} {}: {text}", event.kind),
            cells: [time, plain(&event.kind), text].map(Cell::Text).to_vec(),
        }
    });
    Listing {
        columns: vec![
            Column { title: "UTC", width: 9 },
            Column { title: "event", width: 14 },
            Column { title: "what", width: REST },
        ],
        lines: lines.collect(),
        // The newest first, as they came.
        sort: None,
        about: "the newest first; n adds a note of your own".to_string(),
        empty: "nothing has happened: no restart, no changed variable, no note".to_string(),
    }
}
