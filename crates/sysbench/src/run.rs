//! Runs a script's events, or one of its commands, on the load engine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_load::{
    Arrivals, Engine, EngineKind, Interval, LevelOutcome, LevelSpec, Limits, LoadSpec, Pacing, Profile,
    Running,
};

use crate::bridge::USES_SQL;
use crate::error::{RecordingError, RunError, ScriptError};
use crate::facts::{COUNTERS, Facts};
use crate::interrupt::was_interrupted;
use crate::report::{self, Stat, Subject, Sums};
use crate::say::{Priority, log, notice, say, say_fatal};
use crate::script::GlobalState;
use crate::settings::Settings;
use crate::surroundings::{Run, Surroundings};
use crate::watchdog::{give_up_now, run_ends_at};
use crate::work::ScriptWork;

const POLL: Duration = Duration::from_millis(5);
/// The same where time ends the run: looking costs the client CPU.
const POLL_OF_TIMED: Duration = Duration::from_millis(50);
/// Longest time that a statement may take: an index over a large table takes its time.
const STATEMENT_MAX: Duration = Duration::from_secs(24 * 3600);
/// Longest time for which a lost connection is reopened.
const RECONNECT_MAX: Duration = Duration::from_secs(10);
/// How long users that wait for an arrival have to learn that none is to come.
const OPEN_LOOP_END: Duration = Duration::from_millis(500);

/// Events that are due and not begun, in an open loop, above which sysbench gives up.
const QUEUE_MAX: f64 = 100_000.0;
const QUEUE_IS_FULL: &str = "The event queue is full. This means the worker threads are unable to keep up with the \
                             specified event generation rate";
/// How a run ended.
pub(crate) struct RunEnd {
    pub(crate) run: Run,
    pub(crate) outcome: LevelOutcome,
    /// Where it was recorded, or why that failed; `None` where it was not to be.
    pub(crate) recorded: Option<Result<PathBuf, RecordingError>>,
    pub(crate) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Well,
    Failed,
    /// Events were still running when `--forced-shutdown` ended it.
    GivenUp,
}

/// # Errors
/// No server is named.
pub(crate) fn load_spec(settings: &Settings, users: u32, seed: u64) -> Result<LoadSpec, RunError> {
    let limits = Limits {
        connect: settings.init_timeout,
        stall: STATEMENT_MAX,
        reconnect: RECONNECT_MAX,
        ..Limits::default()
    };
    let Some(first) = settings.endpoints.first() else {
        return Err(RunError::NoServer);
    };
    Ok(LoadSpec {
        endpoints: settings.endpoints.clone(),
        limits,
        engine: settings.engine,
        compression: settings.compression,
        ..LoadSpec::new(first.target.clone(), users, seed)
    })
}

fn open(settings: &Settings, users: u32, facts: &Arc<Facts>) -> Result<Engine, RunError> {
    let work = ScriptWork::new(facts.clone())?;
    let mut spec = load_spec(settings, users, facts.seed)?;
    if facts.is_cpu_test {
        // Its events never give way.
        spec.engine = EngineKind::Threads;
    }
    Ok(Engine::open(&spec, Arc::new(work))?)
}

