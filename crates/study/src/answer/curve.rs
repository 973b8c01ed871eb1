//! A knob that was swept within each start, as a curve.

use std::collections::BTreeMap;

use serde::Serialize;
use ts_rs::TS;
use whyso_inference::{ChangePoint, ChangeRule, Effect, change_points, effect};

use crate::cells::Cell;
use crate::journal::{PointRecord, StartRecord};
use crate::spec::Spec;

#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Curve {
    /// Of the cell.
    pub name: String,
    pub knob: String,
    pub starts: u32,
    /// In ascending order of the knob.
    pub points: Vec<CurvePoint>,
    /// Where the time changes for good, by at least what matters.
    pub steps: Vec<CurveStep>,
}

/// A step in a curve: between two neighbouring values of the knob.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, TS)]
pub struct CurveStep {
    /// The last value before it, and the first one after.
    pub between: [i64; 2],
    /// Means of the times from the step before it to the one after it, in milliseconds.
    pub before_ms: f64,
    pub after_ms: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct CurvePoint {
    pub value: i64,
    /// Geometric mean over the starts of an execution's time, in milliseconds.
    pub ms: f64,
    /// Its 95 % interval by Student's t over the logarithms; `None` with one start.
    pub ms95: Option<[f64; 2]>,
    /// Means of the session's counters, by execution.
    pub status: BTreeMap<String, f64>,
}

pub(super) fn curves(spec: &Spec, cells: &[Cell], done: &[StartRecord]) -> Vec<Curve> {
    let Some(sweep) = &spec.session_sweep else { return Vec::new() };
    let curve = |(at, cell): (usize, &Cell)| {
        let starts: Vec<&[PointRecord]> = done
            .iter()
            .filter(|record| !record.start.pair && record.start.cell == at && !record.points.is_empty())
            .map(|record| record.points.as_slice())
            .collect();
        let first = starts.first()?;
        let points: Vec<CurvePoint> = first.iter().map(|point| over_starts(point.value, &starts)).collect();
        let steps = steps(&points, spec.matters_percent);
        Some(Curve {
            name: cell.name(),
            knob: sweep.knob.clone(),
            starts: starts.len() as u32,
            points,
            steps,
        })
    };
    cells.iter().enumerate().filter_map(curve).collect()
}

/// Changes of the logarithm of the time along the knob: a step of one percentage is the same whatever the time is.
fn steps(points: &[CurvePoint], matters_percent: f64) -> Vec<CurveStep> {
    let timed: Vec<&CurvePoint> = points.iter().filter(|point| point.ms > 0.0).collect();
    let logs: Vec<f64> = timed.iter().map(|point| point.ms.ln()).collect();
    let wanted = ChangeRule { size_min: (1.0 + matters_percent / 100.0).ln(), ..ChangeRule::default() };
    let step = |found: &ChangePoint| CurveStep {
        between: [timed[found.at - 1].value, timed[found.at].value],
        before_ms: found.before.exp(),
        after_ms: found.after.exp(),
    };
    change_points(&logs, &wanted).iter().map(step).collect()
}

fn over_starts(value: i64, starts: &[&[PointRecord]]) -> CurvePoint {
    let of = |points: &&[PointRecord]| {
        points.iter().position(|point| point.value == value).map(|at| points[at].clone())
    };
    let points: Vec<PointRecord> = starts.iter().filter_map(of).collect();
    // A time as a multiple of one millisecond has the interval that a ratio has.
    let times: Vec<(f64, f64)> = points.iter().map(|point| (1.0, point.ms)).collect();
    let found: Option<Effect> = effect(&times);
    let mut status: BTreeMap<String, f64> = BTreeMap::new();
    for point in &points {
        for (name, count) in &point.status {
            *status.entry(name.clone()).or_default() += count / points.len() as f64;
        }
    }
    CurvePoint {
        value,
        ms: found.map_or(0.0, |found| found.ratio),
        ms95: found.and_then(|found| found.t95),
        status,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::finished_starts;
    use super::*;

    #[test]
    fn a_curve_is_the_mean_over_the_starts() {
        let text = "title = 't'\nquestion = 'q'\nbaseline = 'default'\nrepeats = 2\npair = false\n\
                    [inside]\nknob = 'sort_buffer_size'\nvalues = [1024, 2048]\nstatement = 'SELECT 1'\nstatus = ['Sort_merge_passes']\n";
        let spec = Spec::parse(text, false).unwrap();
        let mut found = finished_starts(&spec, &spec.all_starts(), |_, _| None);
        for (record, factor) in found.iter_mut().zip([1.0, 1.21]) {
            let point = |value: i64, ms: f64, passes: f64| PointRecord {
                value,
                ms: ms * factor,
                status: BTreeMap::from([("Sort_merge_passes".to_string(), passes)]),
            };
            record.points = vec![point(1024, 100.0, 9.0), point(2048, 50.0, 1.0)];
        }
        let curves = super::super::answer(&spec, &found, &[]).curves;
        assert_eq!((curves.len(), curves[0].starts, curves[0].points.len()), (1, 2, 2));
        assert!((curves[0].points[0].ms - 110.0).abs() < 1e-9);
        let [low, high] = curves[0].points[1].ms95.unwrap();
        assert!(low < 55.0 && 55.0 < high);
        assert_eq!(curves[0].points[1].status["Sort_merge_passes"], 1.0);
    }

    #[test]
    fn steps_are_found_where_they_are() {
        let time = |at: usize| if at < 13 { 18.0 } else { 13.5 } * (1.0 + 0.004 * (at % 3) as f64);
        let point = |at: usize| CurvePoint {
            value: 32_768 * (at as i64 + 1),
            ms: time(at),
            ms95: None,
            status: BTreeMap::new(),
        };
        let found = steps(&(0..100).map(point).collect::<Vec<_>>(), 3.0);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].between, [13 * 32_768, 14 * 32_768]);
        assert!((found[0].before_ms / found[0].after_ms - 18.0 / 13.5).abs() < 0.01);
    }
}
