use super::*;
use crate::model::{Counter, Gauge, LevelInput, Machine};

/// One second of this many transactions of this mean response time, with the tracer's sums in ms per transaction.
pub(super) fn traced(users: u32, transactions: u64, response_ms: f64, sums: &[(&str, f64)]) -> LevelInput {
    let mut input = LevelInput {
        index: users,
        users,
        end_ns: 1_000_000_000,
        transactions,
        latency_mean_ms: response_ms,
        bins_100ms: vec![(transactions / 10) as u32; 10],
        ..LevelInput::default()
    };
    for (metric, ms) in sums {
        let series = SeriesName {
            host: "server".to_string(),
            source: "trace".to_string(),
            metric: metric.to_string(),
            instance: String::new(),
        };
        input.counters.push(Counter {
            series,
            unit: "ns".to_string(),
            increase: ms * 1e6 * transactions as f64,
        });
    }
    input
}

fn of(input: &LevelInput) -> Option<Budget> {
    budget(&crate::verdict::judge(input, &Machine::default()))
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9
}

#[test]
fn the_leaves_and_the_remainder_are_the_response_time() {
    let input = traced(
        8,
        4_000,
        2.0,
        &[
            ("request_ns", 1.6),
            ("request_cpu_ns", 0.3),
            ("request_lock_ns", 1.0),
            ("request_runqueue_ns", 0.2),
            ("request_wakeup_ns", 0.1),
            ("transit_in_ns", 0.25),
            ("transit_in_wakeup_ns", 0.05),
            ("transit_in_runqueue_ns", 0.1),
            ("client_held_ns", 0.02),
            ("client_delay_ns", 0.08),
        ],
    );
    let budget = of(&input).unwrap();
    for (part, ms) in [
        (Part::Cpu, 0.3),
        (Part::Lock, 1.0),
        (Part::Runqueue, 0.3),
        (Part::Wakeup, 0.15),
        (Part::TransitIn, 0.1),
        (Part::ClientCpu, 0.02),
        (Part::ClientDelay, 0.08),
        (Part::ClientQueue, 0.0),
    ] {
        assert!(near(budget.ms(part), ms), "{part:?} {}", budget.ms(part));
    }
    assert!(near(budget.unaccounted_ms, 0.05), "{}", budget.unaccounted_ms);
    assert!(!budget.remote && budget.notes.is_empty());
}

#[test]
fn a_level_that_was_not_traced_has_no_budget() {
    assert_eq!(of(&traced(8, 4_000, 2.0, &[])), None);
}

#[test]
fn pauses_are_no_part_of_a_transaction() {
    // Eight users for a second are 8,000 ms, 400 transactions of 2 ms are 800; a pause of 17.9 ms per transaction.
    let mut input =
        traced(8, 400, 2.0, &[("request_ns", 1.9), ("request_cpu_ns", 1.9), ("client_held_ns", 18.1)]);
    input.pacing = LoopKind::ClosedWithPauses;
    let budget = of(&input).unwrap();
    assert!(near(budget.ms(Part::ClientCpu), 0.1), "{}", budget.ms(Part::ClientCpu));
    assert!(budget.notes[0].contains("derived"), "{:?}", budget.notes);
}

#[test]
fn what_an_open_loop_queues_does_not_count_attempts_that_failed() {
    let mut input = traced(8, 400, 10.0, &[("request_ns", 6.0), ("request_cpu_ns", 6.0)]);
    input.pacing = LoopKind::Open;
    input.service_mean_ms = 4.0;
    input.lost_ms_by_code = [("1213 (40001)".to_string(), 800.0)].into();
    let budget = of(&input).unwrap();
    assert!(near(budget.ms(Part::ClientQueue), 4.0), "{}", budget.ms(Part::ClientQueue));
    assert!(near(budget.unaccounted_ms, 0.0), "{}", budget.unaccounted_ms);
}

#[test]
fn a_remote_server_has_one_part_past_the_wire() {
    let input = traced(8, 400, 2.0, &[("wire_ns", 1.8), ("client_held_ns", 0.1), ("client_delay_ns", 0.1)]);
    let budget = of(&input).unwrap();
    assert!(budget.remote);
    assert!(near(budget.ms(Part::ServerAndNetwork), 1.8) && near(budget.unaccounted_ms, 0.0));
    assert!(budget.notes.iter().any(|note| note.contains("stops at the wire")));
    assert!(!budget.parts.iter().any(|part| part.part == Part::Cpu));
}

#[test]
fn the_split_of_cpu_time_has_the_interval_of_its_samples() {
    // 80 of 100: Wilson's interval as published tables have it.
    let share = share_of_samples(80.0, 100.0);
    assert!((share.low95 - 0.7112).abs() < 1e-3 && (share.high95 - 0.8666).abs() < 1e-3, "{share:?}");
    let none = share_of_samples(0.0, 10.0);
    assert!(none.low95 == 0.0 && (none.high95 - 0.2775).abs() < 1e-3, "{none:?}");
}

#[test]
fn growth_is_reported_with_what_the_background_did() {
    let few =
        traced(8, 4_000, 2.1, &[("request_ns", 2.1), ("request_cpu_ns", 1.1), ("request_lock_ns", 1.0)]);
    let mut many =
        traced(64, 5_400, 11.8, &[("request_ns", 11.8), ("request_cpu_ns", 1.9), ("request_lock_ns", 9.9)]);
    let of_log_writer = |metric: &str| SeriesName {
        host: "server".to_string(),
        source: "threads".to_string(),
        metric: metric.to_string(),
        instance: "log writer".to_string(),
    };
    many.counters.push(Counter {
        series: of_log_writer("file_sync_ns"),
        unit: "ns".to_string(),
        increase: 0.94e9,
    });
    many.gauges.push(Gauge { series: of_log_writer("count"), unit: "1".to_string(), mean: 1.0, max: 1.0 });
    let inputs = [few, many];
    let levels: Vec<Level> =
        inputs.iter().map(|input| crate::verdict::judge(input, &Machine::default())).collect();
    let budgets: Vec<Budget> = levels.iter().filter_map(budget).collect();
    let span = crate::growth::Span { best: &levels[0], last: &levels[1] };
    let found = findings(&budgets, &levels, Some(1), Some(span));
    assert_eq!(
        found[1].text,
        "From 8 to 64 users a transaction grew from 2.1 to 11.8 ms; 8.9 ms of that is waiting on locks and 800 µs work on a CPU, \
         while the log writer is in fsync 94 % of the time."
    );
    assert!(
        found[0].text.starts_with("At 64 users a transaction took 11.8 ms: 9.9 ms waiting on locks (84 %)")
    );
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[1].evidence.len() >= 4);
}

#[test]
fn parts_that_do_not_add_up_are_reported() {
    let inputs = [traced(2, 400, 2.0, &[("request_ns", 1.0), ("request_cpu_ns", 1.0)])];
    let levels: Vec<Level> =
        inputs.iter().map(|input| crate::verdict::judge(input, &Machine::default())).collect();
    let budgets: Vec<Budget> = levels.iter().filter_map(budget).collect();
    let found = findings(&budgets, &levels, Some(0), None);
    assert_eq!(found[1].id, "budget-unaccounted");
    assert!(found[1].text.contains("up to 50 % of it, at 2 users"), "{}", found[1].text);
}
