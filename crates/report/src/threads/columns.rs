//! Threads as the page takes them: who they are, and one column per state over every thread and snapshot.

use serde::Serialize;
use ts_rs::TS;
use whyso_series::{ThreadTable, is_idle};

/// The page has times in this unit, in nanoseconds: a hundred-thousandth of the shortest window that there is.
const UNIT_NS: u64 = 10_000;
/// Most cells (a thread in a snapshot) that come through whole: 1,000 threads for ten minutes.
pub(crate) const CELLS_MAX: usize = 61_000;
/// Most threads. Of more, the page has those with the most time outside of waiting.
pub(crate) const THREADS_MAX: usize = 5_000;

/// Longest statement, in characters.
const STATEMENT_MAX: usize = 400;

/// What the page's head holds of the threads.
#[derive(Serialize, TS)]
pub(crate) struct ThreadsHead {
    pub(crate) states: Vec<String>,
    /// Times of the snapshots, monotonic ns.
    pub(crate) t_ns: Vec<i64>,
    pub(crate) unit_ns: u64,
    pub(crate) list: Vec<ThreadHead>,
    pub(crate) statements: Vec<String>,
    /// The block that holds one column per state, then requests, connections and statements, over thread and snapshot.
    pub(crate) block: u32,
    /// What was left out, in plain words; empty where nothing was.
    pub(crate) note: String,
}

#[derive(Serialize, TS)]
pub(crate) struct ThreadHead {
    tid: u32,
    name: String,
    role: String,
}

/// Returns the head, and the columns of its block: running sums by state in the head's unit, running requests, connections and
/// statements. Statements are places in the head's list. NaN stands for none. `edges_ns` are times whose nearest snapshots must stay.
pub(crate) fn columns(table: &ThreadTable, edges_ns: &[i64], block: u32) -> (ThreadsHead, Vec<Vec<f64>>) {
    let threads = busiest(table);
    let snapshots = thinned(table, edges_ns, CELLS_MAX / threads.len().max(1));
    let all = table.t_ns.len();
    let cells =
        || threads.iter().flat_map(|thread| snapshots.iter().map(move |snapshot| (*thread, *snapshot)));

    let sums = |running: &[u64], unit: u64| {
        // A thread that is left out is not in the sum.
        let mut column = Vec::with_capacity(threads.len() * snapshots.len());
        let mut sum = 0;
        for thread in &threads {
            let row = &running[thread * all..(thread + 1) * all];
            let first = row[snapshots[0]];
            column.extend(snapshots.iter().map(|snapshot| ((sum + row[*snapshot] - first) / unit) as f64));
            sum += row[snapshots[snapshots.len() - 1]] - first;
        }
        column
    };
    let mut columns: Vec<Vec<f64>> = table.running_ns.iter().map(|running| sums(running, UNIT_NS)).collect();
    columns.push(sums(&table.running_requests, 1));
    let at = |(thread, snapshot): (usize, usize)| thread * all + snapshot;
    columns.push(cells().map(|cell| table.connection[at(cell)].map_or(f64::NAN, |id| id as f64)).collect());
    columns.push(cells().map(|cell| table.statement[at(cell)].map_or(f64::NAN, f64::from)).collect());

    let mut note = String::new();
    if snapshots.len() < all {
        note = format!(
            "Of {all} snapshots of the threads, {} are in this page, those at the ends of measured windows among them.",
            snapshots.len()
        );
    }
    if threads.len() < table.threads.len() {
        note.push_str(if note.is_empty() { "" } else { " " });
        note.push_str(&format!(
            "Of {} threads, the {THREADS_MAX} that worked and waited most are in this page.",
            table.threads.len()
        ));
    }
    if !note.is_empty() {
        note.push_str(" `whyso threads RUN` has all of them.");
    }
    let head = |thread: &usize| {
        let thread = &table.threads[*thread];
        ThreadHead { tid: thread.tid, name: thread.name.clone(), role: thread.role.clone() }
    };
    let head = ThreadsHead {
        states: table.states.clone(),
        t_ns: snapshots.iter().map(|snapshot| table.t_ns[*snapshot]).collect(),
        unit_ns: UNIT_NS,
        list: threads.iter().map(head).collect(),
        statements: table.statements.iter().map(|text| text.chars().take(STATEMENT_MAX).collect()).collect(),
        block,
        note,
    };
    (head, columns)
}

