//! The scalability chart, as SVG for a paper or a page.
//!
//! The charts share one axis, of users or of rates. From top to bottom:
//!
//! - throughput with its 95 % intervals, the regimes, the peak and the fitted law;
//! - latency;
//! - the time budget, if the run was traced.

mod budget;
pub(crate) mod plot;
mod scale;

use std::fmt::Write;

use whyso_explain::model::{Explanation, LevelVerdict, Regime, users_words};
use whyso_record::run::{Level, Purpose, RunEnd, RunInfo};
use whyso_words::{count, short};

use crate::axis::Axis;
use crate::text::level::{how_unsteady, regime_name, workload};
use crate::text::shortened;
use scale::{LevelScale, LogScale, Scale, log_ticks, spread, ticks};

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 600.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = WIDTH - 70.0;
const TOP: f64 = 74.0;
const THROUGHPUT_FOOT: f64 = 346.0;
const LATENCY_TOP: f64 = 378.0;
const LATENCY_FOOT: f64 = 524.0;

/// Characters of a line under the title.
const LINE_CHARS_MAX: usize = 118;

const INK: &str = "#1b2127";
const MUTED: &str = "#5d6873";
const GRID: &str = "#e3e7ea";
const BLUE: &str = "#0b6bb0";
const ORANGE: &str = "#d2620a";
const GREEN: &str = "#0a8567";
const PURPLE: &str = "#a2559c";
const RED: &str = "#b3261e";

/// Returns the chart of a run. A run without a measured level gives a chart that reports it.
pub fn svg(run: &RunInfo, explanation: &Explanation) -> String {
    let mut drawing = Drawing::default();
    drawing.title(run, explanation);
    let points = points(run, explanation);
    if points.is_empty() {
        drawing.text(WIDTH / 2.0, HEIGHT / 2.0, MUTED, "middle", "No level was measured.");
        return drawing.finish();
    }
    let plot = Plot::new(Axis::of(run), &points, switches(run));
    plot.zones(&mut drawing);
    plot.throughput_axis(&mut drawing);
    plot.peak(&mut drawing, explanation);
    plot.throughput(&mut drawing, explanation);
    plot.latency(&mut drawing);
    plot.level_axis(&mut drawing);
    plot.legend(&mut drawing, explanation);
    budget::draw(&mut drawing, &explanation.budgets);
    drawing.finish()
}

/// Name, dashes of its line, and where to find it.
type Quantile = (&'static str, &'static str, fn(&Level) -> f64);

struct Point<'a> {
    level: &'a Level,
    verdict: &'a LevelVerdict,
    /// Why it is drawn hollow; empty for a level that counts.
    note: String,
}

impl Point<'_> {
    fn is_solid(&self) -> bool {
        self.note.is_empty()
    }

    fn per_s(&self) -> f64 {
        self.verdict.transactions_per_s
    }
}

/// The levels that can be drawn, by users.
fn points<'a>(run: &'a RunInfo, explanation: &'a Explanation) -> Vec<Point<'a>> {
    let mut points = Vec::new();
    for level in run.levels.iter().filter(|level| level.users > 0) {
        let Some(verdict) = explanation.levels.iter().find(|verdict| verdict.index == level.index) else {
            continue;
        };
        if !verdict.transactions_per_s.is_finite() {
            continue;
        }
        let note = match (how_unsteady(verdict.steadiness), &level.ended) {
            _ if !verdict.valid => "invalid".to_string(),
            (Some(how), _) => how,
            (_, RunEnd::CutShort { .. }) => "cut short".to_string(),
            _ => String::new(),
        };
        points.push(Point { level, verdict, note });
    }
    let axis = Axis::of(run);
    points.sort_by(|a, b| {
        axis.at(a.level).total_cmp(&axis.at(b.level)).then(a.level.index.cmp(&b.level.index))
    });
    points
}

