//! Runs a script's events, or one of its commands, on the load engine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use whyso_load::{
    Arrivals, Engine, Interval, LevelOutcome, LevelSpec, Limits, LoadSpec, Pacing, Profile, Running,
};

use crate::facts::Facts;
use crate::report::{self, Stat, Sums};
use crate::say::{note, say, say_fatal};
use crate::script::GlobalState;
use crate::settings::Settings;
use crate::surroundings::{Run, Surroundings};
use crate::work::ScriptWork;

const POLL: Duration = Duration::from_millis(5);
/// The same where time ends the run: looking costs the client CPU.
const POLL_OF_TIMED: Duration = Duration::from_millis(50);
/// Longest time that a statement may take: an index over a large table takes its time.
const STATEMENT_MAX: Duration = Duration::from_secs(24 * 3600);
/// Longest time that a lost connection is sought to be made anew.
const RECONNECT_MAX: Duration = Duration::from_secs(10);
/// How long users that wait for an arrival are given to hear that there is none to come.
const OPEN_LOOP_END: Duration = Duration::from_millis(500);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) run: Run,
    pub(crate) outcome: LevelOutcome,
    /// Where it was recorded, or why that failed; `None` where it was not to be.
    pub(crate) recorded: Option<Result<PathBuf, String>>,
    pub(crate) went_well: bool,
}

/// # Errors
/// No server is named.
pub(crate) fn load_spec(settings: &Settings, users: u32, seed: u64) -> Result<LoadSpec, String> {
    let limits = Limits {
        connect: settings.init_timeout,
        stall: STATEMENT_MAX,
        reconnect: RECONNECT_MAX,
        ..Limits::default()
    };
    let Some(first) = settings.endpoints.first() else {
        return Err("no server is named: give --mysql-host or --mysql-socket".to_string());
    };
    Ok(LoadSpec {
        endpoints: settings.endpoints.clone(),
        limits,
        engine: settings.engine,
        compression: settings.compression,
        ..LoadSpec::new(first.target.clone(), users, seed)
    })
}

fn open(settings: &Settings, users: u32, facts: &Arc<Facts>) -> Result<Engine, String> {
    let work = ScriptWork::new(facts.clone())?;
    let spec = load_spec(settings, users, facts.seed)?;
    Engine::open(&spec, Arc::new(work)).map_err(|error| error.to_string())
}

/// Says why users gave up; whether any did.
fn tell_failure(running: &Running, facts: &Facts) -> bool {
    if let Some(failure) = facts.failure() {
        say_fatal(&format!("`{}' function failed: {}", failure.function, failure.message));
        if !failure.trace.is_empty() {
            note(&failure.trace);
        }
        return true;
    }
    match running.failure() {
        Some(failure) => {
            say_fatal(&failure.message);
            true
        }
        None => false,
    }
}

/// Runs a command of the script, once a user. Gives whether it went well.
///
/// # Errors
/// What keeps the load from being started.
pub(crate) fn command(settings: &Settings, users: u32, facts: &Arc<Facts>) -> Result<bool, String> {
    let mut engine = open(settings, users, facts)?;
    let running = engine.level_with(&LevelSpec::users(users)).map_err(|error| error.to_string())?;
    while !is_ended(&running) {
        std::thread::sleep(POLL);
    }
    let failed = tell_failure(&running, facts);
    drop(running);
    Ok(!failed && !was_interrupted())
}

/// Runs events until the run is over, and reports.
///
/// # Errors
/// What keeps the load from being started.
pub(crate) fn events(
    settings: &Settings,
    facts: &Arc<Facts>,
    script: &mut GlobalState,
    surroundings: &dyn Surroundings,
) -> Result<Ended, String> {
    let threads = settings.threads;
    if settings.verbosity >= 3 {
        say("Initializing worker threads...\n\n");
    }
    let mut engine = open(settings, threads, facts)?;
    let mut level = LevelSpec::users(threads);
    if settings.rate > 0.0 {
        level.pacing = Pacing::Open { arrivals: Arrivals::Poisson, rate: Profile::constant(settings.rate) };
    }
    let run = Run::new(settings, facts, level.pacing.clone());
    let begun = settings.record.as_ref().map(|folder| surroundings.record(&run, folder));
    let mut recording = begun.transpose()?;
    let mut running = engine.level_with(&level).map_err(|error| error.to_string())?;
    let are_ready = await_ready(settings, facts, &running)?;
    if are_ready && settings.verbosity >= 3 {
        say("Threads started!\n\n");
    }
    if settings.warmup.is_zero() {
        // Before the first event, which may be over at once.
        running.begin_measuring();
    }
    facts.go.store(true, Relaxed);
    let warm_until = Instant::now() + settings.warmup;
    while are_ready && Instant::now() < warm_until && !is_ended(&running) {
        std::thread::sleep(POLL);
    }
    let begin_ns = running.begin_measuring();
    recording.iter_mut().for_each(|recording| recording.window_edge());
    let mut reporter = Reporter::new(settings, facts, script, begin_ns);
    let deadline = settings.time.map(|time| Instant::now() + time);
    let poll = if settings.events == 0 { POLL_OF_TIMED } else { POLL };
    while are_ready && !is_ended(&running) && deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let rest = deadline.map_or(poll, |deadline| deadline.saturating_duration_since(Instant::now()));
        std::thread::sleep(poll.min(rest));
        for interval in running.intervals().try_iter() {
            reporter.take(&interval)?;
            recording.iter_mut().for_each(|recording| recording.interval(&interval));
        }
    }
    facts.ending.store(true, Relaxed);
    let grace = match settings.forced_shutdown {
        Some(grace) => grace,
        None if settings.rate > 0.0 => OPEN_LOOP_END,
        None => STATEMENT_MAX,
    };
    let until = Instant::now() + grace;
    // Who interrupts does not want to wait for long statements.
    let may_wait = |now: Instant| now < until && !was_interrupted();
    while !is_ended(&running) && may_wait(Instant::now()) {
        std::thread::sleep(POLL / 5);
    }
    let failed = tell_failure(&running, facts);
    if failed && facts.go.load(Relaxed) && !are_ready {
        say_fatal("Thread initialization failed!");
    }
    recording.iter_mut().for_each(|recording| recording.window_edge());
    let (outcome, intervals) = running.stop_with_intervals();
    for interval in &intervals {
        reporter.take(interval)?;
        recording.iter_mut().for_each(|recording| recording.interval(interval));
    }
    if are_ready && settings.verbosity >= 3 {
        reporter.finish(&outcome)?;
    }
    let recorded = recording.map(|recording| recording.finish(&outcome, was_interrupted()));
    Ok(Ended { run, outcome, recorded, went_well: !failed })
}

