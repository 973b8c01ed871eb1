//! A load that another host commands: this process connects the users, and begins and ends levels at the times that it is given.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_hub::{LoadPhase, LoadRequest, LoadState, LoadStep};
use whyso_load::{Interval, LevelOutcome, LevelSpec, Limits, Live, LoadSpec};
use whyso_server::answers::{answered, log_out};
use whyso_server::knobs::session_statement;
use whyso_server::{Dsn, schema};
use whyso_workload::{DictionarySource, Workload};

use crate::engine::{Engine, RunningLevel};
use crate::own_data::fill_dictionaries;
use crate::plan::{check_data_set, check_users};
use crate::runtime::runtime;
use crate::server_identity::server_identity;
use crate::server_plan::ServerPlan;
use crate::source::{Source, WorkloadContext};
use crate::{Error, login, server_under_test};

/// Between two checks of a level.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// A load ends by itself when nobody has asked for it for this long.
const UNASKED_TIME_MAX: Duration = Duration::from_secs(30);
/// Nothing begins or ends later than this after it was asked for.
const AHEAD_NS_MAX: i64 = 10_000_000_000;
/// Intervals that are kept for the commander; older ones are lost, and counted.
const INTERVALS_MAX: usize = 3600;
/// Intervals in one answer.
const INTERVALS_AT_ONCE: usize = 4;

/// What a generator may send its load to.
#[derive(Clone, Debug)]
pub struct GeneratorTarget {
    pub dsn: String,
    /// A schema that whyso did not make may be written.
    pub allow_writes: bool,
    /// Sessions of the load may be given settings.
    pub may_experiment: bool,
}

/// A load that another host commands. Dropping it ends the load.
pub struct Generator {
    steps: Sender<Step>,
    shared: Arc<Mutex<SharedLoad>>,
}

/// What is left of a [`LoadStep`] for the thread to do.
enum Step {
    Level { number: u32, spec: LevelSpec, at_ns: i64 },
    Measure { at_ns: i64 },
    Stop { at_ns: i64 },
}

struct SharedLoad {
    phase: LoadPhase,
    level: u32,
    measured: u32,
    stopped: u32,
    live: Live,
    is_over: bool,
    failure: Option<String>,
    intervals: VecDeque<(u64, Interval)>,
    interval_number: u64,
    intervals_lost: u64,
    outcome: Option<Box<LevelOutcome>>,
    asked_at: Instant,
    /// Nobody needs it any more.
    is_closed: bool,
}

/// Whatever ends the thread, the load is over then.
struct OverAtLast(Arc<Mutex<SharedLoad>>);

impl Drop for OverAtLast {
    fn drop(&mut self) {
        lock(&self.0).phase = LoadPhase::Over;
    }
}

impl Generator {
    /// Begins to connect the users of a load.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn open(target: GeneratorTarget, request: LoadRequest) -> Result<Generator, Error> {
        let (steps, received) = channel();
        let shared = Arc::new(Mutex::new(SharedLoad {
            phase: LoadPhase::Opening,
            level: 0,
            measured: 0,
            stopped: 0,
            live: Live::default(),
            is_over: false,
            failure: None,
            intervals: VecDeque::new(),
            interval_number: 0,
            intervals_lost: 0,
            outcome: None,
            asked_at: Instant::now(),
            is_closed: false,
        }));
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("generator".to_string()).spawn(move || {
            let _over = OverAtLast(Arc::clone(&of_thread));
            let opened = open(&target, &request);
            match opened {
                Ok(engine) => {
                    lock(&of_thread).phase = LoadPhase::Ready;
                    attend(engine, &received, &of_thread);
                }
                Err(error) => lock(&of_thread).failure = Some(error.to_string()),
            }
        });
        thread.map_err(|error| Error::Failed(format!("can't start a thread: {error}")))?;
        Ok(Generator { steps, shared })
    }

    /// Whether the load has ended for good.
    pub fn is_over(&self) -> bool {
        lock(&self.shared).phase == LoadPhase::Over
    }

    /// Whether somebody has asked for it lately, and may ask again.
    pub fn is_asked(&self) -> bool {
        !is_unasked(&self.shared)
    }

    /// Ends the load. Its users are disconnected once [`Generator::is_over`] is true.
    pub fn close(&self) {
        lock(&self.shared).is_closed = true;
    }

    /// Takes a step, and returns how far the load is. A step that comes again is not taken twice.
    ///
    /// # Errors
    /// Why the step can't be taken.
    pub fn step(&self, step: &LoadStep, seen: u64) -> Result<LoadState, String> {
        let mut shared = lock(&self.shared);
        shared.asked_at = Instant::now();
        while shared.intervals.front().is_some_and(|(number, _)| *number <= seen) {
            shared.intervals.pop_front();
        }
        let taken = match step {
            LoadStep::Level { number, spec, at_ns } if *number == shared.level + 1 => {
                if shared.phase != LoadPhase::Ready {
                    return Err("its users are not connected, or a level runs".to_string());
                }
                check_time(*at_ns)?;
                (shared.level, shared.phase) = (*number, LoadPhase::Running);
                (shared.live, shared.is_over, shared.failure) = (Live::default(), false, None);
                shared.outcome = None;
                Some(Step::Level { number: *number, spec: spec.clone(), at_ns: *at_ns })
            }
            LoadStep::Level { number, .. } if *number != shared.level => {
                return Err(format!("level {number} does not follow level {}", shared.level));
            }
            LoadStep::Measure { level, at_ns } if *level == shared.level && shared.measured < *level => {
                check_time(*at_ns)?;
                shared.measured = *level;
                Some(Step::Measure { at_ns: *at_ns })
            }
            LoadStep::Stop { level, at_ns } if *level == shared.level && shared.stopped < *level => {
                check_time(*at_ns)?;
                shared.stopped = *level;
                Some(Step::Stop { at_ns: *at_ns })
            }
            _ => None,
        };
        if let Some(step) = taken
            && self.steps.send(step).is_err()
        {
            return Err(shared.failure.clone().unwrap_or_else(|| "the load is over".to_string()));
        }
        Ok(shared.state())
    }
}

