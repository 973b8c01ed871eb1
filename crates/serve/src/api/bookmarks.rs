//! Sets of charts.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Site, reading};
use crate::bookmarks::Bookmark;
use crate::error::{Answer, Refused};

type Shared = State<Arc<Site>>;

pub(super) async fn list(State(site): Shared) -> Answer<Json<Value>> {
    reading(site, |site| {
        let (sets, problems) = site.bookmarks.list();
        Ok(Json(json!({ "sets": sets, "problems": problems })))
    })
    .await
}

/// Saves a set under its name, in place of the one that had it.
pub(super) async fn save(State(site): Shared, Json(bookmark): Json<Bookmark>) -> Answer<StatusCode> {
    reading(site, move |site| {
        site.bookmarks.save(&bookmark.checked()?)?;
        Ok(StatusCode::CREATED)
    })
    .await
}

/// The same from TOML.
pub(super) async fn import(State(site): Shared, headers: HeaderMap, text: String) -> Answer<Response> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !matches!(kind.split(';').next().unwrap_or_default().trim(), "application/toml" | "text/plain") {
        return Err(Refused::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send the set with the header `Content-Type: application/toml`",
        ));
    }
    reading(site, move |site| {
        let bookmark = Bookmark::from_toml(&text)?;
        site.bookmarks.save(&bookmark)?;
        Ok((StatusCode::CREATED, Json(json!({ "name": bookmark.name }))).into_response())
    })
    .await
}

pub(super) async fn export(State(site): Shared, Path(key): Path<String>) -> Answer<Response> {
    reading(site, move |site| {
        let text = site.bookmarks.find(&key)?.to_toml();
        Ok(([(CONTENT_TYPE, "application/toml")], text).into_response())
    })
    .await
}

pub(super) async fn remove(State(site): Shared, Path(key): Path<String>) -> Answer<StatusCode> {
    reading(site, move |site| {
        site.bookmarks.remove(&key)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}
