//! Runs as one file, and back.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use whyso_record::list_runs;

use super::{Site, reading};
use crate::error::{Answer, Refused};
use crate::moving::{self, IMPORT_BYTES_MAX};

/// Runs that are named in one request.
pub(super) const RUNS_MAX: usize = 2000;
const TAR: &str = "application/x-tar";

type Shared = State<Arc<Site>>;

#[derive(Deserialize)]
pub(super) struct Asked {
    /// Between commas; none: every run that has ended.
    ids: Option<String>,
}

/// One tar archive of runs.
pub(super) async fn backup(State(site): Shared, Query(asked): Query<Asked>) -> Answer<Response> {
    let turn = turn(&site)?;
    let runs = reading(site, move |site| match &asked.ids {
        None => Ok(ended(site)?),
        Some(ids) => named(site, ids),
    })
    .await?;
    let name = match &runs[..] {
        [] => return Err(Refused::not_found("there is no run to back up")),
        [one] => one.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        more => format!("whyso-{}-runs", more.len()),
    };
    let plain: String = name
        .chars()
        .map(|one| if one.is_ascii_alphanumeric() || "-_.".contains(one) { one } else { '_' })
        .collect();
    let disposition = format!("attachment; filename=\"{plain}.tar\"");
    let body = moving::backup(runs, turn).await?;
    Ok(([(CONTENT_TYPE, TAR.to_string()), (CONTENT_DISPOSITION, disposition)], body).into_response())
}

fn ended(site: &Site) -> Answer<Vec<PathBuf>> {
    let runs = list_runs(site.recordings.folder())?.into_iter();
    Ok(runs.filter(|run| !run.live).map(|run| run.path).collect())
}

fn named(site: &Site, ids: &str) -> Answer<Vec<PathBuf>> {
    let mut ids: Vec<&str> = ids.split(',').filter(|id| !id.is_empty()).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() || ids.len() > RUNS_MAX {
        return Err(Refused::bad(format!("name 1 to {RUNS_MAX} runs between commas, or none for all")));
    }
    ids.into_iter().map(|id| site.recordings.path(id)).collect()
}

/// Takes the runs of such an archive in.
pub(super) async fn import(State(site): Shared, headers: HeaderMap, body: Body) -> Answer<Json<Value>> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind != TAR {
        return Err(Refused::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("send the archive with the header `Content-Type: {TAR}`"),
        ));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > IMPORT_BYTES_MAX) {
        return Err(moving::too_large(IMPORT_BYTES_MAX));
    }
    let turn = turn(&site)?;
    let folder = site.recordings.folder().to_path_buf();
    let (imported, there) = moving::import(body, &folder, IMPORT_BYTES_MAX, turn).await?;
    Ok(Json(json!({ "imported": imported, "there_already": there })))
}

/// One at a time: each takes a whole disk's speed, and may take as long as the network wants.
fn turn(site: &Site) -> Answer<OwnedSemaphorePermit> {
    Arc::clone(&site.moving).try_acquire_owned().map_err(|_| {
        Refused::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "a backup or an import is under way: ask again once it has ended",
        )
    })
}
