//! Series over windows as a picture: a row of panels a unit, windows side by side, all of a row on one scale.

mod axes;
#[cfg(test)]
mod tests;

use self::axes::{clocks, extent, gap_length, tick_texts, time_ticks, value_ticks};
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
const TIME_TICK_APART: f64 = 92.0;
const VALUE_TICK_APART: f64 = 48.0;

/// What has one unit: its panels share a scale.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotRow {
    /// The axis's title.
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

/// Returns how many pixels wide each of this many windows is drawn.
pub fn plot_panel_width(windows: usize) -> f64 {
    let windows = windows.max(1) as f64;
    ((WIDTH - (windows - 1.0) * GAP) / windows).floor().max(PANEL_WIDTH_MIN)
}

/// Returns a picture of rows of panels, each with its legend.
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
                "<text x=\"{:.1}\" y=\"{:.1}\" font-weight=\"600\" fill=\"#1b2127\">{}</text>\n",
                LEFT + place as f64 * (panel_width + GAP),
                top + 12.0,
                clocks(&[window.from_s, window.to_s]).join(" – ")
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

/// Names next to their colours, in columns as wide as the longest needs. Gives where what is below begins.
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
    for (tick, text) in marks.values.iter().zip(tick_texts(marks.values)) {
        let y = area.y(*tick);
        out.push_str(&format!(
            "<line x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#e4e8ea\"/>\n"
        ));
        if marks.has_values {
            out.push_str(&format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>\n",
                left - 8.0,
                y + 4.0,
            ));
        }
    }
    let times = time_ticks(panel.from_s, panel.to_s, area.width / TIME_TICK_APART);
    for (tick, text) in times.iter().zip(clocks(&times)) {
        let x = area.x(*tick);
        out.push_str(&format!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{foot:.1}\" stroke=\"#eff1f2\"/>\n",
            area.top
        ));
        if marks.has_times {
            // Next to another panel it may stand out of its own by less than the gap.
            let half_width = (text.len() as f64 * LETTER - GAP) / 2.0 + 5.0;
            out.push_str(&format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>\n",
                x.clamp(left + half_width, (right - half_width).max(left + half_width)),
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

fn color(place: usize) -> &'static str {
    COLORS[place % COLORS.len()]
}

fn stroke(place: usize) -> String {
    let dash = DASHES[place / COLORS.len() % DASHES.len()];
    let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    format!("stroke=\"{}\"{dash}", color(place))
}

/// At most this many letters: the middle goes, since names of one kind begin alike and end differently.
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