/// Prints why users gave up. Returns whether any did.
fn print_failure(running: &Running, facts: &Facts) -> bool {
    if let Some(failure) = facts.failure() {
        failure.note_trace();
        say_fatal(&failure.to_string());
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

/// Runs a command of the script, once per user. Returns whether it went well.
///
/// # Errors
/// What keeps the load from being started.
pub(crate) fn command(settings: &Settings, users: u32, facts: &Arc<Facts>) -> Result<bool, RunError> {
    let mut engine = open(settings, users, facts)?;
    let running = engine.level_with(&LevelSpec::users(users))?;
    while !is_ended(&running) {
        std::thread::sleep(POLL);
    }
    let failed = print_failure(&running, facts);
    if !running.is_over() {
        give_up_now();
    }
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
) -> Result<RunEnd, RunError> {
    let threads = settings.threads;
    notice("Initializing worker threads...\n\n");
    let mut engine = open(settings, threads, facts)?;
    let mut level = LevelSpec::users(threads);
    if settings.rate > 0.0 {
        level.pacing = Pacing::Open { arrivals: Arrivals::Poisson, rate: Profile::constant(settings.rate) };
    }
    let run = Run::new(settings, facts, level.pacing.clone());
    let begun = settings.record.as_ref().map(|folder| surroundings.record(&run, folder));
    let mut recording = begun.transpose()?;
    let mut running = engine.level_with(&level)?;
    let are_ready = match await_ready(settings, facts, &running) {
        Ok(are_ready) => are_ready,
        Err(problem) => {
            // What still loads is not waited for.
            give_up_now();
            return Err(problem);
        }
    };
    if are_ready {
        print_started(threads);
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
    if let Some(time) = settings.time {
        run_ends_at(begin_ns.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)));
    }
    let poll = if settings.events == 0 { POLL_OF_TIMED } else { POLL };
    let mut is_overrun = false;
    while are_ready && !is_ended(&running) && deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let rest = deadline.map_or(poll, |deadline| deadline.saturating_duration_since(Instant::now()));
        std::thread::sleep(poll.min(rest));
        for interval in running.intervals().try_iter() {
            reporter.take(&interval)?;
            recording.iter_mut().for_each(|recording| recording.interval(&interval));
        }
        is_overrun = settings.rate > 0.0 && is_queue_full(settings.rate, &running);
        if is_overrun {
            break;
        }
    }
    facts.ending.store(true, Relaxed);
    run_ends_at(monotonic_ns());
    let grace = match settings.forced_shutdown {
        _ if is_overrun => Duration::ZERO,
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
    let failed = print_failure(&running, facts) || is_overrun;
    if failed && facts.go.load(Relaxed) && !are_ready {
        say_fatal("Thread initialization failed!");
    }
    if is_overrun {
        say_fatal(QUEUE_IS_FULL);
    }
    let unfinished = facts.unfinished();
    let is_given_up = settings.forced_shutdown.is_some() && unfinished > 0 && !running.is_over();
    if !running.is_over() {
        give_up_now();
    }
    recording.iter_mut().for_each(|recording| recording.window_edge());
    let (outcome, intervals) = running.stop_with_intervals();
    for interval in &intervals {
        if !failed {
            reporter.take(interval)?;
        }
        recording.iter_mut().for_each(|recording| recording.interval(interval));
    }
    let how = match (failed, is_given_up) {
        (true, _) => How::Failed,
        (false, true) => How::GivenUp,
        (false, false) => How::Well,
    };
    if how == How::GivenUp {
        say_fatal("The --max-time limit has expired, forcing shutdown...");
    }
    // A run that failed has no report, as with sysbench.
    if how != How::Failed {
        let is_timed_out = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        print_ended(threads, is_timed_out);
        reporter.finish(&outcome, if is_given_up { unfinished } else { 0 })?;
    }
    let recorded = recording.map(|recording| recording.finish(&outcome, was_interrupted()));
    Ok(RunEnd { run, outcome, recorded, how })
}

/// Whether more events are due and not done than sysbench would keep.
fn is_queue_full(rate: f64, running: &Running) -> bool {
    let seconds = (monotonic_ns() - running.begin_ns()) as f64 / 1e9;
    rate * seconds - running.live().transactions as f64 > QUEUE_MAX
}

fn print_started(threads: u32) {
    for thread in 0..threads {
        log(Priority::Debug, &format!("Worker thread (#{thread}) started"));
        log(Priority::Debug, &format!("Worker thread (#{thread}) initialized"));
    }
    notice("Threads started!\n\n");
}

/// Why the threads ended, each in a line.
fn print_ended(threads: u32, is_timed_out: bool) {
    let limit = if is_timed_out { "Time" } else { "Event" };
    for _ in 0..threads {
        log(Priority::Info, &format!("{limit} limit exceeded, exiting..."));
    }
    log(Priority::Info, "Done.\n");
}

fn is_ended(running: &Running) -> bool {
    running.is_over() || running.failure().is_some() || was_interrupted()
}

/// Waits until every user's `thread_init` is done. In an open loop users begin when an event is due for them.
fn await_ready(settings: &Settings, facts: &Facts, running: &Running) -> Result<bool, RunError> {
    if settings.rate > 0.0 {
        return Ok(true);
    }
    let deadline = Instant::now() + settings.init_timeout;
    while facts.ready.load(Relaxed) < settings.threads {
        if is_ended(running) {
            return Ok(running.failure().is_none() && facts.failure().is_none());
        }
        if Instant::now() > deadline {
            return Err(RunError::NotReady {
                ready: facts.ready.load(Relaxed),
                threads: settings.threads,
                timeout_s: settings.init_timeout.as_secs(),
            });
        }
        std::thread::sleep(POLL / 5);
    }
    Ok(true)
}

/// Hooks of scripts that report.
const INTERMEDIATE: &str = "report_intermediate";
const CUMULATIVE: &str = "report_cumulative";

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
    /// What scripts had counted at the last report of each kind.
    counters_at_report: [u64; COUNTERS],
    counters_at_checkpoint: [u64; COUNTERS],
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
            counters_at_report: facts.counters(),
            counters_at_checkpoint: facts.counters(),
        }
    }

    fn take(&mut self, interval: &Interval) -> Result<(), ScriptError> {
        if !interval.measured {
            return Ok(());
        }
        self.since_report.add(interval, &self.settings.ignore_errors);
        self.since_checkpoint.add(interval, &self.settings.ignore_errors);
        let seconds = (interval.end_ns - self.begin_ns) as f64 / 1e9;
        let is_whole = |every: u64| every > 0 && self.since_report.seconds > every as f64 - 0.5;
        if is_whole(self.settings.report_interval) {
            let mut sums = std::mem::take(&mut self.since_report);
            sums.add_counters(&newly_counted(self.facts, &mut self.counters_at_report));
            let (threads, percentile) = (self.settings.threads, self.settings.percentile);
            let backlog = interval.backlog.unwrap_or(0);
            let stat = Stat::intermediate(&sums, seconds, threads, percentile, backlog);
            if !self.script.report(INTERMEDIATE, &stat)? {
                let rate = self.settings.rate;
                notice(&report::intermediate(self.subject(), &sums, &stat, percentile, rate));
            }
        }
        let due = self.settings.checkpoints.get(self.checkpoints_done);
        if due.is_some_and(|due| seconds > *due as f64 - 0.5) {
            self.checkpoints_done += 1;
            let mut sums = std::mem::take(&mut self.since_checkpoint);
            sums.add_counters(&newly_counted(self.facts, &mut self.counters_at_checkpoint));
            notice(&format!("[ {seconds:.0}s ] Checkpoint report:\n"));
            self.full(&sums, seconds, self.settings.threads, 0)?;
            self.script.end_reports(CUMULATIVE);
        }
        Ok(())
    }

    fn subject(&self) -> Subject {
        match (self.facts.is_cpu_test, USES_SQL.load(Relaxed)) {
            (true, _) => Subject::Cpu,
            (false, true) => Subject::Sql,
            (false, false) => Subject::Script,
        }
    }

    /// The report of a whole run, or of what followed the last checkpoint.
    fn finish(&mut self, outcome: &LevelOutcome, unfinished: usize) -> Result<(), ScriptError> {
        self.script.end_reports(INTERMEDIATE);
        let mut sums = match self.checkpoints_done {
            0 => Sums::of_level(outcome, &self.settings.ignore_errors),
            _ => self.since_checkpoint.clone(),
        };
        sums.add_counters(&newly_counted(self.facts, &mut self.counters_at_checkpoint));
        if self.settings.histogram {
            notice("Latency histogram (values are in milliseconds)\n");
            say(&report::histogram(&sums));
            notice(" \n");
        }
        let seconds = (outcome.window_end_ns - self.begin_ns) as f64 / 1e9;
        self.full(&sums, seconds, 0, unfinished)?;
        self.script.end_reports(CUMULATIVE);
        Ok(())
    }

    /// `threads`: those that still work.
    fn full(
        &mut self,
        sums: &Sums,
        seconds: f64,
        threads: u32,
        unfinished: usize,
    ) -> Result<(), ScriptError> {
        let now = self.facts.users();
        let users: Vec<(u64, u64)> = now
            .iter()
            .zip(&self.users_at_begin)
            .map(|((events, busy_ns), before)| (events - before.0, busy_ns - before.1))
            .collect();
        self.users_at_begin = now;
        let percentile = self.settings.percentile;
        let stat = Stat::cumulative(sums, seconds, threads, percentile);
        if !self.script.report(CUMULATIVE, &stat)? {
            notice(&report::full(self.subject(), sums, seconds, percentile, &users, unfinished));
        }
        Ok(())
    }
}

/// What scripts have counted since the last time.
fn newly_counted(facts: &Facts, before: &mut [u64; COUNTERS]) -> [u64; COUNTERS] {
    let now = facts.counters();
    let mut new = now;
    for (new, before) in new.iter_mut().zip(&*before) {
        *new -= before;
    }
    *before = now;
    new
}
