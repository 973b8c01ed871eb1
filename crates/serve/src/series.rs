//! Series over a window, as a chart of so many pixels draws them: single readings where there is room, else an envelope of every pixel.

use std::thread;

use serde::{Deserialize, Serialize};
use whyso_record::data::{Kind, SeriesId};
use whyso_record::run::Window;
use whyso_report::Column;
use whyso_series::{
    Envelope, Grid, Points, envelope, gauge_on_grid, per_transaction, rate_on_grid, rates, sum,
};

use crate::error::{Answer, Refused};
use crate::open::{Found, Opened};

/// Series of one request.
const SERIES_MAX: usize = 400;
/// A request reads with so many threads at most, each of at least so many series.
const THREADS_MAX: usize = 4;
const SERIES_A_THREAD_MIN: usize = 4;
const PIXELS_MIN: usize = 16;
const PIXELS_MAX: usize = 4096;
/// Readings a pixel, up to which each is drawn by itself.
const READINGS_A_PIXEL: f64 = 1.5;
/// By so many buckets series are ranked.
const RANKED_BY: usize = 24;
/// A window is read with so many readings more on either side, so that lines go on to the edges.
const READINGS_BESIDE: f64 = 3.0;

/// What a counter is shown as.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Growth a second.
    #[default]
    Rate,
    /// As the source gives it.
    Raw,
    /// Growth over the transactions that ended in the meantime.
    PerTransaction,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) numbers: Vec<u32>,
    pub(crate) window: Window,
    pub(crate) pixels: usize,
    pub(crate) mode: Mode,
    /// Of more series, those with the most to say; 0: all.
    pub(crate) top: usize,
    /// One line, of the sum of all.
    pub(crate) is_sum: bool,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// `None`: a sum.
    pub(crate) number: Option<u32>,
    /// When each value counts.
    pub(crate) t_ns: Vec<i64>,
    /// Of an envelope, the median.
    pub(crate) value: Vec<f64>,
    pub(crate) band: Option<Band>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Band {
    pub(crate) min: Vec<f64>,
    pub(crate) q1: Vec<f64>,
    pub(crate) q3: Vec<f64>,
    pub(crate) max: Vec<f64>,
}

/// The lines of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lines {
    pub(crate) lines: Vec<Line>,
    /// How many series had less to say and are left out.
    pub(crate) left: usize,
}

/// A line's head, see [`crate::encode`]: its columns are times in seconds, values and, with a band, its four columns.
#[derive(Serialize)]
pub(crate) struct LineHead {
    pub(crate) number: Option<u32>,
    pub(crate) count: usize,
    pub(crate) band: bool,
}

impl Wanted {
    fn check(&self) -> Answer<()> {
        if self.numbers.is_empty() || self.numbers.len() > SERIES_MAX {
            return Err(Refused::bad(format!("name 1 to {SERIES_MAX} series by their numbers")));
        }
        if !(PIXELS_MIN..=PIXELS_MAX).contains(&self.pixels) {
            return Err(Refused::bad(format!("px must be {PIXELS_MIN} to {PIXELS_MAX}")));
        }
        Ok(())
    }
}

/// What a chart draws.
///
/// # Errors
/// A series is not known, too many are named, or the files can't be read.
pub(crate) fn lines(opened: &Opened, wanted: &Wanted) -> Answer<Lines> {
    wanted.check()?;
    let mut found = Vec::new();
    for number in &wanted.numbers {
        found.push((*number, opened.find(*number)?));
    }
    let all = found.len();
    if wanted.top > 0 && all > wanted.top && !wanted.is_sum {
        found = heaviest(opened, found, wanted)?;
    }
    let left = all - found.len();
    let lines =
        if wanted.is_sum { vec![summed(opened, &found, wanted)?] } else { each(opened, &found, wanted)? };
    Ok(Lines { lines, left })
}

