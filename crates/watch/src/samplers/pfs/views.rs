//! What is read of the Performance Schema: one view is one table of it, or one way to add it up.

use crate::metric::{Metric, counter, gauge};

/// How often a view is read, at best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frequency {
    /// At every reading of the run.
    Always,
    /// What has more lines, or is looked up rather than drawn.
    NowAndThen,
    /// What has thousands of lines.
    Seldom,
    /// What rarely changes.
    Slowly,
}

/// A column and the number that is recorded of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// SQL; also what [`View::needs`] is checked by, where it is one column of the table.
    pub(crate) sql: &'static str,
    pub(crate) metric: Metric,
    /// Picoseconds in the server, nanoseconds here.
    picoseconds: bool,
}

impl Column {
    /// The number in the metric's unit.
    pub(crate) fn value(&self, text: &str) -> Option<i64> {
        const PICOSECONDS_PER_NS: u64 = 1000;
        match text.parse::<u64>() {
            Ok(picoseconds) if self.picoseconds => Some(crate::text::count(picoseconds / PICOSECONDS_PER_NS)),
            Ok(number) => Some(crate::text::count(number)),
            // Memory that another thread frees than the one that took it can count below nothing.
            Err(_) => text.parse::<i64>().ok(),
        }
    }
}

/// One table of the Performance Schema, or one sum over it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) source: &'static str,
    pub(crate) table: &'static str,
    /// JOIN, where another table names the lines.
    pub(crate) join: &'static str,
    /// SQL of what identifies a line.
    pub(crate) key: &'static str,
    /// Those that the server's table lacks are left out.
    pub(crate) columns: &'static [Column],
    /// Which lines; no line that counted nothing is ever needed.
    pub(crate) lines: &'static str,
    /// GROUP BY, ORDER BY and LIMIT, where there are any.
    pub(crate) rest: &'static str,
    pub(crate) frequency: Frequency,
    /// Cost of a reading in nanoseconds, per pair of an open table and one of its definitions. The server compares every one with every
    /// other. 0 where it does not.
    pub(crate) ns_per_pair: f64,
    /// A line that was not there counted nothing up to now. False where only the greatest lines are read.
    pub(crate) absent_is_zero: bool,
}

const fn number(sql: &'static str, metric: Metric) -> Column {
    Column { sql, metric, picoseconds: false }
}

const fn timer(sql: &'static str, metric: Metric) -> Column {
    Column { sql, metric, picoseconds: true }
}

const COUNT: Metric = counter("count", "1", "how often it happened");
/// Of digests, next to [`COUNT`].
pub(crate) const OWN_COUNT: Metric =
    counter("own_count", "1", "how often of that it was whyso itself that executed it");
const TIME: Metric = counter("time_ns", "ns", "time that it took, where the instrument is timed");
const LOCK_TIME: Metric = counter("lock_ns", "ns", "time that statements waited for table locks");
const CPU_TIME: Metric = counter("cpu_ns", "ns", "CPU time that statements used, as the server counts it");
const ERRORS: Metric = counter("errors", "1", "statements that ended in an error");
const WARNINGS: Metric = counter("warnings", "1", "warnings that statements gave");
const ROWS_AFFECTED: Metric = counter("rows_affected", "1", "rows that statements changed");
const ROWS_SENT: Metric = counter("rows_sent", "1", "rows that statements sent to clients");
const ROWS_EXAMINED: Metric = counter("rows_examined", "1", "rows that statements read to find their answer");
const TMP_DISK_TABLES: Metric =
    counter("tmp_disk_tables", "1", "temporary tables on disk that statements made");
const TMP_TABLES: Metric = counter("tmp_tables", "1", "temporary tables that statements made");
const FULL_JOINS: Metric = counter("full_joins", "1", "joins without an index that statements made");
const SCANS: Metric = counter("scans", "1", "full scans of the first table that statements made");
const SORT_MERGES: Metric =
    counter("sort_merge_passes", "1", "merge passes of sorts that did not fit the sort buffer");
