//! The cases of `fixtures/`, which the page's own arithmetic is tested with too.

use serde_json::Value;

use crate::{Envelope, Thread, ThreadTable, envelope, is_idle, rates};

const NS_PER_S: f64 = 1e9;

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Numbers; null is a gap.
fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(|number| number.as_f64().unwrap_or(f64::NAN)).collect()
}

fn times_ns(value: &Value) -> Vec<i64> {
    numbers(value).into_iter().map(|s| (s * NS_PER_S) as i64).collect()
}

fn same(one: &[f64], other: &[f64]) -> bool {
    let equal = |(one, other): (&f64, &f64)| one == other || (one.is_nan() && other.is_nan());
    one.len() == other.len() && one.iter().zip(other).all(equal)
}

#[test]
fn rates_are_those_of_the_page() {
    for case in list(&read(include_str!("../fixtures/rates.json"))) {
        let found = rates(&times_ns(&case["t_s"]), &numbers(&case["value"]));
        assert_eq!(found.t_ns, times_ns(&case["rates"]["t_s"]), "{}", case["about"]);
        assert!(same(&found.value, &numbers(&case["rates"]["value"])), "{}: {found:?}", case["about"]);
    }
}

#[test]
fn envelopes_are_those_of_the_page() {
    for case in list(&read(include_str!("../fixtures/envelope.json"))) {
        let t: Vec<i64> = numbers(&case["t"]).into_iter().map(|t| t as i64).collect();
        let buckets = list(&case["buckets"]);
        let [from, to] = ["from", "to"].map(|name| case[name].as_i64().unwrap());
        let found = envelope(&t, &numbers(&case["value"]), from, to, buckets.len());
        let quantity = |name: &str| -> Vec<f64> {
            buckets.iter().map(|bucket| bucket[name].as_f64().unwrap_or(f64::NAN)).collect()
        };
        let count =
            buckets.iter().map(|bucket| bucket["count"].as_u64().unwrap_or(0) as u32).collect::<Vec<_>>();
        let Envelope { min, q1, median, q3, max, .. } = &found;
        assert_eq!(found.count, count, "{}", case["about"]);
        for (name, values) in [("min", min), ("q1", q1), ("median", median), ("q3", q3), ("max", max)] {
            assert!(same(values, &quantity(name)), "{} of {}: {values:?}", name, case["about"]);
        }
    }
}

#[test]
fn the_time_of_threads_is_that_of_the_page() {
    let fixtures = read(include_str!("../fixtures/threads.json"));
    for case in list(&fixtures["covering"]) {
        let t_ns = numbers(&case["t"]).into_iter().map(|t| t as i64).collect();
        let table = ThreadTable { t_ns, ..ThreadTable::default() };
        let [from, to] = ["from", "to"].map(|name| case[name].as_i64().unwrap());
        let expected =
            case["snapshots"].as_array().map(|places| [0, 1].map(|at| places[at].as_u64().unwrap() as usize));
        assert_eq!(table.covering(from, to).map(|(from, to)| [from, to]), expected, "{}", case["about"]);
    }
    let table = thread_table(&fixtures["table"]);
    for case in list(&fixtures["between"]) {
        let [from, to] = ["from", "to"].map(|name| case[name].as_u64().unwrap() as usize);
        let found = table.between(from, to);
        assert_eq!(found.len(), list(&case["threads"]).len(), "{from} to {to}");
        for (row, expected) in found.iter().zip(list(&case["threads"])) {
            assert_eq!(u64::from(row.tid), expected["tid"].as_u64().unwrap());
            assert_eq!(row.connection, expected["connection"].as_u64(), "{row:?}");
            assert_eq!(row.statement.as_deref(), expected["statement"].as_str(), "{row:?}");
            assert_eq!(Some(row.requests), expected["requests"].as_u64(), "{row:?}");
            let states_ns: Vec<u64> = list(&expected["states_ns"]).iter().filter_map(Value::as_u64).collect();
            assert_eq!((&row.states_ns, row.window_ns), (&states_ns, states_ns.iter().sum()));
        }
    }
    for (state, expected) in fixtures["idle"].as_object().unwrap() {
        assert_eq!(is_idle(state), expected.as_bool().unwrap(), "{state}");
    }
}

fn thread_table(value: &Value) -> ThreadTable {
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let sums = |value: &Value| list(value).iter().filter_map(Value::as_u64).collect::<Vec<_>>();
    let thread = |value: &Value| Thread {
        tid: value["tid"].as_u64().unwrap() as u32,
        name: text(&value["name"]),
        role: text(&value["role"]),
        snapshots: 0..3,
    };
    ThreadTable {
        t_ns: list(&value["t_ns"]).iter().filter_map(Value::as_i64).collect(),
        states: list(&value["states"]).iter().map(text).collect(),
        threads: list(&value["threads"]).iter().map(thread).collect(),
        running_ns: list(&value["running_ns"]).iter().map(sums).collect(),
        running_requests: sums(&value["running_requests"]),
        connection: list(&value["connection"]).iter().map(Value::as_u64).collect(),
        statement: list(&value["statement"])
            .iter()
            .map(|place| place.as_u64().map(|place| place as u32))
            .collect(),
        statements: list(&value["statements"]).iter().map(text).collect(),
    }
}
