//! The description of the API, as OpenAPI 3.1: what its operations share. Each handler describes its own operation.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::{Extension, Json};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    ComponentsBuilder, Content, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Response, ResponseBuilder,
    Server,
};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use crate::error::RefusalBody;

const ABOUT: &str = "Recordings of MySQL-compatible servers under load, as `whyso serve` shows them. Times are seconds of the run, from the \
     moment that the page's axes count from. An error is `{\"error\": \"one sentence\"}`, whatever its status. An address answers a method that it \
     does not have with 405 and the header `Allow`. HEAD is answered like GET, without the body.";

/// The head of a description.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes utoipa's own type, which has no schema")]
pub(super) struct OpenApiDocument {
    openapi: String,
    #[schema(value_type = Object)]
    paths: (),
}

/// Returns this description.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "description",
    responses((status = 200, description = "OpenAPI 3.1", body = inline(OpenApiDocument)), CheckedSender)
)]
pub(super) async fn openapi(Extension(document): Extension<Arc<OpenApi>>) -> Json<OpenApi> {
    Json(OpenApi::clone(&document))
}

/// Returns the description without its operations. `cookie` is the name of the session's cookie, which contains the server's port.
pub(super) fn head(cookie: &str) -> OpenApi {
    let about_token = "The token that `whyso serve` printed, or that its file holds.";
    let about_cookie = "What `POST /session` sets for the token: a session of eight hours.";
    let token = Http::builder().scheme(HttpAuthScheme::Bearer).description(Some(about_token)).build();
    let session = ApiKey::Cookie(ApiKeyValue::with_description(cookie, about_cookie));
    let components = ComponentsBuilder::new()
        .security_scheme("token", SecurityScheme::Http(token))
        .security_scheme("cookie", SecurityScheme::ApiKey(session))
        .schema(RefusalBody::name(), RefusalBody::schema());
    let nothing: [&str; 0] = [];
    let either = ["token", "cookie"].map(|scheme| SecurityRequirement::new(scheme, nothing));
    let info = InfoBuilder::new()
        .title("whyso serve")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .build();
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([Server::new("/api/v1")]))
        .security(Some(either))
        .components(Some(components.build()))
        .build()
}

/// Describes a refusal by its status, for `responses(...)` of an operation.
pub(super) struct Refuses<const STATUS: u16>;

/// Describes the refusals of every operation: its sender is checked.
pub(super) struct CheckedSender;

/// Describes the refusals of an operation that reads or writes files: it waits for its turn, and can find them damaged.
pub(super) struct Reading;

type Responses = BTreeMap<String, RefOr<Response>>;

impl<const STATUS: u16> IntoResponses for Refuses<STATUS> {
    fn responses() -> Responses {
        responses(&[STATUS])
    }
}

impl IntoResponses for CheckedSender {
    fn responses() -> Responses {
        responses(&[401, 403])
    }
}

impl IntoResponses for Reading {
    fn responses() -> Responses {
        responses(&[401, 403, 500, 503])
    }
}

fn responses(statuses: &[u16]) -> Responses {
    statuses.iter().map(|status| (status.to_string(), RefOr::T(refusal(*status)))).collect()
}

fn refusal(status: u16) -> Response {
    let why = match status {
        400 => "The request makes no sense.",
        401 => "The token is missing or wrong.",
        403 => "The request used another host's name, or came from another site's page.",
        404 => "There is no such thing.",
        409 => {
            "Not now: the run is being recorded, is not being recorded, or was recorded by a newer version."
        }
        413 => "The request is too large.",
        415 => "The request's body is of another type.",
        500 => "Reading or writing failed: the recording may be damaged, or the disk full.",
        _ => "The server is busy: ask again in a moment.",
    };
    let body = Content::new(Some(Ref::from_schema_name(RefusalBody::name())));
    ResponseBuilder::new().description(why).content("application/json", body).build()
}
