//! Atomics of the load's queues. `tests/schedules.rs` compiles those queues with other ones, which go through every order of loads and stores.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
