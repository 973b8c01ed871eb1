//! Payloads of the write-ahead frames: each is a whole Arrow IPC stream, schema first, so that a frame can be read without
//! those before it and a stream may change its columns.

use std::fs;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::error::{Error, Result};
use crate::frame;

pub(crate) fn encode(batch: &RecordBatch) -> Result<Vec<u8>> {
    let encoded = || -> std::result::Result<Vec<u8>, ArrowError> {
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(batch)?;
        writer.into_inner()
    };
    let payload = encoded().map_err(|cause| Error::damaged(Path::new("a table"), "Arrow IPC", cause))?;
    if payload.len() > frame::PAYLOAD_BYTES_MAX {
        let cause = format!("{} bytes at once are more than a frame holds", payload.len());
        return Err(Error::damaged(Path::new("a table"), "a frame", cause));
    }
    Ok(payload)
}

/// What a write-ahead file holds.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) batches: Vec<RecordBatch>,
    /// Bytes at the end that are no whole frame.
    pub(crate) lost_bytes: usize,
}

/// Reads up to the first bad frame.
pub(crate) fn read(path: &Path) -> Result<Recovered> {
    let bytes = fs::read(path).map_err(|cause| Error::io(path, cause))?;
    let (payloads, mut lost_bytes) = frame::split(&bytes);
    let mut batches = Vec::new();
    for (index, payload) in payloads.iter().enumerate() {
        let Ok(decoded) = decode(payload) else {
            // Its checksum is right, so it was written so: by another version, say. Nothing after it is trusted.
            lost_bytes +=
                payloads[index..].iter().map(|payload| frame::framed_bytes(payload.len())).sum::<usize>();
            break;
        };
        batches.extend(decoded);
    }
    Ok(Recovered { batches, lost_bytes })
}

fn decode(payload: &[u8]) -> std::result::Result<Vec<RecordBatch>, ArrowError> {
    StreamReader::try_new(payload, None)?.collect()
}
