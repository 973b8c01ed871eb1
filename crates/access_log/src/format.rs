//! A compiled format, by its text, its name, or a guess by the first lines.

use crate::error::{FormatError, LineError};
use crate::json::JsonFormat;
use crate::request::Request;
use crate::template::Template;
use crate::{apache, nginx};

/// The longest text of a format.
const FORMAT_BYTES_MAX: usize = 8 * 1024;

/// Names of formats and their texts. Where several fit, a guess takes the first one.
pub const NAMED_FORMATS: [(&str, &str); 8] = [
    ("combined-us", r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i" %D"#),
    (
        "nginx-time",
        r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_time"#,
    ),
    (
        "nginx-main",
        r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for""#,
    ),
    ("vhost-combined", r#"%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i""#),
    ("combined", r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i""#),
    ("common-us", r#"%h %l %u %t "%r" %>s %b %D"#),
    ("common", r#"%h %l %u %t "%r" %>s %b"#),
    ("json", "json"),
];

pub(crate) fn names() -> String {
    NAMED_FORMATS.map(|(name, _)| name).join(", ")
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    Template(Template),
    Json(JsonFormat),
}

/// Parses lines of one format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat {
    /// Its name, or its text.
    description: String,
    shape: Shape,
}

impl LogFormat {
    /// Compiles a format: a name of [`NAMED_FORMATS`], Apache's `LogFormat`, nginx's `log_format`, `json`, or `json:` with pairs of a key and
    /// a field, such as `json:took=duration_ms,code=status`. Apache's and nginx's may be quoted as their configuration has them.
    ///
    /// # Errors
    /// It has a directive that is not known, or two without a separator, or nothing by which a request is known.
    pub fn compile(text: &str) -> Result<LogFormat, FormatError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(FormatError::Empty);
        }
        if text.len() > FORMAT_BYTES_MAX {
            return Err(FormatError::TooLong { max: FORMAT_BYTES_MAX });
        }
        let description = text.to_string();
        if let Some(pairs) = text.strip_prefix("json:").or_else(|| (text == "json").then_some("")) {
            return Ok(LogFormat { description, shape: Shape::Json(JsonFormat::compile(pairs)?) });
        }
        let named = NAMED_FORMATS.iter().find(|(name, _)| *name == text);
        let format = named.map_or_else(|| without_quotes(text), |(_, format)| format.to_string());
        let template = match format.find(['%', '$']) {
            Some(at) if format[at..].starts_with('%') => apache::compile(&format)?,
            Some(_) => nginx::compile(&format)?,
            None => return Err(FormatError::UnknownName(description.chars().take(80).collect())),
        };
        Ok(LogFormat { description, shape: Shape::Template(template) })
    }

    /// Returns the named format that most of `lines` fit. `None`: each one fits fewer than half of them.
    #[must_use]
    pub fn guess(lines: &[&str]) -> Option<LogFormat> {
        let mut best: Option<(usize, LogFormat)> = None;
        for (name, _) in NAMED_FORMATS {
            let Ok(format) = LogFormat::compile(name) else { continue };
            let fitting = lines.iter().filter(|line| format.parse(line).is_ok()).count();
            if fitting * 2 >= lines.len().max(1) && best.as_ref().is_none_or(|(most, _)| fitting > *most) {
                best = Some((fitting, format));
            }
        }
        best.map(|(_, format)| format)
    }

    /// The format's name, or its text.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Parses a line without its end.
    ///
    /// # Errors
    /// It does not fit the format.
    pub fn parse(&self, line: &str) -> Result<Request, LineError> {
        if line.len() > crate::line_buffer::LINE_BYTES_MAX {
            return Err(LineError::TooLong);
        }
        match &self.shape {
            Shape::Template(template) => template.parse(line),
            Shape::Json(json) => json.parse(line),
        }
    }
}

/// Returns a format without the quotes of a configuration: `"…"` with `\"` in it, or several `'…'` in a row.
fn without_quotes(text: &str) -> String {
    let text = text.trim_end_matches(';').trim_end();
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(inner) = inner('\'') {
        let parts = inner.split('\'').step_by(2);
        return parts.collect();
    }
    // An nginx format can begin and end with a quoted variable.
    let whole = inner('"').filter(|inner| !inner.replace("\\\"", "").contains('"'));
    whole.unwrap_or(text).replace("\\\"", "\"").replace("\\t", "\t")
}
