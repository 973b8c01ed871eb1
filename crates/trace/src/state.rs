//! Where a thread is, in the words of the time budget.

/// What a thread does or waits for. The numbers are those of `bpf/account.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// On a CPU.
    Cpu = 0,
    /// Ready, while another task had the CPU.
    Runqueue,
    /// Woken on a CPU that was idle, until it ran.
    Wakeup,
    /// Waiting for a futex: the locks and condition variables of user space.
    Lock,
    /// Waiting for a lock inside the kernel, such as an inode's.
    KernelLock,
    FileRead,
    FileWrite,
    FileSync,
    NetSend,
    /// Waiting for the peer to send: poll, recv and their kin.
    NetReceive,
    PageFault,
    Sleep,
    /// Waiting for asynchronous input and output to complete.
    Aio,
    Other,
}

/// How many states there are.
pub const STATES: usize = 14;

/// Every state, in the order of its number.
pub const ALL: [State; STATES] = [
    State::Cpu,
    State::Runqueue,
    State::Wakeup,
    State::Lock,
    State::KernelLock,
    State::FileRead,
    State::FileWrite,
    State::FileSync,
    State::NetSend,
    State::NetReceive,
    State::PageFault,
    State::Sleep,
    State::Aio,
    State::Other,
];

impl State {
    /// The name as metrics and tables have it.
    pub fn name(self) -> &'static str {
        match self {
            State::Cpu => "cpu",
            State::Runqueue => "runqueue",
            State::Wakeup => "wakeup",
            State::Lock => "lock",
            State::KernelLock => "kernel_lock",
            State::FileRead => "file_read",
            State::FileWrite => "file_write",
            State::FileSync => "file_sync",
            State::NetSend => "net_send",
            State::NetReceive => "net_receive",
            State::PageFault => "page_fault",
            State::Sleep => "sleep",
            State::Aio => "aio",
            State::Other => "other",
        }
    }

    pub(crate) fn of_number(number: u8) -> Option<State> {
        ALL.get(usize::from(number)).copied()
    }
}

/// What a thread is in when it blocks inside a system call, by the call's number on this machine.
pub fn state_of_syscall(number: i64) -> State {
    CALLS.iter().find(|(call, _)| *call == number).map_or(State::Other, |(_, state)| *state)
}

/// All others are [`State::Other`].
#[rustfmt::skip]
const CALLS: &[(i64, State)] = &[
    (libc::SYS_futex, State::Lock),
    (libc::SYS_futex_waitv, State::Lock),
    (libc::SYS_read, State::FileRead),
    (libc::SYS_pread64, State::FileRead),
    (libc::SYS_readv, State::FileRead),
    (libc::SYS_preadv, State::FileRead),
    (libc::SYS_preadv2, State::FileRead),
    (libc::SYS_getdents64, State::FileRead),
    (libc::SYS_write, State::FileWrite),
    (libc::SYS_pwrite64, State::FileWrite),
    (libc::SYS_writev, State::FileWrite),
    (libc::SYS_pwritev, State::FileWrite),
    (libc::SYS_pwritev2, State::FileWrite),
    (libc::SYS_fallocate, State::FileWrite),
    (libc::SYS_ftruncate, State::FileWrite),
    (libc::SYS_fsync, State::FileSync),
    (libc::SYS_fdatasync, State::FileSync),
    (libc::SYS_sync_file_range, State::FileSync),
    (libc::SYS_syncfs, State::FileSync),
    (libc::SYS_msync, State::FileSync),
    (libc::SYS_sendto, State::NetSend),
    (libc::SYS_sendmsg, State::NetSend),
    (libc::SYS_sendmmsg, State::NetSend),
    (libc::SYS_recvfrom, State::NetReceive),
    (libc::SYS_recvmsg, State::NetReceive),
    (libc::SYS_recvmmsg, State::NetReceive),
    (libc::SYS_accept, State::NetReceive),
    (libc::SYS_accept4, State::NetReceive),
    (libc::SYS_ppoll, State::NetReceive),
    (libc::SYS_pselect6, State::NetReceive),
    (libc::SYS_epoll_pwait, State::NetReceive),
    (libc::SYS_epoll_pwait2, State::NetReceive),
    #[cfg(target_arch = "x86_64")] (libc::SYS_poll, State::NetReceive),
    #[cfg(target_arch = "x86_64")] (libc::SYS_select, State::NetReceive),
    #[cfg(target_arch = "x86_64")] (libc::SYS_epoll_wait, State::NetReceive),
    (libc::SYS_nanosleep, State::Sleep),
    (libc::SYS_clock_nanosleep, State::Sleep),
    (libc::SYS_io_getevents, State::Aio),
    (libc::SYS_io_uring_enter, State::Aio),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_state_is_its_place() {
        for (place, state) in ALL.iter().enumerate() {
            assert_eq!(*state as usize, place);
            assert_eq!(State::of_number(place as u8), Some(*state));
        }
        assert_eq!(State::of_number(STATES as u8), None);
    }

    #[test]
    fn no_system_call_has_two_states() {
        for (place, (call, _)) in CALLS.iter().enumerate() {
            assert!(CALLS[..place].iter().all(|(other, _)| other != call), "call {call} twice");
        }
    }

    #[test]
    fn an_unknown_system_call_is_other() {
        assert_eq!(state_of_syscall(libc::SYS_futex), State::Lock);
        assert_eq!(state_of_syscall(libc::SYS_getpid), State::Other);
        assert_eq!(state_of_syscall(-1), State::Other);
    }
}
