//! The compressed protocol: packets of its own around the stream of ordinary ones.
//!
//! Its packets have a header of seven bytes: length as sent, number, and length before compression (0: it is sent as
//! it is). Their numbers begin at 0 with each command, and what they carry may be cut anywhere.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::error::ProtocolError;
use crate::frame::PACKET_BYTES_MAX;

const HEADER_BYTES: usize = 7;
/// What is shorter than this is not worth compressing.
const COMPRESS_BYTES_MIN: usize = 50;
/// As libmysqlclient has it: zlib's default.
const LEVEL: u32 = 6;

/// Packs commands.
#[derive(Debug)]
pub struct Compressor {
    zlib: Compress,
}

impl Default for Compressor {
    fn default() -> Compressor {
        Compressor::new()
    }
}

impl Compressor {
    pub fn new() -> Compressor {
        Compressor { zlib: Compress::new(Compression::new(LEVEL), true) }
    }

    /// Appends `plain`, ordinary packets, to `out` in packets of the compressed protocol, and returns the number of the
    /// packet after them. `sequence` is the first one's number: 0 for a command, [`Decompressor::sequence_next`] in the
    /// midst of one.
    #[must_use]
    pub fn pack(&mut self, plain: &[u8], mut sequence: u8, out: &mut Vec<u8>) -> u8 {
        for piece in plain.chunks(PACKET_BYTES_MAX) {
            let begin = out.len();
            out.resize(begin + HEADER_BYTES, 0);
            let is_packed = piece.len() >= COMPRESS_BYTES_MIN && self.pack_piece(piece, out);
            if !is_packed {
                out.truncate(begin + HEADER_BYTES);
                out.extend_from_slice(piece);
            }
            let length = (out.len() - begin - HEADER_BYTES) as u32;
            let length_before = if is_packed { piece.len() as u32 } else { 0 };
            out[begin..begin + 3].copy_from_slice(&length.to_le_bytes()[..3]);
            out[begin + 3] = sequence;
            out[begin + 4..begin + HEADER_BYTES].copy_from_slice(&length_before.to_le_bytes()[..3]);
            sequence = sequence.wrapping_add(1);
        }
        sequence
    }

    /// Appends the piece compressed, unless that would not make it shorter.
    fn pack_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) -> bool {
        let begin = out.len();
        self.zlib.reset();
        // What compresses to less than its length fits; what does not, need not.
        out.resize(begin + piece.len() - 1, 0);
        let status = self.zlib.compress(piece, &mut out[begin..], FlushCompress::Finish);
        out.truncate(begin + self.zlib.total_out() as usize);
        matches!(status, Ok(Status::StreamEnd))
    }
}

/// Unpacks answers as their bytes arrive, however they are cut.
#[derive(Debug)]
pub struct Decompressor {
    zlib: Decompress,
    sequence_next: u8,
    /// The packet that is under way, header and payload.
    packet: Vec<u8>,
}

impl Default for Decompressor {
    fn default() -> Decompressor {
        Decompressor::new()
    }
}

impl Decompressor {
    pub fn new() -> Decompressor {
        Decompressor { zlib: Decompress::new(true), sequence_next: 0, packet: Vec::new() }
    }

    /// Gets ready for an answer whose first packet bears this number: what [`Compressor::pack`] gave.
    pub fn begin(&mut self, sequence_next: u8) {
        self.sequence_next = sequence_next;
        self.packet.clear();
    }

    /// Number that the next packet must bear, ours or theirs.
    pub fn sequence_next(&self) -> u8 {
        self.sequence_next
    }

    /// Whether a packet has come in part.
    pub fn is_inside(&self) -> bool {
        !self.packet.is_empty()
    }

