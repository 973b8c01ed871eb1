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
/// A carry-over matters from this share of the effect on, both as logarithms.
const CARRY_OVER_SHARE: f64 = 0.1;

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

impl PairResult {
    /// Whether no transaction ended in one of its windows.
    pub fn is_empty(&self) -> bool {
        self.baseline.transactions == 0 || self.variant.transactions == 0
    }

    /// Both pairs as if they were one, with longer windows.
    pub fn with(&self, next: &PairResult) -> PairResult {
        PairResult {
            baseline: self.baseline.with(&next.baseline),
            variant: self.variant.with(&next.variant),
            ..*self
        }
    }
}

impl WindowResult {
    /// Both windows as one. Quantiles are those of the slower one.
    fn with(&self, next: &WindowResult) -> WindowResult {
        WindowResult {
            seconds: self.seconds + next.seconds,
            transactions: self.transactions + next.transactions,
            errors: self.errors + next.errors,
            p50_ms: self.p50_ms.max(next.p50_ms),
            p95_ms: self.p95_ms.max(next.p95_ms),
            p99_ms: self.p99_ms.max(next.p99_ms),
            server_cpu_s: self.server_cpu_s.zip(next.server_cpu_s).map(|(own, more)| own + more),
        }
    }
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

/// The factor by which windows before change the ratio, where that is sure and as large as what matters. Next to a large effect, a small one does not.
pub fn harmful_carry_over(pairs: &[PairResult], matters: f64) -> Option<AbRatio> {
    let numbers: Vec<Pair> = pairs.iter().filter_map(|pair| numbers(pair, throughput)).collect();
    let bias = carry_over(&numbers)?.bias;
    let is_sure = bias.low95 > 1.0 || bias.high95 < 1.0;
    let logs: Vec<f64> = numbers.iter().filter_map(Pair::log_ratio).collect();
    let effect = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
    let is_large = bias.value.ln().abs() > matters.ln().max(effect.abs() * CARRY_OVER_SHARE);
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

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_random::noise::Noise;

    fn window(per_s: f64) -> WindowResult {
        WindowResult {
            seconds: 1.0,
            transactions: per_s.round() as u64,
            p50_ms: 1e3 / per_s,
            ..WindowResult::default()
        }
    }

    /// Pairs of a side that is `ratio` times as fast as the other, whose windows vary by `spread`.
    fn pairs(count: usize, ratio: f64, spread: f64) -> Vec<PairResult> {
        let mut noise = Noise::new(5);
        let mut all = Vec::new();
        for _ in 0..count {
            let mut per_s = |truth: f64| window(10_000.0 * truth * (spread * noise.normal()).exp());
            let (baseline, variant) = (per_s(1.0), per_s(ratio));
            all.push(PairResult { start: 0, variant_first: noise.uniform() < 0.5, baseline, variant });
        }
        all
    }

    fn outcome(pairs: Vec<PairResult>, matters: f64) -> AbOutcome {
        AbOutcome {
            baseline: "a".to_string(),
            variant: "b".to_string(),
            design: AbDesign::SwitchBack,
            pairs_planned: pairs.len(),
            pairs,
            window_s: 1.0,
            cut_s: 0.1,
            users: [8, 8],
            starts: 1,
            seconds: 60.0,
            matters,
            ended_early: false,
            interrupted: false,
            undone: true,
        }
    }

    /// How many pairs a decision needs, and what it is.
    fn decide(pairs: &[PairResult], matters: f64) -> Option<(usize, AlternationVerdict)> {
        let mut decision = Decision::new(matters, pairs.len());
        let seen = pairs.iter().map(|pair| decision.push(pair));
        let first = seen.enumerate().find(|(_, seen)| *seen != AlternationVerdict::Undecided)?;
        Some((first.0 + 1, first.1))
    }

    #[test]
    fn a_difference_is_seen_by_all_quantities_that_were_measured() {
        let found = answer(&outcome(pairs(40, 1.2, 0.02), 1.01)).unwrap();
        assert_eq!(found.verdict, AbVerdict::Faster);
        assert!(
            found.ratio.low < 1.2 && found.ratio.high > 1.2 && found.ratio.low > 1.17,
            "{:?}",
            found.ratio
        );
        let names: Vec<&str> = found.metrics.iter().map(|metric| metric.name.as_str()).collect();
        // p95 and p99 are 0 here, and nobody measured the CPU time.
        assert_eq!(names, ["transactions_per_s", "p50_ms"]);
        assert!(found.metrics[1].ratio.high < 1.0, "the response time is shorter");
        assert!(!found.contains_starts && found.carry_over.is_none());
        assert_eq!(answer(&outcome(pairs(1, 1.2, 0.02), 1.01)), None);
    }

    #[test]
    fn an_early_answer_has_the_interval_of_its_sequence() {
        let all = pairs(200, 1.2, 0.02);
        let (count, seen) = decide(&all, 1.01).unwrap();
        assert!(count < 60 && seen == AlternationVerdict::Higher, "{count} {seen:?}");
        let early =
            AbOutcome { pairs: all[..count].to_vec(), ended_early: true, ..outcome(all.clone(), 1.01) };
        let found = answer(&early).unwrap();
        assert_eq!(found.verdict, AbVerdict::Faster);
        let planned = answer(&AbOutcome { ended_early: false, ..early }).unwrap();
        let width = |ratio: AbRatio| ratio.high / ratio.low;
        assert!(width(found.ratio) > width(planned.ratio), "it pays for having been read again and again");
    }

    #[test]
    fn sides_without_a_difference_are_equivalent_where_that_is_sure() {
        let all = pairs(120, 1.0, 0.02);
        assert_eq!(answer(&outcome(all.clone(), 1.02)).unwrap().verdict, AbVerdict::Equivalent);
        assert_eq!(answer(&outcome(all[..10].to_vec(), 1.001)).unwrap().verdict, AbVerdict::Undecided);
        assert_eq!(decide(&all, 1.05).unwrap().1, AlternationVerdict::Equivalent);
    }

    #[test]
    fn windows_that_show_the_one_before_are_not_judged() {
        let mut all = pairs(120, 1.0, 0.005);
        let mut last_was_variant = false;
        for pair in &mut all {
            // What follows a window of the variant is a tenth slower, if it is one of the baseline.
            let is_after_variant = pair.variant_first || last_was_variant;
            if is_after_variant {
                pair.baseline.transactions = pair.baseline.transactions * 9 / 10;
            }
            last_was_variant = !pair.variant_first;
        }
        let found = answer(&outcome(all.clone(), 1.01)).unwrap();
        assert_eq!(found.verdict, AbVerdict::Undecided, "{:?}", found.carry_over);
        let carried = found.carry_over.unwrap();
        assert!(carried.low > 1.0 || carried.high < 1.0, "{carried:?}");
        assert!(harmful_carry_over(&all, 1.5).is_none(), "too little to matter there");
        for pair in &mut all {
            pair.variant.transactions *= 50;
        }
        assert!(harmful_carry_over(&all, 1.01).is_none(), "too little next to a factor of 50");
    }
}
