//! Backups and imports of runs.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType};
use utoipa::{IntoParams, ToSchema};
use whyso_record::list_runs;

use super::openapi::{CheckedSender, Reading, Refuses};
use super::parameters::{parameter_schema, run_ids};
use crate::archive::{self, IMPORT_BYTES_MAX};
use crate::error::{Answer, Refusal};
use crate::site::{Site, reading};

/// Runs that one request can name.
const RUNS_MAX: usize = 2000;
const TAR: &str = "application/x-tar";

type SiteState = State<Arc<Site>>;

parameter_schema!(BackupIds, run_ids(RUNS_MAX));

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct BackupQuery {
    /// Ids of runs between commas. Without any: every run that has ended.
    #[param(value_type = BackupIds, inline, required = false, style = Form, explode = false)]
    ids: Option<String>,
}

/// Returns runs as one tar file, with one folder per run.
#[utoipa::path(
    get,
    path = "/runs/backup",
    operation_id = "backUp",
    params(BackupQuery),
    responses(
        (
            status = 200,
            description = "The archive. It breaks off if it can't be finished.",
            content(("application/x-tar")),
        ),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn backup(State(site): SiteState, Query(query): Query<BackupQuery>) -> Answer<Response> {
    let turn = turn(&site)?;
    let runs = reading(site, move |site| match &query.ids {
        None => ended_runs(site),
        Some(ids) => named_runs(site, ids),
    })
    .await?;
    let name = match &runs[..] {
        [] => return Err(Refusal::not_found("there is no run to back up")),
        [run] => run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        more => format!("whyso-{}-runs", more.len()),
    };
    let plain: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' })
        .collect();
    let disposition = format!("attachment; filename=\"{plain}.tar\"");
    let body = archive::backup(runs, turn).await?;
    Ok(([(CONTENT_TYPE, TAR.to_string()), (CONTENT_DISPOSITION, disposition)], body).into_response())
}

fn ended_runs(site: &Site) -> Answer<Vec<PathBuf>> {
    let runs = list_runs(site.recordings.folder())?.into_iter();
    Ok(runs.filter(|run| !run.live).map(|run| run.path).collect())
}

fn named_runs(site: &Site, ids: &str) -> Answer<Vec<PathBuf>> {
    let mut ids: Vec<&str> = ids.split(',').filter(|id| !id.is_empty()).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() || ids.len() > RUNS_MAX {
        return Err(Refusal::bad(format!("name 1 to {RUNS_MAX} runs between commas, or none for all")));
    }
    ids.into_iter().map(|id| site.recordings.path(id)).collect()
}

parameter_schema!(Archive, {
    let size = format!("At most {} GiB.", IMPORT_BYTES_MAX >> 30);
    ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some(size)).into()
});

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Imported)]
pub(super) struct ImportResult {
    imported: Vec<String>,
    there_already: Vec<String>,
}

/// Imports the runs of such a file. Runs that are there already stay as they are.
#[utoipa::path(
    post,
    path = "/runs/import",
    operation_id = "import",
    request_body(content = inline(Archive), content_type = "application/x-tar"),
    responses(
        (status = 200, description = "The imported runs", body = ImportResult),
        CheckedSender,
        Refuses<400>,
        Refuses<413>,
        Refuses<415>,
        Refuses<500>,
        Refuses<503>,
    )
)]
pub(super) async fn import(
    State(site): SiteState,
    headers: HeaderMap,
    body: Body,
) -> Answer<Json<ImportResult>> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind != TAR {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("send the archive with the header `Content-Type: {TAR}`"),
        ));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > IMPORT_BYTES_MAX) {
        return Err(archive::too_large(IMPORT_BYTES_MAX));
    }
    let turn = turn(&site)?;
    let folder = site.recordings.folder().to_path_buf();
    let (imported, there_already) = archive::import(body, &folder, IMPORT_BYTES_MAX, turn).await?;
    Ok(Json(ImportResult { imported, there_already }))
}

/// Takes the turn of a backup or an import. Each uses a whole disk's speed, and can last as long as the network needs.
///
/// # Errors
/// 503 if another one is running.
fn turn(site: &Site) -> Answer<OwnedSemaphorePermit> {
    Arc::clone(&site.archive_turn).try_acquire_owned().map_err(|_| {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "a backup or an import is running: ask again once it has ended",
        )
    })
}
