//! Formats that are a text with fields, as Apache and nginx have them.

use std::borrow::Cow;

use crate::error::{FormatError, LineError};
use crate::moment::{Moment, TimePart};
use crate::request::{ConnectionState, Request, is_method};

const MICROSECOND_NS: u64 = 1_000;
const MILLISECOND_NS: u64 = 1_000_000;

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// A part of the time, or all of it.
    Time(Vec<TimePart>),
    /// Method, path and protocol.
    RequestLine,
    Method,
    Path,
    /// Empty, or with its `?`.
    Query,
    Status,
    /// In units of this many nanoseconds.
    Duration(u64),
    Bytes,
    Pid,
    Connection,
    /// Seconds of each attempt.
    Upstream,
    Ignored,
    /// One value per attempt.
    IgnoredList,
}

/// A part of a format, as its compiler finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// A field with its text in the format.
    Field(Field, String),
}

/// Where a field ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// At the quote that no backslash is before.
    Quote,
    /// Before this text.
    Before(String),
    /// With the line.
    Line,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Text(String),
    Field(Field, End),
}

/// A compiled format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    steps: Vec<Step>,
    /// Times of this format are those of the request's begin.
    has_begin_time: bool,
    /// The finest unit of its durations, which wins over coarser ones.
    finest_ns: Option<u64>,
}

impl Template {
    pub(crate) fn new(pieces: &[Piece], has_begin_time: bool) -> Result<Template, FormatError> {
        let pieces = joined(pieces);
        let is_of_request = |piece: &Piece| {
            matches!(piece, Piece::Field(Field::RequestLine | Field::Path | Field::Status, _))
        };
        if !pieces.iter().any(is_of_request) {
            return Err(FormatError::NoRequest);
        }
        let mut steps = Vec::with_capacity(pieces.len());
        for (place, piece) in pieces.iter().enumerate() {
            let (field, name) = match piece {
                Piece::Text(text) => {
                    steps.push(Step::Text(text.clone()));
                    continue;
                }
                Piece::Field(field, name) => (field, name),
            };
            let follows_quote = place
                .checked_sub(1)
                .is_some_and(|before| matches!(&pieces[before], Piece::Text(text) if text.ends_with('"')));
            let end = match pieces.get(place + 1) {
                Some(Piece::Text(text)) if follows_quote && text.starts_with('"') => End::Quote,
                Some(Piece::Text(text)) => End::Before(text.clone()),
                Some(Piece::Field(Field::Path, _)) => End::Before("/".to_string()),
                // Fields of time know their own length.
                Some(Piece::Field(..)) if matches!(field, Field::Time(_)) => End::Line,
                Some(Piece::Field(_, second)) => {
                    let (first, second) = (name.clone(), second.clone());
                    return Err(FormatError::NoSeparator { first, second });
                }
                None => End::Line,
            };
            steps.push(Step::Field(field.clone(), end));
        }
        let finest_ns = steps.iter().filter_map(|step| match step {
            Step::Field(Field::Duration(unit_ns), _) => Some(*unit_ns),
            _ => None,
        });
        Ok(Template { finest_ns: finest_ns.min(), steps, has_begin_time })
    }

    pub(crate) fn parse(&self, line: &str) -> Result<Request, LineError> {
        let mut request = Request::default();
        let mut moment = None;
        let mut rest = line;
        for step in &self.steps {
            let (field, end) = match step {
                Step::Text(text) => {
                    rest = rest.strip_prefix(text.as_str()).ok_or(LineError::DoesNotFit)?;
                    continue;
                }
                Step::Field(field, end) => (field, end),
            };
            if let Field::Time(parts) = field {
                rest = moment.get_or_insert_with(Moment::default).read(parts, rest)?;
                continue;
            }
            let length = length_of(field, end, rest)?;
            let (value, after) = rest.split_at(length);
            let value = if *end == End::Quote { unescape(value) } else { Cow::Borrowed(value) };
            self.set(&mut request, field, &value)?;
            rest = after;
        }
        if !rest.trim_end().is_empty() {
            return Err(LineError::DoesNotFit);
        }
        if let Some(moment) = moment {
            let at_ns = moment.ns().ok_or(LineError::Time)?;
            let after_begin_ns = request.duration_ns.filter(|_| self.has_begin_time).unwrap_or(0);
            let after_begin_ns = i64::try_from(after_begin_ns).map_err(|_| LineError::Number)?;
            request.end_ns = Some(at_ns.checked_add(after_begin_ns).ok_or(LineError::Time)?);
        }
        Ok(request)
    }

