//! What each cause is called in a few words, and what is worth a try against it.
//!
//! A remedy is advice, and no result: the gain next to it is an estimate until an experiment has tested it.

use super::model::Cause;

impl Cause {
    /// What holds the time, in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Cause::Cpu => "the statements' own work on the CPUs",
            Cause::Runqueue => "waits for a CPU although some are idle",
            Cause::WakeupLatency => "waking idle CPUs",
            Cause::PreemptedHolder => "locks whose holder waits for a CPU",
            Cause::Spin => "spinning for locks",
            Cause::Swap => "memory pages that come back from swap",
            Cause::RedoWrite => "writes to the redo log",
            Cause::RedoFlush => "syncs of the redo log at commits",
            Cause::Doublewrite => "writes to the doublewrite buffer",
            Cause::RowLock => "row locks",
            Cause::Deadlock => "attempts that deadlocks ended",
            Cause::LockSys => "latches of InnoDB's lock system",
            Cause::MetadataLock => "metadata locks",
            Cause::MdlMap => "the mutex of the metadata locks",
            Cause::GrantLock => "the lock of the access rights",
            Cause::TableLock => "table locks",
            Cause::UserLock => "locks that GET_LOCK() takes",
            Cause::KernelInodeLock => "the kernel's lock of a file",
            Cause::AutoIncrement => "locks of AUTO_INCREMENT columns",
            Cause::BufferPoolMiss => "reads of pages that are not in the buffer pool",
            Cause::PageFlush => "waits for pages that are flushed",
            Cause::Checkpoint => "waits for room in the redo log",
            Cause::IndexLatch => "latches of indexes",
            Cause::PageLatch => "latches of pages",
            Cause::AdaptiveHash => "latches of the adaptive hash index",
            Cause::TrxSys => "the list of transactions",
            Cause::PurgeLag => "old row versions that purge has not removed",
            Cause::ThreadConcurrency => "a bound on threads that may work",
            Cause::TableCache => "opening tables",
            Cause::QueryCache => "the query cache",
            Cause::TmpTableSort => "sorts and temporary tables",
            Cause::FullScan => "rows that are read and not used",
            Cause::ConnectionChurn => "making connections",
            Cause::Network => "the way between client and server",
            Cause::Proxy => "the proxy between clients and servers",
            Cause::SlowReader => "clients that take their answers slowly",
            Cause::Sleep => "SLEEP()",
            Cause::CpuQuota => "a limit on the server's CPU time",
            Cause::Binlog => "syncs of the binary log",
            Cause::SemiSync => "waits until a replica has the changes",
            Cause::FlowControl => "pauses that a slower node asks for",
            Cause::Certification => "attempts that changes of other nodes ended",
            Cause::NdbPool => "waits for the links to the data nodes",
            Cause::NdbRoundTrips => "waits for answers of the data nodes",
            Cause::NdbCpuBound => "data nodes that have too much to do",
            Cause::NdbDiskBuffer => "pages of disk data that the data nodes' buffer does not have",
            Cause::NoisyNeighbour => "other programs on the same CPUs",
            Cause::Observer => "whyso's own watching",
            Cause::Generator => "the load generator",
            Cause::Unsaturated => "too few users to fill the server",
            Cause::Unknown => "unknown",
        }
    }

    /// What is worth a try; `None` where whyso knows nothing that holds for most servers.
    pub fn remedy(self) -> Option<&'static str> {
        let remedy = match self {
            Cause::Cpu => "cheaper or fewer statements per transaction, or more CPUs",
            Cause::Runqueue => "let the server use every CPU: look at its CPU set",
            Cause::WakeupLatency => "keep CPUs from deep idle states",
            Cause::PreemptedHolder => "fewer threads at work at a time: a thread pool",
            Cause::Spin => "shorter spinning: innodb_sync_spin_loops",
            Cause::Swap => "a smaller buffer pool, so that all of the server stays in memory",
            Cause::RedoWrite => "a faster disk for the redo log, or fewer bytes per transaction",
            Cause::RedoFlush => "more work per commit, or a disk that syncs faster",
            Cause::Doublewrite => "a faster disk for the doublewrite buffer",
            Cause::RowLock => "shorten the transactions that hold these rows",
            Cause::Deadlock => "lock rows in the same order in every transaction",
            Cause::LockSys => "fewer transactions that wait for the same rows",
            Cause::MetadataLock => "end the transaction that holds the table, or change it at a quiet time",
            Cause::MdlMap => "a newer version of the server",
            Cause::GrantLock => "change rights at a quiet time",
            Cause::TableLock => "a storage engine that locks rows",
            Cause::UserLock => "hold the lock of GET_LOCK() for a shorter time",
            Cause::KernelInodeLock => "fewer threads that write to the file at a time",
            Cause::AutoIncrement => "innodb_autoinc_lock_mode=2",
            Cause::BufferPoolMiss => "a larger innodb_buffer_pool_size, or fewer pages per statement",
            Cause::PageFlush => "a higher innodb_io_capacity, or a faster disk",
            Cause::Checkpoint => "a larger redo log",
            Cause::IndexLatch | Cause::PageLatch => "spread the changes over more pages or partitions",
            Cause::AdaptiveHash => "innodb_adaptive_hash_index=OFF",
            Cause::PurgeLag => "end old transactions, and give purge more threads",
            Cause::ThreadConcurrency => "raise the bound on threads that may work",
            Cause::TableCache => "a larger table_open_cache",
            Cause::QueryCache => "query_cache_type=OFF",
            Cause::TmpTableSort => "an index in the order of the sort",
            Cause::FullScan => "an index for the condition",
            Cause::ConnectionChurn => "keep connections open: a pool",
            Cause::Network => "fewer round trips per transaction",
            Cause::Proxy => {
                "fewer round trips per transaction, CPUs of its own for the proxy, or clients that connect to servers directly"
            }
            Cause::SlowReader => "fetch fewer rows, or take them faster",
            Cause::Sleep => "remove the SLEEP()",
            Cause::CpuQuota => "raise the limit on CPU time",
            Cause::Binlog => "more work per commit, or a disk that syncs faster",
            Cause::SemiSync => "a replica that is nearer and syncs faster, or more work per commit",
            Cause::FlowControl => {
                "make the node faster that asks for pauses: wsrep_slave_threads, its CPUs, its disk"
            }
            Cause::Certification => "send the changes of the same rows to one node",
            Cause::NdbCpuBound => "more threads or data nodes, or CPUs of their own for them",
            Cause::NdbDiskBuffer => "a larger DiskPageBufferMemory",
            Cause::NdbPool => {
                "where CPUs are left, more connections to the data nodes: ndb_cluster_connection_pool"
            }
            Cause::NdbRoundTrips => {
                "fewer requests to data nodes per transaction, data nodes that are nearer, or CPUs of their own for them"
            }
            Cause::NoisyNeighbour => "move the other programs away",
            Cause::Observer => "watch less: leave out --stacks and --trace-sql",
            Cause::Generator => "more CPUs for the load generator",
            Cause::Unsaturated => "more users",
            Cause::TrxSys | Cause::Unknown => return None,
        };
        Some(remedy)
    }
}
