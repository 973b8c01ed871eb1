//! Series over windows as a picture: windows side by side, all on one scale.

use super::escaped;
use super::scale::{short, ticks};

const PANEL_WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 56.0;
const FOOT: f64 = 34.0;
const LEGEND_LINE: f64 = 18.0;
const GAP: f64 = 18.0;
const COLORS: [&str; 8] =
    ["#0b6bb0", "#d2620a", "#0a8567", "#a2559c", "#5a6570", "#3aa3dd", "#a88900", "#8c3b2a"];
/// Neighbours that are so many times as far apart as most are not joined.
const GAP_STEPS: f64 = 3.5;
/// Steps of a time axis, in seconds.
const CLOCK_STEPS: [f64; 20] = [
    0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    14_400.0, 21_600.0, 43_200.0, 86_400.0,
];

/// One window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotPanel {
    /// Seconds since the run began.
    pub from_s: f64,
    pub to_s: f64,
    pub lines: Vec<PlotLine>,
}

/// One line: vectors of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotLine {
    /// Lines of one name have one colour.
    pub name: String,
    pub t_s: Vec<f64>,
    /// NaN is a gap.
    pub value: Vec<f64>,
    /// Least and greatest of what each value stands for; empty where each is a single reading.
    pub low: Vec<f64>,
    pub high: Vec<f64>,
}

/// A picture of windows side by side on one scale, with its legend.
pub fn plot(title: &str, unit: &str, panels: &[PlotPanel]) -> String {
    let names = names(panels);
    let (low, high) = extent(panels);
    let legend_lines = names.len().div_ceil(legend_columns(panels.len())) as f64;
    let top = TOP + legend_lines * LEGEND_LINE;
    let height = top + HEIGHT + FOOT;
    let width = LEFT + panels.len() as f64 * (PANEL_WIDTH + GAP) - GAP + RIGHT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#5d6873\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fdfdfc\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\" font-weight=\"600\" fill=\"#1b2127\">{}</text>\n\
         <text x=\"{LEFT}\" y=\"40\">{}</text>\n",
        escaped(title),
        escaped(unit)
    );
    for (place, name) in names.iter().enumerate() {
        let columns = legend_columns(panels.len());
        let x = LEFT + (place % columns) as f64 * 230.0;
        let y = TOP + (place / columns) as f64 * LEGEND_LINE;
        out.push_str(&format!(
            "<rect x=\"{x}\" y=\"{:.1}\" width=\"14\" height=\"4\" fill=\"{}\"/><text x=\"{}\" y=\"{y:.1}\" fill=\"#1b2127\">{}</text>\n",
            y - 7.0,
            color(place),
            x + 19.0,
            escaped(&shortened(name))
        ));
    }
    for (place, panel) in panels.iter().enumerate() {
        let left = LEFT + place as f64 * (PANEL_WIDTH + GAP);
        let area = Area { left, top, low, high, from_s: panel.from_s, to_s: panel.to_s };
        draw_panel(&mut out, &area, place, panel, &names);
    }
    out.push_str("</svg>\n");
    out
}

struct Area {
    left: f64,
    top: f64,
    low: f64,
    high: f64,
    from_s: f64,
    to_s: f64,
}

impl Area {
    fn x(&self, t_s: f64) -> f64 {
        self.left + (t_s - self.from_s) / (self.to_s - self.from_s).max(1e-9) * PANEL_WIDTH
    }

    fn y(&self, value: f64) -> f64 {
        self.top + HEIGHT - (value - self.low) / (self.high - self.low) * HEIGHT
    }

    fn foot(&self) -> f64 {
        self.top + HEIGHT
    }
}

fn draw_panel(out: &mut String, area: &Area, place: usize, panel: &PlotPanel, names: &[&str]) {
    let (left, right, foot) = (area.left, area.left + PANEL_WIDTH, area.foot());
    out.push_str(&format!(
        "<clipPath id=\"panel{place}\"><rect x=\"{left}\" y=\"{:.1}\" width=\"{PANEL_WIDTH}\" height=\"{:.1}\"/></clipPath>\n",
        area.top - 2.0,
        HEIGHT + 4.0
    ));
    for tick in ticks(area.high, 5).into_iter().filter(|tick| *tick >= area.low && *tick <= area.high) {
        let y = area.y(tick);
        out.push_str(&format!(
            "<line x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#e9ecee\"/>\n"
        ));
        if place == 0 {
            out.push_str(&format!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                left - 8.0,
                y + 4.0,
                short(tick)
            ));
        }
    }
    for tick in time_ticks(panel.from_s, panel.to_s) {
        out.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            area.x(tick),
            foot + 20.0,
            clock(tick)
        ));
    }
    out.push_str(&format!("<g clip-path=\"url(#panel{place})\">\n"));
    for line in &panel.lines {
        let color = color(names.iter().position(|name| *name == line.name).unwrap_or(0));
        draw_line(out, area, line, color);
    }
    out.push_str("</g>\n");
    out.push_str(&format!(
        "<line x1=\"{left}\" x2=\"{right}\" y1=\"{foot:.1}\" y2=\"{foot:.1}\" stroke=\"#5d6873\"/>\n"
    ));
}

