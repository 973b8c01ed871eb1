//! Which thread works for which connection is known twice: the server names threads, and the tracer saw which received requests. A
//! report shows where the two do not agree.

use std::collections::{HashMap, HashSet};

use whyso_model::{Missing, NotMeasured};
use whyso_record::data::TextRows;
use whyso_record::run::Window;
use whyso_record::{Recording, is_whole_list};

use crate::Error;

/// Threads that come or go between two snapshots are no disagreement. From this share on it is reported.
const SHARE_MIN: f64 = 0.1;
const THREADS_MIN: usize = 2;
/// So many of the server's lists are compared, spread evenly over a run.
const COMPARED_MAX: usize = 12;
/// All connections are listed this often at least.
const WHOLE_WITHIN_NS: i64 = 70_000_000_000;
/// What threads did is read so far around each.
const AROUND_NS: i64 = 5_000_000_000;

/// What the server's list and the tracer's differ in, as a sentence. `None` where they agree, or one of them is missing.
///
/// # Errors
/// The recording's files can't be read.
pub fn thread_disagreement(recording: &Recording) -> Result<Option<NotMeasured>, Error> {
    let sources = recording.row_sources();
    let has = |source: &str| sources.iter().any(|listed| listed == source);
    // The threads of several servers were traced, and the connections of one listed.
    if recording.run().nodes.iter().any(|node| node.is_loaded) {
        return Ok(None);
    }
    if !has("connections") || !(has("threads") || recording.has_thread_stretches()) {
        return Ok(None);
    }
    let connections = compared_lists(recording)?;
    let mut traced = Vec::new();
    if recording.has_thread_stretches() {
        for table in &connections {
            traced.extend(around(recording, table.t_ns)?);
        }
    }
    if !recording.has_thread_stretches() {
        traced = recording.rows("threads", None)?.iter().map(|table| (table.t_ns, threads(table))).collect();
    }
    let handling = recording.run().server.variables.get("thread_handling").map(String::as_str);
    let line = compare(&connections, traced, handling != Some("pool-of-threads"));
    Ok(line.map(|line| NotMeasured::of_line(Missing::ThreadConnections, &line)))
}

/// A thread as the tracer had it at one moment: its requests up to then.
type Threads = HashMap<u32, u64>;

/// `has_own_threads`: each connection has a thread to itself, and no thread works for a connection that the server does not list.
fn compare(
    connections: &[TextRows],
    mut traced: Vec<(i64, Threads)>,
    has_own_threads: bool,
) -> Option<String> {
    traced.sort_by_key(|(t_ns, _)| *t_ns);
    let (mut named, mut strangers) = (HashSet::<u32>::new(), HashSet::<u32>::new());
    let (mut working, mut unnamed) = (HashSet::<u32>::new(), HashSet::<u32>::new());
    for table in connections {
        let after = traced.partition_point(|(t_ns, _)| *t_ns <= table.t_ns);
        let (Some((_, before)), Some((_, next))) =
            (after.checked_sub(1).map(|at| &traced[at]), traced.get(after))
        else {
            continue;
        };
        let tids: HashSet<u32> = numbers(table, "tid").flatten().map(|tid| tid as u32).collect();
        named.extend(&tids);
        strangers.extend(tids.iter().filter(|tid| !before.contains_key(tid) && !next.contains_key(tid)));
        // More than the login of a connection that came between.
        let worked =
            |tid: &&u32| before.get(tid).is_some_and(|requests| next.get(tid) > Some(&(requests + 1)));
        for tid in next.keys().filter(worked) {
            working.insert(*tid);
            if !tids.contains(tid) {
                unnamed.insert(*tid);
            }
        }
    }
    let many = |some: usize, all: usize| some >= THREADS_MIN && some as f64 > SHARE_MIN * all as f64;
    if !has_own_threads || !many(unnamed.len(), working.len()) {
        return None;
    }
    // The tracer does not know a thread that has not run since it began. Only that is no disagreement.
    Some(if many(strangers.len(), named.len()) {
        format!(
            "the connections of {} of the {} threads that the server named: its process had no such threads when they were \
             looked at. Either they came and went between, or the server counts threads in numbers of its own, as in a container",
            strangers.len(),
            named.len()
        )
    } else {
        format!(
            "the connections of {} of the {} threads that answered requests: the server named none for them while they did",
            unnamed.len(),
            working.len()
        )
    })
}

