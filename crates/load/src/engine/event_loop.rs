//! A loop that drives many users over one poller: what happens between the poller's news and what is sent next.

mod connections;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;

use whyso_clock::monotonic_ns;

use self::connections::Slot;
use crate::connection::exchange_error::ExchangeError;
use crate::connection::session::{Got, Session};
use crate::engine::opener::{ConnectAttempt, Opener};
use crate::engine::shared::LevelState;
use crate::engine::threads::{announce, finish};
use crate::engine::user::{Do, EventWriter, Pace, User};
use crate::outcome::Cause;
use crate::tuning::Tuning;

/// The longest that a loop waits without looking whether the level is over, and whether an answer is overdue.
const CHECK_NS: i64 = 100_000_000;

/// Transactions of one user that a loop carries out one after the other although they send nothing.
const UNSENT_AT_ONCE: u32 = 64;
/// Pauses of one transaction that are left out one after the other once the level is over.
const PAUSES_AT_ONCE: u32 = 64;

/// Due time of a user without a timer.
const NO_TIMER: i64 = i64::MIN;

/// Reports to a loop what has become of its connections' sockets, and sends for it.
pub(crate) trait Poller: Sized {
    /// `connections`: the most that there will be. `waker`: an eventfd that ends a wait.
    fn new(connections: usize, waker: RawFd, tuning: &Tuning) -> io::Result<Self>;
    /// Watches a connection from now on.
    fn add(&mut self, slot: u32, session: &Session) -> io::Result<()>;
    /// Says goodbye on a connection and closes it, as soon as nothing of it is in the kernel's hands.
    fn close(&mut self, slot: u32, session: Session);
    /// Sends what the session has to send. Returns whether it is out already; else [`Core::sent`] is called when it is.
    /// The
    /// bytes stay as they are until then, or until the answer is there.
    fn send(&mut self, slot: u32, session: &Session) -> io::Result<bool>;
    /// Waits for `timeout_ns` at most until something happens, and hands it to the core.
    fn wait(&mut self, timeout_ns: i64, core: &mut Core<'_>) -> io::Result<()>;
    /// Gives up all connections, so that their sockets can be used by others. Returns those that the kernel does not
    /// return.
    fn finish(self) -> Vec<u32>;
}

pub(crate) struct Core<'l> {
    at: EventWriter<'l>,
    users: Vec<User>,
    slots: Vec<Slot>,
    /// By user: the slot that it uses.
    held: Vec<Option<u32>>,
    /// By user: when its timer is due; another that is still among the timers is none of its any more.
    due_ns: Vec<i64>,
    /// By user: whether it was counted out of `users_left`.
    has_left: Vec<bool>,
    /// Users share the connections: one is held for a transaction only.
    is_shared: bool,
    free: Vec<u32>,
    queue: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(i64, u32)>>,
    opener: Opener,
    opened: Receiver<ConnectAttempt>,
    pending_opens: usize,
    users_left: usize,
    /// When the poller's wait ended last.
    pub(crate) woken_ns: i64,
    answers: u64,
    answer_delay_ns: u64,
    /// CPU that the poller spent on looking for news before it slept.
    pub(crate) busy_poll_cpu_ns: u64,
    /// What the poller has to do next.
    pub(crate) sends: Vec<u32>,
    /// Slots whose last piece of a local file is out.
    pieces: Vec<u32>,
    closes: Vec<(u32, Session)>,
    adds: Vec<u32>,
}

/// What a loop works on, and returns: connections by their number.
pub(crate) type Connections = Vec<(u32, Option<Session>)>;

/// Runs the users until the level is over.
pub(crate) fn run<P: Poller>(
    shared: &Arc<LevelState>,
    loop_number: u32,
    users: &[u32],
    connections: Connections,
) -> Connections {
    let ring = &shared.rings[loop_number as usize];
    let thread_id = announce(ring);
    let at = EventWriter { shared, ring };
    let waker = shared.waker(loop_number);
    let drivers = shared.work.drivers(loop_number, users);
    let poller = P::new(connections.len(), waker, &shared.tuning);
    let connections = match (drivers, poller) {
        (Ok(drivers), Ok(poller)) => {
            let begin_ns = shared.schedule.begin_ns();
            let users = users
                .iter()
                .zip(drivers)
                .map(|(number, driver)| User::new(*number, driver, begin_ns))
                .collect();
            let core = Core::new(shared.clone(), at, loop_number, users, connections);
            core.run(poller)
        }
        (Err(error), _) => {
            shared.fail(Cause::Driver, error.to_string());
            connections
        }
        (_, Err(error)) => {
            shared.fail(Cause::Driver, format!("the event loop could not be set up: {error}"));
            connections
        }
    };
    shared.drain(ring);
    finish(ring, thread_id);
    connections
}

