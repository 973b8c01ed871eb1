//! When transactions begin and what they are: open loops that hide nothing, and loads that repeat from their seed.

// Runs alone: it judges when transactions begin.

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::engines::{engines, open, run, spec, stop, wait_until};
use support::peer::{Peer, Then, id_of, rows, send, server};
use whyso_load::{Arrivals, EngineKind, LevelOutcome, LevelSpec, LoadSpec, Pacing, Profile};

/// How long the server stands still, once.
const STALL: Duration = Duration::from_secs(1);
const STALL_NS: u64 = STALL.as_nanos() as u64;
const USERS: u32 = 4;

fn open_loop(users: u32, arrivals: Arrivals, rate: f64) -> LevelSpec {
    let pacing = Pacing::Open { arrivals, rate: Profile::constant(rate) };
    LevelSpec { pacing, ..LevelSpec::users(users) }
}

/// Half a second of a level, one in which the server stands still, and half a second more.
fn level_with_a_stall(engine: EngineKind, level: &LevelSpec) -> LevelOutcome {
    let stalled_until = Arc::new(Mutex::new(None::<Instant>));
    let for_peer = stalled_until.clone();
    let peer = Peer::start(move |stream| {
        server(stream, |stream, _| {
            let until = *for_peer.lock().unwrap();
            if let Some(until) = until {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
            }
            send(stream, &rows());
            Then::GoOn
        });
    });
    let mut load = spec(peer.on_unix(), engine, USERS);
    load.limits.stall = STALL * 10;
    let mut load = open(&load).unwrap();
    let mut running = load.level_with(level).unwrap();
    running.begin_measuring();
    let began = Instant::now();
    wait_until(&running, "the first part", |_| began.elapsed() > STALL / 2);
    *stalled_until.lock().unwrap() = Some(Instant::now() + STALL);
    wait_until(&running, "the rest", |_| began.elapsed() > STALL * 2);
    let outcome = stop(running);
    assert_eq!(outcome.failure, None, "{engine}");
    outcome
}

#[test]
fn an_open_loop_shows_a_server_that_stands_still_in_response_and_not_in_service_times() {
    for engine in engines() {
        let outcome = level_with_a_stall(engine, &open_loop(USERS, Arrivals::Uniform, 400.0));
        let arrivals = outcome.arrivals.as_ref().expect("an open loop has arrivals");
        // Those that were due while it stood still, but for the few that were on their way.
        assert!(arrivals.backlog_max >= 300, "{engine}: {}", arrivals.backlog_max);
        // Half of the arrivals of two seconds waited for up to a second: about a quarter for more than half of one.
        let p90_ns = outcome.response.quantile_ns(0.9);
        assert!(p90_ns > STALL_NS * 6 / 10, "{engine}: p90 {p90_ns}");
        let max_ns = outcome.response.max_ns();
        assert!((STALL_NS * 9 / 10..STALL_NS * 3).contains(&max_ns), "{engine}: max {max_ns}");
        // Only those on their way were served slowly: USERS of 800.
        assert!(outcome.service.max_ns() > STALL_NS * 9 / 10, "{engine}");
        let p90_ns = outcome.service.quantile_ns(0.9);
        assert!(p90_ns < STALL_NS / 5, "{engine}: service p90 {p90_ns}");
    }
}

/// The contrast that gives coordinated omission its name: who waits with the server asks less of it.
#[test]
fn a_closed_loop_hides_the_same_in_its_percentiles() {
    for engine in engines() {
        let outcome = level_with_a_stall(engine, &LevelSpec::users(USERS));
        assert!(outcome.arrivals.is_none(), "{engine}");
        // So many that those on their way when it stood still are less than one in a hundred.
        assert!(outcome.transactions > 100 * u64::from(USERS), "{engine}: {}", outcome.transactions);
        assert!(outcome.response.max_ns() > STALL_NS * 9 / 10, "{engine}");
        let p99_ns = outcome.response.quantile_ns(0.99);
        assert!(p99_ns < STALL_NS / 5, "{engine}: p99 {p99_ns}");
    }
}

fn quick_peer() -> Peer {
    Peer::start(|stream| {
        server(stream, |stream, _| {
            send(stream, &rows());
            Then::GoOn
        });
    })
}

