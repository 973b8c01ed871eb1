//! Where throughput peaks, and in which of three regimes each level is: ramping up, at its peak,
//! degrading.

use crate::level::{Level, levels_evidence};
use crate::model::{Finding, LoopKind, Peak, Regime, UsersInterval, users_words};
use whyso_inference::bins::BINS_PER_S;

/// Levels this close to the best are the same for any purpose, however narrow the intervals.
const SAME_SHARE: f64 = 0.03;

/// Levels this close to the best belong to the peak's regime. The plateau of the published sweep
/// that the three regimes come from (8 to 48 users on 8 cores) spans 6.4 %.
const PLATEAU_SHARE: f64 = 0.08;

/// What is assumed for a level too short for an interval: rounds of a few seconds vary by this.
const UNKNOWN_NOISE_SHARE: f64 = 0.10;

/// The levels of one number of users, with their mean where there are several.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) users: u32,
    pub(crate) per_s: f64,
    /// Half of the 95 % interval.
    pub(crate) half_width: f64,
    /// The level had an interval of its own.
    pub(crate) has_interval: bool,
    /// Positions in the list of levels.
    pub(crate) positions: Vec<usize>,
}

/// What the levels say together.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Levels that count, by users ascending.
    pub(crate) points: Vec<Point>,
    /// Position in `points` of the highest throughput.
    pub(crate) best: usize,
    /// First and last point that can't be distinguished from the best.
    pub(crate) same: (usize, usize),
    /// First and last point of the plateau.
    plateau: (usize, usize),
    /// The best level is the one with the most users, and clearly better than the one before.
    pub(crate) still_rising: bool,
}

impl Shape {
    /// `None` where no level counts.
    pub(crate) fn new(levels: &[Level]) -> Option<Shape> {
        let points = points(levels);
        let mut best = 0;
        for (at, point) in points.iter().enumerate() {
            if point.per_s > points[best].per_s {
                best = at;
            }
        }
        let top = points.get(best)?.clone();
        let is_same = |point: &Point| !is_clearly_less(&top, point);
        let is_plateau = |point: &Point| is_same(point) || point.per_s >= (1.0 - PLATEAU_SHARE) * top.per_s;
        let plateau = span(&points, best, is_plateau);
        let last = points.len() - 1;
        Some(Shape {
            same: span(&points, best, is_same),
            plateau,
            still_rising: best == last && last > 0 && plateau.0 == last,
            best,
            points,
        })
    }

    pub(crate) fn best_point(&self) -> &Point {
        &self.points[self.best]
    }

    fn regime(&self, at: usize) -> Regime {
        if self.points.len() < 2 {
            return Regime::Unknown;
        }
        if self.still_rising || at < self.plateau.0 {
            return Regime::RampingUp;
        }
        if at > self.plateau.1 {
            return Regime::Degrading;
        }
        let point = &self.points[at];
        let top = self.best_point();
        if point.per_s >= (1.0 - PLATEAU_SHARE) * top.per_s || !is_clearly_less(top, point) {
            return Regime::Peak;
        }
        // A dip between levels that do better is none of the three.
        Regime::Unknown
    }

    /// The regime of the levels with this many users.
    pub(crate) fn regime_of_users(&self, users: u32) -> Regime {
        let at = self.points.iter().position(|point| point.users == users);
        at.map_or(Regime::Unknown, |at| self.regime(at))
    }

    /// Users that may have the highest throughput. Throughput climbs to one peak and falls after it. So the peak lies between the nearest
    /// tested neighbours that surely do less. What lies between two levels was not tested.
    fn users_interval(&self) -> UsersInterval {
        let below = self.same.0.checked_sub(1).map(|at| self.points[at].users);
        let above = self.points.get(self.same.1 + 1).map(|point| point.users);
        (below.map_or(1, |users| users + 1), above.map(|users| users - 1))
    }

