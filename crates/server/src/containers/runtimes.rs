//! What container runtimes say of a name. They are asked by their own programs, which find their daemons wherever those are.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAMS: [&str; 3] = ["docker", "podman", "nerdctl"];
/// A daemon that does not answer by then is not there.
const TIME_MAX: Duration = Duration::from_secs(5);
const BYTES_MAX: u64 = 64 << 10;

/// What is known of a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The first processes of the containers that have the name, or whose image has it.
    Processes(Vec<u32>),
    /// No runtime knows it.
    Unknown,
}

pub(super) fn first_processes(name: &str) -> Answer {
    // Not to be taken for an option.
    if name.is_empty() || name.starts_with('-') {
        return Answer::Unknown;
    }
    for program in PROGRAMS {
        let inspect = |names: &[&str]| -> Vec<u32> {
            let arguments =
                [&["inspect", "--type", "container", "--format", "{{.State.Pid}}"][..], names].concat();
            let text = output(program, &arguments).unwrap_or_default();
            text.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid > 0).collect()
        };
        let mut pids = inspect(&[name]);
        if pids.is_empty() {
            let of_image = output(program, &["ps", "--quiet", "--filter", &format!("ancestor={name}")]);
            let ids = of_image.unwrap_or_default();
            let ids: Vec<&str> = ids.split_whitespace().collect();
            if !ids.is_empty() {
                pids = inspect(&ids);
            }
        }
        if !pids.is_empty() {
            return Answer::Processes(pids);
        }
    }
    Answer::Unknown
}

/// What a program prints; `None` where it is not here, fails or takes too long.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("MYSQL_PWD");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let stdout = child.stdout.take()?;
    // A pipe that fills up would hold the program.
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.take(BYTES_MAX).read_to_string(&mut text);
        text
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < TIME_MAX => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let text = reader.join().ok()?;
    status.success().then_some(text)
}
