//! Which levels hold what is required of response times.

use crate::level;
use crate::model::{Evidence, Finding, LevelInput};
use crate::slo::required_time;

/// One sentence a requirement: where it holds, and where it does not. `None` where nothing was required.
pub(crate) fn finding(levels: &[LevelInput]) -> Option<Finding> {
    let first = levels.iter().find(|level| !level.slo.is_empty())?;
    let mut sentences = Vec::new();
    for (place, required) in first.slo.iter().enumerate() {
        let mut holds = Vec::new();
        let mut fails = Vec::new();
        for level in levels {
            let Some(slo) = level.slo.get(place) else { continue };
            let again = if level.repeat { " (repeated)" } else { "" };
            let users = format!("{}{again}", level::name(level.users, level.rate_per_s));
            match (slo.held, slo.measured_ms) {
                (true, _) => holds.push(users),
                (false, Some(measured_ms)) => {
                    let at_least = if slo.is_lower_bound { "≥ " } else { "" };
                    fails.push(format!("{users} ({at_least}{})", whyso_words::amount(measured_ms, "ms")));
                }
                (false, None) => fails.push(format!("{users} (nothing was measured)")),
            }
        }
        let of =
            if required.kind == "transaction" { String::new() } else { format!(" of {}", required.kind) };
        let name = format!("{}{of} ≤ {}", required.measure, required_time(required.required_ms));
        sentences.push(match (holds.is_empty(), fails.is_empty()) {
            (false, true) => format!("The service level {name} holds at {}.", whyso_words::list(&holds)),
            (true, _) => format!("The service level {name} does not hold at {}.", whyso_words::list(&fails)),
            (false, false) => format!(
                "The service level {name} holds at {}, and does not at {}.",
                whyso_words::list(&holds),
                whyso_words::list(&fails)
            ),
        });
    }
    let judged = levels.iter().filter(|level| !level.slo.is_empty()).map(|level| level.index).collect();
    Some(Finding {
        id: "service-level".to_string(),
        text: sentences.join(" "),
        evidence: vec![Evidence::Levels { quantity: "latency_ms".to_string(), levels: judged }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SloInput;

    fn level(users: u32, measured_ms: Option<f64>) -> LevelInput {
        let held = measured_ms.is_some_and(|measured| measured <= 20.0);
        let slo = SloInput {
            kind: "transaction".to_string(),
            measure: "p99".to_string(),
            required_ms: 20.0,
            measured_ms,
            is_lower_bound: false,
            held,
        };
        LevelInput { users, slo: vec![slo], ..LevelInput::default() }
    }

    #[test]
    fn a_requirement_is_reported_by_where_it_holds_and_where_not() {
        let text = |levels: &[LevelInput]| finding(levels).map(|finding| finding.text).unwrap_or_default();
        assert_eq!(text(&[LevelInput::default()]), "");
        assert_eq!(
            text(&[level(1, Some(3.0)), level(2, Some(9.5))]),
            "The service level p99 ≤ 20 ms holds at 1 user and 2 users."
        );
        assert_eq!(
            text(&[level(1, Some(3.0)), level(8, Some(31.2)), level(16, None)]),
            "The service level p99 ≤ 20 ms holds at 1 user, and does not at 8 users (31.2 ms) and 16 users (nothing was \
             measured)."
        );
        let mut hung = level(4, Some(2_900.0));
        hung.slo[0].is_lower_bound = true;
        assert_eq!(text(&[hung]), "The service level p99 ≤ 20 ms does not hold at 4 users (≥ 2.9 s).");
        assert_eq!(
            text(&[level(8, Some(31.2))]),
            "The service level p99 ≤ 20 ms does not hold at 8 users (31.2 ms)."
        );
    }
}
