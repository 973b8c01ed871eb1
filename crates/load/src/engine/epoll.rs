//! The poller over epoll: for kernels without io_uring, and where it is forbidden.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use whyso_clock::{monotonic_ns, thread_cpu_ns};

use crate::connection::session::Session;
use crate::engine::event_loop::{Core, Poller};
use crate::tuning::Tuning;

/// What a loop receives into: one buffer for all its connections.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Most events of one wait.
const EVENTS_MAX: usize = 256;
const WAKER: u64 = u64::MAX;

pub(crate) struct Epoll {
    epoll: OwnedFd,
    waker: RawFd,
    events: Vec<libc::epoll_event>,
    received: Box<[u8]>,
    /// By slot: how much of what is to be sent the kernel has taken, where it did not take all at once.
    partly_sent: Vec<Option<usize>>,
    /// The wait with a bound in nanoseconds is there (Linux 5.11).
    has_fine_timeouts: bool,
    /// How long it polls for events before it sleeps.
    busy_poll_ns: i64,
}

impl Poller for Epoll {
    fn new(connections: usize, waker: RawFd, tuning: &Tuning) -> io::Result<Epoll> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        // SAFETY: the level keeps the eventfd open until its loops have ended.
        let fd = unsafe { BorrowedFd::borrow_raw(waker) };
        epoll::add(&epoll, fd, EventData::new_u64(WAKER), EventFlags::IN)?;
        Ok(Epoll {
            epoll,
            waker,
            events: Vec::with_capacity(EVENTS_MAX),
            received: vec![0; RECEIVE_BYTES].into_boxed_slice(),
            partly_sent: vec![None; connections],
            has_fine_timeouts: true,
            busy_poll_ns: tuning.busy_poll.as_nanos() as i64,
        })
    }

    fn add(&mut self, slot: u32, session: &Session) -> io::Result<()> {
        self.partly_sent[slot as usize] = None;
        // Once for each time that something comes: what is there is read to its end each time.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, session.socket().as_fd(), EventData::new_u64(u64::from(slot)), flags)?)
    }

    fn close(&mut self, slot: u32, session: Session) {
        self.partly_sent[slot as usize] = None;
        // It is gone with its last descriptor in any case.
        let _ = epoll::delete(&self.epoll, session.socket().as_fd());
        session.quit();
    }

    #[inline]
    fn send(&mut self, slot: u32, session: &Session) -> io::Result<bool> {
        self.send_from(slot, session, 0)
    }

    fn wait(&mut self, timeout_ns: i64, core: &mut Core<'_>) -> io::Result<()> {
        self.events.clear();
        let looked_ns = if self.busy_poll_ns > 0 { self.poll_for_events(timeout_ns, core)? } else { 0 };
        if self.events.is_empty() {
            self.wait_for_events((timeout_ns - looked_ns).max(0))?;
        }
        core.woken_ns = monotonic_ns();
        for place in 0..self.events.len() {
            let event = self.events[place];
            let (data, flags) = (event.u64, EventFlags::from_bits_retain(event.events));
            if data == WAKER {
                let mut count = [0; 8];
                // SAFETY: as above.
                let fd = unsafe { BorrowedFd::borrow_raw(self.waker) };
                let _ = rustix::io::read(fd, &mut count);
                continue;
            }
            let slot = data as u32;
            if flags.contains(EventFlags::OUT) {
                self.send_rest(slot, core);
            }
            if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
                // Without a further event, the end of the stream is read here or never.
                let ends = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
                self.receive(slot, ends, core);
                core.send_now(self);
            }
        }
        Ok(())
    }

    fn finish(self) -> Vec<u32> {
        Vec::new()
    }
}

impl Epoll {
    /// Looks for events over and over, for as long as it may; gives how long it did.
    fn poll_for_events(&mut self, timeout_ns: i64, core: &mut Core<'_>) -> io::Result<i64> {
        let begin_ns = monotonic_ns();
        let begin_cpu_ns = thread_cpu_ns();
        let mut looked_ns = 0;
        while self.events.is_empty() && looked_ns < self.busy_poll_ns.min(timeout_ns) {
            self.wait_for_events(0)?;
            looked_ns = monotonic_ns() - begin_ns;
        }
        core.busy_poll_cpu_ns += (thread_cpu_ns() - begin_cpu_ns) as u64;
        Ok(looked_ns)
    }

    fn wait_for_events(&mut self, timeout_ns: i64) -> io::Result<()> {
        let room = self.events.spare_capacity_mut();
        let (events, count) = (room.as_mut_ptr().cast::<libc::epoll_event>(), room.len() as i32);
        let epoll = self.epoll.as_raw_fd();
        let found = if self.has_fine_timeouts {
            let timeout =
                libc::timespec { tv_sec: timeout_ns / 1_000_000_000, tv_nsec: timeout_ns % 1_000_000_000 };
            // SAFETY: the pointer and count are those of memory that is ours for the length of the call, as is the
            // timeout; there is no signal mask.
            unsafe { libc::epoll_pwait2(epoll, events, count, &timeout, std::ptr::null()) }
        } else {
            // To the millisecond, and rather late than over and over.
            let timeout_ms = i32::try_from((timeout_ns + 999_999) / 1_000_000).unwrap_or(i32::MAX);
            // SAFETY: as above.
            unsafe { libc::epoll_wait(epoll, events, count, timeout_ms) }
        };
        match usize::try_from(found) {
            Ok(found) => {
                // SAFETY: the kernel has written so many.
                unsafe { self.events.set_len(found) };
                Ok(())
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error if error.raw_os_error() == Some(libc::ENOSYS) && self.has_fine_timeouts => {
                    self.has_fine_timeouts = false;
                    Ok(())
                }
                error => Err(error),
            },
        }
    }

    /// Reads what is there to its end; `ends`: that is the end of the stream.
    #[inline]
    fn receive(&mut self, slot: u32, ends: bool, core: &mut Core<'_>) {
        while let Some(session) = core.session(slot) {
            match session.socket().try_receive(&mut self.received) {
                Ok(0) => {
                    let error = io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed");
                    core.lost(slot, error);
                    return;
                }
                Ok(count) => {
                    core.bytes(slot, &self.received[..count]);
                    if count < self.received.len() && !ends {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    core.lost(slot, error);
                    return;
                }
            }
        }
    }

    /// Returns whether the kernel has taken everything.
    #[inline]
    fn send_from(&mut self, slot: u32, session: &Session, mut sent: usize) -> io::Result<bool> {
        let bytes = session.to_send();
        while sent < bytes.len() {
            match session.socket().try_send(&bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.partly_sent[slot as usize] = Some(sent);
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.partly_sent[slot as usize] = None;
        Ok(true)
    }

    /// Continues where the kernel did not take all.
    fn send_rest(&mut self, slot: u32, core: &mut Core<'_>) {
        let Some(sent) = self.partly_sent[slot as usize] else { return };
        let Some(session) = core.session(slot) else { return };
        match self.send_from(slot, session, sent) {
            Ok(true) => core.sent(slot),
            Ok(false) => {}
            Err(error) => core.lost(slot, error),
        }
    }
}
