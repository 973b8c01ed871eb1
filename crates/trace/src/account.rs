//! The account of one thread, as the programs keep it, and how it is read while they write.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use crate::error::Error;
use whyso_model::{STATES, State};

/// From this length on, a wait for a condition outside of any request is idle; `bpf/account_maps.h` has the same number.
const IDLE_MIN_NS: u64 = 100_000_000;

/// How often a reading is tried again while the programs write.
const TRIES: u32 = 100;

pub(crate) const SIDE_SERVER: u8 = 1;
pub(crate) const SIDE_LOAD: u8 = 2;
pub(crate) const SIDE_OWN: u8 = 3;

const REQUEST_PICKED: u8 = 1;
const REQUEST_SUSPENDED: u8 = 3;

const OF_LOAD: u8 = 1;
const OF_OTHERS: u8 = 2;
/// Where an account keeps the two apart.
pub(crate) const LOADS: usize = 0;
pub(crate) const OTHERS: usize = 1;

/// `struct time` of `bpf/account.h`: of one state, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Time {
    sum: u64,
    mark: u64,
    in_requests: [u64; 2],
}

/// `struct served` of `bpf/account.h`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct ServedAccount {
    pub(crate) requests: u64,
    pub(crate) request_ns: u64,
    pub(crate) transit_ns: u64,
    pub(crate) transit_wakeup_ns: u64,
    pub(crate) transit_runqueue_ns: u64,
    pub(crate) unseen: u64,
    pub(crate) user_samples: u64,
    pub(crate) system_samples: u64,
    pub(crate) interleaved: u64,
}

/// `struct account` of `bpf/account.h`, byte for byte.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Account {
    sequence: u32,
    pub(crate) tid: u32,
    pub(crate) tgid: u32,
    pub(crate) side: u8,
    state: u8,
    request: u8,
    whose: u8,
    visible: u8,
    contended: u8,
    pub(crate) gone: u8,
    pub(crate) role: u8,
    ready_idle: u8,
    headed: u8,
    shared: u8,
    sender: u8,
    call: u16,
    entered: u16,
    place: u32,
    since_ns: u64,
    waking_ns: u64,
    ready_ns: u64,
    ran_ns: u64,

    edge_ns: u64,
    sent_ns: u64,
    socket: u64,
    client: u64,
    server: u64,
    strange_ns: u64,
    file_inode: u64,
    file_device: u32,
    lock_device: u32,

    time: [Time; STATES],
    pub(crate) served: [ServedAccount; 2],
    pub(crate) own: u64,
    pub(crate) connections: u64,
    pub(crate) answers: u64,
    pub(crate) delay_ns: u64,
    pub(crate) delay_wakeup_ns: u64,
    pub(crate) delay_runqueue_ns: u64,
    pub(crate) held_ns: u64,
    pub(crate) wire_ns: u64,

    pub(crate) born_ns: u64,
    lock_inode: u64,
    pub(crate) name: [u8; 16],
    condition: u64,
    idle_condition: u64,
    upstream: u64,
    pub(crate) kept_ns: u64,
    transit_ns: u64,
    transit_wakeup_ns: u64,
    transit_runqueue_ns: u64,
    asked: u8,
    kept: u8,
    arrival_unseen: u8,
    unused: [u8; 5],
}

impl Account {
    /// The thread's own name, cut by the kernel to 15 bytes.
    pub(crate) fn name(&self) -> String {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        String::from_utf8_lossy(&self.name[..end]).into_owned()
    }

    /// The time in each state.
    pub(crate) fn sums(&self) -> [u64; STATES] {
        self.time.map(|time| time.sum)
    }

    /// The time in each state within requests: of [`LOADS`] or [`OTHERS`].
    pub(crate) fn times_in_requests(&self, whose: usize) -> [u64; STATES] {
        self.time.map(|time| time.in_requests[whose])
    }

    /// Requests of any connection.
    pub(crate) fn requests(&self) -> u64 {
        self.served[LOADS].requests + self.served[OTHERS].requests + self.own
    }