/// The levels that were run again with the event loops of the level before. Nothing is held of them but what they gave.
fn switches(run: &RunInfo) -> Vec<&Level> {
    let is_drawn = |level: &&Level| {
        let per_s = level.result.transactions_per_s;
        level.purpose == Purpose::Switch && level.users > 0 && per_s.is_finite() && per_s > 0.0
    };
    run.levels.iter().filter(is_drawn).collect()
}

struct Plot<'a> {
    axis: Axis,
    sweep: Vec<&'a Point<'a>>,
    repeats: Vec<&'a Point<'a>>,
    switches: Vec<&'a Level>,
    x: LevelScale,
    y: Scale,
    y_ticks: Vec<f64>,
}

impl<'a> Plot<'a> {
    fn new(axis: Axis, points: &'a [Point<'a>], switches: Vec<&'a Level>) -> Plot<'a> {
        let of = |purpose: Purpose| points.iter().filter(|point| point.level.purpose == purpose).collect();
        let (sweep, repeats) = (of(Purpose::Sweep), of(Purpose::Repeat));
        let levels = points.iter().map(|point| point.level).chain(switches.iter().copied());
        let x = LevelScale::new(levels.map(|level| axis.at(level)), LEFT, RIGHT);
        let top =
            |point: &Point| point.verdict.transactions_per_s_ci95.map_or(point.per_s(), |[_, high]| high);
        let stepped = switches.iter().map(|level| level.result.transactions_per_s);
        let most =
            points.iter().map(top).chain(stepped).filter(|per_s| per_s.is_finite()).fold(0.0, f64::max);
        let y_ticks = ticks(most * 1.08, 5);
        let y = Scale {
            from: 0.0,
            to: y_ticks.last().copied().unwrap_or(1.0),
            bottom: THROUGHPUT_FOOT,
            top: TOP,
        };
        Plot { axis, sweep, repeats, switches, x, y, y_ticks }
    }

    fn at(&self, point: &Point) -> (f64, f64) {
        (self.x.at(self.axis.at(point.level)), self.y.at(point.per_s()))
    }

    fn zones(&self, drawing: &mut Drawing) {
        let judged: Vec<_> =
            self.sweep.iter().filter(|point| point.verdict.regime != Regime::Unknown).collect();
        let mut begin = LEFT;
        for (index, point) in judged.iter().enumerate() {
            let regime = point.verdict.regime;
            let next = judged.get(index + 1);
            if next.is_some_and(|next| next.verdict.regime == regime) {
                continue;
            }
            let end = next.map_or(RIGHT, |next| (self.at(point).0 + self.at(next).0) / 2.0);
            drawing.zone(begin, end, regime);
            begin = end;
        }
    }

    fn throughput_axis(&self, drawing: &mut Drawing) {
        for tick in &self.y_ticks {
            drawing.line((LEFT, self.y.at(*tick)), (RIGHT, self.y.at(*tick)), GRID, "");
            drawing.text(LEFT - 8.0, self.y.at(*tick), MUTED, "end", &short(*tick));
        }
        let is_recorded = self.sweep.iter().all(|point| point.level.result.is_recorded());
        let unit = if is_recorded { "requests" } else { "transactions" };
        drawing.vertical_text(18.0, (TOP + THROUGHPUT_FOOT) / 2.0, &format!("{unit} per second"));
    }

    fn peak(&self, drawing: &mut Drawing, explanation: &Explanation) {
        let Some(peak) = &explanation.peak else { return };
        let (low, high) = peak.users_interval;
        if high == Some(low) {
            return;
        }
        // What was tested is what is drawn: an interval that goes beyond it ends at the chart's edge.
        let tested = || self.sweep.iter().map(|point| f64::from(point.level.users));
        let most = tested().fold(f64::from(peak.users), f64::max);
        let least = tested().fold(f64::from(peak.users), f64::min);
        let from = self.x.at(f64::from(low).max(least));
        let to = self.x.at(high.map_or(most, f64::from).min(most));
        let foot = THROUGHPUT_FOOT - 8.0;
        drawing.path(&format!("M{from:.1},{:.1}v6H{to:.1}v-6", foot - 6.0), GREEN, 1.6, "");
        drawing.text(
            (from + to) / 2.0,
            foot - 14.0,
            GREEN,
            "middle",
            &format!("peak: {}", users_words(peak.users_interval)),
        );
    }