/// The threads that the page has, by their places, in the order of the table.
fn busiest(table: &ThreadTable) -> Vec<usize> {
    let snapshots = table.t_ns.len();
    let mut places: Vec<usize> = (0..table.threads.len()).collect();
    if places.len() <= THREADS_MAX {
        return places;
    }
    let busy_ns = |thread: &usize| {
        let of = |running: &Vec<u64>| running[(thread + 1) * snapshots - 1] - running[thread * snapshots];
        let at_work = table.running_ns.iter().zip(&table.states).filter(|(_, state)| !is_idle(state));
        std::cmp::Reverse(at_work.map(|(running, _)| of(running)).sum::<u64>())
    };
    places.sort_by_cached_key(busy_ns);
    places.truncate(THREADS_MAX);
    places.sort_unstable();
    places
}

/// The snapshots that the page has, by their places: all, or those nearest to `edges_ns` and as many evenly between as fit.
fn thinned(table: &ThreadTable, edges_ns: &[i64], most: usize) -> Vec<usize> {
    let all = table.t_ns.len();
    if all <= most {
        return (0..all).collect();
    }
    let nearest =
        |t_ns: &i64| (0..all).min_by_key(|snapshot| table.t_ns[*snapshot].abs_diff(*t_ns)).unwrap_or(0);
    let mut places: Vec<usize> = edges_ns.iter().map(nearest).chain([0, all - 1]).collect();
    places.sort_unstable();
    places.dedup();
    let stride = all.div_ceil(most.saturating_sub(places.len()).max(1));
    places.extend((0..all).step_by(stride));
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_series::{Snapshot, ThreadSnapshot};

    /// Threads that are on a CPU all the time, with one snapshot per second.
    fn busy(threads: u32, snapshots: i64) -> ThreadTable {
        let thread = |tid, t_ns: i64| ThreadSnapshot {
            tid,
            requests: t_ns as u64 / 1_000,
            states_ns: vec![t_ns as u64],
            ..ThreadSnapshot::default()
        };
        let snapshot = |t_ns| Snapshot { t_ns, threads: (0..threads).map(|tid| thread(tid, t_ns)).collect() };
        let snapshots = (0..snapshots).map(|second| snapshot(second * 1_000_000_000)).collect();
        ThreadTable::new(vec!["cpu".to_string()], snapshots, &[])
    }

    #[test]
    fn the_time_between_two_snapshots_is_the_difference_of_two_cells() {
        let (head, columns) = columns(&busy(3, 5), &[], 0);
        assert_eq!((head.list.len(), head.t_ns.len(), columns.len()), (3, 5, 4));
        for thread in 0..3 {
            assert_eq!(columns[0][thread * 5 + 3] - columns[0][thread * 5 + 1], 2e9 / UNIT_NS as f64);
            assert_eq!(columns[1][thread * 5 + 3] - columns[1][thread * 5 + 1], 2e6);
        }
        assert!(head.note.is_empty() && columns[2].iter().all(|connection| connection.is_nan()));
    }

    #[test]
    fn too_many_snapshots_are_thinned_except_for_the_ends_of_windows_and_the_page_shows_it() {
        let table = busy(1_000, 400);
        let (head, columns) = columns(&table, &[100_400_000_000, 123_000_000_000], 0);
        assert!(head.t_ns.len() <= CELLS_MAX / 1_000, "{}", head.t_ns.len());
        for second in [0, 100, 123, 399] {
            assert!(head.t_ns.contains(&(second * 1_000_000_000)), "{second}");
        }
        let sum = columns[0][columns[0].len() - 1];
        assert_eq!(sum, 1_000.0 * 399e9 / UNIT_NS as f64);
        assert!(head.note.starts_with("Of 400 snapshots"), "{}", head.note);
    }

    #[test]
    fn of_too_many_threads_those_that_only_waited_are_left_out_and_the_page_shows_it() {
        let table = busy(THREADS_MAX as u32 + 10, 2);
        let (head, _) = columns(&table, &[], 0);
        assert_eq!(head.list.len(), THREADS_MAX);
        assert!(head.note.contains("Of 5010 threads, the 5000"), "{}", head.note);
    }
}
