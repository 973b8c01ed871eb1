//! What an experiment shows of a cause.

use serde::{Deserialize, Serialize};
use whyso_explain::ab::AbDesign;
use whyso_explain::model::{Cause, Gain, Limit};

use crate::{Cost, MeasuredGain, SlowedPoint};

/// The smallest gain that matters, as a multiple of the throughput, where the user names no other.
pub const SMALLEST_GAIN: f64 = 1.05;

/// What became of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofVerdict {
    /// Its removal gains more than the smallest gain that matters.
    Confirmed,
    /// Its removal gains no more than that.
    Refuted,
    /// The interval holds the smallest gain that matters: it is not known whether it gains more.
    TooSmall,
    /// No experiment was possible or permitted.
    NotTestable,
}

impl ProofVerdict {
    pub fn name(self) -> &'static str {
        match self {
            ProofVerdict::Confirmed => "confirmed",
            ProofVerdict::Refuted => "refuted",
            ProofVerdict::TooSmall => "too-small",
            ProofVerdict::NotTestable => "not-testable",
        }
    }
}

/// One cause, and what its experiment showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    pub cause: Cause,
    /// Share of the response time that was measured to be its own, 0 to 1.
    pub share: f64,
    /// Id of the intervention.
    pub intervention: String,
    /// What was done.
    pub words: String,
    /// What else it changes.
    pub also: String,
    pub costs: Cost,
    /// `None` where there was no experiment.
    pub design: Option<AbDesign>,
    pub predicted_gain: Option<Gain>,
    /// Extrapolated where `slowed` holds something.
    pub measured_gain: Option<MeasuredGain>,
    /// Throughput with CPUs or storage that were slowed by known amounts.
    #[serde(default)]
    pub slowed: Vec<SlowedPoint>,
    pub verdict: ProofVerdict,
    /// Why it is not testable; else empty.
    pub why: String,
    /// What the experiment changed is as it was.
    pub undone: bool,
}

/// The suspects of a recording, tested one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proofs {
    /// Id of the recording.
    pub run: String,
    pub users: u32,
    pub smallest_gain: f64,
    pub proofs: Vec<Proof>,
    /// What bounds throughput once the best of them is applied; `None` where nothing was confirmed, or it was not recorded.
    pub after: Option<After>,
    /// Ended by Ctrl-C.
    pub interrupted: bool,
}

/// The server without what was confirmed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct After {
    /// What was applied.
    pub change: String,
    /// Id of its recording.
    pub run: String,
    pub transactions_per_s: f64,
    pub limit: Option<Limit>,
    /// The first suspect that remains; empty where there is none.
    pub cause: String,
}

/// What would be done about one suspect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    pub cause: Cause,
    pub share: f64,
    pub predicted_gain: Option<Gain>,
    /// Id of the intervention.
    pub intervention: String,
    pub words: String,
    /// Such as "innodb_flush_log_at_trx_commit=2"; empty where nothing can be done.
    pub change: String,
    pub costs: Cost,
    /// Why it can't be tested; empty where it can.
    pub why: String,
}

/// The verdict on a measured gain. `smallest`: the smallest gain that matters.
///
/// ```
/// use whyso_remedy::{MeasuredGain, ProofVerdict, judge};
///
/// let gain = |low, high| MeasuredGain { value: (low + high) / 2.0, low, high };
/// assert_eq!(judge(gain(1.2, 1.4), 1.05), ProofVerdict::Confirmed);
/// assert_eq!(judge(gain(0.98, 1.02), 1.05), ProofVerdict::Refuted);
/// assert_eq!(judge(gain(1.0, 1.2), 1.05), ProofVerdict::TooSmall);
/// ```
pub fn judge(measured: MeasuredGain, smallest: f64) -> ProofVerdict {
    if measured.low > smallest {
        ProofVerdict::Confirmed
    } else if measured.high <= smallest {
        ProofVerdict::Refuted
    } else {
        ProofVerdict::TooSmall
    }
}
