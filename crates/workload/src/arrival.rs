//! When transactions are due in an open loop, and how long a user thinks in a closed one: arithmetic alone.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{RatesProblem, WorkloadError};
use crate::rng::Rng;

/// The user number of transactions that are due by a schedule. With it and the number of an arrival,
/// [`Cursor::start`](crate::Cursor::start) begins a transaction that depends on the seed and that number only. Any user
/// may carry it out.
/// Users of a closed loop count from 0 and never come near it.
pub const ARRIVALS_USER: u64 = u64::MAX;

/// The user number under which [`ArrivalClock`] draws its own numbers.
const CLOCK_USER: u64 = u64::MAX - 1;

/// Keeps think times apart from the parameters of the transaction before them.
const THINK_SALT: u64 = 0x7468_696e_6b00_0000;

/// How arrivals lie between each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArrivalProcess {
    /// Independent of each other: exponential gaps where the rate is constant.
    Poisson,
    /// Evenly spaced where the rate is constant. The first one comes after a share of a gap that the seed draws. So the
    /// expected count up to any time is the integral of the rate for this process too.
    Uniform,
}

/// The times at which arrivals are due: an iterator over nanoseconds since the begin, ascending.
///
/// An arrival of a unit-rate process is due when the integral of the rate reaches it. Source: Çinlar, "Introduction to
/// Stochastic Processes", 1975, section 4.7. Its increments are exponential with mean 1, or 1. The
/// rate is piecewise linear, its integral piecewise quadratic, and the quadratic is solved exactly. The same seed,
/// process and points give the same times, on whatever number of loops: loop `i` of `n` takes
/// `clock.enumerate().skip(i).step_by(n)`.
///
/// ```
/// use std::time::Duration;
/// use whyso_workload::{ArrivalClock, ArrivalProcess};
///
/// // From 0 to 100 a second within 10 s, then held.
/// let ramp = [(Duration::ZERO, 0.0), (Duration::from_secs(10), 100.0)];
/// let clock = ArrivalClock::new(1, ArrivalProcess::Uniform, &ramp).unwrap();
/// let in_20_s = clock.take_while(|due_ns| *due_ns < 20_000_000_000).count();
/// assert_eq!(in_20_s, 500 + 1000);
/// ```
#[derive(Clone, Debug)]
pub struct ArrivalClock {
    process: ArrivalProcess,
    rng: Rng,
    /// Ascending in time; the last one has no end.
    segments: Vec<Segment>,
    /// The segment in which the last arrival fell.
    segment: usize,
    /// Where the unit-rate process stands.
    reached: f64,
    last_due_ns: u64,
}

/// A stretch of time over which the rate is linear.
#[derive(Clone, Copy, Debug)]
struct Segment {
    begin_s: f64,
    /// Arrivals a second at its begin.
    rate: f64,
    /// Change of the rate, a second and second.
    slope: f64,
    /// Integral of the rate at its begin.
    before: f64,
    /// Integral of the rate at its end; infinite for the last one unless its rate is 0.
    after: f64,
}

impl ArrivalClock {
    /// From points (time, arrivals per second) in ascending order of time. The rate is constant before the first and
    /// after the last. Two points at one time are a step.
    ///
    /// # Errors
    /// [`WorkloadError::BadRates`]: no point, a time that goes back, a rate that is negative or not finite.
    pub fn new(
        seed: u64,
        process: ArrivalProcess,
        points: &[(Duration, f64)],
    ) -> Result<ArrivalClock, WorkloadError> {
        let segments = segments(points)?;
        let mut rng = Rng::for_transaction(seed, CLOCK_USER, 0);
        let reached = match process {
            ArrivalProcess::Poisson => 0.0,
            ArrivalProcess::Uniform => -rng.unit_f64(),
        };
        Ok(ArrivalClock { process, rng, segments, segment: 0, reached, last_due_ns: 0 })
    }
}

impl Iterator for ArrivalClock {
    type Item = u64;

