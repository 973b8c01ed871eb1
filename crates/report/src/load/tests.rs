use whyso_explain::capacity::{Answer, Bounds, ProbeResult};
use whyso_explain::model::LevelVerdict;
use whyso_explain::versus::{RoundResult, compare};
use whyso_record::run::{
    ArrivalsResult, EndpointResult, EngineResult, InFlight, Latency, OutageResult, SloResult,
    TransactionResult,
};

use super::*;
use crate::svg::tests::level;

fn verdict() -> LevelVerdict {
    LevelVerdict { valid: true, ..LevelVerdict::default() }
}

fn judged(level: Level) -> LoadResult {
    LoadResult { levels: vec![(level, verdict())], ..LoadResult::default() }
}

#[test]
fn a_service_level_reads_as_average_max_90th_required_and_verdict() {
    let mut level = level(0, 16, 100.0);
    let slo = SloResult {
        kind: "transaction".to_string(),
        measure: "p99".to_string(),
        required_ms: 20.0,
        measured_ms: Some(12.5),
        mean_ms: 3.25,
        p90_ms: 8.0,
        max_ms: 41.0,
        held: true,
        is_lower_bound: false,
    };
    let missed = SloResult { kind: "commit".to_string(), required_ms: 0.5, held: false, ..slo.clone() };
    let nothing = SloResult { kind: "rollback".to_string(), measured_ms: None, held: false, ..slo.clone() };
    level.result.slo = vec![slo, missed, nothing];
    let expected = "
level     kind         average    max  90th      required  measured  verdict
16 users  transaction  3.25 ms  41 ms  8 ms   p99 ≤ 20 ms   12.5 ms  PASS
16 users  commit       3.25 ms  41 ms  8 ms  p99 ≤ 500 µs   12.5 ms  FAIL
16 users  rollback           –      –     –   p99 ≤ 20 ms   nothing  FAIL
";
    assert_eq!(summary(&judged(level), 80), expected);
}

#[test]
fn kinds_of_transactions_stand_with_their_mix_and_what_is_required_of_each() {
    let mut level = level(0, 16, 100.0);
    level.result.transactions = 1000;
    let kind = |name: &str, transactions: u64| TransactionResult {
        kind: name.to_string(),
        transactions,
        transactions_per_s: transactions as f64 / 10.0,
        latency_ms: Latency { mean: 2.0, max: 40.0, ..Latency::default() },
        p90_ms: 8.0,
        service_ms: Latency::default(),
    };
    level.result.by_transaction = vec![kind("new_order", 900), kind("pay", 100), kind("never_drawn", 0)];
    let expected = "
level     transaction  TPS   mix  average    max  90th
16 users  new_order     90  90 %     2 ms  40 ms  8 ms
16 users  pay           10  10 %     2 ms  40 ms  8 ms
16 users  never_drawn    0   0 %        –      –  –
";
    assert_eq!(summary(&judged(level.clone()), 80), expected);

    let slo = |kind: &str, held: bool| SloResult {
        kind: kind.to_string(),
        measure: "p90".to_string(),
        required_ms: 10.0,
        measured_ms: Some(8.0),
        mean_ms: 2.0,
        p90_ms: 8.0,
        max_ms: 40.0,
        held,
        is_lower_bound: false,
    };
    level.result.slo = vec![slo("transaction", true), slo("new_order", true), slo("transaction:pay", false)];
    let expected = "
level     transaction  TPS   mix  average    max  90th     required  measured  verdict
16 users  new_order     90  90 %     2 ms  40 ms  8 ms  p90 ≤ 10 ms      8 ms  PASS
16 users  pay           10  10 %     2 ms  40 ms  8 ms  p90 ≤ 10 ms      8 ms  FAIL: errors
16 users  never_drawn    0   0 %        –      –     –            –         –  –

level     kind         average    max  90th     required  measured  verdict
16 users  transaction     2 ms  40 ms  8 ms  p90 ≤ 10 ms      8 ms  PASS
";
    assert_eq!(summary(&judged(level.clone()), 80), expected);
    assert_eq!(load_json(&judged(level))["levels"][0]["kinds"][1]["kind"], "pay");
}

#[test]
fn what_makes_a_number_doubtful_stands_under_the_table() {
    let mut level = level(0, 1, 100.0);
    level.result.client_limit = "the local ports ran out".to_string();
    level.result.errors = 13;
    level.result.errors_by_code = [("1205 (HY000)".to_string(), 1), ("1213 (40001)".to_string(), 12)].into();
    level.result.lost_ms_by_code = [("1213 (40001)".to_string(), 34.5)].into();
    level.result.retries = 13;
    level.result.arrivals =
        Some(ArrivalsResult { due: 1000, due_per_s: 1000.0, backlog_end: 400, ..ArrivalsResult::default() });
    level.result.engine = EngineResult {
        kind: "io-uring".to_string(),
        loops: 2,
        why: "it was asked for".to_string(),
        ..Default::default()
    };
    let expected = "
• INVALID at 1,000/s: the local ports ran out.
• At 1,000/s the rate could not be held: the backlog grew from 0 to 400 transactions.
• Errors at 1,000/s: 1205 (HY000) once; 1213 (40001) 12 times, 34.5 ms lost; 13 retries.
• Driven by io-uring, 2 loops: it was asked for.
";
    assert_eq!(summary(&judged(level), 120), expected);
}