    /// Where throughput peaks, without a full stop: what the headline and the finding both say. `interval`: of the throughput, as text.
    pub(crate) fn statement(&self, levels: &[Level], interval: &str) -> String {
        let top = self.best_point();
        let top_level = top.positions.first().and_then(|&position| levels.get(position));
        if let Some(level) = top_level.filter(|level| level.is_untraced && self.points.len() == 1) {
            return level.untraced_result(&whyso_words::number(top.per_s)).trim_end_matches('.').to_string();
        }
        let unit = top_level.map_or("transaction", Level::unit);
        let users = whyso_words::users(top.users);
        let per_s = format!("{} {unit}s/s{interval}", whyso_words::number(top.per_s));
        if self.points.len() == 1 {
            return format!("{users} did {per_s}");
        }
        if self.still_rising {
            return format!("Throughput was still rising at {users}, the most that could be judged: {per_s}");
        }
        match self.users_interval() {
            (_, None) => {
                let last = &self.points[self.points.len() - 1];
                let most = if last.users == top.users {
                    "the most that could be judged".to_string()
                } else {
                    format!(
                        "and {}, the most that could be judged, did hardly less",
                        whyso_words::users(last.users)
                    )
                };
                format!("Throughput is highest at {users}, {most}, so the peak may lie beyond: {per_s}")
            }
            (low, Some(high)) if low == high => format!("Throughput peaks at {users}: {per_s}"),
            interval => {
                format!("Throughput peaks at {users} (anywhere from {}): {per_s}", users_words(interval))
            }
        }
    }

    pub(crate) fn peak(&self) -> Peak {
        let top = self.best_point();
        let mut witnesses = Vec::new();
        for (at, point) in self.points.iter().enumerate() {
            let is_near = at + 1 >= self.same.0 && at <= self.same.1 + 1;
            if at == self.best || !is_near {
                continue;
            }
            let verdict = if !is_clearly_less(top, point) {
                if within_intervals(top, point) { "within the intervals" } else { "too little to matter" }
            } else {
                "outside the intervals"
            };
            witnesses.push(format!(
                "{}: {}/s, {} less than the best, {verdict}",
                whyso_words::users(point.users),
                whyso_words::number(point.per_s),
                whyso_words::percent(1.0 - ratio(point.per_s, top.per_s)),
            ));
        }
        if self.best + 1 == self.points.len() {
            witnesses.push("no level with more users can be judged".to_string());
        }
        if !top.has_interval {
            witnesses.push("the best level was too short for an interval; 10 % is assumed".to_string());
        }
        Peak {
            users: top.users,
            users_interval: self.users_interval(),
            transactions_per_s: top.per_s,
            witnesses,
        }
    }
}

/// `is_usable`: nothing makes the result unusable.
pub(crate) fn peak_finding(shape: &Shape, levels: &[Level], is_usable: bool) -> Finding {
    let top = shape.best_point();
    let top_level = top.positions.first().and_then(|&position| levels.get(position));
    let interval = if top.has_interval {
        format!(
            " (95 % interval {} to {}, within this one start of the server)",
            whyso_words::number((top.per_s - top.half_width).max(0.0)),
            whyso_words::number(top.per_s + top.half_width),
        )
    } else if top_level.is_some_and(|level| level.pacing == LoopKind::Recorded) {
        String::new()
    } else {
        " (the level was too short for an interval)".to_string()
    };
    let statement = shape.statement(levels, &interval);
    let mut text = if is_usable { statement } else { as_measured(&statement) };
    if shape.points.len() == 1 {
        text.push('.');
        if !top_level.is_some_and(|level| level.is_untraced) {
            text.push_str(" One level does not show where throughput peaks.");
        }
    } else if shape.still_rising {
        let before = &shape.points[shape.best - 1];
        text.push_str(&format!(
            ", {} more than at {}. The peak lies at {}.",
            whyso_words::percent(ratio(top.per_s, before.per_s) - 1.0),
            whyso_words::users(before.users),
            users_words(shape.users_interval()),
        ));
    } else {
        text.push('.');
    }
    text.push_str(&did_more_before(top, levels));
    let shown: Vec<&Level> = shape.points[shape.same.0..=shape.same.1]
        .iter()
        .flat_map(|point| point.positions.iter().map(|&position| &levels[position]))
        .collect();
    Finding { id: "peak".to_string(), text, evidence: vec![levels_evidence("transactions_per_s", &shown)] }
}

/// "As measured, throughput …"
pub(crate) fn as_measured(statement: &str) -> String {
    let mut letters = statement.chars();
    let lower: String =
        letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect());
    format!("As measured, {lower}")
}

