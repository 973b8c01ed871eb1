//! What comes from the terminal, read in a thread of its own: a terminal that goes away may keep its reader busy, and nobody else.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long it is waited for a key, so that an end is soon seen.
const WAIT: Duration = Duration::from_millis(100);

/// Reads until it is dropped.
pub(super) struct Keys {
    events: Receiver<io::Result<Event>>,
    is_over: Arc<AtomicBool>,
}

impl Keys {
    /// # Errors
    /// No thread could be started.
    pub(super) fn listen() -> io::Result<Keys> {
        let (send, events) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        // It is not waited for: see above.
        std::thread::Builder::new().name("keys".to_string()).spawn(move || read(&send, &over))?;
        Ok(Keys { events, is_over })
    }

    /// The next event; `None` where there is none for a while.
    ///
    /// # Errors
    /// The terminal has gone.
    pub(super) fn next(&self) -> io::Result<Option<Event>> {
        match self.events.recv_timeout(WAIT) {
            Ok(event) => event.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(terminal_closed()),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn terminal_closed() -> io::Error {
    io::Error::other("it has gone")
}

fn read(send: &Sender<io::Result<Event>>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let event = match next() {
            Ok(None) => continue,
            Ok(Some(event)) => Ok(event),
            Err(error) => Err(error),
        };
        let failed = event.is_err();
        if send.send(event).is_err() || failed {
            return;
        }
    }
}

fn next() -> io::Result<Option<Event>> {
    let stdin = io::stdin();
    let mut input = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: WAIT.subsec_nanos().into() };
    match poll(&mut input, Some(&wait)) {
        // A signal, such as that the window has another size.
        Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
        Ok(_) if input[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => {
            return Err(terminal_closed());
        }
        Ok(_) => {}
    }
    match event::poll(Duration::ZERO)? {
        true => event::read().map(Some),
        false => Ok(None),
    }
}
