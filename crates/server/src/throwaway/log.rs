//! What a server's log says about why it does not run.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::Error;

/// As much of the end of a log as is looked at.
const TAIL_BYTES: u64 = 64 * 1024;
/// Longer lines are cut.
const MAX_LINE_CHARACTERS: usize = 400;

/// The last lines of a file that are not empty, at most `count`; none where it can't be read.
pub(super) fn last_lines(path: &Path, count: usize) -> Vec<String> {
    let Ok(text) = tail(path) else { return Vec::new() };
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let first = lines.len().saturating_sub(count);
    lines[first..].iter().map(|line| printable(line)).collect()
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a server says is data: no control characters reach a terminal.
fn printable(line: &str) -> String {
    line.chars()
        .take(MAX_LINE_CHARACTERS)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect()
}

/// Lines that say what went wrong.
const MARKS: [&str; 4] = ["[ERROR]", "[FATAL]", "got signal", "Assertion"];

/// Returns the most useful of the last lines of a log, in their order: up to eight that mention an error, and the last
/// four.
pub(super) fn telling(lines: &[String]) -> Vec<String> {
    let marked: Vec<usize> =
        (0..lines.len()).filter(|at| MARKS.iter().any(|mark| lines[*at].contains(mark))).collect();
    let mut chosen: Vec<usize> = marked[marked.len().saturating_sub(8)..].to_vec();
    chosen.extend(lines.len().saturating_sub(4)..lines.len());
    if marked.is_empty() {
        chosen.extend(lines.len().saturating_sub(12)..lines.len());
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|at| lines[at].clone()).collect()
}

/// Turns the end of a log into the error that it is about.
pub(super) fn explain(lines: &[String], server: &str, otherwise: &str) -> Error {
    // What may be missing is warned of, such as loose_wsrep_on.
    for line in lines.iter().filter(|line| !line.contains("[Warning]")) {
        for phrase in ["unknown variable '", "unknown option '"] {
            if let Some(named) = quoted_after(line, phrase) {
                return Error::UnknownKnob {
                    name: knob_of(named),
                    server: server.to_string(),
                    nearest: None,
                };
            }
        }
        if let Some(prefix) = quoted_after(line, "ambiguous option '") {
            return Error::UnknownKnob { name: knob_of(prefix), server: server.to_string(), nearest: None };
        }
        // "Error while setting value 'x' to 'knob'", "option 'knob' ..."
        if let Some(value) = quoted_after(line, "Error while setting value '")
            && let Some(name) = quoted_after(line, "' to '")
        {
            let why = "the server does not accept it".to_string();
            return Error::KnobValue { name: knob_of(name), value: value.to_string(), why };
        }
        if let Some(name) = quoted_after(line, "used for variable '") {
            let value = quoted_after(line, "(value '").unwrap_or("").to_string();
            let why = "it is no number; K, M and G may follow one".to_string();
            return Error::KnobValue { name: knob_of(name), value, why };
        }
    }
    Error::Start { why: otherwise.to_string(), log: telling(lines) }
}

fn quoted_after<'a>(line: &'a str, phrase: &str) -> Option<&'a str> {
    let (_, after) = line.split_once(phrase)?;
    after.split('\'').next()
}

fn knob_of(option: &str) -> String {
    let name = option.trim_start_matches('-').split('=').next().unwrap_or(option);
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(line: &str) -> String {
        explain(
            &["2026-01-01 [Note] before".to_string(), line.to_string()],
            "MariaDB 10.11",
            "it exited with status 7",
        )
        .to_string()
    }

    #[test]
    fn the_log_s_words_become_one_sentence() {
        assert_eq!(
            explained("2026-11-21 [ERROR] /usr/sbin/mariadbd: unknown variable 'innodb_bufer-pool=1G'"),
            "the server does not know the knob 'innodb_bufer_pool': check its spelling, or whether MariaDB 10.11 has it"
        );
        assert!(explained("[ERROR] mysqld: unknown option '--frobnicate'").contains("the knob 'frobnicate'"));
        let missing = [
            "[Warning] [Server] unknown variable 'loose_wsrep_on=0'.",
            "[ERROR] [Server] unknown variable 'innodb_log_file_size=4M'.",
        ];
        let missing =
            explain(&missing.map(str::to_string), "MySQL 9.7", "it exited with status 1").to_string();
        assert!(missing.contains("the knob 'innodb_log_file_size'"), "{missing}");
        assert_eq!(
            explained("[ERROR] /usr/sbin/mariadbd: Error while setting value 'abc' to 'innodb_flush_method'"),
            "the knob 'innodb_flush_method' does not take the value 'abc': the server does not accept it"
        );
        assert_eq!(
            explained(
                "[ERROR] /usr/sbin/mariadbd: Unknown suffix 'b' used for variable 'max_connections' (value 'abc')"
            ),
            "the knob 'max_connections' does not take the value 'abc': it is no number; K, M and G may follow one"
        );
        assert_eq!(
            explained("[ERROR] no space\u{1b}[31m"),
            "the server did not start: it exited with status 7; its log ends with:\n  2026-01-01 [Note] before\n  [ERROR] no space\u{1b}[31m"
        );
    }

    #[test]
    fn of_a_crash_the_signal_is_shown_and_not_only_the_limits() {
        let mut lines = vec!["[Note] ready".to_string(), "[ERROR] mysqld got signal 6 ;".to_string()];
        lines.extend((0..30).map(|number| format!("limit {number}")));
        assert_eq!(
            telling(&lines),
            ["[ERROR] mysqld got signal 6 ;", "limit 26", "limit 27", "limit 28", "limit 29"]
        );
        assert_eq!(telling(&lines[2..]).len(), 12);
        assert!(telling(&[]).is_empty());
    }

    #[test]
    fn the_last_lines_are_cut_and_cleaned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, format!("first\n\n{}\nred \u{1b}[31m\n", "x".repeat(1000))).unwrap();
        assert_eq!(last_lines(&path, 2), ["x".repeat(400), "red  [31m".to_string()]);
        assert!(last_lines(&folder.path().join("none"), 2).is_empty());
    }
}
