//! What is read of one run.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use whyso_query::ForReport;
use whyso_record::data::SeriesKey;
use whyso_record::server_log_path;
use whyso_report::payload;

use super::{Site, blocks_response, json_text, reading};
use crate::encode;
use crate::error::{Answer, Refused};
use crate::series::{self, LineHead, Lines, Mode, Wanted};

pub(super) const CATALOGUE_MAX: usize = 500;
/// Of the series with the most to say.
pub(super) const TOP_MAX: usize = 400;
/// Of a server's log: its end.
const LOG_BYTES_MAX: u64 = 512 << 10;

type Shared = State<Arc<Site>>;

/// The head of a run, at once.
pub(super) async fn outline(State(site): Shared, Path(id): Path<String>) -> Answer<Response> {
    reading(site, move |site| Ok(json_text(site.recordings.open(&id)?.outline()?.head_json.clone()))).await
}

/// The same with everything that has to be worked out.
pub(super) async fn explained(State(site): Shared, Path(id): Path<String>) -> Answer<Response> {
    reading(site, move |site| Ok(json_text(site.recordings.open(&id)?.explained()?.head_json.clone()))).await
}

/// A block that the head refers to, deflated.
pub(super) async fn block(
    State(site): Shared,
    Path((id, number)): Path<(String, usize)>,
) -> Answer<Response> {
    reading(site, move |site| {
        let explained = site.recordings.open(&id)?.explained()?;
        let block = explained.blocks.get(number).cloned();
        let block = block.ok_or_else(|| Refused::not_found(format!("this run has no block {number}")))?;
        Ok(([(CONTENT_TYPE, "application/octet-stream")], block).into_response())
    })
    .await
}

#[derive(Deserialize)]
pub(super) struct Catalogued {
    /// Words that have to occur in a series' names.
    #[serde(default)]
    find: String,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Serialize)]
struct CatalogueLine {
    number: u32,
    #[serde(flatten)]
    key: SeriesKey,
}

/// Series by their names.
pub(super) async fn catalogue(
    State(site): Shared,
    Path(id): Path<String>,
    Query(asked): Query<Catalogued>,
) -> Answer<Json<Value>> {
    let limit = asked.limit.unwrap_or(CATALOGUE_MAX);
    if limit > CATALOGUE_MAX {
        return Err(Refused::bad(format!("limit must be 0 to {CATALOGUE_MAX}")));
    }
    reading(site, move |site| {
        let opened = site.recordings.open(&id)?;
        let words: Vec<String> = asked.find.to_lowercase().split_whitespace().map(str::to_string).collect();
        let has_all = |key: &SeriesKey| {
            let name = format!("{} {} {} {}", key.host, key.source, key.metric, key.instance).to_lowercase();
            words.iter().all(|word| name.contains(word))
        };
        let all = opened.series();
        let found = all.into_iter().filter(|one| has_all(&one.key));
        let found: Vec<CatalogueLine> =
            found.map(|one| CatalogueLine { number: one.number, key: one.key }).collect();
        Ok(Json(json!({ "found": found.len(), "series": &found[..found.len().min(limit)] })))
    })
    .await
}

#[derive(Deserialize)]
pub(super) struct Drawn {
    /// Numbers between commas.
    numbers: String,
    from_s: f64,
    to_s: f64,
    px: usize,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    top: usize,
    #[serde(default)]
    sum: bool,
    /// As JSON, for people and small programs.
    #[serde(default)]
    json: bool,
}

/// The lines of a chart.
pub(super) async fn series(
    State(site): Shared,
    Path(id): Path<String>,
    Query(asked): Query<Drawn>,
) -> Answer<Response> {
    let numbers = asked.numbers.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>();
    let numbers =
        numbers.map_err(|_| Refused::bad("numbers must be whole numbers of series between commas"))?;
    if asked.top > TOP_MAX {
        return Err(Refused::bad(format!("top must be 0 to {TOP_MAX}")));
    }
    reading(site, move |site| {
        let opened = site.recordings.open(&id)?;
        let window = opened.window(asked.from_s, asked.to_s)?;
        let (pixels, mode) = (asked.px, asked.mode);
        let wanted = Wanted { numbers, window, pixels, mode, top: asked.top, is_sum: asked.sum };
        let Lines { lines, left } = series::lines(&opened, &wanted)?;
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
        let mut head = json!({ "lines": heads, "left": left });
        if asked.json {
            // A gap is null.
            head["columns"] = json!(columns);
            return Ok(Json(head).into_response());
        }
        encode::columns(&head, &columns)
    })
    .await
}

#[derive(Deserialize)]
pub(super) struct Over {
    from_s: f64,
    to_s: f64,
}

/// Statements, lock waits and the Performance Schema's views over any window, with their blocks.
pub(super) async fn tables(
    State(site): Shared,
    Path(id): Path<String>,
    Query(over): Query<Over>,
) -> Answer<Response> {
    reading(site, move |site| {
        let opened = site.recordings.open(&id)?;
        let window = opened.window(over.from_s, over.to_s)?;
        let made = ForReport::over(&opened.recording, window)?.lend(None, payload::tables)?;
        blocks_response("tables", &made)
    })
    .await
}

/// What happened, notes among it.
pub(super) async fn events(State(site): Shared, Path(id): Path<String>) -> Answer<Json<Value>> {
    reading(site, move |site| {
        let opened = site.recordings.open(&id)?;
        Ok(Json(json!({ "events": opened.recording.events()?, "end_ns": opened.end_ns, "live": opened.recording.live() })))
    })
    .await
}

/// The end of the tested server's own log, without what a terminal would obey.
pub(super) async fn log(State(site): Shared, Path(id): Path<String>) -> Answer<Json<Value>> {
    reading(site, move |site| {
        let path = server_log_path(&site.recordings.path(&id)?);
        let Ok(mut file) = whyso_record::private::open_file(&path) else {
            return Ok(Json(json!({ "there": false, "text": "", "left_out_bytes": 0 })));
        };
        let io = |cause| Refused::from(whyso_record::Error::Io { path: path.clone(), cause });
        let length = file.metadata().map_err(io)?.len();
        let left_out = length.saturating_sub(LOG_BYTES_MAX);
        file.seek(SeekFrom::Start(left_out)).map_err(io)?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_MAX).read_to_end(&mut bytes).map_err(io)?;
        let text = String::from_utf8_lossy(&bytes);
        let is_plain = |one: &char| !one.is_control() || matches!(one, '\n' | '\t');
        let text: String = text.chars().filter(is_plain).collect();
        Ok(Json(json!({ "there": true, "text": text, "left_out_bytes": left_out })))
    })
    .await
}
