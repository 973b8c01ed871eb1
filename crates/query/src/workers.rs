//! Processes of recorded programs with their memory, as they were when they were looked at within each level's window.

use std::collections::{BTreeMap, BTreeSet};

use whyso_explain::model::LevelInput;
use whyso_model::Worker;
use whyso_record::Recording;
use whyso_record::data::TextRows;
use whyso_record::run::Window;

use crate::Error;

/// The host of the first target's series.
const FIRST: &str = "server";
/// Tables of a window that are read, at most: processes change slowly.
const TABLES_MAX: usize = 60;
/// How far from a window's edge a table may have been read.
const REACH_NS: u64 = 15_000_000_000;

/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn add(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    // Other hosts send tables of their own.
    let sources = recording.row_sources();
    let sources: Vec<&String> = sources.iter().filter(|source| source.starts_with(Worker::SOURCE)).collect();
    if sources.is_empty() {
        return Ok(());
    }
    let run = recording.run();
    let first = run.node.as_ref().map(|node| node.name.clone()).or_else(|| run.process().map(str::to_string));
    let first = first.unwrap_or_else(|| FIRST.to_string());
    for level in levels {
        let window = Window { begin_ns: level.begin_ns, end_ns: level.end_ns };
        for source in &sources {
            level.workers.extend(chosen(recording, source, window)?);
        }
        for worker in level.workers.iter_mut().flatten().filter(|worker| worker.program == FIRST) {
            worker.program.clone_from(&first);
        }
    }
    Ok(())
}

/// The processes at each time within the window at which they were looked at, and at the nearest times to its begin and its end.
fn chosen(recording: &Recording, source: &str, window: Window) -> Result<Vec<Vec<Worker>>, Error> {
    let is_within = |t_ns: &i64| (window.begin_ns..=window.end_ns).contains(t_ns);
    let near = |edge_ns: i64| {
        let nearest = recording.table_times(source).min_by_key(|t_ns| t_ns.abs_diff(edge_ns));
        nearest.filter(|t_ns| t_ns.abs_diff(edge_ns) <= REACH_NS)
    };
    let within = recording.table_times(source).filter(is_within);
    let times: BTreeSet<i64> = within.chain(near(window.begin_ns)).chain(near(window.end_ns)).collect();
    let step = times.len().div_ceil(TABLES_MAX).max(1);
    let mut found = Vec::new();
    for t_ns in times.into_iter().step_by(step) {
        let tables = recording.rows(source, Some(Window { begin_ns: t_ns, end_ns: t_ns }))?;
        found.extend(tables.iter().map(workers).filter(|workers| !workers.is_empty()));
    }
    Ok(found)
}

fn workers(table: &TextRows) -> Vec<Worker> {
    let place = |name: &str| table.columns.iter().position(|column| column == name);
    let places: BTreeMap<&str, usize> =
        Worker::COLUMNS.into_iter().filter_map(|name| Some((name, place(name)?))).collect();
    let worker =
        |cells: &Vec<Option<String>>| Worker::from_cells(|name| cells.get(*places.get(name)?)?.as_deref());
    table.rows.iter().filter_map(worker).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_processes_and_others_nothing() {
        let worker = Worker { program: "apache2".to_string(), pid: 4, is_worker: true, ..Worker::default() };
        let table = TextRows {
            source: Worker::SOURCE.to_string(),
            t_ns: 1,
            columns: Worker::COLUMNS.map(str::to_string).to_vec(),
            rows: vec![worker.clone().into_cells().to_vec(), vec![None]],
        };
        assert_eq!(workers(&table), [worker]);
    }
}
