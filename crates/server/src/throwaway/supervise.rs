//! A small process that outlives us and ends what we started.
//!
//! It is forked, not executed, so that any program that uses this crate has it. A pipe holds it: the pipe is open as
//! long as this process lives. When the process ends, however it ends, the kernel closes the pipe. The supervisor then
//! ends the servers that it knows of, within a bound, and removes their folder.
//!
//! After a fork of a process with threads only async-signal-safe calls are allowed. What runs in the child makes system
//! calls on memory that was prepared before. It neither allocates nor panics.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, openat, unlinkat};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::argv::argument_range;
use crate::error::{Result, io};
use crate::forked::detach;

/// Children that a supervisor can watch over at one time: the server, and what prepares its data.
const MAX_CHILDREN: usize = 4;
/// How long a server gets to end by itself once we are gone. Its data is thrown away anyway.
const TERM_SECONDS: i64 = 5;
const KILL_SECONDS: i64 = 5;
/// Folders within folders that are removed.
const MAX_DEPTH: u32 = 8;
/// Passes over one folder, should something still write into it.
const MAX_PASSES: u32 = 1000;

const MESSAGE_LENGTH: usize = 5;
const ADD: u8 = b'+';
const FORGET: u8 = b'-';
const DONE: u8 = b'.';

/// Our end of the pipe. Dropping it without [`Supervisor::done`] lets the supervisor clean up.
pub(super) struct Supervisor {
    pipe: OwnedFd,
    pid: libc::pid_t,
}

