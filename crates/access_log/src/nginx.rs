//! nginx's `log_format`.

use crate::error::FormatError;
use crate::moment::{TimePart, common_log_time, iso_time};
use crate::template::{Field, Piece, Template};

const SECOND_NS: u64 = 1_000_000_000;

pub(crate) fn compile(format: &str) -> Result<Template, FormatError> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('$') {
        let (name, length) = variable(&rest[at + 1..]);
        if name.is_empty() {
            return Err(FormatError::UnknownDirective(rest[at..].chars().take(12).collect()));
        }
        pieces.push(Piece::Text(rest[..at].to_string()));
        pieces.push(Piece::Field(field(name), format!("${name}")));
        rest = &rest[at + 1 + length..];
    }
    pieces.push(Piece::Text(rest.to_string()));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    // nginx writes a line when the request ends, with the time then.
    Template::new(&pieces, false)
}

/// Returns a variable's name and how much of the text it is: `status`, or `{status}`.
fn variable(text: &str) -> (&str, usize) {
    let in_braces = text.strip_prefix('{');
    let name = in_braces.unwrap_or(text);
    let end =
        name.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(name.len());
    match in_braces {
        Some(_) if !name[end..].starts_with('}') => ("", 0),
        Some(_) => (&name[..end], end + 2),
        None => (&name[..end], end),
    }
}

fn field(name: &str) -> Field {
    match name {
        "request" => Field::RequestLine,
        "request_method" => Field::Method,
        "request_uri" | "uri" | "document_uri" => Field::Path,
        "is_args" | "args" | "query_string" => Field::Query,
        "status" => Field::Status,
        "request_time" => Field::Duration(SECOND_NS),
        "bytes_sent" | "body_bytes_sent" => Field::Bytes,
        "pid" => Field::Pid,
        "upstream_response_time" => Field::Upstream,
        "time_local" => Field::Time(common_log_time()),
        "time_iso8601" => Field::Time(iso_time()),
        "msec" => Field::Time(vec![TimePart::Epoch(1)]),
        _ if name.starts_with("upstream_") => Field::IgnoredList,
        _ => Field::Ignored,
    }
}