#[test]
fn as_many_arrivals_are_due_as_the_rate_requires() {
    const RATE: f64 = 2000.0;
    for engine in engines() {
        for (arrivals, spread) in [(Arrivals::Uniform, 0.0), (Arrivals::Poisson, 1.0)] {
            let peer = quick_peer();
            let mut load = open(&spec(peer.on_unix(), engine, 8)).unwrap();
            let mut running = load.level_with(&open_loop(8, arrivals, RATE)).unwrap();
            let began = Instant::now();
            wait_until(&running, "the warm-up", |_| began.elapsed() > Duration::from_millis(50));
            running.begin_measuring();
            wait_until(&running, "the window", |_| began.elapsed() > Duration::from_millis(450));
            let outcome = stop(running);
            assert_eq!(outcome.failure, None, "{engine}");
            let window_s = (outcome.window_end_ns - outcome.window_begin_ns) as f64 / 1e9;
            let expected = RATE * window_s;
            let due = outcome.arrivals.as_ref().unwrap().due as f64;
            // Six standard deviations of a Poisson count, and one arrival at each edge.
            let tolerance = 2.0 + spread * 6.0 * expected.sqrt();
            assert!((due - expected).abs() <= tolerance, "{engine}, {arrivals:?}: {due} of {expected}");
            let arrivals = outcome.arrivals.unwrap();
            let ended = outcome.transactions + arrivals.backlog_end;
            let begun = due as u64 + arrivals.backlog_begin;
            assert!(ended.abs_diff(begun) <= 2 * 8, "{engine}: {ended} ended or waiting, {begun} due");
        }
    }
}

/// A peer that takes some time for each answer, and the parameters that it was sent, by connection.
fn keeping_peer(micros: impl Fn(i32) -> u64 + Send + Sync + 'static) -> (Peer, Arc<Mutex<Vec<Vec<i32>>>>) {
    let ids_by_connection = Arc::new(Mutex::new(Vec::new()));
    let for_peer = ids_by_connection.clone();
    let peer = Peer::start(move |stream| {
        let place = {
            let mut ids_by_connection = for_peer.lock().unwrap();
            ids_by_connection.push(Vec::new());
            ids_by_connection.len() - 1
        };
        server(stream, |stream, payload| {
            let id = id_of(payload);
            for_peer.lock().unwrap()[place].push(id);
            std::thread::sleep(Duration::from_micros(micros(id)));
            send(stream, &rows());
            Then::GoOn
        });
    });
    (peer, ids_by_connection)
}

/// The parameters of the first transactions of each user, in an order that does not depend on who connected first.
fn by_user(
    engine: EngineKind,
    seed: u64,
    micros: impl Fn(i32) -> u64 + Send + Sync + 'static,
) -> Vec<Vec<i32>> {
    const EACH: usize = 25;
    let (peer, ids_by_connection) = keeping_peer(micros);
    let mut load = open(&LoadSpec { seed, ..spec(peer.on_unix(), engine, 3) }).unwrap();
    let running = load.level_with(&LevelSpec::users(3)).unwrap();
    wait_until(&running, "transactions of every user", |_| {
        ids_by_connection.lock().unwrap().iter().all(|ids| ids.len() >= EACH)
    });
    assert_eq!(stop(running).failure, None, "{engine}");
    let mut users = ids_by_connection.lock().unwrap().clone();
    users.iter_mut().for_each(|ids| ids.truncate(EACH));
    users.sort();
    users
}

#[test]
fn the_transactions_of_a_user_are_the_same_from_the_same_seed_on_every_engine() {
    let expected = by_user(EngineKind::Threads, 7, |_| 0);
    assert_eq!(expected.len(), 3);
    for engine in engines() {
        assert_eq!(by_user(engine, 7, |id| id.unsigned_abs() as u64 % 700), expected, "{engine}");
    }
    assert_ne!(by_user(EngineKind::Threads, 8, |_| 0), expected);
}

/// The parameters of the first arrivals and the number of each, whichever user took them.
fn by_arrival(
    engine: EngineKind,
    users: u32,
    micros: impl Fn(i32) -> u64 + Send + Sync + 'static,
) -> BTreeMap<i32, u32> {
    const ARRIVALS: u64 = 120;
    let (peer, ids_by_connection) = keeping_peer(micros);
    let mut load = open(&LoadSpec { seed: 7, ..spec(peer.on_unix(), engine, users) }).unwrap();
    let level = LevelSpec { transactions_max: Some(ARRIVALS), ..open_loop(users, Arrivals::Poisson, 1000.0) };
    let outcome = run(&mut load, &level, u64::MAX);
    assert_eq!(outcome.failure, None, "{engine}");
    let mut ids = BTreeMap::new();
    for id in ids_by_connection.lock().unwrap().iter().flatten() {
        *ids.entry(*id).or_default() += 1;
    }
    assert_eq!(ids.values().sum::<u32>(), ARRIVALS as u32, "{engine}");
    ids
}

#[test]
fn the_transaction_of_an_arrival_is_the_same_whoever_takes_it_and_when() {
    let expected = by_arrival(EngineKind::Threads, 1, |_| 0);
    for engine in engines() {
        for users in [2, 8] {
            let arrived = by_arrival(engine, users, |id| id.unsigned_abs() as u64 % 3000);
            assert_eq!(arrived, expected, "{engine}, {users} users");
        }
    }
}