/// Some of the server's lists, of those that are whole.
fn compared_lists(recording: &Recording) -> Result<Vec<TextRows>, Error> {
    let times: Vec<i64> = recording.table_times("connections").collect();
    let mut lists: Vec<TextRows> = Vec::new();
    for begin_ns in times.iter().step_by(times.len().div_ceil(COMPARED_MAX).max(1)) {
        let reach = Window { begin_ns: *begin_ns, end_ns: begin_ns.saturating_add(WHOLE_WITHIN_NS) };
        let found = recording.rows("connections", Some(reach))?;
        lists.extend(found.into_iter().find(is_whole_list));
    }
    lists.dedup_by_key(|list| list.t_ns);
    Ok(lists)
}

/// The threads before and after the server listed its own, with the requests of the time between.
fn around(recording: &Recording, t_ns: i64) -> Result<[(i64, Threads); 2], Error> {
    let window = Window { begin_ns: t_ns.saturating_sub(AROUND_NS), end_ns: t_ns.saturating_add(AROUND_NS) };
    let times = recording.thread_times(window)?;
    let before = times.threads.iter().map(|thread| (thread.tid, 0)).collect();
    let after = times.threads.iter().map(|thread| (thread.tid, thread.requests)).collect();
    Ok([(window.begin_ns, before), (window.end_ns, after)])
}

fn threads(table: &TextRows) -> Threads {
    let requests = numbers(table, "requests").map(Option::unwrap_or_default);
    numbers(table, "tid").zip(requests).filter_map(|(tid, requests)| Some((tid? as u32, requests))).collect()
}

/// A column's numbers, row by row.
fn numbers<'a>(table: &'a TextRows, name: &str) -> impl Iterator<Item = Option<u64>> + 'a {
    let place = table.columns.iter().position(|column| column == name);
    table.rows.iter().map(move |row| row.get(place?)?.as_deref()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(t_ns: i64, columns: [&str; 2], rows: &[(u32, u64)]) -> TextRows {
        let row = |(tid, number): &(u32, u64)| vec![Some(tid.to_string()), Some(number.to_string())];
        TextRows {
            source: String::new(),
            t_ns,
            columns: columns.map(str::to_string).to_vec(),
            rows: rows.iter().map(row).collect(),
        }
    }

    fn server_rows(t_ns: i64, rows: &[(u32, u64)]) -> TextRows {
        table(t_ns, ["tid", "connection"], rows)
    }

    fn traced() -> Vec<(i64, Threads)> {
        [(0, BEFORE), (20, AFTER)].map(|(t_ns, rows)| (t_ns, rows.into())).to_vec()
    }

    const BEFORE: [(u32, u64); 4] = [(101, 5), (102, 5), (103, 5), (104, 0)];
    const AFTER: [(u32, u64); 4] = [(101, 90), (102, 80), (103, 70), (104, 0)];

    #[test]
    fn a_server_that_names_the_threads_that_work_agrees() {
        assert_eq!(compare(&[server_rows(10, &[(101, 1), (102, 2), (103, 3)])], traced(), true), None);
        // One that has just come, and nothing to compare with.
        let one_more = server_rows(10, &[(101, 1), (102, 2), (103, 3), (999, 4)]);
        assert_eq!(compare(&[one_more], traced(), true), None);
        assert_eq!(compare(&[server_rows(30, &[(7, 1), (8, 2)])], traced(), true), None);
        assert_eq!(compare(&[], Vec::new(), true), None);
        let with_idle_ones = server_rows(10, &[(101, 1), (102, 2), (103, 3), (201, 4), (202, 5), (203, 6)]);
        assert_eq!(compare(&[with_idle_ones], traced(), true), None);
    }

    #[test]
    fn threads_that_the_process_does_not_have_are_reported() {
        let in_a_container = server_rows(10, &[(11, 1), (12, 2), (13, 3)]);
        let words = compare(&[in_a_container], traced(), true).unwrap();
        assert!(words.starts_with("the connections of 3 of the 3 threads that the server named"), "{words}");
    }

    #[test]
    fn threads_that_work_and_that_the_server_does_not_name_are_reported_unless_they_are_a_pools() {
        let half = [server_rows(10, &[(101, 1)])];
        let words = compare(&half, traced(), true).unwrap();
        assert!(words.starts_with("the connections of 2 of the 3 threads that answered requests"), "{words}");
        assert_eq!(compare(&half, traced(), false), None, "a pool's thread works for any connection");
    }
}
