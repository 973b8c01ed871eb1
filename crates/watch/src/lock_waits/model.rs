//! One connection that waits for a lock.

use crate::digest::digest;

/// What sort of lock is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockKind {
    /// Of InnoDB, on rows of a table or on the table.
    Row,
    /// On the definition of a table or of another object.
    Metadata,
    /// Of the SQL layer, on a whole table.
    Table,
    /// A lock that statements ask for by a name of their own: GET_LOCK.
    User,
    /// Any other of the server, such as the global read lock.
    Other,
}

impl LockKind {
    pub const ALL: [LockKind; 5] =
        [LockKind::Row, LockKind::Metadata, LockKind::Table, LockKind::User, LockKind::Other];

    pub fn name(self) -> &'static str {
        match self {
            LockKind::Row => "row",
            LockKind::Metadata => "metadata",
            LockKind::Table => "table",
            LockKind::User => "user",
            LockKind::Other => "other",
        }
    }
}

/// A connection that waits, and the one that it waits for. Text that the server does not tell is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    pub kind: LockKind,
    /// The server's number of the connection that waits.
    pub waiting: u64,
    /// Of the one that holds the lock, or that comes next before it in the queue; `None` where the server does not tell.
    pub blocking: Option<u64>,
    /// Such as "shop.orders".
    pub object: String,
    pub index: String,
    /// As the server names it, such as "X" or "X,REC_NOT_GAP".
    pub mode: String,
    /// Whole seconds since the wait began; where the server does not tell that, since the statement began.
    pub waited_s: u64,
    /// Statements without their literals.
    pub statement: Option<String>,
    /// What the other one executes, or executed last where the server tells that; `None` where it is between statements.
    pub blocking_statement: Option<String>,
}

/// Columns of the text table, in the order of [`LockWait::cells`].
pub(super) const COLUMNS: [&str; 9] =
    ["kind", "waiting", "blocking", "object", "index", "mode", "waited_s", "statement", "blocking_statement"];

impl LockWait {
    pub(super) fn cells(self) -> Vec<Option<String>> {
        let told = |text: String| (!text.is_empty()).then_some(text);
        vec![
            Some(self.kind.name().to_string()),
            Some(self.waiting.to_string()),
            self.blocking.map(|id| id.to_string()),
            told(self.object),
            told(self.index),
            told(self.mode),
            Some(self.waited_s.to_string()),
            self.statement,
            self.blocking_statement,
        ]
    }
}

/// A statement as it may be told.
pub(super) fn statement(text: Option<String>) -> Option<String> {
    text.map(|text| digest(&text)).filter(|text| !text.is_empty())
}

/// A name as InnoDB quotes it: "`shop`.`orders`" is shop.orders.
pub(super) fn unquoted(name: &str) -> String {
    name.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_quotes_and_statements_their_literals() {
        assert_eq!(unquoted("`shop`.`orders` /* Partition `p0` */"), "shop.orders /* Partition p0 */");
        assert_eq!(statement(Some("UPDATE t SET v=7".to_string())), Some("UPDATE t SET v=?".to_string()));
        assert_eq!(statement(Some(" ".to_string())), None);
    }
}
