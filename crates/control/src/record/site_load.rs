//! A load on a site over HTTP that is recorded, and how its users rise and fall.

use std::time::Duration;

use whyso_load::{LevelSpec, Pacing, Profile};

use crate::Error;
use crate::engine::Engine;
use crate::load::{LevelPlan, LoadPlan, open_site};

/// How long all users stay at work beyond the steady time, which begins and ends some milliseconds late.
const MARGIN: Duration = Duration::from_millis(250);
/// Longest ramp-down.
const RAMP_DOWN_MAX: Duration = Duration::from_secs(3600);

/// A load on a site over HTTP that is recorded.
#[derive(Clone, Debug)]
pub struct SiteLoad {
    /// The load, whose warm-up is the ramp-up: its users begin one after the other in it.
    pub load: LoadPlan,
    /// How long the users end one after the other, after the steady time.
    pub ramp_down: Duration,
    title: String,
}

impl SiteLoad {
    /// # Errors
    /// It is no load over HTTP, or one that can't be recorded.
    pub fn new(load: LoadPlan, ramp_down: Duration) -> Result<SiteLoad, Error> {
        let wrong = |text: &str| Err(Error::Plan(text.to_string()));
        let Some(http) = &load.http else {
            return wrong("a load that is recorded this way has an address: give --url");
        };
        if load.find_capacity || load.stages.is_some() || load.transactions_max.is_some() {
            return wrong(
                "--find-capacity, --stages and --transactions are for whyso load --url: leave them out",
            );
        }
        if ramp_down > RAMP_DOWN_MAX {
            return wrong("--ramp-down is out of range: give at most 1h");
        }
        load.check()?;
        http.check(&load.slo)?;
        let title = http.title();
        Ok(SiteLoad { load, ramp_down, title })
    }

    /// What is loaded, such as "shop.toml at http://127.0.0.1:8080/".
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Reaches the site, so that nothing is recorded where it does not answer.
    pub(super) fn reach(&self) -> Result<(), Error> {
        self.load.http.as_ref().map_or(Ok(()), |http| http.reach().map(|_| ()))
    }

    /// Connects the users.
    pub(super) fn open(&self) -> Result<Engine, Error> {
        open_site(&self.load)
    }

    /// The longest that this many levels take.
    pub(super) fn rest(&self, levels: usize) -> Duration {
        (self.load.warmup_max + self.load.measure + self.ramp_down) * levels as u32
    }
}

/// A level's specification with users, or arrivals, that rise in the ramp-up and fall in the ramp-down.
pub(super) fn with_ramps(plan: &LevelPlan, ramp_down: Duration) -> LevelSpec {
    let most = match &plan.spec.pacing {
        Pacing::Closed { .. } => f64::from(plan.spec.users),
        Pacing::Open { rate, .. } => rate.max(),
    };
    let first = match &plan.spec.pacing {
        Pacing::Closed { .. } => 1.0,
        Pacing::Open { .. } => 0.0,
    };
    let mut points = Vec::new();
    if !plan.warmup_max.is_zero() {
        points.push((Duration::ZERO, first));
    }
    points.push((plan.warmup_max, most));
    if !ramp_down.is_zero() {
        let end = plan.warmup_max + plan.measure + MARGIN;
        points.extend([(end, most), (end + ramp_down, 0.0)]);
    }
    let mut spec = plan.spec.clone();
    if let (Ok(profile), true) = (Profile::new(points.clone()), points.len() > 1) {
        spec.pacing = match spec.pacing {
            Pacing::Closed { think, .. } => Pacing::Closed { think, active: Some(profile) },
            Pacing::Open { arrivals, .. } => Pacing::Open { arrivals, rate: profile },
        };
    }
    spec
}

#[cfg(test)]
mod tests {
    use whyso_load::Think;

    use super::*;

    #[test]
    fn users_rise_in_the_ramp_up_stay_in_the_steady_time_and_fall_in_the_ramp_down() {
        let seconds = Duration::from_secs;
        let plan = |warmup_s, pacing| LevelPlan {
            spec: LevelSpec { pacing, ..LevelSpec::users(8) },
            measure: seconds(30),
            warmup_max: seconds(warmup_s),
        };
        let closed = || Pacing::Closed { think: Think::None, active: None };
        let Pacing::Closed { active: Some(active), .. } = with_ramps(&plan(10, closed()), seconds(5)).pacing
        else {
            panic!("no ramps");
        };
        for (at_s, users) in [(0.0, 1.0), (5.0, 4.5), (10.0, 8.0), (40.2, 8.0), (45.25, 0.0)] {
            assert!((active.at(at_s) - users).abs() < 1e-9, "{at_s}: {}", active.at(at_s));
        }
        // Without ramps nothing changes.
        assert_eq!(with_ramps(&plan(0, closed()), Duration::ZERO).pacing, closed());
        let open = Pacing::Open { arrivals: whyso_load::Arrivals::Uniform, rate: Profile::constant(100.0) };
        let Pacing::Open { rate, .. } = with_ramps(&plan(10, open), Duration::ZERO).pacing else {
            panic!("not open")
        };
        assert_eq!((rate.at(0.0), rate.at(5.0), rate.at(99.0)), (0.0, 50.0, 100.0));
    }
}
