//! Scans the answer to one command: counts rows, finds the end, materialises nothing.

use std::borrow::Cow;

use crate::captured::{CAPTURED_BYTES_MAX, ResultRows};
use crate::error::ProtocolError;
use crate::frame::{Fields, Frames, PACKET_BYTES_MAX, Packet};
use crate::row_format::RowFormat;

/// What the two sides agreed on that changes how answers look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// `CLIENT_DEPRECATE_EOF`: rows end with an OK packet, and no EOF follows column definitions.
    pub deprecate_eof: bool,
    /// `MARIADB_CLIENT_CACHE_METADATA`: executions mark whether column definitions follow, and mostly they do not.
    pub cache_metadata: bool,
}

/// How a command, or one result of several, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok {
        affected_rows: u64,
        status: u16,
        warnings: u16,
    },
    /// `bytes` counts the rows' packets without headers.
    Rows {
        rows: u64,
        bytes: u64,
        status: u16,
        warnings: u16,
    },
    /// The text is in [`ResponseScanner::message`].
    Err {
        code: u16,
        sqlstate: [u8; 5],
    },
    /// The server asks for a local file, whose name is in [`ResponseScanner::message`]. To be answered by content of
    /// our own ([`ResponseScanner::resume`]) where we asked for it; else the connection can't continue.
    LocalInfile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complete {
    pub answer: Answer,
    /// Another result follows: feed more bytes.
    pub more_results: bool,
}

/// What became of the bytes that were fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedResult {
    /// Bytes that belong to this answer; those beyond it were not read.
    pub consumed: usize,
    /// `None`: more bytes are needed.
    pub complete: Option<Complete>,
}

/// Server status: a transaction is open.
pub const SERVER_STATUS_IN_TRANS: u16 = 0x0001;
/// Server status: another result follows.
pub const SERVER_MORE_RESULTS_EXISTS: u16 = 0x0008;

const NO_SQLSTATE: [u8; 5] = *b"HY000";
const EOF_BYTES_BELOW: u64 = 9;

/// Scans answers as their bytes arrive, however they are cut.
///
/// Call [`begin`](ResponseScanner::begin) when a command is sent, [`feed`](ResponseScanner::feed) with whatever has
/// been read until it returns a [`Complete`] without more results. It allocates once, when it is created; an error's
/// message and captured rows may make buffers grow once more.
#[derive(Clone, Debug)]
pub struct ResponseScanner {
    frames: Frames,
    state: State,
}

#[derive(Clone, Debug)]
struct State {
    agreed: Capabilities,
    format: RowFormat,
    phase: Phase,
    rows: u64,
    bytes: u64,
    message: Vec<u8>,
    captures: bool,
    captured: ResultRows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first packet of a result is due.
    First,
    Columns {
        left: u64,
    },
    ColumnsEof,
    Rows,
    Done,
}

impl ResponseScanner {
    pub fn new(agreed: Capabilities) -> ResponseScanner {
        let state = State {
            agreed,
            format: RowFormat::Text,
            phase: Phase::Done,
            rows: 0,
            bytes: 0,
            message: Vec::with_capacity(512),
            captures: false,
            captured: ResultRows::default(),
        };
        ResponseScanner { frames: Frames::new(), state }
    }

    /// Gets ready for the answer to a command that was sent as packet 0.
    #[inline]
    pub fn begin(&mut self, format: RowFormat) {
        self.frames.reset(1);
        self.state.format = format;
        self.state.begin_result();
        if !self.state.captured.is_empty() {
            self.state.captured.clear();
        }
    }

    /// Keeps, or no longer keeps, everything of each answer; to be called between answers.
    pub fn capture(&mut self, captures: bool) {
        self.state.captures = captures;
        self.frames.keep_whole(captures, CAPTURED_BYTES_MAX);
    }

    /// The rows since [`begin`](ResponseScanner::begin); empty where they were not to be captured.
    pub fn captured(&self) -> &ResultRows {
        &self.state.captured
    }

    /// Takes packets whatever their numbers are, from now on: inside a compressed stream servers restart their numbers after
    /// every flush.
    pub fn skip_sequence_check(&mut self) {
        self.frames.skip_sequence_check();
    }

    /// Number that the next packet must bear, ours or theirs.
    pub fn sequence_next(&self) -> u8 {
        self.frames.sequence_next()
    }

    /// Continues after [`Answer::LocalInfile`], when the content has been sent: the answer's first packet bears this
    /// number.
    pub fn resume(&mut self, sequence_next: u8) {
        self.frames.reset(sequence_next);
        self.state.begin_result();
    }

    /// The message of the last [`Answer::Err`], or the file name of the last [`Answer::LocalInfile`].
    pub fn message(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.state.message)
    }

    /// Takes what has been read, up to the end of the answer at most.
    ///
    /// # Errors
    /// What no server may send here; nothing more can be fed then.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<FeedResult, ProtocolError> {
        let mut at = 0;
        while at < bytes.len() {
            if self.state.phase == Phase::Done {
                return Err(ProtocolError::AfterEnd);
            }
            let (consumed, packet) = self.frames.next(&bytes[at..])?;
            at += consumed;
            if let Some(packet) = packet
                && let Some(complete) = self.state.accept(packet)?
            {
                return Ok(FeedResult { consumed: at, complete: Some(complete) });
            }
        }
        Ok(FeedResult { consumed: at, complete: None })
    }
}

impl State {
    fn begin_result(&mut self) {
        self.phase = Phase::First;
        self.rows = 0;
        self.bytes = 0;
    }

