//! What a run's recording holds.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use ts_rs::TS;
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::{IntoParams, ToSchema};
use whyso_query::ForReport;
use whyso_record::data::{Event, Kind, SeriesKey};
use whyso_record::server_log_path;
use whyso_report::payload;

use super::openapi::{Reading, Refuses};
use super::parameters::{RunId, integer, parameter_schema};
use super::responses::{Object, blocks_response, json_text};
use crate::encode;
use crate::error::{Answer, Refusal};
use crate::series::{self, LineHead, Lines, LinesRequest, Mode, PIXELS_MAX, PIXELS_MIN, SERIES_MAX};
use crate::site::{Site, reading};

/// Series of one answer of the catalogue.
const CATALOGUE_MAX: usize = 500;
/// Largest `top` of a chart.
const TOP_MAX: usize = 400;
/// Bytes of the end of a server's log.
const LOG_BYTES_MAX: u64 = 512 << 10;

type SiteState = State<Arc<Site>>;

/// The head of a run, which `report` writes as text.
#[derive(ToSchema)]
#[schema(as = Head)]
#[expect(dead_code, reason = "describes text that another crate writes")]
struct RunHead {
    format: u32,
    run: Object,
    explanation: Object,
    events: Vec<Event>,
    problems: Vec<String>,
    origin_ns: i64,
    end_ns: i64,
    series: Vec<SeriesHead>,
}

/// A series of a head, with the number that addresses name it by.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes text that another crate writes")]
struct SeriesHead {
    #[serde(flatten)]
    key: SeriesKey,
    #[schema(format = "uint32")]
    slot: u32,
}

