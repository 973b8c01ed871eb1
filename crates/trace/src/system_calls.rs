//! System calls in which threads block: their names, and the states that they stand for.

use whyso_model::State;

/// Returns the state of a thread that blocks inside a system call, by the call's number on this machine.
pub fn state_of_syscall(number: i64) -> State {
    CALLS.iter().find(|(call, _, _)| *call == number).map_or(State::Other, |(_, _, state)| *state)
}

/// Returns the name of a system call in which threads block, by its number on this machine; `None` of all others.
pub fn name_of_syscall(number: i64) -> Option<&'static str> {
    CALLS.iter().find(|(call, _, _)| *call == number).map(|(_, name, _)| name.trim_start_matches("SYS_"))
}

/// Where a system call that waits for a peer has the descriptor of its socket; the numbers are those of `bpf/upstream.h`.
pub(crate) fn descriptor_of_syscall(number: i64) -> u8 {
    const FIRST_ARGUMENT: u8 = 1;
    const OF_FIRST_POLLED: u8 = 2;
    const OF_CONNECT: u8 = 3;
    match number {
        libc::SYS_connect => OF_CONNECT,
        libc::SYS_ppoll => OF_FIRST_POLLED,
        poll if Some(poll) == POLL => OF_FIRST_POLLED,
        libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_accept
        | libc::SYS_accept4 => FIRST_ARGUMENT,
        _ => 0,
    }
}

/// The call that newer architectures have only as `ppoll`.
#[cfg(target_arch = "x86_64")]
pub(crate) const POLL: Option<i64> = Some(libc::SYS_poll);
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const POLL: Option<i64> = None;

macro_rules! call {
    ($number:ident, $state:ident) => {
        (libc::$number, stringify!($number), State::$state)
    };
}

/// All others are [`State::Other`].
#[rustfmt::skip]
const CALLS: &[(i64, &str, State)] = &[
    call!(SYS_futex, Lock),
    call!(SYS_futex_waitv, Lock),
    call!(SYS_read, FileRead),
    call!(SYS_pread64, FileRead),
    call!(SYS_readv, FileRead),
    call!(SYS_preadv, FileRead),
    call!(SYS_preadv2, FileRead),
    call!(SYS_getdents64, FileRead),
    call!(SYS_write, FileWrite),
    call!(SYS_pwrite64, FileWrite),
    call!(SYS_writev, FileWrite),
    call!(SYS_pwritev, FileWrite),
    call!(SYS_pwritev2, FileWrite),
    call!(SYS_fallocate, FileWrite),
    call!(SYS_ftruncate, FileWrite),
    call!(SYS_fsync, FileSync),
    call!(SYS_fdatasync, FileSync),
    call!(SYS_sync_file_range, FileSync),
    call!(SYS_syncfs, FileSync),
    call!(SYS_msync, FileSync),
    call!(SYS_sendto, NetSend),
    call!(SYS_sendmsg, NetSend),
    call!(SYS_sendmmsg, NetSend),
    call!(SYS_recvfrom, NetReceive),
    call!(SYS_recvmsg, NetReceive),
    call!(SYS_recvmmsg, NetReceive),
    call!(SYS_accept, NetReceive),
    call!(SYS_accept4, NetReceive),
    call!(SYS_ppoll, NetReceive),
    call!(SYS_pselect6, NetReceive),
    call!(SYS_epoll_pwait, NetReceive),
    call!(SYS_epoll_pwait2, NetReceive),
    #[cfg(target_arch = "x86_64")] call!(SYS_poll, NetReceive),
    #[cfg(target_arch = "x86_64")] call!(SYS_select, NetReceive),
    #[cfg(target_arch = "x86_64")] call!(SYS_epoll_wait, NetReceive),
    call!(SYS_nanosleep, Sleep),
    call!(SYS_clock_nanosleep, Sleep),
    call!(SYS_io_getevents, Aio),
    call!(SYS_io_uring_enter, Aio),
    call!(SYS_rt_sigtimedwait, Idle),
    call!(SYS_wait4, Other),
    call!(SYS_connect, Other),
    #[cfg(target_arch = "x86_64")] call!(SYS_pause, Other),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_system_call_has_two_states() {
        for (place, (call, _, _)) in CALLS.iter().enumerate() {
            assert!(CALLS[..place].iter().all(|(other, _, _)| other != call), "call {call} twice");
        }
    }

    #[test]
    fn an_unknown_system_call_is_other() {
        assert_eq!(state_of_syscall(libc::SYS_futex), State::Lock);
        assert_eq!(state_of_syscall(libc::SYS_getpid), State::Other);
        assert_eq!(state_of_syscall(-1), State::Other);
        assert_eq!(state_of_syscall(libc::SYS_rt_sigtimedwait), State::Idle);
        assert_eq!(name_of_syscall(libc::SYS_clock_nanosleep), Some("clock_nanosleep"));
        assert_eq!(name_of_syscall(libc::SYS_getpid), None);
    }
}
