//! What a run that is being recorded shows of its last minute.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use utoipa::ToSchema;

use super::openapi::{Reading, Refuses};
use super::parameters::RunId;
use super::responses::{Object, json_text};
use crate::error::Answer;
use crate::site::{Site, reading};

/// The answer for a window, which `report` writes as text.
#[derive(ToSchema)]
#[schema(as = Now)]
#[expect(dead_code, reason = "describes text that another crate writes")]
struct NowHead {
    window: Object,
    levels: Vec<Object>,
    explanation: Object,
    answer: Object,
}

/// Returns the answer for the last minute of a run that is being recorded. It is computed at most every ten seconds.
#[utoipa::path(
    get,
    path = "/runs/{id}/now",
    operation_id = "now",
    params(RunId),
    responses(
        (status = 200, description = "The answer and its window", body = NowHead),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn now(State(site): State<Arc<Site>>, Path(RunId { id }): Path<RunId>) -> Answer<Response> {
    reading(site, move |site| Ok(json_text(site.recordings.open(&id)?.now()?.to_string()))).await
}
