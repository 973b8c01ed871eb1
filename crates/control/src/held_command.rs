//! A command that does not begin before somebody is ready for it: what it does first is recorded, too.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

/// Time between two checks whether the command could not be started.
const CHECK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Bound on the wait for a process that is being created.
const CHECKS_MAX: u32 = 500;

/// Starts a command whose process exists, and waits, while `ready` is called with its id.
///
/// # Errors
/// The command can't be started.
pub(crate) fn spawn_held(mut command: Command, ready: impl FnOnce(u32)) -> io::Result<Child> {
    let (pid_reader, pid_writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let (held, release) = pipe_with(PipeFlags::CLOEXEC)?;
    let release_number = release.as_raw_fd();
    let wait = move || {
        rustix::io::write(&pid_writer, &rustix::process::getpid().as_raw_pid().to_ne_bytes())?;
        // SAFETY: this is the new process, whose copy of our end nobody uses: with it open, it would not hear that we are gone.
        unsafe { rustix::io::close(release_number) };
        match rustix::io::read(&held, &mut [0_u8; 1])? {
            1 => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    };
    // SAFETY: it makes four system calls between fork and exec, and allocates nothing.
    unsafe { command.pre_exec(wait) };
    // Starting it takes until it has been let go.
    let starting = thread::Builder::new().name("start".to_string()).spawn(move || command.spawn())?;
    if let Some(pid) = process_of(&pid_reader, || starting.is_finished()) {
        ready(pid);
    }
    // It may be gone already.
    let _ = rustix::io::write(&release, &[1]);
    starting.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it ended")))
}

fn process_of(pid_reader: &OwnedFd, is_over: impl Fn() -> bool) -> Option<u32> {
    for _ in 0..CHECKS_MAX {
        if poll(&mut [PollFd::new(pid_reader, PollFlags::IN)], Some(&CHECK_EVERY))
            .is_ok_and(|ready| ready > 0)
        {
            let mut pid = [0; 4];
            let read = rustix::io::read(pid_reader, &mut pid).ok()?;
            return (read == pid.len()).then(|| u32::from_ne_bytes(pid));
        }
        if is_over() {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, Instant};

    #[test]
    fn nothing_of_a_command_happens_before_its_process_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let sign = folder.path().join("sign");
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > sign"]).current_dir(folder.path());
        let mut seen_pid = 0;
        let mut child = spawn_held(command, |pid| {
            thread::sleep(Duration::from_millis(100));
            assert!(!sign.exists() && fs::exists(format!("/proc/{pid}")).unwrap());
            seen_pid = pid;
        })
        .unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(child.id(), seen_pid);
        assert_eq!(fs::read_to_string(&sign).unwrap().trim(), seen_pid.to_string());
    }

    #[test]
    fn a_command_that_is_not_there_is_an_error_at_once() {
        let begun = Instant::now();
        let error = spawn_held(Command::new("/nowhere/at-all"), |_| {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
