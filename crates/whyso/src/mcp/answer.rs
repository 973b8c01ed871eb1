//! What a tool answers: the text of a command, bounded in time and length.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// Longest answer. A token has 2.5 bytes or more in tables of numbers, so that these are at most 4,000 tokens.
const BYTES_MAX: usize = 10_000;

/// Carries out a command of this program, and returns what it prints.
///
/// # Errors
/// The sentence that the command failed with.
pub(super) async fn answer(arguments: &[String], time_max: Duration) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| format!("whyso can't find itself: {error}"))?;
    let mut command = Command::new(program);
    command.args(["--color", "never"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = match tokio::time::timeout(time_max, command.output()).await {
        Ok(output) => output.map_err(|error| format!("whyso can't start itself: {error}"))?,
        Err(_) => {
            let seconds = time_max.as_secs();
            return Err(format!(
                "it took longer than {seconds} s: ask for a part of the run, by users or window"
            ));
        }
    };
    if !output.status.success() {
        return Err(bounded(String::from_utf8_lossy(&output.stderr).trim().trim_start_matches("whyso: ")));
    }
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    let warnings = String::from_utf8_lossy(&output.stderr);
    if !warnings.trim().is_empty() {
        text = format!("{}\n\n{text}", warnings.trim());
    }
    Ok(bounded(&text))
}

/// The first lines, as far as they fit, and how many are left out.
fn bounded(text: &str) -> String {
    if text.len() <= BYTES_MAX {
        return text.to_string();
    }
    let mut kept = String::new();
    let mut lines = text.lines();
    for line in lines.by_ref() {
        // The last line needs room, too.
        if kept.len() + line.len() + 100 > BYTES_MAX {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    let left = 1 + lines.count();
    kept.push_str(&format!(
        "[{left} more lines: ask for fewer lines by limit, or for a part by users or window]\n"
    ));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_cut_at_a_line_and_says_how_much_is_left_out() {
        let long: String = (0..1000).map(|n| format!("line {n} of a table with words in it\n")).collect();
        let short = bounded(&long);
        assert!(short.len() <= BYTES_MAX && short.len() > BYTES_MAX - 200, "{}", short.len());
        let (last, kept) = (short.lines().last().unwrap(), short.lines().count() - 1);
        assert!(last.starts_with(&format!("[{} more lines", 1000 - kept)), "{last}");
        assert_eq!(bounded("one\ntwo\n"), "one\ntwo\n");
        assert!(bounded(&"x".repeat(20_000)).len() < BYTES_MAX, "a line without an end");
    }
}
