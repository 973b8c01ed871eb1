//! Series over windows as a picture: a row of panels a unit, windows side by side, all of a row on one scale.

use super::escaped;

/// A single window is as wide as all this; several share it, down to a width that can still be read.
const WIDTH: f64 = 940.0;
const PANEL_WIDTH_MIN: f64 = 300.0;
const HEIGHT: f64 = 300.0;
/// Where there are several rows.
const ROW_HEIGHT: f64 = 190.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const HEAD: f64 = 58.0;
const WINDOW_LINE: f64 = 20.0;
const FOOT: f64 = 48.0;
const LEGEND_LINE: f64 = 18.0;
/// Between rows, and between panels.
const ROW_GAP: f64 = 22.0;
const GAP: f64 = 18.0;
/// About as wide as a letter of the legend is, and of the title.
const LETTER: f64 = 6.4;
const TITLE_LETTER: f64 = 8.4;
/// A swatch with the room around it.
const SWATCH: f64 = 40.0;
const COLORS: [&str; 8] =
    ["#0b6bb0", "#d2620a", "#0a8567", "#a2559c", "#5a6570", "#3aa3dd", "#a88900", "#8c3b2a"];
/// Once all colours are used.
const DASHES: [&str; 3] = ["", "5 3", "2 2"];
/// Neighbours that are so many times as far apart as most are not joined.
const GAP_STEPS: f64 = 3.5;
const TIME_TICK_APART: f64 = 92.0;
const VALUE_TICK_APART: f64 = 48.0;
/// Steps of a time axis, in seconds.
const CLOCK_STEPS: [f64; 20] = [
    0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    14_400.0, 21_600.0, 43_200.0, 86_400.0,
];

/// What has one unit: its panels share a scale.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotRow {
    /// In words, as the axis is called.
    pub unit: String,
    /// Readings that only ever grow say nothing on a scale from zero.
    pub from_zero: bool,
    /// One a window, in the windows' order.
    pub panels: Vec<PlotPanel>,
}

/// One window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotPanel {
    /// Seconds of the run.
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

/// How many pixels wide each of so many windows is drawn.
pub fn plot_panel_width(windows: usize) -> f64 {
    let windows = windows.max(1) as f64;
    ((WIDTH - (windows - 1.0) * GAP) / windows).floor().max(PANEL_WIDTH_MIN)
}

/// A picture of rows of panels, with a legend each.
pub fn plot(title: &str, subtitle: &str, rows: &[PlotRow]) -> String {
    let windows = rows.first().map_or(&[][..], |row| &row.panels);
    let panel_width = plot_panel_width(windows.len());
    let inner = windows.len().max(1) as f64 * (panel_width + GAP) - GAP;
    let row_height = if rows.len() > 1 { ROW_HEIGHT } else { HEIGHT };
    let mut out = String::new();
    let mut top = HEAD;
    if windows.len() > 1 {
        for (place, window) in windows.iter().enumerate() {
            out.push_str(&format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" font-weight=\"600\" fill=\"#1b2127\">{} – {}</text>\n",
                LEFT + place as f64 * (panel_width + GAP),
                top + 12.0,
                clock(window.from_s),
                clock(window.to_s)
            ));
        }
        top += WINDOW_LINE;
    }
    let mut first_color = 0;
    for (row_number, row) in rows.iter().enumerate() {
        let names = names(&row.panels);
        top = legend(&mut out, top, inner, &names, first_color);
        let (low, high) = extent(row);
        let values = value_ticks(low, high, (row_height / VALUE_TICK_APART).round() as usize);
        let is_last = row_number + 1 == rows.len();
        out.push_str(&format!(
            "<text transform=\"translate(18 {:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#1b2127\">{}</text>\n",
            top + row_height / 2.0,
            escaped(&fitting(&row.unit, (row_height + ROW_GAP) / LETTER))
        ));
        for (column, panel) in row.panels.iter().enumerate() {
            let area = Area {
                left: LEFT + column as f64 * (panel_width + GAP),
                top,
                width: panel_width,
                height: row_height,
                low,
                high,
                from_s: panel.from_s,
                to_s: panel.to_s,
            };
            let id = format!("panel-{row_number}-{column}");
            let marks = Marks { values: &values, has_values: column == 0, has_times: is_last };
            draw_panel(&mut out, &area, &id, &marks, panel, &names, first_color);
        }
        first_color += names.len();
        top += row_height + if is_last { 0.0 } else { ROW_GAP };
    }
    out.push_str(&format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
        LEFT + inner / 2.0,
        top + 40.0,
        match windows.iter().any(|window| window.to_s >= 3600.0) {
            true => "time of the run, hours:minutes:seconds",
            false => "time of the run, minutes:seconds",
        }
    ));
    let (width, height) = (LEFT + inner + RIGHT, top + FOOT);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#5d6873\">\n\
         <title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fdfdfc\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"#1b2127\">{1}</text>\n\
         <text x=\"{LEFT}\" y=\"42\">{2}</text>\n{out}</svg>\n",
        escaped(title),
        escaped(&fitting(title, inner / TITLE_LETTER)),
        escaped(&fitting(subtitle, inner / LETTER))
    )
}

