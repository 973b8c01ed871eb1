//! When transactions begin, from text: think times, rates and stages.

use std::time::Duration;

use thiserror::Error;
use whyso_load::{Arrivals, Pacing, Profile, Think};
use whyso_model as model;

use crate::Error;
use crate::duration::parse_duration;

/// Most users, or arrivals per second, that a stage may name.
const VALUE_MAX: f64 = 1e7;
const STAGES_MAX: usize = 1000;

/// A quantity that changes over the time of a level, from `--stages`.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    pub profile: Profile,
    pub quantity: Quantity,
    /// From the first stage's begin to the last one's end.
    pub length: Duration,
    /// As it was typed.
    pub text: String,
}

/// What the numbers of stages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Users at work, in a closed loop.
    Users,
    /// Arrivals per second, in an open loop.
    PerSecond,
}

/// Parses `--think`. "10ms" is the same pause each time; "exp:10ms" is exponential with this mean.
///
/// # Errors
/// One sentence that says what it could be.
pub fn parse_think(text: &str) -> Result<Think, Error> {
    let (is_exponential, time) = match text.trim().strip_prefix("exp:") {
        Some(time) => (true, time),
        None => (false, text),
    };
    match parse_duration(time) {
        Some(pause) if is_exponential => Ok(Think::Exponential(pause)),
        Some(pause) => Ok(Think::Fixed(pause)),
        None => Err(Error::Plan(format!(
            "--think {text}: give a time such as 10ms, or exp:10ms for pauses that vary around this mean"
        ))),
    }
}

/// Reads `--stages`, such as "ramp 0..64 30s, hold 60s, spike 200 5s". Stages come one after the other:
///
/// * `ramp A..B TIME`: in a straight line from A to B; `ramp B TIME` begins where the stage before ended;
/// * `step B TIME`: B at once, for so long;
/// * `hold TIME`: what it was, for so long;
/// * `spike B TIME`: B for so long, then at once what it was before.
///
/// Numbers are users at work in a closed loop, or, written as "500/s", arrivals per second in an open one.
///
/// # Errors
/// One sentence on the first stage that can't be read.
pub fn parse_stages(text: &str) -> Result<Stages, Error> {
    let mut reader = StageReader { points: Vec::new(), now: Duration::ZERO, value: None, quantity: None };
    let stages: Vec<&str> =
        text.split([',', ';', '\n']).map(str::trim).filter(|stage| !stage.is_empty()).collect();
    if stages.len() > STAGES_MAX {
        return Err(Error::Plan(format!(
            "--stages: {} stages are more than {STAGES_MAX}: give fewer",
            stages.len()
        )));
    }
    for stage in &stages {
        reader.read(stage).map_err(|why| Error::Plan(format!("--stages '{stage}': {why}")))?;
    }
    let profile = Profile::new(reader.points).map_err(|_| {
        Error::Plan("--stages has no stage: give some, such as \"ramp 0..64 30s, hold 60s\"".to_string())
    })?;
    if profile.max() <= 0.0 {
        return Err(Error::Plan(format!(
            "--stages '{text}' is 0 all the time: give a stage that loads something"
        )));
    }
    let quantity = reader.quantity.unwrap_or(Quantity::Users);
    Ok(Stages { profile, quantity, length: reader.now, text: text.trim().to_string() })
}

/// Why a stage can't be read.
#[derive(Debug, Error)]
enum StageError {
    #[error("it continues from the stage before, and there is none: begin with a ramp A..B or a step")]
    NothingBefore,
    #[error(
        "it is none of \"ramp A..B TIME\", \"ramp B TIME\", \"step B TIME\", \"hold TIME\" and \"spike B TIME\""
    )]
    Unknown,
    #[error("all stages together are longer than a day: make them shorter")]
    TooLong,
    #[error("users and arrivals per second don't mix: write every number with /s, or none")]
    MixedQuantities,
    #[error("{0} users can't be: give a whole number, or {0}/s for a rate")]
    FractionOfUser(String),
    #[error("'{0}' is no number from 0 to {VALUE_MAX}")]
    Number(String),
    #[error("'{0}' is no length of time: give one such as 30s or 2m")]
    Length(String),
}

