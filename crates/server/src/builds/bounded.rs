//! Other programs, run within bounds: of time, and of time without a step forward.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::{Error, Result, io};

const TICK: Duration = Duration::from_millis(100);
/// Lines of a program's output that are added to an error.
const LAST_LINES: usize = 6;

/// How long a program may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) all: Duration,
    /// Longest that what `step` counts may stand still.
    pub(super) stall: Duration,
}

/// Runs a program to its end, and returns its standard output. `step` is called every tenth of a second, and returns a number that grows with
/// the work. The program's messages go to `log`, and are part of an error.
///
/// # Errors
///
/// [`Error::Build`] where it can't be run, fails, or takes too long; then it is ended.
pub(super) fn run(
    mut command: Command,
    log: &Path,
    bounds: Bounds,
    step: &mut dyn FnMut() -> u64,
) -> Result<String> {
    let program =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let output = std::fs::File::create(log).map_err(io("cannot write", log))?;
    let errors_path = log.with_extension("errors");
    let errors = std::fs::File::create(&errors_path).map_err(io("cannot write", &errors_path))?;
    command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .env_remove("MYSQL_PWD")
        .env("LC_ALL", "C.UTF-8");
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::Build(format!(
            "'{program}' is needed for this and is not on the PATH: install it and try again"
        )),
        _ => Error::Build(format!("'{program}' does not run: {error}")),
    })?;
    let begin = Instant::now();
    let (mut last_count, mut last_step) = (0, begin);
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) => {}
            Err(error) => break Err(format!("'{program}' was lost: {error}")),
        }
        let count = step();
        if count != last_count {
            (last_count, last_step) = (count, Instant::now());
        }
        if begin.elapsed() > bounds.all {
            break Err(format!("'{program}' was not done within {} s", bounds.all.as_secs()));
        }
        if last_step.elapsed() > bounds.stall {
            break Err(format!("'{program}' did not get on for {} s", bounds.stall.as_secs()));
        }
        std::thread::sleep(TICK);
    };
    let why = match ended {
        Ok(status) if status.success() => {
            return std::fs::read_to_string(log).map_err(io("cannot read", log));
        }
        Ok(status) => format!("'{program}' failed ({status})"),
        Err(why) => {
            // it may have ended meanwhile
            let _ = child.kill();
            let _ = child.wait();
            why
        }
    };
    Err(Error::Build(format!("{why}{}", last_words(log, &errors_path))))
}

/// The last lines of a program's output, those on standard error first.
fn last_words(log: &Path, errors: &Path) -> String {
    let lines: Vec<String> = [log, errors]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|text| text.lines().map(printable).collect::<Vec<_>>())
        .filter(|line| !line.trim().is_empty())
        .collect();
    let is_error =
        |line: &&String| line.starts_with("[ERROR]") || line.starts_with("E: ") || line.starts_with("Err:");
    let mut chosen: Vec<&String> = lines.iter().filter(is_error).take(LAST_LINES).collect();
    if chosen.is_empty() {
        chosen = lines[lines.len().saturating_sub(LAST_LINES)..].iter().collect();
    }
    chosen.iter().map(|line| format!("\n  {line}")).collect()
}

fn printable(line: &str) -> String {
    line.chars().filter(|character| !character.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Bounds = Bounds { all: Duration::from_secs(20), stall: Duration::from_millis(300) };

    fn shell(script: &str, step: &mut dyn FnMut() -> u64) -> Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, &folder.path().join("log"), SHORT, step)
    }

    #[test]
    fn a_program_s_output_is_returned_and_its_failure_has_its_last_lines() {
        assert_eq!(shell("echo yes", &mut || 0).unwrap(), "yes\n");
        let error =
            shell("echo noise; echo 'E: no such package' >&2; exit 3", &mut || 0).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("\n  E: no such package"), "{error}");
    }

    #[test]
    fn one_that_stands_still_is_ended_and_one_that_gets_on_is_not() {
        let error = shell("exec sleep 60", &mut || 7).unwrap_err().to_string();
        assert!(error.contains("'sh' did not get on"), "{error}");
        let mut count = 0;
        let counting = &mut || {
            count += 1;
            count
        };
        assert_eq!(shell("sleep 0.6; echo done", counting).unwrap(), "done\n");
    }

    #[test]
    fn one_that_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error =
            run(Command::new("no-such-program-of-ours"), &folder.path().join("log"), SHORT, &mut || 0);
        assert!(error.unwrap_err().to_string().contains("'no-such-program-of-ours' is needed"));
    }
}