/// Names beside their colours, in columns as wide as the longest needs. Gives where what is below begins.
fn legend(out: &mut String, top: f64, inner: f64, names: &[&str], first_color: usize) -> f64 {
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64;
    let column = (longest * LETTER + SWATCH).min(inner);
    let columns = (inner / column).floor().max(1.0) as usize;
    for (place, name) in names.iter().enumerate() {
        let x = LEFT + (place % columns) as f64 * column;
        let y = top + 12.0 + (place / columns) as f64 * LEGEND_LINE;
        let stroke = stroke(first_color + place);
        out.push_str(&format!(
            "<line x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" {stroke} stroke-width=\"3\"/><text x=\"{:.1}\" y=\"{y:.1}\" fill=\"#1b2127\">{}</text>\n",
            x + 18.0,
            y - 4.0,
            y - 4.0,
            x + 23.0,
            escaped(&fitting(name, (column - SWATCH) / LETTER + 1.0))
        ));
    }
    top + names.len().div_ceil(columns) as f64 * LEGEND_LINE + 8.0
}

struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    low: f64,
    high: f64,
    from_s: f64,
    to_s: f64,
}

impl Area {
    fn x(&self, t_s: f64) -> f64 {
        self.left + (t_s - self.from_s) / (self.to_s - self.from_s).max(1e-9) * self.width
    }

    fn y(&self, value: f64) -> f64 {
        self.top + self.height - (value - self.low) / (self.high - self.low) * self.height
    }
}

/// What stands at a panel's axes: grid lines always, words where they are no repetition.
struct Marks<'t> {
    values: &'t [f64],
    has_values: bool,
    has_times: bool,
}

fn draw_panel(
    out: &mut String,
    area: &Area,
    id: &str,
    marks: &Marks<'_>,
    panel: &PlotPanel,
    names: &[&str],
    first_color: usize,
) {
    let (left, right, foot) = (area.left, area.left + area.width, area.top + area.height);
    out.push_str(&format!(
        "<g id=\"{id}\">\n<clipPath id=\"{id}-clip\"><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/></clipPath>\n",
        area.top - 2.0,
        area.width,
        area.height + 4.0
    ));
    for tick in marks.values {
        let y = area.y(*tick);
        out.push_str(&format!(
            "<line x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#e4e8ea\"/>\n"
        ));
        if marks.has_values {
            out.push_str(&format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                left - 8.0,
                y + 4.0,
                number(*tick, marks.values)
            ));
        }
    }
    for tick in time_ticks(panel.from_s, panel.to_s, area.width / TIME_TICK_APART) {
        let x = area.x(tick);
        out.push_str(&format!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{foot:.1}\" stroke=\"#eff1f2\"/>\n",
            area.top
        ));
        if marks.has_times {
            let words = clock(tick);
            // Beside another panel it may stand out of its own by less than the gap.
            let inside = (words.len() as f64 * LETTER - GAP) / 2.0 + 5.0;
            out.push_str(&format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{words}</text>\n",
                x.clamp(left + inside, (right - inside).max(left + inside)),
                foot + 18.0
            ));
        }
    }
    out.push_str(&format!("<g clip-path=\"url(#{id}-clip)\">\n"));
    for line in &panel.lines {
        let place = names.iter().position(|name| *name == line.name).unwrap_or(0);
        draw_line(out, area, line, first_color + place);
    }
    out.push_str("</g>\n");
    if panel.lines.iter().all(|line| !has_values_in(line, panel)) {
        out.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">nothing was read here</text>\n",
            (left + right) / 2.0,
            (area.top + foot) / 2.0
        ));
    }
    out.push_str(&format!(
        "<line x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{foot:.1}\" y2=\"{foot:.1}\" stroke=\"#5d6873\"/>\n</g>\n"
    ));
}

