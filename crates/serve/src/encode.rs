//! Columns as the page reads them: a JSON head, then the numbers as they lie in memory.
//!
//! Four bytes, little-endian, say how long the head is; blanks after it bring what follows to a multiple of eight. Then come the columns in the
//! head's order, each number in eight bytes, little-endian; `NaN` is a gap.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::Answer;

const LENGTH_BYTES: usize = 4;

pub(crate) fn columns(head: &impl Serialize, columns: &[&[f64]]) -> Answer<Response> {
    let bytes = bytes(&serde_json::to_string(head)?, columns);
    Ok(([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

fn bytes(head: &str, columns: &[&[f64]]) -> Vec<u8> {
    let padded = (LENGTH_BYTES + head.len()).next_multiple_of(8) - LENGTH_BYTES;
    let numbers: usize = columns.iter().map(|column| column.len()).sum();
    let mut bytes = Vec::with_capacity(LENGTH_BYTES + padded + numbers * 8);
    bytes.extend_from_slice(&(padded as u32).to_le_bytes());
    bytes.extend_from_slice(head.as_bytes());
    bytes.resize(LENGTH_BYTES + padded, b' ');
    for value in columns.iter().copied().flatten() {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_at_a_multiple_of_eight() {
        for head in ["{}", "{\"a\":1}", "{\"ä\":12}"] {
            let bytes = bytes(head, &[&[1.5, f64::NAN], &[-2.0]]);
            let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
            assert_eq!((4 + length) % 8, 0);
            assert_eq!(std::str::from_utf8(&bytes[4..4 + length]).unwrap().trim_end(), head);
            assert_eq!(bytes.len(), 4 + length + 24);
            assert_eq!(bytes[4 + length..][..8], 1.5f64.to_le_bytes());
        }
    }
}
