//! Scans the answer to `COM_STMT_PREPARE`.

use std::borrow::Cow;

use crate::captured::CAPTURED_BYTES_MAX;
use crate::column::Definitions;
use crate::error::ProtocolError;
use crate::frame::{Fields, Frames};
use crate::response::{Capabilities, ServerError};

/// A statement that the server has prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedStatement {
    pub statement_id: u32,
    pub params: u16,
    /// Columns of the rows that it gives; 0 where it gives none.
    pub columns: u16,
}

/// How a preparation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrepareAnswer {
    Prepared(PreparedStatement),
    /// The text is in [`PrepareScanner::message`].
    Err {
        code: u16,
        sqlstate: [u8; 5],
    },
}

/// Scans the answer to one preparation as its bytes arrive; definitions of parameters are skipped, those of columns
/// kept where that is asked for.
#[derive(Clone, Debug)]
pub struct PrepareScanner {
    frames: Frames,
    agreed: Capabilities,
    prepared: Option<PreparedStatement>,
    packets_left: u32,
    done: bool,
    message: Vec<u8>,
    captures: bool,
    columns: Definitions,
}

impl PrepareScanner {
    pub fn new(agreed: Capabilities) -> PrepareScanner {
        PrepareScanner {
            frames: Frames::new(),
            agreed,
            prepared: None,
            packets_left: 0,
            done: false,
            message: Vec::new(),
            captures: false,
            columns: Definitions::default(),
        }
    }

    /// Keeps, or no longer keeps, the definitions of the columns of each statement; to be called between answers.
    pub fn capture(&mut self, captures: bool) {
        self.captures = captures;
        self.frames.keep_whole(captures, CAPTURED_BYTES_MAX);
    }

    /// Columns of the statement that was prepared last; empty where they were not to be captured, or it has none.
    pub fn columns(&self) -> &Definitions {
        &self.columns
    }

    /// Takes packets whatever their numbers are, from now on; see
    /// [`ResponseScanner`](crate::ResponseScanner::skip_sequence_check).
    pub fn skip_sequence_check(&mut self) {
        self.frames.skip_sequence_check();
    }

    /// Gets ready for the next answer.
    pub fn begin(&mut self) {
        self.frames.reset(1);
        self.prepared = None;
        self.packets_left = 0;
        self.done = false;
        self.columns.clear();
    }

    /// The message of the last [`PrepareAnswer::Err`].
    pub fn message(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.message)
    }

    /// Takes what has been read, up to the end of the answer at most. Returns how many bytes it consumed, and the answer
    /// if it is complete.
    ///
    /// # Errors
    /// What no server may send here; nothing more can be fed then.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<PrepareAnswer>), ProtocolError> {
        let mut at = 0;
        while at < bytes.len() {
            if self.done {
                return Err(ProtocolError::AfterEnd);
            }
            let (consumed, packet) = self.frames.next(&bytes[at..])?;
            at += consumed;
            let Some(packet) = packet else { continue };
            let Some(prepared) = self.prepared else {
                if packet.head.first() == Some(&0xff) {
                    let error = ServerError::parse(packet.head)?;
                    self.message.clear();
                    self.message.extend_from_slice(error.message);
                    self.done = true;
                    let answer = PrepareAnswer::Err { code: error.code, sqlstate: error.sqlstate };
                    return Ok((at, Some(answer)));
                }
                let prepared = parse_first(packet.head)?;
                self.packets_left = self.definition_packets(prepared);
                self.prepared = Some(prepared);
                if self.packets_left == 0 {
                    self.done = true;
                    return Ok((at, Some(PrepareAnswer::Prepared(prepared))));
                }
                continue;
            };
            // Columns come last, with an EOF behind them where there still is one.
            let left_after_columns = u32::from(!self.agreed.deprecate_eof);
            let is_column = self.packets_left > left_after_columns
                && self.packets_left <= left_after_columns + u32::from(prepared.columns);
            if self.captures && is_column {
                self.columns.push(packet.head)?;
            }
            self.packets_left -= 1;
            if self.packets_left == 0 {
                self.done = true;
                return Ok((at, Some(PrepareAnswer::Prepared(prepared))));
            }
        }
        Ok((at, None))
    }

    fn definition_packets(&self, prepared: PreparedStatement) -> u32 {
        let eof = u32::from(!self.agreed.deprecate_eof);
        let mut packets = 0;
        for definitions in [prepared.params, prepared.columns] {
            if definitions > 0 {
                packets += u32::from(definitions) + eof;
            }
        }
        packets
    }
}

fn parse_first(payload: &[u8]) -> Result<PreparedStatement, ProtocolError> {
    let mut fields = Fields::new(payload);
    let byte = fields.u8("first byte")?;
    if byte != 0 {
        return Err(ProtocolError::Unexpected {
            byte,
            place: "at the beginning of the answer to a preparation",
        });
    }
    let statement_id = fields.u32("statement id")?;
    let columns = fields.u16("number of columns")?;
    let params = fields.u16("number of parameters")?;
    Ok(PreparedStatement { statement_id, params, columns })
}
