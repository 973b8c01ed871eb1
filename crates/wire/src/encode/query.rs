//! Statements as text, with values in place of their marks.

use super::{COM_QUERY, begin, finish};

/// A text with `?` where values go, for statements that are sent as `COM_QUERY`.
#[derive(Clone, Debug)]
pub struct QueryTemplate {
    /// What stands before, between and after the marks.
    pieces: Vec<Vec<u8>>,
}

impl QueryTemplate {
    /// Cuts the text at every `?` outside quotes.
    pub fn new(sql: &str) -> QueryTemplate {
        let mut pieces = vec![Vec::new()];
        let mut quote = None;
        for byte in sql.bytes() {
            match quote {
                Some(open) if open == byte => quote = None,
                None if matches!(byte, b'\'' | b'"' | b'`') => quote = Some(byte),
                None if byte == b'?' => {
                    pieces.push(Vec::new());
                    continue;
                }
                _ => {}
            }
            if let Some(last) = pieces.last_mut() {
                last.push(byte);
            }
        }
        QueryTemplate { pieces }
    }

    /// Number of `?`.
    pub fn params(&self) -> usize {
        self.pieces.len() - 1
    }

    /// Begins a query; write one value for each mark, then [`finish`](QueryWriter::finish).
    #[inline]
    pub fn begin<'a>(&'a self, out: &'a mut Vec<u8>) -> QueryWriter<'a> {
        let begin = begin(out, COM_QUERY);
        let mut pieces = self.pieces.iter();
        if let Some(first) = pieces.next() {
            out.extend_from_slice(first);
        }
        QueryWriter { out, begin, pieces }
    }
}

/// Writes the values of one query as literals.
#[derive(Debug)]
pub struct QueryWriter<'a> {
    out: &'a mut Vec<u8>,
    begin: usize,
    pieces: std::slice::Iter<'a, Vec<u8>>,
}

impl QueryWriter<'_> {
    #[inline]
    pub fn int32(&mut self, value: i32) {
        let mut digits = [0; 10];
        let mut first = digits.len();
        let mut rest = value.unsigned_abs();
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            self.out.push(b'-');
        }
        self.out.extend_from_slice(&digits[first..]);
        self.next_piece();
    }

    /// Writes a string literal; quotes and backslashes in it are escaped for the default SQL mode.
    #[inline]
    pub fn text(&mut self, value: &[u8]) {
        self.out.push(b'\'');
        for byte in value {
            if matches!(byte, b'\'' | b'\\') {
                self.out.push(b'\\');
            }
            self.out.push(*byte);
        }
        self.out.push(b'\'');
        self.next_piece();
    }

    /// Writes a number, or another literal, as it stands.
    #[inline]
    pub fn literal(&mut self, value: &[u8]) {
        self.out.extend_from_slice(value);
        self.next_piece();
    }

    fn next_piece(&mut self) {
        if let Some(piece) = self.pieces.next() {
            self.out.extend_from_slice(piece);
        }
    }

    /// Completes the packet.
    #[inline]
    pub fn finish(self) {
        finish(self.out, self.begin, 0);
    }
}
