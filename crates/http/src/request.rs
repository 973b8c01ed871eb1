//! Requests as bytes.

use std::fmt;
use std::str::FromStr;

use crate::cookies::CookieJar;

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// As in the request line.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }

    /// Whether a request may be sent once more where its connection was closed before any answer (RFC 9110, 9.2.2).
    pub const fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = ();

    fn from_str(text: &str) -> Result<Method, ()> {
        [Method::Get, Method::Head, Method::Post, Method::Put, Method::Patch, Method::Delete]
            .into_iter()
            .find(|method| method.name() == text)
            .ok_or(())
    }
}

/// A request that is ready to be written.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    pub method: Method,
    /// Begins with `/`, encoded.
    pub path: &'r [u8],
    /// Value of the `Host` header.
    pub authority: &'r str,
    /// Whole lines, each with its end, as [`write_headers`] makes them.
    pub headers: &'r [u8],
    /// Lines that follow these.
    pub more_headers: &'r [u8],
    pub cookies: &'r CookieJar,
    /// Type and content.
    pub body: Option<(&'r str, &'r [u8])>,
    /// Whether the connection stays open after the answer, if the server agrees.
    pub keeps_connection: bool,
}

impl Request<'_> {
    /// Appends the request to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.method.name().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.path);
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        out.extend_from_slice(self.authority.as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.headers);
        out.extend_from_slice(self.more_headers);
        self.cookies.write(self.path, out);
        if !self.keeps_connection {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        let Some((content_type, body)) = self.body else {
            out.extend_from_slice(b"\r\n");
            return;
        };
        out.extend_from_slice(b"Content-Type: ");
        out.extend_from_slice(content_type.as_bytes());
        out.extend_from_slice(b"\r\nContent-Length: ");
        write_number(out, body.len());
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(body);
    }
}

/// Appends headers as lines.
pub fn write_headers<'h>(out: &mut Vec<u8>, headers: impl IntoIterator<Item = (&'h str, &'h str)>) {
    for (name, value) in headers {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

fn write_number(out: &mut Vec<u8>, mut number: usize) {
    let mut digits = [0u8; 20];
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[begin..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_lines_in_order() {
        let mut cookies = CookieJar::new();
        cookies.set(b"id=7; Path=/");
        let mut headers = Vec::new();
        write_headers(&mut headers, [("Accept", "*/*")]);
        let request = Request {
            method: Method::Post,
            path: b"/buy",
            authority: "shop",
            headers: &headers,
            more_headers: b"",
            cookies: &cookies,
            body: Some(("text/plain", b"0123456789")),
            keeps_connection: false,
        };
        let mut out = Vec::new();
        request.encode(&mut out);
        let text = "POST /buy HTTP/1.1\r\nHost: shop\r\nAccept: */*\r\nCookie: id=7\r\nConnection: close\r\n\
                    Content-Type: text/plain\r\nContent-Length: 10\r\n\r\n0123456789";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
