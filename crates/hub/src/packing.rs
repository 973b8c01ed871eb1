//! Messages of the bus: JSON, compressed where it is long.

use std::io::Read;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// The most bytes of a message on the bus, and of what it holds.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 << 10;
const JSON_BYTES_MAX: usize = 16 << 20;
/// A shorter message is not compressed.
const SHORT_BYTES: usize = 1 << 10;
const LEVEL: i32 = 1;
/// With these, compressed data begin, and JSON never does.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// # Errors
/// It is too long.
pub(crate) fn pack(message: &impl Serialize) -> Result<Vec<u8>> {
    let bus = |why: String| Error::Bus(why);
    let json = serde_json::to_vec(message).map_err(|error| bus(error.to_string()))?;
    let bytes = match json.len() {
        0..=SHORT_BYTES => json,
        _ => zstd::bulk::compress(&json, LEVEL).map_err(|error| bus(error.to_string()))?,
    };
    match bytes.len() <= MESSAGE_BYTES_MAX {
        true => Ok(bytes),
        false => Err(bus(format!(
            "a message of {} bytes is too long, {MESSAGE_BYTES_MAX} are the most",
            bytes.len()
        ))),
    }
}

/// # Errors
/// It is too long, or no such message. The text says which.
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> std::result::Result<T, String> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err("a message that is too long".to_string());
    }
    if !bytes.starts_with(&ZSTD_MAGIC) {
        return serde_json::from_slice(bytes).map_err(|error| error.to_string());
    }
    let mut json = Vec::new();
    let unpacked = zstd::Decoder::new(bytes)
        .and_then(|decoder| decoder.take(JSON_BYTES_MAX as u64 + 1).read_to_end(&mut json));
    match unpacked {
        Ok(length) if length <= JSON_BYTES_MAX => {
            serde_json::from_slice(&json).map_err(|error| error.to_string())
        }
        _ => Err("a message that can't be unpacked".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_as_it_was_whether_short_or_long() {
        for text in ["short".to_string(), "long ".repeat(100_000)] {
            let bytes = pack(&text).unwrap();
            assert!(bytes.len() < 2000);
            assert_eq!(unpack::<String>(&bytes).unwrap(), text);
        }
    }

    #[test]
    fn a_message_that_unpacks_to_too_much_is_refused() {
        let bomb = zstd::bulk::compress(&vec![b' '; JSON_BYTES_MAX + 1], LEVEL).unwrap();
        assert!(bomb.len() < MESSAGE_BYTES_MAX);
        assert!(unpack::<String>(&bomb).unwrap_err().contains("unpacked"));
        assert!(unpack::<String>(&vec![b' '; MESSAGE_BYTES_MAX + 1]).unwrap_err().contains("too long"));
    }
}
