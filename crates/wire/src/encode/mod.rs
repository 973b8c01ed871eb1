//! Encodes commands into a buffer that the caller reuses.
//!
//! Every function appends one command, as packet 0 and the continuations that it needs from 16 MiB upwards.

mod execute;
mod query;

pub use execute::{ExecuteTemplate, ExecuteWriter, ParamType};
pub use query::{QueryTemplate, QueryWriter};

use crate::frame::{HEADER_BYTES, PACKET_BYTES_MAX};

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_PING: u8 = 0x0e;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_CLOSE: u8 = 0x19;
const COM_STMT_RESET: u8 = 0x1a;

/// `COM_QUERY`: run this text. Answered as the text protocol's rows.
pub fn query(out: &mut Vec<u8>, sql: &[u8]) {
    command(out, COM_QUERY, sql);
}

/// `COM_STMT_PREPARE`.
pub fn prepare(out: &mut Vec<u8>, sql: &[u8]) {
    command(out, COM_STMT_PREPARE, sql);
}

/// `COM_STMT_CLOSE`: never answered.
pub fn close(out: &mut Vec<u8>, statement_id: u32) {
    command(out, COM_STMT_CLOSE, &statement_id.to_le_bytes());
}

/// `COM_STMT_RESET`: answered with OK.
pub fn reset(out: &mut Vec<u8>, statement_id: u32) {
    command(out, COM_STMT_RESET, &statement_id.to_le_bytes());
}

/// `COM_PING`: answered with OK.
pub fn ping(out: &mut Vec<u8>) {
    command(out, COM_PING, &[]);
}

/// `COM_QUIT`: the server closes the connection.
pub fn quit(out: &mut Vec<u8>) {
    command(out, COM_QUIT, &[]);
}

/// Appends a packet of the login, where packets bear numbers of their own.
pub fn packet(out: &mut Vec<u8>, sequence: u8, payload: &[u8]) {
    let begin = out.len();
    out.extend_from_slice(&[0, 0, 0, 0]);
    out.extend_from_slice(payload);
    finish(out, begin, sequence);
}

/// Writes content of a file that the server asked for, as one packet, or as more if it is beyond 16 MiB. Returns the number of the
/// packet after it. `sequence` is that of the first: [`ResponseScanner::sequence_next`](crate::ResponseScanner::sequence_next)
/// to begin with. Nothing is written for no content: an empty packet is the end, see [`local_file_end`].
#[must_use]
pub fn local_file(out: &mut Vec<u8>, mut sequence: u8, content: &[u8]) -> u8 {
    // Below the greatest length, so that the server expects no continuation of any packet.
    for piece in content.chunks(PACKET_BYTES_MAX - 1) {
        packet(out, sequence, piece);
        sequence = sequence.wrapping_add(1);
    }
    sequence
}

/// The end of the content, and the number of the server's next packet: for
/// [`ResponseScanner::resume`](crate::ResponseScanner::resume).
#[must_use]
pub fn local_file_end(out: &mut Vec<u8>, sequence: u8) -> u8 {
    packet(out, sequence, &[]);
    sequence.wrapping_add(1)
}

fn command(out: &mut Vec<u8>, command: u8, argument: &[u8]) {
    let begin = begin(out, command);
    out.extend_from_slice(argument);
    finish(out, begin, 0);
}

#[inline]
fn begin(out: &mut Vec<u8>, command: u8) -> usize {
    let begin = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, command]);
    begin
}

/// Writes the header of the packet that began at `begin`; cuts it where it is longer than one packet may be.
#[inline]
fn finish(out: &mut Vec<u8>, begin: usize, sequence: u8) {
    let length = out.len() - begin - HEADER_BYTES;
    if length >= PACKET_BYTES_MAX {
        cut(out, begin, sequence);
        return;
    }
    out[begin..begin + HEADER_BYTES].copy_from_slice(&header(length, sequence));
}

fn header(length: usize, sequence: u8) -> [u8; HEADER_BYTES] {
    let [low, middle, high, ..] = (length as u32).to_le_bytes();
    [low, middle, high, sequence]
}

/// A payload whose length is a multiple of the greatest is followed by an empty packet, so that its end is seen.
fn cut(out: &mut Vec<u8>, begin: usize, mut sequence: u8) {
    let payload = out.split_off(begin + HEADER_BYTES);
    out.truncate(begin);
    let mut rest: &[u8] = &payload;
    loop {
        let (piece, after) = rest.split_at(rest.len().min(PACKET_BYTES_MAX));
        out.extend_from_slice(&header(piece.len(), sequence));
        out.extend_from_slice(piece);
        sequence = sequence.wrapping_add(1);
        rest = after;
        if piece.len() < PACKET_BYTES_MAX {
            return;
        }
    }
}

