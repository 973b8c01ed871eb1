//! What reading a source costs, in running sums.

use std::sync::atomic::AtomicU64;

/// Running sums of one sampler, written by its thread and read by the `watch` sampler.
#[derive(Default)]
pub(crate) struct Cost {
    pub(crate) cpu_ns: AtomicU64,
    pub(crate) duration_ns: AtomicU64,
    pub(crate) last_duration_ns: AtomicU64,
    pub(crate) readings: AtomicU64,
    pub(crate) missed: AtomicU64,
    pub(crate) failed: AtomicU64,
}
