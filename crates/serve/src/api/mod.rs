//! The API: which address gives what. Each handler parses, calls one function, and answers.

mod bookmarks;
mod compare;
mod live;
mod moving;
mod openapi;
mod read;
mod refusals;
mod runs;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post};
use base64::Engine;
use tokio::sync::Semaphore;
use whyso_report::payload::Served;

use crate::access::Access;
use crate::bookmarks::Bookmarks;
use crate::error::{Answer, Refused};
use crate::found::Verdicts;
use crate::listen::ServePlan;
use crate::live::Live;
use crate::open::Recordings;
use crate::page;
use crate::session::Session;

/// Requests that read recordings at a time: each may hold some thirty series in memory.
const READERS_MAX: usize = 3;
/// A request waits so long for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(30);
/// Of what a browser sends.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Everything that requests share.
pub(crate) struct Site {
    access: Access,
    pub(crate) recordings: Recordings,
    pub(crate) verdicts: Verdicts,
    pub(crate) bookmarks: Bookmarks,
    pub(crate) live: Live,
    /// A backup or an import, one at a time.
    moving: Arc<Semaphore>,
    readers: Arc<Semaphore>,
}

impl Site {
    pub(crate) fn new(plan: ServePlan, access: Access) -> Site {
        Site {
            access,
            live: Live::new(plan.runs.clone(), plan.servers, plan.recorder),
            recordings: Recordings::new(plan.runs),
            verdicts: Verdicts::new(plan.verdicts),
            bookmarks: Bookmarks::new(plan.charts),
            moving: Arc::new(Semaphore::new(1)),
            readers: Arc::new(Semaphore::new(READERS_MAX)),
        }
    }

    /// When nothing is being read.
    pub(crate) async fn until_idle(&self) {
        let _ = self.readers.acquire_many(READERS_MAX as u32).await;
    }
}

/// Does what reads or writes files away from the threads that serve sockets, a few at a time.
pub(crate) async fn reading<T: Send + 'static>(
    site: Arc<Site>,
    read: impl FnOnce(&Site) -> Answer<T> + Send + 'static,
) -> Answer<T> {
    let turn = tokio::time::timeout(TURN_WITHIN, Arc::clone(&site.readers).acquire_owned()).await;
    let Ok(Ok(turn)) = turn else { return Err(Refused::busy()) };
    let done = tokio::task::spawn_blocking(move || {
        let answer = read(&site);
        drop(turn);
        answer
    });
    done.await.unwrap_or_else(|_| Err(Refused::damaged()))
}

fn json_text(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

/// A part of a head under its name, with its blocks.
fn blocks_response(name: &str, made: &Served) -> Answer<Response> {
    let base64 = |block: &Vec<u8>| base64::engine::general_purpose::STANDARD.encode(block);
    let blocks: Vec<String> = made.blocks.iter().map(base64).collect();
    let blocks = serde_json::to_string(&blocks)?;
    Ok(json_text(format!("{{\"{name}\":{},\"blocks\":{blocks}}}", made.head_json)))
}

/// Every address, from `/api/v1` on; [`openapi`] describes each.
fn routes() -> Vec<(&'static str, MethodRouter<Arc<Site>>)> {
    vec![
        ("/openapi.json", get(openapi::openapi)),
        ("/session", post(session)),
        ("/runs", get(runs::list)),
        ("/runs/backup", get(moving::backup)),
        ("/runs/import", post(moving::import)),
        ("/runs/{id}", get(read::outline).delete(runs::remove)),
        ("/runs/{id}/explained", get(read::explained)),
        ("/runs/{id}/blocks/{number}", get(read::block)),
        ("/runs/{id}/catalogue", get(read::catalogue)),
        ("/runs/{id}/series", get(read::series)),
        ("/runs/{id}/tables", get(read::tables)),
        ("/runs/{id}/events", get(read::events)),
        ("/runs/{id}/log", get(read::log)),
        ("/runs/{id}/notes", post(runs::note)),
        ("/runs/{id}/prune", post(runs::prune)),
        ("/bookmarks", get(bookmarks::list).put(bookmarks::save)),
        ("/bookmarks/import", post(bookmarks::import)),
        ("/bookmarks/{key}", delete(bookmarks::remove)),
        ("/bookmarks/{key}/toml", get(bookmarks::export)),
        ("/live", get(live::list)),
        ("/live/{name}/start", post(live::start)),
        ("/live/{name}/stop", post(live::stop)),
        ("/compare", get(compare::compare)),
        ("/compare/flame", get(compare::flame)),
    ]
}

pub(crate) fn router(site: Arc<Site>) -> Router {
    let routed = |router: Router<Arc<Site>>, (path, methods)| router.route(path, methods);
    let api = routes()
        .into_iter()
        .fold(Router::new(), routed)
        .fallback(no_such_address)
        .layer(from_fn(refusals::in_one_form))
        .layer(from_fn_with_state(Arc::clone(&site), with_token));
    Router::new()
        .nest("/api/v1", api)
        .fallback(page)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&site), from_own_page))
        .with_state(site)
}

/// The page: one document at every address that is not the API's, since the address says what it shows.
async fn page(request: Request) -> Response {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Refused::new(StatusCode::METHOD_NOT_ALLOWED, "the page is only read").into_response();
    }
    if request.uri().path().starts_with("/api") {
        return no_such_address().await.into_response();
    }
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], page::html()).into_response()
}

async fn no_such_address() -> Refused {
    Refused::not_found("there is nothing at this address: docs/reference/web-api.md lists those of the API")
}

/// The token begins a session, which the page's cookie holds.
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