impl SharedLoad {
    fn state(&self) -> LoadState {
        let intervals: Vec<(u64, Interval)> =
            self.intervals.iter().take(INTERVALS_AT_ONCE).cloned().collect();
        LoadState {
            phase: self.phase,
            level: self.level,
            live: self.live,
            is_over: self.is_over,
            failure: self.failure.clone(),
            outcome: self.outcome.clone().filter(|_| intervals.is_empty()),
            intervals,
        }
    }

    fn keep(&mut self, interval: Interval) {
        self.interval_number += 1;
        if self.intervals.len() >= INTERVALS_MAX {
            self.intervals.pop_front();
            self.intervals_lost += 1;
        }
        self.intervals.push_back((self.interval_number, interval));
    }
}

fn lock(shared: &Mutex<SharedLoad>) -> MutexGuard<'_, SharedLoad> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_time(at_ns: i64) -> Result<(), String> {
    match at_ns.saturating_sub(monotonic_ns()) <= AHEAD_NS_MAX {
        true => Ok(()),
        false => Err("it is asked to wait for too long".to_string()),
    }
}

/// Connects the users, after it was checked that they may do what the workload does.
fn open(target: &GeneratorTarget, request: &LoadRequest) -> Result<Engine, Error> {
    check_users(&[request.users_max])?;
    check_data_set(request.tables, request.rows)?;
    let source = Source::from(&request.source);
    let mut dsn = Dsn::resolve(&target.dsn)?;
    let allow_writes = target.allow_writes.then(|| dsn.schema.clone());
    let mut workload = source.workload(&WorkloadContext {
        options: &request.options,
        tables: request.tables,
        rows: request.rows,
        servers: &[ServerPlan::Dsn { dsn: target.dsn.clone(), set: Vec::new() }],
        allow_writes: allow_writes.as_deref(),
    })?;
    refuse_files(&workload)?;
    for kind in &request.left_out {
        workload.leave_out(kind)?;
    }
    if !request.session.is_empty() && !target.may_experiment {
        return Err(Error::Plan(
            "it asks for settings of the load's sessions, which is an experiment: the agent's file has to allow it, by \"experiment\" in may".to_string(),
        ));
    }
    for (name, value) in &request.session {
        refuse_setting(name)?;
        workload.session.push(session_statement(name, value)?);
    }
    let runtime = runtime()?;
    runtime.block_on(async {
        if let Some(wanted) = &request.server {
            let found = server_identity(&dsn).await?;
            if found != *wanted {
                return Err(Error::Plan(format!(
                    "the target {} is another server ({found}) than the one that the experiment changes ({wanted}): name the same server by --dsn and in the agent's file",
                    request.target
                )));
            }
        }
        let mut conn = login::log_in(&mut dsn, &|_| None).await?;
        if !workload.only_reads() && !target.allow_writes && !matches!(source, Source::Builtin(_)) {
            // It could name any schema.
            return Err(Error::Plan(
                "SQL of a commander's own writes, which the agent's file does not allow: give its target allow_writes = true".to_string(),
            ));
        }
        if !workload.only_reads() && !target.allow_writes {
            let doing = "looking for whyso's mark in the schema";
            if !answered(&dsn, doing, schema::is_marked(&mut conn, &dsn.schema)).await? {
                return Err(Error::Plan(format!(
                    "whyso did not make the schema {}, and this load writes: let the agent's file allow it by allow_writes = true",
                    dsn.schema
                )));
            }
        }
        log_out(conn).await;
        fill_dictionaries(&dsn, &mut workload).await
    })?;
    let spec = LoadSpec {
        engine: request.engine,
        loops: request.loops,
        tuning: request.tuning,
        limits: Limits { reconnect: request.reconnect, ..Limits::default() },
        ..LoadSpec::new(server_under_test::target(&dsn), request.users_max, request.seed)
    };
    Engine::open(&spec, &workload)
}

