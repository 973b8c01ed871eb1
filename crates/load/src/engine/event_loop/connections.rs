//! A loop's connections: who uses which, and how they are opened, lost and returned.

use std::io;

use whyso_clock::monotonic_ns;
use whyso_wire::ProtocolError;

use super::{Connections, Core, NO_TIMER};
use crate::connection::exchange_error::ExchangeError;
use crate::connection::session::Session;
use crate::engine::opener::ConnectAttempt;
use crate::engine::user::answers::lost_between;
use crate::error::LoadError;
use crate::outcome::Cause;

/// A connection's place.
pub(super) struct Slot {
    pub(super) session: Option<Session>,
    /// Number among all connections of the load.
    pub(super) connection: u32,
    /// Who uses it.
    pub(super) user: Option<u32>,
    /// Something was sent whose answer has not come.
    pub(super) is_asked: bool,
    /// A connection for it is being opened.
    pub(super) is_opening: bool,
}

impl Slot {
    pub(super) fn new(connection: u32, session: Option<Session>) -> Slot {
        Slot { session, connection, user: None, is_asked: false, is_opening: false }
    }
}

impl Core<'_> {
    /// The connection that a user continues with, where there is one.
    pub(super) fn acquire(&mut self, user: u32) -> Option<u32> {
        if let Some(slot) = self.held[user as usize] {
            return Some(slot);
        }
        let Some(slot) = self.free.pop() else {
            self.queue.push_back(user);
            return None;
        };
        self.held[user as usize] = Some(slot);
        self.slots[slot as usize].user = Some(user);
        Some(slot)
    }

    /// Gives a shared connection up, to a user who waits for one.
    pub(super) fn release(&mut self, user: u32, now_ns: i64) {
        if !self.is_shared {
            return;
        }
        let Some(slot) = self.held[user as usize].take() else { return };
        self.slots[slot as usize].user = None;
        self.free.push(slot);
        if let Some(waiting) = self.queue.pop_front() {
            self.advance(waiting, now_ns);
        }
    }

    /// Bytes arrived that nobody asked for. Either the server ends a connection between two transactions, which is
    /// found at its next use, or it does not keep to the protocol.
    #[cold]
    pub(super) fn unasked(&mut self, slot: u32) {
        if self.slots[slot as usize].session.is_some() {
            self.failed(slot, ProtocolError::AfterEnd.into());
        }
    }

    /// A connection has ended.
    #[cold]
    pub(crate) fn lost(&mut self, slot: u32, error: io::Error) {
        let state = &mut self.slots[slot as usize];
        if error.kind() == io::ErrorKind::UnexpectedEof
            && state.is_asked
            && let (Some(session), Some(user)) = (&mut state.session, state.user)
            && let Some(got) = session.end_of_stream()
        {
            self.answered(slot, user, got);
            return;
        }
        self.failed(slot, ExchangeError::Io(error));
    }

    #[cold]
    pub(super) fn failed(&mut self, slot: u32, error: ExchangeError) {
        let now_ns = monotonic_ns();
        let state = &mut self.slots[slot as usize];
        let Some(mut session) = state.session.take() else { return };
        state.is_asked = false;
        let user = state.user.filter(|user| !self.users[*user as usize].is_out());
        let next = match user {
            Some(user) if !self.users[user as usize].is_outside() => {
                // A pause within a transaction is over with its connection.
                self.due_ns[user as usize] = NO_TIMER;
                Some(self.users[user as usize].failed(&self.at, &mut session, error, now_ns))
            }
            // Nothing is under way on it: the next transaction makes a new one, where that is wanted.
            user => {
                let user = user.map(|user| &mut self.users[user as usize]);
                lost_between(&self.at, user, session.endpoint, &error, now_ns);
                None
            }
        };
        self.closes.push((slot, session));
        if let (Some(user), Some(next)) = (user, next)
            && self.carry_on(user, slot, next)
        {
            self.advance(user, now_ns);
        }
    }

    pub(super) fn close(&mut self, slot: u32) {
        let state = &mut self.slots[slot as usize];
        state.is_asked = false;
        if let Some(session) = state.session.take() {
            self.closes.push((slot, session));
        }
    }

    /// Has a connection opened, which takes its time elsewhere.
    pub(super) fn open(&mut self, slot: u32) {
        let state = &mut self.slots[slot as usize];
        if state.is_opening {
            return;
        }
        state.is_opening = true;
        self.pending_opens += 1;
        self.opener.open(slot, state.connection);
    }

    pub(super) fn take_opened(&mut self) {
        while let Ok(ConnectAttempt { slot, result }) = self.opened.try_recv() {
            self.pending_opens -= 1;
            self.slots[slot as usize].is_opening = false;
            let Some(user) = self.slots[slot as usize].user else { continue };
            self.take_session(slot, user, result);
        }
    }

    fn take_session(&mut self, slot: u32, user: u32, result: Result<Option<Session>, LoadError>) {
        let now_ns = monotonic_ns();
        if self.users[user as usize].is_out() {
            // The level was over first; the next one may use it.
            self.slots[slot as usize].session = result.ok().flatten();
            return;
        }
        match result {
            Ok(Some(mut session)) => {
                self.users[user as usize].connected(&self.at, &mut session, now_ns);
                self.slots[slot as usize].session = Some(session);
                self.adds.push(slot);
            }
            Ok(None) => self.users[user as usize].end(),
            Err(error) if self.at.shared.tries_once() => {
                self.slots[slot as usize].session = self.users[user as usize].not_connected(&self.at, &error);
                self.adds.push(slot);
            }
            Err(error) => {
                let message = format!("no connection could be opened again: {error}");
                self.at.shared.fail(Cause::ConnectionLost, message);
                self.users[user as usize].end();
            }
        }
        self.advance(user, now_ns);
    }

    /// Every connection by its number; `busy_slots` are the places of those that the kernel has not returned.
    pub(super) fn give_back(self, busy_slots: &[u32]) -> Connections {
        let give_back = |(number, slot): (usize, Slot)| {
            let is_usable = !slot.is_asked && !busy_slots.contains(&(number as u32));
            match slot.session {
                Some(session) if is_usable => (slot.connection, Some(session)),
                Some(session) => {
                    session.socket().shutdown();
                    // The kernel may still read from, or write to, what belongs to it.
                    std::mem::forget(session);
                    (slot.connection, None)
                }
                None => (slot.connection, None),
            }
        };
        self.slots.into_iter().enumerate().map(give_back).collect()
    }
}
