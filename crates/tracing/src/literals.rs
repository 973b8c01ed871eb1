//! Which parts of statements are recorded.

/// What of recorded statements is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literals {
    /// They are `?`.
    Replaced,
    /// Statements are recorded as they were sent, except for those that may hold a password.
    Kept,
}