fn has_values_in(line: &PlotLine, panel: &PlotPanel) -> bool {
    let mut read = line.t_s.iter().zip(&line.value).filter(|(_, value)| value.is_finite());
    read.any(|(t_s, _)| (panel.from_s..=panel.to_s).contains(t_s))
}

fn draw_line(out: &mut String, area: &Area, line: &PlotLine, place: usize) {
    let apart = gap_length(&line.t_s);
    let (mut path, mut band) = (String::new(), String::new());
    let mut before: Option<f64> = None;
    let width = area.width / line.t_s.len().max(1) as f64;
    for (at, (t_s, value)) in line.t_s.iter().zip(&line.value).enumerate() {
        if !value.is_finite() {
            before = None;
            continue;
        }
        let joined = before.is_some_and(|before| t_s - before <= apart);
        let letter = if joined { 'L' } else { 'M' };
        path.push_str(&format!("{letter}{:.2} {:.2}", area.x(*t_s), area.y(*value)));
        before = Some(*t_s);
        if let (Some(low), Some(high)) = (line.low.get(at), line.high.get(at)) {
            let (top, foot) = (area.y(*high), area.y(*low));
            let (x, height) = (area.x(*t_s) - width / 2.0, (foot - top).max(0.5));
            band.push_str(&format!("M{x:.1} {top:.1}h{width:.2}v{height:.1}h-{width:.2}z"));
        }
    }
    let (color, stroke) = (color(place), stroke(place));
    if !band.is_empty() {
        out.push_str(&format!(
            "<path class=\"band\" d=\"{band}\" fill=\"{color}\" fill-opacity=\"0.22\"/>\n"
        ));
    }
    out.push_str(&format!(
        "<path class=\"line\" d=\"{path}\" fill=\"none\" {stroke} stroke-width=\"1.5\" stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n"
    ));
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

/// Of what is seen: of readings beside a window, for lines to go on to its edges, only what they make of the edges counts.
fn extent(row: &PlotRow) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for panel in &row.panels {
        for line in &panel.lines {
            for value in [panel.from_s, panel.to_s].into_iter().filter_map(|edge_s| at_edge(line, edge_s)) {
                (low, high) = (low.min(value), high.max(value));
            }
            for (at, t_s) in line.t_s.iter().enumerate() {
                if !(panel.from_s..=panel.to_s).contains(t_s) {
                    continue;
                }
                let of = [line.value.get(at), line.low.get(at), line.high.get(at)];
                for value in of.into_iter().flatten().filter(|value| value.is_finite()) {
                    (low, high) = (low.min(*value), high.max(*value));
                }
            }
        }
    }
    if low > high {
        return (0.0, 1.0);
    }
    if row.from_zero || low == high {
        (low, high) = (low.min(0.0), high.max(0.0));
    }
    if low == high {
        return (0.0, 1.0);
    }
    let room = (high - low) * 0.05;
    let below = if low < 0.0 { low - room } else { (low - room).max(0.0) };
    (if low < 0.0 || !row.from_zero { below } else { low }, high + room)
}

