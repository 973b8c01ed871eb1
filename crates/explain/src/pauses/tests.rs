use proptest::prelude::*;

use super::*;
use crate::explain;
use crate::model::{Counter, Finding, Input, LevelInput, LoopKind, SeriesName};
use whyso_random::noise::Noise;

const MS: f64 = 1e6;

fn moments(count: f64, mean_ms: f64, spread_ms: f64) -> Moments {
    Moments { count, mean_ns: mean_ms * MS, spread_ns: spread_ms * MS }
}

fn moments_of(times_ns: &[f64]) -> Moments {
    let of_one = |&mean_ns: &f64| Moments { count: 1.0, mean_ns, spread_ns: 0.0 };
    times_ns.iter().map(of_one).fold(Moments::default(), Moments::and)
}

/// A thread that waits 400 ms for each command; in ten seconds it works for six of them.
fn waiting(tid: u32) -> Pauses {
    Pauses {
        tid,
        name: "one_connection".to_string(),
        role: "connection".to_string(),
        state: "net_receive".to_string(),
        call: "poll".to_string(),
        client: "load".to_string(),
        requests: 10.0,
        length: moments(9.5, 400.0, 3.0),
        period: moments(9.0, 1050.0, 600.0),
        ..Pauses::default()
    }
}

/// A thread that stalls within requests for 50 ms, once per second.
fn stalling(tid: u32) -> Pauses {
    Pauses {
        state: "file_sync".to_string(),
        call: "fdatasync".to_string(),
        in_request: true,
        requests: 1_000.0,
        length: moments(10.0, 50.0, 30.0),
        period: moments(9.0, 1000.0, 4.0),
        ..waiting(tid)
    }
}

fn sum(metric: &str, seconds: f64) -> Counter {
    let series =
        SeriesName { source: "trace".to_string(), metric: metric.to_string(), ..SeriesName::default() };
    Counter { series, unit: "ns".to_string(), increase: seconds * 1e9 }
}

/// Ten seconds of 64 users, 100 transactions per second each.
fn level(pauses: Vec<Pauses>) -> LevelInput {
    let series = SeriesName {
        source: "threads".to_string(),
        metric: "net_receive_ns".to_string(),
        instance: "connection".to_string(),
        ..SeriesName::default()
    };
    LevelInput {
        users: 64,
        end_ns: 10_000_000_000,
        transactions: 64_000,
        bins_100ms: vec![640; 100],
        latency_mean_ms: 10.0,
        counters: vec![Counter { series, unit: "ns".to_string(), increase: 1e11 }],
        pauses,
        ..LevelInput::default()
    }
}

fn findings_of(levels: Vec<LevelInput>) -> Vec<Finding> {
    let explanation = explain(&Input { levels, ..Input::default() });
    explanation.findings.into_iter().filter(|finding| finding.id == "pauses").collect()
}

fn only(level: LevelInput) -> String {
    let [only] = &findings_of(vec![level])[..] else { panic!("one finding is expected") };
    only.text.clone()
}

#[test]
fn threads_that_wait_as_long_for_each_command_are_found_with_their_evidence() {
    let pauses = (0..12).map(waiting).collect();
    let [only] = &findings_of(vec![level(pauses)])[..] else { panic!("one finding is expected") };
    assert_eq!(
        only.text,
        "At 64 users 12 of 64 connection threads wait 400 ms (± 3 ms) for their next command (in poll), each time: 38 % of their time. \
         A closed loop sends at once: look at the network (delayed acknowledgements) or the client's timers."
    );
    assert_eq!(only.evidence.len(), 2, "{:?}", only.evidence);
}

#[test]
fn the_generators_own_account_separates_its_timers_from_the_network() {
    let pauses: Vec<Pauses> = (0..12).map(waiting).collect();
    let mut held = level(pauses.clone());
    held.counters.push(sum("client_held_ns", 45.0));
    let text = only(held);
    assert!(text.contains("held the next command for 45 s of the 45.6 s"), "{text}");
    let mut on_its_way = level(pauses);
    on_its_way.counters.push(sum("client_held_ns", 0.5));
    let text = only(on_its_way);
    assert!(text.contains("no more than 500 ms of the 45.6 s") && text.contains("network"), "{text}");
}

