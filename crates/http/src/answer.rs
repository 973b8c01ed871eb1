//! Finds the end of an answer, however its bytes arrive.

use crate::error::{AnswerError, HEAD_BYTES_MAX, INTERIM_ANSWERS_MAX, KEPT_BYTES_MAX};
use crate::head::{Encoding, Head};
use crate::scan;

/// Longest line with a chunk's size, in bytes.
const CHUNK_LINE_BYTES_MAX: usize = 1024;
/// Hexadecimal digits of a chunk's size; more than enough for any body within the bound.
const CHUNK_DIGITS_MAX: usize = 15;

/// How the next answer is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// It answers HEAD, and has no body.
    pub is_head: bool,
    /// Whether its body is kept, up to [`KEPT_BYTES_MAX`].
    pub keeps_body: bool,
}

/// What became of the bytes that were fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that belong to the answer.
    pub consumed: usize,
    /// Whether the answer has ended with them.
    pub is_complete: bool,
}

/// Reads one answer after the other. Its buffers are kept from one to the next.
#[derive(Clone, Debug)]
pub struct AnswerScanner {
    body_bytes_max: u64,
    wish: Wish,
    state: State,
    head: Head,
    /// The head's bytes, later those of a chunk's line or of trailers.
    bytes: Vec<u8>,
    /// Where the head ends among `bytes`.
    head_end: usize,
    /// Where the present line begins.
    line_begin: usize,
    interim_answers: u8,
    is_begun: bool,
    body_bytes: u64,
    kept: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    StatusLine,
    Header,
    /// Bytes of the body that are still to come.
    Sized(u64),
    ChunkSize,
    Chunk(u64),
    /// The line end after a chunk.
    ChunkEnd,
    Trailer,
    UntilClose,
    Complete,
    Failed(AnswerError),
}

impl AnswerScanner {
    /// A body of more than `body_bytes_max` bytes is an error.
    pub fn new(body_bytes_max: u64) -> AnswerScanner {
        AnswerScanner {
            body_bytes_max,
            wish: Wish::default(),
            state: State::Complete,
            head: Head::default(),
            bytes: Vec::new(),
            head_end: 0,
            line_begin: 0,
            interim_answers: 0,
            is_begun: false,
            body_bytes: 0,
            kept: Vec::new(),
        }
    }

    /// Gets ready for the next answer; forgets the one before.
    pub fn begin(&mut self, wish: Wish) {
        self.wish = wish;
        self.interim_answers = 0;
        self.is_begun = false;
        self.body_bytes = 0;
        self.kept.clear();
        self.begin_head();
    }

    fn begin_head(&mut self) {
        self.state = State::StatusLine;
        self.head.clear();
        self.bytes.clear();
        (self.head_end, self.line_begin) = (0, 0);
    }

    /// Takes bytes that arrived. Those after the answer's end are not consumed.
    ///
    /// # Errors
    /// The bytes are no answer, or break a bound. The same error follows at every later call, until the next
    /// [`begin`](AnswerScanner::begin).
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Progress, AnswerError> {
        let mut consumed = 0;
        while consumed < bytes.len() && self.state != State::Complete {
            self.is_begun = true;
            match self.step(&bytes[consumed..]) {
                Ok(count) => consumed += count,
                Err(error) => {
                    self.state = State::Failed(error);
                    return Err(error);
                }
            }
        }
        match self.state {
            State::Failed(error) => Err(error),
            state => Ok(Progress { consumed, is_complete: state == State::Complete }),
        }
    }

    /// The connection has ended. Returns whether that is the answer's end.
    ///
    /// # Errors
    /// The answer is cut, or it was wrong before.
    pub fn end_of_stream(&mut self) -> Result<(), AnswerError> {
        match self.state {
            State::UntilClose | State::Complete => {
                self.state = State::Complete;
                Ok(())
            }
            State::Failed(error) => Err(error),
            _ => {
                self.state = State::Failed(AnswerError::Cut);
                Err(AnswerError::Cut)
            }
        }
    }

    /// Whether a byte of the answer has arrived.
    pub fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// The status, such as 200; 0 before the head is there.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Whether the connection carries no further request.
    pub fn closes(&self) -> bool {
        let has_body_until_close = !self.head.is_chunked && self.head.length.is_none();
        self.head.closes() || (has_body_until_close && !self.head.is_without_body(self.wish.is_head))
    }

    /// Bytes of the body, as they were sent: compressed ones where it is compressed.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// The first bytes of the body, where they were to be kept.
    pub fn body(&self) -> &[u8] {
        &self.kept
    }

    /// How the body is encoded.
    pub fn encoding(&self) -> Encoding {
        self.head.encoding
    }

    /// Value of `Location`.
    pub fn location(&self) -> Option<&[u8]> {
        self.bytes.get(self.head.location.clone()?)
    }

    /// Values of `Set-Cookie`, in order; at most 64.
    pub fn cookies(&self) -> impl Iterator<Item = &[u8]> {
        self.head.cookies.iter().filter_map(|place| self.bytes.get(place.clone()))
    }

