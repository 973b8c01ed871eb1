//! What the Performance Schema was set to in the run, what it lost, and what its timers took.

use crate::level::{Level, levels_evidence};
use crate::model::{Evidence, Finding, Input};
use crate::numbers;
use crate::timer::timing_costs;

/// What was asked for and in force, and what timing it took at the level that was busiest with it.
pub(crate) fn in_force(input: &Input, levels: &[Level]) -> Option<Finding> {
    let setup = input.performance_schema.as_ref()?;
    let mut text = setup.words.clone();
    let mut evidence =
        vec![Evidence::Fact { path: "spec.performance_schema".to_string(), value: setup.words.clone() }];
    let cost_s =
        |level: &Level| timing_costs(setup, level.counters).iter().map(|cost| cost.cpu_s).sum::<f64>();
    let dearest = levels.iter().max_by(|left, right| {
        (cost_s(left) / left.seconds.max(1e-9)).total_cmp(&(cost_s(right) / right.seconds.max(1e-9)))
    });
    if let Some(level) = dearest.filter(|level| cost_s(level) > 0.0) {
        let costs = timing_costs(setup, level.counters);
        let parts: Vec<String> = costs
            .iter()
            .map(|cost| {
                format!("{} {}s by {}", numbers::plain(cost.events), cost.what, cost.timer.to_lowercase())
            })
            .collect();
        let of_server = match level.server_cpu_s {
            Some(server_s) if server_s > 0.0 => {
                format!(", {} of the server's", numbers::percent(cost_s(level) / server_s))
            }
            _ => String::new(),
        };
        text += &format!(
            " At {} timing took about {} s of CPU{of_server}, as the server reckons its timers: {}.",
            level.name(),
            numbers::plain(cost_s(level)),
            parts.join(", ")
        );
        evidence.push(levels_evidence("server_cpu_s", &[level]));
    }
    Some(Finding { id: "performance-schema".to_string(), text, evidence })
}

/// Counters of what found no room in the Performance Schema's buffers, where they rose.
pub(crate) fn lost(levels: &[Level]) -> Option<Finding> {
    let mut parts = Vec::new();
    let mut evidence = Vec::new();
    for level in levels {
        for counter in level.counters {
            let name = counter.series.metric.to_lowercase();
            let is_lost = name.starts_with("performance_schema_") && name.ends_with("_lost");
            if is_lost && counter.series.source == "status" && counter.increase >= 1.0 {
                parts.push(format!(
                    "{} {} at {}",
                    counter.series.metric,
                    numbers::plain(counter.increase),
                    level.name()
                ));
                evidence.push(Evidence::Series {
                    series: counter.series.clone(),
                    begin_ns: level.begin_ns,
                    end_ns: level.end_ns,
                });
            }
        }
    }
    if parts.is_empty() {
        return None;
    }
    let text = format!(
        "The Performance Schema had no room for all that it was to count, so that what it tells is too little: {}. Give it more at \
         the server's start, such as --set performance_schema_max_thread_instances=…",
        parts.join("; ")
    );
    Some(Finding { id: "performance-schema-lost".to_string(), text, evidence })
}
