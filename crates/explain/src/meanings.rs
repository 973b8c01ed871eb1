//! What the well-known counters stand for, in plain words, and how much the growth of one shows
//! about a server that stopped getting faster.

use crate::model::SeriesName;

/// What sort of quantity a counter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Time spent waiting.
    WaitTime,
    /// How often something was waited for.
    Wait,
    /// Rounds of busy waiting.
    Spin,
    /// CPU time.
    Cpu,
    /// Writes forced to the disk.
    Sync,
    /// Threads put off the CPU and on again.
    Switch,
    /// Reads and writes.
    Io,
    /// Transactions that had to give way.
    Conflict,
    /// Rows, pages and sorts handled.
    Work,
    /// Memory allocated, files opened, connections created.
    Resource,
    /// Bytes and packets between client and server.
    Network,
    /// Statements: the workload fixes them.
    Statement,
    /// Not known to this table.
    Unknown,
    /// Grows with every reading of the counters themselves.
    Bookkeeping,
    /// Means nothing per transaction.
    Excluded,
}

impl Kind {
    /// How much a significant growth counts when counters are ranked. What costs a transaction time
    /// comes before what it merely does more often; reasoned, not measured.
    pub(crate) fn weight(self) -> f64 {
        match self {
            Kind::WaitTime => 4.0,
            Kind::Wait | Kind::Cpu | Kind::Conflict => 3.0,
            Kind::Spin | Kind::Sync => 2.5,
            Kind::Switch | Kind::Io => 2.0,
            Kind::Work => 1.5,
            Kind::Resource => 0.7,
            Kind::Network | Kind::Unknown => 0.5,
            Kind::Statement => 0.2,
            Kind::Bookkeeping | Kind::Excluded => 0.02,
        }
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    /// The sampler, or a prefix of its name that ends in `*`; "*" for any.
    source: &'static str,
    /// The metric without regard to case, or a prefix that ends in `*`.
    metric: &'static str,
    pub(crate) kind: Kind,
    /// Unit, where the source does not say it; else empty.
    pub(crate) unit: &'static str,
    /// How a sentence calls it; empty where a sentence never does.
    pub(crate) name: &'static str,
    /// What it stands for.
    pub(crate) text: &'static str,
}

static UNKNOWN: Meaning =
    Meaning { source: "*", metric: "*", kind: Kind::Unknown, unit: "", name: "", text: "" };

/// The first line that fits.
pub(crate) fn meaning_of(series: &SeriesName) -> &'static Meaning {
    TABLE
        .iter()
        .find(|line| matches(line.source, &series.source) && matches(line.metric, &series.metric))
        .unwrap_or(&UNKNOWN)
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        None => name.eq_ignore_ascii_case(pattern),
        Some(prefix) => name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
    }
}

const fn line(
    source: &'static str,
    metric: &'static str,
    kind: Kind,
    unit: &'static str,
    name: &'static str,
    text: &'static str,
) -> Meaning {
    Meaning { source, metric, kind, unit, name, text }
}

use Kind::{
    Bookkeeping, Conflict, Cpu, Excluded, Io, Network, Resource, Spin, Statement, Switch, Sync, Wait,
    WaitTime, Work,
};

