//! What can be shown of the Performance Schema: a view is one source of it, and the numbers that stand side by side.

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    Count,
    /// In nanoseconds.
    Time,
    Bytes,
}

/// A number of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// As it is recorded, such as "read_ns".
    pub metric: &'static str,
    /// As it is typed and shown, such as "read-time".
    pub name: &'static str,
    pub quantity: Quantity,
    /// A level rather than a count that grows: memory in use, locks held.
    pub is_level: bool,
}

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// As it is typed, such as "waits".
    pub name: &'static str,
    /// The source in a recording, such as "pfs_waits".
    pub source: &'static str,
    /// What a line is, such as "event".
    pub line: &'static str,
    /// One phrase for the list of views.
    pub about: &'static str,
    /// The first two are what a view is sorted by unless the user chooses: the second where it counted, else the first.
    pub columns: &'static [Column],
}

impl View {
    /// By the name that is typed.
    pub fn named(name: &str) -> Option<&'static View> {
        VIEWS.iter().find(|view| view.name == name)
    }

    pub fn column(&self, name: &str) -> Option<&'static Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Whether a line ends in the name of a wait, which may be one for work.
    pub(crate) fn is_of_waits(&self) -> bool {
        ["waits", "users", "hosts", "threads"].contains(&self.name)
    }

    /// Count and time, and nothing else.
    pub fn is_of_events(&self) -> bool {
        self.columns == EVENTS
    }
}

const fn count(metric: &'static str, name: &'static str) -> Column {
    Column { metric, name, quantity: Quantity::Count, is_level: false }
}

const fn time(metric: &'static str, name: &'static str) -> Column {
    Column { metric, name, quantity: Quantity::Time, is_level: false }
}

const fn bytes(metric: &'static str, name: &'static str) -> Column {
    Column { metric, name, quantity: Quantity::Bytes, is_level: false }
}

const EVENTS: &[Column] = &[count("count", "count"), time("time_ns", "time")];

const STATEMENTS: &[Column] = &[
    count("count", "count"),
    time("time_ns", "time"),
    time("cpu_ns", "cpu"),
    time("lock_ns", "table-lock"),
    count("rows_sent", "sent"),
    count("rows_examined", "examined"),
    count("rows_affected", "affected"),
    count("sort_rows", "sorted"),
    count("sort_merge_passes", "merge-passes"),
    count("tmp_tables", "tmp"),
    count("tmp_disk_tables", "tmp-disk"),
    count("no_index", "no-index"),
    count("errors", "errors"),
];

const FILES: &[Column] = &[
    count("reads", "reads"),
    time("read_ns", "read-time"),
    bytes("read_bytes", "read-bytes"),
    count("writes", "writes"),
    time("write_ns", "write-time"),
    bytes("write_bytes", "write-bytes"),
    count("misc", "misc"),
    time("misc_ns", "misc-time"),
];

const TABLE_IO: &[Column] = &[
    count("count", "rows"),
    time("time_ns", "time"),
    count("reads", "fetched"),
    time("read_ns", "fetch-time"),
    count("inserts", "inserted"),
    count("updates", "updated"),
    count("deletes", "deleted"),
    time("write_ns", "write-time"),
];

const MEMORY: &[Column] = &[
    Column { metric: "memory_bytes", name: "in-use", quantity: Quantity::Bytes, is_level: true },
    count("allocations", "allocations"),
];

const LOCKS: &[Column] =
    &[Column { metric: "locks", name: "locks", quantity: Quantity::Count, is_level: true }];

const fn view(
    name: &'static str,
    source: &'static str,
    line: &'static str,
    columns: &'static [Column],
    about: &'static str,
) -> View {
    View { name, source, line, about, columns }
}

/// All views, in the order in which they are listed.
#[rustfmt::skip]
pub const VIEWS: &[View] = &[
    view("waits", "pfs_waits", "event", EVENTS, "waits by event: mutexes, read-write locks, conditions, files, tables, sockets"),
    view("stages", "pfs_stages", "stage", EVENTS, "stages of statements"),
    view("statements", "pfs_statements", "statement", STATEMENTS, "statements by kind"),
    view("digests", "pfs_digests", "digest", STATEMENTS, "statements by what they say, literals left out"),
    view("transactions", "pfs_transactions", "transaction", EVENTS, "transactions"),
    view("files", "pfs_files", "file", FILES, "reads and writes by file"),
    view("file-types", "pfs_file_types", "event", FILES, "reads and writes by kind of file"),
    view("tables", "pfs_tables", "table", TABLE_IO, "rows read and changed, by table"),
    view("indexes", "pfs_indexes", "index", TABLE_IO, "rows read and changed, by index; what no index was used for, too"),
    view("table-locks", "pfs_table_locks", "table", EVENTS, "locks of the SQL layer, by table"),
    view("metadata-locks", "pfs_metadata_locks", "lock", LOCKS, "metadata locks held and waited for, the mean of what was found"),
    view("memory", "pfs_memory", "event", MEMORY, "memory by what took it"),
    view("lock-instances", "pfs_lock_instances", "lock and address", EVENTS, "waits by each instance of a lock, and how evenly they are used"),
    view("users", "pfs_users", "user and event", EVENTS, "waits by user"),
    view("user-statements", "pfs_user_statements", "user", EVENTS, "statements by user"),
    view("hosts", "pfs_hosts", "host and event", EVENTS, "waits by client host"),
    view("threads", "pfs_threads", "thread and event", EVENTS, "waits by thread"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sources_are_unique_and_columns_can_be_typed() {
        let mut names: Vec<&str> = VIEWS.iter().flat_map(|view| [view.name, view.source]).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 2 * VIEWS.len());
        for column in VIEWS.iter().flat_map(|view| view.columns) {
            assert!(column.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{column:?}");
        }
    }
}
