//! Every engine drives the same load against a real MariaDB.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use support::Server;
use whyso_load::{
    Arrivals, CONNECT, Cause, Command, Driver, Engine, EngineKind, Expects, Kind, LevelOutcome, LevelSpec,
    LoadSpec, NativeWork, Next, Pacing, Profile, Think, Turn, Work,
};
use whyso_workload::{Options, Workload};

const ENGINES: [EngineKind; 3] = [EngineKind::Threads, EngineKind::Epoll, EngineKind::IoUring];

fn work(name: &str) -> Arc<NativeWork> {
    let options = Options { tables: 2, table_size: 1000, ..Options::default() };
    Arc::new(NativeWork::new(&Workload::builtin(name, &options).unwrap(), 1))
}

fn server() -> Server {
    let server = Server::start(&["--max-connections=400"]);
    server.load_tables(2, 1000);
    server
}

fn run(spec: &LoadSpec, name: &str, level: &LevelSpec, seconds: f64) -> LevelOutcome {
    let mut engine = Engine::open(spec, work(name)).unwrap();
    let mut running = engine.level_with(level).unwrap();
    running.begin_measuring();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let outcome = running.stop();
    assert_eq!(outcome.failure, None, "{}", outcome.engine.kind);
    outcome
}

fn count(outcome: &LevelOutcome, kind: &str) -> u64 {
    outcome.kinds.iter().find(|outcome_of_kind| outcome_of_kind.kind == kind).map_or(0, |kind| kind.count)
}

#[test]
fn transactions_are_whole_on_every_engine_and_its_connections_serve_the_next_level() {
    let server = server();
    for engine in ENGINES {
        for (loops, users) in [(None, 6), (Some(2), 7)] {
            if loops.is_some() && engine == EngineKind::Threads {
                continue;
            }
            let mut spec = LoadSpec::new(server.target(), users, 1);
            spec.engine = engine;
            spec.loops = loops;
            let mut engine = Engine::open(&spec, work("oltp-read-write")).unwrap();
            for users in [users, 1, users] {
                let mut level = engine.level(users).unwrap();
                level.begin_measuring();
                std::thread::sleep(Duration::from_millis(300));
                let outcome = level.stop();
                assert_eq!((outcome.failure.clone(), outcome.reconnects), (None, 0));
                assert_eq!(outcome.engine.kind, spec.engine);
                assert!(outcome.transactions > 0, "{} with {users}", spec.engine);
                let at_edges_and_again = 10 * (u64::from(users) + outcome.retries);
                let selects = count(&outcome, "point_select");
                assert!(selects.abs_diff(outcome.transactions * 10) <= at_edges_and_again);
                assert_eq!(count(&outcome, CONNECT), 0);
                assert_eq!(outcome.response.count(), outcome.transactions);
            }
        }
    }
    let open = server.sql("SELECT COUNT(*) FROM information_schema.INNODB_TRX");
    assert_eq!(open.trim(), "0", "a level has left transactions open");
}

#[test]
fn the_compressed_protocol_carries_every_engine() {
    let server = server();
    for engine in ENGINES {
        let spec = LoadSpec { engine, compression: true, ..LoadSpec::new(server.target(), 3, 1) };
        let outcome = run(&spec, "oltp-read-write", &LevelSpec::users(3), 0.4);
        assert!(outcome.transactions > 10, "{engine}: {}", outcome.transactions);
        assert!(count(&outcome, "order_range") > 0);
    }
    let compressed = server.sql("SHOW GLOBAL STATUS LIKE 'Bytes_sent'");
    assert!(!compressed.is_empty());
}

#[test]
fn an_open_loop_begins_what_is_due_on_every_engine() {
    let server = server();
    for engine in ENGINES {
        let spec = LoadSpec { engine, ..LoadSpec::new(server.target(), 10, 1) };
        let pacing = Pacing::Open { arrivals: Arrivals::Uniform, rate: Profile::constant(200.0) };
        let level = LevelSpec { pacing, ..LevelSpec::users(10) };
        let outcome = run(&spec, "oltp-point-select", &level, 1.0);
        let arrivals = outcome.arrivals.unwrap();
        // A busy machine ends the second late.
        let seconds = (outcome.window_end_ns - outcome.window_begin_ns) as f64 / 1e9;
        let per_s = arrivals.due as f64 / seconds;
        assert!((190.0..=210.0).contains(&per_s), "{engine}: {} were due in {seconds} s", arrivals.due);
        assert!(outcome.transactions.abs_diff(arrivals.due) <= 10, "{engine}: {}", outcome.transactions);
        assert!(arrivals.late.count() > 100, "{engine}: users stood ready for most");
    }
}