fn is_ended(running: &Running) -> bool {
    running.is_over() || running.failure().is_some() || INTERRUPTED.load(Relaxed)
}

/// Ends the run that is under way, which is reported as far as it came. May be called from any thread.
pub fn interrupt() {
    INTERRUPTED.store(true, Relaxed);
}

/// Whether [`interrupt`] was called.
pub fn was_interrupted() -> bool {
    INTERRUPTED.load(Relaxed)
}

/// Waits until every user's `thread_init` is done. In an open loop users begin when an event is due for them.
fn await_ready(settings: &Settings, facts: &Facts, running: &Running) -> Result<bool, String> {
    if settings.rate > 0.0 {
        return Ok(true);
    }
    let deadline = Instant::now() + settings.init_timeout;
    while facts.ready.load(Relaxed) < settings.threads {
        if is_ended(running) {
            return Ok(running.failure().is_none() && facts.failure().is_none());
        }
        if Instant::now() > deadline {
            return Err(format!(
                "only {} of {} threads were ready within {} s; --thread-init-timeout allows more",
                facts.ready.load(Relaxed),
                settings.threads,
                settings.init_timeout.as_secs()
            ));
        }
        std::thread::sleep(POLL / 5);
    }
    Ok(true)
}

/// Gives intermediate reports and checkpoints from the engine's intervals.
struct Reporter<'r> {
    settings: &'r Settings,
    facts: &'r Facts,
    script: &'r mut GlobalState,
    begin_ns: i64,
    /// Since the last intermediate report.
    since_report: Sums,
    /// Since the begin, or the last checkpoint.
    since_checkpoint: Sums,
    checkpoints_done: usize,
    users_at_begin: Vec<(u64, u64)>,
}

impl<'r> Reporter<'r> {
    fn new(
        settings: &'r Settings,
        facts: &'r Facts,
        script: &'r mut GlobalState,
        begin_ns: i64,
    ) -> Reporter<'r> {
        Reporter {
            settings,
            facts,
            script,
            begin_ns,
            since_report: Sums::default(),
            since_checkpoint: Sums::default(),
            checkpoints_done: 0,
            users_at_begin: facts.users(),
        }
    }

    fn take(&mut self, interval: &Interval) -> Result<(), String> {
        if !interval.measured {
            return Ok(());
        }
        self.since_report.add(interval, &self.settings.ignore_errors);
        self.since_checkpoint.add(interval, &self.settings.ignore_errors);
        let seconds = (interval.end_ns - self.begin_ns) as f64 / 1e9;
        let is_whole = |every: u64| every > 0 && self.since_report.seconds > every as f64 - 0.5;
        if is_whole(self.settings.report_interval) {
            let sums = std::mem::take(&mut self.since_report);
            let (threads, percentile) = (self.settings.threads, self.settings.percentile);
            let backlog = interval.backlog.unwrap_or(0);
            let stat = Stat::intermediate(&sums, seconds, threads, percentile, backlog);
            self.script.report("report_intermediate", &stat)?;
        }
        let due = self.settings.checkpoints.get(self.checkpoints_done);
        if due.is_some_and(|due| seconds > *due as f64 - 0.5) {
            self.checkpoints_done += 1;
            let sums = std::mem::take(&mut self.since_checkpoint);
            say(&format!("[ {seconds:.0}s ] Checkpoint report:\n"));
            self.full(&sums, seconds)?;
        }
        Ok(())
    }

    /// The report of a whole run, or of what came after the last checkpoint.
    fn finish(&mut self, outcome: &LevelOutcome) -> Result<(), String> {
        let mut sums = match self.checkpoints_done {
            0 => Sums::of_level(outcome, &self.settings.ignore_errors),
            _ => self.since_checkpoint.clone(),
        };
        sums.add_counters(&self.facts.counters());
        if self.settings.histogram {
            say(&report::histogram(&sums));
        }
        let seconds = (outcome.window_end_ns - self.begin_ns) as f64 / 1e9;
        self.full(&sums, seconds)
    }

    fn full(&mut self, sums: &Sums, seconds: f64) -> Result<(), String> {
        let now = self.facts.users();
        let users: Vec<(u64, u64)> = now
            .iter()
            .zip(&self.users_at_begin)
            .map(|((events, busy_ns), before)| (events - before.0, busy_ns - before.1))
            .collect();
        self.users_at_begin = now;
        let percentile = self.settings.percentile;
        let stat = Stat::cumulative(sums, seconds, self.settings.threads, percentile);
        if !self.script.report("report_cumulative", &stat)? {
            say(&report::full(sums, percentile, &users));
        }
        Ok(())
    }
}
