//! The hot part of the MySQL protocol: commands are encoded into a reused buffer, answers are scanned as they arrive.
//!
//! An execution of a prepared statement is written from an [`ExecuteTemplate`]; its answer goes through a
//! [`ResponseScanner`], which finds its end and counts its rows. The scanner materialises nothing, unless it is asked to keep the
//! results ([`ResultRows`]). Both take what the two sides agreed on at login; the login itself is not in here. A
//! [`Compressor`] and a [`Decompressor`] go around both where the connection is a compressed one.
//!
//! This crate does no I/O, reads no clock, allocates nothing per packet once its buffers have grown, and never
//! panics, whatever bytes it is fed.
//!
//! ```
//! use whyso_wire::{Answer, Capabilities, ExecuteTemplate, ParamType, ResponseScanner, RowFormat};
//!
//! let point_select = ExecuteTemplate::new(&[ParamType::Int32]);
//! let mut out = Vec::new();
//! let mut execution = point_select.begin(&mut out, 1, false);
//! execution.int32(4711);
//! execution.finish();
//! assert_eq!(out.len(), 22);
//!
//! let mut scanner = ResponseScanner::new(Capabilities { deprecate_eof: true, cache_metadata: false });
//! scanner.begin(RowFormat::Binary);
//! let ok = [7, 0, 0, 1, 0x00, 1, 0, 2, 0, 0, 0];
//! assert_eq!(scanner.feed(&ok[..3])?.complete, None);
//! let complete = scanner.feed(&ok[3..])?.complete.expect("the packet is whole now");
//! assert_eq!(complete.answer, Answer::Ok { affected_rows: 1, status: 2, warnings: 0 });
//! # Ok::<(), whyso_wire::ProtocolError>(())
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod captured;
mod column;
mod compress;
mod decode;
pub mod encode;
mod error;
mod frame;
mod prepare;
mod response;
mod row_format;

pub use captured::{CAPTURED_BYTES_MAX, CapturedResult, ResultRows, ResultSet, Row, TextFields};
pub use column::{ColumnType, Definitions, UNSIGNED, ZEROFILL};
pub use compress::{Compressor, Decompressor};
pub use decode::RowText;
pub use encode::{ExecuteTemplate, ExecuteWriter, ParamType, QueryTemplate, QueryWriter};
pub use error::ProtocolError;
pub use prepare::{PrepareAnswer, PrepareScanner, PreparedStatement};
pub use response::{
    Answer, Capabilities, Complete, FeedResult, ResponseScanner, SERVER_MORE_RESULTS_EXISTS,
    SERVER_STATUS_IN_TRANS, ServerError,
};
pub use row_format::RowFormat;
