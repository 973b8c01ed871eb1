//! What processes need that are forked, not executed, and outlive us.
//!
//! After a fork of a process with threads only async-signal-safe calls are allowed. What runs in such a child makes system
//! calls on memory that was prepared before. It neither allocates nor panics.

use std::ffi::CStr;
use std::io::{Error as IoError, Result as IoResult};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType, send, shutdown, socketpair};

/// After this time without a word from us, a helper ends.
pub(crate) const SILENCE_SECONDS_MAX: i64 = 60;
/// A helper answers within this time.
const ANSWER_SECONDS_MAX: i64 = 5;
pub(crate) const NS_PER_S: i64 = 1_000_000_000;

/// Descriptors that are closed one by one where the kernel can't close a range.
const OLD_KERNEL_DESCRIPTORS: i32 = 4096;

/// A forked child that is told what to do by single bytes, and answers each with one. Dropping it ends its socket, and waits for it.
pub(crate) struct Helper {
    socket: OwnedFd,
    pid: libc::pid_t,
}

impl Helper {
    /// `work` runs in the child, with the child's end of the socket, and may make system calls only.
    ///
    /// # Errors
    /// No socket or no process can be made.
    pub(crate) fn fork(work: impl FnOnce(RawFd)) -> IoResult<Helper> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // SAFETY: the child calls `work` alone, which makes only async-signal-safe calls, and ends by `_exit`.
        match unsafe { libc::fork() } {
            -1 => Err(IoError::last_os_error()),
            0 => {
                work(theirs.as_raw_fd());
                // SAFETY: ends the child at once, without running anything of the parent's.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Helper { socket: ours, pid }),
        }
    }

    /// The child's answer; `None` where it has ended, or is silent.
    pub(crate) fn ask(&self, what: u8) -> Option<u8> {
        send(&self.socket, &[what], SendFlags::NOSIGNAL).ok()?;
        let mut events = [PollFd::new(&self.socket, PollFlags::IN)];
        let bound = Timespec { tv_sec: ANSWER_SECONDS_MAX, tv_nsec: 0 };
        if !matches!(poll(&mut events, Some(&bound)), Ok(1..)) {
            return None;
        }
        let mut answer = [0_u8];
        matches!(rustix::io::read(&self.socket, &mut answer), Ok(1)).then_some(answer[0])
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
        // SAFETY: waits for our own child, which ends once its socket does.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// In a child: whether a message comes within this time, or the end of the socket.
pub(crate) fn is_readable(socket: BorrowedFd<'_>, within_ns: i64) -> bool {
    let bound = Timespec { tv_sec: within_ns / NS_PER_S, tv_nsec: within_ns % NS_PER_S };
    let mut events = [PollFd::new(&socket, PollFlags::IN)];
    // every signal is blocked, so nothing interrupts
    matches!(poll(&mut events, Some(&bound)), Ok(1..))
}

/// In a child: the message that came; `None` at the end of the socket.
pub(crate) fn message(socket: BorrowedFd<'_>) -> Option<u8> {
    let mut message = [0_u8];
    matches!(rustix::io::read(socket, &mut message), Ok(1)).then_some(message[0])
}

/// In a child: answers a message; false where nobody hears it any more.
pub(crate) fn answer(socket: BorrowedFd<'_>, what: u8) -> bool {
    send(socket, &[what], SendFlags::NOSIGNAL).is_ok()
}

/// Cuts the child off from what it has inherited: signals, terminal, every descriptor but `pipe`, name and arguments.
pub(crate) fn detach(pipe: RawFd, name: &CStr, arguments: Option<(u64, u64)>) {
    // SAFETY: system calls on local memory. A handler of the parent must not run here, as it would
    // write to descriptors that it shares with the parent.
    unsafe {
        let mut every_signal: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut every_signal);
        libc::sigprocmask(libc::SIG_SETMASK, &every_signal, std::ptr::null_mut());
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        let pipe = pipe as libc::c_uint;
        let nothing = 0 as libc::c_uint;
        let mut closed = libc::syscall(libc::SYS_close_range, pipe + 1, libc::c_uint::MAX, nothing) == 0;
        if pipe > 0 {
            closed = closed && libc::syscall(libc::SYS_close_range, nothing, pipe - 1, nothing) == 0;
        }
        if !closed {
            // kernels before 5.9; above all our own copy of the pipe's other end must go
            for descriptor in (0..OLD_KERNEL_DESCRIPTORS).filter(|descriptor| *descriptor != pipe as i32) {
                libc::close(descriptor);
            }
        }
        libc::chdir(c"/".as_ptr());
    }
    if let Some((start, end)) = arguments {
        // SAFETY: the kernel's own statement of where the arguments lie, in memory that is ours and
        // writable; nothing in this process reads them again. They may hold a password.
        unsafe { std::ptr::write_bytes(start as *mut u8, 0, (end - start) as usize) };
    }
}
