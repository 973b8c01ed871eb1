//! Series over a window, as a chart of a given width draws them: single readings if there is room, otherwise an envelope per pixel.

use std::thread;

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use utoipa::ToSchema;
use whyso_record::data::{Kind, SeriesId};
use whyso_record::run::Window;
use whyso_report::Column;
use whyso_series::{
    Envelope, Grid, Points, envelope, gauge_on_grid, per_transaction, rate_on_grid, rates, sum,
};

use crate::error::{Answer, Refusal};
use crate::recordings::{OpenRecording, SeriesSource};

/// Series that one request can name.
pub(crate) const SERIES_MAX: usize = 400;
/// Threads with which a request reads.
const THREADS_MAX: usize = 4;
/// Series for which a further thread starts.
const SERIES_PER_THREAD_MIN: usize = 4;
/// Smallest width of a chart.
pub(crate) const PIXELS_MIN: usize = 16;
/// Largest width of a chart.
pub(crate) const PIXELS_MAX: usize = 4096;
/// Readings per pixel up to which each is drawn by itself.
const READINGS_PER_PIXEL: f64 = 1.5;
/// Buckets by which series are ranked.
const RANK_BUCKETS: usize = 24;
/// Further readings on either side of a window, so that lines reach its edges.
const READINGS_OUTSIDE: f64 = 3.0;

/// What a counter is shown as.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(default = Mode::default)]
pub enum Mode {
    /// Growth per second.
    #[default]
    Rate,
    /// The source's own value.
    Raw,
    /// Growth per transaction that ended meanwhile.
    PerTransaction,
}

/// Which series are drawn, and how.
#[derive(Clone, Debug)]
pub(crate) struct LinesRequest {
    pub(crate) numbers: Vec<u32>,
    pub(crate) window: Window,
    pub(crate) pixels: usize,
    pub(crate) mode: Mode,
    /// Of more series, the ones with the largest values; 0: all.
    pub(crate) top: usize,
    /// One line, of the sum of all.
    pub(crate) is_sum: bool,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// `None`: a sum.
    pub(crate) number: Option<u32>,
    /// The moment of each value.
    pub(crate) t_ns: Vec<i64>,
    /// Values; of an envelope, the medians.
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
    /// Series that are left out, because others have larger values.
    pub(crate) left: usize,
}

/// A line's head, see [`crate::encode`]. Its columns are times in seconds, values, and the four columns of a band.
#[derive(Serialize, ToSchema, TS)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineHead {
    /// `None`: a sum.
    #[schema(required, format = "uint32")]
    pub(crate) number: Option<u32>,
    pub(crate) count: usize,
    pub(crate) band: bool,
}

impl LinesRequest {
    fn check(&self) -> Answer<()> {
        if self.numbers.is_empty() || self.numbers.len() > SERIES_MAX {
            return Err(Refusal::bad(format!("name 1 to {SERIES_MAX} series by their numbers")));
        }
        if !(PIXELS_MIN..=PIXELS_MAX).contains(&self.pixels) {
            return Err(Refusal::bad(format!("px must be {PIXELS_MIN} to {PIXELS_MAX}")));
        }
        Ok(())
    }
}

/// Returns the lines that a chart draws.
///
/// # Errors
/// A series is not known, too many are named, or the files can't be read.
pub(crate) fn lines(opened: &OpenRecording, request: &LinesRequest) -> Answer<Lines> {
    request.check()?;
    let mut series = Vec::new();
    for number in &request.numbers {
        series.push((*number, opened.find(*number)?));
    }
    let all = series.len();
    if request.top > 0 && all > request.top && !request.is_sum {
        series = heaviest(opened, series, request)?;
    }
    let left = all - series.len();
    let lines = if request.is_sum {
        vec![summed(opened, &series, request)?]
    } else {
        each(opened, &series, request)?
    };
    Ok(Lines { lines, left })
}

