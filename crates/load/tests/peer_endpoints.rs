//! Several servers, and connections that are shared, reopened, or only held.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use support::engines::{LIMITS, engines, event_loops, open, run, spec, stop, wait_until};
use support::peer::{Peer, Then, rows, send, server};
use whyso_load::{
    CONNECT, Cause, Endpoint, EngineKind, LevelOutcome, LevelSpec, Limits, LoadSpec, Placement, Running,
    Target,
};

fn quick_peer() -> Peer {
    counting_peer().0
}

/// A peer, and the number of executions that it has answered.
fn counting_peer() -> (Peer, Arc<AtomicU64>) {
    let answered = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&answered);
    let peer = Peer::start(move |stream| {
        server(stream, |stream, _| {
            send(stream, &rows());
            counter.fetch_add(1, Relaxed);
            Then::GoOn
        });
    });
    (peer, answered)
}

fn endpoints(targets: [(Target, u32); 2]) -> Vec<Endpoint> {
    targets.map(|(target, weight)| Endpoint { target, weight }).to_vec()
}

/// Waits for this many further transactions.
fn go_on(running: &Running, transactions: u64) {
    let before = running.live().transactions;
    wait_until(running, "progress", |running| running.live().transactions >= before + transactions);
}

fn seconds_out(outcome: &LevelOutcome, endpoint: usize) -> Vec<Option<f64>> {
    let outages = outcome.endpoints[endpoint].outages.iter();
    outages.map(|outage| Some((outage.end_ns? - outage.begin_ns) as f64 / 1e9)).collect()
}

#[test]
fn a_dead_server_is_left_and_rejoined_and_its_outage_timed() {
    const DOWN: Duration = Duration::from_millis(400);
    for engine in engines() {
        let (stays, (dies, answered)) = (quick_peer(), counting_peer());
        let load = LoadSpec {
            endpoints: endpoints([(stays.on_tcp(), 1), (dies.on_tcp(), 1)]),
            // A busy machine answers late, too: only a server that is down is left.
            limits: Limits { reconnect: Duration::from_secs(5), stall: Duration::from_secs(10), ..LIMITS },
            ..spec(stays.on_tcp(), engine, 4)
        };
        let mut load = open(&load).unwrap();
        let mut running = load.level_with(&LevelSpec::users(4)).unwrap();
        running.begin_measuring();
        go_on(&running, 100);
        dies.go_down();
        let down_since = std::time::Instant::now();
        wait_until(&running, "time", |_| down_since.elapsed() > DOWN);
        // Everything goes to the other one meanwhile.
        go_on(&running, 100);
        let (taken_before, answered_before) = (dies.connections_taken(), answered.load(Relaxed));
        dies.come_up();
        wait_until(&running, "the way back", |_| dies.connections_taken() >= taken_before + 2);
        wait_until(&running, "its answers", |_| answered.load(Relaxed) >= answered_before + 100);
        go_on(&running, 1000);
        let outcome = stop(running);
        assert_eq!(outcome.failure, None, "{engine}");
        assert_eq!(seconds_out(&outcome, 0), [], "{engine}");
        let out = seconds_out(&outcome, 1);
        let [Some(out_s)] = out[..] else { panic!("{engine}: {out:?}") };
        assert!((DOWN.as_secs_f64()..20.0).contains(&out_s), "{engine}: {out_s}");
        assert!(outcome.reconnects >= 2, "{engine}: {}", outcome.reconnects);
        assert_eq!(outcome.endpoints[1].address, dies.on_tcp().address.to_string());
        let by_endpoint: u64 = outcome.endpoints.iter().map(|endpoint| endpoint.transactions).sum();
        assert_eq!(by_endpoint, outcome.transactions, "{engine}");
        assert!(outcome.endpoints[0].errors == 0 && outcome.endpoints[1].errors >= 1, "{engine}");
    }
}

#[test]
fn a_level_without_any_server_left_ends_within_the_bound_of_reconnecting() {
    for engine in engines() {
        let peers = [quick_peer(), quick_peer()];
        let load = LoadSpec {
            endpoints: endpoints([(peers[0].on_tcp(), 1), (peers[1].on_tcp(), 1)]),
            limits: Limits { reconnect: Duration::from_millis(300), ..LIMITS },
            ..spec(peers[0].on_tcp(), engine, 4)
        };
        let mut load = open(&load).unwrap();
        let mut running = load.level_with(&LevelSpec::users(4)).unwrap();
        running.begin_measuring();
        go_on(&running, 100);
        peers.iter().for_each(Peer::go_down);
        wait_until(&running, "the end", |_| false);
        let outcome = stop(running);
        let failure = outcome.failure.as_ref().unwrap_or_else(|| panic!("{engine} goes on without a server"));
        assert_eq!(failure.cause, Cause::ConnectionLost, "{engine}: {}", failure.message);
        for endpoint in 0..2 {
            assert_eq!(seconds_out(&outcome, endpoint), [None], "{engine}: its outage has not ended");
        }
    }
}

