//! A statement that the server may be asked about.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionStatement {
    /// The server's number of the connection. `None`: any that executes it.
    pub(super) connection: Option<u64>,
    /// Without its literals.
    pub(super) statement: String,
}