#[test]
fn answers_that_wait_for_the_generators_threads_are_no_pauses() {
    let mut late = level((0..64).map(waiting).collect());
    late.counters.push(sum("client_delay_ns", 200.0));
    assert_eq!(findings_of(vec![late]), []);
}

#[test]
fn threads_of_clients_that_think_are_idle_by_design() {
    for pacing in [LoopKind::ClosedWithPauses, LoopKind::Open] {
        assert_eq!(findings_of(vec![LevelInput { pacing, ..level(vec![waiting(1)]) }]), []);
    }
}

#[test]
fn where_the_load_is_not_ours_a_pattern_is_no_fault() {
    let pauses = vec![Pauses { client: "unknown".to_string(), ..waiting(1) }];
    let text = only(LevelInput { pacing: LoopKind::Recorded, ..level(pauses) });
    assert!(text.contains("1 of 64 connection threads waits 400 ms (± 3 ms) for its next command"), "{text}");
    assert!(text.ends_with("(delayed acknowledgements).") && !text.contains("at once"), "{text}");
}

#[test]
fn timers_caches_and_connections_that_are_not_the_loads_are_no_findings() {
    let timer = Pauses { role: "page cleaner".to_string(), ..stalling(1) };
    let idle = Pauses { state: "lock".to_string(), call: "futex".to_string(), ..waiting(2) };
    let own = Pauses { client: "own".to_string(), ..waiting(3) };
    let stranger = Pauses { client: "unknown".to_string(), ..waiting(4) };
    let kinds = [&timer, &idle, &own, &stranger].map(Pauses::kind);
    assert_eq!(kinds, [Kind::Timer, Kind::Idle, Kind::Own, Kind::NextCommand]);
    assert_eq!(findings_of(vec![level(vec![timer, idle, own, stranger])]), []);
}

#[test]
fn a_stall_once_a_second_is_found_with_the_timer_that_has_its_period() {
    let pauses = vec![stalling(1), stalling(2), stalling(3)];
    let text = only(level(pauses.clone()));
    assert!(
        text.starts_with(
            "At 64 users 3 of 64 connection threads wait 50 ms on average for a file to be synced, within a request \
             (in fdatasync), once every 1 s (± 4 ms): 5 % of their time."
        ),
        "{text}"
    );
    assert!(text.contains("none of the server's own background threads has it"), "{text}");
    let cleaner = Pauses { role: "page cleaner".to_string(), state: "lock".to_string(), ..stalling(9) };
    let text = only(level([pauses, vec![cleaner]].concat()));
    assert!(text.ends_with("of the server's own background threads it is that of: page cleaner."), "{text}");
}

#[test]
fn a_request_that_comes_in_pieces_is_found_however_the_load_is_paced() {
    let pieces = Pauses { in_request: true, length: moments(20.0, 41.0, 0.8), requests: 20.5, ..waiting(1) };
    let text = only(LevelInput { pacing: LoopKind::Open, ..level(vec![pieces]) });
    let expected =
        "1 of 64 connection threads waits 41 ms (± 800 µs) for the rest of a request (in poll), each time";
    assert!(text.contains(expected) && text.ends_with("TCP_NODELAY ends)."), "{text}");
}

#[test]
fn a_thread_whose_waits_also_begin_evenly_pauses_as_the_others_do() {
    let even = Pauses { period: moments(9.0, 500.0, 0.1), ..waiting(2) };
    assert!(only(level(vec![waiting(1), even, waiting(3)])).contains("3 of 64"));
}

/// With a queue for one lock, each transaction waits about as long.
#[test]
fn a_wait_in_each_transaction_is_work_and_no_stall() {
    let queue = Pauses {
        state: "lock".to_string(),
        call: "futex".to_string(),
        length: moments(60.0, 140.0, 4.0),
        period: moments(59.0, 160.0, 5.0),
        ..stalling(1)
    };
    let mut slow = level(vec![queue]);
    slow.transactions = 4_000;
    assert_eq!(findings_of(vec![slow]), []);
}

