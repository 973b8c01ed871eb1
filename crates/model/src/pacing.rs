//! When transactions of a load begin.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// When a user's next transaction begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "loop", rename_all = "snake_case")]
pub enum Pacing {
    /// When the one before has ended, after a pause.
    Closed {
        /// The pause; `None`: there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        think: Option<ThinkTime>,
        /// How many users are at work, as `--stages` gives it; `None`: all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        stages: Option<String>,
    },
    /// When it is due by a schedule, whatever the server does.
    Open { rate: ArrivalRate, arrivals: Arrivals },
    /// As it came: something else than whyso loaded the server.
    Recorded,
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing::Closed { think: None, stages: None }
    }
}

/// The pause between a user's transactions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ThinkTime {
    /// Mean, in milliseconds.
    pub mean_ms: f64,
    /// Pauses vary exponentially around the mean; else they are all alike.
    pub is_exponential: bool,
}

/// Transactions that become due in an open loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalRate {
    /// A constant number per second.
    PerSecond(f64),
    /// It changes, as `--stages` gives it.
    Stages(String),
}

/// How arrivals of an open loop lie in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Independent of each other.
    Poisson,
    /// Evenly spaced.
    Uniform,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_pacing_is_stored_by_its_parts() {
        let think = Some(ThinkTime { mean_ms: 10.0, is_exponential: true });
        for (pacing, stored) in [
            (Pacing::default(), json!({"loop": "closed"})),
            (Pacing::Recorded, json!({"loop": "recorded"})),
            (
                Pacing::Closed { think, stages: Some("step 5 1s".to_string()) },
                json!({"loop": "closed", "think": {"mean_ms": 10.0, "is_exponential": true}, "stages": "step 5 1s"}),
            ),
            (
                Pacing::Open { rate: ArrivalRate::PerSecond(500.0), arrivals: Arrivals::Poisson },
                json!({"loop": "open", "rate": {"per_second": 500.0}, "arrivals": "poisson"}),
            ),
        ] {
            assert_eq!(to_value(&pacing).unwrap(), stored);
            assert_eq!(from_value::<Pacing>(stored).unwrap(), pacing);
        }
    }
}
