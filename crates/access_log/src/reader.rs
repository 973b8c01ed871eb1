//! One log, read from its begin to its end.

use std::ops::Range;

use crate::error::{FormatError, LineError};
use crate::format::LogFormat;
use crate::line_buffer::{LineBuffer, RawLine};
use crate::request::Request;
use crate::tally::{Sums, Tally, TallyBounds, TallyLine};

/// A format is guessed by at most this many lines.
const GUESS_LINES_MAX: usize = 100;
/// And by at most this many bytes.
const GUESS_BYTES_MAX: usize = 1024 * 1024;

/// By what requests are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Method and pattern of the path.
    #[default]
    Kind,
    /// The process that served it.
    Process,
    /// The answer's status.
    Status,
}

/// What is read of a log.
#[derive(Clone, Debug, Default)]
pub struct ReadRequest {
    /// `None`: it is guessed by the first lines.
    pub format: Option<LogFormat>,
    /// Only requests that ended then, in nanoseconds since 1970.
    pub window_ns: Option<Range<i64>>,
    pub grouping: Grouping,
    pub bounds: TallyBounds,
}

/// What a log has, added up.
#[derive(Clone, Debug)]
pub struct LogSummary {
    /// The format's name, or its text.
    pub format: String,
    /// By time, then by requests, the highest first.
    pub lines: Vec<TallyLine>,
    pub total: Sums,
    /// Lines that are no requests.
    pub malformed: u64,
    /// The first one of these: its number in the log, from 1, and the reason.
    pub first_malformed: Option<(u64, LineError)>,
    /// Requests that ended outside the window, or at an unknown time.
    pub outside: u64,
    /// When the first and the last request ended, in nanoseconds since 1970.
    pub ends_ns: Option<(i64, i64)>,
}

/// Adds up the requests of a log that is handed to it piece by piece.
#[derive(Debug)]
pub struct LogReader {
    request: ReadRequest,
    buffer: LineBuffer,
    /// The first lines, until there are enough to guess the format.
    waiting: Vec<Option<String>>,
    waiting_bytes: usize,
    sums: RunningSums,
}

#[derive(Debug)]
struct RunningSums {
    tally: Tally,
    lines: u64,
    malformed: u64,
    first_malformed: Option<(u64, LineError)>,
    outside: u64,
    ends_ns: Option<(i64, i64)>,
}

impl LogReader {
    #[must_use]
    pub fn new(request: ReadRequest) -> LogReader {
        let sums = RunningSums {
            tally: Tally::new(request.bounds),
            lines: 0,
            malformed: 0,
            first_malformed: None,
            outside: 0,
            ends_ns: None,
        };
        LogReader { request, buffer: LineBuffer::default(), waiting: Vec::new(), waiting_bytes: 0, sums }
    }

    /// Reads the next bytes of the log.
    ///
    /// # Errors
    /// The format was not given, and the first lines fit none that is known.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut outcome = Ok(());
        buffer.push(bytes, |line| {
            if outcome.is_ok() {
                outcome = self.take(line);
            }
        });
        self.buffer = buffer;
        outcome
    }

    /// Returns what the log has.
    ///
    /// # Errors
    /// As [`push`](LogReader::push).
    pub fn finish(mut self) -> Result<LogSummary, FormatError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut outcome = Ok(());
        buffer.finish(|line| outcome = self.take(line));
        outcome?;
        if self.request.format.is_none() {
            self.guess()?;
        }
        let sums = self.sums;
        Ok(LogSummary {
            format: self.request.format.map_or_else(String::new, |format| format.description().to_string()),
            total: sums.tally.total(),
            lines: sums.tally.lines(),
            malformed: sums.malformed,
            first_malformed: sums.first_malformed,
            outside: sums.outside,
            ends_ns: sums.ends_ns,
        })
    }

    fn take(&mut self, line: RawLine<'_>) -> Result<(), FormatError> {
        let text = match line {
            RawLine::Whole(bytes) => Some(String::from_utf8_lossy(bytes)),
            RawLine::TooLong => None,
        };
        if let Some(format) = &self.request.format {
            self.sums.add(&self.request, format, text.as_deref());
            return Ok(());
        }
        self.waiting_bytes += text.as_ref().map_or(0, |text| text.len());
        self.waiting.push(text.map(|text| text.into_owned()));
        if self.waiting.len() >= GUESS_LINES_MAX || self.waiting_bytes >= GUESS_BYTES_MAX {
            self.guess()?;
        }
        Ok(())
    }

    fn guess(&mut self) -> Result<(), FormatError> {
        let lines: Vec<&str> = self.waiting.iter().flatten().map(String::as_str).collect();
        if lines.is_empty() && self.waiting.is_empty() {
            return Ok(());
        }
        let format = LogFormat::guess(&lines).ok_or(FormatError::NotGuessed)?;
        for line in std::mem::take(&mut self.waiting) {
            self.sums.add(&self.request, &format, line.as_deref());
        }
        self.request.format = Some(format);
        Ok(())
    }
}

