//! Apache's `LogFormat`.

use crate::error::FormatError;
use crate::moment::{TimePart, common_log_time, time_parts};
use crate::template::{Field, Piece, Template};

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;
const MICROSECOND_NS: u64 = 1_000;

/// A directive: `%>s`, `%{ms}T`, `%400,501{User-agent}i`.
struct Directive<'f> {
    text: &'f str,
    argument: Option<&'f str>,
    /// One letter, or three of which the first is `^`.
    name: &'f str,
}

pub(crate) fn compile(format: &str) -> Result<Template, FormatError> {
    let mut pieces = Vec::new();
    let mut has_begin_time = true;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        pieces.push(Piece::Text(rest[..at].to_string()));
        let directive = read_directive(&rest[at..])?;
        rest = &rest[at + directive.text.len()..];
        match directive.name {
            "%" => pieces.push(Piece::Text("%".to_string())),
            "t" => {
                let argument = directive.argument.unwrap_or_default();
                has_begin_time &= !argument.starts_with("end:");
                pieces.extend(time(&directive)?);
            }
            _ => pieces.push(Piece::Field(field(&directive)?, directive.text.to_string())),
        }
    }
    pieces.push(Piece::Text(rest.to_string()));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    Template::new(&pieces, has_begin_time)
}

/// Reads the directive at the begin of `text`, which is a `%`.
fn read_directive(text: &str) -> Result<Directive<'_>, FormatError> {
    let unknown = || FormatError::UnknownDirective(text.chars().take(12).collect());
    // Conditions such as %!200,304 and the choice between the first and the last request change no shape.
    let after =
        text[1..].trim_start_matches(|letter: char| "!<>,".contains(letter) || letter.is_ascii_digit());
    let (argument, after) = match after.strip_prefix('{') {
        Some(inner) => {
            let end = inner.find('}').ok_or_else(unknown)?;
            (Some(&inner[..end]), inner[end + 1..].trim_start_matches(['<', '>']))
        }
        None => (None, after),
    };
    let length = if after.starts_with('^') { 3 } else { 1 };
    let name = after.get(..length).ok_or_else(unknown)?;
    let end = text.len() - after.len() + length;
    Ok(Directive { text: &text[..end], argument, name })
}

fn field(directive: &Directive<'_>) -> Result<Field, FormatError> {
    let unknown = || FormatError::UnknownDirective(directive.text.to_string());
    Ok(match (directive.name, directive.argument) {
        ("r", _) => Field::RequestLine,
        ("m", _) => Field::Method,
        ("U", _) => Field::Path,
        ("q", _) => Field::Query,
        ("s", _) => Field::Status,
        ("b" | "B" | "O", _) => Field::Bytes,
        ("D", _) => Field::Duration(MICROSECOND_NS),
        ("T", None | Some("s")) => Field::Duration(SECOND_NS),
        ("T", Some("ms")) => Field::Duration(MILLISECOND_NS),
        ("T", Some("us")) => Field::Duration(MICROSECOND_NS),
        ("T", _) => return Err(unknown()),
        ("P", None | Some("pid")) => Field::Pid,
        ("P", Some("tid" | "hextid")) => Field::Ignored,
        ("X" | "c", None) => Field::Connection,
        ("a" | "A" | "h" | "l" | "u" | "v" | "V" | "p" | "H" | "f" | "k" | "L" | "R" | "I" | "S", _) => {
            Field::Ignored
        }
        ("C" | "e" | "i" | "n" | "o" | "^ti" | "^to" | "c", Some(_)) => Field::Ignored,
        _ => return Err(unknown()),
    })
}

/// `%t` has its brackets; with a format it has none.
fn time(directive: &Directive<'_>) -> Result<Vec<Piece>, FormatError> {
    let field = |parts| Piece::Field(Field::Time(parts), directive.text.to_string());
    let bare = directive.argument.unwrap_or_default();
    let bare = bare.strip_prefix("begin:").or_else(|| bare.strip_prefix("end:")).unwrap_or(bare);
    let parts = match bare {
        "" => {
            let bracket = |text: &str| Piece::Text(text.to_string());
            return Ok(vec![bracket("["), field(common_log_time()), bracket("]")]);
        }
        "sec" => vec![TimePart::Epoch(1)],
        "msec" => vec![TimePart::Epoch(1_000)],
        "usec" => vec![TimePart::Epoch(1_000_000)],
        "msec_frac" | "usec_frac" => vec![TimePart::Fraction],
        format => time_parts(format).ok_or_else(|| FormatError::TimeFormat(format.to_string()))?,
    };
    Ok(vec![field(parts)])
}
