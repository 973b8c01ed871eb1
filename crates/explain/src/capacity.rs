//! The highest rate that holds a service level: which rate to try next, and what the tries come to.
//!
//! A try (a *probe*) is one measurement at one rate, and near the limit its outcome is a matter of chance. So the answer
//! is an interval:
//!
//! - At its lower end, and at every lower rate that was tried, every probe held.
//! - At its upper end, and at every higher rate that was tried, every probe failed.
//! - Both ends were tried [`REPEATS`] times. What was tried in between went both ways.
//!
//! The search widens by factors of two until it has a rate that holds and one that fails. It halves the gap between them (on a
//! logarithmic scale) down to [`PRECISION`], and repeats the ends. A repeat that contradicts moves its end.

use serde::{Deserialize, Serialize};

/// How often each end of the answer is tried.
pub const REPEATS: usize = 3;
/// Neighbouring rates that were tried are at most this factor apart at the ends of the answer.
pub const PRECISION: f64 = 1.05;
/// Most probes of a search.
pub const PROBES_MAX: usize = 40;
/// Lowest rate that is tried, in transactions per second.
pub const RATE_MIN: f64 = 0.1;
/// Highest rate that is tried.
pub const RATE_MAX: f64 = 1e7;
const WIDEN: f64 = 2.0;

/// One measurement at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    pub rate_per_s: f64,
    pub held: bool,
}

/// A search under way: only the probes up to here decide what comes next.
#[derive(Clone, Debug)]
pub struct Search {
    start_per_s: f64,
    probes: Vec<Probe>,
}

/// What a search came to, in transactions per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Every probe at this rate and below held; `None`: no rate was found that holds.
    pub holds_per_s: Option<f64>,
    /// Every probe at this rate and above failed; `None`: no rate was found that fails.
    pub fails_per_s: Option<f64>,
    /// Both ends were tried as often as they should be, and are as near to their neighbours as they should be.
    pub settled: bool,
}

/// The answer of a search, with every probe that it is based on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub bounds: Bounds,
    /// Why the probes at the upper end failed; empty where none did.
    pub bounded_by: String,
    pub probes: Vec<ProbeResult>,
}

/// A probe and why it failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// Index of the level that it was.
    pub level: u32,
    pub rate_per_s: f64,
    pub held: bool,
    /// Empty where it held.
    pub why: String,
}

impl Answer {
    /// The first probe at the upper end shows what bounded the search.
    pub fn new(bounds: Bounds, probes: Vec<ProbeResult>) -> Answer {
        let at_end = probes.iter().find(|probe| Some(probe.rate_per_s) == bounds.fails_per_s);
        Answer { bounds, bounded_by: at_end.map_or(String::new(), |probe| probe.why.clone()), probes }
    }

    /// The answer in a sentence.
    pub fn sentence(&self) -> String {
        let sure = match self.bounds.settled {
            true => format!("; both ends were tried {REPEATS} times"),
            false => ", as far as the search got".to_string(),
        };
        match (self.bounds.holds_per_s, self.bounds.fails_per_s) {
            (Some(low), Some(high)) => format!(
                "The service level holds up to {} transactions per second, and fails from {} on{sure}.",
                whyso_words::number(low),
                whyso_words::number(high)
            ),
            (Some(low), None) => format!(
                "The service level holds at {} transactions per second; no rate was found at which it fails.",
                whyso_words::number(low)
            ),
            (None, Some(high)) => format!(
                "The service level fails already at {} transactions per second; no rate was found that holds it.",
                whyso_words::number(high)
            ),
            (None, None) => "No rate was tried to its end, so the capacity is unknown.".to_string(),
        }
    }
}

impl Search {
    /// A search that begins at this rate.
    pub fn new(start_per_s: f64) -> Search {
        let start = if start_per_s.is_finite() { start_per_s } else { RATE_MIN };
        Search { start_per_s: rounded(start.clamp(RATE_MIN, RATE_MAX)), probes: Vec::new() }
    }

    /// What came of the rate that [`next`](Search::next_per_s) gave.
    pub fn record(&mut self, rate_per_s: f64, held: bool) {
        self.probes.push(Probe { rate_per_s, held });
    }

    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// The rate to try next, in transactions per second; `None` once the answer stands, or the bounds of rate or number are
    /// reached.
    pub fn next_per_s(&self) -> Option<f64> {
        if self.probes.len() >= PROBES_MAX {
            return None;
        }
        if self.probes.is_empty() {
            return Some(self.start_per_s);
        }
        let (low, high) = (self.low(), self.high());
        let Some(low) = low else {
            let least = self.rates().fold(f64::INFINITY, f64::min);
            return (least > RATE_MIN).then(|| rounded((least / WIDEN).max(RATE_MIN)));
        };
        let Some(high) = high else {
            let most = self.rates().fold(0.0, f64::max);
            return (most < RATE_MAX).then(|| rounded((most * WIDEN).min(RATE_MAX)));
        };
        self.between(low, high).or_else(|| self.to_repeat(low)).or_else(|| self.to_repeat(high))
    }

