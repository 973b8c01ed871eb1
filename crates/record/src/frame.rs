//! Frames: how a write-ahead file is cut, so that its whole part is known after a crash.
//!
//! A file begins with [`MAGIC`]; each frame is the payload's length and a checksum (both `u32`, little endian), then the payload.
//! The checksum is CRC-32C (Castagnoli) of the four bytes of the length and of the payload. A tail of zeros, which some file systems
//! leave after a power failure, is then no frame.

pub(crate) const MAGIC: &[u8; 8] = b"whysowa1";
const HEADER_BYTES: usize = 8;
/// Longer frames are never written, so a longer length is damage.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// Appends one frame to `out`.
pub(crate) fn append(payload: &[u8], out: &mut Vec<u8>) {
    let length = (payload.len() as u32).to_le_bytes();
    let checksum = checksum(length, payload);
    out.extend_from_slice(&length);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(payload);
}

/// The payloads of the whole frames at the start of `bytes`, and how many bytes after them are no whole frame.
pub(crate) fn split(bytes: &[u8]) -> (Vec<&[u8]>, usize) {
    let mut payloads = Vec::new();
    let Some(rest) = bytes.strip_prefix(MAGIC.as_slice()) else {
        return (payloads, bytes.len());
    };
    let rest = split_frames(rest, &mut payloads);
    (payloads, rest.len())
}

/// The same from a frame on; gives what is no whole frame.
pub(crate) fn split_frames<'b>(mut rest: &'b [u8], payloads: &mut Vec<&'b [u8]>) -> &'b [u8] {
    while let Some((payload, after)) = first(rest) {
        payloads.push(payload);
        rest = after;
    }
    rest
}

fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (expected, rest) = rest.split_first_chunk::<4>()?;
    let payload_bytes = u32::from_le_bytes(*length) as usize;
    if payload_bytes > PAYLOAD_BYTES_MAX {
        return None;
    }
    let (payload, rest) = rest.split_at_checked(payload_bytes)?;
    (checksum(*length, payload) == u32::from_le_bytes(*expected)).then_some((payload, rest))
}

fn checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length), payload)
}

/// Bytes that a payload takes in a file.
pub(crate) fn framed_bytes(payload_bytes: usize) -> usize {
    HEADER_BYTES + payload_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file_of(payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for payload in payloads {
            append(payload, &mut file);
        }
        file
    }

    #[test]
    fn zeros_are_no_frames() {
        let mut file = file_of(&[b"one".to_vec()]);
        file.extend([0; 100]);
        assert_eq!(split(&file), (vec![&b"one"[..]], 100));
    }

    fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..12)
    }

    proptest! {
        #[test]
        fn a_truncated_file_gives_its_whole_frames(payloads in payloads(), cut in any::<prop::sample::Index>()) {
            let file = file_of(&payloads);
            let cut = cut.index(file.len() + 1);
            let (found, lost) = split(&file[..cut]);
            let mut end = MAGIC.len();
            let mut whole = 0;
            while whole < payloads.len() && end + framed_bytes(payloads[whole].len()) <= cut {
                end += framed_bytes(payloads[whole].len());
                whole += 1;
            }
            prop_assert_eq!(&found, &payloads[..whole].iter().map(Vec::as_slice).collect::<Vec<_>>());
            let expected_lost = if cut < MAGIC.len() { cut } else { cut - end };
            prop_assert_eq!(lost, expected_lost);
        }

        #[test]
        fn a_changed_byte_loses_that_frame_and_what_follows(payloads in payloads(), at in any::<prop::sample::Index>(), change in 1u8..) {
            let mut file = file_of(&payloads);
            let at = at.index(file.len());
            file[at] ^= change;
            let (found, lost) = split(&file);
            let mut end = MAGIC.len();
            let mut before = 0;
            while before < payloads.len() && end + framed_bytes(payloads[before].len()) <= at {
                end += framed_bytes(payloads[before].len());
                before += 1;
            }
            if at < MAGIC.len() {
                before = 0;
                end = 0;
            }
            prop_assert_eq!(found, payloads[..before].iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert_eq!(lost, file.len() - end);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), with_magic: bool) {
            let mut file = if with_magic { MAGIC.to_vec() } else { Vec::new() };
            file.extend(bytes);
            let (found, lost) = split(&file);
            let whole: usize = found.iter().map(|payload| framed_bytes(payload.len())).sum();
            prop_assert!(whole + lost <= file.len());
        }
    }
}
