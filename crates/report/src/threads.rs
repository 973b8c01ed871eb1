//! A table of threads and where their time went, in per cent, as prstat -mL shows it.

use crate::terminal::aligned_with_words;

/// One thread. Times are in nanoseconds.
pub struct ThreadRow<'a> {
    pub tid: u32,
    pub name: &'a str,
    pub role: &'a str,
    pub connection: Option<u64>,
    pub statement: Option<&'a str>,
    pub requests: u64,
    pub window_ns: u64,
    /// In the order of the states' names.
    pub states_ns: &'a [u64],
}

/// Statements are cut to so many characters.
const STATEMENT_MAX: usize = 60;

/// The table, the thread with the most time on a CPU first. `states` names the columns of
/// [`ThreadRow::states_ns`]; states that no thread was in for a thousandth of its time are left out.
pub fn threads(rows: &[ThreadRow<'_>], states: &[&str]) -> String {
    let share = |row: &ThreadRow<'_>, at: usize| match (row.window_ns, row.states_ns.get(at)) {
        (1.., Some(ns)) => *ns as f64 / row.window_ns as f64,
        _ => 0.0,
    };
    let shown: Vec<usize> =
        (0..states.len()).filter(|&at| rows.iter().any(|row| share(row, at) >= 0.001)).collect();
    let mut sorted: Vec<&ThreadRow<'_>> = rows.iter().collect();
    sorted.sort_by(|a, b| {
        let busy = |row: &ThreadRow<'_>| row.states_ns.first().copied().unwrap_or(0);
        busy(b).cmp(&busy(a)).then(a.tid.cmp(&b.tid))
    });
    let mut head: Vec<String> = ["thread", "name", "role"].map(str::to_string).to_vec();
    head.extend(shown.iter().map(|&at| format!("{} %", states[at].replace('_', " "))));
    head.extend(["requests", "conn", "statement"].map(str::to_string));
    let mut table = vec![head];
    for row in sorted {
        let mut cells = vec![row.tid.to_string(), clean(row.name), row.role.to_string()];
        cells.extend(shown.iter().map(|&at| percent(share(row, at))));
        cells.push(crate::number::grouped(row.requests as f64));
        cells.push(row.connection.map_or(String::new(), |id| id.to_string()));
        cells.push(
            row.statement.map_or(String::new(), |text| clean(text).chars().take(STATEMENT_MAX).collect()),
        );
        table.push(cells);
    }
    let last = table[0].len() - 1;
    aligned_with_words(&table, &[1, 2, last])
}

fn percent(share: f64) -> String {
    match share {
        0.0 => String::new(),
        share if share < 0.0005 => "0.0".to_string(),
        share => format!("{:.1}", share * 100.0),
    }
}

/// What a server says never reaches the terminal as more than text.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { '?' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_thread_comes_first_and_empty_states_are_left_out() {
        let row = |tid, states_ns| ThreadRow {
            tid,
            name: "one\u{1b}[2J",
            role: "connection",
            connection: Some(5),
            statement: Some("SELECT ?"),
            requests: 1234,
            window_ns: 1_000,
            states_ns,
        };
        let table = threads(&[row(1, &[100, 900, 0]), row(2, &[750, 250, 0])], &["cpu", "lock", "sleep"]);
        let lines: Vec<&str> = table.lines().collect();
        assert!(
            lines[0].contains("cpu %") && lines[0].contains("lock %") && !lines[0].contains("sleep"),
            "{table}"
        );
        assert!(lines[1].trim_start().starts_with('2') && lines[1].contains("75.0"), "{table}");
        assert!(lines[2].contains("90.0") && lines[2].contains("1,234"), "{table}");
        assert!(!table.contains('\u{1b}'));
    }

    #[test]
    fn a_thread_without_a_window_has_no_shares() {
        let row = ThreadRow {
            tid: 1,
            name: "x",
            role: "other",
            connection: None,
            statement: None,
            requests: 0,
            window_ns: 0,
            states_ns: &[5],
        };
        assert!(threads(&[row], &["cpu"]).contains('x'));
    }
}