#[test]
fn a_pinned_user_waits_for_its_server_while_the_others_go_on() {
    for engine in engines() {
        let (stays, (dies, answered)) = (quick_peer(), counting_peer());
        let load = LoadSpec {
            endpoints: endpoints([(stays.on_tcp(), 1), (dies.on_tcp(), 1)]),
            placement: Placement::Pinned,
            limits: Limits { reconnect: Duration::from_secs(10), ..LIMITS },
            ..spec(stays.on_tcp(), engine, 2)
        };
        let mut load = open(&load).unwrap();
        let mut running = load.level_with(&LevelSpec::users(2)).unwrap();
        running.begin_measuring();
        go_on(&running, 100);
        dies.go_down();
        let stays_had = stays.connections_taken();
        go_on(&running, 500);
        assert_eq!(stays.connections_taken(), stays_had, "{engine}: the pinned user went elsewhere");
        let answered_before = answered.load(Relaxed);
        dies.come_up();
        // The first answer may still be on its way to the user; with the third, two were received.
        wait_until(&running, "the way back", |_| answered.load(Relaxed) >= answered_before + 3);
        let outcome = stop(running);
        assert_eq!(outcome.failure, None, "{engine}");
        let out = seconds_out(&outcome, 1);
        assert!(matches!(out[..], [Some(_)]), "{engine}: {out:?}");
    }
}

#[test]
fn connections_are_placed_by_their_weights() {
    for engine in engines() {
        let (heavy, light) = (quick_peer(), quick_peer());
        let load = LoadSpec {
            endpoints: endpoints([(heavy.on_unix(), 3), (light.on_unix(), 1)]),
            placement: Placement::Weighted,
            ..spec(heavy.on_unix(), engine, 8)
        };
        let load = open(&load).unwrap();
        assert_eq!((heavy.connections_taken(), light.connections_taken()), (6, 2), "{engine}");
        drop(load);
    }
}

#[test]
fn connections_are_made_anew_every_so_many_transactions_and_their_making_is_counted() {
    const EVERY: u32 = 5;
    for engine in engines() {
        let peer = quick_peer();
        let mut load = open(&spec(peer.on_tcp(), engine, 2)).unwrap();
        let level = LevelSpec { reconnect_every: Some(EVERY), ..LevelSpec::users(2) };
        let mut running = load.level_with(&level).unwrap();
        running.begin_measuring();
        go_on(&running, 100);
        let outcome = stop(running);
        assert_eq!(outcome.failure, None, "{engine}");
        let connects = outcome.kinds.iter().find(|kind| kind.kind == CONNECT);
        let connects = connects.map_or(0, |kind| kind.count);
        let expected = outcome.transactions / u64::from(EVERY);
        assert!(connects.abs_diff(expected) <= 3, "{engine}: {connects} of {expected}");
        // Those of before the window are the peer's alone.
        assert!(
            u64::from(peer.connections_taken()) >= connects + 2,
            "{engine}: {}",
            peer.connections_taken()
        );
        assert_eq!(outcome.errors_by_code.values().sum::<u64>(), 0, "{engine}");
    }
}

#[test]
fn users_share_fewer_connections_on_event_loops() {
    for engine in event_loops() {
        let peer = quick_peer();
        let load = LoadSpec { connections: Some(2), ..spec(peer.on_unix(), engine, 16) };
        let outcome = run(&mut open(&load).unwrap(), &LevelSpec::users(16), 500);
        assert_eq!(outcome.failure, None, "{engine}");
        assert!(outcome.transactions >= 100, "{engine}");
        assert_eq!(peer.connections_taken(), 2, "{engine}");
    }
    let peer = quick_peer();
    let load = LoadSpec { connections: Some(2), ..spec(peer.on_unix(), EngineKind::Threads, 16) };
    let error = open(&load).err().unwrap().to_string();
    assert!(error.contains("need event loops"), "{error}");
}

#[test]
fn idle_connections_are_open_in_addition_to_those_at_work() {
    for engine in engines() {
        let peer = quick_peer();
        let load = LoadSpec { idle_connections: 20, ..spec(peer.on_unix(), engine, 2) };
        let outcome = run(&mut open(&load).unwrap(), &LevelSpec::users(2), 100);
        assert_eq!(outcome.failure, None, "{engine}");
        assert_eq!(peer.connections_taken(), 22, "{engine}");
    }
}
