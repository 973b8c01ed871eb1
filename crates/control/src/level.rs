//! One level, start to end: warm up until steady, measure, stop.

use std::thread::sleep;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_load::{Interval, LevelOutcome, LevelSpec, Live, Pacing};
use whyso_record::run::{Level, Purpose, RunEnd, Window};

use crate::Error;
use crate::Stop;
use crate::engine::{Engine, RunningLevel};
use crate::progress::Running;
use crate::result::{LevelRequest, describe_silence, level_result};
use crate::warmup::is_steady;

/// How often the running level is looked at.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Length of a slot of throughput, for the warm-up and for the news.
const SLOT: Duration = Duration::from_millis(500);
/// A warm-up lasts at least this long, where its bound allows.
const WARMUP_MIN: Duration = Duration::from_secs(1);

/// How long the parts of a level take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Bound on the warm-up, which ends earlier when throughput is steady.
    pub(crate) warmup_max: Duration,
    pub(crate) measure: Duration,
    /// Longest that what comes after this level may take.
    pub(crate) rest: Duration,
    /// The level has ramps: the warm-up lasts to its bound, and the load continues for this long after the window.
    pub(crate) ramp_down: Option<Duration>,
}

/// Observes a level while it runs.
pub(crate) trait Watch {
    /// Something that the load did in about a second.
    fn interval(&mut self, interval: &Interval);
    /// Called every half second.
    fn news(&mut self, running: Running);
    /// The measured window begins, or has just ended.
    fn window_edge(&mut self) {}
    /// Often, with the time since measuring began.
    fn measuring(&mut self, so_far: Duration) {
        let _ = so_far;
    }
}

/// A level to be run.
pub(crate) struct Job<'a> {
    pub(crate) index: u32,
    pub(crate) purpose: Purpose,
    pub(crate) spec: &'a LevelSpec,
    pub(crate) timing: Timing,
    pub(crate) request: &'a LevelRequest<'a>,
}

/// Why a level is not complete.
pub(crate) enum Cut {
    No,
    /// Ctrl-C.
    ByUser,
    /// The level can't continue, for this reason.
    Failed(String),
    /// The level was measured to its end, but the server had stopped answering by then; a sentence says for how long.
    /// Others may follow: whether the server answers again, their connections show.
    Silent(String),
}

impl Cut {
    /// `interrupted`: the user broke the level off.
    pub(crate) fn of(outcome: &LevelOutcome, interrupted: bool) -> Cut {
        match &outcome.failure {
            Some(failure) => Cut::Failed(failure.message.clone()),
            None if interrupted => Cut::ByUser,
            None => describe_silence(outcome).map_or(Cut::No, Cut::Silent),
        }
    }
}

/// Why levels are not complete: first because the server had stopped answering, then because one failed, which may follow from the first.
pub(crate) fn silent_then_failed(silent: Option<String>, failure: Option<String>) -> Option<String> {
    match (silent, failure) {
        (Some(silent), Some(failure)) => Some(format!("{silent}; then {failure}")),
        (silent, failure) => silent.or(failure),
    }
}

/// Runs one level to its end.
pub(crate) fn run(
    engine: &mut Engine,
    job: &Job<'_>,
    stop: &Stop,
    watch: &mut dyn Watch,
) -> Result<(Level, Cut), Error> {
    let mut running = engine.begin(job.spec)?;
    let timing = &job.timing;
    // Stages may end with nobody at work, and are measured to their end.
    let may_end = job.spec.transactions_max.is_some();
    let is_over =
        |running: &RunningLevel| stop.is_asked() || running.has_failed() || (may_end && running.is_over());
    let warmup_begin_ns = monotonic_ns();
    let mut phase = Phase::begin(job, false);
    let warmup_steady = loop {
        if timing.warmup_max.is_zero() || is_over(&running) {
            break false;
        }
        sleep(CHECK_INTERVAL);
        drain(&mut running, watch);
        phase.observe(running.live(), watch);
        let elapsed = phase.begin.elapsed();
        let warm = timing.ramp_down.is_none()
            && elapsed >= WARMUP_MIN.min(timing.warmup_max)
            && is_steady(&phase.slots);
        if warm || elapsed >= timing.warmup_max {
            break warm;
        }
    };

    running.begin_measuring();
    watch.window_edge();
    let mut phase = Phase::begin(job, true);
    while phase.begin.elapsed() < timing.measure && !is_over(&running) {
        let rest = timing.measure.saturating_sub(phase.begin.elapsed());
        sleep(CHECK_INTERVAL.min(rest));
        drain(&mut running, watch);
        phase.observe(running.live(), watch);
        watch.measuring(phase.begin.elapsed());
    }
    watch.window_edge();
    if let Some(ramp_down) = timing.ramp_down.filter(|ramp_down| !ramp_down.is_zero()) {
        running.end_measuring();
        let begin = Instant::now();
        while begin.elapsed() < ramp_down && !is_over(&running) {
            sleep(CHECK_INTERVAL);
            drain(&mut running, watch);
        }
    }
    let (outcome, last_intervals) = running.stop_with_intervals();
    for interval in &last_intervals {
        watch.interval(interval);
    }
    let cut = Cut::of(&outcome, stop.is_asked());
    let level = Level {
        index: job.index,
        purpose: job.purpose,
        warmup: Window { begin_ns: warmup_begin_ns, end_ns: outcome.window_begin_ns },
        warmup_steady,
        ..only_level(&outcome, job.request, &cut)
    };
    Ok((level, cut))
}

