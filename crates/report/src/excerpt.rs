//! A window of a recording as what a report is drawn from.

use std::collections::BTreeMap;

use whyso_record::data::{Event, LoadInterval, SeriesId, SeriesKey};
use whyso_record::run::{RunInfo, Window};
use whyso_record::{Recording, StateTimes};
use whyso_series::{ThreadTable, Timeline};

use crate::Error;
use crate::source::{Column, Source, Stacks, stacks_of, threads_at};

/// A window of a recording. Its axes count from its begin.
pub struct Excerpt<'r> {
    pub recording: &'r Recording,
    pub window: Window,
    /// The run, with what is known of the window in place of its levels.
    pub run: RunInfo,
    /// The moment that the whole run's axes count from.
    pub origin_ns: i64,
}

impl Excerpt<'_> {
    fn holds(&self, t_ns: i64) -> bool {
        (self.window.begin_ns..=self.window.end_ns).contains(&t_ns)
    }
}

impl Source for Excerpt<'_> {
    fn run(&self) -> &RunInfo {
        &self.run
    }

    fn keys(&self) -> Vec<SeriesKey> {
        Source::keys(self.recording)
    }

    fn sample_count(&self) -> u64 {
        let all_s = self.recording.window().map_or(0.0, |all| all.seconds());
        let share = if all_s > 0.0 { (self.window.seconds() / all_s).min(1.0) } else { 1.0 };
        (Source::sample_count(self.recording) as f64 * share) as u64
    }

    fn columns(&self, series: &[usize]) -> Result<Vec<Column>, Error> {
        let all = self.recording.series();
        let ids: Vec<SeriesId> =
            series.iter().filter_map(|number| all.get(*number)).map(|info| info.id).collect();
        let read = self.recording.samples_many(&ids, Some(self.window))?;
        let column = |points: whyso_series::Points| Column { t_ns: points.t_ns, value: points.value };
        Ok(read.iter().map(|samples| column(samples.points())).collect())
    }

    fn events(&self) -> Result<Vec<Event>, Error> {
        let mut events = self.recording.events()?;
        events.retain(|event| self.holds(event.t_ns));
        Ok(events)
    }

    fn each_load(&self, from_ns: i64, take: &mut dyn FnMut(LoadInterval)) -> Result<(), Error> {
        let window = Window { begin_ns: from_ns.max(self.window.begin_ns), ..self.window };
        Ok(self.recording.each_load(window, take)?)
    }

    fn load_begin_ns(&self) -> Result<Option<i64>, Error> {
        Ok(Some(self.window.begin_ns))
    }

    fn threads(&self, wanted_ns: &[i64]) -> Result<ThreadTable, Error> {
        threads_at(self.recording, Some(self.window), wanted_ns)
    }

    fn thread_names(&self) -> Result<BTreeMap<u32, String>, Error> {
        Source::thread_names(self.recording)
    }

    fn state_times(&self) -> Result<StateTimes, Error> {
        let mut times = self.recording.state_times()?;
        times.t_ns.retain(|t_ns| self.holds(*t_ns));
        Ok(times)
    }

    fn timeline(&self, edges_ns: &[i64], most: usize) -> Result<Timeline, Error> {
        Source::timeline(self.recording, edges_ns, most)
    }

    fn stacks(&self) -> Result<Stacks, Error> {
        stacks_of(self.recording, Some(self.window), &[])
    }

    fn single_stacks(&self) -> Result<Stacks, Error> {
        Stacks::singles_in(self.recording, self.window)
    }

    fn problems(&self) -> Vec<String> {
        Source::problems(self.recording)
    }

    fn notes(&self) -> Vec<String> {
        let at = |t_ns: i64| whyso_words::clock((t_ns - self.origin_ns) as f64 / 1e9, 1.0);
        let [begin, end] = [at(self.window.begin_ns), at(self.window.end_ns)];
        vec![format!("This is a part of the run, from {begin} to {end}. Charts count from its begin.")]
    }
}