/// Returns what was run, its levels and events, and every series with its number.
#[utoipa::path(
    get,
    path = "/runs/{id}",
    operation_id = "run",
    params(RunId),
    responses(
        (
            status = 200,
            description = "The head of the run",
            body = RunHead,
            links(("series" = (operation_id = "series", parameters(
                ("id" = "$request.path.id"),
                ("numbers" = "$response.body#/series/0/slot"),
            )))),
        ),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn outline(State(site): SiteState, Path(RunId { id }): Path<RunId>) -> Answer<Response> {
    reading(site, move |site| Ok(json_text(site.recordings.open(&id)?.outline()?.head_json.clone()))).await
}

/// Returns the head with findings, and with budget and tables by level.
#[utoipa::path(
    get,
    path = "/runs/{id}/explained",
    operation_id = "explained",
    params(RunId),
    responses(
        (status = 200, description = "The head of the run", body = RunHead),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn explained(State(site): SiteState, Path(RunId { id }): Path<RunId>) -> Answer<Response> {
    reading(site, move |site| Ok(json_text(site.recordings.open(&id)?.explained()?.head_json.clone()))).await
}

/// A part of what the server's threads did.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum PartName {
    Threads,
    Timeline,
    Stacks,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct PartPlace {
    /// The id of a run, as `GET /runs` lists it.
    #[param(min_length = 1)]
    id: String,
    /// The part.
    #[param(inline)]
    part: PartName,
}

/// Adds to the head of a run, which `report` writes as text.
#[derive(ToSchema)]
#[schema(as = PartHead)]
#[expect(dead_code, reason = "describes text that another crate writes")]
struct RunPart {
    #[schema(required = false)]
    threads: Option<Object>,
    #[schema(required = false)]
    timeline: Option<Object>,
    #[schema(required = false)]
    flame: Option<Object>,
    /// More of the head's series.
    series: Vec<SeriesHead>,
}

/// Returns a part of what the server's threads did: their table, their timeline, or their stacks with functions over time.
#[utoipa::path(
    get,
    path = "/runs/{id}/profile/{part}",
    operation_id = "profilePart",
    params(PartPlace),
    responses(
        (status = 200, description = "What to add to the head of the run", body = RunPart),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn profile_part(
    State(site): SiteState,
    Path(PartPlace { id, part }): Path<PartPlace>,
) -> Answer<Response> {
    let part = match part {
        PartName::Threads => payload::ProfilePart::Threads,
        PartName::Timeline => payload::ProfilePart::Timeline,
        PartName::Stacks => payload::ProfilePart::Stacks,
    };
    reading(site, move |site| Ok(json_text(site.recordings.open(&id)?.profile_part(part)?.head_json.clone())))
        .await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct BlockPlace {
    /// The id of a run, as `GET /runs` lists it.
    #[param(min_length = 1)]
    id: String,
    /// The number of a block of the explained head, or of a part.
    #[param(value_type = BlockNumber, inline)]
    number: u32,
}

parameter_schema!(BlockNumber, integer(0, u32::MAX as usize).into());

/// Returns a block that the explained head or a part refers to.
#[utoipa::path(
    get,
    path = "/runs/{id}/blocks/{number}",
    operation_id = "block",
    params(BlockPlace),
    responses(
        (status = 200, description = "Raw-deflated", content(("application/octet-stream"))),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn block(
    State(site): SiteState,
    Path(BlockPlace { id, number }): Path<BlockPlace>,
) -> Answer<Response> {
    reading(site, move |site| {
        let block = site.recordings.open(&id)?.block(number)?;
        let block = block.ok_or_else(|| Refusal::not_found(format!("this run has no block {number}")))?;
        Ok(([(CONTENT_TYPE, "application/octet-stream")], block).into_response())
    })
    .await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct CatalogueQuery {
    /// Text that a series' names have to contain, word by word.
    #[serde(default)]
    find: String,
    /// Series of the answer.
    #[serde(default = "catalogue_max")]
    #[param(value_type = CatalogueLimit, inline)]
    limit: usize,
}

fn catalogue_max() -> usize {
    CATALOGUE_MAX
}

parameter_schema!(CatalogueLimit, integer(0, CATALOGUE_MAX).default(Some(CATALOGUE_MAX.into())).into());

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalogue {
    /// All series that match; the answer may hold fewer.
    found: usize,
    series: Vec<CatalogueLine>,
}

/// A series, with the number that addresses name it by.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CatalogueLine {
    #[schema(format = "uint32")]
    number: u32,
    host: String,
    source: String,
    metric: String,
    instance: String,
    #[schema(inline)]
    kind: Kind,
    unit: String,
}

/// Finds series by text of their names.
#[utoipa::path(
    get,
    path = "/runs/{id}/catalogue",
    operation_id = "catalogue",
    params(RunId, CatalogueQuery),
    responses(
        (status = 200, description = "The series", body = Catalogue),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn catalogue(
    State(site): SiteState,
    Path(RunId { id }): Path<RunId>,
    Query(query): Query<CatalogueQuery>,
) -> Answer<Json<Catalogue>> {
    if query.limit > CATALOGUE_MAX {
        return Err(Refusal::bad(format!("limit must be 0 to {CATALOGUE_MAX}")));
    }
    reading(site, move |site| {
        let opened = site.recordings.open(&id)?;
        let words: Vec<String> = query.find.to_lowercase().split_whitespace().map(str::to_string).collect();
        let has_all = |key: &SeriesKey| {
            let name = format!("{} {} {} {}", key.host, key.source, key.metric, key.instance).to_lowercase();
            words.iter().all(|word| name.contains(word))
        };
        let mut series = opened.series();
        series.retain(|served| has_all(&served.key));
        let found = series.len();
        series.truncate(query.limit);
        let lines = series.into_iter().map(|served| {
            let SeriesKey { host, source, metric, instance, kind, unit } = served.key;
            CatalogueLine { number: served.number, host, source, metric, instance, kind, unit }
        });
        Ok(Json(Catalogue { found, series: lines.collect() }))
    })
    .await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SeriesQuery {
    /// Numbers of series between commas: `slot` of a run's head, `number` of its catalogue.
    #[param(value_type = SeriesNumbers, inline, style = Form, explode = false)]
    numbers: String,
    /// Begin of the window, below `to_s`.
    #[param(exclusive_minimum = -1e9, exclusive_maximum = 1e9)]
    from_s: f64,
    /// End of the window.
    #[param(exclusive_minimum = -1e9, exclusive_maximum = 1e9)]
    to_s: f64,
    /// Width of the chart in pixels.
    #[param(value_type = Pixels, inline)]
    px: usize,
    /// What counters are drawn as. `per_transaction` needs a run whose load was recorded.
    #[serde(default)]
    #[param(inline)]
    mode: Mode,
    /// Of more series, the ones with the largest values; 0: all.
    #[serde(default)]
    #[param(value_type = Top, inline)]
    top: usize,
    /// One line, of the sum of all.
    #[serde(default)]
    #[param(default = false)]
    sum: bool,
    /// As JSON. Otherwise the answer is a head with binary columns after it: see docs/reference/web-api.md.
    #[serde(default)]
    #[param(default = false)]
    json: bool,
}

parameter_schema!(SeriesNumbers, {
    let number = integer(0, u32::MAX as usize);
    ArrayBuilder::new().items(number).min_items(Some(1)).max_items(Some(SERIES_MAX)).into()
});

parameter_schema!(Pixels, integer(PIXELS_MIN, PIXELS_MAX).into());

parameter_schema!(Top, integer(0, TOP_MAX).default(Some(0.into())).into());

/// The lines of a chart, as JSON.
#[derive(Serialize, ToSchema)]
#[schema(as = Lines)]
struct LineColumns<'c> {
    lines: &'c [LineHead],
    /// Series that are left out, because others have larger values.
    left: usize,
    /// Columns of all lines; null is a gap.
    #[schema(value_type = Vec<Vec<Option<f64>>>)]
    columns: &'c [&'c [f64]],
}

/// What comes before the binary columns of a chart's lines.
#[derive(Serialize, TS)]
pub(super) struct LinesHead<'c> {
    lines: &'c [LineHead],
    left: usize,
}

/// Returns series over a window, as a chart of a given width draws them.
#[utoipa::path(
    get,
    path = "/runs/{id}/series",
    operation_id = "series",
    params(RunId, SeriesQuery),
    responses(
        (
            status = 200,
            description = "The lines",
            content((LineColumns = "application/json"), ("application/octet-stream")),
        ),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn series(
    State(site): SiteState,
    Path(RunId { id }): Path<RunId>,
    Query(query): Query<SeriesQuery>,
) -> Answer<Response> {
    let numbers = query.numbers.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>();
    let numbers =
        numbers.map_err(|_| Refusal::bad("numbers must be whole numbers of series between commas"))?;
    if query.top > TOP_MAX {
        return Err(Refusal::bad(format!("top must be 0 to {TOP_MAX}")));
    }
    reading(site, move |site| {
        let opened = site.recordings.open(&id)?;
        let window = opened.window(query.from_s, query.to_s)?;
        let (pixels, mode) = (query.px, query.mode);
        let request = LinesRequest { numbers, window, pixels, mode, top: query.top, is_sum: query.sum };
        let Lines { lines, left } = series::lines(&opened, &request)?;
        let times: Vec<Vec<f64>> =
            lines.iter().map(|line| line.t_ns.iter().map(|t_ns| opened.seconds(*t_ns)).collect()).collect();
        let mut columns: Vec<&[f64]> = Vec::new();
        for (line, times) in lines.iter().zip(&times) {
            columns.extend([times.as_slice(), &line.value]);
            if let Some(band) = &line.band {
                columns.extend([&band.min[..], &band.q1, &band.q3, &band.max]);
            }
        }
        let heads: Vec<LineHead> = lines
            .iter()
            .map(|line| LineHead { number: line.number, count: line.value.len(), band: line.band.is_some() })
            .collect();
        if query.json {
            return Ok(Json(LineColumns { lines: &heads, left, columns: &columns }).into_response());
        }
        encode::columns(&LinesHead { lines: &heads, left }, &columns)
    })
    .await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WindowQuery {
    /// Begin of the window, below `to_s`.
    #[param(exclusive_minimum = -1e9, exclusive_maximum = 1e9)]
    from_s: f64,
    /// End of the window.
    #[param(exclusive_minimum = -1e9, exclusive_maximum = 1e9)]
    to_s: f64,
}

/// Tables over a window, which `report` writes as text.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Tables)]
#[expect(dead_code, reason = "describes text that another crate writes")]
struct WindowTables {
    tables: Object,
    /// What the tables refer to: deflated, as base64.
    blocks: Vec<String>,
}

/// Returns statements, lock waits and the Performance Schema's views over a window.
#[utoipa::path(
    get,
    path = "/runs/{id}/tables",
    operation_id = "tables",
    params(RunId, WindowQuery),
    responses(
        (status = 200, description = "The tables with their blocks", body = WindowTables),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn tables(
    State(site): SiteState,
    Path(RunId { id }): Path<RunId>,
    Query(query): Query<WindowQuery>,
) -> Answer<Response> {
    reading(site, move |site| {
        let opened = site.recordings.open(&id)?;
        let window = opened.window(query.from_s, query.to_s)?;
        let tables = ForReport::over(&opened.recording, window)?.lend(None, payload::tables)?;
        blocks_response("tables", &tables)
    })
    .await
}

#[derive(Serialize, ToSchema, TS)]
#[serde(deny_unknown_fields)]
#[schema(as = Events)]
pub(super) struct EventList {
    events: Vec<Event>,
    /// Monotonic ns that the axes count from.
    origin_ns: i64,
    end_ns: i64,
    live: bool,
}

/// Returns what happened in a run, with its notes.
#[utoipa::path(
    get,
    path = "/runs/{id}/events",
    operation_id = "events",
    params(RunId),
    responses(
        (status = 200, description = "The events", body = EventList),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn events(
    State(site): SiteState,
    Path(RunId { id }): Path<RunId>,
) -> Answer<Json<EventList>> {
    reading(site, move |site| {
        let opened = site.recordings.open(&id)?;
        let events = opened.recording.events()?;
        let (origin_ns, end_ns) = (opened.origin_ns, opened.end_ns);
        Ok(Json(EventList { events, origin_ns, end_ns, live: opened.recording.live() }))
    })
    .await
}

#[derive(Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Log)]
pub(super) struct LogEnd {
    there: bool,
    /// Without control characters.
    text: String,
    left_out_bytes: u64,
}

/// Returns the end of the tested server's own log.
#[utoipa::path(
    get,
    path = "/runs/{id}/log",
    operation_id = "log",
    params(RunId),
    responses(
        (status = 200, description = "The text, if there is one", body = LogEnd),
        Reading,
        Refuses<400>,
        Refuses<404>,
    )
)]
pub(super) async fn log(State(site): SiteState, Path(RunId { id }): Path<RunId>) -> Answer<Json<LogEnd>> {
    reading(site, move |site| {
        let path = server_log_path(&site.recordings.path(&id)?);
        let Ok(mut file) = whyso_record::private::open_file(&path) else {
            return Ok(Json(LogEnd::default()));
        };
        let io = |cause| Refusal::from(whyso_record::Error::Io { path: path.clone(), cause });
        let length = file.metadata().map_err(io)?.len();
        let left_out_bytes = length.saturating_sub(LOG_BYTES_MAX);
        file.seek(SeekFrom::Start(left_out_bytes)).map_err(io)?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_MAX).read_to_end(&mut bytes).map_err(io)?;
        let text = String::from_utf8_lossy(&bytes);
        let is_plain = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
        let text: String = text.chars().filter(is_plain).collect();
        Ok(Json(LogEnd { there: true, text, left_out_bytes }))
    })
    .await
}
