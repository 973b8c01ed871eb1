//! Executions of prepared statements.

use super::{COM_STMT_EXECUTE, begin, finish, lenenc};

const CURSOR_TYPE_NO_CURSOR: u8 = 0;
/// What stands between a statement's id and the map of NULLs.
const FLAGS_AND_COUNT_BYTES: usize = 5;
const MYSQL_TYPE_LONG: u8 = 3;
const MYSQL_TYPE_DOUBLE: u8 = 5;
const MYSQL_TYPE_NULL: u8 = 6;
const MYSQL_TYPE_LONGLONG: u8 = 8;
const MYSQL_TYPE_STRING: u8 = 254;

/// Type of a statement's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// A signed number of four bytes.
    Int32,
    /// A signed number of eight bytes.
    Int64,
    Double,
    Text,
    /// Always NULL.
    Null,
}

impl ParamType {
    fn code(self) -> u8 {
        match self {
            ParamType::Int32 => MYSQL_TYPE_LONG,
            ParamType::Int64 => MYSQL_TYPE_LONGLONG,
            ParamType::Double => MYSQL_TYPE_DOUBLE,
            ParamType::Text => MYSQL_TYPE_STRING,
            ParamType::Null => MYSQL_TYPE_NULL,
        }
    }
}

/// The parts of a `COM_STMT_EXECUTE` that are the same at every execution.
#[derive(Clone, Debug)]
pub struct ExecuteTemplate {
    /// After the statement's id: flags, iteration count, the map of NULLs, and the types. What stands before the types is as
    /// good without them.
    tail: Vec<u8>,
    tail_without_types: usize,
}

impl ExecuteTemplate {
    /// A template for a statement with these parameters.
    pub fn new(params: &[ParamType]) -> ExecuteTemplate {
        let mut tail = vec![CURSOR_TYPE_NO_CURSOR];
        tail.extend_from_slice(&1u32.to_le_bytes());
        let nulls = tail.len();
        tail.resize(nulls + params.len().div_ceil(8), 0);
        for (place, param) in params.iter().enumerate() {
            if *param == ParamType::Null {
                tail[nulls + place / 8] |= 1 << (place % 8);
            }
        }
        let tail_without_types = tail.len();
        for param in params {
            tail.extend_from_slice(&[param.code(), 0]);
        }
        ExecuteTemplate { tail, tail_without_types }
    }

    /// Begins an execution; write the values in order, then [`finish`](ExecuteWriter::finish).
    ///
    /// `types_known`: an execution of this statement on this connection has sent the types to the server before. They
    /// are left out then, which spares the server from setting up its conversions again.
    #[inline]
    pub fn begin<'a>(&self, out: &'a mut Vec<u8>, statement_id: u32, types_known: bool) -> ExecuteWriter<'a> {
        let begin = begin(out, COM_STMT_EXECUTE);
        out.extend_from_slice(&statement_id.to_le_bytes());
        let (common, types) = self.tail.split_at(self.tail_without_types);
        let nulls = out.len() + FLAGS_AND_COUNT_BYTES;
        out.extend_from_slice(common);
        if !types.is_empty() {
            out.push(u8::from(!types_known));
            if !types_known {
                out.extend_from_slice(types);
            }
        }
        ExecuteWriter { out, begin, nulls, params: types.len() / 2 }
    }
}

/// Writes the values of one execution, in order; a value that is NULL is not written but marked.
#[derive(Debug)]
pub struct ExecuteWriter<'a> {
    out: &'a mut Vec<u8>,
    begin: usize,
    /// Where the map of NULLs begins in `out`.
    nulls: usize,
    params: usize,
}

impl ExecuteWriter<'_> {
    #[inline]
    pub fn int32(&mut self, value: i32) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    pub fn int64(&mut self, value: i64) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    pub fn double(&mut self, value: f64) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Marks the parameter at this place, from 0 on, as NULL, whatever its type; nothing else is written for it. A place
    /// beyond the last parameter marks none.
    #[inline]
    pub fn null(&mut self, place: usize) {
        if place < self.params {
            self.out[self.nulls + place / 8] |= 1 << (place % 8);
        }
    }

    #[inline]
    pub fn text(&mut self, value: &[u8]) {
        lenenc(self.out, value.len() as u64);
        self.out.extend_from_slice(value);
    }

    /// Completes the packet.
    #[inline]
    pub fn finish(self) {
        finish(self.out, self.begin, 0);
    }
}