/// Names an unstable level that did more than the best before it changed; empty where none did.
fn did_more_before(top: &Point, levels: &[Level]) -> String {
    let unstable = levels.iter().filter(|level| !level.repeat && level.verdict.valid);
    let more = unstable
        .filter_map(|level| Some((level, level.change?)))
        .filter(|(_, change)| change.before_per_s > top.per_s + top.half_width)
        .max_by(|(_, a), (_, b)| a.before_per_s.total_cmp(&b.before_per_s));
    let Some((level, change)) = more else {
        return String::new();
    };
    format!(
        " But {} did more, {}/s, until throughput changed at {} s; where the peak is depends on whether that lasts.",
        whyso_words::users(level.users),
        whyso_words::number(change.before_per_s),
        whyso_words::number(change.at_bin as f64 / BINS_PER_S),
    )
}

/// Says which levels are in which regime; `None` for a single level.
pub(crate) fn regimes_finding(shape: &Shape, levels: &[Level]) -> Option<Finding> {
    if shape.points.len() < 2 {
        return None;
    }
    let top = shape.best_point();
    let mut parts = Vec::new();
    for (regime, name) in [
        (Regime::RampingUp, "ramping up"),
        (Regime::Peak, "at its peak (within 8 % of the best)"),
        (Regime::Degrading, "degrading"),
        (Regime::Unknown, "below its neighbours on both sides"),
    ] {
        let members: Vec<&Point> = (0..shape.points.len())
            .filter(|&at| shape.regime(at) == regime)
            .map(|at| &shape.points[at])
            .collect();
        let (Some(first), Some(last)) = (members.first(), members.last()) else {
            continue;
        };
        let range = match members.len() {
            1 => format!("at {}", whyso_words::users(first.users)),
            2 => format!("at {} and {} users", first.users, last.users),
            _ if regime == Regime::Unknown => {
                let users: Vec<String> = members.iter().map(|point| point.users.to_string()).collect();
                format!("at {} users", whyso_words::list(&users))
            }
            _ => format!("from {} to {} users", first.users, last.users),
        };
        let fall = if regime == Regime::Degrading {
            let at_last = if members.len() > 1 { " at the last" } else { "" };
            format!(" (down {}{at_last})", whyso_words::percent(1.0 - ratio(last.per_s, top.per_s)))
        } else {
            String::new()
        };
        parts.push(format!("{name} {range}{fall}"));
    }
    let shown: Vec<&Level> = shape
        .points
        .iter()
        .flat_map(|point| point.positions.iter().map(|&position| &levels[position]))
        .collect();
    Some(Finding {
        id: "regimes".to_string(),
        text: format!("The server is {}.", parts.join("; ")),
        evidence: vec![levels_evidence("transactions_per_s", &shown)],
    })
}

/// Levels that count. Those with the same number of users are one point.
fn points(levels: &[Level]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for (position, level) in levels.iter().enumerate() {
        if !level.counts() {
            continue;
        }
        match points.iter_mut().find(|point| point.users == level.users) {
            Some(point) => point.positions.push(position),
            None => points.push(Point {
                users: level.users,
                per_s: 0.0,
                half_width: 0.0,
                has_interval: false,
                positions: vec![position],
            }),
        }
    }
    for point in &mut points {
        // Next to a level with an interval, one that was too short for it shows nothing new.
        let has_interval = |position: &usize| levels[*position].verdict.transactions_per_s_ci95.is_some();
        point.has_interval = point.positions.iter().any(has_interval);
        if point.has_interval {
            point.positions.retain(has_interval);
        }
        let members: Vec<&Level> = point.positions.iter().map(|&position| &levels[position]).collect();
        let count = members.len() as f64;
        point.per_s = members.iter().map(|level| level.per_s() / count).sum();
        // As wide as the furthest end of any of them: two levels that disagree widen it.
        for level in members {
            let [low, high] = level.verdict.transactions_per_s_ci95.unwrap_or([
                level.per_s() * (1.0 - UNKNOWN_NOISE_SHARE),
                level.per_s() * (1.0 + UNKNOWN_NOISE_SHARE),
            ]);
            let reach = (point.per_s - low).max(high - point.per_s);
            point.half_width = point.half_width.max(reach);
        }
    }
    points.sort_by_key(|point| point.users);
    points
}

