//! What is counted: events from loops and threads, entered into intervals and histograms.

pub(crate) mod closing;
pub(crate) mod collector;
pub(crate) mod histogram;
pub(crate) mod ledger;
pub(crate) mod ring;
#[cfg(test)]
mod ring_tests;
pub(crate) mod tally;
pub(crate) mod times;
pub(crate) mod usage;
