//! Numbers of errors: those of SQL servers, statuses of HTTP, and what else can become of a request.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What replaces the SQL state in the errors of HTTP; the space keeps it apart from every state of a SQL server.
const HTTP_STATE: [u8; 5] = *b"HTTP ";
/// Lowest status.
const STATUS_MIN: u16 = 100;

/// A server's error number and SQL state, or what became of a request over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ErrorCode {
    /// Of HTTP: the status, or below 100 an [`HttpProblem`].
    pub errno: u16,
    /// Five letters or digits; "HY000" where the server gave none. Of HTTP: "HTTP ".
    pub sqlstate: [u8; 5],
}

/// Why a request over HTTP has no good answer, other than its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpProblem {
    /// The connection ended within the answer.
    Cut = 1,
    /// The connection ended before the first byte of the answer.
    ClosedBefore = 2,
    /// The bytes are no answer of HTTP/1.1.
    NotUnderstood = 3,
    /// The head or the body is longer than its bound.
    TooLarge = 4,
    /// The answer was not complete in time.
    TimedOut = 5,
    /// More redirects followed each other than are followed.
    TooManyRedirects = 6,
    /// A redirect led to another host, port or scheme.
    OtherSite = 7,
    /// The answer has no value between the texts of a page's `take`.
    ValueNotFound = 8,
    /// No connection could be opened.
    NoConnection = 9,
    /// The TLS session failed, or its certificate is not trusted.
    Tls = 10,
}

impl HttpProblem {
    const ALL: [HttpProblem; 10] = [
        HttpProblem::Cut,
        HttpProblem::ClosedBefore,
        HttpProblem::NotUnderstood,
        HttpProblem::TooLarge,
        HttpProblem::TimedOut,
        HttpProblem::TooManyRedirects,
        HttpProblem::OtherSite,
        HttpProblem::ValueNotFound,
        HttpProblem::NoConnection,
        HttpProblem::Tls,
    ];

    /// As in tables and JSON.
    const fn name(self) -> &'static str {
        match self {
            HttpProblem::Cut => "answer cut",
            HttpProblem::ClosedBefore => "closed before the answer",
            HttpProblem::NotUnderstood => "answer not understood",
            HttpProblem::TooLarge => "answer too large",
            HttpProblem::TimedOut => "no answer in time",
            HttpProblem::TooManyRedirects => "too many redirects",
            HttpProblem::OtherSite => "redirect to another site",
            HttpProblem::ValueNotFound => "value not found",
            HttpProblem::NoConnection => "no connection",
            HttpProblem::Tls => "TLS failed",
        }
    }
}

impl ErrorCode {
    /// The error of an answer over HTTP that was not good.
    pub const fn of_status(status: u16) -> ErrorCode {
        ErrorCode { errno: status, sqlstate: HTTP_STATE }
    }

    /// The error of a request over HTTP that has no good answer.
    pub const fn of_problem(problem: HttpProblem) -> ErrorCode {
        ErrorCode { errno: problem as u16, sqlstate: HTTP_STATE }
    }

    /// Whether it is this problem of a request over HTTP.
    pub fn is_problem(self, problem: HttpProblem) -> bool {
        self == ErrorCode::of_problem(problem)
    }
}

/// As in "1213 (40001)", "HTTP 503" or "HTTP answer cut".
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sqlstate != HTTP_STATE {
            return write!(f, "{} ({})", self.errno, self.sqlstate.escape_ascii());
        }
        match HttpProblem::ALL.into_iter().find(|problem| *problem as u16 == self.errno) {
            Some(problem) => write!(f, "HTTP {}", problem.name()),
            None => write!(f, "HTTP {}", self.errno),
        }
    }
}

impl From<ErrorCode> for String {
    fn from(code: ErrorCode) -> String {
        code.to_string()
    }
}

/// A text that is no error's code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' is no error's code such as 1213 (40001) or HTTP 503")]
pub struct UnknownErrorCode {
    pub text: String,
}

impl TryFrom<String> for ErrorCode {
    type Error = UnknownErrorCode;

    fn try_from(text: String) -> Result<ErrorCode, UnknownErrorCode> {
        text.parse()
    }
}

impl FromStr for ErrorCode {
    type Err = UnknownErrorCode;

    fn from_str(text: &str) -> Result<ErrorCode, UnknownErrorCode> {
        let of_http = |text: &str| {
            let problem = HttpProblem::ALL.into_iter().find(|problem| problem.name() == text);
            let status = || text.parse().ok().filter(|status| *status >= STATUS_MIN);
            problem.map(ErrorCode::of_problem).or_else(|| status().map(ErrorCode::of_status))
        };
        let code = || {
            if let Some(rest) = text.strip_prefix("HTTP ") {
                return of_http(rest);
            }
            let (errno, state) = text.strip_suffix(')')?.split_once(" (")?;
            Some(ErrorCode { errno: errno.parse().ok()?, sqlstate: state.as_bytes().try_into().ok()? })
        };
        code().ok_or_else(|| UnknownErrorCode { text: text.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_it_is_written() {
        let of_sql = ErrorCode { errno: 1213, sqlstate: *b"40001" };
        let all = HttpProblem::ALL.map(ErrorCode::of_problem);
        for code in [of_sql, ErrorCode::of_status(503)].into_iter().chain(all) {
            assert_eq!(code.to_string().parse(), Ok(code));
        }
        assert_eq!(ErrorCode::of_status(404).to_string(), "HTTP 404");
        assert_eq!(ErrorCode::of_problem(HttpProblem::Cut).to_string(), "HTTP answer cut");
        for text in ["", "HTTP ", "HTTP 5", "HTTP x", "1213"] {
            assert!(text.parse::<ErrorCode>().is_err(), "{text}");
        }
    }
}