const SORT_ROWS: Metric = counter("sort_rows", "1", "rows that statements sorted");
const NO_INDEX: Metric = counter("no_index", "1", "statements that used no index");
const READS: Metric = counter("reads", "1", "reads of a file, or rows fetched from a table");
const READ_TIME: Metric = counter("read_ns", "ns", "time that the reads took");
const READ_BYTES: Metric = counter("read_bytes", "bytes", "bytes that were read");
const WRITES: Metric = counter("writes", "1", "writes of a file, or rows of a table that were changed");
const WRITE_TIME: Metric = counter("write_ns", "ns", "time that the writes took");
const WRITE_BYTES: Metric = counter("write_bytes", "bytes", "bytes that were written");
const MISC: Metric = counter("misc", "1", "other calls on a file: open, close, sync, and the like");
const MISC_TIME: Metric = counter("misc_ns", "ns", "time that these took; fsync is among them");
const INSERTS: Metric = counter("inserts", "1", "rows that were inserted");
const UPDATES: Metric = counter("updates", "1", "rows that were updated");
const DELETES: Metric = counter("deletes", "1", "rows that were deleted");
const ALLOCATIONS: Metric = counter("allocations", "1", "times that memory was taken");
const MEMORY: Metric = gauge("memory_bytes", "bytes", "memory that is in use");
const LOCKS: Metric = gauge("locks", "1", "metadata locks that are held or waited for");

pub(crate) const METRICS: [Metric; 30] = [
    COUNT,
    OWN_COUNT,
    TIME,
    LOCK_TIME,
    CPU_TIME,
    ERRORS,
    WARNINGS,
    ROWS_AFFECTED,
    ROWS_SENT,
    ROWS_EXAMINED,
    TMP_DISK_TABLES,
    TMP_TABLES,
    FULL_JOINS,
    SCANS,
    SORT_MERGES,
    SORT_ROWS,
    NO_INDEX,
    READS,
    READ_TIME,
    READ_BYTES,
    WRITES,
    WRITE_TIME,
    WRITE_BYTES,
    MISC,
    MISC_TIME,
    INSERTS,
    UPDATES,
    DELETES,
    ALLOCATIONS,
    MEMORY,
];
pub(crate) const LOCK_METRICS: [Metric; 1] = [LOCKS];

const EVENTS: [Column; 2] = [number("COUNT_STAR", COUNT), timer("SUM_TIMER_WAIT", TIME)];
const EVENT_SUMS: [Column; 2] =
    [number("SUM(COUNT_STAR)", COUNT), timer("CAST(SUM(SUM_TIMER_WAIT) AS UNSIGNED)", TIME)];

/// Of statements, and of their digests.
pub(crate) const STATEMENTS: [Column; 16] = [
    EVENTS[0],
    EVENTS[1],
    timer("SUM_LOCK_TIME", LOCK_TIME),
    timer("SUM_CPU_TIME", CPU_TIME),
    number("SUM_ERRORS", ERRORS),
    number("SUM_WARNINGS", WARNINGS),
    number("SUM_ROWS_AFFECTED", ROWS_AFFECTED),
    number("SUM_ROWS_SENT", ROWS_SENT),
    number("SUM_ROWS_EXAMINED", ROWS_EXAMINED),
    number("SUM_CREATED_TMP_DISK_TABLES", TMP_DISK_TABLES),
    number("SUM_CREATED_TMP_TABLES", TMP_TABLES),
    number("SUM_SELECT_FULL_JOIN", FULL_JOINS),
    number("SUM_SELECT_SCAN", SCANS),
    number("SUM_SORT_MERGE_PASSES", SORT_MERGES),
    number("SUM_SORT_ROWS", SORT_ROWS),
    number("SUM_NO_INDEX_USED", NO_INDEX),
];

const FILES: [Column; 8] = [
    number("COUNT_READ", READS),
    timer("SUM_TIMER_READ", READ_TIME),
    number("SUM_NUMBER_OF_BYTES_READ", READ_BYTES),
    number("COUNT_WRITE", WRITES),
    timer("SUM_TIMER_WRITE", WRITE_TIME),
    number("SUM_NUMBER_OF_BYTES_WRITE", WRITE_BYTES),
    number("COUNT_MISC", MISC),
    timer("SUM_TIMER_MISC", MISC_TIME),
];

