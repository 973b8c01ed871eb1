//! Payloads of the write-ahead frames: each is a whole Arrow IPC stream, schema first. So a frame can be read without those before
//! it, and a stream may change its columns.

use std::io::{Read, Seek, SeekFrom};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;

use crate::error::{Error, Result};
use crate::{frame, private};

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
pub(crate) struct WalContents {
    pub(crate) batches: Vec<RecordBatch>,
    /// Bytes at the end that are no whole frame.
    pub(crate) lost_bytes: usize,
    /// Where the whole frames end.
    pub(crate) read_bytes: u64,
}

/// Reads up to the first bad frame.
pub(crate) fn read(path: &Path) -> Result<WalContents> {
    read_on(path, 0)
}

/// The same from where an earlier reading of the file ended, [`WalContents::read_bytes`]; 0: from its beginning.
pub(crate) fn read_on(path: &Path, from: u64) -> Result<WalContents> {
    let io = |cause| Error::io(path, cause);
    let mut file = private::open_file(path).map_err(io)?;
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
        let Some(decoded) = decode(payload) else {
            // Its checksum is right, so it was written so: by another version, or by somebody who wants harm. Nothing after it is trusted.
            lost_bytes +=
                payloads[index..].iter().map(|payload| frame::framed_bytes(payload.len())).sum::<usize>();
            break;
        };
        batches.extend(decoded);
    }
    let read_bytes = from + (bytes.len() - lost_bytes) as u64;
    Ok(WalContents { batches, lost_bytes, read_bytes })
}

/// Decodes a frame; `None` where it can't be. This decoder allocates by the bytes that are there, not by the lengths that they claim.
pub(crate) fn decode(payload: &[u8]) -> Option<Vec<RecordBatch>> {
    let decoded = || -> std::result::Result<Vec<RecordBatch>, ArrowError> {
        let (mut decoder, mut rest) = (StreamDecoder::new(), Buffer::from(payload.to_vec()));
        let mut batches = Vec::new();
        while let Some(batch) = decoder.decode(&mut rest)? {
            batches.push(batch);
        }
        decoder.finish()?;
        Ok(batches)
    };
    // It panics on some contents. What the closure borrows is only read.
    panic::catch_unwind(AssertUnwindSafe(decoded)).ok()?.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    fn payload() -> Vec<u8> {
        let texts = StringArray::from(vec![Some("a"), None, Some("ccc")]);
        let numbers = Int64Array::from(vec![1, 2, 3]);
        let columns: [(&str, arrow::array::ArrayRef); 2] =
            [("text", Arc::new(texts)), ("number", Arc::new(numbers))];
        encode(
            &RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
                .unwrap(),
        )
        .unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_frame_that_somebody_made_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in any::<prop::sample::Index>()) {
            let mut bytes = payload();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(1 + cut.index(bytes.len()));
            // Its result is that it ends.
            let _ = decode(&bytes).map(|batches| format!("{batches:?}"));
        }
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        assert_eq!(decode(&payload()).unwrap()[0].num_rows(), 3);
    }
}