    fn throughput(&self, drawing: &mut Drawing, explanation: &Explanation) {
        for stretch in self.sweep.split(|point| !point.is_solid()).filter(|stretch| stretch.len() > 1) {
            drawing.ribbon(&self.edge(stretch, 1), &self.edge(stretch, 0));
        }
        if let Some(usl) = &explanation.usl {
            let last = self.sweep.last().map_or(1.0, |point| f64::from(point.level.users));
            let on_chart = usl.curve.iter().filter(|[users, _]| *users >= 1.0 && *users <= last);
            let curve: Vec<_> =
                on_chart.map(|[users, per_s]| (self.x.at(*users), self.y.at(*per_s))).collect();
            drawing.path(&path(&curve), ORANGE, 1.2, "5 3");
        }
        let all: Vec<_> = self.sweep.iter().map(|point| self.at(point)).collect();
        drawing.path(&path(&all), BLUE, 1.0, "2 3");
        for stretch in self.sweep.split(|point| !point.is_solid()) {
            let solid: Vec<_> = stretch.iter().map(|point| self.at(point)).collect();
            drawing.path(&path(&solid), BLUE, 2.0, "");
        }
        for point in &self.sweep {
            self.level(drawing, point);
        }
        for point in &self.repeats {
            let (x, y) = self.at(point);
            drawing.path(&format!("M{x:.1},{:.1}l7,7l-7,7l-7,-7z", y - 7.0), PURPLE, 1.5, "");
        }
        for level in &self.switches {
            let per_s = level.result.transactions_per_s;
            drawing.square((self.x.at(self.axis.at(level)), self.y.at(per_s)));
        }
    }

    /// One side of the interval, 0 the low one, 1 the high one.
    fn edge(&self, stretch: &[&Point], side: usize) -> Vec<(f64, f64)> {
        let bound = |point: &Point| {
            point.verdict.transactions_per_s_ci95.map_or(point.per_s(), |interval| interval[side])
        };
        stretch.iter().map(|point| (self.at(point).0, self.y.at(bound(point)))).collect()
    }

    fn level(&self, drawing: &mut Drawing, point: &Point) {
        let (x, y) = self.at(point);
        let mut top = y;
        if let Some([low, high]) = point.verdict.transactions_per_s_ci95 {
            let (low, high) = (self.y.at(low), self.y.at(high));
            drawing.path(&format!("M{:.1},{high:.1}h8m-4,0V{low:.1}m-4,0h8", x - 4.0), BLUE, 1.2, "");
            top = high;
        }
        drawing.circle(x, y, 3.8, BLUE, point.is_solid());
        if !point.note.is_empty() {
            let anchor = if x > RIGHT - 60.0 {
                "end"
            } else if x < LEFT + 40.0 {
                "start"
            } else {
                "middle"
            };
            drawing.text(x, (top - 11.0).max(TOP + 8.0), RED, anchor, &point.note);
        }
    }