impl<'l> Core<'l> {
    fn new(
        shared: Arc<LevelState>,
        at: EventWriter<'l>,
        loop_number: u32,
        users: Vec<User>,
        connections: Connections,
    ) -> Core<'l> {
        let is_shared = connections.len() != users.len();
        let (opener, opened) = Opener::new(shared, loop_number);
        let slots: Vec<Slot> =
            connections.into_iter().map(|(connection, session)| Slot::new(connection, session)).collect();
        Core {
            at,
            held: vec![None; users.len()],
            due_ns: vec![NO_TIMER; users.len()],
            has_left: vec![false; users.len()],
            is_shared,
            free: (0..slots.len() as u32).rev().collect(),
            queue: VecDeque::new(),
            timers: BinaryHeap::new(),
            opener,
            opened,
            pending_opens: 0,
            users_left: users.len(),
            woken_ns: monotonic_ns(),
            answers: 0,
            answer_delay_ns: 0,
            busy_poll_cpu_ns: 0,
            sends: Vec::with_capacity(slots.len()),
            pieces: Vec::new(),
            closes: Vec::new(),
            adds: (0..slots.len() as u32).filter(|slot| slots[*slot as usize].session.is_some()).collect(),
            users,
            slots,
        }
    }

    fn run<P: Poller>(mut self, mut poller: P) -> Connections {
        let now_ns = monotonic_ns();
        for user in 0..self.users.len() as u32 {
            if !self.is_shared {
                self.held[user as usize] = Some(user);
                self.slots[user as usize].user = Some(user);
            }
        }
        for user in 0..self.users.len() as u32 {
            self.advance(user, now_ns);
        }
        let mut next_check_ns = now_ns + CHECK_NS;
        while self.users_left > 0 {
            self.carry_out(&mut poller);
            let mut now_ns = monotonic_ns();
            let next_timer_ns = self.timers.peek().map_or(i64::MAX, |Reverse((at_ns, _))| *at_ns);
            let has_to_send = !self.pieces.is_empty();
            let timeout_ns = if has_to_send { 0 } else { (next_timer_ns.min(next_check_ns) - now_ns).max(0) };
            if let Err(error) = poller.wait(timeout_ns, &mut self) {
                self.at.shared.fail(Cause::Driver, format!("the event loop can't go on: {error}"));
                break;
            }
            if self.pending_opens > 0 {
                self.take_opened();
            }
            now_ns = monotonic_ns();
            self.take_due(now_ns);
            if !self.pieces.is_empty() {
                self.send_pieces(now_ns);
            }
            if now_ns >= next_check_ns || self.at.shared.is_stopped() {
                next_check_ns = now_ns + CHECK_NS;
                self.check_level(now_ns);
            }
            if self.at.ring.wants_draining() {
                self.at.shared.try_drain(self.at.ring);
            }
        }
        self.carry_out(&mut poller);
        for user in &self.users {
            let departure = user.departure(self.at.shared);
            self.at.shared.ledger().depart(departure);
        }
        let busy_slots = poller.finish();
        self.give_back(&busy_slots)
    }

    /// Has the poller do what is due.
    fn carry_out<P: Poller>(&mut self, poller: &mut P) {
        for (slot, session) in self.closes.drain(..) {
            poller.close(slot, session);
        }
        let mut failed = Vec::new();
        for slot in self.adds.drain(..) {
            if let Some(session) = &self.slots[slot as usize].session
                && let Err(error) = poller.add(slot, session)
            {
                failed.push((slot, error));
            }
        }
        self.send(poller, &mut failed);
        for (slot, error) in failed {
            self.lost(slot, error);
        }
    }

    #[inline]
    fn send<P: Poller>(&mut self, poller: &mut P, failed: &mut Vec<(u32, io::Error)>) {
        for slot in self.sends.drain(..) {
            let Some(session) = &self.slots[slot as usize].session else { continue };
            match poller.send(slot, session) {
                Ok(is_out) if is_out && session.sends_more() => self.pieces.push(slot),
                Ok(_) => {}
                Err(error) => failed.push((slot, error)),
            }
        }
    }

    /// What was to be sent on a connection is out.
    #[inline]
    pub(crate) fn sent(&mut self, slot: u32) {
        if self.session(slot).is_some_and(Session::sends_more) {
            self.pieces.push(slot);
        }
    }

    /// The next piece of each local file: one, and the others' turn.
    #[cold]
    fn send_pieces(&mut self, now_ns: i64) {
        for slot in std::mem::take(&mut self.pieces) {
            let state = &mut self.slots[slot as usize];
            let (Some(session), Some(user)) = (&mut state.session, state.user) else { continue };
            if !session.sends_more() {
                continue;
            }
            let next = self.users[user as usize].send_piece(&self.at, session, now_ns);
            if self.carry_on(user, slot, next) {
                self.advance(user, now_ns);
            }
        }
    }

    /// Has the poller send what is due, between two pieces of its news.
    #[inline]
    pub(crate) fn send_now<P: Poller>(&mut self, poller: &mut P) {
        if self.sends.is_empty() {
            return;
        }
        let mut failed = Vec::new();
        self.send(poller, &mut failed);
        for (slot, error) in failed {
            self.lost(slot, error);
        }
    }

    pub(crate) fn session(&self, slot: u32) -> Option<&Session> {
        self.slots.get(slot as usize)?.session.as_ref()
    }

    /// Brings a user to its next transaction, as far as that goes now. After this many transactions that sent nothing the
    /// others come first.
    fn advance(&mut self, user: u32, mut now_ns: i64) {
        for _ in 0..UNSENT_AT_ONCE {
            match self.users[user as usize].pace(&self.at, now_ns) {
                Pace::Begin => {}
                Pace::Wait { until_ns } => {
                    self.release(user, now_ns);
                    self.wake_at(until_ns, user);
                    return;
                }
                Pace::Out => {
                    self.release(user, now_ns);
                    self.count_out(user);
                    return;
                }
            }
            let Some(slot) = self.acquire(user) else { return };
            let next = {
                let state = &mut self.slots[slot as usize];
                let Some(session) = &mut state.session else {
                    self.open(slot);
                    return;
                };
                let user = &mut self.users[user as usize];
                let home = self.at.shared.endpoints.home(state.connection);
                if user.wants_another(&self.at, session, home, now_ns) {
                    self.close(slot);
                    self.open(slot);
                    return;
                }
                user.go(&self.at, session, now_ns)
            };
            if !self.carry_on(user, slot, next) {
                return;
            }
            now_ns = monotonic_ns();
        }
        // Later than whatever begins now.
        self.wake_at(now_ns + 1, user);
    }

    fn wake_at(&mut self, at_ns: i64, user: u32) {
        self.due_ns[user as usize] = at_ns;
        self.timers.push(Reverse((at_ns, user)));
    }

    /// Counts a user out, once.
    fn count_out(&mut self, user: u32) {
        if !std::mem::replace(&mut self.has_left[user as usize], true) {
            self.users_left -= 1;
        }
    }

    /// Does what a user wants done. `true`: its transaction has ended, and the next one is due.
    #[inline]
    fn carry_on(&mut self, user: u32, slot: u32, next: Do) -> bool {
        match next {
            Do::Send => {
                self.slots[slot as usize].is_asked = true;
                self.sends.push(slot);
                false
            }
            Do::Wait { until_ns } => {
                self.wake_at(until_ns, user);
                false
            }
            Do::Reconnect => {
                self.close(slot);
                self.open(slot);
                false
            }
            Do::Ended if self.is_shared && !self.queue.is_empty() => {
                // Whoever has waited longest comes first.
                self.release(user, monotonic_ns());
                true
            }
            Do::Ended => true,
            Do::Out => {
                self.users[user as usize].end();
                true
            }
        }
    }

    /// Bytes have come on a connection.
    #[inline]
    pub(crate) fn bytes(&mut self, slot: u32, bytes: &[u8]) {
        let state = &mut self.slots[slot as usize];
        let (Some(session), Some(user)) = (&mut state.session, state.user) else {
            self.unasked(slot);
            return;
        };
        if !state.is_asked {
            if !session.is_quiet(bytes) {
                self.unasked(slot);
            }
            return;
        }
        let fed = session.feed(bytes);
        let got = match fed {
            Ok(None) => return,
            Ok(Some(got)) => got,
            Err(error) => {
                self.failed(slot, error);
                return;
            }
        };
        self.answered(slot, user, got);
    }

    /// The whole answer is there.
    #[inline]
    fn answered(&mut self, slot: u32, user: u32, got: Got) {
        let state = &mut self.slots[slot as usize];
        let Some(session) = &mut state.session else { return };
        state.is_asked = false;
        let now_ns = monotonic_ns();
        self.answers += 1;
        self.answer_delay_ns += (now_ns - self.woken_ns).max(0) as u64;
        let next = self.users[user as usize].got(&self.at, session, got, now_ns);
        if self.carry_on(user, slot, next) {
            self.advance(user, now_ns);
        }
    }

    /// Users whose time has come.
    fn take_due(&mut self, now_ns: i64) {
        while let Some(Reverse((at_ns, user))) = self.timers.peek().copied()
            && at_ns <= now_ns
        {
            self.timers.pop();
            if self.due_ns[user as usize] == at_ns {
                self.due_ns[user as usize] = NO_TIMER;
                self.advance(user, now_ns);
            }
        }
    }

    /// Publishes the loop's counters, finds answers that are overdue, and ends what is to be ended.
    fn check_level(&mut self, now_ns: i64) {
        self.at.ring.answers.store(self.answers, Relaxed);
        self.at.ring.answer_delay_ns.store(self.answer_delay_ns, Relaxed);
        self.at.ring.busy_poll_cpu_ns.store(self.busy_poll_cpu_ns, Relaxed);
        let shared = self.at.shared;
        if shared.is_stopped() {
            self.stop(now_ns);
            return;
        }
        let stall_ns = i64::try_from(shared.limits.stall.as_nanos()).unwrap_or(i64::MAX);
        let asked = self.slots.iter().filter(|slot| slot.is_asked).filter_map(|slot| slot.user);
        let is_overdue =
            |user: &u32| now_ns.saturating_sub(self.users[*user as usize].waits_since_ns()) >= stall_ns;
        if shared.is_http {
            let slots = asked.filter(is_overdue).filter_map(|user| self.held[user as usize]);
            let overdue: Vec<u32> = slots.collect();
            overdue.into_iter().for_each(|slot| self.failed(slot, ExchangeError::TimedOut));
            return;
        }
        if let Some(user) = { asked }.find(is_overdue) {
            self.users[user as usize].stalled(shared);
        }
    }

    /// Lets a user go on without the pauses that its transaction makes.
    fn go_without_pauses(&mut self, user: u32, slot: u32, now_ns: i64) -> Do {
        let Some(session) = self.slots[slot as usize].session.as_mut() else { return Do::Out };
        let user = &mut self.users[user as usize];
        let mut next = user.go(&self.at, session, now_ns);
        for _ in 0..PAUSES_AT_ONCE {
            if !matches!(next, Do::Wait { .. }) {
                break;
            }
            next = user.go(&self.at, session, now_ns);
        }
        next
    }

    /// The level is over. A user who waits for nothing from the server ends now. The others end when they have their
    /// answer, or when the time for that is over.
    fn stop(&mut self, now_ns: i64) {
        let is_over = self.at.shared.stop_is_over.load(Relaxed);
        for user in 0..self.users.len() as u32 {
            if self.users[user as usize].is_out() {
                // Its way out may have been in a timer.
                self.count_out(user);
                continue;
            }
            let slot = self.held[user as usize];
            let is_asked = slot.is_some_and(|slot| self.slots[slot as usize].is_asked);
            if is_asked && !is_over {
                continue;
            }
            let is_amid = !is_asked && !self.users[user as usize].is_outside();
            let next = match slot.filter(|_| is_amid) {
                // In a pause within a transaction: that may have to be ended on the server.
                Some(slot) if !is_over => self.go_without_pauses(user, slot, now_ns),
                Some(slot) => {
                    // What its transaction holds ends with the connection.
                    self.close(slot);
                    Do::Out
                }
                None => Do::Out,
            };
            if matches!(next, Do::Wait { .. }) && self.at.shared.finishes() {
                continue;
            }
            if let (Do::Send, Some(slot)) = (next, slot) {
                self.carry_on(user, slot, next);
                continue;
            }
            self.users[user as usize].end();
            self.count_out(user);
        }
        self.timers.clear();
        self.queue.clear();
    }
}
