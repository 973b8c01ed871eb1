//! The process that samplers follow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process id that a sampler follows, 0 for none; changes when the server is restarted.
#[derive(Clone, Default)]
pub(crate) struct Pid(Arc<AtomicU32>);

impl Pid {
    pub(crate) fn new(pid: Option<u32>) -> Pid {
        let shared = Pid::default();
        shared.set(pid);
        shared
    }

    pub(crate) fn set(&self, pid: Option<u32>) {
        self.0.store(pid.unwrap_or(0), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<u32> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            pid => Some(pid),
        }
    }
}