/// Returns a line per series. Several threads read many series: one would take too long for a day of twenty series.
fn each(
    opened: &OpenRecording,
    series: &[(u32, SeriesSource<'_>)],
    request: &LinesRequest,
) -> Answer<Vec<Line>> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let threads = series.len().div_ceil(SERIES_PER_THREAD_MIN).min(cpus).clamp(1, THREADS_MAX);
    let of = &|part: &[(u32, SeriesSource<'_>)]| -> Answer<Vec<Line>> {
        part.iter()
            .map(|(number, source)| Ok(Line { number: Some(*number), ..line(opened, source, request)? }))
            .collect()
    };
    if threads == 1 {
        return of(series);
    }
    thread::scope(|scope| {
        let parts: Vec<_> =
            series.chunks(series.len().div_ceil(threads)).map(|part| scope.spawn(move || of(part))).collect();
        let mut lines = Vec::new();
        for part in parts {
            lines.extend(part.join().unwrap_or_else(|_| Err(Refusal::damaged()))?);
        }
        Ok(lines)
    })
}

/// Returns the series with the largest values, by the mean of their absolute values.
fn heaviest<'o>(
    opened: &OpenRecording,
    series: Vec<(u32, SeriesSource<'o>)>,
    request: &LinesRequest,
) -> Answer<Vec<(u32, SeriesSource<'o>)>> {
    let rough = LinesRequest { pixels: RANK_BUCKETS, ..request.clone() };
    let mut ranked = Vec::new();
    let drawn = each(opened, &series, &LinesRequest { mode: Mode::Rate, ..rough })?;
    for ((number, source), drawn) in series.into_iter().zip(drawn) {
        let finite = drawn.value.iter().filter(|value| value.is_finite());
        let (total, count) =
            finite.fold((0.0, 0.0), |(total, count), value| (total + value.abs(), count + 1.0));
        ranked.push((if count > 0.0 { total / count } else { -1.0 }, number, source));
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(ranked.into_iter().take(request.top).map(|(_, number, source)| (number, source)).collect())
}

fn line(opened: &OpenRecording, series: &SeriesSource<'_>, request: &LinesRequest) -> Answer<Line> {
    let is_counter = series.key().kind == Kind::Counter;
    if is_counter && request.mode == Mode::PerTransaction {
        let grid = grid(request);
        let value = each_transaction(opened, &on_grid(opened, series, &grid, request.mode)?, &grid)?;
        return Ok(Line { t_ns: grid.t_ns(), value, ..Line::default() });
    }
    match series {
        SeriesSource::Recorded(id, _) => recorded(opened, *id, is_counter, request),
        SeriesSource::Computed(_, column) => Ok(computed(column, request)),
    }
}

fn recorded(opened: &OpenRecording, id: SeriesId, is_counter: bool, request: &LinesRequest) -> Answer<Line> {
    let recording = &opened.recording;
    let Some(info) = recording.info(id) else { return Ok(Line::default()) };
    let Window { begin_ns, end_ns } = request.window;
    let length_ns = (info.last_ns - info.first_ns).max(1) as f64;
    let step_ns = length_ns / info.samples.max(2).saturating_sub(1) as f64;
    let readings = (end_ns.min(info.last_ns) - begin_ns.max(info.first_ns)) as f64 / step_ns;
    let is_raw = request.mode == Mode::Raw;
    if readings > request.pixels as f64 * READINGS_PER_PIXEL {
        let envelope = match is_raw {
            true => recording.envelope_of_values(id, request.window, request.pixels)?,
            false => recording.envelope(id, request.window, request.pixels)?,
        };
        return Ok(from_envelope(envelope, request.window));
    }
    let margin_ns = (step_ns * READINGS_OUTSIDE) as i64;
    let wider =
        Window { begin_ns: begin_ns.saturating_sub(margin_ns), end_ns: end_ns.saturating_add(margin_ns) };
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

fn computed(column: &Column, request: &LinesRequest) -> Line {
    let Window { begin_ns, end_ns } = request.window;
    let first = column.t_ns.partition_point(|t_ns| *t_ns < begin_ns);
    let last = column.t_ns.partition_point(|t_ns| *t_ns <= end_ns).max(first);
    if (last - first) as f64 > request.pixels as f64 * READINGS_PER_PIXEL {
        let drawn = envelope(&column.t_ns, &column.value, begin_ns, end_ns, request.pixels);
        return from_envelope(drawn, request.window);
    }
    let margin = READINGS_OUTSIDE as usize;
    let range = first.saturating_sub(margin)..(last + margin).min(column.t_ns.len());
    Line { t_ns: column.t_ns[range.clone()].to_vec(), value: column.value[range].to_vec(), ..Line::default() }
}

/// Each bucket at its middle.
fn from_envelope(envelope: Envelope, window: Window) -> Line {
    let buckets = envelope.len().max(1) as i64;
    let half_ns = (window.end_ns - window.begin_ns) / buckets / 2;
    Line {
        number: None,
        t_ns: envelope.t_ns.iter().map(|t_ns| t_ns + half_ns).collect(),
        value: envelope.median,
        band: Some(Band { min: envelope.min, q1: envelope.q1, q3: envelope.q3, max: envelope.max }),
    }
}

/// Returns the sum of all series on one grid. A moment at which one has no value is a gap.
fn summed(
    opened: &OpenRecording,
    series: &[(u32, SeriesSource<'_>)],
    request: &LinesRequest,
) -> Answer<Line> {
    let grid = grid(request);
    let mut columns = Vec::new();
    for (_, source) in series {
        columns.push(on_grid(opened, source, &grid, request.mode)?);
    }
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let total = sum(&columns);
    let are_counters = series.iter().all(|(_, source)| source.key().kind == Kind::Counter);
    let value = match request.mode == Mode::PerTransaction && are_counters {
        true => each_transaction(opened, &total, &grid)?,
        false => total,
    };
    Ok(Line { t_ns: grid.t_ns(), value, ..Line::default() })
}

/// A cell two pixels wide, and no shorter than the second that most sources are read at.
fn grid(request: &LinesRequest) -> Grid {
    const SECOND_NS: i64 = 1_000_000_000;
    let Window { begin_ns, end_ns } = request.window;
    let step_ns = ((end_ns - begin_ns) / (request.pixels as i64 / 2).max(1)).max(SECOND_NS);
    Grid::covering(begin_ns, end_ns, step_ns)
}

/// Returns the rate of a counter, or the mean of a gauge or of raw values, in each cell of a grid.
fn on_grid(opened: &OpenRecording, series: &SeriesSource<'_>, grid: &Grid, mode: Mode) -> Answer<Vec<f64>> {
    let is_rate = series.key().kind == Kind::Counter && mode != Mode::Raw;
    let cells = grid.cells;
    let window = Window { begin_ns: grid.begin_ns, end_ns: grid.begin_ns + cells as i64 * grid.step_ns };
    let points = match series {
        SeriesSource::Recorded(id, key) => {
            // Roll-ups of a counter are of its rates.
            let is_rolled_up = is_rate || key.kind == Kind::Gauge;
            let means =
                is_rolled_up.then(|| opened.recording.means(*id, window, cells)).transpose()?.flatten();
            if let Some(means) = means {
                return Ok(means);
            }
            let margin_ns = (READINGS_OUTSIDE * 2e9) as i64;
            let wider = Window { begin_ns: window.begin_ns - margin_ns, end_ns: window.end_ns + margin_ns };
            let samples = opened.recording.samples(*id, Some(wider))?;
            if is_rate { samples.counter_points() } else { samples.points() }
        }
        SeriesSource::Computed(_, column) => {
            Points { t_ns: column.t_ns.clone(), value: column.value.clone() }
        }
    };
    Ok(match is_rate {
        true => rate_on_grid(&points.t_ns, &points.value, grid),
        false => gauge_on_grid(&points.t_ns, &points.value, grid),
    })
}

fn each_transaction(opened: &OpenRecording, rate: &[f64], grid: &Grid) -> Answer<Vec<f64>> {
    let Some(column) = opened.transactions() else {
        return Err(Refusal::bad("the load was not recorded in this run: nothing is known per transaction"));
    };
    let transactions = gauge_on_grid(&column.t_ns, &column.value, grid);
    Ok(per_transaction(rate, &transactions))
}
