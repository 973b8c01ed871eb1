//! One download, complete or not at all.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use ureq::Agent;

use crate::Bounds;

const NOT_FOUND: u16 = 404;
const PART: usize = 1 << 16;

/// Why a file could not be fetched.
#[derive(Debug, thiserror::Error)]
#[error("debug information can't be fetched from {url}: {why}")]
pub struct FetchError {
    pub url: String,
    pub why: String,
}

/// Fetches a file to `path`, and returns whether the server has it.
pub(crate) fn fetch(url: &str, path: &Path, bounds: Bounds) -> Result<bool, FetchError> {
    let failed = |why: String| FetchError { url: url.to_string(), why };
    let agent = Agent::config_builder()
        .timeout_connect(Some(bounds.silence))
        .timeout_recv_response(Some(bounds.silence))
        .timeout_global(Some(bounds.time))
        .http_status_as_error(false)
        .build()
        .new_agent();
    let response = agent.get(url).call().map_err(|error| failed(error.to_string()))?;
    match response.status().as_u16() {
        200 => {}
        NOT_FOUND => return Ok(false),
        other => return Err(failed(format!("it answers with status {other}"))),
    }
    let announced = response.body().content_length();
    if announced.is_some_and(|bytes| bytes > bounds.bytes) {
        return Err(failed(too_large(bounds)));
    }
    let folder = path.parent().ok_or_else(|| failed("there is no folder for it".to_string()))?;
    let written = |error: std::io::Error| failed(error.to_string());
    std::fs::create_dir_all(folder).map_err(written)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(written)?;
    let mut body = response.into_body().into_reader();
    let (began, mut part, mut all) = (Instant::now(), vec![0; PART], 0u64);
    loop {
        let bytes = body.read(&mut part).map_err(written)?;
        if bytes == 0 {
            break;
        }
        all += bytes as u64;
        if all > bounds.bytes {
            return Err(failed(too_large(bounds)));
        }
        if began.elapsed() > bounds.time {
            return Err(failed(format!("it took longer than {} s", bounds.time.as_secs())));
        }
        file.write_all(&part[..bytes]).map_err(written)?;
    }
    if announced.is_some_and(|announced| announced != all) {
        return Err(failed("the connection ended too early".to_string()));
    }
    file.persist(path).map_err(|error| failed(error.to_string()))?;
    Ok(true)
}

fn too_large(bounds: Bounds) -> String {
    format!("it is larger than {} bytes; DEBUGINFOD_MAXSIZE changes the bound", bounds.bytes)
}
