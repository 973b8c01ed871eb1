//! Logs of JSON objects, one per line.

use serde_json::Value;

use crate::error::{FormatError, LineError};
use crate::moment::any_time;
use crate::request::{Request, is_method};
use crate::template::decimal;

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;
const MICROSECOND_NS: u64 = 1_000;

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonField {
    Time,
    Method,
    Path,
    RequestLine,
    Status,
    /// In units of this many nanoseconds.
    Duration(u64),
    Bytes,
    Pid,
    Upstream(u64),
}

/// Names of the fields, as the user writes them after a key.
pub(crate) const FIELD_NAMES: [&str; 13] = [
    "time",
    "method",
    "path",
    "request",
    "status",
    "duration_s",
    "duration_ms",
    "duration_us",
    "duration_ns",
    "bytes",
    "pid",
    "upstream_s",
    "upstream_ms",
];

const FIELDS: [JsonField; 13] = [
    JsonField::Time,
    JsonField::Method,
    JsonField::Path,
    JsonField::RequestLine,
    JsonField::Status,
    JsonField::Duration(SECOND_NS),
    JsonField::Duration(MILLISECOND_NS),
    JsonField::Duration(MICROSECOND_NS),
    JsonField::Duration(1),
    JsonField::Bytes,
    JsonField::Pid,
    JsonField::Upstream(SECOND_NS),
    JsonField::Upstream(MILLISECOND_NS),
];

/// Keys that well-known servers write. The first one that a line has counts. A dot leads into an object.
const KNOWN_KEYS: [(&str, JsonField); 60] = [
    ("time", JsonField::Time),
    ("ts", JsonField::Time),
    ("timestamp", JsonField::Time),
    ("@timestamp", JsonField::Time),
    ("time_iso8601", JsonField::Time),
    ("msec", JsonField::Time),
    ("time_local", JsonField::Time),
    ("StartUTC", JsonField::Time),
    ("start_time", JsonField::Time),
    ("date", JsonField::Time),
    ("t", JsonField::Time),
    ("method", JsonField::Method),
    ("request_method", JsonField::Method),
    ("RequestMethod", JsonField::Method),
    ("request.method", JsonField::Method),
    ("http.request.method", JsonField::Method),
    ("verb", JsonField::Method),
    ("request_uri", JsonField::Path),
    ("uri", JsonField::Path),
    ("path", JsonField::Path),
    ("RequestPath", JsonField::Path),
    ("request.uri", JsonField::Path),
    ("request.url", JsonField::Path),
    ("url.path", JsonField::Path),
    ("http.request.path", JsonField::Path),
    ("url", JsonField::Path),
    ("request", JsonField::RequestLine),
    ("status", JsonField::Status),
    ("status_code", JsonField::Status),
    ("response_code", JsonField::Status),
    ("DownstreamStatus", JsonField::Status),
    ("response.status", JsonField::Status),
    ("http.response.status_code", JsonField::Status),
    ("code", JsonField::Status),
    ("request_time", JsonField::Duration(SECOND_NS)),
    ("duration_s", JsonField::Duration(SECOND_NS)),
    ("duration_ms", JsonField::Duration(MILLISECOND_NS)),
    ("latency_ms", JsonField::Duration(MILLISECOND_NS)),
    ("elapsed_ms", JsonField::Duration(MILLISECOND_NS)),
    ("request_time_ms", JsonField::Duration(MILLISECOND_NS)),
    ("response_time_ms", JsonField::Duration(MILLISECOND_NS)),
    ("duration_us", JsonField::Duration(MICROSECOND_NS)),
    ("latency_us", JsonField::Duration(MICROSECOND_NS)),
    ("request_time_us", JsonField::Duration(MICROSECOND_NS)),
    ("duration_ns", JsonField::Duration(1)),
    ("latency_ns", JsonField::Duration(1)),
    ("Duration", JsonField::Duration(1)),
    ("event.duration", JsonField::Duration(1)),
    ("duration", JsonField::Duration(SECOND_NS)),
    ("latency", JsonField::Duration(SECOND_NS)),
    ("elapsed", JsonField::Duration(SECOND_NS)),
    ("bytes_sent", JsonField::Bytes),
    ("body_bytes_sent", JsonField::Bytes),
    ("bytes", JsonField::Bytes),
    ("size", JsonField::Bytes),
    ("DownstreamContentSize", JsonField::Bytes),
    ("pid", JsonField::Pid),
    ("upstream_response_time", JsonField::Upstream(SECOND_NS)),
    ("OriginDuration", JsonField::Upstream(1)),
    ("upstream_time_ms", JsonField::Upstream(MILLISECOND_NS)),
];

/// Keys that are asked for, the user's own before those that are well known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonFormat {
    own: Vec<(String, JsonField)>,
}

