//! What is off unless it is asked for does what it says, and is refused where it is not available.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::Server;
use support::engines::{engines, event_loops};
use whyso_load::{
    Command, Driver, Engine, EngineKind, Expects, Kind, LevelOutcome, LoadError, LoadSpec, MinComplete, Next,
    SchedulingPolicy, Tuning, Turn, Work,
};

/// User u sends statement u over and over; each is a kind of its own.
struct EachItsOwn(Vec<String>);

struct Sends {
    user: u16,
    sql: String,
    asked: bool,
}

impl Work for EachItsOwn {
    fn kinds(&self) -> &[String] {
        &self.0
    }

    fn drivers(
        &self,
        _loop_number: u32,
        users: &[u32],
    ) -> Result<Vec<Box<dyn Driver>>, whyso_load::WorkError> {
        let driver = |user: &u32| -> Box<dyn Driver> {
            let sql = self.0[*user as usize].clone();
            Box::new(Sends { user: *user as u16, sql, asked: false })
        };
        Ok(users.iter().map(driver).collect())
    }
}

impl Driver for Sends {
    fn begin(&mut self, _number: u64, _by_arrival: bool) {
        self.asked = false;
    }

    fn next(&mut self, turn: &mut Turn<'_>) -> Next {
        if self.asked {
            return Next::Done { transaction: 0, counted: true };
        }
        self.asked = true;
        whyso_wire::encode::query(turn.out, self.sql.as_bytes());
        let expects = Expects::Results(whyso_wire::RowFormat::Text);
        Next::Send(Command { kind: Kind::One(self.user), expects, captures: false })
    }
}

fn spec(server: &Server, engine: EngineKind, users: u32, tuning: Tuning) -> LoadSpec {
    LoadSpec { engine, tuning, ..LoadSpec::new(server.target(), users, 1) }
}

/// A second of these statements, a user each, on one loop.
fn run(server: &Server, engine: EngineKind, statements: &[&str], tuning: Tuning) -> LevelOutcome {
    let spec = LoadSpec { loops: Some(1), ..spec(server, engine, statements.len() as u32, tuning) };
    let work = EachItsOwn(statements.iter().map(|sql| sql.to_string()).collect());
    let mut engine = Engine::open(&spec, Arc::new(work)).unwrap();
    let mut level = engine.level(statements.len() as u32).unwrap();
    level.begin_measuring();
    std::thread::sleep(Duration::from_secs(1));
    let outcome = level.stop();
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.engine.tuning, tuning);
    outcome
}

#[test]
fn a_loop_waits_for_so_many_answers_and_no_longer_than_it_may() {
    if !engines().contains(&EngineKind::IoUring) {
        return;
    }
    let server = Server::start(&[]);
    let quick_ones = |tuning| {
        let outcome = run(&server, EngineKind::IoUring, &["DO 1", "DO SLEEP(0.05)"], tuning);
        outcome.kinds[0].count
    };
    let wait = |completions, at_most_ms| Tuning {
        min_complete: Some(MinComplete { completions, at_most: Duration::from_millis(at_most_ms) }),
        ..Tuning::default()
    };
    let alone = quick_ones(Tuning::default());
    assert!(alone > 500, "the quick one waits for nobody: {alone}");
    // Each of its answers waits for one of the slow ones, of which there are 20 per second.
    let with_the_slow = quick_ones(wait(2, 900));
    assert!((5..=45).contains(&with_the_slow), "{with_the_slow}");
    // Or for 5 ms.
    let bounded = quick_ones(wait(2, 5));
    assert!(bounded > with_the_slow && bounded <= 215, "{bounded} and {with_the_slow}");
    // One is what a loop waits for anyway, and so are more than it has connections, after the bound.
    assert!(quick_ones(wait(1, 900)) > 500);
}

