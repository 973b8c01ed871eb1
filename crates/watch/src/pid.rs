//! The processes that samplers follow.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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

/// Processes of the cluster's other nodes, which change when those are restarted.
#[derive(Clone, Default)]
pub(crate) struct NodePids(Arc<Mutex<Vec<u32>>>);

impl NodePids {
    pub(crate) fn new(pids: &[u32]) -> NodePids {
        NodePids(Arc::new(Mutex::new(pids.to_vec())))
    }

    pub(crate) fn replace(&self, old: Option<u32>, new: u32) {
        let mut pids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pids.retain(|pid| Some(*pid) != old);
        pids.push(new);
    }

    pub(crate) fn get(&self) -> Vec<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
