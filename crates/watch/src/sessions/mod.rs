//! Sessions: what every client's connection did when the process list was read, added up by state.
//!
//! A server tells the state of each session to any user with the privilege PROCESS, on its own machine and from afar. Each look counts the
//! sessions that were in a statement: `in_statement` ÷ `looks` is how many were at the mean, and a state's part of `in_statement` is the
//! share of their time that it held, as a sample. No state says that a session waits for a row; those that InnoDB's lock tables, or its
//! count of waits, show to wait are put into [`ROW_LOCK`].
//!
//! whyso's own connections and the server's own threads are left out.

mod sampler;
mod states;

pub use sampler::SessionSums;
pub(crate) use sampler::{METRICS, SessionStates, SessionTally};