impl JsonFormat {
    /// Reads pairs of a key and a field: `took=duration_ms,code=status`. An empty text adds none.
    pub(crate) fn compile(pairs: &str) -> Result<JsonFormat, FormatError> {
        let mut own = Vec::new();
        for pair in pairs.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let parts = pair.rsplit_once('=').filter(|(key, _)| !key.is_empty());
            let (key, name) = parts.ok_or_else(|| FormatError::JsonPair(pair.to_string()))?;
            let place = FIELD_NAMES.iter().position(|known| *known == name);
            let place = place.ok_or_else(|| FormatError::JsonField(name.to_string()))?;
            own.push((key.to_string(), FIELDS[place]));
        }
        Ok(JsonFormat { own })
    }

    pub(crate) fn parse(&self, line: &str) -> Result<Request, LineError> {
        let value: Value = serde_json::from_str(line.trim()).map_err(|_| LineError::NotJson)?;
        if !value.is_object() {
            return Err(LineError::NotJson);
        }
        let mut request = Request::default();
        let own = self.own.iter().map(|(key, field)| (key.as_str(), *field));
        for (key, field) in own.chain(KNOWN_KEYS) {
            if let Some(found) = look_up(&value, key) {
                set(&mut request, field, found)?;
            }
        }
        match request.status.is_none() && request.path.is_empty() {
            true => Err(LineError::NoRequest),
            false => Ok(request),
        }
    }
}

/// Returns the value of a key, which may have its dots in its name or lead into objects.
fn look_up<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    if let Some(found) = value.get(key) {
        return Some(found);
    }
    let (first, rest) = key.split_once('.')?;
    look_up(value.get(first)?, rest)
}

/// Sets a field that is not set yet.
fn set(request: &mut Request, field: JsonField, value: &Value) -> Result<(), LineError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        // An object can have the name of a field, as "request" of some servers.
        _ => return Ok(()),
    };
    if text.is_empty() || text == "-" {
        return Ok(());
    }
    match field {
        JsonField::Time if request.end_ns.is_none() => {
            let at_ns = if value.is_number() { epoch_ns(&text) } else { any_time(&text) };
            request.end_ns = Some(at_ns.ok_or(LineError::Time)?);
        }
        JsonField::Method if request.method.is_empty() && is_method(&text) => request.method = text,
        JsonField::Path if request.path.is_empty() => request.path = text,
        JsonField::RequestLine if request.path.is_empty() => request.set_request_line(&text),
        JsonField::Status if request.status.is_none() => {
            request.status = Some(crate::template::status(&text)?);
        }
        JsonField::Duration(unit_ns) if request.duration_ns.is_none() => {
            request.duration_ns = Some(duration_ns(&text, unit_ns).ok_or(LineError::Number)?);
        }
        JsonField::Bytes if request.bytes.is_none() => {
            request.bytes = Some(decimal(&text, 1).ok_or(LineError::Number)?);
        }
        JsonField::Pid if request.pid.is_none() => {
            request.pid = Some(text.parse().map_err(|_| LineError::Number)?);
        }
        JsonField::Upstream(unit_ns) if request.upstream_ns.is_none() => {
            let attempts =
                text.split([',', ':']).map(str::trim).filter(|attempt| !["", "-"].contains(attempt));
            let mut sum = attempts.map(|attempt| duration_ns(attempt, unit_ns));
            let sum = sum.try_fold(0_u64, |sum_ns, attempt_ns| sum_ns.checked_add(attempt_ns?));
            request.upstream_ns = Some(sum.ok_or(LineError::Number)?);
        }
        _ => {}
    }
    Ok(())
}

/// Returns a number of seconds, milliseconds, microseconds or nanoseconds since 1970 as nanoseconds. Its size shows the unit: the
/// bounds are the years 1973 to 5138.
fn epoch_ns(text: &str) -> Option<i64> {
    let seconds: f64 = text.parse().ok()?;
    let unit = match seconds {
        _ if !(0.0..1e19).contains(&seconds) => return None,
        _ if seconds < 1e11 => SECOND_NS,
        _ if seconds < 1e14 => MILLISECOND_NS,
        _ if seconds < 1e17 => MICROSECOND_NS,
        _ => 1,
    };
    let ns = match text.parse::<u64>() {
        Ok(whole) => whole.checked_mul(unit)?,
        Err(_) => (seconds * unit as f64).round() as u64,
    };
    i64::try_from(ns).ok()
}

/// Returns a number in the key's unit, or with a unit of its own: 12ms, 0.5s, 35µs.
fn duration_ns(text: &str, unit_ns: u64) -> Option<u64> {
    let units =
        [("ns", 1), ("µs", MICROSECOND_NS), ("us", MICROSECOND_NS), ("ms", MILLISECOND_NS), ("s", SECOND_NS)];
    let own = units.iter().find_map(|(name, unit_ns)| Some((text.strip_suffix(name)?, *unit_ns)));
    let (number, unit_ns) = own.unwrap_or((text, unit_ns));
    let number = number.trim();
    if let Some(ns) = decimal(number, unit_ns) {
        return Some(ns);
    }
    // Small numbers are written with an exponent, such as 9.2e-05.
    let value = number.parse::<f64>().ok()? * unit_ns as f64;
    (0.0..u64::MAX as f64).contains(&value).then(|| value.round() as u64)
}
