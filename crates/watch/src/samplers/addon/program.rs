//! The user's program: started in its own process group, read within bounds, and ended with all that it started.

use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::stop::Stop;

/// More than this for one sample is no sample.
const SAMPLE_BYTES_MAX: usize = 1 << 20;
const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes of its standard error that are kept: the first ones.
const COMPLAINT_BYTES_MAX: usize = 300;
/// Between two checks whether the watching has ended.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// A process that was killed is gone by then, unless the kernel holds it.
const DEATH_TIME_MAX: Duration = Duration::from_secs(1);

/// A program that runs.
pub(super) struct Program {
    child: Child,
    /// `None` when it has closed it.
    out: Option<std::fs::File>,
    complaints: Option<std::fs::File>,
    pending: Vec<u8>,
    complaint: Vec<u8>,
    reaped: Option<ProgramEnd>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramEnd {
    pub(super) status: std::process::ExitStatus,
    /// CPU time of it and of those of its children that it waited for.
    pub(super) cpu_ns: u64,
}

/// Why the reading of its output ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    /// There is a line, or there are several.
    Lines,
    /// It has closed its output.
    Closed,
    /// The time is over.
    Silent,
    Stopped,
    /// What it prints can't be lines of numbers.
    Rubbish(&'static str),
}

impl Program {
    pub(super) fn start(mut command: Command) -> std::io::Result<Program> {
        use std::os::unix::process::CommandExt;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let out = child.stdout.take().map(|out| unblocked(OwnedFd::from(out))).transpose()?;
        let complaints = child.stderr.take().map(|err| unblocked(OwnedFd::from(err))).transpose()?;
        Ok(Program { child, out, complaints, pending: Vec::new(), complaint: Vec::new(), reaped: None })
    }

    /// Reads what it prints and passes whole lines to `line`. `to_the_end`: until it has closed its output; else until there
    /// was a line, and no more is there.
    pub(super) fn read(
        &mut self,
        until: Instant,
        stop: &Stop,
        to_the_end: bool,
        mut line: impl FnMut(&str),
    ) -> ReadOutcome {
        let mut bytes_read = 0;
        let mut lines = 0_u64;
        let mut buffer = [0_u8; 16 << 10];
        loop {
            if stop.is_stopped() {
                return ReadOutcome::Stopped;
            }
            self.listen_to_complaints();
            let Some(out) = &mut self.out else {
                return ReadOutcome::Closed;
            };
            match out.read(&mut buffer) {
                Ok(0) => {
                    if !self.pending.is_empty() {
                        line(&String::from_utf8_lossy(&self.pending));
                        self.pending.clear();
                    }
                    self.out = None;
                    return ReadOutcome::Closed;
                }
                Ok(count) => {
                    bytes_read += count;
                    if buffer[..count].contains(&0) {
                        return ReadOutcome::Rubbish("it printed bytes that are no text");
                    }
                    if bytes_read > SAMPLE_BYTES_MAX {
                        return ReadOutcome::Rubbish("it printed more than 1 MiB for one sample");
                    }
                    lines += self.take_lines(&buffer[..count], &mut line);
                    if self.pending.len() > LINE_BYTES_MAX {
                        return ReadOutcome::Rubbish("it printed more than 64 KiB without the end of a line");
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if lines > 0 && !to_the_end {
                        return ReadOutcome::Lines;
                    }
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return ReadOutcome::Silent;
                    }
                    self.wait_for_output(left.min(STOP_CHECK_INTERVAL));
                }
                Err(_) => return ReadOutcome::Rubbish("its output can't be read"),
            }
        }
    }

    fn take_lines(&mut self, bytes: &[u8], line: &mut impl FnMut(&str)) -> u64 {
        let mut lines = 0;
        self.pending.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(length) = self.pending[begin..].iter().position(|byte| *byte == b'\n') {
            line(&String::from_utf8_lossy(&self.pending[begin..begin + length]));
            begin += length + 1;
            lines += 1;
        }
        self.pending.drain(..begin);
        lines
    }

    fn wait_for_output(&self, time_max: Duration) {
        let files = [&self.out, &self.complaints];
        let mut polled: Vec<PollFd<'_>> =
            files.into_iter().flatten().map(|file| PollFd::new(file, PollFlags::IN)).collect();
        let time_max = Timespec { tv_sec: 0, tv_nsec: i64::from(time_max.subsec_nanos()) };
        // Whatever it returns, the next read shows what there is.
        let _ = poll(&mut polled, Some(&time_max));
    }

    /// Reads its standard error, so that a full pipe never holds it up.
    fn listen_to_complaints(&mut self) {
        const READS_MAX: usize = 16;
        let mut buffer = [0_u8; 4 << 10];
        for _ in 0..READS_MAX {
            let Some(file) = &mut self.complaints else { return };
            match file.read(&mut buffer) {
                Ok(0) => self.complaints = None,
                Ok(count) => {
                    let room = COMPLAINT_BYTES_MAX.saturating_sub(self.complaint.len()).min(count);
                    self.complaint.extend_from_slice(&buffer[..room]);
                }
                Err(_) => return,
            }
        }
    }

    /// The first line that it wrote to its standard error; empty where it wrote nothing.
    pub(super) fn complaint(&mut self) -> String {
        self.listen_to_complaints();
        let text = String::from_utf8_lossy(&self.complaint).into_owned();
        text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_string()
    }

    /// CPU time of it and of the children that it waited for, in nanoseconds, while it runs.
    pub(super) fn cpu_ns(&self, tick_ns: u64) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let after = text.rsplit_once(')').map_or("", |(_, after)| after);
        // utime, stime, cutime, cstime are the fields 14 to 17 of proc_pid_stat(5); field 3 comes first here.
        let ticks = after.split_ascii_whitespace().skip(11).take(4);
        ticks.filter_map(|word| word.parse::<u64>().ok()).sum::<u64>() * tick_ns
    }

    /// Waits for its end up to `until`, then ends it and all that it started.
    pub(super) fn end(&mut self, until: Instant) -> Option<ProgramEnd> {
        self.wait(until);
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            // Also where it has ended by itself: what it started may still run. A group that is gone is no failure.
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.wait(Instant::now() + DEATH_TIME_MAX);
        self.reaped
    }

    fn wait(&mut self, until: Instant) {
        while self.reaped.is_none() {
            self.reaped = reap(self.child.id());
            if self.reaped.is_some() || Instant::now() >= until {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.reaped.is_none() {
            self.end(Instant::now());
        }
    }
}

fn unblocked(fd: OwnedFd) -> std::io::Result<std::fs::File> {
    let flags = fcntl_getfl(fd.as_fd())?;
    fcntl_setfl(fd.as_fd(), flags | OFlags::NONBLOCK)?;
    Ok(std::fs::File::from(fd))
}

/// Reaps a child, if it has ended, with the CPU time that it used: no other call reports that of one child.
fn reap(pid: u32) -> Option<ProgramEnd> {
    use std::os::unix::process::ExitStatusExt;
    let mut status = 0;
    // SAFETY: `rusage` is plain numbers, for which zeros are valid; both pointers are to locals that outlive the call.
    let (reaped, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let reaped = libc::wait4(pid as libc::pid_t, &raw mut status, libc::WNOHANG, &raw mut usage);
        (reaped, usage)
    };
    if reaped != pid as libc::pid_t {
        return None;
    }
    let time_ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    let cpu_ns = time_ns(usage.ru_utime) + time_ns(usage.ru_stime);
    Some(ProgramEnd { status: std::process::ExitStatus::from_raw(status), cpu_ns })
}
