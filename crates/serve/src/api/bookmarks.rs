//! Sets of charts.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi::{Reading, Refuses};
use super::parameters::SetKey;
use crate::bookmarks::{Bookmark, ListedSet, ListedSetFields};
use crate::error::{Answer, Refusal};
use crate::site::{Site, reading};

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Bookmarks)]
pub(super) struct SetList {
    #[schema(value_type = Vec<ListedSetFields>)]
    sets: Vec<ListedSet>,
    /// Files that hold no set, each with the reason.
    problems: Vec<String>,
}

/// Lists the sets of charts: the user's own, and those that ship.
#[utoipa::path(
    get,
    path = "/bookmarks",
    operation_id = "charts",
    responses(
        (
            status = 200,
            description = "The sets",
            body = SetList,
            links(("toml" = (operation_id = "chartsAsToml", parameters(("key" = "$response.body#/sets/0/key"))))),
        ),
        Reading,
    )
)]
pub(super) async fn list(State(site): State<Arc<Site>>) -> Answer<Json<SetList>> {
    reading(site, |site| {
        let (sets, problems) = site.bookmarks.list();
        Ok(Json(SetList { sets, problems }))
    })
    .await
}

/// Saves a set under its name, in place of the one that had it.
#[utoipa::path(
    put,
    path = "/bookmarks",
    operation_id = "saveCharts",
    request_body = Bookmark,
    responses(
        (status = 201, description = "It is saved."),
        Reading,
        Refuses<400>,
        Refuses<413>,
        Refuses<415>,
    )
)]
pub(super) async fn save(
    State(site): State<Arc<Site>>,
    Json(bookmark): Json<Bookmark>,
) -> Answer<StatusCode> {
    reading(site, move |site| {
        site.bookmarks.save(&bookmark.checked()?)?;
        Ok(StatusCode::CREATED)
    })
    .await
}

#[derive(Serialize, ToSchema)]
pub(super) struct SavedName {
    name: String,
}

/// Saves a set that is sent as TOML.
#[utoipa::path(
    post,
    path = "/bookmarks/import",
    operation_id = "importCharts",
    request_body(content((String = "application/toml"), (String = "text/plain"))),
    responses(
        (status = 201, description = "It is saved under this name", body = inline(SavedName)),
        Reading,
        Refuses<400>,
        Refuses<413>,
        Refuses<415>,
    )
)]
pub(super) async fn import(
    State(site): State<Arc<Site>>,
    headers: HeaderMap,
    text: String,
) -> Answer<Response> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !matches!(kind.split(';').next().unwrap_or_default().trim(), "application/toml" | "text/plain") {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send the set with the header `Content-Type: application/toml`",
        ));
    }
    reading(site, move |site| {
        let bookmark = Bookmark::from_toml(&text)?;
        site.bookmarks.save(&bookmark)?;
        Ok((StatusCode::CREATED, Json(SavedName { name: bookmark.name })).into_response())
    })
    .await
}

/// Returns a set as TOML.
#[utoipa::path(
    get,
    path = "/bookmarks/{key}/toml",
    operation_id = "chartsAsToml",
    params(SetKey),
    responses(
        (status = 200, description = "The set", body = String, content_type = "application/toml"),
        Reading,
        Refuses<400>,
        Refuses<404>,
    )
)]
pub(super) async fn export(
    State(site): State<Arc<Site>>,
    Path(SetKey { key }): Path<SetKey>,
) -> Answer<Response> {
    reading(site, move |site| {
        let text = site.bookmarks.find(&key)?.to_toml();
        Ok(([(CONTENT_TYPE, "application/toml")], text).into_response())
    })
    .await
}

/// Removes a set of the user's own.
#[utoipa::path(
    delete,
    path = "/bookmarks/{key}",
    operation_id = "removeCharts",
    params(SetKey),
    responses((status = 204, description = "It is removed."), Reading, Refuses<400>, Refuses<404>)
)]
pub(super) async fn remove(
    State(site): State<Arc<Site>>,
    Path(SetKey { key }): Path<SetKey>,
) -> Answer<StatusCode> {
    reading(site, move |site| {
        site.bookmarks.remove(&key)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}
