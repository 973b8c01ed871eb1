//! A claim: what one cause says it holds of a transaction's time, and how strongly its own evidence says so.

use super::model::Cause;
use crate::model::Evidence;

/// Time lies in pools that several causes may share: what the CPUs are asked for, and what threads sleep on locks. Which
/// lock it was, the budget does not say; causes whose counters moved share what no cause has measured, in proportion.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) cause: Cause,
    /// Time of the mean transaction that is its own, in ms.
    pub(super) ms: f64,
    /// Of `ms`, what lies in the pool of locks.
    pub(super) lock_ms: f64,
    /// How strongly it asks for the rest of the locks' pool, 0 to 1.
    pub(super) lock_strength: f64,
    /// The same for the CPUs' pool.
    pub(super) cpu_strength: f64,
    /// How sure it is that what it holds is its doing, 0 to 1; reasoned, not measured.
    pub(super) certainty: f64,
    /// Comes first whatever its share: the measurement itself is not of the server.
    pub(super) is_first: bool,
    /// Subject and verb of the sentence, such as "waits for row locks hold".
    pub(super) what: &'static str,
    /// Why, as the sentence ends.
    pub(super) why: String,
    pub(super) evidence: Vec<Evidence>,
}

impl Claim {
    pub(super) fn new(cause: Cause, what: &'static str, why: String) -> Claim {
        Claim {
            cause,
            ms: 0.0,
            lock_ms: 0.0,
            lock_strength: 0.0,
            cpu_strength: 0.0,
            certainty: 0.8,
            is_first: false,
            what,
            why,
            evidence: Vec::new(),
        }
    }

    /// Time that lies in no pool.
    pub(super) fn holds(mut self, ms: f64) -> Claim {
        self.ms += ms.max(0.0);
        self
    }

    /// Time in the pool of locks that a counter measured to be this cause's.
    pub(super) fn holds_lock(mut self, ms: f64) -> Claim {
        self.ms += ms.max(0.0);
        self.lock_ms += ms.max(0.0);
        self
    }

    pub(super) fn asks_for_locks(mut self, strength: f64) -> Claim {
        self.lock_strength = strength.clamp(0.0, 1.0);
        self
    }

    pub(super) fn asks_for_cpu(mut self, strength: f64) -> Claim {
        self.cpu_strength = strength.clamp(0.0, 1.0);
        self
    }

    pub(super) fn certain(mut self, certainty: f64) -> Claim {
        self.certainty = certainty;
        self
    }

    pub(super) fn first(mut self) -> Claim {
        self.is_first = true;
        self
    }

    pub(super) fn rests_on(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Claim {
        self.evidence.extend(evidence);
        self
    }
}
