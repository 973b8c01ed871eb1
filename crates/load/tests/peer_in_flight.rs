//! What has not ended when the window does, and the users' time: the same on every engine.

// Runs alone: it judges response times.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use support::engines::{PATIENCE, engines, spec, stop, wait_until};
use support::peer::{Peer, Then, rows, send, server};
use whyso_load::{
    Arrivals, Engine, EngineKind, LevelOutcome, LevelSpec, LoadSpec, NativeWork, Pacing, Profile, Think,
    Time, Times, UserTime,
};
use whyso_workload::{SqlOptions, Workload};

const TWO_KINDS: &str = "\\set id random(1, 9)\n\\transaction read@3\nSELECT c FROM t WHERE id = :id;\n\
                         \\transaction look@1\nSELECT k FROM t WHERE id = :id;\n";
const USERS: u32 = 4;

/// Half a second of a level whose server answers within a millisecond, and as much in which it answers nothing.
fn hung_half_way(engine: EngineKind, pacing: Pacing, connections: Option<u32>) -> LevelOutcome {
    let hangs = Arc::new(AtomicBool::new(false));
    let for_peer = hangs.clone();
    let peer = Peer::start(move |stream| {
        server(stream, |stream, _| {
            std::thread::sleep(Duration::from_micros(500));
            let began = Instant::now();
            while for_peer.load(SeqCst) && began.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
            send(stream, &rows());
            Then::GoOn
        });
    });
    let workload = Workload::from_sql_file("two", TWO_KINDS, &SqlOptions::default()).unwrap();
    let mut spec = LoadSpec { connections, ..spec(peer.on_unix(), engine, USERS) };
    spec.limits.stall = PATIENCE;
    let mut load = Engine::open(&spec, Arc::new(NativeWork::new(&workload, 1))).unwrap();
    let mut running = load.level_with(&LevelSpec { pacing, ..LevelSpec::users(USERS) }).unwrap();
    running.begin_measuring();
    let began = Instant::now();
    wait_until(&running, "the first half", |_| began.elapsed() > Duration::from_millis(500));
    hangs.store(true, SeqCst);
    wait_until(&running, "the second half", |_| began.elapsed() > Duration::from_millis(1_000));
    let outcome = stop(running);
    hangs.store(false, SeqCst);
    assert_eq!(outcome.failure, None, "{engine}");
    outcome
}

/// Every nanosecond of every user is in one of the three.
fn assert_closed(outcome: &LevelOutcome, what: &str) -> UserTime {
    let time = outcome.user_time;
    let window_ns = (outcome.window_end_ns - outcome.window_begin_ns) as u64;
    let sum_ns = time.ended_ns + time.in_flight_ns + time.outside_ns;
    assert_eq!(sum_ns, u64::from(USERS) * window_ns, "{what}: {time:?}");
    time
}

fn all(outcome: &LevelOutcome) -> Times<'_> {
    Times { ended: &outcome.response, in_flight: &outcome.in_flight.ages }
}

#[test]
fn every_user_of_a_server_that_hangs_is_in_flight_with_its_age_on_every_engine() {
    let closed = |think| Pacing::Closed { think, active: None };
    for engine in engines() {
        let outcome = hung_half_way(engine, closed(Think::None), None);
        let time = assert_closed(&outcome, &engine.to_string());
        assert_eq!((outcome.in_flight.ages.count(), outcome.in_flight.not_begun), (4, 0), "{engine}");
        let ages_ns = [outcome.in_flight.ages.min_ns(), outcome.in_flight.ages.max_ns()];
        assert!(ages_ns.iter().all(|age_ns| (400_000_000..700_000_000).contains(age_ns)), "{ages_ns:?}");
        assert_eq!(time.in_flight_ns, outcome.in_flight.ages.sum_ns(), "{engine}");
        let max = Time { ns: ages_ns[1], is_lower_bound: true };
        assert_eq!((all(&outcome).max(), all(&outcome).quantile(1.0)), (max, max), "{engine}");
        let by_kind: u64 = outcome.by_transaction.iter().map(|kind| kind.in_flight.count()).sum();
        let by_statement: u64 = outcome.kinds.iter().map(|kind| kind.in_flight.count()).sum();
        assert_eq!((by_kind, by_statement), (4, 4), "{engine}");
        let silent_ns = outcome.window_end_ns - outcome.last_answer_ns.unwrap();
        assert!((400_000_000..700_000_000).contains(&silent_ns), "{engine}: {silent_ns}");

        let outcome = hung_half_way(engine, closed(Think::Fixed(Duration::from_millis(20))), None);
        let time = assert_closed(&outcome, &format!("{engine} with think time"));
        assert!(time.outside_ns > time.ended_ns, "{engine}: {time:?}");
        assert_eq!(outcome.in_flight.ages.count(), 4, "{engine}");
    }
}

#[test]
fn what_is_due_and_never_begun_ages_from_when_it_was_due() {
    for engine in engines() {
        let connections = (engine != EngineKind::Threads).then_some(2);
        let rate = Profile::constant(200.0);
        let outcome = hung_half_way(engine, Pacing::Open { arrivals: Arrivals::Uniform, rate }, connections);
        assert_closed(&outcome, &engine.to_string());
        let due = outcome.arrivals.as_ref().unwrap().due;
        let in_flight = outcome.in_flight.ages.count();
        // What was due before the window began may have ended in it, or be in flight.
        let due_before = (outcome.window_begin_ns - outcome.begin_ns) as u64 / 5_000_000 + 1;
        let counted = outcome.transactions + in_flight;
        assert!(
            (due..=due + due_before).contains(&counted),
            "{engine}: {due} due, {counted} ended or in flight"
        );
        assert_eq!(outcome.in_flight.not_begun, in_flight - u64::from(USERS), "{engine}");
        let by_kind: Vec<u64> = outcome.by_transaction.iter().map(|kind| kind.in_flight.count()).collect();
        assert_eq!(by_kind.iter().sum::<u64>(), in_flight, "{engine}: {by_kind:?}");
        assert!(
            by_kind[0] > by_kind[1] && by_kind[1] > 0,
            "three of four are drawn as the first: {by_kind:?}"
        );
        // They were due at even distances over the half second.
        let middle_ns = outcome.in_flight.ages.quantile_ns(0.5);
        assert!((150_000_000..400_000_000).contains(&middle_ns), "{engine}: {middle_ns}");
    }
}
