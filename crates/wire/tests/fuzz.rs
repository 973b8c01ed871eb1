//! No bytes make a scanner panic, hang, or read the same stream in two ways.
//!
//! Runs a bounded number of inputs as a test; `make fuzz` runs the same targets for longer, and keeps what fails in `__fuzz__`,
//! where this test finds it.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bolero::TypeGenerator;
use support::{Form, recordings, scan, scan_captured};
use whyso_wire::{Capabilities, Compressor, Decompressor, RowFormat};

const ITERATIONS: usize = 20_000;

#[derive(Debug, TypeGenerator)]
struct Stream {
    deprecate_eof: bool,
    cache_metadata: bool,
    form: u8,
    piece_bytes: u8,
    bytes: Vec<u8>,
}

/// Changes to one of the recorded answers.
#[derive(Debug, TypeGenerator)]
struct Mutation {
    recording: u16,
    piece_bytes: u8,
    changes: Vec<(u16, u8)>,
    cut_out: (u16, u8),
    appended: Vec<u8>,
}

/// Whole and in pieces, the stream has to be read the same, or to be refused both times.
/// Whether it was read.
fn check(form: Form, agreed: Capabilities, bytes: &[u8], piece_bytes: u8) -> bool {
    let whole = scan(form, agreed, [bytes]);
    let in_pieces = scan(form, agreed, bytes.chunks(usize::from(piece_bytes).max(1)));
    assert_eq!(whole, in_pieces);
    if form != Form::Prepare {
        let format = if form == Form::Text { RowFormat::Text } else { RowFormat::Binary };
        let whole = scan_captured(format, agreed, [bytes]);
        let in_pieces = scan_captured(format, agreed, bytes.chunks(usize::from(piece_bytes).max(1)));
        assert_eq!(whole, in_pieces);
    }
    whole.is_ok()
}

#[test]
fn any_bytes_are_read_or_refused() {
    bolero::check!().with_iterations(ITERATIONS).with_type::<Stream>().for_each(|stream| {
        let form = [Form::Text, Form::Binary, Form::Prepare][usize::from(stream.form % 3)];
        let agreed =
            Capabilities { deprecate_eof: stream.deprecate_eof, cache_metadata: stream.cache_metadata };
        check(form, agreed, &stream.bytes, stream.piece_bytes);
    });
}

#[test]
fn recorded_answers_with_changes_are_read_or_refused() {
    let recordings = recordings();
    let (read, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    bolero::check!().with_iterations(ITERATIONS).with_type::<Mutation>().for_each(|mutation| {
        let recording = &recordings[usize::from(mutation.recording) % recordings.len()];
        let mut bytes = recording.bytes.clone();
        for (at, value) in &mutation.changes {
            let at = usize::from(*at) % bytes.len();
            bytes[at] = *value;
        }
        let (from, length) = mutation.cut_out;
        let from = usize::from(from) % bytes.len();
        let until = (from + usize::from(length)).min(bytes.len());
        bytes.drain(from..until);
        bytes.extend_from_slice(&mutation.appended);
        let is_read = check(recording.form, recording.agreed, &bytes, mutation.piece_bytes);
        let counter = if is_read { &read } else { &refused };
        counter.fetch_add(1, Relaxed);
    });
    // Where one of the two hardly ever happens, the changes try nothing.
    let (read, refused) = (read.load(Relaxed), refused.load(Relaxed));
    assert!(read > ITERATIONS / 100 && refused > ITERATIONS / 10, "{read} read, {refused} refused");
}

/// A packed stream, and changes to it.
#[derive(Debug, TypeGenerator)]
struct PackedStream {
    plain: Vec<u8>,
    repeats: u8,
    changes: Vec<(u16, u8)>,
    piece_bytes: u8,
}

#[test]
fn any_packed_stream_unpacks_or_is_refused() {
    bolero::check!().with_iterations(ITERATIONS / 4).with_type::<PackedStream>().for_each(|packed| {
        let plain = packed.plain.repeat(usize::from(packed.repeats));
        let mut bytes = Vec::new();
        let _ = Compressor::new().pack(&plain, 0, &mut bytes);
        let unpack = |bytes: &[u8], piece_bytes: usize| {
            let mut decompressor = Decompressor::new();
            let mut unpacked = Vec::new();
            let result =
                bytes.chunks(piece_bytes).try_for_each(|piece| decompressor.unpack(piece, &mut unpacked));
            result.map(|()| unpacked)
        };
        let piece_bytes = usize::from(packed.piece_bytes).max(1);
        assert_eq!(unpack(&bytes, piece_bytes).as_ref(), Ok(&plain));
        for (at, value) in &packed.changes {
            if !bytes.is_empty() {
                let at = usize::from(*at) % bytes.len();
                bytes[at] = *value;
            }
        }
        assert_eq!(unpack(&bytes, bytes.len().max(1)), unpack(&bytes, piece_bytes));
    });
}