    #[inline]
    fn accept(&mut self, packet: Packet<'_>) -> Result<Option<Complete>, ProtocolError> {
        match self.phase {
            Phase::Rows => self.row_or_end(packet),
            Phase::First => self.first(packet),
            Phase::Columns { left } => {
                if packet.head.first() == Some(&0xff) {
                    return self.error(packet).map(Some);
                }
                if self.captures {
                    self.captured.push_definition(packet.head)?;
                }
                self.phase = match left {
                    0 | 1 => self.after_columns(),
                    more => Phase::Columns { left: more - 1 },
                };
                Ok(None)
            }
            Phase::ColumnsEof => match packet.head.first() {
                Some(0xfe) if packet.length < EOF_BYTES_BELOW => {
                    self.phase = Phase::Rows;
                    Ok(None)
                }
                Some(0xff) => self.error(packet).map(Some),
                Some(&byte) => Err(ProtocolError::Unexpected { byte, place: "after the column definitions" }),
                None => Err(ProtocolError::Empty { place: "after the column definitions" }),
            },
            Phase::Done => Err(ProtocolError::AfterEnd),
        }
    }

    #[inline]
    fn row_or_end(&mut self, packet: Packet<'_>) -> Result<Option<Complete>, ProtocolError> {
        let Some(&byte) = packet.head.first() else {
            return Err(ProtocolError::Empty { place: "among the rows" });
        };
        let end_bytes_below =
            if self.agreed.deprecate_eof { PACKET_BYTES_MAX as u64 } else { EOF_BYTES_BELOW };
        match byte {
            0xfe if packet.length < end_bytes_below => self.end_of_rows(packet).map(Some),
            0xff => self.error(packet).map(Some),
            _ if self.format == RowFormat::Binary && byte != 0 => {
                Err(ProtocolError::Unexpected { byte, place: "among binary rows" })
            }
            _ => {
                if self.captures {
                    self.captured.push_row(packet.head)?;
                }
                self.rows += 1;
                self.bytes += packet.length;
                Ok(None)
            }
        }
    }

    fn first(&mut self, packet: Packet<'_>) -> Result<Option<Complete>, ProtocolError> {
        let Some(&byte) = packet.head.first() else {
            return Err(ProtocolError::Empty { place: "at the beginning of an answer" });
        };
        match byte {
            0x00 => {
                let mut fields = Fields::new(&packet.head[1..]);
                let affected_rows = fields.lenenc("affected rows")?;
                let insert_id = fields.lenenc("insert id")?;
                let status = fields.u16("status")?;
                let warnings = fields.u16("warnings")?;
                if self.captures {
                    self.captured.push_done(affected_rows, insert_id);
                }
                let answer = Answer::Ok { affected_rows, status, warnings };
                Ok(Some(self.complete(answer, status)))
            }
            0xff => self.error(packet).map(Some),
            0xfb => {
                self.message.clear();
                self.message.extend_from_slice(&packet.head[1..]);
                Ok(Some(self.complete(Answer::LocalInfile, 0)))
            }
            0xfe => Err(ProtocolError::Unexpected { byte, place: "at the beginning of an answer" }),
            _ => {
                let mut fields = Fields::new(packet.head);
                let columns = fields.lenenc("column count")?;
                let definitions_follow = !self.agreed.cache_metadata || fields.u8("metadata flag")? != 0;
                if self.captures {
                    self.captured.begin_rows(self.format, columns);
                }
                self.phase = match definitions_follow {
                    true => Phase::Columns { left: columns },
                    false => self.after_columns(),
                };
                Ok(None)
            }
        }
    }

    fn after_columns(&self) -> Phase {
        if self.agreed.deprecate_eof { Phase::Rows } else { Phase::ColumnsEof }
    }

    fn end_of_rows(&mut self, packet: Packet<'_>) -> Result<Complete, ProtocolError> {
        let mut fields = Fields::new(&packet.head[1..]);
        let (status, warnings);
        if self.agreed.deprecate_eof {
            fields.lenenc("affected rows")?;
            fields.lenenc("insert id")?;
            status = fields.u16("status")?;
            warnings = fields.u16("warnings")?;
        } else {
            warnings = fields.u16("warnings")?;
            status = fields.u16("status")?;
        }
        let answer = Answer::Rows { rows: self.rows, bytes: self.bytes, status, warnings };
        Ok(self.complete(answer, status))
    }

    fn error(&mut self, packet: Packet<'_>) -> Result<Complete, ProtocolError> {
        let error = ServerError::parse(packet.head)?;
        self.message.clear();
        self.message.extend_from_slice(error.message);
        Ok(self.complete(Answer::Err { code: error.code, sqlstate: error.sqlstate }, 0))
    }

    fn complete(&mut self, answer: Answer, status: u16) -> Complete {
        let more_results = status & SERVER_MORE_RESULTS_EXISTS != 0;
        if more_results {
            self.begin_result();
        } else {
            self.phase = Phase::Done;
        }
        Complete { answer, more_results }
    }
}

/// An ERR packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerError<'a> {
    pub code: u16,
    /// "HY000" where the server gave none.
    pub sqlstate: [u8; 5],
    pub message: &'a [u8],
}

impl<'a> ServerError<'a> {
    /// Parses a packet's payload that begins with 0xff.
    ///
    /// # Errors
    /// When it does not, or is too short for its code.
    pub fn parse(payload: &'a [u8]) -> Result<ServerError<'a>, ProtocolError> {
        let mut fields = Fields::new(payload);
        let byte = fields.u8("first byte")?;
        if byte != 0xff {
            return Err(ProtocolError::Unexpected { byte, place: "where an error is due" });
        }
        let code = fields.u16("error code")?;
        match fields.rest() {
            [b'#', a, b, c, d, e, message @ ..] => {
                Ok(ServerError { code, sqlstate: [*a, *b, *c, *d, *e], message })
            }
            message => Ok(ServerError { code, sqlstate: NO_SQLSTATE, message }),
        }
    }
}
