//! Servers that are recorded from the page.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi::{Reading, Refuses};
use super::parameters::ServerName;
use crate::error::Answer;
use crate::live::ListedServer;
use crate::site::{Site, reading};

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Live)]
pub(super) struct ServerList {
    servers: Vec<ListedServer>,
}

/// Lists the servers that can be recorded from here.
#[utoipa::path(
    get,
    path = "/live",
    operation_id = "live",
    responses((status = 200, description = "The servers", body = ServerList), Reading)
)]
pub(super) async fn list(State(site): State<Arc<Site>>) -> Answer<Json<ServerList>> {
    reading(site, |site| Ok(Json(ServerList { servers: site.live.list()? }))).await
}

/// Begins to record a server.
#[utoipa::path(
    post,
    path = "/live/{name}/start",
    operation_id = "start",
    params(ServerName),
    responses(
        (status = 202, description = "The recording is starting: `GET /live` shows its state."),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn start(
    State(site): State<Arc<Site>>,
    Path(ServerName { name }): Path<ServerName>,
) -> Answer<StatusCode> {
    reading(site, move |site| site.live.start(&name).map(|()| StatusCode::ACCEPTED)).await
}

/// Ends the recording of a server.
#[utoipa::path(
    post,
    path = "/live/{name}/stop",
    operation_id = "stop",
    params(ServerName),
    responses((status = 202, description = "It is being ended."), Reading, Refuses<400>, Refuses<409>)
)]
pub(super) async fn stop(
    State(site): State<Arc<Site>>,
    Path(ServerName { name }): Path<ServerName>,
) -> Answer<StatusCode> {
    reading(site, move |site| site.live.stop(&name).map(|()| StatusCode::ACCEPTED)).await
}
