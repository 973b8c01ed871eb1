//! What the tracer's table of long waits by thread holds of a window.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use whyso_explain::model::{LevelInput, Pauses};
use whyso_model::{FileWait, PauseRow};
use whyso_record::Recording;
use whyso_record::data::TextRows;
use whyso_record::run::Window;
use whyso_series::ThreadTime;

use crate::Error;
use crate::thread_times::{add_last_work, thread_times};

/// Pauses of a row of the table, of which neither the requests nor the connection are known yet.
pub(crate) fn of_row(row: PauseRow) -> Pauses {
    let PauseRow { tid, born_ns: _, name, role, state, call, in_request, client, length, period } = row;
    let connection = None;
    Pauses { tid, name, role, connection, state, call, in_request, client, requests: 0.0, length, period }
}

/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn add(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    if !is_there(recording) {
        return Ok(());
    }
    for level in levels {
        let window = snapshots_next_to(recording, level.begin_ns, level.end_ns);
        level.pauses = between(&tables(recording, window)?, window);
        if level.pauses.is_empty() {
            continue;
        }
        let mut threads = thread_times(recording, window)?.threads;
        if recording.has_thread_stretches() {
            add_last_work(recording, window, &mut threads)?;
        }
        learn(&mut level.pauses, &threads);
    }
    Ok(())
}

/// The long waits of these threads between two snapshots of them.
pub(crate) fn of(
    recording: &Recording,
    window: Window,
    threads: &[ThreadTime],
) -> Result<Vec<Pauses>, Error> {
    if !is_there(recording) {
        return Ok(Vec::new());
    }
    let window = snapshots_next_to(recording, window.begin_ns, window.end_ns);
    let mut pauses = between(&tables(recording, window)?, window);
    learn(&mut pauses, threads);
    Ok(pauses)
}

/// Adds what is known of the threads that waited.
pub(crate) fn learn(pauses: &mut [Pauses], threads: &[ThreadTime]) {
    let by_tid: HashMap<u32, &ThreadTime> = threads.iter().map(|thread| (thread.tid, thread)).collect();
    for pause in pauses {
        if let Some(thread) = by_tid.get(&pause.tid) {
            pause.role.clone_from(&thread.role);
            pause.connection = thread.connection;
            pause.requests = thread.requests as f64;
        }
    }
}

fn is_there(recording: &Recording) -> bool {
    recording.row_sources().iter().any(|source| source == PauseRow::SOURCE)
}

fn tables(recording: &Recording, window: Window) -> Result<Vec<TextRows>, Error> {
    Ok(recording.rows(PauseRow::SOURCE, Some(window))?)
}

/// From the tracer's reading of its tables nearest to a window's begin to the one nearest to its end. The table of waits for files is
/// written with each, the one of long waits only where there were any.
fn snapshots_next_to(recording: &Recording, begin_ns: i64, end_ns: i64) -> Window {
    let nearest = |t_ns: i64| {
        recording.table_times(FileWait::SOURCE).min_by_key(|read_ns| read_ns.abs_diff(t_ns)).unwrap_or(t_ns)
    };
    Window { begin_ns: nearest(begin_ns), end_ns: nearest(end_ns) }
}

fn between(tables: &[TextRows], window: Window) -> Vec<Pauses> {
    let mut all: BTreeMap<Key, Pauses> = BTreeMap::new();
    for table in tables.iter().filter(|table| table.t_ns > window.begin_ns && table.t_ns <= window.end_ns) {
        add_rows(&mut all, table);
    }
    all.into_values().collect()
}

/// Number of the thread, when it was found first, state, call, whether in a request, client.
type Key = (u32, u64, String, String, bool, String);

fn add_rows(all: &mut BTreeMap<Key, Pauses>, table: &TextRows) {
    let places: HashMap<&str, usize> =
        table.columns.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    for row in &table.rows {
        let read = PauseRow::from_cells(|name| row.get(*places.get(name)?)?.as_deref());
        let Some(row) = read else { continue };
        let key =
            (row.tid, row.born_ns, row.state.clone(), row.call.clone(), row.in_request, row.client.clone());
        let row = of_row(row);
        match all.entry(key) {
            Entry::Vacant(place) => {
                place.insert(row);
            }
            Entry::Occupied(mut place) => {
                let sum = place.get_mut();
                // A thread may bear its name, and show its role, only later.
                sum.name = row.name;
                sum.role = row.role;
                sum.length = sum.length.and(row.length);
                sum.period = sum.period.and(row.period);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_model::Moments;

    fn row(tid: u32, born_ns: u64, count: f64, mean_ns: f64) -> Vec<Option<String>> {
        let row = PauseRow {
            tid,
            born_ns,
            name: "one_connection".to_string(),
            role: "connection".to_string(),
            state: "net_receive".to_string(),
            call: "system call 65534".to_string(),
            in_request: false,
            client: "load".to_string(),
            length: Moments { count, mean_ns, spread_ns: 0.0 },
            period: Moments::default(),
        };
        row.into_cells().map(Some).to_vec()
    }

    fn table(t_ns: i64, rows: &[Vec<Option<String>>]) -> TextRows {
        let columns = PauseRow::COLUMNS.map(str::to_string).to_vec();
        TextRows { source: PauseRow::SOURCE.to_string(), t_ns, columns, rows: rows.to_vec() }
    }

    #[test]
    fn a_window_has_what_was_written_with_the_snapshots_within_it() {
        let tables = [
            table(10, &[row(7, 1, 1.0, 90e6)]),
            table(20, &[row(7, 1, 2.0, 400e6)]),
            table(30, &[row(7, 1, 1.0, 700e6), row(7, 25, 1.0, 50e6)]),
            table(40, &[row(7, 1, 1.0, 90e6)]),
        ];
        let mut found = between(&tables, Window { begin_ns: 10, end_ns: 30 });
        learn(&mut found, &[ThreadTime { tid: 7, requests: 90, ..ThreadTime::default() }]);
        let [first, second] = &found[..] else { panic!("{found:?}") };
        assert_eq!((first.length.count, first.length.mean_ns, first.requests), (3.0, 500e6, 90.0));
        assert!((first.length.spread_ns - 141.42e6).abs() < 0.01e6, "{first:?}");
        assert_eq!((first.call.as_str(), first.client.as_str()), ("system call 65534", "load"));
        assert_eq!(second.length.mean_ns, 50e6, "another thread of the same number");
    }

    #[test]
    fn tables_that_are_not_what_they_should_be_give_nothing() {
        let mut odd = table(20, &[row(7, 1, 1.0, 90e6)]);
        odd.columns[7] = "number".to_string();
        let mut broken = table(20, &[row(7, 1, 1.0, 90e6)]);
        broken.rows[0][8] = Some("NaN".to_string());
        assert_eq!(between(&[odd, broken], Window { begin_ns: 10, end_ns: 30 }), []);
    }
}
