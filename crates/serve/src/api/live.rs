//! Servers that are recorded from the page.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Site, reading};
use crate::error::Answer;

type Shared = State<Arc<Site>>;

pub(super) async fn list(State(site): Shared) -> Answer<Json<Value>> {
    reading(site, |site| Ok(Json(json!({ "servers": site.live.list()? })))).await
}

pub(super) async fn start(State(site): Shared, Path(name): Path<String>) -> Answer<StatusCode> {
    reading(site, move |site| site.live.start(&name).map(|()| StatusCode::ACCEPTED)).await
}

pub(super) async fn stop(State(site): Shared, Path(name): Path<String>) -> Answer<StatusCode> {
    reading(site, move |site| site.live.stop(&name).map(|()| StatusCode::ACCEPTED)).await
}