/// Each by itself, by several threads where there are many: a day of twenty series would else take one of them too long.
fn each(opened: &Opened, found: &[(u32, Found<'_>)], wanted: &Wanted) -> Answer<Vec<Line>> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let threads = found.len().div_ceil(SERIES_A_THREAD_MIN).min(cpus).clamp(1, THREADS_MAX);
    let of = &|part: &[(u32, Found<'_>)]| -> Answer<Vec<Line>> {
        part.iter()
            .map(|(number, one)| Ok(Line { number: Some(*number), ..line(opened, one, wanted)? }))
            .collect()
    };
    if threads == 1 {
        return of(found);
    }
    thread::scope(|scope| {
        let parts: Vec<_> =
            found.chunks(found.len().div_ceil(threads)).map(|part| scope.spawn(move || of(part))).collect();
        let mut lines = Vec::new();
        for part in parts {
            lines.extend(part.join().unwrap_or_else(|_| Err(Refused::damaged()))?);
        }
        Ok(lines)
    })
}

/// Those with the most to say: by the mean of what is drawn, without its sign.
fn heaviest<'o>(
    opened: &Opened,
    found: Vec<(u32, Found<'o>)>,
    wanted: &Wanted,
) -> Answer<Vec<(u32, Found<'o>)>> {
    let rough = Wanted { pixels: RANKED_BY, ..wanted.clone() };
    let mut ranked = Vec::new();
    let drawn = each(opened, &found, &Wanted { mode: Mode::Rate, ..rough })?;
    for ((number, one), drawn) in found.into_iter().zip(drawn) {
        let seen = drawn.value.iter().filter(|value| value.is_finite());
        let (total, count) =
            seen.fold((0.0, 0.0), |(total, count), value| (total + value.abs(), count + 1.0));
        ranked.push((if count > 0.0 { total / count } else { -1.0 }, number, one));
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(ranked.into_iter().take(wanted.top).map(|(_, number, one)| (number, one)).collect())
}

fn line(opened: &Opened, found: &Found<'_>, wanted: &Wanted) -> Answer<Line> {
    let is_counter = found.key().kind == Kind::Counter;
    if is_counter && wanted.mode == Mode::PerTransaction {
        let grid = grid(wanted);
        let value = each_transaction(opened, &on_grid(opened, found, &grid, wanted.mode)?, &grid)?;
        return Ok(Line { t_ns: grid.t_ns(), value, ..Line::default() });
    }
    match found {
        Found::Recorded(id, _) => recorded(opened, *id, is_counter, wanted),
        Found::Made(_, column) => Ok(made(column, wanted)),
    }
}

fn recorded(opened: &Opened, id: SeriesId, is_counter: bool, wanted: &Wanted) -> Answer<Line> {
    let recording = &opened.recording;
    let Some(info) = recording.info(id) else { return Ok(Line::default()) };
    let Window { begin_ns, end_ns } = wanted.window;
    let length_ns = (info.last_ns - info.first_ns).max(1) as f64;
    let step_ns = length_ns / info.samples.max(2).saturating_sub(1) as f64;
    let readings = (end_ns.min(info.last_ns) - begin_ns.max(info.first_ns)) as f64 / step_ns;
    let is_raw = wanted.mode == Mode::Raw;
    if readings > wanted.pixels as f64 * READINGS_A_PIXEL {
        let envelope = match is_raw {
            true => recording.envelope_of_values(id, wanted.window, wanted.pixels)?,
            false => recording.envelope(id, wanted.window, wanted.pixels)?,
        };
        return Ok(of_envelope(envelope, wanted.window));
    }
    let beside_ns = (step_ns * READINGS_BESIDE) as i64;
    let wider =
        Window { begin_ns: begin_ns.saturating_sub(beside_ns), end_ns: end_ns.saturating_add(beside_ns) };
    let samples = recording.samples(id, Some(wider))?;
    let points = match is_counter && !is_raw {
        true => {
            let counted = samples.counter_points();
            rates(&counted.t_ns, &counted.value)
        }
        false => samples.points(),
    };
    Ok(Line { t_ns: points.t_ns, value: points.value, ..Line::default() })
}

fn made(column: &Column, wanted: &Wanted) -> Line {
    let Window { begin_ns, end_ns } = wanted.window;
    let first = column.t_ns.partition_point(|t_ns| *t_ns < begin_ns);
    let last = column.t_ns.partition_point(|t_ns| *t_ns <= end_ns).max(first);
    if (last - first) as f64 > wanted.pixels as f64 * READINGS_A_PIXEL {
        let drawn = envelope(&column.t_ns, &column.value, begin_ns, end_ns, wanted.pixels);
        return of_envelope(drawn, wanted.window);
    }
    let beside = READINGS_BESIDE as usize;
    let range = first.saturating_sub(beside)..(last + beside).min(column.t_ns.len());
    Line { t_ns: column.t_ns[range.clone()].to_vec(), value: column.value[range].to_vec(), ..Line::default() }
}

/// Each bucket at its middle.
fn of_envelope(envelope: Envelope, window: Window) -> Line {
    let buckets = envelope.len().max(1) as i64;
    let half_ns = (window.end_ns - window.begin_ns) / buckets / 2;
    Line {
        number: None,
        t_ns: envelope.t_ns.iter().map(|t_ns| t_ns + half_ns).collect(),
        value: envelope.median,
        band: Some(Band { min: envelope.min, q1: envelope.q1, q3: envelope.q3, max: envelope.max }),
    }
}

/// All on one grid and added up; a moment at which one is missing is a gap.
fn summed(opened: &Opened, found: &[(u32, Found<'_>)], wanted: &Wanted) -> Answer<Line> {
    let grid = grid(wanted);
    let mut columns = Vec::new();
    for (_, one) in found {
        columns.push(on_grid(opened, one, &grid, wanted.mode)?);
    }
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let total = sum(&columns);
    let are_counters = found.iter().all(|(_, one)| one.key().kind == Kind::Counter);
    let value = match wanted.mode == Mode::PerTransaction && are_counters {
        true => each_transaction(opened, &total, &grid)?,
        false => total,
    };
    Ok(Line { t_ns: grid.t_ns(), value, ..Line::default() })
}

/// A cell two pixels wide, and no shorter than the second that most sources are read at.
fn grid(wanted: &Wanted) -> Grid {
    const SECOND_NS: i64 = 1_000_000_000;
    let Window { begin_ns, end_ns } = wanted.window;
    let step_ns = ((end_ns - begin_ns) / (wanted.pixels as i64 / 2).max(1)).max(SECOND_NS);
    Grid::covering(begin_ns, end_ns, step_ns)
}

/// Of a counter the rate, of a gauge the mean, in each cell; of raw values the mean, whatever they are.
fn on_grid(opened: &Opened, found: &Found<'_>, grid: &Grid, mode: Mode) -> Answer<Vec<f64>> {
    let is_rate = found.key().kind == Kind::Counter && mode != Mode::Raw;
    let cells = grid.cells;
    let window = Window { begin_ns: grid.begin_ns, end_ns: grid.begin_ns + cells as i64 * grid.step_ns };
    let points = match found {
        Found::Recorded(id, key) => {
            // Roll-ups of a counter are of its rates.
            let is_rolled_up = is_rate || key.kind == Kind::Gauge;
            let means =
                is_rolled_up.then(|| opened.recording.means(*id, window, cells)).transpose()?.flatten();
            if let Some(means) = means {
                return Ok(means);
            }
            let beside_ns = (READINGS_BESIDE * 2e9) as i64;
            let wider = Window { begin_ns: window.begin_ns - beside_ns, end_ns: window.end_ns + beside_ns };
            let samples = opened.recording.samples(*id, Some(wider))?;
            if is_rate { samples.counter_points() } else { samples.points() }
        }
        Found::Made(_, column) => Points { t_ns: column.t_ns.clone(), value: column.value.clone() },
    };
    Ok(match is_rate {
        true => rate_on_grid(&points.t_ns, &points.value, grid),
        false => gauge_on_grid(&points.t_ns, &points.value, grid),
    })
}

fn each_transaction(opened: &Opened, rate: &[f64], grid: &Grid) -> Answer<Vec<f64>> {
    let Some(column) = opened.transactions() else {
        return Err(Refused::bad("the load was not recorded in this run: nothing is known per transaction"));
    };
    let transactions = gauge_on_grid(&column.t_ns, &column.value, grid);
    Ok(per_transaction(rate, &transactions))
}
