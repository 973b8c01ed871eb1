//! Charts over the last minutes: one column per bucket of time, the newest at the right.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline, SparklineBar, Wrap};
use whyso_words::{NOTHING, nanoseconds, number, percent};

use crate::history::{Buckets, History};

/// Columns are buckets of at least a second, and of as many that all charts reach back about this far where there is room.
const STEP_NS: i64 = 1_000_000_000;
/// Steps of a chart's height that a bar is drawn in.
const STEPS: f64 = 10_000.0;
/// A chart narrower than this shows little.
const WIDTH_MIN: u16 = 24;
/// Height of one: the head, and the bars.
pub(super) const HEIGHT: u16 = 5;

const BUSY: [&str; 5] = ["user_ns", "nice_ns", "system_ns", "irq_ns", "softirq_ns"];
const NOT_BUSY: [&str; 3] = ["idle_ns", "iowait_ns", "steal_ns"];

/// What a chart shows.
struct Chart {
    title: &'static str,
    /// The text of the newest value, next to the title.
    now: String,
    values: Vec<Option<f64>>,
    /// Where the scale ends; `None`: at the highest value.
    full: Option<f64>,
    /// The highest value, as it is written.
    highest: fn(f64) -> String,
    color: Color,
    /// Why there is nothing.
    nothing: &'static str,
}

/// How many fit side by side.
pub(super) fn chart_count(width: u16) -> usize {
    usize::from(width / WIDTH_MIN).clamp(1, 5)
}

pub(super) fn draw(frame: &mut Frame, area: Rect, history: &History, end_ns: i64, color: bool) {
    let count = chart_count(area.width);
    let areas = Layout::horizontal(vec![Constraint::Ratio(1, count as u32); count]).spacing(2).split(area);
    let width = areas.iter().map(|area| area.width).min().unwrap_or(0);
    let buckets = Buckets { end_ns, step_ns: STEP_NS, count: usize::from(width) };
    let charts = [statements, response_time, running, cpu, row_locks];
    for (area, chart) in areas.iter().zip(charts) {
        draw_one(frame, *area, &chart(history, buckets), color);
    }
}

fn draw_one(frame: &mut Frame, area: Rect, chart: &Chart, color: bool) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let dim = Style::new().add_modifier(Modifier::DIM);
    let highest = chart.values.iter().flatten().copied().filter(|value| value.is_finite()).reduce(f64::max);
    let [head, bars, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(area);
    let title = Line::from(vec![Span::styled(chart.title, bold), Span::raw(" "), Span::raw(&chart.now)]);
    frame.render_widget(title, head);
    let Some(highest) = highest else {
        frame.render_widget(Paragraph::new(chart.nothing).style(dim).wrap(Wrap { trim: true }), bars);
        return;
    };
    let full = chart.full.unwrap_or(highest);
    let bar = |value: &Option<f64>| {
        let bar = value.filter(|_| full > 0.0).map(|value| (value.max(0.0) / full * STEPS) as u64);
        SparklineBar::from(match (value, bar) {
            (Some(_), None) => Some(0),
            (_, bar) => bar,
        })
    };
    let style = if color { Style::new().fg(chart.color) } else { Style::new() };
    let line = Sparkline::default()
        .data(chart.values.iter().map(bar).collect::<Vec<SparklineBar>>())
        .max(STEPS as u64)
        .absent_value_symbol("·")
        .absent_value_style(dim)
        .style(style);
    frame.render_widget(line, bars);
    let span_ns = chart.values.len() as i64 * STEP_NS;
    let foot_text = format!("−{}, highest {}", nanoseconds(span_ns as f64), (chart.highest)(highest));
    frame.render_widget(Line::styled(foot_text, dim), foot);
}

fn newest(values: &[Option<f64>]) -> Option<f64> {
    // The last bucket is still being filled by sources that are read a little later.
    values.iter().rev().take(3).flatten().next().copied()
}