    /// Whether a request of others is under way.
    pub(crate) fn works_for_others(&self) -> bool {
        self.side == SIDE_SERVER
            && self.whose == OF_OTHERS
            && matches!(self.request, REQUEST_PICKED | REQUEST_SUSPENDED)
    }

    /// What it is in now.
    pub(crate) fn state(&self) -> State {
        State::of_number(self.state).unwrap_or(State::Other)
    }

    /// Enters what has not ended yet: the state that the thread is in, and the request that it works on. A wait whose length does not
    /// show yet whether it is for a lock or idle is left to a later reading: sums never shrink.
    pub(crate) fn carry_to(&mut self, now_ns: u64) {
        let since_ns = self.since_ns.min(now_ns);
        // A thread that was woken and has not run yet is ready.
        let woken = !matches!(self.state(), State::Cpu | State::Runqueue) && self.waking_ns > since_ns;
        let left_ns = if woken { self.waking_ns.min(now_ns) } else { now_ns };
        if self.state() == State::Lock && self.condition != 0 {
            if left_ns - since_ns >= IDLE_MIN_NS {
                self.state = State::Idle as u8;
            } else if !woken {
                return;
            }
        }
        let state = self.state();
        self.time[state as usize].sum += left_ns - since_ns;
        if self.kept == 1 && state == State::NetReceive {
            self.kept_ns += left_ns - since_ns;
        }
        self.time[State::Runqueue as usize].sum += now_ns - left_ns;
        self.since_ns = now_ns;
        let whose = match self.whose {
            OF_LOAD => LOADS,
            OF_OTHERS => OTHERS,
            _ => return,
        };
        if self.request == REQUEST_PICKED {
            for time in &mut self.time {
                time.in_requests[whose] += time.sum.saturating_sub(time.mark);
            }
            self.served[whose].request_ns += now_ns.saturating_sub(self.edge_ns);
        }
    }
}

/// All accounts, in memory that the programs write to.
pub(crate) struct Accounts {
    memory: NonNull<Account>,
    count: usize,
}

// SAFETY: the memory is the map's, valid until it is unmapped in `drop`; all access is by volatile copies.
unsafe impl Send for Accounts {}

