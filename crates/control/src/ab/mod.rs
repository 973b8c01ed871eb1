//! `whyso ab`: two sides that alternate in short windows, until it is sure which is faster or the time is over.

pub(crate) mod guard;
mod plan;
mod replicas;
mod slowed;
mod start;
pub(crate) mod switch;
pub(crate) mod window;

use std::time::{Duration, Instant};

use whyso_explain::ab::{
    AbDesign, AbOutcome, AbRatio, Decision, PairResult, WindowResult, harmful_carry_over,
};
use whyso_inference::{AlternationVerdict, settling};
use whyso_random::SplitMix64;

pub use plan::{AbPlan, AbSide, SideChange};

use crate::hosts::Loaders;
use crate::login::AskPassword;
use crate::process::check_processes;
use crate::progress::{Listener, News};
use crate::runtime::{GOODBYE_TIME_MAX, runtime};
use crate::{Error, Stop};
use start::{Setup, Start};
use switch::slow_name;
use window::{Lengths, Window, window};

/// Bins of a window's course.
const BIN: Duration = Duration::from_millis(100);
/// Windows of the pilot, which show how long the server takes to settle after a switch; tried in turn until it does. The users begin within the
/// second time: a load with a rhythm of its own would never seem to settle, as long as each window begins with the same beat.
const PILOT_WINDOWS: [(Duration, Duration); 2] =
    [(Duration::from_millis(800), Duration::ZERO), (Duration::from_secs(4), Duration::from_millis(300))];
const PILOT_SWITCHES: usize = 10;
/// Windows of each side that warm it up, at most.
const WARMUP_PAIRS_MAX: usize = 6;
const WARMUP_WINDOW: Duration = Duration::from_secs(1);
/// Two windows of a side that differ by less than this ratio are warm.
const WARM: f64 = 1.03;
const WINDOW_MIN: Duration = Duration::from_millis(500);
const WINDOW_MAX: Duration = Duration::from_secs(5);
/// Windows of slow transactions may be longer, as long as there are enough of them.
const WINDOW_OF_SLOW_MAX: Duration = Duration::from_secs(15);
/// A window is at least as long as slow transactions, times this.
const SLOW_TIMES: u32 = 4;
/// Transactions that a chosen window has, where it may be that long.
const TRANSACTIONS_MIN: f64 = 200.0;
/// A window is at least as long as what is cut off, times this.
const CUTS: u32 = 3;
/// Starts of two servers of whyso's own.
const DUET_STARTS: u32 = 3;
/// Pairs of a start, as long as they take no more than twice the time that there is.
const PAIRS_MIN: usize = 8;
/// An answer's interval is as narrow as this share of the effect, or of what matters, both by their logarithms.
const WIDTH_SHARE: f64 = 0.25;
/// Where only a threshold is asked about, this suffices, or an interval that is no wider than this ratio.
const WIDTH_SHARE_OF_VERDICT: f64 = 0.5;
const WIDTH_OF_VERDICT: f64 = 1.2;
/// A server counts as settled once it differs by less than this ratio, whatever matters.
const SETTLED_MAX: f64 = 1.02;
/// Pairs between two looks for a carry-over.
const CARRY_OVER_EVERY: usize = 8;

/// Whether a comparison may end: the sides are equivalent, or differ and it is known how much. Where a threshold is asked about: it is known on
/// which side of it the ratio lies.
fn is_answer(seen: AlternationVerdict, ratio: Option<AbRatio>, plan: &AbPlan) -> bool {
    let Some(ratio) = ratio else { return false };
    let width = (ratio.high / ratio.low).ln();
    let effect = ratio.value.ln().abs();
    if let Some(threshold) = plan.threshold {
        let is_narrow = width <= (effect * WIDTH_SHARE_OF_VERDICT).max(WIDTH_OF_VERDICT.ln());
        return ratio.high <= threshold || (ratio.low > threshold && is_narrow);
    }
    match seen {
        AlternationVerdict::Undecided => false,
        AlternationVerdict::Equivalent => true,
        AlternationVerdict::Higher | AlternationVerdict::Lower => {
            let leaves_out_one = ratio.low > 1.0 || ratio.high < 1.0;
            leaves_out_one && width <= (effect * WIDTH_SHARE).max(2.0 * plan.matters.ln())
        }
    }
}

