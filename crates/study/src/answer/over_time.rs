//! Cells second by second: how a server warms up, and what a change under load does to it.

use serde::Serialize;
use ts_rs::TS;
use whyso_inference::{Dip, dip};

use super::Measurements;
use crate::cells::{Cell, Start};
use crate::journal::{LevelRecord, Moment};
use crate::scalar::Values;
use crate::setup::At;
use crate::spec::Spec;

/// One cell at one number of users, as its start with the middle throughput went.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Course {
    /// Of the cell.
    pub name: String,
    pub server: String,
    pub condition: String,
    /// Variant and tuning.
    pub label: String,
    pub users: u32,
    /// The start that is shown: its block, from 0.
    pub block: u32,
    pub moments: Vec<Moment>,
    /// Changes during a run, and what they did.
    pub resized: Vec<SettingChange>,
}

#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct SettingChange {
    /// What was set, such as "innodb_buffer_pool_size = 268435456".
    pub what: String,
    /// In seconds from the level's begin.
    pub at_s: f64,
    /// Of the start that is shown; `None` where too little was measured around it.
    pub dip: Option<Dip>,
    /// Of each start: how deep it fell in per cent, and in how many seconds it was back.
    pub starts: Vec<(f64, Option<f64>)>,
}

pub(super) fn courses(spec: &Spec, cells: &[Cell], measured: &Measurements<'_>) -> Vec<Course> {
    let mut courses = Vec::new();
    for (level_at, &users) in spec.users.iter().enumerate() {
        for (at, cell) in cells.iter().enumerate() {
            let mut starts: Vec<(Start, &LevelRecord)> =
                measured.levels(at, users).filter(|(_, level)| !level.over_time.is_empty()).collect();
            let value = |level: &LevelRecord| level.measures.get(&spec.metric).copied().unwrap_or(0.0);
            starts.sort_by(|one, other| value(one.1).total_cmp(&value(other.1)));
            let Some((start, middle)) = starts.get(starts.len() / 2) else { continue };
            let begin_s = level_at as f64 * spec.seconds;
            let here = |change: &&At| (begin_s..begin_s + spec.seconds).contains(&change.after);
            let resized = cell.setup.at.iter().filter(here).map(|change| {
                let at_s = change.after - begin_s;
                let of = |level: &LevelRecord| dip(&line(level, &spec.metric), at_s);
                let each = starts.iter().filter_map(|(_, level)| of(level));
                SettingChange {
                    what: words(change),
                    at_s,
                    dip: of(middle),
                    starts: each.map(|dip| (dip.percent(), dip.recovery_s())).collect(),
                }
            });
            courses.push(Course {
                name: cell.name(),
                server: cell.server.clone(),
                condition: cell.condition.clone(),
                label: [cell.variant.as_str(), &cell.tuning]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<&str>>()
                    .join(", "),
                users,
                block: start.block,
                moments: middle.over_time.clone(),
                resized: resized.collect(),
            });
        }
    }
    courses
}

fn line(level: &LevelRecord, metric: &str) -> Vec<(f64, f64)> {
    let value = |moment: &Moment| Some((moment.at_s, *moment.measures.get(metric)?));
    level.over_time.iter().filter_map(value).collect()
}

fn words(change: &At) -> String {
    let pairs = |values: &Values| -> String {
        values.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<String>>().join(", ")
    };
    match (change.restart, change.data_set.is_empty()) {
        (true, true) => "restart".to_string(),
        (true, false) => format!("restart with {}", pairs(&change.data_set)),
        (false, _) => pairs(&change.set),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::finished_starts;
    use super::*;

    #[test]
    fn the_middle_start_is_shown_with_what_a_change_did_to_each() {
        let text = "title = 't'\nquestion = 'q'\nbaseline = 'a'\nrepeats = 3\nseconds = 20\nover_time = ['transactions_per_s']\n\
                    [[variant]]\nname = 'a'\nat = [{ after = 10, set = { innodb_buffer_pool_size = '256M' } }]\n";
        let spec = Spec::parse(text, false).unwrap();
        let mut found = finished_starts(&spec, &spec.all_starts(), |start, _| {
            Some([90.0, 110.0, 100.0][start.block as usize])
        });
        for record in &mut found {
            let depth = [10.0, 40.0, 50.0][record.start.block as usize];
            let value = |t: u32| if (10..13).contains(&t) { depth } else { 100.0 };
            let moment = |t: u32| Moment {
                at_s: f64::from(t) + 0.5,
                measures: BTreeMap::from([("transactions_per_s".to_string(), value(t))]),
            };
            record.levels[0].over_time = (0..20).map(moment).collect();
        }
        let courses = super::super::answer(&spec, &found, &[]).courses;
        assert_eq!((courses.len(), courses[0].block), (1, 2), "the middle one of three");
        let resized = &courses[0].resized[0];
        assert_eq!((resized.what.as_str(), resized.at_s), ("innodb_buffer_pool_size = 256M", 10.0));
        assert_eq!(resized.dip.unwrap().percent(), 50.0);
        let depths: Vec<f64> = resized.starts.iter().map(|(percent, _)| percent.round()).collect();
        assert_eq!(depths, [90.0, 50.0, 60.0], "by throughput");
        assert!(resized.starts.iter().all(|(_, back)| *back == Some(3.5)));
    }
}
