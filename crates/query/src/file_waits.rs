//! The tracer's tables of waits by file, as what they grew by over each level's window.

use std::collections::BTreeMap;

use whyso_explain::model::LevelInput;
use whyso_model::FileWait;
use whyso_record::Recording;
use whyso_record::data::TextRows;
use whyso_record::run::Window;

use crate::Error;

/// Path, state, role.
type Key = [String; 3];

/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn add(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    for level in levels {
        let window = Window { begin_ns: level.begin_ns, end_ns: level.end_ns };
        level.file_waits = waits(recording, FileWait::SOURCE, window)?;
        // Other hosts send tables of their own.
        for source in
            recording.row_sources().iter().filter(|source| source.starts_with(FileWait::OF_PROGRAMS))
        {
            level.program_file_waits.extend(waits(recording, source, window)?);
        }
    }
    Ok(())
}

/// What the tables of a source grew by over a window; empty where there are none.
fn waits(recording: &Recording, source: &str, window: Window) -> Result<Vec<FileWait>, Error> {
    if !recording.row_sources().iter().any(|known| known == source) {
        return Ok(Vec::new());
    }
    Ok(in_window(&tables_next_to(recording, source, window)?, window.begin_ns, window.end_ns))
}

/// By role and state: the file that these threads waited for most in that state. With its share, 0 to 1, of all their waits for files in
/// it.
pub type MainFiles = BTreeMap<(String, String), (String, f64)>;

/// The main files of a window, by role and state.
///
/// # Errors
/// Where the recording's files can't be read.
pub fn main_files(recording: &Recording, window: Window) -> Result<MainFiles, Error> {
    let waits = waits(recording, FileWait::SOURCE, window)?;
    let mut sums: BTreeMap<(String, String), f64> = BTreeMap::new();
    for wait in &waits {
        *sums.entry((wait.role.clone(), wait.state.clone())).or_default() += wait.ns;
    }
    let mut files = MainFiles::new();
    // The largest first.
    for wait in waits.into_iter().filter(|wait| !wait.path.is_empty() && wait.ns > 0.0) {
        let key = (wait.role, wait.state);
        let share = wait.ns / sums.get(&key).copied().unwrap_or(wait.ns);
        files.entry(key).or_insert((wait.path, share));
    }
    Ok(files)
}

/// The tables that were read next to a window's edges.
fn tables_next_to(recording: &Recording, source: &str, window: Window) -> Result<Vec<TextRows>, Error> {
    let mut tables = Vec::new();
    for t_ns in [window.begin_ns, window.end_ns] {
        tables.extend(recording.table_near(source, t_ns)?);
    }
    Ok(tables)
}

/// From the tables that were read next to the window's edges; what lies between them stands for the whole window.
fn in_window(tables: &[TextRows], begin_ns: i64, end_ns: i64) -> Vec<FileWait> {
    let nearest = |t_ns: i64| tables.iter().min_by_key(|table| table.t_ns.abs_diff(t_ns));
    let (Some(first), Some(last)) = (nearest(begin_ns), nearest(end_ns)) else {
        return Vec::new();
    };
    let between_ns = last.t_ns.saturating_sub(first.t_ns);
    if between_ns <= 0 {
        return Vec::new();
    }
    let scale = end_ns.saturating_sub(begin_ns) as f64 / between_ns as f64;
    let before = sums(first);
    let mut waits = Vec::new();
    for (key, [count, ns]) in sums(last) {
        let [count_before, ns_before] = before.get(&key).copied().unwrap_or_default();
        let [path, state, role] = key;
        if ns > ns_before {
            waits.push(FileWait {
                path,
                state,
                role,
                count: (count - count_before).max(0.0) * scale,
                ns: (ns - ns_before) * scale,
            });
        }
    }
    waits.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    waits
}

fn sums(table: &TextRows) -> BTreeMap<Key, [f64; 2]> {
    let place = |name: &str| table.columns.iter().position(|column| column == name);
    let mut sums: BTreeMap<Key, [f64; 2]> = BTreeMap::new();
    if FileWait::COLUMNS.into_iter().any(|name| place(name).is_none()) {
        return sums;
    }
    for row in &table.rows {
        let wait = FileWait::from_cells(|name| row.get(place(name)?)?.as_deref());
        let sum = sums.entry([wait.path, wait.state, wait.role]).or_default();
        sum[0] += wait.count;
        sum[1] += wait.ns;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(t_ns: i64, rows: &[(&str, &str, &str)]) -> TextRows {
        TextRows {
            source: FileWait::SOURCE.to_string(),
            t_ns,
            columns: FileWait::COLUMNS.map(str::to_string).to_vec(),
            rows: rows
                .iter()
                .map(|(path, count, ns)| {
                    [path, "file_sync", "connection", count, ns].map(|cell| Some(cell.to_string())).to_vec()
                })
                .collect(),
        }
    }

    #[test]
    fn waits_are_what_grew_between_the_tables_at_the_windows_edges() {
        let tables = [
            table(0, &[("ib_logfile0", "5", "500")]),
            table(10, &[("ib_logfile0", "10", "1000"), ("sbtest1.ibd", "1", "7")]),
            table(20, &[("ib_logfile0", "30", "5000"), ("sbtest1.ibd", "1", "7"), ("ibdata1", "2", "40")]),
        ];
        let waits = in_window(&tables, 10, 20);
        let grown: Vec<(&str, f64, f64)> =
            waits.iter().map(|wait| (wait.path.as_str(), wait.count, wait.ns)).collect();
        assert_eq!(grown, [("ib_logfile0", 20.0, 4000.0), ("ibdata1", 2.0, 40.0)]);
    }

    #[test]
    fn tables_that_are_not_what_they_should_be_give_nothing() {
        assert!(in_window(&[], 0, 10).is_empty());
        assert!(in_window(&[table(5, &[("a", "1", "1")])], 0, 10).is_empty());
        let odd = TextRows { columns: vec!["path".to_string()], ..table(5, &[]) };
        assert!(in_window(&[odd.clone(), TextRows { t_ns: 9, ..odd }], 0, 10).is_empty());
        let broken = [table(0, &[("a", "x", "")]), table(10, &[("a", "NaN", "-3")])];
        assert!(in_window(&broken, 0, 10).is_empty());
    }
}
