//! What series did over the windows of levels.

use whyso_explain::model::{Counter, Gauge, LevelInput};
use whyso_record::Recording;
use whyso_record::data::{Kind, SeriesId, SeriesKey};
use whyso_record::run::Window;

use crate::Error;

/// What the series that are chosen did over each level's window.
pub fn add_chosen(
    recording: &Recording,
    levels: &mut [LevelInput],
    is_chosen: impl Fn(&SeriesKey) -> bool,
) -> Result<(), Error> {
    add_chosen_within(recording, None, levels, is_chosen)
}

/// The same from the readings of one window only. The window contains those of every level, and can contain others. `None`: of all.
pub(crate) fn add_chosen_within(
    recording: &Recording,
    within: Option<Window>,
    levels: &mut [LevelInput],
    is_chosen: impl Fn(&SeriesKey) -> bool,
) -> Result<(), Error> {
    let chosen = recording.series().iter().filter(|info| is_chosen(&info.key));
    let ids: Vec<SeriesId> = chosen.map(|info| info.id).collect();
    recording.samples_each(&ids, within, |id, samples| {
        let Some(info) = recording.info(id) else { return };
        let points = match info.key.kind {
            Kind::Counter => samples.counter_points(),
            Kind::Gauge => samples.points(),
        };
        for level in levels.iter_mut() {
            add_one(level, &info.key, &points.t_ns, &points.value);
        }
    })?;
    Ok(())
}

/// What one series did over a level's window.
fn add_one(level: &mut LevelInput, key: &SeriesKey, t_ns: &[i64], value: &[f64]) {
    let series = key.name();
    let unit = key.unit.clone();
    match key.kind {
        Kind::Counter => {
            let Some(grown) = whyso_series::increase(t_ns, value, level.begin_ns, level.end_ns) else {
                return;
            };
            // A reading rarely falls on the window's edge: what was observed stands for the whole window.
            let window_ns = (level.end_ns - level.begin_ns) as f64;
            let increase = grown.amount * window_ns / grown.covered_ns as f64;
            level.counters.push(Counter { series, unit, increase });
        }
        Kind::Gauge => {
            let mean = whyso_series::mean_over(t_ns, value, level.begin_ns, level.end_ns);
            let max = whyso_series::max_over(t_ns, value, level.begin_ns, level.end_ns);
            if let (Some(mean), Some(max)) = (mean, max) {
                level.gauges.push(Gauge { series, unit, mean, max });
            }
        }
    }
}