const TABLE_IO: [Column; 9] = [
    EVENTS[0],
    EVENTS[1],
    number("COUNT_FETCH", READS),
    timer("SUM_TIMER_FETCH", READ_TIME),
    number("COUNT_INSERT", INSERTS),
    number("COUNT_UPDATE", UPDATES),
    number("COUNT_DELETE", DELETES),
    number("COUNT_WRITE", WRITES),
    timer("SUM_TIMER_WRITE", WRITE_TIME),
];

const MEMORY_COLUMNS: [Column; 2] =
    [number("COUNT_ALLOC", ALLOCATIONS), number("CURRENT_NUMBER_OF_BYTES_USED", MEMORY)];

const COUNTED: &str = "COUNT_STAR > 0";
const FILE_COUNTED: &str = "COUNT_READ + COUNT_WRITE > 0";
const NO_TABLE_OF_THE_SERVERS: &str = "COUNT_STAR > 0 AND OBJECT_SCHEMA NOT IN \
     ('mysql', 'sys', 'performance_schema', 'information_schema')";
/// Only the lines with the most time are read of views with one line per file, per table, or per user and event.
const MOST_TIME: &str = "ORDER BY SUM_TIMER_WAIT DESC LIMIT 300";

/// Measured with 5,000 tables, MariaDB 10.11: 55 ms of CPU.
const NS_PER_PAIR: f64 = 2.2;
/// The same: 153 ms, with two indexes a table.
const NS_PER_PAIR_BY_INDEX: f64 = 6.1;

const BASE: View = View {
    source: "",
    table: "",
    join: "",
    key: "EVENT_NAME",
    columns: &EVENTS,
    lines: COUNTED,
    rest: "",
    frequency: Frequency::Always,
    ns_per_pair: 0.0,
    absent_is_zero: true,
};

