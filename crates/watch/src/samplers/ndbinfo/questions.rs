//! Tables of `ndbinfo`, and what their columns are called here.

use crate::metric::{Metric, counter, gauge};

/// A table of which each row is an instance.
#[derive(Debug)]
pub(super) struct Question {
    table: &'static str,
    /// What a row is about, as an expression.
    instance: &'static str,
    /// Expression and name.
    pub(super) columns: &'static [(&'static str, Metric)],
    /// Rows of one instance are added up.
    is_summed: bool,
}

impl Question {
    /// The instance, then the columns in their order.
    pub(super) fn sql(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|(expression, _)| match self.is_summed {
                true => format!("SUM({expression})"),
                false => (*expression).to_string(),
            })
            .collect();
        let grouped = if self.is_summed { " GROUP BY 1" } else { "" };
        format!("SELECT {}, {} FROM ndbinfo.{}{grouped}", self.instance, columns.join(", "), self.table)
    }
}

const NODE: &str = "CONCAT('node ', node_id)";
const THREAD: &str = "CONCAT('node ', node_id, ' thread ', thr_no)";

/// What blocks of data nodes counted: a name in a column, added up over the blocks.
pub(super) const COUNTERS: &str =
    "SELECT CONCAT('node ', node_id), LOWER(counter_name), SUM(val) FROM ndbinfo.counters GROUP BY 1, 2";

const MEMORY: [(&str, Metric); 2] = [
    ("used", gauge("memory_used_bytes", "bytes", "memory of this kind that is in use")),
    ("total", gauge("memory_total_bytes", "bytes", "memory of this kind")),
];
const DISK_PAGES: [(&str, Metric); 7] = [
    (
        "page_requests_direct_return",
        counter("disk_page_hits", "1", "requests for a page of disk data that the buffer had"),
    ),
    (
        "page_requests_wait_queue",
        counter("disk_page_waits_queue", "1", "requests that waited behind one for the same page"),
    ),
    ("page_requests_wait_io", counter("disk_page_waits_io", "1", "requests that read the page from disk")),
    ("pages_read", counter("disk_pages_read", "1", "pages of disk data read")),
    ("pages_written", counter("disk_pages_written", "1", "pages of disk data written to make room")),
    (
        "pages_written_lcp",
        counter("disk_pages_written_checkpoint", "1", "pages of disk data written by checkpoints"),
    ),
    (
        "log_waits",
        counter("disk_page_log_waits", "1", "pages that waited for the undo log before they were written"),
    ),
];
const LOG_BUFFERS: [(&str, Metric); 2] = [
    ("used", gauge("log_buffer_used_bytes", "bytes", "of a log buffer, what is not written yet")),
    ("total", gauge("log_buffer_total_bytes", "bytes", "size of a log buffer")),
];
const LINKS: [(&str, Metric); 5] = [
    ("bytes_sent", counter("link_sent_bytes", "bytes", "bytes that the node sent to the other one")),
    ("bytes_received", counter("link_received_bytes", "bytes", "bytes that it received from it")),
    ("connect_count", counter("link_connects", "1", "times that the link was made")),
    (
        "overload_count",
        counter("link_overloads", "1", "times that more waited to be sent than the link may hold"),
    ),
    ("slowdown_count", counter("link_slowdowns", "1", "times that scans were slowed down for that")),
];
const CPU: [(&str, Metric); 6] = [
    ("OS_user", gauge("thread_user_percent", "%", "share of the last second in user code")),
    ("OS_system", gauge("thread_system_percent", "%", "share of the last second in the kernel")),
    (
        "thread_exec",
        gauge(
            "thread_executing_percent",
            "%",
            "share of the last second in which the thread executed signals, by its own count",
        ),
    ),
    ("thread_sleeping", gauge("thread_sleeping_percent", "%", "share of the last second in which it slept")),
    (
        "thread_spinning",
        gauge("thread_spinning_percent", "%", "share of the last second in which it spun for work"),
    ),
    (
        "thread_buffer_full",
        gauge(
            "thread_buffer_full_percent",
            "%",
            "share of the last second in which it waited because buffers were full",
        ),
    ),
];
const LOOPS: [(&str, Metric); 5] = [
    ("c_loop", counter("thread_loops", "1", "turns of the thread's loop")),
    ("c_exec", counter("thread_signals", "1", "signals that the thread executed")),
    ("c_wait", counter("thread_waits", "1", "times that it slept for want of work")),
    ("os_ru_utime", counter("thread_user_us", "us", "CPU time in user code")),
    ("os_ru_stime", counter("thread_system_us", "us", "CPU time in the kernel")),
];
const BLOCKS: [(&str, Metric); 1] =
    [("1", gauge("thread_blocks", "1", "blocks of the data node's code that the thread executes"))];

pub(super) const TABLES: [Question; 7] = [
    Question {
        table: "memoryusage",
        instance: "CONCAT('node ', node_id, ' ', LOWER(memory_type))",
        columns: &MEMORY,
        is_summed: false,
    },
    Question { table: "diskpagebuffer", instance: NODE, columns: &DISK_PAGES, is_summed: true },
    Question {
        table: "logbuffers",
        instance: "CONCAT('node ', node_id, ' ', LOWER(log_type), ' ', log_id, ' ', log_part)",
        columns: &LOG_BUFFERS,
        is_summed: false,
    },
    Question {
        table: "transporters",
        instance: "CONCAT('node ', node_id, ' to ', remote_node_id)",
        columns: &LINKS,
        is_summed: true,
    },
    Question { table: "cpustat", instance: THREAD, columns: &CPU, is_summed: false },
    Question { table: "threadstat", instance: THREAD, columns: &LOOPS, is_summed: false },
    Question { table: "threadblocks", instance: THREAD, columns: &BLOCKS, is_summed: true },
];

pub(super) const METRICS: [&[Metric]; 7] = [
    &const { of(&MEMORY) },
    &const { of(&DISK_PAGES) },
    &const { of(&LOG_BUFFERS) },
    &const { of(&LINKS) },
    &const { of(&CPU) },
    &const { of(&LOOPS) },
    &const { of(&BLOCKS) },
];

const fn of<const N: usize>(columns: &[(&str, Metric); N]) -> [Metric; N] {
    let mut metrics = [columns[0].1; N];
    let mut at = 0;
    while at < N {
        metrics[at] = columns[at].1;
        at += 1;
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_names_its_table_and_columns() {
        assert_eq!(
            TABLES[0].sql(),
            "SELECT CONCAT('node ', node_id, ' ', LOWER(memory_type)), used, total FROM ndbinfo.memoryusage"
        );
        assert!(
            TABLES[1].sql().ends_with("SUM(log_waits) FROM ndbinfo.diskpagebuffer GROUP BY 1"),
            "{}",
            TABLES[1].sql()
        );
        let mut names: Vec<&str> =
            METRICS.iter().flat_map(|metrics| metrics.iter().map(|metric| metric.name)).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
