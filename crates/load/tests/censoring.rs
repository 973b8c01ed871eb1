//! A server that freezes at any moment. Everything that was due is counted, as ended or as in flight with its age. No
//! percentile is below what the server's own log says.

// Runs alone: it judges response times.

mod support;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use support::engines::{PATIENCE, engines, open, spec, stop};
use support::peer::{Peer, Then, rows, send, server};
use whyso_clock::monotonic_ns;
use whyso_load::{Arrivals, EngineKind, LevelOutcome, LevelSpec, Pacing, Profile, Think, Times};

const MS: i64 = 1_000_000;
const WINDOW_MS: i64 = 200;
/// Cases that run at once: most of each is waiting.
const AT_ONCE: usize = 6;
/// What scheduling on a busy machine may take.
const SLACK_NS: i64 = 15 * MS;

/// When an arrival is due is computed here once more.
const ROUNDING_NS: i64 = 1_000;

#[derive(Clone, Copy, Debug)]
struct Case {
    engine: EngineKind,
    users: u32,
    /// Arrivals per second; `None`: a closed loop.
    rate: Option<u32>,
    service_us: u64,
    /// Since the window began.
    freezes_at_ms: i64,
    /// Some freezes end within the window.
    frozen_for_ms: i64,
}

fn case() -> impl Strategy<Value = Case> {
    let rate = prop_oneof![1 => Just(None), 2 => (100..1_000_u32).prop_map(Some)];
    let frozen_for_ms = prop_oneof![20..150_i64, Just(100_000)];
    let engine = prop::sample::select(engines());
    (engine, 1..6_u32, rate, 50..2_000_u64, 0..WINDOW_MS, frozen_for_ms).prop_map(
        |(engine, users, rate, service_us, freezes_at_ms, frozen_for_ms)| Case {
            engine,
            users,
            rate,
            service_us,
            freezes_at_ms,
            frozen_for_ms,
        },
    )
}

/// A request as the server saw it: when it arrived, and when it was answered.
type Log = Arc<Mutex<Vec<(i64, Option<i64>)>>>;

fn play(case: &Case) -> (LevelOutcome, Vec<(i64, Option<i64>)>) {
    let log = Log::default();
    let freezes_at_ns = Arc::new(AtomicI64::new(i64::MAX));
    let is_over = Arc::new(AtomicBool::new(false));
    let (peer_log, peer_freezes, peer_over) = (log.clone(), freezes_at_ns.clone(), is_over.clone());
    let (service, frozen_ns) = (Duration::from_micros(case.service_us), case.frozen_for_ms * MS);
    let peer = Peer::start(move |stream| {
        server(stream, |stream, _| {
            let number = {
                let mut log = peer_log.lock().unwrap_or_else(PoisonError::into_inner);
                log.push((monotonic_ns(), None));
                log.len() - 1
            };
            std::thread::sleep(service);
            let is_frozen = || {
                let since_ns = monotonic_ns().saturating_sub(peer_freezes.load(SeqCst));
                (0..frozen_ns).contains(&since_ns) && !peer_over.load(SeqCst)
            };
            while is_frozen() {
                std::thread::sleep(Duration::from_millis(1));
            }
            if peer_over.load(SeqCst) {
                return Then::HangUp;
            }
            peer_log.lock().unwrap_or_else(PoisonError::into_inner)[number].1 = Some(monotonic_ns());
            send(stream, &rows());
            Then::GoOn
        });
    });
    let mut spec = spec(peer.on_unix(), case.engine, case.users);
    spec.limits.stall = PATIENCE;
    spec.limits.stop = Duration::from_millis(50);
    let mut load = open(&spec).unwrap();
    let pacing = match case.rate {
        None => Pacing::Closed { think: Think::None, active: None },
        Some(rate) => Pacing::Open { arrivals: Arrivals::Uniform, rate: Profile::constant(f64::from(rate)) },
    };
    let mut running = load.level_with(&LevelSpec { pacing, ..LevelSpec::users(case.users) }).unwrap();
    running.begin_measuring();
    freezes_at_ns.store(monotonic_ns() + case.freezes_at_ms * MS, SeqCst);
    std::thread::sleep(Duration::from_millis(WINDOW_MS as u64));
    let outcome = stop(running);
    is_over.store(true, SeqCst);
    let log = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (outcome, log)
}

