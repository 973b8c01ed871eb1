//! The scalability law over the levels of a run: which of them are fitted, and what the fit shows.

use crate::level::{Level, levels_evidence, levels_of};
use crate::model::{Finding, UslFit};
use crate::regime::{Point, Shape};
use crate::wake;
use whyso_inference::usl::{self, UslPoint};

/// The law is a simple one. It is assumed to miss every level by this share of the best throughput, in addition to the level's own noise.
/// Keeps one very quiet level from ruling the fit.
const MISFIT_SHARE: f64 = 0.02;

/// Below this the law does not describe the levels.
const R_SQUARED_MIN: f64 = 0.8;

pub(crate) fn fit(shape: &Shape, levels: &[Level]) -> Option<UslFit> {
    let slowed = wake::slowed_point(shape, levels);
    let best_per_s = shape.best_point().per_s;
    let mut points = Vec::new();
    let mut left_out = Vec::new();
    for (at, point) in shape.points.iter().enumerate() {
        let indexes = indexes(point, levels);
        if slowed == Some(at) {
            left_out.extend(indexes);
            continue;
        }
        let noise = point.half_width / (MISFIT_SHARE * best_per_s);
        points.push(UslPoint {
            users: f64::from(point.users),
            per_s: point.per_s,
            weight: 1.0 / (1.0 + noise * noise),
            indexes,
        });
    }
    let mut fit = usl::fit(&points, &left_out)?;
    if !describes(&fit) {
        // Drawn, it would be believed.
        fit.curve.clear();
    }
    Some(fit)
}

fn describes(fit: &UslFit) -> bool {
    fit.r_squared >= R_SQUARED_MIN
}

pub(crate) fn finding(fit: &UslFit, shape: &Shape, levels: &[Level]) -> Finding {
    let explains = whyso_words::percent(fit.r_squared.max(0.0));
    let mut text = if !describes(fit) {
        format!(
            "The Universal Scalability Law does not describe these levels: it explains {explains} of the differences between \
             them, so its parameters say nothing."
        )
    } else {
        format!(
            "The Universal Scalability Law fits with {} serial work (95 % interval {} to {}) and a crosstalk of {} ({} to {}); \
             {}. It explains {explains} of the differences between levels.",
            whyso_words::percent(fit.sigma.value),
            whyso_words::percent(fit.sigma.low95),
            whyso_words::percent(fit.sigma.high95),
            whyso_words::number(fit.kappa.value),
            whyso_words::number(fit.kappa.low95),
            whyso_words::number(fit.kappa.high95),
            fitted_peak(fit, shape),
        )
    };
    let outside: Vec<&Level> =
        levels.iter().filter(|level| !level.repeat && fit.outside.contains(&level.index)).collect();
    if !outside.is_empty() {
        text.push_str(&format!(" Outside the fit: {}.", levels_of(&outside)));
    }
    let shown: Vec<&Level> = shape
        .points
        .iter()
        .flat_map(|point| point.positions.iter().map(|&position| &levels[position]))
        .collect();
    Finding { id: "usl".to_string(), text, evidence: vec![levels_evidence("transactions_per_s", &shown)] }
}

fn fitted_peak(fit: &UslFit, shape: &Shape) -> String {
    let users_max = shape.points.last().map_or(0, |point| point.users);
    let interval = match fit.peak_users_ci95 {
        Some((low, Some(high))) => {
            format!(
                " (95 % interval {} to {})",
                whyso_words::number(low.round()),
                whyso_words::number(high.round())
            )
        }
        Some((low, None)) => format!(" (95 % interval: {} or more)", whyso_words::number(low.round())),
        None => String::new(),
    };
    match fit.peak_users {
        Some(users) if users < 1.5 => format!("its peak lies at 1 user{interval}"),
        Some(users) if users <= 2.0 * f64::from(users_max) => {
            format!("its peak lies at about {} users{interval}", whyso_words::number(users.round()))
        }
        Some(_) => format!("its peak lies far beyond the users that were tried{interval}"),
        None => "it needs no peak, because crosstalk may be 0".to_string(),
    }
}

fn indexes(point: &Point, levels: &[Level]) -> Vec<u32> {
    point.positions.iter().map(|&position| levels[position].index).collect()
}
