//! Packets in a stream of bytes, however it is cut.

use crate::error::ProtocolError;

/// Length of a packet's header: three bytes of length, one of sequence number.
pub(crate) const HEADER_BYTES: usize = 4;
/// A packet of this length is continued by the next.
pub(crate) const PACKET_BYTES_MAX: usize = 0xff_ffff;
/// What is kept of a packet that comes in pieces: more than any OK, EOF, ERR (512 bytes of message) or column count.
pub(crate) const BEGINNING_BYTES_MAX: usize = 1024;

/// Stands for NULL in place of a length.
const NULL_FIELD: u8 = 0xfb;

/// One logical packet: continuations are joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    /// Its beginning: all of it, or at least `BEGINNING_BYTES_MAX` of it; all of it where packets are kept whole.
    pub(crate) head: &'a [u8],
    /// Its whole length in bytes.
    pub(crate) length: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Frames {
    header: [u8; HEADER_BYTES],
    header_have: usize,
    payload_left: usize,
    /// The packet before was of the greatest length, so that the next one continues it.
    continues: bool,
    length: u64,
    beginning: Vec<u8>,
    beginning_bytes_max: usize,
    sequence_next: u8,
    checks_sequence: bool,
}

impl Frames {
    pub(crate) fn new() -> Frames {
        Frames {
            header: [0; HEADER_BYTES],
            header_have: 0,
            payload_left: 0,
            continues: false,
            length: 0,
            beginning: Vec::with_capacity(BEGINNING_BYTES_MAX),
            beginning_bytes_max: BEGINNING_BYTES_MAX,
            sequence_next: 1,
            checks_sequence: true,
        }
    }

    /// Packets that come in pieces are kept up to `bytes_max`, and refused beyond.
    pub(crate) fn keep_whole(&mut self, keeps: bool, bytes_max: usize) {
        self.beginning_bytes_max = if keeps { bytes_max } else { BEGINNING_BYTES_MAX };
    }

    /// Takes packets whatever their numbers are.
    pub(crate) fn skip_sequence_check(&mut self) {
        self.checks_sequence = false;
    }

    pub(crate) fn sequence_next(&self) -> u8 {
        self.sequence_next
    }

    /// Forgets whatever was begun; the next packet must bear this sequence number.
    pub(crate) fn reset(&mut self, sequence_next: u8) {
        self.header_have = 0;
        self.payload_left = 0;
        self.continues = false;
        self.sequence_next = sequence_next;
    }

    /// Takes bytes up to the end of the next packet. Returns how many bytes it consumed, and the packet if it is complete.
    #[inline]
    pub(crate) fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
    ) -> Result<(usize, Option<Packet<'a>>), ProtocolError> {
        let between_packets = self.header_have == 0 && !self.continues;
        if between_packets && bytes.len() >= HEADER_BYTES {
            let length = length_of(bytes);
            let end = HEADER_BYTES + length;
            if length < PACKET_BYTES_MAX && bytes.len() >= end {
                self.check_sequence(bytes[3])?;
                let packet = Packet { head: &bytes[HEADER_BYTES..end], length: length as u64 };
                return Ok((end, Some(packet)));
            }
        }
        self.next_in_pieces(bytes)
    }

    fn next_in_pieces<'a>(
        &'a mut self,
        bytes: &'a [u8],
    ) -> Result<(usize, Option<Packet<'a>>), ProtocolError> {
        let mut at = 0;
        loop {
            if self.header_have < HEADER_BYTES {
                let take = (HEADER_BYTES - self.header_have).min(bytes.len() - at);
                self.header[self.header_have..self.header_have + take].copy_from_slice(&bytes[at..at + take]);
                self.header_have += take;
                at += take;
                if self.header_have < HEADER_BYTES {
                    return Ok((at, None));
                }
                self.check_sequence(self.header[3])?;
                self.payload_left = length_of(&self.header);
                if !self.continues {
                    self.beginning.clear();
                    self.length = 0;
                }
            }
            let take = self.payload_left.min(bytes.len() - at);
            let keep = take.min(self.beginning_bytes_max - self.beginning.len());
            if keep < take && self.beginning_bytes_max > BEGINNING_BYTES_MAX {
                return Err(ProtocolError::TooLarge { bytes_max: self.beginning_bytes_max });
            }
            self.beginning.extend_from_slice(&bytes[at..at + keep]);
            self.length += take as u64;
            self.payload_left -= take;
            at += take;
            if self.payload_left > 0 {
                return Ok((at, None));
            }
            self.header_have = 0;
            self.continues = length_of(&self.header) == PACKET_BYTES_MAX;
            if !self.continues {
                return Ok((at, Some(Packet { head: &self.beginning, length: self.length })));
            }
        }
    }

    #[inline]
    fn check_sequence(&mut self, got: u8) -> Result<(), ProtocolError> {
        if got != self.sequence_next && self.checks_sequence {
            return Err(ProtocolError::Sequence { expected: self.sequence_next, got });
        }
        self.sequence_next = got.wrapping_add(1);
        Ok(())
    }
}

#[inline]
fn length_of(header: &[u8]) -> usize {
    usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16
}

/// Reads fields from a packet; the error of a packet that is too short names the field.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], ProtocolError> {
        let Some((field_bytes, rest)) = self.rest.split_at_checked(count) else {
            return Err(ProtocolError::TooShort { field });
        };
        self.rest = rest;
        Ok(field_bytes)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, ProtocolError> {
        Ok(self.take(1, field)?[0])
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, ProtocolError> {
        Ok(self.little_endian(2, field)? as u16)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, ProtocolError> {
        Ok(self.little_endian(4, field)? as u32)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, ProtocolError> {
        self.little_endian(8, field)
    }

    /// Bytes with their length before them.
    pub(crate) fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], ProtocolError> {
        let length = self.lenenc(field)?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX), field)
    }

    /// The same, `None` for NULL.
    pub(crate) fn nullable_bytes(&mut self, field: &'static str) -> Result<Option<&'a [u8]>, ProtocolError> {
        if self.rest.first() == Some(&NULL_FIELD) {
            self.take(1, field)?;
            return Ok(None);
        }
        self.bytes(field).map(Some)
    }

    /// A length-encoded integer.
    pub(crate) fn lenenc(&mut self, field: &'static str) -> Result<u64, ProtocolError> {
        match self.u8(field)? {
            0xfc => self.little_endian(2, field),
            0xfd => self.little_endian(3, field),
            0xfe => self.little_endian(8, field),
            byte @ (0xfb | 0xff) => Err(ProtocolError::Unexpected { byte, place: "where a number is due" }),
            small => Ok(u64::from(small)),
        }
    }

    fn little_endian(&mut self, count: usize, field: &'static str) -> Result<u64, ProtocolError> {
        let mut value = 0;
        for byte in self.take(count, field)?.iter().rev() {
            value = value << 8 | u64::from(*byte);
        }
        Ok(value)
    }
}
