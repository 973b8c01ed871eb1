//! A server as it is now, in the terminal.
