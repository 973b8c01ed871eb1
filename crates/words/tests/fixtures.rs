//! The cases of `fixtures.json`, which the page's formatter is tested with too.

use serde_json::Value;

fn float(value: &Value) -> f64 {
    match value.as_str() {
        Some(text) => text.parse().unwrap(),
        None => value.as_f64().unwrap(),
    }
}

fn write(name: &str, arguments: &[Value]) -> String {
    let text = |at: usize| arguments[at].as_str().unwrap();
    let integer = |at: usize| arguments[at].as_u64().unwrap();
    let first = || float(&arguments[0]);
    match name {
        "number" => whyso_words::number(first()),
        "signed_number" => whyso_words::signed_number(first()),
        "whole" => whyso_words::whole(integer(0)),
        "short" => whyso_words::short(first()),
        "ratio" => whyso_words::ratio(first()),
        "p_value" => whyso_words::p_value(first()),
        "percent" => whyso_words::percent(first()),
        "percent_number" => whyso_words::percent_number(first()),
        "percent_change" => whyso_words::percent_change(first()),
        "nanoseconds" => whyso_words::nanoseconds(first()),
        "milliseconds" => whyso_words::milliseconds(first()),
        "seconds" => whyso_words::seconds(first()),
        "rough_time" => whyso_words::rough_time(first()),
        "clock" => whyso_words::clock(first(), float(&arguments[1])),
        "bytes" => whyso_words::bytes(first()),
        "rate" => whyso_words::rate(first()),
        "amount" => whyso_words::amount(first(), text(1)),
        "change" => whyso_words::change(first(), float(&arguments[1]), text(2), text(3)),
        "list" => {
            let parts: Vec<&str> =
                arguments[0].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            whyso_words::list(&parts)
        }
        "count" => whyso_words::count(integer(0), text(1)),
        "users" => whyso_words::users(u32::try_from(integer(0)).unwrap()),
        "times" => whyso_words::times(integer(0)),
        "growth" => whyso_words::growth(first()),
        "at_least" => whyso_words::at_least(text(0).to_string(), arguments[1].as_bool().unwrap()),
        _ => panic!("{name} has fixtures, and is not called here"),
    }
}

#[test]
fn every_case_is_written_as_the_page_writes_it() {
    let fixtures: Value = serde_json::from_str(include_str!("../fixtures.json")).unwrap();
    let mut wrong = Vec::new();
    for (name, cases) in fixtures.as_object().unwrap() {
        for case in cases.as_array().unwrap() {
            let (expected, arguments) = case.as_array().unwrap().split_last().unwrap();
            let written = write(name, arguments);
            if written != expected.as_str().unwrap() {
                wrong.push(format!("{name}{arguments:?} is {written:?}, expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
