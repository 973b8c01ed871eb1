//! Why a format can't be compiled, and why a line can't be parsed.

/// Why a format can't be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    #[error("the log format is empty: give Apache's LogFormat, nginx's log_format, json or a name")]
    Empty,
    #[error("the log format is longer than {max} bytes: give the format only, not a whole configuration")]
    TooLong { max: usize },
    #[error(
        "the log format has the directive '{0}', which is not known: write it as the server's configuration has it"
    )]
    UnknownDirective(String),
    #[error(
        "the log format has the time format '%{{{0}}}t', which is not supported: use %t, %{{sec}}t or %{{msec}}t"
    )]
    TimeFormat(String),
    #[error(
        "'{first}' and '{second}' follow each other without a separator: put a blank between them in the server's format"
    )]
    NoSeparator { first: String, second: String },
    #[error(
        "the log format has neither a status nor a request: add %>s and \\\"%r\\\", or $status and \\\"$request\\\""
    )]
    NoRequest,
    #[error("the first lines fit none of {names}: give the server's own format", names = crate::format::names())]
    NotGuessed,
    #[error(
        "'{0}' is no pair of a JSON key and a field: write pairs such as json:took=duration_ms,code=status"
    )]
    JsonPair(String),
    #[error("'{0}' is no field of a request: use {known}", known = crate::json::FIELD_NAMES.join(", "))]
    JsonField(String),
    #[error("'{0}' is no known log format: give {names}, or the format's own text", names = crate::format::names())]
    UnknownName(String),
}

/// Why a line is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("longer than {} KiB", crate::line_buffer::LINE_BYTES_MAX / 1024)]
    TooLong,
    #[error("does not fit the format")]
    DoesNotFit,
    #[error("has no readable time")]
    Time,
    #[error("has a number that can't be read")]
    Number,
    #[error("is no JSON object")]
    NotJson,
    #[error("has neither a status nor a path")]
    NoRequest,
}
