//! The results of one command, kept as they were received.

use std::ops::Range;

use crate::column::{ColumnType, Definitions};
use crate::decode::RowText;
use crate::error::ProtocolError;
use crate::frame::Fields;
use crate::row_format::RowFormat;

/// More than any client should hold of one answer; a server that sends more is refused.
pub const CAPTURED_BYTES_MAX: usize = 1 << 30;

/// Column definitions and rows of every result of one command, in the form that the server sent them.
///
/// Rows of the text protocol were checked on arrival: each has a field for every column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultRows {
    definitions: Definitions,
    rows: Vec<u8>,
    /// Where each row ends in `rows`.
    row_ends: Vec<usize>,
    results: Vec<StoredAnswer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum StoredAnswer {
    Done {
        affected_rows: u64,
        insert_id: u64,
    },
    Rows {
        format: RowFormat,
        columns: usize,
        /// Places in `definitions`; empty where the server sent none.
        definitions: Range<usize>,
        /// Places in `row_ends`.
        rows: Range<usize>,
    },
}

/// One of the results of a command.
#[derive(Clone, Copy, Debug)]
pub enum CapturedResult<'a> {
    /// Of a statement without rows.
    Done {
        affected_rows: u64,
        insert_id: u64,
    },
    Rows(ResultSet<'a>),
}

/// The rows of one result.
#[derive(Clone, Copy, Debug)]
pub struct ResultSet<'a> {
    captured: &'a ResultRows,
    format: RowFormat,
    columns: usize,
    definitions_begin: usize,
    definitions_end: usize,
    rows_begin: usize,
    rows_end: usize,
}

/// One row, as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    format: RowFormat,
    bytes: &'a [u8],
}

impl ResultRows {
    /// Number of results up to now.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// The result at this place, from 0 on.
    pub fn get(&self, place: usize) -> Option<CapturedResult<'_>> {
        Some(match self.results.get(place)? {
            StoredAnswer::Done { affected_rows, insert_id } => {
                CapturedResult::Done { affected_rows: *affected_rows, insert_id: *insert_id }
            }
            StoredAnswer::Rows { format, columns, definitions, rows } => CapturedResult::Rows(ResultSet {
                captured: self,
                format: *format,
                columns: *columns,
                definitions_begin: definitions.start,
                definitions_end: definitions.end,
                rows_begin: rows.start,
                rows_end: rows.end,
            }),
        })
    }

    /// Every result, in the order in which the server sent them.
    pub fn results(&self) -> impl Iterator<Item = CapturedResult<'_>> {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    pub(crate) fn clear(&mut self) {
        self.definitions.clear();
        self.rows.clear();
        self.row_ends.clear();
        self.results.clear();
    }

    pub(crate) fn push_done(&mut self, affected_rows: u64, insert_id: u64) {
        self.results.push(StoredAnswer::Done { affected_rows, insert_id });
    }

    pub(crate) fn begin_rows(&mut self, format: RowFormat, columns: u64) {
        let (definitions, rows) = (self.definitions.len(), self.row_ends.len());
        self.results.push(StoredAnswer::Rows {
            format,
            columns: usize::try_from(columns).unwrap_or(usize::MAX),
            definitions: definitions..definitions,
            rows: rows..rows,
        });
    }

    pub(crate) fn push_definition(&mut self, packet: &[u8]) -> Result<(), ProtocolError> {
        self.check_size(packet)?;
        self.definitions.push(packet)?;
        if let Some(StoredAnswer::Rows { definitions, .. }) = self.results.last_mut() {
            definitions.end = self.definitions.len();
        }
        Ok(())
    }

    pub(crate) fn push_row(&mut self, packet: &[u8]) -> Result<(), ProtocolError> {
        self.check_size(packet)?;
        let Some(StoredAnswer::Rows { format, columns, rows, .. }) = self.results.last_mut() else {
            return Ok(());
        };
        if *format == RowFormat::Text {
            check_text_row(packet, *columns)?;
        }
        self.rows.extend_from_slice(packet);
        self.row_ends.push(self.rows.len());
        rows.end = self.row_ends.len();
        Ok(())
    }

    fn check_size(&self, packet: &[u8]) -> Result<(), ProtocolError> {
        if self.rows.len() + packet.len() > CAPTURED_BYTES_MAX {
            return Err(ProtocolError::TooLarge { bytes_max: CAPTURED_BYTES_MAX });
        }
        Ok(())
    }
}

fn check_text_row(packet: &[u8], columns: usize) -> Result<(), ProtocolError> {
    let mut fields = Fields::new(packet);
    for _ in 0..columns {
        fields.nullable_bytes("field of a row")?;
    }
    match fields.rest() {
        [] => Ok(()),
        [byte, ..] => Err(ProtocolError::Unexpected { byte: *byte, place: "after the last field of a row" }),
    }
}

impl<'a> ResultSet<'a> {
    pub fn format(&self) -> RowFormat {
        self.format
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Types of the columns; empty where the server sent no definitions, because it did when the statement was
    /// prepared.
    pub fn types(&self) -> &'a [ColumnType] {
        self.captured.definitions.types().get(self.definitions_begin..self.definitions_end).unwrap_or(&[])
    }

    /// Names of the columns, as the server sent them; empty as [`types`](ResultSet::types) is.
    pub fn names(&self) -> impl Iterator<Item = &'a [u8]> {
        let captured = self.captured;
        (self.definitions_begin..self.definitions_end).map(|place| captured.definitions.name(place))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows_end - self.rows_begin
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at this place, from 0 on.
    pub fn row(&self, place: usize) -> Option<Row<'a>> {
        if place >= self.len() {
            return None;
        }
        let number = self.rows_begin + place;
        let begin = match number {
            0 => 0,
            after => *self.captured.row_ends.get(after - 1)?,
        };
        let end = *self.captured.row_ends.get(number)?;
        Some(Row { format: self.format, bytes: self.captured.rows.get(begin..end)? })
    }

    pub fn rows(&self) -> impl Iterator<Item = Row<'a>> {
        let set = *self;
        (0..set.len()).filter_map(move |place| set.row(place))
    }
}

impl<'a> Row<'a> {
    /// The row's packet.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The fields of a row of the text protocol, `None` for NULL. Nothing for a binary row: see
    /// [`decode`](Row::decode).
    pub fn fields(&self) -> TextFields<'a> {
        let bytes: &[u8] = if self.format == RowFormat::Text { self.bytes } else { &[] };
        TextFields { fields: Fields::new(bytes) }
    }

    /// Writes the fields into `text`, replacing its content, as the text protocol would show them. `types` are those
    /// of the result, or of the statement's preparation; a row of the text protocol needs none.
    ///
    /// # Errors
    /// A binary row that does not fit its types.
    pub fn decode(&self, types: &[ColumnType], text: &mut RowText) -> Result<(), ProtocolError> {
        text.clear();
        match self.format {
            RowFormat::Text => {
                for field in self.fields() {
                    text.push(field);
                }
                Ok(())
            }
            RowFormat::Binary => text.decode_binary(self.bytes, types),
        }
    }
}

/// The fields of a row of the text protocol.
#[derive(Debug)]
pub struct TextFields<'a> {
    fields: Fields<'a>,
}

impl<'a> Iterator for TextFields<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        if self.fields.rest().is_empty() {
            return None;
        }
        // Checked when the row arrived.
        self.fields.nullable_bytes("field of a row").ok()
    }
}