#[test]
fn think_time_sets_the_pace_on_every_engine() {
    let server = server();
    for engine in ENGINES {
        let spec = LoadSpec { engine, ..LoadSpec::new(server.target(), 4, 1) };
        let pacing = Pacing::Closed { think: Think::Fixed(Duration::from_millis(50)), active: None };
        let outcome = run(&spec, "oltp-point-select", &LevelSpec { pacing, ..LevelSpec::users(4) }, 1.0);
        assert!((60..=84).contains(&outcome.transactions), "{engine}: {}", outcome.transactions);
    }
}

#[test]
fn connections_are_made_anew_after_so_many_transactions() {
    let server = server();
    for engine in ENGINES {
        let spec = LoadSpec { engine, ..LoadSpec::new(server.target(), 3, 1) };
        let level = LevelSpec { reconnect_every: Some(5), ..LevelSpec::users(3) };
        let outcome = run(&spec, "oltp-point-select", &level, 0.6);
        let connects = count(&outcome, CONNECT);
        assert!(connects > 3, "{engine}: {connects}");
        assert!(outcome.transactions.abs_diff(connects * 5) <= 18, "{engine}: {}", outcome.transactions);
        assert!(outcome.queries.abs_diff(outcome.transactions) <= 3, "connecting is not a query");
        assert_eq!(outcome.reconnects, 0, "nothing was lost");
    }
}

