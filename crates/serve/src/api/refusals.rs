//! Gives every refusal one form: `{"error": "one sentence"}`.

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::Refusal;

/// Bytes of a reason that are read.
const REASON_BYTES_MAX: usize = 4096;

/// Rewrites refusals of the router and its extractors, which are plain text or empty.
pub(super) async fn in_one_form(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let response = next.run(request).await;
    let status = response.status();
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !status.is_client_error() || is_json {
        return response;
    }
    let (head, body) = response.into_parts();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let mut refused = Refusal::new(status, no_method(method.as_str(), &head.headers)).into_response();
        refused.headers_mut().extend(head.headers.get(ALLOW).map(|allowed| (ALLOW, allowed.clone())));
        return refused;
    }
    let reason = to_bytes(body, REASON_BYTES_MAX).await.unwrap_or_default();
    let reason = String::from_utf8_lossy(&reason);
    // A body that makes no sense is refused like a query that makes none.
    let status = if status == StatusCode::UNPROCESSABLE_ENTITY { StatusCode::BAD_REQUEST } else { status };
    let reason = match reason.trim() {
        "" => status.canonical_reason().unwrap_or("this is not answered"),
        reason => reason,
    };
    Refusal::new(status, reason).into_response()
}

fn no_method(method: &str, headers: &HeaderMap) -> String {
    let allowed = headers.get(ALLOW).and_then(|allowed| allowed.to_str().ok()).unwrap_or_default();
    format!("this address takes no {method}, but {}", allowed.replace(',', ", "))
}