    /// Takes all of `bytes` and appends what they unpack to, as far as packets are complete, to `plain`.
    ///
    /// # Errors
    /// What no server may send here; nothing more can be unpacked then.
    pub fn unpack(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), ProtocolError> {
        while !bytes.is_empty() {
            if self.packet.len() < HEADER_BYTES {
                bytes = self.gather(bytes, HEADER_BYTES);
                if self.packet.len() < HEADER_BYTES {
                    return Ok(());
                }
                let got = self.packet[3];
                if got != self.sequence_next {
                    return Err(ProtocolError::Sequence { expected: self.sequence_next, got });
                }
                self.sequence_next = got.wrapping_add(1);
            }
            let end = HEADER_BYTES + length_at(&self.packet, 0);
            bytes = self.gather(bytes, end);
            if self.packet.len() == end {
                self.unpack_packet(plain)?;
                self.packet.clear();
            }
        }
        Ok(())
    }

    /// Moves bytes to the packet until it has this length. Returns those that are left.
    fn gather<'a>(&mut self, bytes: &'a [u8], length: usize) -> &'a [u8] {
        let (head, rest) = bytes.split_at(bytes.len().min(length - self.packet.len()));
        self.packet.extend_from_slice(head);
        rest
    }

    fn unpack_packet(&mut self, plain: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let payload = &self.packet[HEADER_BYTES..];
        let expected = length_at(&self.packet, 4);
        if expected == 0 {
            plain.extend_from_slice(payload);
            return Ok(());
        }
        let begin = plain.len();
        plain.resize(begin + expected, 0);
        self.zlib.reset(true);
        let status = self.zlib.decompress(payload, &mut plain[begin..], FlushDecompress::Finish);
        let is_whole = matches!(status, Ok(Status::StreamEnd)) && self.zlib.total_out() == expected as u64;
        if !is_whole {
            return Err(ProtocolError::Compression { expected });
        }
        Ok(())
    }
}

fn length_at(header: &[u8], at: usize) -> usize {
    usize::from(header[at]) | usize::from(header[at + 1]) << 8 | usize::from(header[at + 2]) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8], piece_bytes: usize, sequence: u8) -> Result<Vec<u8>, ProtocolError> {
        let mut decompressor = Decompressor::new();
        decompressor.begin(sequence);
        let mut plain = Vec::new();
        for piece in packed.chunks(piece_bytes) {
            decompressor.unpack(piece, &mut plain)?;
        }
        Ok(plain)
    }

    #[test]
    fn what_is_packed_unpacks_to_itself_however_it_is_cut() {
        let noise: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for plain in [b"short".to_vec(), vec![b'x'; 10_000], noise] {
            let mut packed = Vec::new();
            assert_eq!(Compressor::new().pack(&plain, 255, &mut packed), 0);
            for piece_bytes in [1, 7, 1000, packed.len()] {
                assert_eq!(unpacked(&packed, piece_bytes, 255).unwrap(), plain);
            }
        }
    }

    #[test]
    fn only_what_gets_shorter_is_compressed() {
        let mut packed = Vec::new();
        let _ = Compressor::new().pack(b"\x01\0\0\0\x0e", 0, &mut packed);
        assert_eq!(packed, b"\x05\0\0\0\0\0\0\x01\0\0\0\x0e");
        packed.clear();
        let _ = Compressor::new().pack(&[b'x'; 1000], 0, &mut packed);
        assert!(packed.len() < 50 && packed[4..7] == [0xe8, 3, 0]);
    }

    #[test]
    fn a_stream_beyond_16_mib_takes_several_packets() {
        let plain = vec![7; PACKET_BYTES_MAX + 10];
        let mut packed = Vec::new();
        assert_eq!(Compressor::new().pack(&plain, 0, &mut packed), 2);
        assert!(unpacked(&packed, 64 * 1024, 0).unwrap() == plain);
    }

    #[test]
    fn a_wrong_number_or_length_is_an_error_with_its_reason() {
        let mut packed = Vec::new();
        let _ = Compressor::new().pack(&[b'x'; 1000], 1, &mut packed);
        let message = unpacked(&packed, 10, 0).unwrap_err().to_string();
        assert!(message.contains("number 0 was due, and number 1 came"), "{message}");
        packed[4] = 0xe9;
        let message = unpacked(&packed, 10, 1).unwrap_err().to_string();
        assert!(message.contains("the 1001 bytes"), "{message}");
        packed[4] = 0xe7;
        assert!(unpacked(&packed, 10, 1).is_err());
    }
}
