//! A claim: how much of a transaction's time one cause holds, by time that was measured to be its own.

use super::model::Cause;
pub(super) use super::model::Class;
use crate::model::{Evidence, Part};

/// A share comes from measured time only: waits of its own, or a part of the time that the CPUs hold. A setting, a version or a count
/// gives none. Such a claim names the parts of the budget that it may hold, and is listed as possible.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) cause: Cause,
    /// Time of the mean transaction that was measured to be its own, in ms.
    pub(super) ms: f64,
    /// Of `ms`, what lies in sleep on locks.
    pub(super) lock_ms: f64,
    /// Share of the CPUs' pool that was measured to be its own, 0 to 1.
    pub(super) cpu_share: f64,
    /// Where the time would lie that nobody has measured to be its own.
    pub(super) may_be_in: &'static [Part],
    /// How sure it is that what it holds is its doing, 0 to 1; reasoned, not measured.
    pub(super) certainty: f64,
    /// How its time was found out.
    pub(super) class: Class,
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
            cpu_share: 0.0,
            may_be_in: &[],
            certainty: 0.8,
            class: Class::Measured,
            is_first: false,
            what,
            why,
            evidence: Vec::new(),
        }
    }

    /// Waits that were measured to be its own, outside of the sleep on locks.
    pub(super) fn holds(mut self, ms: f64) -> Claim {
        self.ms += ms.max(0.0);
        self
    }

    /// Sleep on locks that was measured to be its own.
    pub(super) fn holds_lock(mut self, ms: f64) -> Claim {
        self.ms += ms.max(0.0);
        self.lock_ms += ms.max(0.0);
        self
    }

    /// A share of the time that the CPUs hold, by CPU time that was measured.
    pub(super) fn holds_cpu(mut self, share: f64) -> Claim {
        self.cpu_share = share.clamp(0.0, 1.0);
        self
    }

    /// Nothing measures what it holds: it is possible as long as one of these parts has time that nobody claims.
    pub(super) fn may_be_in(mut self, parts: &'static [Part]) -> Claim {
        self.may_be_in = parts;
        self
    }

    pub(super) fn certain(mut self, certainty: f64) -> Claim {
        self.certainty = certainty;
        self
    }

    pub(super) fn by(mut self, class: Class) -> Claim {
        self.class = class;
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
