//! Threads over time: for the terminal, as JSON, and as the page takes them.

mod letters;
pub(crate) mod page;
mod terminal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use terminal::{timeline, timeline_columns};

use serde_json::{Map, Value, json};
use whyso_profile::{FunctionName, SingleWait};
use whyso_record::run::{Level, RunInfo};
use whyso_series::Timeline;

/// What a timeline is drawn of.
#[derive(Clone, Copy, Debug)]
pub struct TimelineView<'a> {
    pub run: &'a RunInfo,
    /// The report's zero, in monotonic nanoseconds.
    pub origin_ns: i64,
    pub timeline: &'a Timeline,
    pub rows: &'a [TimelineRow],
    /// The usual time between two snapshots of the threads, in seconds.
    pub snapshot_interval_s: f64,
    /// The longest of the waits that were chosen, the longest first.
    pub waits: &'a [SingleWait],
    /// Whose they are, as a text.
    pub waits_of: &'a str,
}

/// A line of a timeline: one thread, or all of a role.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineRow {
    /// `None`: all threads of a role.
    pub tid: Option<u32>,
    /// Empty for a role.
    pub name: String,
    pub role: String,
    /// Places in the timeline.
    pub threads: Vec<usize>,
}

impl TimelineRow {
    /// Returns one row per thread, in the order of their places.
    pub fn of_threads(timeline: &Timeline, places: &[usize]) -> Vec<TimelineRow> {
        let row = |place: &usize| {
            let thread = &timeline.threads[*place];
            TimelineRow {
                tid: Some(thread.tid),
                name: thread.name.clone(),
                role: thread.role.clone(),
                threads: vec![*place],
            }
        };
        places.iter().map(row).collect()
    }

    /// Returns one row per role, by name.
    pub fn of_roles(timeline: &Timeline, places: &[usize]) -> Vec<TimelineRow> {
        let mut roles: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for place in places {
            roles.entry(&timeline.threads[*place].role).or_default().push(*place);
        }
        let row = |(role, threads): (&str, Vec<usize>)| TimelineRow {
            role: role.to_string(),
            threads,
            ..TimelineRow::default()
        };
        roles.into_iter().map(row).collect()
    }
}

/// Returns the same as one object: of each row the milliseconds by state, one number per column. States that it never was in are left out.
pub fn timeline_json(view: &TimelineView<'_>) -> Value {
    let TimelineView { run, origin_ns, timeline, .. } = view;
    let seconds = |t_ns: i64| (t_ns - origin_ns) as f64 / 1e9;
    let row = |row: &TimelineRow| {
        let cells = timeline.summed(&row.threads);
        let mut states_ms = Map::new();
        for (place, state) in timeline.states.iter().enumerate() {
            let column: Vec<f64> = cells.iter().map(|cell| (cell[place] * 1e3).round() / 1e3).collect();
            if column.iter().any(|ms| *ms > 0.0) {
                states_ms.insert(state.clone(), json!(column));
            }
        }
        json!({
            "tid": row.tid,
            "name": if row.tid.is_some() { Some(&row.name) } else { None },
            "role": row.role,
            "threads": row.threads.len(),
            "states_ms": states_ms,
        })
    };
    let level = |level: &Level| {
        json!({
            "index": level.index,
            "users": level.users,
            "begin_s": seconds(level.window.begin_ns),
            "end_s": seconds(level.window.end_ns),
        })
    };
    json!({
        "edges_s": timeline.edges_ns.iter().map(|edge| seconds(*edge)).collect::<Vec<_>>(),
        "look_s": view.snapshot_interval_s,
        "levels": run.levels.iter().map(level).collect::<Vec<_>>(),
        "rows": view.rows.iter().map(row).collect::<Vec<_>>(),
        "waits": view.waits.iter().map(|wait| wait_json(wait, *origin_ns)).collect::<Vec<_>>(),
    })
}

fn wait_json(wait: &SingleWait, origin_ns: i64) -> Value {
    let function = |function: &Option<FunctionName>| {
        function.as_ref().map(|function| json!({"name": function.name, "module": function.module}))
    };
    json!({
        "end_s": (wait.end_ns - origin_ns) as f64 / 1e9,
        "tid": wait.tid,
        "state": wait.state,
        "length_ms": wait.length_ns as f64 / 1e6,
        "wait_class": wait.class,
        "waited_in": function(&wait.waited_in),
        "woken_by_tid": if wait.waker_tid > 0 { Some(wait.waker_tid) } else { None },
        "woken_by_role": if wait.waker_role.is_empty() { None } else { Some(&wait.waker_role) },
        "ended_in": function(&wait.ended_in),
    })
}
