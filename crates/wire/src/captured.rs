//! The results of one command, kept as they came.

/// Column definitions and rows of every result of one command, in the form that the server sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {}