/// Where a line passes an edge.
fn at_edge(line: &PlotLine, edge_s: f64) -> Option<f64> {
    let after = line.t_s.partition_point(|t_s| *t_s <= edge_s);
    let before = after.checked_sub(1)?;
    let (t0, t1) = (*line.t_s.get(before)?, *line.t_s.get(after)?);
    let (v0, v1) = (*line.value.get(before)?, *line.value.get(after)?);
    let is_joined = t1 - t0 <= gap_length(&line.t_s);
    Some(v0 + (v1 - v0) * (edge_s - t0) / (t1 - t0)).filter(|value| is_joined && value.is_finite())
}

/// Round steps within the scale.
fn value_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let rough = (high - low) / count.max(1) as f64;
    if !rough.is_finite() || rough <= 0.0 {
        return vec![low];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0].into_iter().map(|times| times * power).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|at| at as f64 * step).collect()
}

/// As short as the ticks beside it allow: 1.5k, 20M, 0.002.
fn number(tick: f64, ticks: &[f64]) -> String {
    const DIGITS_MAX: usize = 12;
    let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).next().unwrap_or(tick.abs());
    let most = ticks.iter().fold(0.0f64, |most, tick| most.max(tick.abs()));
    let (factor, letter) = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]
        .into_iter()
        .find(|(factor, _)| most >= *factor)
        .unwrap_or((1.0, ""));
    let step = step / factor;
    let digits = (0..DIGITS_MAX)
        .find(|digits| {
            let scaled = step * 10f64.powi(*digits as i32);
            (scaled - scaled.round()).abs() < 1e-6 && scaled.round() > 0.0
        })
        .unwrap_or(DIGITS_MAX);
    if tick == 0.0 {
        return "0".to_string();
    }
    format!("{:.digits$}{letter}", tick / factor)
}

fn color(place: usize) -> &'static str {
    COLORS[place % COLORS.len()]
}

fn stroke(place: usize) -> String {
    let dash = DASHES[place / COLORS.len() % DASHES.len()];
    let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    format!("stroke=\"{}\"{dash}", color(place))
}

/// So many letters at most: the middle goes, since names of one kind begin alike and end differently.
fn fitting(text: &str, letters: f64) -> String {
    let most = letters.max(8.0) as usize;
    let count = text.chars().count();
    if count <= most {
        return text.to_string();
    }
    let ahead = (most - 1) / 2;
    let behind = most - 1 - ahead;
    let (first, last) =
        (text.chars().take(ahead).collect::<String>(), text.chars().skip(count - behind).collect::<String>());
    format!("{first}…{last}")
}

fn gap_length(t_s: &[f64]) -> f64 {
    let mut steps: Vec<f64> = t_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if steps.is_empty() {
        return f64::INFINITY;
    }
    let middle = steps.len() / 2;
    *steps.select_nth_unstable_by(middle, f64::total_cmp).1 * GAP_STEPS
}

