//! What a column's pages take in memory, by their headers, before anything is decoded.
//!
//! A page of few bytes may claim a size of 2 GiB, and a dictionary holds a text once that stands in every row. Both are found here.

use parquet::basic::Type;
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// Whatever its size, a file may take so much memory,
const BYTES_MAX: u64 = 64 << 20;
/// and this for each of its bytes: a dictionary page of short texts and rows that are alike come close to that.
const BYTES_OF_A_BYTE_MAX: u64 = 1024;
/// A value and its levels, at least.
const VALUE_BYTES: u64 = 12;
/// Structures within structures of a page's header.
const DEPTH_MAX: u32 = 4;

const PLAIN: i64 = 0;
const RLE: i64 = 3;
const DELTA_BINARY_PACKED: i64 = 5;
const BYTE_STREAM_SPLIT: i64 = 9;
const DICTIONARIES: [i64; 2] = [2, 8];

/// What reading a file may take in memory.
pub(crate) fn memory_max(file_bytes: u64) -> u64 {
    BYTES_MAX + file_bytes.saturating_mul(BYTES_OF_A_BYTE_MAX)
}

/// What was found in the pages of a column's chunk.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Need {
    /// Size of all pages, once decompressed.
    pub(crate) bytes: u64,
    pub(crate) values: u64,
    has_dictionary: bool,
}

fn odd(why: &str) -> ParquetError {
    ParquetError::General(why.to_string())
}

/// Of a chunk's bytes.
pub(crate) fn need(column: &ColumnChunkMetaData, mut chunk: &[u8], memory_max: u64) -> Result<Need> {
    let is_text = match column.column_type() {
        Type::BYTE_ARRAY => true,
        Type::FIXED_LEN_BYTE_ARRAY | Type::INT96 => {
            return Err(odd("it has a column of a type that is never written"));
        }
        _ => false,
    };
    let mut need = Need::default();
    while !chunk.is_empty() {
        let header = Header::read(&mut chunk).ok_or_else(|| odd("the header of a page is damaged"))?;
        chunk = chunk.get(header.compressed..).ok_or_else(|| odd("a page reaches past its column"))?;
        let is_known = header.encoding.is_none_or(|encoding| match is_text {
            true => encoding == PLAIN || DICTIONARIES.contains(&encoding),
            false => {
                [PLAIN, RLE, DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT].contains(&encoding)
                    || DICTIONARIES.contains(&encoding)
            }
        });
        if !is_known {
            return Err(odd("a page has an encoding that is never written"));
        }
        need.has_dictionary |= header.encoding.is_none();
        need.bytes += header.uncompressed + header.values * VALUE_BYTES;
        need.values += header.values;
        if need.bytes > memory_max {
            return Err(odd("its pages take more memory than a file of this size can need"));
        }
    }
    Ok(need)
}

/// Length of the longest text of a column's dictionary; 0 where it has none.
pub(crate) fn longest_text<R: ChunkReader + 'static>(
    chunks: &Arc<R>,
    column: &ColumnChunkMetaData,
    rows: usize,
    need: &Need,
) -> Result<u64> {
    if column.column_type() != Type::BYTE_ARRAY || !need.has_dictionary {
        return Ok(0);
    }
    let mut pages = SerializedPageReader::new(Arc::clone(chunks), column, rows, None)?;
    let Some(Page::DictionaryPage { buf, .. }) = pages.get_next_page()? else {
        return Err(odd("a dictionary does not come first"));
    };
    let (mut rest, mut longest) = (&buf[..], 0);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length);
        rest = after.get(length as usize..).ok_or_else(|| odd("a text reaches past its dictionary"))?;
        longest = longest.max(u64::from(length));
    }
    Ok(longest)
}

/// What the header of a page has, in Thrift's compact protocol, by parquet.thrift of the format.
#[derive(Default)]
struct Header {
    uncompressed: u64,
    compressed: usize,
    values: u64,
    /// Of a page of data; a dictionary has none.
    encoding: Option<i64>,
}

impl Header {
    fn read(bytes: &mut &[u8]) -> Option<Header> {
        let mut header = Header::default();
        let (mut sizes, mut is_data, mut id) = (0, false, 0);
        while let Some(kind) = field(bytes, &mut id)? {
            match (id, kind) {
                (2, 5) => header.uncompressed = u64::try_from(integer(bytes)?).ok()?,
                (3, 5) => header.compressed = usize::try_from(integer(bytes)?).ok()?,
                (5, 12) => (header.values, header.encoding, is_data) = inner(bytes, 2)?,
                (7, 12) => header.values = inner(bytes, 0)?.0,
                (8, 12) => (header.values, header.encoding, is_data) = inner(bytes, 4)?,
                _ => skip(bytes, kind, DEPTH_MAX)?,
            }
            sizes += u32::from(matches!(id, 2 | 3));
        }
        (sizes == 2 && is_data == header.encoding.is_some()).then_some(header)
    }
}

/// The number of values, and the encoding in field `encoding_id`.
fn inner(bytes: &mut &[u8], encoding_id: i64) -> Option<(u64, Option<i64>, bool)> {
    let (mut values, mut encoding, mut id) = (0, None, 0);
    while let Some(kind) = field(bytes, &mut id)? {
        match (id, kind) {
            (1, 5) => values = u64::try_from(integer(bytes)?).ok()?,
            (id, 5) if id == encoding_id => encoding = Some(integer(bytes)?),
            _ => skip(bytes, kind, DEPTH_MAX)?,
        }
    }
    Some((values, encoding, encoding_id != 0))
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

fn unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let part = byte(bytes)?;
        value |= u64::from(part & 0x7f) << shift;
        if part & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn integer(bytes: &mut &[u8]) -> Option<i64> {
    let value = unsigned(bytes)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// The next field's kind, its number in `id`; `Some(None)` at the end of a structure.
fn field(bytes: &mut &[u8], id: &mut i64) -> Option<Option<u8>> {
    let first = byte(bytes)?;
    if first == 0 {
        return Some(None);
    }
    *id = match first >> 4 {
        0 => integer(bytes)?,
        delta => id.checked_add(i64::from(delta))?,
    };
    Some(Some(first & 0x0f))
}

fn skip(bytes: &mut &[u8], kind: u8, depth: u32) -> Option<()> {
    let over = |bytes: &mut &[u8], length: u64| {
        *bytes = bytes.get(usize::try_from(length).ok()?..)?;
        Some(())
    };
    match kind {
        1 | 2 => Some(()),
        3 => over(bytes, 1),
        4..=6 => unsigned(bytes).map(drop),
        7 => over(bytes, 8),
        8 => {
            let length = unsigned(bytes)?;
            over(bytes, length)
        }
        12 => {
            let (deeper, mut id) = (depth.checked_sub(1)?, 0);
            while let Some(kind) = field(bytes, &mut id)? {
                skip(bytes, kind, deeper)?;
            }
            Some(())
        }
        // Lists, sets and maps are in no page's header.
        _ => None,
    }
}
