//! The poller over io_uring: requests go out and answers come in many at a time, one system call for all of them.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::RawFd;

use io_uring::types::{CancelBuilder, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use whyso_clock::{monotonic_ns, thread_cpu_ns};

use crate::connection::session::Session;
use crate::engine::buffers::Buffers;
use crate::engine::event_loop::{Core, Poller};
use crate::tuning::{MinComplete, Tuning};

/// Each buffer takes what a server sends at once with its default `net_buffer_length`.
const BUFFER_BYTES: usize = 16 * 1024;
const BUFFERS_MAX: usize = 512;
const ENTRIES_MAX: usize = 4096;
/// Answers that are read before the next requests go out, though more answers are there. So nobody's request waits long
/// for the reading of others' answers.
const ANSWERS_AT_ONCE: usize = 32;
/// Bytes that may come on a connection before what we send on it is out.
const EARLY_BYTES_MAX: usize = 1 << 20;
/// Longest wait for the ends of sends together with the first answer, in nanoseconds. The kernel takes nearly every send at once.
const SENDS_NS: i64 = 100_000;
/// How long the kernel may take to give connections back.
const FINISH_NS: i64 = 1_000_000_000;

/// Flags of io_uring_enter: wait, with a bound, and, from Linux 6.15 on, without counting the idle CPU as one that waits
/// for a disk. Before that the machine's iowait is too high and its idle time too low by the time that a loop waits.
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_NO_IOWAIT: u32 = 1 << 7;

const OP_SEND: u64 = 0;
const OP_RECEIVE: u64 = 1;
const OP_WAKE: u64 = 2;
const OP_CANCEL: u64 = 3;

/// A connection as the kernel knows it. A key is used again only once the kernel has nothing of it in its hands.
struct Key {
    /// `None`: it is closing.
    slot: Option<u32>,
    /// While it is closing: what must live until then.
    closing: Option<Session>,
    is_sending: bool,
    is_receiving: bool,
    /// What arrived while it was still sending.
    early: Vec<u8>,
}

pub(crate) struct Uring {
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    waker: RawFd,
    keys: Vec<Key>,
    free: Vec<u32>,
    key_of: Vec<u32>,
    news: Vec<cqueue::Entry>,
    wait_flags: u32,
    min_complete: Option<MinComplete>,
    /// Sends whose end the kernel has not reported.
    sending: u32,
    /// Sends since the last wait.
    new_sends: u32,
    /// How long it polls for completions before it sleeps.
    busy_poll_ns: i64,
}

/// Whether this kernel has it, and lets us.
pub(crate) fn try_it() -> io::Result<()> {
    let ring = new_ring(8, false)?;
    Buffers::new(&ring.submitter(), 1, 4096)?;
    Ok(())
}

/// `tells_of_work`: a flag in shared memory says when the kernel has something to do for us.
fn new_ring(entries: u32, tells_of_work: bool) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    // One thread submits, and the kernel works for it when it waits: no interrupts between.
    builder.setup_single_issuer().setup_defer_taskrun().setup_clamp().setup_cqsize(entries * 4);
    if tells_of_work {
        builder.setup_taskrun_flag();
    }
    builder.build(entries)
}

impl Poller for Uring {
    fn new(connections: usize, waker: RawFd, tuning: &Tuning) -> io::Result<Uring> {
        // Twice as many keys: a connection may be closing while the next one in its place is at work.
        let keys = connections.max(1) * 2;
        let entries = (connections * 2 + 8).next_power_of_two().min(ENTRIES_MAX);
        let busy_poll_ns = tuning.busy_poll.as_nanos() as i64;
        let ring = new_ring(entries as u32, busy_poll_ns > 0)?;
        ring.submitter().register_files_sparse(keys as u32)?;
        let count = connections.next_power_of_two().clamp(16, BUFFERS_MAX);
        let buffers = Buffers::new(&ring.submitter(), count as u16, BUFFER_BYTES)?;
        let key =
            || Key { slot: None, closing: None, is_sending: false, is_receiving: false, early: Vec::new() };
        let mut uring = Uring {
            ring: ManuallyDrop::new(ring),
            buffers: ManuallyDrop::new(buffers),
            waker,
            keys: (0..keys).map(|_| key()).collect(),
            free: (0..keys as u32).rev().collect(),
            key_of: vec![u32::MAX; connections],
            news: Vec::with_capacity(entries * 4),
            wait_flags: ENTER_GETEVENTS | ENTER_EXT_ARG | ENTER_NO_IOWAIT,
            min_complete: tuning
                .min_complete
                .map(|wait| MinComplete { completions: wait.completions.min(connections as u32), ..wait }),
            sending: 0,
            new_sends: 0,
            busy_poll_ns,
        };
        uring.listen_to_waker()?;
        Ok(uring)
    }

