//! The API: which address answers what. Each handler parses, calls one function, and answers.

mod archive;
mod bookmarks;
mod compare;
mod live;
mod notes;
mod now;
mod openapi;
mod parameters;
mod read;
mod refusals;
mod responses;
mod runs;
mod studies;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::openapi::CheckedSender;
use crate::error::Refusal;
use crate::page;
use crate::session::Session;
use crate::site::Site;

/// Bytes of a request's body, except an import's.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Returns every address from `/api/v1` on, each with its description.
fn operations(cookie: &str) -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::with_openapi(openapi::head(cookie))
        .routes(routes!(openapi::openapi))
        .routes(routes!(session))
        .routes(routes!(runs::list))
        .routes(routes!(archive::backup))
        .routes(routes!(archive::import))
        .routes(routes!(read::outline, runs::remove))
        .routes(routes!(read::explained))
        .routes(routes!(read::profile_part))
        .routes(routes!(read::block))
        .routes(routes!(read::catalogue))
        .routes(routes!(read::series))
        .routes(routes!(read::tables))
        .routes(routes!(read::events))
        .routes(routes!(read::log))
        .routes(routes!(notes::note, notes::change))
        .routes(routes!(notes::labels, notes::set))
        .routes(routes!(now::now))
        .routes(routes!(runs::prune))
        .routes(routes!(bookmarks::list, bookmarks::save))
        .routes(routes!(bookmarks::import))
        .routes(routes!(bookmarks::remove))
        .routes(routes!(bookmarks::export))
        .routes(routes!(live::list))
        .routes(routes!(live::start))
        .routes(routes!(live::stop))
        .routes(routes!(studies::list))
        .routes(routes!(studies::study))
        .routes(routes!(compare::compare))
        .routes(routes!(compare::flame))
}

pub(crate) fn router(site: Arc<Site>) -> Router {
    let (api, description) = operations(site.access.cookie()).split_for_parts();
    let api = api
        .fallback(no_such_address)
        // Shared: a layer copies what it holds for each address.
        .layer(Extension(Arc::new(description)))
        .layer(from_fn(refusals::in_one_form))
        .layer(from_fn_with_state(Arc::clone(&site), with_token));
    Router::new()
        .nest("/api/v1", api)
        .fallback(page)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&site), from_own_page))
        .with_state(site)
}

/// Answers every address that is not the API's with the page, which reads from the address what to show.
async fn page(request: Request) -> Response {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "the page can only be read").into_response();
    }
    if request.uri().path().starts_with("/api") {
        return no_such_address().await.into_response();
    }
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], page::html()).into_response()
}

async fn no_such_address() -> Refusal {
    Refusal::not_found("there is nothing at this address: docs/reference/web-api.md lists those of the API")
}

/// Begins a session, which the page's cookie holds.
#[utoipa::path(
    post,
    path = "/session",
    operation_id = "signIn",
    responses((status = 204, description = "The cookie is set."), CheckedSender)
)]
async fn session(State(site): State<Arc<Site>>) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&site, &mut response);
    response
}

fn set_cookie(site: &Site, response: &mut Response) {
    if let Ok(cookie) = HeaderValue::from_str(&site.access.set_cookie()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
}

async fn from_own_page(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let checked = site.access.check_sender(request.headers(), request.uri());
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    let always: [(HeaderName, &str); 7] = [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, page::policy()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in always {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

async fn with_token(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    match site.access.check(request.headers()) {
        Ok(session) => {
            let mut response = next.run(request).await;
            // A page that is in use stays signed in.
            if session.is_some_and(Session::is_old) {
                set_cookie(&site, &mut response);
            }
            response
        }
        Err(refused) => refused.into_response(),
    }
}

#[cfg(test)]
mod typescript;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn description() -> Value {
        serde_json::to_value(operations("whyso_7979").into_openapi()).unwrap()
    }

    fn operation_ids(description: &Value) -> Vec<&str> {
        let paths = description["paths"].as_object().unwrap();
        let operations = paths.values().flat_map(|methods| methods.as_object().unwrap().values());
        operations.map(|operation| operation["operationId"].as_str().unwrap()).collect()
    }

    /// A route enters the router with its operation. So only a route that goes around [`operations`] could lack one.
    #[test]
    fn every_route_has_an_operation() {
        let source = include_str!("mod.rs");
        let code = source.split("#[cfg(test)]").next().unwrap();
        assert!(!code.contains(".route(") && code.matches(".nest(").count() == 1);
        let handlers: usize = code
            .lines()
            .filter_map(|line| line.trim().strip_prefix(".routes(routes!("))
            .map(|line| line.split(',').count())
            .sum();
        let description = description();
        let ids = operation_ids(&description);
        assert_eq!(ids.len(), handlers);
        assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{ids:?}");
    }

    #[test]
    fn what_the_description_refers_to_exists() {
        let description = description();
        let text = description.to_string();
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(description["components"]["schemas"][name].is_object(), "{name}");
        }
        let ids = operation_ids(&description);
        for link in text.split("{\"operationId\":\"").skip(1) {
            assert!(ids.contains(&link.split('"').next().unwrap()));
        }
    }

    #[test]
    fn every_operation_lists_its_refusals_and_the_bounds_of_its_body() {
        let description = description();
        for methods in description["paths"].as_object().unwrap().values() {
            for operation in methods.as_object().unwrap().values() {
                for status in ["401", "403"] {
                    assert!(operation["responses"][status].is_object(), "{operation}");
                }
            }
        }
        let note = &description["components"]["schemas"]["Note"]["properties"]["text"]["description"];
        assert!(note.as_str().unwrap().contains(&format!("{} KiB", BODY_BYTES_MAX >> 10)), "{note}");
    }
}
