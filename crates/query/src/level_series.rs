//! What series did over the windows of levels.

use whyso_explain::model::{Counter, Gauge, LevelInput};
use whyso_record::data::{SeriesId, SeriesKey};
use whyso_record::run::Window;
use whyso_record::{Recording, WindowValue};

use crate::Error;

const NS_PER_S: f64 = 1e9;

/// What the series that are chosen did over each level's window. Those of other nodes of a cluster are left out.
pub fn add_chosen(
    recording: &Recording,
    levels: &mut [LevelInput],
    is_chosen: impl Fn(&SeriesKey) -> bool,
) -> Result<(), Error> {
    let run = recording.run();
    let is_chosen = |key: &SeriesKey| is_chosen(key) && !run.is_other_node(&key.host);
    each_value(recording, levels, is_chosen, add_one)
}

/// CPU time of the cluster's other nodes over each level's window.
pub(crate) fn add_other_nodes_cpu(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    let run = recording.run();
    let is_cpu_time = |key: &SeriesKey| {
        let SeriesKey { source, metric, instance, .. } = key;
        (source.as_str(), metric.as_str(), instance.as_str()) == ("server_process", "run_ns", "server")
    };
    let is_chosen = |key: &SeriesKey| run.is_other_node(&key.host) && is_cpu_time(key);
    each_value(recording, levels, is_chosen, |level, _, value| {
        if let WindowValue::Counter(grown) = value {
            level.other_nodes_cpu_s += over_window(level, grown.amount, grown.covered_ns as f64) / NS_PER_S;
        }
    })
}

/// Calls `add` with each level and what a chosen series did over its window.
fn each_value(
    recording: &Recording,
    levels: &mut [LevelInput],
    is_chosen: impl Fn(&SeriesKey) -> bool,
    add: impl Fn(&mut LevelInput, &SeriesKey, WindowValue),
) -> Result<(), Error> {
    let chosen = recording.series().iter().filter(|info| is_chosen(&info.key));
    let ids: Vec<SeriesId> = chosen.map(|info| info.id).collect();
    let window = |level: &LevelInput| Window { begin_ns: level.begin_ns, end_ns: level.end_ns };
    let windows: Vec<Window> = levels.iter().map(window).collect();
    recording.window_values(&ids, &windows, |id, values| {
        let Some(info) = recording.info(id) else { return };
        for (level, value) in levels.iter_mut().zip(values) {
            if let Some(value) = value {
                add(level, &info.key, *value);
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
            let increase = over_window(level, grown.amount, grown.covered_ns as f64);
            level.counters.push(Counter { series, unit, increase });
        }
        WindowValue::Gauge { mean, max } => level.gauges.push(Gauge { series, unit, mean, max }),
    }
}

/// A counter's growth over the whole window. A reading rarely falls on its edge: what was observed stands for all of it.
fn over_window(level: &LevelInput, amount: f64, observed_ns: f64) -> f64 {
    amount * (level.end_ns - level.begin_ns) as f64 / observed_ns
}
