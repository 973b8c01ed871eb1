//! Cells second by second, and what changes during a run did.

use std::collections::BTreeSet;

use whyso_study::{Answer, Course};
use whyso_words::{number, percent_change, seconds, users as users_text, whole};

use super::{Row, Sheet, words};
use crate::text::dash;

/// Times of a course that a table shows.
const TIMES: usize = 12;

/// One measure at some times of each course of this number of users, side by side.
pub(super) fn course(answer: &Answer, users: u32, measure: &str) -> Sheet {
    let courses: Vec<&Course> = answer.courses.iter().filter(|course| course.users == users).collect();
    let head = std::iter::once("seconds".to_string()).chain(courses.iter().map(|course| course.name.clone()));
    let longest = courses.iter().map(|course| course.moments.len()).max().unwrap_or(0);
    let every = longest.div_ceil(TIMES).max(1);
    let row = |at: usize| {
        let moments = courses.iter().map(|course| course.moments.get(at));
        let at_s = moments.clone().flatten().next().map_or_else(dash, |moment| number(moment.at_s.round()));
        let values = moments.map(|moment| {
            let value = moment.and_then(|moment| moment.measures.get(measure));
            value.map_or_else(dash, |value| number(*value))
        });
        Row { cells: std::iter::once(at_s).chain(values).collect(), muted: false }
    };
    Sheet {
        title: format!(
            "Over time, {}: {}, the start with the middle throughput",
            users_text(users),
            words(measure)
        ),
        head: head.collect(),
        words: Vec::new(),
        rows: (0..longest).step_by(every).map(row).collect(),
        note: String::new(),
    }
}

/// Those that any course has.
pub(super) fn measures(answer: &Answer) -> Vec<String> {
    let moments = answer.courses.iter().filter_map(|course| course.moments.first());
    let names: BTreeSet<&String> = moments.flat_map(|moment| moment.measures.keys()).collect();
    names.into_iter().cloned().collect()
}

pub(super) fn resized(answer: &Answer) -> Sheet {
    let mut rows = Vec::new();
    for course in &answer.courses {
        for change in &course.resized {
            let of_dip = |of: fn(&whyso_inference::Dip) -> f64| {
                change.dip.as_ref().map_or_else(dash, |dip| number(of(dip)))
            };
            let each: Vec<String> =
                change.starts.iter().map(|(percent, back)| fell(*percent, *back)).collect();
            rows.push(Row {
                cells: vec![
                    whole(u64::from(course.users)),
                    course.name.clone(),
                    change.what.clone(),
                    of_dip(|dip| dip.before),
                    of_dip(|dip| dip.lowest),
                    of_dip(|dip| dip.later),
                    each.join("; "),
                ],
                muted: false,
            });
        }
    }
    Sheet {
        title: format!("Changed under load: {}", words(&answer.metric)),
        head: [
            "users",
            "cell",
            "change",
            "before",
            "lowest",
            "at the end",
            "each start: how deep, and back after",
        ]
        .map(str::to_string)
        .to_vec(),
        words: vec![1, 2, 6],
        rows,
        note:
            "\"Back\" is when it reached 95 % of its value before the change, or of its value at the end if that is lower."
                .to_string(),
    }
}

fn fell(percent: f64, back_s: Option<f64>) -> String {
    match back_s {
        Some(s) if s <= 0.0 => "hardly fell".to_string(),
        Some(s) => format!("{}, {}", percent_change(-percent / 100.0), seconds(s)),
        None => format!("{}, not back", percent_change(-percent / 100.0)),
    }
}
