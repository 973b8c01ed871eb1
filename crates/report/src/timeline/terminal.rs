//! Threads over time in the terminal: one line per thread, or a few lines per role, and one column per stretch of time.

use whyso_profile::{FunctionName, SingleWait};
use whyso_series::is_idle;
use whyso_words::{count, number, percent, seconds, whole};

use super::letters::{letter, painted};
use super::{TimelineRow, TimelineView};
use crate::axis::Axis;
use crate::text::clean;
use crate::text::layout::aligned_with_words;

/// Characters before the columns.
const LABEL: usize = 26;
const COLUMNS_MIN: usize = 20;
/// Lines that a role with several threads has.
const ROLE_LINES: usize = 5;
/// From the begin of one time under the columns to the next.
const TICK: usize = 14;
/// States with a smaller share of all time are not in the legend.
const LEGEND_SHARE_MIN: f64 = 0.0005;
/// Longest name of a function, in characters.
const FUNCTION_MAX: usize = 44;

/// Returns how many columns fit into a line of `width` characters.
pub fn timeline_columns(width: usize) -> usize {
    width.saturating_sub(LABEL).max(COLUMNS_MIN)
}

/// Returns the lines with their legend, and the waits beneath. Without colours the letters show the same.
pub fn timeline(view: &TimelineView<'_>, colors: bool) -> String {
    let mut out = heading(view);
    out.push_str("\n\n");
    out.push_str(&levels(view));
    let mut role = None;
    let mut sums = vec![0.0; view.timeline.states.len()];
    for row in view.rows {
        if row.tid.is_some() && role != Some(&row.role) {
            let threads = view.rows.iter().filter(|other| other.role == row.role).count();
            out.push_str(&format!("{}, {}\n", row.role, count(threads as u64, "thread")));
            role = Some(&row.role);
        }
        let cells = view.timeline.summed(&row.threads);
        for cell in &cells {
            sums.iter_mut().zip(cell).for_each(|(sum, ms)| *sum += ms);
        }
        let lines = if row.threads.len() > 1 { stacked(view, &cells) } else { vec![most(view, &cells)] };
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label(row) } else { String::new() };
            let line = format!("{label:<LABEL$}{}", drawn(view, line, colors));
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out.push_str(&times(view));
    out.push_str(&legend(view, &sums, colors));
    if !view.waits.is_empty() {
        out.push_str(&waits(view));
    }
    out
}

fn heading(view: &TimelineView<'_>) -> String {
    let edges = &view.timeline.edges_ns;
    let (begin, end) = (edges.first().copied().unwrap_or(0), edges.last().copied().unwrap_or(0));
    let column_s = (end - begin) as f64 / 1e9 / view.timeline.buckets().max(1) as f64;
    let a_row = if view.rows.iter().any(|row| row.tid.is_some()) {
        "A line is a thread, a letter the state that took most of its time, small where that is less than half."
    } else {
        "A role's lines are its threads' time by state, from the foot up; a single thread has one line, of the state that took most."
    };
    let mut text = format!(
        "Threads of the server over time, from {} to {} of the run, {} per column. {a_row}",
        clock(view, begin, column_s),
        clock(view, end, column_s),
        seconds(column_s),
    );
    if view.snapshot_interval_s > column_s * 1.5 {
        text.push_str(&format!(
            " Their snapshots are {} apart: nothing is known of when between them.",
            seconds(view.snapshot_interval_s)
        ));
    }
    text
}

/// Where levels begin to be measured.
fn levels(view: &TimelineView<'_>) -> String {
    let axis = Axis::of(view.run);
    let mut line: Vec<char> = vec![' '; view.timeline.buckets()];
    let mut free_from = 0;
    for level in &view.run.levels {
        let Some(column) = column_of(view, level.window.begin_ns) else { continue };
        let text = format!("|{}", axis.number(level));
        if column < free_from || column + text.len() > line.len() {
            continue;
        }
        for (place, letter) in text.chars().enumerate() {
            line[column + place] = letter;
        }
        free_from = column + text.len() + 1;
    }
    if free_from == 0 {
        return String::new();
    }
    let line: String = line.into_iter().collect();
    format!("{:<LABEL$}{}\n", format!("{} from", axis.head()), line.trim_end())
}

fn column_of(view: &TimelineView<'_>, t_ns: i64) -> Option<usize> {
    let edges = &view.timeline.edges_ns;
    let column = edges.partition_point(|edge| *edge <= t_ns).checked_sub(1)?;
    (column < view.timeline.buckets()).then_some(column)
}

fn label(row: &TimelineRow) -> String {
    let text = match row.tid {
        Some(tid) => format!("{tid:>8} {}", clean(&row.name)),
        None => format!("{} × {}", row.role, whole(row.threads.len() as u64)),
    };
    text.chars().take(LABEL - 1).collect()
}

/// A cell of a line: the state, by its place, and its letter; `None` where no thread was there.
type Cell = Option<(usize, char)>;

/// The state with most time of each column.
fn most(view: &TimelineView<'_>, cells: &[Vec<f64>]) -> Vec<Cell> {
    let cell_of = |cell: &Vec<f64>| {
        let all: f64 = cell.iter().sum();
        let (place, ms) =
            cell.iter().copied().enumerate().reduce(|best, one| if one.1 > best.1 { one } else { best })?;
        (ms > 0.0).then(|| (place, letter(&view.timeline.states[place], ms / all)))
    };
    cells.iter().map(cell_of).collect()
}

