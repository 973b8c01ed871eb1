//! One process, run to its end, with what it used.

use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// Time between two checks of the process.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What a process printed and used, start and login included.
#[derive(Clone, Debug)]
pub(crate) struct ProcessResult {
    pub(crate) output: String,
    pub(crate) user_cpu_s: f64,
    pub(crate) system_cpu_s: f64,
    /// Peak resident memory (`VmHWM`), as last seen some 50 ms before the end or later.
    pub(crate) max_rss_kb: u64,
}

/// # Errors
/// A process that can't be started, fails, or is still there after `limit`; with what it printed.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<ProcessResult> {
    let words = command_line(command);
    let failed = |what: String| anyhow!("{words} {what}");
    let mut printed = tempfile::tempfile()?;
    let to_file = |file: &File| file.try_clone().map(Stdio::from);
    let (stdout, stderr) = (to_file(&printed)?, to_file(&printed)?);
    let spawned = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn();
    let mut child = spawned.map_err(|error| failed(format!("can't be started: {error}")))?;
    let deadline = Instant::now() + limit;
    let mut max_rss_kb = 0;
    let (status, usage) = loop {
        max_rss_kb = max_rss_kb.max(peak_rss_kb(child.id()).unwrap_or(0));
        if let Some(result) = reap(child.id()) {
            break result;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(format!("did not end within {} s", limit.as_secs())));
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    let mut output = String::new();
    let read = printed.rewind().and_then(|()| printed.read_to_string(&mut output));
    read.map_err(|error| failed(format!("printed what can't be read: {error}")))?;
    if status != 0 {
        return Err(failed(format!("failed: {output}")));
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(ProcessResult {
        output,
        user_cpu_s: seconds(usage.ru_utime),
        system_cpu_s: seconds(usage.ru_stime),
        max_rss_kb,
    })
}

fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Exit status and use of a child that has ended; `None` while it runs.
fn reap(pid: u32) -> Option<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: a zeroed rusage is a valid one, and both outlive the call.
    let (reaped, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid as i32, &mut status, libc::WNOHANG, &mut usage), usage)
    };
    (reaped == pid as i32).then_some((status, usage))
}

pub(crate) fn peak_rss_kb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