    /// The next due time in ns since the begin; `None` once the rate stays 0 for ever, or the time is past what a clock
    /// of `i64` nanoseconds can show.
    #[inline]
    fn next(&mut self) -> Option<u64> {
        let reached = self.reached
            + match self.process {
                ArrivalProcess::Poisson => exponential(&mut self.rng),
                ArrivalProcess::Uniform => 1.0,
            };
        while self.segments[self.segment].after < reached {
            if self.segment + 1 == self.segments.len() {
                return None;
            }
            self.segment += 1;
        }
        self.reached = reached;
        let due_ns = self.segments[self.segment].time_of(reached) * 1e9;
        if due_ns >= i64::MAX as f64 {
            return None;
        }
        // Rounding may not put an arrival before the one that precedes it.
        self.last_due_ns = self.last_due_ns.max(due_ns as u64);
        Some(self.last_due_ns)
    }
}

impl Segment {
    /// When the integral of the rate reaches this, in seconds since the begin.
    #[inline]
    fn time_of(&self, reached: f64) -> f64 {
        let area = reached - self.before;
        if area <= 0.0 {
            return self.begin_s;
        }
        // rate·t + slope·t²/2 = area, in the form that loses no digits where the slope is small. A falling rate reaches
        // its end where the discriminant is 0, which rounding may put just below.
        let discriminant = (self.rate * self.rate + 2.0 * self.slope * area).max(0.0);
        self.begin_s + 2.0 * area / (self.rate + discriminant.sqrt())
    }
}

fn segments(points: &[(Duration, f64)]) -> Result<Vec<Segment>, WorkloadError> {
    let refuse = |problem| Err(WorkloadError::BadRates { problem });
    let Some(&(first_time, first_rate)) = points.first() else {
        return refuse(RatesProblem::NoPoint);
    };
    if let Some((time, rate)) = points.iter().find(|(_, rate)| !rate.is_finite() || *rate < 0.0) {
        return refuse(RatesProblem::Rate { rate: *rate, at_s: time.as_secs_f64() });
    }
    if let Some(pair) = points.windows(2).find(|pair| pair[1].0 < pair[0].0) {
        let (before_s, at_s) = (pair[0].0.as_secs_f64(), pair[1].0.as_secs_f64());
        return refuse(RatesProblem::Order { at_s, before_s });
    }
    let mut segments = Vec::with_capacity(points.len() + 1);
    let mut before = 0.0;
    let mut add = |begin_s: f64, end_s: f64, rate: f64, end_rate: f64| {
        let after = before + (rate + end_rate) / 2.0 * (end_s - begin_s);
        let slope = (end_rate - rate) / (end_s - begin_s);
        segments.push(Segment { begin_s, rate, slope, before, after });
        before = after;
    };
    if first_time > Duration::ZERO {
        add(0.0, first_time.as_secs_f64(), first_rate, first_rate);
    }
    for pair in points.windows(2) {
        let ((begin, rate), (end, end_rate)) = (pair[0], pair[1]);
        if end > begin {
            add(begin.as_secs_f64(), end.as_secs_f64(), rate, end_rate);
        }
    }
    let (last_time, last_rate) = points[points.len() - 1];
    let after = if last_rate > 0.0 { f64::INFINITY } else { before };
    segments.push(Segment { begin_s: last_time.as_secs_f64(), rate: last_rate, slope: 0.0, before, after });
    Ok(segments)
}

/// Returns the exponential think time after transaction `k` of a user. It is a function of the seed, the user and `k`
/// only, and independent of the transaction's parameters. At most 37 times the mean.
///
/// ```
/// use std::time::Duration;
/// let think = |user, k| whyso_workload::exponential_think(1, user, k, Duration::from_millis(100));
/// assert_eq!(think(3, 7), think(3, 7));
/// assert_ne!(think(3, 7), think(3, 8));
/// ```
#[inline]
pub fn exponential_think(seed: u64, user: u64, k: u64, mean: Duration) -> Duration {
    let times = exponential(&mut Rng::for_transaction(seed ^ THINK_SALT, user, k));
    Duration::from_nanos((mean.as_nanos() as f64 * times) as u64)
}

/// Exponential with mean 1, by inversion: from 0 to 53 ln 2.
#[inline]
fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - rng.unit_f64()).ln()
}

#[cfg(test)]
#[path = "arrival_tests.rs"]
mod tests;
