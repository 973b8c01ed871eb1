//! One request, as a line of an access log describes it.

/// What became of the connection when the answer was sent: `%X`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Aborted before the answer was complete.
    Aborted,
    /// May be used for another request.
    KeptAlive,
    /// Closed after the answer.
    Closed,
}

/// One request. What the format does not have, and what the line has as `-`, is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Wall time of its end, in nanoseconds since 1970. Where a format has only the begin and no duration, it is the begin.
    pub end_ns: Option<i64>,
    /// Empty where the client sent no request line.
    pub method: String,
    /// With its query, as the client sent it.
    pub path: String,
    /// 100 to 999.
    pub status: Option<u16>,
    pub duration_ns: Option<u64>,
    /// Sent to the client.
    pub bytes: Option<u64>,
    /// The process that served it.
    pub pid: Option<u32>,
    /// Time in which servers behind this one answered, all attempts added up.
    pub upstream_ns: Option<u64>,
    pub connection: Option<ConnectionState>,
}

impl Request {
    /// Takes method and path from a request line, such as `GET /a HTTP/1.1`. A text that is none leaves both empty.
    pub(crate) fn set_request_line(&mut self, line: &str) {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let (Some(method), Some(path)) = (words.next(), words.next()) else { return };
        if is_method(method) {
            self.method = method.to_string();
            self.path = path.to_string();
        }
    }
}

/// Whether a text can be a method: up to 16 capital letters, with dashes.
pub(crate) fn is_method(text: &str) -> bool {
    (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}
