//! How often the user asked for the end.

use std::sync::atomic::{AtomicU32, Ordering};

/// How often the user asked a run to end, such as by Ctrl-C: the first time ends it properly, the second at once.
#[derive(Debug, Default)]
pub struct Stop {
    asked: AtomicU32,
}

impl Stop {
    pub const fn new() -> Stop {
        Stop { asked: AtomicU32::new(0) }
    }

    /// Asks for the end, and returns how often that was asked, this time included. Safe to call from a signal handler.
    pub fn ask(&self) -> u32 {
        self.asked.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 0
    }
}
