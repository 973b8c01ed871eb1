//! Two sides that alternate in short windows: how much one is of the other, and how surely.
//!
//! Windows come in pairs of neighbours, whose order was drawn at random. What they show together, [`whyso_inference::alternation`] computes. This
//! module chooses the quantities. The verdict is by throughput. A comparison that ended when it was sure has the interval of a sequence, which is valid
//! however often it is read; one that ended as planned has the interval of its pairs.

use serde::{Deserialize, Serialize};
use whyso_inference::{
    Alternation, AlternationVerdict, Estimate, NoiseScope, Pair, Question, Sequence, alternation, carry_over,
};

/// Pairs whose spread scales the sequence, and which it does not judge.
const PILOT_PAIRS: usize = 8;

/// What one side did in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowResult {
    pub seconds: f64,
    pub transactions: u64,
    pub errors: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// CPU time of the server; `None` where its process is not on this machine.
    pub server_cpu_s: Option<f64>,
}

/// Two neighbours, one of each side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairResult {
    /// The start of the servers that it belongs to, from 0.
    pub start: u32,
    pub variant_first: bool,
    pub baseline: WindowResult,
    pub variant: WindowResult,
}

/// How the sides alternated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AbDesign {
    /// On one server.
    SwitchBack,
    /// On two servers that stand ready.
    Duet,
}

impl AbDesign {
    pub fn name(self) -> &'static str {
        match self {
            AbDesign::SwitchBack => "switch-back",
            AbDesign::Duet => "duet",
        }
    }
}

/// The variant against the baseline, by throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AbVerdict {
    Faster,
    Slower,
    /// No difference that matters.
    Equivalent,
    Undecided,
}

/// Everything that was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbOutcome {
    pub baseline: String,
    pub variant: String,
    pub design: AbDesign,
    pub pairs: Vec<PairResult>,
    /// Measured in each window.
    pub window_s: f64,
    /// Cut off after each switch.
    pub cut_s: f64,
    /// Of each side.
    pub users: [u32; 2],
    pub starts: u32,
    /// How long it took, from the first window to the last.
    pub seconds: f64,
    pub matters: f64,
    /// As many pairs as there was time for, when the first was measured.
    pub pairs_planned: usize,
    /// The answer was sure before the time was over.
    pub ended_early: bool,
    /// Ended by Ctrl-C.
    pub interrupted: bool,
    /// All settings are as they were.
    pub undone: bool,
}

impl From<Estimate> for AbRatio {
    fn from(found: Estimate) -> AbRatio {
        AbRatio { value: found.value, low: found.low95, high: found.high95 }
    }
}

/// A ratio of the variant to the baseline, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbRatio {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// One quantity of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbMetric {
    /// Such as "transactions_per_s" or "p99_ms".
    pub name: String,
    /// Mean over the windows.
    pub baseline: f64,
    pub variant: f64,
    pub ratio: AbRatio,
    pub smallest_detectable: Option<f64>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbAnswer {
    /// Of throughput.
    pub ratio: AbRatio,
    pub verdict: AbVerdict,
    pub smallest_detectable: Option<f64>,
    pub pairs: usize,
    /// Whether the interval contains what differs from start to start.
    pub contains_starts: bool,
    /// The factor by which windows before change the ratio; `None` where it is too little to matter, or not known.
    pub carry_over: Option<AbRatio>,
    /// Throughput first.
    pub metrics: Vec<AbMetric>,
}

type Measure = fn(&WindowResult) -> Option<f64>;

const METRICS: [(&str, Measure); 5] = [
    ("transactions_per_s", throughput),
    ("p50_ms", |window| Some(window.p50_ms)),
    ("p95_ms", |window| Some(window.p95_ms)),
    ("p99_ms", |window| Some(window.p99_ms)),
    ("server_cpu_ms", |window| Some(window.server_cpu_s? * 1e3 / window.transactions as f64)),
];

fn throughput(window: &WindowResult) -> Option<f64> {
    Some(window.transactions as f64 / window.seconds)
}

