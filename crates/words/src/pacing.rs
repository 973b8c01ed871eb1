//! When transactions of a load begin, as text.

use whyso_model::{ArrivalRate, Arrivals, Pacing};

/// Returns a pacing such as "open loop, 1000/s, poisson".
pub fn pacing(pacing: &Pacing) -> String {
    match pacing {
        Pacing::Open { rate: ArrivalRate::PerSecond(rate), arrivals } => {
            format!("open loop, {rate}/s, {}", arrivals_name(*arrivals))
        }
        other => pacing_without_rate(other),
    }
}

/// Returns a pacing without its rate, such as "open loop, poisson".
pub fn pacing_without_rate(pacing: &Pacing) -> String {
    match pacing {
        Pacing::Closed { think, stages } => {
            let think = think.map_or(String::new(), |think| {
                let mean = if think.is_exponential { " on average" } else { "" };
                format!(", think {} ms{mean}", think.mean_ms)
            });
            let stages = stages.as_ref().map_or(String::new(), |stages| format!(", {stages}"));
            format!("closed loop{think}{stages}")
        }
        Pacing::Open { rate: ArrivalRate::PerSecond(_), arrivals } => {
            format!("open loop, {}", arrivals_name(*arrivals))
        }
        Pacing::Open { rate: ArrivalRate::Stages(stages), arrivals } => {
            format!("open loop, {stages}, {}", arrivals_name(*arrivals))
        }
        Pacing::Recorded => "as recorded".to_string(),
    }
}

fn arrivals_name(arrivals: Arrivals) -> &'static str {
    match arrivals {
        Arrivals::Poisson => "poisson",
        Arrivals::Uniform => "uniform",
    }
}

#[cfg(test)]
mod tests {
    use whyso_model::ThinkTime;

    use super::*;

    #[test]
    fn a_pacing_has_its_loop_first_and_then_what_is_not_usual() {
        let think = |is_exponential| Some(ThinkTime { mean_ms: 10.0, is_exponential });
        let open = |rate| Pacing::Open { rate, arrivals: Arrivals::Poisson };
        let stages = Some("ramp 0..64 30s, hold 60s".to_string());
        for (value, words, without_rate) in [
            (Pacing::default(), "closed loop", "closed loop"),
            (Pacing::Recorded, "as recorded", "as recorded"),
            (
                Pacing::Closed { think: think(true), stages: None },
                "closed loop, think 10 ms on average",
                "closed loop, think 10 ms on average",
            ),
            (
                Pacing::Closed { think: think(false), stages },
                "closed loop, think 10 ms, ramp 0..64 30s, hold 60s",
                "closed loop, think 10 ms, ramp 0..64 30s, hold 60s",
            ),
            (open(ArrivalRate::PerSecond(1000.0)), "open loop, 1000/s, poisson", "open loop, poisson"),
            (
                open(ArrivalRate::Stages("step 5/s 1s".to_string())),
                "open loop, step 5/s 1s, poisson",
                "open loop, step 5/s 1s, poisson",
            ),
        ] {
            assert_eq!(
                (pacing(&value).as_str(), pacing_without_rate(&value).as_str()),
                (words, without_rate)
            );
        }
    }
}
