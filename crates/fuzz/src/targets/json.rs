//! Changes to JSON, where its structure is.

use serde_json::{Map, Value};

use crate::choices::Choices;

const DEPTH_MAX: usize = 12;
const REPEATS_MAX: usize = 3000;

/// Texts that end elements, lines, quotes and terminals' control sequences.
const TEXTS: [&str; 14] = [
    "",
    "</script><script>alert(1)</script>",
    "<!--",
    "'; DROP TABLE t; --",
    "\"",
    "|a|b|\n|-|-|",
    "\u{1b}[31m\u{7}",
    "\u{0}",
    "NaN",
    "1e999",
    "-1",
    "../../etc/passwd",
    "\u{202e}\u{feff}\u{fffd}",
    "99999999999999999999",
];

const NUMBERS: [f64; 10] = [0.0, -0.0, 1e308, -1e308, 5e-324, 0.5, -1.0, 1e19, 9.3e18, 1e-300];

/// Makes one change at a place that the choices lead to.
pub(super) fn change(choices: &mut Choices<'_>, value: &mut Value) {
    let mut at = value;
    for _ in 0..DEPTH_MAX {
        let stops = choices.once_in(6);
        let children = match &*at {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        if children == 0 || stops {
            break;
        }
        let number = choices.below(children);
        let (Value::Array(_) | Value::Object(_)) = &*at else { break };
        at = match at {
            Value::Array(items) => &mut items[number],
            Value::Object(fields) => match fields.values_mut().nth(number) {
                Some(field) => field,
                None => return,
            },
            _ => return,
        };
    }
    replace(choices, at);
}

fn replace(choices: &mut Choices<'_>, at: &mut Value) {
    let kind = choices.byte();
    // A change of its type is mostly refused as a whole, so it is rare.
    if kind % 8 == 7 {
        *at = any(choices, kind / 8);
        return;
    }
    match at {
        Value::Number(_) => *at = number(choices),
        Value::String(text) => match kind % 3 {
            0 => *text = (*choices.one_of(&TEXTS)).to_string(),
            1 => *text = choices.one_of(&TEXTS).repeat(1 + choices.below(REPEATS_MAX)),
            _ => text.push_str(&String::from_utf8_lossy(choices.some(20))),
        },
        Value::Bool(is) => *is = !*is,
        Value::Null => *at = any(choices, kind / 8),
        Value::Array(items) => match kind % 4 {
            0 => items.clear(),
            1 if !items.is_empty() => {
                let again = items[choices.below(items.len())].clone();
                // Only short items become long arrays: the length of a case must bound what it builds.
                let most = if again.is_object() { 20 } else { REPEATS_MAX };
                items.extend(std::iter::repeat_n(again, 1 + choices.below(most)));
            }
            2 if !items.is_empty() => drop(items.remove(choices.below(items.len()))),
            _ => items.reverse(),
        },
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            if names.is_empty() {
                return;
            }
            let (name, other) = (choices.one_of(&names), choices.one_of(&names));
            match kind % 4 {
                0 => drop(fields.remove(name)),
                1 => {
                    let field = fields[name].clone();
                    fields.insert((*choices.one_of(&TEXTS)).to_string(), field);
                }
                2 => {
                    let field = fields[name].clone();
                    fields.insert(other.clone(), field);
                }
                _ => fields.clear(),
            }
        }
    }
}

fn number(choices: &mut Choices<'_>) -> Value {
    match choices.byte() % 3 {
        0 => (choices.number() as i64).into(),
        1 => choices.number().into(),
        _ => (*choices.one_of(&NUMBERS)).into(),
    }
}

fn any(choices: &mut Choices<'_>, kind: u8) -> Value {
    match kind % 7 {
        0 => Value::Null,
        1 => Value::Bool(true),
        2 => number(choices),
        3 => Value::String((*choices.one_of(&TEXTS)).to_string()),
        4 => Value::Array(Vec::new()),
        5 => Value::Object(Map::new()),
        _ => (0..choices.below(200)).fold(Value::Null, |within, _| Value::Array(vec![within])),
    }
}