struct StageReader {
    points: Vec<(Duration, f64)>,
    now: Duration,
    /// What it is at `now`.
    value: Option<f64>,
    quantity: Option<Quantity>,
}

impl StageReader {
    fn read(&mut self, stage: &str) -> Result<(), StageError> {
        let words: Vec<&str> = stage.split_whitespace().collect();
        let before = || self.value.ok_or(StageError::NothingBefore);
        match words[..] {
            ["ramp", values, time] => {
                let (from, to) = match values.split_once("..") {
                    Some((from, to)) => {
                        let to = self.number(to)?;
                        (self.bare_number(from)?, to)
                    }
                    None => (before()?, self.number(values)?),
                };
                self.line(from, to, parse_length(time)?)
            }
            ["step", value, time] => {
                let value = self.number(value)?;
                self.line(value, value, parse_length(time)?)
            }
            ["hold", time] => {
                let value = before()?;
                self.line(value, value, parse_length(time)?)
            }
            ["spike", value, time] => {
                let back = before()?;
                let value = self.number(value)?;
                self.line(value, value, parse_length(time)?)?;
                self.points.push((self.now, back));
                self.value = Some(back);
                Ok(())
            }
            _ => Err(StageError::Unknown),
        }
    }

    fn line(&mut self, from: f64, to: f64, length: Duration) -> Result<(), StageError> {
        self.points.push((self.now, from));
        self.now += length;
        self.points.push((self.now, to));
        self.value = Some(to);
        if self.now > Duration::from_secs(86_400) {
            return Err(StageError::TooLong);
        }
        Ok(())
    }

    /// "64" or "500/s"; all of a profile must be of one kind.
    fn number(&mut self, text: &str) -> Result<f64, StageError> {
        let (digits, quantity) = match text.strip_suffix("/s") {
            Some(digits) => (digits, Quantity::PerSecond),
            None => (text, Quantity::Users),
        };
        if *self.quantity.get_or_insert(quantity) != quantity {
            return Err(StageError::MixedQuantities);
        }
        let value = parse_value(digits)?;
        if quantity == Quantity::Users && value.fract() != 0.0 {
            return Err(StageError::FractionOfUser(digits.to_string()));
        }
        Ok(value)
    }

    /// The left side of "0..500/s": its unit is that of the right side.
    fn bare_number(&mut self, text: &str) -> Result<f64, StageError> {
        parse_value(text.strip_suffix("/s").unwrap_or(text))
    }
}

fn parse_value(digits: &str) -> Result<f64, StageError> {
    match digits.parse::<f64>() {
        Ok(value) if (0.0..=VALUE_MAX).contains(&value) => Ok(value),
        _ => Err(StageError::Number(digits.to_string())),
    }
}

fn parse_length(text: &str) -> Result<Duration, StageError> {
    match parse_duration(text) {
        Some(length) if !length.is_zero() => Ok(length),
        _ => Err(StageError::Length(text.to_string())),
    }
}

/// Returns the transactions due per second, if an open loop has a constant rate.
pub(crate) fn rate_per_s(pacing: &Pacing) -> Option<f64> {
    match pacing {
        Pacing::Open { rate, .. } if rate.is_constant() => Some(rate.max()),
        _ => None,
    }
}