impl RunningSums {
    /// Adds a line; `None` stands for one that is too long.
    fn add(&mut self, wanted: &ReadRequest, format: &LogFormat, line: Option<&str>) {
        self.lines += 1;
        let parsed = line.map_or(Err(LineError::TooLong), |line| format.parse(line));
        let request = match parsed {
            Ok(request) => request,
            Err(reason) => {
                self.malformed += 1;
                self.first_malformed.get_or_insert((self.lines, reason));
                return;
            }
        };
        if let Some(window_ns) = &wanted.window_ns
            && !request.end_ns.is_some_and(|end_ns| window_ns.contains(&end_ns))
        {
            self.outside += 1;
            return;
        }
        if let Some(end_ns) = request.end_ns {
            let (first_ns, last_ns) = self.ends_ns.unwrap_or((end_ns, end_ns));
            self.ends_ns = Some((first_ns.min(end_ns), last_ns.max(end_ns)));
        }
        match wanted.grouping {
            Grouping::Kind => self.tally.add(&request),
            Grouping::Process => self.tally.add_named(&process_name(&request), &request),
            Grouping::Status => self.tally.add_named(&status_name(&request), &request),
        };
    }
}

fn process_name(request: &Request) -> String {
    request.pid.map_or_else(|| "process unknown".to_string(), |pid| format!("process {pid}"))
}

fn status_name(request: &Request) -> String {
    request.status.map_or_else(|| "status unknown".to_string(), |status| format!("status {status}"))
}

impl LogSummary {
    /// Seconds between the first and the last request's end, and one more, because most logs have whole seconds. `None`: without times.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        self.ends_ns.map(|(first_ns, last_ns)| (last_ns.saturating_sub(first_ns)) as f64 / 1e9 + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, request: ReadRequest) -> Result<LogSummary, FormatError> {
        let mut reader = LogReader::new(request);
        text.as_bytes().chunks(7).try_for_each(|piece| reader.push(piece))?;
        reader.finish()
    }

    fn line(second: u8, path: &str, status: u16, us: u64) -> String {
        format!("::1 - - [28/Nov/2026:19:40:{second:02} +0000] \"GET {path} HTTP/1.1\" {status} 5 {us}\n")
    }

    #[test]
    fn a_log_is_added_up_by_kind_the_slowest_first() {
        let mut text = line(1, "/items/1", 200, 1000) + "broken\n" + &line(4, "/items/2", 500, 3000);
        text.push_str(line(9, "/", 200, 100).trim_end());
        let summary = read(&text, ReadRequest::default()).unwrap();
        assert_eq!(summary.format, "common-us");
        let names: Vec<&str> = summary.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["GET /items/{}", "GET /"]);
        let sums = &summary.lines[0].sums;
        assert_eq!((sums.requests, sums.errors_5xx, sums.mean_ns()), (2, 1, Some(2_000_000)));
        assert_eq!((sums.quantile_ns(0.5), sums.quantile_ns(1.0)), (Some(1_003_000), Some(3_000_000)));
        assert_eq!((summary.total.requests, summary.malformed), (3, 1));
        assert_eq!(summary.first_malformed, Some((2, LineError::DoesNotFit)));
        assert!((summary.seconds().unwrap() - 8.9991).abs() < 1e-9);
    }

    #[test]
    fn only_what_ended_in_the_window_counts() {
        let text = line(1, "/a", 200, 0) + &line(4, "/b", 404, 0) + &line(9, "/c", 200, 0);
        let at_ns = 1_795_894_800_000_000_000;
        let window_ns = Some(at_ns + 2_000_000_000..at_ns + 9_000_000_000);
        let request = ReadRequest { window_ns, grouping: Grouping::Status, ..ReadRequest::default() };
        let summary = read(&text, request).unwrap();
        assert_eq!((summary.lines[0].name.as_str(), summary.outside), ("status 404", 2));
        assert_eq!((summary.total.requests, summary.total.errors_4xx), (1, 1));
    }

    #[test]
    fn a_log_of_an_unknown_format_is_refused_and_an_empty_one_has_nothing() {
        assert_eq!(read("a\nb\n", ReadRequest::default()).unwrap_err(), FormatError::NotGuessed);
        assert_eq!(read("", ReadRequest::default()).unwrap().total.requests, 0);
    }
}
