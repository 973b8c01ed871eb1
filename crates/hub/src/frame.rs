//! Frames: entries of a host's recording, in order, each frame with its number.

use std::io::Read;

use serde::{Deserialize, Serialize};
use whyso_record::Entry;

use crate::error::{Error, Result};

/// The most bytes of a frame on the bus. The server refuses larger ones.
pub const FRAME_BYTES_MAX: usize = 4 << 20;
/// The most bytes of a frame's entries. A frame that claims to hold more is refused before it is unpacked.
pub const ENTRIES_BYTES_MAX: usize = 64 << 20;
/// Fast, and half of what the slow levels save.
const LEVEL: i32 = 1;
const FORMAT: u8 = 1;

/// Entries of a host's recording. Frames are numbered from 1: one that comes twice is known by its number, and so is one that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// 0: the last one of an agent that was killed, which does not know the numbers before. It comes after all others.
    pub number: u64,
    /// No further one comes.
    pub is_last: bool,
    /// Entries that the host could not hand over, since its recording began.
    pub lost: u64,
    /// As of [`Entry::append_to`].
    pub entries: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct PackedFrame<'b> {
    format: u8,
    number: u64,
    is_last: bool,
    lost: u64,
    /// CRC-32C of what follows.
    checksum: u32,
    #[serde(borrow)]
    entries: &'b [u8],
}

impl Frame {
    /// # Errors
    /// It is too large for the bus.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let entries =
            zstd::bulk::compress(&self.entries, LEVEL).map_err(|cause| Error::Bus(cause.to_string()))?;
        let Frame { number, is_last, lost, .. } = *self;
        let checksum = crc32c::crc32c(&entries);
        let packed = PackedFrame { format: FORMAT, number, is_last, lost, checksum, entries: &entries };
        let bytes =
            postcard::to_extend(&packed, Vec::new()).map_err(|cause| Error::Bus(cause.to_string()))?;
        match bytes.len() <= FRAME_BYTES_MAX {
            true => Ok(bytes),
            false => Err(Error::Bus(format!("a frame of {} bytes is too large", bytes.len()))),
        }
    }

    /// # Errors
    /// It is damaged, too large, or of another format.
    pub fn from_bytes(host: &str, bytes: &[u8]) -> Result<Frame> {
        let unreadable = |what: &str| Error::Unreadable { host: host.to_string(), what: what.to_string() };
        if bytes.len() > FRAME_BYTES_MAX {
            return Err(unreadable("a frame that is too large"));
        }
        let packed: PackedFrame<'_> = postcard::from_bytes(bytes).map_err(|_| unreadable("no frame"))?;
        if packed.format != FORMAT {
            return Err(unreadable("a frame of another format"));
        }
        if crc32c::crc32c(packed.entries) != packed.checksum {
            return Err(unreadable("a damaged frame"));
        }
        let mut entries = Vec::new();
        let unpacked = zstd::Decoder::new(packed.entries)
            .and_then(|decoder| decoder.take(ENTRIES_BYTES_MAX as u64 + 1).read_to_end(&mut entries));
        match unpacked {
            Ok(bytes) if bytes <= ENTRIES_BYTES_MAX => {}
            _ => return Err(unreadable("a frame that can't be unpacked")),
        }
        Ok(Frame { number: packed.number, is_last: packed.is_last, lost: packed.lost, entries })
    }

    /// Its entries, one at a time, as of [`Entry::read_all`].
    pub fn entries<'f>(&'f self, host: &'f str) -> impl Iterator<Item = Result<Entry>> + 'f {
        let unreadable = |error: whyso_record::Error| Error::Unreadable {
            host: host.to_string(),
            what: error.to_string(),
        };
        Entry::read_all(&self.entries).map(move |entry| entry.map_err(unreadable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame { number: 7, is_last: false, lost: 2, entries: b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".to_vec() }
    }

    #[test]
    fn a_frame_is_read_as_it_was_written_and_no_flipped_bit_passes() {
        let bytes = frame().to_bytes().unwrap();
        assert_eq!(Frame::from_bytes("db", &bytes).unwrap(), frame());
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            // The header is guarded by the numbers: one that is changed is missing or comes twice.
            if let Ok(read) = Frame::from_bytes("db", &flipped) {
                assert_eq!(read.entries, frame().entries, "bit {at}");
            }
        }
    }

    #[test]
    fn a_small_frame_of_many_zeros_is_refused_before_it_fills_the_memory() {
        let bomb = Frame { entries: vec![0; ENTRIES_BYTES_MAX + 1], ..frame() };
        let bytes = bomb.to_bytes().unwrap();
        assert!(bytes.len() < 100_000);
        assert!(Frame::from_bytes("db", &bytes).is_err());
    }
}