/// The answer to all pairs; `None` where there are too few.
pub fn answer(outcome: &AbOutcome) -> Option<AbAnswer> {
    let found = METRICS.iter().filter_map(|of| metric(outcome, *of));
    let (mut metrics, of_pairs): (Vec<AbMetric>, Vec<Alternation>) = found.unzip();
    let (first, whole) = (metrics.first_mut()?, of_pairs.first()?);
    let mut seen = whole.verdict;
    if outcome.ended_early {
        let mut decision = Decision::new(outcome.matters, outcome.pairs_planned);
        seen = outcome.pairs.iter().fold(seen, |_, pair| decision.push(pair));
        first.ratio = decision.ratio().unwrap_or(first.ratio);
    }
    let carry_over = harmful_carry_over(&outcome.pairs, outcome.matters);
    let verdict = match seen {
        _ if carry_over.is_some() => AbVerdict::Undecided,
        AlternationVerdict::Higher => AbVerdict::Faster,
        AlternationVerdict::Lower => AbVerdict::Slower,
        AlternationVerdict::Equivalent => AbVerdict::Equivalent,
        AlternationVerdict::Undecided => AbVerdict::Undecided,
    };
    Some(AbAnswer {
        ratio: first.ratio,
        verdict,
        smallest_detectable: first.smallest_detectable,
        pairs: outcome.pairs.len(),
        contains_starts: whole.contains == NoiseScope::WithinAndBetweenStarts,
        carry_over,
        metrics,
    })
}

fn metric(outcome: &AbOutcome, (name, of): (&str, Measure)) -> Option<(AbMetric, Alternation)> {
    let pairs: Vec<Pair> = outcome.pairs.iter().filter_map(|pair| numbers(pair, of)).collect();
    let found = alternation(&pairs, &Question { matters: outcome.matters, ..Question::default() })?;
    let mean = |of: fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let metric = AbMetric {
        name: name.to_string(),
        baseline: mean(|pair| pair.baseline),
        variant: mean(|pair| pair.variant),
        ratio: found.ratio.into(),
        smallest_detectable: found.smallest_detectable,
    };
    Some((metric, found))
}

/// `None` where one of the windows has no such quantity.
fn numbers(pair: &PairResult, of: Measure) -> Option<Pair> {
    let PairResult { start, variant_first, .. } = *pair;
    Some(Pair { start, variant_first, baseline: of(&pair.baseline)?, variant: of(&pair.variant)? })
}

/// The factor by which windows before change the ratio, where that is sure and as large as what matters.
pub fn harmful_carry_over(pairs: &[PairResult], matters: f64) -> Option<AbRatio> {
    let numbers: Vec<Pair> = pairs.iter().filter_map(|pair| numbers(pair, throughput)).collect();
    let bias = carry_over(&numbers)?.bias;
    let is_sure = bias.low95 > 1.0 || bias.high95 < 1.0;
    let is_large = bias.value > matters || bias.value < 1.0 / matters;
    (is_sure && is_large).then(|| bias.into())
}

/// Whether the answer is sure, asked after each pair of one start.
pub struct Decision {
    matters: f64,
    /// After those of the pilot.
    pairs_planned: usize,
    pilot: Vec<f64>,
    sequence: Option<Sequence>,
}

impl Decision {
    /// `pairs_planned`: as many as there is time for.
    pub fn new(matters: f64, pairs_planned: usize) -> Decision {
        let pairs_planned = pairs_planned.saturating_sub(PILOT_PAIRS).max(1);
        Decision { matters, pairs_planned, pilot: Vec::new(), sequence: None }
    }

    /// Enters a pair, and returns what is known.
    pub fn push(&mut self, pair: &PairResult) -> AlternationVerdict {
        let log_ratio = numbers(pair, throughput).and_then(|pair| pair.log_ratio());
        match (&mut self.sequence, log_ratio) {
            (_, None) => {}
            (Some(sequence), Some(log_ratio)) => sequence.push(log_ratio),
            (None, Some(log_ratio)) => {
                self.pilot.push(log_ratio);
                if self.pilot.len() >= PILOT_PAIRS {
                    self.sequence = Sequence::new(&self.pilot, self.pairs_planned as u32);
                }
            }
        }
        let undecided = AlternationVerdict::Undecided;
        self.sequence.as_ref().map_or(undecided, |sequence| sequence.verdict(self.matters))
    }

    /// The ratio as far as it is known.
    pub fn ratio(&self) -> Option<AbRatio> {
        self.sequence.as_ref()?.interval().map(AbRatio::from)
    }
}