#[rustfmt::skip]
static TABLE: &[Meaning] = &[
    // Our own readings, and clocks.
    line("watch", "*", Excluded, "", "", "what the readings themselves cost"),
    line("trace*", "*", Excluded, "", "", "where the time of requests went; the time budget says it"),
    line("neighbours", "*", Excluded, "", "", "what other programs used; the suspects say it"),
    line("access_log", "*", Excluded, "", "", "what a web server's access log has; `whyso access-log` shows it by kind of request"),
    line("sessions", "*", Excluded, "", "", "what sessions were found doing; the suspects say it"),
    line("innodb_mutexes", "*", Excluded, "", "", "waits for InnoDB's own locks; `whyso locks` shows them"),
    line("innodb_status", "*", Excluded, "", "", "InnoDB's own status; its counters hold the same where a server has them"),
    line("replication", "*", Excluded, "", "", "what a replica has fetched and executed, and how far it is behind"),
    line("applying", "*", Excluded, "", "", "what a replica's appliers were found to do; the finding on its lag says it"),
    line("pfs_*", "*", Excluded, "", "", "what the Performance Schema counted; `whyso pfs` shows it"),
    line("threads", "*", Excluded, "", "", "where the time of the server's threads went; the time budget says it"),
    line("load*", "*", Excluded, "", "", "what the load did; the level's result says it"),
    line("*", "Uptime*", Excluded, "", "", "time since the server started"),
    line("*", "idle_ns", Excluded, "", "", "time that no CPU had work"),
    line("*", "guest*", Excluded, "", "", "time given to virtual machines"),
    line("*", "Com_show_*", Bookkeeping, "", "", "SHOW statements, among them those that read the counters"),
    line("*", "Com_admin_commands", Bookkeeping, "", "", "pings, changes of user and the like"),
    line("*", "Com_set_option", Bookkeeping, "", "", "SET statements"),
    line("*", "Handler_read_rnd_next", Bookkeeping, "", "rows read by table scans", "rows read in a scan; SHOW STATUS and the information schema scan too"),
    line("*", "Handler_tmp_write", Bookkeeping, "", "rows written to temporary tables", "rows written to temporary tables; SHOW STATUS writes some too"),
    line("*", "Rows_tmp_read", Bookkeeping, "", "", "rows read from temporary tables; SHOW STATUS reads some too"),
    line("*", "Created_tmp_tables", Bookkeeping, "", "temporary tables", "temporary tables made; SHOW STATUS makes some too"),
    line("*", "Performance_schema_*", Bookkeeping, "", "", "what the Performance Schema could not keep"),
    line("*", "Questions", Statement, "", "", "statements sent by clients"),
    line("*", "Queries", Statement, "", "", "statements, those within stored programs too"),
    line("*", "Com_*", Statement, "", "", "statements of this kind"),
    line("*", "Prepared_stmt*", Statement, "", "", "prepared statements"),

    // One thread's share shows nothing of the others, and which threads are followed changes from level to level.
    line("*", "thread_*", Excluded, "", "", "one thread of the process"),
    line("*", "discard*", Bookkeeping, "", "", "room given back to the device, when files were deleted"),

    // The machine, and its processes.
    line("cpu", "user_ns", Cpu, "ns", "CPU time in user mode", "CPU time of programs, all of the machine's"),
    line("cpu", "nice_ns", Cpu, "ns", "", "CPU time of programs with low priority"),
    line("cpu", "system_ns", Cpu, "ns", "CPU time in the kernel", "CPU time of the kernel on behalf of programs, all of the machine's"),
    line("cpu", "softirq_ns", Cpu, "ns", "CPU time in soft interrupts", "CPU time of the kernel after interrupts, network mostly"),
    line("cpu", "irq_ns", Cpu, "ns", "CPU time in interrupts", "CPU time of the kernel in interrupts"),
    line("cpu", "steal_ns", WaitTime, "ns", "CPU time taken by the hypervisor", "time that a CPU wanted to run and the hypervisor ran another machine"),
    line("cpu", "iowait_ns", Excluded, "ns", "", "idle time with a read or write under way"),
    line("cpu", "context_switches", Switch, "", "context switches", "times that a CPU went from one thread to another"),
    line("cpu", "interrupts", Switch, "", "interrupts", "interrupts, all of the machine's"),
    line("cpu", "softirqs", Switch, "", "soft interrupts", "soft interrupts, all of the machine's"),
    line("cpu", "forks", Resource, "", "", "processes and threads made"),
    line("pressure", "some_ns", WaitTime, "ns", "time that some task waited for this resource", "time in which at least one task waited for this resource"),
    line("pressure", "full_ns", WaitTime, "ns", "time that all tasks waited for this resource", "time in which every task that was not idle waited for this resource"),
    line("cgroup", "cpu_throttled_ns", WaitTime, "ns", "time held back by the CPU quota", "the CPU quota was used up and the server had to wait"),
    line("cgroup", "cpu_throttled_periods", Wait, "", "times held back by the CPU quota", "the CPU quota was used up and the server had to wait"),
    line("cgroup", "*", Resource, "", "", "the server's control group"),
    line("generator_process", "*", Bookkeeping, "", "", "the load generator's own process"),
    line("server_process", "involuntary*", Switch, "", "the server's involuntary context switches", "times that a thread of the server was put off the CPU while it had work"),
    line("server_process", "nonvoluntary*", Switch, "", "the server's involuntary context switches", "times that a thread of the server was put off the CPU while it had work"),
    line("server_process", "voluntary*", Switch, "", "the server's voluntary context switches", "times that a thread of the server went to sleep"),
    line("server_process", "runqueue*", WaitTime, "ns", "the server's time waiting for a CPU", "time that threads of the server were ready to run and no CPU was free"),
    line("server_process", "user_ns", Cpu, "ns", "the server's CPU time in user mode", "CPU time of the server's process in its own code"),
    line("server_process", "system_ns", Cpu, "ns", "the server's CPU time in the kernel", "CPU time of the kernel on behalf of the server's process"),
    line("server_process", "run_ns", Cpu, "ns", "the server's CPU time", "CPU time of the server's process"),
    line("server_process", "timeslices", Switch, "", "times that a thread of the server got a CPU", "times that a thread of the server was put on a CPU"),
    line("server_process", "io_delay_ns", WaitTime, "ns", "the server's time waiting for a disk", "time that threads of the server waited for a disk"),
    line("server_process", "disk_*", Io, "bytes", "the server's disk traffic", "bytes that moved between disks and the server's process"),
    line("server_process", "read_call*", Network, "", "", "read calls of the server's process, sockets too"),
    line("server_process", "write_call*", Network, "", "", "write calls of the server's process, sockets too"),
    line("server_process", "major*", Io, "", "the server's page faults from disk", "pages of the server's process that had to be read from disk"),
    line("server_process", "minor*", Resource, "", "the server's page faults", "pages of memory that the server's process touched for the first time"),
    line("disk", "read_bytes", Io, "bytes", "bytes read from disk", "bytes read from this device"),
    line("disk", "write_bytes", Io, "bytes", "bytes written to disk", "bytes written to this device"),
    line("disk", "reads", Io, "", "disk reads", "reads that this device served"),
    line("disk", "writes", Io, "", "disk writes", "writes that this device served"),
    line("disk", "flushes", Sync, "", "disk flushes", "times that this device had to make its cache safe"),
    line("disk", "flush_ns", WaitTime, "ns", "time in disk flushes", "time that flushes of this device took"),
    line("disk", "read_ns", WaitTime, "ns", "time in disk reads", "time that reads took on this device, queueing included"),
    line("disk", "write_ns", WaitTime, "ns", "time in disk writes", "time that writes took on this device, queueing included"),
    line("disk", "queue_ns", Resource, "ns", "", "time of all requests in this device's queue"),
    line("disk", "busy_ns", Resource, "ns", "", "time that this device had something to do"),
    line("disk", "*", Resource, "", "", "work of this device"),
    line("net", "sent_bytes", Network, "bytes", "", "bytes sent on this interface"),
    line("net", "received_bytes", Network, "bytes", "", "bytes received on this interface"),
    line("net", "retrans*", Wait, "", "TCP retransmissions", "segments that had to be sent again"),
    line("net", "listen*", Wait, "", "dropped connection attempts", "connection attempts that found the listen queue full"),
    line("net", "*", Network, "", "", "network traffic"),
    line("memory", "pgmajfault", Io, "", "page faults from disk", "pages that had to be read from disk"),
    line("memory", "pgfault", Resource, "", "page faults", "pages of memory touched for the first time"),
    line("memory", "pswp*", Io, "", "pages swapped", "pages written to swap or read back"),
    line("memory", "allocstall*", Wait, "", "stalls for memory", "times that a program had to free memory itself before it got some"),
    line("memory", "nr_dirtied", Io, "", "pages of files changed in memory", "pages of the page cache that were written to, by every program"),
    line("memory", "nr_written", Io, "", "pages of files written to disk", "pages of the page cache that the kernel wrote to disk, for every program"),
    line("memory", "*", Resource, "", "", "the kernel's memory management"),

    // Row locks.
    line("*", "Innodb_row_lock_time_avg", Excluded, "", "", "mean of row lock waits since the server started"),
    line("*", "Innodb_row_lock_time_max", Excluded, "", "", "longest row lock wait since the server started"),
    line("*", "lock_row_lock_time_*", Excluded, "", "", "mean and longest row lock wait since the server started"),
    line("*", "Innodb_row_lock_time", WaitTime, "ms", "time waiting for row locks", "time that statements waited for row locks of other transactions"),
    line("*", "lock_row_lock_time", WaitTime, "ms", "time waiting for row locks", "time that statements waited for row locks of other transactions"),
    line("*", "Innodb_row_lock_waits", Wait, "", "row lock waits", "times that a statement had to wait for a row lock of another transaction"),
    line("*", "lock_row_lock_waits", Wait, "", "row lock waits", "times that a statement had to wait for a row lock of another transaction"),
    line("*", "lock_rec_lock_waits", Wait, "", "row lock waits", "times that a statement had to wait for a row lock of another transaction"),
    line("*", "lock_rec_lock_requests", Work, "", "row lock requests", "row locks asked for"),
    line("*", "lock_table_lock_waits", Wait, "", "InnoDB table lock waits", "times that a transaction waited for a lock on a whole InnoDB table"),
    line("*", "lock_table_lock*", Work, "", "InnoDB table locks", "locks on whole InnoDB tables, mostly intention locks"),
    line("*", "Innodb_deadlocks", Conflict, "", "deadlocks", "transactions rolled back to break a deadlock"),
    line("*", "lock_deadlocks", Conflict, "", "deadlocks", "transactions rolled back to break a deadlock"),
    line("*", "lock_timeouts", Conflict, "", "lock wait timeouts", "statements that gave up waiting for a row lock"),
    line("*", "Innodb_available_undo_logs", Excluded, "", "", "undo logs that are available"),
    line("*", "trx_rollbacks*", Conflict, "", "rollbacks", "transactions rolled back"),
    line("*", "Handler_rollback", Conflict, "", "rollbacks", "transactions rolled back within a storage engine"),

    // Latches and spinning.
    line("*", "innodb_rwlock_s_os_waits", Wait, "", "latch waits", "times that a thread slept for a read-write latch inside InnoDB"),
    line("*", "innodb_rwlock_x_os_waits", Wait, "", "latch waits", "times that a thread slept for a read-write latch inside InnoDB"),
    line("*", "innodb_rwlock_sx_os_waits", Wait, "", "latch waits", "times that a thread slept for a read-write latch inside InnoDB"),
    line("*", "innodb_rwlock_*", Spin, "", "latch spins", "spinning on read-write latches inside InnoDB"),
    line("*", "Innodb_mutex_os_waits", Wait, "", "InnoDB mutex waits", "times that a thread slept for a mutex inside InnoDB"),
    line("*", "Innodb_mutex_spin*", Spin, "", "InnoDB mutex spins", "spinning on mutexes inside InnoDB"),
    line("*", "Innodb_s_lock_os_waits", Wait, "", "shared latch waits", "times that a thread slept for a shared latch inside InnoDB"),
    line("*", "Innodb_x_lock_os_waits", Wait, "", "exclusive latch waits", "times that a thread slept for an exclusive latch inside InnoDB"),
    line("*", "Innodb_s_lock_spin*", Spin, "", "shared latch spins", "spinning on shared latches inside InnoDB"),
    line("*", "Innodb_x_lock_spin*", Spin, "", "exclusive latch spins", "spinning on exclusive latches inside InnoDB"),
    line("*", "Innodb_adaptive_hash_hash_searches", Work, "", "", "index look-ups that the adaptive hash answered"),
    line("*", "adaptive_hash_searches", Work, "", "", "index look-ups that the adaptive hash answered"),
    line("*", "Innodb_adaptive_hash_non_hash_searches", Work, "", "searches down the index tree", "index look-ups that had to walk the tree"),
    line("*", "adaptive_hash_searches_btree", Work, "", "searches down the index tree", "index look-ups that had to walk the tree"),

    // Redo log and syncs.
    line("*", "Innodb_log_waits", Wait, "", "redo buffer waits", "times that the redo log buffer was too small and had to be flushed first"),
    line("*", "log_waits", Wait, "", "redo buffer waits", "times that the redo log buffer was too small and had to be flushed first"),
    line("*", "Innodb_os_log_fsyncs", Sync, "", "redo log syncs", "redo log writes forced to the disk"),
    line("*", "os_log_fsyncs", Sync, "", "redo log syncs", "redo log writes forced to the disk"),
    line("*", "Innodb_data_fsyncs", Sync, "", "data file syncs", "writes to InnoDB's files forced to the disk"),
    line("*", "os_data_fsyncs", Sync, "", "data file syncs", "writes to InnoDB's files forced to the disk"),
    line("*", "Innodb_log_write_requests", Work, "", "redo log records", "records written to the redo log buffer"),
    line("*", "log_write_requests", Work, "", "redo log records", "records written to the redo log buffer"),
    line("*", "Innodb_log_writes", Io, "", "redo log writes", "writes to the redo log file"),
    line("*", "log_writes", Io, "", "redo log writes", "writes to the redo log file"),
    line("*", "Innodb_os_log_written", Io, "bytes", "redo log written", "bytes written to the redo log"),
    line("*", "os_log_bytes_written", Io, "bytes", "redo log written", "bytes written to the redo log"),
    line("*", "Innodb_lsn_*", Excluded, "", "", "positions in the redo log"),
    line("*", "log_lsn_*", Excluded, "", "", "positions in the redo log"),
    line("*", "Innodb_checkpoint_*", Excluded, "", "", "how far the last checkpoint is behind"),
    line("*", "Binlog_commits", Statement, "", "", "transactions written to the binary log"),
    line("*", "Binlog_group_commit*", Sync, "", "binary log group commits", "groups of transactions written to the binary log together"),
    line("*", "Binlog_cache_disk_use", Io, "", "binary log spills", "transactions too large for the binary log cache"),
    line("*", "Binlog_bytes_written", Io, "bytes", "binary log written", "bytes written to the binary log"),

    // Buffer pool and files.
    line("*", "Innodb_buffer_pool_wait_free", Wait, "", "waits for a free page", "times that a thread waited for a free page in the buffer pool"),
    line("*", "buffer_pool_wait_free", Wait, "", "waits for a free page", "times that a thread waited for a free page in the buffer pool"),
    line("*", "Innodb_buffer_pool_reads", Io, "", "pages read from disk", "pages that were not in the buffer pool"),
    line("*", "buffer_pool_reads", Io, "", "pages read from disk", "pages that were not in the buffer pool"),
    line("*", "Innodb_buffer_pool_read_requests", Work, "", "page reads", "pages asked for, in memory or not"),
    line("*", "buffer_pool_read_requests", Work, "", "page reads", "pages asked for, in memory or not"),
    line("*", "Innodb_buffer_pool_write_requests", Work, "", "page changes", "changes to pages in memory"),
    line("*", "buffer_pool_write_requests", Work, "", "page changes", "changes to pages in memory"),
    line("*", "Innodb_buffer_pool_pages_flushed", Io, "", "pages flushed", "changed pages written back"),
    line("*", "Innodb_buffer_pool_pages_lru_flushed", Io, "", "pages flushed to make room", "changed pages written back because free ones ran out"),
    line("*", "Innodb_buffer_pool_pages_*", Excluded, "", "", "pages of the buffer pool, a level rather than a count"),
    line("*", "Innodb_buffer_pool_*", Resource, "", "", "buffer pool"),
    line("*", "Innodb_pages_read", Io, "", "pages read from disk", "pages read from InnoDB's files"),
    line("*", "Innodb_pages_written", Io, "", "pages written", "pages written to InnoDB's files"),
    line("*", "Innodb_pages_created", Work, "", "pages made", "new pages"),
    line("*", "Innodb_data_reads", Io, "", "file reads", "read calls on InnoDB's files"),
    line("*", "os_data_reads", Io, "", "file reads", "read calls on InnoDB's files"),
    line("*", "Innodb_data_writes", Io, "", "file writes", "write calls on InnoDB's files"),
    line("*", "os_data_writes", Io, "", "file writes", "write calls on InnoDB's files"),
    line("*", "Innodb_data_read", Io, "bytes", "data read", "bytes read from InnoDB's files"),
    line("*", "Innodb_data_written", Io, "bytes", "data written", "bytes written to InnoDB's files"),
    line("*", "Innodb_dblwr_*", Io, "", "doublewrite pages", "pages and writes of the doublewrite buffer"),
    line("*", "Innodb_ibuf_*", Work, "", "", "change buffer"),
    line("*", "ibuf_*", Work, "", "", "change buffer"),
    line("*", "index_page_splits", Work, "", "page splits", "index pages split to make room"),
    line("*", "index_page_*", Work, "", "", "index pages merged and rearranged"),
    line("*", "purge_*", Work, "", "purge work", "old row versions taken away"),
    line("*", "trx_*", Statement, "", "", "transactions of this kind"),

    line("*", "buffer_pages_created", Work, "", "pages made", "new pages"),
    line("*", "buffer_pages_read", Io, "", "pages read from disk", "pages read from InnoDB's files"),
    line("*", "buffer_pages_written", Io, "", "pages written", "pages written to InnoDB's files"),
    line("*", "buffer_data_reads", Io, "bytes", "data read", "bytes read from InnoDB's files"),
    line("*", "buffer_data_written", Io, "bytes", "data written", "bytes written to InnoDB's files"),
    line("*", "log_on_*", Wait, "", "waits for the redo log", "waits of transactions for the redo log's writer and flusher"),
    line("*", "log_*", Work, "", "", "redo log"),
    line("*", "Innodb_background_log_sync", Bookkeeping, "", "", "syncs of the redo log in the background, one per second"),
    line("*", "Innodb_master_thread_*", Bookkeeping, "", "", "rounds of InnoDB's background thread"),
    line("*", "Innodb_max_trx_id", Excluded, "", "", "number of the last transaction"),
    line("*", "Threads_running", Excluded, "", "", "threads at work, a level rather than a count"),
    line("*", "Threads_connected", Excluded, "", "", "connections, a level rather than a count"),
    line("*", "Threads_cached", Excluded, "", "", "threads kept for later, a level rather than a count"),
    line("*", "Optimizer_join_prefixes_check_calls", Work, "", "", "join orders that the optimizer tried"),
    line("*", "Resultset_metadata_skipped", Network, "", "", "answers sent without their column definitions"),

    // Rows and plans.
    line("*", "Innodb_rows_read", Work, "", "rows read", "rows read from InnoDB tables"),
    line("*", "Innodb_rows_*", Work, "", "rows changed", "rows changed in InnoDB tables"),
    line("*", "dml_*", Work, "", "rows handled", "rows read or changed in InnoDB tables"),
    line("*", "Rows_read", Work, "", "rows read", "rows read by all storage engines"),
    line("*", "Rows_sent", Statement, "", "", "rows sent to clients"),
    line("*", "Handler_read_*", Work, "", "rows read by handlers", "row reads asked of storage engines"),
    line("*", "Handler_*", Work, "", "", "calls to storage engines"),
    line("*", "Select_full_join", Work, "", "joins without an index", "joins that scanned a whole table"),
    line("*", "Select_*", Work, "", "", "selects by how they found their rows"),
    line("*", "Sort_merge_passes", Io, "", "sort merge passes", "sorts too large for the sort buffer"),
    line("*", "Sort_*", Work, "", "", "sorts"),
    line("*", "Created_tmp_disk_tables", Io, "", "temporary tables on disk", "temporary tables that did not fit in memory"),
    line("*", "Created_tmp_files", Io, "", "temporary files", "temporary files"),

    // The SQL layer's own locks, caches and threads.
    line("*", "Table_locks_waited", Wait, "", "table lock waits", "times that a statement waited for a table lock"),
    line("*", "Table_locks_immediate", Statement, "", "", "table locks had at once"),
    line("*", "Table_open_cache_misses", Resource, "", "table cache misses", "tables opened because the cache had no instance free"),
    line("*", "Table_open_cache_overflows", Resource, "", "table cache overflows", "tables closed because the cache was full"),
    line("*", "Table_open_cache_hits", Statement, "", "", "tables found in the cache"),
    line("*", "Opened_*", Resource, "", "", "tables, files and definitions opened"),
    line("*", "Threads_created", Resource, "", "threads made", "threads made for connections"),
    line("*", "Threadpool_*", Resource, "", "", "thread pool"),
    line("*", "Connections", Bookkeeping, "", "", "connection attempts"),
    line("*", "Aborted_*", Resource, "", "aborted connections", "connections that ended badly"),
    line("*", "Connection_errors_*", Resource, "", "connection errors", "connections refused"),
    line("*", "Access_denied_errors", Resource, "", "", "logins refused"),
    line("*", "Slow_queries", Work, "", "slow queries", "statements slower than long_query_time"),
    line("*", "Busy_time", Excluded, "", "", "time of statements, with user statistics on"),
    line("*", "Cpu_time", Excluded, "", "", "CPU time of statements, with user statistics on"),
    line("*", "Bytes_received", Network, "bytes", "", "bytes received by the server"),
    line("*", "Bytes_sent", Network, "bytes", "", "bytes sent by the server; readings of the counters too"),
    line("*", "Qcache_*", Wait, "", "query cache work", "query cache, which one lock guards"),
    line("*", "Key_*", Work, "", "", "MyISAM and Aria index blocks"),
    line("*", "Aria_*", Bookkeeping, "", "", "Aria, which internal temporary tables use"),
    line("*", "Feature_*", Bookkeeping, "", "", "features used"),
    line("*", "Memory_used*", Excluded, "", "", "memory in use, a level rather than a count"),
    line("*", "wsrep_flow_control_paused_ns", WaitTime, "ns", "time paused by flow control", "time that replication of the cluster was paused for a slow node"),
    line("*", "wsrep_local_bf_aborts", Conflict, "", "brute-force aborts", "transactions that gave way to the cluster's"),
    line("*", "wsrep_local_cert_failures", Conflict, "", "certification failures", "transactions refused by the cluster"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(source: &str, metric: &str) -> Kind {
        let series =
            SeriesName { source: source.to_string(), metric: metric.to_string(), ..SeriesName::default() };
        meaning_of(&series).kind
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        assert_eq!(kind("status", "Innodb_row_lock_time"), Kind::WaitTime);
        assert_eq!(kind("innodb_metrics", "lock_row_lock_waits"), Kind::Wait);
        assert_eq!(kind("status", "Com_show_status"), Kind::Bookkeeping);
        assert_eq!(kind("status", "Com_select"), Kind::Statement);
        assert_eq!(kind("cpu", "context_switches"), Kind::Switch);
        assert_eq!(kind("watch", "cpu_ns"), Kind::Excluded);
        assert_eq!(kind("status", "Something_new"), Kind::Unknown);
        assert_eq!(kind("status", "é"), Kind::Unknown);
    }

    #[test]
    fn every_line_can_be_reached() {
        for (at, line) in TABLE.iter().enumerate() {
            let series = SeriesName {
                source: line.source.replace('*', ""),
                metric: line.metric.replace('*', ""),
                ..SeriesName::default()
            };
            let found = meaning_of(&series);
            let is_reached = std::ptr::eq(found, line);
            assert!(is_reached, "line {at}, {}: hidden by {}", line.metric, found.metric);
            assert!(!line.text.is_empty(), "{} has no meaning", line.metric);
        }
    }

    #[test]
    fn stars_stand_at_the_end_only() {
        for line in TABLE {
            for pattern in [line.source, line.metric] {
                let stem = pattern.strip_suffix('*').unwrap_or(pattern);
                assert!(!stem.contains('*'), "{pattern}");
            }
        }
    }
}