    fn set(&self, request: &mut Request, field: &Field, value: &str) -> Result<(), LineError> {
        let is_absent = value.is_empty() || value == "-";
        match field {
            Field::RequestLine => request.set_request_line(value),
            Field::Method if is_method(value) => request.method = value.to_string(),
            Field::Path if !is_absent => request.path = value.to_string(),
            Field::Query if value.starts_with('?') => request.path.push_str(value),
            Field::Status if !is_absent => request.status = Some(status(value)?),
            // Only whole numbers of these: what else ends a line is another field.
            Field::Duration(MICROSECOND_NS | MILLISECOND_NS) if value.contains('.') => {
                return Err(LineError::Number);
            }
            Field::Duration(unit_ns) if !is_absent && self.finest_ns == Some(*unit_ns) => {
                request.duration_ns = Some(decimal(value, *unit_ns).ok_or(LineError::Number)?);
            }
            Field::Bytes if !is_absent => {
                request.bytes = Some(decimal(value, 1).ok_or(LineError::Number)?);
            }
            Field::Pid if !is_absent => {
                request.pid = Some(value.parse().map_err(|_| LineError::Number)?);
            }
            Field::Connection => {
                request.connection = match value {
                    "X" => Some(ConnectionState::Aborted),
                    "+" => Some(ConnectionState::KeptAlive),
                    "-" => Some(ConnectionState::Closed),
                    _ => return Err(LineError::DoesNotFit),
                }
            }
            Field::Upstream if !is_absent => request.upstream_ns = attempts_ns(value)?,
            _ => {}
        }
        Ok(())
    }
}

/// Joins what is one value in a line: texts, a path and its query.
fn joined(pieces: &[Piece]) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(text),
            (Some(Piece::Field(Field::Path, _)), Piece::Field(Field::Query, _)) => {}
            _ => joined.push(piece.clone()),
        }
    }
    joined
}

/// Returns how many bytes of `text` the field has.
fn length_of(field: &Field, end: &End, text: &str) -> Result<usize, LineError> {
    let before = match end {
        End::Quote => return quoted_length(text).ok_or(LineError::DoesNotFit),
        End::Line => return Ok(text.len()),
        End::Before(before) => before.as_str(),
    };
    let from = match field {
        // Its blanks are not its end.
        Field::RequestLine => text.find(" HTTP/").map_or(0, |at| at + " HTTP/".len()),
        Field::Upstream | Field::IgnoredList => list_length(text),
        _ => 0,
    };
    let found = text.get(from..).and_then(|rest| rest.find(before));
    found.map(|at| from + at).ok_or(LineError::DoesNotFit)
}

/// Returns where the quote is that ends a quoted text.
fn quoted_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !is_escaped => return Some(at),
            b'\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    None
}

/// Returns where the last separator of a list of attempts ends.
fn list_length(text: &str) -> usize {
    let mut length = 0;
    while let Some(rest) = text.get(length..) {
        let word = rest.find([' ', ',']).unwrap_or(rest.len());
        let Some(separator) = [", ", " : "].iter().find(|separator| rest[word..].starts_with(**separator))
        else {
            break;
        };
        length += word + separator.len();
    }
    length
}

/// Returns the time of all attempts together. `None`: no attempt has one.
fn attempts_ns(text: &str) -> Result<Option<u64>, LineError> {
    let mut sum_ns: Option<u64> = None;
    for attempt in text.split([',', ':']).map(str::trim).filter(|attempt| !["", "-"].contains(attempt)) {
        let attempt_ns = decimal(attempt, 1_000_000_000).ok_or(LineError::Number)?;
        sum_ns = Some(sum_ns.unwrap_or(0).saturating_add(attempt_ns));
    }
    Ok(sum_ns)
}

pub(crate) fn status(text: &str) -> Result<u16, LineError> {
    let status: u16 = text.parse().map_err(|_| LineError::Number)?;
    // nginx writes 000 for a connection that ended before its request did.
    match status {
        0 => Ok(499),
        100..=999 => Ok(status),
        _ => Err(LineError::Number),
    }
}

/// Returns a number that may have a fraction, in units of `unit`, rounded. `None`: it is none, or out of range.
pub(crate) fn decimal(text: &str, unit: u64) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_number {
        return None;
    }
    if let Ok(whole) = text.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let value = text.parse::<f64>().ok()? * unit as f64;
    (value < u64::MAX as f64).then(|| value.round() as u64)
}

/// Returns a text without the escapes that servers write in quotes: `\"`, `\\`, `\n` and `\xhh`.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let Some((escaped, after)) = rest.split_first() else {
            bytes.push(b'\\');
            break;
        };
        rest = after;
        match escaped {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'b' => bytes.push(8),
            b'v' => bytes.push(11),
            b'f' => bytes.push(12),
            b'x' => match rest.get(..2).and_then(hex) {
                Some(value) => {
                    bytes.push(value);
                    rest = &rest[2..];
                }
                None => bytes.extend_from_slice(b"\\x"),
            },
            other => bytes.push(*other),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn hex(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
