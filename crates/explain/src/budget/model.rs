//! The time budget as data.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::part::Part;
use crate::activities::ActivityTime;
use crate::model::{Estimate, SeriesName};

/// Where the time of a level's mean transaction went. `parts` and `unaccounted_ms` add up to `response_ms`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Budget {
    /// Index of the level.
    pub level: u32,
    pub users: u32,
    /// The best level once more.
    pub repeat: bool,
    /// Mean response time of a transaction, as the load generator measured it.
    pub response_ms: f64,
    /// Leaves in the order of [`Part::ALL`], a mean a transaction; 0 is listed, what was not measured is not.
    pub parts: Vec<PartTime>,
    /// What no leaf holds; below 0 where they hold more than the response time.
    pub unaccounted_ms: f64,
    /// Parts split by wait class, where stacks were sampled: the largest first within a part. Those of waits add up to their part;
    /// of `cpu` only what spun is listed.
    #[serde(default)]
    pub classes: Vec<ClassTime>,
    /// CPU time of all threads of the server by activity, where stacks were sampled: the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activities: Vec<ActivityTime>,
    /// `None` where no sample fell into a request.
    pub cpu_split: Option<CpuSplit>,
    /// The answer had arrived and a CPU was idle, until the load generator's thread ran: a part of `client_delay`.
    pub client_wakeup_ms: f64,
    /// The server is on another machine: the budget stops at the wire.
    pub remote: bool,
    /// Something else loaded the server: requests stand in for transactions.
    #[serde(default)]
    pub recorded: bool,
    /// What a reader must know about these numbers, a sentence each.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct PartTime {
    pub part: Part,
    pub ms: f64,
    /// The series that it is based on; empty where the load generator measured it itself.
    pub series: Vec<SeriesName>,
}

/// Time of a part that was spent on one wait class: the part as it was counted, divided as the sampled stacks are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ClassTime {
    pub part: Part,
    /// Such as "redo_flush"; empty for what no rule names.
    pub class: String,
    pub ms: f64,
    /// Samples, or waits, that it is based on.
    pub count: u64,
}

impl ClassTime {
    /// The class as sentences and tables name it, such as "redo flush"; `None` for what has none.
    pub fn words(&self) -> Option<String> {
        (!self.class.is_empty()).then(|| self.class.replace('_', " "))
    }
}

/// `cpu` by mode, from samples of the threads that worked on requests: CPU accounting by ticks does not have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct CpuSplit {
    pub samples: u64,
    /// Share in user mode, 0 to 1, with its 95 % interval (E. B. Wilson's score interval, 1927).
    pub user: Estimate,
}

impl Budget {
    /// What the times are a mean of: "transaction" or "request".
    pub fn unit(&self) -> &'static str {
        if self.recorded { "request" } else { "transaction" }
    }

    /// Time in one part; 0 where it was not measured.
    pub fn ms(&self, part: Part) -> f64 {
        self.parts.iter().find(|found| found.part == part).map_or(0.0, |found| found.ms)
    }

    /// The classes of a part.
    pub fn classes_of(&self, part: Part) -> impl Iterator<Item = &ClassTime> {
        self.classes.iter().filter(move |class| class.part == part)
    }

    /// The largest part first.
    pub fn largest_first(&self) -> Vec<&PartTime> {
        let mut parts: Vec<&PartTime> = self.parts.iter().collect();
        parts.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        parts
    }
}
