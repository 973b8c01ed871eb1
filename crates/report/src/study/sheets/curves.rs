//! A knob that was swept within each start.

use whyso_words::{count, number};

use super::{Row, Sheet, difference};
use crate::text::dash;

/// Points of a curve that a table shows.
const POINTS: usize = 40;

pub(super) fn steps(curve: &whyso_study::Curve) -> Sheet {
    let row = |step: &whyso_study::CurveStep| Row {
        cells: vec![
            format!("{} and {}", number(step.between[0] as f64), number(step.between[1] as f64)),
            number(step.before_ms),
            number(step.after_ms),
            difference(step.after_ms / step.before_ms),
        ],
        muted: false,
    };
    Sheet {
        title: format!("{}: steps in the curve", curve.name),
        head: [&format!("between {}", curve.knob), "ms before", "ms after", "difference"].map(str::to_string).to_vec(),
        words: vec![0],
        rows: curve.steps.iter().map(row).collect(),
        note: "Where the time changes for good along the knob, by E-divisive and Student's t test at 0.1 %, and by at least what matters.".to_string(),
    }
}

pub(super) fn curve(curve: &whyso_study::Curve) -> Sheet {
    let names: Vec<&String> = curve.points.first().map_or(Vec::new(), |point| point.status.keys().collect());
    let mut head: Vec<String> = vec![curve.knob.clone(), "ms".to_string(), "95 %".to_string()];
    head.extend(names.iter().map(|name| format!("{name}/execution")));
    let every = curve.points.len().div_ceil(POINTS).max(1);
    let row = |point: &whyso_study::CurvePoint| {
        let mut cells = vec![
            number(point.value as f64),
            number(point.ms),
            point.ms95.map_or_else(dash, |[low, high]| format!("{} to {}", number(low), number(high))),
        ];
        cells.extend(
            names.iter().map(|name| point.status.get(*name).map_or_else(dash, |times| number(*times))),
        );
        Row { cells, muted: false }
    };
    Sheet {
        title: format!("{}: {}", curve.name, count(u64::from(curve.starts), "start")),
        head,
        words: Vec::new(),
        rows: curve.points.iter().step_by(every).map(row).collect(),
        note: match every {
            1 => String::new(),
            every => format!("One in {every} of {}.", count(curve.points.len() as u64, "value")),
        },
    }
}
