//! What the lines of an answer's head say about it.

use std::ops::Range;

use crate::error::{AnswerError, HEAD_BYTES_MAX};
use crate::scan;

/// Cookies of one answer that are kept.
const COOKIES_MAX: usize = 64;

/// How a body is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Identity,
    Gzip,
    Deflate,
    /// One that this crate does not read.
    Other,
}

/// What is known of an answer by its head. Ranges are places among the head's bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) status: u16,
    is_old: bool,
    keep_alive: bool,
    close: bool,
    pub(crate) length: Option<u64>,
    pub(crate) is_chunked: bool,
    pub(crate) encoding: Encoding,
    pub(crate) location: Option<Range<usize>>,
    pub(crate) cookies: Vec<Range<usize>>,
}

impl Head {
    pub(crate) fn clear(&mut self) {
        let mut cookies = std::mem::take(&mut self.cookies);
        cookies.clear();
        *self = Head { cookies, ..Head::default() };
    }

    /// Whether the server closes the connection after the answer.
    pub(crate) fn closes(&self) -> bool {
        self.close || (self.is_old && !self.keep_alive) || (self.is_chunked && self.length.is_some())
    }

    /// Reads the status line.
    pub(crate) fn read_status_line(&mut self, line: &[u8]) -> Result<(), AnswerError> {
        let rest = line.strip_prefix(b"HTTP/1.").ok_or(AnswerError::StatusLine)?;
        let [minor @ (b'0' | b'1'), b' ', a, b, c, after @ ..] = rest else {
            return Err(AnswerError::StatusLine);
        };
        let is_ended = after.first().is_none_or(|byte| *byte == b' ');
        if !is_ended || ![a, b, c].iter().all(|digit| digit.is_ascii_digit()) || !(b'1'..=b'9').contains(a) {
            return Err(AnswerError::StatusLine);
        }
        let digit = |byte: &u8| u16::from(byte - b'0');
        self.status = digit(a) * 100 + digit(b) * 10 + digit(c);
        self.is_old = *minor == b'0';
        Ok(())
    }

    /// Reads a head that is whole among the first bytes of `bytes`, as it is in nearly every answer. Returns its length; `None` where it is
    /// not whole, or not right, and then some of it may have been read.
    pub(crate) fn read_whole(&mut self, bytes: &[u8]) -> Option<usize> {
        let within = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
        let line_end = scan::first(within, b'\n')?;
        let (line, mut end_bytes) = without_return(&within[..line_end]);
        self.read_status_line(line).ok()?;
        let mut begin = line_end + 1;
        loop {
            let rest = &within[begin..];
            let line_end = scan::first(rest, b'\n')?;
            let (line, line_end_bytes) = without_return(&rest[..line_end]);
            end_bytes += line_end_bytes;
            let line_begin = begin;
            begin += line_end + 1;
            if line.is_empty() {
                break;
            }
            let colon = scan::first(line, b':')?;
            self.take_header(line, colon, line_begin).ok()?;
        }
        // Once for all lines: nothing but their ends.
        (scan::control_characters(&bytes[..begin]) == end_bytes).then_some(begin)
    }

    /// Reads a header, whose line begins at `offset` of the head.
    pub(crate) fn read_header(&mut self, line: &[u8], offset: usize) -> Result<(), AnswerError> {
        let colon = scan::first(line, b':').ok_or(AnswerError::Header)?;
        if scan::control_characters(line) > 0 {
            return Err(AnswerError::Header);
        }
        self.take_header(line, colon, offset)
    }

    /// Takes what a header says whose line has no control characters.
    #[inline]
    fn take_header(&mut self, line: &[u8], colon: usize, offset: usize) -> Result<(), AnswerError> {
        let name = &line[..colon];
        if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
            return Err(AnswerError::Header);
        }
        let value = line[colon + 1..].trim_ascii();
        let place = || {
            let begin = offset + line.len() - line[colon + 1..].trim_ascii_start().len();
            begin..begin + value.len()
        };
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("content-length") {
            let length = parse_length(value).ok_or(AnswerError::Length)?;
            if self.length.replace(length).is_some_and(|before| before != length) {
                return Err(AnswerError::Length);
            }
        } else if is("transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") || self.is_chunked {
                return Err(AnswerError::TransferEncoding);
            }
            self.is_chunked = true;
        } else if is("connection") {
            for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                self.close |= option.eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if is("content-encoding") {
            self.encoding = match value {
                _ if value.eq_ignore_ascii_case(b"gzip") || value.eq_ignore_ascii_case(b"x-gzip") => {
                    Encoding::Gzip
                }
                _ if value.eq_ignore_ascii_case(b"deflate") => Encoding::Deflate,
                _ if value.eq_ignore_ascii_case(b"identity") => Encoding::Identity,
                _ => Encoding::Other,
            };
        } else if is("location") {
            self.location = Some(place());
        } else if is("set-cookie") && self.cookies.len() < COOKIES_MAX {
            self.cookies.push(place());
        }
        Ok(())
    }

    /// Whether the answer has no body, whatever its headers say (RFC 9112, 6.3).
    pub(crate) fn is_without_body(&self, is_head: bool) -> bool {
        is_head || matches!(self.status, 204 | 304)
    }
}

/// A line without the carriage return before its line feed, and the bytes of its end.
fn without_return(line: &[u8]) -> (&[u8], usize) {
    match line.strip_suffix(b"\r") {
        Some(line) => (line, 2),
        None => (line, 1),
    }
}

fn parse_length(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.len() <= 19 && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| value.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}
