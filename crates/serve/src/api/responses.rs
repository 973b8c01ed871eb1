//! Answers that are text already.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use whyso_report::payload::PageHead;

use crate::error::Answer;

pub(super) fn json_text(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

/// Any JSON object: its description is "type: object".
pub(super) type Object = serde_json::Map<String, serde_json::Value>;

/// Returns a part of a head under its name, with its blocks as base64.
///
/// # Errors
/// The blocks can't be written as JSON.
pub(super) fn blocks_response(name: &str, part: &PageHead) -> Answer<Response> {
    let base64 = |block: &Vec<u8>| base64::engine::general_purpose::STANDARD.encode(block);
    let blocks: Vec<String> = part.blocks.iter().map(base64).collect();
    let blocks = serde_json::to_string(&blocks)?;
    Ok(json_text(format!("{{\"{name}\":{},\"blocks\":{blocks}}}", part.head_json)))
}
