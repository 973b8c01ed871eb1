//! A view of the Performance Schema.

use std::collections::HashMap;

use whyso_explain::pfs::{Per, Quantity, Table, View};
use whyso_model::Missing;
use whyso_report::{observer_words, own_label};
use whyso_words::{bytes, nanoseconds, number, percent};

use super::{TabData, over, plain};
use crate::history::{Buckets, History};
use crate::screen::app::App;
use crate::screen::listing::{Cell, Column, Line, Listing, REST};
use crate::screen::session_statement::SessionStatement;

const NUMBER_WIDTH: u16 = 10;
/// Most columns next to the name.
const COLUMNS_MAX: usize = 7;
/// How far back a line's course goes, and how wide it is drawn.
const COURSE_NS: i64 = 60_000_000_000;
const COURSE_WIDTH: usize = 20;

pub(super) fn listing(shown: &TabData, view: &'static View, app: &App) -> Listing {
    let end_ns = app.end_ns(shown.span_ns);
    let Some(window) = shown.history.aligned(view.source, app.length_ns(), end_ns) else {
        let missing_table = shown.not_measured.iter().find(|missing| {
            let of_lock_tables =
                matches!(missing.source, Missing::RowLockWaits | Missing::MetadataLockTables);
            missing.source.is_of_performance_schema()
                || of_lock_tables
                || missing.to_string().contains(view.name)
        });
        let why = match (shown.history.has_source(view.source), missing_table) {
            (true, _) => "it was not read at this time: wait for two readings".to_string(),
            (false, Some(why)) => plain(&why.to_string()),
            (false, None) => "this server counted nothing there, or has no such table".to_string(),
        };
        return Listing { about: heading(view), ..Listing::nothing(why) };
    };
    let level = shown.history.level(window, |key| {
        key.source == view.source || (key.source == "status" && key.metric == "Questions")
    });
    let questions = level.counters.iter().find(|counter| counter.series.source == "status");
    let statements = questions.map(|questions| questions.increase);
    let mut table = Table::new(view, &level.counters, &level.gauges, window.seconds(), statements, None);
    if app.shows_observer() {
        table.show_observer();
    }
    let mut listing = if view.is_of_events() { events(&table) } else { wide(&table) };
    add_courses(&mut listing, shown.history, &table, end_ns);
    let texts = shown.history.texts();
    let labels: HashMap<&str, String> =
        table.lines.iter().map(|line| (line.name.as_str(), own_label(line))).collect();
    for line in &mut listing.lines {
        if let Some(text) = texts.get(&line.whole) {
            let label = labels.get(line.whole.as_str()).map_or("", String::as_str);
            if view.name == "digests" && label.is_empty() {
                line.executed = Some(SessionStatement { connection: None, statement: plain(text) });
            }
            line.whole = format!("{label}{}", plain(text));
            if let Some(name) = line.cells.last_mut() {
                *name = Cell::Text(line.whole.clone());
            }
        }
    }
    let hidden =
        observer_words(&table).map_or(String::new(), |text| format!("; hidden: {text}, O shows them"));
    listing.about = format!("{}, {}{hidden}", heading(view), over(window));
    listing
}

/// What the numbers by which the table is sorted did in the last minute, before the names of the lines.
fn add_courses(listing: &mut Listing, history: &History, table: &Table, end_ns: i64) {
    let Some(name) = listing.columns.len().checked_sub(1) else { return };
    let buckets = Buckets { end_ns, step_ns: COURSE_NS / COURSE_WIDTH as i64, count: COURSE_WIDTH };
    let metric = table.main_column().metric;
    let column = Column { title: "last minute", width: COURSE_WIDTH as u16 };
    listing.columns.insert(name, column);
    for line in &mut listing.lines {
        let course = history.course((table.view.source, metric, &line.whole), buckets);
        line.cells.insert(name, Cell::Text(bars(&course)));
    }
}

/// Each value as a bar of eight heights, the highest as high as there is; a dot where nothing is known.
fn bars(values: &[Option<f64>]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.iter().flatten().copied().fold(0.0, f64::max);
    let bar = |value: &Option<f64>| match value {
        None => '·',
        Some(value) if *value <= 0.0 => ' ',
        Some(value) => BARS[((value / highest * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    values.iter().map(bar).collect()
}

fn heading(view: &View) -> String {
    format!("{} ({})", view.about, view.name)
}

/// Count and time, per second, per statement and per event.
fn events(table: &Table) -> Listing {
    let [count, time] = [&table.view.columns[0], &table.view.columns[1]];
    let total = table.total().values.get(1).copied().flatten().unwrap_or(0.0);
    let line = |line: &whyso_explain::pfs::Line| {
        let per = |column, per| table.value(line, column, per);
        let whole_ns = per(time, Per::Window);
        let each = whole_ns.zip(per(count, Per::Window)).filter(|(_, count)| *count > 0.0);
        Line {
            cells: vec![
                Cell::number(per(time, Per::Second), nanoseconds),
                Cell::number(whole_ns.filter(|_| total > 0.0).map(|ns| ns / total), percent),
                Cell::number(each.map(|(ns, count)| ns / count), nanoseconds),
                Cell::number(per(count, Per::Second), number),
                Cell::number(per(count, Per::Statement), number),
                Cell::Text(plain(&line.name)),
            ],
            executed: None,
            whole: line.name.clone(),
        }
    };
    let number = |title| Column { title, width: NUMBER_WIDTH };
    let is_timed = total > 0.0;
    Listing {
        columns: vec![
            number("time/s"),
            Column { title: "share", width: 7 },
            number("each"),
            number("count/s"),
            number("/statement"),
            Column { title: table.view.line, width: REST },
        ],
        lines: table.lines.iter().map(line).collect(),
        sort: Some(if is_timed { 0 } else { 3 }),
        about: String::new(),
        empty: "nothing was counted at this time".to_string(),
    }
}

/// Views with many numbers: counters per second, levels as they are. Columns in which nothing was counted are left out.
fn wide(table: &Table) -> Listing {
    let total = table.total();
    let has = |at: usize| total.values.get(at).copied().flatten().is_some_and(|sum| sum > 0.0);
    let counted = table.view.columns.iter().enumerate().filter(|(at, _)| has(*at));
    let chosen: Vec<_> = counted.map(|(_, column)| column).take(COLUMNS_MAX).collect();
    let main = table.main_column();
    let sort = chosen.iter().position(|column| *column == main).unwrap_or(0);
    let line = |line: &whyso_explain::pfs::Line| {
        let numbers = chosen.iter().map(|column| {
            Cell::number(table.value(line, column, Per::Second), |value| match column.quantity {
                Quantity::Count => number(value),
                Quantity::Time => nanoseconds(value),
                Quantity::Bytes => bytes(value.max(0.0)),
            })
        });
        let name = Cell::Text(plain(&line.name));
        Line { cells: numbers.chain([name]).collect(), whole: line.name.clone(), executed: None }
    };
    let columns = chosen
        .iter()
        .map(|column| Column { title: column.name, width: NUMBER_WIDTH.max(column.name.len() as u16 + 1) });
    Listing {
        columns: columns.chain([Column { title: table.view.line, width: REST }]).collect(),
        lines: table.lines.iter().map(line).collect(),
        sort: Some(sort),
        about: String::new(),
        empty: "nothing was counted at this time".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_is_as_high_as_there_is_and_little_is_not_nothing() {
        let course = [None, Some(0.0), Some(1e-9), Some(4.0), Some(8.0)];
        assert_eq!(bars(&course), "· ▁▄█");
        assert_eq!(bars(&[Some(0.0), None]), " ·");
    }
}
