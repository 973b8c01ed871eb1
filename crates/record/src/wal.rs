//! Payloads of the write-ahead frames: each is a whole Arrow IPC stream, schema first, so that a frame can be read without
//! those before it and a stream may change its columns.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
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
    /// Where the whole frames end.
    pub(crate) read_bytes: u64,
}

/// Reads up to the first bad frame.
pub(crate) fn read(path: &Path) -> Result<Recovered> {
    read_on(path, 0)
}

/// The same from where an earlier reading of the file ended, [`Recovered::read_bytes`]; 0: from its beginning.
pub(crate) fn read_on(path: &Path, from: u64) -> Result<Recovered> {
    let io = |cause| Error::io(path, cause);
    let mut file = File::open(path).map_err(io)?;
    file.seek(SeekFrom::Start(from)).map_err(io)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(io)?;
    let (payloads, mut lost_bytes) = match from {
        0 => frame::split(&bytes),
        _ => {
            let mut payloads = Vec::new();
            let rest = frame::split_frames(&bytes, &mut payloads);
            (payloads, rest.len())
        }
    };
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
    let read_bytes = from + (bytes.len() - lost_bytes) as u64;
    Ok(Recovered { batches, lost_bytes, read_bytes })
}

fn decode(payload: &[u8]) -> std::result::Result<Vec<RecordBatch>, ArrowError> {
    StreamReader::try_new(payload, None)?.collect()
}