impl Supervisor {
    /// Forks a supervisor over the folder `folder`, and the cgroups that are to be removed with it.
    pub(super) fn start(folder: &Path, cgroups: &[&Path]) -> Result<Supervisor> {
        let failed = |errno: rustix::io::Errno| io("cannot start a supervisor over", folder)(errno.into());
        let terminated = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
        let folder_name = terminated(folder);
        let cgroup_names: Vec<CString> = cgroups.iter().copied().map(terminated).collect();
        let arguments = argument_range();
        let (read_end, write_end) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(failed)?;
        // SAFETY: the child calls `supervise` alone, which makes only async-signal-safe calls and ends
        // by `_exit`.
        match unsafe { libc::fork() } {
            -1 => Err(io("cannot start a supervisor over", folder)(std::io::Error::last_os_error())),
            0 => {
                supervise(read_end.as_raw_fd(), &folder_name, &cgroup_names, arguments);
                // SAFETY: ends the child at once, without running anything of the parent's.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Supervisor { pipe: write_end, pid }),
        }
    }

    /// For [`announce`], between fork and exec of a child.
    pub(super) fn pipe(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    /// Reports to the supervisor that a child and all that it started are gone.
    pub(super) fn forget(&self, child: u32) {
        // a supervisor that is gone can't be reached, and has nothing to do any more
        let _ = send(self.pipe.as_fd(), FORGET, child as i32);
    }

    /// Ends the supervisor: there is nothing left to watch over.
    pub(super) fn end(&self) {
        let _ = send(self.pipe.as_fd(), DONE, 0);
        // SAFETY: waits for our own child, which ends at once.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// Reports this process to the supervisor; for a child between fork and exec, which leads a process
/// group of its own. So there is no moment in which a server runs that the supervisor does not know.
pub(super) fn announce(pipe: RawFd) -> std::io::Result<()> {
    // SAFETY: the pipe is open, as the parent holds it and the child has its copy until exec.
    let pipe = unsafe { BorrowedFd::borrow_raw(pipe) };
    send(pipe, ADD, rustix::process::getpid().as_raw_nonzero().get())
}

fn send(pipe: BorrowedFd<'_>, operation: u8, pid: i32) -> std::io::Result<()> {
    let number = pid.to_le_bytes();
    let message = [operation, number[0], number[1], number[2], number[3]];
    // shorter than PIPE_BUF, so it is written whole or not at all
    rustix::io::write(pipe, &message)?;
    Ok(())
}

/// What the supervisor does from its birth to its end. Runs in a forked child: no allocation, no
/// panic, system calls only.
fn supervise(pipe: RawFd, folder: &CString, cgroups: &[CString], arguments: Option<(u64, u64)>) {
    detach(pipe, c"whyso-keeper", arguments);
    let mut children: [Option<Pid>; MAX_CHILDREN] = [None; MAX_CHILDREN];
    // SAFETY: `detach` kept this one descriptor open.
    let pipe = unsafe { BorrowedFd::borrow_raw(pipe) };
    let mut message = [0_u8; MESSAGE_LENGTH];
    loop {
        match rustix::io::read(pipe, &mut message) {
            Ok(MESSAGE_LENGTH) => {}
            Err(rustix::io::Errno::INTR) => continue,
            _ => break,
        }
        let pid = Pid::from_raw(i32::from_le_bytes([message[1], message[2], message[3], message[4]]));
        match message[0] {
            ADD => {
                if let Some(free) = children.iter_mut().find(|child| child.is_none()) {
                    *free = pid;
                }
            }
            FORGET => {
                for child in children.iter_mut().filter(|child| **child == pid) {
                    *child = None;
                }
            }
            _ => return,
        }
    }
    for child in children.into_iter().flatten() {
        end(child);
    }
    remove_tree(CWD, folder, MAX_DEPTH);
    for cgroup in cgroups {
        let _ = unlinkat(CWD, cgroup.as_c_str(), AtFlags::REMOVEDIR);
    }
}

/// Ends a process and its group: asks, waits, then kills.
fn end(child: Pid) {
    let Ok(handle) = pidfd_open(child, PidfdFlags::empty()) else {
        // the leader is gone, others of its group may not be
        let _ = kill_process_group(child, Signal::KILL);
        return;
    };
    let _ = kill_process_group(child, Signal::TERM);
    if !wait_for_exit(&handle, TERM_SECONDS) {
        let _ = kill_process_group(child, Signal::KILL);
        wait_for_exit(&handle, KILL_SECONDS);
    }
    let _ = kill_process_group(child, Signal::KILL);
}

fn wait_for_exit(handle: &OwnedFd, seconds: i64) -> bool {
    let mut events = [PollFd::new(handle, PollFlags::IN)];
    let bound = Timespec { tv_sec: seconds, tv_nsec: 0 };
    // every signal is blocked, so nothing interrupts
    matches!(poll(&mut events, Some(&bound)), Ok(ready) if ready > 0)
}

/// Removes a folder and what is in it, without following links.
fn remove_tree(at: BorrowedFd<'_>, name: &std::ffi::CStr, depth: u32) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..MAX_PASSES {
        // opened anew for each pass: what was removed may have moved the others
        let Ok(folder) = openat(at, name, flags, Mode::empty()) else { return };
        let mut buffer = [std::mem::MaybeUninit::<u8>::uninit(); 2048];
        let mut entries = RawDir::new(&folder, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let entry_name = entry.file_name();
            if entry_name == c"." || entry_name == c".." {
                continue;
            }
            if unlinkat(&folder, entry_name, AtFlags::empty()).is_err() && depth > 0 {
                remove_tree(folder.as_fd(), entry_name, depth - 1);
            }
        }
        if unlinkat(at, name, AtFlags::REMOVEDIR).is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_but_not_what_links_point_to() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("kept"), "x").unwrap();
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("gone");
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        for number in 0..300 {
            let mut file =
                std::fs::File::create(folder.join(format!("a/b/file-with-a-long-name-{number}"))).unwrap();
            file.write_all(b"x").unwrap();
        }
        std::os::unix::fs::symlink(outside.path(), folder.join("a/link")).unwrap();
        let name = CString::new(folder.as_os_str().as_bytes()).unwrap();
        remove_tree(CWD, &name, MAX_DEPTH);
        assert!(!folder.exists());
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn the_supervisor_ends_a_child_and_removes_the_folder_when_the_pipe_closes() {
        use std::os::unix::process::CommandExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("server");
        std::fs::create_dir(&folder).unwrap();
        let supervisor = Supervisor::start(&folder, &[]).unwrap();
        let pipe = supervisor.pipe();
        let mut command = std::process::Command::new("sleep");
        command.arg("600").process_group(0);
        // SAFETY: `announce` makes system calls only.
        let mut child = unsafe { command.pre_exec(move || announce(pipe)) }.spawn().unwrap();
        let keeper = supervisor.pid;
        drop(supervisor);
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGTERM));
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(keeper, std::ptr::null_mut(), 0) };
        assert!(!folder.exists());
    }

    #[test]
    fn a_supervisor_that_is_asked_to_end_touches_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let supervisor = Supervisor::start(folder.path(), &[]).unwrap();
        supervisor.end();
        assert!(folder.path().exists());
    }
}