#[test]
fn what_pauses_at_several_levels_is_reported_once() {
    let few = LevelInput { users: 16, transactions: 16_000, ..level(vec![waiting(1), waiting(2)]) };
    let many = LevelInput { index: 1, ..level((0..12).map(waiting).collect()) };
    let again = LevelInput { index: 2, repeat: true, ..few.clone() };
    let [only] = &findings_of(vec![few, many, again])[..] else { panic!("one finding is expected") };
    assert_eq!(only.text.matches("So it is at ").count(), 1, "{}", only.text);
    assert!(!only.text.contains("and 16 users"), "{}", only.text);
}

#[test]
fn threads_that_pause_differently_have_a_finding_each() {
    let short = Pauses { length: moments(50.0, 40.0, 0.5), requests: 500.0, ..waiting(3) };
    let findings = findings_of(vec![level(vec![waiting(1), waiting(2), short])]);
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[0].text.contains("2 of 64 connection threads wait 400 ms"), "{}", findings[0].text);
    assert!(findings[1].text.contains("waits 40 ms (± 500 µs)"), "{}", findings[1].text);
    assert!(findings[1].text.contains("before 10 % of the commands"), "{}", findings[1].text);
}

#[test]
fn waits_that_end_by_chance_are_regular_in_one_thread_of_many_thousands() {
    let mut noise = Noise::new(1);
    let mut regular = 0;
    for tid in 0..20_000 {
        // Waits of a mean of 5 ms, of which those from 20 ms on are counted: all are nearly as long.
        let lengths: Vec<f64> = (0..8).map(|_| (20.0 - 5.0 * (1.0 - noise.uniform()).ln()) * MS).collect();
        let periods: Vec<f64> =
            lengths.iter().map(|length| length - 300.0 * MS * (1.0 - noise.uniform()).ln()).collect();
        let pauses = Pauses { length: moments_of(&lengths), period: moments_of(&periods), ..waiting(tid) };
        regular += u32::from(pauses.regular().is_some());
    }
    assert!(regular <= 3, "{regular} of 20,000");
}

#[test]
fn waits_that_found_no_place_are_reported() {
    let mut lost = sum("lost", 0.0);
    lost.series.instance = LOST.to_string();
    lost.increase = 1_200.0;
    let mut level = level(Vec::new());
    level.counters.push(lost);
    assert!(only(level).starts_with("The tracer had no place for 1,200 long waits at 64 users"));
}

#[test]
fn too_few_waits_are_no_pattern() {
    let few = Pauses { length: moments(7.0, 400.0, 0.0), period: moments(6.0, 500.0, 0.0), ..waiting(1) };
    assert_eq!(few.regular(), None);
    let broken =
        Pauses { length: moments(9.0, f64::NAN, 0.0), period: moments(9.0, 500.0, 0.0), ..waiting(1) };
    assert_eq!(broken.regular(), None);
}

proptest! {
    #[test]
    fn moments_of_parts_are_those_of_the_whole(
        times in prop::collection::vec(20.0..60_000.0_f64, 2..40),
        at in any::<prop::sample::Index>(),
    ) {
        let (first, second) = times.split_at(at.index(times.len()));
        let whole = moments_of(&times);
        let parts = moments_of(first).and(moments_of(second));
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let spread = (times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count).sqrt();
        for moments in [whole, parts] {
            prop_assert_eq!(moments.count, count);
            prop_assert!((moments.mean_ns - mean).abs() < 1e-6 * mean);
            prop_assert!((moments.spread_ns - spread).abs() < 1e-6 * mean);
        }
    }

    #[test]
    fn a_timer_is_found_whatever_its_length(length_ms in 30.0..10_000.0_f64, jitter in 0.0..0.04_f64) {
        let spread_ms = (length_ms - 20.0) * jitter;
        let timer = Pauses { length: moments(8.0, length_ms, spread_ms), ..waiting(1) };
        prop_assert!(timer.regular().is_some_and(|regular| regular.length));
    }
}