/// Returns a level's pacing as a recording has it; `stages` as they were typed.
pub(crate) fn recorded(pacing: &Pacing, stages: Option<&Stages>) -> model::Pacing {
    let stages = stages.map(|stages| stages.text.clone());
    let think_time = |pause: Duration, is_exponential| model::ThinkTime {
        mean_ms: pause.as_secs_f64() * 1e3,
        is_exponential,
    };
    match pacing {
        Pacing::Closed { think, .. } => {
            let think = match *think {
                Think::None => None,
                Think::Fixed(pause) => Some(think_time(pause, false)),
                Think::Exponential(mean) => Some(think_time(mean, true)),
            };
            model::Pacing::Closed { think, stages }
        }
        Pacing::Open { arrivals, rate } => {
            let arrivals = match arrivals {
                Arrivals::Poisson => model::Arrivals::Poisson,
                Arrivals::Uniform => model::Arrivals::Uniform,
            };
            let rate =
                stages.map_or_else(|| model::ArrivalRate::PerSecond(rate.max()), model::ArrivalRate::Stages);
            model::Pacing::Open { rate, arrivals }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Vec<(f64, f64)> {
        let stages = parse_stages(text).unwrap();
        stages.profile.points().iter().map(|(time, value)| (time.as_secs_f64(), *value)).collect()
    }

    #[test]
    fn stages_follow_each_other() {
        assert_eq!(
            points("ramp 0..1000/s 30s, hold 60s, step 2000/s 30s, spike 5000/s 5s, hold 10s"),
            [
                (0.0, 0.0),
                (30.0, 1000.0),
                (30.0, 1000.0),
                (90.0, 1000.0),
                (90.0, 2000.0),
                (120.0, 2000.0),
                (120.0, 5000.0),
                (125.0, 5000.0),
                (125.0, 2000.0),
                (125.0, 2000.0),
                (135.0, 2000.0),
            ]
        );
        assert_eq!(points("step 5 1m, ramp 10 500ms"), [(0.0, 5.0), (60.0, 5.0), (60.0, 5.0), (60.5, 10.0)]);
    }

    #[test]
    fn numbers_are_users_or_arrivals_a_second() {
        assert_eq!(parse_stages("step 5 1s").unwrap().quantity, Quantity::Users);
        let rate = parse_stages("ramp 0..0.5/s 2s, hold 1s").unwrap();
        assert_eq!((rate.quantity, rate.length), (Quantity::PerSecond, Duration::from_secs(3)));
    }

    #[test]
    fn a_stage_that_makes_no_sense_is_named_with_what_it_could_be() {
        for (text, word) in [
            ("", "has no stage"),
            ("hold 10s", "begin with a ramp A..B or a step"),
            ("spike 10 10s", "begin with a ramp A..B or a step"),
            ("ramp 10 10s", "begin with a ramp A..B or a step"),
            ("jump 10 10s", "it is none of"),
            ("step 10", "it is none of"),
            ("step 10 soon", "'soon' is no length of time"),
            ("step 10 0s", "'0s' is no length of time"),
            ("step ten 10s", "'ten' is no number"),
            ("step -1 10s", "'-1' is no number"),
            ("step inf 10s", "'inf' is no number"),
            ("step 1.5 10s", "whole number, or 1.5/s"),
            ("step 1 10s, step 5/s 10s", "don't mix"),
            ("step 1 20h, hold 20h", "longer than a day"),
            ("step 0 10s", "is 0 all the time"),
        ] {
            let message = parse_stages(text).unwrap_err().to_string();
            assert!(message.contains(word), "{text}: {message}");
        }
    }

    #[test]
    fn think_times_are_fixed_or_exponential() {
        assert_eq!(parse_think("10ms").unwrap(), Think::Fixed(Duration::from_millis(10)));
        assert_eq!(parse_think("exp:1s").unwrap(), Think::Exponential(Duration::from_secs(1)));
        for bad in ["", "exp:", "soon", "exp 10ms", "-1s"] {
            assert!(parse_think(bad).unwrap_err().to_string().contains("exp:10ms"), "{bad}");
        }
    }

    #[test]
    fn a_pacing_is_recorded_with_its_stages_as_they_were_typed() {
        let think = Pacing::Closed { think: Think::Exponential(Duration::from_millis(10)), active: None };
        let mean = Some(model::ThinkTime { mean_ms: 10.0, is_exponential: true });
        assert_eq!(recorded(&think, None), model::Pacing::Closed { think: mean, stages: None });
        let open = Pacing::Open { arrivals: Arrivals::Poisson, rate: Profile::constant(1000.0) };
        let at = |rate| model::Pacing::Open { rate, arrivals: model::Arrivals::Poisson };
        assert_eq!(recorded(&open, None), at(model::ArrivalRate::PerSecond(1000.0)));
        let stages = parse_stages("step 5/s 1s").unwrap();
        assert_eq!(recorded(&open, Some(&stages)), at(model::ArrivalRate::Stages("step 5/s 1s".to_string())));
    }
}
