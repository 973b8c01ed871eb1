//! End to end tests of the real program; see `tests/tests`.
