//! Records a load on a site while it runs: ramp-up, steady time, ramp-down.

use std::time::Duration;

use whyso_load::Interval;
use whyso_record::Recorder;
use whyso_record::run::{Level, Purpose};

use super::edges::Edge;
use super::site_load::{SiteLoad, with_ramps};
use crate::engine::Engine;
use crate::level::{self, Cut, Job, Timing, Watch, silent_then_failed};
use crate::load::LevelPlan;
use crate::progress::{Listener, News, Running};
use crate::recording::{Recording, record_event, record_interval};
use crate::result::LevelRequest;
use crate::{Error, Stop, pacing};

/// What is recorded while a site is loaded.
pub(super) trait Meanwhile {
    /// Looks after what is recorded, now and then.
    fn check(&self);

    /// The steady time of a level begins or ends. What was counted by then, where a server is asked.
    ///
    /// # Errors
    /// The server can't be asked.
    fn window_edge(&self) -> Result<Option<Edge>, Error>;

    /// A level is over, and another one may begin.
    ///
    /// # Errors
    /// Nothing more can be recorded of the server.
    fn between_levels(&self) -> Result<(), Error>;

    /// The level with what was counted of a server between these edges.
    fn with_requests(&self, loaded: Level, edges: &[Edge]) -> Level;
}

/// A load on a site, and what is recorded meanwhile.
pub(super) struct RecordedLoad<'a> {
    pub(super) site: &'a SiteLoad,
    pub(super) meanwhile: &'a dyn Meanwhile,
    pub(super) listener: &'a dyn Listener,
    pub(super) stop: &'a Stop,
}

impl RecordedLoad<'_> {
    /// Records the levels, one after the other.
    pub(super) fn run(&self, recording: &mut Recording) -> Result<(), Error> {
        self.listener.hear(News::Step("connecting the users"));
        let mut engine = self.site.open()?;
        let levels = self.site.load.levels();
        let mut silent = None;
        for (index, planned) in levels.iter().enumerate() {
            let left = levels.len() - index - 1;
            let (level, cut) = self.level(&mut engine, planned, (index as u32, left), recording)?;
            if let Some(problem) = recording.level(level) {
                return Err(Error::Failed(problem));
            }
            self.meanwhile.between_levels()?;
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

    fn level(
        &self,
        engine: &mut Engine,
        planned: &LevelPlan,
        (index, left): (u32, usize),
        recording: &Recording,
    ) -> Result<(Level, Cut), Error> {
        let site = self.site;
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
        let mut watch = RecordedPages {
            meanwhile: self.meanwhile,
            listener: self.listener,
            recorder: &recording.recorder,
            index,
            edges: Vec::new(),
            ends: false,
        };
        let (loaded, cut) = level::run(engine, &job, self.stop, &mut watch)?;
        // Of its pages. With a server, the level that is recorded has the server's requests.
        self.listener.hear(News::LevelDone(&loaded));
        let edges = watch.edges;
        record_event(&recording.recorder, "level_end", name);
        Ok((self.meanwhile.with_requests(loaded, &edges), cut))
    }
}

fn with_silence(silent: Option<String>, why: String) -> String {
    silent_then_failed(silent, Some(why)).unwrap_or_default()
}

/// Records a level while it runs.
struct RecordedPages<'a> {
    meanwhile: &'a dyn Meanwhile,
    listener: &'a dyn Listener,
    recorder: &'a Recorder,
    index: u32,
    /// What was counted when the steady time began and when it ended.
    edges: Vec<Edge>,
    /// The steady time has begun, and its next edge is its end.
    ends: bool,
}

impl Watch for RecordedPages<'_> {
    fn interval(&mut self, interval: &Interval) {
        record_interval(self.recorder, self.index, interval);
    }

    fn news(&mut self, running: Running) {
        self.listener.hear(News::Level(running));
        self.meanwhile.check();
    }

    fn window_edge(&mut self) {
        let kind = if std::mem::replace(&mut self.ends, true) { "window_end" } else { "window_begin" };
        record_event(self.recorder, kind, "the steady time".to_string());
        match self.meanwhile.window_edge() {
            Ok(edge) => self.edges.extend(edge),
            // Without it the requests of a server are not known, and the level is the load's own.
            Err(error) => {
                let warning = format!("the level's requests to the server are not known: {error}");
                self.listener.hear(News::Warning(&warning));
            }
        }
    }

    fn measuring(&mut self, _so_far: Duration) {
        self.meanwhile.check();
    }
}