    /// Takes at least one of `bytes`, which are not empty, and returns how many.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, AnswerError> {
        match self.state {
            State::StatusLine if self.bytes.is_empty() => match self.take_whole_head(bytes) {
                Some(count) => Ok(count),
                // Line by line, which finds out what is wrong, too.
                None => self.take_line(bytes, HEAD_BYTES_MAX),
            },
            State::StatusLine | State::Header | State::Trailer => self.take_line(bytes, HEAD_BYTES_MAX),
            State::ChunkSize | State::ChunkEnd => self.take_line(bytes, CHUNK_LINE_BYTES_MAX),
            State::Sized(left) => {
                let count = self.take_body(bytes, left)?;
                let left = left - count as u64;
                self.state = if left == 0 { State::Complete } else { State::Sized(left) };
                Ok(count)
            }
            State::Chunk(left) => {
                let count = self.take_body(bytes, left)?;
                let left = left - count as u64;
                self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                Ok(count)
            }
            State::UntilClose => self.take_body(bytes, u64::MAX),
            State::Complete => Ok(0),
            State::Failed(error) => Err(error),
        }
    }

    /// Takes a head that has arrived as a whole and is right. `None`: nothing was taken.
    fn take_whole_head(&mut self, bytes: &[u8]) -> Option<usize> {
        let length = self.head.read_whole(bytes);
        let is_final = self.head.status >= 200;
        if let Some(length) = length.filter(|_| is_final)
            && let Ok(state) = self.after_head()
        {
            self.state = state;
            self.bytes.extend_from_slice(&bytes[..length]);
            (self.head_end, self.line_begin) = (length, length);
            return Some(length);
        }
        self.head.clear();
        None
    }

    fn take_body(&mut self, bytes: &[u8], left: u64) -> Result<usize, AnswerError> {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        self.body_bytes += count as u64;
        if self.body_bytes > self.body_bytes_max {
            return Err(self.too_large());
        }
        if self.wish.keeps_body {
            let room = KEPT_BYTES_MAX - self.kept.len();
            self.kept.extend_from_slice(&bytes[..count.min(room)]);
        }
        Ok(count)
    }

    fn too_large(&self) -> AnswerError {
        AnswerError::BodyTooLarge { bytes_max: self.body_bytes_max }
    }

    /// Takes bytes up to the end of a line, and reads the line once it is whole. `bytes_max` bounds all lines of the state.
    fn take_line(&mut self, bytes: &[u8], bytes_max: usize) -> Result<usize, AnswerError> {
        let line_feed = scan::first(bytes, b'\n');
        let count = line_feed.map_or(bytes.len(), |place| place + 1);
        if self.state == State::StatusLine {
            self.check_begin(&bytes[..count])?;
        }
        if self.bytes.len() - self.head_end + count > bytes_max {
            let is_chunk = matches!(self.state, State::ChunkSize | State::ChunkEnd);
            return Err(if is_chunk { AnswerError::Chunk } else { AnswerError::HeadTooLarge });
        }
        self.bytes.extend_from_slice(&bytes[..count]);
        if line_feed.is_some() {
            let buffer = std::mem::take(&mut self.bytes);
            let line = &buffer[self.line_begin..buffer.len() - 1];
            let done = self.read_line(line.strip_suffix(b"\r").unwrap_or(line), self.line_begin);
            self.bytes = buffer;
            self.line_begin = self.bytes.len();
            done?;
            self.line_is_read();
        }
        Ok(count)
    }

    /// Refuses garbage at its first byte, and not at the end of its line.
    fn check_begin(&self, bytes: &[u8]) -> Result<(), AnswerError> {
        let begin = self.bytes.len();
        let expected = b"HTTP/1.".get(begin..).unwrap_or_default();
        let is_fine = expected.iter().zip(bytes).all(|(expected, byte)| expected == byte);
        if is_fine { Ok(()) } else { Err(AnswerError::StatusLine) }
    }

    fn read_line(&mut self, line: &[u8], begin: usize) -> Result<(), AnswerError> {
        match self.state {
            State::StatusLine => {
                self.head.read_status_line(line)?;
                self.state = State::Header;
            }
            State::Header if line.is_empty() => self.state = self.after_head()?,
            State::Header => self.head.read_header(line, begin)?,
            State::ChunkSize => {
                let size = parse_chunk_size(line).ok_or(AnswerError::Chunk)?;
                if size.saturating_add(self.body_bytes) > self.body_bytes_max {
                    return Err(self.too_large());
                }
                self.state = if size == 0 { State::Trailer } else { State::Chunk(size) };
            }
            State::ChunkEnd if line.is_empty() => self.state = State::ChunkSize,
            State::ChunkEnd => return Err(AnswerError::Chunk),
            State::Trailer if line.is_empty() => self.state = State::Complete,
            _ => {}
        }
        Ok(())
    }

    /// Drops what need not be kept of the lines that were read.
    fn line_is_read(&mut self) {
        match self.state {
            // An interim answer has ended.
            State::StatusLine => self.begin_head(),
            State::Header | State::Trailer => {}
            _ if self.head_end == 0 => self.head_end = self.bytes.len(),
            _ => {}
        }
        if self.head_end > 0 && self.state != State::Trailer {
            self.bytes.truncate(self.head_end);
        }
        self.line_begin = self.bytes.len();
    }

    /// What follows the head.
    fn after_head(&mut self) -> Result<State, AnswerError> {
        if self.head.status == 101 {
            // Nobody asked for another protocol.
            return Err(AnswerError::StatusLine);
        }
        if self.head.status < 200 {
            self.interim_answers += 1;
            let is_bounded = self.interim_answers <= INTERIM_ANSWERS_MAX;
            return is_bounded.then_some(State::StatusLine).ok_or(AnswerError::InterimAnswers);
        }
        if self.head.is_without_body(self.wish.is_head) {
            return Ok(State::Complete);
        }
        if self.head.is_chunked {
            return Ok(State::ChunkSize);
        }
        match self.head.length {
            Some(length) if length > self.body_bytes_max => Err(self.too_large()),
            Some(0) => Ok(State::Complete),
            Some(length) => Ok(State::Sized(length)),
            None => Ok(State::UntilClose),
        }
    }
}

/// The size before a semicolon; what follows it is of no use here.
fn parse_chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?.trim_ascii();
    if size.is_empty() || size.len() > CHUNK_DIGITS_MAX || !size.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()
}
