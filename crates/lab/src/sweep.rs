//! The levels of a run, one after the other: warm up until steady, measure, stop, record.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_load::{Engine, LevelOutcome};
use whyso_record::Recorder;
use whyso_record::data::Event;
use whyso_record::run::{Ended, Level, Purpose, Window};
use whyso_watch::Watcher;

use crate::actions::Actions;
use crate::progress::{Listener, News, Running, Stop};
use crate::result::{level_result, record_interval};
use crate::warmup::is_steady;
use crate::{Error, Plan};

/// How often the running level is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Length of a slot of throughput, for the warm-up and for the news.
const SLOT: Duration = Duration::from_millis(500);
/// A warm-up lasts at least this long, where its bound allows.
const WARMUP_MIN: Duration = Duration::from_secs(1);

/// What is needed to run levels.
pub(crate) struct Sweep<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) engine: Engine,
    pub(crate) recorder: Recorder,
    pub(crate) watcher: &'a Watcher,
    pub(crate) listener: &'a dyn Listener,
    pub(crate) stop: &'a Stop,
    pub(crate) actions: Actions,
    /// Levels that are still to come, the present one not counted.
    pub(crate) levels_left: u32,
    /// Measured time of the levels before this one.
    pub(crate) measured_before: Duration,
}

/// Why the sweep does not go on after a level.
pub(crate) enum Cut {
    No,
    /// Ctrl-C.
    Asked,
    /// The level can't go on; a sentence says why.
    Failed(String),
}

impl Sweep<'_> {
    /// Runs one level to its end.
    pub(crate) fn level(&mut self, index: u32, users: u32, purpose: Purpose) -> Result<(Level, Cut), Error> {
        self.event("level_begin", format!("{users} users"));
        let mut running = self.engine.level(users)?;
        let mut watch = Phase::begin(self, users, purpose, false);
        let warmup_begin_ns = monotonic_ns();
        let warmup_steady = loop {
            if self.plan.warmup_max.is_zero() || self.stop.is_asked() || running.failure().is_some() {
                break false;
            }
            sleep(LOOK);
            self.drain(&running, index);
            watch.look(self, running.live().transactions);
            let elapsed = watch.begin.elapsed();
            let warm = elapsed >= WARMUP_MIN.min(self.plan.warmup_max) && is_steady(&watch.slots);
            if warm || elapsed >= self.plan.warmup_max {
                break warm;
            }
        };

        running.begin_measuring();
        let mut watch = Phase::begin(self, users, purpose, true);
        while watch.begin.elapsed() < self.plan.measure
            && !self.stop.is_asked()
            && running.failure().is_none()
        {
            let rest = self.plan.measure.saturating_sub(watch.begin.elapsed());
            sleep(LOOK.min(rest));
            self.drain(&running, index);
            watch.look(self, running.live().transactions);
            let so_far = self.measured_before + watch.begin.elapsed();
            self.actions.start_due(so_far, purpose, &self.recorder);
            if let Some(pid) = self.actions.take_new_pid() {
                self.watcher.server_pid_changed(Some(pid));
            }
        }
        self.measured_before += watch.begin.elapsed();
        let (outcome, last_intervals) = running.stop_with_intervals();
        for interval in &last_intervals {
            record_interval(&self.recorder, index, interval);
        }
        self.event("level_end", format!("{users} users"));
        let cut = self.cut(&outcome);
        let level = self.to_level(index, purpose, warmup_begin_ns, warmup_steady, &outcome, &cut);
        self.listener.hear(News::LevelDone(&level));
        Ok((level, cut))
    }

    fn cut(&self, outcome: &LevelOutcome) -> Cut {
        if let Some(failure) = &outcome.failure {
            return Cut::Failed(failure.message.clone());
        }
        if self.stop.is_asked() { Cut::Asked } else { Cut::No }
    }

    fn to_level(
        &self,
        index: u32,
        purpose: Purpose,
        warmup_begin_ns: i64,
        warmup_steady: bool,
        outcome: &LevelOutcome,
        cut: &Cut,
    ) -> Level {
        let at_ns = outcome.window_end_ns;
        let ended = match cut {
            Cut::No => Ended::Complete { at_ns },
            Cut::Asked => Ended::CutShort { at_ns, why: "interrupted by Ctrl-C".to_string() },
            Cut::Failed(why) => Ended::CutShort { at_ns, why: why.clone() },
        };
        Level {
            index,
            users: outcome.users,
            purpose,
            warmup: Window { begin_ns: warmup_begin_ns, end_ns: outcome.window_begin_ns },
            warmup_steady,
            window: Window { begin_ns: outcome.window_begin_ns, end_ns: outcome.window_end_ns },
            result: level_result(outcome),
            ended,
        }
    }

    fn drain(&self, running: &whyso_load::Running, index: u32) {
        while let Ok(interval) = running.intervals().try_recv() {
            record_interval(&self.recorder, index, &interval);
        }
    }

    fn event(&self, kind: &str, text: String) {
        let event = Event { t_ns: monotonic_ns(), host: "client".to_string(), kind: kind.to_string(), text };
        self.recorder.event(event);
    }

    /// Longest that the levels after this one may take.
    fn rest_after(&self) -> Duration {
        (self.plan.warmup_max + self.plan.measure) * self.levels_left
    }
}

/// Throughput while a phase (warm-up or measuring) goes on.
struct Phase {
    begin: Instant,
    news: Running,
    slot_end: Instant,
    counted: Option<u64>,
    slots: Vec<u64>,
}

impl Phase {
    fn begin(sweep: &Sweep<'_>, users: u32, purpose: Purpose, measuring: bool) -> Phase {
        let begin = Instant::now();
        let bound = if measuring { sweep.plan.measure } else { sweep.plan.warmup_max };
        let news = Running {
            users,
            purpose,
            measuring,
            elapsed: Duration::ZERO,
            bound,
            transactions_per_s: 0.0,
            rest: Duration::ZERO,
        };
        Phase { begin, news, slot_end: begin + SLOT, counted: None, slots: Vec::new() }
    }

    fn look(&mut self, sweep: &Sweep<'_>, transactions: u64) {
        let before = *self.counted.get_or_insert(transactions);
        let now = Instant::now();
        if now < self.slot_end {
            return;
        }
        let slot_s = (now - (self.slot_end - SLOT)).as_secs_f64();
        let in_slot = transactions.saturating_sub(before);
        self.slots.push(in_slot);
        self.counted = Some(transactions);
        self.slot_end = now + SLOT;
        self.news.elapsed = now - self.begin;
        self.news.transactions_per_s = in_slot as f64 / slot_s;
        let to_measure = if self.news.measuring { Duration::ZERO } else { sweep.plan.measure };
        self.news.rest = self.news.bound.saturating_sub(self.news.elapsed) + to_measure + sweep.rest_after();
        sweep.listener.hear(News::Level(self.news));
    }
}

/// The best level so far: the sweep's complete one with the highest throughput.
pub(crate) fn best(levels: &[Level]) -> Option<&Level> {
    let complete = levels.iter().filter(|level| matches!(level.ended, Ended::Complete { .. }));
    complete
        .filter(|level| level.purpose == Purpose::Sweep && level.result.transactions > 0)
        .max_by(|a, b| a.result.transactions_per_s.total_cmp(&b.result.transactions_per_s))
}

/// Shared so that an action may restart the server while the sweep asks whether it has died.
pub(crate) type Shared<T> = Arc<tokio::sync::Mutex<T>>;
