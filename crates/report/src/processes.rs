//! Where the time of processes went that are no server's: their threads' states, and their waits by file.

use std::fmt::Write as _;

use serde_json::{Value, json};
use whyso_explain::model::{Explanation, FileWait, ProcessTime};
use whyso_words::{number, percent, seconds};

use crate::text::files::{FILES_SHOWN_MAX, file_cells};
use crate::text::layout::{TEXT_WIDTH, aligned_with_words, wrapped};
use crate::text::nodes::nodes;
use crate::text::requests::requests;
use crate::text::tiers::tiers;

/// The sentences, and a table of states and one of files for each window.
pub(crate) fn processes(explanation: &Explanation) -> String {
    let mut out = tiers(&explanation.tiers);
    if !out.is_empty() {
        out.push('\n');
    }
    let logs = requests(&explanation.access_logs);
    if !logs.is_empty() {
        let _ = writeln!(out, "{logs}");
    }
    for finding in &explanation.findings {
        out.push_str(&wrapped(&finding.text, "  ", TEXT_WIDTH));
    }
    // Of a load with several levels, the one that is explained.
    let is_shown = |time: &&ProcessTime| explanation.about.is_none_or(|level| time.level == level);
    for time in explanation.processes.iter().filter(is_shown) {
        if explanation.processes.len() > 1 {
            let _ = write!(out, "\nWindow {} of {}", time.level + 1, seconds(time.seconds));
        }
        let _ = write!(out, "\n{}", states(time));
        if !time.files.is_empty() {
            let _ = write!(out, "\n{}", files(&time.files));
        }
    }
    let nodes = nodes(&explanation.nodes);
    if !nodes.is_empty() {
        let _ = write!(out, "\n{nodes}");
    }
    out
}

fn states(time: &ProcessTime) -> String {
    let mut rows = vec![["state", "seconds", "share"].map(str::to_string).to_vec()];
    let all = time.thread_s();
    for state in &time.states {
        let share = if all > 0.0 { state.s / all } else { 0.0 };
        rows.push(vec![state.state.clone(), number(state.s), percent(share)]);
    }
    rows.iter_mut().for_each(|row| row.push(String::new()));
    aligned_with_words(&rows, &[0])
}

fn files(waits: &[FileWait]) -> String {
    let mut rows = vec![["waits", "seconds", "mean ms", "state", "file"].map(str::to_string).to_vec()];
    rows.extend(waits.iter().take(FILES_SHOWN_MAX).map(|wait| file_cells(wait).to_vec()));
    let mut out = aligned_with_words(&rows, &[3, 4]);
    let left = waits.len().saturating_sub(FILES_SHOWN_MAX);
    if left > 0 {
        let _ = writeln!(out, "and {left} more: --json has them");
    }
    out
}

/// An object a window; empty where a server was watched.
pub(crate) fn processes_json(explanation: &Explanation) -> Vec<Value> {
    let object = |time: &ProcessTime| {
        let states = time.states.iter().map(|state| (state.state.clone(), json!(state.s)));
        let file = |wait: &FileWait| json!({"path": wait.path, "state": wait.state, "waits": wait.count.round(), "s": wait.ns / 1e9});
        json!({
            "level": time.level,
            "seconds": time.seconds,
            "threads": time.threads,
            "thread_s": time.thread_s(),
            "states_s": states.collect::<serde_json::Map<String, Value>>(),
            "files": time.files.iter().map(file).collect::<Vec<_>>(),
        })
    };
    explanation.processes.iter().map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_explain::model::{Finding, StateTime};

    fn explanation() -> Explanation {
        let state = |state: &str, s| StateTime { state: state.to_string(), s };
        let wait = |path: &str, count| FileWait {
            path: path.to_string(),
            state: "kernel_lock".to_string(),
            count,
            ns: 2e9,
            ..FileWait::default()
        };
        let time = ProcessTime {
            seconds: 10.0,
            threads: Some(4.0),
            states: vec![state("kernel_lock", 30.0), state("cpu", 10.0)],
            files: vec![wait("/log/access.log", 1_000.0), wait("/tmp/", 0.0)],
            ..ProcessTime::default()
        };
        let text = "apache2 was watched.".to_string();
        let finding = Finding { id: "process".to_string(), text, evidence: Vec::new() };
        Explanation { processes: vec![time], findings: vec![finding], ..Explanation::default() }
    }

    #[test]
    fn states_and_files_stand_in_tables_under_the_sentences() {
        let text = processes(&explanation());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "• apache2 was watched.");
        assert_eq!(lines[3], "kernel_lock       30   75 %");
        assert_eq!(lines[7], "1,000        2        2  kernel_lock  /log/access.log");
        assert!(lines[8].ends_with("/tmp/") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn programs_get_the_same_in_seconds() {
        let json = processes_json(&explanation());
        assert_eq!(json[0]["states_s"]["cpu"], 10.0);
        assert_eq!(json[0]["thread_s"], 40.0);
        assert_eq!(
            json[0]["files"][0],
            json!({"path": "/log/access.log", "state": "kernel_lock", "waits": 1000.0, "s": 2.0})
        );
        assert!(processes_json(&Explanation::default()).is_empty());
    }
}