impl Accounts {
    /// Maps the memory of the programs' map of accounts, which has `count`.
    pub(crate) fn map(fd: BorrowedFd<'_>, value_bytes: u32, count: u32) -> Result<Accounts, Error> {
        if value_bytes as usize != size_of::<Account>() {
            return Err(Error::Layout { theirs: value_bytes as usize, ours: size_of::<Account>() });
        }
        let count = count as usize;
        let bytes = count * size_of::<Account>();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address; the map is as large as what is asked for.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(Error::Map(std::io::Error::last_os_error()));
        }
        let memory = NonNull::new(memory.cast()).ok_or(Error::Map(std::io::ErrorKind::Other.into()))?;
        Ok(Accounts { memory, count })
    }

    /// How many threads can be watched at a time.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// A consistent copy, or `None` where the account has no thread. An account that is written without a pause is
    /// copied as it is. A thread that switches a million times per second can cause that.
    pub(crate) fn read(&self, place: usize) -> Option<Account> {
        assert!(place < self.count, "place {place} of {}", self.count);
        // SAFETY: within the map.
        let account = unsafe { self.memory.as_ptr().add(place) };
        let mut tries = 0;
        loop {
            // SAFETY: within the map, aligned as the map's values are; any bytes are an `Account`.
            let before = unsafe { (&raw const (*account).sequence).read_volatile() };
            fence(Ordering::Acquire);
            if before == 0 {
                return None;
            }
            // SAFETY: as above.
            let copy = unsafe { account.read_volatile() };
            fence(Ordering::Acquire);
            // SAFETY: as above.
            let after = unsafe { (&raw const (*account).sequence).read_volatile() };
            if before == after && before.is_multiple_of(2) {
                return Some(copy);
            }
            tries += 1;
            if tries == TRIES {
                return Some(copy);
            }
            std::hint::spin_loop();
        }
    }

    /// Sets the thread's role, for what the programs count by role.
    pub(crate) fn set_role(&self, place: usize, role: u8) {
        assert!(place < self.count, "place {place} of {}", self.count);
        // SAFETY: within the map; the programs never write this byte of an account in use.
        unsafe { (&raw mut (*self.memory.as_ptr().add(place)).role).write_volatile(role) };
    }

    /// Empties an account whose thread is gone.
    pub(crate) fn clear(&self, place: usize) {
        assert!(place < self.count, "place {place} of {}", self.count);
        // SAFETY: within the map; nobody writes the account of a thread that is gone.
        unsafe { self.memory.as_ptr().add(place).write_bytes(0, 1) };
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this size.
        let _ = unsafe { libc::munmap(self.memory.as_ptr().cast(), self.count * size_of::<Account>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        // SAFETY: all zeros are an `Account`.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn a_thread_that_was_woken_and_has_not_run_is_ready() {
        let mut account = Account { state: State::Lock as u8, since_ns: 100, waking_ns: 150, ..account() };
        account.carry_to(180);
        assert_eq!(account.time[State::Lock as usize].sum, 50);
        assert_eq!(account.time[State::Runqueue as usize].sum, 30);
    }

    #[test]
    fn a_wait_for_a_condition_outside_of_requests_is_entered_once_its_length_shows_what_it_was() {
        fn at(now_ns: u64, waking_ns: u64) -> (u64, u64) {
            let mut account = account();
            (account.state, account.condition, account.since_ns, account.waking_ns) =
                (State::Lock as u8, 1, 100, waking_ns);
            account.carry_to(now_ns);
            (account.time[State::Lock as usize].sum, account.time[State::Idle as usize].sum)
        }
        assert_eq!(at(100 + IDLE_MIN_NS - 1, 0), (0, 0));
        assert_eq!(at(100 + IDLE_MIN_NS, 0), (0, IDLE_MIN_NS));
        assert_eq!(at(200, 150), (50, 0), "it was woken early: it waited for a lock");
        assert_eq!(at(200 + IDLE_MIN_NS, 100 + IDLE_MIN_NS), (0, IDLE_MIN_NS));
    }

    #[test]
    fn a_request_in_flight_counts_up_to_now() {
        let mut of_load =
            Account { request: REQUEST_PICKED, whose: OF_LOAD, since_ns: 100, edge_ns: 90, ..account() };
        of_load.time[State::Cpu as usize].sum = 1_000;
        of_load.time[State::Cpu as usize].mark = 990;
        let mut of_others = Account { whose: OF_OTHERS, ..of_load };
        of_load.carry_to(140);
        assert_eq!(of_load.time[State::Cpu as usize].in_requests, [50, 0]);
        assert_eq!(of_load.served.map(|served| served.request_ns), [50, 0]);
        of_others.carry_to(140);
        assert_eq!(of_others.time[State::Cpu as usize].in_requests, [0, 50]);
        assert_eq!(of_others.served.map(|served| served.request_ns), [0, 50]);
    }

    #[test]
    fn what_follows_a_reply_is_nobodys_until_the_next_receive() {
        let mut account = Account { request: 2, whose: OF_LOAD, since_ns: 100, edge_ns: 90, ..account() };
        account.carry_to(140);
        assert_eq!((account.times_in_requests(LOADS), account.served[LOADS].request_ns), ([0; STATES], 0));
        assert_eq!(account.time[State::Cpu as usize].sum, 40);
    }

    #[test]
    fn a_clock_behind_the_programs_takes_nothing_away() {
        let mut account = Account { since_ns: 200, waking_ns: 300, state: State::Sleep as u8, ..account() };
        account.carry_to(150);
        assert_eq!(account.sums(), [0; STATES]);
    }
}