/// The level of a run that has no other, and that was not waited for to be steady.
pub(crate) fn only_level(outcome: &LevelOutcome, request: &LevelRequest<'_>, cut: &Cut) -> Level {
    let at_ns = outcome.window_end_ns;
    let ended = match cut {
        Cut::No => RunEnd::Complete { at_ns },
        Cut::ByUser => RunEnd::CutShort { at_ns, why: "interrupted by Ctrl-C".to_string() },
        Cut::Failed(why) | Cut::Silent(why) => RunEnd::CutShort { at_ns, why: why.clone() },
    };
    Level {
        index: 0,
        users: outcome.users,
        purpose: Purpose::Sweep,
        warmup: Window { begin_ns: outcome.begin_ns, end_ns: outcome.window_begin_ns },
        warmup_steady: false,
        window: Window { begin_ns: outcome.window_begin_ns, end_ns: outcome.window_end_ns },
        result: level_result(outcome, request),
        ended,
    }
}

fn drain(running: &mut RunningLevel, watch: &mut dyn Watch) {
    for interval in running.take_intervals() {
        watch.interval(&interval);
    }
}

/// Throughput during a phase (warm-up or measuring).
struct Phase<'a> {
    job: &'a Job<'a>,
    begin: Instant,
    news: Running,
    slot_end: Instant,
    counted: Option<Live>,
    slots: Vec<u64>,
}

impl<'a> Phase<'a> {
    fn begin(job: &'a Job<'a>, measuring: bool) -> Phase<'a> {
        let begin = Instant::now();
        let bound = if measuring { job.timing.measure } else { job.timing.warmup_max };
        let news = Running {
            index: job.index,
            users: job.spec.users,
            rate_per_s: None,
            purpose: job.purpose,
            measuring,
            elapsed: Duration::ZERO,
            bound,
            transactions_per_s: 0.0,
            queries_per_s: 0.0,
            errors: 0,
            rest: Duration::ZERO,
        };
        Phase { job, begin, news, slot_end: begin + SLOT, counted: None, slots: Vec::new() }
    }

    fn observe(&mut self, live: Live, watch: &mut dyn Watch) {
        let before = *self.counted.get_or_insert(live);
        let now = Instant::now();
        if now < self.slot_end {
            return;
        }
        let slot_s = (now - (self.slot_end - SLOT)).as_secs_f64();
        let in_slot = live.transactions.saturating_sub(before.transactions);
        self.slots.push(in_slot);
        self.counted = Some(live);
        self.slot_end = now + SLOT;
        let timing = &self.job.timing;
        self.news.elapsed = now - self.begin;
        self.news.transactions_per_s = in_slot as f64 / slot_s;
        self.news.queries_per_s = live.queries.saturating_sub(before.queries) as f64 / slot_s;
        self.news.errors = live.errors;
        if let Pacing::Open { rate, .. } = &self.job.spec.pacing {
            self.news.rate_per_s = Some(rate.at(self.news.elapsed.as_secs_f64()));
        }
        let to_measure = if self.news.measuring { Duration::ZERO } else { timing.measure };
        self.news.rest = self.news.bound.saturating_sub(self.news.elapsed) + to_measure + timing.rest;
        watch.news(self.news);
    }
}