#[test]
fn what_was_in_flight_fails_a_service_level_by_its_age_and_is_noted_by_its_level() {
    let mut level = level(0, 8, 100.0);
    level.result.in_flight = Some(InFlight { transactions: 4, oldest_ms: 5_940.0, ..InFlight::default() });
    level.result.slo = vec![SloResult {
        kind: "transaction".to_string(),
        measure: "max".to_string(),
        required_ms: 500.0,
        measured_ms: Some(5_940.0),
        is_lower_bound: true,
        mean_ms: 0.17,
        p90_ms: 0.2,
        max_ms: 5_940.0,
        held: false,
    }];
    let stuck = "4 transactions were in flight when the window ended.".to_string();
    let result =
        LoadResult { levels: vec![(level, LevelVerdict { stuck, ..verdict() })], ..LoadResult::default() };
    let expected = "
level    kind         average     max    90th      required  measured  verdict
8 users  transaction   170 µs  5.94 s  200 µs  max ≤ 500 ms   ≥5.94 s  FAIL

• At 8 users 4 transactions were in flight when the window ended.
";
    assert_eq!(summary(&result, 80), expected);
    assert_eq!(load_json(&result)["levels"][0]["in_flight"]["oldest_ms"], 5_940.0);
}

#[test]
fn endpoints_are_shown_with_their_outages() {
    let mut level = level(0, 4, 100.0);
    let latency_ms = Latency { mean: 1.0, p95: 2.0, p99: 3.0, max: 4.0, ..Latency::default() };
    let endpoint = EndpointResult {
        address: "db1:3306".to_string(),
        transactions: 500,
        transactions_per_s: 50.0,
        errors: 2,
        latency_ms,
        outages: vec![
            OutageResult { begin_ns: 0, seconds: Some(2.5) },
            OutageResult { begin_ns: 9, seconds: None },
        ],
    };
    let other =
        EndpointResult { address: "db2:3306".to_string(), errors: 0, outages: vec![], ..endpoint.clone() };
    level.result.endpoints = vec![endpoint, other];
    let expected = "
level    endpoint  TPS  mean ms  p95  p99  max  errors  outages
4 users  db1:3306   50        1    2    3    4       2  2.5 s, not recovered
4 users  db2:3306   50        1    2    3    4       0  none
";
    assert_eq!(summary(&judged(level), 80), expected);
}

#[test]
fn a_search_ends_in_an_interval_and_what_bounds_it() {
    let bounds = Bounds { holds_per_s: Some(1000.0), fails_per_s: Some(1050.0), settled: true };
    let probe = ProbeResult {
        level: 0,
        rate_per_s: 1050.0,
        held: false,
        why: "p99 was 31 ms, 20 ms required".into(),
    };
    let result = LoadResult { capacity: Some(Answer::new(bounds, vec![probe])), ..LoadResult::default() };
    let expected = "
• The service level holds up to 1,000 transactions per second, and fails from
  1,050 on; both ends were tried 3 times.
• What bounds it: p99 was 31 ms, 20 ms required.
";
    assert_eq!(summary(&result, 80), expected);
    let object = load_json(&result);
    assert_eq!(object["capacity"]["holds_per_s"], 1000.0);
    assert_eq!(object["capacity"]["probes"][0]["rate_per_s"], 1050.0);
}

#[test]
fn two_workloads_are_compared_by_their_ratios() {
    let round = |a: f64, b: f64| {
        let of = |per_s: f64| RoundResult {
            transactions_per_s: per_s,
            mean_ms: 1000.0 / per_s,
            p95_ms: 2000.0 / per_s,
            p99_ms: 3000.0 / per_s,
        };
        (of(a), of(b))
    };
    let comparison =
        compare("a.sql", "b.sql", &[round(100.0, 200.0), round(110.0, 221.0), round(90.0, 181.0)]);
    let result = LoadResult { comparison, ..LoadResult::default() };
    let expected = "
         a: a.sql  b: b.sql  b ÷ a  95 % interval
TPS           100       201  2.007  1.992 – 2.021
mean ms      10.1      5.02  0.498  0.495 – 0.502
p95 ms       20.1        10  0.498  0.495 – 0.502
p99 ms       30.2        15  0.498  0.495 – 0.502

• b.sql does 2.01 times the transactions of a.sql (95 % interval 1.99 to 2.02, 3 rounds).
";
    assert_eq!(summary(&result, 100), expected);
}

#[test]
fn the_names_of_the_object_are_those_that_programs_rely_on() {
    let object = load_json(&judged(level(0, 4, 100.0)));
    let level = &object["levels"][0];
    for name in [
        "workload",
        "users",
        "seconds",
        "transactions",
        "queries",
        "errors",
        "transactions_per_s",
        "queries_per_s",
    ] {
        assert!(level.get(name).is_some(), "{name} is missing");
    }
    let keys =
        |value: &serde_json::Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    for latency in ["latency_ms", "service_ms"] {
        assert_eq!(keys(&level[latency]), ["mean", "p50", "p95", "p99", "p999", "max"]);
    }
    assert_eq!(keys(&level["client"]), ["cpu_s", "cpu_us_per_query", "max_rss_kb", "saturated"]);
}
