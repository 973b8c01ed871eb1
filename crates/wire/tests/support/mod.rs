//! The recordings of `tests/data`, and one way to scan any of them.

#![allow(dead_code)] // Each test file uses a part of it.

use std::fmt::Write;

use whyso_wire::{
    Answer, Capabilities, CapturedResult, PrepareAnswer, PrepareScanner, ProtocolError, ResponseScanner,
    ResultRows, RowFormat, RowText,
};

/// What a recorded answer is the answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Binary,
    Prepare,
}

pub(crate) struct Recording {
    pub(crate) mode: &'static str,
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) agreed: Capabilities,
    pub(crate) bytes: Vec<u8>,
}

/// Every recorded answer, in each of the ways in which the two sides may agree.
pub(crate) fn recordings() -> Vec<Recording> {
    let files = [
        ("classic", false, false, include_str!("../data/classic.hex")),
        ("deprecate_eof", true, false, include_str!("../data/deprecate_eof.hex")),
        ("cache_metadata", true, true, include_str!("../data/cache_metadata.hex")),
        ("cache_metadata_classic", false, true, include_str!("../data/cache_metadata_classic.hex")),
    ];
    let mut recordings = Vec::new();
    for (mode, deprecate_eof, cache_metadata, text) in files {
        for line in text.lines() {
            let fields: Vec<&'static str> = line.split(' ').collect();
            let [name, form, hex] = fields[..] else { panic!("{mode}: a line has three fields: {line}") };
            let form = match form {
                "text" => Form::Text,
                "binary" => Form::Binary,
                _ => Form::Prepare,
            };
            let pairs = hex.as_bytes().chunks(2);
            let digits = pairs.map(|pair| std::str::from_utf8(pair).expect("hexadecimal is ASCII"));
            let bytes = digits.map(|pair| u8::from_str_radix(pair, 16).expect("two digits")).collect();
            let agreed = Capabilities { deprecate_eof, cache_metadata };
            recordings.push(Recording { mode, name, form, agreed, bytes });
        }
    }
    recordings
}

/// What a scan gave, as text: each result, and whether bytes were left over or wanted.
pub(crate) fn scan<'a>(
    form: Form,
    agreed: Capabilities,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<String, ProtocolError> {
    match form {
        Form::Prepare => scan_preparation(agreed, pieces),
        Form::Text => scan_answer(RowFormat::Text, agreed, pieces),
        Form::Binary => scan_answer(RowFormat::Binary, agreed, pieces),
    }
}

/// Everything that one answer holds, as text: result by result, row by row. Binary rows only where the answer itself
/// defines their columns.
pub(crate) fn captured_text(captured: &ResultRows) -> String {
    let mut text = String::new();
    let mut row_text = RowText::new();
    for result in captured.results() {
        match result {
            CapturedResult::Done { affected_rows, insert_id } => {
                let _ = write!(text, "done {affected_rows} {insert_id};");
            }
            CapturedResult::Rows(set) => {
                let names: Vec<_> = set.names().map(|name| name.escape_ascii().to_string()).collect();
                let _ = write!(text, "{} columns [{}]:", set.columns(), names.join(","));
                for row in set.rows() {
                    match row.decode(set.types(), &mut row_text) {
                        Ok(()) => {
                            for field in row_text.fields() {
                                let _ = match field {
                                    Some(field) => write!(text, " {}", field.escape_ascii()),
                                    None => write!(text, " NULL"),
                                };
                            }
                            text.push(',');
                        }
                        Err(error) => {
                            let _ = write!(text, " ({error})");
                        }
                    }
                }
                text.push(';');
            }
        }
    }
    text
}

/// Scans and captures one answer: what it holds.
pub(crate) fn scan_captured<'a>(
    format: RowFormat,
    agreed: Capabilities,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<String, ProtocolError> {
    let mut scanner = ResponseScanner::new(agreed);
    scanner.capture(true);
    scanner.begin(format);
    for mut piece in pieces {
        while !piece.is_empty() {
            let fed = scanner.feed(piece)?;
            piece = &piece[fed.consumed..];
        }
    }
    Ok(captured_text(scanner.captured()))
}

fn scan_answer<'a>(
    format: RowFormat,
    agreed: Capabilities,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<String, ProtocolError> {
    let mut scanner = ResponseScanner::new(agreed);
    scanner.begin(format);
    let mut results = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let fed = scanner.feed(piece)?;
            assert!(fed.consumed > 0 && fed.consumed <= piece.len());
            piece = &piece[fed.consumed..];
            let Some(complete) = fed.complete else {
                assert!(piece.is_empty(), "what is not complete takes all that there is");
                continue;
            };
            results.push(match complete.answer {
                Answer::Ok { affected_rows, .. } => format!("ok {affected_rows}"),
                Answer::Rows { rows, bytes, .. } => format!("rows {rows} in {bytes}"),
                Answer::Err { code, sqlstate } => {
                    format!("error {code} {}: {}", sqlstate.escape_ascii(), scanner.message())
                }
                Answer::LocalInfile => format!("wants {}", scanner.message()),
            });
            if !complete.more_results {
                results.push("end".to_string());
            }
        }
    }
    Ok(results.join(", "))
}

fn scan_preparation<'a>(
    agreed: Capabilities,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<String, ProtocolError> {
    let mut scanner = PrepareScanner::new(agreed);
    scanner.begin();
    let mut results = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let (consumed, answer) = scanner.feed(piece)?;
            assert!(consumed > 0 && consumed <= piece.len());
            piece = &piece[consumed..];
            match answer {
                Some(PrepareAnswer::Prepared(prepared)) => results.push(format!("{prepared:?}, end")),
                Some(PrepareAnswer::Err { code, .. }) => {
                    results.push(format!("error {code}: {}, end", scanner.message()));
                }
                None => {}
            }
        }
    }
    Ok(results.join(", "))
}