/// Lines from the top, over which each column's states stand on each other by their shares, idle ones on top.
fn stacked(view: &TimelineView<'_>, cells: &[Vec<f64>]) -> Vec<Vec<Cell>> {
    let mut lines = vec![vec![None; cells.len()]; ROLE_LINES];
    for (column, cell) in cells.iter().enumerate() {
        let all: f64 = cell.iter().sum();
        if all <= 0.0 {
            continue;
        }
        let wanted: Vec<f64> = cell.iter().map(|ms| ms / all * ROLE_LINES as f64).collect();
        let mut heights: Vec<usize> = wanted.iter().map(|lines| *lines as usize).collect();
        // The lines that are left go to those that lack most of one.
        let mut places: Vec<usize> = (0..cell.len()).collect();
        places.sort_by(|a, b| (wanted[*b].fract()).total_cmp(&wanted[*a].fract()));
        let left = ROLE_LINES - heights.iter().sum::<usize>().min(ROLE_LINES);
        places.iter().take(left).for_each(|place| heights[*place] += 1);
        let order = (0..cell.len()).filter(|place| !is_idle(&view.timeline.states[*place]));
        let idle = (0..cell.len()).filter(|place| is_idle(&view.timeline.states[*place]));
        let foot_up = order.chain(idle).flat_map(|place| std::iter::repeat_n(place, heights[place]));
        for (line, place) in lines.iter_mut().rev().zip(foot_up) {
            line[column] = Some((place, letter(&view.timeline.states[place], 1.0)));
        }
    }
    lines
}

fn drawn(view: &TimelineView<'_>, letters: &[Cell], colors: bool) -> String {
    let text = |cells: &[Cell]| -> String {
        cells.iter().map(|cell| cell.map_or(' ', |(_, letter)| letter)).collect()
    };
    if !colors {
        return text(letters);
    }
    // Neighbours in one state share their escape sequences.
    let alike = letters.chunk_by(|a, b| a.map(|cell| cell.0) == b.map(|cell| cell.0));
    let run = |run: &[Cell]| match run.first() {
        Some(Some((state, _))) => painted(&text(run), &view.timeline.states[*state]),
        _ => text(run),
    };
    alike.map(run).collect()
}

/// The time at which every few columns begin.
fn times(view: &TimelineView<'_>) -> String {
    let edges = &view.timeline.edges_ns;
    let column_s = edges.get(..2).map_or(1.0, |edges| (edges[1] - edges[0]) as f64 / 1e9);
    let mut line = " ".repeat(LABEL);
    for edge in edges.iter().take(view.timeline.buckets()).step_by(TICK) {
        line.push_str(&format!("{:<TICK$}", format!("'{}", clock(view, *edge, column_s))));
    }
    format!("{}\n", line.trim_end())
}

/// Returns minutes and seconds since the load began, with decimals where a column is short.
fn clock(view: &TimelineView<'_>, t_ns: i64, column_s: f64) -> String {
    whyso_words::clock((t_ns - view.origin_ns) as f64 / 1e9, column_s)
}

fn legend(view: &TimelineView<'_>, sums: &[f64], colors: bool) -> String {
    let all: f64 = sums.iter().sum();
    let mut entries: Vec<(usize, f64)> = sums.iter().map(|sum| sum / all).enumerate().collect();
    entries.retain(|(_, share)| *share >= LEGEND_SHARE_MIN);
    entries.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut out = String::from("\n");
    let mut used = 0;
    let width = LABEL + view.timeline.buckets();
    for (place, share) in entries {
        let state = &view.timeline.states[place];
        let sign = letter(state, 1.0).to_string();
        let text = format!(" {} {}", state.replace('_', " "), percent(share));
        let length = sign.len() + text.chars().count();
        if used > 0 && used + 3 + length > width {
            out.push('\n');
            used = 0;
        }
        if used > 0 {
            out.push_str("   ");
            used += 3;
        }
        out.push_str(&if colors { painted(&sign, state) } else { sign });
        out.push_str(&text);
        used += length;
    }
    out.push('\n');
    out
}

fn waits(view: &TimelineView<'_>) -> String {
    let head = ["ended at", "thread", "state", "ms", "waited for", "in", "ended by", "in"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    let function = |function: &Option<FunctionName>| {
        let name = function.as_ref().map_or("?", |function| function.name.as_str());
        clean(name).chars().take(FUNCTION_MAX).collect::<String>()
    };
    for wait in view.waits {
        let SingleWait { waker_tid, waker_role, .. } = wait;
        let by = match (waker_tid, waker_role.as_str()) {
            (0, _) => "an interrupt, or not known".to_string(),
            (tid, "") => format!("{tid}, not of the server"),
            (tid, role) => format!("{tid} {role}"),
        };
        rows.push(vec![
            clock(view, wait.end_ns, 0.0),
            wait.tid.to_string(),
            wait.state.replace('_', " "),
            number(wait.length_ns as f64 / 1e6),
            wait.class.as_deref().map_or("<no class>".to_string(), |class| class.replace('_', " ")),
            function(&wait.waited_in),
            by,
            function(&wait.ended_in),
        ]);
    }
    let count = match view.waits.len() {
        1 => "The longest wait".to_string(),
        count => format!("The {count} longest waits"),
    };
    let of = view.waits_of;
    format!(
        "\n{count} of {of} among those that were chosen, and who ended them:\n{}",
        aligned_with_words(&rows, &[2, 4, 5, 6, 7])
    )
}
