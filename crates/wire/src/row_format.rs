//! Which form rows have.

/// Which form rows have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Answers to `COM_QUERY`.
    Text,
    /// Answers to `COM_STMT_EXECUTE`.
    Binary,
}
