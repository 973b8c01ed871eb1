//! What a thread does or waits for, as the time budget names it.

/// What a thread does or waits for. The numbers are those of the tracer's `bpf/account.h`.
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
    /// Sleeping until there is work: on a condition, outside of any request, or for a signal.
    Idle,
    /// Within a request, waiting for a server that the thread asked itself. Of programs that are no database server.
    Upstream,
}

/// How many states there are.
pub const STATES: usize = 16;

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
    State::Idle,
    State::Upstream,
];

impl State {
    /// Returns the name that metrics and tables use.
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
            State::Idle => "idle",
            State::Upstream => "upstream",
        }
    }

    /// Returns the state with this number; `None` if there is none.
    pub fn of_number(number: u8) -> Option<State> {
        ALL.get(usize::from(number)).copied()
    }

    /// Returns the state that metrics and tables call `name`; `None` if there is none.
    pub fn of_name(name: &str) -> Option<State> {
        ALL.into_iter().find(|state| state.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_by_its_number_and_by_its_name() {
        for (place, state) in ALL.iter().enumerate() {
            assert_eq!(*state as usize, place);
            assert_eq!(State::of_number(place as u8), Some(*state));
            assert_eq!(State::of_name(state.name()), Some(*state));
        }
        assert_eq!(State::of_number(STATES as u8), None);
        assert_eq!(State::of_name("Cpu"), None);
    }
}