    fn latency(&self, drawing: &mut Drawing) {
        let timed: Vec<_> =
            self.sweep.iter().filter(|point| point.level.result.latency_ms.mean > 0.0).collect();
        let Some(last) = timed.last() else { return };
        let low =
            timed.iter().map(|point| point.level.result.latency_ms.mean).fold(f64::INFINITY, f64::min) * 0.8;
        let high =
            timed.iter().map(|point| point.level.result.latency_ms.p99).fold(low * 1.5, f64::max) * 1.2;
        let y = LogScale::new(low, high, LATENCY_FOOT, LATENCY_TOP);
        for tick in log_ticks(low, high) {
            drawing.line((LEFT, y.at(tick)), (RIGHT, y.at(tick)), GRID, "");
            drawing.text(LEFT - 8.0, y.at(tick), MUTED, "end", &short(tick));
        }
        drawing.vertical_text(18.0, (LATENCY_TOP + LATENCY_FOOT) / 2.0, "latency, ms (log)");

        let all: [Quantile; 3] = [
            ("p99", "2 3", |level| level.result.latency_ms.p99),
            ("p95", "6 3", |level| level.result.latency_ms.p95),
            ("mean", "", |level| level.result.latency_ms.mean),
        ];
        // Where something else loaded the server, the mean alone is known.
        let is_known = |(_, _, of): &&Quantile| timed.iter().all(|point| of(point.level) > 0.0);
        let quantiles: Vec<&Quantile> = all.iter().filter(is_known).collect();
        let ends: Vec<f64> = quantiles.iter().map(|(_, _, of)| y.at(of(last.level))).collect();
        for ((name, dash, of), label) in quantiles.into_iter().zip(spread(&ends, 14.0)) {
            let line: Vec<_> = timed.iter().map(|point| (self.at(point).0, y.at(of(point.level)))).collect();
            drawing.path(&path(&line), GREEN, 1.6, dash);
            for (point, (x, y)) in timed.iter().zip(&line) {
                drawing.circle(*x, *y, 2.4, GREEN, point.is_solid());
            }
            drawing.text(self.at(last).0 + 9.0, label, MUTED, "start", name);
        }
    }

    fn level_axis(&self, drawing: &mut Drawing) {
        let mut label_end = f64::NEG_INFINITY;
        for point in &self.sweep {
            let x = self.at(point).0;
            drawing.line((x, LATENCY_FOOT), (x, LATENCY_FOOT + 4.0), MUTED, "");
            if x - label_end < 26.0 {
                continue;
            }
            drawing.text(x, LATENCY_FOOT + 16.0, MUTED, "middle", &self.axis.number(point.level));
            label_end = x;
        }
        let middle = (LEFT + RIGHT) / 2.0;
        drawing.text(middle, LATENCY_FOOT + 35.0, INK, "middle", self.axis.title());
    }

    fn legend(&self, drawing: &mut Drawing, explanation: &Explanation) {
        let mut y = HEIGHT - 24.0;
        let mut x = LEFT;
        drawing.circle(x, y, 3.8, BLUE, true);
        x = drawing.legend_text(x, y, "measured, 95 % interval within this run");
        if self.sweep.iter().any(|point| !point.is_solid()) {
            drawing.circle(x, y, 3.8, BLUE, false);
            x = drawing.legend_text(x, y, "invalid or unstable");
        }
        if explanation.usl.as_ref().is_some_and(|usl| !usl.curve.is_empty()) {
            drawing.path(&format!("M{:.1},{y:.1}h14", x - 4.0), ORANGE, 1.2, "5 3");
            x = drawing.legend_text(x + 8.0, y, "Universal Scalability Law");
        }
        if !self.repeats.is_empty() {
            drawing.path(&format!("M{x:.1},{:.1}l5,5l-5,5l-5,-5z", y - 5.0), PURPLE, 1.5, "");
            drawing.legend_text(x, y, "repeated at the end");
        }
        if !self.switches.is_empty() {
            // The row above has no room left for it.
            (x, y) = (LEFT, y + 16.0);
            drawing.square((x, y));
            drawing.legend_text(
                x,
                y,
                "with the event loops of the level before: the difference is the load generator's own step",
            );
        }
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut out = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let _ = write!(out, "{}{x:.1},{y:.1}", if index == 0 { 'M' } else { 'L' });
    }
    out
}

#[derive(Default)]
struct Drawing {
    body: String,
    /// What is drawn beneath the first chart adds to the height.
    more_height: f64,
}

