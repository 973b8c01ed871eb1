//! A connection that waits for a lock.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What sort of lock a connection waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// InnoDB's, on rows of a table or on the table.
    Row,
    /// On the definition of a table or of another object.
    Metadata,
    /// The SQL layer's, on a whole table.
    Table,
    /// A lock that statements ask for by a name: GET_LOCK.
    User,
    /// Any other of the server, such as the global read lock.
    #[default]
    Other,
}

impl LockKind {
    pub const ALL: [LockKind; 5] =
        [LockKind::Row, LockKind::Metadata, LockKind::Table, LockKind::User, LockKind::Other];

    /// Returns the name that tables and series use.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Row => "row",
            LockKind::Metadata => "metadata",
            LockKind::Table => "table",
            LockKind::User => "user",
            LockKind::Other => "other",
        }
    }

    /// Returns the kind with this name; [`LockKind::Other`] for a name that this version does not know.
    pub fn of_name(name: &str) -> LockKind {
        LockKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or_default()
    }
}

/// A connection that waits for a lock, and the one that it waits for. Text that the server does not give is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWait {
    pub kind: LockKind,
    /// The server's number of the connection that waits.
    pub waiting: u64,
    /// The number of the connection that holds the lock, or that comes next before it in the queue; `None` where the server does not
    /// give it.
    pub blocking: Option<u64>,
    /// Such as "shop.orders".
    pub object: String,
    pub index: String,
    /// As the server names it, such as "X" or "X,REC_NOT_GAP".
    pub mode: String,
    /// Whole seconds since the wait began; where the server does not give that, since the statement began.
    pub waited_s: u64,
    /// Statements without their literals.
    pub statement: Option<String>,
    /// What the other connection executes, or executed last where the server gives that; `None` where it is between statements.
    pub blocking_statement: Option<String>,
}

impl LockWait {
    /// Source of the text table, and of the gauge [`LockWait::WAITING`].
    pub const SOURCE: &'static str = "lock_waits";
    /// Gauge of the connections that wait, one instance per kind of lock.
    pub const WAITING: &'static str = "waiting";
    /// The server's status variable that counts the connections that wait for a row now.
    pub const ROW_WAITS_NOW: &'static str = "Innodb_row_lock_current_waits";

    /// Columns of the text table, in the order of [`LockWait::into_cells`].
    pub const COLUMNS: [&'static str; 9] = [
        "kind",
        "waiting",
        "blocking",
        "object",
        "index",
        "mode",
        "waited_s",
        "statement",
        "blocking_statement",
    ];

    /// Returns the row's cells, in the order of [`LockWait::COLUMNS`].
    pub fn into_cells(self) -> [Option<String>; 9] {
        let unless_empty = |text: String| (!text.is_empty()).then_some(text);
        [
            Some(self.kind.name().to_string()),
            Some(self.waiting.to_string()),
            self.blocking.map(|id| id.to_string()),
            unless_empty(self.object),
            unless_empty(self.index),
            unless_empty(self.mode),
            Some(self.waited_s.to_string()),
            self.statement,
            self.blocking_statement,
        ]
    }

    /// Reads a row whose cells are found by the column's name; `None` where it does not name the connection that waited.
    pub fn from_cells<'a>(cell: impl Fn(&str) -> Option<&'a str>) -> Option<LockWait> {
        let text = |name: &str| cell(name).unwrap_or_default().to_string();
        Some(LockWait {
            kind: LockKind::of_name(cell("kind").unwrap_or_default()),
            waiting: cell("waiting")?.parse().ok()?,
            blocking: cell("blocking").and_then(|id| id.parse().ok()),
            object: text("object"),
            index: text("index"),
            mode: text("mode"),
            waited_s: cell("waited_s").and_then(|text| text.parse().ok()).unwrap_or(0),
            statement: cell("statement").map(str::to_string),
            blocking_statement: cell("blocking_statement").map(str::to_string),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait() -> LockWait {
        LockWait {
            kind: LockKind::Metadata,
            waiting: 7,
            blocking: Some(8),
            object: "shop.orders".to_string(),
            mode: "X".to_string(),
            waited_s: 3,
            statement: Some("ALTER TABLE orders".to_string()),
            ..LockWait::default()
        }
    }

    fn read(cells: &[Option<String>; 9]) -> Option<LockWait> {
        let place = |name: &str| LockWait::COLUMNS.iter().position(|column| *column == name);
        LockWait::from_cells(|name| cells[place(name)?].as_deref())
    }

    #[test]
    fn a_wait_comes_back_from_its_cells() {
        assert_eq!(read(&wait().into_cells()), Some(wait()));
    }

    #[test]
    fn a_row_that_does_not_say_who_waits_is_none() {
        for waiting in [None, Some("x".to_string())] {
            let mut cells = wait().into_cells();
            cells[1] = waiting;
            assert_eq!(read(&cells), None);
        }
    }

    #[test]
    fn a_kind_of_a_later_version_is_another() {
        assert_eq!(LockKind::of_name("row"), LockKind::Row);
        assert_eq!(LockKind::of_name("tablespace"), LockKind::Other);
        assert_eq!(serde_json::to_string(&LockKind::Metadata).unwrap(), "\"metadata\"");
    }
}