    fn add(&mut self, slot: u32, session: &Session) -> io::Result<()> {
        let Some(key) = self.free.pop() else {
            return Err(io::Error::other("connections are closed faster than the kernel gives them back"));
        };
        self.ring.submitter().register_files_update(key, &[session.fd()])?;
        self.keys[key as usize].slot = Some(slot);
        self.key_of[slot as usize] = key;
        self.receive(key)
    }

    fn close(&mut self, slot: u32, session: Session) {
        let key = std::mem::replace(&mut self.key_of[slot as usize], u32::MAX);
        let Some(state) = self.keys.get_mut(key as usize) else {
            session.quit();
            return;
        };
        state.slot = None;
        state.closing = Some(session);
        if state.is_receiving {
            let cancel =
                opcode::AsyncCancel::new(tag(key, OP_RECEIVE)).build().user_data(tag(key, OP_CANCEL));
            // Where it can't be cancelled it ends when the server closes.
            let _ = self.push(&cancel);
        }
        self.free_if_done(key);
    }

    #[inline]
    fn send(&mut self, slot: u32, session: &Session) -> io::Result<bool> {
        let key = self.key_of[slot as usize];
        self.keys[key as usize].is_sending = true;
        self.sending += 1;
        self.new_sends += 1;
        let bytes = session.to_send();
        // All of it: what the kernel does not take at once it takes later, without a word in between.
        let send = opcode::Send::new(Fixed(key), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(tag(key, OP_SEND));
        self.push(&send)?;
        Ok(false)
    }

    fn wait(&mut self, timeout_ns: i64, core: &mut Core<'_>) -> io::Result<()> {
        self.wait_for_news(timeout_ns, core)?;
        core.woken_ns = monotonic_ns();
        let mut news = std::mem::take(&mut self.news);
        news.extend(self.ring.completion());
        let mut answers = 0;
        for entry in news.drain(..) {
            let (key, op) = ((entry.user_data() >> 2) as u32, entry.user_data() & 3);
            match op {
                OP_RECEIVE => {
                    self.received(key, &entry, core);
                    core.send_now(self);
                    answers += 1;
                    if answers % ANSWERS_AT_ONCE == 0 {
                        self.buffers.publish();
                        self.submit()?;
                    }
                }
                OP_SEND => self.sent(key, entry.result(), core),
                OP_WAKE => self.woken(&entry)?,
                _ => {}
            }
        }
        self.news = news;
        self.buffers.publish();
        Ok(())
    }

    fn finish(mut self) -> Vec<u32> {
        let deadline_ns = monotonic_ns() + FINISH_NS;
        let timeout = Timespec::new().nsec(100_000_000);
        while self.is_busy() && monotonic_ns() < deadline_ns {
            let cancelled = self.ring.submitter().register_sync_cancel(Some(timeout), CancelBuilder::any());
            // Nothing to cancel is fine: then it has ended already, and its end is read below.
            let _ = cancelled;
            let _ = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout));
            let news: Vec<cqueue::Entry> = self.ring.completion().collect();
            for entry in news {
                self.ended(&entry);
            }
        }
        let busy_slots: Vec<u32> =
            self.keys.iter().filter(|key| key.is_busy()).filter_map(|key| key.slot).collect();
        let is_busy = self.is_busy();
        // SAFETY: neither is used after this, and the buffers outlive the ring that they are registered with.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            if is_busy {
                // The kernel may still write to them.
                self.keys.into_iter().filter(Key::is_busy).for_each(std::mem::forget);
            } else {
                ManuallyDrop::drop(&mut self.buffers);
            }
        }
        busy_slots
    }
}

