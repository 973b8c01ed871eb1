//! A knob that was swept within each start.

use super::{Row, Sheet, difference, shown, untold};
use crate::number::grouped;

/// Points of a curve that a table shows.
const POINTS: usize = 40;

pub(super) fn steps(curve: &whyso_study::Curve) -> Sheet {
    let row = |step: &whyso_study::CurveStep| Row {
        cells: vec![
            format!("{} and {}", grouped(step.between[0] as f64), grouped(step.between[1] as f64)),
            format!("{:.2}", step.before_ms),
            format!("{:.2}", step.after_ms),
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
            grouped(point.value as f64),
            format!("{:.2}", point.ms),
            point.ms95.map_or_else(untold, |[low, high]| format!("{low:.2} to {high:.2}")),
        ];
        cells.extend(
            names.iter().map(|name| point.status.get(*name).map_or_else(untold, |count| shown(*count))),
        );
        Row { cells, muted: false }
    };
    Sheet {
        title: format!("{}: {} starts", curve.name, curve.starts),
        head,
        words: Vec::new(),
        rows: curve.points.iter().step_by(every).map(row).collect(),
        note: match every {
            1 => String::new(),
            every => format!("One in {every} of {} values.", curve.points.len()),
        },
    }
}
