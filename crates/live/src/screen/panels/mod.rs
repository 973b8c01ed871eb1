//! What each tab shows.

mod connections;
mod events;
mod locks;
mod metrics;
mod programs;
mod sampled;
mod views;
mod why;

use whyso_explain::model::Explanation;
use whyso_explain::pfs::View;
use whyso_record::run::Window;
use whyso_words::{count, seconds};

use super::app::{App, Tab};
use super::listing::Listing;
use crate::history::History;
use crate::history::read::Cells;

/// What a tab is made of.
pub(super) struct TabData<'a> {
    pub(super) history: &'a History,
    pub(super) explanation: Option<&'a Explanation>,
    pub(super) not_measured: &'a [whyso_model::NotMeasured],
    pub(super) span_ns: (i64, i64),
    /// Characters of a line.
    pub(super) width: u16,
}

pub(super) fn listing(shown: &TabData, app: &App) -> Listing {
    let window = app.window(shown.span_ns);
    match app.tab() {
        Tab::Waits => waits(shown, app),
        Tab::Statements => statements(shown, app),
        Tab::Locks => locks::listing(shown, window),
        Tab::Connections => connections::listing(shown, window, app.shows_observer()),
        Tab::Views => views::listing(shown, app.view(), app),
        Tab::Metrics => metrics::listing(shown, window),
        Tab::Programs => programs::listing(shown, window),
        Tab::Events => events::listing(shown, window.end_ns),
        Tab::Why => why::listing(shown),
    }
}

/// Waits of the server's own events; where it counts none, what its threads were in.
fn waits(shown: &TabData, app: &App) -> Listing {
    match View::named("waits").filter(|view| shown.history.has_source(view.source)) {
        Some(view) => views::listing(shown, view, app),
        None => sampled::states(shown, app.window(shown.span_ns)),
    }
}

/// Statements as the server counts them; where it does not, those that its connections were found executing.
fn statements(shown: &TabData, app: &App) -> Listing {
    match View::named("digests").filter(|view| shown.history.has_source(view.source)) {
        Some(view) => views::listing(shown, view, app),
        None => sampled::statements(shown, app.window(shown.span_ns), app.shows_observer()),
    }
}

/// Whether a line of the table of connections is of one of whyso's own.
fn is_observers(cells: Cells) -> bool {
    cells.text("own").is_some()
}

/// What a listing says of a number of lines that are hidden; empty where there are none.
fn hidden_words(lines: usize, what: &str) -> String {
    match lines {
        0 => String::new(),
        1 => format!("; 1 {what} of whyso's own is hidden, O shows it"),
        many => format!("; {} of whyso's own are hidden, O shows them", count(many as u64, what)),
    }
}

/// "over 5 s"
fn over(window: Window) -> String {
    format!("over {}", seconds((window.seconds() * 10.0).round() / 10.0))
}

/// One line of a text that came from a server.
fn plain(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