fn tag(key: u32, op: u64) -> u64 {
    u64::from(key) << 2 | op
}

impl Key {
    fn is_busy(&self) -> bool {
        self.is_sending || self.is_receiving
    }
}

impl Uring {
    fn is_busy(&self) -> bool {
        self.keys.iter().any(Key::is_busy)
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: what a request points to lives until its end has been reported: a session's bytes stay as they are until
        // then (see `Key`), as do the buffers.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    /// Hands over what is to be done, and waits for the next news, as it was asked to.
    #[inline]
    fn wait_for_news(&mut self, timeout_ns: i64, core: &mut Core<'_>) -> io::Result<()> {
        let mut left_ns = timeout_ns;
        let new_sends = std::mem::take(&mut self.new_sends);
        if self.busy_poll_ns > 0 {
            left_ns = (timeout_ns - self.poll_for_completions(timeout_ns, core)?).max(0);
            if !self.ring.completion().is_empty() {
                return Ok(());
            }
        }
        if let Some(MinComplete { completions, at_most }) = self.min_complete {
            let at_most_ns = left_ns.min(at_most.as_nanos() as i64);
            // The end of a send is a completion too, and not what is waited for.
            self.wait_for(completions + self.sending, at_most_ns)?;
            if !self.ring.completion().is_empty() {
                return Ok(());
            }
            left_ns -= at_most_ns;
        }
        if new_sends > 0 {
            // The ends of the sends that this call hands over end no wait: without this it returns with them at once, and is called again to
            // wait for an answer. Only new sends count, so that one that the kernel can't take holds nobody up for longer.
            return self.wait_for(1 + new_sends, left_ns.min(SENDS_NS));
        }
        self.wait_for(1, left_ns)
    }

    /// Looks for news over and over, for as long as it may; gives how long it did.
    fn poll_for_completions(&mut self, timeout_ns: i64, core: &mut Core<'_>) -> io::Result<i64> {
        let (begin_ns, begin_cpu_ns) = (monotonic_ns(), thread_cpu_ns());
        let mut looked_ns = 0;
        self.wait_for(0, 0)?;
        while self.ring.completion().is_empty() && looked_ns < self.busy_poll_ns.min(timeout_ns) {
            if self.ring.submission().taskrun() {
                self.wait_for(0, 0)?;
            }
            std::hint::spin_loop();
            looked_ns = monotonic_ns() - begin_ns;
        }
        core.busy_poll_cpu_ns += (thread_cpu_ns() - begin_cpu_ns) as u64;
        Ok(looked_ns)
    }

    /// Hands over what is to be done, and waits for this many completions, for this long at most.
    #[inline]
    fn wait_for(&mut self, completions: u32, timeout_ns: i64) -> io::Result<()> {
        let timeout = Timespec::new()
            .sec((timeout_ns / 1_000_000_000) as u64)
            .nsec((timeout_ns % 1_000_000_000) as u32);
        match self.enter(completions, &SubmitArgs::new().timespec(&timeout)) {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn enter(&mut self, completions: u32, args: &SubmitArgs<'_, '_>) -> io::Result<usize> {
        let to_submit = self.ring.submission().len() as u32;
        // SAFETY: the flags say that the argument is what it is, and it lives for the length of the call; what the
        // requests point to is looked after by `push`.
        let entered =
            unsafe { self.ring.submitter().enter(to_submit, completions, self.wait_flags, Some(args)) };
        match entered {
            Err(error)
                if error.raw_os_error() == Some(libc::EINVAL) && self.wait_flags & ENTER_NO_IOWAIT != 0 =>
            {
                self.wait_flags &= !ENTER_NO_IOWAIT;
                self.ring.submitter().submit_with_args(completions as usize, args)
            }
            entered => entered,
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        match self.ring.submit() {
            Ok(_) => Ok(()),
            // The kernel wants its news to be read first.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EAGAIN | libc::EINTR)) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn listen_to_waker(&mut self) -> io::Result<()> {
        let poll = opcode::PollAdd::new(Fd(self.waker), libc::POLLIN as u32).multi(true).build();
        self.push(&poll.user_data(OP_WAKE))
    }

    fn woken(&mut self, entry: &cqueue::Entry) -> io::Result<()> {
        let mut count = [0u8; 8];
        // SAFETY: the pointer and length are those of an array that is ours for the length of the call.
        unsafe { libc::read(self.waker, count.as_mut_ptr().cast(), count.len()) };
        if cqueue::more(entry.flags()) { Ok(()) } else { self.listen_to_waker() }
    }

    /// Receives on a connection from now on, into whatever buffer is next.
    fn receive(&mut self, key: u32) -> io::Result<()> {
        self.keys[key as usize].is_receiving = true;
        let receive = opcode::RecvMulti::new(Fixed(key), Buffers::GROUP).build();
        self.push(&receive.user_data(tag(key, OP_RECEIVE)))
    }

    #[inline]
    fn received(&mut self, key: u32, entry: &cqueue::Entry, core: &mut Core<'_>) {
        let goes_on = cqueue::more(entry.flags());
        let state = &mut self.keys[key as usize];
        state.is_receiving = goes_on;
        let buffer = cqueue::buffer_select(entry.flags());
        let length = usize::try_from(entry.result());
        if let (Some(slot), Some(buffer), Ok(length @ 1..)) = (state.slot, buffer, length) {
            if state.is_sending {
                let room = EARLY_BYTES_MAX.saturating_sub(state.early.len());
                state.early.extend_from_slice(&self.buffers.content(buffer, length)[..length.min(room)]);
            } else {
                core.bytes(slot, self.buffers.content(buffer, length));
            }
        }
        if let Some(buffer) = buffer {
            self.buffers.put(buffer);
        }
        if goes_on {
            return;
        }
        let Some(slot) = self.keys[key as usize].slot else {
            self.free_if_done(key);
            return;
        };
        let again = match entry.result() {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")),
            code if code < 0 && code != -libc::ENOBUFS => Err(io::Error::from_raw_os_error(-code)),
            // No buffer was free, or the kernel ended it for reasons of its own.
            _ => {
                self.buffers.publish();
                self.receive(key)
            }
        };
        if let Err(error) = again {
            core.lost(slot, error);
        }
    }

    #[inline]
    fn sent(&mut self, key: u32, result: i32, core: &mut Core<'_>) {
        let state = &mut self.keys[key as usize];
        state.is_sending = false;
        self.sending -= 1;
        let Some(slot) = state.slot else {
            self.free_if_done(key);
            return;
        };
        if result < 0 {
            core.lost(slot, io::Error::from_raw_os_error(-result));
            return;
        }
        core.sent(slot);
        if !state.early.is_empty() {
            let early = std::mem::take(&mut state.early);
            core.bytes(slot, &early);
            core.send_now(self);
        }
    }

    /// A request has ended while the loop is winding up.
    fn ended(&mut self, entry: &cqueue::Entry) {
        let (key, op) = ((entry.user_data() >> 2) as u32, entry.user_data() & 3);
        match op {
            OP_SEND => self.keys[key as usize].is_sending = false,
            OP_RECEIVE => self.keys[key as usize].is_receiving = cqueue::more(entry.flags()),
            _ => return,
        }
        if self.keys[key as usize].slot.is_none() {
            self.free_if_done(key);
        }
    }

    /// Ends a connection that is closing, once the kernel has nothing of it in its hands.
    fn free_if_done(&mut self, key: u32) {
        let state = &mut self.keys[key as usize];
        if state.is_busy() {
            return;
        }
        let Some(session) = state.closing.take() else { return };
        state.early = Vec::new();
        // The place in the table keeps the socket open: it is emptied first.
        let _ = self.ring.submitter().register_files_update(key, &[-1]);
        session.quit();
        self.free.push(key);
    }
}