/// Carries out a comparison.
///
/// # Errors
/// Whatever keeps the first pairs from being measured.
pub fn ab(
    plan: &AbPlan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<AbOutcome, Error> {
    plan.check()?;
    check_processes()?;
    plan.workloads()?;
    let runtime = runtime()?;
    let loaders = match &plan.hosts {
        Some(hosts) => Some(Loaders::join(hosts, plan.changes_server(), listener)?),
        None => None,
    };
    let setup = Setup { plan, runtime: &runtime, listener, stop, ask_password, loaders: loaders.as_ref() };
    let done = Comparison::new(&setup).and_then(|comparison| comparison.run());
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    done
}

/// A comparison under way.
struct Comparison<'a> {
    setup: &'a Setup<'a>,
    design: AbDesign,
    /// Made to find out the design.
    first: Option<Start<'a>>,
    starts: u32,
    lengths: Option<Lengths>,
    random: SplitMix64,
    pairs: Vec<PairResult>,
    /// As many as there was time for in the last start.
    pairs_planned: usize,
    ended_early: bool,
    undone: bool,
}

impl<'a> Comparison<'a> {
    fn new(setup: &'a Setup<'a>) -> Result<Comparison<'a>, Error> {
        let plan = setup.plan;
        let mut first = None;
        let slow = slow_name(&plan.sides.each_ref().map(|side| side.set.as_slice()))
            .filter(|_| plan.is_one_server());
        if let Some(name) = slow.filter(|_| !plan.sides[0].server.is_own()) {
            return Err(Error::Plan(format!(
                "{name} takes effect over minutes, so windows of seconds would show nothing: leave out --dsn to compare two servers of whyso's \
                 own, or change it yourself between two recordings"
            )));
        }
        if plan.is_one_server() && slow.is_none() {
            first = match setup.one_server() {
                Ok(start) => Some(start),
                // A throw-away server can be started with each of the values.
                Err(Error::Server(whyso_server::Error::ReadOnlyKnob { .. }))
                    if plan.sides[0].server.is_own() =>
                {
                    None
                }
                Err(Error::Server(whyso_server::Error::ReadOnlyKnob { name })) => {
                    return Err(Error::Plan(format!(
                        "{name} can't be changed while the server runs, and whyso restarts no server of yours: leave out --dsn to compare two \
                         servers of its own, or name the second one with --versus --dsn DSN"
                    )));
                }
                Err(error) => return Err(error),
            };
        }
        let design = if first.is_some() { AbDesign::SwitchBack } else { AbDesign::Duet };
        let is_own = plan.sides.iter().all(|side| side.server.is_own());
        let starts = match plan.starts {
            Some(starts @ 2..) if !is_own => {
                if let Some(start) = first {
                    start.end();
                }
                return Err(Error::Plan(format!(
                    "--starts {starts} would restart your own server, which whyso never does: leave it out"
                )));
            }
            Some(starts) => starts,
            None if design == AbDesign::Duet && is_own => DUET_STARTS,
            None => 1,
        };
        Ok(Comparison {
            setup,
            design,
            first,
            starts,
            lengths: None,
            random: SplitMix64::new(plan.seed),
            pairs: Vec::new(),
            pairs_planned: 0,
            ended_early: false,
            undone: true,
        })
    }

    fn run(mut self) -> Result<AbOutcome, Error> {
        let begin = Instant::now();
        let mut failure = None;
        for number in 0..self.starts {
            if self.setup.stop.is_asked() {
                break;
            }
            let start = match (self.first.take(), self.design) {
                (Some(start), _) => Ok(start),
                (None, AbDesign::SwitchBack) => self.setup.one_server(),
                (None, AbDesign::Duet) => self.setup.two_servers(),
            };
            let done = start.and_then(|mut start| {
                let done = self.alternate(&mut start, number);
                self.undone &= start.end();
                done
            });
            if let Err(error) = done {
                failure = Some(error);
                break;
            }
        }
        let lengths = match (failure, self.lengths) {
            (Some(error), _) => return Err(error),
            (None, None) => return Err(Error::Interrupted),
            (None, Some(lengths)) => lengths,
        };
        let plan = self.setup.plan;
        let [baseline, variant] = plan.names();
        Ok(AbOutcome {
            baseline,
            variant,
            design: self.design,
            pairs: self.pairs,
            window_s: lengths.measured.as_secs_f64(),
            cut_s: lengths.cut.as_secs_f64(),
            users: plan.sides.each_ref().map(|side| side.users),
            starts: self.starts,
            seconds: begin.elapsed().as_secs_f64(),
            matters: plan.matters,
            pairs_planned: self.pairs_planned,
            ended_early: self.ended_early,
            interrupted: self.setup.stop.is_asked(),
            undone: self.undone,
        })
    }

    /// The pairs of one start.
    fn alternate(&mut self, start: &mut Start<'_>, number: u32) -> Result<(), Error> {
        let deadline = Instant::now() + self.setup.plan.length / self.starts;
        if !self.warm_up(start)? {
            return Ok(());
        }
        let lengths = match self.lengths {
            Some(lengths) => Some(lengths),
            None => self.pilot(start)?,
        };
        let Some(mut lengths) = lengths else { return Ok(()) };
        self.lengths = Some(lengths);
        while let Some(longer) = self.pairs_of(start, number, lengths, deadline)? {
            self.setup.listener.hear(News::Step(&format!(
                "these windows are too short to compare: beginning again with windows of {}",
                whyso_words::seconds(longer.measured.as_secs_f64())
            )));
            lengths = longer;
            self.lengths = Some(lengths);
            self.pairs.clear();
        }
        Ok(())
    }

    /// Measures pairs until the answer is sure or the time is over. Returns longer windows where these are too short.
    fn pairs_of(
        &mut self,
        start: &mut Start<'_>,
        number: u32,
        lengths: Lengths,
        deadline: Instant,
    ) -> Result<Option<Lengths>, Error> {
        let plan = self.setup.plan;
        let left = || deadline.saturating_duration_since(Instant::now());
        let pair_length = 2 * lengths.whole();
        self.pairs_planned = (left().as_secs_f64() / pair_length.as_secs_f64()).ceil() as usize;
        let mut decision = Decision::new(plan.matters, self.pairs_planned);
        let first = self.pairs.len();
        let may_lengthen = plan.window.is_none() && number == 0 && lengths.measured < self.window_max();
        let longer = Lengths {
            cut: lengths.cut * 2,
            measured: (lengths.measured * 2).min(self.window_max()),
            ..lengths
        };
        let mut empty: Option<PairResult> = None;
        loop {
            let count = self.pairs.len() - first;
            let is_late = Instant::now() > deadline + plan.length / self.starts;
            if is_late || (count >= PAIRS_MIN && left() < pair_length) {
                return self.end_with(empty, lengths).map(|()| None);
            }
            let Some(pair) = self.pair(start, number, lengths)? else { return Ok(None) };
            // A window in which nothing ended has no ratio: it counts with the next one.
            let pair = empty.take().map_or(pair, |empty| empty.with(&pair));
            if pair.is_empty() {
                if may_lengthen && count < CARRY_OVER_EVERY {
                    return Ok(Some(longer));
                }
                empty = Some(pair);
                continue;
            }
            self.pairs.push(pair);
            let is_sure = is_answer(decision.push(&pair), decision.ratio(), plan);
            self.setup.listener.hear(News::Pair { ratio: decision.ratio(), left: left() });
            if is_sure && self.starts == 1 {
                self.ended_early = true;
                return Ok(None);
            }
            if may_lengthen
                && (count + 1).is_multiple_of(CARRY_OVER_EVERY)
                && harmful_carry_over(&self.pairs, plan.matters).is_some()
            {
                return Ok(Some(longer));
            }
        }
    }

    /// Adds what ended in no window to the last pair, so that nothing is left out.
    fn end_with(&mut self, empty: Option<PairResult>, lengths: Lengths) -> Result<(), Error> {
        match (empty, self.pairs.last_mut()) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(lengths.too_short()),
            (Some(empty), Some(last)) => {
                *last = last.with(&empty);
                Ok(())
            }
        }
    }

    /// The longest window that leaves enough pairs in one start.
    fn window_max(&self) -> Duration {
        let of_start = self.setup.plan.length / self.starts / (2 * PAIRS_MIN as u32);
        of_start.clamp(WINDOW_MAX, WINDOW_OF_SLOW_MAX)
    }

    /// Two windows in random order. `None`: the user broke them off.
    fn pair(
        &mut self,
        start: &mut Start<'_>,
        number: u32,
        lengths: Lengths,
    ) -> Result<Option<PairResult>, Error> {
        let variant_first = self.random.next_u64() >> 63 == 1;
        let order = if variant_first { [1, 0] } else { [0, 1] };
        let mut results = [WindowResult::default(); 2];
        for side in order {
            let Some(window) = self.window(start, side, lengths)? else { return Ok(None) };
            results[side] = window.result;
        }
        let [baseline, variant] = results;
        Ok(Some(PairResult { start: number, variant_first, baseline, variant }))
    }

    fn window(&self, start: &mut Start<'_>, side: usize, lengths: Lengths) -> Result<Option<Window>, Error> {
        start.switch_to(side)?;
        window(&mut start.sides[side], lengths, self.setup.stop)
    }

    /// Loads both sides until neither gets faster. Returns false if the user broke it off.
    fn warm_up(&self, start: &mut Start<'_>) -> Result<bool, Error> {
        self.setup.listener.hear(News::Step("warming both sides up"));
        let lengths = Lengths { cut: Duration::ZERO, measured: WARMUP_WINDOW, begins_within: Duration::ZERO };
        let mut before: Option<[f64; 2]> = None;
        for _ in 0..WARMUP_PAIRS_MAX {
            let mut rates = [0.0; 2];
            for (side, rate) in rates.iter_mut().enumerate() {
                let Some(window) = self.window(start, side, lengths)? else { return Ok(false) };
                if side == 0 && !self.setup.plan.sides[0].server.is_own() {
                    let WindowResult { p99_ms, errors, transactions, .. } = window.result;
                    for side in &mut start.sides {
                        side.bounds.set_p99(p99_ms);
                        side.bounds.set_errors(errors, transactions);
                    }
                }
                *rate = window.result.transactions as f64 / window.result.seconds;
            }
            let is_warm = |before: [f64; 2]| (0..2).all(|side| rates[side] < before[side] * WARM);
            if before.is_some_and(is_warm) {
                break;
            }
            before = Some(rates);
        }
        Ok(true)
    }

    /// Finds out how long the server takes to settle after a switch, and how long windows should be. `None`: the user broke it off.
    fn pilot(&self, start: &mut Start<'_>) -> Result<Option<Lengths>, Error> {
        let plan = self.setup.plan;
        let slow = |start: &Start<'_>| start.sides.iter().map(|side| side.slow).max().unwrap_or_default();
        let least = |start: &Start<'_>| (slow(start) * SLOW_TIMES).clamp(WINDOW_MIN, self.window_max());
        // Where transactions take as long as a pilot's window, it shows nothing. What is cut off is the time until the first of them end.
        if slow(start) >= PILOT_WINDOWS[0].0 {
            let measured = plan.window.unwrap_or(least(start));
            let cut = slow(start).min(measured / CUTS);
            return Ok(Some(Lengths { cut, measured, begins_within: Duration::ZERO }));
        }
        self.setup.listener.hear(News::Step("measuring how fast the server settles after a switch"));
        for (measured, begins_within) in PILOT_WINDOWS {
            let lengths = Lengths { cut: Duration::ZERO, measured, begins_within };
            let bins = (measured.as_millis() / BIN.as_millis()) as usize;
            let mut courses = [Vec::new(), Vec::new()];
            let mut slowest_per_s = f64::INFINITY;
            for number in 0..PILOT_SWITCHES {
                let Some(window) = self.window(start, number % 2, lengths)? else { return Ok(None) };
                let WindowResult { transactions, seconds, .. } = window.result;
                slowest_per_s = slowest_per_s.min(transactions as f64 / seconds);
                courses[number % 2]
                    .push(window.bins_100ms.iter().take(bins).map(|count| f64::from(*count)).collect());
            }
            let cuts =
                courses.map(|courses: Vec<Vec<f64>>| settling(&courses, plan.matters.min(SETTLED_MAX)));
            if let [Some(to_baseline), Some(to_variant)] = cuts {
                let cut = BIN * to_baseline.max(to_variant).max(1) as u32;
                let enough =
                    Duration::from_secs_f64((TRANSACTIONS_MIN / slowest_per_s).min(WINDOW_MAX.as_secs_f64()));
                let chosen = enough.max(CUTS * cut).min(WINDOW_MAX).max(least(start));
                return Ok(Some(Lengths { cut, measured: plan.window.unwrap_or(chosen), begins_within }));
            }
        }
        Err(Error::Failed(format!(
            "the server does not settle within {} after a switch, so windows cannot be compared: compare fresh starts with whyso study",
            whyso_words::seconds(PILOT_WINDOWS[PILOT_WINDOWS.len() - 1].0.as_secs_f64())
        )))
    }
}
