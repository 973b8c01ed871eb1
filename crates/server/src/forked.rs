//! What processes need that are forked, not executed, and outlive us.
//!
//! After a fork of a process with threads only async-signal-safe calls are allowed. What runs in such a child makes system
//! calls on memory that was prepared before. It neither allocates nor panics.

use std::ffi::CStr;
use std::os::fd::RawFd;

/// Descriptors that are closed one by one where the kernel can't close a range.
const OLD_KERNEL_DESCRIPTORS: i32 = 4096;

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
