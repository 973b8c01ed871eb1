//! A load on a site over HTTP, which is recorded while it runs: ramp-up, steady time, ramp-down.

use std::time::Duration;

use whyso_clock::monotonic_ns;
use whyso_load::{Interval, LevelSpec, Pacing, Profile};
use whyso_record::Recorder;
use whyso_record::run::{Level, LevelResult, Purpose};

use super::edges::Edge;
use super::session::RecordingSession;
use crate::engine::Engine;
use crate::level::{self, Cut, Job, Timing, Watch, silent_then_failed};
use crate::load::{LevelPlan, LoadPlan, open_site};
use crate::progress::{News, Running};
use crate::recording::{Recording, record_event, record_interval};
use crate::result::LevelRequest;
use crate::{Error, pacing};

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

    /// The longest that it takes.
    fn rest(&self, levels: usize) -> Duration {
        (self.load.warmup_max + self.load.measure + self.ramp_down) * levels as u32
    }
}

/// A level's specification with users, or arrivals, that rise in the ramp-up and fall in the ramp-down.
fn with_ramps(plan: &LevelPlan, ramp_down: Duration) -> LevelSpec {
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

impl RecordingSession<'_> {
    /// Records the levels of a load on a site, one after the other.
    pub(super) fn record_load(&self, site: &SiteLoad, recording: &mut Recording) -> Result<(), Error> {
        self.listener.hear(News::Step("connecting the users"));
        let mut engine = open_site(&site.load)?;
        let levels = site.load.levels();
        let mut silent = None;
        for (index, planned) in levels.iter().enumerate() {
            let left = levels.len() - index - 1;
            let (level, cut) =
                self.site_level(site, &mut engine, planned, (index as u32, left), recording)?;
            self.listener.hear(News::LevelDone(&level));
            if let Some(problem) = recording.level(level) {
                return Err(Error::Failed(problem));
            }
            match cut {
                Cut::No => {}
                Cut::ByUser => break,
                Cut::Silent(why) => silent = silent.or(Some(why)),
                Cut::Failed(why) => return Err(Error::Failed(with_silence(silent, why))),
            }
        }
        match silent {
            Some(why) => Err(Error::Failed(why)),
            None => Ok(()),
        }
    }

    fn site_level(
        &self,
        site: &SiteLoad,
        engine: &mut Engine,
        planned: &LevelPlan,
        (index, left): (u32, usize),
        recording: &Recording,
    ) -> Result<(Level, Cut), Error> {
        let plan = &site.load;
        let spec = with_ramps(planned, site.ramp_down);
        // The ramps lie outside of the window.
        let pacing = pacing::recorded(&planned.spec.pacing, None);
        let rate_per_s = pacing::rate_per_s(&planned.spec.pacing);
        let request = LevelRequest {
            workload: site.title(),
            rate_per_s,
            pacing: &pacing,
            percentiles: &plan.percentiles,
            slo: &plan.slo,
            bounds_errors: true,
        };
        let timing = Timing {
            warmup_max: planned.warmup_max,
            measure: planned.measure,
            rest: site.rest(left) + site.ramp_down,
            ramp_down: Some(site.ramp_down),
        };
        let job = Job { index, purpose: Purpose::Sweep, spec: &spec, timing, request: &request };
        let name = match rate_per_s {
            Some(rate_per_s) => format!("{rate_per_s}/s"),
            None => format!("{} users", spec.users),
        };
        record_event(&recording.recorder, "level_begin", name.clone());
        let mut watch =
            RecordedPages { session: self, recorder: &recording.recorder, index, edges: Vec::new() };
        let (loaded, cut) = level::run(engine, &job, self.stop, &mut watch)?;
        let edges = watch.edges;
        record_event(&recording.recorder, "level_end", name);
        if let Some(tracing) = &self.tracing {
            tracing.between_levels();
        }
        Ok((self.with_requests(loaded, &edges), cut))
    }

    /// The level of the load. With a database server, its statements replace the pages: causes in the server are shares of their time. The
    /// pages stay as kinds of transactions.
    fn with_requests(&self, loaded: Level, edges: &[Edge]) -> Level {
        let (true, [begin, end]) = (self.dsn.is_some(), edges) else { return loaded };
        let seen = self.level(loaded.index, begin, end, loaded.ended.clone());
        let result = LevelResult {
            workload: loaded.result.workload,
            by_transaction: loaded.result.by_transaction,
            errors: loaded.result.errors,
            errors_by_code: loaded.result.errors_by_code,
            slo: loaded.result.slo,
            ..seen.result
        };
        Level { users: loaded.users, result, warmup: loaded.warmup, ..seen }
    }
}

fn with_silence(silent: Option<String>, why: String) -> String {
    silent_then_failed(silent, Some(why)).unwrap_or_default()
}

/// Records a level while it runs.
struct RecordedPages<'s, 'a> {
    session: &'s RecordingSession<'a>,
    recorder: &'s Recorder,
    index: u32,
    /// What was counted when the steady time began and when it ended.
    edges: Vec<Edge>,
}

impl Watch for RecordedPages<'_, '_> {
    fn interval(&mut self, interval: &Interval) {
        record_interval(self.recorder, self.index, interval);
    }

    fn news(&mut self, running: Running) {
        self.session.listener.hear(News::Level(running));
        self.session.check();
    }

    fn window_edge(&mut self) {
        self.session.watcher.note_window_edge();
        if let Some(tracing) = &self.session.tracing {
            tracing.mark();
        }
        let kind = if self.edges.is_empty() { "window_begin" } else { "window_end" };
        record_event(self.recorder, kind, "the steady time".to_string());
        match self.session.edges().take() {
            Ok(edge) => self.edges.push(edge),
            // Without it the requests of a server are not known, and the level is the load's own.
            Err(error) => {
                let warning =
                    format!("the server's requests are not known at {} ns: {error}", monotonic_ns());
                self.session.listener.hear(News::Warning(&warning));
            }
        }
    }

    fn measuring(&mut self, _so_far: Duration) {
        self.session.check();
    }
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
