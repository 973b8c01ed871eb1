//! What the Performance Schema was set to in the run, what it lost, and what its timers took.

use crate::level::{Level, levels_evidence};
use crate::model::{Counter, Evidence, Finding, Input};
use crate::timer::timing_costs;

/// Where nobody asked for it, it is reported from this share of the server's CPU on.
const UNASKED_SHARE_MIN: f64 = 0.01;

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
    let dearest = dearest.filter(|level| cost_s(level) > 0.0);
    let share =
        dearest.and_then(|level| Some(cost_s(level) / level.server_cpu_s.filter(|cpu_s| *cpu_s > 0.0)?));
    if !setup.asked && share.is_none_or(|share| share < UNASKED_SHARE_MIN) {
        return None;
    }
    if let Some(level) = dearest {
        let costs = timing_costs(setup, level.counters);
        let parts: Vec<String> = costs
            .iter()
            .map(|cost| {
                format!(
                    "{} {}s by {}",
                    whyso_words::number(cost.events),
                    cost.what,
                    cost.timer.to_lowercase()
                )
            })
            .collect();
        let of_server =
            share.map_or(String::new(), |share| format!(", {} of the server's", whyso_words::percent(share)));
        text += &format!(
            " At {} timing took about {} s of CPU{of_server}, as the server reckons its timers: {}.",
            level.name(),
            whyso_words::number(cost_s(level)),
            parts.join(", ")
        );
        evidence.push(levels_evidence("server_cpu_s", &[level]));
    }
    Some(Finding { id: "performance-schema".to_string(), text, evidence })
}

/// What found no room in the Performance Schema's buffers, since the server's start. What was created before a level and is not counted
/// is missing in that level, too.
pub(crate) fn lost(input: &Input, levels: &[Level]) -> Option<Finding> {
    let mut parts = Vec::new();
    let mut settings = Vec::new();
    let mut evidence = Vec::new();
    for (metric, in_all) in &input.performance_schema_lost {
        if !in_all.is_finite() || *in_all < 1.0 {
            continue;
        }
        let mut part = format!("{metric} {}", whyso_words::number(*in_all));
        for level in levels {
            let rose = |counter: &&Counter| {
                counter.series.source == "status"
                    && counter.series.metric == *metric
                    && counter.increase >= 1.0
            };
            let Some(counter) = level.counters.iter().find(rose) else { continue };
            part += &format!(", {} of them at {}", whyso_words::number(counter.increase), level.name());
            evidence.push(Evidence::Series {
                series: counter.series.clone(),
                begin_ns: level.begin_ns,
                end_ns: level.end_ns,
            });
        }
        evidence
            .push(Evidence::Fact { path: format!("status.{metric}"), value: whyso_words::number(*in_all) });
        parts.push(part);
        settings.extend(setting_of(metric));
    }
    if parts.is_empty() {
        return None;
    }
    settings.sort_unstable();
    settings.dedup();
    let remedy = match settings.is_empty() {
        true => String::new(),
        false => {
            let setting = |name: &String| match input.variables.get(name) {
                Some(value) if value == "-1" => format!("{name} (it is -1: the server sizes it itself)"),
                Some(value) => format!("{name} (it is {value})"),
                None => name.clone(),
            };
            let settings: Vec<String> = settings.iter().map(setting).collect();
            format!(" Give it more at the server's start, by --set: {}.", settings.join(", "))
        }
    };
    let text = format!(
        "The Performance Schema had no room for all that it was to count, so its numbers are too low. Lost since the server's \
         start: {}.{remedy}",
        parts.join("; ")
    );
    Some(Finding { id: "performance-schema-lost".to_string(), text, evidence })
}

/// The setting that gives room for what a status variable counts as lost; `None` for what no setting bounds.
fn setting_of(metric: &str) -> Option<String> {
    let name = metric.to_lowercase();
    let what = name.strip_prefix("performance_schema_")?.strip_suffix("_lost")?;
    let setting = match what {
        // As many events at a time as one thread can be within: fixed in the server.
        "locker" => return None,
        "accounts" | "hosts" | "users" => format!("{what}_size"),
        "digest" => "digests_size".to_string(),
        "session_connect_attrs" => "session_connect_attrs_size".to_string(),
        "prepared_statements" => "max_prepared_statements_instances".to_string(),
        "program" => "max_program_instances".to_string(),
        "metadata_lock" => "max_metadata_locks".to_string(),
        "nested_statement" => "max_statement_stack".to_string(),
        _ => format!("max_{what}"),
    };
    Some(format!("performance_schema_{setting}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn input(lost: &[(&str, f64)]) -> Input {
        Input {
            performance_schema_lost: lost.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
            variables: BTreeMap::from([(
                "performance_schema_max_mutex_instances".to_string(),
                "10".to_string(),
            )]),
            ..Input::default()
        }
    }

    #[test]
    fn what_was_lost_names_the_setting_that_gives_it_room_and_nothing_lost_is_no_finding() {
        let found = lost(
            &input(&[
                ("Performance_schema_mutex_instances_lost", 812.0),
                ("Performance_schema_accounts_lost", 1.0),
                ("Performance_schema_locker_lost", 3.0),
                ("Performance_schema_digest_lost", 0.0),
            ]),
            &[],
        );
        let text = found.unwrap().text;
        assert!(text.contains("Performance_schema_mutex_instances_lost 812. Give"), "{text}");
        assert!(text.ends_with(
            "by --set: performance_schema_accounts_size, performance_schema_max_mutex_instances (it is 10)."
        ));
        assert!(!text.contains("digest"), "{text}");
        assert_eq!(lost(&input(&[("Performance_schema_digest_lost", 0.0)]), &[]), None);
        let unbounded = lost(&input(&[("Performance_schema_locker_lost", 3.0)]), &[]).unwrap().text;
        assert!(unbounded.ends_with("Performance_schema_locker_lost 3."), "{unbounded}");
    }

    #[test]
    fn every_lost_count_of_a_server_has_its_setting() {
        for (metric, setting) in [
            ("Performance_schema_digest_lost", "performance_schema_digests_size"),
            ("Performance_schema_file_handles_lost", "performance_schema_max_file_handles"),
            ("Performance_schema_memory_classes_lost", "performance_schema_max_memory_classes"),
            ("Performance_schema_metadata_lock_lost", "performance_schema_max_metadata_locks"),
            ("Performance_schema_nested_statement_lost", "performance_schema_max_statement_stack"),
            (
                "Performance_schema_prepared_statements_lost",
                "performance_schema_max_prepared_statements_instances",
            ),
            ("Performance_schema_program_lost", "performance_schema_max_program_instances"),
            ("Performance_schema_table_lock_stat_lost", "performance_schema_max_table_lock_stat"),
            ("Performance_schema_users_lost", "performance_schema_users_size"),
        ] {
            assert_eq!(setting_of(metric).as_deref(), Some(setting));
        }
    }
}
