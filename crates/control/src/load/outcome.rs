//! What a load measured, and how it ended.

use whyso_explain::capacity::Answer;
use whyso_explain::versus::Comparison;
use whyso_record::run::Level;

/// What a load measured, and how it ended.
#[derive(Clone, Debug, Default)]
pub struct LoadOutcome {
    /// Every level in the order in which they ran; probes and rounds too.
    pub levels: Vec<Level>,
    pub capacity: Option<Answer>,
    pub comparison: Option<Comparison>,
    /// Why the load was cut short by a failure, in a sentence; `None` where it was not.
    pub failure: Option<String>,
    /// Ended by Ctrl-C.
    pub interrupted: bool,
}

impl LoadOutcome {
    /// Whether every level held what was required of it. Of a search for capacity, whether a rate was found that did.
    pub fn holds_slo(&self) -> bool {
        match &self.capacity {
            Some(answer) => answer.bounds.holds_per_s.is_some(),
            None => self.levels.iter().flat_map(|level| &level.result.slo).all(|slo| slo.held),
        }
    }
}