/// Every view but the digests, which need more than a SELECT.
pub(crate) const VIEWS: [View; 16] = [
    View { source: "pfs_waits", table: "events_waits_summary_global_by_event_name", ..BASE },
    View { source: "pfs_stages", table: "events_stages_summary_global_by_event_name", ..BASE },
    View {
        source: "pfs_statements",
        table: "events_statements_summary_global_by_event_name",
        columns: &STATEMENTS,
        ..BASE
    },
    View { source: "pfs_transactions", table: "events_transactions_summary_global_by_event_name", ..BASE },
    View {
        source: "pfs_file_types",
        table: "file_summary_by_event_name",
        columns: &FILES,
        lines: FILE_COUNTED,
        ..BASE
    },
    View {
        source: "pfs_files",
        table: "file_summary_by_instance",
        key: "FILE_NAME",
        columns: &FILES,
        lines: FILE_COUNTED,
        rest: "ORDER BY COUNT_READ + COUNT_WRITE DESC LIMIT 300",
        frequency: Frequency::NowAndThen,
        absent_is_zero: false,
        ..BASE
    },
    View {
        source: "pfs_tables",
        table: "table_io_waits_summary_by_table",
        key: "CONCAT_WS('.', OBJECT_SCHEMA, OBJECT_NAME)",
        columns: &TABLE_IO,
        lines: NO_TABLE_OF_THE_SERVERS,
        rest: MOST_TIME,
        frequency: Frequency::NowAndThen,
        ns_per_pair: NS_PER_PAIR,
        absent_is_zero: false,
        ..BASE
    },
    View {
        source: "pfs_table_locks",
        table: "table_lock_waits_summary_by_table",
        key: "CONCAT_WS('.', OBJECT_SCHEMA, OBJECT_NAME)",
        lines: NO_TABLE_OF_THE_SERVERS,
        rest: MOST_TIME,
        frequency: Frequency::NowAndThen,
        ns_per_pair: NS_PER_PAIR,
        absent_is_zero: false,
        ..BASE
    },
    View {
        source: "pfs_indexes",
        table: "table_io_waits_summary_by_index_usage",
        key: "CONCAT_WS('.', OBJECT_SCHEMA, OBJECT_NAME, COALESCE(INDEX_NAME, '(no index)'))",
        columns: &TABLE_IO,
        lines: NO_TABLE_OF_THE_SERVERS,
        rest: MOST_TIME,
        frequency: Frequency::NowAndThen,
        ns_per_pair: NS_PER_PAIR_BY_INDEX,
        absent_is_zero: false,
        ..BASE
    },
    View {
        source: "pfs_memory",
        table: "memory_summary_global_by_event_name",
        columns: &MEMORY_COLUMNS,
        lines: "COUNT_ALLOC > 0",
        frequency: Frequency::NowAndThen,
        ..BASE
    },
    View {
        source: "pfs_lock_instances",
        table: "events_waits_summary_by_instance",
        key: "CONCAT(EVENT_NAME, ' ', LOWER(HEX(OBJECT_INSTANCE_BEGIN)))",
        lines: "COUNT_STAR > 0 AND EVENT_NAME LIKE 'wait/synch/%'",
        rest: "ORDER BY COUNT_STAR DESC LIMIT 1000",
        frequency: Frequency::Seldom,
        absent_is_zero: false,
        ..BASE
    },
    View {
        source: "pfs_users",
        table: "events_waits_summary_by_user_by_event_name",
        key: "CONCAT(USER, ' ', EVENT_NAME)",
        lines: "COUNT_STAR > 0 AND USER IS NOT NULL",
        rest: MOST_TIME,
        frequency: Frequency::Seldom,
        absent_is_zero: false,
        ..BASE
    },
    View {
        source: "pfs_hosts",
        table: "events_waits_summary_by_host_by_event_name",
        key: "CONCAT(HOST, ' ', EVENT_NAME)",
        lines: "COUNT_STAR > 0 AND HOST IS NOT NULL",
        rest: MOST_TIME,
        frequency: Frequency::Seldom,
        absent_is_zero: false,
        ..BASE
    },
    View {
        source: "pfs_threads",
        table: "events_waits_summary_by_thread_by_event_name",
        join: "JOIN performance_schema.threads USING (THREAD_ID)",
        key: "CONCAT(COALESCE(CONCAT('connection-', PROCESSLIST_ID), SUBSTRING_INDEX(NAME, '/', -1)), ' ', EVENT_NAME)",
        rest: MOST_TIME,
        frequency: Frequency::Seldom,
        absent_is_zero: false,
        ..BASE
    },
    View {
        source: "pfs_metadata_locks",
        table: "metadata_locks",
        key: "CONCAT(OBJECT_TYPE, ' ', LOCK_TYPE, ' ', LOCK_STATUS, ' ', \
              COALESCE(CONCAT_WS('.', OBJECT_SCHEMA, OBJECT_NAME), ''))",
        columns: &[number("COUNT(*)", LOCKS)],
        lines: "OBJECT_SCHEMA IS NULL OR OBJECT_SCHEMA <> 'performance_schema'",
        rest: "GROUP BY 1 ORDER BY 2 DESC LIMIT 200",
        frequency: Frequency::NowAndThen,
        absent_is_zero: false,
        ..BASE
    },
    View {
        source: "pfs_user_statements",
        table: "events_statements_summary_by_user_by_event_name",
        key: "USER",
        columns: &EVENT_SUMS,
        lines: "COUNT_STAR > 0 AND USER IS NOT NULL",
        rest: "GROUP BY USER LIMIT 300",
        frequency: Frequency::NowAndThen,
        ..BASE
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picoseconds_become_nanoseconds_and_nothing_wraps() {
        let [count, time] = EVENTS;
        assert_eq!(count.value("1234567"), Some(1_234_567));
        assert_eq!(time.value("1234567"), Some(1_234));
        assert_eq!(time.value("18446744073709551615"), Some(18_446_744_073_709_551));
        assert_eq!(count.value("9223372036854775807"), Some(i64::MAX));
        assert_eq!(count.value("18446744073709551615"), Some(i64::MAX));
        assert_eq!(count.value("-12"), Some(-12));
        assert_eq!(count.value("many"), None);
    }

    #[test]
    fn no_two_views_share_a_source_and_no_view_has_a_number_twice() {
        let mut sources: Vec<&str> = VIEWS.iter().map(|view| view.source).collect();
        sources.sort_unstable();
        sources.dedup();
        assert_eq!(sources.len(), VIEWS.len());
        for view in VIEWS {
            let mut names: Vec<&str> = view.columns.iter().map(|column| column.metric.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), view.columns.len(), "{}", view.source);
        }
    }
}