fn time_ticks(from_s: f64, to_s: f64, count: f64) -> Vec<f64> {
    let rough = (to_s - from_s) / count.max(1.0);
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

    fn row(unit: &str, panels: Vec<PlotPanel>) -> PlotRow {
        PlotRow { unit: unit.into(), from_zero: true, panels }
    }

    fn paths(drawn: &str) -> Vec<&str> {
        drawn.split("class=\"line\" d=\"").skip(1).map(|after| after.split('"').next().unwrap()).collect()
    }

    #[test]
    fn windows_lie_side_by_side_on_one_scale_and_a_gap_stays_one() {
        let panels = vec![panel(0.0, &[1.0, 2.0, f64::NAN, 4.0]), panel(600.0, &[10.0, 5.0])];
        let drawn = plot("t & t", "run", &[row("per second", panels)]);
        let [first, second] = paths(&drawn)[..] else { panic!("{drawn}") };
        assert_eq!(drawn.matches("a&lt;b").count(), 1, "one legend for both");
        assert_eq!(first.matches('M').count(), 2, "{first}");
        let height_of = |path: &str| path.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        assert!(height_of(first) > height_of(second), "4 lies below 5 on the scale of both");
        assert!(drawn.contains("t &amp; t") && drawn.contains(">10:00 – 10:02<"), "{drawn}");
    }

    #[test]
    fn what_has_another_unit_has_a_scale_and_colours_of_its_own() {
        let rows =
            [row("per second", vec![panel(0.0, &[1e6, 2e6])]), row("ms", vec![panel(0.0, &[1.0, 2.0])])];
        let drawn = plot("t", "", &rows);
        let [first, second] = paths(&drawn)[..] else { panic!("{drawn}") };
        let heights = |path: &str| -> Vec<f64> {
            path.split(['M', 'L']).filter_map(|point| point.split(' ').nth(1)?.parse().ok()).collect()
        };
        let apart = |path: &str| heights(path)[0] - heights(path)[1];
        assert!((apart(first) - apart(second)).abs() < 0.02, "each fills its own panel: {first} {second}");
        assert!(drawn.contains(COLORS[0]) && drawn.contains(COLORS[1]));
        assert!(drawn.contains("panel-1-0") && drawn.contains(">per second<") && drawn.contains(">ms<"));
    }

    #[test]
    fn nothing_to_draw_is_an_empty_picture() {
        let empty = PlotPanel { from_s: 0.0, to_s: 1.0, lines: Vec::new() };
        for rows in [vec![], vec![row("", vec![empty])]] {
            let drawn = plot("", "", &rows);
            assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n"));
        }
    }

    #[test]
    fn a_scale_begins_at_zero_unless_that_says_nothing_and_only_what_is_shown_makes_it() {
        let values = |value: &[f64]| row("", vec![panel(0.0, value)]);
        assert_eq!(extent(&values(&[50.0, 100.0])), (0.0, 105.0));
        assert_eq!(extent(&values(&[-10.0, 10.0])), (-11.0, 11.0));
        assert_eq!(extent(&PlotRow { from_zero: false, ..values(&[1000.0, 1100.0]) }), (995.0, 1105.0));
        assert_eq!(extent(&values(&[0.0, 0.0])), (0.0, 1.0));
        assert_eq!(extent(&PlotRow { from_zero: false, ..values(&[1.0, 101.0]) }), (0.0, 106.0));
        let mut beside = values(&[1.0, 2.0, 900.0]);
        beside.panels[0].to_s = 1.5;
        assert_eq!(extent(&beside), (0.0, 451.0 * 1.05), "the line passes the edge at 451");
        beside.panels[0].to_s = 1.0;
        assert_eq!(extent(&beside), (0.0, 2.1));
    }

    #[test]
    fn numbers_at_an_axis_are_short_and_differ() {
        let of = |low, high| {
            let ticks = value_ticks(low, high, 4);
            ticks.iter().map(|tick| number(*tick, &ticks)).collect::<Vec<_>>()
        };
        assert_eq!(of(0.0, 105.0), ["0", "50", "100"]);
        assert_eq!(of(0.0, 0.00021), ["0", "0.0001", "0.0002"]);
        assert_eq!(of(-1.1, 1.1), ["-1", "0", "1"]);
        assert_eq!(of(10_000_000.0, 10_004_000.0).len(), 5);
        assert_eq!(of(10_000_000.0, 10_004_000.0)[1], "10.001M");
        assert_eq!(of(0.0, 2_100.0), ["0", "1k", "2k"]);
    }

    #[test]
    fn a_long_name_loses_its_middle() {
        assert_eq!(fitting("abcdefghijkl", 9.0), "abcd…ijkl");
        assert_eq!(fitting("abc", 9.0), "abc");
    }

    #[test]
    fn times_read_as_a_clock() {
        assert_eq!([0.0, 61.0, 3_661.0, 0.5].map(clock), ["0:00", "1:01", "1:01:01", "0:00.5"]);
        assert_eq!(time_ticks(600.0, 1_200.0, 5.0), [600.0, 720.0, 840.0, 960.0, 1_080.0, 1_200.0]);
    }
}