fn span(points: &[Point], best: usize, belongs: impl Fn(&Point) -> bool) -> (usize, usize) {
    let first = points.iter().position(&belongs).unwrap_or(best);
    let last = points.iter().rposition(&belongs).unwrap_or(best);
    (first, last)
}

/// The difference is no more than the 95 % interval of a difference.
fn within_intervals(top: &Point, other: &Point) -> bool {
    top.per_s - other.per_s <= top.half_width.hypot(other.half_width)
}

fn is_clearly_less(top: &Point, other: &Point) -> bool {
    !within_intervals(top, other) && other.per_s < (1.0 - SAME_SHARE) * top.per_s
}

/// 0 where there is nothing to divide by.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    let ratio = part / whole;
    if ratio.is_finite() { ratio } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LevelInput, Machine};
    use whyso_random::noise::Noise;

    /// Ten seconds at each number of users of a server with this law, every tenth of a second with 5 % noise.
    fn sweep(users: &[u32], per_s: impl Fn(f64) -> f64, noise: &mut Noise) -> Vec<LevelInput> {
        let mut inputs = Vec::new();
        for (index, &users) in users.iter().enumerate() {
            let mean = per_s(f64::from(users)) / 10.0;
            let bins: Vec<u32> =
                (0..100).map(|_| (mean * (1.0 + 0.05 * noise.normal())).max(0.0).round() as u32).collect();
            inputs.push(LevelInput {
                index: index as u32,
                users,
                end_ns: 10_000_000_000,
                transactions: bins.iter().map(|&bin| u64::from(bin)).sum(),
                bins_100ms: bins,
                ..LevelInput::default()
            });
        }
        inputs
    }

    fn shape_of(inputs: &[LevelInput]) -> Shape {
        let levels: Vec<Level> =
            inputs.iter().map(|input| crate::verdict::judge(input, &Machine::default())).collect();
        Shape::new(&levels).unwrap()
    }

    /// With the levels that could not be distinguished as its ends, it held the true peak in one of four.
    #[test]
    fn the_peaks_interval_of_users_holds_the_true_peak_between_levels() {
        let mut covered = 0;
        for seed in 0..300 {
            let mut noise = Noise::new(60_000 + seed);
            let sigma = 0.01 + 0.1 * noise.uniform();
            let peak = 2.0_f64.powf(1.0 + 5.5 * noise.uniform());
            let kappa = (1.0 - sigma) / (peak * peak);
            let law =
                |users: f64| 5_000.0 * users / (1.0 + sigma * (users - 1.0) + kappa * users * (users - 1.0));
            let (low, high) =
                shape_of(&sweep(&[1, 2, 4, 8, 16, 32, 64, 128], law, &mut noise)).users_interval();
            covered += u32::from(f64::from(low) <= peak && high.is_none_or(|high| peak <= f64::from(high)));
        }
        println!("{covered} of 300");
        assert!(covered >= 285, "{covered} of 300");
    }

    #[test]
    fn the_upper_end_is_open_where_the_highest_level_may_be_the_peak() {
        let mut noise = Noise::new(1);
        let flat =
            shape_of(&sweep(&[4, 8, 16], |users| if users < 8.0 { 4_000.0 } else { 8_000.0 }, &mut noise));
        assert_eq!(flat.users_interval(), (5, None));
        assert!(flat.statement(&[], "").contains("so the peak may lie beyond"));
        let falls =
            shape_of(&sweep(&[4, 8, 16], |users| if users == 8.0 { 8_000.0 } else { 4_000.0 }, &mut noise));
        assert_eq!(falls.users_interval(), (5, Some(15)));
        let statement = falls.statement(&[], "");
        assert!(
            statement.starts_with("Throughput peaks at 8 users (anywhere from 5 to 15 users): "),
            "{statement}"
        );
        let lowest = shape_of(&sweep(&[4, 8, 16], |users| 8_000.0 / users, &mut noise));
        assert_eq!(lowest.users_interval(), (1, Some(7)), "fewer users were not tested");
    }
}