    /// The answer so far.
    pub fn bounds(&self) -> Bounds {
        let (holds_per_s, fails_per_s) = (self.low(), self.high());
        let settled = match (holds_per_s, fails_per_s) {
            (Some(low), Some(high)) => {
                let repeated = self.to_repeat(low).is_none() && self.to_repeat(high).is_none();
                repeated && self.between(low, high).is_none()
            }
            _ => false,
        };
        Bounds { holds_per_s, fails_per_s, settled }
    }

    fn rates(&self) -> impl Iterator<Item = f64> + '_ {
        self.probes.iter().map(|probe| probe.rate_per_s)
    }

    /// The highest rate up to which every probe held.
    fn low(&self) -> Option<f64> {
        let failed = self.probes.iter().filter(|probe| !probe.held).map(|probe| probe.rate_per_s);
        let least_failed = failed.fold(f64::INFINITY, f64::min);
        let below = self.rates().filter(|rate| *rate < least_failed);
        below.max_by(f64::total_cmp)
    }

    /// The lowest rate from which on every probe failed.
    fn high(&self) -> Option<f64> {
        let held = self.probes.iter().filter(|probe| probe.held).map(|probe| probe.rate_per_s);
        let most_held = held.fold(0.0, f64::max);
        let above = self.rates().filter(|rate| *rate > most_held);
        above.min_by(f64::total_cmp)
    }

    /// A rate in the middle of a gap next to either end, where one is too wide.
    fn between(&self, low: f64, high: f64) -> Option<f64> {
        let above_low = self.rates().filter(|rate| *rate > low).fold(high, f64::min);
        let below_high = self.rates().filter(|rate| *rate < high).fold(low, f64::max);
        for (from, to) in [(low, above_low), (below_high, high)] {
            let middle = rounded((from * to).sqrt());
            if to / from > PRECISION && middle > from && middle < to {
                return Some(middle);
            }
        }
        None
    }

    fn to_repeat(&self, rate: f64) -> Option<f64> {
        let tries = self.rates().filter(|tried| *tried == rate).count();
        (tries < REPEATS).then_some(rate)
    }
}

/// Three digits, so that a rate reads well and is tried again exactly.
fn rounded(rate: f64) -> f64 {
    let digits = 10f64.powf(2.0 - rate.log10().floor());
    (rate * digits).round() / digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_random::noise::Noise;

    /// Searches a server whose probes hold below `capacity`, with a limit that differs from probe to probe by `spread`.
    fn search(start: f64, capacity: f64, spread: f64, seed: u64) -> Search {
        let mut noise = Noise::new(seed);
        let mut search = Search::new(start);
        while let Some(rate) = search.next_per_s() {
            search.record(rate, rate <= capacity * (1.0 + spread * noise.normal()));
        }
        search
    }

    #[test]
    fn a_sharp_limit_is_bracketed_to_the_precision_from_any_start() {
        for start in [1.0, 100.0, 1_000.0, 1_234.0, 50_000.0] {
            let search = search(start, 1_234.0, 0.0, 0);
            let bounds = search.bounds();
            let (low, high) = (bounds.holds_per_s.unwrap(), bounds.fails_per_s.unwrap());
            assert!(bounds.settled);
            assert!(low <= 1_234.0 && 1_234.0 < high, "{bounds:?}");
            assert!(high / low <= PRECISION, "{bounds:?}");
            assert!(search.probes().len() <= 30, "{} probes from {start}", search.probes().len());
        }
    }

    #[test]
    fn a_limit_that_wavers_gives_a_wider_interval_around_it() {
        for seed in 0..200 {
            let search = search(500.0, 1_000.0, 0.05, seed);
            let bounds = search.bounds();
            let (low, high) = (bounds.holds_per_s.unwrap(), bounds.fails_per_s.unwrap());
            assert!(low < high && low > 750.0 && high < 1_350.0, "seed {seed}: {bounds:?}");
            for probe in search.probes() {
                assert!(probe.held || probe.rate_per_s > low);
                assert!(!probe.held || probe.rate_per_s < high);
            }
        }
    }

    #[test]
    fn a_search_ends_where_nothing_holds_or_everything_does() {
        let nothing = search(100.0, 0.0, 0.0, 0);
        assert_eq!(nothing.bounds().holds_per_s, None);
        assert!(!nothing.bounds().settled);
        let everything = search(100.0, f64::INFINITY, 0.0, 0);
        assert_eq!(everything.bounds().fails_per_s, None);
        assert_eq!(everything.bounds().holds_per_s, Some(RATE_MAX));
    }

    proptest::proptest! {
        #[test]
        fn any_answers_end_the_search_and_its_ends_agree_with_every_probe(
            start in 0.0f64..1e8,
            answers in proptest::collection::vec(proptest::bool::ANY, PROBES_MAX),
        ) {
            let mut search = Search::new(start);
            for held in answers {
                let Some(rate) = search.next_per_s() else { break };
                proptest::prop_assert!((RATE_MIN..=RATE_MAX).contains(&rate));
                search.record(rate, held);
            }
            proptest::prop_assert!(search.next_per_s().is_none() || search.probes().len() == PROBES_MAX);
            if let Bounds { holds_per_s: Some(low), fails_per_s: Some(high), .. } = search.bounds() {
                proptest::prop_assert!(low < high);
            }
        }
    }
}
