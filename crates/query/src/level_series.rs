//! What series did over the windows of levels.

use whyso_explain::model::{Counter, Gauge, LevelInput};
use whyso_record::data::{SeriesId, SeriesKey};
use whyso_record::run::Window;
use whyso_record::{Recording, WindowValue};

use crate::Error;

/// What the series that are chosen did over each level's window. Those of other nodes of a cluster are left out.
pub fn add_chosen(
    recording: &Recording,
    levels: &mut [LevelInput],
    is_chosen: impl Fn(&SeriesKey) -> bool,
) -> Result<(), Error> {
    let run = recording.run();
    let chosen =
        recording.series().iter().filter(|info| is_chosen(&info.key) && !run.is_other_node(&info.key.host));
    let ids: Vec<SeriesId> = chosen.map(|info| info.id).collect();
    let window = |level: &LevelInput| Window { begin_ns: level.begin_ns, end_ns: level.end_ns };
    let windows: Vec<Window> = levels.iter().map(window).collect();
    recording.window_values(&ids, &windows, |id, values| {
        let Some(info) = recording.info(id) else { return };
        for (level, value) in levels.iter_mut().zip(values) {
            if let Some(value) = value {
                add_one(level, &info.key, *value);
            }
        }
    })?;
    Ok(())
}

/// What one series did over a level's window.
fn add_one(level: &mut LevelInput, key: &SeriesKey, value: WindowValue) {
    let series = key.name();
    let unit = key.unit.clone();
    match value {
        WindowValue::Counter(grown) => {
            // A reading rarely falls on the window's edge: what was observed stands for the whole window.
            let window_ns = (level.end_ns - level.begin_ns) as f64;
            let increase = grown.amount * window_ns / grown.covered_ns as f64;
            level.counters.push(Counter { series, unit, increase });
        }
        WindowValue::Gauge { mean, max } => level.gauges.push(Gauge { series, unit, mean, max }),
    }
}
