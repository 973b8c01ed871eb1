//! Access logs of web servers: lines as requests, kinds of requests, and sums by kind.
//!
//! A [`LogFormat`] is compiled from Apache's `LogFormat`, nginx's `log_format`, or JSON keys. It parses one line into a [`Request`].
//! [`LineBuffer`] cuts what was read into lines. [`KindTree`] learns kinds of requests from their paths. [`Tally`] adds up requests by kind.
//! [`LogReader`] does all of that for one log.
//!
//! This crate does no I/O and reads no clock. Lines are a stranger's text: whatever they hold, nothing panics, and every size has a bound.
//!
//! ```
//! use whyso_access_log::{LogFormat, Tally, TallyBounds};
//!
//! let format = LogFormat::compile("%h %l %u %t \"%r\" %>s %b %D")?;
//! let line = "::1 - - [28/Nov/2026:19:40:04 +0000] \"GET /items/17?page=2 HTTP/1.1\" 200 512 1500";
//! let request = format.parse(line)?;
//! assert_eq!((request.status, request.duration_ns), (Some(200), Some(1_500_000)));
//!
//! let mut tally = Tally::new(TallyBounds::default());
//! tally.add(&request);
//! assert_eq!(tally.lines()[0].name, "GET /items/{}?page");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apache;
mod error;
mod format;
mod json;
mod kind;
mod line_buffer;
mod moment;
mod nginx;
mod reader;
mod request;
mod segment;
mod tally;
mod template;

pub use error::{FormatError, LineError};
pub use format::{LogFormat, NAMED_FORMATS};
pub use kind::{KindBounds, KindTree};
pub use line_buffer::{LINE_BYTES_MAX, LineBuffer, RawLine};
pub use reader::{Grouping, LogReader, LogSummary, ReadRequest};
pub use request::{ConnectionState, Request};
pub use tally::{Sums, Tally, TallyBounds, TallyLine};