/// What the load reports against the server's log. Returns the first contradiction, as text; `None` where there is
/// none.
fn contradiction(case: &Case) -> Option<String> {
    let (outcome, log) = play(case);
    let (begin_ns, end_ns) = (outcome.window_begin_ns, outcome.window_end_ns);
    let describe = |what: String| Some(format!("{what}\n{case:?}, window {} ms", (end_ns - begin_ns) / MS));
    if let Some(failure) = &outcome.failure {
        return describe(format!("the level failed: {}", failure.message));
    }
    let ended = outcome.transactions;
    let in_flight = outcome.in_flight.ages.count();
    // By the log: every request with when it was due, oldest first, up to the window's end.
    let dues: Vec<i64> = match case.rate {
        None => {
            log.iter().map(|(arrived_ns, _)| *arrived_ns).filter(|arrived_ns| *arrived_ns <= end_ns).collect()
        }
        Some(rate) => {
            let period_ns = 1e9 / f64::from(rate);
            let due = |n: u32| outcome.begin_ns + (f64::from(n) * period_ns) as i64;
            (0..).map(due).take_while(|due_ns| *due_ns <= end_ns).collect()
        }
    };
    let answered_by =
        |ns: i64| log.iter().filter(|(_, at_ns)| at_ns.is_some_and(|at_ns| at_ns <= ns)).count();
    let expected = dues.len() - answered_by(begin_ns).min(dues.len());
    // At both edges an answer, or a request, may be on its way.
    let tolerance = 2 * u64::from(case.users) + 2;
    if (ended + in_flight).abs_diff(expected as u64) > tolerance {
        return describe(format!("{ended} ended, {in_flight} in flight, and {expected} were due"));
    }
    // Each counts with at least the time until its answer, or until now: a percentile of these is one of the least that is possible.
    let mut least_ns: Vec<i64> = Vec::new();
    for (number, due_ns) in dues.iter().enumerate() {
        let answered_ns = log.get(number).and_then(|(_, at_ns)| *at_ns).filter(|at_ns| *at_ns <= end_ns);
        match answered_ns {
            Some(at_ns) if at_ns < begin_ns => {}
            Some(at_ns) => least_ns.push(at_ns - due_ns),
            None => least_ns.push(end_ns - due_ns),
        }
    }
    least_ns.sort_unstable();
    let times = Times { ended: &outcome.response, in_flight: &outcome.in_flight.ages };
    for percent in [50, 75, 90, 95, 99, 100] {
        // A few at the edges may count or not.
        let rank = (least_ns.len() * percent / 100).saturating_sub(1 + tolerance as usize);
        let Some(least) = least_ns.get(rank).copied().filter(|_| least_ns.len() > 2 * tolerance as usize)
        else {
            continue;
        };
        let reported = times.quantile(percent as f64 / 100.0).ns as i64;
        if reported + reported / 50 + SLACK_NS < least {
            return describe(format!(
                "p{percent} is {reported} ns, and at least {least} ns by the server's log"
            ));
        }
    }
    // Of one more than were answered, one was not: the oldest is at least as old as the last of these. The first arrival is anywhere in its
    // period.
    let answered = answered_by(end_ns);
    if let Some(due_ns) = dues.get(answered + 1) {
        let (least_ns, oldest_ns) = (end_ns - due_ns, outcome.in_flight.ages.max_ns() as i64);
        if oldest_ns + ROUNDING_NS < least_ns {
            return describe(format!(
                "the oldest is {oldest_ns} ns, and {answered} were answered: one is {least_ns} ns"
            ));
        }
    }
    // Who is frozen at the end is in flight, with the time since then.
    let frozen_ns = end_ns - begin_ns - case.freezes_at_ms * MS;
    let is_frozen = case.frozen_for_ms > WINDOW_MS && frozen_ns > 3 * SLACK_NS;
    let oldest_ns = outcome.in_flight.ages.max_ns() as i64;
    if is_frozen && (in_flight == 0 || oldest_ns + SLACK_NS < frozen_ns) {
        return describe(format!(
            "frozen for {frozen_ns} ns, and the oldest of {in_flight} is {oldest_ns} ns"
        ));
    }
    None
}

fn check_many(cases: usize) {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.unwrap_or(monotonic_ns() as u64).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let strategy = case();
    let cases: Vec<Case> = (0..cases).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
    let failures = Mutex::new(Vec::new());
    for at_once in cases.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            for case in at_once {
                scope.spawn(|| {
                    let found = contradiction(case);
                    failures.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
                });
            }
        });
    }
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n\n"));
}

#[test]
fn everything_that_was_due_is_counted_whenever_the_server_freezes() {
    check_many(120);
}

#[test]
#[ignore = "long: make test-hard"]
fn everything_that_was_due_is_counted_in_very_many_freezes() {
    check_many(3_000);
}