/// No order names a path of this host.
fn refuse_files(workload: &Workload) -> Result<(), Error> {
    let reads_file = |source: &DictionarySource| matches!(source, DictionarySource::File(_));
    match workload.dictionaries.iter().find(|dictionary| reads_file(&dictionary.source)) {
        Some(dictionary) => Err(Error::Plan(format!(
            "the dictionary {} is a file, and a load of several hosts reads none: fill it by a query",
            dictionary.name
        ))),
        None => Ok(()),
    }
}

/// Beginnings of the names of settings by which a session could write what its replicas never get, or what breaks the rules of its tables.
const REFUSED_SETTINGS: [&str; 12] = [
    "sql_log_bin",
    "gtid_",
    "pseudo_",
    "debug",
    "foreign_key_checks",
    "unique_checks",
    "check_constraint_checks",
    "binlog_",
    "wsrep_",
    "skip_replication",
    "server_id",
    "rbr_exec_mode",
];

fn refuse_setting(name: &str) -> Result<(), Error> {
    let plain = name.trim().to_lowercase().replace('-', "_");
    match REFUSED_SETTINGS.iter().any(|begin| plain.starts_with(begin)) {
        true => Err(Error::Plan(format!(
            "an agent gives its sessions no {name}, by which a load could harm replicas or tables: leave it out"
        ))),
        false => Ok(()),
    }
}

/// Runs the levels that are asked for, until nobody asks any more.
fn attend(mut engine: Engine, steps: &Receiver<Step>, shared: &Mutex<SharedLoad>) {
    loop {
        match steps.recv_timeout(CHECK_INTERVAL) {
            Ok(Step::Level { number, spec, at_ns }) => {
                sleep_until(at_ns);
                match engine.begin(&spec) {
                    Ok(running) => run_level(running, number, steps, shared),
                    Err(error) => fail(shared, error.to_string()),
                }
            }
            // Of a level that has ended by itself.
            Ok(Step::Measure { .. } | Step::Stop { .. }) => {}
            Err(RecvTimeoutError::Timeout) if is_unasked(shared) => return,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn run_level(mut running: RunningLevel, number: u32, steps: &Receiver<Step>, shared: &Mutex<SharedLoad>) {
    loop {
        match steps.recv_timeout(CHECK_INTERVAL) {
            Ok(Step::Measure { at_ns }) => {
                sleep_until(at_ns);
                running.begin_measuring();
            }
            Ok(Step::Stop { at_ns }) => {
                sleep_until(at_ns);
                break;
            }
            // No level follows before the end of this one.
            Ok(Step::Level { .. }) => {}
            Err(RecvTimeoutError::Timeout) if !is_unasked(shared) => {}
            Err(_) => break,
        }
        let intervals = running.take_intervals();
        let mut shared = lock(shared);
        shared.live = running.live();
        shared.is_over = running.is_over();
        if shared.failure.is_none() && running.has_failed() {
            // The outcome says why.
            shared.failure = Some("the load has failed".to_string());
        }
        intervals.into_iter().for_each(|interval| shared.keep(interval));
    }
    let (mut outcome, intervals) = running.stop_with_intervals();
    let mut shared = lock(shared);
    intervals.into_iter().for_each(|interval| shared.keep(interval));
    outcome.intervals_lost += std::mem::take(&mut shared.intervals_lost);
    shared.level = number;
    shared.outcome = Some(Box::new(outcome));
    shared.phase = LoadPhase::Ready;
}

fn fail(shared: &Mutex<SharedLoad>, why: String) {
    let mut shared = lock(shared);
    shared.failure = Some(why);
    shared.phase = LoadPhase::Ready;
}

fn is_unasked(shared: &Mutex<SharedLoad>) -> bool {
    let shared = lock(shared);
    shared.is_closed || shared.asked_at.elapsed() > UNASKED_TIME_MAX
}

fn sleep_until(at_ns: i64) {
    let left_ns = at_ns.saturating_sub(monotonic_ns()).clamp(0, AHEAD_NS_MAX);
    sleep(Duration::from_nanos(left_ns as u64));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commander_gives_sessions_no_setting_that_harms_replicas_or_tables() {
        for name in ["sql_log_bin", "SQL-Log-Bin", " gtid_next", "foreign_key_checks", "wsrep_on"] {
            assert!(refuse_setting(name).unwrap_err().to_string().contains("leave it out"), "{name}");
        }
        for name in ["sort_buffer_size", "optimizer_switch", "innodb_lock_wait_timeout"] {
            refuse_setting(name).unwrap();
        }
    }
}