#[test]
fn a_loop_that_busy_polls_is_on_a_cpu_while_it_waits_and_is_not_held_to_be_the_limit_for_it() {
    let server = Server::start(&[]);
    let polling = Tuning { busy_poll: Duration::from_millis(100), ..Tuning::default() };
    for engine in event_loops() {
        let slept = run(&server, engine, &["DO SLEEP(0.01)"], Tuning::default());
        assert_eq!(slept.client.busy_poll_cpu_ns, 0, "{engine}");
        let polled = run(&server, engine, &["DO SLEEP(0.01)"], polling);
        let share = polled.client.busy_poll_cpu_ns as f64 / polled.client.window_ns as f64;
        // Other tests may want the CPU too.
        assert!(share > 0.02, "{engine}: {share}");
        let (polled_ns, slept_ns) = (polled.client.threads_cpu_ns, slept.client.threads_cpu_ns);
        assert!(polled_ns > 3 * slept_ns, "{engine}: {polled_ns} ns, asleep {slept_ns} ns");
        assert_eq!(polled.client.saturated_why(), None, "{engine}");
        assert!(polled.transactions > 20, "{engine}: {}", polled.transactions);
        // It polls no longer than it may, and then sleeps.
        let brief = Tuning { busy_poll: Duration::from_micros(100), ..Tuning::default() };
        let brief = run(&server, engine, &["DO SLEEP(0.01)"], brief);
        let (long_ns, brief_ns) = (polled.client.busy_poll_cpu_ns, brief.client.busy_poll_cpu_ns);
        assert!((1..long_ns / 2).contains(&brief_ns), "{engine}: {brief_ns} ns of {long_ns} ns");
    }
}

#[test]
fn the_threads_of_every_engine_are_scheduled_as_asked_for() {
    let server = Server::start(&[]);
    let tuning = Tuning { scheduling_policy: Some(SchedulingPolicy::Batch), ..Tuning::default() };
    for engine in engines() {
        let work = Arc::new(EachItsOwn(vec!["DO 1".to_string(), "DO 1".to_string()]));
        let mut opened = Engine::open(&spec(&server, engine, 2, tuning), work).unwrap();
        let running = opened.level(2).unwrap();
        let threads = running.thread_ids();
        assert!(!threads.is_empty());
        for thread in threads {
            // SAFETY: the call has no memory effects.
            assert_eq!(unsafe { libc::sched_getscheduler(thread) }, libc::SCHED_BATCH, "{engine}");
        }
        assert_eq!(running.stop().failure, None);
    }
}

#[test]
fn what_an_engine_can_t_do_is_refused_with_what_to_do() {
    let server = Server::start(&[]);
    let at_most = Duration::from_micros(50);
    let wait = Tuning { min_complete: Some(MinComplete { completions: 8, at_most }), ..Tuning::default() };
    let poll = Tuning { busy_poll: at_most, ..Tuning::default() };
    let none = Tuning { min_complete: Some(MinComplete { completions: 0, at_most }), ..Tuning::default() };
    let ever = Tuning { busy_poll: Duration::from_secs(2), ..Tuning::default() };
    for (engine, tuning, part) in [
        (EngineKind::Threads, wait, "give --engine io-uring"),
        (EngineKind::Epoll, wait, "give --engine io-uring"),
        (EngineKind::Threads, poll, "leave out --busy-poll or --engine threads"),
        (EngineKind::IoUring, Tuning { busy_poll: at_most, ..wait }, "give --busy-poll or --min-complete"),
        (EngineKind::IoUring, none, "give 1 to 4096 completions"),
        (EngineKind::Epoll, ever, "never sleeps"),
    ] {
        let work = Arc::new(EachItsOwn(vec!["DO 1".to_string()]));
        match Engine::open(&spec(&server, engine, 1, tuning), work) {
            Err(LoadError::Spec(error)) => assert!(error.to_string().contains(part), "{engine}: {error}"),
            Err(error) => panic!("{engine}: {error}"),
            Ok(_) => panic!("{engine} takes {tuning:?}"),
        }
    }
    // One user would be driven by a thread, were it not for what was asked for.
    for tuning in [wait, poll].into_iter().filter(|_| engines().contains(&EngineKind::IoUring)) {
        let work = Arc::new(EachItsOwn(vec!["DO 1".to_string()]));
        let opened = Engine::open(&spec(&server, EngineKind::Auto, 1, tuning), work).unwrap();
        assert_eq!(opened.engine(), EngineKind::IoUring);
    }
}