/// Appends a length-encoded integer.
#[inline]
fn lenenc(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_execution_is_laid_out_as_the_protocol_wants() {
        let template = ExecuteTemplate::new(&[ParamType::Int32, ParamType::Text]);
        let mut out = Vec::new();
        let mut writer = template.begin(&mut out, 7, false);
        writer.int32(-2);
        writer.text(b"ab");
        writer.finish();
        let expected: &[u8] = &[
            23, 0, 0, 0, 0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, // header, command, id, flags, iterations
            0, 1, 3, 0, 254, 0, // no nulls, types follow, LONG, STRING
            0xfe, 0xff, 0xff, 0xff, 2, b'a', b'b',
        ];
        assert_eq!(out, expected);

        out.clear();
        let mut writer = template.begin(&mut out, 7, true);
        writer.int32(-2);
        writer.text(b"ab");
        writer.finish();
        assert_eq!(out[0], 19);
        assert_eq!(&out[14..16], &[0, 0], "no nulls, types known");
    }

    #[test]
    fn a_null_is_marked_and_not_written() {
        let types = [ParamType::Null, ParamType::Int64, ParamType::Double, ParamType::Text];
        let mut out = Vec::new();
        let mut writer = ExecuteTemplate::new(&types).begin(&mut out, 7, false);
        writer.int64(-2);
        writer.null(2);
        writer.text(b"a");
        writer.null(99);
        writer.finish();
        let expected: &[u8] = &[
            30, 0, 0, 0, 0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, // header, command, id, flags, iterations
            0b101, 1, 6, 0, 8, 0, 5, 0, 254, 0, // the first and the third are NULL; types
            0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, b'a',
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn a_local_file_goes_out_in_packets_that_count_on() {
        let mut out = Vec::new();
        let next = local_file(&mut out, 255, b"1\n");
        assert_eq!(local_file(&mut out, next, b""), 0);
        assert_eq!(local_file_end(&mut out, next), 1);
        assert_eq!(out, [2, 0, 0, 255, b'1', b'\n', 0, 0, 0, 0]);

        out.clear();
        let next = local_file(&mut out, 2, &vec![b'x'; PACKET_BYTES_MAX]);
        assert_eq!(next, 4);
        assert_eq!(out[..4], [0xfe, 0xff, 0xff, 2]);
        assert_eq!(out[out.len() - 5..], [1, 0, 0, 3, b'x']);
    }

    #[test]
    fn a_statement_without_parameters_has_neither_bitmap_nor_types() {
        let mut out = Vec::new();
        ExecuteTemplate::new(&[]).begin(&mut out, 1, false).finish();
        assert_eq!(out, [10, 0, 0, 0, 0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn plain_commands_are_one_packet_each() {
        let mut out = Vec::new();
        ping(&mut out);
        quit(&mut out);
        close(&mut out, 258);
        reset(&mut out, 1);
        query(&mut out, b"x");
        prepare(&mut out, b"y");
        packet(&mut out, 3, b"z");
        let expected: &[&[u8]] = &[
            &[1, 0, 0, 0, 0x0e],
            &[1, 0, 0, 0, 0x01],
            &[5, 0, 0, 0, 0x19, 2, 1, 0, 0],
            &[5, 0, 0, 0, 0x1a, 1, 0, 0, 0],
            &[2, 0, 0, 0, 0x03, b'x'],
            &[2, 0, 0, 0, 0x16, b'y'],
            &[1, 0, 0, 3, b'z'],
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn a_query_s_values_are_literals_in_place_of_its_marks() {
        let template = QueryTemplate::new("INSERT INTO t VALUES (?, '?', ?, \"it's ?\", ?)");
        assert_eq!(template.params(), 3);
        let mut out = Vec::new();
        let mut writer = template.begin(&mut out);
        writer.int32(i32::MIN);
        writer.int32(0);
        writer.text(b"a'b\\c");
        writer.finish();
        let text = std::str::from_utf8(&out[5..]).unwrap();
        assert_eq!(text, "INSERT INTO t VALUES (-2147483648, '?', 0, \"it's ?\", 'a\\'b\\\\c')");
        assert_eq!(usize::from(out[0]), out.len() - 4);
    }

    #[test]
    fn commands_from_16_mib_upwards_are_cut_into_packets() {
        for (length, packets) in
            [(PACKET_BYTES_MAX - 2, 1), (PACKET_BYTES_MAX - 1, 2), (2 * PACKET_BYTES_MAX - 1, 3)]
        {
            let sql = vec![b'x'; length];
            let mut out = Vec::new();
            query(&mut out, &sql);
            let mut payload = Vec::new();
            let mut rest: &[u8] = &out;
            let mut sequence = 0;
            while let [low, middle, high, number, after @ ..] = rest {
                assert_eq!(*number, sequence);
                let length = usize::from(*low) | usize::from(*middle) << 8 | usize::from(*high) << 16;
                payload.extend_from_slice(&after[..length]);
                rest = &after[length..];
                sequence += 1;
            }
            assert_eq!(sequence, packets);
            assert_eq!(payload[0], COM_QUERY);
            assert_eq!(payload[1..], sql);
        }
    }

    proptest! {
        #[test]
        fn a_length_encoded_number_reads_back(value in any::<u64>(), shift in 0u32..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            lenenc(&mut out, value);
            prop_assert_eq!(crate::frame::Fields::new(&out).lenenc("number"), Ok(value));
        }
    }
}
