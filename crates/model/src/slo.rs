//! Service levels: what response times are required, and whether they were held.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The kind that stands for whole transactions.
const TRANSACTION: &str = "transaction";

/// One requirement, written as `p99=20ms` or, for one kind of transaction or of statement, as `new_order:p90=50ms`. Where
/// both have a kind of this name, `transaction:new_order:p90=50ms` is that of the transaction.
///
/// ```
/// use whyso_model::slo::Requirement;
///
/// let required: Requirement = "point_select:p95=2ms".parse().unwrap();
/// assert_eq!(required.kind, "point_select");
/// assert!(required.is_of_transaction("point_select") && !required.is_of_all());
/// assert_eq!(required.to_string(), "p95 ≤ 2 ms");
/// assert!(required.holds(Some(1.9)) && !required.holds(Some(2.1)));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Requirement {
    /// "transaction" for all of them, a kind of transaction (its name, or "transaction:" and its name), or a kind of
    /// statement.
    pub kind: String,
    pub measure: Measure,
    /// Longest time that is allowed, in milliseconds.
    pub required_ms: f64,
}

/// Which number of a distribution of times is judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    Average,
    Max,
    /// Above 0, at most 100.
    Percentile(f64),
}

impl Requirement {
    /// Whether it is of all transactions together.
    pub fn is_of_all(&self) -> bool {
        self.kind == TRANSACTION
    }

    /// Whether it is of the kind of transactions that has this name.
    pub fn is_of_transaction(&self, name: &str) -> bool {
        is_kind_of_transaction(&self.kind, name)
    }

    /// Whether a measured time holds it. Where nothing was measured, it is not held.
    pub fn holds(&self, measured_ms: Option<f64>) -> bool {
        measured_ms.is_some_and(|measured| measured <= self.required_ms)
    }
}

/// Whether a requirement's kind is the kind of transactions that has this name.
pub fn is_kind_of_transaction(kind: &str, name: &str) -> bool {
    let rest = kind.strip_prefix(TRANSACTION).and_then(|rest| rest.strip_prefix(':'));
    rest.unwrap_or(kind) == name
}

impl Measure {
    /// The share of values, 0 to 1, that must not exceed the measure; `None` for the average.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Measure::Average => None,
            Measure::Max => Some(1.0),
            Measure::Percentile(percentile) => Some(percentile / 100.0),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Average => f.write_str("avg"),
            Measure::Max => f.write_str("max"),
            Measure::Percentile(percentile) => write!(f, "p{percentile}"),
        }
    }
}

/// As in "p99 ≤ 20 ms"; without the kind.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ≤ {}", self.measure, required_time(self.required_ms))
    }
}

/// A required time in the unit that suits it, its digits as they were typed: "1.5 ms", "500 µs".
pub fn required_time(ms: f64) -> String {
    match ms {
        _ if ms >= 1000.0 => format!("{} s", ms / 1000.0),
        _ if ms >= 1.0 => format!("{ms} ms"),
        _ => format!("{} µs", ms * 1000.0),
    }
}

/// What is wrong with a text that should be a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    #[error("it has no '=': {SHAPE}")]
    NoEqualsSign,
    #[error("the kind before the ':' is missing: {SHAPE}")]
    NoKind,
    #[error("'{0}' is no measure of response time: give avg, max, or a percentile such as p99 or p99.9")]
    Measure(String),
    #[error("'{0}' is no time: give one such as 20ms, 500us or 1s")]
    Time(String),
}

const SHAPE: &str = "give MEASURE=TIME, such as p99=20ms, or KIND:MEASURE=TIME, such as new_order:p90=50ms";

impl FromStr for Measure {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Measure, RequirementError> {
        let text = text.trim();
        match text {
            "avg" | "mean" | "average" => return Ok(Measure::Average),
            "max" => return Ok(Measure::Max),
            _ => {}
        }
        let digits = text.strip_prefix('p').unwrap_or("");
        match digits.parse::<f64>() {
            Ok(percentile) if percentile > 0.0 && percentile <= 100.0 => Ok(Measure::Percentile(percentile)),
            _ => Err(RequirementError::Measure(text.to_string())),
        }
    }
}

impl FromStr for Requirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Requirement, RequirementError> {
        let (left, right) = text.split_once('=').ok_or(RequirementError::NoEqualsSign)?;
        let (kind, measure) = match left.rsplit_once(':') {
            Some((kind, measure)) if !kind.trim().is_empty() => (kind.trim(), measure),
            Some(_) => return Err(RequirementError::NoKind),
            None => (TRANSACTION, left),
        };
        let measure: Measure = measure.parse()?;
        let required_ms =
            milliseconds(right).ok_or_else(|| RequirementError::Time(right.trim().to_string()))?;
        Ok(Requirement { kind: kind.to_string(), measure, required_ms })
    }
}

/// "20ms", "500us", "500µs" or "1.5s" as milliseconds; above 0. A bare number has no unit, and is refused.
fn milliseconds(text: &str) -> Option<f64> {
    let text = text.trim().trim_start_matches("<=").trim_start_matches('≤').trim();
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = text[..number_end].parse().ok()?;
    let ms = match text[number_end..].trim() {
        "us" | "µs" | "μs" => number / 1000.0,
        "ms" => number,
        "s" => number * 1000.0,
        _ => return None,
    };
    (ms > 0.0 && ms.is_finite()).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match text.parse::<Requirement>() {
            Ok(required) => format!("{}: {required}", required.kind),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_requirement_is_read_as_it_is_meant() {
        assert_eq!(read("p99=20ms"), "transaction: p99 ≤ 20 ms");
        assert_eq!(read("p99.9 = 1.5s"), "transaction: p99.9 ≤ 1.5 s");
        assert_eq!(read("point_select:p95=500us"), "point_select: p95 ≤ 500 µs");
        assert_eq!(read("commit:avg=2ms"), "commit: avg ≤ 2 ms");
        assert_eq!(read("transaction:new_order:p90=50ms"), "transaction:new_order: p90 ≤ 50 ms");
        assert_eq!(read("mean=2ms"), "transaction: avg ≤ 2 ms");
        assert_eq!(read("max=1s"), "transaction: max ≤ 1 s");
    }

    #[test]
    fn what_makes_no_sense_is_told_in_one_sentence_that_shows_what_would() {
        for (text, word) in [
            ("p99", "MEASURE=TIME"),
            (":p99=2ms", "the kind before the ':'"),
            ("q99=20ms", "'q99'"),
            ("p0=20ms", "percentile such as p99"),
            ("p101=20ms", "percentile such as p99"),
            ("pinf=20ms", "percentile such as p99"),
            ("p99=20", "'20' is no time"),
            ("p99=0ms", "no time"),
            ("p99=fast", "'fast' is no time"),
            ("p99=20 parsecs", "no time"),
        ] {
            assert!(read(text).contains(word), "{text}: {}", read(text));
        }
    }

    #[test]
    fn nothing_measured_is_nothing_held() {
        let required: Requirement = "p99=20ms".parse().unwrap();
        assert!(!required.holds(None));
        assert!(required.holds(Some(20.0)));
        assert!(!required.holds(Some(20.1)));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-z0-9:=.µ p]{0,20}") {
            let _ = read(&text);
        }
    }
}