fn draw_line(out: &mut String, area: &Area, line: &PlotLine, color: &str) {
    let apart = gap_length(&line.t_s);
    let mut path = String::new();
    let mut before: Option<f64> = None;
    let width = (PANEL_WIDTH / line.t_s.len().max(1) as f64).max(0.8);
    for (at, (t_s, value)) in line.t_s.iter().zip(&line.value).enumerate() {
        if !value.is_finite() {
            before = None;
            continue;
        }
        let joined = before.is_some_and(|before| t_s - before <= apart);
        path.push_str(&format!(
            "{}{:.1} {:.1}",
            if joined { 'L' } else { 'M' },
            area.x(*t_s),
            area.y(*value)
        ));
        before = Some(*t_s);
        if let (Some(low), Some(high)) = (line.low.get(at), line.high.get(at)) {
            let (top, foot) = (area.y(*high), area.y(*low));
            out.push_str(&format!(
                "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{color}\" fill-opacity=\"0.22\"/>\n",
                area.x(*t_s) - width / 2.0,
                (foot - top).max(0.5)
            ));
        }
    }
    out.push_str(&format!("<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.4\" stroke-linejoin=\"round\"/>\n"));
}

fn names(panels: &[PlotPanel]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for line in panels.iter().flat_map(|panel| &panel.lines) {
        if !names.contains(&line.name.as_str()) {
            names.push(&line.name);
        }
    }
    names
}

/// The scale begins at zero, unless values lie below it or far above.
fn extent(panels: &[PlotPanel]) -> (f64, f64) {
    let lines = || panels.iter().flat_map(|panel| &panel.lines);
    let all = lines().flat_map(|line| line.value.iter().chain(&line.low).chain(&line.high));
    let (low, high) = all
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    if low > high {
        return (0.0, 1.0);
    }
    let low = if low < 0.0 { low } else { 0.0 };
    let high = if high > low { high } else { low + 1.0 };
    (low, high + (high - low) * 0.05)
}

fn legend_columns(panels: usize) -> usize {
    (2 * panels).max(2)
}

fn color(place: usize) -> &'static str {
    COLORS[place % COLORS.len()]
}

fn shortened(name: &str) -> String {
    const CHARACTERS_MAX: usize = 32;
    match name.chars().count() > CHARACTERS_MAX {
        true => format!("{}…", name.chars().take(CHARACTERS_MAX - 1).collect::<String>()),
        false => name.to_string(),
    }
}

fn gap_length(t_s: &[f64]) -> f64 {
    let mut steps: Vec<f64> = t_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if steps.is_empty() {
        return f64::INFINITY;
    }
    let middle = steps.len() / 2;
    *steps.select_nth_unstable_by(middle, f64::total_cmp).1 * GAP_STEPS
}

fn time_ticks(from_s: f64, to_s: f64) -> Vec<f64> {
    const TICKS: f64 = 5.0;
    let rough = (to_s - from_s) / TICKS;
    let step =
        CLOCK_STEPS.into_iter().find(|step| *step >= rough).unwrap_or(86_400.0 * (rough / 86_400.0).ceil());
    let first = (from_s / step).ceil();
    let count = ((to_s / step).floor() - first).max(-1.0) as i64 + 1;
    (0..count).map(|at| (first + at as f64) * step).collect()
}

/// As the page has it: minutes and seconds, with hours from one on.
fn clock(seconds: f64) -> String {
    let whole = seconds.abs().floor();
    let tenths = ((seconds.abs() - whole) * 10.0).round() as u64;
    let whole = whole as u64;
    let sign = if seconds < 0.0 { "−" } else { "" };
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    let fraction = if tenths > 0 { format!(".{tenths}") } else { String::new() };
    match hours {
        0 => format!("{sign}{minutes}:{rest:02}{fraction}"),
        _ => format!("{sign}{hours}:{minutes:02}:{rest:02}{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(from_s: f64, value: &[f64]) -> PlotPanel {
        let t_s = (0..value.len()).map(|at| from_s + at as f64).collect();
        let line = PlotLine { name: "a<b".into(), t_s, value: value.to_vec(), ..PlotLine::default() };
        PlotPanel { from_s, to_s: from_s + value.len() as f64, lines: vec![line] }
    }

    #[test]
    fn windows_lie_side_by_side_on_one_scale_and_a_gap_stays_one() {
        let drawn =
            plot("t & t", "1/s", &[panel(0.0, &[1.0, 2.0, f64::NAN, 4.0]), panel(600.0, &[10.0, 5.0])]);
        assert_eq!(drawn.matches("<path").count(), 2);
        assert_eq!(drawn.matches("a&lt;b").count(), 1, "one legend for both");
        let first = drawn.split("<path d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(first.matches('M').count(), 2, "{first}");
        let height_of = |path: &str| path.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        let second = drawn.split("<path d=\"").nth(2).unwrap().split('"').next().unwrap();
        assert!(height_of(first) > height_of(second), "4 lies below 5 on the scale of both");
        assert!(drawn.contains("t &amp; t") && drawn.contains(">10:00<"));
    }

    #[test]
    fn nothing_to_draw_is_an_empty_picture() {
        let drawn = plot("", "", &[PlotPanel { from_s: 0.0, to_s: 1.0, lines: Vec::new() }]);
        assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n"));
    }

    #[test]
    fn times_read_as_a_clock() {
        assert_eq!([0.0, 61.0, 3_661.0, 0.5].map(clock), ["0:00", "1:01", "1:01:01", "0:00.5"]);
        assert_eq!(time_ticks(600.0, 1_200.0), [600.0, 720.0, 840.0, 960.0, 1_080.0, 1_200.0]);
    }
}
