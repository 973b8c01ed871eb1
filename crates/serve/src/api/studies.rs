//! Studies: many runs that answer one question.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use ts_rs::TS;
use utoipa::{IntoParams, ToSchema};

use super::openapi::{Reading, Refuses};
use super::responses::{Object, json_text};
use crate::error::Answer;
use crate::site::{Site, reading};
use crate::studies::ListedStudy;

#[derive(Serialize, ToSchema, TS)]
#[serde(deny_unknown_fields)]
#[schema(as = Studies)]
pub(super) struct StudyList {
    studies: Vec<ListedStudy>,
}

/// Lists the studies, the newest first.
#[utoipa::path(
    get,
    path = "/studies",
    operation_id = "studies",
    responses((status = 200, description = "The studies", body = StudyList), Reading)
)]
pub(super) async fn list(State(site): State<Arc<Site>>) -> Answer<Json<StudyList>> {
    reading(site, |site| Ok(Json(StudyList { studies: site.studies.list() }))).await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct StudyId {
    /// The id of a study, as `GET /studies` lists it.
    #[param(min_length = 1)]
    id: String,
}

/// What the page of a study shows, which `report` writes as text.
#[derive(ToSchema)]
#[schema(as = StudyHead)]
#[expect(dead_code, reason = "describes text that another crate writes")]
struct StudyPage {
    format: u32,
    title: String,
    question: String,
    found: Vec<String>,
    sheets: Vec<Object>,
    notes: Vec<String>,
}

/// Returns what a study has found until now, as its page shows it.
#[utoipa::path(
    get,
    path = "/studies/{id}",
    operation_id = "study",
    params(StudyId),
    responses(
        (status = 200, description = "What the study has found", body = StudyPage),
        Reading,
        Refuses<400>,
        Refuses<404>,
    )
)]
pub(super) async fn study(
    State(site): State<Arc<Site>>,
    Path(StudyId { id }): Path<StudyId>,
) -> Answer<Response> {
    reading(site, move |site| Ok(json_text(site.studies.head(&id)?))).await
}
