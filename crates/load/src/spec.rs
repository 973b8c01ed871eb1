//! What a load is to be: where it goes, on which engine, and how each level is paced.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
pub use whyso_workload::ArrivalProcess as Arrivals;

use crate::engine_kind::EngineKind;
use crate::target::{Limits, Target};
use crate::tuning::Tuning;

/// Everything about a load that is the same for all its levels.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// At least one. Users are spread over them as [`Placement`] says.
    pub endpoints: Vec<Endpoint>,
    pub placement: Placement,
    /// Users of the largest level.
    pub users_max: u32,
    pub seed: u64,
    /// CPUs that the load's threads may run on; `None`: all that the process may use.
    pub cpus: Option<Vec<u32>>,
    pub limits: Limits,
    pub engine: EngineKind,
    /// Number of event loops; `None`: chosen. Not for [`EngineKind::Threads`].
    pub loops: Option<u32>,
    pub tuning: Tuning,
    /// Connections that all users share; `None`: each has its own. Needs event loops, at least one connection a loop.
    pub connections: Option<u32>,
    /// The compressed protocol, where the server has it.
    pub compression: bool,
    /// Connections that are opened in addition to the users', and only held.
    pub idle_connections: u32,
}

impl LoadSpec {
    /// One endpoint, the rest as most want it.
    pub fn new(target: Target, users_max: u32, seed: u64) -> LoadSpec {
        LoadSpec {
            endpoints: vec![Endpoint { target, weight: 1 }],
            placement: Placement::RoundRobin,
            users_max,
            seed,
            cpus: None,
            limits: Limits::default(),
            engine: EngineKind::Auto,
            loops: None,
            tuning: Tuning::default(),
            connections: None,
            compression: false,
            idle_connections: 0,
        }
    }
}

/// A server that takes a share of the connections.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub target: Target,
    /// Relative share of the connections; 0 takes none unless others fail. Used by [`Placement::Weighted`] alone.
    pub weight: u32,
}

/// Which connection goes to which endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// In turn.
    #[default]
    RoundRobin,
    /// In turn, as often as the weights say.
    Weighted,
    /// User u stays at endpoint u modulo their number, and waits for it where it fails.
    Pinned,
}

/// One level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelSpec {
    /// Users, and so the most transactions that are under way at once.
    pub users: u32,
    pub pacing: Pacing,
    /// The level ends by itself after this many transactions. It has no warm-up: all of them are measured.
    pub transactions_max: Option<u64>,
    /// Each connection is closed and opened again after this many transactions.
    pub reconnect_every: Option<u32>,
    /// When the level is stopped, transactions that have begun continue to their end, within `Limits::stop`: then no connection keeps a lock. Otherwise
    /// they end with the statement in flight, and are rolled back.
    pub finishes_transactions: bool,
    /// In a closed loop, the users begin at random times within this time, and not all at once. So levels do not begin with the same rhythm.
    pub begins_within: Duration,
    /// Event loops of this level; `None`: as many as [`Engine::loops`](crate::Engine::loops) says.
    pub loops: Option<u32>,
}

impl LevelSpec {
    /// A closed loop without think time.
    pub fn users(users: u32) -> LevelSpec {
        LevelSpec {
            users,
            pacing: Pacing::Closed { think: Think::None, active: None },
            transactions_max: None,
            reconnect_every: None,
            finishes_transactions: false,
            begins_within: Duration::ZERO,
            loops: None,
        }
    }
}

/// When transactions begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Pacing {
    /// A user begins its next one when the one before has ended, after a pause. `active`: how many of the users are at
    /// work at a time of the level; `None`: all of them.
    Closed { think: Think, active: Option<Profile> },
    /// They are due by a schedule, whatever the server does; nothing is skipped. `rate`: arrivals per second at a time of
    /// the level.
    Open { arrivals: Arrivals, rate: Profile },
}

/// The pause between a user's transactions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Think {
    None,
    Fixed(Duration),
    /// With this mean.
    Exponential(Duration),
}

/// A quantity over the time of a level: straight lines between points, held before the first and after the last. Two
/// points at one time are a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(Duration, f64)>", into = "Vec<(Duration, f64)>")]
pub struct Profile {
    points: Vec<(Duration, f64)>,
}

/// Why points are no [`Profile`]. Times are seconds since its begin.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ProfileError {
    #[error("a profile needs at least one point")]
    NoPoint,
    #[error("{value} at {at_s} s must be 0 or more")]
    Value { value: f64, at_s: f64 },
    #[error("the point at {at_s} s comes after the one at {before_s} s")]
    Order { at_s: f64, before_s: f64 },
}

/// A text that is the name of no engine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' is no engine: give auto, threads, epoll or io-uring")]
pub struct UnknownEngine {
    pub text: String,
}