fn newest_text(values: &[Option<f64>], write: impl Fn(f64) -> String) -> String {
    newest(values).map_or(NOTHING.to_string(), write)
}

/// Returns `of` each pair of values; `None` where either is not known.
fn both(one: &[Option<f64>], other: &[Option<f64>], of: impl Fn(f64, f64) -> f64) -> Vec<Option<f64>> {
    let pair = |(one, other): (&Option<f64>, &Option<f64>)| Some(of((*one)?, (*other)?));
    one.iter().zip(other).map(pair).map(|value| value.filter(|value| value.is_finite())).collect()
}

fn statements(history: &History, buckets: Buckets) -> Chart {
    let values = history.rates(&[("status", "Questions")], buckets);
    Chart {
        title: "Statements/s",
        now: newest_text(&values, number),
        values,
        full: None,
        highest: number,
        color: Color::Green,
        nothing: "the server does not answer",
    }
}

/// Mean response time of requests as the kernel saw them, else of statements as the server counted them.
fn response_time(history: &History, buckets: Buckets) -> Chart {
    let mean_time = |time: &[(&str, &str)], count: (&str, &str)| {
        let (time, count) = (history.rates(time, buckets), history.rates(&[count], buckets));
        // Where nothing was asked there is no response time, rather than a short one.
        both(&time, &count, |time, count| if count > 0.5 { time / count } else { f64::NAN })
    };
    let traced = [("trace", "request_ns"), ("trace", "transit_in_ns")];
    let (title, values) = if history.has_source("trace") {
        ("Response time", mean_time(&traced, ("trace", "requests")))
    } else {
        let digested = [("pfs_statements", "time_ns")];
        ("Statement time", mean_time(&digested, ("pfs_statements", "count")))
    };
    Chart {
        title,
        now: newest_text(&values, nanoseconds),
        values,
        full: None,
        highest: nanoseconds,
        color: Color::Cyan,
        nothing: "needs the tracer, or the statements of the Performance Schema",
    }
}

fn running(history: &History, buckets: Buckets) -> Chart {
    let values = history.levels(("status", "Threads_running"), buckets);
    let connected = history.levels(("status", "Threads_connected"), buckets);
    Chart {
        title: "Threads running",
        now: format!("{} of {}", newest_text(&values, number), newest_text(&connected, number)),
        values,
        full: None,
        highest: number,
        color: Color::Yellow,
        nothing: "the server does not answer",
    }
}

fn cpu(history: &History, buckets: Buckets) -> Chart {
    let sum = |names: &[&'static str]| {
        let named: Vec<(&str, &str)> = names.iter().map(|name| ("cpu", *name)).collect();
        history.rates(&named, buckets)
    };
    let (busy, not_busy, steal) = (sum(&BUSY), sum(&NOT_BUSY), sum(&["steal_ns"]));
    let share = |busy: f64, not_busy: f64| busy / (busy + not_busy);
    let values = both(&busy, &not_busy, share);
    let all = both(&busy, &not_busy, |busy, not_busy| busy + not_busy);
    let stolen = newest(&both(&steal, &all, |steal, all| steal / all)).filter(|share| *share > 0.0);
    let steal_text = stolen.map_or(String::new(), |share| format!(", steal {}", percent(share)));
    Chart {
        title: "CPU busy",
        now: format!("{}{steal_text}", newest_text(&values, percent)),
        values,
        full: Some(1.0),
        highest: percent,
        color: Color::Magenta,
        nothing: "this machine's CPUs can't be read",
    }
}

fn row_locks(history: &History, buckets: Buckets) -> Chart {
    let values = history.levels(("lock_waits", "waiting"), buckets);
    Chart {
        title: "Waiting for locks",
        now: newest_text(&values, number),
        values,
        full: None,
        highest: number,
        color: Color::Red,
        nothing: "this server does not report who waits",
    }
}
