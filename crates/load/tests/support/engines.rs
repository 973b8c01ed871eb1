//! The same test on every engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use whyso_load::{
    Engine, EngineKind, LevelOutcome, LevelSpec, Limits, LoadError, LoadSpec, NativeWork, Running, Target,
};
use whyso_workload::{Options, Workload};

/// Bounds that are short enough for a test.
pub(crate) const LIMITS: Limits = Limits {
    connect: Duration::from_millis(1000),
    stall: Duration::from_millis(400),
    stop: Duration::from_millis(500),
    reconnect: Duration::ZERO,
};
/// Longest time that anything here may take, whatever else the machine does.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Those that this kernel has; says which it leaves out.
pub(crate) fn engines() -> Vec<EngineKind> {
    let mut engines = vec![EngineKind::Threads, EngineKind::Epoll];
    match io_uring::IoUring::new(2) {
        Ok(_) => engines.push(EngineKind::IoUring),
        Err(error) => whyso_testing::not_tested(format!("io-uring is missing here: {error}")),
    }
    engines
}

pub(crate) fn event_loops() -> Vec<EngineKind> {
    engines().into_iter().filter(|engine| *engine != EngineKind::Threads).collect()
}

pub(crate) fn point_select() -> Workload {
    Workload::builtin("oltp-point-select", &Options::default()).unwrap()
}

pub(crate) fn spec(target: Target, engine: EngineKind, users: u32) -> LoadSpec {
    LoadSpec { limits: LIMITS, engine, ..LoadSpec::new(target, users, 1) }
}

/// Opens a load of point selects, within a bound.
pub(crate) fn open(spec: &LoadSpec) -> Result<Engine, LoadError> {
    let began = Instant::now();
    let engine = Engine::open(spec, Arc::new(NativeWork::new(&point_select(), spec.seed)));
    assert!(began.elapsed() < PATIENCE / 2, "connecting has a bound");
    engine
}

/// Waits until something holds, or the level ends by itself or fails.
pub(crate) fn wait_until(running: &Running, what: &str, mut holds: impl FnMut(&Running) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while running.failure().is_none() && !running.is_over() && !holds(running) {
        assert!(Instant::now() < deadline, "{what} did not come about, and nothing else either");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Ends it, within a bound.
pub(crate) fn stop(running: Running) -> LevelOutcome {
    let began = Instant::now();
    let outcome = running.stop();
    assert!(began.elapsed() < PATIENCE / 2, "stopping has a bound");
    outcome
}

/// Runs a level until it fails, is over, or has done this many transactions since it is measured.
pub(crate) fn run(engine: &mut Engine, level: &LevelSpec, transactions: u64) -> LevelOutcome {
    let mut running = engine.level_with(level).unwrap();
    running.begin_measuring();
    let enough = running.live().transactions.saturating_add(transactions);
    wait_until(&running, "progress", |running| running.live().transactions >= enough);
    stop(running)
}