impl Drawing {
    fn finish(self) -> String {
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img""#,
                r#" font-family="system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif" font-size="12">"#,
                "\n",
                r##"<rect width="{w}" height="{h}" fill="#ffffff"/>"##,
                "\n{body}</svg>\n"
            ),
            w = WIDTH,
            h = HEIGHT + self.more_height,
            body = self.body
        )
    }

    fn title(&mut self, run: &RunInfo, explanation: &Explanation) {
        let server = format!("{} {}", run.server.flavor, run.server.version);
        let title = format!("{} on {}", workload(run), server.trim());
        let _ = writeln!(
            self.body,
            r#"<title>{0}</title><text x="{LEFT}" y="22" fill="{INK}" font-size="15" font-weight="600">{0}</text>"#,
            escaped(&title)
        );
        let machine = format!("{}, {}", count(u64::from(run.host.logical_cpus), "CPU"), run.host.cpu_model);
        let (color, line) = match explanation.headline.as_str() {
            "" => (MUTED, machine),
            headline if explanation.unusable.is_empty() => {
                (MUTED, format!("{} · {machine}", headline.trim_end_matches('.')))
            }
            headline => (RED, shortened(headline, LINE_CHARS_MAX)),
        };
        self.text(LEFT, 42.0, color, "start", &line);
    }

    fn zone(&mut self, from: f64, to: f64, regime: Regime) {
        let color = match regime {
            Regime::RampingUp => "#4c9fd6",
            Regime::Peak => "#12a37c",
            Regime::Degrading => "#e08a1e",
            Regime::Unknown => "#8d979f",
        };
        let width = (to - from).max(0.0);
        let _ = writeln!(
            self.body,
            concat!(
                r#"<rect x="{:.1}" y="{}" width="{:.1}" height="{}" fill="{}" opacity="0.1"/>"#,
                r#"<rect x="{:.1}" y="{}" width="{:.1}" height="3" fill="{}"/>"#
            ),
            from,
            TOP,
            width,
            LATENCY_FOOT - TOP,
            color,
            from,
            TOP - 3.0,
            width,
            color
        );
        if width > 64.0 {
            self.text((from + to) / 2.0, TOP - 11.0, MUTED, "middle", regime_name(regime));
        }
    }

    fn text(&mut self, x: f64, y: f64, color: &str, anchor: &str, text: &str) {
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{:.1}" fill="{color}" text-anchor="{anchor}">{}</text>"#,
            y + 4.0,
            escaped(text)
        );
    }

    fn legend_text(&mut self, x: f64, y: f64, text: &str) -> f64 {
        self.text(x + 10.0, y, MUTED, "start", text);
        // About the width of 12 px of a sans-serif face; the entries only must not touch.
        x + 34.0 + text.chars().count() as f64 * 6.1
    }

    fn vertical_text(&mut self, x: f64, y: f64, text: &str) {
        let _ = writeln!(
            self.body,
            r#"<text transform="translate({x:.1} {y:.1}) rotate(-90)" fill="{INK}" text-anchor="middle">{}</text>"#,
            escaped(text)
        );
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str, dash: &str) {
        self.path(&format!("M{:.1},{:.1}L{:.1},{:.1}", from.0, from.1, to.0, to.1), color, 1.0, dash);
    }

    fn path(&mut self, path: &str, color: &str, width: f64, dash: &str) {
        if path.is_empty() {
            return;
        }
        let dash = if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
        let _ = writeln!(
            self.body,
            r#"<path d="{path}" fill="none" stroke="{color}" stroke-width="{width}"{dash}/>"#
        );
    }

    fn ribbon(&mut self, upper: &[(f64, f64)], lower: &[(f64, f64)]) {
        let mut outline = upper.to_vec();
        outline.extend(lower.iter().rev());
        let _ = writeln!(self.body, r#"<path d="{}Z" fill="{BLUE}" opacity="0.16"/>"#, path(&outline));
    }

    fn square(&mut self, (x, y): (f64, f64)) {
        self.path(&format!("M{:.1},{:.1}h9v9h-9z", x - 4.5, y - 4.5), PURPLE, 1.5, "");
    }

    fn circle(&mut self, x: f64, y: f64, radius: f64, color: &str, solid: bool) {
        let fill = if solid { color } else { "#ffffff" };
        let _ = writeln!(
            self.body,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}" stroke="{color}" stroke-width="1.6"/>"#
        );
    }
}

/// XML has no place for control characters, escaped or not.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ if character.is_control() => out.push(' '),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod tests;