#[test]
fn users_share_fewer_connections() {
    let server = server();
    for engine in [EngineKind::Epoll, EngineKind::IoUring, EngineKind::Auto] {
        let spec = LoadSpec { engine, connections: Some(3), ..LoadSpec::new(server.target(), 20, 1) };
        let mut opened = Engine::open(&spec, work("oltp-read-write")).unwrap();
        let connected = server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'whyso'");
        assert_eq!(connected.trim(), "3");
        let mut level = opened.level(20).unwrap();
        level.begin_measuring();
        std::thread::sleep(Duration::from_millis(500));
        let outcome = level.stop();
        assert_eq!(outcome.failure, None);
        assert!(outcome.transactions > 40, "{engine}: {}", outcome.transactions);
        // A user waits for a connection most of the time: that is response, and not service.
        let mean = |histogram: &whyso_load::Histogram| histogram.sum_ns() / histogram.count();
        let (response_ns, service_ns) = (mean(&outcome.response), mean(&outcome.service));
        assert!(response_ns > 3 * service_ns, "{engine}: {response_ns} and {service_ns}");
        drop(opened);
        let left = || server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'whyso'");
        let deadline = Instant::now() + Duration::from_secs(5);
        while left().trim() != "0" {
            assert!(Instant::now() < deadline, "connections stay open");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_level_ends_by_itself_after_so_many_transactions() {
    let server = server();
    for engine in ENGINES {
        let spec = LoadSpec { engine, ..LoadSpec::new(server.target(), 4, 1) };
        let mut opened = Engine::open(&spec, work("oltp-point-select")).unwrap();
        let level = LevelSpec { transactions_max: Some(57), ..LevelSpec::users(4) };
        let mut running = opened.level_with(&level).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !running.is_over() {
            assert!(Instant::now() < deadline, "{engine} does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        // All are measured, though measuring is asked for when all are done; and the time ends with the last.
        running.begin_measuring();
        let ended_ns = whyso_clock::monotonic_ns();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(running.live().transactions, 57);
        let outcome = running.stop();
        assert_eq!((outcome.transactions, outcome.queries), (57, 57), "{engine}");
        assert_eq!(outcome.window_begin_ns, outcome.begin_ns);
        assert!(outcome.window_end_ns < ended_ns, "{engine}");
    }
}

#[test]
fn idle_connections_are_open_in_addition_to_those_of_users() {
    let server = server();
    let spec = LoadSpec { idle_connections: 30, ..LoadSpec::new(server.target(), 2, 1) };
    let opened = Engine::open(&spec, work("oltp-point-select")).unwrap();
    let connected = server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'whyso'");
    assert_eq!(connected.trim(), "32");
    drop(opened);
}

/// User 0's transactions send nothing; the others' a query each.
struct MixedWork(Vec<String>);

struct MixedDriver {
    sends: bool,
    asked: bool,
}

impl Work for MixedWork {
    fn kinds(&self) -> &[String] {
        &self.0
    }

    fn drivers(
        &self,
        _loop_number: u32,
        users: &[u32],
    ) -> Result<Vec<Box<dyn Driver>>, whyso_load::WorkError> {
        let driver =
            |user: &u32| -> Box<dyn Driver> { Box::new(MixedDriver { sends: *user != 0, asked: false }) };
        Ok(users.iter().map(driver).collect())
    }
}

impl Driver for MixedDriver {
    fn begin(&mut self, _number: u64, _by_arrival: bool) {
        self.asked = false;
    }

    fn next(&mut self, turn: &mut Turn<'_>) -> Next {
        if !self.sends || self.asked {
            return Next::Done { transaction: 0, counted: true };
        }
        self.asked = true;
        whyso_wire::encode::query(turn.out, b"DO 1");
        let expects = Expects::Results(whyso_wire::RowFormat::Text);
        Next::Send(Command { kind: Kind::One(0), expects, captures: false })
    }
}

/// One user, whose transactions send nothing and the last of which fails.
struct FailsAt(u64, Vec<String>);

struct FailsAtDriver(u64);

impl Work for FailsAt {
    fn kinds(&self) -> &[String] {
        &self.1
    }

    fn drivers(
        &self,
        _loop_number: u32,
        _users: &[u32],
    ) -> Result<Vec<Box<dyn Driver>>, whyso_load::WorkError> {
        Ok(vec![Box::new(FailsAtDriver(self.0))])
    }
}

impl Driver for FailsAtDriver {
    fn begin(&mut self, _number: u64, _by_arrival: bool) {}

    fn next(&mut self, _turn: &mut Turn<'_>) -> Next {
        self.0 -= 1;
        match self.0 {
            0 => Next::Fail { cause: Cause::Driver, message: "as planned".to_string() },
            _ => Next::Done { transaction: 0, counted: true },
        }
    }
}

/// A loop takes a user's unsent transactions up in turns: it must end at the edge of a turn as well as within one.
#[test]
fn a_level_ends_wherever_in_a_users_turn_it_is_stopped() {
    let server = server();
    for engine in ENGINES {
        for transactions in 125..=130 {
            let spec = LoadSpec { engine, loops: Some(1), ..LoadSpec::new(server.target(), 1, 1) };
            let (sender, receiver) = std::sync::mpsc::channel();
            // On a thread of its own: where it does not end, nothing else would either.
            std::thread::spawn(move || {
                let work = Arc::new(FailsAt(transactions, vec!["none".to_string()]));
                let mut opened = Engine::open(&spec, work).unwrap();
                let level = opened.level(1).unwrap();
                while level.failure().is_none() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                sender.send(level.stop().failure.unwrap().message).unwrap();
            });
            let ended = receiver.recv_timeout(Duration::from_secs(20));
            assert_eq!(ended.as_deref(), Ok("as planned"), "{engine} after {transactions}");
        }
    }
}

#[test]
fn a_user_whose_transactions_send_nothing_leaves_the_others_their_turn() {
    let server = server();
    for engine in ENGINES {
        let spec = LoadSpec { engine, loops: Some(1), ..LoadSpec::new(server.target(), 3, 1) };
        let mut opened = Engine::open(&spec, Arc::new(MixedWork(vec!["do".to_string()]))).unwrap();
        let mut level = opened.level(3).unwrap();
        level.begin_measuring();
        std::thread::sleep(Duration::from_millis(400));
        let outcome = level.stop();
        assert_eq!(outcome.failure, None);
        assert!(count(&outcome, "do") > 50, "{engine}: {} queries", count(&outcome, "do"));
        assert!(outcome.transactions > 2 * outcome.queries, "{engine}: {}", outcome.transactions);
    }
}
