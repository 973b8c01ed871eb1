//! Threads that pause periodically: which of the server's long waits are regular, and which of those are reported.
//!
//! The tracer counts each thread's waits of 20 ms to a minute by what they were spent in, with the times between them. A
//! wait that always takes as long is a timer's, not work's: 40 ms are a delayed acknowledgement, 400 ms a sleep.
//! What is by design is separate: background threads have timers, and threads of clients that think are idle.

mod model;
mod pattern;
mod words;

pub use model::{Kind, Pauses, Regular};
pub use whyso_model::Moments;

pub(crate) use model::LOST;
pub(crate) use words::findings;

#[cfg(test)]
mod tests;
