//! What the server's threads do on a CPU: their sampled stacks by activity, as [`whyso_profile::Rules`] divides their waits by class.
//!
//! A stack's activity is that of the innermost function that `rules.txt` names. Memory allocation is an activity of its own only where
//! what asks for the memory is ordinary work of a statement: memory of a connection, of a table that is opened, of a sort or of the query cache
//! belongs to these.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::budget::ActivityTime;
use crate::model::SampledActivity;
use whyso_profile::{FunctionName, Rules};

const RULES: &str = include_str!("rules.txt");

/// Fewer samples divide nothing.
pub(crate) const SAMPLES_MIN: u64 = 30;

/// What a thread does on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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

    fn of_name(name: &str) -> Option<Activity> {
        Activity::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether memory that is allocated for it counts as its own.
    fn owns_allocations(self) -> bool {
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

fn rules() -> &'static Rules {
    static PARSED: OnceLock<Rules> = OnceLock::new();
    // A test parses them.
    PARSED.get_or_init(|| Rules::parse(RULES).unwrap_or_default())
}

/// Returns the activity of a stack that was sampled on a CPU, innermost function first.
pub fn activity_of(stack: &[FunctionName]) -> Activity {
    let named = |stack| {
        rules().innermost(stack, "cpu").and_then(|(place, name)| Some((place, Activity::of_name(name)?)))
    };
    let Some((place, activity)) = named(stack) else { return Other };
    if activity != Allocation {
        return activity;
    }
    let mut around = &stack[place + 1..];
    while let Some((next, outer)) = named(around) {
        if outer != Allocation {
            return if outer.owns_allocations() { outer } else { Allocation };
        }
        around = &around[next + 1..];
    }
    Allocation
}

/// CPU time by activity over a level, all threads of the server together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activities {
    times: Vec<(Activity, f64, u64)>,
    total_ns: f64,
    samples: u64,
}

impl Activities {
    /// `None` where too few stacks were sampled.
    pub(crate) fn of(sampled: &[SampledActivity]) -> Option<Activities> {
        let sums = Activity::ALL.map(|activity| {
            let of_activity =
                sampled.iter().filter(|one| one.activity == activity && (0.0..1e24).contains(&one.ns));
            let (ns, count) = of_activity.fold((0.0, 0), |(ns, count), one| (ns + one.ns, count + one.count));
            (activity, ns, count)
        });
        let mut times: Vec<(Activity, f64, u64)> = sums.into_iter().filter(|(_, ns, _)| *ns > 0.0).collect();
        times.sort_by(|a, b| b.1.total_cmp(&a.1));
        let total_ns = times.iter().map(|(_, ns, _)| ns).sum();
        let samples = times.iter().map(|(_, _, count)| count).sum();
        (samples >= SAMPLES_MIN).then_some(Activities { times, total_ns, samples })
    }

    /// Returns the share of the server's CPU time, 0 to 1.
    pub(crate) fn share(&self, activities: &[Activity]) -> f64 {
        let ns: f64 =
            self.times.iter().filter(|(one, _, _)| activities.contains(one)).map(|(_, ns, _)| ns).sum();
        if self.total_ns > 0.0 { ns / self.total_ns } else { 0.0 }
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns each activity's time per transaction, the largest first.
    pub(crate) fn per_transaction(&self, transactions: f64) -> Vec<ActivityTime> {
        let time = |(activity, ns, samples): &(Activity, f64, u64)| ActivityTime {
            activity: *activity,
            ms: ns / 1e6 / transactions,
            share: ns / self.total_ns,
            samples: *samples,
        };
        self.times.iter().map(time).collect()
    }

    /// Returns the activities with at least this share of the CPU time, the largest first.
    pub(crate) fn largest(&self, share_min: f64) -> Vec<(Activity, f64)> {
        let shares = self.times.iter().map(|(one, ns, _)| (*one, ns / self.total_ns));
        shares.filter(|(_, share)| *share >= share_min).collect()
    }
}

#[cfg(test)]
mod tests;