impl Profile {
    /// The same value all the time.
    pub fn constant(value: f64) -> Profile {
        Profile { points: vec![(Duration::ZERO, value)] }
    }

    /// From points in ascending order of time; values must be finite and not negative.
    ///
    /// # Errors
    /// No point, or the first point that is out of order, negative or not finite.
    pub fn new(points: Vec<(Duration, f64)>) -> Result<Profile, ProfileError> {
        if points.is_empty() {
            return Err(ProfileError::NoPoint);
        }
        for (time, value) in &points {
            if !value.is_finite() || *value < 0.0 {
                return Err(ProfileError::Value { value: *value, at_s: time.as_secs_f64() });
            }
        }
        match points.windows(2).find(|pair| pair[1].0 < pair[0].0) {
            Some(pair) => {
                Err(ProfileError::Order { at_s: pair[1].0.as_secs_f64(), before_s: pair[0].0.as_secs_f64() })
            }
            None => Ok(Profile { points }),
        }
    }

    /// The same with each value a share of what it is.
    ///
    /// ```
    /// use whyso_load::Profile;
    /// assert_eq!(Profile::constant(90.0).scaled(1.0 / 3.0).at(1.0), 30.0);
    /// ```
    pub fn scaled(&self, share: f64) -> Profile {
        Profile { points: self.points.iter().map(|(time, value)| (*time, value * share)).collect() }
    }

    /// Its points, ascending.
    pub fn points(&self) -> &[(Duration, f64)] {
        &self.points
    }

    /// The value at a time since the level's begin, in seconds; at a step the later one.
    pub fn at(&self, seconds: f64) -> f64 {
        let next = self.points.partition_point(|(time, _)| time.as_secs_f64() <= seconds);
        let Some(before) = next.checked_sub(1) else { return self.points[0].1 };
        let (time, value) = self.points[before];
        match self.points.get(next) {
            Some((next_time, next_value)) => {
                let share = (seconds - time.as_secs_f64()) / (next_time.as_secs_f64() - time.as_secs_f64());
                value + (next_value - value) * share
            }
            None => value,
        }
    }

    /// The largest value that it ever has.
    pub fn max(&self) -> f64 {
        self.points.iter().map(|(_, value)| *value).fold(0.0, f64::max)
    }

    /// Whether it never changes.
    pub fn is_constant(&self) -> bool {
        self.points.iter().all(|(_, value)| *value == self.points[0].1)
    }
}

impl TryFrom<Vec<(Duration, f64)>> for Profile {
    type Error = ProfileError;

    fn try_from(points: Vec<(Duration, f64)>) -> Result<Profile, ProfileError> {
        Profile::new(points)
    }
}

impl From<Profile> for Vec<(Duration, f64)> {
    fn from(profile: Profile) -> Vec<(Duration, f64)> {
        profile.points
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineKind::Auto => "auto",
            EngineKind::Threads => "threads",
            EngineKind::Epoll => "epoll",
            EngineKind::IoUring => "io-uring",
        })
    }
}

impl std::str::FromStr for EngineKind {
    type Err = UnknownEngine;

    fn from_str(text: &str) -> Result<EngineKind, UnknownEngine> {
        [EngineKind::Auto, EngineKind::Threads, EngineKind::Epoll, EngineKind::IoUring]
            .into_iter()
            .find(|kind| kind.to_string() == text)
            .ok_or_else(|| UnknownEngine { text: text.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(value: f64) -> Duration {
        Duration::from_secs_f64(value)
    }

    #[test]
    fn a_profile_ramps_holds_and_steps() {
        let points =
            vec![(seconds(0.0), 0.0), (seconds(10.0), 100.0), (seconds(20.0), 100.0), (seconds(20.0), 400.0)];
        let profile = Profile::new(points).unwrap();
        for (time, value) in
            [(0.0, 0.0), (5.0, 50.0), (10.0, 100.0), (19.9, 100.0), (20.0, 400.0), (99.0, 400.0)]
        {
            assert!((profile.at(time) - value).abs() < 1e-9, "at {time}: {}", profile.at(time));
        }
        assert_eq!(profile.max(), 400.0);
    }

    #[test]
    fn a_profile_goes_forward_in_time_and_is_not_negative() {
        assert!(
            Profile::new(vec![(seconds(2.0), 1.0), (seconds(1.0), 1.0)])
                .unwrap_err()
                .to_string()
                .contains("comes after")
        );
        assert!(Profile::new(vec![(seconds(2.0), -1.0)]).is_err());
        assert!(Profile::new(vec![]).is_err());
    }

    #[test]
    fn an_engine_is_read_as_it_is_written() {
        assert_eq!("io-uring".parse(), Ok(EngineKind::IoUring));
        assert!(
            "uring".parse::<EngineKind>().unwrap_err().to_string().contains("threads, epoll or io-uring")
        );
    }
}
