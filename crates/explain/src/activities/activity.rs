//! Activities by name.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What a thread does on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    Connect,
    Parse,
    Optimise,
    Tables,
    TableOpen,
    Scan,
    IndexRead,
    Evaluate,
    Aggregate,
    Versions,
    Sort,
    QueryCache,
    IndexChange,
    RowLocks,
    Transaction,
    Log,
    PageRead,
    PageFlush,
    Purge,
    Replication,
    Network,
    Spin,
    Switching,
    Allocation,
    Other,
}

use Activity::{
    Aggregate, Allocation, Connect, Evaluate, IndexChange, IndexRead, Log, Network, Optimise, Other,
    PageFlush, PageRead, Parse, Purge, QueryCache, Replication, RowLocks, Scan, Sort, Spin, Switching,
    TableOpen, Tables, Transaction, Versions,
};

impl Activity {
    /// All activities, in the order of a statement's life.
    pub const ALL: [Activity; 25] = [
        Connect,
        Parse,
        Optimise,
        Tables,
        TableOpen,
        Scan,
        IndexRead,
        Evaluate,
        Aggregate,
        Versions,
        Sort,
        QueryCache,
        IndexChange,
        RowLocks,
        Transaction,
        Log,
        PageRead,
        PageFlush,
        Purge,
        Replication,
        Network,
        Spin,
        Switching,
        Allocation,
        Other,
    ];

    /// Returns the name that programs know, as in `rules.txt`.
    pub fn name(self) -> &'static str {
        match self {
            Connect => "connect",
            Parse => "parse",
            Optimise => "optimise",
            Tables => "tables",
            TableOpen => "table_open",
            Scan => "scan",
            IndexRead => "index_read",
            Evaluate => "evaluate",
            Aggregate => "aggregate",
            Versions => "versions",
            Sort => "sort",
            QueryCache => "query_cache",
            IndexChange => "index_change",
            RowLocks => "row_locks",
            Transaction => "transaction",
            Log => "log",
            PageRead => "page_read",
            PageFlush => "page_flush",
            Purge => "purge",
            Replication => "replication",
            Network => "network",
            Spin => "spin",
            Switching => "switching",
            Allocation => "allocation",
            Other => "other",
        }
    }

    /// Returns what a sentence calls it: "34 % of the server's CPU time went into …".
    pub fn text(self) -> &'static str {
        match self {
            Connect => "making and ending connections",
            Parse => "parsing",
            Optimise => "optimising",
            Tables => "finding and locking tables",
            TableOpen => "opening tables",
            Scan => "reading rows one after the other",
            IndexRead => "reading rows by an index",
            Evaluate => "evaluating conditions and expressions",
            Aggregate => "adding up rows",
            Versions => "walking back versions of rows",
            Sort => "sorting and temporary tables",
            QueryCache => "the query cache",
            IndexChange => "changing rows and indexes",
            RowLocks => "managing row locks",
            Transaction => "committing",
            Log => "writing logs",
            PageRead => "reading pages",
            PageFlush => "flushing pages",
            Purge => "purging old versions",
            Replication => "replication",
            Network => "receiving requests and sending answers",
            Spin => "spinning for locks",
            Switching => "putting threads to sleep and waking them",
            Allocation => "allocating memory",
            Other => "other work",
        }
    }

    pub(super) fn of_name(name: &str) -> Option<Activity> {
        Activity::ALL.into_iter().find(|activity| activity.name() == name)
    }

    /// Whether memory that is allocated for it counts as its own.
    pub(super) fn owns_allocations(self) -> bool {
        matches!(
            self,
            Connect | TableOpen | Sort | QueryCache | Versions | PageRead | PageFlush | Purge | Replication
        )
    }

    /// Whether statements need it to do what they are there for. Work that is not ordinary is a cause of its own.
    pub(crate) fn is_ordinary(self) -> bool {
        !matches!(
            self,
            Connect | TableOpen | Versions | Sort | QueryCache | PageRead | PageFlush | Spin | RowLocks
        )
    }
}

/// CPU time that the server's threads spent on one activity, per transaction, by sampled stacks. Threads that work in the background count, too: the
/// activities add up to the server's CPU time, not to the part `cpu`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ActivityTime {
    pub activity: Activity,
    pub ms: f64,
    /// Share of the server's sampled CPU time, 0 to 1.
    pub share: f64,
    pub samples: u64,
}
