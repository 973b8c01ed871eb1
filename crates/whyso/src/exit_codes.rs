//! Exit codes of the program.

/// The run failed, or a service level was not met.
pub(crate) const FAILED: u8 = 1;
/// The command line was wrong.
pub(crate) const WRONG_USE: u8 = 2;
/// Ended by Ctrl-C, as shells number it: 128 and the signal.
pub(crate) const INTERRUPTED: u8 = 130;
